"""One page of a model's cases as a text table, for `vlprobe failures`."""

import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views import cases as views_cases
from vlprobe.views import estimates
from vlprobe.views.bodies import stored_body
from vlprobe.views.filter import Filter
from vlprobe.views.mixed.case import first_candidates
from vlprobe.views.records import FailureRow, records
from vlprobe.views.runs import QuestionSet

COLUMNS = ["id", "kind", "subtype", "rule", "margin", "original", "edited", "image"]
# For a picture search: the candidate that the model ranked first, and the pictures it consists of.
FIRST_COLUMNS = ["first", "first_image", "first_partner"]
PICTURE_COLUMNS = ("image", "first_image", "first_partner")


def failure_table(
    store: Store, question_set: QuestionSet, case_filter: Filter, page: int = 1, size: int = 20
) -> tuple[pd.DataFrame, int]:
    """Return one page of the cases that pass a filter, and the total.

    Args:
        case_filter: Filter and order of the cases.
        page: Page number, from 1.
        size: Rows per page.

    Returns:
        COLUMNS: `original` is the true text, `edited` the wrong one ("" if the wrong side is a
            picture). A search for a picture also has FIRST_COLUMNS: the item ranked first, "A + B"
        if it is a mixture, and the paths of A and B; "" if the run did not store it. Also the
        total.

    Raises:
        NotFound: The filter names a subtype, rule or tag that no case of its kind has.
    """
    table, total = views_cases.failures(store, question_set, case_filter, page, size)
    if not total:
        check_values(store, question_set, case_filter)
    numbers = table["case"].tolist()
    body = stored_body(question_set.probe, case_filter.kind)
    tops = [""] * len(numbers)
    if numbers and body.uses_answer:
        answers = views_cases.answers(store, question_set, numbers, (case_filter.model,))
        if "top" in answers:  # answers of the probe series have none
            tops = answers.set_index("case")["top"].loc[numbers].tolist()
    rows = records(FailureRow, table)
    texts = [body.texts(row, top) for row, top in zip(rows, tops, strict=True)]
    table["original"] = [true_text for true_text, _ in texts]
    table["edited"] = [wrong_text for _, wrong_text in texts]
    table["image"] = [next(iter(images), "") for images in table["images"]]
    if body.ranks != "pictures":
        return table.loc[:, COLUMNS], total
    first = [
        (" + ".join(filter(None, (each.item, each.partner))), each.picture, each.partner_picture)
        for each in first_candidates(store, question_set, case_filter.model, numbers)
    ]
    firsts = pd.DataFrame(first, columns=pd.Index(FIRST_COLUMNS), index=table.index)
    return pd.concat([table.loc[:, COLUMNS], firsts], axis=1), total


def shortened_pictures(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the file names of pictures instead of their paths."""
    shown = [name for name in PICTURE_COLUMNS if name in table]
    return table.assign(
        **{
            name: [path and Picture.from_name(path).path.name for path in table[name]]
            for name in shown
        }
    )


def check_values(store: Store, question_set: QuestionSet, case_filter: Filter) -> None:
    """Raise NotFound if a filter names a subtype, rule or tag that no case of its kind has."""
    counts = estimates.choices(store, question_set)
    counts = counts.loc[counts["kind"] == case_filter.kind]
    for name in ("subtype", "rule"):
        values = sorted(set(counts[name].dropna()) - {""})
        for value in getattr(case_filter, name):
            if value not in values:
                raise NotFound(f"{name} of {case_filter.kind}", value, values)
    for name, value in case_filter.tag:
        values_by_tag = estimates.tag_values_by_name(store, question_set, case_filter.kind)
        if name not in values_by_tag:
            raise NotFound("tag", name, sorted(values_by_tag))
        if value not in values_by_tag[name]:
            raise NotFound(f"value of the tag '{name}'", value, values_by_tag[name])
