"""Mixtures of one picture with its partner at every share, and a model's scores for the mixtures.

The mixtures are pixel for pixel identical to the ones in a run, unless a picture has a side above
MAX_SIDE and is shrunk first. All shares are scored in one batch.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix
from vlprobe.scoring.batches import BATCH_MULTIPLES, fill_up, stacked
from vlprobe.scoring.gallery import similarity_matrix
from vlprobe.types import Model, PictureEdit
from vlprobe.types.protocols import embeds_images

SHARES = tuple(range(100, 49, -2))  # the shares that are tried: percent of the picture that stays
WHOLE = SHARES[0]  # the picture itself, without any part of the partner
MAX_SIDE = 1024  # largest side in pixels of a picture that is mixed at every share


@dataclass(frozen=True, slots=True)
class ShareScores:
    """Scores for one caption with a picture and with its mixtures."""

    right: float  # similarity of the caption and the unchanged picture
    mixtures: tuple[float, ...]  # similarity for each mixture, in the order of SHARES

    @property
    def wins(self) -> tuple[bool, ...]:
        """Whether the picture scores higher than its mixture, for each share. A tie is not a win."""
        return tuple(self.right > mixture for mixture in self.mixtures)


@dataclass(frozen=True, slots=True)
class Turn:
    """The share at which a model begins to prefer the right picture."""

    share: int  # the right picture wins from this share down to the last one; 0: never
    n_changes: int  # how often the winner changes between the first and the last share

    @property
    def is_never(self) -> bool:
        """Whether the mixture still wins at the lowest share."""
        return self.share == 0


def turn(wins: Sequence[bool], shares: Sequence[int] = SHARES) -> Turn:
    """Find the share at which the right picture begins to win.

    Args:
        wins: One value per share, True if the right picture wins.
        shares: The shares, in descending order.

    >>> turn([False, False, True, True], [100, 98, 96, 94])
    Turn(share=96, n_changes=1)
    >>> turn([False, True, False, True], [100, 98, 96, 94])
    Turn(share=94, n_changes=3)
    >>> turn([False, True, False, False], [100, 98, 96, 94])
    Turn(share=0, n_changes=2)
    """
    share = 0
    for candidate, has_won in zip(reversed(shares), reversed(wins), strict=True):
        if not has_won:
            break
        share = candidate
    n_changes = sum(left != right for left, right in itertools.pairwise(wins))
    return Turn(share, n_changes)


def can_ask(model: Model) -> bool:
    """Return whether a model scores pictures only by their embeddings, so that all shares need only a single
    batch.
    """
    return embeds_images(model) and not model.capabilities.scores_pairs


def share_scores(model: Model, caption: str, pictures: Sequence[Image.Image]) -> ShareScores:
    """Compute the similarity of a caption to a picture and to its mixture at every share.

    Args:
        model: A model for which `can_ask` is true.
        caption: The query.
        pictures: One picture per share, as returned by `pictures_by_share`.

    Raises:
        InvalidInput: The model scores pairs, or has no image embeddings.
    """
    if not embeds_images(model) or not can_ask(model):
        raise InvalidInput(
            f"Model '{model.name}' only has scores for the mixing shares used in its runs."
        )
    pixels = [model.preprocess(picture) for picture in pictures]
    batch = fill_up(pixels, BATCH_MULTIPLES["images"], len(pixels))
    vectors = model.encode_images(stacked(batch))[: len(pixels)]
    text = model.encode_texts(np.repeat(model.tokenize([caption]), BATCH_MULTIPLES["texts"], 0))
    mixtures = similarity_matrix(text[:1], vectors)[0].tolist()
    return ShareScores(mixtures[0], tuple(mixtures))


def pictures_by_share(
    image: Image.Image, partner: Image.Image, edit: PictureEdit
) -> list[Image.Image]:
    """Return a picture and its mixtures at every lower share, identical to the results from `mix.apply`.

    Blends are looked up in a table by the values of both pictures, because the rounded blend of two bytes depends only
    on these bytes. This is several times as fast as arithmetic on every pixel.

    Args:
        image: An RGB image. If a side is above MAX_SIDE, it is shrunk, because many mixtures are made at once.
        partner: An RGB image of any size.
        edit: The kind and seed of the mixture; its own share is ignored.
    """
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    fitted = mix.fitted(partner, image.size)
    lams = [share / WHOLE for share in SHARES[1:]]
    if edit.kind == "patch":
        edits = [PictureEdit("patch", edit.partner, lam, edit.seed) for lam in lams]
        return [image, *(mix.apply(image, fitted, at_share) for at_share in edits)]
    both = np.asarray(image).astype(np.uint16) << 8 | np.asarray(fitted)
    values = np.arange(256, dtype=np.float64)
    blends = [np.rint(lam * values[:, None] + (1 - lam) * values).astype(np.uint8) for lam in lams]
    return [image, *(Image.fromarray(blend.ravel()[both]) for blend in blends)]


def boxes(size: tuple[int, int], edit: PictureEdit) -> list[tuple[float, float, float, float]]:
    """Compute the position of a patch at every share: left, top, right and bottom as fractions of the width and
    height. The box for WHOLE has zero area.
    """
    width, height = size
    bounds = [mix.box(width, height, share / WHOLE, edit.seed) for share in SHARES[1:]]
    return [
        (left / width, top / height, right / width, bottom / height)
        for left, top, right, bottom in [(0, 0, 0, 0), *bounds]
    ]
