import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.training import batches
from vlprobe.training.batches import Batches
from vlprobe.types import Item, Picture

EVERYTHING = {"sc", "vc", "consistency", "flip"}
WORDS = ("a", "blue", "boat", "dog", "three")


class Letters:
    """A fake model that encodes a picture as its first pixel and a text as the codes of its letters."""

    def preprocess(self, image):
        return np.full((3, 8, 8), image.getpixel((0, 0))[0] / 255, np.float32)

    def ids(self, texts):
        return np.array([[ord(letter) for letter in text.ljust(120)] for text in texts], np.int64)


def read(tokens) -> list[str]:
    return ["".join(map(chr, row)).rstrip() for row in tokens]


@pytest.fixture
def items(tmp_path):
    made = []
    for number in range(12):
        Image.new("RGB", (8, 8), (20 * number, 0, 0)).save(tmp_path / f"{number}.png")
        captions = (f"A red dog {number}.", f"Two dogs near a red car {number}.")
        made.append(Item(f"item-{number}", Picture(tmp_path / f"{number}.png"), captions))
    return made


def make(items, size=4, seed=0, makes=frozenset(), **options) -> Batches:
    return Batches(items, Letters(), size, seed, makes, WORDS, **options)


def picture_numbers(batch) -> list[int]:
    return [round(float(pixels[0, 0, 0]) * 255 / 20) for pixels in batch.pixels[: batch.n]]


def caption_numbers(batch) -> list[int]:
    return [int(text.rstrip(".").split()[-1]) for text in read(batch.tokens[: batch.n])]


def test_each_picture_is_paired_with_one_of_its_captions(items):
    captions = set()
    made = make(items)
    for number in range(60):
        batch = made.batch(number)
        assert batch.n == len(batch.pixels) == len(batch.tokens) == 4
        assert picture_numbers(batch) == caption_numbers(batch)
        captions |= set(read(batch.tokens))
    assert captions == {caption for item in items for caption in item.captions}


def test_every_row_is_used_once_per_epoch(items):
    made = make(items, size=4)
    epochs = [
        [
            row
            for number in range(3 * epoch, 3 * epoch + 3)
            for row in picture_numbers(made.batch(number))
        ]
        for epoch in (0, 1)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(12))
    assert epochs[0] != epochs[1]


def test_no_batch_has_a_row_twice_if_batches_do_not_divide_an_epoch(items):
    made = make(items, size=5)
    rows = [picture_numbers(made.batch(number)) for number in range(20)]
    assert all(len(set(batch)) == 5 for batch in rows)
    assert set(itertools.chain(*rows)) == set(range(12))


def same(one, other) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in one.__slots__)


def test_a_batch_depends_only_on_seed_and_number(items):
    normal = (np.zeros((3, 1, 1), np.float32), np.ones((3, 1, 1), np.float32))
    first, again = (
        make(items, makes=EVERYTHING, normal=normal),
        make(items[::-1], makes=EVERYTHING, normal=normal),
    )
    straight = [first.batch(number) for number in range(6)]
    assert all(same(again.batch(number), straight[number]) for number in reversed(range(6)))
    other = make(items, seed=1, makes=EVERYTHING, normal=normal)
    assert not any(same(other.batch(number), straight[number]) for number in range(6))


def test_pictures_are_varied_only_if_the_preprocessing_is_known(items):
    normal = (np.zeros((3, 1, 1), np.float32), np.ones((3, 1, 1), np.float32))
    plain, varied = make(items).batch(0), make(items, normal=normal).batch(0)
    assert not np.array_equal(plain.pixels, varied.pixels)
    assert np.array_equal(plain.tokens, varied.tokens)


def test_altered_captions_and_pictures_refer_to_their_original_row(items):
    batch = make(items, size=12, makes=EVERYTHING).batch(0)
    texts = read(batch.tokens)
    own, rest = texts[:12], iter(texts[12:])
    assert batch.corrupted.tolist() == list(range(12))
    assert all(next(rest) != own[at] for at in batch.corrupted)
    assert batch.reworded.tolist() == list(range(12))
    for at in batch.reworded:
        assert own[at].split()[-1].rstrip(".") in next(rest)
    for at, kind in zip(batch.flipped, batch.kinds, strict=True):
        changed = [
            two for one, two in zip(own[at].split(), next(rest).split(), strict=True) if one != two
        ]
        assert 1 <= len(changed) <= 2, kind  # "one dog" -> "four dogs" changes both
    assert set(batch.kinds) <= {"color", "number", "object"}
    assert next(rest, None) is None
    assert len(batch.pixels) == 12 + len(batch.mixed)
    for at, pixels in zip(batch.mixed, batch.pixels[12:], strict=True):
        assert not np.array_equal(pixels, batch.pixels[at])


def test_alterations_that_no_loss_needs_are_not_made(items):
    batch = make(items, makes={"clip", "flip"}).batch(0)
    assert len(batch.pixels) == 4
    assert len(batch.corrupted) == len(batch.reworded) == len(batch.mixed) == 0
    assert len(batch.tokens) == 4 + len(batch.flipped)


def test_the_pictures_of_a_minimal_pair_are_adjacent_with_their_captions(items):
    pairs = [
        Item(one.id, one.image, one.captions[:1], {}, other.captions[:1], other.image)
        for one, other in zip(items[::2], items[1::2], strict=True)
    ]
    batch = make(pairs, size=12).batch(0)
    assert picture_numbers(batch) == caption_numbers(batch)
    assert all(
        second == first + 1
        for first, second in zip(
            picture_numbers(batch)[::2], picture_numbers(batch)[1::2], strict=True
        )
    )


def test_the_held_out_items_do_not_depend_on_their_order(items):
    many = [Item(f"{number}", items[0].image, ("a",)) for number in range(100)]
    learned, held_out = batches.split(many)
    assert (len(learned), len(held_out)) == (90, 10)
    assert {item.id for item in batches.split(many[::-1])[1]} == {item.id for item in held_out}
    assert held_out != many[:10]
    assert len(batches.split(many[:5])[1]) == 2
    more = [Item(f"{number}", items[0].image, ("a",)) for number in range(5000)]
    assert len(batches.split(more)[1]) == batches.HELD_OUT_ITEMS


def test_items_of_one_picture_are_on_one_side_of_the_split(items):
    many = [Item(f"{n}", items[0].image, ("a",), cluster=str(n // 5)) for n in range(200)]
    learned, held_out = ({item.cluster for item in side} for side in batches.split(many))
    assert not learned & held_out
    assert len(held_out) == 4


def test_too_few_pictures_and_items_without_one_are_refused(items):
    with pytest.raises(InvalidInput, match=r"batch size \(13\) .* training pictures \(12\)"):
        make(items, size=13)
    with pytest.raises(InvalidInput, match="Found 3"):
        batches.split(items[:3])
    with pytest.raises(InvalidInput, match=r"no picture.*'blind'"):
        batches.split([*items, Item("blind", None, ("a",))])


def test_pictures_are_decoded_once_while_they_fit_in_memory(items, monkeypatch):
    opened = []
    monkeypatch.setattr(
        batches.pictures, "open_picture", lambda p: opened.append(p.path) or Image.open(p.path)
    )
    made = make(items, size=12)
    for number in range(3):
        made.batch(number)
    assert len(opened) == 12
    monkeypatch.setattr(batches, "_MEMORY", 0)
    tight = make(items, size=12)
    assert np.array_equal(tight.batch(1).pixels, made.batch(1).pixels)
    tight.batch(2)
    assert len(opened) == 12 + 24
    assert isinstance(opened[0], Path)


def test_a_caption_without_words_is_used_and_never_corrupted(items):
    from dataclasses import replace

    items[3] = replace(items[3], captions=("!!!", "…"))
    found = Batches(items, Letters(), 12, 0, EVERYTHING, WORDS).batch(0)
    texts = read(found.tokens)
    wordless = next(row for row, text in enumerate(texts[:12]) if text in ("!!!", "…"))
    assert len(found.corrupted) == 11
    assert wordless not in found.corrupted
