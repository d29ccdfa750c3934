"""A failure on Home in words: headings by changed words, captions with marked words, and the fooled models."""

import dataclasses
import json
import re

import pytest

from tests.conftest import question_set_of
from tests.render.scenes import TRAINS
from tools.ship import PROBES
from tools.world.captions import NUMBERS as WORLD_NUMBERS
from tools.world.captions import SYNONYMS
from tools.world.scenes import COLORS, OBJECTS
from vlprobe.case.card import ROLES, CaseText, case_card
from vlprobe.render import home as words
from vlprobe.render.sentences import frequency
from vlprobe.render.words import presentations
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.types import Picture, PictureEdit
from vlprobe.views import showcase
from vlprobe.views.records import AnswerRow
from vlprobe.views.showcase import Showcase
from vlprobe.views.wall import ModelVerdict

FLIP = presentations()["lgip"].kind("flip")
MODELS = tuple(f"model:{number}" for number in range(6))
NAMES = {model: model.upper() for model in MODELS}
CARD = dataclasses.replace(
    TRAINS,
    images=("/p/a.png",),
    verdicts=tuple(ModelVerdict(model, -0.1) for model in MODELS),
)


def make_showcase(n_fooled: int = 6, n_models: int = 6, **changes: object) -> Showcase:
    return Showcase(dataclasses.replace(CARD, **changes), n_fooled, n_models)


def flip(
    subtype: str, source: str, target: str, caption: str, n_fooled: int = 6
) -> tuple[str, str]:
    changed = caption.replace(source, target, 1)
    edit = {"subtype": subtype, "source": source, "target": target}
    case = make_showcase(n_fooled, true_text=caption, wrong_text=changed, **edit)
    return words.heading(case, FLIP, "A")


@pytest.mark.parametrize(
    ("given", "heading"),
    [
        (("object", "trains", "dogs", "Three yellow trains."), ("You see trains.", "say dogs")),
        (("number", "a", "two", "There is a dog."), ("You count one.", "count two")),
        (("number", "2", "12", "2 dogs."), ("You count 2.", "count 12")),
        (("object", "bird", "owl", "A gray bird is shown."), ("You see a bird.", "say an owl")),
        (
            ("object", "bird", "dog", "On it the gray bird sits."),
            ("You see the bird.", "say the dog"),
        ),
        (("object", "people", "dogs", "Many people on a street."), ("You see people.", "say dogs")),
        (("object", "Man", "Woman", "Man in a boat."), ("You see a man.", "say a woman")),
        (("object", "dogs", "birds", "A group of dogs."), ("You see dogs.", "say birds")),
        (
            ("spatial", "in front of", "behind", "A cat is in front of a dog."),
            ("One thing is in front of another.", "say behind"),
        ),
        (
            ("spatial", "left", "right", "A dog on the left of a cat."),
            ("One thing is left of another.", "say right"),
        ),
        (("generic", "two", "five", "A photo of two dogs."), ("You count two.", "count five")),
        (("generic", "gray", "white", "The gray bird."), ("You see something gray.", "say white")),
        (
            ("generic", "two people", "one person", "The two people."),
            ("You see two people.", "say one person"),
        ),
        (
            ("generic", "sitting", "walking", "A dog is sitting."),
            ("One caption is true.", "believe the other"),
        ),
        (
            ("number", "several", "no", "There are several dogs."),
            ("One caption is true.", "believe the other"),
        ),
        (
            ("swap", "red, blue", "blue, red", "A red dog and a blue cat."),
            ("One caption is true.", "believe the other"),
        ),
    ],
)
def test_the_heading_names_the_pictured_and_the_chosen_thing(given, heading):
    seen, said = heading
    assert flip(*given) == (seen, f"All six models {said}.")


def test_the_heading_counts_the_fooled_models():
    assert flip("number", "Four", "Five", "Four trains.", 5) == (
        "You count four.",
        "Five of six models count five.",
    )
    assert flip("color", "green", "red", "A green bus.", 1) == (
        "You see something green.",
        "One of six models says red.",
    )


def test_one_model_is_called_by_its_name():
    case = make_showcase(1, 1, verdicts=CARD.verdicts[:1])
    assert words.heading(case, FLIP, "Tiny CLIP") == ("You see trains.", "Tiny CLIP says dogs.")
    assert words.verdict(case, FLIP, NAMES, MODELS[0]) == "MODEL:0 chose this one"


def test_a_model_that_cannot_decide_is_not_counted_as_fooled_in_the_heading():
    case = dataclasses.replace(make_showcase(3, 5), n_tied=1)
    heading = words.heading(case, FLIP, "A")
    assert heading[1] == "Two of five models say dogs, one cannot tell."
    tied = dataclasses.replace(make_showcase(2, 5), n_tied=2)
    assert words.heading(tied, FLIP, "A")[1] == "Two of five models cannot tell."
    changes = dataclasses.replace(case, n_changes=1)
    heading = words.heading(changes, FLIP, "A")
    assert heading[1] == "Two of five models say dogs."  # the line below names half right ones
    tied = dataclasses.replace(tied, n_changes=2)
    assert words.heading(tied, FLIP, "A")[1] == "Two of five models are right in one order only."
    assert words.heading(make_showcase(39, 43), FLIP, "A")[1] == "39 of 43 models say dogs."


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (("fooled",) * 6, "All six models chose this one"),
        (("fooled",) * 4 + ("held",) * 2, "Four of six models chose this one"),
        (("fooled",) * 5 + ("tied",), "All six models chose this one, one by a tie"),
        (("tied",) * 6, "All six models cannot tell them apart"),
        (("fooled",) * 2, "Both models chose this one"),
    ],
)
def test_the_verdict_next_to_the_marks_names_ties(states, told):
    margins = {"fooled": -0.1, "tied": 0.0, "held": 0.1}
    verdicts = tuple(map(ModelVerdict, MODELS, map(margins.__getitem__, states)))
    n_fooled = sum(state != "held" for state in states)
    case = make_showcase(n_fooled, len(states), verdicts=verdicts)
    assert words.verdict(case, FLIP, NAMES, MODELS[0]) == told


def mixed(item: str, lam: float, kind: str = "mix", margin: float = -0.1) -> Showcase:
    name = Picture(Picture.from_name(item).path, PictureEdit(kind, CARD_PARTNER, lam, 1)).name
    return make_showcase(subtype=f"{kind}:{lam}", wrong_image=name, margin=margin, wrong_text="")


CARD_PARTNER = Picture.from_name("/p/b.png").path
T2I = presentations()["rococo"].kind("t2i")


@pytest.mark.parametrize(
    ("case", "first"),
    [
        (mixed("/p/a.png", 0.9), "A tenth of another picture is enough."),
        (mixed("/p/a.png", 0.8), "A fifth of another picture is enough."),
        (mixed("/p/a.png", 0.9, "patch"), "A tenth covered by another picture is enough."),
        (mixed("/p/c.png", 0.9), "Mixed pictures are hidden among the others."),  # other pictures
        (mixed("/p/a.png", 0.9, margin=0.1), "Mixed pictures are hidden among the others."),
        (mixed("/p/a.png", 0.55), "Mixed pictures are hidden among the others."),
    ],
)
def test_the_heading_states_the_mixed_share_only_for_the_picture_s_own_mixture(case, first):
    assert words.heading(case, T2I, "A") == (first, "All six models lose the right one.")


def test_a_mixed_picture_is_shown_next_to_the_right_one_with_a_description():
    card = case_card(mixed("/p/a.png", 0.9).card, T2I)
    right, wrong = card.pictures
    assert (right.name, right.label) == ("/p/a.png", "The right picture")
    assert wrong.label == "Ranked 1st instead"
    assert wrong.alt != right.alt
    (box,) = [text.role for text in card.sides if text.role.box]
    assert box.box_style == "plain"


def test_a_near_identical_pair_has_two_pictures_and_no_wrong_caption():
    kind = presentations()["eqben"].kind("pair")
    case = make_showcase(
        4, texts=("Two red cars.", "Two red birds."), images=("/p/a.png", "/p/b.png")
    )
    assert words.heading(case, kind, "A") == (
        "Two pictures, one difference.",
        "Four of six models mix them up.",
    )
    card = case_card(case.card, kind)
    assert [shot.label for shot in card.pictures] == ["Left", "Right"]
    assert [text.role.box_style for text in card.sides] == ["plain", "plain"]
    assert words.verdict(case, kind, NAMES, MODELS[0]) == "Four of six models mixed them up"


def test_the_heading_of_a_rephrased_search_counts_the_pictures_that_remain():
    kind = presentations()["prsm"].kind("ranking")
    lists = [["a", "b", "c", "d", "e"], ["a", "b", "x", "y", "z"], ["a", "b", "c", "y", "z"]]
    answer = AnswerRow(0, MODELS[0], -0.3, [], {"top": json.dumps(lists)})
    case = make_showcase(6, answer=answer)
    assert words.heading(case, kind, "A") == (
        "Search again in other words.",
        "Two of the top five pictures come up again.",
    )
    roles = [text.role.box for text in case_card(case.card, kind).sides]
    assert roles == ["Asked", "Asked again"]


@pytest.mark.parametrize("probe", presentations())
def test_every_kind_has_a_heading_captions_and_a_verdict(probe):
    for kind in presentations()[probe].kinds.values():
        texts = ("A red dog.", "There is a red dog.", "A red cat.")
        case = make_showcase(
            1,
            texts=texts,
            images=("/p/a.png", "/p/b.png")[: 2 if kind.body in ("pair", "changed_picture") else 1],
        )
        for line in words.heading(case, kind, "A"):
            assert line.endswith(".") and line[0].isupper()
        card = case_card(case.card, kind)
        assert any(text.role.box for text in card.sides)
        assert card.pictures
        assert words.verdict(case, kind, NAMES, MODELS[0])


THINGS = [word for name in OBJECTS for word in (name, *SYNONYMS[name])]
IRREGULAR = ("buses", "coaches", "people", "puppies", "ponies", "lorries")
PLURALS = [*(f"{word}s" for word in THINGS), *IRREGULAR]
SENTENCES = "|".join(
    [
        *(
            "Search again in other words",
            "One meaning, two wordings",
            "A video's caption changes",
        ),
        *(
            "People ranked one picture first",
            "Two of these say the same thing",
            "One caption is true",
        ),
        *("Two pictures, one difference", "Mixed pictures are hidden among the others"),
        "(A tenth|A fifth|Three tenths|Four tenths) (of|covered by) (another picture) is enough",
        f"You count ({'|'.join(WORLD_NUMBERS.values())})",
        f"You see something ({'|'.join(COLORS)})",
        f"You see (an?|the) ({'|'.join(THINGS)})",
        f"You see ({'|'.join(WORLD_NUMBERS.values())}|the)? ?({'|'.join(PLURALS)}|one person)",
        "One thing is (over|under|above|below|higher than|lower than|beneath|underneath|behind"
        "|in front of|left of|right of) another",
    ]
)


@pytest.mark.parametrize("probe", PROBES)
def test_the_headings_of_all_bundled_failures_are_sentences(probe):
    store = Store(shipped.FOLDER)
    question_set = question_set_of(store, probe)
    model = question_set.rated_models[0]
    for name in showcase.kinds(question_set):
        kind = presentations()[probe].kind(name)
        for case in showcase.showcases(question_set, name, model, count=10_000):
            truth, lie = words.heading(case, kind, "Tiny CLIP")
            assert re.fullmatch(f"({SENTENCES})\\.", truth), (case.card.subtype, truth)
            assert len(lie.split()) > 2 and lie.endswith(".") and lie[0].isupper()


def test_only_the_words_that_differ_are_marked():
    texts = "A red dog, and a cat.", "A red owl, and a cat."
    truth = CaseText(ROLES["true"], *texts, "true").runs()
    lie = CaseText(ROLES["lie"], *texts[::-1], "lie", True).runs()
    assert [text for text, style in truth if style == "true"] == ["dog"]
    assert [text for text, style in lie if style == "lie"] == ["owl"]
    assert "".join(text for text, _ in lie) == "A red owl, and a cat."


@pytest.mark.parametrize(
    "text", ["</script><img src=x onerror=alert(1)>", "כלב אדום", "long " * 1000, "", "\u202e.gnp"]
)
def test_hostile_captions_remain_short_text(text):
    case = make_showcase(source=text, target="dogs", true_text=f"A {text}", wrong_text="A dogs")
    heading = words.heading(case, FLIP, "A")
    assert all(len(line) < 120 for line in heading)
    for side in case_card(case.card, FLIP).sides:
        line = side.runs(words.LONGEST_CAPTION)
        assert sum(len(part) for part, _ in line) <= words.LONGEST_CAPTION + 1


def test_each_number_has_a_sentence():
    phrases = ["a wrong color", "a wrong object", "a wrong number"]
    assert words.number_sentences(phrases, [4 / 2479, 400 / 2337, 359 / 1291], "Tiny CLIP") == [
        "A wrong color hardly ever fools Tiny CLIP",
        "A wrong object sometimes fools Tiny CLIP",
        "A wrong number sometimes fools Tiny CLIP",
    ]
    assert words.number_sentences(["a lie"], [0.7], "A") == ["A lie mostly fools A"]
    assert words.number_sentences(["swapped roles"], [0.3], "A") == ["Swapped roles often fool A"]


@pytest.mark.parametrize("total", [1, 7, 100, 12_345])
def test_a_share_in_words_is_exact_to_a_tenth_and_reads_all_or_none_only_if_true(total):
    for count in range(0, total + 1, max(1, total // 200)):
        text = frequency(count, total)
        if text in ("None", "All"):
            assert count == {"None": 0, "All": total}[text]
        else:
            shown = float(text.removesuffix(" %").removeprefix("under ").removeprefix("over "))
            assert abs(shown / 100 - count / total) <= 0.001 and 0 < shown < 100


def test_a_share_just_below_all_is_not_called_all():
    assert frequency(9999, 10_000) == "over 99.9 %" and frequency(1, 10_000) == "under 0.1 %"
    assert (frequency(1, 9), frequency(282, 283)) == ("11.1 %", "99.6 %")
