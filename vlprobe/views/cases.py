"""Cases of a question set and the stored models' answers to them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from vlprobe.datasets import bundled, drawn
from vlprobe.datasets.sources import UNPICTURED
from vlprobe.errors import StoredDamage
from vlprobe.storage import annotations, containers
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views import caption_bins, pattern_groups
from vlprobe.views import filter as views_filter
from vlprobe.views import rows as views_rows
from vlprobe.views.filter import Filter, Matches
from vlprobe.views.mixed.outcomes import outcomes as search_outcomes
from vlprobe.views.runs import QuestionSet

# Columns of answers that repeat the question, or are the same for all answers of a run.
QUESTION_COLUMNS = ("run", "item", "kind", "subtype", "rule", "strength_bin")
# Of the question set: used only for resampling and averaging.
MOST_FILES = 50_000  # whose being there is looked up
INTERNAL_COLUMNS = ("item_code", "cluster", "group")


def matching(store: Store, question_set: QuestionSet, case_filter: Filter) -> Matches:
    """Return the cases whose questions pass a filter, whatever the answers of its own models, and what sorts them."""
    matches = answers_matching(store, question_set, case_filter)
    n_fooled = None
    if case_filter.sort == "models":
        n_fooled = count_fooled(store, question_set, matches.numbers)
    is_pictured = are_pictured(store, question_set, case_filter.kind, matches.numbers)
    return matches._replace(n_fooled=n_fooled, is_pictured=is_pictured)


def answers_matching(store: Store, question_set: QuestionSet, case_filter: Filter) -> Matches:
    """Return the cases of `matching` with the margins only: looking for pictures takes .3 s of SugarCrepe."""
    numbers = numbers_matching(store, question_set, case_filter)
    second_run = question_set.run(case_filter.other) if case_filter.other else None
    second_margins = None
    if case_filter.paired and second_run is not None:
        second_margins = margins_of(store, second_run.key, numbers)
    margins = margins_of(store, question_set.run(case_filter.model).key, numbers)
    return Matches(numbers, margins, second_margins)


def numbers_matching(store: Store, question_set: QuestionSet, case_filter: Filter) -> np.ndarray:
    """Return the numbers of the cases of `matching`: int32 of shape (n,), rising."""
    run = question_set.run(case_filter.model)
    annotated = annotations.read(store, question_set.key).current if case_filter.tagged else ()
    where = case_filter.where(
        [annotation.case for annotation in annotated if case_filter.tagged in annotation.tags],
        views_rows.answer_columns(store, run.key) if case_filter.bin else (),
    )
    numbers = views_rows.case_numbers(
        store,
        question_set.key,
        where.condition,
        where.values,
        run.key if where.needs_scores else "",
    )
    for members in _members(store, question_set, case_filter, run.key):
        numbers = np.intersect1d(numbers, members, assume_unique=True)
    for models, outcome in ((case_filter.fooled, "fooled"), (case_filter.held, "held")):
        for model in models:
            margins = margins_of(store, question_set.run(model).key, numbers)
            numbers = numbers[views_filter.OUTCOMES[outcome](margins)]
    if case_filter.agreement:
        n_fooled = count_fooled(store, question_set, numbers)
        is_passing = n_fooled == 1
        if case_filter.agreement == "split":
            is_passing = (n_fooled > 0) & (count_held(store, question_set, numbers) > 0)
        numbers = numbers[is_passing]
    return numbers


def _members(
    store: Store, question_set: QuestionSet, case_filter: Filter, run_key: str
) -> Iterator[np.ndarray]:
    """Yield the numbers of the cases that pass each condition that is computed from texts and files."""
    key, kind = question_set.key, case_filter.kind
    if case_filter.pair:
        groups = pattern_groups.pattern_groups(store, key, question_set.probe, kind)
        yield pattern_groups.members(store, groups, run_key, case_filter.pair)
    if case_filter.lost_to:
        searches = search_outcomes(store, question_set, case_filter.model)
        yield searches.numbers[searches.is_own]
    for binned_by, values in views_filter.values_by_name(case_filter.caption).items():
        yield caption_bins.members(store, key, binned_by, values)
    if case_filter.pictured:
        yield pictured(store, question_set, kind)


def rights(margins: np.ndarray, n_orders: int) -> np.ndarray:
    """Return how right each answer is: float64 from 0 to 1, shape (n,).

    A tie is wrong. For a model that ran with both orders of the captions, a margin of 0 is an
    answer that changes with the order: it is half right.
    """
    is_right = (margins > 0).astype(np.float64)
    return np.where(margins == 0, 0.5, is_right) if n_orders == 2 else is_right


def count_fooled(store: Store, question_set: QuestionSet, numbers: np.ndarray) -> np.ndarray:
    """Count how many models each case fools, ties included and controls not: int64 of shape (n,)."""
    run_keys = [question_set.run(model).key for model in question_set.rated_models]
    return np.sum([margins_of(store, key, numbers) <= 0 for key in run_keys], axis=0)


def count_held(store: Store, question_set: QuestionSet, numbers: np.ndarray) -> np.ndarray:
    """Count how many models each case does not fool, controls not counted: int64 of shape (n,)."""
    run_keys = [question_set.run(model).key for model in question_set.rated_models]
    return np.sum([margins_of(store, key, numbers) > 0 for key in run_keys], axis=0)


def margins_of(store: Store, run_key: str, numbers: np.ndarray) -> np.ndarray:
    """Margins of these cases, float32 of shape (n,)."""
    margins = views_rows.margins(store, run_key)
    if len(numbers) and np.max(numbers) >= len(margins):
        raise StoredDamage(
            f"Run {run_key} has answers to {len(margins):,} cases, fewer than its question set."
        )
    return margins[numbers]


def failures(
    store: Store, question_set: QuestionSet, case_filter: Filter, page: int = 1, size: int = 12
) -> tuple[pd.DataFrame, int]:
    """One page of the cases that pass a filter, and how many pass it; ties count as failures.

    Returns:
        The columns of `FailureRow`; and the total.
    """
    matches = matching(store, question_set, case_filter)
    matches = matches.take(views_filter.passing(case_filter, matches))
    start = max(page - 1, 0) * size
    indices = views_filter.sorted_indices(case_filter, matches, start, start + size)
    page_numbers = matches.numbers[indices].tolist()
    table = questions(store, question_set, page_numbers)
    table.insert(1, "margin", matches.margins[indices])
    answered = _answers(store, question_set.run(case_filter.model).key, page_numbers)
    table.insert(2, "scores", answered["scores"])
    return table, len(matches.numbers)


def questions(store: Store, question_set: QuestionSet, numbers: Sequence[int]) -> pd.DataFrame:
    """The cases with these numbers, in this order: the columns of `CaseRow`."""
    path = store.files([question_set.key], "cases")[0]
    table = views_rows.read_rows(store, path, numbers, excluded=INTERNAL_COLUMNS)
    table["images"] = [_located(store, names) for names in table["images"]]
    return table


def with_pictures(store: Store, question_set: QuestionSet, kind: str) -> tuple[int, int]:
    """Count how many cases of a kind have all their pictures on this machine, and how many cases there
    are; (0, 0) where they have more than MOST_FILES pictures, which are not looked for.
    """
    rows = _cases_of_pictures(store, question_set, kind)
    n_pictured = len(pictured(store, question_set, kind))
    return n_pictured, sum(len(numbers) for _, numbers in rows)


def count_pictures(store: Store, question_set: QuestionSet) -> tuple[int, int]:
    """Count the pictures that a question set is about, and those of them that are on this machine."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT DISTINCT unnest(images) FROM read_parquet(?)",
            [store.files([question_set.key], "cases")],
        ).fetchall()
    return len(rows), sum(are_here(_located(store, names)) for names in rows)


def keeps_unpictured(question_set: QuestionSet) -> bool:
    """Return whether the dataset has questions without their pictures: it was read with that option, or is
    bundled.
    """
    dataset = question_set.runs[0].dataset
    return f"+{UNPICTURED}" in dataset or dataset.startswith(f"{bundled.PREFIX}:")


def pictured(store: Store, question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the numbers of the cases of a kind that have all their pictures on this machine, rising."""

    def find() -> np.ndarray:
        rows = _cases_of_pictures(store, question_set, kind)
        numbers = [number for names, cases in rows if are_here(names) for number in cases]
        return np.sort(np.array(numbers, dtype=np.int32))

    return store.listing_fact(("pictured", question_set.key, kind), find)


def are_pictured(
    store: Store, question_set: QuestionSet, kind: str, numbers: np.ndarray
) -> np.ndarray | None:
    """Return whether each case has all its pictures on this machine: bool of shape (n,); None where
    all cases have theirs, or none of them.
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
    """The number of the case with this id; None where there is none."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            'SELECT "case" FROM read_parquet(?) WHERE id = ? LIMIT 1',
            [store.files([question_set.key], "cases"), case_id],
        ).fetchall()
    return rows[0][0] if rows else None


def outcomes(store: Store, question_set: QuestionSet, case_filter: Filter) -> dict[str, int]:
    """Count how many cases pass a filter with each outcome, whatever outcome it names; ties are among the
    fooled, too.
    """
    matches = matching(store, question_set, case_filter)
    margins = matches.margins[views_filter.passing(replace(case_filter, outcome="all"), matches)]
    return {
        name: int(np.count_nonzero(has_outcome(margins)))
        for name, has_outcome in views_filter.OUTCOMES.items()
    }


def answers(
    store: Store, question_set: QuestionSet, numbers: Sequence[int], models: Sequence[str] = ()
) -> pd.DataFrame:
    """The stored answers of models to these cases: case, margin, scores, the other columns that the probe stores, the
    model, and whether its answers are scored.

    Args:
        store: Where results are.
        question_set: The models and their runs.
        numbers: Numbers of cases.
        models: Those whose answers are read; without any, all.
    """
    tables = [
        _answers(store, question_set.run(model).key, numbers).assign(
            model=model, is_scored=question_set.run(model).is_scored
        )
        for model in models or question_set.models
    ]
    return pd.concat(tables, ignore_index=True).sort_values(["case", "model"], ignore_index=True)


def _answers(store: Store, run_key: str, numbers: Sequence[int]) -> pd.DataFrame:
    """The columns that only the run stores for these cases, without those of the question set."""
    return views_rows.read_rows(
        store,
        store.files([run_key], "scores")[0],
        numbers,
        excluded=QUESTION_COLUMNS,
    )
