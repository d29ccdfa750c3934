"""The Trade-off page of a site: the dashboard's figure, a table of values, and each model's worst mistake."""

import math

import htpy

from vlprobe import views
from vlprobe.case.card import case_card, wrong_captions
from vlprobe.features.tradeoff import data
from vlprobe.features.tradeoff.data import TradeOffData
from vlprobe.render.charts.theme import page_figures
from vlprobe.render.html.elements import column_heads, embed, mark, table
from vlprobe.render.numbers import TOO_FEW, interval, number
from vlprobe.surfaces.site.explore import inert, pictures_and_captions
from vlprobe.surfaces.site.home import page
from vlprobe.surfaces.site.subject import Subject, Values


def kind_of_lie(subject: Subject) -> str:
    """Return the kind of case that the metric on the y axis (higher is better) is computed from.

    Return "" if the probe has no trade-off or the question set has no such cases.
    """
    sides = subject.presentation.trade_off
    kind = subject.question_set.metrics[sides.ups[0]].kinds[0] if sides else ""
    return kind if kind in subject.kinds else ""


def tradeoff_values(subject: Subject) -> tuple[Values, list[int]]:
    """Return the data for the Trade-off page, and the numbers of the cases on it."""
    shows_published = not views.estimates.mixed_kinds(subject.question_set)
    trade_off = data.trade_off_data(subject.question_set, shows_published=shows_published)
    finding = trade_off.finding(subject.names)
    pinned = finding.best or subject.models[0]
    figure = data.trade_off_figure(trade_off, subject.model_looks, subject.names, {pinned})

    alternative = data.alternative(trade_off, subject.names)
    examples, numbers = {}, []
    for model in subject.models:
        examples[subject.keys[model]], shown = _example(subject, trade_off, model)
        numbers += shown
    values: Values = {
        "heading": finding.heading,
        "detail": finding.detail,
        "figure": page_figures(
            figure, alternative, lambda values: f"model={subject.keys[values[0]]}"
        ),
        "numbers": inert(
            [
                (
                    htpy.p(".quiet.small")[note]
                    for note in data.edge_notes(trade_off, subject.names)
                ),
                htpy.p(".quiet.small")[data.other_note(trade_off), data.arms_note(trade_off)],
                _table(subject, trade_off),
            ]
        ),
        "pinned": subject.keys[pinned],
        "examples": examples,
    }
    return values, numbers


def _table(subject: Subject, trade_off: TradeOffData) -> htpy.Node:
    """Return a table with each model's two values. A model's name links to its worst mistake."""

    def cell(value: float, low: float, high: float, unit: str) -> htpy.Element:
        small = "" if math.isnan(value) else interval(low, high, unit) or f"(-, {TOO_FEW})"
        return htpy.td[number(value, unit), htpy.br, htpy.small[small]]

    rows = [
        htpy.tr[
            htpy.th(scope="row")[
                embed(mark(subject.model_looks[point.model])),
                " ",
                htpy.a(href=f"#model={subject.keys[point.model]}")[subject.names[point.model]],
            ],
            (cell(*values) for _, values in trade_off.rows(point.model)),
        ]
        for point in trade_off.points
    ]
    heads = column_heads(["Model", *(label for label, _ in trade_off.rows(""))])
    return embed(table("Trade-off for each model", heads, [str(row) for row in rows]))


def _example(subject: Subject, trade_off: TradeOffData, model: str) -> tuple[str, list[int]]:
    """Return a model's worst mistake as HTML, with a link to its other mistakes, and the case number."""
    failures = data.failures(trade_off.up, model)
    question_set = subject.question_set
    cards, _, _ = views.wall.wall(question_set, failures, 1, 1)
    kind = subject.presentation.kind(failures.kind)
    nodes: list[htpy.Node] = [
        htpy.h2[embed(mark(subject.model_looks[model])), " ", htpy.bdi[subject.names[model]]]
    ]
    if not cards:
        return inert(
            [nodes, htpy.p(".quiet")[f"None of the {wrong_captions(kind)} fools this model here."]]
        ), []
    markup = pictures_and_captions(subject, case_card(cards[0], kind))
    query = {"set": subject.key, "kind": failures.kind, "model": subject.keys[model]}
    n_failures = views.cases.outcomes(question_set, failures)["fooled"]
    nodes += [
        htpy.p(".quiet")["Its worst mistake:"],
        embed(markup["pictures"]),
        embed(markup["captions"]),
        htpy.a(".press", href=page("explore", **query))[
            f"{data.failures_link(n_failures, wrong_captions(kind))} →"
        ],
    ]
    return inert(nodes), [cards[0].case]
