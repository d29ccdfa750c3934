"""Flips of colors and numbers in eight languages, by sentences that were written by hand."""

import itertools

import pytest

from vlprobe.perturb import lgip
from vlprobe.perturb.language import NOT_IN_ENGLISH, foreign_captions, foreign_language
from vlprobe.perturb.other_languages import flips, languages
from vlprobe.perturb.tokens import Reading
from vlprobe.perturb.truths import NEAR

# A caption with {} for a word, the word, and every word that may replace it: its gender, number and case
# stay, and a name that people give to the same color is left out.
CASES = {
    "de": [
        (
            "Ein {} Bus fährt durch die Stadt.",
            "roter",
            "blauer grüner gelber schwarzer weißer brauner grauer",
        ),
        (
            "Die Frau trägt ein {} Kleid und lacht.",
            "blaues",
            "rotes grünes gelbes schwarzes weißes braunes graues",
        ),
        ("{} Hunde laufen durch den Schnee.", "Drei", "Vier Fünf"),
        (
            "Das Haus an der Straße ist {} und groß.",
            "gelb",
            "rot blau grün schwarz weiß braun grau",
        ),
    ],
    "fr": [
        (
            "Une voiture {} est garée dans la rue.",
            "noire",
            "rouge bleue verte jaune blanche marron rose violette",
        ),
        ("Une voiture {} est garée dans la rue.", "rouge", "jaune marron"),
        ("{} femmes sont assises sur un banc.", "Trois", "Quatre Cinq"),
        (
            "Des chiens {} courent sur la plage.",
            "noirs",
            "rouges bleus verts jaunes blancs marron roses violets",
        ),
    ],
    "es": [
        (
            "Los perros {} corren por la playa.",
            "negros",
            "rojos azules verdes amarillos blancos marrones morados",
        ),
        ("Las flores {} están en la mesa.", "azules", "verdes grises marrones"),
        ("{} mujeres llevan sombreros en la calle.", "Dos", "Tres Cuatro Cinco"),
    ],
    "it": [
        (
            "Un gatto {} dorme sulla sedia in cucina.",
            "bianco",
            "rosso blu verde giallo nero marrone viola",
        ),
        (
            "Le sedie {} sono davanti alla finestra.",
            "rosse",
            "blu verdi gialle nere bianche marroni grigie viola",
        ),
        ("{} cani corrono sulla spiaggia.", "Quattro", "Cinque"),
    ],
    "pt": [
        (
            "Um ônibus {} está parado na rua.",
            "vermelho",
            "azul verde amarelo preto branco cinzento roxo",
        ),
        (
            "As cadeiras {} estão na cozinha.",
            "brancas",
            "vermelhas azuis verdes amarelas pretas roxas",
        ),
        ("{} mulheres estão sentadas em um banco.", "Duas", "Três Quatro Cinco"),
    ],
    "nl": [
        (
            "Een {} auto staat geparkeerd in de straat.",
            "rode",
            "blauwe groene gele zwarte witte bruine grijze paarse",
        ),
        (
            "Er staat een {} huis naast de weg.",
            "wit",
            "rood blauw groen geel zwart bruin oranje roze paars",
        ),
        ("{} honden rennen over het strand.", "Twee", "Drie Vier Vijf"),
    ],
    "zh": [
        ("一辆{}的公交车停在路边。", "红色", "蓝色 绿色 黄色 黑色 白色 棕色 灰色 紫色"),
        ("{}只狗在海滩上跑。", "两", "三 四 五"),
    ],
    "ja": [
        ("{}バスが道に止まっている。", "赤い", "青い 黄色い 黒い 白い 茶色い"),
        (
            "女性が{}ドレスを着ている。",
            "緑色の",
            "黄色の 茶色の 灰色の オレンジ色の ピンク色の 紫色の",
        ),
        ("{}匹の犬が走っている。", "二", "三 四 五"),
    ],
}
UNCHANGED = {  # the reason that is counted for a caption that no table may change
    "de": [
        ("Ein Mann ohne roten Hut steht am Zaun.", "under a negation"),
        ("Rote Bete liegt auf einem Teller.", "an idiom or a name"),
        ("Um vier Uhr fährt der Zug ab.", "a measure or part of a name"),
        ("Zwei Männer stehen dort, der andere sitzt.", "counted again later"),
        ("Der Turm im Roten Meer ist hoch.", "part of a name"),
    ],
    "fr": [
        ("Un verre de vin rouge sur la table.", "an idiom or a name"),
        ("Une photo en noir et blanc d'un train.", "black and white pictures"),
        ("Une femme peint le vert sur un mur.", "a noun, not a color"),
    ],
    "es": [("Hay un hombre negro en la calle y lleva sombrero.", "an idiom or a name")],
    "it": [("Non ci sono autobus rossi in questa strada.", "under a negation")],
    "pt": [("A menina está com dois anos de idade.", "a measure or part of a name")],
    "nl": [("Een glas rode wijn staat op de tafel.", "an idiom or a name")],
    "zh": [("没有红色的车。", "under a negation"), ("第三个男人在跑步。", "an idiom or a name")],
    "ja": [("赤いバスはいない。", "under a negation")],
}


def every_flip(*captions: str) -> list[set[str]]:
    """All flips of each caption over many seeds."""
    codes = [foreign_language(caption) or "" for caption in captions]
    readings = [Reading(caption) for caption in captions]
    made = [flips(readings, codes, "picture", seed)[0] for seed in range(80)]
    return [{flip.text for of_seed in made for flip in of_seed[n]} for n in range(len(captions))]


@pytest.mark.parametrize("code", CASES)
def test_a_flip_agrees_with_its_noun_and_reaches_every_word_that_does(code: str):
    for template, word, others in CASES[code]:
        caption = template.format(word)
        assert foreign_language(caption) == code
        expected = {template.format(other) for other in others.split()}
        assert every_flip(caption) == [expected], caption


@pytest.mark.parametrize("code", UNCHANGED)
def test_a_word_that_is_no_color_or_count_is_left_and_counted(code: str):
    for caption, reason in UNCHANGED[code]:
        made, dropped = flips([Reading(caption)], [code], "picture", 1)
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


def test_every_form_of_a_table_has_a_cell_in_every_column_and_no_color_is_near_itself():
    for language in languages().values():
        for kind, rows in language.rows.items():
            assert len({len(forms) for forms in rows.values()}) == 1, (language.code, kind)
            assert set(rows) <= set(NEAR) | {"two", "three", "four", "five"}
        cells = itertools.chain(*(row for rows in language.rows.values() for row in rows.values()))
        assert all(cell == cell.lower() for cell in cells)


def test_neighbors_of_the_languages_and_other_languages_have_no_flips():
    for caption in ("Dous cans negros corren pola praia.", "En röd bil står parkerad på gatan."):
        assert foreign_language(caption) not in (None, *languages())
        made = lgip.edit_other_languages(
            [caption], "1", lgip.edits([caption], "1"), foreign_captions([caption])
        )
        assert made.edits == ((),) and made.dropped[NOT_IN_ENGLISH] == 1


def test_kinds_rules_and_the_limit_decide_what_the_tables_make():
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
