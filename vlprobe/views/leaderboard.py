"""Leaderboard of models on several question sets: the headline metric of each set, or the share of wrong captions that
a model prefers, by kind of case and type of edit. The command and Compare's scorecard show the same columns.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.metrics.tie_groups import group_letters, tie_groups
from vlprobe.storage.bookmarks import SLICES
from vlprobe.types import POOLED, Metric
from vlprobe.views import estimates, named_slices
from vlprobe.views.named_slices import PREFIX
from vlprobe.views.paired_tests import (
    PairedTests,
    RowVerdict,
    compare_models,
    fit_models,
    metric_tie_groups,
    rank_by_type,
    rank_models,
)
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionSet, default_kind, list_kinds

NOT_RUN, NO_VALUE = "not run", "no value"
CONTROL, FAILED = "control", "failed a check"
COMPARED = (  # facts of a cell without a metric
    *("n_fooled", "is_best", "difference", "difference_low", "difference_high", "p_holm"),
    "verdict",
)
By = Literal["metric", "kind", "edit"]


@dataclass(frozen=True)
class LeaderboardCell:
    """One model's value in one column.

    Attributes:
        estimate: Value and 95 % interval; None if the model has no value.
        group: Letters of the groups of tied models; models that share a letter are tied.
        note: Why the value or the group is missing; "" if both are present.
        is_best: Whether the model has the best value in the column, or is tied with the model that has it; is clearly
            better than guessing; and is not clearly worse than another model that is tied with the best. False in all
            cells of a column that does not count, such as one in which all models are tied.
        n_fooled: Number of cases that fool the model. As on Explore, being fooled in one of the two caption orders is
            enough.
        difference: Value minus the baseline's, on the cases that both answered; NaN without a test.
        difference_low: Lower end of the difference's 95 % interval; NaN if unknown. `difference_high`: the upper end.
        p_holm: The difference's p-value, corrected as in `rank_by_type`; NaN without a test.
        verdict: Whether the model prefers fewer or more wrong captions than the baseline, or is tied with it.
    """

    estimate: EstimateRow | None = None
    group: str = ""
    note: str = ""
    is_best: bool = False
    n_fooled: int = 0
    difference: float = math.nan
    difference_low: float = math.nan
    difference_high: float = math.nan
    p_holm: float = math.nan
    verdict: RowVerdict = "unknown"


@dataclass(frozen=True)
class LeaderboardColumn:
    """A column of the leaderboard: a question set, and the metric or the kind of case that ranks its models."""

    question_set: QuestionSet
    metric: Metric
    cells: Mapping[str, LeaderboardCell]  # by model, of models that ran on the question set
    kind: str = ""  # "": a metric
    subtype: str = ""  # "": all cases of the kind
    blind: float = math.nan  # share of wrong captions with no more words than the true one
    n_cases: int = 0
    ranking: PairedTests | None = None  # tests that decide which model is best; None for a metric
    # Of all models, whichever have cells; empty: unknown
    tie_groups: Sequence[tuple[str, ...]] = ()
    all_tied: bool = False  # whether all ranked models are tied, so that none is best
    n_types: int = 0  # types of edit that have columns of their own and are pooled in this one
    pooled: tuple[str, ...] = ()  # the types that are pooled, if some are left out
    caveat: str = ""  # why the numbers of a named slice are biased

    @property
    def name(self) -> str:
        """The result of `column_name`."""
        return column_name(self.question_set, self.kind, self.subtype)

    @property
    def is_slice(self) -> bool:
        """Whether the column is a named slice, whose cases someone chose."""
        return self.subtype.startswith(PREFIX)

    @property
    def is_counted(self) -> bool:
        """Whether a finding counts the column: it is not a named slice, there are enough pictures for intervals, and
        the cases tell at least two models apart.
        """
        return not self.is_slice and self.has_intervals and not self.all_tied

    @property
    def is_testable(self) -> bool:
        """Whether a model can be called best: the cases were not selected by answers, and there are enough pictures."""
        return self.has_intervals and not self.caveat

    @property
    def has_intervals(self) -> bool:
        """Whether any model has an interval. Without one, nothing is known about ties."""
        rows = [cell.estimate for cell in self.cells.values() if cell.estimate]
        return not all(math.isnan(row.low) for row in rows)

    def cell(self, model: str) -> LeaderboardCell:
        """Return a model's cell. If the model did not run on the question set, the cell has only a note."""
        return self.cells.get(model, LeaderboardCell(note=NOT_RUN))

    def narrowed(self, models: Collection[str]) -> "LeaderboardColumn":
        """Return a copy of the column with only the given models. The best model and the group
        letters are determined among these models.

        No model is best if the one with the lowest share was not tested against the others (see `rank_by_type`), or in
        columns that do not count (see `is_counted`).
        """
        cells = {model: cell for model, cell in self.cells.items() if model in models}
        letters = self._letters([model for model, cell in cells.items() if not cell.note])
        cells = {
            model: replace(cell, group=letters.get(model, "")) for model, cell in cells.items()
        }
        winners: set[str] = set()
        all_tied = False
        ranked = {model for model, cell in cells.items() if not cell.note}
        if self.ranking:
            fit = [each.model for each in self.ranking.fit]
            best = next((model for model in fit if model in cells), "")
            verdict = self.ranking.verdict
            may_win = {each.model for each in self.ranking.fit if each.may_win}
            tops = {each for each in cells if each == best or verdict(each, best) == "tied"}
            if self.is_testable and (self.ranking.is_complete or best in fit[:1]):
                winners = {
                    model
                    for model in ranked & may_win & tops
                    if all(verdict(model, top) != "more" for top in tops)
                }
            if len(ranked) > 1 and ranked & may_win and self.is_testable:
                # Of many models, only pairs with the best one are tested
                pairs = itertools.combinations(ranked, 2)
                is_each_tied = all(verdict(*pair) == "tied" for pair in pairs)
                all_tied = is_each_tied or (len(winners) > 1 and winners == ranked)
        for model, cell in cells.items():
            cells[model] = replace(cell, is_best=model in winners and not all_tied)
        return replace(self, cells=cells, all_tied=all_tied)

    def _letters(self, models: Collection[str]) -> dict[str, str]:
        """Return the letters of the groups of tied models among the given ones, best first."""
        if not self.tie_groups or (self.ranking and not self.has_intervals):
            return {}
        pairs = (itertools.combinations(group, 2) for group in self.tie_groups)
        tied = {frozenset(pair) for pair in itertools.chain.from_iterable(pairs)}
        return group_letters(tie_groups(sorted(models, key=self.rank), tied))

    def n_halves(self, model: str) -> int:
        """Count the cases that fool a model in only one order of the captions. In its value, each counts half."""
        cell = self.cell(model)
        if cell.estimate is None or self.question_set.run(model).n_orders != 2:
            return 0
        return abs(2 * cell.n_fooled - round(2 * cell.estimate.n_cases * cell.estimate.value))

    def rank(self, model: str) -> tuple[bool, float]:
        """Return a sort key for a model: the best model sorts first, models without a tie group or a value last."""
        cell = self.cell(model)
        sign = -1 if self.metric.direction == "up" else 1
        return bool(cell.note), sign * cell.estimate.value if cell.estimate else 0.0


def chosen_types(
    question_set: QuestionSet, kind: str, left_out: Collection[str]
) -> tuple[str, ...]:
    """Return the types of edit that are not left out, or () if they are all of the types or none. `left_out` has names
    of columns.
    """
    if not left_out:
        return ()
    every = _types_of(rank_by_type(question_set, kind))
    types = [name for name in every if column_name(question_set, kind, name) not in left_out]
    return tuple(types) if 0 < len(types) < len(every) else ()


def of_types(question_set: QuestionSet, left_out: Collection[str]) -> QuestionSet:
    """Return a question set whose runs have the numbers of cases, items and pictures without the types left out, or the
    question set as it is if no type is left out.
    """
    kinds = ranked_kinds(question_set)
    types = {kind: chosen_types(question_set, kind, left_out) for kind in kinds}
    if not any(types.values()):
        return question_set
    cases, run = question_set.cases, question_set.runs[0]
    condition = "kind = ? AND (len(?) = 0 OR list_contains(?, subtype))"
    parts = [cases.numbers(condition, [kind, only, only]) for kind, only in types.items()]
    numbers, units = np.concatenate(parts), cases.unit_ranks(run.n_units >= run.n_items)
    n_items, n_units = (len(np.unique(of[numbers])) for of in (cases.unit_ranks(True), units))
    sizes = {"n_cases": len(numbers), "n_items": n_items, "n_units": n_units}
    return replace(question_set, runs=tuple(replace(run, **sizes) for run in question_set.runs))


def _types_of(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name and not name.startswith(PREFIX))


def column_name(question_set: QuestionSet, kind: str, subtype: str) -> str:
    """Return the name of a column in links."""
    return f"{question_set.key[:8]}.{kind}.{subtype}"


def leaderboard(
    question_set: QuestionSet,
    models: Collection[str] = (),
    averaging: str = POOLED,
    by: By = "metric",
    baseline: str = "",
    left_out: Collection[str] = (),
) -> list[LeaderboardColumn]:
    """Return the leaderboard's columns for a question set.

    All models on the question set are tested, even if only some are listed. The best model is one of those listed.

    Args:
        models: Models to include, if they answered the question set; empty means all.
        averaging: As in `estimates.estimates`, for metrics.
        by: "metric" for one column, with the first headline metric of its probe that has a value;
            "kind" for the pooled share of wrong captions preferred, with one column per kind of case; "edit" for the
            same columns plus one per type of edit and named slice.
        baseline: A model with which the others are compared by kind or edit.
        left_out: Names of columns to leave out (see `LeaderboardColumn.name`). "All cases" of a kind are then those of
            the other types, and have a column only if there are any.
    """
    if by == "metric":
        columns = [_metric_column(question_set, averaging)]
    else:
        columns = [
            column
            for kind in ranked_kinds(question_set)
            for column in _share_columns(question_set, kind, baseline, by == "edit", left_out)
        ]
    if by == "edit":
        sized = of_types(question_set, left_out)
        columns = [replace(column, question_set=sized) for column in columns]
    return [column.narrowed(models or column.cells) for column in columns]


def ranked_kinds(question_set: QuestionSet) -> list[str]:
    """Return the kinds of cases that can fool a model, or the default kind if no kind can."""
    kinds = list_kinds(question_set.store, question_set.key, question_set.probe)
    fooling = [kind for kind in kinds if not question_set.presentation.kind(kind).is_movement]
    return fooling or [default_kind(question_set)]


def _metric_column(question_set: QuestionSet, averaging: str) -> LeaderboardColumn:
    table = estimates.estimates(question_set, averaging=averaging).dropna(subset=["value"])
    rows = records(EstimateRow, table)
    metrics = question_set.metrics
    names = dict.fromkeys([*question_set.presentation.main_metrics, *metrics])
    directed = [metrics[name] for name in names if name in metrics]
    directed = [each for each in directed if each.direction != "none"]
    known = {row.metric for row in rows}
    metric = next((each for each in directed if each.name in known), directed[0])
    fit = fit_models(question_set)
    estimate_of = {row.model: row for row in rows if row.metric == metric.name}
    cells = {}
    for model in question_set.ordered_models:
        row = estimate_of.get(model)
        cells[model] = LeaderboardCell(row, note=_note(model, row is not None, model in fit))
    groups = metric_tie_groups(question_set, averaging, only=(metric.name,))
    return LeaderboardColumn(question_set, metric, cells, tie_groups=groups.get(metric.name, ()))


def _note(model: str, is_known: bool, is_fit: bool) -> str:
    """Return why a model has no value or no rank in a column, or ""."""
    if not is_known:
        return NO_VALUE
    return "" if is_fit else CONTROL if registry.is_control(model) else FAILED


def _share_columns(
    question_set: QuestionSet, kind: str, baseline: str, by_edit: bool, left_out: Collection[str]
) -> list[LeaderboardColumn]:
    """Return a column for all cases of a kind and, if `by_edit`, one per type of edit and named slice.

    In each column, all pairs of models are tested, with the p-values of `rank_by_type`.
    """
    every = rankings = (
        rank_by_type(question_set, kind) if by_edit else {"": rank_models(question_set, kind)}
    )
    kept = [name for name in rankings if column_name(question_set, kind, name) not in left_out]
    n_types = len(_types_of(rankings))
    if len(_types_of(kept)) < min(2, n_types):  # then there is nothing to pool
        kept = [name for name in kept if name]
    if chosen := chosen_types(question_set, kind, left_out) if by_edit else ():
        rankings = rank_by_type(question_set, kind, types=chosen)
    rivals = [name for name in question_set.ordered_models if name != baseline]
    against = {}
    if rivals and baseline in question_set.models:
        store, tested = question_set.store, (question_set, (baseline, *rivals), kind, "cosine", "")
        # Another choice of types then takes half of the CPU (VALSE, 11 models)
        name = "against", question_set.key, question_set.runs, kind, by_edit, SLICES.version(store)
        rows = store.listing_fact((*name, baseline), lambda: compare_models(*tested, every).rows)
        rows += compare_models(*tested, {"": rankings[""]}, chosen).rows if chosen else ()
        against = {(row.subtype, row.model): row for row in rows}
    blind = estimates.fewer_words(question_set, kind, chosen)
    named = named_slices.read(question_set.store)
    columns = []
    for subtype in kept:
        ranking = rankings[subtype]
        groups = ranking.tie_groups if ranking.is_complete else ()
        cells = {}
        for share in ranking.contestants:
            row = EstimateRow(
                *(share.model, "", SHARE.name, POOLED, subtype or "all"),
                *(share.share, share.low, share.high),
                *(share.n_items, share.n_cases, share.n_tied),
            )
            row = None if math.isnan(share.share) else row
            facts: dict[str, Any] = {}
            if test := against.get((subtype, share.model)):
                facts = {name: getattr(test, name) for name in ("difference", "p_holm", "verdict")}
                facts |= {"difference_low": test.low, "difference_high": test.high}
            cells[share.model] = LeaderboardCell(
                row,
                note=_note(share.model, row is not None, share.is_fit),
                n_fooled=0 if ranking.is_movement else share.n_fooled_cases,
                **facts,
            )
        measure = MOVED if ranking.is_movement else SHARE
        metric = replace(measure, unit=ranking.unit, kinds=(kind,))
        name = kind, subtype, blind.get(subtype, math.nan), ranking.n_cases
        column = LeaderboardColumn(question_set, metric, cells, *name, ranking, groups)
        if subtype.startswith(PREFIX):
            column = replace(column, caveat=named[subtype.removeprefix(PREFIX)].caveat)
        elif not subtype:
            column = replace(column, n_types=n_types, pooled=chosen)
        columns.append(column)
    return columns


SHARE = Metric(
    name="preferred",
    version=1,
    label="Wrong captions preferred",
    help="Share of wrong captions that score at least as high as the true one.",
    unit="rate",
    direction="down",
    chance=math.nan,
    source="vlprobe",
    kinds=(),
    value=lambda rows: rows["margin"].to_numpy() <= 0,
)
MOVED = replace(
    SHARE,
    name="moved",
    label="Movement",
    help="Mean size of the change that a rewording causes.",
    unit="cosine",
    value=lambda rows: -rows["margin"].to_numpy(),
)


def ranked_models(columns: Sequence[LeaderboardColumn], first: int = 0) -> list[str]:
    """Sort models, best first, by one column.

    Models that are tied or have no value there are sorted by the other columns, from left to right.
    """
    models = dict.fromkeys(model for column in columns for model in column.cells)
    order = [*columns[first : first + 1], *columns]
    return sorted(models, key=lambda model: [column.rank(model) for column in order])


def table(columns: Sequence[LeaderboardColumn], baseline: str = "") -> pd.DataFrame:
    """Return one row per model and column. Unknown numbers are NaN, and `note`, if there is one, has the reason. The
    verdict of the baseline is "baseline".
    """
    rows = []
    for model in ranked_models(columns):
        for column in columns:
            cell, question_set = column.cell(model), column.question_set
            subtype = column.subtype or "+".join(column.pooled)
            numbers = ("value", "low", "high", "n_items", "n_cases")
            rows.append(
                {
                    "model": model,
                    "set": question_set.key,
                    "dataset": question_set.runs[0].dataset,
                    "probe": question_set.probe,
                    **({"kind": column.kind, "subtype": subtype} if column.kind else {}),
                    "metric": column.metric.name,
                    "better": column.metric.direction,
                    **{
                        name: getattr(cell.estimate, name) if cell.estimate else math.nan
                        for name in numbers
                    },
                    "group": cell.group,
                    **({"n_halves": column.n_halves(model)} if column.kind else {}),
                    **{name: getattr(cell, name) for name in COMPARED if column.kind},
                    "note": cell.note,
                }
            )
    frame = pd.DataFrame(rows)
    if "verdict" in frame:
        frame.loc[frame["model"] == baseline, "verdict"] = "baseline"
    return frame.drop(columns=[] if any(row["note"] for row in rows) else ["note"])
