"""Edits that a model never sees, because its tokenizer or its preprocessing undoes them before the
first layer.

An erased edit does not change any score. Counted as an answer, it would look like perfect invariance (a
paraphrase) or like a mistake (a flip), so erased edits are reported separately and do not change any metric.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from vlprobe.perturb import mix
from vlprobe.scoring import pictures
from vlprobe.types import (
    DualEncoder,
    Model,
    PairScorer,
    Picture,
    PictureEdit,
    embeds_images,
    scores_pairs,
)

# size of a random sample of picture pairs, because opening all would cost as much as the run
PICTURE_PAIRS = 200
_CASES = 4096  # cases that are tokenized at once
# these differences are undone one after another; the one that makes two texts equal is the reason
_FOLDED = (
    ("spacing", lambda text: " ".join(text.split())),
    ("letter case", str.casefold),
    ("punctuation", lambda text: " ".join(re.findall(r"\w+", text))),
)


# the sampling key of a pair, its group (what, kind, rule, role), and its two pictures
PicturePair = tuple[str, tuple[str, str, str, str], Picture, Picture]


@dataclass(frozen=True, slots=True)
class Erased:
    """The number of edits in one group that a model cannot see, with the reason."""

    what: str  # text or picture
    kind: str
    rule: str
    role: str  # same: it looks like invariance; different: it is a tie, and counts as a failure
    # spacing, letter case, punctuation, context limit, vocabulary; for pictures: preprocessing
    reason: str
    count: int
    of: int  # all edits with this kind, rule and role; for pictures, only the sampled ones


def erased(cases: pa.Table, model: Model) -> list[Erased]:
    """Count the edits that do not change the input of a model.

    A text is erased if it differs from an earlier text in the same case but has the same token ids. A
    picture is erased if its preprocessed pixels equal those of the first picture in the case, or of the
    picture that it was mixed from.

    Args:
        cases: A table with `id`, `item`, `kind`, `rule`, `images`, `texts` and `roles`, as a run stores
            it.
        model: The model. Pictures are skipped if it does not take pictures.

    Returns:
        One row for each group with at least one erased edit, or an empty list if no edit is erased.

    Raises:
        InvalidInput: A picture cannot be read.
    """
    if embeds_images(model) or scores_pairs(model):
        return [*_texts(cases, model), *_pictures(cases, model)]
    return _texts(cases, model)


def _texts(cases: pa.Table, model: Model) -> list[Erased]:
    totals, lost = Counter(), Counter()
    columns = cases.select(["kind", "rule", "texts", "roles"])
    for start in range(0, len(columns), _CASES):
        rows = columns.slice(start, _CASES).to_pylist()
        texts = list(dict.fromkeys(text for row in rows for text in row["texts"]))
        ids = dict(zip(texts, map(bytes, model.tokenize(texts)), strict=True)) if texts else {}
        for row in rows:
            earlier: dict[bytes, str] = {}
            for number, (text, role) in enumerate(zip(row["texts"], row["roles"], strict=True)):
                sort = ("text", row["kind"], row["rule"], role)
                totals[sort] += number > 0
                twin = earlier.setdefault(ids[text], text)
                if twin != text:
                    lost[*sort, _reason(twin, text, model)] += 1
    return _counted(totals, lost)


def _reason(left: str, right: str, model: Model) -> str:
    """Return the reason why two different texts in a case have the same token ids."""
    # Both texts are cut to begin at the first word that differs. If the edit is not erased there, it was
    # beyond the context limit before.
    words = left.split(" "), right.split(" ")
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*words, strict=False)))
    if not np.array_equal(*model.tokenize([" ".join(text[same:]) for text in words])):
        return "context limit"
    for name, fold in _FOLDED:
        left, right = fold(left), fold(right)
        if left == right:
            return name
    return "vocabulary"


def _pictures(cases: pa.Table, model: DualEncoder | PairScorer) -> list[Erased]:
    pairs = [*_pairs_within(cases), *_mixed(cases)]
    pairs.sort(key=lambda pair: hashlib.sha256(f"erased/{pair[0]}".encode()).digest())
    totals, lost = Counter(), Counter()
    for _, sort, picture, edited in pairs[:PICTURE_PAIRS]:
        totals[sort] += 1
        pixels, edited_pixels = (
            model.preprocess(pictures.open_picture(side)) for side in (picture, edited)
        )
        lost[*sort, "preprocessing"] += np.array_equal(pixels, edited_pixels)
    return _counted(totals, lost)


def _pairs_within(cases: pa.Table) -> list[PicturePair]:
    """Pair the first picture in each case with every other picture in the case."""
    counts = [chunk.value_lengths().to_numpy() for chunk in cases["images"].chunks]
    several = cases.filter(np.concatenate([np.zeros(0, bool), *[count > 1 for count in counts]]))
    return [
        (
            f"{row['id']}/{number}",
            ("picture", row["kind"], row["rule"], "different"),
            Picture.from_name(row["images"][0]),
            Picture.from_name(image),
        )
        for row in several.select(["id", "kind", "rule", "images"]).to_pylist()
        for number, image in enumerate(row["images"][1:])
    ]


def _mixed(cases: pa.Table) -> list[PicturePair]:
    """Pair each picture in a RoCOCO search with its mixture, which the case only names by its rule."""
    paths_of_rule: dict[str, dict[str, Path]] = {}
    is_t2i = np.array([kind == "t2i" for kind in cases["kind"].to_pylist()], bool)
    for row in cases.filter(is_t2i).select(["item", "rule", "images"]).to_pylist():
        path = Picture.from_name(row["images"][0]).path
        paths_of_rule.setdefault(row["rule"], {})[row["item"]] = path
    return [
        (
            f"{item}/{rule}",
            ("picture", "t2i", rule, "different"),
            Picture(paths[item]),
            Picture(paths[item], edit),
        )
        for rule, paths in paths_of_rule.items()
        for item, edit in _edits(rule, paths).items()
    ]


def _edits(rule: str, paths: dict[str, Path]) -> dict[str, PictureEdit]:
    name, lam, seed = rule.split(":")
    kind: Literal["mix", "patch"] = "mix" if name == "mix" else "patch"
    return mix.picture_edits(paths, kind, float(lam), int(seed.removeprefix("seed")))


def _counted(totals: Counter, lost: Counter) -> list[Erased]:
    return [
        Erased(*key, count=count, of=totals[key[:-1]])
        for key, count in sorted(lost.items())
        if count
    ]
