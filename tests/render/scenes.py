"""Helpers for tests of words, pages and figures: a card, a table of estimates, and the luminance of a color."""

from collections.abc import Sequence

import pandas as pd

from vlprobe.views.wall import WallCard

TRAINS = WallCard(
    case=7,
    id="a/0",
    item="a",
    kind="flip",
    subtype="object",
    rule="flip:object",
    source="trains",
    target="dogs",
    true_text="On the sand, three yellow trains are standing.",
    wrong_text="On the sand, three yellow dogs are standing.",
    images=("folder/a.png",),
    wrong_image="",
    margin=-0.1,
    verdicts=(),
    more=0,
    texts=(),
    roles=(),
    tags={},
    answer=None,
)


def estimates(rows: Sequence[tuple]) -> pd.DataFrame:
    columns = ["model", "slice", "value", "low", "high", "n_items", "n_cases"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def luminance(color: Sequence[int]) -> float:
    """Return the relative luminance of red, green and blue, 0 to 255 (WCAG)."""
    parts = [part / 255 for part in color]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
