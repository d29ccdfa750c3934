"""The captions of an item as RoCOCO's policies alter them, and the encoders that vote on the word
to alter (papers/rococo.txt).
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, substitution
from vlprobe.probes.rococo_galleries import RELEASED
from vlprobe.registry import model_memo
from vlprobe.types import Item, TextEncoder, embeds_texts

PRECISION = "fp32"  # that votes are counted in


def altered_captions(
    item: Item, policy: str, voters: Sequence[str], seed: int
) -> tuple[list[str], Mapping[str, int]]:
    """The item's captions as a policy alters them, and how many could not be altered for each
    reason.
    """
    if policy == RELEASED:
        return list(item.foils), {}
    name, _, detail = policy.partition(":")
    votes = None
    if voters:
        spans = [
            [(noun.start, noun.end) for noun in substitution.sources(caption)]
            for caption in item.captions
        ]
        votes = influence.influence(
            item.captions, spans, [_text_encoder(load_voter(voter)) for voter in voters]
        )
    if name == "delete":
        which = cast(substitution.Deletion, detail)
        altered, dropped = substitution.delete(
            item.captions, item.id, which, seed=seed, influence=votes
        )
    elif detail and not detail.isdigit():
        raise InvalidInput(
            f"Policy '{policy}' is not known. Expected NAME, NAME:K (2 to 5 words) or delete:WHICH."
        )
    else:
        altered, dropped = substitution.alter(
            item.captions, item.id, name, k=int(detail or 1), seed=seed, influence=votes
        )
    foils = [caption.text for caption in altered if caption]
    return foils, {f"{policy}: {reason}": count for reason, count in dropped.items()}


def load_voter(name: str) -> TextEncoder:
    """The encoder of that name, loaded once a process.

    Raises:
        InvalidInput: It embeds no texts.
    """
    return _loaded_voter(name)[0]


@functools.cache
def _loaded_voter(name: str) -> tuple[TextEncoder, int]:
    """The encoder, and when loading it began, in ns since 1970."""
    began = time.time_ns()
    model = registry.load_model(name)
    if not embeds_texts(model):
        raise InvalidInput(
            f"'{name}' embeds no texts and cannot vote on words. Name a text encoder or a dual encoder."
        )
    return model, began


def voter_digest(name: str, cache: Path) -> str:
    """The digest of an encoder that votes, which is loaded where the cache does not know it.

    Raises InvalidInput as `load_voter` does.
    """
    if identity := model_memo.look_up(name, PRECISION, cache):
        return identity.digest
    model, began = _loaded_voter(name)
    model_memo.remember(model, name, PRECISION, cache, began)
    return model.digest


def _text_encoder(model: TextEncoder) -> Callable[[Sequence[str]], np.ndarray]:
    return lambda texts: model.encode_texts(model.tokenize(texts))
