import re

import numpy as np
import pytest

from tools.measure import flip, measure
from tools.world.captions import captions
from tools.world.scenes import distinct
from vlprobe.datasets.world.renderer import render
from vlprobe.models.demo_weights import FOLDER, load_checkpoint

SCENES = 100
# Wide ranges, because other machines round differently; the exact numbers of the demo models are in the model card.
BANDS = {
    "i2t_r1": (0.75, 1.0),
    "t2i_r1": (0.7, 1.0),
    "pr_color": (0.97, 1.0),
    "pr_object": (0.7, 0.97),
    "pr_number": (0.7, 0.95),
    "e_inv": (0.002, 0.03),
}


@pytest.fixture(scope="module")
def softmax():
    return measure(FOLDER / "softmax.safetensors", "test", SCENES)


@pytest.mark.full  # 3 s; the weights are shipped
def test_the_softmax_demo_model_scores_in_the_expected_ranges_on_test_scenes(softmax):
    for name, (low, high) in BANDS.items():
        assert low <= softmax[name] <= high, (name, softmax[name])
    assert softmax["n_color"] == 5 * SCENES


@pytest.mark.full  # 3 s with the one above
def test_the_weak_demo_model_scores_lower_than_softmax(softmax):
    weak = measure(FOLDER / "weak.safetensors", "test", SCENES // 2)
    assert weak["t2i_r1"] < softmax["t2i_r1"]  # although its gallery is half as large
    assert weak["pr_object"] < softmax["pr_object"]


def test_recall_equals_a_loop_over_single_queries():
    n = 12
    path = FOLDER / "weak.safetensors"
    model, transform, tokenize = load_checkpoint(path)
    scenes = distinct("val", n)
    images = [
        model.encode_image(transform(render(scene))[None], normalize=True)[0].numpy()
        for scene in scenes
    ]
    texts = [
        [model.encode_text(tokenize([text]), normalize=True)[0].numpy() for text in captions(s)]
        for s in scenes
    ]
    right = [
        max((float(image @ text), owner) for owner, own in enumerate(texts) for text in own)[1]
        == index
        for index, image in enumerate(images)
    ]
    assert measure(path, "val", n)["i2t_r1"] == pytest.approx(np.mean(right))


def test_a_flip_swaps_one_word_of_its_kind():
    text = "A red dog and two blue cats on the beach."
    assert re.fullmatch(r"A (?!red)\w+ dog and two blue cats on the beach\.", flip(text, "color"))
    assert re.fullmatch(r"A red (?!dog)\w+ and two blue cats on the beach\.", flip(text, "object"))
    assert re.fullmatch(
        r"A red dog and (one|three|four|five) blue cats on the beach\.", flip(text, "number")
    )
    assert flip("A red dog.", "number") == ""
    assert flip(text, "color") == flip(text, "color")
