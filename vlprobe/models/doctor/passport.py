"""Facts about a model that a reader can verify, reported by its adapter or measured.

An adapter's `facts()` may have these subjects: architecture, activation, tokenizer, parameters, mean,
std, interpolation, resizing, size. `published()` may have activation, mean, std, interpolation,
resizing and size. Figures are written as "0.4815, 0.4578, 0.4082" and "224 x 224".
"""

import sys

import numpy as np
from PIL import Image

from vlprobe.types import Model, answers_cases, embeds_images, looks_up, scores_pairs

NO_TEXT = -1  # TextEncoder.tokenize fills rows with it after the text if the model sees no padding
LONG = "a dog and a cat " * 150
_PACKAGES = (  # the versions of these packages are reported if they are imported
    *("vlprobe", "torch", "open_clip", "timm", "transformers"),
    *("sentence_transformers", "tokenizers", "numpy", "PIL"),
)


def read_passport(model: Model) -> dict[str, str]:
    """Collect the facts that are needed to compare the model's numbers with other published numbers.

    Returns:
        A dictionary from subject to text. Measured preprocessing replaces the values that the adapter reports.
    """
    return {
        "name": model.name,
        "weights": model.digest,
        "embedding": _embedding(model),
        "precision": model.capabilities.precision,
        "score": model.capabilities.score_type,
        "note": model.note,
        **({} if answers_cases(model) or looks_up(model) else _tokenization(model)),
        **model.facts(),
        **measured_preprocessing(model),
        "versions": ", ".join(
            f"{name} {sys.modules[name].__version__}" for name in _PACKAGES if name in sys.modules
        ),
    }


def _embedding(model: Model) -> str:
    if model.capabilities.chooses:
        return "none: it chooses between two captions"
    if answers_cases(model) or model.capabilities.has_matrix:
        return (
            "none: it answers yes or no"
            if model.capabilities.asks_server
            else "none: scores from a file"
        )
    dim = model.capabilities.dim
    return f"{dim} numbers" if dim else "none: it scores pairs"


def _tokenization(model: Model) -> dict[str, str]:
    """Describe how the tokenizer treats letter case, punctuation, short texts and long texts."""
    alone, batched = model.tokenize(["a dog"]), model.tokenize(["a dog", LONG])
    row = alone[0]
    trailing, leading = (int((line == line[0]).cumprod().sum()) for line in (row[::-1], row))
    side, pad = ("right", row[-1]) if trailing >= leading else ("left", row[0])
    if batched[0, -1] == NO_TEXT:
        padding = "none visible to the model"
    elif alone.shape[1] == batched.shape[1]:
        padding = f"always to {len(row)} tokens, {pad} on the {side}"
    else:
        padding = "to the longest text of a batch"
    return {
        "letter case": "folded" if _same_tokens(model, "A Dog", "a dog") else "kept",
        "punctuation": "stripped"
        if _same_tokens(model, "a dog, a cat!", "a dog a cat")
        else "kept",
        "context length": f"{batched.shape[1]} tokens"
        if _same_tokens(model, LONG, LONG + "dog")
        else "no limit found",
        "padding": padding,
    }


def _same_tokens(model: Model, left: str, right: str) -> bool:
    return np.array_equal(*model.tokenize([left, right]))


def measured_preprocessing(model: Model) -> dict[str, str]:
    """Measure the mean, standard deviation and size of the preprocessing from a black and a white picture. The result
    is empty if they cannot be measured.

    A channel is (value - mean) / std with values from 0 to 1, so black gives -mean / std and white gives
    (1 - mean) / std.
    """
    if not (embeds_images(model) or scores_pairs(model)):
        return {}
    black, white = (
        model.preprocess(Image.new("RGB", (64, 64), color)) for color in ("black", "white")
    )
    plain = (
        black.ndim == 3
        and len(black) == 3
        and all(np.ptp(pixels, axis=(1, 2)).max() < 1e-4 for pixels in (black, white))
    )
    if not plain or (white[:, 0, 0] <= black[:, 0, 0]).any():
        return {}
    std = 1 / (white[:, 0, 0] - black[:, 0, 0]).astype(np.float64)
    mean = -black[:, 0, 0] * std
    return {
        "mean": ", ".join(f"{value:.4f}" for value in mean),
        "std": ", ".join(f"{value:.4f}" for value in std),
        "size": f"{black.shape[1]} x {black.shape[2]}",
    }
