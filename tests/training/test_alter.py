from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe.perturb import mix
from vlprobe.perturb.draws import draw
from vlprobe.training import batches
from vlprobe.types import PictureEdit

CAPTION = "Two red dogs stand to the left of a blue car on the beach."
WORDS = batches.vocabulary([CAPTION, "The cat's toy is blue."])


def test_the_vocabulary_has_every_word_once():
    assert batches.vocabulary(["A cat, a Dog.", "two dogs; a cat"]) == (
        "a",
        "cat",
        "dog",
        "dogs",
        "two",
    )


def test_a_corrupted_caption_differs_and_is_never_empty():
    for number in range(300):
        for caption in (CAPTION, "Dog", "Two dogs."):
            made = batches.corrupt_caption(caption, WORDS, number)
            assert made != caption
            assert any(map(str.isalnum, made))
            assert "  " not in made


def test_three_words_in_ten_are_altered_half_of_them_deleted():
    deleted = exchanged = 0
    for number in range(2000):
        made = batches.corrupt_caption(CAPTION, ["zzz", "yyy"], number).lower()
        put_in = made.count("zzz") + made.count("yyy")
        exchanged += put_in
        deleted += 14 - len(made.split())
    assert (exchanged + deleted) / (2000 * 14) == pytest.approx(batches.ALTERED_WORDS, abs=0.01)
    assert exchanged / (exchanged + deleted) == pytest.approx(batches.PUT_IN, abs=0.02)


def test_an_inserted_word_is_another_word_with_the_case_of_the_original():
    for number in range(50):
        assert batches.corrupt_caption("Dog", ["cat", "dog"], number) == "Cat"


def test_the_corruption_depends_only_on_the_number():
    made = [batches.corrupt_caption(CAPTION, WORDS, number) for number in range(20)]
    assert made == [batches.corrupt_caption(CAPTION, WORDS, number) for number in range(20)]
    assert len(set(made)) > 15


def pictures(n: int, side: int = 20) -> np.ndarray:
    return np.random.default_rng(1).random((n, 3, side, side)).astype(np.float32)


def test_half_of_the_pictures_are_mixed_with_another_of_the_batch():
    pixels = pictures(40)
    counts = []
    for number in range(20):
        before = pixels.copy()
        made, rows = batches.mixed_pictures(pixels, number)
        counts.append(len(rows))
        assert np.array_equal(before, pixels)
        assert all(
            not np.array_equal(one, pixels[row]) for one, row in zip(made, rows, strict=True)
        )
    assert np.mean(counts) == pytest.approx(20, abs=2)


def test_a_mixed_picture_keeps_60_to_90_percent_of_the_original():
    pixels = np.stack([np.full((3, 30, 30), value, np.float32) for value in (0.0, 1.0)])
    kinds = set()
    for number in range(60):
        for one, row in zip(*batches.mixed_pictures(pixels, number), strict=True):
            kept = 1 - abs(one.mean() - row)
            assert 0.59 < kept < 0.91
            kinds.add("mix" if len(np.unique(one)) == 1 else "patch")
    assert kinds == {"mix", "patch"}


def test_pictures_are_mixed_and_patched_as_in_the_probe(monkeypatch):
    monkeypatch.setattr(batches, "LAMBDAS", (0.7, 0.7))
    pixels = np.rint(255 * pictures(3, 24))
    images = [Image.fromarray(picture.transpose(1, 2, 0).astype(np.uint8)) for picture in pixels]
    kinds = set()
    for number in range(20):
        for one, row in zip(*batches.mixed_pictures(pixels, number), strict=True):
            kind = "patch" if (one == pixels[row]).mean() > 0.6 else "mix"
            kinds.add(kind)
            partner = int(
                np.argmin(
                    [np.abs(one - pixels[row] * 0.7 - other * 0.3).mean() for other in pixels]
                )
            )
            if kind == "patch":
                partner = next(
                    k
                    for k in range(3)
                    if k != row and ((one == pixels[row]) | (one == pixels[k])).all()
                )
            edit = PictureEdit(kind, Path(), 0.7, draw(number, "", row, "box"))
            theirs = np.asarray(mix.apply(images[row], images[partner], edit)).transpose(2, 0, 1)
            assert partner != row
            assert np.abs(theirs - one).max() <= (0.51 if kind == "mix" else 0)
    assert kinds == {"mix", "patch"}


def test_a_varied_picture_is_shifted_and_brightened_and_stays_in_range():
    mean, std = (
        np.array(value, np.float32).reshape(3, 1, 1) for value in ((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    )
    seen = pictures(1, 40)[0]
    ratios = []
    for number in range(30):
        varied = batches.vary_picture((seen - mean) / std, mean, std, number) * std + mean
        assert varied.dtype == np.float32
        assert varied.min() > -1e-6
        assert varied.max() < 1 + 1e-6
        inner = varied[:, 5:-5, 5:-5]
        errors = {}
        for down in range(-2, 3):
            for right in range(-2, 3):
                there = seen[:, 5 + down : 35 + down, 5 + right : 35 + right]
                light = np.median(inner / there)
                errors[np.abs(np.minimum(there * light, 1) - inner).max()] = light
        assert min(errors) < 1e-4
        ratios.append(errors[min(errors)])
    assert 0.85 <= min(ratios) < 0.92
    assert 1.08 < max(ratios) <= 1.15
