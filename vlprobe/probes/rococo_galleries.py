"""Search RoCOCO's galleries, which contain altered captions or mixed pictures, and score the cases.

The clean gallery contains nothing altered, and the right candidate competes with the best of all others. The first
candidates for a query in both galleries are stored next to the scores:

    fronts.parquet has one row per case: the first candidates in the clean gallery and in the whole gallery

A candidate is identified by its item; a caption also by its text, and a mixed picture also by the item whose picture
was mixed in. Lists begin with the best candidate and have up to `retrieval.FIRST` candidates.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.perturb import mix
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.gallery import Gallery, Match
from vlprobe.scoring.retrieval import RetrievalRanks, retrieve
from vlprobe.types import Case, Edit, Encoder, Item, Picture, Reader, Role
from vlprobe.types.presentation import KindPresentation

CLEAN = "clean"  # the policy and the rule for a gallery in which nothing is altered
CAPTIONS, PICTURES = "clean_i2t", "clean_t2i"  # kinds of clean cases, by search target
KINDS = {
    CAPTIONS: KindPresentation(
        label="Find the caption among unaltered captions",
        lie="another picture's caption",
        winner="the other caption",
        lies="captions of other pictures",
        question="A picture retrieves its captions from those of all pictures: one of its own "
        "should score higher than all others.",
        body="caption_search",
    ),
    PICTURES: KindPresentation(
        label="Find the picture: nothing is altered",
        lie="another picture",
        winner="the other picture",
        lies="other pictures",
        question="A caption retrieves its picture from all pictures: the right one should score "
        "higher than all others.",
        body="picture_search",
    ),
}


def clean_cases(item: Item, picture: Picture) -> list[Case]:
    """Create an item's queries in the clean gallery."""
    same: list[Role] = ["same"] * (len(item.captions) - 1)
    roles: tuple[Role, ...] = ("original", *same)
    case_id, edit = f"{item.id}/{CAPTIONS}", Edit(CAPTIONS, CLEAN, CLEAN)
    cases = [Case(case_id, item.id, item.id, (picture,), item.captions, roles, edit)]
    edit = Edit(PICTURES, CLEAN, CLEAN)
    for index, caption in enumerate(item.captions):
        group = f"{item.id}/{index}"
        case_id = f"{group}/{PICTURES}"
        cases.append(Case(case_id, item.id, group, (picture,), (caption,), ("original",), edit))
    return cases


TABLE = "fronts"
_WORDS, _NUMBERS = pa.list_(pa.string()), pa.list_(pa.float32())
SCHEMA = pa.schema(
    [
        ("clean_items", _WORDS),
        ("clean_texts", _WORDS),  # empty lists if the candidates are pictures
        ("clean_scores", _NUMBERS),
        ("whole_items", _WORDS),
        ("whole_texts", _WORDS),
        ("whole_partners", _WORDS),  # for mixed pictures; "" for an unmixed picture
        ("whole_altered", pa.list_(pa.bool_())),
        ("whole_scores", _NUMBERS),
        ("partner", pa.string()),  # item whose picture is mixed into the query's; "" for captions
        ("own_altered", pa.float32()),  # similarity of the query item's best altered candidate
        ("own_altered_rank", pa.int32()),  # rank of that candidate, with ties in its favor
    ]
)
TABLES = MappingProxyType({TABLE: SCHEMA})


def _named(names: pa.Array | None, numbers: np.ndarray) -> pa.ListArray:
    """Look up the names of each query's candidates. Return one list per query; empty lists if there are no names."""
    if names is None:
        return pa.array([[]] * len(numbers), _WORDS)
    return _listed(names.take(pa.array(numbers[numbers >= 0])), numbers)


def _listed(values: pa.Array, numbers: np.ndarray) -> pa.ListArray:
    """Split the values for the candidates of all queries into one list per query."""
    lengths = (numbers >= 0).sum(axis=1)
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), values)


TEXT_KINDS = ("i2t", CAPTIONS)  # kinds of searches for a caption
RELEASED = "released"  # the policy for captions that the dataset's authors altered
FROM_FILE = "edits"  # the policy for captions from a file; edits:SUBTYPE if the file has subtypes


# Integer columns in the table of scores
RANK_COLUMNS = ("rank_clean", "rank", "top_altered", "least_rank_clean", "least_rank", "top_tied")


class GallerySearch(NamedTuple):
    """Results for a block of queries in one gallery."""

    ranks: RetrievalRanks
    fronts: pa.Table  # rows of `SCHEMA`, one per query
    tops: list[str]  # the name of each query's best altered candidate


class RuleGallery(NamedTuple):
    """The gallery for one rule. It is built when the first query searches it. All sequences have one entry per
    candidate.
    """

    rule: str
    gallery: Gallery
    items: pa.Array  # ids of the items that the candidates belong to
    owners: np.ndarray  # numbers of these items
    is_altered: np.ndarray  # bool of shape (n_candidates,)
    names: list[str]
    texts: pa.Array | None = None  # None for pictures
    partners: pa.Array | None = None  # items that pictures are mixed with, or ""; None for captions

    def search(
        self,
        queries: np.ndarray,
        query_items: np.ndarray,
        match: Match | None,
        partners: Sequence[str],
    ) -> GallerySearch:
        """Rank the candidates in the gallery for each query in a block.

        Args:
            queries: Embeddings of the queries, float32 of shape (n_queries, width).
            query_items: The item number of each query.
            match: A function that returns the logit of a query and a candidate, for models that score
                pairs.
            partners: The item whose picture is mixed into each query's picture; "" for captions.
        """
        altered = None if self.rule == CLEAN else self.is_altered
        ranks = retrieve(queries, query_items, self.gallery, self.owners, altered, match)
        tops = [self.names[number] for number in ranks.which_altered]
        return GallerySearch(ranks, self._fronts(ranks, partners), tops)

    def _fronts(self, ranks: RetrievalRanks, partners: Sequence[str]) -> pa.Table:
        """Build one row per query, in the form of `SCHEMA`."""
        clean, whole = ranks.first_clean, ranks.first
        columns = {
            "clean_items": _named(self.items, clean),
            "clean_texts": _named(self.texts, clean),
            "clean_scores": _listed(pa.array(ranks.first_clean_scores[clean >= 0]), clean),
            "whole_items": _named(self.items, whole),
            "whole_texts": _named(self.texts, whole),
            "whole_partners": _named(self.partners, whole),
            "whole_altered": _named(pa.array(self.is_altered), whole),
            "whole_scores": _listed(pa.array(ranks.first_scores[whole >= 0]), whole),
            "partner": pa.array(partners, pa.string()),
            "own_altered": pa.array(ranks.own_altered, pa.float32(), from_pandas=True),
            "own_altered_rank": pa.array(ranks.own_altered_rank, pa.int32(), from_pandas=True),
        }
        return pa.table(columns, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The captions in one policy's gallery, as three lists of the same length."""

    texts: list[str] = field(default_factory=list)
    item_numbers: list[int] = field(default_factory=list)
    is_altered: list[bool] = field(default_factory=list)


class TextGalleries:
    """Galleries of captions. Each contains all original captions plus those altered by one rule (a policy, or one of
    its seeds).

    Args:
        item_number: The number of each item, by id.
        normalise: Whether to ignore case and punctuation in released captions.
    """

    def __init__(
        self, encoder: Encoder, cases: Reader, item_number: Mapping[str, int], *, normalise: bool
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

    def search(
        self, queries: Sequence[Picture], query_items: np.ndarray, rule: str
    ) -> GallerySearch:
        """Rank all captions, including those altered by a rule, for each picture. `query_items` has the item number of
        each picture.
        """
        if rule not in self._galleries:
            self._galleries[rule] = self._build(rule)
        gallery, texts = self._galleries[rule]
        match = scoring_cases.pair_matcher(self.encoder, queries, texts, query_side="images")
        return gallery.search(self.encoder.images(queries), query_items, match, [""] * len(queries))

    def _build(self, rule: str) -> tuple[RuleGallery, list[str]]:
        """Build the gallery for a rule. Return it with its texts in the form in which they are compared.

        Embeddings of original captions are kept. If there are several blocks, embeddings of all texts are kept, so that
        a text has the same vector in each block.
        """
        encoder, candidates = self.encoder, self._candidates[rule]
        texts, is_altered = candidates.texts, np.array(candidates.is_altered)
        if self.normalise and (rule == RELEASED or rule.startswith(FROM_FILE)):
            texts = [normalised(text) for text in texts]

        def encode(block: slice) -> np.ndarray:
            if block != slice(0, len(texts)):
                return encoder.texts(texts[block], keep=True)
            encoder.texts([*itertools.compress(texts, ~is_altered)], keep=True)
            return encoder.texts(texts)

        gallery = RuleGallery(
            rule,
            Gallery.encode(encode, len(texts), encoder.dim, encoder.memory, encoder.similarity),
            items=pa.array(self._item_ids).take(pa.array(candidates.item_numbers)),
            owners=np.array(candidates.item_numbers),
            is_altered=is_altered,
            names=candidates.texts,
            texts=pa.array(candidates.texts),
        )
        return gallery, texts


class PictureGalleries:
    """Galleries of pictures. Each contains all original pictures plus the pictures mixed with one strength and seed, if
    mixing changed any pixel.

    Args:
        pictures: The pictures by item id, in the order of the items.
        changed: For each rule, the numbers of the items whose mixed picture is in the gallery.
    """

    def __init__(
        self, encoder: Encoder, pictures: Mapping[str, Picture], changed: Mapping[str, np.ndarray]
    ) -> None:
        self.encoder, self.pictures, self.changed = encoder, pictures, changed
        # The gallery, its candidates, and each picture's mixing partner, by rule
        self._galleries: dict[str, tuple[RuleGallery, list[Picture], pa.Array]] = {}

    def search(self, queries: Sequence[str], query_items: np.ndarray, rule: str) -> GallerySearch:
        """Rank all pictures, including the mixtures that `rule` makes, for each caption in `queries`. `query_items`
        holds the item number of each caption.
        """
        if rule not in self._galleries:
            self._galleries[rule] = self._build(rule)
        gallery, candidates, partner_of_item = self._galleries[rule]
        match = scoring_cases.pair_matcher(self.encoder, candidates, queries, query_side="texts")
        partners = partner_of_item.take(pa.array(query_items)).to_pylist()
        vectors = self.encoder.texts(queries, keep=True)
        return gallery.search(vectors, query_items, match, partners)

    def _build(self, rule: str) -> tuple[RuleGallery, list[Picture], pa.Array]:
        encoder, item_ids = self.encoder, list(self.pictures)
        n_originals, candidates = len(item_ids), list(self.pictures.values())
        changed, partners = np.empty(0, dtype=np.int64), pa.array([""] * n_originals)
        if rule != CLEAN:
            changed = self.changed[rule]
            candidates += mixed_pictures(self.pictures, rule, changed)
            partner_of = mix.partners(item_ids, int(rule.rpartition(":seed")[2]))
            partners = pa.array([partner_of[item_id] for item_id in item_ids])
        owners = np.concatenate([np.arange(n_originals), changed])
        gallery = RuleGallery(
            rule,
            Gallery.encode(
                lambda block: encoder.images(candidates[block]),
                len(candidates),
                encoder.image_dim,
                encoder.memory,
                encoder.similarity,
            ),
            items=pa.array(item_ids).take(pa.array(owners)),
            owners=owners,
            is_altered=np.arange(len(candidates)) >= n_originals,
            names=[picture.name for picture in candidates],
            partners=pa.concat_arrays(
                [pa.array([""] * n_originals), partners.take(pa.array(changed))]
            ),
        )
        return gallery, candidates, partners


class RetrievalScorer:
    """Scores blocks of cases, each of which is a query in one gallery.

    Args:
        pictures: The pictures by item id, in the order of the items.
        texts: The galleries of captions, for cases of kind `i2t`.
        images: The galleries of pictures, for cases of kind `t2i`.
    """

    def __init__(
        self, pictures: Mapping[str, Picture], texts: TextGalleries, images: PictureGalleries
    ) -> None:
        self.pictures, self.item_number = list(pictures.values()), item_numbers(pictures)
        self.texts, self.images = texts, images

    def __call__(self, cases: pa.Table) -> pa.Table:
        """Score a block of cases. The table has the similarities of the best right and the best altered candidate, and
        the columns in `SCHEMA`.
        """
        n_cases = len(cases)
        similarities = np.full((n_cases, 2), np.nan, dtype=np.float32)
        ranks = {name: np.full(n_cases, np.nan) for name in RANK_COLUMNS}
        tops = np.empty(n_cases, dtype=object)
        fronts: list[pa.Table] = []
        fronts_rows: list[int] = []
        galleries = zip(cases["kind"].to_pylist(), cases["rule"].to_pylist(), strict=True)
        rows_by_gallery: dict[tuple[str, str], list[int]] = {}
        for row, gallery in enumerate(galleries):
            rows_by_gallery.setdefault(gallery, []).append(row)
        for (kind, rule), rows in rows_by_gallery.items():
            search = self._search(kind, rule, cases.take(rows))
            similarities[rows, 0] = search.ranks.best_own
            similarities[rows, 1] = search.ranks.best_altered
            for name in RANK_COLUMNS:
                ranks[name][rows] = getattr(search.ranks, name)
            fronts.append(search.fronts)
            fronts_rows += rows
            tops[rows] = search.tops
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
                **dict(zip(front.column_names, front.columns, strict=True)),
            }
        )

    def _search(self, kind: str, rule: str, cases: pa.Table) -> GallerySearch:
        query_items = np.array([self.item_number[item_id] for item_id in cases["item"].to_pylist()])
        if kind in TEXT_KINDS:
            return self.texts.search(
                [self.pictures[number] for number in query_items], query_items, rule
            )
        texts = [texts[0] for texts in cases["texts"].to_pylist()]
        return self.images.search(texts, query_items, rule)


def item_numbers(pictures: Mapping[str, Picture]) -> dict[str, int]:
    """Number the items from 0, in order, and return the numbers by item id."""
    return {item_id: number for number, item_id in enumerate(pictures)}


def changed_items(cases: Reader, item_number: Mapping[str, int]) -> dict[str, np.ndarray]:
    """For each rule, return the numbers of the items whose picture differs from its mixture in at least one pixel."""
    numbers: dict[str, set[int]] = {}
    for block in cases(["kind", "rule", "item"]):
        queries = block.filter(pc.field("kind") == "t2i")
        for query in queries.group_by(["rule", "item"]).aggregate([]).to_pylist():
            numbers.setdefault(query["rule"], set()).add(item_number[query["item"]])
    return {rule: np.array(sorted(of_rule)) for rule, of_rule in numbers.items()}


def mixed_pictures(
    pictures: Mapping[str, Picture], rule: str, changed: np.ndarray
) -> list[Picture]:
    """Mix the picture of each given item with its partner's picture, following the rule KIND:LAM:seedN."""
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
    """Normalize text to its lowercase words, separated by single spaces."""
    return " ".join(re.findall(r"\w+", text.lower()))
