"""Grounding of change in a video: the time at which one caption stops to fit and the next starts.

Used on frames of videos with annotated boundaries; times are in seconds from the first frame.
Source: EqBen, appendix A.6 and table 12.
"""

import math
from collections.abc import Sequence

import numpy as np

BOUNDARY_THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # seconds; EqBen, table 12


def boundary_time(before: np.ndarray, after: np.ndarray, fps: float) -> float:
    """Where in a video a change happens: between the two neighbouring frames that best fit "before"
    then "after".

    Args:
        before: Similarity of each frame to the caption of what was, shape (n_frames,).
        after: Similarity of each frame to the caption of what is then, shape (n_frames,).
        fps: Frames a second.

    Returns:
        Seconds from the first frame to the middle of the pair with the largest s(I1, T1) + s(I2,
        T2); the first pair where several are equal; NaN with fewer than two frames.

    Source: EqBen, appendix A.6.
    """
    if len(before) < 2:
        return math.nan
    return (int(np.argmax(before[:-1] + after[1:])) + 0.5) / fps


def boundary_accuracy(
    predicted: np.ndarray, true: np.ndarray, thresholds: Sequence[float] = BOUNDARY_THRESHOLDS
) -> dict[float, float]:
    """Share of boundaries found within each distance (seconds); a boundary without prediction is a
    failure.

    Source: EqBen, table 12.
    """
    if not len(true):
        return dict.fromkeys(thresholds, math.nan)
    distance = np.abs(predicted - true)
    return {threshold: float((distance <= threshold).mean()) for threshold in thresholds}
