"""Content for the Playground: all edits that vlprobe can make to a caption, and model scores for a picture with
each edit.

Embeddings and scores are cached in memory, up to a limit.
"""

import contextlib
import copy
import re
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, lgip, substitution
from vlprobe.perturb.influence import Scores
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.perturb.language import foreign_captions
from vlprobe.runs.exhibits import GRID, Canvas, without_parts
from vlprobe.scoring import cases, mixtures
from vlprobe.scoring.batches import stacked
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.scoring.mixtures import ShareScores
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import (
    DualEncoder,
    Edit,
    Model,
    PairScorer,
    Picture,
    TextEncoder,
    answers_cases,
    looks_up,
)

SAME = 1e-5  # two texts whose embeddings are no further apart are identical to a model: batches change them by less
GROUPS = {  # in display order; the value tells whether the edit makes the caption wrong
    "flip": True,
    "statement": True,
    "substitution": True,
    "deletion": True,
    "combined": True,
    "simple": False,
    "advanced": False,
    "surface": False,
}
_ITEM = "playground"  # inputs of the random choices of an edit, in addition to the seed
_EVERY = 1000  # more rewordings than any caption has


@dataclass(frozen=True, slots=True)
class Edited:
    """A caption after one edit, with its display group from GROUPS."""

    group: str
    text: str
    edit: Edit

    @property
    def wrong(self) -> bool:
        """Return whether the edit made the caption wrong, so that its score should fall."""
        return GROUPS[self.group]


@dataclass(frozen=True, slots=True)
class Answer:
    """One model's scores for a caption and n edits of it; NaN if unknown."""

    model: str
    true: float  # score of the picture with the caption
    scores: np.ndarray  # shape (n,), scores of the picture with each edit
    cosines: np.ndarray  # shape (n,), text similarity between the caption and each edit
    unseen: np.ndarray  # shape (n,), whether the edit looks the same to the model as the caption
    alike: np.ndarray  # shape (n,), whether the edit looks the same to the model as another edit
    sees: bool  # whether the model was shown the picture


class Player:
    """A model with an in-memory cache for its embeddings and scores.

    Locks ensure that only one thread uses the model at a time.
    """

    def __init__(self, model: Model) -> None:
        if model.capabilities.asks_server:
            raise InvalidInput(
                f"'{model.name}' is only available in runs, since requests may cost money. Choose another model here."
            )
        if model.capabilities.chooses:
            raise InvalidInput(
                f"'{model.name}' only chooses between two captions. Remove +choice to score captions here."
            )
        if answers_cases(model) or looks_up(model):
            content = "scores of the cases" if answers_cases(model) else "answers to what is"
            raise InvalidInput(
                f"'{model.name}' only has {content} in its file and cannot score new words. "
                "Choose another model."
            )
        self.model, self.name = model, model.name
        self.embeds_texts = model.capabilities.embeds_texts
        self.scores_pairs = model.capabilities.scores_pairs
        self.sees = model.capabilities.takes_pictures
        self._lock = threading.RLock()
        # Each click on a page needs all edits of a caption again: 60 take ViT-B-32 0.5 s.
        self._texts = SingleFlightCache(8192)
        self._forget()

    def _forget(self) -> None:
        # The same click needs the picture and its parts: GRID * GRID of them, a second or more.
        self._images = SingleFlightCache(512)
        self._encoded = SingleFlightCache(2 * GRID * GRID)
        self._pairs = SingleFlightCache(8192)

    def isolated(self) -> "Player":
        """Return the same model with a separate picture cache for one session. The text cache stays shared."""
        player = copy.copy(self)
        player._forget()
        return player

    def tokens(self, texts: Sequence[str]) -> tuple[np.ndarray, list[bytes]]:
        """Return the token ids of each text, int64 of shape (n, columns), and a key for each text. Texts with equal
        keys have equal ids.
        """
        with self._lock:
            tokens = self.model.tokenize(list(texts))
        return tokens, [row[row != -1].tobytes() for row in tokens]

    def unlearned(self, words: Sequence[str]) -> frozenset[str]:
        """Return the words that the model never learned. Empty if the model does not report them."""
        judge: Callable[[Sequence[str]], np.ndarray] | None = getattr(self.model, "unlearned", None)
        if judge is None or not words:
            return frozenset()
        with self._lock:
            are_unlearned = judge(words)
        return frozenset(
            word for word, is_unlearned in zip(words, are_unlearned, strict=True) if is_unlearned
        )

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return the embeddings of texts, float32 of shape (n, dim), rows L2-normalized."""
        with self._lock:
            tokens, keys = self.tokens(texts)
            encode = cast(TextEncoder, self.model).encode_texts
            return np.stack(self._texts.get_many(keys, lambda rows: list(encode(tokens[rows]))))

    def images(self, canvases: Sequence[Canvas]) -> list[np.ndarray]:
        """Return the embeddings of pictures, float32 of shape (k, dim) per picture."""
        with self._lock:
            keys = [canvas.key for canvas in canvases]
            vectors = self._images.get_many(
                keys, lambda rows: list(self.embed_uncached([canvases[row].draw() for row in rows]))
            )
            return [row.reshape(-1, self.model.capabilities.dim) for row in vectors]

    def embed_uncached(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Compute the embeddings of pictures without caching them, float32 of shape (n, image_dim)."""
        model = cast(DualEncoder, self.model)
        with self._lock:
            return model.encode_images(stacked([model.preprocess(image) for image in images]))

    def embeddings(
        self, folder: Path | None, inputs: Sequence[Picture] | Sequence[str]
    ) -> np.ndarray:
        """Return the embeddings of pictures or texts, float32 of shape (n, dim), rows L2-normalized. Pictures that a
        run embedded are read from `folder`, and others are stored there.
        """
        with self._lock, contextlib.closing(CachedEncoder(self.model, folder)) as encoder:
            texts = [text for text in inputs if isinstance(text, str)]
            return (
                encoder.texts(texts) if texts else encoder.images(cast(Sequence[Picture], inputs))
            )

    def share_scores(self, caption: str, pictures: Sequence[Image.Image]) -> ShareScores:
        """Score the caption against the picture at each mixing share (see `mixtures.share_scores`)."""
        with self._lock:
            return mixtures.share_scores(self.model, caption, pictures)

    def scores(self, canvases: Sequence[Canvas], texts: Sequence[str]) -> np.ndarray:
        """Score each picture against each text: float32 of shape (pictures, texts), on the scale of the model's
        `score_type`.

        All scores are NaN if the model does not take pictures.
        """
        if not self.sees:
            return np.full((len(canvases), len(texts)), np.nan, dtype=np.float32)
        if self.scores_pairs:
            with self._lock:
                return self._matched(canvases, texts)
        vectors = self.texts(texts)
        row = np.arange(len(texts))
        of_vectors = [
            [cases.cosines(vector[None], np.zeros_like(row), vectors, row) for vector in of_image]
            for of_image in self.images(canvases)
        ]
        return np.stack([np.max(of_image, axis=0) for of_image in of_vectors])

    def _matched(self, canvases: Sequence[Canvas], texts: Sequence[str]) -> np.ndarray:
        model = cast(PairScorer, self.model)
        tokens, text_keys = self.tokens(texts)
        pairs = [(image, text) for image in range(len(canvases)) for text in range(len(texts))]
        keys = [(canvases[image].key, text_keys[text]) for image, text in pairs]

        def match(rows: list[int]) -> list[float]:
            needed = [canvases[image] for image in dict.fromkeys(pairs[row][0] for row in rows)]
            image_keys = [canvas.key for canvas in needed]
            encoded = self._encoded.get_many(
                image_keys,
                lambda missing: model.encode_pictures(
                    [model.preprocess(needed[row].draw()) for row in missing]
                ),
            )
            by_key = dict(zip(image_keys, encoded, strict=True))
            scores = model.match(
                [by_key[keys[row][0]] for row in rows], tokens[[pairs[row][1] for row in rows]]
            )
            return scores.tolist()

        return np.array(self._pairs.get_many(keys, match), dtype=np.float32).reshape(
            len(canvases), len(texts)
        )


def influences(players: Sequence[Player], caption: str, spans: Sequence[influence.Span]) -> Scores:
    """Compute how much each span in a caption influences the caption's embedding (RoCOCO's EI score). Returns a
    mapping from each span's start to one score for each player that embeds texts.
    """
    voters = [player.texts for player in players if player.embeds_texts]
    return influence.influence([caption], [spans], voters)[0]


def edits(
    caption: str, *, seed: int = 42, k: int = 1, players: Sequence[Player] = ()
) -> tuple[list[Edited], Mapping[str, int]]:
    """Make all edits of a caption that vlprobe supports: LGIP's edits by the strict rules,
    vlprobe's additional kinds, and RoCOCO's edits.

    Args:
        caption: One caption. Other captions for its picture are unknown, so a flip is checked only against this
            caption's words.
        k: The number of words that RoCOCO replaces, 1 to 5.
        players: The models that vote on the least influential word to replace or delete; if empty,
            the word is random.

    Returns:
        The edits in the order of GROUPS, and the number of impossible edits by reason. A caption that is not in English
        only gets flips of colors and numbers, if there is a table for its language.
    """
    if foreign := foreign_captions([caption]):
        none = lgip.CaptionEdits(((),), {})
        lgip_edits = lgip.edit_other_languages([caption], _ITEM, none, foreign, seed=seed)
    else:
        lgip_edits = lgip.edits([caption], _ITEM, seed=seed, kinds=lgip.ALL_KINDS, k_same=_EVERY)
    edited_captions = [Edited(_group(edit), text, edit) for text, edit in lgip_edits.edits[0]]
    dropped = dict(lgip_edits.dropped)
    if foreign:
        return edited_captions, dropped
    votes = None
    if any(player.embeds_texts for player in players):
        spans = [(noun.start, noun.end) for noun in substitution.sources(caption)]
        votes = [influences(players, caption, spans)]
    inputs = {"seed": seed, "influence": votes}
    made = [
        ("substitution", policy, substitution.alter([caption], _ITEM, policy, k=k, **inputs))
        for policy in substitution.POLICIES
    ]
    # If two deletions remove the same word, the informed one is reported
    made += [
        ("deletion", f"delete {which}", substitution.delete([caption], _ITEM, which, **inputs))
        for which in reversed(substitution.DELETIONS)
        if which == "random" or votes
    ]
    for group, name, (alterations, lost) in made:
        edited_captions += [Edited(group, each.text, each.edit) for each in alterations if each]
        dropped |= {f"{name}: {reason}": count for reason, count in lost.items()}
    group_order = list(GROUPS)
    by_text = {(edited.group, edited.text): edited for edited in reversed(edited_captions)}
    return sorted(
        reversed(by_text.values()), key=lambda edited: group_order.index(edited.group)
    ), dropped


def _group(edit: Edit) -> str:
    if edit.subtype in kind_edits.NAMES:
        return "statement" if edit.subtype in kind_edits.LIES else "surface"
    return edit.subtype if edit.kind == "paraphrase" else edit.kind


def unlearned(players: Sequence[Player], texts: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return, for each model name, the words in the given texts that the model never learned, in lowercase."""
    words = sorted({word for text in texts for word in words_of(text)})
    return {player.name: player.unlearned(words) for player in players}


def words_of(text: str) -> list[str]:
    """Split text into lowercase words.

    >>> words_of("A man's T-shirt, red.")
    ['a', "man's", 't-shirt', 'red']
    """
    return re.findall(r"[\w'-]+", text.lower())


def score(
    players: Sequence[Player], picture: Canvas, caption: str, texts: Sequence[str]
) -> list[Answer]:
    """Let each model score the picture with the caption and with each of the texts."""
    return [_answer(player, picture, [caption, *texts]) for player in players]


def doubters(
    players: Sequence[Player], picture: Canvas, caption: str, others: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the names of the models that score a caption of another picture higher than the caption, and these
    captions, first those that most models score higher.

    A true caption that a model can read scores higher than nearly all captions of other pictures.
    """
    texts = [caption, *others]
    scores = {player.name: player.scores([picture], texts)[0] for player in players}
    names = [name for name, each in scores.items() if (each > each[0]).any()]
    n_higher = [
        sum(each[place] > each[0] for each in scores.values()) for place in range(len(texts))
    ]
    order = sorted(range(1, len(texts)), key=n_higher.__getitem__, reverse=True)
    return names, [texts[place] for place in order]


def _answer(player: Player, picture: Canvas, texts: list[str]) -> Answer:
    scores = player.scores([picture], texts)[0]
    same, cosines = _compared(player, texts)
    if not player.scores_pairs:
        # Encoded in different batches, equal texts may differ in the last bit
        scores[same[0]] = scores[0]
    differs = np.array(texts)[:, None] != np.array(texts)
    alike = (same & differs)[1:, 1:].any(axis=1)
    return Answer(
        player.name, float(scores[0]), scores[1:], cosines[1:], same[0, 1:], alike, player.sees
    )


def score_apart(
    players: Sequence[Player],
    picture: Canvas,
    caption: str,
    edits: Sequence[Edited],
    unlearned: Mapping[str, Set[str]],
) -> tuple[list[Edited], list[Answer]]:
    """Score the edits without wrong captions that look the same to every model as an earlier one, because no model
    knows their words. Otherwise, one failure on unknown words would count several times.

    Args:
        unlearned: Words that each model does not know, by model name.

    Returns:
        The edits, and for each player its scores of them.
    """
    answers = score(players, picture, caption, [edited.text for edited in edits])
    seen, kept = set(), []
    for place, edited in enumerate(edits):
        scores = tuple(float(answer.scores[place]) for answer in answers)
        is_alike = edited.wrong and all(
            answer.alike[place] and not unlearned[answer.model].isdisjoint(words_of(edited.text))
            for answer in answers
        )
        if not is_alike or scores not in seen:
            kept.append(edited)
        seen |= {scores} if is_alike else set()
    if len(kept) == len(edits):
        return kept, answers
    return kept, score(players, picture, caption, [edited.text for edited in kept])


def _compared(player: Player, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return which pairs of texts look the same to the model, shape (n, n), and each cosine with the first text."""
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
    """Return the caption's score minus the score of each edit, shape (n,). For wrong captions, 0 or less is a
    failure.
    """
    return np.float32(answer.true) - answer.scores


def wrong_distance(edits: Sequence[Edited], answer: Answer) -> float:
    """Return how far wrong captions move a model's score: the mean of their absolute margins, NaN if unknown."""
    distances = [
        abs(float(margin))
        for edited, margin in zip(edits, margins(answer), strict=True)
        if edited.wrong and not np.isnan(margin)
    ]
    return sum(distances) / len(distances) if distances else np.nan


def words_that_matter(player: Player, picture: Canvas, caption: str) -> dict[int, float]:
    """Compute how much the caption's score falls without each word, by the word's start index; NaN if unknown."""
    spans = influence.word_spans(caption)
    shortened = [influence.without(caption, *span) for span in spans]
    scores = player.scores([picture], [caption, *shortened])[0]
    return {
        start: float(scores[0] - score) for (start, _), score in zip(spans, scores[1:], strict=True)
    }


def parts_that_matter(player: Player, picture: Canvas, caption: str, wrong: str = "") -> np.ndarray:
    """Compute how much a score falls when each grid cell of the picture is blacked out: shape (GRID, GRID), NaN if
    unknown. The score is the caption's or, with a wrong caption, the margin between the two.
    """
    captions = [caption, *filter(None, [wrong])]
    of_captions = player.scores([picture, *without_parts(picture)], captions)
    scores = of_captions[:, 0] - of_captions[:, 1:].sum(axis=1)
    return (scores[0] - scores[1:]).reshape(GRID, GRID)
