"""Cards for the Explore page: cases that pass a filter, one card per group, with every model's verdict.

A group has the cases about one picture or, in a search among captions, about the pictures with the same winner.

A question set's margins are kept in memory, so a changed filter needs only a few passes over arrays.
Texts are read only for the cards on one page.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from vlprobe.views import cases as views_cases
from vlprobe.views import rows as views_rows
from vlprobe.views.bodies import CaseBody, stored_body
from vlprobe.views.cases import Matches
from vlprobe.views.changes import changed_words
from vlprobe.views.filter import Filter
from vlprobe.views.records import AnswerRow, CaseRow, records
from vlprobe.views.runs import QuestionSet

Verdict = Literal["fooled", "tied", "held", "unknown"]
SAME_GROUP = 24  # other cases of a group that the drawer lists


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """Verdict on one model's answer to one case: right, wrong, tied or unknown."""

    model: str
    margin: float  # NaN: unknown
    is_scored: bool = True  # False: right or wrong only, the margin has no magnitude
    spread: float = math.nan  # similarity spread of the model; NaN or 0: unknown

    @property
    def verdict(self) -> Verdict:
        """The verdict, by the sign of the margin. It is never "held" for kinds that only measure movement."""
        return verdict_of(self.margin)

    @property
    def is_in_one_order(self) -> bool:
        """Return whether the answer changes with the order of the captions. Such a model has no scores."""
        return self.verdict == "tied" and not self.is_scored


@dataclass(frozen=True, slots=True)
class WallCard(CaseRow):
    """A case as a card on Explore. `source` and `target` are the replaced words, `images` the case's own pictures."""

    true_text: str
    wrong_text: str  # the text that should lose, or a rewording; "" if a picture should lose
    wrong_image: str  # for picture searches, the mixed picture that the filter's model ranks first
    margin: float  # margin of the filter's model
    verdicts: tuple[ModelVerdict, ...]  # of all models, as in `QuestionSet.ordered_models`
    more: int  # other cases of the same group that pass the filter
    # The answer of the filter's model, if the kind is a search or a ranking, and on slides about a rewording. `rank`,
    # `top`, `local_10` and others are in its `columns`.
    answer: AnswerRow | None
    is_scored: bool = True  # whether the filter's model has scores
    n_pictures: int = 1  # pictures of the group
    spread: float = math.nan  # similarity spread of the filter's model; NaN or 0: unknown
    # On slides: a wrong caption that scores between two wordings of the true one, and its score
    lie: tuple[float, str] = (math.nan, "")

    @property
    def n_believed(self) -> int:
        """Number of models that score the wrong side at least as high as the true side."""
        return sum(verdict.verdict in ("fooled", "tied") for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The position of a case on the Explore page, and the ids of the neighboring cards, or "" if there is none."""

    place: int  # position of the group, from 1; 0: the case does not pass the filter
    total_groups: int
    previous: str  # id of the previous card
    next: str


def verdict_of(margin: float) -> Verdict:
    """Return the verdict for a margin. A tie has its own verdict instead of counting as fooled."""
    if math.isnan(margin):
        return "unknown"
    return "tied" if margin == 0 else "fooled" if margin < 0 else "held"


@dataclass(frozen=True, slots=True)
class _Passing:
    """The cases that pass a filter, in groups. The first case in the filter's order represents its group."""

    matches: Matches
    groups: np.ndarray  # for each case, the position of its group in `heads`, shape (n,)
    heads: np.ndarray  # positions in `numbers`, ascending, one per group
    sizes: np.ndarray  # number of cases of each group
    pictures: np.ndarray  # number of pictures of each group
    shown: np.ndarray  # positions of the cases that have a card: `heads`, or all

    def position(self, case: int) -> int | None:
        """Return the position of a case in `numbers`, or None if it does not pass."""
        numbers = self.matches.numbers
        position = int(np.searchsorted(numbers, case))
        return position if position < len(numbers) and numbers[position] == case else None


def wall(
    question_set: QuestionSet,
    case_filter: Filter,
    page: int = 1,
    size: int = 60,
    grouped: bool = True,
) -> tuple[tuple[WallCard, ...], int, int]:
    """Return one page of cards for the cases that pass a filter, in the filter's order. Ties count
    as fooled.

    Args:
        grouped: Whether to return one card per group (the first case in the filter's order)
            instead of one per case.

    Returns:
        The cards on the page; the number of groups that pass the filter, which is the total
        number of cards if `grouped`; and the number of cases that pass.
    """
    passing = _passing(question_set, case_filter, grouped)
    start = max(page - 1, 0) * size
    positions = passing.shown[passing.matches.order(start, start + size, passing.shown)]
    groups = passing.groups[positions]
    extent = np.stack([passing.sizes[groups] - 1, passing.pictures[groups]], axis=1).tolist()
    numbers = passing.matches.numbers[positions].tolist()
    page_cards = cards(question_set, case_filter, numbers, extent)
    return page_cards, len(passing.heads), len(passing.matches.numbers)


def neighbors(
    question_set: QuestionSet,
    case_filter: Filter,
    case: int,
    grouped: bool = True,
) -> Neighbours:
    """Return a case's position and the ids of the neighboring cards.

    Args:
        case: Number of any case; a case that does not pass the filter has no position.
    """
    passing = _passing(question_set, case_filter, grouped)
    position = passing.position(case)
    if position is None:
        return Neighbours(0, len(passing.heads), "", "")
    head = passing.groups[position] if grouped else position
    order = passing.matches.order(0, len(passing.shown), passing.shown)
    rank = int(np.flatnonzero(order == head)[0])
    beside = [order[index] for index in (rank - 1, rank + 1) if 0 <= index < len(order)]
    numbers = passing.matches.numbers[passing.shown[beside]].tolist()
    several = cards(question_set, case_filter, numbers)
    previous = several[0].id if rank > 0 else ""
    next_id = several[-1].id if rank + 1 < len(order) else ""
    return Neighbours(rank + 1, len(passing.heads), previous, next_id)


def same_group(
    question_set: QuestionSet, case_filter: Filter, case: int, n: int = SAME_GROUP
) -> tuple[tuple[WallCard, ...], int]:
    """Return the first `n` other cases of a case's group that pass a filter, in the filter's order, and the number of
    all of them. There are none if the case does not pass the filter.
    """
    passing = _passing(question_set, case_filter, True)
    position = passing.position(case)
    if position is None:
        return (), 0
    is_same = passing.groups == passing.groups[position]
    is_same[position] = False
    same = np.flatnonzero(is_same)
    first = same[passing.matches.order(0, n, same)]
    return cards(question_set, case_filter, passing.matches.numbers[first].tolist()), len(same)


def cards(
    question_set: QuestionSet,
    case_filter: Filter,
    numbers: Sequence[int],
    extents: Sequence[Sequence[int]] = (),
) -> tuple[WallCard, ...]:
    """Return cards for the cases with the given numbers, in the given order.

    Args:
        case_filter: The filter. Cards show the margin and the answer by the filter's model.
        extents: For each case, the number of other cases in its group, and the number of pictures
            in the group. If empty, each case is in a group of its own.
    """
    if not numbers:
        return ()
    rows = records(CaseRow, views_rows.questions(question_set, numbers))
    bodies = [stored_body(question_set.probe, row.kind) for row in rows]
    pairs = zip(rows, bodies, strict=True)
    searched = list(dict.fromkeys(row.case for row, body in pairs if body.uses_answer))
    model = case_filter.model
    answers = views_rows.answer_rows(question_set, searched, (model,))
    models = question_set.ordered_models
    margins = views_rows.margins(question_set, models, np.asarray(numbers))
    runs = [question_set.run(name) for name in models]
    return tuple(
        _card(
            row,
            bodies[index],
            model,
            tuple(
                ModelVerdict(run.model, margin, run.is_scored, run.spread)
                for run, margin in zip(runs, margins[:, index].tolist(), strict=True)
            ),
            answers.get(row.case, {}).get(model),
            *(extents[index] if extents else (0, 1)),
        )
        for index, row in enumerate(rows)
    )


def _card(
    row: CaseRow,
    body: CaseBody,
    model: str,
    verdicts: tuple[ModelVerdict, ...],
    answer: AnswerRow | None,
    n_more: int,
    n_pictures: int,
) -> WallCard:
    verdict_of_model = next(verdict for verdict in verdicts if verdict.model == model)
    top = str(answer.columns.get("top", "")) if answer else ""
    true_text, wrong_text = body.texts(row, top)
    source, target = replaced_words(row, true_text, wrong_text)
    question = {column.name: getattr(row, column.name) for column in fields(row)}
    question |= {"source": source, "target": target, "tags": dict(row.tags)}
    question |= {"texts": tuple(row.texts), "roles": tuple(row.roles)}
    return WallCard(
        **question,
        true_text=true_text,
        wrong_text=wrong_text,
        wrong_image=top if body.ranks == "pictures" else "",
        margin=verdict_of_model.margin,
        spread=verdict_of_model.spread,
        verdicts=verdicts,
        more=n_more,
        n_pictures=n_pictures,
        answer=answer,
        is_scored=verdict_of_model.is_scored,
    )


def replaced_words(row: CaseRow, true_text: str, wrong_text: str) -> tuple[str, str]:
    """Return the words that a case's rule replaced. Without a rule, compare the two captions."""
    if not (row.source or row.target) and wrong_text in row.texts:
        return changed_words(true_text, wrong_text)
    return row.source, row.target


def fronts(
    question_set: QuestionSet, case_filter: Filter, numbers: Sequence[int] | np.ndarray
) -> dict[int, int]:
    """Return the case on the card of its group for each of the given cases that passes the filter."""
    passing = _passing(question_set, case_filter, True)
    every = passing.matches.numbers
    positions = np.flatnonzero(np.isin(every, numbers))
    heads = passing.heads[passing.groups[positions]]
    return dict(zip(every[positions].tolist(), every[heads].tolist(), strict=True))


def _passing(question_set: QuestionSet, case_filter: Filter, grouped: bool) -> _Passing:
    matches = views_cases.matching(question_set, case_filter)
    numbers, keys = matches.numbers, matches.sort_keys
    codes = question_set.cases.picture_codes[numbers]
    heads, groups, sizes = first_of_each(codes, keys)
    pictures = np.ones(len(heads), dtype=np.int64)
    answers = question_set.answers(case_filter.model)
    is_search = stored_body(question_set.probe, case_filter.kind).ranks == "captions"
    if is_search and "top" in answers.columns:  # one caption can win for hundreds of pictures
        winners = answers.first_ranked[numbers[heads]]
        first, group_of_picture, pictures = first_of_each(winners, keys[heads])
        heads, groups = heads[first], group_of_picture[groups]
        sizes = np.bincount(groups, minlength=len(heads))
    shown = heads if grouped else np.arange(len(numbers))
    return _Passing(matches, groups, heads, sizes, pictures, shown)


def first_of_each(
    codes: np.ndarray, sort_keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the row with the smallest sort key for each code. If keys are equal, the earliest row is used.

    Args:
        codes: Integers from 0, shape (n,).
        sort_keys: Shape (n,); NaN comes last.

    Returns:
        Positions of the found rows, ascending, shape (n_groups,); the group of every row, shape (n,);
        and the number of rows in each group, shape (n_groups,).
    """
    counts = np.bincount(codes)
    keys = sort_keys
    if keys.dtype.kind == "f":
        keys = np.where(np.isnan(keys), np.inf, keys)
    least = np.full(len(counts), np.inf, dtype=np.float64)
    np.minimum.at(least, codes, keys)
    candidates = np.flatnonzero(keys == least[codes])
    head_of_code = np.zeros(len(counts), dtype=np.int64)
    head_of_code[codes[candidates[::-1]]] = candidates[::-1]
    present = np.flatnonzero(counts)
    by_position = present[np.argsort(head_of_code[present])]
    group_of_code = np.empty(len(counts), dtype=np.int64)
    group_of_code[by_position] = np.arange(len(by_position))
    return head_of_code[by_position], group_of_code[codes], counts[by_position]
