"""The captions of an item as RoCOCO's policies alter them, and the encoders that vote on the word
to alter (papers/rococo.txt).
"""

import functools
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
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
from vlprobe.types import Case, Edit, Item, Picture, Role, TextEncoder, embeds_texts

PRECISION = "fp32"  # that votes are counted in


def altered_captions(
    item: Item,
    policy: str,
    voters: Sequence[str],
    seed: int,
    foreign: Collection[str] = (),
) -> tuple[list[str], Mapping[str, int]]:
    """The item's captions as a policy alters them, and how many could not be altered for each
    reason; those in another language, `foreign`, are not altered.
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
    pairs = list(zip(item.captions, altered, strict=True))
    foils = [
        altered_one.text for caption, altered_one in pairs if altered_one and caption not in foreign
    ]
    if n_foreign := sum(caption in foreign for caption in item.captions):
        dropped = {**dropped, NOT_IN_ENGLISH: n_foreign}
    return foils, {f"{policy}: {reason}": count for reason, count in dropped.items()}


def caption_cases(
    item: Item,
    image: Picture,
    policies: Sequence[str],
    voters: Sequence[str],
    seed: int,
    foreign: frozenset[str],
) -> tuple[list[Case], Counter[str]]:
    """The query of a picture in the gallery of each policy, and how many captions could not be altered for
    each reason. Without one in English it is not asked where rules alter captions.
    """
    cases, dropped = [], Counter[str]()
    for policy in policies:
        foils, reasons = altered_captions(item, policy, voters, seed, foreign)
        dropped.update(reasons)
        if foils or not foreign or not foreign.issuperset(item.captions):
            cases.append(_query(item, image, policy, foils))
    return cases, dropped


def file_foils(item: Item, edits: EditsFile) -> list[str]:
    """The altered captions that a file has for an item."""
    return [row.text for text in item.captions for row in edits.of(item, text, "different")]


def file_caption_cases(
    item: Item, image: Picture, edits: EditsFile
) -> tuple[list[Case], Counter[str]]:
    """The query of a picture in the gallery that holds a file's altered captions: of each subtype one."""
    by_policy: dict[str, list[str]] = {}
    for text in item.captions:
        for row in edits.of(item, text, "different"):
            policy = f"{FROM_FILE}:{row.subtype}" if row.subtype else FROM_FILE
            by_policy.setdefault(policy, []).append(row.text)
    cases = [_query(item, image, policy, foils) for policy, foils in by_policy.items()]
    return cases, Counter() if cases else Counter({NO_EDIT: 1})


def _query(item: Item, image: Picture, policy: str, foils: Sequence[str]) -> Case:
    same: list[Role] = ["same"] * (len(item.captions) - 1)
    different: list[Role] = ["different"] * len(foils)
    return Case(
        f"{item.id}/i2t/{policy}",
        item.id,
        item.id,
        (image,),
        (*item.captions, *foils),
        ("original", *same, *different),
        Edit("i2t", policy, policy),
    )


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
