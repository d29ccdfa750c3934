"""Cases of a question set and what stored models answered to them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import annotations
from vlprobe.storage.files import REPAIR
from vlprobe.storage.store import Store
from vlprobe.views import filter as views_filter
from vlprobe.views import rows as views_rows
from vlprobe.views.filter import Filter
from vlprobe.views.runs import _keys

QUESTION_COLUMNS = ("run", "item", "kind", "subtype", "rule", "strength_bin")  # of answers, or the same for all of them


def _asked(
    store: Store, case_key: str, own: Mapping[str, str], chosen: Filter
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The cases whose questions pass a filter, whatever the answers; the margins of its model and of the other.

    `own` are the `_keys` of this question set.
    """
    for name in filter(None, [chosen.model, chosen.other]):
        if name not in own:
            raise NotFound("model in this question set", name, own)
    views_filter.check(chosen)
    cases = views_rows.cases(store, case_key, *views_filter.condition(chosen))
    if chosen.tagged:
        said = annotations.read(store, case_key).current
        cases = np.intersect1d(cases, [one.case for one in said if chosen.tagged in one.tags]).astype(np.int64)
    margin = _margins(store, own[chosen.model], cases)
    return cases, margin, _margins(store, own[chosen.other], cases) if chosen.paired else None


def _margins(store: Store, run: str, cases: np.ndarray) -> np.ndarray:
    found = views_rows.margins(store, run)
    if len(cases) and cases[-1] >= len(found):
        raise InvalidInput(f"Run {run} has answers to {len(found):,} cases only, and more were asked. {REPAIR}")
    return found[cases]


def failures(store: Store, case_key: str, chosen: Filter, page: int = 1, size: int = 12) -> tuple[pd.DataFrame, int]:
    """One page of the cases that pass a filter, and how many pass it.

    Returns:
        case, margin, scores, id, item, kind, subtype, rule, source, target, images, texts, roles, tags; and the total.
        Ties count as failures.
    """
    own = _keys(store, case_key, chosen.model)
    cases, margin, other = _asked(store, case_key, own, chosen)
    passing = views_filter.answered(chosen, margin, other)
    margin, other = margin[passing], other[passing] if chosen.paired else None
    start = max(page - 1, 0) * size
    places = views_filter.first(chosen, margin, other, start, start + size)
    shown = cases[passing][places]
    found = questions(store, case_key, shown)
    found.insert(1, "margin", margin[places])
    scores = _answered(store, own[chosen.model], shown)
    found.insert(2, "scores", scores["scores"])
    return found, len(margin)


def questions(store: Store, case_key: str, cases: Sequence[int]) -> pd.DataFrame:
    """Of these cases: case, id, item, kind, subtype, rule, source, target, images, texts, roles, tags."""
    return views_rows.rows(store, store.files([case_key], "cases")[0], cases, without=("item_code", "cluster", "group"))


def numbered(store: Store, case_key: str, case_id: str) -> int | None:
    """The number of the case with this id; None where there is none."""
    with store.cursor() as cursor:
        found = cursor.execute(
            'SELECT "case" FROM read_parquet(?) WHERE id = ? LIMIT 1', [store.files([case_key], "cases"), case_id]
        ).fetchall()
    return found[0][0] if found else None


def outcomes(store: Store, case_key: str, chosen: Filter) -> dict[str, int]:
    """How many cases pass a filter with each outcome, whatever outcome it names; ties are among the fooled, too."""
    _, margin, other = _asked(store, case_key, _keys(store, case_key, chosen.model), chosen)
    margin = margin[views_filter.answered(replace(chosen, outcome="all"), margin, other)]
    return {name: int(np.count_nonzero(has(margin))) for name, has in views_filter.OUTCOMES.items()}


def answers(store: Store, case_key: str, cases: Sequence[int], models: Sequence[str] = ()) -> pd.DataFrame:
    """What stored models said to these cases: case, margin, scores, what else the probe stores, and the model.

    Args:
        store: Where results are.
        case_key: The question set.
        cases: Numbers of cases.
        models: Those that are asked for; without any, all.
    """
    own = _keys(store, case_key, models[0] if models else "")
    tables = [_answered(store, own[model], cases).assign(model=model) for model in models or own]
    return pd.concat(tables, ignore_index=True).sort_values(["case", "model"], ignore_index=True)


def _answered(store: Store, run: str, cases: Sequence[int]) -> pd.DataFrame:
    """What one run stores of these cases, but for what the questions say, too."""
    return views_rows.rows(store, store.files([run], "scores")[0], cases, without=QUESTION_COLUMNS)
