"""The share of wrong captions that fool two to four models, per kind of edit, each against a baseline.

All of it rests on the stored margins, joined case by case as in `views.paired_outcomes`: a lie is
believed where it scores at least as high as the truth, so ties are among the believed ones, and
what a model could not answer is in no share. In kinds whose margin says how far something moved,
no model can be fooled: there the rows hold the mean movement instead.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.metrics import estimate, estimate_cache
from vlprobe.models.doctor import examine
from vlprobe.registry import is_control
from vlprobe.storage.store import Store
from vlprobe.types import Estimate, Measure
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.compare import SIGNIFICANCE, select_runs
from vlprobe.views.paired_outcomes import paired_differences
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.unit_counts import BUCKETS, Counts, unit_counts

MOST_SUBTYPES = 12  # rows beside that of all lies; of more, those with the most lies
# A model's share against that of guessing; "unknown" where guessing, or its interval, is unknown.
Standing = Literal["above", "guessing", "below", "unknown"]
RowVerdict = Literal["fewer", "more", "tied", "unknown"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """One model on all cases of a kind that it answered; unknown numbers are NaN."""

    model: str
    n_lies: int  # answers: two per case if the model ran in both orders
    n_believed: int
    n_tied: int  # among the believed ones
    share: float  # of lies believed, or the mean movement
    low: float
    high: float
    standing: Standing
    is_control: bool = False
    is_unfit: bool = False  # failed a check of being better than chance on these pictures

    @property
    def is_fit(self) -> bool:
        """Return whether the model may be called better at all: no control, and no check failed."""
        return not self.is_control and not self.is_unfit

    @property
    def may_win(self) -> bool:
        """Return whether a model that passed its checks is also above guessing, if the rate of guessing is known."""
        return self.is_fit and self.standing in ("above", "unknown")


@dataclass(frozen=True, slots=True)
class BelievedRow:
    """One kind of edit and model against the baseline, on the cases that both answered."""

    subtype: str  # "": all of them
    model: str
    n_lies: int
    n_left_out: int  # answered by only one of the two
    n_pictures: int
    base: float  # the baseline's share of lies believed, or its mean movement
    value: float
    difference: float  # value minus base
    low: float  # 95 %, resampled by picture
    high: float
    p: float
    p_holm: float  # over all rows of the comparison
    verdict: RowVerdict
    standing: Standing
    base_standing: Standing
    # Of movements, these four are 0.
    only_base: int  # lies that the baseline alone believes
    only_model: int
    both: int
    neither: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two to four models on the cases of one kind."""

    kind: str
    unit: str  # of shares and differences: "rate", or of movements "cosine" or "spread"
    is_movement: bool
    guess: float  # the share of lies that a guess believes; NaN where that is not defined
    baseline: Contestant
    rivals: tuple[Contestant, ...]
    # All lies first, then each subtype, the one the baseline believes most often first.
    rows: tuple[BelievedRow, ...]
    n_more_subtypes: int = 0  # that have no row

    @property
    def contestants(self) -> tuple[Contestant, ...]:
        """All models, the baseline first."""
        return (self.baseline, *self.rivals)

    @property
    def subtypes(self) -> tuple[str, ...]:
        """The subjects of the rows, in order, "" first."""
        return tuple(dict.fromkeys(row.subtype for row in self.rows))

    def row(self, model: str, subtype: str = "") -> BelievedRow:
        """The row of this model. Raises KeyError."""
        for row in self.rows:
            if row.model == model and row.subtype == subtype:
                return row
        raise KeyError(model, subtype)


def comparison(
    store: Store,
    question_set: QuestionSet,
    models: tuple[str, ...],
    kind: str,
    unit: str = "cosine",
) -> Comparison:
    """The share of lies that each model believes, and how far it is from that of the first one.

    Differences, intervals and p-values are those of `paired_outcomes.paired_differences`; `p_holm`
    is Holm's over all rows that are returned.

    Args:
        store: Where results are.
        question_set: The models and their runs.
        models: The baseline, then one or more others.
        kind: Kind of the cases.
        unit: Of movements that are cosines: "cosine", or "spread" for each model's own.

    Raises:
        NotFound: a model is not in the question set.
        InvalidInput: fewer than two models, or an unknown unit.
    """
    if unit not in ("cosine", "spread"):
        raise InvalidInput(f"Unit '{unit}' is not known. Expected cosine or spread.")
    runs = select_runs(question_set, models)
    presented = registry.load_probe(question_set.probe).presentation.kind(kind)
    is_movement = presented.is_movement
    counts = unit_counts(store, question_set.key, runs, kind, with_movements=is_movement)
    return from_counts(counts, runs, kind, presented, unit, examine.models_at_chance(store))


def from_counts(
    counts: Counts,
    runs: Sequence[RunRow],
    kind: str,
    presented: KindPresentation,
    unit: str,
    at_chance: Collection[tuple[str, str]],
) -> Comparison:
    """Compute the result of `comparison` from the counts of each subtype and unit of resampling.

    Args:
        counts: What `unit_counts` returns.
        runs: Runs of the models, the baseline first.
        kind: Kind of the cases.
        presented: How the kind is shown: whether it moves, what guessing holds.
        unit: Of movements that are cosines.
        at_chance: Digests of models and datasets on which they failed a check.
    """
    if presented.is_share or not presented.is_movement:
        unit = "rate"
    cells = Cells(counts, runs, presented.is_movement, unit)
    guess = 1 - presented.guess_held
    subtypes, n_more_subtypes = cells.subtypes()
    keys = [(subtype, side) for subtype in subtypes for side in range(1, len(runs))]
    sides = [sides_of(cells, subtype, side) for subtype, side in keys]
    # At once: resamples of many measures cost little more than those of one.
    measures = _contestant_measures(cells) + [measure for pair in sides for measure in pair]
    shares = estimate_cache.estimates(measures, cells.n_units, unit == "rate")
    contestants = _contestants(cells, shares[: len(runs)], guess, at_chance)
    return Comparison(
        kind,
        unit,
        presented.is_movement,
        guess,
        contestants[0],
        contestants[1:],
        tuple(_rows(cells, keys, sides, shares[len(runs) :], guess)),
        n_more_subtypes,
    )


class Cells:
    """The counts as arrays over units of resampling, per subtype.

    Args:
        counts: What `unit_counts` returns.
        runs: Runs of the models, the baseline first.
        is_movement: Whether values are movements, and not shares of lies believed.
        unit: "spread": movements in each model's own spread.
    """

    def __init__(
        self,
        counts: Counts,
        runs: Sequence[RunRow],
        is_movement: bool,
        unit: str,
    ) -> None:
        self.runs, self.is_movement, self.unit = runs, is_movement, unit
        self._unit_codes, units = pd.factorize(counts["unit"])
        self._subtype_codes, self._subtypes = pd.factorize(counts["subtype"])
        self._columns = {
            name: np.asarray(counts[name], np.float64)
            for name in counts
            if name not in ("subtype", "unit")
        }
        self._rows = {
            str(name): _as_slice(np.flatnonzero(self._subtype_codes == code))
            for code, name in enumerate(self._subtypes)
        }
        self._rows[""] = slice(None)
        self._unit_sums: dict[tuple[str, str], np.ndarray] = {}
        self.n_units = len(units)

    def subtypes(self) -> tuple[list[str], int]:
        """Subtypes that get a row, "" first; and how many do not."""
        listable = [code for code, name in enumerate(self._subtypes) if name]
        if len(self._subtypes) < 2:
            return [""], 0
        n_cases, answered, believed = (
            np.bincount(self._subtype_codes, self._columns[name])
            for name in ("n_cases", "answered_0", "moved_0" if self.is_movement else "fooled_0")
        )
        listed = np.array(sorted(listable, key=lambda code: -n_cases[code])[:MOST_SUBTYPES])
        shares = believed[listed] / np.where(answered[listed], answered[listed], np.nan)
        ordered = listed[np.argsort(-shares, kind="stable")]  # NaN sorts last
        return ["", *(str(self._subtypes[code]) for code in ordered)], len(listable) - len(listed)

    def sums(self, subtype: str, *columns: str) -> list[np.ndarray]:
        """Columns added up by unit, each of shape (n_units,)."""
        rows = self._rows[subtype]
        for name in columns:
            if (subtype, name) not in self._unit_sums:
                self._unit_sums[subtype, name] = np.bincount(
                    self._unit_codes[rows], self._columns[name][rows], self.n_units
                )
        return [self._unit_sums[subtype, name] for name in columns]

    def scale(self, side: int) -> float:
        """The divisor of a model's movements."""
        return (self.runs[side].spread or np.nan) if self.unit == "spread" else 1.0

    def total(self, name: str, subtype: str = "") -> int:
        """A column added up."""
        return int(self._columns[name][self._rows[subtype]].sum())

    def measure(self, subtype: str, count: str, answered: str, scale: float = 1.0) -> Measure:
        """The mean of a count over answers, a row a unit with answers."""
        counted, n_answers = self.sums(subtype, count, answered)
        units = np.flatnonzero((n_answers > 0) & ~np.isnan(scale))
        return Measure(counted[units] / n_answers[units] / scale, n_answers[units], units)


def _as_slice(rows: np.ndarray) -> slice | np.ndarray:
    """Rows in order; those without a gap as a slice, which costs no copy of what is taken."""
    is_whole = len(rows) and rows[-1] - rows[0] + 1 == len(rows)
    return slice(int(rows[0]), int(rows[-1]) + 1) if is_whole else rows


def contestants_of(
    cells: Cells, guess: float, at_chance: Collection[tuple[str, str]]
) -> tuple[Contestant, ...]:
    """Every model on all cases that it answered, in the order of the runs."""
    measures = _contestant_measures(cells)
    shares = estimate_cache.estimates(measures, cells.n_units, cells.unit == "rate")
    return _contestants(cells, shares, guess, at_chance)


def _contestant_measures(cells: Cells) -> list[Measure]:
    count = "moved" if cells.is_movement else "fooled"
    return [
        cells.measure("", f"{count}_{side}", f"answered_{side}", cells.scale(side))
        for side in range(len(cells.runs))
    ]


def _contestants(
    cells: Cells, shares: Sequence[Estimate], guess: float, at_chance: Collection[tuple[str, str]]
) -> tuple[Contestant, ...]:
    return tuple(
        _contestant(cells, side, share, guess, at_chance) for side, share in enumerate(shares)
    )


def _contestant(
    cells: Cells,
    side: int,
    share: Estimate,
    guess: float,
    at_chance: Collection[tuple[str, str]],
) -> Contestant:
    run = cells.runs[side]
    n_lies = cells.total(f"answered_{side}")
    return Contestant(
        model=run.model,
        n_lies=n_lies,
        n_believed=0 if cells.is_movement else cells.total(f"fooled_{side}"),
        n_tied=cells.total(f"tied_{side}"),
        share=share.value,
        low=share.low,
        high=share.high,
        standing=standing(share, guess),
        is_control=is_control(run.model),
        is_unfit=(run.model_digest, run.dataset_digest) in at_chance,
    )


def standing(share: Estimate, guess: float) -> Standing:
    """Compare the share of wrong captions preferred with that of guessing, by its whole interval."""
    if np.isnan([share.low, share.high, guess]).any():
        return "unknown"
    if share.high < guess:
        return "above"
    return "below" if share.low > guess else "guessing"


def _rows(
    cells: Cells,
    keys: Sequence[tuple[str, int]],
    sides: Sequence[tuple[Measure, Measure]],
    shares: Sequence[Estimate],
    guess: float,
) -> list[BelievedRow]:
    """A row a subtype and model; p is corrected over all of them.

    Args:
        cells: The counts.
        keys: Subtype and model of each row.
        sides: What `sides_of` returns for each.
        shares: The estimates of both sides of each, one after the other.
        guess: The share that a guess believes.
    """
    differences = paired_differences(sides, cells.n_units, cells.unit == "rate")
    p_holm = estimate.holm([difference.p for difference in differences])
    rows = []
    for index, ((subtype, side), difference) in enumerate(zip(keys, differences, strict=True)):
        share, base_share = shares[2 * index : 2 * index + 2]
        buckets = dict.fromkeys(BUCKETS, 0)
        if not cells.is_movement:
            buckets = {name: cells.total(f"{name}_{side}", subtype) for name in BUCKETS}
        n_lies = cells.total(f"both_{side}", subtype)
        answered = [
            cells.total(f"answered_{number}", subtype) // cells.runs[number].n_orders
            for number in (0, side)
        ]
        rows.append(
            BelievedRow(
                subtype=subtype,
                model=cells.runs[side].model,
                n_lies=n_lies,
                n_left_out=sum(answered) - 2 * n_lies,
                n_pictures=difference.n_items,
                base=base_share.value,
                value=share.value,
                difference=difference.value,
                low=difference.low,
                high=difference.high,
                p=difference.p,
                p_holm=float(p_holm[index]),
                verdict=row_verdict(difference.value, float(p_holm[index])),
                standing=standing(share, guess),
                base_standing=standing(base_share, guess),
                only_base=buckets["only_first"],
                only_model=buckets["only_second"],
                both=buckets["both_fooled"],
                neither=buckets["both_held"],
            )
        )
    return rows


def sides_of(cells: Cells, subtype: str, side: int) -> tuple[Measure, Measure]:
    """A model's values and the baseline's, where both answered."""
    names = (f"model_believes_{side}", f"base_believes_{side}")
    if cells.is_movement:
        names = (f"model_moved_{side}", f"base_moved_{side}")
    scales = cells.scale(side), cells.scale(0)
    model, base = (
        cells.measure(subtype, name, f"both_{side}", scale)
        for name, scale in zip(names, scales, strict=True)
    )
    return model, base


def row_verdict(difference: float, p: float) -> RowVerdict:
    """Return the verdict of an adjusted p on a model with this distance from the baseline's share."""
    if np.isnan(p) or np.isnan(difference):
        return "unknown"
    if p >= SIGNIFICANCE:
        return "tied"
    return "fewer" if difference < 0 else "more"
