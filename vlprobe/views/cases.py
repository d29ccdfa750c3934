"""Cases of a question set and the stored answers to them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from vlprobe.datasets import bundled, drawn
from vlprobe.datasets.sources import UNPICTURED
from vlprobe.storage import annotations, containers
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views import caption_bins, pattern_groups
from vlprobe.views import filter as views_filter
from vlprobe.views.filter import Filter, Matches
from vlprobe.views.mixed.outcomes import outcomes as search_outcomes
from vlprobe.views.rows import AnswerTable, CaseTable
from vlprobe.views.runs import QuestionSet

# Columns of answers that repeat the question, or are the same for all answers of a run.
QUESTION_COLUMNS = ("run", "item", "kind", "subtype", "rule", "strength_bin")
# Of the question set: used only for resampling and averaging.
MOST_FILES = 50_000  # whose being there is looked up
INTERNAL_COLUMNS = ("item_code", "cluster", "group")


def matching(store: Store, question_set: QuestionSet, case_filter: Filter) -> Matches:
    """Return the cases that pass a filter, with their sort keys."""
    numbers, margins, second_margins = passing(store, question_set, case_filter)
    n_fooled = None
    if case_filter.sort == "models":
        n_fooled = count_fooled(store, question_set, numbers)
    keys = case_filter.sort_keys(
        margins,
        second_margins,
        n_fooled,
        are_pictured(store, question_set, case_filter.kind, numbers),
    )
    return Matches(numbers, margins, second_margins, keys)


def passing(
    store: Store, question_set: QuestionSet, case_filter: Filter
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the cases of `matching` without their order: looking for pictures takes 0.3 s for
    SugarCrepe.

    Returns:
        Numbers of the cases, int32, ascending; margins of the filter's model; and margins of its
        second model, None unless the filter is `paired`. All have shape (n,).
    """
    cases = CaseTable(store, question_set.key)
    answers = AnswerTable(store, question_set.run(case_filter.model).key)
    second = None
    if case_filter.other:
        second = AnswerTable(store, question_set.run(case_filter.other).key)
    annotated = annotations.read(store, question_set.key).current if case_filter.tagged else ()
    where = case_filter.where(
        [annotation.case for annotation in annotated if case_filter.tagged in annotation.tags],
        answers.columns if case_filter.bin else (),
    )
    numbers = cases.numbers(where.condition, where.values, answers if where.needs_scores else None)
    # Conditions that are computed from texts and files
    if case_filter.pair:
        groups = pattern_groups.pattern_groups(cases, question_set.probe, case_filter.kind)
        members = pattern_groups.members(groups, answers, case_filter.pair)
        numbers = np.intersect1d(numbers, members, assume_unique=True)
    if case_filter.lost_to:
        searches = search_outcomes(store, question_set, case_filter.model)
        numbers = np.intersect1d(numbers, searches.numbers[searches.is_own], assume_unique=True)
    for binned_by, values in views_filter.values_by_name(case_filter.caption).items():
        members = caption_bins.members(cases, binned_by, values)
        numbers = np.intersect1d(numbers, members, assume_unique=True)
    if case_filter.pictured:
        here = pictured(store, question_set, case_filter.kind)
        numbers = np.intersect1d(numbers, here, assume_unique=True)
    # Conditions on margins
    is_fooled = margins(store, question_set, case_filter.fooled, numbers) <= 0
    is_held = margins(store, question_set, case_filter.held, numbers) > 0
    numbers = numbers[is_fooled.all(axis=0) & is_held.all(axis=0)]
    if case_filter.agreement:
        rated = margins(store, question_set, question_set.rated_models, numbers)
        n_fooled, n_held = (rated <= 0).sum(axis=0), (rated > 0).sum(axis=0)
        is_split = (n_fooled > 0) & (n_held > 0)
        numbers = numbers[is_split if case_filter.agreement == "split" else n_fooled == 1]
    of_model = answers.margins_of(numbers)
    second_margins = second.margins_of(numbers) if second and case_filter.paired else None
    is_passing = case_filter.passes(of_model, second_margins)
    if second_margins is not None:
        second_margins = second_margins[is_passing]
    return numbers[is_passing], of_model[is_passing], second_margins


def rights(margins: np.ndarray, n_orders: int) -> np.ndarray:
    """Return the correctness of each answer: float64 from 0 to 1, shape (n,).

    A tie counts as wrong. For a model tested with both orders of the captions, a margin of 0 means
    that the answer changes with the order, which counts as half right.
    """
    is_right = (margins > 0).astype(np.float64)
    return np.where(margins == 0, 0.5, is_right) if n_orders == 2 else is_right


def margins(
    store: Store, question_set: QuestionSet, models: Sequence[str], numbers: np.ndarray
) -> np.ndarray:
    """Return the margins of models on these cases: float32 of shape (n_models, n_cases)."""
    tables = [AnswerTable(store, question_set.run(model).key) for model in models]
    of_models = [table.margins_of(numbers) for table in tables]
    return np.array(of_models, dtype=np.float32).reshape(len(models), len(numbers))


def count_fooled(store: Store, question_set: QuestionSet, numbers: np.ndarray) -> np.ndarray:
    """Count how many models each case fools, including ties but not controls: int64 of shape (n,)."""
    return (margins(store, question_set, question_set.rated_models, numbers) <= 0).sum(axis=0)


def failures(
    store: Store, question_set: QuestionSet, case_filter: Filter, page: int = 1, size: int = 12
) -> tuple[pd.DataFrame, int]:
    """Return one page of the cases that pass a filter, and the total; ties count as failures.

    Returns:
        The columns of `FailureRow`; and the total.
    """
    matches = matching(store, question_set, case_filter)
    start = max(page - 1, 0) * size
    indices = matches.order(start, start + size)
    page_numbers = matches.numbers[indices].tolist()
    table = questions(store, question_set, page_numbers)
    table.insert(1, "margin", matches.margins[indices])
    answers = AnswerTable(store, question_set.run(case_filter.model).key)
    table.insert(2, "scores", answers.rows(page_numbers, excluded=QUESTION_COLUMNS)["scores"])
    return table, len(matches.numbers)


def questions(store: Store, question_set: QuestionSet, numbers: Sequence[int]) -> pd.DataFrame:
    """Return the cases with these numbers, in this order: the columns of `CaseRow`."""
    table = CaseTable(store, question_set.key).rows(numbers, excluded=INTERNAL_COLUMNS)
    table["images"] = [_located(store, names) for names in table["images"]]
    return table


def with_pictures(store: Store, question_set: QuestionSet, kind: str) -> tuple[int, int]:
    """Count the cases of a kind that have all their pictures on this machine, and all its cases.

    Both are 0 if the cases have more than MOST_FILES pictures, which are not checked.
    """
    rows = _cases_of_pictures(store, question_set, kind)
    n_pictured = len(pictured(store, question_set, kind))
    return n_pictured, sum(len(numbers) for _, numbers in rows)


def count_pictures(store: Store, question_set: QuestionSet) -> tuple[int, int]:
    """Count the pictures of a question set, and how many are on this machine."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT DISTINCT unnest(images) FROM read_parquet(?)",
            [store.files([question_set.key], "cases")],
        ).fetchall()
    return len(rows), sum(are_here(_located(store, names)) for names in rows)


def keeps_unpictured(question_set: QuestionSet) -> bool:
    """Return whether the dataset can have questions without pictures, because of an option or
    because it is bundled.
    """
    dataset = question_set.runs[0].dataset
    return f"+{UNPICTURED}" in dataset or dataset.startswith(f"{bundled.PREFIX}:")


def pictured(store: Store, question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the numbers of the cases of a kind that have all their pictures on this machine,
    ascending.
    """

    def find() -> np.ndarray:
        rows = _cases_of_pictures(store, question_set, kind)
        numbers = [number for names, cases in rows if are_here(names) for number in cases]
        return np.sort(np.array(numbers, dtype=np.int32))

    return store.listing_fact(("pictured", question_set.key, kind), find)


def are_pictured(
    store: Store, question_set: QuestionSet, kind: str, numbers: np.ndarray
) -> np.ndarray | None:
    """Return whether each case has all its pictures on this machine: bool of shape (n,); None if
    all or none of the cases have them.
    """
    if not keeps_unpictured(question_set):
        return None
    is_pictured = np.isin(numbers, pictured(store, question_set, kind))
    return None if is_pictured.all() or not is_pictured.any() else is_pictured


def _cases_of_pictures(
    store: Store, question_set: QuestionSet, kind: str
) -> list[tuple[tuple[str, ...], list[int]]]:
    """Names of pictures, and the numbers of the cases that are about just these; nothing of more
    than MOST_FILES.
    """
    with store.cursor() as cursor:
        rows = cursor.execute(
            'SELECT images, list("case") FROM read_parquet(?) WHERE kind = ? GROUP BY images LIMIT ?',
            [store.files([question_set.key], "cases"), kind, MOST_FILES + 1],
        ).fetchall()
    if len(rows) > MOST_FILES:
        return []
    return [(_located(store, names), numbers) for names, numbers in rows]


def _located(store: Store, names: Sequence[str]) -> tuple[str, ...]:
    """Names of pictures; those that were downloaded into the cache as paths of their files."""
    return tuple(bundled.located(name, store.root) for name in names)


def are_here(names: Sequence[str]) -> bool:
    """Return whether each picture can be shown: its file exists, it is bundled, or it is drawn."""
    paths = [Picture.from_name(name).path for name in names]
    return bool(paths) and all(
        bundled.is_bundled(path) or containers.is_file(path) or drawn.scene_of(path)
        for path in paths
    )


def case_number(store: Store, question_set: QuestionSet, case_id: str) -> int | None:
    """Return the number of the case with this id; None if there is none."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            'SELECT "case" FROM read_parquet(?) WHERE id = ? LIMIT 1',
            [store.files([question_set.key], "cases"), case_id],
        ).fetchall()
    return rows[0][0] if rows else None


def outcomes(store: Store, question_set: QuestionSet, case_filter: Filter) -> dict[str, int]:
    """Count the cases that pass a filter by outcome, ignoring the outcome of the filter; ties also
    count as fooled.
    """
    _, of_model, _ = passing(store, question_set, replace(case_filter, outcome="all"))
    return {
        name: int(np.count_nonzero(has_outcome(of_model)))
        for name, has_outcome in views_filter.OUTCOMES.items()
    }


def answers(
    store: Store, question_set: QuestionSet, numbers: Sequence[int], models: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the stored answers of models to these cases: case, margin, scores, the other columns
    of the probe, the model, and whether its answers have scores.

    Args:
        models: Models to read; empty: all.
    """
    tables = [
        AnswerTable(store, run.key)
        .rows(numbers, excluded=QUESTION_COLUMNS)
        .assign(model=run.model, is_scored=run.is_scored)
        for run in map(question_set.run, models or question_set.models)
    ]
    return pd.concat(tables, ignore_index=True).sort_values(["case", "model"], ignore_index=True)
