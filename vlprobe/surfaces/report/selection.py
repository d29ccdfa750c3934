"""Export the cases that pass a filter as a file for spreadsheets (CSV) or programs (JSON)."""

import csv
import io
import json

from vlprobe import views
from vlprobe.case.card import CHOICE_WORDS
from vlprobe.render.numbers import shortest
from vlprobe.storage import access, annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.spreadsheets import defused
from vlprobe.types import Picture
from vlprobe.views.bodies import stored_body
from vlprobe.views.filter import Filter
from vlprobe.views.records import AnswerRow, FailureRow, records
from vlprobe.views.runs import QuestionSet
from vlprobe.views.wall import replaced_words, verdict_of

MOST = 10_000  # cases in one file
# Fields of a case that are exported unchanged
PLAIN = ("id", "item", "kind", "subtype", "rule")


def as_json(question_set: QuestionSet, case_filter: Filter) -> str:
    """Return a filter, the number of cases that pass it, and the first MOST of these cases. Unknown values are null."""
    cases, total = _cases(question_set, case_filter)
    content = {
        "question_set": question_set.key,
        "filter": case_filter.words(),
        "total": total,
        "cases": cases,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)


def as_csv(question_set: QuestionSet, case_filter: Filter) -> str:
    """Return the first MOST cases that pass a filter, one case per row. A field with several values has several
    columns.

    Text that a spreadsheet could interpret as a formula is prefixed with an apostrophe. Unknown values are empty.
    """
    cases, _ = _cases(question_set, case_filter)
    rows = [_flat(case) for case in cases]
    names = list(dict.fromkeys(name for row in rows for name in row))
    stems = list(dict.fromkeys(name.split(" ")[0] for name in names))
    names.sort(key=lambda name: stems.index(name.split(" ")[0]))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([defused(name) for name in names])
    writer.writerows([[defused(row.get(name)) for name in names] for row in rows])
    return buffer.getvalue()


def _cases(question_set: QuestionSet, case_filter: Filter) -> tuple[list[dict], int]:
    table, total = views.cases.failures(question_set, case_filter, 1, MOST)
    cases = records(FailureRow, table)
    current = annotations.read(question_set.store, question_set.key).current
    annotated = {annotation.case: annotation for annotation in current}
    answers = views.rows.answer_rows(question_set, [case.case for case in cases])
    rows, root = [], f"{question_set.store.root}/"
    for case in cases:
        body = stored_body(question_set.probe, case.kind)
        texts = ("", "") if body.uses_answer else body.texts(case, "")
        changed = replaced_words(case, *texts)
        rows.append(_case(case, changed, answers[case.case], annotated.get(case.case), root))
    return rows, total


def relative_name(name: str, root: str) -> str:
    """Return a picture's name in tables, with paths that start in the folder `root` (with a slash at the end)."""
    in_json = json.dumps(root)[:-1]  # the name of an edited picture is JSON
    return name.removeprefix(root).replace(in_json, '"')


def _case(
    case: FailureRow,
    changed: tuple[str, str],
    answers: dict[str, AnswerRow],
    annotation: Annotation | None,
    root: str,
) -> dict[str, object]:
    """Return one case as a dict for the JSON export. Paths start in the cache; a read-only dashboard has none."""
    names = [relative_name(name, root) for name in case.images]
    if access.read_only():
        names = [Picture.from_name(name).path.name for name in names]
    return {
        **{name: getattr(case, name) for name in PLAIN},
        **dict(zip(("source", "target"), changed, strict=True)),
        "margin": shortest(case.margin),
        "texts": list(case.texts),
        "roles": list(case.roles),
        "pictures": names,
        "scores": [shortest(score) for score in case.scores],
        "margins": {model: shortest(answer.margin) for model, answer in sorted(answers.items())},
        "choices": {
            model: CHOICE_WORDS[verdict_of(answer.margin)]
            for model, answer in sorted(answers.items())
            if not answer.is_scored
        },
        "dataset_tags": {name: value for name, value in dict(case.tags).items() if value},
        "tags": list(annotation.tags) if annotation else [],
        "note": annotation.note if annotation else "",
    }


def _flat(case: dict) -> dict[str, object]:
    """Return a case as a spreadsheet row, with one column for each entry in a list or dict."""
    row: dict[str, object] = {}
    for name, value in case.items():
        if isinstance(value, dict):
            row |= {f"{name.removesuffix('s')} {key}": entry for key, entry in value.items()}
        elif isinstance(value, list) and name != "tags":
            row |= {
                f"{name.removesuffix('s')} {number}": entry for number, entry in enumerate(value, 1)
            }
        else:
            row[name] = ", ".join(value) if isinstance(value, list) else value
    return row
