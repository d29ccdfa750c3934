"""The losses, data and rates that the fine-tuning form of the page Repair offers, and the request that they make."""

import dataclasses
import hashlib
import json

from vlprobe.dashboard.state import store
from vlprobe.training.request import TrainRequest

# What is added to CLIP's loss, with what weights, and what it is for.
REPAIRS = {
    "plain": (
        "Plain: the control",
        {},
        "CLIP's own loss and nothing more. All the others are compared with it.",
    ),
    "eqsim": (
        "EqSim (EqBen)",
        {"eqsim": 5.0},
        "If two captions trade places, similarity has to change evenly. Meant for Pairs.",
    ),
    "hardneg": (
        "Hard negatives (EqBen's ablation)",
        {"hardneg": 1.0},
        "Each pair against the mismatches alone that score highest beside it. What EqSim is compared with.",
    ),
    "scvc": (
        "SC + VC (RoCOCO)",
        {"sc": 0.05, "vc": 0.2},
        "Away from captions with words exchanged and from mixed pictures. Meant for Retrieval; "
        "may cost R@1.",
    ),
    "lgip": (
        "Consistency + flips (LGIP)",
        {"consistency": 1.0, "flip": 1.0},
        "A reworded caption keeps its score, a wrong word lowers it. Meant for Edits of captions.",
    ),
}
# Variants of EqSim, in the order of EqBen's table 6, and on which pairs of a batch they count.
VARIANTS = {
    "hybrid": "v2 on close pairs, v1 on the others (section 3)",
    "v1": "v1 on all pairs",
    "v2": "v2 on all pairs",
    "v2-close": "v2 on close pairs alone",
    "v1+v2-close": "v1 on all and v2 on close pairs (table 6)",
}
STARTS = ("demo:softmax", "demo:sigmoid", "demo:weak", "demo:plain")
DATASETS = {
    "demo-train|demo-train:pairs": "Scenes and minimal pairs",
    "demo-train|demo-train:pairs:1200": "Scenes and four times the pairs",
    "demo-train": "Scenes",
    "demo-train:pairs": "Minimal pairs",
}
RATES = {3e-5: "0.00003", 1e-4: "0.0001", 3e-4: "0.0003"}
VALIDATIONS = 8  # of a training, so that its curve has marks


def request(
    start: str,
    datasets: str,
    kind: str,
    strength: float,
    steps: int,
    rate: float,
    seed: int,
    eqsim: str = TrainRequest.eqsim,
) -> TrainRequest:
    """The training; the same choices name the same file, and so are not done twice."""
    contrastive = "sigmoid" if start == "demo:sigmoid" else "clip"
    loss = "+".join(
        [
            contrastive,
            *(_term(weight * strength, term) for term, weight in REPAIRS[kind][1].items()),
        ]
    )
    chosen = TrainRequest(
        start,
        tuple(datasets.split("|")),
        "",
        loss=loss,
        eqsim=eqsim if "eqsim" in REPAIRS[kind][1] else TrainRequest.eqsim,
        steps=steps,
        rate=rate,
        warm_up=min(TrainRequest.warm_up, steps // 4),
        seed=seed,
        validate_every=max(1, steps // VALIDATIONS),
        device="cpu",
        threads=1,
    )
    digest = hashlib.sha256(json.dumps(chosen.recipe(), sort_keys=True).encode()).hexdigest()[:6]
    name = f"{start.partition(':')[2]}-{kind}-{steps}-seed{seed}-{digest}.safetensors"
    return dataclasses.replace(chosen, output=str(store().root / "trained" / name))


def _term(weight: float, term: str) -> str:
    return term if weight == 1 else f"{weight:g}*{term}"
