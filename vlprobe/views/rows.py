"""Read cases, answers and pictures in a question set."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vlprobe.datasets import bundled, drawn
from vlprobe.datasets.sources import UNPICTURED
from vlprobe.storage import containers
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views.records import AnswerRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import CaseTable

MOST_FILES = 50_000  # maximum number of files that are checked for existence
# Columns of answers that repeat the question, or have the same value for all answers of a run.
QUESTION_COLUMNS = ("run", "item", "kind", "subtype", "rule", "strength_bin")
# Columns of the question set that are used only for resampling and averaging.
INTERNAL_COLUMNS = ("item_code", "cluster", "group")


def questions(question_set: QuestionSet, numbers: Sequence[int]) -> pd.DataFrame:
    """Return the cases with the given numbers as a table with the columns of `CaseRow`, in the given order."""
    return question_rows(question_set.store, question_set.key, numbers)


def question_rows(store: Store, key: str, numbers: Sequence[int]) -> pd.DataFrame:
    """Return the table of `questions` for a question set that may have no finished run yet."""
    table = CaseTable(store, key).rows(numbers, excluded=INTERNAL_COLUMNS)
    table["images"] = [_located(store, names) for names in table["images"]]
    return table


def answers(
    question_set: QuestionSet, numbers: Sequence[int], models: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the stored answers to the given cases, one row per case and model: case, margin, scores, other columns
    that the probe stores, the model, and whether the model's answers have scores.

    Args:
        models: Names of the models to read; empty means all.
    """
    tables = [
        question_set.answers(run.model)
        .rows(numbers, excluded=QUESTION_COLUMNS)
        .assign(model=run.model, is_scored=run.is_scored)
        for run in map(question_set.run, models or question_set.models)
    ]
    return pd.concat(tables, ignore_index=True).sort_values(["case", "model"], ignore_index=True)


def answer_rows(
    question_set: QuestionSet, numbers: Sequence[int], models: Sequence[str] = ()
) -> dict[int, dict[str, AnswerRow]]:
    """Return the answers to the given cases as objects, by case number and then by model."""
    by_case: dict[int, dict[str, AnswerRow]] = {}
    table = answers(question_set, numbers, models) if len(numbers) else pd.DataFrame()
    for columns in table.to_dict("records"):
        case, model, is_scored = columns["case"], columns["model"], columns.pop("is_scored")
        margin, scores = float(columns["margin"]), columns["scores"]
        by_case.setdefault(case, {})[model] = AnswerRow(
            case, model, margin, scores, columns, is_scored
        )
    return by_case


def margins(question_set: QuestionSet, models: Sequence[str], numbers: np.ndarray) -> np.ndarray:
    """Return the margins of the given models for the given cases: float32 of shape (n_models, n_cases)."""
    tables = [question_set.answers(model) for model in models]
    of_models = [table.margins_of(numbers) for table in tables]
    return np.array(of_models, dtype=np.float32).reshape(len(models), len(numbers))


def rights(margins: np.ndarray, n_orders: int) -> np.ndarray:
    """Convert margins to a measure of correctness: float64 from 0 (wrong) to 1 (right), shape (n,).

    A tie counts as wrong. For a model tested with both orders of the captions, a margin of 0 means
    that the answer changes with the order, which counts as half right.
    """
    is_right = (margins > 0).astype(np.float64)
    return np.where(margins == 0, 0.5, is_right) if n_orders == 2 else is_right


def are_fooled(question_set: QuestionSet, models: Sequence[str], margins: np.ndarray) -> np.ndarray:
    """Return whether each case fools each model: bool of shape (n_models, n_cases), as `margins` has it.

    A tie fools a model. An answer that changes with the order of the captions does not: it is half right.
    """
    in_one_order = [[question_set.run(model).n_orders == 1] for model in models]
    return (margins < 0) | ((margins == 0) & np.array(in_one_order, dtype=bool).reshape(-1, 1))


def case_number(question_set: QuestionSet, case_id: str) -> int | None:
    """Return the number of the case with the given id, or None if there is no such case."""
    rows = question_set.store.fetch_rows(
        'SELECT "case" FROM read_parquet(?) WHERE id = ? LIMIT 1',
        [[question_set.cases.path], case_id],
    )
    return rows[0][0] if rows else None


def with_pictures(question_set: QuestionSet, kind: str) -> tuple[int, int]:
    """Count the cases of one kind whose pictures are all on this machine, and all cases of the kind.

    Both counts are 0 if the cases have more than MOST_FILES pictures, because not all of these are checked.
    """
    rows = _cases_of_pictures(question_set, kind)
    if len(rows) > MOST_FILES:
        return 0, 0
    n_pictured = len(pictured(question_set, kind))
    return n_pictured, sum(len(numbers) for _, numbers in rows)


def count_pictures(question_set: QuestionSet) -> tuple[int, int]:
    """Return the number of pictures in a question set, and how many of them are on this machine."""
    rows = question_set.store.fetch_rows(
        "SELECT DISTINCT unnest(images) FROM read_parquet(?)",
        [[question_set.cases.path]],
    )
    return len(rows), sum(are_here(_located(question_set.store, names)) for names in rows)


def keeps_unpictured(question_set: QuestionSet) -> bool:
    """Return whether a question set may have questions without pictures, judging by the name of its dataset."""
    dataset = question_set.runs[0].dataset
    return f"+{UNPICTURED}" in dataset or dataset.startswith(f"{bundled.PREFIX}:")


def pictured(question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the numbers of the cases of one kind whose pictures are all on this machine,
    ascending. If there are more than MOST_FILES pictures, none are returned.
    """

    def find() -> np.ndarray:
        rows = _cases_of_pictures(question_set, kind)
        return _cases_here(rows if len(rows) <= MOST_FILES else [])

    return question_set.store.listing_fact(("pictured", question_set.key, kind), find)


def sampled(question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the result of `pictured`. If there are more than MOST_FILES pictures, check only a sample of them."""

    def find() -> np.ndarray:
        rows = _cases_of_pictures(question_set, kind)
        if len(rows) <= MOST_FILES:
            return pictured(question_set, kind)
        return _cases_here(rows[:MOST_FILES])

    return question_set.store.listing_fact(("sampled", question_set.key, kind), find)


def _cases_here(rows: Sequence[tuple[tuple[str, ...], list[int]]]) -> np.ndarray:
    numbers = [number for names, cases in rows if are_here(names) for number in cases]
    return np.sort(np.array(numbers, dtype=np.int32))


def are_pictured(question_set: QuestionSet, kind: str, numbers: np.ndarray) -> np.ndarray | None:
    """Return whether each case's pictures are on this machine, bool of shape (n,). Return None if
    the answer is the same for all cases or not known.
    """
    if not keeps_unpictured(question_set):
        return None
    is_pictured = np.isin(numbers, pictured(question_set, kind))
    return None if is_pictured.all() or not is_pictured.any() else is_pictured


def pictured_first(
    question_set: QuestionSet, kind: str, numbers: np.ndarray, keys: np.ndarray
) -> np.ndarray:
    """Return sort keys, shape (n,), that put cases with available pictures first and otherwise follow `keys`."""
    is_pictured = are_pictured(question_set, kind, numbers)
    if is_pictured is None:
        return keys
    return moved_last(keys, ~is_pictured)


def moved_last(keys: np.ndarray, is_last: np.ndarray) -> np.ndarray:
    """Return sort keys, shape (n,), that put some cases last and otherwise follow `keys`."""
    ranks = np.unique(keys, return_inverse=True)[1]
    return np.where(is_last, ranks + len(ranks), ranks)


def _cases_of_pictures(
    question_set: QuestionSet, kind: str
) -> list[tuple[tuple[str, ...], list[int]]]:
    """Return each distinct list of pictures with its case numbers, or a sample of MOST_FILES + 1 lists."""
    rows = question_set.store.fetch_rows(
        'SELECT images, list("case") FROM read_parquet(?) WHERE kind = ? GROUP BY images '
        "ORDER BY hash(images), images LIMIT ?",
        [[question_set.cases.path], kind, MOST_FILES + 1],
    )
    return [(_located(question_set.store, names), numbers) for names, numbers in rows]


def _located(store: Store, names: Sequence[str]) -> tuple[str, ...]:
    """Replace the names of downloaded pictures with the paths to the files in the cache."""
    return tuple(bundled.located(name, store.root) for name in names)


def are_here(names: Sequence[str]) -> bool:
    """Return whether all given pictures can be shown here: each is bundled with vlprobe, drawn, or an existing file."""
    paths = [Picture.from_name(name).path for name in names]
    return bool(paths) and all(
        bundled.is_bundled(path) or containers.is_file(path) or drawn.scene_of(path)
        for path in paths
    )
