"""Seconds for a step of fine-tuning with and without each loss; run as `python benchmarks/training.py [ROUNDS]`.

As EqBen's appendix A.4, on the demo model and one CPU thread. Time is CPU time of this process, so that other work on
the machine counts little. In every round each loss takes one step, one after the other; a row is the median of the
rounds, and its ratio the median of the ratios to the plain step of the same round.
"""

import copy
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from vlprobe import registry
from vlprobe.datasets import demo_pairs
from vlprobe.datasets.world.captions import captions
from vlprobe.datasets.world.scene import draw
from vlprobe.training import alter, objective
from vlprobe.training.batches import Batches
from vlprobe.training.learner import Learner
from vlprobe.types import Item

LOSSES = (
    "clip",
    "clip+eqsim",
    "clip+sc",
    "clip+vc",
    "clip+sc+vc",
    "clip+consistency",
    "clip+flip",
    "clip+eqsim+sc+vc+consistency+flip",
)
SIZES = (32, 64, 128)  # rows of a batch; the first table takes the last
PIECE = 32


def items(folder: Path) -> list[Item]:
    """As many drawn scenes as the largest batch takes."""
    scenes = [draw("train", index) for index in range(SIZES[-1])]
    return [
        Item(f"{index}", demo_pairs.picture(scene, folder), captions(scene))
        for index, scene in enumerate(scenes)
    ]


def stepper(model, data: list[Item], loss: str, size: int, piece: int = 0):
    """A function that makes a batch and learns from it, and says what each took."""
    weights = objective.weights(loss)
    words = alter.vocabulary(caption for item in data for caption in item.captions)
    normal = [
        np.array(model.module.visual.preprocess_cfg[name], np.float32)[:, None, None]
        for name in ("mean", "std")
    ]
    batches = Batches(data, model, size, 0, weights.keys(), words, tuple(normal), workers=1)
    options = {"rate": 1e-5, "decay": 0.1, "warm_up": 0, "steps": 10_000, "piece": piece}
    learner = Learner(copy.deepcopy(model.module), weights, objective.Settings(), **options)

    def step(number: int) -> tuple[float, float]:
        start = time.process_time()
        batch = batches.batch(number)
        made = time.process_time()
        learner.learn(batch, number)
        return made - start, time.process_time() - made

    return step


def measured(steppers: dict, rounds: int) -> dict[str, tuple[float, float, float]]:
    """For each the median seconds of batch and step, and the median ratio of both to the first of its round."""
    for step in steppers.values():
        step(0)  # pictures are decoded, memory is taken
    taken = np.array(
        [[step(number) for step in steppers.values()] for number in range(1, rounds + 1)]
    )
    both = taken.sum(axis=2)
    ratios = np.median(both / both[:, :1], axis=0)
    return {
        name: (*np.median(taken[:, place], axis=0), ratios[place])
        for place, name in enumerate(steppers)
    }


def table(title: str, found: dict[str, tuple[float, float, float]]) -> None:
    """Prints Markdown."""
    print(f"\n| {title} | batch, s | step, s | ratio |\n|---|---|---|---|")
    for name, (batch, step, ratio) in found.items():
        print(f"| `{name}` | {batch:.3f} | {step:.3f} | {ratio:.2f} |")


def main() -> None:
    """Prints three tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    torch.set_num_threads(1)
    model = registry.load_model("demo:softmax", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        data = items(Path(folder))
        table(
            f"{SIZES[-1]} rows",
            measured({loss: stepper(model, data, loss, SIZES[-1]) for loss in LOSSES}, rounds),
        )
        by_size = {
            f"{loss}, {size} rows": stepper(model, data, loss, size)
            for size in SIZES
            for loss in LOSSES[:2]
        }
        table("batch size", measured(by_size, rounds))
        by_piece = {
            f"clip+eqsim, {piece or 'all'} at once": stepper(
                model, data, "clip+eqsim", SIZES[-1], piece
            )
            for piece in (0, PIECE)
        }
        table("pieces", measured(by_piece, rounds))


if __name__ == "__main__":
    main()
