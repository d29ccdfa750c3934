"""How many cases of each type and unit of resampling models answered, believed, tied and moved on.

Counted from margins that are in memory (`views.rows`), so that another choice of models costs no
reading and no grouping again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.views import rows as views_rows
from vlprobe.views.records import RunRow

KEPT_BYTES = 64 << 20  # of the cells of about 16 million cases
BUCKETS = {  # outcome of the first model, outcome of the second
    "both_fooled": ("fooled", "fooled"),
    "only_first": ("fooled", "held"),
    "only_second": ("held", "fooled"),
    "both_held": ("held", "held"),
}
N_STATES = 4  # of a model at a case: 0 not answered, 1 believed, 2 tied, 3 held
STATES = {"fooled": [1, 2], "held": [3], "answered": [1, 2, 3]}


@dataclass(frozen=True)
class Cells:
    """The cases of one kind by their subtype and unit."""

    cases: np.ndarray  # numbers, int32 of shape (n,)
    cell: np.ndarray  # int32 of shape (n,): the row of each case in the table that is returned
    subtypes: tuple[str, ...]  # of each row
    units: np.ndarray  # int32: of each row, the place of the unit's name among all names
    n_cases: np.ndarray  # of each row


_cells = SingleFlightCache(KEPT_BYTES, lambda cells: cells.cases.nbytes + cells.cell.nbytes)


def unit_counts(
    store: Store,
    case_key: str,
    runs: Sequence[RunRow],
    kind: str,
) -> pd.DataFrame:
    """A row a subtype and unit of resampling: answers of each model, and of each against the first.

    Returns:
        subtype, unit (the place of its name among all); of model i `answered_i`, `fooled_i`,
        `tied_i`, `moved_i` (the sum of its movements); of model i beside the first the BUCKETS with
        `_i`, and of the cases that both answered `both_i`, and what the first and i believed and
        moved there. Sorted by subtype, then by how many cases a unit has, then by the unit.
    """
    # Items that share a picture are one observation.
    by_item = runs[0].n_units >= runs[0].n_items
    cells = _cells_of(store, case_key, kind, by_item)
    views_rows.load_margins(store, [run.key for run in runs])
    margins = [views_rows.margins(store, run.key)[cells.cases] for run in runs]
    states = [_states(margin) for margin in margins]
    movements = [-margin.astype(np.float64) for margin in margins]
    columns: dict[str, object] = {"subtype": cells.subtypes, "n_cases": cells.n_cases}
    columns["unit"] = cells.units
    for side, state in enumerate(states):
        counts = _counted(cells, [state])
        columns[f"answered_{side}"] = counts[STATES["answered"]].sum(axis=0)
        columns[f"fooled_{side}"] = counts[STATES["fooled"]].sum(axis=0)
        columns[f"tied_{side}"] = counts[2]
        columns[f"moved_{side}"] = _summed(cells, movements[side], state > 0)
        if side:
            columns |= _beside_first(cells, states, movements, side)
    return pd.DataFrame(columns)


def _beside_first(
    cells: Cells, states: Sequence[np.ndarray], movements: Sequence[np.ndarray], side: int
) -> dict[str, np.ndarray]:
    """The columns of one model and the first."""
    counts = _counted(cells, [states[0], states[side]])

    def total(first: str, second: str) -> np.ndarray:
        pairs = [N_STATES * one + other for one in STATES[first] for other in STATES[second]]
        return counts[pairs].sum(axis=0)

    both = (states[0] > 0) & (states[side] > 0)
    return {
        **{f"{name}_{side}": total(*outcomes) for name, outcomes in BUCKETS.items()},
        f"both_{side}": total("answered", "answered"),
        f"base_believes_{side}": total("fooled", "answered"),
        f"model_believes_{side}": total("answered", "fooled"),
        f"base_moved_{side}": _summed(cells, movements[0], both),
        f"model_moved_{side}": _summed(cells, movements[side], both),
    }


def _states(margin: np.ndarray) -> np.ndarray:
    """What each margin means, int8."""
    state = np.zeros(len(margin), dtype=np.int8)
    state[margin < 0], state[margin == 0], state[margin > 0] = 1, 2, 3
    return state


def _counted(cells: Cells, states: Sequence[np.ndarray]) -> np.ndarray:
    """How many cases of each cell have each state, or pair of states: (N_STATES or its square,
    n_cells).
    """
    state, n_cells = np.zeros(len(cells.cell), dtype=np.int64), len(cells.units)
    for of_model in states:
        state = state * N_STATES + of_model
    size = N_STATES ** len(states)
    counts = np.bincount(state * n_cells + cells.cell, minlength=size * n_cells)
    return counts.reshape(size, n_cells)


def _summed(cells: Cells, movement: np.ndarray, is_counted: np.ndarray) -> np.ndarray:
    """The sum of movements in each cell, in the order of the cases."""
    rows = cells.cell[is_counted]
    return np.bincount(rows, movement[is_counted], len(cells.units))


def _cells_of(store: Store, case_key: str, kind: str, by_item: bool) -> Cells:
    """The cells of a kind, kept: they are the same for all models."""
    version = views_rows.cases_version(store, case_key)

    def make() -> Cells:
        cases = views_rows.case_numbers(store, case_key, "kind = ?", [kind])
        units = views_rows.unit_ranks(store, case_key, by_item)[cases]
        codes, names = views_rows.subtype_codes(store, case_key)
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
        return Cells(
            cases,
            row_of[first_cell],
            tuple(in_order[place] for place in of_subtype[order].tolist()),
            of_unit[order].astype(np.int32),
            n_cases[order],
        )

    return _cells.get((version, kind, by_item), make)
