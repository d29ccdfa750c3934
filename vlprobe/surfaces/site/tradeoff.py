"""Trade-off on a site: which model keeps its score when a caption is only reworded, and notices wrong captions."""

from vlprobe import views
from vlprobe.registry import is_control
from vlprobe.render import findings, tradeoff
from vlprobe.render.charts.styles import DISTINCT, emphasised
from vlprobe.surfaces.site.subject import Subject, Values, entries
from vlprobe.types import Metric
from vlprobe.types.presentation import TradeOff
from vlprobe.views.filter import Filter
from vlprobe.views.records import PointRow, PrintedRow, records
from vlprobe.views.wall import WallCard

UNIT = "cosine"


def kind_of_lie(subject: Subject) -> str:
    """The kind of cases of the metric that should be high; "" where the probe has no trade-off, or no such case."""
    sides = subject.presentation.trade_off
    kind = subject.question_set.metrics[sides.ups[0]].kinds[0] if sides else ""
    return kind if kind in subject.kinds else ""


def tradeoff_values(subject: Subject, sides: TradeOff) -> tuple[Values, list[int]]:
    """Return the data of the page, and the numbers of the cases that it shows."""
    store, question_set = subject.store, subject.question_set
    down, up = (question_set.metrics[name] for name in (sides.down, sides.ups[0]))
    table = views.tradeoff.trade_off(store, question_set, up.name, unit=UNIT)
    points = sorted(
        records(PointRow, table),
        key=lambda row: (is_control(row.model), -row.y if row.y == row.y else 9e9),
    )
    fit = views.paired_tests.fit_models(store, question_set)
    leaders = views.paired_tests.leaders(store, question_set, unit=UNIT)
    x_unit, y_unit = _unit(down), _unit(up)
    finding = findings.trade_off(
        findings.Sides(
            points,
            leaders[down.name],
            leaders[up.name],
            fit,
            subject.names,
            (x_unit, y_unit),
            (down.label.lower(), up.label.lower()),
            sides.shifted_by,
        )
    )
    complete = [point for point in points if point.x == point.x and point.y == point.y]
    plane = tradeoff.plane(complete, fit, x_unit, y_unit)
    printed: list[PrintedRow] = []
    if not views.estimates.mixed_kinds(store, question_set):
        printed = records(PrintedRow, views.tradeoff.published_trade_off(up.name))
    pinned = finding.best or subject.models[0]
    looks_of_models = {model: subject.model_looks[model] for model in subject.models}
    picture = tradeoff.picture_data(
        points,
        set(table.loc[table["front"].astype(bool), "model"]),
        printed,
        plane,
        emphasised(looks_of_models, {pinned}),
        subject.names,
        views.papers.chances(store, question_set)[up.name],
        set(subject.models) if len(subject.models) <= DISTINCT else {pinned},
    )
    cards = {model: _worst(subject, model) for model in subject.models}
    for mark in entries(picture["marks"]):
        mark["model"] = subject.keys[str(mark["model"])]
    values = {
        "heading": finding.heading,
        "detail": finding.detail,
        "picture": picture
        | {
            "pinned": subject.keys[pinned],
            "list": "Models: a press shows the worst mistake of one",
            "examples": {
                subject.keys[model]: _example(subject, model, card) for model, card in cards.items()
            },
        },
    }
    return values, [card.case for card in cards.values() if card]


def _unit(metric: Metric) -> str:
    return "rate" if metric.unit == "rate" else UNIT


def _worst(subject: Subject, model: str) -> WallCard | None:
    """The worst mistake of a model."""
    case_filter = Filter(model, kind_of_lie(subject))
    cards, _, _ = views.wall.wall(subject.store, subject.question_set, case_filter, 1, 1)
    return cards[0] if cards else None


def _example(subject: Subject, model: str, card: WallCard | None) -> Values:
    case_filter = Filter(model, kind_of_lie(subject), outcome="all")
    counts = views.cases.outcomes(subject.store, subject.question_set, case_filter)
    source = subject.shelf.key(card.images[0]) if card and card.images else ""
    return tradeoff.example_data(card, counts["fooled"], source)
