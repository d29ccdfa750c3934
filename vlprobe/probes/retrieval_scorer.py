"""Scores RoCOCO's cases: what a query finds in its altered gallery, and in the clean one."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from vlprobe.probes import rococo_fronts
from vlprobe.probes.rococo_galleries import (
    TEXT_KINDS,
    PictureGalleries,
    PreparedSearch,
    TextGalleries,
    item_numbers,
)
from vlprobe.scoring.retrieval import RetrievalRanks, retrieve, retrieve_clean
from vlprobe.types import Picture

# Columns of the table of scores that are whole numbers
RANK_COLUMNS = ("rank_clean", "rank", "top_altered", "least_rank_clean", "least_rank", "top_tied")


class GallerySearch(NamedTuple):
    """What a gallery gave for some queries."""

    ranks: RetrievalRanks
    fronts: pa.Table  # of `rococo_fronts.SCHEMA`, a row a query
    prepared: PreparedSearch


class RetrievalScorer:
    """Scores slices of the run's cases: one case is a query in one altered gallery.

    Args:
        pictures: By item id, in the order of the items.
        texts: The galleries of captions, searched by the cases of kind `i2t`.
        images: The galleries of pictures, searched by those of kind `t2i`.
    """

    def __init__(
        self,
        pictures: Mapping[str, Picture],
        texts: TextGalleries,
        images: PictureGalleries,
    ) -> None:
        self.pictures, self.item_number = list(pictures.values()), item_numbers(pictures)
        self.texts, self.images = texts, images

    def __call__(self, cases: pa.Table) -> pa.Table:
        """The table of scores: similarity of the best candidate that is right and of the best
        altered one; and the columns of `rococo_fronts.SCHEMA`.
        """
        n_cases = len(cases)
        similarities = np.full((n_cases, 2), np.nan, dtype=np.float32)
        ranks = {name: np.full(n_cases, np.nan) for name in RANK_COLUMNS}
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
            tops[rows] = [
                search.prepared.candidate_name(number) for number in search.ranks.which_altered
            ]
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

    def _rows_by_gallery(self, cases: pa.Table) -> dict[tuple[str, str], list[int]]:
        """The rows of the cases by kind and gallery, which a rule names."""
        rows: dict[tuple[str, str], list[int]] = {}
        names = (cases[name].to_pylist() for name in ("kind", "rule"))
        for row, (kind, rule) in enumerate(zip(*names, strict=True)):
            rows.setdefault((kind, rule), []).append(row)
        return rows

    def _search(self, gallery: tuple[str, str], cases: pa.Table) -> GallerySearch:
        kind, rule = gallery
        query_items = np.array([self.item_number[item_id] for item_id in cases["item"].to_pylist()])
        if kind in TEXT_KINDS:
            images = [self.pictures[number] for number in query_items]
            return searched(self.texts.prepare(images, query_items, rule))
        texts = [texts[0] for texts in cases["texts"].to_pylist()]
        return searched(self.images.prepare(texts, query_items, rule))


def searched(prepared: PreparedSearch) -> GallerySearch:
    """The gallery's answers to some queries."""
    ranks = _ranked(prepared)
    fronts = rococo_fronts.table(ranks, prepared.names, prepared.partners)
    return GallerySearch(ranks, fronts, prepared)


def _ranked(prepared: PreparedSearch) -> RetrievalRanks:
    queries, items, gallery, owners, is_altered, match, is_clean, *_ = prepared
    if is_clean:
        return retrieve_clean(queries, items, gallery, owners, match)
    return retrieve(queries, items, gallery, owners, is_altered, match)
