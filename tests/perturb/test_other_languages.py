"""Flips of colors and numbers in eight languages, by sentences that were written by hand."""

import itertools

import pytest

from vlprobe.perturb import lgip
from vlprobe.perturb.language import NOT_IN_ENGLISH, foreign_captions, foreign_language
from vlprobe.perturb.other_languages import flips, image_truths, languages
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
        ("Zwei Hunde, einer liegt und einer steht.", "counted again later"),
    ],
    "fr": [
        ("Un verre de vin rouge sur la table.", "an idiom or a name"),
        ("Une photo en noir et blanc d'un train.", "black and white pictures"),
        ("Une femme peint le vert sur un mur.", "a noun, not a color"),
        ("L'homme noir attend devant la gare.", "an idiom or a name"),
        ("L’ours blanc dort sur la glace.", "an idiom or a name"),
        ("Deux chiens courent, l'un devant et l'autre derrière.", "counted again later"),
        ("Deux chats jouent, l'un court.", "counted again later"),
        ("On n'y voit que des bus rouges.", "under a negation"),
    ],
    "es": [
        ("Hay un hombre negro en la calle y lleva sombrero.", "an idiom or a name"),
        ("Las tres cuartas partes del vaso.", "a measure or part of a name"),
        ("Dos perros en la playa, uno duerme.", "counted again later"),
    ],
    "it": [
        ("Non ci sono autobus rossi in questa strada.", "under a negation"),
        ("Due donne ridono e un'altra guarda.", "counted again later"),
        ("Due cani sulla spiaggia, uno dorme.", "counted again later"),
    ],
    "pt": [("A menina está com dois anos de idade.", "a measure or part of a name")],
    "nl": [("Een glas rode wijn staat op de tafel.", "an idiom or a name")],
    "zh": [
        ("没有红色的车。", "under a negation"),
        ("一个空的红色杯子。", "under a negation"),
        ("第三个男人在跑步。", "an idiom or a name"),
        ("墨绿色的车停在路边。", "an idiom or a name"),
        ("一件酒红色的外套。", "an idiom or a name"),
    ],
    "ja": [
        ("赤いバスはいない。", "under a negation"),
        ("真っ白い犬が走っている。", "an idiom or a name"),
        ("焦げ茶色い椅子がある。", "an idiom or a name"),
        ("三つ編みの女の子がいる。", "an idiom or a name"),
        ("四つ葉のクローバーがある。", "an idiom or a name"),
    ],
}


def every_flip(*captions: str) -> list[set[str]]:
    """All flips of each caption over many seeds."""
    codes = [foreign_language(caption) or "" for caption in captions]
    readings = [Reading(caption) for caption in captions]
    of_image = image_truths(readings, codes)
    made = [flips(readings, codes, of_image, "picture", seed)[0] for seed in range(80)]
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
        (("穿蓝色衣服的男人", "穿红色T恤的男人"), "红色"),  # a letter hides the language
        (("Ein blaues Auto steht auf der Straße.", "Ein roter Bus."), "rotes"),  # three words
        (("A red car is parked on the street.", "Ein blaues Auto steht auf der Straße."), "blue"),
        (("Two dogs run on the beach.", "Drei Hunde laufen über den Strand."), "three"),
        (("Ein blaues Hemd hängt an der Wand.", "Ein rot-weißes Boot am Ufer."), "rotes"),
        (("Een rood shirt hangt aan de muur.", "Een blauw-wit shirt aan de muur."), "blauw"),
        (("Ein blaues Hemd hängt an der Wand.", "Ein hellgrünes Hemd an der Wand."), "grünes"),
        (("Un chien noir court vite.", "Un chien court dans l'herbe du parc."), "vert"),
    ],
)
def test_what_any_caption_of_the_image_states_is_inserted_in_none(captions, wrong: str):
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


def test_a_word_that_is_also_a_noun_stays_at_the_start_and_steel_or_sky_is_no_negation():
    (roses,) = every_flip("Roses rouges dans un vase sur la table.")
    assert roses and all(text.startswith("Roses ") for text in roses)
    for caption in ("红色的不锈钢杯子在桌上。", "红色的风筝在天空中飞。"):
        assert every_flip(caption) != [set()], caption


def test_traditional_chinese_and_kanji_have_no_known_language_and_no_flip():
    for caption in ("一隻白色的狗", "白色自動車二台"):
        assert foreign_language(caption) == "" and every_flip(caption) == [set()]


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
