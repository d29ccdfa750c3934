"""Failures that Home shows, and how often each model believes which lie.

A failure is worth showing where many models are fooled at once; one case per picture, drawn at random among those that
fool equally many. Of published questions, whose labels may be wrong, cases that strong models reject are left out, and
those that fool the model that is looked at come first.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe.storage.store import Store
from vlprobe.views import cases as views_cases
from vlprobe.views import suspects as views_suspects
from vlprobe.views import wall as views_wall
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import fit_models
from vlprobe.views.rows import CaseTable
from vlprobe.views.runs import QuestionSet
from vlprobe.views.wall import WallCard

COUNT = 60  # maximum number of failures
LEAST_ANSWERS = 30  # of a type of edit, before a number is shown for it
_WITH_PICTURES = "kind = ? AND len(images) > 0"


@dataclass(frozen=True, slots=True)
class Showcase:
    """A case, and how many models it fools; controls are not counted."""

    card: WallCard
    n_fooled: int  # ties included
    n_models: int  # that answered


@dataclass(frozen=True, slots=True)
class LieCount:
    """The result of one model on the wrong captions of one type; in kinds that only move, none can fool it."""

    model: str
    subtype: str
    n_lies: int  # answers, two per case if the model ran in both orders
    n_believed: int  # ties included
    moved: float  # mean movement, of kinds that only move; else NaN
    n_orders: int  # orders in which the model saw the captions

    @property
    def share(self) -> float:
        """The share of lies believed, or the mean movement."""
        return self.n_believed / self.n_lies if math.isnan(self.moved) else self.moved


def rated_models(question_set: QuestionSet) -> tuple[str, ...]:
    """The models that count: all but controls, unless there is nothing else."""
    return question_set.rated_models


def headline_models(store: Store, question_set: QuestionSet) -> tuple[str, ...]:
    """The rated models that failed no check of being better than chance on these pictures; without any, all of them."""
    rated, credible = rated_models(question_set), fit_models(store, question_set)
    return tuple(name for name in rated if name in credible) or rated


def kinds(store: Store, question_set: QuestionSet) -> tuple[str, ...]:
    """The kinds of the question set's cases as Home prefers them: those first that can fool a model
    and have pictures, else in the probe's order.
    """
    presentation = question_set.presentation
    path = store.files([question_set.key], "cases")
    with store.cursor() as cursor:
        kinds_here = cursor.execute("SELECT DISTINCT kind FROM read_parquet(?)", [path]).fetchall()
        with_pictures = {
            kind: cursor.execute(  # stops at the first, where all pictures would be read to count them
                "SELECT 1 FROM read_parquet(?) WHERE kind = ? AND len(images) > 0 LIMIT 1",
                [path, kind],
            ).fetchone()
            is not None
            for (kind,) in kinds_here
        }
    names = [name for name in presentation.kinds if name in with_pictures]
    return tuple(
        sorted(
            names, key=lambda name: (presentation.kind(name).is_movement, not with_pictures[name])
        )
    )


def showcases(
    store: Store,
    question_set: QuestionSet,
    kind: str,
    model: str,
    seed: int = 0,
    count: int = COUNT,
) -> tuple[Showcase, ...]:
    """Cases of a kind that fool models, one a picture, those first that fool most; neighbours differ
    in type where they can. Of kinds that only move, those that move most; of cases with pictures
    where there are any, and with pictures that are on this machine.

    Args:
        store: Where results are.
        question_set: The models and their runs.
        kind: Kind of the cases.
        model: The one that is looked at, whose answer a card has.
        seed: Seed of the draw.
        count: Maximum number of cases.
    """
    models = headline_models(store, question_set)
    cases = CaseTable(store, question_set.key)
    numbers = cases.numbers(_WITH_PICTURES, [kind])
    if not len(numbers):
        numbers = cases.numbers("kind = ?", [kind])
    margins = views_cases.margins(store, question_set, models, numbers)
    (own_margins,) = views_cases.margins(store, question_set, [model], numbers)
    if question_set.presentation.kind(kind).is_movement:
        moved = np.nan_to_num(-own_margins)
        strength, is_shown = moved, moved > 0
    else:
        strength = np.count_nonzero(margins <= 0, axis=0)
        is_shown = strength > 0
        is_suspect = views_suspects.are_suspect(store, question_set, kind, numbers)
        strength = strength + len(models) * views_suspects.clear_failures(is_suspect, own_margins)
        is_shown &= ~is_suspect if (is_shown & ~is_suspect).any() else True
    is_pictured = views_cases.are_pictured(store, question_set, kind, numbers)
    if is_pictured is not None and (is_shown & is_pictured).any():
        is_shown = is_shown & is_pictured
    positions = _one_a_picture(store, question_set, numbers, strength, is_shown, seed)[:count]
    cards = views_wall.cards(store, question_set, Filter(model, kind), numbers[positions].tolist())
    answered = np.count_nonzero(~np.isnan(margins[:, positions]), axis=0)
    return _varied(
        [
            Showcase(card, int(np.count_nonzero(margins[:, position] <= 0)), int(n_models))
            for card, position, n_models in zip(cards, positions, answered, strict=True)
        ]
    )


def _one_a_picture(
    store: Store,
    question_set: QuestionSet,
    numbers: np.ndarray,
    strength: np.ndarray,
    is_shown: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Positions of the cases that are shown, the strongest of each picture, strongest first; at random among those that
    are equally strong.
    """
    candidates = np.flatnonzero(is_shown)
    if not len(candidates):
        return candidates
    codes = CaseTable(store, question_set.key).picture_codes[numbers[candidates]]
    lot = np.random.default_rng([seed, len(numbers)]).random(len(candidates))
    keys = lot - strength[candidates]  # whole strengths stay apart
    heads, _, _ = views_wall.first_of_each(codes, keys)
    return candidates[heads[np.argsort(keys[heads], kind="stable")]]


def _varied(showcases: Sequence[Showcase]) -> tuple[Showcase, ...]:
    """The same cases; of those that fool as many models, each of another type than the one before it,
    where there is one.
    """
    waiting, ordered = list(showcases), []
    while waiting:
        alike = next(list(group) for _, group in itertools.groupby(waiting, _n_fooled))
        subtype = ordered[-1].card.subtype if ordered else ""
        following = next((case for case in alike if case.card.subtype != subtype), alike[0])
        waiting.remove(following)
        ordered.append(following)
    return tuple(ordered)


def _n_fooled(showcase: Showcase) -> int:
    return showcase.n_fooled


def lie_counts(store: Store, question_set: QuestionSet, kind: str) -> tuple[LieCount, ...]:
    """Compute how often every model believes the lies of each type of a kind; types in no order."""
    is_movement = question_set.presentation.kind(kind).is_movement
    runs = {run.key: run for run in question_set.runs}
    # isfinite, not isnan: DuckDB 2.0.0 takes isnan() of a Parquet column for false wherever the
    # column's statistics have bounds, because these leave NaN out.
    with store.cursor() as cursor:
        table = cursor.execute(
            "SELECT run, subtype, count(*), count(*) FILTER (margin <= 0), "
            "count(*) FILTER (margin < 0), -avg(margin) "
            "FROM read_parquet(?) WHERE kind = ? AND isfinite(margin) GROUP BY ALL",
            [store.files(list(runs), "scores"), kind],
        ).fetchall()
    return tuple(
        LieCount(
            runs[key].model,
            subtype,
            n_cases * runs[key].n_orders,
            # of two answers to a case one is wrong where the order decides, and both below 0
            0 if is_movement else n_believed + n_below * (runs[key].n_orders - 1),
            moved if is_movement else math.nan,
            runs[key].n_orders,
        )
        for key, subtype, n_cases, n_believed, n_below, moved in table
    )


def furthest_models(
    store: Store, question_set: QuestionSet, kind: str, model: str
) -> tuple[str, ...]:
    """The other models, those first that differ most from a model: by the share of lies of each type that they
    believe, or their mean movement, weighted by the model's answers. Models that are not credible come last.
    """
    counts = lie_counts(store, question_set, kind)
    shares = {(count.model, count.subtype): count.share for count in counts}
    answers = {count.subtype: count.n_lies for count in counts if count.model == model}
    credible = fit_models(store, question_set)

    def distance(other: str) -> float:
        return sum(
            n_lies * abs(shares[other, subtype] - shares[model, subtype])
            for subtype, n_lies in answers.items()
            if (other, subtype) in shares
        )

    others = [name for name in question_set.ordered_models if name != model]
    return tuple(sorted(others, key=lambda name: (name not in credible, -distance(name))))


def n_fooling_pictures(store: Store, question_set: QuestionSet, kind: str, model: str) -> int:
    """Count how many pictures have a lie of this kind that the model believes."""
    cases = CaseTable(store, question_set.key)
    numbers = cases.numbers("kind = ?", [kind])
    (margins,) = views_cases.margins(store, question_set, [model], numbers)
    return len(np.unique(cases.picture_codes[numbers[margins <= 0]]))
