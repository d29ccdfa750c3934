"""The galleries of RoCOCO: captions with the altered ones, and pictures with the mixed ones."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.perturb import mix
from vlprobe.probes import rococo_fronts
from vlprobe.probes.clean_gallery import CAPTIONS, CLEAN
from vlprobe.probes.recall import RecallSampling
from vlprobe.probes.rococo_fronts import CandidateNames
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring import nearest
from vlprobe.scoring.approximate_gallery import ApproximateGallery
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import RetrievalRanks, retrieve, retrieve_clean
from vlprobe.scoring.short_list import Match
from vlprobe.types import Encoder, Picture, Reader

TEXT_KINDS = ("i2t", CAPTIONS)  # kinds of searches for a caption
RELEASED = "released"  # the policy of captions that were altered by the dataset's authors
FROM_FILE = "edits"  # the policy of those of a file; edits:SUBTYPE where it says which
# Columns of the table of scores that are whole numbers; null where an approximate search leaves a
# rank unknown.
RANK_COLUMNS = ("rank_clean", "rank", "top_altered", "least_rank_clean", "least_rank", "top_tied")


class GallerySearch(NamedTuple):
    """What a gallery gave for some queries."""

    ranks: RetrievalRanks
    candidate_name: Callable[
        [int], str
    ]  # by the candidate's number: its text, or its picture's name
    gallery: Gallery | ApproximateGallery
    query_vectors: np.ndarray  # float32 of shape (n_queries, width)
    is_altered: np.ndarray  # bool of shape (n_candidates,)
    fronts: pa.Table  # of `rococo_fronts.SCHEMA`, a row a query


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
        n_looked_up: Candidates that an approximate search looks up for a query; 0: all, exactly.
    """

    def __init__(
        self,
        encoder: Encoder,
        cases: Reader,
        item_number: Mapping[str, int],
        *,
        normalise: bool,
        n_looked_up: int,
    ) -> None:
        self.encoder, self.normalise, self.n_looked_up = encoder, normalise, n_looked_up
        self._item_ids = list(item_number)
        self._candidates: dict[str, _Candidates] = {}
        for block in cases(["kind", "rule", "item", "texts", "roles"]):
            for case in block.filter(pc.field("kind").isin(TEXT_KINDS)).to_pylist():
                candidates = self._candidates.setdefault(case["rule"], _Candidates())
                candidates.texts.extend(case["texts"])
                candidates.item_numbers.extend([item_number[case["item"]]] * len(case["texts"]))
                candidates.is_altered.extend(role == "different" for role in case["roles"])
        self._galleries: dict[
            str, tuple[Gallery | ApproximateGallery, list[str], CandidateNames]
        ] = {}

    def search(
        self, queries: Sequence[Picture], query_items: np.ndarray, rule: str
    ) -> GallerySearch:
        """Ranks all captions and those altered by a rule for each picture; `query_items` are
        their items' numbers.
        """
        candidates = self._candidates[rule]
        is_altered = np.array(candidates.is_altered)
        if rule not in self._galleries:
            texts = candidates.texts
            if (rule == RELEASED or rule.startswith(FROM_FILE)) and self.normalise:
                texts = [normalised(text) for text in texts]
            names = CandidateNames(
                items=pa.array(self._item_ids).take(pa.array(candidates.item_numbers)),
                texts=pa.array(candidates.texts),
                partners=None,
                altered=pa.array(is_altered),
            )
            self._galleries[rule] = self._gallery(texts, is_altered), texts, names
        gallery, texts, names = self._galleries[rule]
        match = scoring_cases.pair_matcher(self.encoder, queries, texts, query_side="images")
        vectors = self.encoder.images(queries)
        owners = np.array(candidates.item_numbers)
        ranks = _retrieved(vectors, query_items, gallery, owners, is_altered, match, rule == CLEAN)
        fronts = rococo_fronts.table(ranks, names, [""] * len(queries))
        return GallerySearch(
            ranks, candidates.texts.__getitem__, gallery, vectors, is_altered, fronts
        )

    def _gallery(
        self, texts: Sequence[str], is_altered: np.ndarray
    ) -> Gallery | ApproximateGallery:
        encoder, n_texts = self.encoder, len(texts)
        encoder.texts(
            [text for text, altered in zip(texts, is_altered, strict=True) if not altered],
            keep=True,
        )

        def encode(block: slice) -> np.ndarray:
            # In several blocks, all are kept: one text is then the same vector in each of them.
            return encoder.texts(texts[block], keep=block != slice(0, n_texts))

        exact = Gallery.encode(encode, n_texts, encoder.dim, encoder.memory, encoder.similarity)
        return nearest.searchable(exact, self.n_looked_up, encoder)


class PictureGalleries:
    """For each strength and seed a gallery of all pictures and of the mixed ones in which a pixel
    differs.

    Args:
        encoder: Embeds pictures and texts.
        pictures: By item id, in the order of the items.
        changed: By rule, the numbers of the items whose mixed picture is in the gallery.
        n_looked_up: Candidates that an approximate search looks up for a query; 0: all, exactly.
    """

    def __init__(
        self,
        encoder: Encoder,
        pictures: Mapping[str, Picture],
        changed: Mapping[str, np.ndarray],
        *,
        n_looked_up: int,
    ) -> None:
        self.encoder, self.pictures, self.changed, self.n_looked_up = (
            encoder,
            pictures,
            changed,
            n_looked_up,
        )
        self._galleries: dict[
            str, tuple[Gallery | ApproximateGallery, list[Picture], CandidateNames]
        ] = {}
        self._partners: dict[str, pa.Array] = {}  # by rule, of each picture

    def search(self, queries: Sequence[str], query_items: np.ndarray, rule: str) -> GallerySearch:
        """Ranks all pictures and those mixed by a rule for each caption; `query_items` are their
        items' numbers.
        """
        n_originals, encoder = len(self.pictures), self.encoder
        changed = np.empty(0, dtype=np.int64) if rule == CLEAN else self.changed[rule]
        if rule not in self._galleries:
            mixed = [] if rule == CLEAN else mixed_pictures(self.pictures, rule, changed)
            candidates = [*self.pictures.values(), *mixed]
            exact = Gallery.encode(
                lambda block: encoder.images(candidates[block]),
                len(candidates),
                encoder.image_dim,
                encoder.memory,
                encoder.similarity,
            )
            searchable = nearest.searchable(exact, self.n_looked_up, encoder)
            self._galleries[rule] = searchable, candidates, self._names(rule, changed)
        gallery, candidates, names = self._galleries[rule]
        candidate_items = np.concatenate([np.arange(n_originals), changed])
        is_altered = np.arange(len(candidates)) >= n_originals
        match = scoring_cases.pair_matcher(encoder, candidates, queries, query_side="texts")
        vectors = encoder.texts(queries, keep=True)
        ranks = _retrieved(
            vectors, query_items, gallery, candidate_items, is_altered, match, rule == CLEAN
        )
        query_partners = self._partners[rule].take(pa.array(query_items)).to_pylist()
        fronts = rococo_fronts.table(ranks, names, query_partners)
        return GallerySearch(
            ranks,
            lambda number: candidates[number].name,
            gallery,
            vectors,
            is_altered,
            fronts,
        )

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


class RetrievalScorer:
    """Scores slices of the run's cases: one case is a query in one altered gallery.

    Args:
        pictures: By item id, in the order of the items.
        texts: The galleries of captions, searched by the cases of kind `i2t`.
        images: The galleries of pictures, searched by those of kind `t2i`.
        sampling: Of an approximate search; None of an exact one.
    """

    def __init__(
        self,
        pictures: Mapping[str, Picture],
        texts: TextGalleries,
        images: PictureGalleries,
        sampling: RecallSampling | None,
    ) -> None:
        self.pictures, self.item_number = list(pictures.values()), item_numbers(pictures)
        self.texts, self.images, self.sampling = texts, images, sampling

    def __call__(self, cases: pa.Table) -> pa.Table:
        """The table of scores: similarity of the best candidate that is right and of the best
        altered one; and the columns of `rococo_fronts.SCHEMA`.
        """
        n_cases = len(cases)
        similarities = np.full((n_cases, 2), np.nan, dtype=np.float32)
        ranks = {name: np.full(n_cases, np.nan) for name in RANK_COLUMNS}
        recalls = {
            name: np.full(n_cases, np.nan)
            for name in (self.sampling.columns if self.sampling else ())
        }
        tops = np.empty(n_cases, dtype=object)
        fronts: list[pa.Table] = []
        fronts_rows: list[int] = []
        for gallery, rows in self._rows_by_gallery(cases).items():
            search = self._search(gallery, cases.take(rows))
            similarities[rows, 0], similarities[rows, 1] = (
                search.ranks.best_own,
                search.ranks.best_altered,
            )
            for name in RANK_COLUMNS:
                ranks[name][rows] = getattr(search.ranks, name)
            fronts.append(search.fronts)
            fronts_rows += rows
            tops[rows] = [search.candidate_name(number) for number in search.ranks.which_altered]
            if self.sampling:
                is_sampled = self.sampling.is_sampled(cases["id"].take(rows).to_pylist())
                sampled_queries = search.query_vectors[is_sampled]
                columns = self.sampling.measure(
                    search.gallery, sampled_queries, is_sampled, search.is_altered
                )
                for name, column in columns.items():
                    recalls[name][rows] = column
        front = pa.concat_tables(fronts).take(pa.array(np.argsort(fronts_rows)))
        return pa.table(
            {
                "scores": pa.array(list(similarities), pa.list_(pa.float32())),
                "text_scores": pa.array([[]] * n_cases, pa.list_(pa.float32())),
                "margin": pa.array(similarities[:, 0] - similarities[:, 1]),
                **{
                    name: pa.array(column, pa.int32(), from_pandas=True)
                    for name, column in ranks.items()
                },
                "top": pa.array(tops.tolist(), pa.string()),
                **{name: pa.array(column, from_pandas=True) for name, column in recalls.items()},
                **dict(zip(front.column_names, front.columns, strict=True)),
            }
        )

    def _rows_by_gallery(self, cases: pa.Table) -> dict[tuple[str, str], list[int]]:
        """The rows of the cases by kind and gallery, which a rule names."""
        rows: dict[tuple[str, str], list[int]] = {}
        names = (cases[name].to_pylist() for name in ("kind", "rule"))
        for row, (kind, rule) in enumerate(zip(*names, strict=True)):
            rows.setdefault((kind, rule), []).append(row)
        return rows

    def _search(self, gallery: tuple[str, str], cases: pa.Table) -> GallerySearch:
        kind, name = gallery
        query_items = np.array([self.item_number[item_id] for item_id in cases["item"].to_pylist()])
        if kind in TEXT_KINDS:
            return self.texts.search(
                [self.pictures[number] for number in query_items], query_items, name
            )
        return self.images.search(
            [texts[0] for texts in cases["texts"].to_pylist()], query_items, name
        )


def item_numbers(pictures: Mapping[str, Picture]) -> dict[str, int]:
    """The number of each item by its id."""
    return {item_id: number for number, item_id in enumerate(pictures)}


def _retrieved(
    query_vectors: np.ndarray,
    query_items: np.ndarray,
    gallery: Gallery | ApproximateGallery,
    candidate_items: np.ndarray,
    is_altered: np.ndarray,
    match: Match | None,
    is_clean: bool,
) -> RetrievalRanks:
    if isinstance(gallery, ApproximateGallery):
        return nearest.retrieve(query_vectors, query_items, gallery, candidate_items, is_altered)
    if is_clean:
        return retrieve_clean(query_vectors, query_items, gallery, candidate_items, match)
    return retrieve(query_vectors, query_items, gallery, candidate_items, is_altered, match)


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
