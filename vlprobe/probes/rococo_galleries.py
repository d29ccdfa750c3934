"""The galleries of RoCOCO: captions with the altered ones, and pictures with the mixed ones."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.perturb import mix
from vlprobe.probes.clean_gallery import CAPTIONS, CLEAN
from vlprobe.probes.rococo_fronts import CandidateNames
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.short_list import Match
from vlprobe.types import Encoder, Picture, Reader

TEXT_KINDS = ("i2t", CAPTIONS)  # kinds of searches for a caption
RELEASED = "released"  # the policy of captions that were altered by the dataset's authors
FROM_FILE = "edits"  # the policy of those of a file; edits:SUBTYPE where it says which


class PreparedSearch(NamedTuple):
    """Queries of one gallery before they are searched."""

    queries: np.ndarray  # float32 of shape (n_queries, width)
    query_items: np.ndarray  # the numbers of their items
    gallery: Gallery
    owners: np.ndarray  # the number of each candidate's item
    is_altered: np.ndarray  # bool of shape (n_candidates,)
    match: Match | None
    is_clean: bool
    candidate_name: Callable[[int], str]
    names: CandidateNames
    partners: Sequence[str]  # whose picture is mixed into each query's own


class RuleGallery(NamedTuple):
    """One rule's gallery, made for its first query."""

    gallery: Gallery
    owners: np.ndarray  # the number of each candidate's item
    is_altered: np.ndarray  # bool of shape (n_candidates,)
    is_clean: bool
    candidate_name: Callable[[int], str]
    names: CandidateNames

    def search(
        self,
        queries: np.ndarray,
        query_items: np.ndarray,
        match: Match | None,
        partners: Sequence[str],
    ) -> PreparedSearch:
        """These queries in it; arguments as in `PreparedSearch`."""
        return PreparedSearch(
            queries=queries,
            query_items=query_items,
            match=match,
            partners=partners,
            **self._asdict(),
        )


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The captions of one policy's gallery; three lists of one length."""

    texts: list[str] = field(default_factory=list)
    item_numbers: list[int] = field(default_factory=list)
    is_altered: list[bool] = field(default_factory=list)


class TextGalleries:
    """For each rule (a policy, or one of its seeds) a gallery of all captions and of those that it altered.

    Args:
        encoder: Embeds pictures and texts.
        cases: Reads all cases of the run.
        item_number: By item id, the number of the item.
        normalise: Whether released captions are compared without case and marks.
    """

    def __init__(
        self,
        encoder: Encoder,
        cases: Reader,
        item_number: Mapping[str, int],
        *,
        normalise: bool,
    ) -> None:
        self.encoder, self.normalise = encoder, normalise
        self._item_ids = list(item_number)
        self._candidates: dict[str, _Candidates] = {}
        for block in cases(["kind", "rule", "item", "texts", "roles"]):
            for case in block.filter(pc.field("kind").isin(TEXT_KINDS)).to_pylist():
                candidates = self._candidates.setdefault(case["rule"], _Candidates())
                candidates.texts.extend(case["texts"])
                candidates.item_numbers.extend([item_number[case["item"]]] * len(case["texts"]))
                candidates.is_altered.extend(role == "different" for role in case["roles"])
        self._galleries: dict[str, tuple[RuleGallery, list[str]]] = {}

    def prepare(
        self, queries: Sequence[Picture], query_items: np.ndarray, rule: str
    ) -> PreparedSearch:
        """What ranks all captions and those altered by a rule for each picture; `query_items` are
        their items' numbers.
        """
        if rule not in self._galleries:
            self._galleries[rule] = self._made(rule), self._texts(rule)
        gallery, texts = self._galleries[rule]
        match = scoring_cases.pair_matcher(self.encoder, queries, texts, query_side="images")
        return gallery.search(self.encoder.images(queries), query_items, match, [""] * len(queries))

    def _made(self, rule: str) -> RuleGallery:
        candidates = self._candidates[rule]
        is_altered = np.array(candidates.is_altered)
        return RuleGallery(
            gallery=self._gallery(rule),
            owners=np.array(candidates.item_numbers),
            is_altered=is_altered,
            is_clean=rule == CLEAN,
            candidate_name=candidates.texts.__getitem__,
            names=CandidateNames(
                items=pa.array(self._item_ids).take(pa.array(candidates.item_numbers)),
                texts=pa.array(candidates.texts),
                partners=None,
                altered=pa.array(is_altered),
            ),
        )

    def _texts(self, rule: str) -> list[str]:
        """The candidates of a gallery, as they are compared."""
        texts = self._candidates[rule].texts
        if (rule == RELEASED or rule.startswith(FROM_FILE)) and self.normalise:
            return [normalised(text) for text in texts]
        return texts

    def _gallery(self, rule: str) -> Gallery:
        """The gallery of a rule; originals are kept, as are all in several blocks:
        one text is then the same vector in each of them.
        """
        encoder, texts = self.encoder, self._texts(rule)
        is_altered = self._candidates[rule].is_altered

        def encode(block: slice) -> np.ndarray:
            if block != slice(0, len(texts)):
                return encoder.texts(texts[block], keep=True)
            originals = [
                text for text, altered in zip(texts, is_altered, strict=True) if not altered
            ]
            encoder.texts(originals, keep=True)
            return encoder.texts(texts)

        return Gallery.encode(encode, len(texts), encoder.dim, encoder.memory, encoder.similarity)


class PictureGalleries:
    """For each strength and seed a gallery of all pictures and of the mixed ones in which a pixel
    differs.

    Args:
        encoder: Embeds pictures and texts.
        pictures: By item id, in the order of the items.
        changed: By rule, the numbers of the items whose mixed picture is in the gallery.
    """

    def __init__(
        self,
        encoder: Encoder,
        pictures: Mapping[str, Picture],
        changed: Mapping[str, np.ndarray],
    ) -> None:
        self.encoder, self.pictures, self.changed = encoder, pictures, changed
        self._galleries: dict[str, tuple[RuleGallery, list[Picture]]] = {}
        self._listed: dict[str, list[Picture]] = {}  # by rule, the candidates
        self._partners: dict[str, pa.Array] = {}  # by rule, of each picture

    def prepare(self, queries: Sequence[str], query_items: np.ndarray, rule: str) -> PreparedSearch:
        """What ranks all pictures and those mixed by a rule for each caption; `query_items` are their
        items' numbers.
        """
        if rule not in self._galleries:
            pictures = self._pictures(rule)
            self._galleries[rule] = self._made(rule, pictures), pictures
        gallery, candidates = self._galleries[rule]
        match = scoring_cases.pair_matcher(self.encoder, candidates, queries, query_side="texts")
        partners = self._partners[rule].take(pa.array(query_items)).to_pylist()
        vectors = self.encoder.texts(queries, keep=True)
        return gallery.search(vectors, query_items, match, partners)

    def _made(self, rule: str, candidates: Sequence[Picture]) -> RuleGallery:
        encoder, n_originals, changed = self.encoder, len(self.pictures), self._changed_by(rule)
        return RuleGallery(
            gallery=Gallery.encode(
                lambda block: encoder.images(candidates[block]),
                len(candidates),
                encoder.image_dim,
                encoder.memory,
                encoder.similarity,
            ),
            owners=np.concatenate([np.arange(n_originals), changed]),
            is_altered=np.arange(len(candidates)) >= n_originals,
            is_clean=rule == CLEAN,
            candidate_name=lambda number: candidates[number].name,
            names=self._names(rule, changed),
        )

    def _changed_by(self, rule: str) -> np.ndarray:
        return np.empty(0, dtype=np.int64) if rule == CLEAN else self.changed[rule]

    def _pictures(self, rule: str) -> list[Picture]:
        mixed = [] if rule == CLEAN else mixed_pictures(self.pictures, rule, self._changed_by(rule))
        return [*self.pictures.values(), *mixed]

    def _names(self, rule: str, changed_numbers: np.ndarray) -> CandidateNames:
        """What the candidates of a rule's gallery are called."""
        item_ids, n_originals = list(self.pictures), len(self.pictures)
        changed = pa.array(changed_numbers)
        if rule == CLEAN:
            partners = pa.array([""] * n_originals)
        else:
            partner_of = mix.partners(item_ids, int(rule.rpartition(":seed")[2]))
            partners = pa.array([partner_of[item_id] for item_id in item_ids])
        self._partners[rule] = partners
        return CandidateNames(
            items=pa.concat_arrays([pa.array(item_ids), pa.array(item_ids).take(changed)]),
            texts=None,
            partners=pa.concat_arrays([pa.array([""] * n_originals), partners.take(changed)]),
            altered=pa.array(np.repeat([False, True], [n_originals, len(changed)])),
        )


def item_numbers(pictures: Mapping[str, Picture]) -> dict[str, int]:
    """The number of each item by its id."""
    return {item_id: number for number, item_id in enumerate(pictures)}


def changed_items(cases: Reader, item_number: Mapping[str, int]) -> dict[str, np.ndarray]:
    """By rule, the numbers of the items with a query about their mixed picture: those in which a
    pixel differs.
    """
    numbers: dict[str, set[int]] = {}
    for block in cases(["kind", "rule", "item"]):
        queries = block.filter(pc.field("kind") == "t2i")
        for query in queries.group_by(["rule", "item"]).aggregate([]).to_pylist():
            numbers.setdefault(query["rule"], set()).add(item_number[query["item"]])
    return {rule: np.array(sorted(of_rule)) for rule, of_rule in numbers.items()}


def mixed_pictures(
    pictures: Mapping[str, Picture], rule: str, changed: np.ndarray
) -> list[Picture]:
    """The pictures with these numbers, mixed with their partners among all, as the rule says:
    KIND:LAM:seedN.
    """
    kind, lam, seed = rule.split(":")
    paths = {item_id: picture.path for item_id, picture in pictures.items()}
    edits = mix.picture_edits(
        paths, cast(Literal["mix", "patch"], kind), float(lam), int(seed.removeprefix("seed"))
    )
    item_ids = list(pictures)
    return [
        Picture(paths[item_ids[number]], edits[item_ids[number]]) for number in changed.tolist()
    ]


def normalised(text: str) -> str:
    """The words of a text in lower case, one blank between them."""
    return " ".join(re.findall(r"\w+", text.lower()))
