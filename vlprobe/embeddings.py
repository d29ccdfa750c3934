"""Each distinct picture and text through the model once, in batches that suit it.

A text is known by its tokens, a picture by its bytes and its edit: what the model cannot tell apart is one thing, so
that an edit which a tokenizer undoes is an exact tie. Embeddings that will be asked for again (`keep`) go to
`cache/embeddings/<model digest>/`, in files written once and never changed.
"""

import contextlib
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from vlprobe import pictures
from vlprobe.errors import InvalidInput
from vlprobe.types import DualEncoder, Picture

Progress = Callable[[str, int, int], None]  # stage, done, total


class Vectors:
    """Embeddings under 16-byte keys: blocks in memory, and on disk where a folder is given."""

    def __init__(self, dim: int, folder: Path | None) -> None:
        self.dim, self.folder = dim, folder
        self._row = np.dtype([("key", "V16"), ("vector", "<f4", (dim,))])
        self._where: dict[bytes, tuple[np.ndarray, int]] = {}
        for file in sorted(folder.glob("*.npy")) if folder and folder.is_dir() else []:
            self._index(self._open(file))

    def _open(self, file: Path) -> np.ndarray:
        try:
            block = np.load(file, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError):
            raise InvalidInput(
                f"Embedding file '{file}' is damaged. Delete it; its embeddings are made again."
            ) from None
        if block.dtype != self._row:
            raise InvalidInput(f"Embedding file '{file}' is not of dimension {self.dim}. Delete it.")
        return block

    def _index(self, block: np.ndarray) -> None:
        for row, key in enumerate(block["key"].tolist()):
            self._where.setdefault(key, (block, row))

    def missing(self, keys: Sequence[bytes]) -> list[int]:
        """Positions of the first occurrence of every key that is not known."""
        seen, found = set(), []
        for position, key in enumerate(keys):
            if key not in self._where and key not in seen:
                seen.add(key)
                found.append(position)
        return found

    def get(self, keys: Sequence[bytes]) -> np.ndarray:
        """Float32 of shape (len(keys), dim)."""
        out = np.empty((len(keys), self.dim), dtype=np.float32)
        for position, key in enumerate(keys):
            block, row = self._where[key]
            out[position] = block["vector"][row]
        return out

    def put(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Adds a block; on disk it appears whole or not at all."""
        if not keys:
            return
        block = np.empty(len(keys), dtype=self._row)
        block["key"], block["vector"] = np.array(keys, dtype="V16"), vectors
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = hashlib.blake2b(b"".join(keys), digest_size=12).hexdigest()
            temporary = self.folder / f".{name}.{uuid.uuid4().hex}.tmp"
            try:
                with temporary.open("wb") as handle:
                    np.save(handle, block, allow_pickle=False)
                    handle.flush()
                    os.fsync(handle.fileno())
                temporary.replace(self.folder / f"{name}.npy")
            finally:
                with contextlib.suppress(FileNotFoundError):
                    temporary.unlink()
            block = self._open(self.folder / f"{name}.npy")
        self._index(block)


class Encoder:
    """A model with its batches, its worker threads and its memory.

    Args:
        model: What encodes.
        folder: Where kept embeddings live; None keeps them in memory only.
        batch_size: Images at once; texts go four times as many at once. Changes speed, and scores by less than 1e-6.
        workers: Threads that read and preprocess pictures.
        progress: Called with (stage, done, total) after each batch; may raise to stop.
    """

    def __init__(
        self,
        model: DualEncoder,
        folder: Path | None = None,
        batch_size: int = 64,
        workers: int = 2,
        progress: Progress = lambda stage, done, total: None,
    ) -> None:
        self.model, self.batch_size, self.workers, self.progress = model, batch_size, workers, progress
        place = folder / model.digest if folder else None
        self._images = Vectors(model.dim, place / "images" if place else None)
        self._texts = Vectors(model.dim, place / "texts" if place else None)

    def texts(self, texts: Sequence[str], keep: bool = False) -> np.ndarray:
        """Embeddings of the texts, float32 of shape (len(texts), dim), rows l2-normalised."""
        distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        strings = list(distinct)
        if not strings:
            return np.empty((0, self.model.dim), dtype=np.float32)
        tokens = self.model.tokenize(strings)
        keys = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in tokens]
        missing = sorted(self._texts.missing(keys), key=lambda row: len(strings[row]))
        vectors = np.empty((len(missing), self.model.dim), dtype=np.float32)
        step = 4 * self.batch_size
        for start in range(0, len(missing), step):
            rows = missing[start : start + step]
            vectors[start : start + step] = self._checked(self.model.encode_texts(tokens[rows]), len(rows), "texts")
            self.progress("texts", min(start + step, len(missing)), len(missing))
        fresh = {keys[row]: number for number, row in enumerate(missing)}
        if keep:
            self._texts.put(list(fresh), vectors)
        is_fresh = np.array([key in fresh for key in keys])
        found = np.empty((len(keys), self.model.dim), dtype=np.float32)
        found[is_fresh] = vectors[[fresh[key] for key in keys if key in fresh]]
        found[~is_fresh] = self._texts.get([key for key in keys if key not in fresh])
        return found[[distinct[text] for text in texts]]

    def images(self, images: Sequence[Picture]) -> np.ndarray:
        """Embeddings of the pictures, always kept; float32 of shape (len(images), dim), rows l2-normalised."""
        distinct = {picture: row for row, picture in enumerate(dict.fromkeys(images))}
        asked = list(distinct)
        keys: list[bytes] = []
        with ThreadPoolExecutor(self.workers) as pool:
            for start in range(0, len(asked), self.batch_size):
                batch = asked[start : start + self.batch_size]
                data = list(pool.map(pictures.read, batch))
                named = list(map(pictures.content_key, batch, data))
                missing = self._images.missing(named)
                if missing:
                    pixels = list(
                        pool.map(self._pixels, [batch[row] for row in missing], [data[row] for row in missing])
                    )
                    vectors = self._checked(self.model.encode_images(np.stack(pixels)), len(missing), "images")
                    self._images.put([named[row] for row in missing], vectors)
                keys += named
                self.progress("images", start + len(batch), len(asked))
        found = self._images.get(keys)
        return found[[distinct[picture] for picture in images]]

    def _pixels(self, picture: Picture, parts: tuple[bytes, ...]) -> np.ndarray:
        return self.model.preprocess(pictures.compose(picture, parts))

    def _checked(self, vectors: np.ndarray, n: int, what: str) -> np.ndarray:
        expected = (n, self.model.dim)
        if vectors.shape != expected or vectors.dtype != np.float32:
            raise InvalidInput(
                f"Model '{self.model.name}' returned {vectors.dtype} {what} of shape {vectors.shape}; "
                f"expected float32 of shape {expected}. Its adapter is at fault."
            )
        if not np.isfinite(vectors).all():
            bad = int((~np.isfinite(vectors).all(axis=1)).sum())
            raise InvalidInput(
                f"Model '{self.model.name}' returned {bad} of {n} {what} that are not finite numbers. "
                "Try --precision fp32, or another checkpoint."
            )
        return vectors


def similarity_spread(encoder: Encoder, images: Sequence[Picture], captions: Sequence[Sequence[str]]) -> float:
    """Standard deviation of a model's similarity over mismatched pairs: its own unit of "how much is much".

    Args:
        encoder: The model that is asked.
        images: One picture an item.
        captions: The captions of each item, in the same order.

    Returns:
        The standard deviation (population) over every pair of a picture and another picture's caption, in cosine
        units; NaN with fewer than two items.
    """
    if len(images) < 2:
        return float("nan")
    owner = np.repeat(np.arange(len(images)), [len(own) for own in captions])
    pictures_in = encoder.images(images)
    texts_in = encoder.texts([text for own in captions for text in own], keep=True)
    total = squared = 0.0
    count = 0
    for chunk in _chunks(len(images), 256):
        block = (pictures_in[chunk] @ texts_in.T).astype(np.float64)
        apart = block[np.arange(chunk.start, chunk.stop)[:, None] != owner[None, :]]
        count += len(apart)
        total += apart.sum()
        squared += (apart**2).sum()
    return float(np.sqrt(max(squared / count - (total / count) ** 2, 0.0)))


def _chunks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
