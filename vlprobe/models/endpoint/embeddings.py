"""Embeddings of a server: POST URL/embeddings, as OpenAI describes it; pictures as data URLs among
the texts, with "modality": "image", as Infinity takes them.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from vlprobe.models.endpoint import reply
from vlprobe.models.endpoint.budget import estimated_tokens
from vlprobe.models.endpoint.reply import Reply
from vlprobe.models.endpoint.served import (
    EndpointName,
    Question,
    ServedModel,
    data_url,
    refuse_absent,
)
from vlprobe.models.from_files.vectors import EXACT, NEAR
from vlprobe.scoring import pictures
from vlprobe.scoring.cases import cosines
from vlprobe.scoring.gallery import similarity_matrix
from vlprobe.scoring.inputs import text_id
from vlprobe.scoring.vectors import VectorStore
from vlprobe.storage.answer_log import KeptAnswer
from vlprobe.types import Capabilities, Inputs, Lookup, Picture

Content = TypeVar("Content")
BATCH = {"texts": 64, "pictures": 8}  # of a request
FIRST_TEXT = "a photo of a dog"  # which every run begins with, to learn which model answers


class ServedEmbeddings(ServedModel, Lookup):
    """A model that looks up embeddings which a server gave."""

    def __init__(self, parsed: EndpointName) -> None:
        super().__init__(
            parsed, "embeddings", parsed.picture_settings if parsed.sees_pictures else "texts"
        )
        self.dim = 0  # until it is opened
        self._vectors = VectorStore(1, None)  # of what a run asked about, by its key in 16 bytes
        self._picture_keys: dict[str, str] = {}  # by the picture's name
        self._bound_to = ""

    @property
    def capabilities(self) -> Capabilities:
        """Embeddings of texts, and of pictures where the name says so."""
        return capabilities_of(self.parsed, self.dim)

    @property
    def is_bound(self) -> bool:
        """Whether it has the embeddings of a run."""
        return bool(self._bound_to)

    def first_question(self) -> Question:
        """A text."""
        return self._question(
            "texts", [(text_id(FIRST_TEXT), FIRST_TEXT)], str, 1, "the first request"
        )

    def learn(self, answer: Reply, question: Question) -> None:
        """The number of dimensions."""
        self.dim = len(_vector(answer.content["data"][0], "the first request"))

    def bind(self, inputs: Inputs, key: str, *, is_gallery: bool) -> str:
        """Asks for the embeddings of a run's pictures and texts that the log lacks."""
        if self._bound_to == key:
            return ""
        with self.locked():
            answered = {name for answer in self.log for name in answer.questions}
            texts = {keys[0]: text for text, keys in inputs.texts()}
            images: dict[str, Picture] = {}
            if self.parsed.sees_pictures:
                for picture, keys in inputs.pictures():
                    refuse_absent(picture, self.name)
                    images[keys[0]] = picture
                    self._picture_keys[picture.name] = keys[0]
            side = self.parsed.side
            self.ask(
                [
                    *self._questions("texts", texts, answered, str, estimated_tokens),
                    *self._questions(
                        "pictures",
                        images,
                        answered,
                        lambda picture: data_url(pictures.open_picture(picture), side),
                        lambda picture: self.parsed.picture_tokens,
                    ),
                ],
                len(answered & (texts.keys() | images.keys())),
            )
        self._vectors = VectorStore(self.dim, None)
        for answer in self.log:
            self._take(answer, texts.keys() | images.keys())
        self._bound_to = key
        return ""

    def _questions(
        self,
        side: str,
        contents: Mapping[str, Content],
        answered: set[str],
        written: Callable[[Content], str],
        tokens: Callable[[Content], int],
    ) -> list[Question]:
        """A request for each batch of what the log lacks."""
        lacking = [(key, content) for key, content in contents.items() if key not in answered]
        questions = []
        for start in range(0, len(lacking), BATCH[side]):
            batch = lacking[start : start + BATCH[side]]
            end = start + len(batch)
            content_name = getattr(batch[0][1], "name", batch[0][1])
            label = (
                f"the request for {side} {start + 1:,} to {end:,} of {len(lacking):,} "
                f"(first: '{str(content_name)[:60]}')"
            )
            n_tokens = sum(tokens(content) for _, content in batch)
            questions.append(self._question(side, batch, written, n_tokens, label))
        return questions

    def _question(
        self,
        side: str,
        batch: Sequence[tuple[str, Content]],
        written: Callable[[Content], str],
        tokens: int,
        label: str,
    ) -> Question:
        def payload() -> dict[str, object]:
            body: dict[str, object] = {
                "model": self.parsed.address.model,
                "input": [written(content) for _, content in batch],
                "encoding_format": "float",
            }
            if side == "pictures":
                body["modality"] = "image"
            if self.parsed.dimensions:
                body["dimensions"] = self.parsed.dimensions
            return body

        return Question(tuple(key for key, _ in batch), payload, tokens, label)

    def check(self, answer: Reply, question: Question) -> None:
        """Raises InvalidInput unless there is a vector of the model's length for each input."""
        vectors = _rows(answer, len(question.names), question.label)
        expected = self.dim or self.parsed.dimensions or vectors.shape[1]
        if vectors.shape[1] != expected:
            raise reply.strange(
                question.label,
                f"vectors of {vectors.shape[1]} numbers. Expected {expected}, as before",
            )
        lengths = np.linalg.norm(vectors, axis=1)
        if not lengths.all():
            raise reply.strange(question.label, "a vector is 0 throughout")
        off = np.abs(lengths - 1) > NEAR
        if off.any() and not self.parsed.normalise:
            raise reply.strange(
                question.label,
                f"a vector has length {lengths[off][0]:.4g}. Expected 1; for such a model write "
                f"'{self.name}+normalise'",
            )

    def _take(self, answer: KeptAnswer, needed: Iterable[str]) -> None:
        """Puts the vectors of an answer beside those of the others, at unit length."""
        rows = [
            row
            for row, key in enumerate(answer.questions)
            if key in needed and _key(key) not in self._vectors
        ]
        if not rows:
            return
        label = "a kept request"
        vectors = _rows(reply.parse(answer.body, label), len(answer.questions), label)[rows]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        off = np.abs(lengths - 1) > EXACT
        units = np.where(off, vectors / np.where(off, lengths, 1), vectors)
        self._vectors.put([_key(answer.questions[row]) for row in rows], units)

    def text_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Float32 of shape (n, dim), NaN for what no run asked about."""
        return self._get([text_id(text) for text in texts])

    def image_vectors(self, images: Sequence[Picture]) -> np.ndarray:
        """Float32 of shape (n, dim), NaN for what no run asked about."""
        return self._get([self._picture_keys.get(picture.name, "") for picture in images])

    def _get(self, names: Sequence[str]) -> np.ndarray:
        keys = [_key(name) for name in names]
        present = np.array([key in self._vectors for key in keys], dtype=bool)
        vectors = np.full((len(keys), self.dim), np.nan, dtype=np.float32)
        vectors[present] = self._vectors.get([keys[row] for row in np.flatnonzero(present)])
        return vectors

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Cosines of all with all."""
        return similarity_matrix(left, right)

    def paired(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Cosines row by row."""
        rows = np.arange(len(left))
        return cosines(left, rows, right, rows)


def capabilities_of(parsed: EndpointName, dim: int = 0) -> Capabilities:
    """What embeddings of that name can be asked."""
    return Capabilities(
        looks_up=True,
        asks_server=True,
        embeds_texts=True,
        embeds_images=parsed.sees_pictures,
        dim=dim,
        image_dim=dim,
    )


def _key(name: str) -> bytes:
    """16 bytes for p- or t- and 16 hex digits; those of nothing for any other."""
    digits = name[2:]
    return (
        name[:1].encode().ljust(8, b"-") + bytes.fromhex(digits) if len(digits) == 16 else b"-" * 16
    )


def _rows(answer: Reply, count: int, label: str) -> np.ndarray:
    """The vectors in the order of what was asked, float64 of shape (count, dim). Raises InvalidInput."""
    listed = reply.entries(answer.content, "data", label)
    if len(listed) != count:
        raise reply.strange(label, f"{len(listed)} vectors for {count} inputs")
    indices = [entry.get("index", row) for row, entry in enumerate(listed)]
    if sorted(map(str, indices)) != sorted(map(str, range(count))):
        raise reply.strange(label, "its 'index' numbers are not those of the inputs")
    entry_of_index = dict(zip(map(int, indices), listed, strict=True))
    vectors = [_vector(entry_of_index[index], label) for index in range(count)]
    if len({len(vector) for vector in vectors}) > 1:
        raise reply.strange(label, "vectors of several lengths")
    return np.array(vectors, dtype=np.float64)


def _vector(entry: Mapping[str, object], label: str) -> Sequence[float]:
    """Numbers, or what base64 of float32 holds, which some servers give unasked. Raises InvalidInput."""
    embedding = entry.get("embedding")
    if isinstance(embedding, str):
        try:
            values = np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").tolist()
        except (binascii.Error, ValueError):
            raise reply.strange(label, "an 'embedding' is no base64 of float32 numbers") from None
    else:
        values = embedding
    if not isinstance(values, list) or not values:
        raise reply.strange(label, "an 'embedding' is no list of numbers")
    return reply.numbers(values, "a number of a vector", label)
