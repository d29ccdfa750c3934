"""Count how many cases each model answered, got wrong, tied or moved on, by type of edit and
resampling unit.

Margins are kept in memory (`views.tables`), so choosing other models does not read files again.

A model that ran with both orders of the captions has two answers per case. `answered` and `fooled`
count answers, so a case in which the order decides adds one right and one wrong answer. The share
of wrong answers is the mean over both orders and has the same chance level as for a model that ran
once. The BUCKETS count cases; one wrong answer is enough for a case to count as fooled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vlprobe.storage.store import Store
from vlprobe.views.records import RunRow
from vlprobe.views.tables import AnswerTable, CaseTable, remembered

BUCKETS = {  # outcome of the first model, outcome of the second
    "both_fooled": ("fooled", "fooled"),
    "only_first": ("fooled", "held"),
    "only_second": ("held", "fooled"),
    "both_held": ("held", "held"),
}
N_STATES = 4  # states of a model on a case: 0 not answered, 1 fooled, 2 tied, 3 not fooled
STATES = {"fooled": [1, 2], "held": [3], "answered": [1, 2, 3]}


@dataclass(frozen=True)
class UnitCells:
    """The cases of one kind, assigned to cells. A cell is a combination of subtype and resampling unit."""

    cases: np.ndarray  # case numbers, int32 of shape (n,)
    cell: np.ndarray  # int32 of shape (n,): row of each case in the returned table
    subtypes: pd.Categorical  # subtype of each row
    units: np.ndarray  # int32: for each row, the rank of the unit's name among all names
    n_cases: np.ndarray  # number of cases in each row


Columns = dict[str, np.ndarray]  # by column name, each of shape (n_cells,)
Counts = Mapping[str, np.ndarray | pd.Categorical]  # return type of `unit_counts`


@dataclass(frozen=True)
class KindAnswers:
    """A model's answers to the cases of one kind, in case order."""

    states: np.ndarray  # int8 of shape (n,)
    movements: np.ndarray | None  # float64 of shape (n,); None if not requested
    n_orders: int  # answers per case

    @property
    def believed(self) -> np.ndarray:
        """Number of wrong answers to a case in each of the N_STATES states."""
        return np.array([0, 2, 1, 0] if self.n_orders == 2 else [0, 1, 1, 0])


def unit_counts(
    store: Store,
    case_key: str,
    runs: Sequence[RunRow],
    kind: str,
    *,
    with_movements: bool = False,
    numbers: np.ndarray | None = None,
) -> Counts:
    """Count each model's answers, and compare each model with the first one, for each subtype and
    resampling unit.

    Args:
        runs: Runs of the models; the first one is compared with each of the others.
        with_movements: Whether to sum movements in columns whose names contain `moved`.
        numbers: Numbers of the cases to count; None means all cases of the kind.

    Returns:
        Columns of equal length: subtype, unit (the index of its name among all names), n_cases. For
        model i: `answered_i`, `fooled_i`, `fooled_cases_i` (the cases with a wrong answer),
        `tied_i` and `moved_i` (the sum of its movements). For
        model i compared with the first model: the BUCKETS with the suffix `_i`, and for the cases
        that both answered, their number `both_i` and the wrong answers and movements of the first
        model and model i, where one of two answers counts as half a case. Sorted by subtype, then
        by number of cases per unit, then by unit.
    """
    # Items that share a picture are one observation.
    by_item = runs[0].n_units >= runs[0].n_items
    table = CaseTable(store, case_key)
    cells = _cells(table, kind, by_item) if numbers is None else _cells_of(table, numbers, by_item)
    answers = []
    for run in runs:
        margin = AnswerTable(store, run.key).margins[cells.cases]
        movements = -margin.astype(np.float64) if with_movements else None
        answers.append(KindAnswers(_states(margin), movements, run.n_orders))
    columns: dict[str, np.ndarray | pd.Categorical] = {"subtype": cells.subtypes}
    columns |= {"n_cases": cells.n_cases, "unit": cells.units}
    for side, of_run in enumerate(answers):
        of_side = _of_model(cells, of_run)
        if side:
            pair = _of_pair(cells, answers[0], of_run)
            of_side |= {**pair, "both": np.sum([pair[name] for name in BUCKETS], axis=0)}
        columns |= {f"{name}_{side}": column for name, column in of_side.items()}
    return columns


def _of_model(cells: UnitCells, answers: KindAnswers) -> Columns:
    """Count one model's answered, wrong and tied answers in each cell. Sum its movements if there are any."""
    counts = _counted(cells, [answers.states])
    columns = {
        "answered": answers.n_orders * counts[STATES["answered"]].sum(axis=0),
        "fooled": answers.believed @ counts,
        "fooled_cases": counts[STATES["fooled"]].sum(axis=0),
        "tied": counts[2] if answers.n_orders == 1 else np.zeros_like(counts[2]),
    }
    if answers.movements is not None:
        columns["moved"] = _summed(cells, answers.movements, answers.states > 0)
    return columns


def _of_pair(cells: UnitCells, base: KindAnswers, model: KindAnswers) -> Columns:
    """Count two models' cases in each of BUCKETS, and their wrong answers and movements where both answered."""
    counts = _counted(cells, [base.states, model.states]).reshape(N_STATES, N_STATES, -1)
    columns = {
        name: counts[np.ix_(STATES[of_base], STATES[of_model])].sum(axis=(0, 1))
        for name, (of_base, of_model) in BUCKETS.items()
    }
    both_answered = counts[1:, 1:]
    columns["base_believes"] = _believed(base, both_answered.sum(axis=1))
    columns["model_believes"] = _believed(model, both_answered.sum(axis=0))
    if base.movements is not None and model.movements is not None:
        both = (base.states > 0) & (model.states > 0)
        columns["base_moved"] = _summed(cells, base.movements, both)
        columns["model_moved"] = _summed(cells, model.movements, both)
    return columns


def _believed(answers: KindAnswers, counts: np.ndarray) -> np.ndarray:
    """Count the cases in each cell that fool a model. If the model gave two answers per case, each answer counts as
    half a case.

    Args:
        counts: Number of cases in each state except 0, shape (N_STATES - 1, n_cells).
    """
    believed = answers.believed[1:] @ counts
    return believed if answers.n_orders == 1 else believed / answers.n_orders


def _states(margin: np.ndarray) -> np.ndarray:
    """Return the state of the answer for each margin: int8, below N_STATES."""
    state = np.zeros(len(margin), dtype=np.int8)
    state[margin < 0], state[margin == 0], state[margin > 0] = 1, 2, 3
    return state


def _counted(cells: UnitCells, states: Sequence[np.ndarray]) -> np.ndarray:
    """Count the cases in each cell by state, or by pair of states: shape (N_STATES or its square, n_cells)."""
    state, n_cells = np.zeros(len(cells.cell), dtype=np.int64), len(cells.units)
    for of_model in states:
        state = state * N_STATES + of_model
    size = N_STATES ** len(states)
    counts = np.bincount(state * n_cells + cells.cell, minlength=size * n_cells)
    return counts.reshape(size, n_cells)


def _summed(cells: UnitCells, movement: np.ndarray, is_counted: np.ndarray) -> np.ndarray:
    """Sum the movements in each cell, adding the cases in stored order."""
    rows = cells.cell[is_counted]
    return np.bincount(rows, movement[is_counted], len(cells.units))


@remembered
def _cells(table: CaseTable, kind: str, by_item: bool) -> UnitCells:
    """Return the cells for one kind of case. They are cached, because all models share them."""
    return _cells_of(table, table.numbers("kind = ?", [kind]), by_item)


def _cells_of(table: CaseTable, cases: np.ndarray, by_item: bool) -> UnitCells:
    units = table.unit_ranks(by_item)[cases]
    codes, names = table.codes("subtype")
    places = np.argsort(np.argsort(np.array(names, dtype=object), kind="stable"))
    subtypes = places[codes[cases]]
    n_units = int(units.max(initial=0)) + 1
    distinct, first_cell = np.unique(
        subtypes.astype(np.int64) * n_units + units, return_inverse=True
    )
    n_cases = np.bincount(first_cell, minlength=len(distinct))
    of_subtype, of_unit = distinct // n_units, distinct % n_units
    order = np.lexsort((of_unit, n_cases, of_subtype))
    row_of = np.empty(len(order), dtype=np.int32)
    row_of[order] = np.arange(len(order))
    in_order = sorted(names)
    return UnitCells(
        cases,
        row_of[first_cell],
        pd.Categorical.from_codes(of_subtype[order], in_order),
        of_unit[order].astype(np.int32),
        n_cases[order],
    )
