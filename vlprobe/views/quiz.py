"""Quiz questions (a picture with a true and a wrong caption), and the results of people and models.

People answer the same question as the models: which of the picture's first caption and the wrong
caption is true? Kinds in which a model ranks a whole gallery cannot be asked this way and are not
in the quiz.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vlprobe import registry
from vlprobe.metrics import estimate
from vlprobe.metrics.crossed import CrossedMean, crossed_means
from vlprobe.views import rows as views_rows
from vlprobe.views import showcase as views_showcase
from vlprobe.views import suspects as views_suspects
from vlprobe.views.bodies import body_of
from vlprobe.views.changes import word_runs
from vlprobe.views.paired_tests import VERDICTS, row_verdict
from vlprobe.views.records import CaseRow, records
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import AnswerTable
from vlprobe.views.wall import ModelVerdict

Draw = Literal["hard", "fair"]
# Parts of a caption, and whether each differs from the other caption
Segments = tuple[tuple[str, bool], ...]
N_QUESTIONS = 10
FOOLED_SHARE = 2 / 3  # of the models must be fooled by a hard question: four of six
CANDIDATES = 100  # number of cases that ten questions are picked from
RELATION = "replace_rel"  # type of SugarCrepe's questions with a replaced relation
# Rounds from this number on leave out reworded swaps; links to earlier ones open the questions that they had
FIRST_WITHOUT_REWORDED = 10**6
MIN_CASES = 30  # with fewer, no result for people is reported
_ASKED = "len(images) >= 1 AND roles[1] <> 'different' AND list_contains(roles, 'different')"


@dataclass(frozen=True, slots=True)
class QuizQuestion:
    """A quiz question: a picture with a true and a wrong caption."""

    case: int  # case number
    id: str
    item: str
    kind: str
    subtype: str
    picture: str  # name of the picture
    picture_code: int  # equal for cases about the same picture
    captions: tuple[str, str]  # in display order
    segments: tuple[Segments, Segments]  # parts of both captions
    true_index: int  # index of the true caption: 0 or 1
    verdicts: tuple[ModelVerdict, ...]  # verdicts of the round's models

    @property
    def n_fooled(self) -> int:
        """Count the models that score the wrong caption at least as high as the true one. Ties count as fooled."""
        return sum(verdict.verdict in ("fooled", "tied") for verdict in self.verdicts)

    @property
    def is_clear(self) -> bool:
        """Return whether people see at a glance which caption is true (`showcase.is_clear`)."""
        true, wrong = self.captions[self.true_index], self.captions[1 - self.true_index]
        return views_showcase.is_clear(self.subtype, true, wrong)

    @property
    def n_tied(self) -> int:
        """Count the fooled models that cannot decide between the captions."""
        return sum(verdict.verdict == "tied" for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class QuizRound:
    """The questions in one quiz round, how they were drawn, and the cases that they were drawn from."""

    set_key: str
    kind: str
    draw: Draw
    questions: tuple[QuizQuestion, ...]
    models: tuple[str, ...]  # all models that answered, except controls
    n_cases: int  # number of eligible cases whose picture is on this machine
    n_all: int  # number of eligible cases
    n_fooled: int  # minimum number of models that each question fooled; 0 for a fair draw
    shares: tuple[float, ...]  # share of all cases that each model gets right, see `rows.rights`
    n_pictures: int = 0  # number of pictures in the eligible cases that are on this machine
    # Whether questions are left out whose labels the best models reject, which favors these models
    is_selected: bool = False


@dataclass(frozen=True, slots=True)
class Ballot:
    """One person's last vote on a quiz question from a fair draw, cast before the answer is revealed."""

    person: int
    case: int
    picture_code: int
    is_right: bool


@dataclass(frozen=True, slots=True)
class ModelBesidePeople:
    """One model's result on the questions that people answered, weighted by the number of people's answers."""

    model: str
    rate: float  # share of right answers
    difference: CrossedMean  # people minus model
    p_holm: float  # adjusted over the models
    verdict: str  # on people: "better", "worse", "tied", or "" if unknown


@dataclass(frozen=True, slots=True)
class HumanBaseline:
    """The share of quiz questions that people answer correctly, compared with the share for each model."""

    n_people: int
    n_votes: int
    n_cases: int
    n_pictures: int
    right: CrossedMean
    models: tuple[ModelBesidePeople, ...]

    @property
    def says_something(self) -> bool:
        """Return whether people answered enough cases to report the result."""
        return self.n_cases >= MIN_CASES


def quiz_kinds(probe: str) -> tuple[str, ...]:
    """Return the kinds of cases in a probe that can be used in the quiz."""
    presentation = registry.load_probe(probe).presentation
    return tuple(
        name
        for name, kind in presentation.kinds.items()
        if body_of(kind).is_for_people and not kind.is_movement
    )


def quiz_round(
    question_set: QuestionSet,
    kind: str,
    draw: Draw = "hard",
    seed: int = 0,
    count: int = N_QUESTIONS,
    shown: tuple[int, ...] = (),
) -> QuizRound:
    """Draw a round of quiz questions from one kind of case. The same seed gives the same questions.

    A fair draw samples cases uniformly at random. A hard draw uses only cases that fooled two thirds
    of the models (`rows.are_fooled`), one per picture, with varied types. If there are too few, it
    adds cases that fooled fewer models, then cases about pictures that were shown before. In
    published questions, cases that people understand at a glance (`showcase.is_clear`) come first.
    Left out are suspect labels, cases that a picture cannot decide, and those in which both captions
    may be true: replaced relations that one of the two best models rejects (as with "pet a goat" and
    "watch a goat") and, from round FIRST_WITHOUT_REWORDED on, reworded swaps.

    Args:
        kind: One of `quiz_kinds`.
        seed: Seed for the choice of cases and for the order of the captions.
        shown: Numbers of the cases in earlier rounds.
    """
    models = tuple(name for name in question_set.ordered_models if not registry.is_control(name))
    numbers = question_set.cases.numbers(f"kind = ? AND {_ASKED}", [kind])
    n_all = len(numbers)
    is_pictured = views_rows.are_pictured(question_set, kind, numbers)
    numbers = numbers if is_pictured is None else numbers[is_pictured]  # people need pictures
    margins = quiz_margins(question_set, kind, models, numbers)
    generator = np.random.default_rng([seed, len(numbers)])
    fooled = np.count_nonzero(views_rows.are_fooled(question_set, models, margins), axis=0)
    pictures = question_set.cases.picture_codes[numbers]
    is_published = draw == "hard" and views_suspects.can_have_suspects(question_set)
    is_left_out = np.zeros(len(numbers), dtype=bool)
    if is_published:
        is_left_out = are_doubtful(question_set, kind, numbers)
        is_strict = seed >= FIRST_WITHOUT_REWORDED
        is_decidable = _are_decidable(question_set, kind, models, numbers, fooled, is_strict)
        fooled *= is_decidable & ~is_left_out
    if draw == "hard":
        order = _hard(numbers, pictures, fooled, len(models), shown, generator, count)
        positions = _readable(question_set, numbers, order, CANDIDATES)
    else:
        order = generator.permutation(len(numbers))
        positions = _readable(question_set, numbers, order, count)
    table = views_rows.questions(question_set, numbers[positions].tolist())
    case_rows = records(CaseRow, table) if len(positions) else []
    is_scored = {model: question_set.run(model).is_scored for model in models}
    questions = [
        _question(
            row, int(code), dict(zip(models, margins[:, position], strict=True)), is_scored, seed
        )
        for row, code, position in zip(case_rows, pictures[positions], positions, strict=True)
    ]
    threshold = 0
    if draw == "hard":
        shown_pictures = set(question_set.cases.picture_codes[list(shown)].tolist())
        ranks = [
            (
                one.picture_code in shown_pictures,
                one.case in shown,
                is_published and not one.is_clear,
            )
            for one in questions
        ]
        drawn: list[QuizQuestion] = []
        for rank in sorted(set(ranks)):
            of_rank = [each for each, other in zip(questions, ranks, strict=True) if other == rank]
            drawn += _varied(of_rank, count - len(drawn))
        questions = drawn
        of_questions = np.isin(numbers, [question.case for question in questions])
        threshold = int(fooled[of_questions].min(initial=len(models)))
    known = ~np.isnan(margins)
    shares = [
        float(views_rows.rights(row[is_known], question_set.run(model).n_orders).mean())
        if is_known.any()
        else math.nan
        for model, row, is_known in zip(models, margins, known, strict=True)
    ]
    counts = len(numbers), n_all, threshold
    settings = question_set.key, kind, draw, tuple(questions), models
    n_pictures = len(np.unique(pictures))
    return QuizRound(*settings, *counts, tuple(shares), n_pictures, bool(is_left_out.any()))


def quiz_margins(
    question_set: QuestionSet, kind: str, models: Sequence[str], numbers: np.ndarray
) -> np.ndarray:
    """Return the first caption's score minus the wrong caption's score for the case's first picture: float64 of shape
    (n_models, n_cases).

    If a case has several comparisons, its stored margin is the smallest one, so the margin for the quiz is computed
    from the scores.
    """
    presentation = question_set.presentation
    margins = np.full((len(models), len(numbers)), np.nan)
    for row, model in enumerate(models):
        run_key = question_set.run(model).key
        if not presentation.kind(kind).several_comparisons:
            margins[row] = AnswerTable(question_set.store, run_key).margins_of(numbers)
            continue
        columns = question_set.store.fetch_table(
            "SELECT one.\"case\" AS number, scores[1] - scores[list_position(roles, 'different')] AS margin "
            "FROM read_parquet(?) AS one POSITIONAL JOIN (SELECT roles FROM read_parquet(?)) AS two "
            "WHERE kind = ?",
            [
                question_set.store.files([run_key], "scores"),
                [question_set.cases.path],
                kind,
            ],
        )
        margins[row] = columns.set_index("number")["margin"].reindex(numbers).to_numpy()
    return margins


def are_doubtful(question_set: QuestionSet, kind: str, numbers: np.ndarray) -> np.ndarray:
    """Return whether the label of a case may be wrong: bool, shape (n_cases,). It is a suspect label, or a replaced
    relation that one of the two best models rejects, because both captions may be true.
    """
    is_suspect = views_suspects.are_suspect(question_set, kind, numbers)
    is_relation = np.isin(numbers, question_set.cases.numbers("subtype = ?", [RELATION]))
    is_rejected = views_suspects.are_rejected_by_best(question_set, kind, numbers)
    return is_suspect | (is_relation & is_rejected)


def _are_decidable(
    question_set: QuestionSet,
    kind: str,
    models: tuple[str, ...],
    numbers: np.ndarray,
    fooled: np.ndarray,
    is_strict: bool,
) -> np.ndarray:
    """Return whether a case fools a model and its picture decides it (`showcase.is_decidable`): bool, shape
    (n_cases,).

    Args:
        is_strict: Whether a reworded swap (`showcase.is_reworded`) does not count as decidable.
    """

    def find() -> np.ndarray:
        is_decidable = fooled > 0
        places = np.flatnonzero(is_decidable)
        rows = records(CaseRow, views_rows.questions(question_set, numbers[places].tolist()))
        for place, row in zip(places, rows, strict=True):
            wrong = row.texts[list(row.roles).index("different")]
            captions = row.subtype, row.texts[0], wrong
            is_decidable[place] = views_showcase.is_decidable(*captions) and not (
                is_strict and views_showcase.is_reworded(*captions)
            )
        return is_decidable

    # Cached because VALSE's texts take .4 s per round
    fact = "decidable", question_set.key, kind, models, is_strict
    return question_set.store.listing_fact(fact, find)


def _hard(
    numbers: np.ndarray,
    pictures: np.ndarray,
    fooled: np.ndarray,
    n_models: int,
    shown: tuple[int, ...],
    generator: np.random.Generator,
    count: int,
) -> np.ndarray:
    """Draw hard cases, one per picture, those that fool most models first. Return their positions in `numbers`.
    Pictures of the `shown` cases come last, and these cases after others about the same picture.

    Args:
        pictures: Code of each case's picture, shape (n_cases,).
        fooled: Number of models that each case fools, shape (n_cases,).
    """

    def one_per_picture(positions: np.ndarray) -> np.ndarray:
        _, first_of_picture = np.unique(pictures[positions], return_index=True)
        return positions[np.sort(first_of_picture)]

    order = generator.permutation(len(numbers))
    order = order[fooled[order] > 0]
    is_shown = np.isin(numbers, shown)
    is_fresh = ~np.isin(pictures, pictures[is_shown])
    fresh, again = order[is_fresh[order]], order[~is_fresh[order]]
    positions = order[:0]
    for n_fooled in range(math.ceil(FOOLED_SHARE * n_models), 0, -1):
        if len(positions) >= count:
            break
        is_added = (fooled[fresh] >= n_fooled) & ~np.isin(pictures[fresh], pictures[positions])
        positions = np.concatenate([positions, one_per_picture(fresh[is_added])])
    if len(positions) < count:
        again = again[np.argsort(is_shown[again], kind="stable")]
        positions = np.concatenate([positions, one_per_picture(again)])
    return positions


def _readable(
    question_set: QuestionSet, numbers: np.ndarray, positions: np.ndarray, count: int
) -> np.ndarray:
    """Return the first `count` positions of cases whose picture can be shown on this machine."""
    readable: list[int] = []
    for start in range(0, len(positions), CANDIDATES):
        block = positions[start : start + CANDIDATES]
        table = views_rows.questions(question_set, numbers[block].tolist())
        readable += [
            int(position)
            for position, images in zip(block, table["images"], strict=True)
            if views_rows.are_here(images[:1])
        ]
        if len(readable) >= count:
            break
    return np.array(readable[:count], dtype=np.int64)


def _question(
    row: CaseRow,
    picture_code: int,
    margins: dict[str, float],
    is_scored: dict[str, bool],
    seed: int,
) -> QuizQuestion:
    false_text = row.texts[list(row.roles).index("different")]
    true_segments, false_segments = (
        tuple(run for run in word_runs(row.texts[0], false_text, is_after) if run[0])
        for is_after in (False, True)
    )
    swapped = bool(np.random.default_rng([seed, row.case]).integers(2))
    captions, segments = (row.texts[0], false_text), (true_segments, false_segments)
    if swapped:
        captions, segments = (false_text, row.texts[0]), (false_segments, true_segments)
    return QuizQuestion(
        case=row.case,
        id=row.id,
        item=row.item,
        kind=row.kind,
        subtype=row.subtype,
        picture=row.images[0],
        picture_code=picture_code,
        captions=captions,
        segments=segments,
        true_index=int(swapped),
        verdicts=tuple(
            ModelVerdict(model, float(margin), is_scored[model])
            for model, margin in margins.items()
        ),
    )


def _varied(questions: Sequence[QuizQuestion], count: int) -> list[QuizQuestion]:
    """Select up to `count` questions, early ones first, so that types and words repeat as little as possible."""
    left, taken = list(questions), []
    while left and len(taken) < count:
        uses = [question.subtype for question in taken]
        words = {question.segments for question in taken}
        question = min(left, key=lambda each: (each.segments in words, uses.count(each.subtype)))
        left.remove(question)
        taken.append(question)
    return taken


def human_baseline(
    question_set: QuestionSet, kind: str, ballots: Sequence[Ballot], models: Sequence[str]
) -> HumanBaseline:
    """Compute how often people answer correctly, and how each model differs from people on the same
    questions.

    Args:
        ballots: Votes on questions from fair draws; only a person's first vote on a case counts.
    """
    first_votes: dict[tuple[int, int], Ballot] = {}
    for ballot in ballots:
        first_votes.setdefault((ballot.person, ballot.case), ballot)
    votes = list(first_votes.values())
    numbers = np.array(sorted({vote.case for vote in votes}), dtype=np.int64)
    people = np.unique([vote.person for vote in votes], return_inverse=True)[1]
    pictures = np.unique([vote.picture_code for vote in votes], return_inverse=True)[1]
    rights = np.array([vote.is_right for vote in votes], dtype=np.float64)
    places = np.searchsorted(numbers, [vote.case for vote in votes])
    margins = quiz_margins(question_set, kind, models, numbers)[:, places]
    (right,) = crossed_means([rights], people, pictures, lowest=0.0)
    beside: list[tuple[float, CrossedMean]] = []
    for model, margin in zip(models, margins, strict=True):
        known = ~np.isnan(margin)
        model_rights = views_rows.rights(margin[known], question_set.run(model).n_orders)
        difference = CrossedMean()
        if known.any():
            codes = [np.unique(each[known], return_inverse=True)[1] for each in (people, pictures)]
            (difference,) = crossed_means(
                [rights[known] - model_rights], codes[0], codes[1], lowest=-1.0
            )
        beside.append((float(model_rights.mean()) if known.any() else math.nan, difference))
    p_holm = estimate.holm([difference.p for _, difference in beside])
    words = {"tied": "tied", "unknown": "", **VERDICTS["up"]}
    return HumanBaseline(
        n_people=len(set(people.tolist())),
        n_votes=len(votes),
        n_cases=len(numbers),
        n_pictures=len(set(pictures.tolist())),
        right=right,
        models=tuple(
            ModelBesidePeople(
                model, rate, difference, float(p), words[row_verdict(difference.value, float(p))]
            )
            for model, (rate, difference), p in zip(models, beside, p_holm, strict=True)
        ),
    )
