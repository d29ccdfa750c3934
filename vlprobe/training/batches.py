"""Training data: rows of a picture and its captions, and batches of rows.

A batch depends only on the seed, its number and the data, so that a resumed training sees the same batches. The
held-out items depend only on the items: all trainings on the same data hold out the same ones.
"""

import functools
import math
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.open_clip_encoder import OpenClipEncoder
from vlprobe.perturb import lgip
from vlprobe.perturb.draws import draw
from vlprobe.perturb.influence import word_spans
from vlprobe.scoring import pictures
from vlprobe.training import alter
from vlprobe.types import Item, Picture

HELD_OUT = 0.1  # share of the items that is held out
HELD_OUT_ITEMS = 256  # and at most so many
_MEMORY = 400_000_000  # bytes of preprocessed pictures that are kept


@dataclass(frozen=True, slots=True)
class Row:
    """A picture and what people wrote of it. The two pictures of a minimal pair are two rows of
    one item.
    """

    key: str
    picture: Picture
    captions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """n pictures with a caption each, and behind them, where a loss needs them, altered ones.

    An altered picture or caption says which row it was made of: int64, 0 to n - 1.
    """

    n: int
    pixels: np.ndarray  # float32 (n + mixed, channels, height, width)
    tokens: np.ndarray  # int64 (n + corrupted + reworded + flipped, context)
    mixed: np.ndarray
    corrupted: np.ndarray
    reworded: np.ndarray
    flipped: np.ndarray
    kinds: np.ndarray  # of each flip: color, number or object


def split(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Items to train on, and items held out: those whose hash is lowest, whatever the order of the
    data.

    Items that share a picture (by the tag `picture`) fall on one side.

    Raises:
        InvalidInput: an item without a picture, or fewer than four pictures.
    """
    blind = [item.id for item in items if item.image is None]
    if blind:
        raise InvalidInput(
            f"{len(blind)} items have no picture (first: '{blind[0]}'). Expected a picture for every item to train on."
        )
    units = {item.unit for item in items}
    if len(units) < 4:
        raise InvalidInput(
            f"{len(units)} pictures are too few to train on. Expected 4 or more, two are held out."
        )
    count = min(HELD_OUT_ITEMS, max(2, math.floor(HELD_OUT * len(units))))
    held_out = set(sorted(units, key=lambda unit: (draw(0, unit, 0, "held out"), unit))[:count])
    return [i for i in items if i.unit not in held_out], [i for i in items if i.unit in held_out]


def rows(item: Item) -> list[Row]:
    """The item's picture with its captions and, of a minimal pair, the other picture with the
    foils, which fit it.
    """
    of_item = [Row(item.id, item.image, item.captions)] if item.image else []
    if item.foil_image and item.foils:
        of_item.append(Row(f"{item.id}/other", item.foil_image, item.foils))
    return of_item


class Batches:
    """Batches of some items for one model.

    Args:
        items: With pictures.
        model: Preprocesses pictures and gives texts their ids.
        size: Rows of a batch.
        seed: Of all draws.
        makes: Which altered ones: of "sc", "vc", "consistency" and "flip".
        words: What corrupted captions are filled with.
        normal: Mean and standard deviation of the preprocessing, shape (3, 1, 1); each picture is
            then varied a little.
        workers: Threads that read pictures.
        foreign: Captions in another language than English: they are neither reworded nor flipped.

    Raises:
        InvalidInput: fewer rows than a batch takes.
    """

    def __init__(
        self,
        items: Sequence[Item],
        model: OpenClipEncoder,
        size: int,
        seed: int,
        makes: Set[str],
        words: Sequence[str],
        normal: tuple[np.ndarray, np.ndarray] | None = None,
        workers: int = 2,
        foreign: frozenset[str] = frozenset(),
    ) -> None:
        self._units = [rows(item) for item in items]
        self.n_rows = sum(map(len, self._units))
        if self.n_rows < size:
            raise InvalidInput(
                f"A batch of {size} takes more than the {self.n_rows} pictures there are to train on. "
                "Pass a smaller --batch-size."
            )
        self._model, self._size, self._seed, self._makes = model, size, seed, makes
        self._words, self._normal, self._workers = words, normal, workers
        self._foreign = foreign
        self._order = functools.lru_cache(maxsize=2)(self._ordered)
        self._edits = functools.lru_cache(maxsize=None)(self._edited)
        self._pixels: dict[Picture, np.ndarray] = {}

    def __len__(self) -> int:
        return (
            self.n_rows // self._size
        )  # of an epoch; its last rows, too few for a batch, have their turn in another

    def batch(self, number: int) -> Batch:
        """The batch of that number, 0 and up: no row twice in an epoch, which leaves out the
        last few of its order.
        """
        epoch, index = divmod(number, len(self))
        rows = self._order(epoch)[index * self._size : (index + 1) * self._size]
        caption_numbers = [self._draw(row, epoch, "caption") % len(row.captions) for row in rows]
        pixels = self._pixels_of(rows, epoch)
        n, mixed = len(rows), np.empty(0, np.int64)
        if "vc" in self._makes and n > 1:
            altered, mixed = alter.mixed_pictures(pixels, draw(self._seed, "", number, "mixed"))
            pixels = np.concatenate([pixels, altered])
        texts = [row.captions[index] for row, index in zip(rows, caption_numbers, strict=True)]
        corrupted: list[tuple[int, str]] = []
        reworded: list[tuple[int, str]] = []
        flipped: list[tuple[int, str, str]] = []
        for at, (row, text, index) in enumerate(zip(rows, texts, caption_numbers, strict=True)):
            if "sc" in self._makes and word_spans(text):
                corrupted.append(
                    (
                        at,
                        alter.corrupt_caption(
                            text, self._words, self._draw(row, epoch, "corrupted")
                        ),
                    )
                )
            if self._makes & {"consistency", "flip"}:
                same, different = self._edits(row)[index]
                if same and "consistency" in self._makes:
                    reworded.append((at, same[self._draw(row, epoch, "reworded") % len(same)]))
                if different and "flip" in self._makes:
                    flipped.append(
                        (at, *different[self._draw(row, epoch, "flipped") % len(different)])
                    )
        texts += [text for _, text, *_ in (*corrupted, *reworded, *flipped)]
        rows_of = [
            np.array([at for at, *_ in edited], np.int64)
            for edited in (corrupted, reworded, flipped)
        ]
        kinds = np.array([kind for *_, kind in flipped], dtype=object)
        return Batch(
            n=n,
            pixels=pixels,
            tokens=self._model.ids(texts),
            mixed=mixed,
            corrupted=rows_of[0],
            reworded=rows_of[1],
            flipped=rows_of[2],
            kinds=kinds,
        )

    def epoch(self) -> Iterator[Batch]:
        """All batches of the first epoch."""
        return map(self.batch, range(len(self)))

    def _draw(self, row: Row, epoch: int, purpose: str) -> int:
        return draw(self._seed, row.key, epoch, purpose)

    def _ordered(self, epoch: int) -> list[Row]:
        units = sorted(
            self._units, key=lambda unit: (self._draw(unit[0], epoch, "order"), unit[0].key)
        )
        return [row for unit in units for row in unit]

    def _edited(self, row: Row) -> list[tuple[list[str], list[tuple[str, str]]]]:
        """Return the paraphrases of each caption, and its flips with their kind."""
        caption_edits = lgip.edits(
            row.captions, row.key, seed=self._seed, kinds=("paraphrase", "flip")
        )
        caption_edits = lgip.in_english(row.captions, caption_edits, self._foreign)
        return [
            (
                [text for text, edit in edits if edit.kind == "paraphrase"],
                [(text, edit.subtype) for text, edit in edits if edit.kind == "flip"],
            )
            for edits in caption_edits.edits
        ]

    def _pixels_of(self, rows: Sequence[Row], epoch: int) -> np.ndarray:
        with ThreadPoolExecutor(self._workers) as pool:
            pixels = list(pool.map(self._preprocessed, [row.picture for row in rows]))
        if self._normal:
            mean, std = self._normal
            pixels = [
                alter.vary_picture(image, mean, std, self._draw(row, epoch, "varied"))
                for row, image in zip(rows, pixels, strict=True)
            ]
        return np.stack(pixels)

    def _preprocessed(self, picture: Picture) -> np.ndarray:
        pixels = self._pixels.get(picture)
        if pixels is None:
            pixels = self._model.preprocess(pictures.open_picture(picture))
            if len(self._pixels) * pixels.nbytes < _MEMORY:
                self._pixels[picture] = pixels
        return pixels
