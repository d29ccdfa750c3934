"""Rank a gallery's pictures for every version of a query, and measure how well the rankings agree.

Comparisons of two versions of a query, as in PRSM's table 1, are stored next to the scores:

    comparisons.parquet has one row per case: the names of the comparisons, and the measures for each of them

P1: the query compared with its first and second paraphrases. P2: "an image of" compared with "a
picture of" and with no prefix. P3: the query compared with versions in which the first, the second,
or both attributes are replaced. A comparison is left out if the query lacks one of the two versions,
or if both have the same text. If no tag names the versions (captions of a picture, a file of
edits), the versions of P1 are numbered in order, without duplicates: for "a dog", "a dog", "one
dog", the last is c1. Source: PRSM, section 3 and table 1.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe.errors import InvalidInput
from vlprobe.metrics import ranking
from vlprobe.metrics.ranking import OVERLAPS
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import best_columns
from vlprobe.types import Encoder, Item, Picture

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
    """Return the text of each query version that the paper names, keyed by the paper's name.

    Args:
        item: The item; if the dataset provides the versions, the tag `versions` names the item's captions.
        setting: P1, P2 or P3.
        texts: The versions in the case.

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
    """Return the paper's name for a query version, judging by its prefix."""
    return next((name for lead, name in _LEADS.items() if text.lower().startswith(lead)), "np")


def measured(
    item: Item, setting: str, texts: Sequence[str], pairs: Mapping[str, np.ndarray]
) -> dict[str, list]:
    """Build the row for one case, in the form of `SCHEMA`.

    Args:
        item: The item that the query belongs to.
        setting: P1, P2 or P3.
        texts: The distinct versions of the query, two or more.
        pairs: Measures for each pair of versions, as returned by `metrics.ranking.pair_measures`.
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


TOP_PICTURES = 5  # candidates that are stored from each version's ranking


class QueryRanking(NamedTuple):
    """Results for one query: how well the rankings of its versions agree, and the first candidates for each version."""

    measures: dict[str, float]
    pairs: dict[str, np.ndarray]  # the measures for each pair of versions, shape (n_pairs,)
    top: list[list[int]]  # for each version, the numbers of its TOP_PICTURES best candidates


class GroupGallery:
    """A gallery of pictures for the queries in one group."""

    def __init__(self, encoder: Encoder, pictures: Sequence[Picture]) -> None:
        self.encoder, self.pictures = encoder, pictures

    @functools.cached_property  # one gallery for all blocks of a run
    def index(self) -> Gallery:
        """The gallery to search. It is built when the first query is searched."""
        encoder, pictures = self.encoder, self.pictures
        return Gallery.encode(
            lambda block: encoder.images(pictures[block]),
            len(pictures),
            encoder.image_dim,
            encoder.memory,
            encoder.similarity,
        )

    def rank(
        self,
        queries: Sequence[Sequence[str]],
        samples: Iterable[np.ndarray | None] = itertools.repeat(None),
    ) -> Iterator[QueryRanking]:
        """Rank the pictures for each query, and yield the results in the order of the queries.

        Args:
            samples: For each query, the numbers of the candidates used for the rank correlation, or None for all.
        """
        gallery, samples = self.index, iter(samples)
        for block in query_blocks(queries, gallery.product_queries):
            texts = [text for versions in block for text in versions]
            match = scoring_cases.pair_matcher(
                self.encoder, self.pictures, texts, query_side="texts"
            )
            blocks = gallery.similarities(self.encoder.texts(texts), match)
            rows = itertools.chain.from_iterable(scores for _, scores in blocks)
            for versions in block:
                scores = np.stack([*itertools.islice(rows, len(versions))])
                sample = next(samples)
                if sample is None:
                    yield _ranked(ranking.ranked(scores))
                else:
                    yield _sampled(scores, sample)


class RankingScorer:
    """Scores blocks of cases, each of which is a query in several versions.

    Args:
        galleries: The gallery for the queries in each group, by group.
        items: The items that the queries belong to, by id.
        group_tag: The tag that defines the groups, for error messages; "" for a single group.
        n_sampled: The number of randomly drawn candidates for each query's rank correlation; 0 for all.
    """

    def __init__(
        self,
        encoder: Encoder,
        galleries: Mapping[str, GroupGallery],
        items: Mapping[str, Item],
        *,
        group_tag: str,
        n_sampled: int,
        seed: int,
    ) -> None:
        self.n_sampled, self.seed = n_sampled, seed
        self.encoder, self.galleries, self.items = encoder, galleries, items
        self.group_tag = group_tag

    def __call__(self, cases: pa.Table) -> pa.Table:
        """Score a block of cases. Raises InvalidInput if a query's group has no picture."""
        queries, case_ids = cases["texts"].to_pylist(), cases["id"].to_pylist()
        item_ids, settings = cases["item"].to_pylist(), cases["subtype"].to_pylist()
        self.encoder.texts([text for versions in queries for text in versions], keep=True)
        measures: list[dict[str, float]] = [{} for _ in queries]
        tops = [""] * len(queries)
        compared: list[dict[str, list]] = [{} for _ in queries]
        for group, rows in self._rows_by_group(item_ids).items():
            gallery, group_queries = self.galleries[group], [queries[row] for row in rows]
            rankings = self._rankings(gallery, group_queries, [case_ids[row] for row in rows])
            for row, ranked in zip(rows, rankings, strict=True):
                measures[row] = ranked.measures | {"gallery_size": len(gallery.pictures)}
                item = self.items[item_ids[row]]
                compared[row] = measured(item, settings[row], queries[row], ranked.pairs)
                names = [
                    [gallery.pictures[number].name for number in version] for version in ranked.top
                ]
                tops[row] = json.dumps(names)
        table = ranking_table(measures, tops)
        for name in SCHEMA.names:
            values = pa.array([row[name] for row in compared], SCHEMA.field(name).type)
            table = table.append_column(name, values)
        return table

    def _rankings(
        self, gallery: GroupGallery, queries: Sequence[Sequence[str]], case_ids: Sequence[str]
    ) -> Iterator[QueryRanking]:
        """Rank a gallery for some queries. If it has at most `n_sampled` candidates, all of them are used."""
        n, n_sampled = len(gallery.pictures), self.n_sampled
        if 0 < n_sampled < n:
            yield from gallery.rank(
                queries,
                (ranking.sampled_numbers(self.seed, case_id, n, n_sampled) for case_id in case_ids),
            )
            return
        for ranked in gallery.rank(queries):
            if n_sampled:
                ranked.measures[ranking.SAMPLED] = ranked.measures["global"]
            yield ranked

    def _rows_by_group(self, item_ids: Sequence[str]) -> dict[str, list[int]]:
        rows_by_group: dict[str, list[int]] = {}
        for row, item_id in enumerate(item_ids):
            group = group_of(self.items[item_id], self.group_tag)
            if group not in self.galleries:
                raise InvalidInput(
                    f"No picture in the gallery has the tag '{self.group_tag}={group}', which "
                    f"item '{item_id}' needs."
                )
            rows_by_group.setdefault(group, []).append(row)
        return rows_by_group


def group_of(item: Item, group_tag: str) -> str:
    """Return the group that an item belongs to, which is the value of the tag; "" if no tag is given."""
    return item.tags.get(group_tag, "") if group_tag else ""


def ranking_table(measures: Sequence[Mapping[str, float]], tops: Sequence[str]) -> pa.Table:
    """Build the table of scores. The margin is one of the measures, chosen by `margin_measure`, minus 1."""
    columns = pd.DataFrame(measures).astype(np.float64)
    agreement = np.array([row[margin_measure(int(row["gallery_size"]))] for row in measures])
    no_scores = pa.array([[]] * len(measures), pa.list_(pa.float32()))
    return pa.table(
        {
            "scores": no_scores,
            "text_scores": no_scores,
            "margin": pa.array((agreement - 1).astype(np.float32), from_pandas=True),
            "top": pa.array(tops),
            **{name: pa.array(columns[name].to_numpy(), from_pandas=True) for name in columns},
        }
    )


def margin_measure(gallery_size: int) -> str:
    """Return the name of the measure that a query's margin is based on, given the size of the gallery.

    >>> margin_measure(5000), margin_measure(100), margin_measure(10)
    ('local_100', 'local_10', 'global')
    """
    depths = [depth for depth in (100, 10) if depth < gallery_size]
    return f"local_{depths[0]}" if depths else "global"


def query_blocks(
    queries: Sequence[Sequence[str]], max_versions: int
) -> Iterator[list[Sequence[str]]]:
    """Yield blocks of queries with at most `max_versions` versions in total. A query with more versions is a block by
    itself.

    >>> list(query_blocks(["abc", "def", "gh"], 6))
    [['abc', 'def'], ['gh']]
    """
    block: list[Sequence[str]] = []
    for versions in queries:
        if block and sum(map(len, block)) + len(versions) > max_versions:
            yield block
            block = []
        block.append(versions)
    if block:
        yield block


def _ranked(versions: ranking.Rankings) -> QueryRanking:
    pairs = ranking.pair_measures(versions)
    return QueryRanking(ranking.means(pairs), pairs, versions.order[:, :TOP_PICTURES].tolist())


def _sampled(scores: np.ndarray, sample: np.ndarray) -> QueryRanking:
    """Return what `_ranked` returns, but compute the rank correlation from sampled candidates, without sorting."""
    n_versions, n_candidates = scores.shape
    unknown = np.full(math.comb(n_versions, 2), math.nan)
    pairs = {"global": unknown, "global_idlist": unknown}
    for k in ranking.OVERLAPS:
        is_known = k < n_candidates
        pairs[f"local_{k}"] = ranking.counted_overlaps(scores, k) if is_known else unknown
    estimate = ranking.rank_correlation(ranking.ranked(scores[:, sample]))
    measures = ranking.means(pairs) | {ranking.SAMPLED: estimate}
    return QueryRanking(measures, pairs, best_columns(scores, TOP_PICTURES).tolist())
