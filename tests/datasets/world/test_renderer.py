import itertools
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tools.world.scenes import BACKGROUNDS, COLORS, COUNTS, OBJECTS, draw
from vlprobe.datasets.world import sprites
from vlprobe.datasets.world.renderer import render
from vlprobe.datasets.world.scene import SIZE, Group, Scene, facing, placements
from vlprobe.datasets.world.sprites import sprite

SIDE_BY_SIDE = ("", "left", "right", "above", "below")


def pixels(scene):
    return np.asarray(render(scene)).astype(int)


def drawn_outside(first_scene, second_scene, boxes):
    changed = (pixels(first_scene) != pixels(second_scene)).any(axis=2)
    for left, top, right, bottom in boxes:
        changed[top:bottom, left:right] = False
    return changed.sum()


def covered(placement, scene):
    """Return a mask of the pixels that the drawing of a thing covers with more than half opacity."""
    group = scene.groups[placement.group]
    alpha = np.asarray(
        sprite(group.object, group.color, placement.size, placement.faces_left).getchannel("A")
    )
    whole = np.zeros((SIZE, SIZE), bool)
    whole[
        placement.y : placement.y + placement.size, placement.x : placement.x + placement.size
    ] = alpha > 200
    return whole


def test_the_same_scene_gives_the_same_bytes():
    for index in range(30):
        scene = draw("train", index)
        assert render(scene).tobytes() == render(replace(scene)).tobytes()


@pytest.mark.full  # draws for 2 s
def test_every_object_renders_in_every_color_and_count():
    seen = set()
    for name, color, count in itertools.product(OBJECTS, COLORS, COUNTS):
        image = render(Scene(BACKGROUNDS[count], (Group(name, color, count, room=5),), seed=1))
        assert image.size == (SIZE, SIZE)
        assert image.mode == "RGB"
        seen.add(image.tobytes())
    assert len(seen) == 11 * 11 * 5


@pytest.mark.full  # draws for 2 s
def test_the_most_frequent_base_color_of_every_thing_is_its_color():
    # Each pixel counts for the base color to which it is very close.
    bases = np.array([sprites.palette(color)["base"] for color in COLORS])
    for name, color in itertools.product(OBJECTS, COLORS):
        rgba = np.asarray(sprite(name, color, 96, False)).astype(int)
        own = rgba[rgba[..., 3] > 200][:, :3]
        nearest = np.abs(own[:, None] - bases[None]).sum(axis=2)
        exact = nearest.min(axis=1) < 12
        votes = np.bincount(nearest[exact].argmin(axis=1), minlength=len(COLORS))
        assert COLORS[votes.argmax()] == color, (name, color)


def test_things_of_a_side_by_side_scene_are_inside_the_picture_and_never_overlap():
    for index in range(3000):
        scene = draw("train", index)
        boxes = [placement.box for placement in placements(scene)]
        assert len(boxes) == sum(group.count for group in scene.groups)
        assert all(min(box) >= 0 and max(box) <= SIZE for box in boxes)
        if scene.relation in SIDE_BY_SIDE:
            for a, b in itertools.combinations(boxes, 2):
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize(
    ("relation", "axis"), [("left", 0), ("right", 0), ("above", 1), ("below", 1)]
)
def test_every_thing_of_a_group_is_on_the_side_of_its_relation(relation, axis):
    for seed, count in itertools.product(range(20), COUNTS):
        scene = Scene(
            "sky", (Group("dog", "red", count), Group("cat", "blue", 6 - count)), relation, seed
        )
        ends = [
            [placement.box[axis::2] for placement in placements(scene) if placement.group == group]
            for group in (0, 1)
        ]
        first, second = ends if relation in ("left", "above") else ends[::-1]
        assert max(high for _, high in first) <= min(low for low, _ in second)


def test_the_thing_in_front_hides_between_4_and_75_percent_of_the_other():
    for seed, relation in itertools.product(range(25), ("front", "behind")):
        names = OBJECTS[seed % 11], OBJECTS[(3 * seed + 4) % 11]
        scene = Scene("street", (Group(names[0], "red"), Group(names[1], "blue")), relation, seed)
        back, front = placements(scene)
        assert scene.groups[front.group] is scene.groups[0 if relation == "front" else 1]
        behind = covered(back, scene)
        hidden = (behind & covered(front, scene)).sum() / behind.sum()
        assert 0.04 < hidden < 0.75, (names, relation, hidden)


@pytest.mark.full  # draws for 2 s
def test_a_new_color_or_object_changes_only_the_pixels_of_its_group():
    for index in range(60):
        scene = draw("train", index)
        group = scene.groups[0]
        boxes = [placement.box for placement in placements(scene) if placement.group == 0]
        other_color = COLORS[(COLORS.index(group.color) + 1) % 11]
        other_object = OBJECTS[(OBJECTS.index(group.object) + 1) % 11]
        for changed in (replace(group, color=other_color), replace(group, object=other_object)):
            after = replace(scene, groups=(changed, *scene.groups[1:]))
            assert drawn_outside(scene, after, boxes) == 0
            assert (pixels(scene) != pixels(after)).any()


def test_another_count_with_the_same_room_changes_only_the_added_places():
    for seed, (few, many) in itertools.product(range(8), itertools.combinations(COUNTS, 2)):
        crowd = Group("bird", "pink", many, room=many)
        scene = Scene("meadow", (crowd, Group("car", "gray", 2)), "left", seed)
        fewer = replace(scene, groups=(replace(crowd, count=few), scene.groups[1]))
        kept = set(placements(fewer))
        assert kept < set(placements(scene))
        assert (
            drawn_outside(
                scene, fewer, [placement.box for placement in set(placements(scene)) - kept]
            )
            == 0
        )


def test_swapped_colors_change_only_the_pixels_of_the_things():
    for index in range(60):
        scene = draw("train", index)
        if not scene.relation:
            continue
        first, other = scene.groups
        after = replace(
            scene, groups=(replace(first, color=other.color), replace(other, color=first.color))
        )
        assert placements(after) == placements(scene)
        assert drawn_outside(scene, after, [placement.box for placement in placements(scene)]) == 0


def test_moving_a_group_does_not_change_the_background():
    for seed in range(10):
        scene = Scene("beach", (Group("dog", "red", 2), Group("boat", "blue", 1)), "left", seed)
        after = replace(scene, relation="right")
        boxes = [placement.box for placement in (*placements(scene), *placements(after))]
        assert drawn_outside(scene, after, boxes) == 0


def test_all_things_of_a_scene_face_one_way_unless_mixed():
    for index in range(200):
        scene = draw("train", index)
        ways = {placement.faces_left for placement in placements(scene)}
        if facing(scene) != "mixed":
            assert ways == {facing(scene) == "left"}


@pytest.mark.parametrize("rim", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [(1, 1), (4, 9), (40, 31)])
def test_a_rim_equals_a_maximum_filter_computed_by_a_loop(rim: int, size: tuple[int, int]):
    pixels = np.random.default_rng(rim).integers(0, 256, size, dtype=np.uint8)
    alpha = Image.fromarray(np.where(pixels > 200, pixels, 0).astype(np.uint8))
    expected = np.pad(np.asarray(alpha), rim)
    by_loop = [
        [expected[y : y + 2 * rim + 1, x : x + 2 * rim + 1].max() for x in range(size[1])]
        for y in range(size[0])
    ]
    assert np.asarray(sprites._widened(alpha, rim)).tolist() == by_loop
