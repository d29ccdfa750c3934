"""The galleries of RoCOCO: captions with the altered ones, and pictures with the mixed ones."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vlprobe.perturb import mix
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring import nearest
from vlprobe.scoring.gallery import Gallery, Match, RetrievalRanks, retrieve
from vlprobe.scoring.nearest import ApproximateGallery
from vlprobe.types import Encoder, Item, Picture, Reader

RELEASED = "released"  # the policy of captions that were altered by the dataset's authors


@dataclass(frozen=True)
class Searched:
    """What queries, as embeddings, found in a gallery, and what its candidates are called."""

    found: RetrievalRanks
    name_of: Callable[[int], str]
    gallery: Gallery | ApproximateGallery
    queries: np.ndarray
    altered: np.ndarray


class TextGalleries:
    """All captions once, and for each policy the altered ones."""

    def __init__(self, encoder: Encoder, cases: Reader, code: Mapping[str, int], normalise: bool, k: int) -> None:
        self.encoder, self.normalise, self.k = encoder, normalise, k
        self.rows: dict[str, dict[str, list]] = {}
        for block in cases(["kind", "subtype", "item", "texts", "roles"]):
            for row in block.filter(pa.compute.equal(block["kind"], "i2t")).to_pylist():
                own = self.rows.setdefault(row["subtype"], {"text": [], "owner": [], "altered": []})
                own["text"] += row["texts"]
                own["owner"] += [code[row["item"]]] * len(row["texts"])
                own["altered"] += [role == "different" for role in row["roles"]]
        self.built: dict[str, tuple[Gallery | ApproximateGallery, np.ndarray, np.ndarray, list[str]]] = {}

    def search(self, queries: Sequence[Picture], query_item: np.ndarray, policy: str) -> Searched:
        """Ranks all captions, and those altered by a policy, for each picture."""
        rows = self.rows[policy]
        if policy not in self.built:
            texts = rows["text"]
            if policy == RELEASED and self.normalise:
                texts = [normalised(text) for text in texts]
            altered = np.array(rows["altered"])
            self.encoder.texts([text for text, own in zip(texts, ~altered, strict=True) if own], keep=True)
            whole = slice(0, len(texts))
            gallery = Gallery.encode(
                # In parts, all are kept: one text is then the same vector in each of them.
                lambda part: self.encoder.texts(texts[part], keep=part != whole),
                len(texts),
                self.encoder.dim,
                self.encoder.memory,
            )
            gallery = nearest.searchable(gallery, self.k, self.encoder)
            self.built[policy] = gallery, np.array(rows["owner"]), altered, texts
        gallery, owner, altered, texts = self.built[policy]
        match = scoring_cases.pair_matcher(self.encoder, queries, texts, asked="images")
        vectors = self.encoder.images(queries)
        found = _retrieved(vectors, query_item, gallery, owner, altered, match)
        return Searched(found, rows["text"].__getitem__, gallery, vectors, altered)


class PictureGalleries:
    """All pictures once, and for each strength and seed the mixed ones in which a pixel differs."""

    def __init__(self, encoder: Encoder, items: Sequence[Item], changed: Mapping[str, np.ndarray], k: int) -> None:
        self.encoder, self.items, self.changed, self.k = encoder, items, changed, k
        self.built: dict[str, tuple[Gallery | ApproximateGallery, list[Picture]]] = {}

    def search(self, queries: Sequence[str], query_item: np.ndarray, rule: str) -> Searched:
        """Ranks all pictures, and those mixed by a rule, for each caption."""
        if rule not in self.built:
            everything = [item.image for item in self.items] + mixed_pictures(self.items, rule, self.changed[rule])
            gallery = Gallery.encode(
                lambda part: self.encoder.images(everything[part]),
                len(everything),
                self.encoder.image_dim,
                self.encoder.memory,
            )
            self.built[rule] = nearest.searchable(gallery, self.k, self.encoder), everything
        gallery, everything = self.built[rule]
        owner = np.concatenate([np.arange(len(self.items)), self.changed[rule]])
        altered = np.arange(len(owner)) >= len(self.items)
        match = scoring_cases.pair_matcher(self.encoder, everything, queries, asked="texts")
        vectors = self.encoder.texts(queries, keep=True)
        found = _retrieved(vectors, query_item, gallery, owner, altered, match)
        return Searched(found, lambda number: everything[number].name, gallery, vectors, altered)


def _retrieved(
    queries: np.ndarray,
    query_item: np.ndarray,
    gallery: Gallery | ApproximateGallery,
    owner: np.ndarray,
    altered: np.ndarray,
    match: Match | None,
) -> RetrievalRanks:
    if isinstance(gallery, ApproximateGallery):
        return nearest.retrieve(queries, query_item, gallery, owner, altered)
    return retrieve(queries, query_item, gallery, owner, altered, match)


def changed_items(cases: Reader, items: Sequence[Item]) -> dict[str, np.ndarray]:
    """By rule, the places of the items whose mixed pictures are asked about: those in which a pixel differs."""
    place = {item.id: number for number, item in enumerate(items)}
    asked: dict[str, set[int]] = {}
    for block in cases(["kind", "rule", "item"]):
        queries = block.filter(pa.compute.equal(block["kind"], "t2i"))
        for row in queries.group_by(["rule", "item"]).aggregate([]).to_pylist():
            asked.setdefault(row["rule"], set()).add(place[row["item"]])
    return {rule: np.array(sorted(places)) for rule, places in asked.items()}


def mixed_pictures(items: Sequence[Item], rule: str, changed: np.ndarray) -> list[Picture]:
    """The pictures of these places, mixed with their partners among all items as the rule says: KIND:LAM:seedN."""
    kind, lam, number = rule.split(":")
    paths = {item.id: item.image.path for item in items}
    edits = mix.picture_edits(paths, kind, float(lam), int(number.removeprefix("seed")))
    return [Picture(items[place].image.path, edits[items[place].id]) for place in changed.tolist()]


def normalised(text: str) -> str:
    """The words of a text in lower case, one blank between them."""
    return " ".join(re.findall(r"\w+", text.lower()))
