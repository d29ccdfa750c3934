"""Reasons to believe a model, or not, before its numbers: a passport, and checks that a healthy
model passes.

cache/models/<model digest>-<dataset digest>.json
"""

import datetime
import hashlib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.models.doctor import checks as doctor_checks
from vlprobe.models.doctor import passport as doctor_passport
from vlprobe.models.doctor.checks import Check, StoredPictures
from vlprobe.models.doctor.erased import Erased, erased
from vlprobe.scoring.inputs import of_items
from vlprobe.storage import mirror
from vlprobe.storage.files import (
    convert,
    parse_json_object,
    present,
    replace_surrogates,
    unreadable,
    write_json,
)
from vlprobe.storage.files import read as read_regular
from vlprobe.storage.store import Store
from vlprobe.types import Dataset, Item, Lookup, Model, Picture, answers_cases, looks_up

SCHEMA = 1
# items that a model is checked on, drawn at random, no two with the same picture or the same first
# caption
ITEMS = 200
PAIR_ITEMS = 24  # the same for a model that scores pairs, which needs the square of it

Progress = Callable[[str, float, float], None]


@dataclass(frozen=True, slots=True)
class Examination:
    """Passport of one model with its checks on one dataset."""

    model: str
    model_digest: str
    dataset: str
    dataset_digest: str
    passport: Mapping[str, str]
    checks: tuple[Check, ...]
    # of plain edits of the dataset's captions, and of its foils; reported, not judged
    erased: tuple[Erased, ...]
    finished: str


def examine(
    model: Model,
    dataset: Dataset,
    cache: Path,
    progress: Progress = lambda label, done, total: None,
    stored_pictures: StoredPictures | None = None,
) -> Examination:
    """Read the model's passport, check the model on some of the dataset's items, and store the outcome.

    Args:
        model: The model to examine; a check that needs a missing capability does not apply.
        dataset: Items with a picture and a caption; if they have no picture or the model takes none, two captions.
        cache: The store's folder.
        progress: Called with (label, done, total); may raise to stop.
        stored_pictures: The model's embeddings of these pictures, None if any is missing, in which case they are
        computed.

    Raises:
        InvalidInput: the dataset has no such item, or a picture cannot be read.
    """
    if model.capabilities.asks_server and not model.digest:
        raise InvalidInput(
            f"'{model.name}' is only queried during runs, because requests may cost money. "
            "Start a run; it includes the checks that are possible."
        )
    items = [] if looks_up(model) else sample(dataset.items, model)
    if not items and not answers_cases(model) and not looks_up(model):
        raise InvalidInput(
            f"Dataset '{dataset.name}' cannot be used to check '{model.name}'. Expected "
            "items with a picture and a caption, or with two captions for a text encoder."
        )
    label = f"Examining {model.name} on {dataset.name}"
    progress(label, 0, 1)
    passport = doctor_passport.read_passport(model)
    if answers_cases(model):
        checks = doctor_checks.of_answers(model)
    elif looks_up(model):
        checks = doctor_checks.of_lookup(model, looked_up(model, dataset, cache))
    else:
        similarity = doctor_checks.similarities(
            model, items, lambda done, total: progress(label, done, total), stored_pictures
        )
        checks = [
            doctor_checks.preprocessing(model),
            doctor_checks.activation(model),
            doctor_checks.text_batch(model, items),
            doctor_checks.image_batch(model, items),
            doctor_checks.finite(similarity),
            *doctor_checks.matching(similarity),
        ]
    examination = Examination(
        model=model.name,
        model_digest=model.digest,
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        passport=passport,
        checks=tuple(checks),
        erased=()
        if answers_cases(model) or looks_up(model)
        else tuple(erased(plain_edits(items), model)),
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    path = cache / "models" / f"{model.digest}-{dataset.digest}.json"
    write_json(path, _plain(examination))
    mirror.publish(path)
    return examination


def looked_up(model: Lookup, dataset: Dataset, cache: Path) -> doctor_checks.Similarities:
    """Similarities of pictures with first captions, or of second captions with first ones if the model has no
    pictures, as it looks them up; for ITEMS items for which it has both.

    If no run has bound the model to its inputs, it is bound to these items.
    """
    if not model.is_bound:
        inputs = of_items(dataset.items, cache)
        model.bind(inputs, f"doctor {dataset.digest}", is_gallery=False)
    sees = model.capabilities.embeds_images or model.capabilities.has_matrix
    usable = [
        item for item in dataset.items if (item.image if sees else len(set(item.captions)) > 1)
    ]
    items = _distinct(usable)[: 10 * ITEMS]
    captions = model.text_vectors([item.captions[0] for item in items])
    if sees:
        left = model.image_vectors([item.image for item in items if item.image])
    else:
        left = model.text_vectors([item.captions[1] for item in items])
    is_missing = np.isnan(left).any(axis=1) | np.isnan(captions).any(axis=1)
    has_both = np.flatnonzero(~is_missing)[:ITEMS]
    scores = model.similarity(left[has_both], captions[has_both]).astype(np.float64)
    names = ("pictures" if sees else "second captions", "captions" if sees else "first captions")
    n_bad = int((~np.isfinite(scores)).sum())
    return doctor_checks.Similarities(scores, n_bad, scores.size, names)


def _plain(examination: Examination) -> dict:
    """Convert to JSON values; the passport becomes a list, because JSON keys are sorted and its order matters."""
    return {"schema": SCHEMA, **asdict(examination), "passport": list(examination.passport.items())}


def sample(items: Sequence[Item], model: Model) -> list[Item]:
    """Return the items that a model is tried on, all with their pictures or all without, none like
    another.

    Without pictures it is two different captions that must find each other.
    """
    capabilities = model.capabilities
    usable = [item for item in items if item.image and not item.image.absent and item.captions]
    if not usable or not capabilities.takes_pictures:
        usable = [replace(item, image=None) for item in items if len(set(item.captions[:2])) > 1]
        usable = usable if capabilities.embeds_texts else []
    return _distinct(usable)[: PAIR_ITEMS if capabilities.scores_pairs else ITEMS]


def _distinct(items: Sequence[Item]) -> list[Item]:
    """Shuffle the items and drop those with the picture or the first caption of an earlier one."""
    shuffled = sorted(items, key=lambda item: hashlib.sha256(f"doctor/{item.id}".encode()).digest())
    sampled: list[Item] = []
    used: set[Picture | str] = set()
    for item in shuffled:
        picture_and_caption = {item.captions[0], *([item.image] if item.image else [])}
        if not picture_and_caption & used:
            used |= picture_and_caption
            sampled.append(item)
    return sampled


def plain_edits(items: Sequence[Item]) -> pa.Table:
    """Small changes to captions that a tokenizer may undo, and the foils, as a table of cases."""
    rows = []
    for item in items:
        for caption in item.captions:
            edits = [
                ("lower case", "same", caption.lower()),
                ("no punctuation", "same", " ".join(re.findall(r"\w+", caption))),
                ("one more word", "different", f"{caption} dog"),
            ]
            rows += [
                ("caption", rule, [caption, text], role)
                for rule, role, text in edits
                if text != caption
            ]
        rows += [("foil", "foil", [*item.captions, foil], "different") for foil in item.foils]
    return pa.table(
        {
            "id": [str(number) for number in range(len(rows))],
            "item": [""] * len(rows),
            "kind": [kind for kind, _, _, _ in rows],
            "rule": [rule for _, rule, _, _ in rows],
            "texts": [texts for _, _, texts, _ in rows],
            "roles": [
                ["original", *["same"] * (len(texts) - 2), role] for _, _, texts, role in rows
            ],
            "images": pa.array([[]] * len(rows), pa.list_(pa.string())),
        }
    )


def load(store: Store, digest: str = "*") -> list[Examination]:
    """Return the stored examinations of the model with this digest, or of all models, latest first."""
    return _read_all(store, digest)[0]


def read_errors(store: Store) -> list[InvalidInput]:
    """List the errors of stored examinations that cannot be read or are damaged."""
    try:
        os.listdir(store.root / "models")
    except PermissionError as error:
        return [unreadable(store.root / "models", error)]
    except OSError:  # nothing was examined yet
        return []
    return _read_all(store, "*")[1]


def _read_all(store: Store, digest: str) -> tuple[list[Examination], list[InvalidInput]]:
    examinations: list[Examination] = []
    errors: list[InvalidInput] = []
    # The same examination may be in several folders: that in the first counts.
    paths = {
        path.name: path
        for root in reversed(store.roots)
        for path in sorted((root / "models").glob(f"{digest}-*.json"))
    }
    for _, path in sorted(paths.items()):
        try:
            if examination := read(path):
                examinations.append(examination)
        except InvalidInput as error:
            if present(path):  # it was not removed meanwhile
                errors.append(error.with_traceback(None))  # callers keep it
    examinations.sort(key=lambda each: (each.finished, each.dataset), reverse=True)
    return examinations, errors


def read(path: Path) -> Examination | None:
    """Return the examination in a file; None if it was stored in another form. Raises InvalidInput."""
    try:
        content = replace_surrogates(parse_json_object(read_regular(path).decode()))
        if content.pop("schema") != SCHEMA:
            return None
        content["passport"] = dict(content["passport"])
        return convert(content, Examination)
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, TypeError, KeyError):
        raise StoredDamage(f"'{path}' is damaged.") from None


def warnings(store: Store) -> dict[tuple[str, str], list[str]]:
    """One line for each failed check, by the digests of model and dataset: shown next to that model's numbers on it."""
    lines: dict[tuple[str, str], list[str]] = {}
    for examination in load(store):
        lines.setdefault((examination.model_digest, examination.dataset_digest), []).extend(
            f"Check '{check.name}' failed on {examination.dataset}. Expected: {check.meaning} "
            f"{'' if math.isnan(check.value) else f'Found {check.value:.4g}, limit {check.limit:.4g}. '}{check.detail}"
            for check in examination.checks
            if check.passed is False
        )
    return lines


def models_at_chance(store: Store) -> set[tuple[str, str]]:
    """Digests of models and datasets on which they failed a check of being better than chance."""
    return {
        (examination.model_digest, examination.dataset_digest)
        for examination in load(store)
        if any(
            check.passed is False and check.name in doctor_checks.CHANCE
            for check in examination.checks
        )
    }
