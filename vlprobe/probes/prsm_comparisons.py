"""The comparisons of two versions of a query that PRSM's table 1 names, as stored next to the scores.

    comparisons.parquet has one row per case: names of comparisons, and the measures of each

P1: the query against its first and second paraphrase. P2: "an image of" against "a picture of" and
against no prefix. P3: the query against its first, second, and both attributes replaced. A query
without one of the two versions, or whose two are the same text, lacks the
comparison. Where no tag names the versions (captions of a picture, a file of edits), those of P1 are
numbered as they come, a text that came before left out: of "a dog", "a dog", "one dog" the last is c1.
Source: PRSM, section 3 and table 1.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from vlprobe.metrics.ranking import OVERLAPS
from vlprobe.types import Item

TABLE = "comparisons"
COMPARISONS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "P1": (("o", "c1"), ("o", "c2")),
        "P2": (("p1", "p2"), ("p1", "np")),
        "P3": (("o", "a1"), ("o", "a2"), ("o", "a12")),
    }
)
NAMES = tuple("-".join(pair) for pairs in COMPARISONS.values() for pair in pairs)
MEASURES = ("global", "global_idlist", *(f"local_{k}" for k in OVERLAPS))
_LEADS = {"an image of ": "p1", "a picture of ": "p2", "a photo of ": "p3"}
SCHEMA = pa.schema(
    [
        ("comparison", pa.list_(pa.string())),
        *((f"comparison_{measure}", pa.list_(pa.float64())) for measure in MEASURES),
    ]
)
TABLES = MappingProxyType({TABLE: SCHEMA})


def version_texts(item: Item, setting: str, texts: Sequence[str]) -> dict[str, str]:
    """The text of each version of a query that has a name in the paper, by that name.

    Args:
        item: Its tag `versions` names its captions where its dataset gave the versions.
        setting: P1, P2 or P3.
        texts: The versions of the case.

    >>> version_texts(Item("1", None, ("a dog",)), "P2", ("a dog", "An image of a dog"))
    {'np': 'a dog', 'p1': 'An image of a dog'}
    """
    if item.setting and (names := item.tags.get("versions", "")):
        return dict(zip(names.split(","), item.captions, strict=False))
    if setting == "P1":
        return {f"c{number}" if number else "o": text for number, text in enumerate(texts)}
    if setting == "P2":
        return {_prefix(text): text for text in texts}
    return {"o": texts[0]}  # only a dataset can name the attribute that a synonym replaces


def _prefix(text: str) -> str:
    """The name of a version by its prefix."""
    return next((name for lead, name in _LEADS.items() if text.lower().startswith(lead)), "np")


def measured(
    item: Item, setting: str, texts: Sequence[str], pairs: Mapping[str, np.ndarray]
) -> dict[str, list]:
    """The row of `SCHEMA` of a case.

    Args:
        item: Whose query it is.
        setting: P1, P2 or P3.
        texts: The distinct versions of the case, two or more.
        pairs: Measures of each pair of them, as `metrics.ranking.pair_measures` returns them.
    """
    versions = version_texts(item, setting, texts)
    place_of = {text: number for number, text in enumerate(texts)}
    pair_place: dict[tuple[int, ...], int] = {
        pair: number for number, pair in enumerate(combinations(range(len(texts)), 2))
    }
    row: dict[str, list] = {name: [] for name in SCHEMA.names}
    for left, right in COMPARISONS.get(setting, ()):
        ends = sorted(
            place_of[versions[name]] for name in (left, right) if versions.get(name) in place_of
        )
        if (number := pair_place.get(tuple(ends))) is None:
            continue
        row["comparison"].append(f"{left}-{right}")
        for measure in MEASURES:
            row[f"comparison_{measure}"].append(float(pairs[measure][number]))
    return row
