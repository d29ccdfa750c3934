"""OpenCLIP's towers skip rows on which no embedding depends; the result equals OpenCLIP's forward pass."""

import numpy as np
import pytest
import torch
from PIL import Image

from vlprobe.models import open_clip as family
from vlprobe.scoring.encoder import CachedEncoder

pytestmark = pytest.mark.usefixtures("architectures")


def preprocessed(model: family.OpenClipEncoder, count: int) -> np.ndarray:
    chance = np.random.default_rng(0)
    images = chance.integers(0, 255, (count, 40, 60, 3), dtype=np.uint8)
    return np.stack([model.preprocess(Image.fromarray(image)) for image in images])


def rows_of_first_block(model: family.OpenClipEncoder, texts: list[str], **cut: bool) -> list[int]:
    """Return the number of rows that each call of the text tower's first block gets."""
    seen = []
    hook = model.module.transformer.resblocks[0].ln_1.register_forward_pre_hook(
        lambda module, args: seen.append(args[0].shape[:-1].numel())
    )
    model.encode_texts(model.tokenize(texts), **cut)
    hook.remove()
    return seen


def test_texts_are_cut_at_their_end_and_share_a_common_beginning():
    model = family.load("openclip:test-tiny", "cpu")
    alone = rows_of_first_block(model, ["a cat"])
    assert (alone, rows_of_first_block(model, ["a cat"], cut=False)) == ([16], [77])
    begins = "a man in a red hat and a long coat"  # 10 tokens with the start token
    texts = [f"{begins} rides a {animal}" for animal in ("horse", "cat", "dog", "cow", "pig")]
    # 12 shared rows and two for each of the five, padded to a multiple of 16; each text separately has 14
    assert rows_of_first_block(model, texts) == [32]
    assert rows_of_first_block(model, texts, cut=False) == [5 * 77]


def test_embeddings_do_not_depend_on_the_other_inputs_of_the_batch():
    model = family.load("openclip:test-tiny", "cpu")
    model._small = False
    chance = np.random.default_rng(3)
    words = ["a", "red", "cat", "on", "two", "big", "boats", "near", "small"]
    texts = [" ".join(chance.choice(words, length)) for length in chance.integers(1, 14, 150)]
    tokens = model.tokenize(texts)
    pixels = preprocessed(model, 48)
    whole, seen = CachedEncoder(model).texts(texts), model.encode_images(pixels)
    with torch.inference_mode():
        expected = [model.module.encode_text(torch.from_numpy(tokens), normalize=True)]
        expected += [model.module.encode_image(torch.from_numpy(pixels), normalize=True)]
    assert np.abs(whole - expected[0].numpy()).max() <= 1e-6
    assert np.abs(seen - expected[1].numpy()).max() <= 1e-6
    is_exact = torch.backends.cpu.get_cpu_capability() == "AVX512"
    tolerance = 0 if is_exact else 1e-6  # MKL's AVX2 code adds 16 rows in a different order than 64
    for size in (1, 8, 40, 149):
        own = chance.permutation(len(texts))[:size]
        beside = CachedEncoder(model).texts([texts[row] for row in own])
        np.testing.assert_allclose(beside, whole[own], rtol=0, atol=tolerance)
    for size in (16, 32):
        own = chance.permutation(len(pixels))[:size]
        images = model.encode_images(pixels[own])
        np.testing.assert_allclose(images, seen[own], rtol=0, atol=tolerance)


def test_an_image_tower_with_average_pooling_runs_all_rows():
    model = family.load("openclip:test-tiny", "cpu")
    pixels = preprocessed(model, 3)
    by_class_token = model.encode_images(pixels)
    model.module.visual.pool_type = "avg"
    with torch.inference_mode():
        expected = model.module.encode_image(torch.from_numpy(pixels), normalize=True).numpy()
    assert np.abs(model.encode_images(pixels) - expected).max() <= 1e-6
    assert np.abs(by_class_token - expected).max() > 1e-3
