"""Changes of captions and pictures during training: corrupted for SC and VC, or varied slightly.

Every draw depends only on the number that is passed.
"""

import random
from collections.abc import Iterable, Sequence

import numpy as np

from vlprobe.perturb import mix
from vlprobe.perturb.draws import draw
from vlprobe.perturb.influence import without, word_spans
from vlprobe.perturb.tokens import like

ALTERED_WORDS = 0.3  # the paper's p: chance of each word to be altered
PUT_IN = 0.5  # the paper's q: chance of an altered word to be exchanged; it is deleted otherwise
ALTERED_PICTURES = 0.5  # chance of each picture to be altered
LAMBDAS = (
    0.6,
    0.9,
)  # share of an altered picture that stays, drawn evenly: the strengths that the paper probes
_SHIFT = 0.05  # share of its side that a picture may move
_LIGHT = 0.15  # share by which a picture may get brighter or darker


def vocabulary(captions: Iterable[str]) -> tuple[str, ...]:
    """Every word of the captions, in lower case, sorted: what is put into a corrupted caption.

    The paper takes BERT's vocabulary; words of the data are words that the model can have met.
    """
    return tuple(
        sorted({caption[a:b].lower() for caption in captions for a, b in word_spans(caption)})
    )


def corrupt_caption(caption: str, words: Sequence[str], number: int) -> str:
    """The caption with some of its words exchanged for random ones, or deleted; at least one, and
    never all.

    Where chance alters no word, one is drawn: a caption that stayed as it was would be pushed away
    from itself. Which words is left to chance as in the paper, so that now and then the caption is
    still true, "a" or "the" being gone.

    Args:
        caption: With one word or more.
        words: From `vocabulary`, two or more.
        number: Decides everything.

    Source: RoCOCO, section 5.
    """
    rng = random.Random(number)
    spans = word_spans(caption)
    altered = [index for index in range(len(spans)) if rng.random() < ALTERED_WORDS] or [
        int(rng.random() * len(spans))
    ]
    left = len(spans)
    for index in reversed(altered):  # from the end, so that the spans before keep their places
        start, end = spans[index]
        if left > 1 and rng.random() >= PUT_IN:
            caption = without(caption, start, end)
            left -= 1
            continue
        source = caption[start:end]
        at = int(rng.random() * len(words))
        word = words[at] if words[at] != source.lower() else words[at - 1]
        caption = caption[:start] + like(source, word) + caption[end:]
    return caption


def mixed_pictures(pixels: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Some pictures of a batch blended with another of the batch, or with a patch of it; mixup and
    CutMix in the paper.

    The share that stays is drawn between LAMBDAS, as the paper gives none, so that the picture
    itself is what is mostly seen. All take the picture that is the same number of rows away, never
    themselves.

    Args:
        pixels: Preprocessed pictures, float32 of shape (n, channels, height, width), n of 2 or
            more. Mixing commutes with the scaling of channels.
        number: Decides everything.

    Returns:
        The altered pictures, shape (m, channels, height, width), and the row that each was made of,
        int64, shape (m,).

    Source: RoCOCO, section 5 and section 3.3.
    """
    rng = random.Random(number)
    away = 1 + int(rng.random() * (len(pixels) - 1))
    rows = [row for row in range(len(pixels)) if rng.random() < ALTERED_PICTURES]
    out = pixels[rows]  # a copy
    for altered, row in zip(out, rows, strict=True):
        partner = pixels[(row + away) % len(pixels)]
        lam = LAMBDAS[0] + (LAMBDAS[1] - LAMBDAS[0]) * rng.random()
        if rng.random() < 0.5:
            altered[:] = np.float32(lam) * altered + np.float32(1 - lam) * partner
        else:
            height, width = pixels.shape[2:]
            left, top, right, bottom = mix.box(width, height, lam, draw(number, "", row, "box"))
            altered[:, top:bottom, left:right] = partner[:, top:bottom, left:right]
    return out, np.array(rows, np.int64)


def vary_picture(pixels: np.ndarray, mean: np.ndarray, std: np.ndarray, number: int) -> np.ndarray:
    """The picture moved and relit a little; never mirrored, its hues untouched: captions speak of
    sides and colours.

    Args:
        pixels: One preprocessed picture, float32 of shape (3, height, width).
        mean, std: Of the preprocessing, shape (3, 1, 1): it is undone for the light, and no pixel
        gets over white.
        number: Decides everything.

    Returns:
        A new array like `pixels`; what the move uncovers is filled with the edge.
    """
    rng = random.Random(number)
    height, width = pixels.shape[1:]
    reach = [round(_SHIFT * side) for side in (height, width)]
    down, right = (int(rng.random() * (2 * extent + 1)) for extent in reach)
    padded = np.pad(pixels, ((0, 0), (reach[0],) * 2, (reach[1],) * 2), mode="edge")
    moved = padded[:, down : down + height, right : right + width]
    light = np.float32(1 + _LIGHT * (2 * rng.random() - 1))
    return (np.minimum((moved * std + mean) * light, 1) - mean) / std
