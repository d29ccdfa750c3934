"""The ranking of models by wrong captions of one kind: every pair of the models, corrected together.

Shares, differences and p-values are those of `views.believed`; only Holm's correction is over all
pairs. Controls, and models that failed a check of being better than chance, are in no pair.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.metrics import estimate, estimate_cache
from vlprobe.models.doctor import examine
from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views.believed import (
    Cells,
    Contestant,
    RowVerdict,
    contestants_of,
    row_verdict,
    sides_of,
)
from vlprobe.views.paired_outcomes import paired_differences
from vlprobe.views.runs import QuestionSet
from vlprobe.views.unit_counts import Counts, unit_counts

MIRRORED: dict[RowVerdict, RowVerdict] = {"fewer": "more", "more": "fewer"}


@dataclass(frozen=True, slots=True)
class PairedModels:
    """Two models on the cases that both answered; unknown numbers are NaN."""

    base: str
    model: str
    difference: float  # the model's share, or mean movement, minus the baseline's
    low: float  # 95 %, resampled by picture
    high: float
    p: float
    p_holm: float  # over all pairs
    verdict: RowVerdict  # of the model, beside the baseline


@dataclass(frozen=True, slots=True)
class SubtypeShare:
    """One type of edit, over all models that passed their checks; unknown numbers are NaN."""

    subtype: str
    n_answers: int
    n_believed: int
    share: float
    low: float
    high: float


def _fewest_first(contestant: Contestant) -> tuple[bool, float, str]:
    return math.isnan(contestant.share), contestant.share, contestant.model


@dataclass(frozen=True, slots=True)
class Standings:
    """All models on the cases of one kind."""

    kind: str
    unit: str  # of shares and differences: "rate", "cosine" or "spread"
    is_movement: bool
    contestants: tuple[Contestant, ...]  # in the order of the pages: by name, controls last
    pairs: tuple[PairedModels, ...]  # of the contestants that passed their checks
    subtypes: tuple[SubtypeShare, ...]  # that have a name, those with the most answers first
    n_cases: int
    n_units: int  # of resampling: mostly pictures

    @property
    def fit(self) -> tuple[Contestant, ...]:
        """Those that may be compared, those with the fewest wrong captions preferred first."""
        fit = [contestant for contestant in self.contestants if contestant.is_fit]
        return tuple(sorted(fit, key=_fewest_first))

    def verdict(self, model: str, base: str) -> RowVerdict:
        """Return the verdict on a model against another; "unknown" for a pair that was not compared."""
        for pair in self.pairs:
            if (pair.model, pair.base) == (model, base):
                return pair.verdict
            if (pair.base, pair.model) == (model, base):
                return MIRRORED.get(pair.verdict, pair.verdict)
        return "unknown"


def standings(store: Store, question_set: QuestionSet, kind: str) -> Standings:
    """Every model's share of lies believed, and every pair of those that passed their checks.

    Args:
        store: Where results are.
        question_set: The models and their runs.
        kind: Kind of the cases.
    """
    runs = [question_set.run(model) for model in question_set.ordered_models]
    presented = registry.load_probe(question_set.probe).presentation.kind(kind)
    at_chance = examine.models_at_chance(store)
    is_movement = presented.is_movement
    unit = "cosine" if is_movement and not presented.is_share else "rate"
    counts = unit_counts(store, question_set.key, runs, kind, with_movements=is_movement)
    cells = Cells(counts, runs, is_movement, unit)
    contestants = contestants_of(cells, 1 - presented.guess_held, at_chance)
    fit = [run for run, contestant in zip(runs, contestants, strict=True) if contestant.is_fit]
    pairs: list[tuple[str, str]] = []
    sides: list[tuple[Measure, Measure]] = []
    for start in range(len(fit) - 1):
        selected = fit[start:]
        paired_cells = cells
        if selected != runs:
            paired_counts = unit_counts(
                store, question_set.key, selected, kind, with_movements=is_movement
            )
            paired_cells = Cells(paired_counts, selected, is_movement, unit)
        for index, run in enumerate(selected[1:], start=1):
            pairs.append((selected[0].model, run.model))
            sides.append(sides_of(paired_cells, "", index))
    differences = paired_differences(sides, cells.n_units, unit == "rate") if sides else []
    p_holm = estimate.holm([difference.p for difference in differences])
    paired = [
        PairedModels(
            base=base,
            model=model,
            difference=difference.value,
            low=difference.low,
            high=difference.high,
            p=difference.p,
            p_holm=float(p),
            verdict=row_verdict(difference.value, float(p)),
        )
        for (base, model), difference, p in zip(pairs, differences, p_holm, strict=True)
    ]
    fit_indices = [index for index, run in enumerate(runs) if run in fit]
    return Standings(
        kind=kind,
        unit=unit,
        is_movement=is_movement,
        contestants=contestants,
        pairs=tuple(paired),
        subtypes=() if is_movement else _subtypes(counts, fit_indices),
        n_cases=cells.total("n_cases"),
        n_units=cells.n_units,
    )


def _subtypes(counts: Counts, run_indices: Sequence[int]) -> tuple[SubtypeShare, ...]:
    """Shares over the models of these runs together, resampled by unit."""
    if not run_indices:
        return ()
    unit_codes, units = pd.factorize(counts["unit"])
    answered, fooled = (
        np.asarray([counts[f"{name}_{index}"] for index in run_indices], np.float64).sum(axis=0)
        for name in ("answered", "fooled")
    )
    names, measures = [], []
    subtype_codes, subtypes = pd.factorize(counts["subtype"])
    for code, name in enumerate(subtypes):
        is_member = subtype_codes == code
        n_answers = np.bincount(unit_codes[is_member], answered[is_member], len(units))
        n_believed = np.bincount(unit_codes[is_member], fooled[is_member], len(units))
        asked_units = np.flatnonzero(n_answers)
        if name and len(asked_units):
            names.append((str(name), int(n_answers.sum()), int(n_believed.sum())))
            measures.append(
                Measure(
                    n_believed[asked_units] / n_answers[asked_units],
                    n_answers[asked_units],
                    asked_units,
                )
            )
    shares = estimate_cache.estimates(measures, len(units), True)
    rows = [
        SubtypeShare(name, n_answers, n_believed, share.value, share.low, share.high)
        for (name, n_answers, n_believed), share in zip(names, shares, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.n_answers, row.subtype)))
