"""Draw influence scores on the model's input: words of a caption are colored, parts of a picture are tinted.

Orange-red, the color of wrong captions, means below 0. Each score is shown both as a color and as a number, so that it
can be read without color vision and in any theme.
"""

import html
import math
from collections.abc import Mapping, Sequence

import numpy as np

from vlprobe.perturb.influence import word_spans

# RGB of the strongest color above and below 0, each for a light and a dark page.
TINTS = {True: ((127, 184, 224), (11, 79, 125)), False: ((244, 162, 97), (138, 60, 0))}
INK = ((28, 35, 48), (242, 244, 248))  # text on the tints, for light and dark pages


def worded(caption: str, scores: Mapping[int, float]) -> tuple[list[str], list[float]]:
    """Split a caption into words (with punctuation), and look up the score for each word.

    Args:
        caption: The original caption.
        scores: Scores by the start index of the word. Words without a score get NaN.

    Returns:
        Words and scores, two lists of equal length.
    """
    words, values, begin = [], [], 0
    starts = [start for start, _ in word_spans(caption)]
    for start, end in zip(starts, [*starts[1:], len(caption)], strict=False):  # may be empty
        words.append(caption[begin:end].strip())
        begin = end
        values.append(scores.get(start, math.nan))
    return words, values


def colored_words(words: Sequence[str], values: Sequence[float]) -> str:
    """Return words as HTML, each colored by its score and with the score written below it, followed by a legend.

    Args:
        words: The words as written. They are escaped here.
        values: The score of each word, above or below 0. NaN is shown as "-" without color.
    """
    return line(words, values, strongest(values)) + legend(values)


def line(words: Sequence[str], values: Sequence[float], scale: float) -> str:
    """Return colored words without a legend. `scale` is the score that gets the strongest color."""
    spans = []
    for word, value in zip(words, values, strict=True):
        tint, exact, short = "", "unknown", "-"
        if not math.isnan(value):
            tint = f"background:{_tint(value, scale)}"
            exact, short = f"{value:z.4f}", f"{value:z.3f}"
        title = html.escape(f"{word}: {exact}")
        spans.append(
            f'<span class="vp-word" style="{tint}" title="{title}">{html.escape(word)}'
            f"<small>{short}</small></span>"
        )
    return f'<p class="vp-words">{" ".join(spans)}</p>'


def legend(
    values: Sequence[float] | np.ndarray,
    low_label: str = "less",
    high_label: str = "more",
    least: float = 0.0,
) -> str:
    """Return a color bar that ranges from the lowest to the highest of `values`, with a label at each end."""
    high = strongest(values)
    low = -high if (np.asarray(values, dtype=float) < 0).any() else least
    stops = ", ".join(_tint(low + (high - low) * step / 4, high, least) for step in range(5))
    labels = ((low_label, low), (high_label, high))
    ends = [html.escape(f"{label} {value:z.3f}") for label, value in labels]
    ramp = f"background:linear-gradient(to right, {stops})"
    bar = f'<span class="vp-ramp" aria-hidden="true" style="{ramp}"></span>'
    return f'<p class="vp-quiet vp-small">{ends[0]} {bar} {ends[1]}</p>'


def heat(
    source: str, ratio: float, alternative: str, values: np.ndarray, least: float = 0.0
) -> str:
    """Return a picture as HTML with a grid of cells above it, each tinted by its score and with the score written into
    it. The cell with the score furthest from 0 is framed. While the user presses the picture, it is shown without them.

    Args:
        source: Data address of the picture.
        ratio: Width of the picture divided by its height.
        alternative: What the cells show, for screen readers.
        values: Scores of shape (rows, columns), above or below 0. A cell with NaN is not tinted.
        least: The score at which the tint begins. Set it above 0 to distinguish scores that are all large.
    """
    scale = strongest(values)
    flat = values.ravel().tolist()
    framed = [abs(value) for value in flat].index(scale) if scale else -1
    cells = []
    for place, value in enumerate(flat):
        if math.isnan(value):
            cells.append("<span></span>")
            continue
        sign = "vp-for" if value >= 0 else "vp-against"
        style = f"--strength:{_strength(value, scale, least):.3f}"
        most = " vp-most" * (place == framed)
        cells.append(f'<span class="{sign}{most}" style="{style}"><b>{value:z.2f}</b></span>')
    grid = f"grid-template-columns: repeat({values.shape[1]}, 1fr)"
    size = f"width: min(100%, {45 * ratio:.2f}dvh)"
    image = f'<img src="{html.escape(source)}" alt="{html.escape(alternative)}">'
    tints = f'<div aria-hidden="true" style="{grid}">{"".join(cells)}</div>'
    return f'<figure class="vp-heat" tabindex="0" style="{size}">{image}{tints}</figure>'


def strongest(values: Sequence[float] | np.ndarray) -> float:
    """Return the largest absolute value, or 0 if all values are unknown."""
    distances = np.abs(np.asarray(values, dtype=float))
    return float(distances[~np.isnan(distances)].max(initial=0.0))


def _strength(value: float, scale: float, least: float = 0.0) -> float:
    return min(max(abs(value) - least, 0.0) / (scale - least), 1.0) if scale > least else 0.0


def _tint(value: float, scale: float, least: float = 0.0) -> str:
    share = _strength(value, scale, least)
    light, dark = (
        f"rgb({red} {green} {blue} / {share:.3f})" for red, green, blue in TINTS[value >= 0]
    )
    return f"light-dark({light}, {dark})"
