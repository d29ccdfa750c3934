"""Paired tests on the items that two models both answered. They decide which model is better, by how much, and which
models are tied.

Every claim by vlprobe that one model is better than another comes from this file. Two kinds of numbers are
tested in the same way: the share of wrong captions that a model prefers (or its mean movement),
from the margins of each case, and metrics, from the sums that a run stores for each item. A wrong
caption is preferred if it scores at least as high as the true one, so ties count as preferred;
cases that a model could not answer are not counted. Intervals come from resampled items. p comes
from a randomization test by item (McNemar's exact test if each item has one answer) and is adjusted
for all tests in a table (Holm). Shares have three families of tests, whichever models are compared: every pair
of models on all cases of a kind, on all its types of edit, and in all named slices. Two models are tied if the
adjusted p is SIGNIFICANCE or higher.
Controls, and models that failed a chance check on the same pictures, are never better than another
model.
"""

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.errors import InvalidInput
from vlprobe.metrics import estimate, power
from vlprobe.metrics.tie_groups import tie_groups
from vlprobe.models.doctor import examine
from vlprobe.registry import is_control
from vlprobe.storage.bookmarks import SLICES
from vlprobe.storage.store import Store
from vlprobe.types import POOLED, Estimate, Measure, Metric
from vlprobe.types.presentation import KindPresentation
from vlprobe.views import estimates, named_slices
from vlprobe.views.papers import chances
from vlprobe.views.records import EstimateRow, PointRow, RunRow, records
from vlprobe.views.runs import QuestionSet
from vlprobe.views.runs import question_set as find_question_set
from vlprobe.views.tables import readable
from vlprobe.views.unit_counts import BUCKETS, Counts, unit_counts

WORDS = ["metric", "averaging"]
NUMBERS = ["total", "weight", "item_code"]
Averaged = tuple[str, str]  # name of a metric and of an averaging
SIGNIFICANCE = 0.05  # two models are tied unless p (Holm) is below
MOST_COMPARED = 8  # maximum number of models in a comparison on pages, in commands and in figures
NOT_OF_MODELS = ("words_t2t_accuracy",)  # properties of the texts, equal for every model
MOST_RANKED = 20  # models of which each pair is tested on each type: 2,500 tests in 3 s
MOST_SUBTYPES = 12  # most types of edit with their own tests; those with the most cases are chosen
# A model's share compared with guessing; "unknown" if guessing, or the interval, is unknown.
Standing = Literal["above", "guessing", "below", "unknown"]
RowVerdict = Literal["fewer", "more", "tied", "unknown"]
MIRRORED: Mapping[RowVerdict, RowVerdict] = {"fewer": "more", "more": "fewer"}
VERDICTS = {  # on a metric, by its better direction
    "up": {"fewer": "worse", "more": "better"},
    "down": {"fewer": "better", "more": "worse"},
    "none": {"fewer": "differs", "more": "differs"},
}
# Digests of models, and of the datasets on which they failed a check
AtChance = Collection[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ModelShare:
    """One model's result on all cases of a kind that the model answered. Unknown numbers are NaN."""

    model: str
    n_lies: int  # number of answers: two per case if the model ran in both orders
    n_believed: int
    n_tied: int  # among the wrong captions that fooled the model
    share: float  # share of wrong captions preferred, or the mean movement
    low: float
    high: float
    standing: Standing
    is_control: bool = False
    is_unfit: bool = False  # whether it failed a check for being better than chance
    n_items: int = 0
    n_fooled_cases: int = 0  # cases with at least one wrong answer
    n_cases: int = 0  # cases that the model answered

    @property
    def is_fit(self) -> bool:
        """Return whether the model can be called better: it is not a control and failed no chance check."""
        return not self.is_control and not self.is_unfit

    @property
    def may_win(self) -> bool:
        """Return whether the model may be called best: it is fit, and it is not known to be as bad as guessing."""
        return self.is_fit and self.standing in ("above", "unknown")


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A paired test of a model against a baseline on the cases of one subtype. Unknown numbers are NaN."""

    subtype: str  # "": all cases
    model: str
    n_lies: int
    n_left_out: int  # cases that only one of the two models answered
    n_pictures: int
    base: float  # the baseline's share of wrong captions preferred, or its mean movement
    value: float
    difference: float  # value minus base
    low: float  # 95 %, resampled by picture
    high: float
    p: float
    p_holm: float  # adjusted for all tests of the family
    verdict: RowVerdict
    standing: Standing
    base_standing: Standing
    # For movements, these four are 0.
    only_base: int  # wrong captions that only the baseline prefers
    only_model: int
    both: int
    neither: int
    baseline: str = ""
    detectable: float = math.nan  # detectable difference with 80 % power, after correction
    n_tests: int = 0  # tests for which p_holm is adjusted

    @property
    def halves(self) -> tuple[int, ...]:
        """How many cases fool the baseline, and the model, in only one of two orders, and count half in its share."""
        if not self.both + self.only_base + self.only_model:
            return 0, 0
        sides = (self.only_base, self.base), (self.only_model, self.value)
        return tuple(round(2 * (self.both + n - self.n_lies * share)) for n, share in sides)


@dataclass(frozen=True, slots=True)
class SubtypeShare:
    """The combined result of all models that passed their checks on one type of edit. Unknown numbers are NaN."""

    subtype: str
    n_answers: int  # one per model and case
    share: float  # a model that is fooled in one of two orders counts half
    low: float
    high: float


@dataclass(frozen=True)
class PairedTests:
    """Results on one kind of case: how often each model prefers the wrong caption (or how far its scores move), and
    the paired tests between models. Their p-values are corrected together.
    """

    kind: str
    unit: str  # unit of shares and differences: "rate", or for movements "cosine" or "spread"
    is_movement: bool
    guess: float  # share of wrong captions that guessing prefers; NaN if undefined
    contestants: tuple[ModelShare, ...]  # the baseline first, if there is one
    # With a baseline: all cases first, then the types, in the order of `rank_by_type`.
    rows: tuple[PairedTest, ...]
    n_cases: int
    n_more_subtypes: int = 0  # subtypes without a row
    shares: tuple[SubtypeShare, ...] = ()  # named types, those with the most answers first
    # `estimates.fewer_words` of the types that can be solved without the picture
    solved: Mapping[str, float] = field(default_factory=dict)

    @property
    def baseline(self) -> ModelShare:
        """The first model, with which all others are compared."""
        return self.contestants[0]

    @property
    def rivals(self) -> tuple[ModelShare, ...]:
        """All models except the baseline."""
        return self.contestants[1:]

    @property
    def subtypes(self) -> tuple[str, ...]:
        """Subtypes for which there are tests, in order. The first one is "", which stands for all cases."""
        return tuple(dict.fromkeys(row.subtype for row in self.rows))

    @property
    def fit(self) -> tuple[ModelShare, ...]:
        """Models that are not controls and passed their checks, sorted by share (lowest first, unknown last)."""
        return _ranked(self.contestants)

    @property
    def correction(self) -> str:
        """The method that adjusts the p-values of all pairs: "Holm", or "Bonferroni" for many models."""
        return "Holm" if len(self.fit) <= MOST_RANKED else "Bonferroni"

    def row(self, model: str, subtype: str = "") -> PairedTest:
        """Return the first row for a model and subtype. Raises KeyError if there is no such row."""
        for row in self.rows:
            if (row.model, row.subtype) == (model, subtype):
                return row
        raise KeyError(model, subtype)

    def verdict(self, model: str, baseline: str) -> RowVerdict:
        """Return the verdict on a model compared with a baseline; "unknown" if this pair was not tested."""
        return self._verdicts.get((model, baseline), "unknown")

    @functools.cached_property
    def _verdicts(self) -> dict[tuple[str, str], RowVerdict]:
        """Verdicts on all cases, keyed by (model, other model). They are cached because 200 models have 19,900 rows."""
        verdicts: dict[tuple[str, str], RowVerdict] = {}
        for row in self.rows:
            if not row.subtype:
                verdicts[row.model, row.baseline] = row.verdict
                verdicts[row.baseline, row.model] = MIRRORED.get(row.verdict, row.verdict)
        return verdicts

    @property
    def is_complete(self) -> bool:
        """Whether every pair of models in `fit` was tested on all cases."""
        pairs = itertools.combinations([each.model for each in self.fit], 2)
        return all(pair in self._verdicts for pair in pairs)

    @property
    def tie_groups(self) -> list[tuple[str, ...]]:
        """Groups of models that are all tied with each other, lowest share first (see `metrics.tie_groups`). Only
        models in `fit` are grouped. Two models that could not be tested against each other are never in the same group.
        """
        models = [each.model for each in self.fit if not math.isnan(each.share)]
        tied = {frozenset(pair) for pair, word in self._verdicts.items() if word == "tied"}
        return tie_groups(models, tied)

    def _among_all(self, models: Iterable[str], verdict: RowVerdict) -> str:
        """Return the first given model that has the verdict against every other model in `fit`, or ""."""
        fit = [each.model for each in self.fit]
        for model in models if len(fit) > 1 else ():
            if all(self.verdict(model, rival) == verdict for rival in fit if rival != model):
                return model
        return ""

    @property
    def best(self) -> str:
        """Name of the model in `fit` whose share is significantly lower than that of every other, or ""."""
        return self._among_all((each.model for each in self.fit if each.may_win), "fewer")

    @property
    def worst(self) -> str:
        """Name of the model in `fit` whose share is significantly higher than that of every other, or ""."""
        return self._among_all((each.model for each in self.fit), "more")

    @property
    def unbeaten(self) -> list[str]:
        """Names of the models that may win and that no other model in `fit` beats significantly."""
        return [
            each.model
            for each in self.fit
            if each.may_win
            and not any(self.verdict(each.model, rival.model) == "more" for rival in self.fit)
        ]

    def table(self) -> pd.DataFrame:
        """Return the test results as a table, with the numbers of cases as `n_cases` and `PairedTest.halves`."""
        rows = pd.DataFrame(map(asdict, self.rows)).rename(columns={"n_lies": "n_cases"})
        rows[["base_halves", "model_halves"]] = [row.halves for row in self.rows]
        return rows


def _ranked(shares: Iterable[ModelShare]) -> tuple[ModelShare, ...]:
    fit = (each for each in shares if each.is_fit)
    return tuple(sorted(fit, key=lambda each: (math.isnan(each.share), each.share, each.model)))


def select_runs(question_set: QuestionSet, models: tuple[str, ...]) -> list[RunRow]:
    """Return the given models' runs without repeats. Raises NotFound, or InvalidInput for fewer than two models."""
    runs = [question_set.run(name) for name in dict.fromkeys(models)]
    if len(runs) < 2:
        raise InvalidInput(f"A comparison needs two models. Given: {', '.join(models) or 'none'}.")
    return runs


def _check_unit(unit: str) -> None:
    if unit not in ("cosine", "spread"):
        raise InvalidInput(f"Unknown unit '{unit}'. Expected cosine or spread.")


def _is_fit(run: RunRow, at_chance: AtChance) -> bool:
    return not is_control(run.model) and (run.model_digest, run.dataset_digest) not in at_chance


def fit_models(question_set: QuestionSet) -> set[str]:
    """Return the models that are not controls and passed all chance checks on the question set's dataset."""
    at_chance = examine.models_at_chance(question_set.store)
    return {run.model for run in question_set.runs if _is_fit(run, at_chance)}


def row_verdict(difference: float, p: float) -> RowVerdict:
    """Return the verdict on a difference from the baseline, based on the adjusted p-value."""
    if np.isnan(p) or np.isnan(difference):
        return "unknown"
    if p >= SIGNIFICANCE:
        return "tied"
    return "fewer" if difference < 0 else "more"


def verdict(metric: Metric, difference: float, p: float) -> str:
    """Return the verdict on a model's difference from the baseline in a metric.

    Returns:
        "better", "worse", "differs" (if the metric has no better direction), "tied", or "" if unknown.
    """
    word = row_verdict(difference, p)
    return {"tied": "tied", "unknown": "", **VERDICTS[metric.direction]}[word]


def standing(share: Estimate, guess: float) -> Standing:
    """Return whether a model is better than guessing ("above"), worse or neither, judging by its share's interval."""
    if np.isnan([share.low, share.high, guess]).any():
        return "unknown"
    if share.high < guess:
        return "above"
    return "below" if share.low > guess else "guessing"


def compare_models(
    question_set: QuestionSet,
    models: tuple[str, ...],
    kind: str,
    unit: str = "cosine",
    named_slice: str = "",
    rankings: Mapping[str, PairedTests] | None = None,
    types: tuple[str, ...] = (),
) -> PairedTests:
    """Test the first model against each other model on the share of wrong captions that a model prefers: overall, by
    type, and in each named slice.

    Adjusted p-values and verdicts are those of `rank_by_type`, so they do not depend on the models chosen.
    Rows for slices have the subtype "slice:NAME".

    Args:
        models: The baseline, then one or more others.
        unit: Unit for movements: "cosine", or "spread" to divide each model's cosines by the model's spread.
        named_slice: Name of a slice whose cases are used, without rows for other slices; "" means all cases.
            p-values on types of edit in a slice are adjusted for the rows on types.
        rankings: Result of `rank_by_type` for all models, if known. Only its types are compared.
        types: Types of edit to which the rows are limited, "all cases" included; empty means all.

    Raises:
        NotFound: a model is not in the question set, or there is no such slice.
        InvalidInput: fewer than two models, an unknown unit, or a slice that does not apply or has no case of the kind.
    """
    _check_unit(unit)
    runs = select_runs(question_set, models)
    at_chance = examine.models_at_chance(question_set.store)
    numbers = None
    if named_slice:
        numbers = named_slices.members(question_set, named_slice)
        of_kind = question_set.cases.numbers("kind = ?", [kind])
        numbers = np.intersect1d(numbers, of_kind)
        if not len(numbers):
            raise InvalidInput(f"The slice '{named_slice}' has no cases of the kind '{kind}'.")
    whole = _all_models(question_set)
    # Adjusted for all types, so a choice of types leaves the p-values of a type as they are
    families = rankings or rank_by_type(whole, kind, unit)
    rankings = rankings or rank_by_type(whole, kind, unit, types)
    families = {**families, "": rankings[""]}
    cells = _cells(question_set, runs, kind, unit, numbers, types)
    tests = from_cells(cells, kind, at_chance, () if named_slice else rankings)
    rows = list(tests.rows)
    if named_slice:
        of_types = _corrected(tests.rows[len(runs) - 1 :], tests.is_movement)
        name = named_slices.PREFIX + named_slice
        of_slice = [replace(row, subtype=name) for row in tests.rows[: len(runs) - 1]]
        of_slice = [replace(row, subtype="") for row in _in_families(of_slice, rankings, whole)]
        return replace(tests, rows=(*of_slice, *of_types))
    of_slices = named_slices.of_kind(question_set, kind)
    for name in rankings:
        if name.startswith(named_slices.PREFIX):
            members = of_slices[name.removeprefix(named_slices.PREFIX)]
            cells = _cells(question_set, runs, kind, unit, members)
            of_slice = _test_rows([(cells, "", side) for side in range(1, len(runs))])
            rows += [replace(row, subtype=name) for row in of_slice]
    blind = estimates.fewer_words(question_set, kind, types)
    solved = {name: share for name, share in blind.items() if share < estimates.SOLVED}
    return replace(tests, rows=tuple(_in_families(rows, families, whole)), solved=solved)


def _all_models(question_set: QuestionSet) -> QuestionSet:
    """Return a question set with a run of each model, which may have been selected from it."""
    whole = find_question_set(question_set.store, question_set.key, question_set.runs[0].key)
    # Two runs of one model have labels of their own
    known = {run.key for run in question_set.runs}
    others = [
        run for run in whole.runs if run.model not in question_set.models and run.key not in known
    ]
    runs = (*question_set.runs, *others)
    is_whole = len(runs) == len(whole.runs) and all(run in whole.runs for run in runs)
    return whole if is_whole else replace(question_set, runs=runs)


def _in_families(
    rows: Sequence[PairedTest], rankings: Mapping[str, PairedTests], whole: QuestionSet
) -> list[PairedTest]:
    """Return tests with the adjusted p-values and verdicts that their pairs have in `rank_by_type`.

    Pairs that are not ranked, such as those with a control, are adjusted by Bonferroni's method for all pairs.
    """
    ranked = {
        (name, frozenset((row.baseline, row.model))): row
        for name, ranking in rankings.items()
        for row in ranking.rows
    }
    is_movement = rankings[""].is_movement
    results = []
    for row in rows:
        same = ranked.get((row.subtype, frozenset((row.baseline, row.model))))
        if same is not None:
            p, n_tests = same.p_holm, same.n_tests
        else:
            n_tests = _n_family(row.subtype, rankings, len(whole.runs))
            p = float(np.minimum(1.0, n_tests * row.p))  # NaN stays NaN
        results.append(_adjusted(row, p, n_tests, is_movement))
    return results


def _n_family(subtype: str, names: Iterable[str], n_models: int) -> int:
    """Count the tests in the family of a subtype: every pair of models on all cases, types or slices."""
    family = _family(subtype)
    return math.comb(n_models, 2) * sum(_family(name) == family for name in names)


def _family(subtype: str) -> str:
    if subtype.startswith(named_slices.PREFIX):
        return "slices"
    return "types" if subtype else "all"


def from_cells(
    cells: "PairedCells", kind: str, at_chance: AtChance, only: Collection[str] = ()
) -> PairedTests:
    """Compute the result of `compare_models`, except for named slices, from counts per subtype and resampling unit.

    Args:
        at_chance: Pairs of a model digest and the digest of a dataset on which the model failed a chance check.
        only: Subtypes to test, in order; empty means all.
    """
    every, n_more_subtypes = cells.subtypes()
    subtypes = [name for name in only or every if name in every]
    keys = [(cells, subtype, side) for subtype in subtypes for side in range(1, len(cells.runs))]
    tests = _tested(cells, kind, _test_rows(keys), at_chance)
    return replace(tests, n_more_subtypes=n_more_subtypes)


def model_shares(question_set: QuestionSet, kind: str) -> tuple[ModelShare, ...]:
    """Compute each model's share on all cases of a kind. Controls come last."""
    runs = [question_set.run(model) for model in question_set.ordered_models]
    return _shares(
        _cells(question_set, runs, kind), "", examine.models_at_chance(question_set.store)
    )


def rank_models(question_set: QuestionSet, kind: str) -> PairedTests:
    """Test every pair of models that passed their checks. The result lists all models by name, controls last."""
    return _rankings(question_set, kind)[""]


def rank_by_type(
    question_set: QuestionSet, kind: str, unit: str = "cosine", types: tuple[str, ...] = ()
) -> dict[str, PairedTests]:
    """Rank the models on all cases of a kind (""), as `rank_models` does, on each type of edit that `compare_models`
    tests, and in each named slice ("slice:NAME"), without `PairedTests.shares`. The types that fool the models most
    often come first. The p-values of all types are corrected together, and so are those of all slices.

    If `types` are given, "" ranks the models on the cases of these types, and other types are left out. The
    p-values of a type stay the same.

    If more than MOST_RANKED models passed their checks, only the best one is tested on types and in
    slices, against each of the others.
    """

    def rank() -> dict[str, PairedTests]:
        rankings = _rankings(question_set, kind, unit, by_type=True)
        for name, members in named_slices.of_kind(question_set, kind).items():
            of_slice = _rankings(question_set, kind, unit, numbers=members)
            rankings[named_slices.PREFIX + name] = of_slice[""]
        n_models = len(question_set.runs)
        for family in ("types", "slices"):
            names = [name for name in rankings if _family(name) == family]
            rows = [row for name in names for row in rankings[name].rows]
            is_large = sum(each.is_fit for each in rankings[""].contestants) > MOST_RANKED
            n_tests = _n_family(names[0], names, n_models) if names and is_large else 0
            corrected = iter(_corrected(rows, rankings[""].is_movement, n_tests))
            for name in names:
                own = tuple(itertools.islice(corrected, len(rankings[name].rows)))
                rankings[name] = replace(rankings[name], rows=own)
        return rankings

    # Another baseline of the scorecard then takes .3 s of CPU instead of 2.3 (VALSE, 11 models)
    store = question_set.store
    name = ("rankings", question_set.key, question_set.runs, kind, unit, MOST_RANKED)
    rankings = store.listing_fact((*name, SLICES.version(store)), rank)
    if not types:
        return rankings
    pooled = store.listing_fact(
        (*name, types), lambda: _rankings(question_set, kind, unit, types=types)[""]
    )
    shown = [each for each in rankings if each in types or _family(each) == "slices"]
    return {"": pooled, **{each: rankings[each] for each in shown}}


def _rankings(
    question_set: QuestionSet,
    kind: str,
    unit: str = "cosine",
    *,
    by_type: bool = False,
    numbers: np.ndarray | None = None,
    types: tuple[str, ...] = (),
) -> dict[str, PairedTests]:
    runs = [question_set.run(model) for model in question_set.ordered_models]
    at_chance = examine.models_at_chance(question_set.store)
    cells = _cells(question_set, runs, kind, unit, numbers, types)
    subtypes = cells.subtypes()[0] if by_type else [""]
    fit = [run for run in runs if _is_fit(run, at_chance)]
    is_small = len(fit) <= MOST_RANKED
    of_all_pairs = [name for name in subtypes if is_small or (not name and numbers is None)]
    # Only one model's counts are in memory at a time
    plans = [(fit[start:], of_all_pairs) for start in range(len(fit) - 1) if of_all_pairs]
    for name in subtypes:
        if name not in of_all_pairs:
            best_first = _ranked(_shares(cells, name, at_chance))
            plans.append(([question_set.run(each.model) for each in best_first], [name]))
    rows: dict[str, list[PairedTest]] = {name: [] for name in subtypes}
    for order, names in plans:
        chosen = numbers, types
        counted = cells if order == runs else _cells(question_set, order, kind, unit, *chosen)
        keys = [(counted, name, side) for name in names for side in range(1, len(order))]
        for row in _test_rows(keys):
            rows[row.subtype].append(replace(row, subtype=""))
    n_tests = 0 if is_small else math.comb(len(runs), 2)
    rankings = {
        name: _tested(cells, kind, rows[name], at_chance, name, n_tests) for name in subtypes
    }
    if not (by_type or numbers is not None or types or cells.is_movement):
        shares = cells.subtype_shares([runs.index(run) for run in fit])
        rankings[""] = replace(rankings[""], shares=shares)
    return rankings


class PairedCells:
    """Answer counts for each subtype, as arrays over resampling units.

    Args:
        presented: Presentation of the kind. It defines whether values are movements or shares of wrong captions
            preferred.
        unit: "spread" divides movements by each model's own spread.
        types: Subtypes whose cases count as all cases, the subtype ""; empty means all of them.
    """

    def __init__(
        self,
        counts: Counts,
        runs: Sequence[RunRow],
        presented: KindPresentation,
        unit: str,
        types: Sequence[str] = (),
    ) -> None:
        self.runs, self.is_movement = runs, presented.is_movement
        self.guess = 1 - presented.guess_held
        self.unit = "rate" if presented.is_share or not presented.is_movement else unit
        self._unit_codes, units = pd.factorize(counts["unit"])
        self._subtype_codes, self._subtypes = pd.factorize(counts["subtype"])
        self._columns = {
            name: np.asarray(counts[name], np.float64)
            for name in counts
            if name not in ("subtype", "unit")
        }
        self._rows = {
            str(name): np.flatnonzero(self._subtype_codes == code)
            for code, name in enumerate(self._subtypes)
        } | {"": slice(None)}
        if types:
            is_counted = np.isin(self._subtypes, types)[self._subtype_codes]
            self._rows[""] = np.flatnonzero(is_counted)
        self.n_units = len(units)

    def subtypes(self) -> tuple[list[str], int]:
        """Return the subtypes that get a row ("" comes first, then those that fool the models most often), and the
        number of subtypes that do not.
        """
        listable = [code for code, name in enumerate(self._subtypes) if name]
        if len(self._subtypes) < 2:
            return [""], 0
        count = "moved" if self.is_movement else "fooled"
        counts = [self._columns[f"{count}_{side}"] for side, _ in enumerate(self.runs)]
        answers = [self._columns[f"answered_{side}"] for side, _ in enumerate(self.runs)]
        n_cases, believed, answered = (
            np.bincount(self._subtype_codes, weights)
            for weights in (self._columns["n_cases"], sum(counts), sum(answers))
        )
        listed = np.array(sorted(listable, key=lambda code: -n_cases[code])[:MOST_SUBTYPES])
        shares = believed[listed] / np.where(answered[listed], answered[listed], np.nan)
        ordered = listed[np.argsort(-shares, kind="stable")]  # NaN sorts last
        return ["", *(str(self._subtypes[code]) for code in ordered)], len(listable) - len(listed)

    def total(self, name: str, subtype: str = "") -> int:
        """Return the sum of a column over all resampling units."""
        return int(self._columns[name][self._rows[subtype]].sum())

    def n_cases(self, side: int, subtype: str) -> int:
        """Return the number of cases that a model answered, each counted once."""
        return self.total(f"answered_{side}", subtype) // self.runs[side].n_orders

    def by_unit(self, subtype: str, values: np.ndarray) -> np.ndarray:
        """Sum a column for each resampling unit, shape (n_units,)."""
        rows = self._rows[subtype]
        return np.bincount(self._unit_codes[rows], values[rows], self.n_units)

    def mean(self, side: int, subtype: str, count: str, answered: str) -> Measure:
        """Return a count divided by the model's number of answers, with one row for each resampling unit that has
        answers.
        """
        scale = (self.runs[side].spread or np.nan) if self.unit == "spread" else 1.0
        counted = self.by_unit(subtype, self._columns[count])
        n_answers = self.by_unit(subtype, self._columns[answered])
        units = np.flatnonzero((n_answers > 0) & ~np.isnan(scale))
        return Measure(counted[units] / n_answers[units] / scale, n_answers[units], units)

    def share(self, side: int, subtype: str = "") -> Measure:
        """Return a model's values on all cases of a subtype that it answered."""
        count = "moved" if self.is_movement else "fooled"
        return self.mean(side, subtype, f"{count}_{side}", f"answered_{side}")

    def pair(self, subtype: str, side: int) -> tuple[Measure, Measure]:
        """Return a model's values and the baseline's values on the cases that both answered."""
        count = "moved" if self.is_movement else "believes"
        model = self.mean(side, subtype, f"model_{count}_{side}", f"both_{side}")
        return model, self.mean(0, subtype, f"base_{count}_{side}", f"both_{side}")

    def subtype_shares(self, sides: Sequence[int]) -> tuple[SubtypeShare, ...]:
        """Compute the share for each subtype, pooled over all given models, with an interval from resampling units. A
        model that ran in both orders counts once per case, and a case that fools it in one order counts half.
        """
        if not sides:
            return ()
        answered, fooled = (
            np.sum(
                [self._columns[f"{name}_{side}"] / self.runs[side].n_orders for side in sides], 0
            )
            for name in ("answered", "fooled")
        )
        measures: dict[str, Measure] = {}
        for name in filter(None, map(str, self._subtypes)):
            n_answers, n_believed = self.by_unit(name, answered), self.by_unit(name, fooled)
            units = np.flatnonzero(n_answers)
            if len(units):
                value = n_believed[units] / n_answers[units]
                measures[name] = Measure(value, n_answers[units], units)
        shares = estimate.estimates(list(measures.values()), self.n_units, True)
        rows = []
        for name, share in zip(measures, shares, strict=True):
            n_answers = int(answered[self._rows[name]].sum())
            rows.append(SubtypeShare(name, n_answers, share.value, share.low, share.high))
        return tuple(sorted(rows, key=lambda row: (-row.n_answers, row.subtype)))


def _cells(
    question_set: QuestionSet,
    runs: Sequence[RunRow],
    kind: str,
    unit: str = "cosine",
    numbers: np.ndarray | None = None,
    types: Sequence[str] = (),
) -> PairedCells:
    """Count the answers of runs to all cases of a kind, or to the cases with the given numbers or of given types."""
    presented = question_set.presentation.kind(kind)
    moves = presented.is_movement
    counts = unit_counts(
        question_set.store, question_set.key, runs, kind, with_movements=moves, numbers=numbers
    )
    return PairedCells(counts, runs, presented, unit, types)


TestKey = tuple[PairedCells, str, int]  # counts, subtype, and the index of the model in the counts


def _tested(
    cells: PairedCells,
    kind: str,
    rows: Sequence[PairedTest],
    at_chance: AtChance,
    subtype: str = "",
    n_tests: int = 0,
) -> PairedTests:
    """Compute the shares of all models on the cases of a subtype, and correct the tests as `_corrected` does."""
    return PairedTests(
        kind,
        cells.unit,
        cells.is_movement,
        cells.guess,
        _shares(cells, subtype, at_chance),
        _corrected(rows, cells.is_movement, n_tests),
        cells.total("n_cases", subtype),
    )


def _corrected(
    rows: Sequence[PairedTest], is_movement: bool, n_tests: int = 0
) -> tuple[PairedTest, ...]:
    """Adjust the p-values of tests together (Holm), and add verdicts and detectable differences.

    Args:
        n_tests: Number of tests for which each p-value is adjusted by Bonferroni's method instead, which does not
            depend on the other tests; 0 for none.
    """
    p = [row.p for row in rows]
    p_holm = np.minimum(1.0, n_tests * np.asarray(p)) if n_tests else estimate.holm(p)
    n_tests = n_tests or int((~np.isnan(p_holm)).sum())
    return tuple(
        _adjusted(row, float(p), n_tests, is_movement) for row, p in zip(rows, p_holm, strict=True)
    )


def _adjusted(row: PairedTest, p_holm: float, n_tests: int, is_movement: bool) -> PairedTest:
    """Return a test with an adjusted p-value, the verdict and the detectable difference."""
    error = power.standard_error(row.low, row.high)
    return replace(
        row,
        p_holm=p_holm,
        n_tests=n_tests,
        verdict=row_verdict(row.difference, p_holm),
        detectable=power.detectable(
            error, row.n_pictures, n_tests, 0 if is_movement else row.n_lies
        ),
    )


def _shares(cells: PairedCells, subtype: str, at_chance: AtChance) -> tuple[ModelShare, ...]:
    """Compute each model's share on the cases of a subtype, in the order of the runs."""
    measures = [cells.share(side, subtype) for side in range(len(cells.runs))]
    shares = estimate.estimates(measures, cells.n_units, cells.unit == "rate")
    return tuple(
        ModelShare(
            model=run.model,
            n_lies=cells.total(f"answered_{side}", subtype),
            n_believed=0 if cells.is_movement else cells.total(f"fooled_{side}", subtype),
            n_tied=cells.total(f"tied_{side}", subtype),
            share=share.value,
            low=share.low,
            high=share.high,
            standing=standing(share, cells.guess),
            is_control=is_control(run.model),
            is_unfit=(run.model_digest, run.dataset_digest) in at_chance,
            n_items=share.n_items,
            n_fooled_cases=cells.total(f"fooled_cases_{side}", subtype),
            n_cases=cells.n_cases(side, subtype),
        )
        for side, (run, share) in enumerate(zip(cells.runs, shares, strict=True))
    )


def _test_rows(keys: Sequence[TestKey]) -> list[PairedTest]:
    """Run the given tests and return one row for each, before correction and without a verdict."""
    if not keys:
        return []
    n_units, is_rate = keys[0][0].n_units, keys[0][0].unit == "rate"
    pairs = [of_pair.pair(subtype, side) for of_pair, subtype, side in keys]
    # All at once, because resampling many measures costs little more than resampling one.
    shares = estimate.estimates([side for pair in pairs for side in pair], n_units, is_rate)
    differences = estimate.differences(pairs, n_units, [is_rate] * len(pairs))
    sides = iter(shares)
    rows = []
    for (cells, subtype, side), difference in zip(keys, differences, strict=True):
        share, base_share = next(sides), next(sides)
        both_fooled, only_first, only_second, both_held = (
            0 if cells.is_movement else cells.total(f"{name}_{side}", subtype) for name in BUCKETS
        )
        n_lies = cells.total(f"both_{side}", subtype)
        answered = [cells.n_cases(number, subtype) for number in (0, side)]
        rows.append(
            PairedTest(
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
                p_holm=math.nan,
                verdict="unknown",
                standing=standing(share, cells.guess),
                base_standing=standing(base_share, cells.guess),
                only_base=only_first,
                only_model=only_second,
                both=both_fooled,
                neither=both_held,
                baseline=cells.runs[0].model,
            )
        )
    return rows


# Metrics.


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """The difference between a model and the baseline in one metric: a row of the table from `compare_metrics`."""

    metric: str
    averaging: str
    baseline: str
    model: str
    base: float
    value: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    verdict: str
    n_items: int
    left_out: int
    base_alone: float
    base_items: int
    detectable: float = math.nan  # see `metrics.power`
    n_answers: float = 0  # of the model, if each is right or wrong


COMPARED = [column.name for column in fields(DifferenceRow)]


def compare_metrics(
    question_set: QuestionSet,
    models: tuple[str, ...],
    averaging: str = POOLED,
    unit: str = "cosine",
    only: tuple[str, ...] = (),
    named_slice: str = "",
) -> pd.DataFrame:
    """Test every metric for each model against the baseline. Only items for which both models answered the same cases
    are used.

    An item is left out if the two models answered different numbers
    of its cases, if only one of them could answer it, or if it counts for only one of them (a drop
    rate counts the items that a model finds in the clean gallery). Otherwise, a model could look
    better by not answering the harder cases. If both answered the same number of an item's cases,
    they are assumed to have answered the same cases.

    Args:
        models: The baseline, then the models to compare with it.
        averaging: One of AVERAGINGS; a metric that has only one kind of average is returned with
            that one.
        unit: "cosine", or "spread" to divide each model's cosines by the model's spread, which is treated as exact; if
            a spread is 0, values are unknown.
        only: Names of the metrics to compare; if empty, all.
        named_slice: Name of a slice whose cases are used; "" means all cases.

    Returns:
        The columns of `DifferenceRow`, one row per metric and model: base (the baseline's value on
        these items), value (the model's value), difference (value minus base), low, high (95 %), p
        (two-sided), p_holm (adjusted for all rows), verdict (see `verdict`),
        n_items (items used), left_out (items that one of the models answered but that are not used), base_alone and
        base_items (the baseline's value and number of items, regardless of the model's answers), detectable (the
        smallest difference that can be detected with 80 % power after the same correction), n_answers (of each model
        to these items, if each answer is right or wrong; otherwise 0).
    """
    baseline, *others = runs = select_runs(question_set, models)
    sums_of_runs = _MetricSums(question_set, runs, averaging, unit, only, named_slice)
    metrics = question_set.metrics
    names = [(name, run) for name in sums_of_runs.averagings for run in others]
    pairs = [sums_of_runs.pair(name, run, baseline) for name, run in names]
    are_rates = [metrics[name].is_share for name, _ in names]
    differences = estimate.differences(
        [(value, base) for value, base, _ in pairs], baseline.n_units, are_rates
    )
    p_holm = estimate.holm([difference.p for difference in differences])
    n_tests = int((~np.isnan(p_holm)).sum())
    rows = []
    for (name, run), (value, base, alone), is_rate, each, p in zip(
        names, pairs, are_rates, differences, p_holm.tolist(), strict=True
    ):
        error = power.standard_error(each.low, each.high)
        n_answers = estimate.count_answers((value, base), baseline.n_units) if is_rate else 0
        rows.append(
            DifferenceRow(
                *(name, sums_of_runs.averagings[name], baseline.model, run.model),
                *(_mean(base), _mean(value), each.value, each.low, each.high, each.p, p),
                verdict(metrics[name], each.value, p),
                each.n_items,
                *alone,
                power.detectable(error, each.n_items, n_tests, n_answers),
                n_answers,
            )
        )
    return pd.DataFrame(rows, columns=pd.Index(COMPARED))


@readable()
def read_measures(
    store: Store, run_key: str, wanted: Collection[Averaged]
) -> dict[Averaged, Measure]:
    """Read the stored measures of one run, with one row per item. A measure is empty if the run lacks the metric.

    Row groups are read and filtered one by one, because DuckDB takes five times as long for files of this size.
    """
    pieces: dict[Averaged, list[tuple[np.ndarray, ...]]] = {pair: [] for pair in wanted}
    with pq.ParquetFile(store.files([run_key], "sums")[0], read_dictionary=WORDS) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=[*WORDS, *NUMBERS], use_threads=False)
            metrics, averagings = (_codes(rows[name]) for name in WORDS)
            columns = [rows[name].to_numpy() for name in NUMBERS]
            for metric, averaging in wanted:
                selected = np.flatnonzero(
                    (metrics[0] == metrics[1].get(metric, -1))
                    & (averagings[0] == averagings[1].get(averaging, -1))
                )
                pieces[metric, averaging].append(tuple(column[selected] for column in columns))
    measures = {}
    empty = np.empty(0), np.empty(0), np.empty(0, np.int32)
    for pair, of_pair in pieces.items():
        total, weight, item = map(np.concatenate, zip(empty, *of_pair, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            measures[pair] = Measure(total / weight, weight, item)
    return measures


def _codes(texts: pa.ChunkedArray) -> tuple[np.ndarray, dict[str, int]]:
    """Encode a text column as integers. Return the code of each row, and the code for each distinct text."""
    encoded = texts.unify_dictionaries().combine_chunks()
    names = encoded.dictionary.to_pylist()
    return encoded.indices.to_numpy(), {name: code for code, name in enumerate(names)}


class _MetricSums:
    """Stored sums by metric and item for several runs. They determine the items on which two runs can be compared."""

    def __init__(
        self,
        question_set: QuestionSet,
        runs: Sequence[RunRow],
        averaging: str,
        unit: str,
        only: Collection[str] = (),
        named_slice: str = "",
    ) -> None:
        _check_unit(unit)
        self.n_items, self._unit = runs[0].n_units, unit
        self.metrics = {
            name: metric
            for name, metric in question_set.metrics.items()
            if name not in NOT_OF_MODELS
        }
        self.averagings = {
            name: averaging if averaging in metric.averaging else metric.averaging[0]
            for name, metric in self.metrics.items()
            if not only or name in only
        }
        # A metric with case weights does not distinguish an answer of weight 0 from no answer, so the first unweighted
        # metric of the same kinds counts the answers.
        unweighted = {
            metric.kinds: name
            for name, metric in reversed(list(self.metrics.items()))
            if metric.weight is None
        }
        self._counting = {
            name: name
            if self.metrics[name].weight is None
            else unweighted[self.metrics[name].kinds]
            for name in self.averagings
        }
        wanted = {*self.averagings.items(), *((name, POOLED) for name in self._counting.values())}
        if named_slice:
            numbers = named_slices.members(question_set, named_slice)
            self._measures = {
                run.key: named_slices.measures(question_set, run, numbers, wanted) for run in runs
            }
        else:
            self._measures = {
                run.key: read_measures(question_set.store, run.key, wanted) for run in runs
            }

    def measure(self, name: str, run: RunRow) -> Measure:
        """Return the measure for one metric in one run."""
        return self._measures[run.key][name, self.averagings[name]]

    def _answers(self, run: RunRow, name: str, averaged: str) -> np.ndarray:
        """Count how many of each item's cases a run answered, shape (n_items,)."""
        measure = self._measures[run.key][name, averaged]
        return np.bincount(measure.item, measure.weight, self.n_items)

    def pair(
        self, name: str, run: RunRow, baseline: RunRow
    ) -> tuple[Measure, Measure, tuple[int, float, int]]:
        """Return the values of a run and of the baseline for one metric, on the items for which both answered the same
        cases.

        The third value has the number of items left out, and the baseline's value and number of items regardless of the
        run's answers.
        """
        is_scaled = self._unit == "spread" and self.metrics[name].unit == "cosine"
        scales = {
            side.key: (side.spread or np.nan) if is_scaled else 1.0 for side in (run, baseline)
        }
        answered, base_answered = (
            self._answers(side, name, self.averagings[name]) > 0 for side in (run, baseline)
        )
        answers, base_answers = (
            self._answers(side, self._counting[name], POOLED) for side in (run, baseline)
        )
        selected = (answers == base_answers) & base_answered & answered
        value, base = (
            _select_items(self.measure(name, side), selected, scales[side.key])
            for side in (run, baseline)
        )
        left_out = int((base_answered | answered).sum() - selected.sum())
        base_alone = _mean(self.measure(name, baseline)) / scales[baseline.key]
        return value, base, (left_out, base_alone, int(base_answered.sum()))


def metric_tie_groups(
    question_set: QuestionSet,
    averaging: str = POOLED,
    unit: str = "cosine",
    only: Collection[str] = (),
) -> dict[str, list[tuple[str, ...]]]:
    """Group the models that are tied on each metric (see `metrics.tie_groups`).

    Every pair of `fit_models` is tested on the items for which both answered the same cases, as in
    `compare_metrics`; p-values are adjusted for all pairs tested on a metric (Holm). Two models with fewer
    than two items in common are never in the same group.

    Returns:
        The groups, best first, by metric name. Metrics without a better direction, and metrics with values for fewer
        than two models, are omitted.
    """
    fit = fit_models(question_set)
    runs = [question_set.run(model) for model in question_set.ordered_models if model in fit]
    if len(runs) < 2:
        return {}
    sums_of_runs = _MetricSums(question_set, runs, averaging, unit, only)
    groups = {}
    for name in sums_of_runs.averagings:
        direction = sums_of_runs.metrics[name].direction
        means = {run.model: _mean(sums_of_runs.measure(name, run)) for run in runs}
        known = [run for run in runs if not math.isnan(means[run.model])]
        if direction == "none" or len(known) < 2:
            continue
        names, p = [], []
        for index, baseline in enumerate(known):  # only one baseline at a time is in memory
            pairs = {
                frozenset((run.model, baseline.model)): sums_of_runs.pair(name, run, baseline)[:2]
                for run in known[index + 1 :]
            }
            pairs = {key: pair for key, pair in pairs.items() if (pair[0].weight > 0).sum() > 1}
            p += list(estimate.p_values(list(pairs.values()), sums_of_runs.n_items))
            names += pairs
        tied = {
            pair
            for pair, raised in zip(names, estimate.holm(p), strict=True)
            if raised >= SIGNIFICANCE
        }
        sign = -1 if direction == "up" else 1
        ordered = sorted((run.model for run in known), key=lambda model: sign * means[model])
        groups[name] = tie_groups(ordered, tied)
    return groups


def _select_items(measure: Measure, selected: np.ndarray, scale: float) -> Measure:
    """Return a measure for the selected items, divided by `scale`. It has no rows if `scale` is NaN."""
    items = np.flatnonzero(selected & ~np.isnan(scale))
    value, weight = np.zeros((2, len(selected)))
    value[measure.item], weight[measure.item] = measure.value / scale, measure.weight
    return Measure(value[items], weight[items], items)


def _mean(measure: Measure) -> float:
    weights = measure.weight
    return float(np.average(measure.value, weights=weights)) if weights.any() else np.nan


# The best model on a metric.


@dataclass(frozen=True)
class Leader:
    """The best model on one metric, or the reason why there is no single best model.

    Possible values of `state`:

    - "leads": `models` is one model, which is better than every other fit model in paired tests.
    - "tied": `models` are the model with the best value and the models that may be as good.
    - "chance": no value is above the result of guessing; `models` is the best model.
    - "alone": only one model can be compared.
    - "unknown": no value is known, or no interval that could be compared with guessing.
    """

    state: Literal["leads", "tied", "chance", "alone", "unknown"]
    models: tuple[str, ...] = ()

    def without(self, beaten: Collection[str]) -> "Leader":
        """Return the leader after the paired tests, given the rivals that the best model significantly beats
        (`beaten`).
        """
        if self.state != "tied":
            return self
        rivals = [rival for rival in self.models[1:] if rival not in beaten]
        return Leader("tied" if rivals else "leads", (self.models[0], *rivals))


def leader(values: Sequence[EstimateRow], direction: str, chance: float) -> Leader:
    """Find the model with the best value. Until paired tests are run, all other models count as tied
    with it.

    Args:
        values: The estimates of all models that passed their checks.
        chance: The value of a model that guesses; NaN if not defined. A model can lead only if its
            whole interval is better than this value.
    """
    sign = {"up": 1.0, "down": -1.0}.get(direction)
    known = [row for row in values if not math.isnan(row.value)]
    has_chance = not math.isnan(chance)
    if sign is None or not known or (has_chance and all(math.isnan(row.low) for row in known)):
        return Leader("unknown")
    ranked = sorted(known, key=lambda row: (-sign * row.value, row.model))
    above = [row.model for row in ranked if _is_above(chance, sign, row.low, row.high)]
    if not above:
        return Leader("chance", (ranked[0].model,))
    if len(ranked) == 1:
        return Leader("alone", (ranked[0].model,))
    return Leader("tied", (above[0], *(row.model for row in ranked if row.model != above[0])))


def _is_above(chance: float, sign: float, low: float, high: float) -> bool:
    """Return whether the whole interval is better than guessing. This is false if the interval is unknown."""
    return math.isnan(chance) or (low > chance if sign > 0 else high < chance)


def leaders(
    question_set: QuestionSet, averaging: str = POOLED, unit: str = "cosine"
) -> dict[str, Leader]:
    """Find the best model on each metric in a question set (see `Leader`), by metric name.

    The model with the best value is tested against every other model in `fit_models` on the same items. p-values are
    adjusted over all tests of the same best model (Holm).
    """
    metrics, levels = question_set.metrics, chances(question_set)
    fit = fit_models(question_set)
    table = records(EstimateRow, estimates.estimates(question_set, "all", averaging, unit))
    by_metric = {}
    for name, metric in metrics.items():
        values = [row for row in table if row.metric == name and row.model in fit]
        by_metric[name] = leader(values, metric.direction, levels[name])
    tests: dict[str, tuple[list[str], set[str]]] = {}  # by best model: its metrics, and all rivals
    for name, tied in by_metric.items():
        if tied.state == "tied" and name not in NOT_OF_MODELS:
            names, rivals = tests.setdefault(tied.models[0], ([], set()))
            names.append(name)
            rivals.update(tied.models[1:])
    for best, (names, rivals) in tests.items():
        others = tuple(sorted(rivals))
        won = wins(question_set, best, others, averaging, unit, tuple(names))
        for name in names:
            by_metric[name] = by_metric[name].without(
                {rival for rival in rivals if (name, best, rival) in won}
            )
    return by_metric


def wins(
    question_set: QuestionSet,
    model: str,
    rivals: tuple[str, ...],
    averaging: str,
    unit: str,
    metrics: tuple[str, ...],
) -> set[tuple[str, str, str]]:
    """Find the metrics on which a model beats a rival significantly in the paired test on the same
    items.

    Returns:
        (metric, model, rival) for each significant test. p-values are adjusted over all tests in
        the call (Holm).
    """
    if not rivals:
        return set()
    table = compare_metrics(question_set, (model, *rivals), averaging, unit, metrics)
    return {
        (row.metric, model, row.model)
        for row in records(DifferenceRow, table)
        if row.verdict == "worse"
    }


def pareto_front(
    points: pd.DataFrame,
    fit: Collection[str],
    chance: float,
    lower: Callable[[str, str], bool],
    higher: Callable[[str, str], bool],
) -> pd.Series:
    """Find the models on the Pareto front: those that no other model significantly beats on the
    trade-off between x and y.

    A model on the front passes the checks, is above chance on y, and is better than every other fit
    model on x or on y in the paired test, so no other model beats it on both.

    Args:
        points: A table with the columns of `PointRow`; lower is better on x, higher on y.
        chance: The value of a model that guesses on y; NaN if not defined.
        lower: Function that tests two models on x and returns whether the first one is better.
        higher: Function that tests two models on y and returns whether the first one is better.

    Returns:
        Whether each model is on the front: bool, with the index of `points`.
    """
    rows = records(PointRow, points)
    rivals = [row for row in rows if row.model in fit and not math.isnan(row.x + row.y)]
    on_front = [
        row in rivals
        and _is_above(chance, 1.0, row.y_low, row.y_high)
        and all(
            lower(row.model, rival.model) or higher(row.model, rival.model)
            for rival in rivals
            if rival is not row
        )
        for row in rows
    ]
    return pd.Series(on_front, index=points.index, dtype=bool)
