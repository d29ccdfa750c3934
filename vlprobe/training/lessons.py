"""Training data of a demo model: pictures and captions of the training split in memory, and batches of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image

from vlprobe.datasets.world.captions import TEMPLATES, captions, wrapped
from vlprobe.datasets.world.renderer import render
from vlprobe.datasets.world.scene import draw, pick, stream
from vlprobe.models.demo_weights import IMAGE_SIZE, token_ids, tokenizer

CAPTIONS = 8  # of each scene
_SHIFT = 3  # pixels of 64 that a picture may move
_BRIGHTNESS = 0.15  # share by which a picture may get brighter or darker


@dataclass(frozen=True, slots=True)
class Lessons:
    """Scenes of the training split, and nothing else."""

    pixels: np.ndarray  # uint8 (scenes, 64, 64, 3)
    tokens: np.ndarray  # int16 (scenes, CAPTIONS, context): rows of `token_ids`


def draw_lessons(n: int, progress: Callable[[str, float, float], None]) -> Lessons:
    """The first n scenes of the training split, some of their captions inside one of LGIP's
    templates.
    """
    encode = tokenizer()
    row_of = np.full(encode.vocab_size, -1, np.int16)
    ids = token_ids()
    row_of[list(ids)] = np.arange(len(ids))
    pixels = np.empty((n, IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
    tokens = np.empty((n, CAPTIONS, encode.context_length), np.int16)
    for index in range(n):
        scene = draw("train", index)
        small = render(scene).resize((IMAGE_SIZE, IMAGE_SIZE), Image.Resampling.BICUBIC)
        pixels[index] = np.asarray(small)
        rng = stream(scene.seed, "templates")
        texts = [
            _varied(text, rng.random(), pick(rng, TEMPLATES))
            for text in captions(scene, CAPTIONS, "training")
        ]
        tokens[index] = row_of[encode(texts).numpy()]
        if index % 100 == 0:
            progress("drawing scenes", index, n)
    return Lessons(pixels, tokens)


def _varied(caption: str, chance: float, template: str) -> str:
    if chance < 0.2:
        return wrapped(caption, template)
    if chance < 0.35:
        return template.format(c=caption)  # around the raw caption, as LGIP's own code does it
    return caption.removesuffix(".") if chance < 0.5 else caption


def batches(
    lessons: Lessons, size: int, steps: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pictures, float32 (size, 64, 64, 3) from 0 to 1, each moved and relit a little, with one
    caption's token rows.

    Every scene is seen once before any is seen again. Pictures are never mirrored and never change
    hue: left, right and colours are what the captions speak of.
    """
    rng = np.random.default_rng(seed)
    order = np.empty(0, np.int64)
    for _ in range(steps):
        while len(order) < size:
            order = np.concatenate([order, rng.permutation(len(lessons.pixels))])
        scenes, order = order[:size], order[size:]
        caption_numbers = rng.integers(CAPTIONS, size=size)
        moves = rng.integers(2 * _SHIFT + 1, size=(size, 2))
        light = 1 + _BRIGHTNESS * rng.uniform(-1, 1, (size, 1, 1, 1)).astype(np.float32)
        padded = np.pad(
            lessons.pixels[scenes],
            ((0, 0), (_SHIFT, _SHIFT), (_SHIFT, _SHIFT), (0, 0)),
            mode="edge",
        )
        moved = [
            image[y : y + IMAGE_SIZE, x : x + IMAGE_SIZE]
            for image, (y, x) in zip(padded, moves, strict=True)
        ]
        pixels = np.stack(moved).astype(np.float32) / 255 * light
        yield np.minimum(pixels, 1), lessons.tokens[scenes, caption_numbers]
