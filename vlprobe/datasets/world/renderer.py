"""Draws a scene: a background, then every thing in its place, the farthest first."""

import functools

from PIL import Image, ImageDraw, ImageFilter

from vlprobe.datasets.world.backgrounds import VARIANTS, background, large_background
from vlprobe.datasets.world.layout import HORIZON, SIZE, Placement, placements
from vlprobe.datasets.world.scene import Scene, pick, stream
from vlprobe.datasets.world.sprites import large_sprite, sprite

# Names the folders that drawn pictures are kept in, `cache/demo/*-<version>`. Raise it whenever a
# scene gets other pixels, so that no picture drawn before is taken for a new one;
# tests/datasets/world/test_renderer_version.py fails until then.
VERSION = "3c69a21e"


def render(scene: Scene) -> Image.Image:
    """The scene as RGB, 224 x 224 pixels; the same scene always gives the same pixels."""
    image = background(scene.background, _variant(scene)).copy()
    for placement in placements(scene):
        ground = _ground(scene, placement)
        if ground:
            below = _ground_mark(placement.size, ground)
            image.paste(below, (placement.x, placement.y), below)
        group = scene.groups[placement.group]
        sprite_image = sprite(group.object, group.color, placement.size, placement.faces_left)
        image.paste(sprite_image, (placement.x, placement.y), sprite_image)
    return image


def render_large(scene: Scene, size: int) -> Image.Image:
    """The same scene as RGB, `size` pixels a side, to be looked at: no model is shown it.

    Drawn anew at the whole multiple of 224 that is nearest above, then scaled down. Reduced to 224
    pixels it differs from `render` by less than 3 of 255 levels on average.
    """
    scale = max(1, -(-size // SIZE))
    image = large_background(scene.background, _variant(scene), scale).copy()
    for placement in placements(scene):
        corner = placement.x * scale, placement.y * scale
        ground = _ground(scene, placement)
        if ground:
            below = _drawn_ground_mark(placement.size, ground, scale)
            image.paste(below, corner, below)
        group = scene.groups[placement.group]
        shape = group.object, group.color, placement.size, placement.faces_left
        sprite_image = large_sprite(*shape, scale)
        image.paste(sprite_image, corner, sprite_image)
    return image if image.width == size else image.resize((size, size), Image.Resampling.LANCZOS)


def _variant(scene: Scene) -> int:
    return pick(stream(scene.seed, "background"), range(VARIANTS))


def _ground(scene: Scene, placement: Placement) -> str:
    """Draw what is under the thing: a shadow on the ground, a ripple on water, nothing in the air."""
    if placement.y + placement.size <= HORIZON[scene.background] + 4 or scene.background == "sky":
        return ""
    return "ripple" if scene.background == "sea" else "shadow"


@functools.lru_cache(maxsize=512)
def _ground_mark(size: int, kind: str) -> Image.Image:
    return _drawn_ground_mark(size, kind, 1)


def _drawn_ground_mark(size: int, kind: str, scale: int) -> Image.Image:
    """The mark below a thing of `size` pixels in a picture of 224, `scale` times as large."""
    line = scale * max(1, size // 50)
    size *= scale
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
        draw.ellipse(bounds, outline=(235, 248, 255, 170), width=line)
    return mark.filter(ImageFilter.GaussianBlur(0.5 * scale))
