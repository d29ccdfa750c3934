"""Embeddings from a server: POST URL/embeddings, as in OpenAI's API. Pictures are sent as data URLs in
place of texts, with "modality": "image", as Infinity expects them.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vlprobe.models.endpoint import reply
from vlprobe.models.endpoint.budget import estimated_tokens
from vlprobe.models.endpoint.reply import Reply
from vlprobe.models.endpoint.served import (
    EndpointName,
    ServedModel,
    ServedQuestion,
    data_url,
    refuse_absent,
)
from vlprobe.models.from_files.lookup import CosineLookup
from vlprobe.models.from_files.vectors import NEAR, units
from vlprobe.scoring import pictures
from vlprobe.scoring.inputs import text_id
from vlprobe.types import Capabilities, Inputs, Picture

BATCH = {"texts": 64, "pictures": 8}  # inputs per request
FIRST_TEXT = "a photo of a dog"  # the text in the first request, which identifies the model


class ServedEmbeddings(ServedModel, CosineLookup):
    """A model that looks up embeddings that a server returned."""

    def __init__(self, parsed: EndpointName) -> None:
        super().__init__(
            parsed, "embeddings", parsed.picture_settings if parsed.sees_pictures else "texts"
        )
        self.dim = 0  # until the model is opened
        self._vectors: dict[str, np.ndarray] = {}  # embeddings in a run, by key, shape (dim,)
        self._picture_keys: dict[str, str] = {}  # by the picture's name
        self._bound_to = ""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model, which embeds texts, and pictures if its name has `+pictures`."""
        return replace(super().capabilities, dim=self.dim, image_dim=self.dim)

    @property
    def is_bound(self) -> bool:
        """Whether the embeddings for a run are loaded."""
        return bool(self._bound_to)

    def first_question(self) -> ServedQuestion:
        """Build the first request, which embeds one text to identify the model."""
        return self._question("texts", {text_id(FIRST_TEXT): FIRST_TEXT}, "the first request")

    def learn(self, answer: Reply, question: ServedQuestion) -> None:
        """Store the embedding dimension, which the first answer shows."""
        self.dim = len(_vector(answer.content["data"][0], "the first request"))

    def bind(self, inputs: Inputs, key: str, *, is_gallery: bool) -> str:
        """Load the embeddings for the pictures and texts in a run. Embeddings that the log lacks are requested."""
        if self._bound_to == key:
            return ""
        with self.locked():
            texts = {keys[0]: text for text, keys in inputs.texts()}
            images: dict[str, Picture] = {}
            for picture, keys in inputs.pictures() if self.parsed.sees_pictures else ():
                refuse_absent(picture, self.name)
                images[keys[0]] = picture
                self._picture_keys[picture.name] = keys[0]
            kept = {name for answer in self.log for name in answer.questions}
            questions = self._questions("texts", texts, kept)
            questions += self._questions("pictures", images, kept)
            self.ask(questions, len(kept & (texts.keys() | images.keys())))
        self._vectors = {}
        for answer in self.log:
            if not (needed := {*answer.questions} & (texts.keys() | images.keys())):
                continue
            label = "a kept request"
            vectors = _rows(reply.parse(answer.body, label), len(answer.questions), label)
            rows = units(vectors).astype(np.float32)
            for name, unit in zip(answer.questions, rows, strict=True):
                if name in needed:
                    self._vectors.setdefault(name, unit)
        self._bound_to = key
        return ""

    def _questions(
        self, side: str, contents: Mapping[str, str] | Mapping[str, Picture], kept: set[str]
    ) -> list[ServedQuestion]:
        """Build one request for each batch of inputs that the log lacks."""
        lacking = [(key, content) for key, content in contents.items() if key not in kept]
        questions = []
        for start in range(0, len(lacking), BATCH[side]):
            batch = dict(lacking[start : start + BATCH[side]])
            first = lacking[start][1]
            name = first.name if isinstance(first, Picture) else first
            label = (
                f"the request for {side} {start + 1:,} to {start + len(batch):,} of {len(lacking):,} "
                f"(first: '{name[:60]}')"
            )
            questions.append(self._question(side, batch, label))
        return questions

    def _question(
        self, side: str, batch: Mapping[str, str | Picture], label: str
    ) -> ServedQuestion:
        def payload() -> dict[str, object]:
            body: dict[str, object] = {
                "model": self.parsed.address.model,
                "input": [
                    data_url(pictures.open_picture(content), self.parsed.side)
                    if isinstance(content, Picture)
                    else content
                    for content in batch.values()
                ],
                "encoding_format": "float",
            }
            if side == "pictures":
                body["modality"] = "image"
            if self.parsed.dimensions:
                body["dimensions"] = self.parsed.dimensions
            return body

        tokens = sum(
            self.parsed.picture_tokens
            if isinstance(content, Picture)
            else estimated_tokens(content)
            for content in batch.values()
        )
        return ServedQuestion(tuple(batch), payload, tokens, label)

    def check(self, answer: Reply, question: ServedQuestion) -> None:
        """Raise InvalidInput unless the answer has a valid vector with the right dimension for each input."""
        vectors = _rows(answer, len(question.names), question.label)
        expected = self.dim or self.parsed.dimensions or vectors.shape[1]
        if vectors.shape[1] != expected:
            raise reply.strange(
                question.label,
                f"its vectors have {vectors.shape[1]} dimensions instead of {expected}",
            )
        lengths = np.linalg.norm(vectors, axis=1)
        if not lengths.all():
            raise reply.strange(question.label, "a vector is all zeros")
        off = np.abs(lengths - 1) > NEAR
        if off.any() and not self.parsed.normalise:
            raise reply.strange(
                question.label,
                f"a vector has length {lengths[off][0]:.4g}. Expected 1; to normalize embeddings, "
                f"write '{self.name}+normalise'",
            )

    def text_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the embeddings of the texts, float32 with shape (n, dim), NaN for texts outside the run."""
        return self._get([text_id(text) for text in texts])

    def image_vectors(self, images: Sequence[Picture]) -> np.ndarray:
        """Return the embeddings of the pictures, float32 with shape (n, dim), NaN for pictures outside the run."""
        return self._get([self._picture_keys.get(picture.name, "") for picture in images])

    def _get(self, keys: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(keys), self.dim), np.nan, dtype=np.float32)
        for row, key in enumerate(keys):
            if key in self._vectors:
                vectors[row] = self._vectors[key]
        return vectors


def _rows(answer: Reply, count: int, label: str) -> np.ndarray:
    """Return the vectors in an answer in the order of the inputs, float64, shape (count, dim). Raises InvalidInput."""
    listed = reply.entries(answer.content, "data", label)
    if len(listed) != count:
        raise reply.strange(label, f"{len(listed)} vectors were returned for {count} inputs")
    indices = [entry.get("index", row) for row, entry in enumerate(listed)]
    if sorted(map(str, indices)) != sorted(map(str, range(count))):
        raise reply.strange(label, "its 'index' values do not match the inputs")
    entry_of_index = dict(zip(map(int, indices), listed, strict=True))
    vectors = [_vector(entry_of_index[index], label) for index in range(count)]
    if len({len(vector) for vector in vectors}) > 1:
        raise reply.strange(label, "its vectors have different lengths")
    return np.array(vectors, dtype=np.float64)


def _vector(entry: Mapping[str, object], label: str) -> Sequence[float]:
    """Decode a vector from numbers, or from base64 float32, which some servers send unasked. Raises InvalidInput."""
    embedding = entry.get("embedding")
    if isinstance(embedding, str):
        try:
            values = np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").tolist()
        except (binascii.Error, ValueError):
            raise reply.strange(label, "an 'embedding' is not base64 of float32 numbers") from None
    else:
        values = embedding
    if not isinstance(values, list) or not values:
        raise reply.strange(label, "an 'embedding' is not a list of numbers")
    return [reply.number(value, "a number of a vector", label) for value in values]
