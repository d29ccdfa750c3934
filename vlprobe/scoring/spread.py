"""The spread of a model's similarities over mismatched pictures and captions."""

from collections.abc import Sequence

import numpy as np

from vlprobe.types import Encoder, Picture

SPREAD_PAIRS = 1000  # mismatched pairs that are sampled for a model that scores pair by pair
PICTURE_BLOCK = 256  # pictures whose similarities to all captions are held at once


def similarity_spread(
    encoder: Encoder, images: Sequence[Picture], captions: Sequence[Sequence[str]]
) -> float:
    """Compute the standard deviation of a model's similarity over mismatched pairs, which is the unit
    for comparing margins.

    Args:
        encoder: The model.
        images: One picture per item.
        captions: The captions for each item, in the same order as the pictures.

    Returns:
        The population standard deviation over every pair of a picture and another picture's
        caption, in the units of the model's scores. For a model that scores pair by pair, only
        SPREAD_PAIRS of these pairs are used. NaN with fewer than two items or for a model without
        image input.
    """
    is_matrix = encoder.model.capabilities.has_matrix
    if len(images) < 2 or not (encoder.embeds_images or encoder.scores_pairs or is_matrix):
        return float("nan")
    item_of_caption = np.repeat(
        np.arange(len(images)), [len(item_captions) for item_captions in captions]
    )
    texts = [text for item_captions in captions for text in item_captions]
    if encoder.scores_pairs:
        return _sampled_spread(encoder, images, texts, item_of_caption)
    image_vectors = encoder.images(images)
    text_vectors = encoder.texts(texts, keep=True)
    total = squared = 0.0
    n_pairs = 0
    for start in range(0, len(images), PICTURE_BLOCK):
        block = slice(start, min(start + PICTURE_BLOCK, len(images)))
        similarities = encoder.similarity(image_vectors[block], text_vectors).astype(np.float64)
        mismatched = similarities[
            np.arange(block.start, block.stop)[:, None] != item_of_caption[None, :]
        ]
        n_pairs += len(mismatched)
        total += mismatched.sum()
        squared += (mismatched**2).sum()
    return float(np.sqrt(max(squared / n_pairs - (total / n_pairs) ** 2, 0.0)))


def _sampled_spread(
    encoder: Encoder, images: Sequence[Picture], texts: Sequence[str], item_of_caption: np.ndarray
) -> float:
    image_index, text_index = np.nonzero(
        np.arange(len(images))[:, None] != item_of_caption[None, :]
    )
    n_pairs = len(image_index)
    if n_pairs > SPREAD_PAIRS:
        sample = np.sort(
            np.random.default_rng(n_pairs).choice(n_pairs, SPREAD_PAIRS, replace=False)
        )
        image_index, text_index = image_index[sample], text_index[sample]
    scores = encoder.pairs(images, texts, image_index, text_index)
    return float(scores.astype(np.float64).std()) if len(scores) else float("nan")
