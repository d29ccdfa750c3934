"""Draws a scene: a background, then every thing in its place, the farthest first."""

import functools

from PIL import Image, ImageDraw, ImageFilter

from vlprobe.datasets.world.backgrounds import VARIANTS, background
from vlprobe.datasets.world.layout import HORIZON, Placement, placements
from vlprobe.datasets.world.scene import Scene, pick, stream
from vlprobe.datasets.world.sprites import sprite

# Names the folders that drawn pictures are kept in, `cache/demo/*-<version>`. Raise it whenever a
# scene gets other pixels, so that no picture drawn before is taken for a new one;
# tests/datasets/world/test_renderer_version.py fails until then.
VERSION = "3c69a21e"


def render(scene: Scene) -> Image.Image:
    """The scene as RGB, 224 x 224 pixels; the same scene always gives the same pixels."""
    variant = pick(stream(scene.seed, "background"), range(VARIANTS))
    image = background(scene.background, variant).copy()
    layers = placements(scene)
    for placement in layers:
        ground = _ground(scene, placement)
        if ground:
            below = _ground_mark(placement.size, ground)
            image.paste(below, (placement.x, placement.y), below)
        group = scene.groups[placement.group]
        sprite_image = sprite(group.object, group.color, placement.size, placement.faces_left)
        image.paste(sprite_image, (placement.x, placement.y), sprite_image)
    return image


def _ground(scene: Scene, placement: Placement) -> str:
    """What is under the thing: a shadow on the ground, a ripple on water, nothing in the air."""
    if placement.y + placement.size <= HORIZON[scene.background] + 4 or scene.background == "sky":
        return ""
    return "ripple" if scene.background == "sea" else "shadow"


@functools.lru_cache(maxsize=512)
def _ground_mark(size: int, kind: str) -> Image.Image:
    mark = Image.new(
        "RGBA",
        (size, size),
        (20, 24, 40, 0) if kind == "shadow" else (235, 248, 255, 0),
    )
    draw = ImageDraw.Draw(mark)
    height = 0.055 * size
    middle = 0.93 * size
    if kind == "shadow":
        draw.ellipse(
            (0.08 * size, middle - height, 0.92 * size, middle + height),
            fill=(20, 24, 40, 90),
        )
        return mark.filter(ImageFilter.GaussianBlur(0.012 * size))
    for reach in (0.46, 0.36):
        bounds = (
            size * (0.5 - reach),
            middle - height * reach * 2,
            size * (0.5 + reach),
            middle + height * reach * 2,
        )
        draw.ellipse(bounds, outline=(235, 248, 255, 170), width=max(1, size // 50))
    return mark.filter(ImageFilter.GaussianBlur(0.5))
