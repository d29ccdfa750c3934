"""Chat models that answer yes or no about a picture and a text: POST URL/chat/completions with log-probabilities.

A score is log p(yes) - log p(no) for the first token of the answer. It uses the most probable tokens
that the server returns (at most 20, as with OpenAI). Tokens that differ only in letter case or blanks
are added up. If yes or no is not among them, the score is unknown, and such scores are counted.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
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
from vlprobe.models.hf_gen import QUESTION, check_template
from vlprobe.scoring import pictures
from vlprobe.scoring.inputs import text_id
from vlprobe.types import CaseAnswerer, Picture, Reader

if TYPE_CHECKING:
    import pyarrow as pa

YES, NO = "yes", "no"
BLANKS = " \t\r\n▁Ġ"  # includes the symbols for a blank in some tokenizers
UNLIKELY = -9998.0  # a lower value, such as -9999, marks a token outside the most probable ones
FIRST_TEXT = "a grey square"  # the text in the trial request that every run begins with


class _Pair(NamedTuple):
    """A picture's name and a text, as they appear in the case table."""

    picture: str
    text: str


class ServedJudge(ServedModel, CaseAnswerer):
    """A chat model on a server that decides whether a picture shows what a text describes."""

    def __init__(self, parsed: EndpointName) -> None:
        self._template = parsed.template or QUESTION
        check_template(parsed.name, self._template, 1)
        how = [self._template, YES, NO, parsed.picture_settings, parsed.top]
        reading = "probability" if parsed.gives_probability else "log-odds"
        super().__init__(parsed, "chat/completions", how, reading)
        self.n_scores = 0
        self._scores: dict[_Pair, float] = {}  # NaN if yes or no was not among the answers

    def first_question(self) -> ServedQuestion:
        """Build the trial request: a question about a plain gray square that identifies the model."""
        return self._question("first", None, FIRST_TEXT, "the first request")

    def _question(
        self, name: str, picture: Picture | None, text: str, label: str
    ) -> ServedQuestion:
        words = self._template.format(text)

        def payload() -> dict[str, object]:
            image = (
                pictures.open_picture(picture) if picture else Image.new("RGB", (32, 32), "gray")
            )
            content = [
                {"type": "image_url", "image_url": {"url": data_url(image, self.parsed.side)}},
                {"type": "text", "text": words},
            ]
            return {
                "model": self.parsed.address.model,
                "messages": [{"role": "user", "content": content}],
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": True,
                "top_logprobs": self.parsed.top,
            }

        tokens = estimated_tokens(words) + self.parsed.picture_tokens
        return ServedQuestion((name,), payload, tokens, label)

    def check(self, answer: Reply, question: ServedQuestion) -> None:
        """Raise InvalidInput unless the answer has log-probabilities for its first token."""
        _log_odds(answer, question.label)

    def check_cases(self, cases: Reader) -> str:
        """Send a request for every picture and text in the cases that has no answer in the log. Return a note."""
        log = self.log
        # Maps each pair to its name in the log, which depends on the picture's content and the text
        pairs: dict[_Pair, str] = {}
        content_keys: dict[str, str] = {}
        n_of_texts = 0
        for block in cases(("images", "texts")):
            n_of_texts += block["images"].combine_chunks().value_lengths().to_pylist().count(0)
            for pair in _in_order(block):
                if pair.picture not in content_keys:
                    picture = Picture.from_name(pair.picture)
                    refuse_absent(picture, self.name)
                    key = pictures.content_key(pictures.read(picture), picture.edit_key)
                    content_keys[pair.picture] = key.hex()
                pairs[pair] = f"{content_keys[pair.picture]} {text_id(pair.text)}"
        if not pairs:
            raise InvalidInput(
                f"All cases compare only texts, but '{self.name}' answers questions about "
                "pictures. Choose a model with text embeddings."
            )
        pair_of_name = {name: pair for pair, name in pairs.items()}
        with self.locked():
            kept = {name for answer in log for name in answer.questions}
            lacking = [name for name in pair_of_name if name not in kept]
            questions = []
            for number, name in enumerate(lacking, 1):
                text, picture_name = pair_of_name[name].text, pair_of_name[name].picture
                picture = Picture.from_name(picture_name)
                label = f"the request {number:,} of {len(lacking):,} ('{text[:60]}' with '{picture.path.name[:60]}')"
                questions.append(self._question(name, picture, text, label))
            self.ask(questions, len(pair_of_name) - len(lacking))
        odds = {
            answer.questions[0]: _log_odds(reply.parse(answer.body, "a kept request"), "a kept one")
            for answer in log
            if answer.questions[0] in pair_of_name
        }
        self._scores = {pair: odds[name] for pair, name in pairs.items()}
        self.n_scores = len(self._scores)
        n_unknown = sum(math.isnan(score) for score in self._scores.values())
        notes = []
        if n_unknown:
            notes.append(
                f"{n_unknown:,} of {len(pairs):,} answers do not have both yes and no among their "
                f"{self.parsed.top} most probable words: their cases are unknown"
            )
        if n_of_texts:
            notes.append(f"{n_of_texts:,} cases compare only texts and are unknown")
        return "; ".join(notes)

    def answers(self, cases: "pa.Table") -> np.ndarray:
        """Return the scores for the pictures and texts in each case, picture by picture, float32 with shape
        (n_pairs,).
        """
        odds = np.array([self._scores[pair] for pair in _in_order(cases)], dtype=np.float64)
        scores = 1 / (1 + np.exp(-odds)) if self.parsed.gives_probability else odds
        return scores.astype(np.float32)


def _in_order(cases: "pa.Table") -> Iterator[_Pair]:
    columns = (cases[name].to_pylist() for name in ("images", "texts"))
    for images, texts in zip(*columns, strict=True):
        yield from (_Pair(image, text) for image in images for text in texts)


def _log_odds(answer: Reply, label: str) -> float:
    """Compute log p(yes) - log p(no), or NaN if one of the words is absent. Raises InvalidInput."""
    choice = reply.entries(answer.content, "choices", label)[0]
    log_probabilities = choice.get("logprobs")
    if not isinstance(log_probabilities, dict):
        raise reply.strange(label, "it has no log-probabilities ('logprobs')")
    token = reply.entries(log_probabilities, "content", label)[0]
    log_probability_of: dict[str, float] = {}
    for entry in (token, *reply.entries(token, "top_logprobs", label)):
        text, value = entry.get("token"), entry.get("logprob")
        if not isinstance(text, str):
            raise reply.strange(label, "one of its tokens is not text")
        log_probability_of[text] = reply.number(value, "a log-probability", label)
        if log_probability_of[text] > 0.001:
            raise reply.strange(label, f"a log-probability is {value}, but must be 0 or less")
    words = {YES: [], NO: []}  # log-probabilities of all tokens that spell each word
    for text, value in log_probability_of.items():
        if value > UNLIKELY:
            words.setdefault(text.strip(BLANKS).lower(), []).append(value)
    yes, no = (np.logaddexp.reduce(words[word]) if words[word] else math.nan for word in (YES, NO))
    return float(yes - no)
