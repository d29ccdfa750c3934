from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.perturb.mix import LAMBDAS, apply, box, partners, picture_edits
from vlprobe.types import PictureEdit

SIZES = [(640, 480), (224, 224), (333, 500), (61, 17), (1000, 37), (5, 4)]


def noise(seed: int, size: tuple[int, int]) -> Image.Image:
    return Image.fromarray(
        np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    )


@pytest.mark.parametrize("count", [2, 3, 7, 200])
def test_partners_are_a_permutation_without_a_fixed_point(count: int):
    ids = [f"image-{number}" for number in range(count)]
    for seed in range(20):
        partner_of = partners(ids, seed)
        assert list(sorted(partner_of)) == sorted(ids) == sorted(partner_of.values())
        assert all(one != other for one, other in partner_of.items())


def test_partners_depend_on_the_seed_and_not_on_the_order():
    ids = [f"{number}" for number in range(50)]
    assert partners(ids, 1) == partners(ids[::-1], 1)
    assert partners(ids, 1) != partners(ids, 2)


def test_one_more_picture_changes_one_partner_only():
    ids = [f"{number}" for number in range(50)]
    before, after = partners(ids, 3), partners([*ids, "new"], 3)
    assert sum(before[one] != after[one] for one in ids) == 1


def test_every_partner_is_about_equally_likely():
    ids = list("abcde")
    partners_of_a = [partners(ids, seed)["a"] for seed in range(2000)]
    assert all(400 < partners_of_a.count(other) < 600 for other in "bcde")


@pytest.mark.parametrize("ids", [[], ["a"], ["a", "a"], ["a", "b", "a"]])
def test_too_few_or_duplicate_ids_are_refused(ids: list[str]):
    with pytest.raises(InvalidInput, match="Cannot pair"):
        partners(ids, 1)


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("size", SIZES)
def test_the_patch_is_inside_the_picture_and_its_area_is_rounded_to_whole_pixels(
    size: tuple[int, int], lam: float
):
    width, height = size
    wanted = (1 - lam) * width * height
    for seed in range(60):
        left, top, right, bottom = box(width, height, lam, seed)
        assert 0 <= left < right <= width and 0 <= top < bottom <= height
        wide, tall = right - left, bottom - top
        # No other height is closer at this width, and the error is at most half a row.
        assert (
            abs(wide * tall - wanted)
            <= min(abs(wide * other - wanted) for other in range(1, height + 1)) + 1e-9
        )
        assert abs(wide * tall - wanted) <= wide / 2 + 1e-9 or tall in (1, height)
        assert 0.4 <= (wide / width) / (tall / height) <= 2.6 or min(size) < 40


def test_the_patch_area_on_a_640_x_480_picture_is_accurate_to_1e_4():
    for lam in LAMBDAS:
        off = []
        for seed in range(100):
            left, top, right, bottom = box(640, 480, lam, seed)
            off.append(abs((right - left) * (bottom - top) / (640 * 480) - (1 - lam)))
        assert max(off) < 1e-4 and np.mean(off) < 1e-5


def test_boxes_vary_in_position_and_shape_over_seeds_and_reach_every_edge():
    boxes = [box(320, 240, 0.9, seed) for seed in range(3000)]
    assert len(set(boxes)) > 2000
    assert min(b[0] for b in boxes) == 0 and min(b[1] for b in boxes) == 0
    assert max(b[2] for b in boxes) == 320 and max(b[3] for b in boxes) == 240
    shape = np.log([(b[2] - b[0]) / 320 / ((b[3] - b[1]) / 240) for b in boxes])
    assert abs(shape.mean()) < 0.03
    assert shape.min() < -0.45 and shape.max() > 0.45


@pytest.mark.parametrize("lam", [0.02, 0.5, 0.98])
def test_a_patch_of_any_share_fits(lam: float):
    for seed in range(200):
        left, top, right, bottom = box(200, 100, lam, seed)
        assert 0 <= left < right <= 200 and 0 <= top < bottom <= 100
        assert abs((right - left) * (bottom - top) - (1 - lam) * 20000) <= 100


@pytest.mark.parametrize("lam", LAMBDAS)
def test_mix_equals_the_formula(lam: float):
    image, other = noise(1, (40, 30)), noise(2, (25, 50))
    mixed = apply(image, other, PictureEdit("mix", Path("p"), lam, 7))
    resized = np.asarray(other.resize((40, 30), Image.Resampling.BICUBIC)).astype(float)
    expected = lam * np.asarray(image).astype(float) + (1 - lam) * resized
    assert mixed.size == image.size and mixed.mode == "RGB"
    assert np.abs(np.asarray(mixed) - expected).max() <= 0.5 + 1e-9


def test_a_patch_is_the_same_area_of_the_partner_and_the_rest_is_unchanged():
    image, other = noise(1, (40, 30)), noise(2, (25, 50))
    edit = PictureEdit("patch", Path("p"), 0.7, 11)
    patched = np.asarray(apply(image, other, edit))
    left, top, right, bottom = box(40, 30, 0.7, 11)
    inside = np.zeros((30, 40), bool)
    inside[top:bottom, left:right] = True
    assert (
        patched[inside] == np.asarray(other.resize((40, 30), Image.Resampling.BICUBIC))[inside]
    ).all()
    assert (patched[~inside] == np.asarray(image)[~inside]).all()


def test_an_edit_does_not_modify_its_input_pictures():
    image, other = noise(1, (20, 20)), noise(2, (20, 20))
    before = image.tobytes(), other.tobytes()
    for kind in ("mix", "patch"):
        apply(image, other, PictureEdit(kind, Path("p"), 0.6, 1))
    assert (image.tobytes(), other.tobytes()) == before


def test_the_partner_is_another_picture_and_strengths_share_box_and_partner():
    paths = {f"{number}": Path(f"/images/{number}.jpg") for number in range(30)}
    weak, strong = picture_edits(paths, "patch", 0.9, 1), picture_edits(paths, "patch", 0.6, 1)
    assert set(weak) == set(paths)
    assert all(
        edit.partner != paths[one] and edit.partner in paths.values() for one, edit in weak.items()
    )
    assert all(
        (weak[one].partner, weak[one].seed) == (strong[one].partner, strong[one].seed)
        for one in paths
    )
    assert len({edit.seed for edit in weak.values()}) == 30
    assert picture_edits(paths, "mix", 0.9, 10)["0"] != picture_edits(paths, "mix", 0.9, 1)["0"]


@pytest.mark.parametrize("lam", [0, 1, -0.1, float("nan")])
def test_a_share_outside_0_to_1_is_refused(lam: float):
    with pytest.raises(InvalidInput, match="lam is"):
        picture_edits({"a": Path("a"), "b": Path("b")}, "mix", lam, 1)
