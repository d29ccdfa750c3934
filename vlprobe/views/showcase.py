"""Failures for the Home page, and how often each type of wrong caption fools each model.

Failures that fool the most models are shown first, one case per picture. Among cases that fool
equally many models, the order is random. In published questions, whose labels may be wrong, cases
that strong models reject are omitted, cases that fool the selected model come first, and cases that
people understand at a glance (`is_clear`) and that no other of the two best models rejects are preferred.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe.views import rows as views_rows
from vlprobe.views import suspects as views_suspects
from vlprobe.views import wall as views_wall
from vlprobe.views.bodies import stored_body
from vlprobe.views.changes import changed_words
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import fit_models
from vlprobe.views.records import CaseRow, records
from vlprobe.views.runs import QuestionSet, list_kinds
from vlprobe.views.wall import WallCard

COUNT = 60  # maximum number of failures
LEAST_ANSWERS = 30  # minimum number of answers to a type of edit for showing its share
# Words that say that something is absent, which a picture cannot show
_ABSENT = {"no", "not", "none", "without", "never", "nobody", "nothing"}
_ODD = {"ignoring", "exactly"}  # words in odd captions of published questions
_PEOPLE = "people|person|persons|man|men|woman|women|boys?|girls?|child|children|kids?|lady|ladies|guys?|bab(?:y|ies)"
_PERSON_COLOR = re.compile(rf"\b(?:black|white|yellow|red|brown) (?:{_PEOPLE})\b", re.IGNORECASE)
_LONGEST_CLEAR = 12  # words
_CLEAR = 100_000  # added to the rank of a clear case
_WITH_PICTURES = "kind = ? AND len(images) > 0"


@dataclass(frozen=True, slots=True)
class Showcase:
    """A case and the number of models that it fools. Controls are not counted."""

    card: WallCard
    n_fooled: int  # including ties
    n_models: int  # number of models that answered
    n_tied: int = 0  # models among the fooled ones that cannot decide
    n_changes: int = 0  # models among these whose answer changes with the order of the captions


@dataclass(frozen=True, slots=True)
class LieCount:
    """The rate at which wrong captions of one type fool one model, or the mean movement if a kind only measures
    movement.
    """

    model: str
    subtype: str
    n_lies: int  # answers, two per case if the model ran in both orders
    n_believed: int  # including ties
    moved: float  # mean movement for kinds that only measure movement; else NaN
    n_orders: int  # orders in which the model saw the captions

    @property
    def share(self) -> float:
        """Share of wrong captions that fool the model, or the mean movement."""
        return self.n_believed / self.n_lies if math.isnan(self.moved) else self.moved


def headline_models(question_set: QuestionSet) -> tuple[str, ...]:
    """Return the rated models that passed the chance checks on the dataset, or all rated models if none did."""
    rated, fit = question_set.rated_models, fit_models(question_set)
    return tuple(name for name in rated if name in fit) or rated


def kinds(question_set: QuestionSet) -> tuple[str, ...]:
    """Return the kinds of cases in a question set, in the order of the Home page.

    Kinds that can fool a model precede kinds that only measure movement. Within both groups, kinds
    with pictures come first; otherwise, the order is the probe's.
    """
    kinds_here = list_kinds(question_set.store, question_set.key, question_set.probe)
    path = [question_set.cases.path]
    ranks = {}
    # Stops at the first row; counting would read all pictures
    statement = f"SELECT 1 FROM read_parquet(?) WHERE {_WITH_PICTURES} LIMIT 1"
    for kind in kinds_here:
        has_pictures = bool(question_set.store.fetch_rows(statement, [path, kind]))
        ranks[kind] = question_set.presentation.kind(kind).is_movement, not has_pictures
    return tuple(sorted(kinds_here, key=ranks.__getitem__))


def showcases(
    question_set: QuestionSet, kind: str, model: str, seed: int = 0, count: int = COUNT
) -> tuple[Showcase, ...]:
    """Return cases of one kind for the Home page: cases that fool models, one per picture, most fooled models first.

    Neighboring cases differ in type if possible. In kinds that only measure movement, the cases with
    the largest movement come first. If any cases have pictures, the others are not used, and cases
    whose pictures are on this machine are preferred.

    Args:
        model: The selected model, whose answer is shown on each card.
    """
    models = headline_models(question_set)
    cases = question_set.cases
    numbers = cases.numbers(_WITH_PICTURES, [kind])
    if not len(numbers):
        numbers = cases.numbers("kind = ?", [kind])
    margins = views_rows.margins(question_set, models, numbers)
    is_movement = question_set.presentation.kind(kind).is_movement
    n_fooled = np.count_nonzero(margins <= 0, axis=0)
    is_tied = (margins == 0) & (not is_movement)
    is_unscored = np.array([not question_set.run(name).is_scored for name in models], dtype=bool)
    n_tied, n_changes = (np.count_nonzero(each, axis=0) for each in (is_tied, is_tied[is_unscored]))
    (own_margins,) = views_rows.margins(question_set, [model], numbers)
    if is_movement:
        moved = np.nan_to_num(-own_margins)
        strength, is_shown = moved, moved > 0
    else:
        is_suspect = views_suspects.are_suspect(question_set, kind, numbers)
        strength = failure_strengths(question_set, models, margins, model, is_suspect)
        is_shown = strength > 0 if strength.any() else n_fooled > 0
        is_shown &= ~is_suspect if (is_shown & ~is_suspect).any() else True
    is_pictured = views_rows.are_pictured(question_set, kind, numbers)
    if is_pictured is not None and (is_shown & is_pictured).any():
        is_shown = is_shown & is_pictured
    if not is_movement:
        strength = prefer_clear(question_set, kind, numbers, strength * is_shown)
        is_doubtful = views_suspects.are_rejected_by_best(question_set, kind, numbers, model)
        strength -= _CLEAR * (is_doubtful & (strength >= _CLEAR))
    positions = _one_a_picture(question_set, numbers, strength, is_shown, seed)[:count]
    cards = views_wall.cards(question_set, Filter(model, kind), numbers[positions].tolist())
    counts = n_fooled, np.count_nonzero(~np.isnan(margins), axis=0), n_tied, n_changes
    cases = [
        Showcase(card, *(int(count[position]) for count in counts))
        for card, position in zip(cards, positions, strict=True)
    ]
    return _varied(cases, (n_fooled if is_movement else strength)[positions].tolist())


def failure_strengths(
    question_set: QuestionSet,
    models: Sequence[str],
    margins: np.ndarray,
    model: str,
    is_suspect: np.ndarray,
) -> np.ndarray:
    """Rank cases for Home and the slides by the number of models that they fool (`rows.are_fooled`).

    In published questions, whose labels may be wrong, a failure of the selected model counts as one and a half more,
    because a strong model rarely fails together with several weak ones.

    Args:
        margins: Margins of `models`, shape (n_models, n_cases).
        model: The selected model; it counts only once if it is not one of `models`.
        is_suspect: bool of shape (n_cases,), as `suspects.are_suspect` returns it.

    Returns:
        int of shape (n_cases,): 0 if the case fools no model.
    """
    is_fooled = views_rows.are_fooled(question_set, models, margins)
    is_leading = np.array([name == model for name in models]) & is_suspect.any()
    return (2 + 3 * is_leading) @ is_fooled


def prefer_clear(
    question_set: QuestionSet, kind: str, numbers: np.ndarray, strength: np.ndarray
) -> np.ndarray:
    """Rank cases of published questions that people understand at a glance (`is_clear`) and that are no reworded
    swaps (`is_reworded`) before all others, and short captions first among equally strong cases.

    Args:
        strength: As `failure_strengths` returns it, shape (n_cases,); 0 stays 0.
    """
    if not views_suspects.can_have_suspects(question_set):
        return strength
    fooling = np.flatnonzero(strength)
    rows = records(CaseRow, views_rows.questions(question_set, numbers[fooling].tolist()))
    texts_of = stored_body(question_set.probe, kind).texts
    ranks = 100 * strength
    for number, row in zip(fooling, rows, strict=True):
        true_text, wrong_text = texts_of(row, "")
        ranks[number] -= min(len(true_text.split()), 99)
        captions = row.subtype, true_text, wrong_text
        ranks[number] += _CLEAR * (is_clear(*captions) and not is_reworded(*captions))
    return ranks


def is_clear(subtype: str, true_text: str, wrong_text: str) -> bool:
    """Return whether people see at a glance which of two captions is true.

    Of those that people can decide (`is_decidable`), long captions and those that are not written as a sentence are
    not clear.

    >>> is_clear("replace_obj", "A cat in a tree.", "A dog in a tree.")
    True
    >>> is_clear("replace_obj", "A room with no cat.", "A room with no dog.")
    False
    """
    words = true_text.split()
    is_sentence = true_text[:1].isupper() and not true_text.isupper() and true_text.endswith(".")
    is_odd = _ODD & set(f"{true_text} {wrong_text}".lower().split())
    is_short = len(words) <= _LONGEST_CLEAR
    return is_sentence and is_short and not is_odd and is_decidable(subtype, true_text, wrong_text)


def is_decidable(subtype: str, true_text: str, wrong_text: str) -> bool:
    """Return whether a picture can show which of two captions is true.

    It cannot show that something is absent, such as what a wrong caption adds. Captions that give a person's color
    are no question for an audience.

    >>> is_decidable("swap_att", "white mug, large knife", "large mug, white knife")
    True
    >>> is_decidable("add_obj", "A cat in a tree.", "A cat and a mouse in a tree.")
    False
    >>> is_decidable("swap_att", "a black woman, yellow bananas", "a yellow woman, black bananas")
    False
    """
    source, target = changed_words(true_text, wrong_text)
    both = f"{true_text} {wrong_text}"
    is_excluded = _ABSENT & set(both.lower().split()) or _PERSON_COLOR.search(both)
    return bool(source and target) and not is_excluded and not subtype.startswith("add_")


def is_reworded(subtype: str, true_text: str, wrong_text: str) -> bool:
    """Return whether a swap also brings in more than two other words, so that both captions may be true.

    >>> is_reworded("swap_obj", "A plate on a table full of bread.", "A table with bread on it next to a plate.")
    True
    >>> is_reworded("swap_obj", "One apple and two oranges.", "Two apples and one orange.")
    False
    """
    true, wrong = (
        {word.rstrip("s") for word in re.findall(r"[\w'-]+", text.lower())}
        for text in (true_text, wrong_text)
    )
    return subtype.startswith("swap_") and len(wrong - true) > 2


def _one_a_picture(
    question_set: QuestionSet,
    numbers: np.ndarray,
    strength: np.ndarray,
    is_shown: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Return the position of the strongest case for each picture, strongest first. Ties are in random order."""
    candidates = np.flatnonzero(is_shown)
    if not len(candidates):
        return candidates
    codes = question_set.cases.picture_codes[numbers[candidates]]
    lot = np.random.default_rng([seed, len(numbers)]).random(len(candidates))
    keys = lot - strength[candidates]  # random numbers below 1 do not mix integer strengths
    heads, _, _ = views_wall.first_of_each(codes, keys)
    return candidates[heads[np.argsort(keys[heads], kind="stable")]]


def _varied(showcases: Sequence[Showcase], strengths: Sequence[int]) -> tuple[Showcase, ...]:
    """Reorder equally strong cases so that neighbors differ in type if possible."""
    waiting, ordered = list(zip(showcases, strengths, strict=True)), []
    while waiting:
        alike = [each for each in waiting if each[1] == waiting[0][1]]
        subtype = ordered[-1].card.subtype if ordered else ""
        following = next((each for each in alike if each[0].card.subtype != subtype), alike[0])
        waiting.remove(following)
        ordered.append(following[0])
    return tuple(ordered)


def lie_counts(question_set: QuestionSet, kind: str) -> tuple[LieCount, ...]:
    """Count how often each type of wrong caption fools each model in cases of one kind.

    The rows are in no particular order.
    """
    is_movement = question_set.presentation.kind(kind).is_movement
    runs = {run.key: run for run in question_set.runs}
    # isfinite, not isnan: DuckDB 2.0.0 evaluates isnan() on a Parquet column to false if the
    # column's statistics have bounds, because the bounds leave NaN out.
    table = question_set.store.fetch_rows(
        "SELECT run, subtype, count(*), count(*) FILTER (margin <= 0), "
        "count(*) FILTER (margin < 0), -avg(margin) "
        "FROM read_parquet(?) WHERE kind = ? AND isfinite(margin) GROUP BY ALL",
        [question_set.store.files(list(runs), "scores"), kind],
    )
    counts = []
    for key, subtype, n_cases, n_tied_or_below, n_below, moved in table:
        model, n_orders = runs[key].model, runs[key].n_orders
        # If the order decides, one of two answers is wrong; below 0, both are.
        n_believed = 0 if is_movement else n_tied_or_below + n_below * (n_orders - 1)
        moved = moved if is_movement else math.nan
        counts.append(LieCount(model, subtype, n_cases * n_orders, n_believed, moved, n_orders))
    return tuple(counts)


def has_failures(question_set: QuestionSet) -> bool:
    """Return whether any case of the kind that Home shows first fools a model or, if none can, moves a score."""
    kind = kinds(question_set)[0]
    numbers = question_set.cases.numbers("kind = ?", [kind])
    margins = views_rows.margins(question_set, headline_models(question_set), numbers)
    is_movement = question_set.presentation.kind(kind).is_movement
    is_failure = margins < 0 if is_movement else margins <= 0
    return bool(np.any(is_failure & np.isfinite(margins)))


def n_fooling_pictures(question_set: QuestionSet, kind: str, model: str) -> int:
    """Count the pictures with at least one wrong caption of the given kind that fools the model."""
    cases = question_set.cases
    numbers = cases.numbers("kind = ?", [kind])
    (margins,) = views_rows.margins(question_set, [model], numbers)
    return len(np.unique(cases.picture_codes[numbers[margins <= 0]]))
