"""Accuracy of a demo model on scenes that it was not trained on, computed in a second, simpler way for the model card.

This module does not use the package's edits or metrics. Captions are flipped by swapping one word,
wrapped by plain string formatting, and counted in a loop, so that a mistake in the package or in
this module shows up as a difference.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tools.train_demo import TEMPLATES
from tools.world.captions import captions
from tools.world.scenes import COLORS, OBJECTS, distinct
from vlprobe.datasets.world.renderer import render
from vlprobe.datasets.world.scene import pick, stream
from vlprobe.models.demo_weights import load_checkpoint

_WORDS = {"color": COLORS, "object": OBJECTS, "number": ("one", "two", "three", "four", "five")}
_BATCH = 250


def measure(path: Path, split: str, n: int) -> dict[str, float]:
    """Measure a checkpoint on the first n scenes of a split, with five captions per scene.

    Returns:
        i2t_r1, t2i_r1: the share of queries whose best match is right (chance 1/n).
        pr_color, pr_object, pr_number: the share of captions that score higher than the same caption
            with one word of that kind swapped (chance .5); n_color, ...: the number of such captions.
        e_inv: the mean absolute change in the cosine when the first caption of a scene is inserted,
            unchanged, into each of the eight templates that change it.
    """
    model, transform, tokenize = load_checkpoint(path)
    scenes = distinct(split, n)
    images = _encode(model.encode_image, [transform(render(scene)) for scene in scenes])
    scene_captions = [
        (index, text) for index, scene in enumerate(scenes) for text in captions(scene)
    ]
    owner = np.array([index for index, _ in scene_captions])
    texts = [text for _, text in scene_captions]

    def cosines(edited: Sequence[str], owners: np.ndarray) -> np.ndarray:
        return (images[owners] * _encode(model.encode_text, list(tokenize(list(edited))))).sum(
            axis=1
        )

    plain = cosines(texts, owner)
    similarity = images @ _encode(model.encode_text, list(tokenize(texts))).T
    scores = {
        "i2t_r1": float((owner[similarity.argmax(axis=1)] == np.arange(n)).mean()),
        "t2i_r1": float((similarity.argmax(axis=0) == owner).mean()),
    }
    for kind in _WORDS:
        edits = [flip(text, kind) for text in texts]
        hit = np.array([index for index, edit in enumerate(edits) if edit])
        flipped = cosines([edits[index] for index in hit], owner[hit])
        scores[f"pr_{kind}"] = float((plain[hit] > flipped).mean())
        scores[f"n_{kind}"] = len(hit)
    # Only one caption per scene, because eight templates for every caption would be too many texts.
    first_captions = np.unique(owner, return_index=True)[1]
    wrapped = [
        cosines(
            [template.format(c=texts[index]) for index in first_captions], owner[first_captions]
        )
        for template in TEMPLATES
        if template != "{c}"
    ]
    scores["e_inv"] = float(
        np.mean([np.abs(plain[first_captions] - cosine).mean() for cosine in wrapped])
    )
    return scores


def flip(text: str, kind: str) -> str:
    """Swap the first word of a kind in a text for another word of the same kind, drawn by hash.

    Returns "" if the text has no such word.
    """
    words = _WORDS[kind]
    match = re.search(rf"\b({'|'.join(words)})\b", text, re.IGNORECASE)
    if not match:
        return ""
    others = [word for word in words if word != match[0].lower()]
    return text[: match.start()] + pick(stream("flip", kind, text), others) + text[match.end() :]


def _encode(encode: Callable, inputs: list) -> np.ndarray:
    import torch

    with torch.inference_mode():
        starts = range(0, len(inputs), _BATCH)
        blocks = [
            encode(torch.stack(inputs[start : start + _BATCH]), normalize=True) for start in starts
        ]
    return torch.cat(blocks).numpy()
