"""The picture of steady against alert: marks are where their numbers are, and only real models set the frame."""

import json
import math

import pytest

from vlprobe.render import tradeoff
from vlprobe.render.charts.styles import styles
from vlprobe.views.records import PointRow, PrintedRow
from vlprobe.views.wall import WallCard

NAN = math.nan
REAL = [
    PointRow("one", 0.010, 0.008, 0.013, 0.90, 0.85, 0.93),
    PointRow("two", 0.020, 0.015, 0.022, 0.95, 0.91, 0.97),
]
CONTROL = PointRow("control:random", 0.14, 0.13, 0.15, 0.50, 0.48, 0.52)
UNKNOWN = PointRow("three", NAN, NAN, NAN, 0.5, 0.4, 0.6)
PRINTED = [
    PrintedRow("Near ViT-B/16 (OpenAI)", 0.012, 0.92, "table 3 prints more"),
    PrintedRow("Low", 0.012, 0.46, ""),
    PrintedRow("Lower ViT-L", 0.058, 0.65, ""),
    PrintedRow("Far", 0.058, 0.92, ""),
]
NAMES = {"one": "One", "two": "Two", "three": "Three", "control:random": "Coin flip"}
FIT = {"one", "two", "three"}


def picture(points, printed=(), front=(), chance=0.5) -> dict:
    known = [point for point in points if not math.isnan(point.x)]
    plane = tradeoff.plane(known, FIT, "cosine", "rate")
    return tradeoff.picture_data(points, front, printed, plane, styles(NAMES), NAMES, chance)


def value(place: float, ticks: list[dict]) -> float:
    """What an axis says of a place, read off two of its ticks."""
    (first, low), (last, high) = (
        (tick["at"], float(tick["text"].removesuffix(" %"))) for tick in (ticks[0], ticks[-1])
    )
    return low + (place - first) / (last - first) * (high - low)


def test_a_mark_stands_where_the_axes_say_its_numbers_are():
    data = picture(REAL)
    for mark, point in zip(data["marks"], REAL, strict=True):
        x, y = mark["place"]
        assert value(x, data["xTicks"]) == pytest.approx(point.x, abs=2e-5)
        assert value(y, data["yTicks"]) == pytest.approx(100 * point.y, abs=0.02)
        ends = sorted(value(end, data["xTicks"]) for end in mark["across"])
        assert ends == pytest.approx([point.x_low, point.x_high], abs=2e-5)
        ends = sorted(value(end, data["yTicks"]) for end in mark["along"])
        assert ends == pytest.approx([100 * point.y_low, 100 * point.y_high], abs=0.02)


def test_steadier_is_to_the_right_and_more_alert_above():
    one, two = picture(REAL)["marks"]
    assert one["place"][0] > two["place"][0]
    assert two["place"][1] < one["place"][1]  # from the top


def test_the_frame_holds_every_interval_of_real_models_and_nothing_else_moves_it():
    alone, crowd = picture(REAL), picture([*REAL, CONTROL, UNKNOWN], PRINTED)
    for mark in alone["marks"]:
        assert all(0 < end < 100 for end in (*mark["across"], *mark["along"]))
    assert crowd["xTicks"] == alone["xTicks"] and crowd["yTicks"] == alone["yTicks"]
    assert crowd["marks"][:2] == alone["marks"]
    assert [mark["place"] for mark in crowd["marks"][2:]] == [None, None]


def test_what_is_outside_is_named_at_its_side_with_its_number():
    notes = {note["side"]: note["text"] for note in picture([*REAL, CONTROL], PRINTED)["edges"]}
    below = notes["below"].replace("\u00a0", " ")
    assert below == (
        "below the chart: Coin flip 50.0 %, a control · Low and Lower L, as printed, 46.0 to 65.0 %"
    )
    assert notes["left"] == "further to the left: Far, as printed, 0.0580"
    assert set(notes) == {"below", "left"}
    assert picture(REAL)["edges"] == []


def test_a_ring_has_a_short_name_and_says_all_in_its_tooltip():
    (ring,) = picture(REAL, PRINTED)["rings"]
    assert ring["name"] == "Near B/16"
    assert "Near ViT-B/16 (OpenAI), as printed, on other pictures" in ring["label"]
    assert ring["label"].endswith("table 3 prints more")


def test_controls_alone_have_a_frame_of_their_own():
    (mark,) = picture([CONTROL])["marks"]
    assert mark["place"] is not None and all(0 < place < 100 for place in mark["place"])


def test_the_line_of_the_front_goes_through_its_models_only_and_takes_two():
    assert picture(REAL, front={"one"})["front"] == []
    data = picture(REAL, front={"one", "two"})
    assert data["front"] == [mark["place"] for mark in data["marks"]]


def test_a_model_of_too_few_pictures_has_a_mark_without_arms_and_says_why():
    few = [PointRow("one", 0.01, NAN, NAN, 0.9, NAN, NAN)]
    data = picture(few)
    assert "NaN" not in json.dumps(data)
    (mark,) = data["marks"]
    assert set(mark["across"]) == {mark["place"][0]} and set(mark["along"]) == {mark["place"][1]}
    assert mark["label"].count("(-, fewer than 5 pictures)") == 2
    assert data["legend"] == [("arm", "no 95 % intervals: fewer than 5 pictures")]
    assert picture(REAL)["legend"] == [("arm", "lines: 95 % intervals")]


def test_guessing_is_a_line_where_it_is_in_the_frame():
    assert picture(REAL)["guess"] is None and picture(REAL, chance=NAN)["guess"] is None
    guess = picture([CONTROL])["guess"]
    assert 0 < guess < 100


def test_no_known_model_gives_an_empty_picture_and_no_error():
    data = picture([UNKNOWN])
    assert data["marks"][0]["place"] is None
    assert data["marks"][0]["label"] == "Three: no answers on one of the two axes."
    assert data["label"].startswith("These models have no values")
    assert picture([])["marks"] == []


def test_rates_never_go_beyond_all_and_none():
    data = picture([PointRow("one", 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)])
    assert all(tick["text"] != "102 %" for tick in data["yTicks"])
    assert data["xTicks"][0]["text"].startswith("0")
    assert not any(tick["text"].startswith("-") for tick in data["xTicks"])


@pytest.mark.parametrize(
    ("low", "high", "unit", "texts"),
    [
        (0.8184, 0.9211, "rate", ["82 %", "84 %", "86 %", "88 %", "90 %", "92 %"]),
        (0.0037, 0.0161, "cosine", ["0.004", "0.006", "0.008", "0.010", "0.012", "0.014", "0.016"]),
        (0.8841, 0.8869, "rate", ["88.45 %", "88.50 %", "88.55 %", "88.60 %", "88.65 %"]),
        (-0.5, 2.0, "spread", ["-0.5", "0.0", "0.5", "1.0", "1.5", "2.0"]),
    ],
)
def test_ticks_are_round_and_as_exact_as_they_must_be(low, high, unit, texts):
    found = [tick["text"] for tick in tradeoff.Axis(low, high, unit).ticks()]
    assert found == texts or set(texts) <= set(found)
    assert 2 < len(found) <= tradeoff.MOST_TICKS + 1


def card(true_text: str, wrong_text: str, images: tuple[str, ...] = ("/data/a.png",)) -> WallCard:
    return WallCard(
        *(0, "a", "a", "flip", "color", "rule", "red", "blue", true_text, wrong_text, images, ""),
        *(-0.1, (), 0, (true_text, wrong_text), ("original", "different"), {}, None),
    )


def test_the_worst_mistake_has_both_captions_with_the_changed_words_marked():
    example = tradeoff.example_data(card("A red dog.", "A blue dog."), 1200, "data:x")
    assert example["note"] == "Its worst mistake:"
    assert example["press"] == "See the 1,200 wrong captions that fool it"
    assert example["picture"] == "a.png" and example["alt"] == "A red dog."
    for (style, runs), text, word in zip(
        example["lines"], ("A red dog.", "A blue dog."), ("red", "blue"), strict=True
    ):
        assert "".join(run for run, _ in runs) == text
        assert [run for run, kind in runs if kind] == [word]
        assert {kind for _, kind in runs if kind} == {style}


def test_no_mistake_is_said_and_leads_nowhere():
    example = tradeoff.example_data(None, 0, "")
    assert example["note"] == "No wrong caption fools it here." and not example["press"]


def test_a_very_long_caption_is_cut():
    example = tradeoff.example_data(card("a " * 5000, "b " * 5000), 1, "")
    assert all(
        len("".join(run for run, _ in runs)) <= tradeoff.LONGEST for _, runs in example["lines"]
    )
    assert example["press"] == "See the wrong caption that fools it"
