"""The examination of a model on a dataset, which shows whether its numbers can be trusted: a passport with facts, and
health checks.

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
from vlprobe.scoring.inputs import RunInputs
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
# number of items that a model is checked on, drawn at random; no two items have the same picture or the
# same first caption
ITEMS = 200
PAIR_ITEMS = 24  # the same for a model that scores pairs, which needs the square of this number

Progress = Callable[[str, float, float], None]


@dataclass(frozen=True, slots=True)
class Examination:
    """The passport of a model, with the results of its checks on one dataset."""

    model: str
    model_digest: str
    dataset: str
    dataset_digest: str
    passport: Mapping[str, str]
    checks: tuple[Check, ...]
    # erased edits among plain edits of the dataset's captions and among its foils; reported, not judged
    erased: tuple[Erased, ...]
    finished: str


def examine(
    model: Model,
    dataset: Dataset,
    cache: Path,
    progress: Progress = lambda label, done, total: None,
    stored_pictures: StoredPictures | None = None,
) -> Examination:
    """Read the model's passport, check the model on some items from the dataset, and store the results.

    Args:
        model: The model to examine. A check that needs a missing capability does not apply.
        dataset: The dataset to use. Its items need a picture and a caption, or two captions if there are no pictures or
            the model does not take pictures.
        cache: The cache folder.
        progress: A function that is called with (label, done, total); it may raise to stop.
        stored_pictures: A function that returns the model's stored embeddings of pictures, or None if any is missing,
            in which case they are computed.

    Raises:
        InvalidInput: The dataset has no usable items, or a picture cannot be read.
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
    # A list keeps the order of the passport, because keys are sorted
    fields = asdict(examination) | {"passport": list(examination.passport.items())}
    write_json(path, {"schema": SCHEMA, **fields})
    mirror.publish(path)
    return examination


def looked_up(model: Lookup, dataset: Dataset, cache: Path) -> doctor_checks.Similarities:
    """Look up similarities between pictures and first captions, or between second and first captions if the model has
    no pictures. At most ITEMS items are used, and only those for which the model has both sides.

    If no run has bound the model to its inputs, it is bound to the items in the dataset.
    """
    if not model.is_bound:
        inputs = RunInputs(dataset.items, cache=cache)
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


def sample(items: Sequence[Item], model: Model) -> list[Item]:
    """Return the items that a model is checked on, all with pictures or all without. No two items share a
    picture or a first caption.

    Without pictures, each item has two different captions that must find each other.
    """
    capabilities = model.capabilities
    usable = [item for item in items if item.image and not item.image.absent and item.captions]
    if not usable or not capabilities.takes_pictures:
        usable = [replace(item, image=None) for item in items if len(set(item.captions[:2])) > 1]
        usable = usable if capabilities.embeds_texts else []
    return _distinct(usable)[: PAIR_ITEMS if capabilities.scores_pairs else ITEMS]


def _distinct(items: Sequence[Item]) -> list[Item]:
    """Shuffle the items, and drop items that share the picture or the first caption with an earlier item."""
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
    """Create a case table with small caption edits that a tokenizer may undo, and with the foils."""
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
    """Return the stored examinations for a model digest, or for all models, latest first."""
    return _read_all(store, digest)[0]


def read_errors(store: Store) -> list[InvalidInput]:
    """Return an error for each stored examination that is damaged or cannot be read."""
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
    # The same examination may be in several folders; the first folder counts.
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
    """Read an examination from a file, or return None if it has another schema version. Raises InvalidInput."""
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
    """Return one line for each failed check, by the digests of model and dataset, to be shown with their results."""
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
    """Return the model digest and dataset digest for each model that was not better than chance in some check."""

    def find() -> set[tuple[str, str]]:
        return {
            (examination.model_digest, examination.dataset_digest)
            for examination in load(store)
            if any(
                check.passed is False and check.name in doctor_checks.CHANCE
                for check in examination.checks
            )
        }

    return store.listing_fact("models at chance", find)
