"""Each distinct picture and text through the model once, in batches that suit it.

A text is known by its tokens, a picture by its bytes and its edit: what the model cannot tell apart is one thing, so
that an edit which a tokenizer undoes is an exact tie. What else is in a batch changes no bit of an embedding on a CPU:
texts go in batches of one length, and a batch is filled up to a multiple of EVEN, since a processor adds up a few rows
in another order than many. Embeddings that will be asked for again (`keep`) go to
`cache/embeddings/<model digest>/`.
"""

import contextlib
import functools
import hashlib
import itertools
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.scoring.prefetch import Prefetcher, pipelined
from vlprobe.scoring.vectors import VectorStore
from vlprobe.types import Model, Picture

Progress = Callable[[str, int, int], None]  # stage, done, total
TOKENIZE_CHUNK = 65_536  # texts whose tokens are in memory at once
EVEN = {"texts": 8, "images": 16}  # a batch has a multiple of so many; found by trial, held by a test
SPREAD_PAIRS = 1000  # mismatched pairs that give the spread of a model that scores pairs
PAD = -1  # in a row of tokens: no text there
NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "ALLOC_FAILED")  # CUDA, MPS, CPU, cuBLAS
_log = logging.getLogger(__name__)


class Encoder:
    """A model with its batches, its worker threads and its memory.

    Args:
        model: What encodes.
        folder: Where kept embeddings live; None: in a temporary file, as long as this encoder does.
        batch_size: Images at once; texts go four times as many at once. Changes speed, and scores by less than 1e-6.
            Fewer images, though EVEN of them, where `memory` does not hold four batches. Where the memory of the device
            is too small for it, half as many are tried, and so on.
        workers: Threads that read and preprocess pictures.
        progress: Called with (stage, done, total) after each batch; may raise to stop.
        memory: Bytes that pictures and tokens may take while they wait for the model, beside what is returned.
    """

    def __init__(
        self,
        model: Model,
        folder: Path | None = None,
        batch_size: int = 64,
        workers: int = 2,
        progress: Progress = lambda stage, done, total: None,
        memory: int = 2 << 30,
    ) -> None:
        self.model, self.batch_size, self.workers, self.progress = model, batch_size, workers, progress
        self.memory = memory
        capabilities = model.capabilities
        self.scores_pairs = capabilities.scores_pairs
        self.embeds_texts = capabilities.embeds_texts
        self.embeds_images = capabilities.embeds_images
        self.takes_pictures = capabilities.takes_pictures
        place = folder / model.digest if folder else None
        self.dim, self.image_dim = capabilities.dim, capabilities.image_dim
        self._images = VectorStore(self.image_dim, place / "images" if place else None)
        self._texts = VectorStore(self.dim, place / "texts" if place else None)
        self._seen: OrderedDict[bytes, object] = OrderedDict()
        self._content: dict[Picture, bytes] = {}
        self._expected: Prefetcher | None = None
        self._pixel_bytes = 0  # of one picture as the model sees it, once one was seen
        self._overlap = capabilities.device != "cpu"  # a processor has nobody to wait for but itself
        self._oom_batch_caps: dict[str, int] = {}  # at once, as far as the memory was found to reach

    def texts(self, texts: Sequence[str], keep: bool = False) -> np.ndarray:
        """Embeddings of the texts, float32 of shape (len(texts), dim), rows l2-normalised."""
        distinct = dict(zip(dict.fromkeys(texts), itertools.count()))
        strings = list(distinct)
        if not strings:
            return np.empty((0, self.dim), dtype=np.float32)
        blocks = [strings[start : start + TOKENIZE_CHUNK] for start in range(0, len(strings), TOKENIZE_CHUNK)]
        keys: list[bytes] = []
        measured = []
        for block in blocks:
            tokens = self.model.tokenize(block)
            whole = _ends(tokens, PAD)
            keys += _text_keys(tokens, whole)
            measured.append(_lengths(tokens, whole))
        known = np.fromiter(map(self._texts.__contains__, keys), bool, len(keys))
        first_row = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))  # of texts with one key
        first = np.fromiter(map(first_row.__getitem__, keys), np.int64, len(keys))
        is_first = first == np.arange(len(keys))
        found = np.empty((len(keys), self.dim), dtype=np.float32)
        found[known] = self._texts.get([keys[row] for row in np.flatnonzero(known).tolist()])
        missing = np.flatnonzero(~known & is_first)
        lengths = np.concatenate(measured)
        if not self.model.capabilities.cuts_columns:
            lengths[:] = 0  # all texts are equally long to it
        missing = missing[np.lexsort(lengths[missing].T)]
        done = 0
        batches = (
            (rows, tokens[own] if len(blocks) == 1 else self.model.tokenize([strings[row] for row in own]))
            for rows in _alike(missing, lengths, 4 * self.batch_size)
            for own in [self._filled("texts", rows.tolist())]
        )
        encode = functools.partial(self._encoded, "texts", self.model.encode_texts, self.dim)
        with contextlib.closing(pipelined(encode, batches, self._overlap)) as encoded:
            for rows, vectors in encoded:
                found[rows] = vectors[: len(rows)]
                done += len(rows)
                self.progress("texts", done, len(missing))
        again = np.flatnonzero(~known & ~is_first)
        found[again] = found[first[again]]
        if keep:
            self._texts.put([keys[row] for row in missing.tolist()], found[missing])
        return found if len(strings) == len(texts) else found[[distinct[text] for text in texts]]

    def images(self, images: Sequence[Picture]) -> np.ndarray:
        """Embeddings of the pictures, always kept; float32 of shape (len(images), dim), rows l2-normalised."""
        asked = list(dict.fromkeys(images))
        keys: dict[Picture, bytes] = {}
        begun: set[bytes] = set()

        def batch(opened: Iterator[tuple[Picture, tuple]]) -> tuple[list[bytes], np.ndarray | None]:
            fresh: dict[bytes, np.ndarray] = {}
            for count, (picture, (key, seen)) in enumerate(opened, start=1):
                keys[picture] = key
                if key not in self._images and key not in begun:
                    begun.add(key)
                    fresh[key] = seen
                if count >= self._at_once:
                    break
            return list(fresh), np.stack(self._filled("images", list(fresh.values()))) if fresh else None

        def batches(opened: Prefetcher) -> Iterator[tuple[tuple[list[bytes], int], np.ndarray]]:
            left = zip(asked, opened, strict=True)
            while len(keys) < len(asked):
                fresh, pixels = batch(left)
                if fresh:
                    yield (fresh, len(keys)), pixels
                else:
                    self.progress("images", len(keys), len(asked))

        encode = functools.partial(self._encoded, "images", self.model.encode_images, self.image_dim)
        with (
            contextlib.closing(self._opened(asked)) as opened,
            contextlib.closing(pipelined(encode, batches(opened), self._overlap)) as encoded,
        ):
            for (fresh, done), vectors in encoded:
                self._images.put(fresh, vectors[: len(fresh)])
                self.progress("images", done, len(asked))
        return self._images.get([keys[picture] for picture in images])

    def prefetch(self, images: Sequence[Picture]) -> None:
        """Begins to open pictures that `images` will be asked for next, while the model is at something else."""
        if self.embeds_images and not self.scores_pairs:
            self._forget()
            self._expected = self._opened(list(dict.fromkeys(images)))

    def _forget(self) -> None:
        if self._expected:
            self._expected.close()
            self._expected = None

    def _opened(self, images: Sequence[Picture]) -> Prefetcher:
        """The key of each picture and, if it has no embedding yet, what the model sees; read ahead of who asks.

        Two batches are ahead, or as many pictures as the memory still holds; before the size of one is known, as many
        as there are workers.
        """
        if self._expected and self._expected.given == images:
            found, self._expected = self._expected, None
            return found
        self._forget()
        return Prefetcher(self._open, images, self.workers, self._ahead)

    def _ahead(self, opened: tuple[bytes, np.ndarray | None] | None) -> int:
        if opened is not None and opened[1] is not None:
            self._pixel_bytes = opened[1].nbytes
        if not self._pixel_bytes:
            return self.workers
        return max(self.workers, min(2 * self.batch_size, self.memory // self._pixel_bytes - 3 * self._at_once))

    @property
    def _at_once(self) -> int:
        """Pictures of a batch: in memory are one that is gathered, its stacked copy and the one before."""
        fit = self.memory // 4 // max(self._pixel_bytes, 1)
        return min(self.batch_size, max(EVEN["images"], fit - fit % EVEN["images"]))

    def _open(self, picture: Picture) -> tuple[bytes, np.ndarray | None]:
        data = pictures.read(picture)
        key = pictures.content_key(picture, data)
        return key, None if key in self._images else self._pixels(picture, data)

    def _pixels(self, picture: Picture, parts: tuple[bytes, ...]) -> np.ndarray:
        return self.model.preprocess(pictures.compose(picture, parts))

    def pairs(
        self,
        images: Sequence[Picture],
        texts: Sequence[str],
        left: np.ndarray,
        right: np.ndarray,
        logits: bool = False,
    ) -> np.ndarray:
        """What a model that scores pairs says of images[left] beside texts[right], each distinct pair asked once.

        Args:
            images: Pictures.
            texts: Texts.
            left: Which picture, shape (n,).
            right: Which text, shape (n,).
            logits: Give the head's own logit in place of the model's score.

        Returns:
            float32 of shape (n,).
        """
        if not len(left):
            return np.empty(0, dtype=np.float32)
        used_images, left = np.unique(left, return_inverse=True)
        used_texts, right = np.unique(right, return_inverse=True)
        shown = [images[row] for row in used_images.tolist()]
        tokens = self.model.tokenize([texts[row] for row in used_texts.tolist()])
        image_keys, text_keys = self._named(shown), _text_keys(tokens, _ends(tokens, PAD))
        both = list(zip(left.tolist(), right.tolist(), strict=True))
        keys = [(image_keys[one], text_keys[two]) for one, two in both]
        asked = dict(zip(keys, both, strict=True))
        order = sorted(asked)  # by picture: each is looked at once
        found: dict[tuple[bytes, bytes], float] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            seen = self._look({key[0]: shown[asked[key][0]] for key in batch})
            rows = [asked[key][1] for key in batch]
            match = functools.partial(self.model.match, logits=logits)
            scores = np.concatenate(self._fitting("pairs", match, [seen[key[0]] for key in batch], tokens[rows]))
            found |= zip(batch, self._checked(scores, (len(batch),), "scores").tolist(), strict=True)
            self.progress("pairs", start + len(batch), len(order))
        return np.array([found[key] for key in keys], dtype=np.float32)

    def _named(self, images: Sequence[Picture]) -> list[bytes]:
        fresh = [image for image in dict.fromkeys(images) if image not in self._content]
        with ThreadPoolExecutor(self.workers) as pool:
            for image, data in zip(fresh, pool.map(pictures.read, fresh), strict=True):
                self._content[image] = pictures.content_key(image, data)
        return [self._content[image] for image in images]

    def _look(self, wanted: dict[bytes, Picture]) -> dict[bytes, object]:
        fresh = [key for key in wanted if key not in self._seen]
        if fresh:
            with ThreadPoolExecutor(self.workers) as pool:
                asked = [wanted[key] for key in fresh]
                pixels = list(pool.map(self._pixels, asked, pool.map(pictures.read, asked)))
            looked = [one for part in self._fitting("pictures", self.model.encode_pictures, pixels) for one in part]
            self._seen |= zip(fresh, looked, strict=True)
        found = {key: self._seen[key] for key in wanted}
        for key in wanted:
            self._seen.move_to_end(key)
        size = sum(one.nbytes for one in self._seen.values())
        while size > self.memory // 2:
            size -= self._seen.popitem(last=False)[1].nbytes
        return found

    def _filled(self, what: str, rows: list) -> list:
        """The rows of a batch, the last one again until they are even."""
        return rows + rows[-1:] * (-len(rows) % min(EVEN[what], self.batch_size))

    def _encoded(self, what: str, encode: Callable, dim: int, batch: np.ndarray) -> np.ndarray:
        return self._checked(np.concatenate(self._fitting(what, encode, batch)), (len(batch), dim), what)

    def _fitting(self, what: str, ask: Callable, *batch: Sequence) -> list:
        """The model's answers to a batch, in as many pieces as the memory of the device asks for."""
        found, start = [], 0
        while start < len(batch[0]):
            most = self._oom_batch_caps.get(what, len(batch[0]))
            answered = self._tried(ask, *(part[start : start + most] for part in batch))
            if answered is not None:
                found.append(answered)
                start += most
                continue
            size = min(most, len(batch[0]) - start)
            if size == 1:
                raise InvalidInput(
                    f"Model '{self.model.name}' finds no memory on its device for {what}, not even one at a time. "
                    "Close what else uses it, or choose --device cpu or --precision fp16."
                )
            self._oom_batch_caps[what] = size // 2
            _log.warning("Out of memory with %d %s at once: %d at once from here on.", size, what, size // 2)
        return found

    def _tried(self, ask: Callable, *batch: Sequence) -> Any | None:
        """What the model answers, or None where its device has not the memory for it."""
        try:
            return ask(*batch)
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and not any(words in str(error) for words in NO_MEMORY):
                raise
        if "torch" in sys.modules:  # what the failed try held goes back before the next
            sys.modules["torch"].cuda.empty_cache()
        return None

    def flush(self) -> None:
        """Writes what waits to be kept."""
        self._images.flush()
        self._texts.flush()

    def close(self) -> None:
        """Writes what waits to be kept; the encoder is of no use afterwards."""
        self._forget()
        self._images.close()
        self._texts.close()

    def _checked(self, vectors: np.ndarray, expected: tuple[int, ...], what: str) -> np.ndarray:
        if vectors.shape != expected or vectors.dtype != np.float32:
            raise InvalidInput(
                f"Model '{self.model.name}' returned {vectors.dtype} {what} of shape {vectors.shape}; "
                f"expected float32 of shape {expected}. Its adapter is at fault."
            )
        if not np.isfinite(vectors).all():
            bad = int((~np.isfinite(vectors.reshape(len(vectors), -1)).all(axis=1)).sum())
            raise InvalidInput(
                f"Model '{self.model.name}' returned {bad} of {len(vectors)} {what} that are not finite numbers. "
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
        The standard deviation (population) over every pair of a picture and another picture's caption, in the units of
        the model's scores; over SPREAD_PAIRS of these where the model must look at each pair; NaN with fewer than two
        items, and of a model that sees no pictures.
    """
    if len(images) < 2 or not encoder.takes_pictures:
        return float("nan")
    if encoder.scores_pairs:
        return _spread_of_pairs(encoder, images, captions)
    owner = np.repeat(np.arange(len(images)), [len(own) for own in captions])
    pictures_in = encoder.images(images)
    texts_in = encoder.texts([text for own in captions for text in own], keep=True)
    total = squared = 0.0
    count = 0
    for start in range(0, len(images), 256):
        chunk = slice(start, min(start + 256, len(images)))
        block = (pictures_in[chunk] @ texts_in.T).astype(np.float64)
        apart = block[np.arange(chunk.start, chunk.stop)[:, None] != owner[None, :]]
        count += len(apart)
        total += apart.sum()
        squared += (apart**2).sum()
    return float(np.sqrt(max(squared / count - (total / count) ** 2, 0.0)))


def _spread_of_pairs(encoder: Encoder, images: Sequence[Picture], captions: Sequence[Sequence[str]]) -> float:
    owner = np.repeat(np.arange(len(images)), [len(own) for own in captions])
    left, right = np.nonzero(np.arange(len(images))[:, None] != owner[None, :])
    if len(left) > SPREAD_PAIRS:
        chosen = np.sort(np.random.default_rng(len(left)).choice(len(left), SPREAD_PAIRS, replace=False))
        left, right = left[chosen], right[chosen]
    scores = encoder.pairs(images, [text for own in captions for text in own], left, right)
    return float(scores.astype(np.float64).std()) if len(scores) else float("nan")


def _text_keys(tokens: np.ndarray, ends: np.ndarray) -> list[bytes]:
    """16 bytes a row, the same however many columns of -1 follow a text; `ends` are those of the texts."""
    width = tokens.shape[1] * tokens.itemsize
    content = memoryview(np.ascontiguousarray(tokens)).cast("B")
    starts = range(0, len(content), width)
    stops = (np.array(starts) + ends * tokens.itemsize).tolist()
    return [
        hashlib.blake2b(content[start:stop], digest_size=16).digest() for start, stop in zip(starts, stops, strict=True)
    ]


def _lengths(tokens: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Of each row the columns before those of -1, `whole`, and before all that only pads it; shape (n, 2)."""
    last = tokens[np.arange(len(tokens)), np.maximum(whole - 1, 0), None]
    padded = whole.min(initial=tokens.shape[1]) < tokens.shape[1]
    return np.stack([whole, _ends(np.where(tokens == PAD, last, tokens) if padded else tokens, last)], axis=1)


def _ends(tokens: np.ndarray, pad: np.ndarray | int) -> np.ndarray:
    """How many columns of each row come before those of `pad` at its end; all of a row that is nothing else."""
    return tokens.shape[1] - np.argmax(tokens[:, ::-1] != pad, axis=1)


def _alike(rows: np.ndarray, lengths: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """The rows, in their order, in batches of one length and of at most so many."""
    for own in np.split(rows, 1 + np.flatnonzero(np.diff(lengths[rows], axis=0).any(axis=1))):
        yield from (own[start : start + most] for start in range(0, len(own), most))
