"""The text of a card on the wall, for every kind of case, any number of models and any caption."""

import dataclasses
import math
import re

import htpy
import pytest

from tests.render.scenes import TRAINS
from vlprobe.case import html, json
from vlprobe.case.card import RankingsCard, bars, case_card
from vlprobe.render import wall
from vlprobe.render.charts.styles import styles
from vlprobe.render.html.style import STYLE
from vlprobe.render.words import presentations
from vlprobe.views.records import AnswerRow
from vlprobe.views.wall import ModelVerdict, WallCard

FLIP = presentations()["lgip"].kind("flip")


def verdicts(margins: dict[str, float], spread: float = 0.25) -> tuple[ModelVerdict, ...]:
    return tuple(ModelVerdict(name, margin, spread=spread) for name, margin in margins.items())


def card(**changes: object) -> WallCard:
    margins = {"demo:softmax": -0.1, "demo:weak": 0.2, "control:random": -0.3}
    known = {"verdicts": verdicts(margins), "more": 3, "texts": (TRAINS.true_text,)}
    known["roles"] = ("original",)
    return dataclasses.replace(TRAINS, **known | changes)


def test_a_card_shows_the_changed_words_and_the_number_of_fooled_models():
    values = json.wall_card(case_card(card(), FLIP), lambda name: f"address of {name}")
    assert values["name"] == (
        "Trains became dogs, 1 of 2 models fooled: On the sand, three yellow trains are standing."
    )
    assert values["lines"] == [[("trains", "true"), ("became", "arrow"), ("dogs", "lie")]]
    squares = [("fooled", "Tiny CLIP: fooled"), ("held", "Half-trained: not fooled")]
    assert values["verdicts"] == squares  # controls are not counted
    assert (values["count"], values["badge"]) == ("1 of 2", "+3")
    assert values["tip"] == "fooled: Tiny CLIP\nnot fooled: Half-trained"
    assert values["frames"] == [
        {
            "source": "address of folder/a.png",
            "name": "a.png",
            "style": "",
            "text": "On the sand, three yellow trains are standing.",
            "credit": None,
        }
    ]


def test_changes_in_several_places_are_shown_as_a_whole_wrong_sentence_with_marks():
    words = {"source": "yellow, standing", "target": "red, parked"}
    wrong = "On the sand, three red trains are parked."
    shown = case_card(card(**words, wrong_text=wrong), FLIP)
    values = json.wall_card(shown, lambda name: name)
    assert shown.changed_words == ("", "") and "Words" not in shown.facts
    (line,) = values["lines"]
    assert "".join(text for text, _ in line) == f"wrong: {wrong}"
    assert [text for text, style in line if style == "lie"] == ["red", "parked"]
    cut = shown.wrong_runs(24)
    assert "".join(text for text, _ in cut) == f"{wrong[:23]}…" and ("red", "lie") in cut
    assert values["name"].startswith(
        "On the sand, three red trains are parked, 1 of 2 models fooled"
    )


def test_a_long_beginning_before_the_changed_words_of_a_wrong_caption_is_cut():
    changed = {"source": "three, yellow", "target": "four, red"}
    texts = {"true_text": f"On the sand near a {'very ' * 9}wide sea, three yellow trains stand."}
    texts["wrong_text"] = texts["true_text"].replace("three yellow", "four red")
    (line,) = json.wall_card(case_card(card(**changed, **texts), FLIP), lambda name: name)["lines"]
    text = "".join(text for text, _ in line)
    assert text.startswith("wrong: … wide sea, four red") and ("four red", "lie") in line
    texts = {name: f"{'On the sand, ' * 20}{text}" for name, text in texts.items()}
    cut = case_card(card(**changed, **texts), FLIP).wrong_runs(60)
    assert cut[0][0].startswith("… ") and ("four red", "lie") in cut
    assert len("".join(text for text, _ in cut)) <= 60
    unspaced = {
        "true_text": f"{'字' * 340} three yellow trains",
        "wrong_text": f"{'字' * 340} four red trains",
    }
    assert ("four red", "lie") in case_card(card(**changed, **unspaced), FLIP).wrong_runs(60)


def test_a_hostile_caption_of_many_equal_words_is_compared_only_at_its_beginning():
    texts = {"true_text": "a b " * 5000, "wrong_text": "b a c " * 3000}
    cut = case_card(card(**texts), FLIP).wrong_runs(60)  # takes hours if all words are compared
    assert len("".join(text for text, _ in cut)) <= 60


def test_two_words_that_trade_places_are_shown_with_a_two_way_arrow():
    words = {"source": "yellow, three", "target": "three, yellow"}
    shown = case_card(card(**words, wrong_text="On the sand, yellow three trains."), FLIP)
    (line,) = json.wall_card(shown, lambda name: name)["lines"]
    assert line == [("yellow", "lie"), ("swapped with", "swap"), ("three", "lie")]


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
    values = json.wall_card(case_card(card(verdicts=verdicts(margins)), FLIP), lambda _: "")
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
def test_a_change_replaces_adds_or_removes_words(source: str, target: str, line: list):
    assert case_card(card(source=source, target=target), FLIP).change == line


def test_the_initial_capital_of_a_caption_is_not_part_of_the_changed_words():
    known = card(source="Two", target="Four", true_text="Two dogs.", wrong_text="Four dogs.")
    assert case_card(known, FLIP).changed_words == ("two", "four")
    assert case_card(card(source="USA", true_text="USA wins."), FLIP).changed_words == (
        "USA",
        "dogs",
    )


def test_a_mixed_picture_is_framed_as_wrong_only_if_it_won():
    kind = presentations()["rococo"].kind("t2i")
    mixed = (
        '{"path": "folder/a.png", "kind": "mix", "partner": "folder/b.png", "lam": 0.9, "seed": 1}'
    )
    won = card(wrong_image=mixed)
    margins = {-0.1: "wrong", 0.1: ""}
    for margin, style in margins.items():
        (shot,) = case_card(dataclasses.replace(won, margin=margin), kind).front
        assert (shot.name, shot.style) == (mixed, style)
    (frame,) = json.wall_card(case_card(card(), kind), str)["frames"]
    assert (frame["name"], frame["style"]) == ("a.png", "")
    assert case_card(won, kind).name.startswith("A mixed picture, 1 of 2 models fooled: ")
    described = case_card(won, kind)
    assert json.wall_card(described, str)["notes"] == ["shown: ranked 1st instead"]
    (strip,) = described.strips()
    assert strip.label == "Ranked 1st instead: 90 % of the first picture, 10 % of the second"
    assert [shot.name for shot in strip.pictures] == ["folder/a.png", "folder/b.png"]


def test_rankings_count_the_first_pictures_that_stayed():
    kind = presentations()["prsm"].kind("ranking")
    top = '[["a", "b", "c"], ["a", "b", "c"], ["c", "d", "e"]]'
    answer = AnswerRow(7, "demo:softmax", -0.1, (), {"top": top})
    ranked = case_card(card(answer=answer, texts=("one", "two", "three")), kind)
    assert isinstance(ranked, RankingsCard) and ranked.stayed == (1, 3)
    assert json.wall_card(ranked, lambda _: "")["notes"] == ["1 of the top 3 pictures stayed"]
    unknown = case_card(card(), kind)
    assert isinstance(unknown, RankingsCard) and unknown.stayed is None
    strips = str(htpy.fragment[html.strips(ranked.strips(), str)])
    assert strips.count("<img") == 6 and "“three”" in strips


def test_a_case_without_pictures_shows_its_texts():
    kind = presentations()["visla"].kind("t2t")
    texts = card(
        images=(), texts=("one", "two", "x" * 5000), roles=("original", "same", "different")
    )
    values = json.wall_card(case_card(texts, kind), lambda _: "")
    assert values["frames"] == []
    assert [line[0][0] for line in values["texts"]] == ["✓ ", "✓ ", "✕ "]
    assert len(values["texts"][2][1][0]) == 160


@pytest.mark.parametrize(
    ("outcome", "count", "sentence"),
    [
        ("fooled", 763, "763 wrong captions preferred, on 282 pictures"),
        ("tied", 1, "1 wrong caption scored exactly as high as the true one, on 282 pictures"),
        ("held", 5344, "5,344 wrong captions rejected, on 282 pictures"),
        ("all", 6107, "6,107 wrong captions, on 282 pictures"),
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
        described = case_card(known, kind)
        page = f"{html.captions(described.texts)}{html.bars(described, {})}"
        assert "<img src=x" not in page and "</script>" not in page and "<b>" not in page
        assert page.count("<li ") == 2
        assert isinstance(json.wall_card(described, lambda _: "")["name"], str)


def test_the_bars_share_one_zero_and_the_longest_reaches_the_end():
    page = str(html.bars(case_card(card(), FLIP), {}))
    assert page.count("left:40.0%") >= 3
    assert "width:60.0%" in page and "left:0.0%;width:40.0%" in page
    assert "the wrong caption wins by" in page
    held = card(verdicts=verdicts({"a": 0.5, "b": 0.25}), margin=0.5)
    assert "the truth wins by" in str(html.bars(case_card(held, FLIP), {}))


def test_bars_are_scaled_by_the_spread_of_each_model():
    logits = ModelVerdict("logits", -8.0, spread=40.0)
    cosines = ModelVerdict("cosines", -0.1, spread=0.25)
    shown = case_card(card(verdicts=(cosines, logits)), FLIP)
    longer, shorter = bars(shown).lines
    assert longer.width / shorter.width == pytest.approx((0.1 / 0.25) / (8 / 40))
    assert (longer.size, shorter.size) == ("by 0.100", "by 8.000")
    assert re.findall(r"vp-number\">([^<]*)<", str(html.bars(shown, {}))) == ["0.40", "0.20"]


@pytest.mark.parametrize("spread", [math.nan, 0.0])
def test_no_model_has_a_bar_if_a_spread_is_unknown(spread: float):
    known = ModelVerdict("known", -0.1, spread=0.25)
    unknown = ModelVerdict("unknown", -8.0, spread=spread)
    held = ModelVerdict("held", 0.002, spread=0.25)
    tied = ModelVerdict("tied", 0.0, spread=spread)
    shown = case_card(card(verdicts=(known, unknown, held, tied)), FLIP)
    assert {line.width for line in bars(shown).lines} == {0.0} and not bars(shown).title
    assert "vp-track-line" not in str(html.bars(shown, {}))


def test_only_the_error_of_a_reworded_wrong_caption_is_marked():
    texts = {
        "true_text": "Four red buses wait.",
        "wrong_text": "In this image, three red buses wait.",
    }
    error = {"source": "four", "target": "three", "rule": "template:in-this-image+flip:number"}
    reworded = case_card(card(**texts, **error), FLIP)
    marked = [[words for words, style in text.runs() if style] for text in reworded.sides]
    assert marked == [["Four"], ["three"]]
    twice = {"true_text": "One red bus waits near one dog."} | {
        "wrong_text": "In this image, one red bus waits near five dogs."
    }
    ambiguous = {"source": "one", "target": "five", "rule": error["rule"]}
    first, _ = case_card(card(**twice, **ambiguous), FLIP).sides
    assert ("One", "true") not in first.runs()  # the same in both captions


def test_a_rewording_shows_the_size_and_direction_of_the_change_in_score():
    kind = presentations()["lgip"].kind("paraphrase")
    scores = {"a": (0.5, 0.25), "b": (0.25, 0.5)}
    answers = {name: AnswerRow(7, name, -0.25, of_model) for name, of_model in scores.items()}
    moved = tuple(ModelVerdict(name, -0.25, spread=0.125) for name in scores)
    reworded = card(kind="paraphrase", verdicts=moved, margin=-0.25, spread=0.125)
    drawn = bars(case_card(reworded, kind, answers))
    assert drawn.title == "the score moves (bars in standard deviations)"
    assert [line.word for line in drawn.lines] == ["falls 0.250", "rises 0.250"]
    three = {name: AnswerRow(7, name, -0.25, (0.5, 0.25, 0.5)) for name in scores}
    words = [line.word for line in bars(case_card(reworded, kind, three)).lines]
    assert words == ["moves 0.250", "moves 0.250"]
    assert [line.word for line in bars(case_card(reworded, kind)).lines] == ["moves 0.250"] * 2
    assert "?" not in str(html.bars(case_card(reworded, kind, answers), {}))
    assert case_card(reworded, kind).verdict_text == "score moved by 0.250 (2.0 sd)"
    assert case_card(card(margin=-0.25), kind).verdict_text == "score moved by 0.250"


def test_a_card_counts_the_models_that_are_right_in_one_order_only():
    half = ModelVerdict("half", 0.0, is_scored=False)
    fooled, held = ModelVerdict("fooled", -0.1), ModelVerdict("held", 0.1)
    described = case_card(card(verdicts=(half, fooled, held)), FLIP)
    assert described.verdict_text == "1½ of 3 models fooled, one right in one order only"
    drawn = json.wall_card(described, str)
    assert (drawn["count"], drawn["notes"]) == ("1½ of 3", ["one right in one order only"])
    looks, names = styles(["half"]), {"half": "Half"}
    assert json.facing_card(described, ["half"], names, looks, str)["notes"] == []  # the box has it
    several = case_card(card(verdicts=(fooled, held)), FLIP)
    assert json.wall_card(several, str)["notes"] == [] and several.half_text == ""
    assert case_card(card(verdicts=(half,)), FLIP).verdict_text == "right in one order only"


def test_every_row_of_the_table_has_the_scores_of_its_model():
    answers = {
        name: AnswerRow(7, name, true - wrong, (true, wrong))
        for name, true, wrong in (("a", 0.25, 0.5), ("b", 0.75, 0.125), ("c", 0.5, 0.5))
    }
    known = case_card(card(texts=("one", "two"), roles=("original", "different")), FLIP, answers)
    looks = styles(list(answers))
    table = str(htpy.fragment[html.numbers(known, ("a", "b", "c"), looks, beside=True)])
    rows = [re.findall(r"<td[^>]*>([^<]*)", row) for row in table.split("<tr")[2:]]
    assert rows == [
        ["0.250", "0.500", "✕ -0.250"],
        ["0.750", "0.125", "✓ +0.625"],
        ["-0.875"],
        ["0.500", "0.500", "= 0.000"],
    ]


@pytest.mark.parametrize(
    ("before", "after", "shown_before", "shown_after"),
    [
        (
            "A red dog.",
            "A blue dog.",
            'A <span class="vp-t">red</span> dog.',
            'A <span class="vp-l">blue</span> dog.',
        ),
        (
            "A dog runs.",
            "In this image, a dog runs.",
            "A dog runs.",
            '<span class="vp-l">In this image,</span> a dog runs.',
        ),
        (
            "<b> & $5",
            "<i> & $5",
            '&lt;<span class="vp-t">b</span>&gt; &amp; $5',
            '&lt;<span class="vp-l">i</span>&gt; &amp; $5',
        ),
        ("same", "same", "same", "same"),
    ],
)
def test_changed_words_are_marked_and_everything_is_escaped(
    before: str, after: str, shown_before: str, shown_after: str
):
    sides = case_card(card(true_text=before, wrong_text=after), FLIP).sides
    assert [str(htpy.fragment[html.words(side.runs())]) for side in sides] == [
        shown_before,
        shown_after,
    ]


@pytest.mark.parametrize(
    ("kind", "margin", "word"),
    [
        ("flip", -0.1, "✕ Fooled"),
        ("flip", 0.0, "= Cannot tell"),
        ("flip", 0.1, "✓ Not fooled"),
        ("flip", math.nan, "? No answer"),
        ("paraphrase", -0.2, "↕ Moved"),
        ("paraphrase", 0.0, "✓ Stayed"),
    ],
)
def test_a_verdict_is_a_word_and_not_a_color_only(kind: str, margin: float, word: str):
    assert word in str(html.verdict(presentations()["lgip"].kind(kind), margin))


def test_a_mixture_of_another_picture_is_not_described_as_the_right_one():
    kind = presentations()["rococo"].kind("t2i")
    name = '{{"path": "{}", "kind": "mix", "partner": "folder/b.png", "lam": 0.9, "seed": 1}}'
    for path, words in (("folder/a.png", "the right one"), ("folder/c.png", "another picture")):
        _, mixed = case_card(card(wrong_image=name.format(path)), kind).pictures
        assert mixed.detail == f", made from {words}"
        assert mixed.alt.startswith("Another picture") == (words == "another picture")


@pytest.mark.parametrize("mark", [".vp-t", ".vp-l", ".vp-caption del", ".vp-caption ins"])
def test_marked_words_have_a_color(mark: str):
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", STYLE)
    colors = [
        body for selectors, body in rules if mark in [each.strip() for each in selectors.split(",")]
    ]
    assert any("color: var(--vp-" in body for body in colors)
