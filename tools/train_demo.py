"""Train the bundled demo models: `python -m tools.train_demo --loss sigmoid --output sigmoid.safetensors`.

A tiny CLIP model is trained from random weights on the training split of the demo world, with
OpenCLIP's model and losses. The pictures and captions in that split are first drawn in memory.
"""

import copy
import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from PIL import Image

from tools.world.captions import (
    NUMBERS,
    PLACES,
    RELATIONS,
    SETTINGS,
    SYNONYMS,
    WITH,
    agree,
    captions,
    doings,
    plural,
)
from tools.world.scenes import COLORS, OBJECTS, draw
from vlprobe.cli.output import ProgressBar
from vlprobe.datasets.world.renderer import render
from vlprobe.datasets.world.scene import pick, stream
from vlprobe.errors import InvalidInput
from vlprobe.models.demo_weights import CONTEXT, IMAGE_SIZE, build, tokenizer, write_checkpoint
from vlprobe.models.modules import OpenClipModel
from vlprobe.perturb import templates
from vlprobe.training.learner import HIGHEST_SCALE, keep_scale, optimizer, schedule

LOSSES = ("softmax", "sigmoid")

_CONFIG = {
    "embed_dim": 128,
    "quick_gelu": False,
    "vision_cfg": {
        "image_size": IMAGE_SIZE,
        "layers": [1, 1, 1, 1],
        "width": 16,
        "patch_size": None,
    },
    "text_cfg": {
        "context_length": CONTEXT,
        "vocab_size": 49408,
        "width": 64,
        "heads": 4,
        "layers": 4,
    },
}

_FUNCTION_WORDS = """
    a an the that is are there and with where by of in on to it its them their this we you can see seen be single
    shown pictured picture photo image scene showing shows placed located parked wearing dressed next beside flanked
    partly hidden covered followed following side left right
"""

TEMPLATES = tuple(f"{each.beginning}{{c}}{each.ending}" for each in templates.TEMPLATES)
CAPTIONS = 8  # per scene
_SHIFT = 3  # largest shift of a picture, in pixels of 64
_BRIGHTNESS = 0.15  # largest relative change in brightness


def vocabulary() -> frozenset[str]:
    """Return every word in the demo world's captions and templates, in lowercase."""
    names = [
        form
        for name, others in SYNONYMS.items()
        for noun in (name, *others)
        for form in (noun, plural(noun))
    ]
    verbs = [
        form
        for background in PLACES
        for name in OBJECTS
        for in_the_air in (False, True)
        for verb, doing in doings(background, name, in_the_air)
        for form in (verb, agree(verb, 1), doing)
    ]
    tables = [
        text
        for table in (PLACES, SETTINGS, RELATIONS, WITH)
        for texts in table.values()
        for text in texts
    ]
    everything = " ".join((*names, *verbs, *tables, *NUMBERS.values(), *COLORS, _FUNCTION_WORDS))
    return frozenset(re.findall(r"[a-z]+", everything))


def wrapped(caption: str, template: str) -> str:
    """Insert a caption into one of LGIP's templates, with correct capitalization and a final period."""
    inner = caption.removesuffix(".")
    if not template.startswith("{c}"):
        inner = inner[0].lower() + inner[1:]
    text = template.format(c=inner)
    return f"{text[0].upper()}{text[1:]}."


def config(loss: str) -> dict:
    """Return OpenCLIP's model config for a model trained with the softmax or the sigmoid loss."""
    model_config = copy.deepcopy(_CONFIG)
    if loss == "sigmoid":
        # log 10 and -10, as in SigLIP's paper
        model_config |= {"init_logit_scale": 2.302585, "init_logit_bias": -10.0}
    return model_config


def token_ids() -> tuple[int, ...]:
    """Return the tokens for all words of the demo world in ascending order: the padding token comes first, and the
    end-of-text token, where CLIP pools, comes last.
    """
    tokens = tokenizer()
    used = {0, tokens.sot_token_id, tokens.eot_token_id}
    for word in (*vocabulary(), ".", ","):
        used.update(tokens.encode(word))
    return tuple(sorted(used))


@dataclass(frozen=True, slots=True)
class Lessons:
    """Pixels and caption tokens for scenes in the training split."""

    pixels: np.ndarray  # uint8 (scenes, 64, 64, 3)
    tokens: np.ndarray  # int16 (scenes, CAPTIONS, context): rows of `token_ids`


def draw_lessons(n: int, progress: Callable[[str, float, float], None]) -> Lessons:
    """Draw the first n scenes of the training split. Some captions are inserted into one of LGIP's
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
        return template.format(c=caption)  # wraps the unchanged caption, as in LGIP's own code
    return caption.removesuffix(".") if chance < 0.5 else caption


def batches(
    lessons: Lessons, size: int, steps: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of pictures, float32 (size, 64, 64, 3) from 0 to 1, with the token rows of one caption
    each. Every picture is shifted and brightened or darkened slightly.

    Every scene is used once before any scene is repeated. Pictures are never mirrored and their hue never
    changes, because captions mention left, right and colors.
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


Progress = Callable[[str, float, float], None]  # stage, amount done, total
STEPS = 900  # steps in the recipe; a shorter run is the same run, stopped early
BATCH = 128
SCENES = 20_000
_RATE = 1e-3
_DECAY = 0.1
_WARM_UP = 50  # steps


def train(
    loss: str, steps: int, seed: int, threads: int, out: Path, progress: Progress = lambda *_: None
) -> dict:
    """Train a model and write its checkpoint.

    Args:
        loss: "softmax" (symmetric contrastive loss) or "sigmoid" (SigLIP's loss).
        steps: The number of steps, with BATCH scenes each. The learning rate falls to zero at STEPS
            or, in a longer run, at its end.
        seed: The seed for the initial weights and for the order of the scenes.
        threads: The number of PyTorch threads. A different number changes the weights through rounding.
        out: The .safetensors file to write.
        progress: A function that is called with the stage, the amount done and the total.

    Returns:
        loss, steps, seed, threads, scenes, seconds, and final_loss: the mean training loss over the
        last 20 steps.

    Raises:
        InvalidInput: The loss is unknown, there is less than one step, the file cannot be written, or
            the training loss is not finite.
    """
    import torch

    if loss not in LOSSES:
        raise InvalidInput(f"Loss '{loss}' is not known. Expected one of: {', '.join(LOSSES)}.")
    if steps < 1:
        raise InvalidInput(
            f"{steps} steps are too few. Expected at least 1; the recipe uses {STEPS}."
        )
    try:  # fail before minutes of work, not after
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
    write_checkpoint(out, model.state_dict(), token_ids(), config(loss), summary)
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
                f"The training loss is {losses[-1]} at step {step}. Try another seed."
            )
        progress("training", step + 1, steps)
    return model, losses


@click.command()
@click.option("--loss", type=click.Choice(LOSSES), default="softmax", show_default=True)
@click.option("--steps", default=STEPS, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--threads", default=2, show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), required=True)
def main(loss: str, steps: int, seed: int, threads: int, output: Path) -> None:
    """Train one of the tiny demo models on the demo world's training scenes."""
    with ProgressBar() as bar:
        train(loss, steps, seed, threads, output, bar.update)
    click.echo(str(output))


if __name__ == "__main__":
    main()
