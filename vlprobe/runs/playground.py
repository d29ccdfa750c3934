"""One picture, one caption, every edit that vlprobe can make of it, and what models say: all that
the Playground shows.

Pictures, texts, embeddings and scores live in memory, a bounded number of each. Only `keep` writes
to the disk.
"""

import copy
import functools
import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from vlprobe import registry
from vlprobe.datasets.world.captions import captions
from vlprobe.datasets.world.renderer import render
from vlprobe.datasets.world.scene import distinct
from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, lgip, mix, substitution
from vlprobe.perturb.influence import Scores
from vlprobe.scoring import cases, pictures
from vlprobe.storage import access
from vlprobe.storage.files import lock, write_bytes
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import (
    DualEncoder,
    Edit,
    Model,
    PairScorer,
    PictureEdit,
    TextEncoder,
    embeds_images,
    embeds_texts,
    scores_pairs,
)

MAX_SIDE = (
    1024  # pixels; more than any model here looks at, and little enough to black out 16 parts of
)
SHELF = 200  # pictures of a dataset that are offered
DEMO_SHELF = 40  # these are drawn when asked for, so that nothing has to be stored first
GRID = 4
SAME = 1e-5  # two texts whose embeddings are no further apart are one to a model: batches move them by less
GROUPS = {  # in the order in which they are shown; whether the edit makes the caption wrong
    "flip": True,
    "substitution": True,
    "deletion": True,
    "combined": True,
    "simple": False,
    "advanced": False,
}
_ITEM = "playground"  # what the draws of an edit depend on, beside the seed
_EVERY = 1000  # more rewordings than any caption has
_UNSAFE = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Canvas:
    """A picture in memory, RGB, drawn when it is needed; the key names its pixels."""

    key: bytes
    draw: Callable[[], Image.Image]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A picture of a dataset, with what people wrote about it."""

    id: str
    captions: tuple[str, ...]
    open: Callable[[], Image.Image]


@dataclass(frozen=True, slots=True)
class Edited:
    """A caption after one edit, and the group in GROUPS that it is shown in."""

    group: str
    text: str
    edit: Edit

    @property
    def wrong(self) -> bool:
        """Whether the edit took the caption's truth, so that its score should fall."""
        return GROUPS[self.group]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one model says to a caption and n edits of it; NaN is what it cannot say."""

    model: str
    true: float  # score of the picture with the caption
    scores: np.ndarray  # shape (n,), of the picture with each edit
    cosines: np.ndarray  # shape (n,), of the caption with each edit, texts alone
    unseen: np.ndarray  # shape (n,), whether the edit is the same to the model as the caption
    alike: np.ndarray  # shape (n,), whether it is the same to the model as another of the edits
    sees: bool  # whether it was shown the picture


class Player:
    """A model with an in-memory cache of its embeddings and scores, for one caller at a time."""

    def __init__(self, model: Model) -> None:
        self.model, self.name = model, model.name
        self.embeds_texts = model.capabilities.embeds_texts
        self.scores_pairs = model.capabilities.scores_pairs
        self.sees = model.capabilities.takes_pictures
        self._lock = threading.RLock()
        self._texts = SingleFlightCache(8192)
        self._forget()

    def _forget(self) -> None:
        self._images, self._encoded, self._pairs = (
            SingleFlightCache(512),
            SingleFlightCache(2 * GRID * GRID),
            SingleFlightCache(8192),
        )

    def isolated(self) -> "Player":
        """The same model with a picture cache that no other session shares; the text cache stays
        shared.
        """
        player = copy.copy(self)
        player._forget()
        return player

    @property
    def _text_encoder(self) -> TextEncoder:
        if not embeds_texts(self.model):
            raise TypeError(f"{self.name} embeds no texts")
        return self.model

    @property
    def _dual_encoder(self) -> DualEncoder:
        if not embeds_images(self.model):
            raise TypeError(f"{self.name} embeds no pictures")
        return self.model

    @property
    def _pair_scorer(self) -> PairScorer:
        if not scores_pairs(self.model):
            raise TypeError(f"{self.name} scores no pairs")
        return self.model

    def tokens(self, texts: Sequence[str]) -> tuple[np.ndarray, list[bytes]]:
        """The token ids of each text, int64 of shape (n, columns), and a key: texts with equal
        keys have equal ids.
        """
        with self._lock:
            tokens = self.model.tokenize(list(texts))
        return tokens, [row[row != -1].tobytes() for row in tokens]

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings, float32 of shape (n, dim), rows l2-normalised."""
        with self._lock:
            tokens, keys = self.tokens(texts)
            encode = self._text_encoder.encode_texts
            return np.stack(self._texts.get_many(keys, lambda rows: list(encode(tokens[rows]))))

    def images(self, canvases: Sequence[Canvas]) -> list[np.ndarray]:
        """Embeddings, one or more rows of float32 of shape (k, dim) a picture."""
        with self._lock:
            keys = [canvas.key for canvas in canvases]
            return self._images.get_many(
                keys, lambda rows: self._embedded([canvases[row] for row in rows])
            )

    def embed_uncached(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Embeddings of pictures that are not cached, float32 of shape (n, image_dim)."""
        model = self._dual_encoder
        with self._lock:
            return model.encode_images(np.stack([model.preprocess(image) for image in images]))

    def _embedded(self, canvases: Sequence[Canvas]) -> list[np.ndarray]:
        model = self._dual_encoder
        vectors = model.encode_images(
            np.stack([model.preprocess(canvas.draw()) for canvas in canvases])
        )
        return [row.reshape(-1, self.model.capabilities.dim) for row in vectors]

    def scores(self, canvases: Sequence[Canvas], texts: Sequence[str]) -> np.ndarray:
        """Scores of each picture with each text: float32 of shape (pictures, texts), of the model's
        `score_type`.

        NaN where the model takes no pictures.
        """
        if not self.sees:
            return np.full((len(canvases), len(texts)), np.nan, dtype=np.float32)
        if self.scores_pairs:
            with self._lock:
                return self._matched(canvases, texts)
        vectors = self.texts(texts)
        row = np.arange(len(texts))
        rows_of_scores = [
            np.max(
                [
                    cases.cosines(vector[None], np.zeros_like(row), vectors, row)
                    for vector in image_vectors
                ],
                axis=0,
            )
            for image_vectors in self.images(canvases)
        ]
        return np.stack(rows_of_scores)

    def _matched(self, canvases: Sequence[Canvas], texts: Sequence[str]) -> np.ndarray:
        model = self._pair_scorer
        tokens, text_keys = self.tokens(texts)
        pairs = [(image, text) for image in range(len(canvases)) for text in range(len(texts))]
        keys = [(canvases[image].key, text_keys[text]) for image, text in pairs]

        def encode(needed: list[Canvas]) -> Sequence:
            return model.encode_pictures([model.preprocess(canvas.draw()) for canvas in needed])

        def match(rows: list[int]) -> list[float]:
            needed = [canvases[image] for image in dict.fromkeys(pairs[row][0] for row in rows)]
            image_keys = [canvas.key for canvas in needed]
            encoded = self._encoded.get_many(
                image_keys, lambda missing: encode([needed[row] for row in missing])
            )
            by_key = dict(zip(image_keys, encoded, strict=True))
            scores = model.match(
                [by_key[keys[row][0]] for row in rows], tokens[[pairs[row][1] for row in rows]]
            )
            return scores.tolist()

        return np.array(self._pairs.get_many(keys, match), dtype=np.float32).reshape(
            len(canvases), len(texts)
        )


def canvas(image: Image.Image) -> Canvas:
    """An RGB picture to play with, scaled down to at most MAX_SIDE pixels a side."""
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    return Canvas(_key(str(image.size).encode(), image.tobytes()), lambda: image)


def uploaded(content: bytes, name: str) -> Canvas:
    """A picture from a file's bytes, checked and turned upright as every picture is. Raises
    InvalidInput.
    """
    return canvas(pictures.decode(content, name))


def without_parts(whole: Canvas) -> list[Canvas]:
    """Copies with one part of a grid black each, row by row. Raises InvalidInput for a picture
    of a few pixels.
    """
    boxes = influence.grid_cells(whole.draw().size, GRID)
    return [
        Canvas(_key(whole.key, str(box).encode()), functools.partial(_without_part, whole, box))
        for box in boxes
    ]


def _without_part(whole: Canvas, box: influence.Box) -> Image.Image:
    return influence.without_cell(whole.draw(), box)


def edited(whole: Canvas, partner: Canvas, kind: Literal["mix", "patch"], lam: float) -> Canvas:
    """The picture blended with its partner, or with a patch of it; `lam`, above 0 and below 1,
    is what stays.
    """
    edit = PictureEdit(kind, Path(partner.key.hex()), lam, mix.SEEDS[0])
    draw = functools.cache(lambda: mix.apply(whole.draw(), partner.draw(), edit))
    return Canvas(_key(whole.key, partner.key, f"{kind} {lam!r}".encode()), draw)


def _key(*fields: bytes) -> bytes:
    """16 bytes that name a sequence of fields; where one ends and the next begins counts."""
    hasher = hashlib.blake2b(digest_size=16)
    for field in fields:
        hasher.update(hashlib.blake2b(field).digest())
    return hasher.digest()


def shelf(dataset: str, cache: Path) -> tuple[Exhibit, ...]:
    """The first pictures of a dataset; those of the demo are drawn in memory. Raises NotFound or
    InvalidInput.
    """
    if dataset == "demo":
        return tuple(
            Exhibit(f"demo-{index:05}", captions(scene, 5), functools.partial(render, scene))
            for index, scene in enumerate(distinct("test", DEMO_SHELF))
        )
    exhibits = (
        Exhibit(item.id, item.captions, functools.partial(pictures.open_picture, item.image))
        for item in registry.load_dataset(dataset, cache).items
        if item.image
    )
    offered = tuple(itertools.islice(exhibits, SHELF))
    if not offered:
        raise InvalidInput(f"Dataset '{dataset}' has no pictures. Choose another one.")
    return offered


def influences(players: Sequence[Player], caption: str, spans: Sequence[influence.Span]) -> Scores:
    """The EI score of each span of the caption, by its start, from each player that embeds
    texts, in their order.
    """
    voters = [player.texts for player in players if player.embeds_texts]
    return influence.influence([caption], [spans], voters)[0]


def edits(
    caption: str, *, seed: int = 42, k: int = 1, players: Sequence[Player] = ()
) -> tuple[list[Edited], Mapping[str, int]]:
    """Every edit that vlprobe can make of a caption: LGIP's, by the strict rules, and RoCOCO's.

    Args:
        caption: One caption; nothing else is known of its picture, so a flip is only checked
            against its own words.
        seed: Of everything that is drawn.
        k: How many words RoCOCO exchanges, 1 to 5.
        players: Who votes for the word that is exchanged or deleted (the least telling); nobody: it
            is drawn.

    Returns:
        The edits in the order of GROUPS, and how many were not possible for which reason.
    """
    lgip_edits = lgip.edits([caption], _ITEM, seed=seed, k_same=_EVERY)
    edited_captions = [
        Edited(edit.subtype if edit.kind == "paraphrase" else edit.kind, text, edit)
        for text, edit in lgip_edits.edits[0]
    ]
    dropped = dict(lgip_edits.dropped)
    votes = None
    if any(player.embeds_texts for player in players):
        spans = [(noun.start, noun.end) for noun in substitution.sources(caption)]
        votes = [influences(players, caption, spans)]
    for policy in substitution.POLICIES:
        alterations, lost = substitution.alter(
            [caption], _ITEM, policy, k=k, seed=seed, influence=votes
        )
        edited_captions += [
            Edited("substitution", altered.text, altered.edit) for altered in alterations if altered
        ]
        dropped |= {f"{policy}: {reason}": count for reason, count in lost.items()}
    for which in reversed(
        substitution.DELETIONS
    ):  # of two that delete the same word, the informed one is reported
        if which == "random" or votes:
            deletions, lost = substitution.delete(
                [caption], _ITEM, which, seed=seed, influence=votes
            )
            edited_captions += [
                Edited("deletion", deleted.text, deleted.edit) for deleted in deletions if deleted
            ]
            dropped |= {f"delete {which}: {reason}": count for reason, count in lost.items()}
    group_order = list(GROUPS)
    by_text = {(edited.group, edited.text): edited for edited in reversed(edited_captions)}
    return sorted(
        reversed(by_text.values()), key=lambda edited: group_order.index(edited.group)
    ), dropped


def score(
    players: Sequence[Player], picture: Canvas, caption: str, texts: Sequence[str]
) -> list[Answer]:
    """What each model says to the caption and to each of the texts."""
    return [_answer(player, picture, [caption, *texts]) for player in players]


def _answer(player: Player, picture: Canvas, texts: list[str]) -> Answer:
    scores = player.scores([picture], texts)[0]
    same, cosines = _compared(player, texts)
    if not player.scores_pairs:
        scores[same[0]] = scores[
            0
        ]  # encoded in different batches, equal texts may differ in the last bit
    differs = np.array(texts)[:, None] != np.array(texts)
    alike = (same & differs)[1:, 1:].any(axis=1)
    return Answer(
        player.name, float(scores[0]), scores[1:], cosines[1:], same[0, 1:], alike, player.sees
    )


def _compared(player: Player, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Which texts are one to the model, of shape (n, n), and the cosine of each with the first."""
    if not player.embeds_texts:
        keys = np.array([key.hex() for key in player.tokens(texts)[1]])
        return keys[:, None] == keys, np.full(len(texts), np.nan, dtype=np.float32)
    vectors = player.texts(texts)
    row = np.arange(len(texts))
    wide = vectors.astype(np.float64)
    length = (wide**2).sum(axis=1)
    squared_distance = length[:, None] + length - 2 * wide @ wide.T
    return squared_distance < SAME**2, cases.cosines(vectors[:1], np.zeros_like(row), vectors, row)


def margins(answer: Answer) -> np.ndarray:
    """How much better the caption scores than each edit, shape (n,): of a wrong one, 0 or less
    is a failure.
    """
    return np.float32(answer.true) - answer.scores


def parts_that_matter(player: Player, picture: Canvas, caption: str) -> np.ndarray:
    """How much the caption's score falls when a part of the picture is black: shape (GRID,
    GRID), NaN if unknown.
    """
    scores = player.scores([picture, *without_parts(picture)], [caption])[:, 0]
    return (scores[0] - scores[1:]).reshape(GRID, GRID)


def keep(picture: Canvas, caption: str, name: str, cache: Path) -> Path:
    """Stores a picture and its caption for good, as `folder:` reads them; a picture that is there
    gets a caption more.

    The picture is written as it was scored: upright, RGB, at most MAX_SIDE pixels a side, without
    the camera's notes.

    Args:
        picture: What is kept.
        caption: One line.
        name: Of the dataset, by a person: only its letters and digits become the folder's name.
        cache: The folder that results live in.

    Returns:
        The dataset's folder.

    Raises:
        InvalidInput: no letter or digit in the name, an empty caption, or a folder that cannot be
            written.
    """
    access.refuse_writing()
    safe = _UNSAFE.sub("-", name.lower()).strip("-")[:40].rstrip("-")
    line = " ".join(caption.split())
    if not safe:
        raise InvalidInput(
            f"The name '{name}' has no letter a to z and no digit. Give the dataset another name."
        )
    if not line:
        raise InvalidInput("There is no caption to keep. Type what the picture shows.")
    folder = cache / "kept" / safe
    file = folder / f"{picture.key.hex()}.png"
    text = file.with_suffix(".txt")
    buffer = BytesIO()
    picture.draw().save(buffer, "PNG")
    with lock(
        folder.parent / f".{safe}.lock", lambda: None
    ):  # two people may keep one picture at once
        captions_before = text.read_text(encoding="utf-8").splitlines() if text.exists() else []
        write_bytes(file, buffer.getvalue())
        write_bytes(
            text,
            "".join(
                f"{kept_line}\n" for kept_line in dict.fromkeys([*captions_before, line])
            ).encode(),
        )
    return folder
