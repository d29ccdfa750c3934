"""The note on a run with approximate search: which share of the true best candidates was found."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from vlprobe.scoring.nearest import recall_depth


def survey(blocks: Iterable[pd.DataFrame]) -> dict[str, str]:
    """A `note` on how many of the candidates that should be found were; nothing of a run that is
    exact.
    """
    recall_blocks = []
    for rows in blocks:
        if "looked_up" not in rows:
            return {}
        recalls = [name for name in rows if name.startswith(("found_", "altered_"))]
        recall_blocks.append(rows[["kind", "looked_up", *recalls]])
    if not recall_blocks:
        return {}
    rows = pd.concat(recall_blocks).astype({"kind": str})
    near: pd.DataFrame = rows.loc[rows["looked_up"].notna()]
    if not len(near):
        return {
            "note": "not approximate: all galleries are so small that they are searched exactly"
        }
    separate = "altered_1" in rows
    recalls = []
    for kind in sorted(set(near["kind"])):
        kind_rows: pd.DataFrame = near.loc[near["kind"] == kind]
        label = f"{kind}: " if len(kind_rows) < len(near) else ""
        originals = _listing(
            [
                f"{share} of the true first{f' {depth:,}' * (depth > 1)}"
                for depth, share in _recalls(kind_rows, "found")
            ]
        )
        changed = (
            f"; of the altered {_listing([share for _, share in _recalls(kind_rows, 'altered')])}"
            if separate
            else ""
        )
        n = int(np.isfinite(kind_rows["found_1"].to_numpy(dtype=float)).sum())
        recalls.append(
            f"{label}{originals} were found{changed} ({n:,} {'query' if n == 1 else 'queries'} measured)"
        )
    note = f"approximate, {near['looked_up'].to_numpy()[0]:.0f} candidates looked up: {'; '.join(recalls)}"
    note += (
        "; what was missed can only improve ranks, so the true R@K is this or lower"
        if separate
        else ""
    )
    return {
        "note": note + ("; small galleries were searched exactly" if len(near) < len(rows) else "")
    }


def _recalls(rows: pd.DataFrame, side: str) -> list[tuple[int, str]]:
    """Every depth of one side, the deepest first, and the mean recall there in words."""
    means = {
        recall_depth(name): float(np.asarray(rows[name].mean()))
        for name in map(str, rows.columns)
        if name.startswith(f"{side}_")
    }
    words = {
        depth: "an unknown share" if math.isnan(mean) else f"{100 * mean:.1f} %"
        for depth, mean in means.items()
    }
    return sorted(words.items(), reverse=True)


def _listing(words: Sequence[str]) -> str:
    """Words with commas, and "and" before the last."""
    return f"{', '.join(words[:-1])} and {words[-1]}"
