"""Select the cases that pass a filter, sort them, and return one page of them as a table."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.storage import annotations
from vlprobe.types import Picture
from vlprobe.views import caption_bins, causes, estimates, named_slices, pattern_groups, suspects
from vlprobe.views.bodies import stored_body
from vlprobe.views.filter import (
    OTHER_OUTCOMES,
    OUTCOMES,
    SORTS,
    SUSPECTS_LAST,
    Filter,
    ordered_region,
    region_cases,
)
from vlprobe.views.mixed import case as mixed_case
from vlprobe.views.mixed import searches as mixed_searches
from vlprobe.views.records import FailureRow, records
from vlprobe.views.rows import (
    QUESTION_COLUMNS,
    answers,
    margins,
    moved_last,
    pictured,
    pictured_first,
    questions,
)
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import AnswerTable

COLUMNS = ["id", "kind", "subtype", "rule", "margin", "original", "edited", "image"]
# For picture searches: the candidate that the model ranked first, and the pictures it consists of.
FIRST_COLUMNS = ["first", "first_image", "first_partner"]
PICTURE_COLUMNS = ("image", "first_image", "first_partner")


class Matches(NamedTuple):
    """The cases that pass a filter, as arrays of shape (n,).

    Attributes:
        numbers: Numbers of the cases, int32, ascending.
        margins: Margins of the filter's model, float32.
        second_margins: Margins of the filter's second model, float32; None unless the filter is `paired`.
        sort_keys: Sort keys for the filter's order, smallest first; see `SORTS`.
    """

    numbers: np.ndarray
    margins: np.ndarray
    second_margins: np.ndarray | None
    sort_keys: np.ndarray

    def order(self, start: int, stop: int, positions: np.ndarray | None = None) -> np.ndarray:
        """Sort the cases and return the indices of positions `start` to `stop` (exclusive) in the filter's order. Cases
        with equal keys stay in case order.

        Args:
            positions: Indices of the cases to include; None means all cases.
        """
        keys = self.sort_keys if positions is None else self.sort_keys[positions]
        stop = min(stop, len(keys))
        if start >= stop:
            return np.empty(0, dtype=np.int64)
        bound = np.partition(keys, stop - 1)[stop - 1]
        candidates = np.arange(len(keys)) if np.isnan(bound) else np.flatnonzero(keys <= bound)
        return candidates[np.argsort(keys[candidates], kind="stable")][start:stop]


def matching(question_set: QuestionSet, case_filter: Filter) -> Matches:
    """Return the cases that pass a filter, together with their margins and sort keys."""
    numbers, of_model, of_other = passing(question_set, case_filter)
    values = order_values(question_set, case_filter, numbers, of_model)
    keys = SORTS[case_filter.sort](of_model, of_model if of_other is None else of_other, values)
    keys = pictured_first(question_set, case_filter.kind, numbers, keys)
    return Matches(numbers, of_model, of_other, keys)


def order_values(
    question_set: QuestionSet, case_filter: Filter, numbers: np.ndarray, of_model: np.ndarray
) -> np.ndarray:
    """Return the values that a filter sorts by, other than margins, shape (n,). These are the number of models that
    each case fools, its position when suspect labels are last, or its position when pictures are sorted by similarity
    and the cases of a picture by margin (lowest first).
    """
    if case_filter.sort in ("models", SUSPECTS_LAST):
        n_fooled = (margins(question_set, question_set.rated_models, numbers) <= 0).sum(axis=0)
        if case_filter.sort == "models":
            return n_fooled
        keys = of_model
        if not question_set.run(case_filter.model).is_scored:
            # Cases that fool the model in both orders of the captions are first
            keys = np.sign(of_model) * (len(question_set.rated_models) + 1) - n_fooled
        is_doubted = suspects.are_doubted(question_set, case_filter.kind, numbers)
        return moved_last(keys, is_doubted)
    search = ordered_region(case_filter.region)
    if case_filter.sort != "likeness" or not search:
        return np.zeros(len(numbers))
    listed, first = np.unique(region_cases(search), return_index=True)
    ranks = first[np.searchsorted(listed, numbers)]
    pictures = question_set.cases.picture_codes[numbers]
    rank_of_picture = np.full(np.max(pictures, initial=-1) + 1, len(first))
    np.minimum.at(rank_of_picture, pictures, ranks)
    return np.argsort(np.lexsort((of_model, rank_of_picture[pictures])))


def passing(
    question_set: QuestionSet, case_filter: Filter
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the cases that pass a filter, without sort keys. This skips the check for picture
    files that sorting may need, which takes 0.3 s for SugarCrepe.

    Returns:
        The case numbers, int32, ascending; the margins for the filter's model; and the margins for the filter's second
        model, or None unless the filter is `paired`. All have shape (n,).
    """
    cases = question_set.cases
    models = filter(None, (case_filter.model, case_filter.other))
    runs = [question_set.run(model) for model in models]
    answered = AnswerTable(question_set.store, runs[0].key)
    of_tag = (
        annotations.read(question_set.store, question_set.key).cases if case_filter.tagged else {}
    )
    where = case_filter.where(
        [case for name in case_filter.tagged for case in of_tag.get(name, ())],
        answered.columns if case_filter.bin else (),
    )
    numbers = cases.numbers(where.condition, where.values, answered if where.needs_scores else None)
    # Conditions that are computed in memory
    chosen: list[np.ndarray] = []
    if case_filter.pair:
        groups = pattern_groups.pattern_groups(cases, question_set.probe, case_filter.kind)
        chosen.append(pattern_groups.members(groups, answered, case_filter.pair))
    if case_filter.lost_to:
        searches = mixed_searches.outcomes_of(cases, answered)
        chosen.append(searches.numbers[searches.is_own])
    for binned_by in caption_bins.VALUES:
        if values := [each.value for each in case_filter.caption if each.name == binned_by]:
            chosen.append(caption_bins.members(cases, binned_by, values))
    if case_filter.named_slice:
        chosen.append(named_slices.members(question_set, case_filter.named_slice))
    if case_filter.unseen_by:
        table = causes.causes(question_set, runs[0].model, case_filter.kind)
        is_chosen = table["cause"].isin(case_filter.unseen_by).to_numpy()
        chosen.append(table.index[is_chosen].to_numpy(np.int32))
    chosen += [np.unique(region_cases(region)) for region in case_filter.region]
    if case_filter.pictured:
        chosen.append(pictured(question_set, case_filter.kind))
    if case_filter.suspects:
        is_doubted = suspects.are_doubted(question_set, case_filter.kind, numbers)
        chosen.append(numbers[~is_doubted])
    for members in chosen:
        numbers = np.intersect1d(numbers, members, assume_unique=True)
    for excluded in case_filter.exclusions():
        members, _, _ = passing(question_set, excluded)
        numbers = np.setdiff1d(numbers, members, assume_unique=True)
    # Conditions on margins
    is_fooled = margins(question_set, case_filter.fooled, numbers) <= 0
    is_held = margins(question_set, case_filter.held, numbers) > 0
    numbers = numbers[is_fooled.all(axis=0) & is_held.all(axis=0)]
    if case_filter.agreement:
        rated = margins(question_set, question_set.rated_models, numbers)
        n_fooled, n_held = (rated <= 0).sum(axis=0), (rated > 0).sum(axis=0)
        is_split = (n_fooled > 0) & (n_held > 0)
        numbers = numbers[is_split if case_filter.agreement == "split" else n_fooled == 1]
    of_model = answered.margins_of(numbers)
    is_passing = OUTCOMES[case_filter.outcome](of_model)
    if not case_filter.paired:
        return numbers[is_passing], of_model[is_passing], None
    (of_other,) = margins(question_set, [case_filter.other], numbers)
    is_passing &= OTHER_OUTCOMES[case_filter.other_outcome](of_other)
    if case_filter.within:
        x, y = (of_side[is_passing].astype(float) for of_side in (of_model, of_other))
        is_passing[is_passing] = _inside(case_filter.within, x, y)
    return numbers[is_passing], of_model[is_passing], of_other[is_passing]


def _inside(corners: tuple[tuple[float, float], ...], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether each point is inside a polygon. A point is inside if a ray from it crosses the polygon's sides an
    odd number of times.
    """
    sides = list(zip(corners, (*corners[1:], corners[0]), strict=True))
    xs, ys = zip(*corners, strict=True)
    boxed = (x >= min(xs)) & (x <= max(xs)) & (y >= min(ys)) & (y <= max(ys))
    if len(set(corners)) == 4 and all(a[0] == b[0] or a[1] == b[1] for a, b in sides):
        return boxed
    odd = np.zeros(len(x), dtype=bool)
    for (from_x, from_y), (to_x, to_y) in sides:
        if from_y != to_y:
            slope = (to_x - from_x) / (to_y - from_y)
            odd ^= ((y < from_y) != (y < to_y)) & (x < from_x - from_y * slope + y * slope)
    return boxed & odd


def failures(
    question_set: QuestionSet, case_filter: Filter, page: int = 1, size: int = 12
) -> tuple[pd.DataFrame, int]:
    """Return one page of the cases that pass a filter, and their total number; ties count as failures.

    Returns:
        A table with the columns of `FailureRow`, and the total number of cases.
    """
    matches = matching(question_set, case_filter)
    start = max(page - 1, 0) * size
    indices = matches.order(start, start + size)
    page_numbers = matches.numbers[indices].tolist()
    table = questions(question_set, page_numbers)
    table.insert(1, "margin", matches.margins[indices])
    answered = question_set.answers(case_filter.model)
    table.insert(2, "scores", answered.rows(page_numbers, excluded=QUESTION_COLUMNS)["scores"])
    return table, len(matches.numbers)


def outcomes(question_set: QuestionSet, case_filter: Filter) -> dict[str, int]:
    """Count a filter's cases by outcome, ignoring the outcome that the filter selects.

    A tie counts both as tied and as fooled.
    """
    _, of_model, _ = passing(question_set, replace(case_filter, outcome="all"))
    return {
        name: int(np.count_nonzero(has_outcome(of_model))) for name, has_outcome in OUTCOMES.items()
    }


def failure_table(
    question_set: QuestionSet, case_filter: Filter, page: int = 1, size: int = 20
) -> tuple[pd.DataFrame, int]:
    """Return one page of the cases that pass a filter, with the two texts of each case, and the total number of cases.

    Returns:
        A table with COLUMNS, where `original` is the true text and `edited` the wrong one ("" if the
        wrong side is a picture). For a picture search, the table also has FIRST_COLUMNS: the item
        ranked first, "A + B" if it is a mixture, and the paths to A and B. These are "" if the run did not store them.
        The second value is the total number of cases.

    Raises:
        NotFound: The filter names a subtype, rule or tag that no case of its kind has.
    """
    table, total = failures(question_set, case_filter, page, size)
    for each in (*[case_filter] * (not total), *case_filter.exclusions()):
        check_values(question_set, each)
    numbers = table["case"].tolist()
    body = stored_body(question_set.probe, case_filter.kind)
    tops = [""] * len(numbers)
    if numbers and body.uses_answer:
        answered = answers(question_set, numbers, (case_filter.model,))
        if "top" in answered:  # answers of the probe `series` have no such column
            tops = answered.set_index("case")["top"].loc[numbers].tolist()
    rows = records(FailureRow, table)
    texts = [body.texts(row, top) for row, top in zip(rows, tops, strict=True)]
    table["original"] = [true_text for true_text, _ in texts]
    table["edited"] = [wrong_text for _, wrong_text in texts]
    table["image"] = [next(iter(images), "") for images in table["images"]]
    if body.ranks != "pictures":
        return table.loc[:, COLUMNS], total
    first = [
        (" + ".join(filter(None, (each.item, each.partner))), each.picture, each.partner_picture)
        for each in mixed_case.first_candidates(question_set, case_filter.model, numbers)
    ]
    firsts = pd.DataFrame(first, columns=pd.Index(FIRST_COLUMNS), index=table.index)
    return pd.concat([table.loc[:, COLUMNS], firsts], axis=1), total


def shortened_pictures(table: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of a table of cases in which the paths to pictures are replaced by file names."""
    shown = [name for name in PICTURE_COLUMNS if name in table]
    return table.assign(
        **{
            name: [path and Picture.from_name(path).path.name for path in table[name]]
            for name in shown
        }
    )


def check_values(question_set: QuestionSet, case_filter: Filter) -> None:
    """Raise NotFound if a filter selects a subtype, rule or tag that no case of its kind has."""
    counts = estimates.choices(question_set)
    counts = counts.loc[counts["kind"] == case_filter.kind]
    for name in ("subtype", "rule"):
        values = sorted(set(counts[name].dropna()) - {""})
        for value in getattr(case_filter, name):
            if value not in values:
                raise NotFound(f"{name} of {case_filter.kind}", value, values)
    for name, value in case_filter.tag:
        values_by_tag = estimates.tag_values_by_name(question_set, case_filter.kind)
        if name not in values_by_tag:
            raise NotFound("tag", name, sorted(values_by_tag))
        if value not in values_by_tag[name]:
            raise NotFound(f"value of the tag '{name}'", value, values_by_tag[name])
