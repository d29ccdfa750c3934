"""Galleries of more than one product, whose rows and answers processes leave for each other in an entry
of the store.

    GALLERY-rows-START                        embeddings of some candidates
    GALLERY-digests-START                     16 bytes of each, which tell equal ones
    CASES-SEARCH-STAGE-SHARE-OF               what a stage gave of a part's queries over a share of the products

Stages are `best` and `counts` for ranks, with `lists` and `matches` before where a model looks at pairs, and
`fronts` and `common` for the first candidates of versions.

Each worker embeds and writes rows of its own candidates, reads the digests of all and the rows of its
share alone, and ranks that share for every query.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from vlprobe.scoring import gallery as scoring_gallery
from vlprobe.scoring.distinct import row_digests
from vlprobe.scoring.gallery import Gallery, product_rows
from vlprobe.scoring.matched_passes import MatchedSearch
from vlprobe.scoring.passes import BestOwn, Counts, Search, Share, SharedSearch, Stage
from vlprobe.scoring.retrieval import both_passes
from vlprobe.scoring.short_list import Match
from vlprobe.storage.entry import Entry
from vlprobe.types import Encoder


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

    def answers(self, name: str, search: SharedSearch) -> list[Any]:
        """What all stages of a search give."""
        share, before = Share(0, 1, range(search.gallery.n_products)), []
        for stage in search.stages:
            before.append(stage.answer(before, share))
        return before


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
        if not candidates.is_large or not self.n_shares:
            return super().gallery(name, candidates)
        rows = _SharedRows(self, name, candidates)
        starts = chunk_starts(candidates.n)
        digests = np.concatenate([rows.chunk("digests", np.uint64, start) for start in starts])
        return Gallery.of_rows(rows, digests, candidates.width, self.encoder.similarity)

    def both(self, name: str, search: Search, match: Match | None) -> tuple[BestOwn, Counts]:
        """Both passes over a gallery: what the shares gave, merged, where they were ranked."""
        if search.gallery.n_products == 1 or not self.n_shares:
            return both_passes(search, match)
        *_, best, counts = self.answers(name, MatchedSearch(search, match) if match else search)
        return best, counts

    def answers(self, name: str, search: SharedSearch) -> list[Any]:
        """What all stages of a search give: merged, where shares were ranked."""
        if search.gallery.n_products == 1 or not self.n_shares:
            return super().answers(name, search)
        return self._merged(name, search, len(search.stages))

    def rank_share(self, name: str, search: SharedSearch, share: int, stage: str) -> None:
        """A stage of a search over a share of a large gallery, for all to read."""
        numbers = [
            number
            for number, search_stage in enumerate(search.stages)
            if search_stage.name == stage
        ]
        part_name = self._name(name, stage, share)
        if numbers and not self.entry.has_part(part_name):
            answer = self._answer(name, search, numbers[0], share)
            self.entry.write_part(part_name, _table(search.stages[numbers[0]].kind, answer))

    def _merged(self, name: str, search: SharedSearch, n_stages: int) -> list[Any]:
        """What the first stages gave; what is damaged or gone is made again."""
        before: list[Any] = []
        for number, stage in enumerate(search.stages[:n_stages]):
            shares = (
                self._read(stage, name, share) or self._answer(name, search, number, share)
                for share in range(self.n_shares)
            )
            before.append(functools.reduce(_merging(stage), shares))
        return before

    def _answer(self, name: str, search: SharedSearch, number: int, share: int) -> Any:
        products = search.gallery.shares(self.n_shares)[share]
        before = self._merged(name, search, number)
        return search.stages[number].answer(before, Share(share, self.n_shares, products))

    def _read(self, stage: Stage, name: str, share: int) -> Any | None:
        """What a share gave; None where it is damaged or gone."""
        table = self.entry.part(self._name(name, stage.name, share))
        return None if table is None else _from_table(stage.kind, table)

    def _name(self, name: str, stage: str, share: int) -> str:
        return f"{self.cases}-{gallery_id(name)}-{stage}-{share:04d}-{self.n_shares:04d}"


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

    @property
    def stages(self) -> Sequence[str]:
        """The names of the stages that its searches have, in their order."""
        ...

    def large_galleries(self) -> dict[str, Candidates]:
        """Those of more than one product, by name; none where a search is approximate, or ranks the
        whole gallery.
        """
        ...

    def searches(self, cases: pa.Table) -> Iterator[tuple[str, SharedSearch]]:
        """The searches of these cases in large galleries, each with a name of its own."""
        ...


def chunk_starts(n: int) -> range:
    """Where the chunks of so many candidates begin that `gather` takes."""
    return range(0, n, scoring_gallery.ENCODE_CHUNK)


def gallery_id(name: str) -> str:
    """A gallery's name as names of files have it."""
    return blake2b(name.encode(), digest_size=6).hexdigest()


def _rows_name(name: str, kind: str, start: int) -> str:
    return f"{gallery_id(name)}-{kind}-{start:012d}"


def _merging(stage: Stage) -> Callable[[Any, Any], Any]:
    return lambda left, right: stage.merged([left, right])


def _table(kind: Any, values: tuple[np.ndarray, ...]) -> pa.Table:
    """A row an array of a named tuple."""
    return pa.table(
        {
            "array": pa.array(kind._fields, pa.string()),
            "dtype": pa.array([array.dtype.str for array in values], pa.string()),
            "shape": pa.array([array.shape for array in values], pa.list_(pa.int64())),
            "bytes": pa.array([array.tobytes() for array in values], pa.large_binary()),
        }
    )


def _from_table(kind: Any, table: pa.Table) -> Any | None:
    """The named tuple; None where an earlier version wrote another form."""
    if table.column_names != ["array", "dtype", "shape", "bytes"]:
        return None
    arrays = {
        row["array"]: np.frombuffer(row["bytes"], row["dtype"]).reshape(row["shape"]).copy()
        for row in table.to_pylist()
    }
    return kind(**arrays)


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
