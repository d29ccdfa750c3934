"""One case as a web page that stands alone, to send to somebody or to keep."""

import functools

from vlprobe import views
from vlprobe.render.charts.styles import styles
from vlprobe.render.html import cards
from vlprobe.render.html.elements import ordered, tag
from vlprobe.render.report.page import page
from vlprobe.render.words import presentations
from vlprobe.storage import annotations
from vlprobe.storage.store import Store
from vlprobe.views.runs import QuestionSet

LARGE, SMALL = 1000, 280  # pixels a side


def case_page(store: Store, question_set: QuestionSet, model: str, number: int, other: str = "") -> str:
    """The case with its pictures, texts, every model's scores, what people said of it, and how to find it again.

    Args:
        store: Where results are.
        question_set: The models and their runs.
        model: Whose verdict stands first.
        number: The case.
        other: The model that it is compared with, if any.
    """
    probe, looks = question_set.probe, styles(views.runs.models(store))
    row = next(views.cases.questions(store, question_set, [number]).itertuples())
    presentation = presentations()[probe]
    said = cards.by_case(views.cases.answers(store, question_set, [number]))[number]
    names = list(dict.fromkeys([model, *filter(None, [other]), *ordered(question_set.models)]))
    small = functools.partial(cards.source, side=SMALL)
    noted = next((one for one in annotations.read(store, question_set.key).current if one.case == number), None)
    card = cards.card(row, presentation, said, names, looks, small, everything=True, beside=bool(other))
    return page(
        f"One case of {probe}",
        [
            tag("p", presentation.kind(row.kind).question),
            tag("p", f"The verdict is that of {model}.", class_="vp-quiet"),
            f'<article class="vp-one-case">{cards.shots(row, presentation.kind(row.kind), said[model], LARGE)}',
            f'<div class="vp-card">{card}</div>',
            cards.chips(noted.tags, noted.note) if noted else "",
            "</article>",
            tag("h2", "What is known of it"),
            cards.about(row, probe, {"Dataset": question_set.runs[0].dataset, "Question set": question_set.key}),
            tag("h2", "How to find it again"),
            tag("pre", cards.command(question_set.run(model).key, row)),
        ],
    )
