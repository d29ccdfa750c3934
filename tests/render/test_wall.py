"""What a card of the wall says, for every kind of case, any number of models and any caption."""

import dataclasses
import math

import pytest

from tests.render.scenes import TRAINS
from vlprobe.render import case_lines, wall
from vlprobe.render.html import drawer
from vlprobe.render.words import presentations
from vlprobe.views.records import AnswerRow
from vlprobe.views.wall import ModelVerdict, WallCard, model_verdict, verdict_of

FLIP = presentations()["lgip"].kind("flip")


def verdicts(margins: dict[str, float], spread: float = 0.25) -> tuple[ModelVerdict, ...]:
    return tuple(
        ModelVerdict(name, margin, verdict_of(margin), spread=spread)
        for name, margin in margins.items()
    )


def card(**changes: object) -> WallCard:
    margins = {"demo:softmax": -0.1, "demo:weak": 0.2, "control:random": -0.3}
    known = {"verdicts": verdicts(margins), "more": 3, "texts": (TRAINS.true_text,)}
    known["roles"] = ("original",)
    return dataclasses.replace(TRAINS, **known | changes)


def test_a_card_says_what_changed_and_how_many_models_believe_it():
    values = wall.card_data(card(), FLIP, lambda name: f"address of {name}")
    assert values["name"] == (
        "Trains became dogs, believed by 1 of 2 models: "
        "On the sand, three yellow trains are standing."
    )
    assert values["lines"] == [[("trains", "true"), ("became", "arrow"), ("dogs", "lie")]]
    assert values["verdicts"] == ["fooled", "held"]  # a control is not counted
    assert (values["count"], values["badge"]) == ("1 of 2", "+3")
    assert values["tip"] == "fooled: Tiny CLIP\nheld: Half-trained"
    assert values["frames"] == [
        {
            "source": "address of folder/a.png",
            "name": "a.png",
            "style": "",
            "text": "On the sand, three yellow trains are standing.",
            "credit": None,
        }
    ]


@pytest.mark.parametrize(
    ("margins", "count", "squares"),
    [
        ({"a": -1.0}, "fooled", 1),
        ({"a": 0.0}, "cannot tell", 1),
        ({"a": math.nan}, "no answer", 1),
        ({"control:random": -1.0, "control:constant": 0.0}, "2 of 2", 2),
        ({f"m{index}": index - 30.5 for index in range(43)}, "31 of 43 fooled", 0),
        ({f"m{index}": 1.0 for index in range(12)}, "0 of 12", 12),
    ],
)
def test_any_number_of_models_is_counted(margins: dict[str, float], count: str, squares: int):
    values = wall.card_data(card(verdicts=verdicts(margins)), FLIP, lambda _: "")
    assert values["count"] == count
    assert len(values["verdicts"]) == squares


@pytest.mark.parametrize(
    ("source", "target", "line"),
    [
        ("Two", "Four", [("Two", "true"), ("became", "arrow"), ("Four", "lie")]),
        ("", "not", [("added: ", "quiet"), ("not", "lie")]),
        ("red", "", [("left out: ", "quiet"), ("red", "true")]),
    ],
)
def test_words_that_were_exchanged_added_or_left_out(source: str, target: str, line: list):
    assert wall.change(card(source=source, target=target), FLIP) == line


def test_a_capital_that_begins_a_caption_is_no_part_of_the_words():
    known = card(source="Two", target="Four", true_text="Two dogs.", wrong_text="Four dogs.")
    assert wall.changed_words(known) == ("two", "four")
    assert wall.changed_words(card(source="USA", true_text="USA wins.")) == ("USA", "dogs")


def test_a_mixed_picture_that_won_is_framed_as_wrong_and_one_that_did_not_is_not():
    kind = presentations()["rococo"].kind("t2i")
    mixed = (
        '{"path": "folder/a.png", "kind": "mix", "partner": "folder/b.png", "lam": 0.9, "seed": 1}'
    )
    won = card(wrong_image=mixed)
    assert wall.frames(won, kind) == [(mixed, "wrong")]
    assert wall.frames(dataclasses.replace(won, margin=0.1), kind) == [(mixed, "")]
    assert wall.frames(card(), kind) == [("folder/a.png", "")]
    assert wall.accessible_name(won, kind).startswith(
        "A mixed picture, believed by 1 of 2 models: "
    )


def test_rankings_say_how_many_of_the_first_pictures_stayed():
    kind = presentations()["prsm"].kind("ranking")
    top = '[["a", "b", "c"], ["a", "b", "c"], ["c", "d", "e"]]'
    answer = AnswerRow(7, "demo:softmax", -0.1, (), {"top": top})
    ranked = card(answer=answer, texts=("one", "two", "three"))
    assert wall.stayed(ranked) == (1, 3)
    assert wall.card_data(ranked, kind, lambda _: "")["notes"] == ["1 of the first 3 stayed"]
    assert wall.stayed(card()) is None
    strips = drawer.ranking_strips(ranked, {})
    assert strips.count("<img") == 6 and "“three”" in strips


def test_a_case_without_pictures_shows_its_texts():
    kind = presentations()["visla"].kind("t2t")
    texts = card(
        images=(), texts=("one", "two", "x" * 5000), roles=("original", "same", "different")
    )
    values = wall.card_data(texts, kind, lambda _: "")
    assert values["frames"] == []
    assert [line[0][0] for line in values["texts"]] == ["✓ ", "✓ ", "✕ "]
    assert len(values["texts"][2][1][0]) == 160


@pytest.mark.parametrize(
    ("outcome", "count", "sentence"),
    [
        ("fooled", 763, "763 lies believed, on 282 pictures"),
        ("tied", 1, "1 lie scored exactly as high as the truth, on 282 pictures"),
        ("held", 5344, "5,344 lies seen through, on 282 pictures"),
        ("all", 6107, "6,107 lies, on 282 pictures"),
    ],
)
def test_the_heading_is_the_finding(outcome: str, count: int, sentence: str):
    assert wall.heading(FLIP, outcome, count, 282) == sentence


@pytest.mark.parametrize("margin", [-0.2, 0.0, 0.2, math.nan])
@pytest.mark.parametrize("probe", list(presentations()))
def test_every_kind_has_captions_and_bars_with_hostile_texts_escaped(probe: str, margin: float):
    hostile = ("</script>a", "<img src=x onerror=alert(1)>", "\u202eقطة", "y " * 2500)
    top = '[["a", "b"], ["b", "c"]]'
    answer = AnswerRow(7, "demo:softmax", margin, (), {"top": top})
    for name, kind in presentations()[probe].kinds.items():
        known = card(
            kind=name,
            texts=hostile,
            roles=("original", "same", "different", "different"),
            true_text=hostile[0],
            wrong_text=hostile[1],
            source=hostile[0],
            target=hostile[1],
            margin=margin,
            verdicts=verdicts({"demo:softmax": margin, "unknown <b>": -margin}),
            answer=answer,
            images=("a", "b"),
        )
        page = drawer.captions(known, kind) + drawer.bars(known, kind, {})
        assert "<img src=x" not in page and "</script>" not in page and "<b>" not in page
        assert page.count("<li ") == 2
        assert isinstance(wall.card_data(known, kind, lambda _: "")["name"], str)


def test_the_bars_have_one_zero_and_the_longest_reaches_the_end():
    page = drawer.bars(card(), FLIP, {})
    assert page.count("left:40.0%") >= 3
    assert "width:60.0%" in page and "left:0.0%;width:40.0%" in page
    assert "the lie wins by" in page
    held = card(verdicts=verdicts({"a": 0.5, "b": 0.25}), margin=0.5)
    assert "the truth wins by" in drawer.bars(held, FLIP, {})


def test_the_bar_of_a_model_with_larger_scores_is_not_longer_for_that():
    logits = model_verdict("logits", -8.0, spread=40.0)
    cosines = model_verdict("cosines", -0.1, spread=0.25)
    longer, shorter = case_lines.bars(card(verdicts=(cosines, logits)), FLIP).lines
    assert longer.width / shorter.width == pytest.approx((0.1 / 0.25) / (8 / 40))
    assert (longer.size, shorter.size) == ("by 0.100", "by 8.000")


@pytest.mark.parametrize("spread", [math.nan, 0.0])
def test_bars_are_equally_long_where_a_spread_is_unknown(spread: float):
    known = model_verdict("known", -0.1, spread=0.25)
    unknown = model_verdict("unknown", -8.0, spread=spread)
    held = model_verdict("held", 0.002, spread=0.25)
    tied = model_verdict("tied", 0.0, spread=spread)
    bars = case_lines.bars(card(verdicts=(known, unknown, held, tied)), FLIP)
    assert [line.width for line in bars.lines] == [0.5, 0.5, 0.5, 0.0]
    assert bars.title == "the lie wins"
