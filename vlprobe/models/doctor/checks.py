"""Health checks that every working model should pass. Each check has a one-sentence meaning and a measured value."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.metrics import clustered, estimate
from vlprobe.metrics.estimate import FEWEST_ITEMS
from vlprobe.metrics.resampling import every_resample
from vlprobe.models.doctor import passport
from vlprobe.scoring import pictures
from vlprobe.scoring.batches import BATCH_MULTIPLES
from vlprobe.types import (
    CaseAnswerer,
    DualEncoder,
    Estimate,
    Item,
    Lookup,
    Model,
    PairScorer,
    Picture,
    embeds_images,
    embeds_texts,
    scores_pairs,
)

BATCH = 32
TRIED_ALONE = 8  # texts and pictures that are embedded again, one at a time
# how far the rest of a batch may move an embedding in fp32, as the length of the difference
TOLERANCE = 1e-5
HALF_TOLERANCE = 2e-2  # the same in fp16 and bf16
COLOR_TOLERANCE = 2e-3  # tolerance for mean and std, because published figures are rounded
# checks that a model is better than chance
CHANCE = ("matched_auc", "r1_forth", "r1_back")
NEIGHBOR = "two red cats on a very small wooden boat in the harbour of a town by the sea on a rainy day in autumn"
TEXT_BATCH = "The embedding of a caption does not depend on the other captions in its batch."
IMAGE_BATCH = "The embedding of a picture does not depend on the other pictures in its batch."
UNKNOWN_WEIGHTS = "Not judged: the published weights are unknown."
FROM_A_FILE = "Not judged: scores from a file cannot be computed again."
LOOKED_UP = "Not judged: a file cannot answer twice."
CHOOSES = "Not judged: it only chooses between captions."
PAID = "Not judged: it would need additional requests to the server."
NOT_FINITE = "Not judged: its outputs are not finite numbers."

# returns the embeddings of pictures, shape (n, image_dim), or None if any of them is not stored
StoredPictures = Callable[[Sequence[Picture]], np.ndarray | None]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one health check."""

    name: str
    meaning: str  # one plain sentence
    passed: bool | None  # None: does not apply, or could not be judged; `detail` has the reason
    value: float | int = math.nan  # a count is an int, also after it is read back
    limit: float | int = math.nan
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Similarities:
    """Similarities between all inputs on one side and all inputs on the other. Row i and column i belong together."""

    scores: np.ndarray  # float64 with shape (n, n)
    # how many embeddings (or scores, if the model scores pairs) are not finite numbers
    not_finite: int
    count: int  # how many embeddings or scores there are
    names: tuple[str, str]  # names of the two sides


def similarities(
    model: Model,
    items: Sequence[Item],
    progress: Callable[[int, int], None] = lambda done, total: None,
    stored_pictures: StoredPictures | None = None,
) -> Similarities:
    """Compute similarities between pictures and first captions, or between second and first captions if the items have
    no pictures. Raises InvalidInput.

    Args:
        model: The model. A pair scorer scores pairs; for any other model, embeddings are compared.
        items: One or more items, all with a picture or all without.
        progress: A function that is called with (done, total); it may raise to stop.
        stored_pictures: A function that returns stored embeddings; see `examine`.
    """
    images = [item.image for item in items if item.image]
    captions = model.tokenize([item.captions[0] for item in items])
    if images and scores_pairs(model):
        return _pair_similarities(model, images, captions, progress)
    encode_captions = _token_encoder(model)
    if images:
        names = ("pictures", "captions")
        encode_left = _picture_encoder(model, images, stored_pictures)
    else:
        second_captions = model.tokenize([item.captions[1] for item in items])
        names = ("second captions", "first captions")

        def encode_left(rows: slice, /) -> np.ndarray:
            return encode_captions(second_captions[rows])

    blocks = []
    for start in range(0, len(items), BATCH):
        progress(start, len(items))
        rows = slice(start, start + BATCH)
        blocks.append((encode_left(rows), encode_captions(captions[rows])))
    left, right = (np.concatenate(side) for side in zip(*blocks, strict=True))
    not_finite = sum(int((~np.isfinite(side).all(axis=1)).sum()) for side in (left, right))
    # An image may have several vectors in its row; the best one gives the similarity.
    scores = np.einsum("nqd,md->nmq", left.reshape(len(left), -1, right.shape[1]), right).max(
        axis=2
    )
    return Similarities(scores.astype(np.float64), not_finite, 2 * len(items), names)


def _pair_similarities(
    model: PairScorer,
    images: Sequence[Picture],
    captions: np.ndarray,
    progress: Callable[[int, int], None],
) -> Similarities:
    rows = []
    for done, image in enumerate(images):
        progress(done, len(images))
        rows.append(_pair_scores(model, _pixels(model, [image]) * len(images), captions))
    scores = np.array(rows, dtype=np.float64)
    return Similarities(
        scores, int((~np.isfinite(scores)).sum()), scores.size, ("pictures", "captions")
    )


def _token_encoder(model: Model) -> Callable[[np.ndarray], np.ndarray]:
    """Return the model's `encode_texts` method. Raises InvalidInput if the model has no text embeddings."""
    if not embeds_texts(model):
        raise InvalidInput(
            f"'{model.name}' has no text embeddings. Check it on a dataset with pictures."
        )
    return model.encode_texts


def _picture_encoder(
    model: Model, images: Sequence[Picture], stored_pictures: StoredPictures | None
) -> Callable[[slice], np.ndarray]:
    """Return a function that embeds a slice of the pictures. Raises InvalidInput without image embeddings."""
    if not embeds_images(model):
        raise InvalidInput(
            f"'{model.name}' has no image embeddings. Choose a dataset without pictures."
        )

    def encode(rows: slice) -> np.ndarray:
        # a smaller batch may be summed in a different order than the stored embeddings were
        is_whole = len(images[rows]) % BATCH_MULTIPLES["images"] == 0
        embeddings = stored_pictures(images[rows]) if stored_pictures and is_whole else None
        if embeddings is not None:
            return embeddings
        return model.encode_images(np.stack(_pixels(model, images[rows])))

    return encode


def _pixels(model: DualEncoder | PairScorer, images: Sequence[Picture]) -> list[np.ndarray]:
    return [model.preprocess(pictures.open_picture(image)) for image in images]


def _pair_scores(model: PairScorer, pixels: Sequence[np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """Return the score of each picture with the text in the same row, shape (n,)."""
    scores = []
    for start in range(0, len(pixels), BATCH):
        rows = slice(start, start + BATCH)
        scores.append(model.match(model.encode_pictures(pixels[rows]), tokens[rows]))
    return np.concatenate(scores)


def finite(similarity: Similarities) -> Check:
    """Check for NaN and infinity. They make every comparison false, so they would silently produce a result."""
    meaning = "All embeddings and pair scores are finite numbers."
    detail = f"{similarity.not_finite} of {similarity.count} are not finite."
    return Check("finite", meaning, similarity.not_finite == 0, similarity.not_finite, 0, detail)


def of_answers(model: CaseAnswerer) -> list[Check]:
    """Return all checks for a model that answers whole cases. Most of them cannot be judged."""
    nothing = Similarities(np.empty((0, 0)), 0, model.n_scores, ("pictures", "captions"))
    detail = PAID if model.capabilities.asks_server else FROM_A_FILE
    if model.capabilities.chooses:
        detail = CHOOSES
    judged_by_pairs = [replace(check, detail=detail) for check in matching(nothing)]
    return [finite(nothing), *_unjudged(model, detail), *judged_by_pairs]


def of_lookup(model: Lookup, similarity: Similarities) -> list[Check]:
    """Check a model that looks up answers. Only finite values and matching can be judged."""
    detail = PAID if model.capabilities.asks_server else LOOKED_UP
    return [*_unjudged(model, detail), finite(similarity), *matching(similarity)]


def _unjudged(model: Model, detail: str) -> list[Check]:
    batches = [Check("text_batch", TEXT_BATCH, None), Check("image_batch", IMAGE_BATCH, None)]
    checks = [preprocessing(model), activation(model), *batches]
    return [replace(check, detail=detail) for check in checks]


def text_batch(model: Model, items: Sequence[Item]) -> Check:
    """Check that captions get the same embedding alone, next to a long caption, and in another order. A SigLIP model
    that pads to the longest text in a batch fails.
    """
    texts = [item.captions[0] for item in items[:TRIED_ALONE]]
    image = items[0].image
    if image and scores_pairs(model):
        pixels = _pixels(model, [image])

        def encode(batch: Sequence[str]) -> np.ndarray:
            return _pair_scores(model, pixels * len(batch), model.tokenize(batch))[:, None]
    else:
        encode_tokens = _token_encoder(model)

        def encode(batch: Sequence[str]) -> np.ndarray:
            return encode_tokens(model.tokenize(batch))

    alone = np.concatenate([encode([text]) for text in texts])
    batched = [encode([*texts, NEIGHBOR])[:-1], encode(texts[::-1])[::-1]]
    return _moved("text_batch", TEXT_BATCH, model, alone, batched, "texts")


def image_batch(model: Model, items: Sequence[Item]) -> Check:
    """Check that pictures get the same embedding alone, in a batch and reordered. A model in training mode fails."""
    images = [item.image for item in items[:TRIED_ALONE] if item.image]
    if images and scores_pairs(model):
        tokens = model.tokenize([items[0].captions[0]])

        def encode(batch: Sequence[np.ndarray]) -> np.ndarray:
            return _pair_scores(model, batch, tokens.repeat(len(batch), axis=0))[:, None]
    elif images and embeds_images(model):

        def encode(batch: Sequence[np.ndarray]) -> np.ndarray:
            return model.encode_images(np.stack(batch))
    else:
        return Check("image_batch", IMAGE_BATCH, None, detail="Not judged: no pictures.")
    pixels = _pixels(model, images)
    alone = np.concatenate([encode([array]) for array in pixels])
    batched = [encode(pixels), encode(pixels[::-1])[::-1]]
    return _moved("image_batch", IMAGE_BATCH, model, alone, batched, "pictures")


def _moved(
    name: str,
    meaning: str,
    model: Model,
    alone: np.ndarray,
    batched: Sequence[np.ndarray],
    inputs: str,
) -> Check:
    """Compare the outputs for single inputs with the outputs for the same inputs in batches."""
    if not all(np.isfinite(vectors).all() for vectors in (alone, *batched)):
        return Check(name, meaning, None, detail=NOT_FINITE)
    limit = TOLERANCE if model.capabilities.precision == "fp32" else HALF_TOLERANCE
    value = max(float(np.linalg.norm(vectors - alone, axis=1).max()) for vectors in batched)
    detail = f"Largest change among {len(alone)} {inputs}."
    return Check(name, meaning, value <= limit, value, limit, detail)


def matching(similarity: Similarities) -> list[Check]:
    """Check that matching pairs beat mismatched ones more often than by chance: AUC, and R@1 in both directions."""
    n, (rows, columns) = len(similarity.scores), similarity.names
    nearest = "Of all {}, the nearest to one of the {} is its own more often than by chance."
    alike = f"{rows.capitalize()} are more similar to their own {columns} than to others."
    plan = [
        ("matched_auc", alike),
        ("r1_forth", nearest.format(columns, rows)),
        ("r1_back", nearest.format(rows, columns)),
    ]
    if n < FEWEST_ITEMS or similarity.not_finite:
        too_few = f"Not judged: fewer than {FEWEST_ITEMS} items to compare."
        reason = too_few if n < FEWEST_ITEMS else NOT_FINITE
        return [Check(name, meaning, None, detail=reason) for name, meaning in plan]
    scores = similarity.scores
    measured = [auc(scores), recall_at_1(scores), recall_at_1(scores.T)]
    return [
        Check(
            name,
            meaning,
            bool(interval.low > chance),
            interval.value,
            chance,
            f"95 % interval {interval.low:.3f} to {interval.high:.3f} over {n} items; "
            "its lower bound must be above chance.",
        )
        for (name, meaning), interval, chance in zip(
            plan, measured, (0.5, 1 / n, 1 / n), strict=True
        )
    ]


def recall_at_1(scores: np.ndarray) -> Estimate:
    """Compute the share of rows whose own column scores above all others, with an exact binomial interval.

    The lower end of Wilson's interval is too high for a rate as low as chance, 1 / n.

    Args:
        scores: The scores, shape (n, n), with matched pairs on the diagonal.
    """
    n = len(scores)
    others = np.where(np.eye(n, dtype=bool), -np.inf, scores)
    hits = (np.diag(scores) > others.max(axis=1)).astype(np.float64)  # a tie is a failure
    rates = clustered.group_rates(np.zeros(n, dtype=np.int64), np.arange(n), hits)
    low, high = clustered.rate_interval(rates)
    return Estimate(float(hits.mean()), float(low[0]), float(high[0]), n)


def auc(scores: np.ndarray) -> Estimate:
    """Estimate the probability that a matched pair is more similar than a mismatched one. A tie counts half.

    Args:
        scores: The scores, shape (n, n) with n at least 2, with matched pairs on the diagonal.

    Returns:
        The estimate with a 95 % interval from resampled items. Each pair is weighted by the counts of both items,
        and an item drawn twice is not mismatched with itself.
    """
    n = len(scores)
    off_diagonal = ~np.eye(n, dtype=bool)
    order = np.argsort(scores[off_diagonal], kind="stable")
    row, column = (index[off_diagonal][order] for index in np.indices((n, n)))
    mismatched, matched = scores[off_diagonal][order], np.diag(scores)
    below, upto = (np.searchsorted(mismatched, matched, side=side) for side in ("left", "right"))

    def weighted(count: np.ndarray) -> float:
        pairs = np.concatenate([[0.0], np.cumsum(count[row] * count[column])])
        if pairs[-1] == 0:  # only one item was drawn
            return math.nan
        return float(count @ (pairs[below] + pairs[upto]) / 2 / (count.sum() * pairs[-1]))

    resamples = np.ascontiguousarray(every_resample(n).T, dtype=np.float64)
    tail = (1 - estimate.LEVEL) / 2
    low, high = np.nanquantile([weighted(count) for count in resamples], [tail, 1 - tail])
    return Estimate(weighted(np.ones(n)), float(low), float(high), n)


def preprocessing(model: Model) -> Check:
    """Compare the measured preprocessing with the settings that were published for the weights."""
    meaning = "Pictures are resized and normalized as in training."
    published = model.published()
    measured = passport.measured_preprocessing(model)
    if not measured or "mean" not in published:
        return Check("preprocessing", meaning, None, detail=UNKNOWN_WEIGHTS)
    built = {**model.facts(), **measured}
    gaps = {
        name: max(
            abs(float(left) - float(right))
            for left, right in zip(built[name].split(","), published[name].split(","), strict=True)
        )
        for name in ("mean", "std")
    }
    different = [name for name, gap in gaps.items() if gap > COLOR_TOLERANCE]
    different += [
        name for name in ("size", "interpolation", "resizing") if built[name] != published[name]
    ]
    detail = "; ".join(
        f"{name} is {built[name]}, published as {published[name]}" for name in different
    )
    detail, gap = detail or "All as published.", max(gaps.values())
    return Check("preprocessing", meaning, not different, gap, COLOR_TOLERANCE, detail)


def activation(model: Model) -> Check:
    """Check the activation, because GELU weights with QuickGELU, or the reverse, silently lose some points."""
    meaning = "The model uses the activation (GELU or QuickGELU) of its published training."
    built, published = model.facts().get("activation"), model.published().get("activation")
    if not published:
        return Check("activation", meaning, None, detail=UNKNOWN_WEIGHTS)
    detail = f"Built with {built}; published with {published}."
    return Check("activation", meaning, built == published, detail=detail)
