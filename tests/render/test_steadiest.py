"""What the trade-off says in words: nobody is called best where the order may be chance."""

import math

import pytest

from vlprobe.render import steadiest
from vlprobe.views.leaders import Leader
from vlprobe.views.records import PointRow

NAN = math.nan
A, B, C, D, E, CONTROL = "a", "b", "c", "d", "e", "control:random"


def point(model: str, x: float = 0.01, y: float = 0.9) -> PointRow:
    return PointRow(model, x, x - 0.001, x + 0.001, y, y - 0.01, y + 0.01)


def leads(model: str) -> Leader:
    return Leader("leads", (model,))


def tied(*models: str) -> Leader:
    return Leader("tied", models)


def told(
    steady: Leader, alert: Leader, models: str | tuple = (A, B, C), unfit: tuple = (), **units: str
) -> steadiest.Finding:
    fit = [model for model in models if model not in (*unfit, CONTROL)]
    names = {model: model.upper() for model in models}
    points = [point(model) for model in models]
    units = {"x_unit": "cosine", "y_unit": "rate"} | units
    return steadiest.finding(steadiest.Sides(points, steady, alert, fit, names, **units))


HEADINGS = [
    (leads(A), leads(A), (A, B, C), "A is the steadiest and the most alert."),
    (leads(A), leads(A), (A, B), "A is steadier and more alert."),
    (leads(A), leads(A), (A, B, CONTROL), "A is steadier and more alert."),
    (leads(A), leads(B), (A, B), "No model is best: A is steadier, B more alert."),
    (leads(A), leads(B), (A, B, C), "No model is best: A is the steadiest, B the most alert."),
    (leads(A), tied(B, A), (A, B, C), "A is the steadiest, and as alert as B."),
    (leads(A), tied(A, B), (A, B), "A is steadier, and as alert as B."),
    (leads(A), tied(A, B, C, D, E), (A, B, C, D, E), "A is the steadiest, and as alert as B, C and 2 others."),
    (leads(A), tied(B, C), (A, B, C), "A is the steadiest; B and C are tied as the most alert."),
    (tied(A, B), leads(C), (A, B, C), "C is the most alert; A and B are tied as the most steady."),
    (tied(B, A), leads(B), (A, B), "B is more alert, and as steady as A."),
    (tied(A, B), tied(B, A), (A, B), "A and B are tied."),
    (tied(A, B), tied(B, A), (A, B, C), "No model is best: B and A are tied on both counts."),
    (tied(A, B), tied(C, B), (A, B, C), "No model is best: A and B are tied as the steadiest, "
     "C and B are tied as the most alert."),
    (tied(A, B, C, D), tied(E, B), (A, B, C, D, E), "No model is best: four are tied as the steadiest, "
     "E and B are tied as the most alert."),
    (leads(A), Leader("unknown"), (A, B), "A is steadier."),
    (leads(A), Leader("chance", (B,)), (A, B), "No model is more alert than guessing."),
    (Leader("alone", (A,)), Leader("alone", (A,)), (A,), "A rejects 90.0 % of the lies."),
    (Leader("alone", (A,)), Leader("alone", (A,)), (A, CONTROL), "A rejects 90.0 % of the lies."),
    (Leader("unknown"), Leader("unknown"), (CONTROL,), "These are controls: they are meant to fail."),
    (Leader("unknown"), Leader("unknown"), (), "Nothing is known of how steady and how alert these models are."),
]  # fmt: skip


@pytest.mark.parametrize(("steady", "alert", "models", "heading"), HEADINGS)
def test_the_heading_says_who_is_clearly_better_and_no_more(steady, alert, models, heading):
    assert told(steady, alert, models).heading == heading


def test_where_nothing_is_above_chance_the_best_value_is_told():
    detail = told(leads(A), Leader("chance", (B,))).detail
    assert detail == "B rejects 90.0 % of the lies; a rewording moves its score by 0.0100."


def test_models_that_failed_their_checks_are_never_the_best():
    finding = told(Leader("unknown"), Leader("unknown"), (A, B), unfit=(A, B))
    assert finding.heading == (
        "No model here matches these pictures with their captions better than chance."
    )
    assert finding.best == ""
    alone = told(Leader("alone", (A,)), Leader("alone", (A,)), (A, B), unfit=(B,))
    assert "The others are not fit to be compared with it." in alone.detail


def test_unknown_points_take_no_part():
    points = [point(A), PointRow(B, NAN, NAN, NAN, 0.9, 0.8, 0.95)]
    sides = steadiest.Sides(
        points,
        Leader("alone", (A,)),
        Leader("alone", (A,)),
        [A, B],
        {A: "A", B: "B"},
        "cosine",
        "rate",
    )
    finding = steadiest.finding(sides)
    assert finding.heading == "A rejects 90.0 % of the lies." and "others" not in finding.detail


@pytest.mark.parametrize(
    ("units", "detail"),
    [
        ({}, "A rejects 90.0 % of the lies; a rewording moves its score by 0.0100."),
        (
            {"x_unit": "spread", "y_unit": "spread"},
            "The score of A falls by 0.900 at a lie; a rewording moves its score by 0.010 of its own spread.",
        ),
    ],
)
def test_the_detail_has_both_numbers_in_the_chosen_unit(units, detail):
    assert told(leads(A), leads(A), **units).detail == detail


def test_the_model_to_look_at_first_is_one_that_leads():
    assert told(tied(A, B), leads(C)).best == C
    assert told(leads(A), leads(B)).best == A
    assert told(tied(A, B), tied(B, A)).best == B
    assert told(leads(A), Leader("chance", (B,))).best == ""
