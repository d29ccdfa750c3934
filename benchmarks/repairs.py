"""Does the paper's own loss, more minimal pairs or longer pre-training make EqSim repair color swaps?

    nice -n 19 python benchmarks/repairs.py CACHE [--arm ARM]...

Trains the models that are missing, one after the other on one thread (about 80 CPU seconds each, and 50 once to draw
more pairs), runs EqBen on `demo-pairs` with all of them, and prints tables in Markdown. An arm is a setting in which
only the loss differs: the plain control and each form of EqSim, with three seeds each. An interrupted script resumes
where it stopped.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import DEFAULT, Store
from vlprobe.training.request import TrainRequest
from vlprobe.training.trainer import train

SEEDS = (0, 1, 2)
RESAMPLES = 10_000
SUBSETS = {
    "": "all",
    "swap": "color swap",
    "location": "location",
    "number": "number",
    "object": "object",
    "color": "color",
}
WEIGHT = 5  # weight of EqSim, as for demo:eqsim


@dataclass(frozen=True)
class Arm:
    """A base model to tune, and the pairs to tune it on."""

    base: str
    pairs: str
    losses: tuple[str, ...]
    steps: int = 200


ARMS = {
    "as shipped": Arm("demo:softmax", "demo-train:pairs", ("plain", "section 3", "table 6")),
    "more pairs": Arm("demo:softmax", "demo-train:pairs:1200", ("plain", "table 6")),
    "longer": Arm("demo:plain", "demo-train:pairs", ("plain", "table 6")),
}
LOSSES: dict[str, dict] = {
    "plain": {"loss": "clip"},
    "section 3": {"loss": f"clip+{WEIGHT}*eqsim"},
    "table 6": {"loss": f"clip+{WEIGHT}*eqsim", "eqsim": "v1+v2-close"},
}


def tuned(arm: Arm, loss: str, seed: int, folder: Path, cache: Path) -> str:
    """Return the name of a tuned model, after training it if it does not exist."""
    stem = "-".join([arm.base.replace(":", "-"), arm.pairs.replace(":", "-"), loss, f"{seed}"])
    request = TrainRequest(
        model=arm.base,
        datasets=("demo-train", arm.pairs),
        output=f"{folder / stem.replace(' ', '-')}.safetensors",
        steps=arm.steps,
        rate=3e-4,
        seed=seed,
        threads=1,
        device="cpu",
        validate_every=arm.steps,
        **LOSSES[loss],
    )
    return train(request, cache)["tuned"]


def answered(model: str, store: Store) -> pd.Series:
    """Return whether a model solves each minimal pair (group score), by subset and item."""
    request = Request((model,), "demo-pairs", "eqben", examine=False, device="cpu")
    scores = store.run(execute(request, store)[0]["key"]).table("scores").to_pandas()
    return (scores.set_index(["subtype", "item"])["margin"] > 0).astype(float)


def levels(solved: Mapping[str, Sequence[pd.Series]]) -> list[str]:
    """Return the lines of a table: the mean over seeds, the lowest and the highest value, for each subset."""
    lines = [f"| group score | {' | '.join(solved)} |", "|---" * (len(solved) + 1) + "|"]
    for subset, name in SUBSETS.items():
        cells = []
        for by_seed in solved.values():
            means = [_of_subset(each, subset).mean() for each in by_seed]
            spread = f" ({_short(min(means))} to {_short(max(means))})" if len(means) > 1 else ""
            cells.append(_short(float(np.mean(means))) + spread)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def differences(solved: Mapping[str, Sequence[pd.Series]]) -> list[str]:
    """Return the lines of a table: each loss's difference from the control, paired by item and seed, for each subset.

    The interval (95 %, percentiles) resamples items, with all seeds of an item together. It therefore does not cover
    other seeds; the difference for each seed is shown next to it.
    """
    names = [name for name in solved if name not in ("before", "plain")]
    heads = " | ".join(f"{name} - plain | each seed" for name in names)
    lines = [f"| group score | {heads} |", "|---" * (2 * len(names) + 1) + "|"]
    rng = np.random.default_rng(0)
    for subset, title in SUBSETS.items():
        cells = []
        for name in names:
            by_seed = [
                _of_subset(model, subset) - _of_subset(control, subset)
                for model, control in zip(solved[name], solved["plain"], strict=True)
            ]
            items = np.mean([each.to_numpy() for each in by_seed], axis=0)
            drawn = rng.integers(0, len(items), (RESAMPLES, len(items)))
            low, high = np.percentile(items[drawn].mean(axis=1), [2.5, 97.5])
            seeds = ", ".join(_signed(each.mean()) for each in by_seed)
            cells.append(f"{_signed(items.mean())} [{_signed(low)}, {_signed(high)}] | {seeds}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def _of_subset(solved: pd.Series, subset: str) -> pd.Series:
    return solved.loc[subset].sort_index() if subset else solved.sort_index()


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def _signed(share: float) -> str:
    return f"{share:+.3f}".replace("0.", ".", 1)


def main() -> None:
    """Train and evaluate the models, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cache", nargs="?", default=DEFAULT)
    parser.add_argument("--arm", action="append", choices=list(ARMS), dest="arms")
    arguments = parser.parse_args()
    store = Store(arguments.cache)
    folder = store.root / "repairs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.arms or ARMS:
        arm = ARMS[name]
        solved: dict[str, list[pd.Series]] = {"before": [answered(arm.base, store)]}
        for seed in SEEDS:
            for loss in arm.losses:
                started = time.process_time()
                model = tuned(arm, loss, seed, folder, store.root)
                solved.setdefault(loss, []).append(answered(model, store))
                seconds = time.process_time() - started
                print(f"{name}, {loss}, seed {seed}: {seconds:.0f} CPU s", file=sys.stderr)
        print(f"\n### {name}: from {arm.base}, {arm.pairs}, {arm.steps} steps\n")
        print("\n".join([*levels(solved), "", *differences(solved)]), flush=True)


if __name__ == "__main__":
    main()
