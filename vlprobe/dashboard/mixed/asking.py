"""Run models at every share of one mixture, and cache their answers for all pages and people."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
from PIL import Image

from vlprobe.dashboard.loaded import load_player, loads_at_once
from vlprobe.datasets import drawn
from vlprobe.errors import VlprobeError
from vlprobe.scoring import mixtures, pictures
from vlprobe.scoring.mixtures import ShareScores
from vlprobe.storage import containers
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture
from vlprobe.views.mixed.case import MixedCase
from vlprobe.views.runs import QuestionSet

KEPT_SCORES = 4096  # answers of a model to a case at all shares
KEPT_PIXELS = 128 << 20  # bytes of mixtures that several models share
MOST_ASKED = 9  # models that run without a click; the selected one is among them
Asked = tuple[str, ...]

# 43 ms of CPU for a case at all shares with a demo model, of up to nine.
_scores = SingleFlightCache(KEPT_SCORES)
_mixtures = SingleFlightCache(  # 10 ms, and each model sees the same
    KEPT_PIXELS, lambda images: sum(image.width * image.height * 3 for image in images)
)
_refused: dict[str, str] = {}  # by model: the reason why it cannot run, for available models


@dataclass(frozen=True, slots=True)
class Shares:
    """The answers of the models at every share."""

    scores: dict[str, ShareScores]  # of those that ran
    waiting: Asked  # those that can run and have not yet
    others: Asked  # those that take a press: loading them may take long


def shares_at_hand(
    case: MixedCase, question_set: QuestionSet, model: str, loaded_names: Sequence[str]
) -> Shares:
    """Return the earlier answers, without running a model.

    Args:
        case: The search.
        question_set: The models and their runs.
        model: The one that is looked at.
        loaded_names: Models that this session has asked to be loaded.
    """
    if case.edit is None:
        return Shares({}, (), ())
    ordered = [model, *(name for name in question_set.ordered_models if name != model)]
    ready = [
        name
        for name in ordered
        if (loads_at_once(name) or name in loaded_names) and name not in _refused
    ]
    scores: dict[str, ShareScores] = {}
    waiting: list[str] = []
    for name in ready[:MOST_ASKED]:
        key = _key(case, question_set.run(name).model_digest)
        if key is None:
            continue
        known = _scores.peek(key)
        if known is None:
            waiting.append(name)
        else:
            scores[name] = known
    others = tuple(
        name
        for name in ordered
        if not loads_at_once(name) and name not in loaded_names and name not in _refused
    )
    return Shares(scores, tuple(waiting), others)


def ask(case: MixedCase, question_set: QuestionSet, models: Sequence[str]) -> None:
    """Run these models, one after the other; one that cannot run is not tried again."""
    for name in models:
        try:
            _ask_one(case, question_set, name)
        except VlprobeError as error:
            _refused[name] = str(error)


def _ask_one(case: MixedCase, question_set: QuestionSet, name: str) -> None:
    digest = question_set.run(name).model_digest
    key = _key(case, digest)
    if key is None or case.edit is None:
        return
    asked_model = load_player(name)
    if asked_model.model.digest != digest or not mixtures.can_ask(asked_model.model):
        _refused[name] = "other weights, or it scores pairs"
        return
    images = _mixtures.get(key[1:], lambda: _made(case))
    _scores.get(key, lambda: asked_model.share_scores(case.caption, images))


def _made(case: MixedCase) -> list[Image.Image]:
    """The picture at every share. Raises InvalidInput if one of the two is not here."""
    if case.edit is None:
        return []
    images = [_opened(Picture.from_name(name)) for name in (case.right, case.partner)]
    return mixtures.pictures_by_share(images[0], images[1], case.edit)


def _opened(picture: Picture) -> Image.Image:
    """Return the picture in the form that a model sees; a drawn scene whose file is missing is drawn again, pixel by
    pixel."""
    if not containers.is_file(picture.path) and (image := drawn.draw(picture)):
        return image
    return pictures.open_picture(picture)


def _key(case: MixedCase, digest: str) -> tuple | None:
    """Return the inputs of an answer, the model first; None if the partner is not known."""
    if case.edit is None:
        return None
    files = [_stamp(Picture.from_name(name)) for name in (case.right, case.partner)]
    return digest, case.caption, case.edit.kind, case.edit.seed, *files


def _stamp(picture: Picture) -> tuple[str, int, int]:
    try:
        status = containers.status(picture.path)
    except OSError:
        return str(picture.path), 0, 0
    return str(picture.path), status.st_size, status.st_mtime_ns


def loaded_here() -> set[str]:
    """The models that this session has asked to be loaded."""
    return st.session_state.setdefault("mixed_loaded", set())
