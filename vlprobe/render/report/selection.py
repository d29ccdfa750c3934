"""The cases that pass a filter as a file: for a spreadsheet, or for a program."""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from vlprobe import views
from vlprobe.storage import access, annotations
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

MOST = 10_000  # cases in one file
# What makes a spreadsheet run a cell, wide letters too: at its beginning, and where semicolons and lines divide cells.
FORMULA = re.compile("(?:^|(?<=[;\t\r\n]))(?=[ ]*[=+@\uff1d\uff0b\uff0d\uff20-])|^(?=[\t\r\n])")
PLAIN = ("id", "item", "kind", "subtype", "rule", "source", "target", "margin")


def as_json(store: Store, question_set: QuestionSet, chosen: Filter) -> str:
    """What was chosen, how many cases pass, and the first MOST of them in the filter's order; unknown is null."""
    cases, total = _cases(store, question_set, chosen)
    told = {"question_set": question_set.key, "filter": asdict(chosen), "total": total, "cases": cases}
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False)


def as_csv(store: Store, question_set: QuestionSet, chosen: Filter) -> str:
    """A row a case, the first MOST of those that pass; what has several values has several columns.

    Text that a spreadsheet would take for a formula gets an apostrophe in front. Unknown is empty.
    """
    cases, _ = _cases(store, question_set, chosen)
    rows = [_flat(case) for case in cases]
    names = list(dict.fromkeys(name for row in rows for name in row))
    place = {name: number for number, name in enumerate(dict.fromkeys(name.split(" ")[0] for name in names))}
    names.sort(key=lambda name: place[name.split(" ")[0]])
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([defused(name) for name in names])
    writer.writerows([[defused(row.get(name)) for name in names] for row in rows])
    return buffer.getvalue()


def defused(value: object) -> object:
    """A cell that no spreadsheet runs: what begins like a formula gets an apostrophe; numbers stay numbers.

    >>> defused("=1+1"), defused("-"), defused(-0.5), defused("a dog; =1+1")
    ("'=1+1", "'-", -0.5, "a dog;' =1+1")
    """
    return FORMULA.sub("'", value) if isinstance(value, str) else value


def _pictures(names: Sequence[str]) -> list[str]:
    """Where the pictures are; strangers are told their names alone."""
    return [Picture.from_name(name).path.name for name in names] if access.read_only() else list(names)


def _cases(store: Store, question_set: QuestionSet, chosen: Filter) -> tuple[list[dict], int]:
    table, total = views.cases.failures(store, question_set, chosen, 1, MOST)
    said = {one.case: one for one in annotations.read(store, question_set.key).current}
    margins = views.cases.answers(store, question_set, table["case"].tolist()).pivot(
        index="case", columns="model", values="margin"
    )
    found = []
    for row in table.itertuples():
        ours = said.get(row.case)
        found.append(
            {name: _known(getattr(row, name)) for name in PLAIN}
            | {"texts": list(row.texts), "roles": list(row.roles), "pictures": _pictures(row.images)}
            | {"scores": [_known(score) for score in row.scores]}
            | {"margins": {model: _known(margin) for model, margin in margins.loc[row.case].items()}}
            | {"dataset_tags": {name: value for name, value in dict(row.tags).items() if value}}
            | {"tags": list(ours.tags) if ours else [], "note": ours.note if ours else ""}
        )
    return found, total


def _known(value: object) -> object:
    """A plain value; None where it is unknown. Scores are float32: as few digits as name them."""
    if isinstance(value, str):
        return value
    return None if math.isnan(value) else float(str(np.float32(value)))


def _flat(case: dict) -> dict[str, object]:
    row: dict[str, object] = {}
    for name, value in case.items():
        if isinstance(value, dict):
            row |= {f"{name.removesuffix('s')} {key}": own for key, own in value.items()}
        elif isinstance(value, list) and name != "tags":
            row |= {f"{name.removesuffix('s')} {place}": own for place, own in enumerate(value, 1)}
        else:
            row[name] = ", ".join(value) if isinstance(value, list) else value
    return row
