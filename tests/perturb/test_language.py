"""Captions in other languages are told from English ones; the sentences here were written after the rule was fixed."""

import json
from pathlib import Path

import pytest

from tools.world.captions import captions as demo_captions
from tools.world.scenes import distinct
from vlprobe.perturb import language as language_check
from vlprobe.perturb.language import foreign_captions, is_foreign

FOREIGN = {
    "German": [
        "Ein Bus hält vor einem alten Gebäude.",
        "Zwei Frauen sitzen auf einer Bank und lachen.",
        "eine Giraffe frisst Blätter von einem Baum",
        "Mehrere Schafe stehen auf einem Hügel.",
        "Der Junge wirft einen Ball.",
    ],
    "French": [
        "Un bus s'arrête devant un vieux bâtiment.",
        "Deux femmes assises sur un banc rient.",
        "une girafe mange les feuilles d'un arbre",
        "Plusieurs moutons se tiennent sur une colline.",
        "Le garçon lance une balle.",
    ],
    "Spanish": [
        "Un autobús se detiene frente a un edificio antiguo.",
        "Dos mujeres sentadas en un banco se ríen.",
        "una jirafa come hojas de un árbol",
        "Varias ovejas están de pie en una colina.",
        "El niño lanza una pelota.",
    ],
    "Italian": [
        "Un autobus si ferma davanti a un vecchio edificio.",
        "Due donne sedute su una panchina ridono.",
        "una giraffa mangia le foglie di un albero",
        "Diverse pecore stanno su una collina.",
        "Il ragazzo lancia una palla.",
    ],
    "Portuguese": [
        "Um ônibus para em frente a um prédio antigo.",
        "Duas mulheres sentadas em um banco estão rindo.",
        "uma girafa come folhas de uma árvore",
        "Várias ovelhas estão em uma colina.",
        "O menino joga uma bola.",
    ],
    "Dutch": [
        "Een bus stopt voor een oud gebouw.",
        "Twee vrouwen zitten op een bankje te lachen.",
        "een giraf eet bladeren van een boom",
        "Meerdere schapen staan op een heuvel.",
        "De jongen gooit een bal.",
    ],
    "Chinese": [
        "一辆公交车停在一座旧建筑前。",
        "两个女人坐在长椅上笑。",
        "长颈鹿吃树叶",
        "山上有几只羊。",
        "男孩扔球。",
    ],
    "Russian": [
        "Автобус останавливается перед старым зданием.",
        "Две женщины сидят на скамейке и смеются.",
        "жираф ест листья с дерева",
        "Несколько овец стоят на холме.",
        "Мальчик бросает мяч.",
    ],
    "Arabic": [
        "تتوقف الحافلة أمام مبنى قديم.",
        "امرأتان تجلسان على مقعد.",
        "زرافة تأكل أوراق الشجر",
        "خراف على التل.",
        "يرمي الولد الكرة.",
    ],
    "Japanese": [
        "古い建物の前にバスが止まっている。",
        "二人の女性がベンチに座って笑っている。",
        "キリンが木の葉を食べている",
        "丘の上に羊が数匹いる。",
        "少年がボールを投げる。",
    ],
}


@pytest.mark.parametrize("language", FOREIGN)
def test_captions_in_another_language_are_told(language: str):
    assert [caption for caption in FOREIGN[language] if not is_foreign(caption)] == []


@pytest.mark.full  # real data, seconds
def test_hardly_any_caption_of_coco_is_taken_for_another_language(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
):
    annotations = json.loads(
        (shared_data / "coco_real" / "annotations" / "captions_val2017.json").read_text()
    )
    images = json.loads((shared_data / "rococo" / "coco_karpathy_test.json").read_text())
    captions = [annotation["caption"] for annotation in annotations["annotations"]]
    captions += [caption for image in images[::5] for caption in image["caption"]]
    assert len(captions) > 6000
    foreign = foreign_captions(set(captions))
    assert len(foreign) < 0.002 * len(captions)
    monkeypatch.setattr(language_check, "_is_plain_english", lambda caption_words: False)
    assert foreign_captions(set(captions)) == foreign  # what plain words tell, the model tells too


@pytest.mark.full  # a process of its own
def test_the_model_of_languages_is_in_memory_only_where_captions_need_it(
    monkeypatch: pytest.MonkeyPatch,
):
    loaded = language_check._identifier.cache_info
    language_check._identifier.cache_clear()
    assert foreign_captions({"A red bus.", "男孩扔球。"}) == {"男孩扔球。": "zh"}
    assert loaded().currsize == 0  # letters and the number of words told enough
    assert foreign_captions(FOREIGN["German"][:2]) == dict.fromkeys(FOREIGN["German"][:2], "de")
    assert foreign_captions({"A bus stops in front of an old building."}) == {}
    assert (loaded().currsize, loaded().misses) == (1, 1)  # stays for the next small check
    monkeypatch.setattr(language_check, "_KEEP_BELOW", 100)
    many = {f"A bus stops at an old building on day {day}." for day in range(100)}
    assert foreign_captions(many | {FOREIGN["French"][1]}) == {FOREIGN["French"][1]: "fr"}
    assert loaded().currsize == 0  # a large run needs the memory


def test_captions_of_the_demo_need_no_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(language_check, "_identifier", None)
    captions = {text for scene in distinct("test", 500) for text in demo_captions(scene, 5)}
    assert len(captions) > 2000
    assert not any(map(is_foreign, captions))


@pytest.mark.parametrize(
    "caption",
    [
        "A tomato and mozzarella pizza sits on a wooden table.",
        "TV on a stand",
        "un chat",
        "",
        "7 2 9 5",
        "A CAT ON A BED",
    ],
)
def test_what_tells_too_little_is_taken_for_english(caption: str):
    assert not is_foreign(caption)
