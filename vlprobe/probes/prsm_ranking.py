"""Ranks the pictures of a gallery for every version of a query, and measures how much the
rankings agree.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe.errors import InvalidInput
from vlprobe.metrics import ranking, sampled_ranking
from vlprobe.probes import prsm_comparisons
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.versions import VersionSearch, query_blocks
from vlprobe.types import Encoder, Item, Picture

TOP_PICTURES = 5  # of each version's ranking that are stored


class QueryRanking(NamedTuple):
    """How one query is ranked: the measures over its versions, and what each version ranks first."""

    measures: dict[str, float]
    pairs: dict[str, np.ndarray]  # the measures of each two versions, (n_pairs,)
    top: list[list[int]]  # for each version, the numbers of its TOP_PICTURES best candidates


class SampledCandidates(NamedTuple):
    """How candidates are drawn whose ranks are correlated."""

    n: int  # for each query; 0: the ranks of all candidates are correlated
    seed: int

    def numbers(self, case_id: str, n_candidates: int) -> np.ndarray:
        """The candidates that a query samples."""
        return sampled_ranking.sampled_numbers(self.seed, case_id, n_candidates, self.n)


class GroupGallery:
    """The pictures that the queries of one group rank.

    Args:
        encoder: Embeds pictures and texts.
        pictures: The candidates.
    """

    def __init__(self, encoder: Encoder, pictures: Sequence[Picture]) -> None:
        self.encoder, self.pictures = encoder, pictures

    @functools.cached_property
    def index(self) -> Gallery:
        """What is searched, made for the first query."""
        encoder, pictures = self.encoder, self.pictures
        return Gallery.encode(
            lambda block: encoder.images(pictures[block]),
            len(pictures),
            encoder.image_dim,
            encoder.memory,
            encoder.similarity,
        )

    def rank(self, queries: Sequence[Sequence[str]]) -> Iterator[QueryRanking]:
        """The ranking of each query, in order; a query is the sequence of its versions."""
        gallery = self.index
        with ThreadPoolExecutor(self.encoder.workers) as threads:
            for block in query_blocks(queries, gallery.product_queries):
                texts = [text for versions in block for text in versions]
                match = scoring_cases.pair_matcher(
                    self.encoder, self.pictures, texts, query_side="texts"
                )
                rows = gallery.similarities(self.encoder.texts(texts), match)
                for scores_of_query in _by_query(rows, [len(versions) for versions in block]):
                    n_share = -(-len(scores_of_query) // self.encoder.workers)
                    shares = [
                        scores_of_query[start : start + n_share]
                        for start in range(0, len(scores_of_query), n_share)
                    ]
                    yield from itertools.chain.from_iterable(threads.map(_rankings, shares))

    def rank_sampled(
        self, queries: Sequence[Sequence[str]], samples: Sequence[np.ndarray]
    ) -> Iterator[QueryRanking]:
        """As `rank`, with the rank correlation over each query's sample of the candidates alone: nobody
        holds or ranks a whole row of similarities.
        """
        gallery = self.index
        for search in self._searches(gallery, queries, samples):
            fronts = search.fronts()
            overlaps = search.overlaps(search.common(fronts))
            for rows, overlap in zip(search.rows, overlaps, strict=True):
                unknown = np.full(math.comb(rows.stop - rows.start, 2), math.nan)
                pairs = {"global": unknown, "global_idlist": unknown}
                pairs |= {f"local_{k}": overlap.get(k, unknown) for k in ranking.OVERLAPS}
                estimate = sampled_ranking.sampled_correlation(fronts.sampled[rows])
                measures = ranking.means(pairs) | {sampled_ranking.COLUMN: estimate}
                yield QueryRanking(measures, pairs, fronts.numbers[rows, :TOP_PICTURES].tolist())

    def _searches(
        self, gallery: Gallery, queries: Sequence[Sequence[str]], samples: Sequence[np.ndarray]
    ) -> Iterator[VersionSearch]:
        """Blocks of queries with their samples of the candidates."""
        depths = [depth for depth in ranking.OVERLAPS if depth < gallery.n]
        start = 0
        for block in query_blocks(queries, gallery.product_queries):
            vectors = self.encoder.texts([text for versions in block for text in versions])
            n_versions, stop = [len(versions) for versions in block], start + len(block)
            yield VersionSearch(vectors, n_versions, gallery, depths, samples[start:stop])
            start = stop


class RankingScorer:
    """Scores slices of the run's cases: one case is a query in several versions.

    Args:
        encoder: Embeds pictures and texts.
        galleries: By group, the pictures that its queries rank.
        items: Those asked about, by id.
        group_tag: The tag that groups are formed by, for an error; "": one group.
        sampled: Which candidates' ranks are correlated.
    """

    def __init__(
        self,
        encoder: Encoder,
        galleries: Mapping[str, GroupGallery],
        items: Mapping[str, Item],
        *,
        group_tag: str,
        sampled: SampledCandidates,
    ) -> None:
        self.sampled = sampled
        self.encoder, self.galleries, self.items = encoder, galleries, items
        self.group_tag = group_tag

    def __call__(self, cases: pa.Table) -> pa.Table:
        """The table of scores of a slice of cases. Raises InvalidInput where a query's group has
        no picture.
        """
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
                compared[row] = prsm_comparisons.measured(
                    item, settings[row], queries[row], ranked.pairs
                )
                names = [
                    [gallery.pictures[number].name for number in version] for version in ranked.top
                ]
                tops[row] = json.dumps(names)
        table = ranking_table(measures, tops)
        for name in prsm_comparisons.SCHEMA.names:
            values = pa.array(
                [row[name] for row in compared], prsm_comparisons.SCHEMA.field(name).type
            )
            table = table.append_column(name, values)
        return table

    def _rankings(
        self, gallery: GroupGallery, queries: Sequence[Sequence[str]], case_ids: Sequence[str]
    ) -> Iterator[QueryRanking]:
        """Of queries in their gallery; one of no more candidates than are sampled is ranked whole."""
        n = len(gallery.pictures)
        if not self.sampled.n:
            yield from gallery.rank(queries)
        elif n <= self.sampled.n:
            for ranked in gallery.rank(queries):
                estimate = {sampled_ranking.COLUMN: ranked.measures["global"]}
                yield ranked._replace(measures=ranked.measures | estimate)
        else:
            yield from gallery.rank_sampled(queries, self._samples(gallery, case_ids))

    def _samples(self, gallery: GroupGallery, case_ids: Sequence[str]) -> list[np.ndarray]:
        return [self.sampled.numbers(case_id, len(gallery.pictures)) for case_id in case_ids]

    def _rows_by_group(self, item_ids: Sequence[str]) -> dict[str, list[int]]:
        rows_by_group: dict[str, list[int]] = {}
        for row, item_id in enumerate(item_ids):
            group = group_of(self.items[item_id], self.group_tag)
            if group not in self.galleries:
                raise InvalidInput(
                    f"No picture of the gallery has {self.group_tag} '{group}', which item '{item_id}' asks of."
                )
            rows_by_group.setdefault(group, []).append(row)
        return rows_by_group


def group_of(item: Item, group_tag: str) -> str:
    """The group of an item: its value of the tag, "" without one."""
    return item.tags.get(group_tag, "") if group_tag else ""


def ranking_table(measures: Sequence[Mapping[str, float]], tops: Sequence[str]) -> pa.Table:
    """The table of scores: the margin is the measure that `margin_measure` names minus 1."""
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
    """The measure that the margin is made of, the same for all cases of a run with one gallery.

    >>> margin_measure(5000), margin_measure(100), margin_measure(10)
    ('local_100', 'local_10', 'global')
    """
    depths = [depth for depth in (100, 10) if depth < gallery_size]
    return f"local_{depths[0]}" if depths else "global"


def _by_query(
    rows: Iterable[tuple[slice, np.ndarray]], n_versions: Sequence[int]
) -> Iterator[list[np.ndarray]]:
    """The similarities of each query's versions, float32 of shape (n_versions, n_candidates): as
    many queries at once as end in a block of rows.
    """
    waiting: list[np.ndarray] = []
    sizes = iter(n_versions)
    size = next(sizes)
    for _, scores in rows:
        waiting.append(scores)
        n_waiting, ends = sum(map(len, waiting)), []
        while size and (ends[-1] if ends else 0) + size <= n_waiting:
            ends.append((ends[-1] if ends else 0) + size)
            size = next(sizes, 0)
        if ends:
            together = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            waiting = [together[ends[-1] :]] if ends[-1] < n_waiting else []
            yield np.split(together[: ends[-1]], ends[:-1])


def _rankings(queries: Sequence[np.ndarray]) -> list[QueryRanking]:
    """The ranking of each query from its similarities, float32 of shape (n_versions, n_candidates)."""
    ranker, rankings = ranking.Ranker(), []
    for scores in queries:
        versions = ranker(scores)  # in memory that the next call overwrites
        top = versions.order[:, :TOP_PICTURES].tolist()
        pairs = ranking.pair_measures(versions)
        rankings.append(QueryRanking(ranking.means(pairs), pairs, top))
    return rankings
