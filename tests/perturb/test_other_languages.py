"""Flips of colors and numbers in eight languages, tested with handwritten sentences."""

import itertools
import tomllib
from pathlib import Path

import pytest

from vlprobe.perturb import lgip
from vlprobe.perturb.language import NOT_IN_ENGLISH, foreign_captions, foreign_language
from vlprobe.perturb.other_languages import flips, image_truths, languages
from vlprobe.perturb.tokens import Reading
from vlprobe.perturb.truths import NEAR

LANGUAGES = tomllib.loads(Path(__file__).with_name("other_languages.toml").read_text("utf-8"))


def every_flip(*captions: str) -> list[set[str]]:
    """Return all flips of each caption over many seeds."""
    codes = [foreign_language(caption) or "" for caption in captions]
    readings = [Reading(caption) for caption in captions]
    of_image = image_truths(readings, codes)
    made = [flips(readings, codes, of_image, "picture", seed)[0] for seed in range(80)]
    return [{flip.text for of_seed in made for flip in of_seed[n]} for n in range(len(captions))]


@pytest.mark.parametrize("code", LANGUAGES)
def test_flips_are_exactly_the_words_that_agree_with_the_noun(code: str):
    for flip in LANGUAGES[code]["flips"]:
        caption = flip["caption"].format(flip["word"])
        assert foreign_language(caption) == code
        expected = {flip["caption"].format(other) for other in flip["others"].split()}
        assert every_flip(caption) == [expected], caption


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_word_that_is_not_a_color_or_count_is_left_unchanged_and_counted(code: str):
    for caption, reason in LANGUAGES[code]["unchanged"].items():
        readings = [Reading(caption)]
        made, dropped = flips(readings, [code], image_truths(readings, [code]), "picture", 1)
        assert made == [[]] and {why.partition(", ")[2] for why in dropped} == {reason}, caption


def test_a_color_or_count_that_a_caption_in_any_language_states_is_never_inserted():
    german = "Drei Hunde laufen neben einem roten Bus."
    (alone,) = every_flip(german)
    assert "Vier Hunde laufen neben einem roten Bus." in alone
    assert "Drei Hunde laufen neben einem grünen Bus." in alone
    both, *_ = every_flip(german, "Quatre chiens courent près d'un bus vert.", "A blue door.")
    assert both == {
        "Fünf Hunde laufen neben einem roten Bus.",
        *(
            f"Drei Hunde laufen neben einem {c}en Bus."
            for c in ("gelb", "schwarz", "weiß", "braun", "grau")
        ),
    }


@pytest.mark.parametrize(
    ("captions", "wrong"),
    [
        (("穿蓝色衣服的男人", "穿红色T恤的男人"), "红色"),  # the letter hides the language
        (("Ein blaues Auto steht auf der Straße.", "Ein roter Bus."), "rotes"),  # only three words
        (("A red car is parked on the street.", "Ein blaues Auto steht auf der Straße."), "blue"),
        (("Two dogs run on the beach.", "Drei Hunde laufen über den Strand."), "three"),
        (("Ein blaues Hemd hängt an der Wand.", "Ein rot-weißes Boot am Ufer."), "rotes"),
        (("Een rood shirt hangt aan de muur.", "Een blauw-wit shirt aan de muur."), "blauw"),
        (("Ein blaues Hemd hängt an der Wand.", "Ein hellgrünes Hemd an der Wand."), "grünes"),
        (("Un chien noir court vite.", "Un chien court dans l'herbe du parc."), "vert"),
    ],
)
def test_a_word_that_any_caption_of_the_image_states_is_never_inserted(captions, wrong: str):
    foreign = foreign_captions(captions)

    def inserted(*captions: str) -> set[str]:
        every = set()
        for seed in range(60):
            edits = lgip.edits(captions, "picture", seed=seed)
            edits = lgip.edit_other_languages(captions, "picture", edits, foreign, seed=seed)
            every |= {edit.target for of_caption in edits.edits for _, edit in of_caption}
        return every

    assert wrong in inserted(captions[0])
    assert wrong not in inserted(*captions)
    assert len(inserted(*captions)) > 1  # other words remain


def test_an_initial_noun_is_not_flipped_and_chinese_steel_or_sky_is_not_a_negation():
    (roses,) = every_flip("Roses rouges dans un vase sur la table.")
    assert roses and all(text.startswith("Roses ") for text in roses)
    for caption in ("红色的不锈钢杯子在桌上。", "红色的风筝在天空中飞。"):
        assert every_flip(caption) != [set()], caption


def test_traditional_chinese_and_kanji_have_no_known_language_and_no_flip():
    for caption in ("一隻白色的狗", "白色自動車二台"):
        assert foreign_language(caption) == "" and every_flip(caption) == [set()]


def test_every_row_of_a_language_table_has_all_columns_in_lower_case():
    for language in languages().values():
        for kind, rows in language.rows.items():
            assert len({len(forms) for forms in rows.values()}) == 1, (language.code, kind)
            assert set(rows) <= set(NEAR) | {"two", "three", "four", "five"}
        cells = itertools.chain(*(row for rows in language.rows.values() for row in rows.values()))
        assert all(cell == cell.lower() for cell in cells)


def test_related_and_unsupported_languages_have_no_flips():
    for caption in ("Dous cans negros corren pola praia.", "En röd bil står parkerad på gatan."):
        assert foreign_language(caption) not in (None, *languages())
        made = lgip.edit_other_languages(
            [caption], "1", lgip.edits([caption], "1"), foreign_captions([caption])
        )
        assert made.edits == ((),) and made.dropped[NOT_IN_ENGLISH] == 1


def test_kinds_rules_and_limits_apply_to_flips_in_other_languages():
    caption = "Drei Hunde laufen neben einem roten Bus."
    foreign = foreign_captions([caption])
    made = lgip.edits([caption], "1")

    def edits(**settings):
        return lgip.edit_other_languages([caption], "1", made, foreign, **settings)

    assert [edit.rule for _, edit in edits().edits[0]] == ["flip:number:de", "flip:color:de"]
    assert len(edits(k_diff=1).edits[0]) == 1 and not edits(k_diff=0).edits[0]
    for settings in ({"rules": "paper"}, {"kinds": ["paraphrase"]}):
        assert edits(**settings).edits == ((),)
        assert edits(**settings).dropped[NOT_IN_ENGLISH] == 1
    plain = "Ein Hund schläft auf dem Sofa."
    without = lgip.edit_other_languages([plain], "1", lgip.edits([plain], "1"), {plain: "de"})
    assert without.edits == ((),) and without.dropped[lgip.NO_FLIP_BY_TABLE] == 1
