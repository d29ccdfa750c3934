"""Captions in other languages are recognized. The sentences were written after the rule was final."""

import json
import tomllib
from pathlib import Path

import pytest

from tools.world.captions import captions as demo_captions
from tools.world.scenes import distinct
from vlprobe.perturb import language as language_check
from vlprobe.perturb.language import foreign_captions, is_foreign

FOREIGN = tomllib.loads(Path(__file__).with_name("foreign.toml").read_text("utf-8"))


@pytest.mark.parametrize("language", FOREIGN)
def test_captions_in_another_language_are_recognized(language: str):
    assert [caption for caption in FOREIGN[language] if not is_foreign(caption)] == []


@pytest.mark.full  # real data, seconds
def test_fewer_than_two_in_1000_coco_captions_are_mistaken_for_another_language(
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
    assert (
        foreign_captions(set(captions)) == foreign
    )  # the check by plain words agrees with the model


@pytest.mark.full  # in a separate process
def test_the_language_model_is_in_memory_only_while_captions_need_it(
    monkeypatch: pytest.MonkeyPatch,
):
    loaded = language_check._identifier.cache_info
    language_check._identifier.cache_clear()
    assert foreign_captions({"A red bus.", "男孩扔球。"}) == {"男孩扔球。": "zh"}
    assert loaded().currsize == 0  # the letters and the number of words were sufficient
    assert foreign_captions(FOREIGN["German"][:2]) == dict.fromkeys(FOREIGN["German"][:2], "de")
    assert foreign_captions({"A bus stops in front of an old building."}) == {}
    assert (loaded().currsize, loaded().misses) == (
        1,
        1,
    )  # the model stays in memory for the next small check
    monkeypatch.setattr(language_check, "_KEEP_BELOW", 100)
    many = {f"A bus stops at an old building on day {day}." for day in range(100)}
    assert foreign_captions(many | {FOREIGN["French"][1]}) == {FOREIGN["French"][1]: "fr"}
    assert loaded().currsize == 0  # a large run needs the memory


def test_demo_captions_need_no_language_model(monkeypatch: pytest.MonkeyPatch):
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
def test_a_caption_with_too_little_evidence_counts_as_english(caption: str):
    assert not is_foreign(caption)
