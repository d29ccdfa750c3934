"""A self-contained web page about a single case, to send or to keep."""

import functools

import htpy

from vlprobe import __version__, views
from vlprobe.case import html
from vlprobe.case.card import case_card
from vlprobe.render.attribution import published_line
from vlprobe.render.charts.styles import styles
from vlprobe.render.html.elements import embed
from vlprobe.storage import annotations
from vlprobe.storage.store import Store
from vlprobe.surfaces.page import self_contained
from vlprobe.surfaces.report.report import commands, remark
from vlprobe.surfaces.site.pages import style
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

LARGE, SMALL = 1000, 280  # pixels, the longest side of a picture


def case_page(
    store: Store, question_set: QuestionSet, model: str, number: int, second_model: str = ""
) -> str:
    """Return a page about one case: pictures, texts, every model's scores, tags, notes, and how to find the case again.

    Args:
        model: The model whose verdict comes first.
        second_model: A model to compare with, if any.
    """
    probe, presentation = question_set.probe, question_set.presentation
    (case,) = views.wall.cards(store, question_set, Filter(model), (number,))
    kind = presentation.kind(case.kind)
    answers = views.rows.answer_rows(store, question_set, [number])[number]
    models = list(
        dict.fromkeys([model, *filter(None, [second_model]), *question_set.ordered_models])
    )
    annotated = annotations.read(store, question_set.key).current
    annotation = next((annotation for annotation in annotated if annotation.case == number), None)
    large, small = (functools.partial(html.data_address, side=side) for side in (LARGE, SMALL))
    looks = styles(views.runs.models(store))
    card, answer = case_card(case, kind, answers), answers[model]
    origin = {"Dataset": question_set.runs[0].dataset, "Question set": question_set.key}
    title = f"One case of {probe}"
    nodes = [
        htpy.h1[title],
        htpy.p[kind.question],
        remark(f"The verdict is for {model}."),
        published_line(question_set.runs),
        html.shots(card, large),
        htpy.div(".vp-card")[
            html.verdict(kind, answer.margin, answer.is_scored),
            html.captions([*card.texts, *card.more_texts]),
            html.strips(card.strips(everything=True), small),
            html.numbers(card, models, looks, beside=bool(second_model)),
        ],
        annotation and html.chips(annotation.tags, annotation.note),
        htpy.h2["Details"],
        embed(html.properties(card, origin)),
        htpy.h2["How to reproduce this"],
        commands(html.command(question_set.run(model).key, card)),
        remark(
            f"Made by vlprobe {__version__}. This page loads no external content and runs no code."
        ),
    ]
    return self_contained(title, style(), htpy.main[nodes])
