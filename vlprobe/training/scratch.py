"""Trains the demo world's tiny CLIP from nothing, with OpenCLIP's own model and losses, on the
training split alone.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.demo_weights import LOSSES, build, config, save, token_ids
from vlprobe.models.modules import OpenClipModel
from vlprobe.training.learner import HIGHEST_SCALE, keep_scale, optimizer, schedule
from vlprobe.training.lessons import Lessons, batches, draw_lessons

if TYPE_CHECKING:
    pass

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
