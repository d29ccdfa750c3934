"""Galleries of more than one product, whose rows and answers processes leave for each other in an entry
of the store.

    GALLERY-rows-START                        embeddings of some candidates
    GALLERY-digests-START                     16 bytes of each, which tell equal ones
    CASES-GALLERY-best-SHARE-OF               the first pass of a part's queries over a share of the products
    CASES-GALLERY-counts-SHARE-OF             the second one

Each worker embeds and writes rows of its own candidates, reads the digests of all and the rows of its
share alone, and ranks that share for every query.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa

from vlprobe.scoring import gallery as scoring_gallery
from vlprobe.scoring.gallery import Gallery, product_rows, row_digests
from vlprobe.scoring.passes import BestOwn, Counts, Search, merged_best, merged_counts
from vlprobe.scoring.retrieval import both_passes
from vlprobe.scoring.short_list import Match
from vlprobe.storage.entry import Entry
from vlprobe.types import Encoder

Pass = TypeVar("Pass", BestOwn, Counts)


class Candidates(NamedTuple):
    """What a gallery is made of."""

    encode: Callable[[slice], np.ndarray]  # by their numbers: float32 of shape (n, width)
    n: int
    width: int

    @property
    def is_large(self) -> bool:
        """Whether they are more than one product holds."""
        return self.n > product_rows(self.width)


class LocalPasses:
    """One process ranks all, and embeds what it ranks."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def gallery(self, name: str, candidates: Candidates) -> Gallery:
        """The gallery of this name."""
        return Gallery.encode(*candidates, self.encoder.memory, self.encoder.similarity)

    def both(self, name: str, search: Search, match: Match | None) -> tuple[BestOwn, Counts]:
        """Both passes over a gallery."""
        return both_passes(search, match)


class SharedPasses(LocalPasses):
    """Several processes rank the shares of each large gallery.

    Args:
        encoder: Embeds candidates.
        entry: What is exchanged stands beside the parts of this run, and goes with them.
    """

    def __init__(self, encoder: Encoder, entry: Entry) -> None:
        super().__init__(encoder)
        self.entry = entry
        self.cases, self.n_shares = "", 0  # the part that is asked; 0: nobody has ranked a share

    def gather(self, name: str, candidates: Candidates, start: int) -> None:
        """Embeds a chunk of a large gallery's candidates, from this one on, for all to read."""
        part_names = {kind: _rows_name(name, kind, start) for kind in ("rows", "digests")}
        if all(map(self.entry.has_part, part_names.values())):
            return
        vectors = candidates.encode(
            slice(start, min(start + scoring_gallery.ENCODE_CHUNK, candidates.n))
        )
        for kind, rows in (("rows", vectors), ("digests", row_digests(vectors))):
            self.entry.write_part(part_names[kind], pa.table({kind: _rows_of_bytes(rows)}))

    def gallery(self, name: str, candidates: Candidates) -> Gallery:
        """The gallery of this name; a large one is read as far as it is ranked here."""
        if not candidates.is_large:
            return super().gallery(name, candidates)
        rows = _SharedRows(self, name, candidates)
        starts = chunk_starts(candidates.n)
        digests = np.concatenate([rows.chunk("digests", np.uint64, start) for start in starts])
        return Gallery.of_rows(rows, digests, candidates.width, self.encoder.similarity)

    def both(self, name: str, search: Search, match: Match | None) -> tuple[BestOwn, Counts]:
        """Both passes over a gallery: what the shares gave, merged, where they were ranked."""
        if match or search.gallery.n_products == 1 or not self.n_shares:
            return both_passes(search, match)
        counts = [
            self._read(Counts, name, share) or search.counts(self._best(name, search), products)
            for share, products in enumerate(search.gallery.shares(self.n_shares))
        ]
        return self._best(name, search), merged_counts(counts)

    def rank_share(self, name: str, search: Search, share: int, stage: str) -> None:
        """One pass over a share of a large gallery, `stage` "best" or "counts", for all to read."""
        products = search.gallery.shares(self.n_shares)[share]
        part_name = self._name(name, stage, share)
        if self.entry.has_part(part_name):
            return
        if stage == "best":
            self.entry.write_part(part_name, _table(search.best_own(products)))
        else:
            self.entry.write_part(
                part_name, _table(search.counts(self._best(name, search), products))
            )

    def _best(self, name: str, search: Search) -> BestOwn:
        return merged_best(
            [
                self._read(BestOwn, name, share) or search.best_own(products)
                for share, products in enumerate(search.gallery.shares(self.n_shares))
            ]
        )

    def _read(self, kind: type[Pass], name: str, share: int) -> Pass | None:
        """What a share gave; None where it is damaged or gone."""
        table = self.entry.part(self._name(name, _STAGES[kind], share))
        if table is None:
            return None
        columns = {}
        for column in table.column_names:
            values = table[column].combine_chunks()
            if pa.types.is_fixed_size_list(values.type):
                columns[column] = values.flatten().to_numpy().reshape(len(table), -1).copy()
            else:
                columns[column] = values.to_numpy().copy()
        return kind(**columns)

    def _name(self, name: str, stage: str, share: int) -> str:
        return f"{self.cases}-{gallery_id(name)}-{stage}-{share:04d}-{self.n_shares:04d}"


_STAGES = {BestOwn: "best", Counts: "counts"}


class _SharedRows:
    """The rows of a large gallery in the entry; those that are damaged or gone are embedded again."""

    def __init__(self, passes: SharedPasses, name: str, candidates: Candidates) -> None:
        self._passes, self._name, self._candidates = passes, name, candidates

    def __getitem__(self, rows: slice, /) -> np.ndarray:
        start, stop, _ = rows.indices(self._candidates.n)
        pieces = []
        size = scoring_gallery.ENCODE_CHUNK
        for chunk in range(start // size * size, stop, size):
            vectors = self.chunk("rows", np.float32, chunk)
            pieces.append(vectors[max(start - chunk, 0) : stop - chunk])
        return np.concatenate(pieces)

    def chunk(self, kind: str, dtype: type[np.number], start: int) -> np.ndarray:
        """ "rows" or "digests" of the candidates from this one on, as `gather` wrote them."""
        entry, part_name = self._passes.entry, _rows_name(self._name, kind, start)
        table = entry.part(part_name)
        if table is not None:
            return _from_bytes(table[kind], np.dtype(dtype))
        n = self._candidates.n
        vectors = self._candidates.encode(
            slice(start, min(start + scoring_gallery.ENCODE_CHUNK, n))
        )
        rows = vectors if kind == "rows" else row_digests(vectors)
        entry.write_part(part_name, pa.table({kind: _rows_of_bytes(rows)}))
        return rows


@runtime_checkable
class SharingScorer(Protocol):
    """A scorer whose large galleries can be ranked in shares."""

    passes: LocalPasses

    def large_galleries(self) -> dict[str, Candidates]:
        """Those of more than one product, by name; none where a model looks at pairs, or a search
        is approximate.
        """
        ...

    def searches(self, cases: pa.Table) -> Iterator[tuple[str, Search]]:
        """The searches of these cases in large galleries."""
        ...


def chunk_starts(n: int) -> range:
    """Where the chunks of so many candidates begin that `gather` takes."""
    return range(0, n, scoring_gallery.ENCODE_CHUNK)


def gallery_id(name: str) -> str:
    """A gallery's name as names of files have it."""
    return blake2b(name.encode(), digest_size=6).hexdigest()


def _rows_name(name: str, kind: str, start: int) -> str:
    return f"{gallery_id(name)}-{kind}-{start:012d}"


def _table(values: BestOwn | Counts) -> pa.Table:
    """A row a query."""
    columns = {}
    for name, column in zip(values._fields, values, strict=True):
        if column.ndim == 1:
            columns[name] = pa.array(column)
        else:
            flat = pa.array(np.ascontiguousarray(column).ravel())
            columns[name] = pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
    return pa.table(columns)


def _rows_of_bytes(rows: np.ndarray) -> pa.FixedSizeBinaryArray:
    width = rows.shape[1] * rows.itemsize
    content = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(rows), [None, content])


def _from_bytes(column: pa.ChunkedArray, dtype: np.dtype) -> np.ndarray:
    chunks = []
    for chunk in column.chunks:
        width = chunk.type.byte_width
        content = chunk.buffers()[1]
        values = np.frombuffer(
            content, dtype, len(chunk) * width // dtype.itemsize, chunk.offset * width
        )
        chunks.append(values.reshape(len(chunk), -1))
    return np.concatenate(chunks)
