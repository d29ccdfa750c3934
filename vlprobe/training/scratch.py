"""Train the demo world's tiny CLIP from nothing, with OpenCLIP's own model and losses, only on the training split.

Pictures and captions of that split are drawn in memory first.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from vlprobe.datasets.world.captions import TEMPLATES, captions, wrapped
from vlprobe.datasets.world.renderer import render
from vlprobe.datasets.world.scene import draw, pick, stream
from vlprobe.errors import InvalidInput
from vlprobe.models.demo_weights import (
    IMAGE_SIZE,
    LOSSES,
    build,
    config,
    save,
    token_ids,
    tokenizer,
)
from vlprobe.models.modules import OpenClipModel
from vlprobe.training.learner import HIGHEST_SCALE, keep_scale, optimizer, schedule

if TYPE_CHECKING:
    pass

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


Progress = Callable[[str, float, float], None]  # stage, done, of how many
STEPS = 900  # the recipe's; a shorter run is the same run stopped early
BATCH = 128
SCENES = 20_000
_RATE = 1e-3
_DECAY = 0.1
_WARM_UP = 50  # steps


def train(
    loss: str, steps: int, seed: int, threads: int, out: Path, progress: Progress = lambda *_: None
) -> dict:
    """Trains a model and writes its checkpoint.

    Args:
        loss: "softmax" (symmetric contrastive loss) or "sigmoid" (SigLIP's loss).
        steps: Of BATCH scenes each. The learning rate falls to zero at STEPS or, in a longer run,
            at its end.
        seed: Of the first weights and of the order of the scenes.
        threads: For PyTorch. Another number changes the weights, by way of rounding.
        out: The .safetensors file.
        progress: Called with the stage, and how much of how much is done.

    Returns:
        loss, steps, seed, threads, scenes, seconds, and final_loss: the mean training loss of the
        last 20 steps.

    Raises:
        InvalidInput: an unknown loss, less than one step, a file that cannot be written, or a loss
            that is not finite.
    """
    import torch

    if loss not in LOSSES:
        raise InvalidInput(f"Loss '{loss}' is not known. Expected one of: {', '.join(LOSSES)}.")
    if steps < 1:
        raise InvalidInput(
            f"{steps} steps train nothing. Expected 1 or more; the recipe takes {STEPS}."
        )
    try:  # before minutes of work, not after
        out.parent.mkdir(parents=True, exist_ok=True)
        out.touch()
    except OSError as error:
        raise InvalidInput(
            f"'{out}' cannot be written ({error.strerror}). Expected a .safetensors file."
        ) from None
    start = time.monotonic()
    scenes = min(SCENES, steps * BATCH)
    threads_before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model, losses = _fit(draw_lessons(scenes, progress), loss, steps, seed, progress)
    finally:
        torch.set_num_threads(threads_before)
    summary = {
        "loss": loss,
        "steps": steps,
        "seed": seed,
        "threads": threads,
        "scenes": scenes,
        "seconds": round(time.monotonic() - start),
        "final_loss": round(float(np.mean(losses[-20:])), 4),
    }
    save(out, model, loss, summary)
    return summary


def _fit(
    lessons: Lessons, loss: str, steps: int, seed: int, progress: Progress
) -> tuple[OpenClipModel, list[float]]:
    import torch
    from open_clip.loss import ClipLoss, SigLipLoss

    small = config(loss)
    small["text_cfg"]["vocab_size"] = len(token_ids())
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = build(small).train()
    criterion = ClipLoss() if loss == "softmax" else SigLipLoss()
    steering = optimizer(model, _RATE, _DECAY)
    mean, std = (
        torch.tensor(model.visual.preprocess_cfg[key]).view(3, 1, 1) for key in ("mean", "std")
    )
    losses = []
    for step, (pixels, tokens) in enumerate(batches(lessons, BATCH, steps, seed)):
        for group in steering.param_groups:
            group["lr"] = _RATE * schedule(step, max(steps, STEPS), _WARM_UP)
        images = (torch.from_numpy(pixels).permute(0, 3, 1, 2) - mean) / std
        images = model.encode_image(
            images.contiguous(memory_format=torch.channels_last), normalize=True
        )
        texts = model.encode_text(torch.from_numpy(tokens).long(), normalize=True)
        bias = () if model.logit_bias is None else (model.logit_bias,)
        value = criterion(images, texts, model.logit_scale.exp(), *bias)
        steering.zero_grad()
        value.backward()
        steering.step()
        keep_scale(model.logit_scale, HIGHEST_SCALE)
        losses.append(value.item())
        if not math.isfinite(losses[-1]):
            raise InvalidInput(
                f"The training loss is {losses[-1]} at step {step}. Expected a number; try another seed."
            )
        progress("training", step + 1, steps)
    return model, losses
