"""Loss formulas such as "clip+0.5*eqsim": parse the terms, check their settings, and compute them for a batch."""

import math
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlprobe.errors import InvalidInput
from vlprobe.training import losses
from vlprobe.training.batches import Batch

if TYPE_CHECKING:
    import torch

RETRIEVAL = ("clip", "sigmoid")  # every loss has exactly one of these terms
MATCHING = ("clip", "hardneg", "eqsim")  # terms that only need the scores of all pairs in a batch
PARTS = {
    "clip": "symmetric contrastive loss",
    "sigmoid": "SigLIP's loss",
    "hardneg": "each pair against its hardest mismatches",
    "eqsim": "EqSim: similarity changes in proportion to meaning",
    "sc": "semantic contrastive loss: away from corrupted captions",
    "vc": "visual contrastive loss: away from mixed pictures",
    "consistency": "a reworded caption keeps its score",
    "flip": "a caption with a wrong word scores lower",
}
SCORES = ("cosine", "softmax")
_TERM = re.compile(r"(?:([0-9]*\.?[0-9]+)\s*\*\s*)?([a-z]+)")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings for the terms of a loss."""

    close: int = 8  # EqSim's k; for hardneg, how many mismatches per picture and per text
    margin: float = 0.0  # EqSim's alpha, in squared units of its scores
    eqsim: str = "hybrid"  # one of losses.EQSIM_VARIANTS
    scores: str = "cosine"  # what EqSim compares: cosine or softmax
    curriculum: bool = False  # train on the weakest flips first


def weights(formula: str) -> dict[str, float]:
    """Parse a loss formula such as "clip+0.5*eqsim" into the weight of each term.

    Raises:
        InvalidInput: A term is unknown or named twice, a weight is 0, or the formula does not have
            exactly one of the RETRIEVAL terms.

    >>> weights("clip + 0.5*eqsim")
    {'clip': 1.0, 'eqsim': 0.5}
    """
    weight_of: dict[str, float] = {}
    for term in formula.split("+"):
        match = _TERM.fullmatch(term.strip())
        if not match or match[2] not in PARTS or match[2] in weight_of or not float(match[1] or 1):
            raise InvalidInput(
                f"'{term.strip()}' in the loss '{formula}' is not valid. Expected terms "
                "joined by +, each at most once, with optional weights, such as "
                f"clip+0.5*eqsim. Terms: {', '.join(PARTS)}."
            )
        weight_of[match[2]] = float(match[1] or 1)
    if sum(name in weight_of for name in RETRIEVAL) != 1:
        raise InvalidInput(
            f"The loss '{formula}' needs either clip or sigmoid, because the other terms "
            "do not train matching. For example: clip+0.5*eqsim."
        )
    return weight_of


def added_time_text(share: float) -> str:
    """Say how much longer a step is with the added terms of a loss.

    >>> added_time_text(0.034)
    'The added terms of the loss cost +3 % a step (forward and backward pass, without reading pictures)'
    """
    return (
        f"The added terms of the loss cost {100 * share:+.0f} % a step (forward and backward pass, "
        "without reading pictures)"
    )


def check(settings: Settings) -> None:
    """Raise InvalidInput if a setting is not valid."""
    if settings.scores not in SCORES:
        raise InvalidInput(
            f"Unknown scores '{settings.scores}'. Expected one of: {', '.join(SCORES)}."
        )
    if settings.eqsim not in losses.EQSIM_VARIANTS:
        raise InvalidInput(
            f"Unknown EqSim variant '{settings.eqsim}'. "
            f"Expected one of: {', '.join(losses.EQSIM_VARIANTS)}."
        )
    if settings.close < 0 or not (math.isfinite(settings.margin) and settings.margin >= 0):
        raise InvalidInput(
            f"close ({settings.close}) and margin ({settings.margin}) must both be at least 0; "
            "for example, 8 and 0.04."
        )


def matching_parts(
    names: Set[str],
    logits: "torch.Tensor",
    scores: "torch.Tensor",
    settings: Settings,
    bias: "torch.Tensor | None" = None,
) -> "dict[str, torch.Tensor]":
    """Compute the loss terms that only need the scores of all pairs in a batch, each with shape ().

    Args:
        names: Names from PARTS; terms that need more than scores are ignored.
        logits: The logits for picture i and text j, shape (n, n).
        scores: The scores that EqSim compares, shape (n, n).
        settings: The settings of the loss terms.
        bias: The model's logit bias, shape (). Without a bias, "sigmoid" is absent from the result.
    """
    terms = {}
    if "clip" in names:
        terms["clip"] = losses.contrastive(logits)
    if "sigmoid" in names and bias is not None:
        terms["sigmoid"] = losses.sigmoid(logits + bias)
    if "eqsim" in names and len(logits) > 1:
        terms["eqsim"] = losses.eqsim(scores, settings.close, settings.margin, settings.eqsim)
    if "hardneg" in names and len(logits) > 1:
        terms["hardneg"] = losses.hard_negatives(logits, settings.close)
    return terms


def loss_parts(
    batch: Batch,
    names: Set[str],
    images: "torch.Tensor",
    texts: "torch.Tensor",
    scale: "torch.Tensor",
    bias: "torch.Tensor | None",
    settings: Settings,
    done: float,
) -> "Mapping[str, torch.Tensor]":
    """Compute the loss terms, each with shape (). A term without rows in the batch is absent rather than 0.

    Args:
        batch: The batch that was embedded.
        names: Names from PARTS.
        images: Embeddings of `batch.pixels`, float32 with unit length.
        texts: Embeddings of `batch.tokens`, float32 with unit length.
        scale: The model's logit scale, shape ().
        bias: The model's logit bias, shape (), or None if it has none; "sigmoid" is then absent.
        settings: The settings of the loss terms.
        done: The share of the training that is done, which the curriculum uses.
    """
    import torch

    n = batch.n
    own_images, mixed = images[:n], images[n:]
    lengths = [n, len(batch.corrupted), len(batch.reworded), len(batch.flipped)]
    own_texts, corrupted, reworded, flipped = torch.split(texts, lengths)
    cosines = own_images @ own_texts.T
    logits = scale * cosines
    scores = cosines if settings.scores == "cosine" else logits.softmax(dim=1)
    terms = matching_parts(names, logits, scores, settings, bias)
    if "sc" in names and len(corrupted):
        terms["sc"] = losses.corrupted(
            corrupted, own_images[batch.corrupted], own_texts[batch.corrupted]
        )
    if "vc" in names and len(mixed):
        terms["vc"] = losses.corrupted(mixed, own_images[batch.mixed], own_texts[batch.mixed])
    if "consistency" in names and len(reworded):
        terms["consistency"] = losses.consistency(
            own_images[batch.reworded], own_texts[batch.reworded], reworded
        )
    if "flip" in names and len(flipped):
        theirs = own_images[batch.flipped], own_texts[batch.flipped], flipped
        counts = torch.ones(len(flipped), device=texts.device)
        if settings.curriculum:
            strength = losses.strengths(batch.kinds, theirs[1], flipped)
            counts = torch.from_numpy(losses.curriculum(strength, done)).to(texts.device)
        terms["flip"] = losses.discrimination(*theirs, scale, counts)
    return terms
