import hashlib

import numpy as np
import pytest
from PIL import Image

from vlprobe.errors import NotFound
from vlprobe.models import controls
from vlprobe.scoring.encoder import CachedEncoder


def pictures(count: int) -> list[Image.Image]:
    rng = np.random.default_rng(5)
    return [
        Image.fromarray(rng.integers(0, 255, (9, 7 + n % 3, 3), dtype=np.uint8))
        for n in range(count)
    ]


def images_of(model: controls.ControlEncoder, images: list[Image.Image]) -> np.ndarray:
    return model.encode_images(np.stack([model.preprocess(image) for image in images]))


def texts_of(model: controls.ControlEncoder, texts: list[str]) -> np.ndarray:
    return model.encode_texts(model.tokenize(texts))


@pytest.mark.parametrize("name", controls.NAMES)
def test_a_control_satisfies_the_encoder_interface(name: str):
    model = controls.load(name)
    assert model.name == name
    for vectors in (images_of(model, pictures(5)), texts_of(model, ["a", "b", "c", "d", "e"])):
        assert vectors.shape == (5, model.dim) and vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert model.tokenize(["a"]).dtype == np.int64
    assert texts_of(model, []).shape == (0, model.dim)


def test_the_two_controls_have_different_digests():
    assert controls.load("control:random").digest != controls.load("control:constant").digest


def test_rows_of_tokens_are_equal_exactly_if_the_texts_are():
    rows = controls.load("control:random").tokenize(["a cat", "a dog", "a cat", "A cat", "a cat "])
    assert np.array_equal(rows[0], rows[2])
    assert len(np.unique(rows, axis=0)) == 4


def test_a_random_embedding_depends_only_on_the_content():
    model = controls.load("control:random")
    first, again = pictures(2)[0], pictures(2)[0]
    together = images_of(model, [*pictures(3), first])
    np.testing.assert_array_equal(images_of(model, [again])[0], together[3])
    np.testing.assert_array_equal(together[0], together[3])
    assert np.abs(together[0] - together[1]).max() > 0.01
    turned = first.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    assert np.abs(images_of(model, [turned])[0] - together[0]).max() > 0.01


def test_a_random_embedding_is_the_documented_hash():
    named = hashlib.blake2b(b"a cat", digest_size=16, person=b"text").digest()
    numbers = (
        np.frombuffer(hashlib.shake_128(named).digest(256), dtype="<u4").astype(float) / 2**31 - 1
    )
    expected = numbers / np.sqrt((numbers**2).sum())
    np.testing.assert_allclose(
        texts_of(controls.load("control:random"), ["a cat"])[0], expected, atol=1e-7
    )


def test_the_random_control_finds_the_right_caption_as_often_as_chance():
    model = controls.load("control:random")
    images = images_of(model, pictures(3000))
    right, wrong = (
        texts_of(model, [f"right {n}" for n in range(3000)]),
        texts_of(model, [f"no {n}" for n in range(3000)]),
    )
    margins = (images * right).sum(axis=1) - (images * wrong).sum(axis=1)
    assert abs((margins > 0).mean() - 0.5) < 0.03  # three standard errors of 3,000 coin tosses
    assert abs(margins.mean()) < 0.01


def test_all_similarities_of_the_constant_control_are_exactly_equal():
    encoder = CachedEncoder(controls.load("control:constant"))
    texts = encoder.texts([f"text {n}" for n in range(100)])
    similarities = images_of(encoder.model, pictures(50)) @ texts.T
    assert np.unique(similarities).tolist() == [1.0]


def test_an_unknown_control_is_refused_with_a_suggestion():
    with pytest.raises(
        NotFound, match=r"No model named 'control:randon'. Did you mean 'control:random'\?"
    ):
        controls.load("control:randon")
