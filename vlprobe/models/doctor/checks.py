"""What a healthy model does whatever it was trained on; each check says so in a sentence and keeps the figure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe.metrics import estimate
from vlprobe.models.doctor import passport
from vlprobe.scoring import pictures
from vlprobe.types import (
    Estimate,
    Item,
    Measure,
    Model,
    PairScorer,
    Picture,
    scores_pairs,
)

BATCH = 32
TRIED_ALONE = 8  # texts and pictures that are asked about once more, alone
TOLERANCE = 1e-5  # how far an embedding may move with its batch in fp32: the length of the difference
HALF_TOLERANCE = 2e-2  # the same in fp16 and bf16
COLOR_TOLERANCE = 2e-3  # of mean and std; published figures are rounded
CHANCE = ("matched_auc", "r1_forth", "r1_back")  # checks that a model does better than one that knows nothing
NEIGHBOUR = "two red cats on a very small wooden boat in the harbour of a town by the sea on a rainy day in autumn"
UNKNOWN_WEIGHTS = "Not judged: the name does not say whose published weights these are."
NOT_FINITE = "Not judged: what it gives are not finite numbers."


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a healthy model does."""

    name: str
    meaning: str  # one plain sentence
    passed: bool | None  # None: does not apply, or could not be judged; the detail says why
    value: float = math.nan
    limit: float = math.nan
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Similarities:
    """What a model says of all on one side beside all on the other; row i and column i belong together."""

    scores: np.ndarray  # float64 of shape (n, n)
    not_finite: int  # embeddings, or scores of a model that scores pairs, that are not finite numbers
    given: int  # how many there were
    names: tuple[str, str]  # of the sides


def similarities(
    model: Model, items: Sequence[Item], progress: Callable[[int, int], None] = lambda done, total: None
) -> Similarities:
    """Pictures beside first captions, or second captions where the items have no picture. Raises InvalidInput.

    Args:
        model: Pairs are asked of a model that can `match`; else its embeddings are compared.
        items: One or more, all with a picture or all without.
        progress: Called with (done, total); may raise to stop.
    """
    n, shown = len(items), items[0].image is not None
    names = ("pictures", "captions") if shown else ("second captions", "first captions")
    tokens = model.tokenize([item.captions[0] for item in items])
    if shown and scores_pairs(model):
        rows = []
        for done, item in enumerate(items):
            progress(done, n)
            rows.append(_matched(model, _pixels(model, [item.image]) * n, tokens))
        found = np.array(rows, dtype=np.float64)
        return Similarities(found, int((~np.isfinite(found)).sum()), n * n, names)
    others = None if shown else model.tokenize([item.captions[1] for item in items])
    left, right = [], []
    for start in range(0, n, BATCH):
        progress(start, n)
        batch = slice(start, start + BATCH)
        if shown:
            left.append(model.encode_images(np.stack(_pixels(model, [item.image for item in items[batch]]))))
        else:
            left.append(model.encode_texts(others[batch]))
        right.append(model.encode_texts(tokens[batch]))
    one, other = np.concatenate(left), np.concatenate(right)
    bad = sum(int((~np.isfinite(side).all(axis=1)).sum()) for side in (one, other))
    # An image may be several vectors in a row; the best of them is its similarity.
    scores = np.einsum("nqd,md->nmq", one.reshape(n, -1, other.shape[1]), other).max(axis=2)
    return Similarities(scores.astype(np.float64), bad, 2 * n, names)


def _pixels(model: Model, images: Sequence[Picture]) -> list[np.ndarray]:
    return [model.preprocess(pictures.open_picture(image)) for image in images]


def _matched(model: PairScorer, pixels: Sequence[np.ndarray], tokens: np.ndarray) -> np.ndarray:
    found = []
    for start in range(0, len(pixels), BATCH):
        batch = slice(start, start + BATCH)
        found.append(model.match(model.encode_pictures(pixels[batch]), tokens[batch]))
    return np.concatenate(found)


def finite(found: Similarities) -> Check:
    """A number that is not one makes every comparison false, and so makes a score."""
    meaning = "Every embedding, or score of a pair, is made of finite numbers."
    detail = f"{found.not_finite} of {found.given} are not."
    return Check("finite", meaning, found.not_finite == 0, found.not_finite, 0, detail)


def text_batch(model: Model, items: Sequence[Item]) -> Check:
    """The same caption alone, beside a long one, in another order. SigLIP padded to a batch's longest fails it."""
    texts = [item.captions[0] for item in items[:TRIED_ALONE]]
    if scores_pairs(model) and items[0].image is not None:
        pixels = _pixels(model, [items[0].image])

        def give(batch: Sequence[str]) -> np.ndarray:
            return _matched(model, pixels * len(batch), model.tokenize(batch))[:, None]
    else:

        def give(batch: Sequence[str]) -> np.ndarray:
            return model.encode_texts(model.tokenize(batch))

    alone = np.concatenate([give([text]) for text in texts])
    beside = [give([*texts, NEIGHBOUR])[:-1], give(texts[::-1])[::-1]]
    meaning = "A caption gives the same numbers whatever other captions are in its batch."
    return _moved("text_batch", meaning, model, alone, beside, "texts")


def image_batch(model: Model, items: Sequence[Item]) -> Check:
    """The same picture alone, among others and in another order. A model left in training mode fails it."""
    meaning = "A picture gives the same numbers whatever other pictures are in its batch."
    if items[0].image is None:
        return Check("image_batch", meaning, None, detail="Not judged: no pictures.")
    pixels = _pixels(model, [item.image for item in items[:TRIED_ALONE]])
    if scores_pairs(model):
        tokens = model.tokenize([items[0].captions[0]])

        def give(batch: Sequence[np.ndarray]) -> np.ndarray:
            return _matched(model, batch, tokens.repeat(len(batch), axis=0))[:, None]
    else:

        def give(batch: Sequence[np.ndarray]) -> np.ndarray:
            return model.encode_images(np.stack(batch))

    alone = np.concatenate([give([one]) for one in pixels])
    return _moved("image_batch", meaning, model, alone, [give(pixels), give(pixels[::-1])[::-1]], "pictures")


def _moved(name: str, meaning: str, model: Model, alone: np.ndarray, beside: Sequence[np.ndarray], what: str) -> Check:
    if not all(np.isfinite(vectors).all() for vectors in (alone, *beside)):
        return Check(name, meaning, None, detail=NOT_FINITE)
    limit = TOLERANCE if model.capabilities.precision == "fp32" else HALF_TOLERANCE
    value = max(float(np.linalg.norm(vectors - alone, axis=1).max()) for vectors in beside)
    return Check(name, meaning, value <= limit, value, limit, f"Furthest that one of {len(alone)} {what} moved.")


def matching(found: Similarities) -> list[Check]:
    """Whether what belongs together is more alike than what does not: AUC and, both ways, R@1; against chance."""
    n, (one, other) = len(found.scores), found.names
    plan = [
        ("matched_auc", f"{one.capitalize()} are more like their own {other} than like those of others."),
        ("r1_forth", f"Of all {other}, the nearest to one of the {one} is its own more often than by chance."),
        ("r1_back", f"Of all {one}, the nearest to one of the {other} is its own more often than by chance."),
    ]
    if n < 2 or found.not_finite:
        why = NOT_FINITE if n > 1 else "Not judged: fewer than two items to compare."
        return [Check(name, meaning, None, detail=why) for name, meaning in plan]
    first = [_first(found.scores), _first(found.scores.T)]
    hits = [Measure(hit, np.ones(n), np.arange(n)) for hit in first]
    results = [auc(found.scores), *estimate.estimates(hits, n, are_rates=True)]
    return [
        Check(
            name,
            meaning,
            bool(result.low > chance),
            result.value,
            chance,
            f"95 % interval {result.low:.3f} to {result.high:.3f} over {n} items; its lower end must be above chance.",
        )
        for (name, meaning), result, chance in zip(plan, results, (0.5, 1 / n, 1 / n), strict=True)
    ]


def _first(scores: np.ndarray) -> np.ndarray:
    """1 for each row whose own column is above all others; a tie is a failure."""
    others = np.where(np.eye(len(scores), dtype=bool), -np.inf, scores)
    return (np.diag(scores) > others.max(axis=1)).astype(np.float64)


def auc(scores: np.ndarray) -> Estimate:
    """Probability that a matched pair is more similar than a mismatched one; a tie counts half.

    Args:
        scores: Shape (n, n), n of 2 or more; matched pairs on the diagonal.

    Returns:
        Its 95 % interval is from resampled items: a pair comes in as often as both of its items do, and an item drawn
        twice is not mismatched with itself.
    """
    n = len(scores)
    apart = ~np.eye(n, dtype=bool)
    order = np.argsort(scores[apart], kind="stable")
    row, column = (index[apart][order] for index in np.indices((n, n)))
    mismatched, matched = scores[apart][order], np.diag(scores)
    below, upto = (np.searchsorted(mismatched, matched, side=side) for side in ("left", "right"))

    def weighted(count: np.ndarray) -> float:
        pairs = np.concatenate([[0.0], np.cumsum(count[row] * count[column])])
        if pairs[-1] == 0:  # one item only was drawn
            return math.nan
        return float(count @ (pairs[below] + pairs[upto]) / 2 / (count.sum() * pairs[-1]))

    drawn = estimate.resample_counts(n, 0, estimate.RESAMPLES).astype(np.float64)
    tail = (1 - estimate.LEVEL) / 2
    low, high = np.nanquantile([weighted(count) for count in drawn], [tail, 1 - tail])
    return Estimate(weighted(np.ones(n)), float(low), float(high), n)


def preprocessing(model: Model) -> Check:
    """What becomes of a picture, against what those who published the weights state."""
    meaning = "Pictures are resized and normalised as those of the training were."
    wanted = model.published()
    seen = passport.seeing(model)
    if not seen or "mean" not in wanted:
        return Check("preprocessing", meaning, None, detail=UNKNOWN_WEIGHTS)
    built = {**model.facts(), **seen}
    gaps = {name: _gap(built[name], wanted[name]) for name in ("mean", "std")}
    different = [name for name, gap in gaps.items() if gap > COLOR_TOLERANCE]
    different += [name for name in ("size", "interpolation", "resizing") if built[name] != wanted[name]]
    detail = "; ".join(f"{name} is {built[name]}, published as {wanted[name]}" for name in different)
    value = max(gaps.values())
    return Check("preprocessing", meaning, not different, value, COLOR_TOLERANCE, detail or "All as published.")


def _gap(one: str, other: str) -> float:
    left, right = ([float(figure) for figure in text.split(",")] for text in (one, other))
    return max(abs(a - b) for a, b in zip(left, right, strict=True))


def activation(model: Model) -> Check:
    """GELU weights under QuickGELU, or the other way round, lose some points in silence."""
    meaning = "The layers run with the activation (GELU or QuickGELU) that the published weights were trained with."
    built, wanted = model.facts().get("activation"), model.published().get("activation")
    if not wanted:
        return Check("activation", meaning, None, detail=UNKNOWN_WEIGHTS)
    return Check("activation", meaning, built == wanted, detail=f"Built with {built}; published with {wanted}.")
