"""Training data: rows that each hold a picture and its captions, and batches made from these rows.

A batch depends only on the seed, its number and the data, so a resumed training run sees the same batches. The
held-out items depend only on the items, so all training runs on the same data hold out the same items.

Captions and pictures are corrupted for SC and VC, or varied slightly. Every random choice depends only on the number
that is passed in.
"""

import functools
import math
import random
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.heads import HubModel
from vlprobe.models.open_clip_encoder import OpenClipEncoder
from vlprobe.perturb import lgip, mix
from vlprobe.perturb.draws import draw
from vlprobe.perturb.influence import without, word_spans
from vlprobe.perturb.tokens import like
from vlprobe.scoring import pictures
from vlprobe.types import Item, Picture

ALTERED_WORDS = 0.3  # the paper's p: chance of each word to be altered
PUT_IN = 0.5  # the paper's q: chance of an altered word to be exchanged; it is deleted otherwise
ALTERED_PICTURES = 0.5  # chance of each picture to be altered
# Share of an altered picture that stays, drawn evenly: the strengths that the paper probes
LAMBDAS = (0.6, 0.9)
_SHIFT = 0.05  # share of its side that a picture may move
_LIGHT = 0.15  # share by which a picture may get brighter or darker


def vocabulary(captions: Iterable[str]) -> tuple[str, ...]:
    """Return every word in the captions, in lowercase and sorted. Corrupted captions draw their new words from it.

    The paper uses BERT's vocabulary. Words from the data are words that the model may have seen.
    """
    return tuple(
        sorted({caption[a:b].lower() for caption in captions for a, b in word_spans(caption)})
    )


def corrupt_caption(caption: str, words: Sequence[str], number: int) -> str:
    """Replace or delete random words in a caption. At least one word changes, and the words are never all deleted.

    If no word is drawn, one is picked, because an unchanged caption would be pushed away from itself.
    As in the paper, an altered caption can still be true, for example without its "a" or "the".

    Args:
        caption: A caption with at least one word.
        words: At least two words from `vocabulary`.
        number: The seed for all random choices.

    Source: RoCOCO, section 5.
    """
    rng = random.Random(number)
    spans = word_spans(caption)
    altered = [index for index in range(len(spans)) if rng.random() < ALTERED_WORDS] or [
        int(rng.random() * len(spans))
    ]
    left = len(spans)
    for index in reversed(altered):  # from the end, so that the spans before keep their places
        start, end = spans[index]
        if left > 1 and rng.random() >= PUT_IN:
            caption = without(caption, start, end)
            left -= 1
            continue
        source = caption[start:end]
        index = int(rng.random() * len(words))
        word = words[index] if words[index] != source.lower() else words[index - 1]
        caption = caption[:start] + like(source, word) + caption[end:]
    return caption


def mixed_pictures(pixels: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Mix some pictures in a batch with another picture from the batch: blend them (mixup) or paste a patch (CutMix).

    The weight of the original picture is drawn at random from the range LAMBDAS, because the paper gives no
    value. The partner is the picture a fixed number of rows away, never the picture itself.

    Args:
        pixels: Preprocessed pictures, float32 with shape (n, channels, height, width), where n is at
            least 2. Mixing commutes with the scaling of channels.
        number: The seed for all random choices.

    Returns:
        The altered pictures, with shape (m, channels, height, width), and the source row for each, int64
        with shape (m,).

    Source: RoCOCO, section 5 and section 3.3.
    """
    rng = random.Random(number)
    away = 1 + int(rng.random() * (len(pixels) - 1))
    rows = [row for row in range(len(pixels)) if rng.random() < ALTERED_PICTURES]
    out = pixels[rows]  # a copy
    for altered, row in zip(out, rows, strict=True):
        partner = pixels[(row + away) % len(pixels)]
        lam = LAMBDAS[0] + (LAMBDAS[1] - LAMBDAS[0]) * rng.random()
        if rng.random() < 0.5:
            altered[:] = np.float32(lam) * altered + np.float32(1 - lam) * partner
        else:
            height, width = pixels.shape[2:]
            left, top, right, bottom = mix.box(width, height, lam, draw(number, "", row, "box"))
            altered[:, top:bottom, left:right] = partner[:, top:bottom, left:right]
    return out, np.array(rows, np.int64)


def vary_picture(pixels: np.ndarray, mean: np.ndarray, std: np.ndarray, number: int) -> np.ndarray:
    """Shift a picture slightly and change its brightness. It keeps its hues and is not mirrored, because captions
    mention colors, left and right.

    Args:
        pixels: One preprocessed picture, float32 with shape (3, height, width).
        mean, std: The mean and standard deviation used in preprocessing, shape (3, 1, 1). The
            normalization is undone to change the brightness.
        number: The seed for all random choices.

    Returns:
        A new array like `pixels`; uncovered pixels are filled with the edge.
    """
    rng = random.Random(number)
    height, width = pixels.shape[1:]
    reach = [round(_SHIFT * side) for side in (height, width)]
    down, right = (int(rng.random() * (2 * extent + 1)) for extent in reach)
    padded = np.pad(pixels, ((0, 0), (reach[0],) * 2, (reach[1],) * 2), mode="edge")
    moved = padded[:, down : down + height, right : right + width]
    light = np.float32(1 + _LIGHT * (2 * rng.random() - 1))
    return (np.minimum((moved * std + mean) * light, 1) - mean) / std


HELD_OUT = 0.1  # share of the items that is held out
HELD_OUT_ITEMS = 256  # and at most so many
_MEMORY = 400_000_000  # bytes of preprocessed pictures that are kept


@dataclass(frozen=True, slots=True)
class Row:
    """A picture and its captions. The two pictures in a minimal pair are two rows that share one item."""

    key: str
    picture: Picture
    captions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch with n pictures and one caption for each, followed by altered inputs if a loss needs them.

    `mixed`, `corrupted`, `reworded` and `flipped` give the source row of each altered input: int64, 0 to n - 1.
    """

    n: int
    pixels: np.ndarray  # float32 (n + mixed, channels, height, width)
    tokens: np.ndarray  # int64 (n + corrupted + reworded + flipped, context)
    mixed: np.ndarray
    corrupted: np.ndarray
    reworded: np.ndarray
    flipped: np.ndarray
    kinds: np.ndarray  # the kind of each flip: color, number or object

    def without_alterations(self) -> "Batch":
        """Return the batch without its altered inputs."""
        altered = ("mixed", "corrupted", "reworded", "flipped", "kinds")
        empty = {name: getattr(self, name)[:0] for name in altered}
        return replace(self, pixels=self.pixels[: self.n], tokens=self.tokens[: self.n], **empty)


def split(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Split items into training items and held-out items by hash, independently of the order of the data.

    Items that share a picture (by the tag `picture`) are in the same part.

    Raises:
        InvalidInput: An item has no picture, or there are fewer than four pictures.
    """
    blind = [item.id for item in items if item.image is None]
    if blind:
        raise InvalidInput(
            f"{len(blind)} items have no picture (first: '{blind[0]}'). Training needs a "
            "picture for every item."
        )
    units = {item.unit for item in items}
    if len(units) < 4:
        raise InvalidInput(
            f"Training needs at least 4 pictures, because 2 are held out. Found {len(units)}."
        )
    count = min(HELD_OUT_ITEMS, max(2, math.floor(HELD_OUT * len(units))))
    held_out = set(sorted(units, key=lambda unit: (draw(0, unit, 0, "held out"), unit))[:count])
    return [i for i in items if i.unit not in held_out], [i for i in items if i.unit in held_out]


def rows(item: Item) -> list[Row]:
    """Return a row with the item's picture and captions, and for a minimal pair also one with the foil picture."""
    of_item = [Row(item.id, item.image, item.captions)] if item.image else []
    if item.foil_image and item.foils:
        of_item.append(Row(f"{item.id}/other", item.foil_image, item.foils))
    return of_item


class Batches:
    """Training batches for one model.

    Args:
        items: Items with pictures.
        model: The model that preprocesses pictures and tokenizes texts.
        size: The number of rows in a batch.
        seed: The seed for all random choices.
        makes: Which altered inputs to create: any of "sc", "vc", "consistency" and "flip".
        words: The vocabulary for corrupted captions.
        normal: The mean and standard deviation used in preprocessing, shape (3, 1, 1), if pictures are
            to be varied slightly.
        workers: The number of threads that read pictures.
        foreign: Captions that are not in English, which are neither reworded nor flipped.

    Raises:
        InvalidInput: There are fewer rows than a batch needs.
    """

    def __init__(
        self,
        items: Sequence[Item],
        model: OpenClipEncoder | HubModel,
        size: int,
        seed: int,
        makes: Set[str],
        words: Sequence[str],
        normal: tuple[np.ndarray, np.ndarray] | None = None,
        workers: int = 2,
        foreign: Collection[str] = (),
    ) -> None:
        self._units = [rows(item) for item in items]
        self.n_rows = sum(map(len, self._units))
        if self.n_rows < size:
            raise InvalidInput(
                f"The batch size ({size}) is larger than the number of training pictures "
                f"({self.n_rows}). Use a smaller --batch-size."
            )
        self._model, self._size, self._seed, self._makes = model, size, seed, makes
        self._words, self._normal, self._workers = words, normal, workers
        self._foreign = foreign
        # Each epoch needs these again. The edits for a photograph's captions take 20 ms and its pixels
        # 140 ms. The order of 10,000 rows, which every batch in an epoch needs, takes 25 ms.
        self._order = functools.lru_cache(maxsize=2)(self._ordered)
        self._edits = functools.lru_cache(maxsize=None)(self._edited)
        self._pixels: dict[Picture, np.ndarray] = {}

    def __len__(self) -> int:
        # The batches in an epoch, without an incomplete last one
        return self.n_rows // self._size

    def batch(self, number: int) -> Batch:
        """Return the batch with the given number, counted from 0. No row occurs twice in an epoch."""
        epoch, index = divmod(number, len(self))
        rows = self._order(epoch)[index * self._size : (index + 1) * self._size]
        caption_numbers = [self._draw(row, epoch, "caption") % len(row.captions) for row in rows]
        pixels = self._pixels_of(rows, epoch)
        n, mixed = len(rows), np.empty(0, np.int64)
        if "vc" in self._makes and n > 1:
            altered, mixed = mixed_pictures(pixels, draw(self._seed, "", number, "mixed"))
            pixels = np.concatenate([pixels, altered])
        texts = [row.captions[index] for row, index in zip(rows, caption_numbers, strict=True)]
        corrupted: list[tuple[int, str]] = []
        reworded: list[tuple[int, str]] = []
        flipped: list[tuple[int, str, str]] = []
        for source, (row, text, index) in enumerate(zip(rows, texts, caption_numbers, strict=True)):
            if "sc" in self._makes and word_spans(text):
                corrupted.append(
                    (
                        source,
                        corrupt_caption(text, self._words, self._draw(row, epoch, "corrupted")),
                    )
                )
            if self._makes & {"consistency", "flip"}:
                same, different = self._edits(row)[index]
                if same and "consistency" in self._makes:
                    reworded.append((source, same[self._draw(row, epoch, "reworded") % len(same)]))
                if different and "flip" in self._makes:
                    flipped.append(
                        (source, *different[self._draw(row, epoch, "flipped") % len(different)])
                    )
        texts += [text for _, text, *_ in (*corrupted, *reworded, *flipped)]
        rows_of = [
            np.array([source for source, *_ in edited], np.int64)
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
        """Yield all batches in the first epoch."""
        return map(self.batch, range(len(self)))

    def _draw(self, row: Row, epoch: int, purpose: str) -> int:
        return draw(self._seed, row.key, epoch, purpose)

    def _ordered(self, epoch: int) -> list[Row]:
        units = sorted(
            self._units, key=lambda unit: (self._draw(unit[0], epoch, "order"), unit[0].key)
        )
        return [row for unit in units for row in unit]

    def _edited(self, row: Row) -> list[tuple[list[str], list[tuple[str, str]]]]:
        """Return the paraphrases for each caption in a row, and its flips with their kinds."""
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
        with ThreadPoolExecutor(self._workers) as pool:  # decoding releases the lock
            pixels = list(pool.map(self._preprocessed, [row.picture for row in rows]))
        if self._normal:
            mean, std = self._normal
            pixels = [
                vary_picture(image, mean, std, self._draw(row, epoch, "varied"))
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
