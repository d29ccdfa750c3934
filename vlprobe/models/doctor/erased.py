"""Edits that a model never gets to see: its tokenizer or its preprocessing undoes them before the first layer.

Such an edit moves no score. Taken for an answer it would look like perfect invariance (a paraphrase) or like a blunder
(a flip), so these are counted apart and no metric is changed by them.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.perturb import mix
from vlprobe.scoring import pictures
from vlprobe.types import Model, Picture, embeds_images, scores_pairs

PICTURE_PAIRS = 200  # pairs of pictures looked at, drawn by lot: opening all would cost as much as the run
_CASES = 4096  # tokenized at once
_FOLDED = (  # each undone on top of those before it; the one that makes two texts equal is the reason
    ("spacing", lambda text: " ".join(text.split())),
    ("letter case", str.casefold),
    ("punctuation", lambda text: " ".join(re.findall(r"\w+", text))),
)


@dataclass(frozen=True, slots=True)
class Erased:
    """How many edits of one sort a model cannot see, and why."""

    what: str  # text or picture
    kind: str
    rule: str
    role: str  # same: it looks like invariance; different: it is a tie, and counts as a failure
    reason: str  # spacing, letter case, punctuation, context limit, vocabulary; of pictures: preprocessing
    count: int
    of: int  # edits of that kind, rule and role; of pictures, of those that were looked at


def erased(cases: pa.Table, model: Model) -> list[Erased]:
    """Counts the edits that leave a model's input as it was.

    A text is erased if it differs from an earlier text of its case and has the same token ids; a picture, if its pixels
    after preprocessing are those of the first picture of its case, or of the picture that it was mixed from.

    Args:
        cases: With `id`, `item`, `kind`, `rule`, `images`, `texts` and `roles`, as a run stores them.
        model: Pictures are left out where it takes none.

    Returns:
        A row for each sort of which at least one is erased; an empty list says that none is.

    Raises:
        InvalidInput: a picture cannot be read.
    """
    takes_pictures = embeds_images(model) or scores_pairs(model)
    return [*_texts(cases, model), *(_pictures(cases, model) if takes_pictures else [])]


def _texts(cases: pa.Table, model: Model) -> list[Erased]:
    seen, lost = Counter(), Counter()
    columns = cases.select(["kind", "rule", "texts", "roles"])
    for start in range(0, len(columns), _CASES):
        rows = columns.slice(start, _CASES).to_pylist()
        texts = list(dict.fromkeys(text for row in rows for text in row["texts"]))
        ids = dict(zip(texts, map(bytes, model.tokenize(texts)), strict=True)) if texts else {}
        for row in rows:
            earlier: dict[bytes, str] = {}
            for number, (text, role) in enumerate(zip(row["texts"], row["roles"], strict=True)):
                sort = ("text", row["kind"], row["rule"], role)
                seen[sort] += number > 0
                twin = earlier.setdefault(ids[text], text)
                if twin != text:
                    lost[*sort, _reason(twin, text, model)] += 1
    return _counted(seen, lost)


def _reason(one: str, other: str, model: Model) -> str:
    # Both from the first word on in which they differ: what is not erased there was out of reach before.
    words = one.split(" "), other.split(" ")
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*words, strict=False)))
    if not np.array_equal(*model.tokenize([" ".join(own[same:]) for own in words])):
        return "context limit"
    for name, fold in _FOLDED:
        one, other = fold(one), fold(other)
        if one == other:
            return name
    return "vocabulary"


def _pictures(cases: pa.Table, model: Model) -> list[Erased]:
    pairs = [*_pairs_within(cases), *_mixed(cases)]
    pairs.sort(key=lambda pair: hashlib.sha256(f"erased/{pair[0]}".encode()).digest())
    seen, lost = Counter(), Counter()
    for _, sort, one, other in pairs[:PICTURE_PAIRS]:
        seen[sort] += 1
        pixels = [model.preprocess(pictures.open_picture(picture)) for picture in (one, other)]
        lost[*sort, "preprocessing"] += np.array_equal(*pixels)
    return _counted(seen, lost)


def _pairs_within(cases: pa.Table) -> list[tuple]:
    several = cases.filter(pc.greater(pc.list_value_length(cases["images"]), 1))
    return [
        (f"{row['id']}/{number}", ("picture", row["kind"], row["rule"], "different"), *map(Picture.from_name, pair))
        for row in several.select(["id", "kind", "rule", "images"]).to_pylist()
        for number, pair in enumerate((row["images"][0], image) for image in row["images"][1:])
    ]


def _mixed(cases: pa.Table) -> list[tuple]:
    """RoCOCO's cases name the picture and the rule; the mixed pictures are made when its gallery is."""
    asked: dict[str, dict[str, Path]] = {}
    for row in cases.filter(pc.equal(cases["kind"], "t2i")).select(["item", "rule", "images"]).to_pylist():
        asked.setdefault(row["rule"], {})[row["item"]] = Picture.from_name(row["images"][0]).path
    return [
        (f"{item}/{rule}", ("picture", "t2i", rule, "different"), Picture(paths[item]), Picture(paths[item], edit))
        for rule, paths in asked.items()
        for item, edit in _edits(rule, paths).items()
    ]


def _edits(rule: str, paths: dict[str, Path]) -> dict:
    kind, lam, seed = rule.split(":")
    return mix.picture_edits(paths, kind, float(lam), int(seed.removeprefix("seed")))


def _counted(seen: Counter, lost: Counter) -> list[Erased]:
    return [Erased(*key, count=count, of=seen[key[:-1]]) for key, count in sorted(lost.items()) if count]
