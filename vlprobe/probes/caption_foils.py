"""Alter captions by RoCOCO's policies, and load the text encoders that vote on which word to alter
(papers/rococo.txt).
"""

import functools
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, substitution
from vlprobe.perturb.edits_file import NO_EDIT, EditsFile
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.probes.rococo_galleries import FROM_FILE, RELEASED
from vlprobe.registry import model_memo
from vlprobe.scoring.inputs import RunInputs, text_id
from vlprobe.types import (
    Case,
    Edit,
    Item,
    Lookup,
    Picture,
    Role,
    TextEncoder,
    embeds_texts,
    looks_up,
)

PRECISION = "fp32"  # precision in which the voting encoders run


@dataclass(frozen=True, slots=True)
class Draws:
    """Settings for choosing the words to replace in a caption, and their replacements."""

    voters: tuple[str, ...] = ()  # names of the encoders that vote on the word to replace
    seed: int = 42  # seed of the run
    caption_seeds: tuple[int, ...] = ()  # one draw of words per seed; (): only the run's seed
    words: substitution.Vocabulary | None = None  # vocabulary of rand-voca; None: the built-in list

    def by_rule(self, policy: str) -> dict[str, int]:
        """Return the seed for each gallery that a policy creates, by rule name."""
        if policy == RELEASED or not self.caption_seeds:
            return {policy: self.seed}
        return {f"{policy}:seed{seed}": seed for seed in self.caption_seeds}


def altered_in_order(
    item: Item, policy: str, draws: Draws, seed: int
) -> tuple[list[substitution.Altered | None], dict[str, int]]:
    """Alter each of an item's captions by a policy.

    Returns:
        The altered captions in the same order as the captions, with None for a caption that cannot be altered, and
        the number of captions that were not altered, by reason.

    Raises:
        InvalidInput: The policy is unknown, or a voter has no text embeddings.
    """
    name, _, detail = policy.partition(":")
    votes = _votes(item.captions, draws.voters) if draws.voters else None
    if name == "delete":
        which = cast(substitution.Deletion, detail)
        return substitution.delete(item.captions, item.id, which, seed=seed, influence=votes)
    if detail and not detail.isdigit():
        raise InvalidInput(
            f"Unknown policy '{policy}'. Expected NAME, NAME:K (2 to 5 words) or delete:WHICH."
        )
    return substitution.alter(
        item.captions,
        item.id,
        name,
        k=int(detail or 1),
        seed=seed,
        influence=votes,
        words=draws.words if name == "rand-voca" else None,
    )


# An item's policies and seeds share one vote; otherwise, four policies would embed all captions four times.
@functools.lru_cache(maxsize=4)
def _votes(
    captions: tuple[str, ...], voters: tuple[str, ...]
) -> list[dict[int, tuple[float, ...]]]:
    spans = [
        [(noun.start, noun.end) for noun in substitution.sources(caption)] for caption in captions
    ]
    return influence.influence(
        captions, spans, [text_encoder(load_voter(voter)) for voter in voters]
    )


def altered_captions(
    item: Item, policy: str, draws: Draws, seed: int, foreign: Collection[str] = ()
) -> tuple[list[str], Mapping[str, int]]:
    """Alter an item's captions by a policy. Also count the captions that could not be altered, by reason.

    The captions in `foreign` are in another language and are skipped.
    """
    if policy == RELEASED:
        return list(item.foils), {}
    altered, dropped = altered_in_order(item, policy, draws, seed)
    pairs = list(zip(item.captions, altered, strict=True))
    foils = [
        altered_one.text for caption, altered_one in pairs if altered_one and caption not in foreign
    ]
    if n_foreign := sum(caption in foreign for caption in item.captions):
        dropped = {**dropped, NOT_IN_ENGLISH: n_foreign}
    return foils, {f"{policy}: {reason}": count for reason, count in dropped.items()}


def caption_cases(
    item: Item, image: Picture, policies: Sequence[str], draws: Draws, foreign: Mapping[str, str]
) -> tuple[list[Case], Counter[str]]:
    """Create the queries for a picture: one query for each gallery (one gallery per policy and seed).

    Captions that could not be altered are counted by reason. If rules alter the captions, a picture without an English
    caption gets no query.
    """
    cases, dropped = [], Counter[str]()
    for policy in policies:
        for rule, seed in draws.by_rule(policy).items():
            foils, reasons = altered_captions(item, policy, draws, seed, foreign)
            dropped.update(reasons)
            if foils or not foreign or not set(item.captions) <= foreign.keys():
                cases.append(_query(item, image, policy, foils, rule))
    return cases, dropped


def file_foils(item: Item, edits: EditsFile) -> list[str]:
    """Return the altered captions that an edits file has for an item."""
    return [row.text for text in item.captions for row in edits.of(item, text, "different")]


def file_caption_cases(
    item: Item, image: Picture, edits: EditsFile
) -> tuple[list[Case], Counter[str]]:
    """Create the queries for a picture: one query for each gallery that an edits file defines (one per subtype)."""
    by_policy: dict[str, list[str]] = {}
    for text in item.captions:
        for row in edits.of(item, text, "different"):
            policy = f"{FROM_FILE}:{row.subtype}" if row.subtype else FROM_FILE
            by_policy.setdefault(policy, []).append(row.text)
    cases = [_query(item, image, policy, foils, policy) for policy, foils in by_policy.items()]
    return cases, Counter() if cases else Counter({NO_EDIT: 1})


def _query(item: Item, image: Picture, policy: str, foils: Sequence[str], rule: str) -> Case:
    texts = (*item.captions, *foils)
    same: list[Role] = ["same"] * (len(item.captions) - 1)
    different: list[Role] = ["different"] * len(foils)
    roles: tuple[Role, ...] = ("original", *same, *different)
    edit = Edit("i2t", policy, rule)
    return Case(f"{item.id}/i2t/{rule}", item.id, item.id, (image,), texts, roles, edit)


def load_voter(name: str) -> TextEncoder | Lookup:
    """Load a text encoder or a file of text embeddings by name, once per process.

    Raises:
        InvalidInput: The model or file has no text embeddings.
    """
    return _loaded_voter(name)[0]


@functools.cache  # called for each item: loading takes a second or more
def _loaded_voter(name: str) -> tuple[TextEncoder | Lookup, int]:
    """Load a text encoder, and return it with the time at which loading started, in nanoseconds since 1970."""
    began = time.time_ns()
    model = registry.load_model(name)
    is_file = looks_up(model) and not model.capabilities.asks_server
    if not (embeds_texts(model) or (is_file and model.capabilities.embeds_texts)):
        raise InvalidInput(
            f"'{name}' has no text embeddings, so it cannot vote on words. Choose a text "
            "encoder, a dual encoder, or a file of embeddings."
        )
    return cast(TextEncoder | Lookup, model), began


def voter_digest(name: str, cache: Path) -> str:
    """Return the digest of an encoder that votes. The encoder is loaded only if its digest is not in the cache.

    Raises InvalidInput for the same reasons as `load_voter`.
    """
    parsed = registry.parse_name("models", name)
    parsed.check()
    if identity := model_memo.look_up(parsed, PRECISION, cache):
        return identity.digest
    model, began = _loaded_voter(name)
    model_memo.remember(model, parsed, PRECISION, cache, began)
    return model.digest


def text_encoder(model: TextEncoder | Lookup) -> Callable[[Sequence[str]], np.ndarray]:
    """Return a function that embeds texts with the model or, if the model is a file, looks up their embeddings.

    The function raises InvalidInput if the file lacks a text; `vlprobe influence --texts` writes all texts needed.
    """
    if embeds_texts(model):
        return lambda texts: model.encode_texts(model.tokenize(texts))
    file = cast(Lookup, model)

    def embed(texts: Sequence[str]) -> np.ndarray:
        key = " ".join(map(text_id, texts))
        inputs = RunInputs(candidates=((), texts))
        file.bind(inputs, f"votes {key}", is_gallery=False)
        return file.text_vectors(texts)

    return embed
