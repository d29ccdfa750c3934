"""Points on a map of pictures or captions: which cases belong to each point, and how often they fool models."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vlprobe.views import cases, rows
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

Side = Literal["picture", "caption"]
HEXAGONS = 40  # across the map
MOST_POINTS = 5_000  # more points are drawn as hexagons


@dataclass(frozen=True)
class Points:
    """The pictures or true captions of a filter's cases, in the order of their first case.

    Attributes:
        names: The picture's name or the caption of each point.
        labels: The caption of each point; for a picture, the caption of its first case.
        cases: Numbers of the filter's cases, ascending, shape (n_cases,).
        point_of: The point of each case, shape (n_cases,).
        share: Share of each point's cases that fool the filter's model; NaN if it answered none.
        n_models: Mean number of models that each of the point's cases fools. Controls do not count.
        split: Share of the point's cases that fool some models but not others. Controls do not count.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    cases: np.ndarray
    point_of: np.ndarray
    share: np.ndarray
    n_models: np.ndarray
    split: np.ndarray


def points(question_set: QuestionSet, case_filter: Filter, side: Side) -> Points:
    """Return the points for the cases that pass a filter, ignoring its conditions on which models
    are fooled. Ties count as fooled.

    If `side` is "picture", cases without a picture on this machine are omitted.
    """
    numbers, margins, _ = cases.passing(question_set, case_filter.any_outcome())
    table = question_set.cases
    if side == "caption":
        codes, texts = table.first_texts()
        codes = codes[numbers]
    else:
        numbers = np.intersect1d(numbers, rows.sampled(question_set, case_filter.kind))
        margins = rows.margins(question_set, [case_filter.model], numbers)[0]
        codes, texts = table.picture_codes[numbers], []
    point_codes, first, point_of = np.unique(codes, return_index=True, return_inverse=True)
    if side == "picture":
        heads = rows.questions(question_set, numbers[first].tolist())
        names = tuple(images[0] for images in heads["images"])
        labels = tuple(texts[0] if len(texts) else "" for texts in heads["texts"])
    else:
        names = labels = tuple(texts[code] for code in point_codes.tolist())
    rated = rows.margins(question_set, question_set.rated_models, numbers)
    n_fooled, n_held = (rated <= 0).sum(axis=0), (rated > 0).sum(axis=0)
    unknown = np.isnan(rated).all(axis=0)
    of_model = np.where(np.isnan(margins), math.nan, margins <= 0)
    is_split = (n_fooled > 0) & (n_held > 0)
    counted = (np.where(unknown, math.nan, values) for values in (n_fooled, is_split))
    shares = (means(values, point_of, len(point_codes)) for values in (of_model, *counted))
    return Points(names, labels, numbers, point_of, *shares)


def means(values: np.ndarray, group_of: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the mean of the known values in each group, shape (n_groups,); NaN if none is known."""
    known = ~np.isnan(values)
    sums = np.bincount(group_of[known], values[known], n_groups)
    counts = np.bincount(group_of[known], minlength=n_groups)
    return np.divide(sums, counts, out=np.full(n_groups, math.nan), where=counts > 0)


def project(vectors: np.ndarray) -> np.ndarray:
    """Project embeddings onto their two principal components: float64 of shape (n, 2).

    The sign of each component is such that its largest loading is positive, so that the map never flips.
    """
    centered = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, components = np.linalg.eigh(centered.T @ centered)  # ascending; small where n is large
    axes = components[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])])
    return centered @ axes


def hexagons(places: np.ndarray, n_across: int = HEXAGONS) -> tuple[np.ndarray, np.ndarray]:
    """Group points by the cells of a hexagonal grid.

    Args:
        places: Shape (n, 2).
        n_across: Number of hexagons across the map.

    Returns:
        The centers of the hexagons that contain a point, shape (k, 2), and the hexagon of each point, shape (n,).
    """
    low = places.min(axis=0)
    spread = np.maximum(places.max(axis=0) - low, 1e-12)
    size = np.array([1.0, math.sqrt(3)])  # of the rectangle that one hexagon and four quarters fill
    scaled = (places - low) / spread * n_across
    candidates = np.stack([np.round(scaled / size) * size, (np.floor(scaled / size) + 0.5) * size])
    nearest = ((candidates - scaled) ** 2).sum(axis=2).argmin(axis=0)
    chosen = np.round(candidates[nearest, range(len(places))], 6)
    centers, hexagon_of = np.unique(chosen, axis=0, return_inverse=True)
    return centers / n_across * spread + low, hexagon_of
