import re
from dataclasses import replace

import pytest
from PIL import Image

from tests.conftest import draw_fewer
from tools.world.contrasts import KINDS, contrasts
from vlprobe import registry
from vlprobe.datasets import demo
from vlprobe.datasets.world import items
from vlprobe.datasets.world.renderer import render


@pytest.fixture
def few(monkeypatch):
    """Keep three pairs of each subset, so that a test draws quickly."""
    draw_fewer(monkeypatch, 3)


def test_each_of_five_subsets_has_300_pairs(tmp_path, monkeypatch):
    monkeypatch.setattr(
        demo,
        "draw",
        lambda scene, path: path.parent.mkdir(parents=True, exist_ok=True) or path.touch(),
    )
    monkeypatch.setattr(demo, "validated", lambda name, items, cache: items)
    items = registry.families("datasets")["demo-pairs"].load("demo-pairs", tmp_path)
    subsets = [item.tags["subset"] for item in items]
    assert {subset: subsets.count(subset) for subset in subsets} == dict.fromkeys(KINDS, 300)
    assert (
        len({item.image.path for item in items} | {item.foil_image.path for item in items}) == 3000
    )


def test_an_item_is_a_pair_with_its_pictures_and_captions(few, tmp_path):
    items = {item.id: item for item in registry.load_dataset("demo-pairs", tmp_path).items}
    assert len(items) == 15
    contrast = contrasts("swap", "test", 3)[2]
    item = items["demo-pairs-swap-002"]
    assert item.captions + item.foils == contrast.captions
    assert item.tags == {
        "subset": "swap",
        "background": contrast.scene.background,
        "relation": contrast.scene.relation,
    }
    for picture, scene in ((item.image, contrast.scene), (item.foil_image, contrast.changed)):
        with Image.open(picture.path) as image:
            assert (image.size, image.mode) == ((224, 224), "RGB")
            assert image.tobytes() == render(scene).tobytes()


def test_the_digest_covers_the_pixels_of_both_pictures(few, tmp_path):
    loaded = [registry.load_dataset("demo-pairs", tmp_path)]
    for picture in (loaded[0].items[0].image, loaded[0].items[1].foil_image):
        Image.new("RGB", (224, 224)).save(picture.path)
        loaded.append(registry.load_dataset("demo-pairs", tmp_path))
    assert len({dataset.digest for dataset in loaded}) == 3


def test_the_digest_covers_both_captions(few, tmp_path, monkeypatch):
    digests = {registry.load_dataset("demo-pairs", tmp_path).digest}
    read = items.read
    for caption, foil in (("A dog.", "A cat."), ("A dog.", "A horse."), ("A horse.", "A cat.")):
        rows = [replace(row, captions=(caption,), foils=(foil,)) for row in read("demo-pairs")]
        monkeypatch.setattr(items, "read", lambda dataset, rows=rows: rows)
        digests.add(registry.load_dataset("demo-pairs", tmp_path).digest)
    assert len(digests) == 4


def test_printed_captions_match_the_templates_of_figures_14_and_15(few, tmp_path):
    """The templates are from the paper, with its wording of relative positions."""
    relation = "on the (left|right)( side)? of|in front of|behind|above|below"
    verb = "(is|are)( located| placed)?"
    located = rf"The .+ {verb} ({relation}) the .+\."
    sized = rf"The ((two|three|four|five) )?(small|large) .+ {verb} ({relation}) the .*(small|large) .+\."
    alone = {
        "number": r"(There (is|are) .+|.+ (is|are) .+)\.",
        "color": r"A (photo|painting) of (?!.* (in|on) (a|the) ).+\.",
    }
    paired = {"color": sized, "size": sized, "scene": r"A photo of .+ \((in|on) .+\)\."}
    printed = registry.load_dataset("demo-pairs:printed", tmp_path).items
    test = registry.load_dataset("demo-pairs", tmp_path).items
    plain = {item.id.replace("demo-pairs", "demo-pairs-printed"): item for item in test}
    assert {item.tags["subset"] for item in printed if item.id not in plain} == {"size", "scene"}
    for item in printed:
        kind = item.tags["subset"]
        pattern = alone.get(kind, r"A (photo|painting) of .+\.")
        if item.tags["relation"] != "none" and kind != "number":
            pattern = paired.get(kind, located)
        for caption in (*item.captions, *item.foils):
            assert re.fullmatch(pattern, caption), caption
        assert item.captions != item.foils
        if same := plain.get(item.id):
            assert (item.image.path, item.foil_image.path) == (
                same.image.path,
                same.foil_image.path,
            )
