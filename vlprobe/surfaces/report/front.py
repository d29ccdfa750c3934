"""The first page of a report: the verdict on the models, one chart of the same numbers, and
failures of different pictures.
"""

import functools
import math
from collections.abc import Mapping

import htpy
import pandas as pd

from vlprobe import views
from vlprobe.render.findings import verdict
from vlprobe.render.html import cards
from vlprobe.render.html.embed import embed
from vlprobe.render.sentences import counted, sentence_names
from vlprobe.render.showcase import heading
from vlprobe.render.wall import BELIEVED
from vlprobe.storage import display_names
from vlprobe.surfaces.report import figures
from vlprobe.surfaces.report.page import remark
from vlprobe.surfaces.report.subject import LARGE, SMALL, UNIT, Subject
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import PairedTests
from vlprobe.views.records import CaseRow, answer_records, records

FAILURES = 6  # cases, each of another picture


def first_page(subject: Subject) -> list[htpy.Node]:
    """The verdict on the kind of question that Home shows first, its chart, and what fools most models.

    A model without others is compared with controls; one without these has only failures.
    """
    store, question_set = subject.store, subject.question_set
    name = views.showcase.kinds(store, question_set)[0]
    kind = subject.presentation.kind(name)
    renamed = display_names.read(store)
    rated = views.showcase.rated_models(question_set)
    models = rated if len(rated) > 1 else question_set.ordered_models
    names = sentence_names(models, renamed)
    nodes: list[htpy.Node] = []
    if len(models) > 1:
        comparison = views.paired_tests.compare_models(store, question_set, models, name, UNIT)
        sentences = verdict(comparison, kind, renamed)
        nodes = [
            htpy.h2[sentences.heading],
            htpy.p[sentences.detail],
            _chart(subject, comparison, kind, names),
        ]
    return [*nodes, *_failures(subject, name, names)]


def _chart(
    subject: Subject, comparison: PairedTests, kind: KindPresentation, names: Mapping[str, str]
) -> list[htpy.Node]:
    """The shares behind the verdict, one mark per model, with the names that the verdict uses."""
    lies = kind.lies[:1].upper() + kind.lies[1:]
    title = (
        "Moved on average"
        if kind.is_movement
        else f"{lies} {BELIEVED.get(kind.body, 'believed')} · lower is better"
    )
    contestants = pd.DataFrame(
        [(each.model, each.share, each.low, each.high) for each in comparison.contestants],
        columns=pd.Index(["model", "value", "low", "high"]),
    )
    if all(math.isnan(each.share) for each in comparison.contestants):
        return []
    chances = {"": comparison.guess}
    dotted = "" if math.isnan(comparison.guess) else " Dotted: what guessing gets."
    return [
        figures.shares({"": contestants}, title, comparison.unit, subject.styles, chances, names),
        remark(f"Lines through marks: 95 % intervals.{dotted}"),
    ]


def _failures(subject: Subject, kind_name: str, names: Mapping[str, str]) -> list[htpy.Node]:
    """Cases that fool most models, or move the first model most, one a picture."""
    store, question_set = subject.store, subject.question_set
    kind = subject.presentation.kind(kind_name)
    model = views.showcase.headline_models(store, question_set)[0]
    showcases = views.showcase.showcases(store, question_set, kind_name, model, count=FAILURES)
    if not showcases:
        return []
    numbers = [showcase.card.case for showcase in showcases]
    case_rows = records(CaseRow, views.cases.questions(store, question_set, numbers))
    answers = answer_records(views.cases.answers(store, question_set, numbers))
    thumbnail = functools.partial(cards.source, side=SMALL)
    articles = []
    for showcase, case in zip(showcases, case_rows, strict=True):
        case_answers = answers[case.case]
        card = cards.card(
            case,
            subject.presentation,
            case_answers,
            [model],
            subject.styles,
            thumbnail,
            called=names,
        )
        articles.append(
            htpy.article[
                htpy.p[htpy.strong[" ".join(heading(showcase, kind, names[model]))]],
                embed(cards.shots(case, kind, case_answers[model], LARGE)),
                htpy.div(".vp-card")[embed(card)],
            ]
        )
    subject_words = (
        f"What moves {names[model]} most" if kind.is_movement else "What fools most models"
    )
    title = f"{subject_words}: {counted(len(articles), 'case')}"
    return [
        htpy.h3[title],
        remark(f"Verdicts and scores: {names[model]}."),
        htpy.div(".vp-grid.vp-thirds")[articles],
    ]
