"""The text of the slides, from invented results and from small stores."""

import base64
import hashlib
import itertools
import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.render.finding_scenes import FOUR, HOSTILE, LONG, RTL, contestant, held_against, paired
from tests.render.scenes import TRAINS
from tests.surfaces.test_report import Page
from tests.views.believed_scenes import run_row
from vlprobe import storage
from vlprobe.case.card import case_card
from vlprobe.dashboard import components
from vlprobe.models.published import NOTE
from vlprobe.registry import is_control
from vlprobe.render import charts, findings
from vlprobe.render.sentences import sentence_names
from vlprobe.render.slides import deck, values
from vlprobe.render.slides.case import UNNAMED, case_slides
from vlprobe.render.slides.models import MODELS
from vlprobe.render.slides.values import Slide
from vlprobe.render.words import presentations
from vlprobe.surfaces.page import json_text, slides_file
from vlprobe.types import Picture, PictureEdit, Publication
from vlprobe.views.paired_tests import PairedTests, SubtypeShare
from vlprobe.views.records import AnswerRow
from vlprobe.views.story import Opener, Story
from vlprobe.views.wall import ModelVerdict, WallCard

A, B, C, D = "demo:eqsim", "demo:softmax", "demo:sigmoid", "demo:weak"
COIN = "control:random"
STORAGE = Path(storage.__file__).parent
NAMES = {A: "Pair-tuned", B: "Tiny CLIP", C: "Tiny SigLIP", D: "Half-trained", COIN: "Coin flip"}


def test_of_43_tied_models_none_is_named():
    models = [f"open:model-{number}" for number in range(43)]
    pairs = [paired(base, model, 0.0, "tied") for base, model in itertools.combinations(models, 2)]
    everyone = replace(
        held_against([]), contestants=tuple(map(contestant, models)), rows=tuple(pairs)
    )
    assert findings.ranking(everyone, sentence_names(models, {})) == "All 43 are tied."
    (slide,) = deck._who_is_better(
        make_story(everyone),
        presentations()["lgip"].kind("flip"),
        {model: model for model in models},
    )
    assert len(slide.bars) == 9 and "Not shown between the last two: 34 models." in slide.note


def card(
    verdicts: dict[str, float],
    true: str,
    wrong: str,
    spreads: Mapping[str, float] = MappingProxyType({}),
) -> WallCard:
    answers = tuple(
        ModelVerdict(name, margin, spread=spreads.get(name, 0.25))
        for name, margin in verdicts.items()
    )
    known = {"source": "", "target": "", "images": ("/nowhere/x.png",), "subtype": "color"}
    known |= {"true_text": true, "wrong_text": wrong, "texts": (true, wrong)}
    known |= {"roles": ("original", "different"), "verdicts": answers, "margin": -1.0}
    return replace(TRAINS, id="a/b", **known)


def make_story(everyone: PairedTests, opener: WallCard | None = None) -> Story:
    models = tuple(one.model for one in everyone.contestants if not one.is_control)
    begins = Opener(opener, "a/b") if opener else None
    return Story("lgip", "demo", models or (COIN,), begins, everyone, None)


ANSWERS = {A: 0.1, B: -0.2, C: 0.0, COIN: 0.3}


def test_a_vote_comes_before_its_answer_and_controls_are_not_counted():
    kind = presentations()["lgip"].kind("flip")
    begins = make_story(
        held_against(FOUR), card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    )
    begins = replace(begins, models=(A, B, C))
    assert begins.opener is not None
    vote, reveal, bars = case_slides(begins.models, begins.opener.card, kind, NAMES)
    assert vote.title == "Which caption is true?" and not any(one.style for one in vote.options)
    assert {"".join(text for text, _ in one.caption) for one in vote.options} == {
        "Three yellow trains.",
        "Three yellow dogs.",
    }
    assert (
        reveal.title == "One of three models believes the lie, one cannot tell."
        and reveal.case == vote.case
    )
    options = {one.style: one for one in reveal.options}
    assert ("trains", "true") in options["true"].caption
    assert ("dogs", "lie") in options["lie"].caption
    assert [mark.model for mark in options["true"].marks] == [A]
    assert [mark.model for mark in options["lie"].marks] == [B, C]
    assert [mark.word for mark in options["lie"].marks] == ["fooled", "cannot tell"]
    assert bars.is_extra and not vote.is_extra
    assert bars.title == "Only Pair-tuned noticed."
    assert [(bar.text, bar.start, bar.end) for bar in bars.bars] == [
        ("not fooled", 0.25, 0.5),
        ("fooled", 0.5, 1.0),
        ("cannot tell", 0.5, 0.5),
    ]
    assert "One model gave both the same score, which counts as fooled." in reveal.notes


def test_the_answer_of_a_search_has_the_task_and_both_captions():
    kind = presentations()["rococo"].kind("i2t")
    shown = card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    answer = case_slides((A, B, C), shown, kind, NAMES)[1]
    assert answer.title == "One of three models ranks a wrong caption first, one cannot tell."
    assert answer.detail.startswith("A model ranks many captions for this picture")
    captions = ["".join(text for text, _ in option.caption) for option in answer.options]
    assert captions[0] == "True: Three yellow trains." and "Three yellow dogs." in captions[1]
    assert [option.style for option in answer.options] == ["true", "lie"]
    assert [picture.name for picture in answer.pictures] == ["/nowhere/x.png"]


@pytest.mark.parametrize("case_id", ["a/b", "a/c"])  # one of them is turned
def test_people_guess_before_the_answer_of_a_search_a_pair_and_a_triplet(case_id: str):
    def both(probe: str, name: str, **changes: object) -> tuple[Slide, Slide]:
        shown = card(ANSWERS, "A red bus.", "A red car.")
        shown = replace(shown, id=case_id, kind=name, **changes)
        question, answer = case_slides((A, B), shown, presentations()[probe].kind(name), NAMES)[:2]
        assert not question.tag and not any(option.style for option in question.options)
        return question, answer

    def captions(slide: Slide) -> list[str]:
        return ["".join(text for text, _ in option.caption) for option in slide.options]

    question, answer = both("rococo", "i2t")
    assert question.title == "Which caption is true?"
    assert [text in whole for text, whole in zip(*map(captions, (question, answer)), strict=True)]
    question, answer = both("rococo", "t2i", wrong_image="/nowhere/y.png")
    assert question.title == "Which picture fits “A red bus” best?"
    names = [picture.name for picture in question.pictures]
    assert names == [picture.name for picture in answer.pictures] and len(names) == 2
    assert {picture.alt for picture in question.pictures} == {UNNAMED}
    # Numbers to vote for, and nothing that tells the right one
    assert [(picture.label, picture.style) for picture in question.pictures] == [
        ("1", "vote"),
        ("2", "vote"),
    ]
    assert question.notes[1] == "Count the hands for each answer."
    edit = PictureEdit("mix", Path("/nowhere/z.png"), 0.9, 0)
    mixture = Picture(Path("/nowhere/x.png"), edit).name
    question, answer = both("rococo", "t2i", wrong_image=mixture)
    assert len(question.pictures) == 2
    last = answer.pictures[-1]
    assert (last.name, last.label) == ("/nowhere/z.png", "Mixed in: 10 % of this picture")
    images = ("/nowhere/x.png", "/nowhere/y.png")
    question, answer = both("eqben", "pair", images=images)
    (picture,) = question.pictures
    assert captions(question) == ["A red bus.", "A red car."] and picture.name in images
    assert picture.alt == UNNAMED  # no text that gives the answer
    texts = ("A red bus.", "A bus that is red.", "A bus that is new.")
    question, answer = both("visla", "t2t", texts=texts, roles=("original", "same", "different"))
    assert question.title == "Which sentence means the same as “A red bus”?"
    assert set(captions(question)) == set(texts[1:]) and not question.pictures
    assert not any("picture" in note for note in question.notes)
    assert [text.partition(": ")[2] for text in captions(answer)] == captions(question)
    question, _ = both("prsm", "ranking")
    assert question.title == "Do both searches find the same pictures?"
    assert question.detail == "“A red bus.”\n“A red car.”"
    question, _ = both("lgip", "paraphrase")
    assert question.title == "Do both captions mean the same?"
    question, _ = both("series", "boundary", images=images)
    assert (
        question.title
        == "Apart from places and background, what changes from the first to the last picture?"
    )
    question, answer = both("series", "order", images=images)
    names = [[picture.name for picture in slide.pictures] for slide in (question, answer)]
    assert names[0] == names[1] and [one.label for one in question.pictures] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "right", "choice", "expected"),
    [
        ("order", 0, 2, {
            "a": ("Rank 1 for people", "true"),
            "c": ("Rank 3 for people, Pair-tuned's choice", "lie"),
        }),
        ("boundary", 2, 0, {
            "c": ("Frame 3, before the change", "true"), "d": ("Frame 4, after it", "true"),
            "a": ("Frame 1, Pair-tuned's choice", "lie"), "b": ("Frame 2, Pair-tuned's choice", "lie"),
        }),
        ("order", 0, 0, {"a": ("Fits best", ""), "d": ("Fits least", "")}),
    ],
)  # fmt: skip
def test_a_slide_on_a_series_shows_the_right_picture_next_to_the_choice_of_a_model(
    name: str, right: int, choice: int, expected: dict
):
    shown = replace(card(ANSWERS, "A dog.", "A cat."), kind=name, images=tuple("abcd"))
    columns = {"right_index": right, "model_index": choice}
    answer = AnswerRow(0, A, -1.0, (), columns)
    kind = presentations()["series"].kind(name)
    slide = case_slides((A, B), replace(shown, answer=answer), kind, NAMES)[1]
    assert {each.name: (each.label, each.style) for each in slide.pictures} == expected


def test_a_slide_says_what_a_model_is_and_who_made_it_and_uses_plain_names():
    clip, ours = "published:CLIP ViT-B/32", "hf:/models/ours"
    told = make_story(held_against([contestant(clip, 0.2), contestant(ours, 0.1)]))
    slide = next(slide for slide in deck.slides(told) if slide.id == "models")
    assert slide.title == "A model is a program that judges how well a text fits a picture."
    expected = "- CLIP, by OpenAI: learned from 400 million pictures of the web.\n- ours"
    assert slide.detail == expected
    renamed = next(slide for slide in deck.slides(told, {clip: "Mine"}) if slide.id == "models")
    assert renamed.detail.startswith("- Mine, by OpenAI")
    trained = "published:CLIP_TROHN-Img"  # as other pages call it
    told = make_story(held_against([contestant(trained, 0.2), contestant(ours, 0.1)]))
    slide = next(slide for slide in deck.slides(told) if slide.id == "models")
    assert slide.detail.startswith("- Picture-tuned CLIP (CLIP_TROHN-Img): ")


def test_each_bundled_model_has_a_plain_line():
    folders = "shipped_results", "published_results"
    files = [file for folder in folders for file in (STORAGE / folder).glob("runs/*/*.json")]
    names = {json.loads(file.read_text())["run"]["model"] for file in files}
    assert names and {name for name in names if not is_control(name)} == set(MODELS)


def test_notes_say_a_change_in_several_places_as_two_sentences():
    kind = presentations()["prsm"].kind("ranking")
    true, wrong = "The black bird is below the pink truck", "A black bird and a lorry"
    shown = card(ANSWERS, f"{true}.", f"{wrong}.")
    for words, note in (
        (("The, is below", "A, and a lorry"), f"“{true}” becomes “{wrong}”."),
        (("truck", "lorry"), "“truck” becomes “lorry”."),
    ):
        source, target = words
        question = case_slides(
            (A, B, C), replace(shown, source=source, target=target), kind, NAMES
        )[0]
        assert question.notes[-1] == note
        assert {style for _, style in question.heading} == {""}  # one text, so nothing to compare


def test_bars_of_a_case_follow_its_answer_and_come_before_another_case():
    first = card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    begins = make_story(held_against(FOUR), first)
    second = Opener(replace(first, id=f"{first.id}-2"), "a/b")
    ids = [one.id for one in deck.slides(replace(begins, more=second))]
    assert ids[:4] == ["vote", "reveal", "models", "said"] and ids.index("more") > 3


def test_notes_mention_a_remainder_only_if_some_pairs_do_not_differ():
    for tied, words in (("", ", all differ clearly."), ("BC", "; the rest are tied or unknown.")):
        slides = deck.slides(make_story(held_against(FOUR, tied=tied)))
        (line,) = (note for one in slides for note in one.notes if "pairs of models" in note)
        assert line.endswith(words)


def test_a_slide_divides_margins_by_each_model_s_spread():
    kind = presentations()["lgip"].kind("flip")
    spreads = {A: 0.25, B: 2.0, C: 0.25}
    begins = make_story(held_against(FOUR), card({A: -0.2, B: -0.8, C: 0.1}, "a", "b", spreads))
    begins = replace(begins, models=(A, B, C))
    assert begins.opener is not None
    *_, bars = case_slides(begins.models, begins.opener.card, kind, NAMES)
    assert [bar.end - bar.start for bar in bars.bars] == pytest.approx([0.5, 0.25, 0.25])
    assert "in units of each model's spread" in bars.note


def test_a_mark_shows_that_a_model_is_right_in_one_order_only():
    kind = presentations()["lgip"].kind("flip")
    shown = card({A: -1.0, B: 0.0, C: 1.0}, "Three yellow trains.", "Three yellow dogs.")
    shown = replace(shown, verdicts=[replace(one, is_scored=False) for one in shown.verdicts])
    reveal = case_slides((A, B, C), shown, kind, NAMES)[1]
    words = {mark.model: mark.word for one in reveal.options for mark in one.marks}
    assert words[B] == "right in one order only"
    assert reveal.title == "One of three models believes the lie, one right in one order only."
    assert "One model is right in one order only, which counts as half." in reveal.notes


def test_a_slide_marks_the_words_that_home_and_the_quiz_mark_and_cuts_long_captions():
    kind = presentations()["lgip"].kind("flip")
    true = "Three rows of luggage of various color."
    pairs = {
        "Luggage of three colors in a row.": True,  # other words in another order
        "Three rows of cars of one color.": True,
        "A dog barks next to some green bench.": False,  # little in common
    }
    for wrong, is_marked in pairs.items():
        reveal = case_slides((A, B, C), card(ANSWERS, true, wrong), kind, NAMES)[1]
        shown = case_card(card(ANSWERS, true, wrong), kind).sides[0].runs()
        options = {one.style: list(one.caption) for one in reveal.options}
        assert options["true"] == shown and any(style for _, style in shown) == is_marked
    long = case_slides((A, B, C), card(ANSWERS, "w " * 3000 + "end", "w " * 3000), kind, NAMES)[1]
    assert all(len("".join(text for text, _ in one.caption)) <= 600 for one in long.options)


def often(shares: Mapping[str, float], pictured: Collection[str] | None = None) -> Slide:
    """Return the slide about types of edit that fool models at these shares. `pictured` are types with a picture, by
    default all.
    """
    rows = tuple(
        SubtypeShare(subtype, 1000, share, share - 0.01, share + 0.01)
        for subtype, share in shares.items()
    )
    first = card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    told = make_story(held_against(FOUR, shares=rows))
    bare = replace(first, images=())
    examples = {name: first if pictured is None or name in pictured else bare for name in shares}
    slides = deck.slides(replace(told, examples=examples))
    assert slides[-1].id == "closing"
    return next(one for one in slides if one.id == "often")


def test_halves_are_only_in_the_notes_and_each_type_has_an_example_with_its_picture_or_its_text():
    rows = [SubtypeShare("color", 100, 0.1, 0.09, 0.11)]
    rows.append(SubtypeShare("number", 100, 0.355, 0.34, 0.37))
    first = card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    examples = {row.subtype: replace(first, source="red", target="blue") for row in rows}
    told = make_story(held_against(FOUR, shares=tuple(rows)), first)
    told = replace(told, examples=examples, runs=(replace(run_row(A), n_orders=2), run_row(B)))
    slides = {slide.id: slide for slide in deck.slides(told)}
    often = slides["often"]
    assert [figure.detail for figure in often.figures] == ["of 100 answers", "of 100 answers"]
    assert "½" not in f"{often}" and "number: 35.5 %" in often.notes[1]
    assert "Pair-tuned saw the captions in both orders; a case" in " ".join(often.notes)
    whole = [(("Three yellow", ""), (" ", ""), ("dogs", "lie"), (".", ""))] * 2
    assert [picture.label for picture in often.pictures] == whole
    assert slides["closing"].pictures[0].name == "/nowhere/x.png"
    swapped = replace(first, source="white, green", target="green, white")
    texts = "A white bowl of many green apples.", "A green bowl of many white apples."
    swapped = replace(swapped, true_text=texts[0], wrong_text=texts[1])
    whole = replace(told, examples={row.subtype: swapped for row in rows})
    (label, _) = (one.label for one in deck.slides(whole)[-2].pictures)
    assert "".join(text for text, _ in label) == texts[1]
    assert [text for text, style in label if style] == ["green", "white"]
    text_only = {**examples, "color": replace(first, images=())}
    slide = deck.slides(replace(told, examples=text_only))[-2]
    assert [picture.name for picture in slide.pictures] == ["", "/nowhere/x.png"]
    assert slide.pictures[0].alt == "True: Three yellow trains."
    sent = values.talk_values([slide], charts.styles.styles([A]), {}, NAMES, "", "")
    assert list(sent["pictures"].values()) == [""]  # one picture; the other is a text
    assert sent["slides"][0]["pictures"][0]["name"] == ""


def test_bars_without_guessing_end_at_a_round_number_and_the_title_has_the_range():
    story = make_story(replace(held_against(FOUR), is_movement=True))
    story = replace(story, probe="prsm", standings=replace(story.standings, kind="ranking"))
    better = next(one for one in deck.slides(story) if one.id == "better")
    assert better.title == "10.0 to 40.0 % of the top pictures change."
    assert (better.limit, better.limit_label) == (deck.ROOM, "50 %")
    assert better.bars[0].end == pytest.approx(deck.ROOM * 0.1 / 0.5)


def test_a_reworded_case_shows_its_scores_in_words_and_a_lie_between_them():
    kind = presentations()["lgip"].kind("paraphrase")
    answer = AnswerRow(0, B, -0.09, (0.859, 0.768))
    shown = replace(
        card(ANSWERS, "A red bus.", "The bus is red."), kind="paraphrase", answer=answer
    )
    slide = case_slides((A, B, C), shown, kind, NAMES)[1]
    assert slide.detail == "Scores of Tiny CLIP: 0.859 asked, 0.768 asked again."
    assert slide.title == "Only the words changed, and the scores moved."
    partly = replace(shown, margin=math.nan, answer=replace(answer, scores=(0.859, math.nan)))
    assert "nan" not in case_slides((A, B, C), partly, kind, NAMES)[1].detail
    lost = replace(shown, lie=(0.855, "A blue bus."))
    slide = case_slides((A, B, C), lost, kind, NAMES)[1]
    assert slide.detail.endswith("0.768 asked again, 0.855 for the lie.")
    assert slide.title == "In one wording the truth beats this lie, in the other it loses."
    assert slide.options[-1].caption == (("A lie: ", ""), ("A blue bus.", ""))


def test_a_changed_search_shows_the_pictures_of_both_wordings():
    kind = presentations()["prsm"].kind("ranking")
    top = json.dumps([["/a.png", "/b.png"], ["/b.png", "/c.png"]])
    answer = AnswerRow(0, B, -0.5, (), {"top": top})
    shown = replace(card(ANSWERS, "A red bus.", "A red coach."), kind="ranking", answer=answer)
    shown = replace(shown, images=("/a.png",), tags={"Author": "Ann Lee"})
    slide = case_slides((A, B, C), shown, kind, NAMES)[1]
    assert slide.note.startswith("Pictures: two for the first wording, then two for the second.")
    pictures = slide.pictures
    names = ["/a.png", "/b.png", "/b.png", "/c.png"]
    assert [one.name for one in pictures] == names
    assert [one.style for one in pictures] == ["", "true", "true", ""]
    assert [one.author for one in pictures] == ["Ann Lee", "", "", ""]


def test_two_sets_of_one_kind_are_named_once_in_the_title_and_apart_on_the_slide():
    kinds = ("coreference-hard", "coreference-standard", "foil-it")
    slide = often(dict(zip(kinds, (0.48, 0.47, 0.05), strict=True)))
    assert slide.title == "A wrong answer to a question fools most often."
    assert len({one.label for one in slide.figures}) == 3
    apart = often(dict(zip(kinds, (0.48, 0.05, 0.04), strict=True)))
    assert apart.title == "A wrong answer to a question (small set) fools most often."


def test_the_second_case_is_asked_before_its_answer_which_is_one_slide_of_the_list():
    first = card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    told = replace(make_story(held_against(FOUR), first), models=(A, B, C))
    more = replace(first, id="a/c", images=("/nowhere/y.png",))
    slides = deck.slides(replace(told, more=Opener(more, "")))
    (answer,) = [one for one in slides if one.id == "more"]
    assert answer.question is not None and answer.question.title == "Which caption is true?"
    assert (answer.question.id, answer.question.case) == ("more", answer.case)
    assert "/nowhere/y.png" in values.picture_names([answer])


def test_a_talk_asks_people_first_and_ends_with_advice_that_follows_from_the_results():
    first = card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    told = replace(make_story(held_against(FOUR), first), models=(A, B, C))
    slides = {slide.id: slide for slide in deck.slides(told)}
    assert slides["vote"].notes[1] == "Count the hands for each answer."
    assert not slides["reveal"].note and slides["reveal"].title not in slides["reveal"].notes
    assert slides["closing"].detail == "Check a model's answer before you rely on it."
    assert slides["closing"].pictures == slides["vote"].pictures
    never = make_story(held_against([replace(one, share=0.0) for one in FOUR]))
    assert not deck.slides(never)[-1].detail
    assert deck.slides(make_story(held_against(FOUR[:2])))[-1].title.startswith(
        "Even with the best"
    )
    pairs = [
        paired(base.model, each.model, 0.0, "tied")
        for base, each in itertools.combinations(FOUR, 2)
    ]
    tied = replace(held_against(FOUR), rows=tuple(pairs))
    assert "tied" in deck.slides(make_story(tied))[-1].title


def test_the_range_of_a_score_is_named_only_for_cosines():
    kind = presentations()["lgip"].kind("paraphrase")
    moved = replace(held_against(FOUR), is_movement=True, unit="cosine")
    told = replace(make_story(moved), runs=(run_row(A), run_row(B)))
    (first, *_) = deck._who_is_better(told, kind, NAMES)
    assert "How far a score (-1 to 1) moves" in first.note
    told = replace(told, runs=(run_row(A), replace(run_row(B), score_type="probability")))
    (first, *_) = deck._who_is_better(told, kind, NAMES)
    assert "How far a score moves" in first.note


def test_a_slide_credits_published_answers_in_one_line_and_the_last_has_the_sources():
    publication = Publication("About", "Miranda et al., BiVLC", "https://a.example/b", "MIT")
    told = replace(
        make_story(held_against(FOUR)), runs=(replace(run_row(A), publication=publication),)
    )
    slides = {slide.id: slide for slide in deck.slides(told)}
    assert slides["better"].note.endswith(f"Drawn scenes. {NOTE}: Miranda et al., BiVLC (MIT).")
    assert not any("https" in text for text in (slides["better"].note, *slides["better"].notes))
    assert slides["models"].notes[-1] == "If someone asks: Pair-tuned: About."
    assert "https" not in slides["closing"].note and "BiVLC (MIT)" in slides["closing"].note
    assert "https://a.example/b (MIT license)" in slides["closing"].notes[-1]


SHARES = {
    "clear at the top": ((0.01, 0.2, 0.4), "A wrong object fools most often."),
    "clear at the bottom": (
        (0.01, 0.39, 0.4),
        "A wrong object and a wrong number fool most often.",
    ),
    "all alike": ((0.39, 0.395, 0.4), "All kinds of lies fool models about equally often."),
    "not clear": ((0.3, 0.315, 0.33), "A wrong object fools most often, but not clearly."),
}


@pytest.mark.parametrize("name", SHARES)
def test_a_slide_names_the_kinds_that_fool_most_and_says_if_the_difference_is_not_clear(name: str):
    shares, expected = SHARES[name]
    slide = often(dict(zip(("color", "number", "object"), shares, strict=True)))
    assert slide.title == expected
    assert [one.label for one in slide.figures] == [
        "a wrong color",
        "a wrong number",
        "a wrong object",
    ]


def test_a_slide_on_videos_names_the_change_and_the_task():
    slide = often({"video-color": 0.01, "video-number": 0.39, "video-object": 0.4})
    assert slide.title == "A change of object and a change of number fool most often."
    assert slide.figures[-1].label == "a change of object"
    tasks = {
        "boundary": "A video's caption changes. A model has to find the moment.",
        "order": "People ranked one picture first. A model has to find the same one.",
    }
    for name, task in tasks.items():
        kind = presentations()["series"].kind(name)
        sides = case_slides(
            (A, B, C), replace(card(ANSWERS, "A dog.", "A cat."), kind=name), kind, NAMES
        )[:2]
        assert sides[1].detail == task
        assert sides[0].detail == ("" if name == "order" else task)


def test_the_title_also_holds_for_types_without_a_figure():
    subtypes = ("color", "number", "object", "attribute", "relation", "existence")
    slide = often(dict(zip(subtypes, (0.1, 0.2, 0.3, 0.25, 0.15, 0.6), strict=True)))
    assert slide.figures[-1].figure == "60.0 %" and len(slide.figures) == 4
    assert slide.title.startswith(slide.figures[-1].label.capitalize())


def test_the_kind_in_the_title_is_shown_although_another_set_of_it_is_more_general():
    subtypes = ("color", "number", "object", "relation", "coreference-standard", "coreference-hard")
    slide = often(dict(zip(subtypes, (0.1, 0.2, 0.21, 0.15, 0.25, 0.6), strict=True)))
    assert slide.title == "A wrong answer to a question (small set) fools most often."
    assert slide.figures[-1].figure == "60.0 %" and len(slide.figures) == 4


def test_of_two_sets_of_the_kind_in_the_title_the_more_general_one_is_shown():
    subtypes = ("color", "number", "object", "relation", "coreference-standard", "coreference-hard")
    slide = often(dict(zip(subtypes, (0.1, 0.2, 0.21, 0.15, 0.59, 0.6), strict=True)))
    assert slide.title == "A wrong answer to a question fools most often."
    assert (slide.figures[-1].figure, slide.figures[-1].label) == (
        "59.0 %",
        "a wrong answer to a question",
    )


def test_a_plural_type_takes_a_plural_verb_and_all_shares_have_one_format():
    slide = often({"existence": 0.055, "plurals": 0.33, "actant-swap": 0.38})
    assert slide.title == "Swapped roles fool most often."
    assert [one.figure for one in slide.figures] == ["5.5 %", "33.0 %", "38.0 %"]


def test_a_slide_on_types_prefers_types_with_a_picture_between_the_mildest_and_the_worst():
    shares = {
        name: (1 + place) / 20
        for place, name in enumerate(["color", "swap", "typo", "case", "object", "number"])
    }
    figures = [figure.label for figure in often(shares, ["swap", "typo"]).figures]
    assert figures == ["a wrong color", "swapped things", "a typo", "a wrong number"]


def test_a_slide_on_types_needs_enough_answers_to_two_types():
    rows = (
        SubtypeShare("color", 1000, 0.01, 0.0, 0.02),
        SubtypeShare("number", 29, 0.3, 0, 1),
    )
    ids = [one.id for one in deck.slides(make_story(held_against(FOUR, shares=rows)))]
    assert ids == ["models", "better", "closing"]


def test_only_the_best_model_is_colored_and_a_control_is_only_in_the_note():
    everyone = held_against([*FOUR, contestant(COIN, 0.01)], tied="BC")
    slide = next(one for one in deck.slides(make_story(everyone)) if one.id == "better")
    assert [bar.model for bar in slide.bars] == [A, B, C, D]
    assert [bar.style for bar in slide.bars] == ["best", "", "", ""]
    assert "Coin flip, a control: 1.0 %." in slide.note
    assert slide.title == "10.0 to 40.0 % of the lies are believed."
    assert "Pair-tuned is fooled by 10.0 % of 1,000 lies." in slide.notes[0]
    assert any("6 pairs of models" in line and "5 differ clearly" in line for line in slide.notes)
    (first, *_) = slide.bars
    share = next(one.share for one in FOUR if one.model == first.model)
    assert first.end == pytest.approx(deck.ROOM * share / 0.5)
    assert slide.limit == pytest.approx(deck.ROOM)  # the share at chance


def hostile_file() -> tuple[str, values.Values]:
    caption = f"{HOSTILE} <!-- ]]> & {RTL} " + "w" * 5000
    everyone = held_against([contestant(HOSTILE), contestant(LONG), contestant(RTL)])
    begins = make_story(
        everyone, card({HOSTILE: -1.0, LONG: 1.0, RTL: math.nan}, caption, f"{caption}!")
    )
    slides = deck.slides(begins)
    looks = charts.styles.styles([HOSTILE, LONG, RTL])
    names = sentence_names([HOSTILE, LONG, RTL], {})
    sent = values.talk_values(slides, looks, {}, names, HOSTILE, HOSTILE)
    return slides_file(sent, *components.source("slides"), HOSTILE), sent


def test_the_file_contains_hostile_text_only_as_data():
    text, sent = hostile_file()
    page = Page(text)
    assert [tag for tag, _ in page.tags] == [
        *("html", "head", "meta", "meta", "meta", "title", "style"),
        *("body", "main", "script", "script"),
    ]
    assert json.loads(page.texts["scriptapplication/json"]) == {
        **sent,
        "whole": True,
        "editable": False,
        "suggestions": [],
        "kept": None,
    }
    assert "onerror=alert" not in page.texts["scriptmodule"]
    assert "<" not in json_text(sent) and ">" not in json_text(sent)


def test_the_file_runs_only_its_script_and_loads_nothing():
    text, _ = hostile_file()
    page = Page(text)
    policy = page.policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for name, element in (("script-src", "scriptmodule"), ("style-src", "style")):
        digest = hashlib.sha256(page.texts[element].encode()).digest()
        assert f"{name} 'sha256-{base64.b64encode(digest).decode()}'" in policy
    with_font = slides_file({}, "", "", "", b"A font")
    assert "; font-src data:" in with_font and "font-src" not in policy
    assert f"base64,{base64.b64encode(b'A font').decode()}" in with_font
    addresses = re.findall(r"https?://[^\s\"'`]+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(", text)


def test_the_component_inserts_values_only_as_text():
    script, sheet = components.source("slides")
    forbidden = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|\bon\w+ ?="
    assert not re.search(forbidden, script)
    assert not re.search(r"#[0-9a-f]{3,6}\b", sheet.replace("#000", "").replace("#fff", ""))
