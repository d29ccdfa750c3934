"""Tells a model that looks things up which pictures and texts a run shows to it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.models.from_files.lookup import BoundLookup
from vlprobe.runs.context import RunContext
from vlprobe.scoring.inputs import RunInputs
from vlprobe.storage import files
from vlprobe.types import Model, Run, looks_up

QUESTIONS = "questions.json"  # that `vlprobe ask` wrote, next to the answers
MOST_BYTES = 1 << 20


def bind(context: RunContext, model: Model) -> str:
    """Bind a lookup model to all inputs of the run; do nothing for any other model.

    Returns:
        A note for readers about missing rows, "" if there are none.

    Raises:
        InvalidInput: rows are missing, and missing rows are not allowed.
    """
    if not looks_up(model):
        return ""
    probe, root = context.probe, context.store.root
    candidates = probe.candidates(context.run, context.items, context.read_cases, root)
    inputs = RunInputs(context.items, context.read_cases, candidates, root)
    try:
        return model.bind(inputs, context.run.key, is_gallery=probe.needs == "gallery")
    except InvalidInput as error:
        if isinstance(model, BoundLookup) and (words := _asked_otherwise(model.file, context.run)):
            raise InvalidInput(f"{error} {words}") from None
        raise


def _asked_otherwise(file: Path, run: Run) -> str:
    """Return in a sentence how the questions next to a file of answers differ from a run's; "" if
    there are none, or they do not differ.
    """
    path = (file if file.is_dir() else file.parent) / QUESTIONS
    try:
        if path.stat().st_size > MOST_BYTES:
            return ""
        facts = files.parse_json_object(files.read(path).decode())
    except (OSError, ValueError):  # there is none, or it is not what `ask` writes
        return ""
    words = " ".join(_differences(facts, run))
    return f"'{path}' was written with {words}: run it with the same." if words else ""


def _differences(facts: Mapping[str, object], run: Run) -> Iterator[str]:
    """Yield the settings of `vlprobe ask` that differ from a run's, as typed."""
    if facts.get("dataset_digest") != run.dataset_digest:
        yield f"--dataset {facts.get('dataset')}"
    for name in ("probe", "seed", "limit"):
        if name in facts and facts[name] != getattr(run, name):
            yield f"--{name} {facts[name]}"
    asked, options = _mapping(facts.get("options")), _mapping(json.loads(json.dumps(run.options)))
    for name in sorted(asked.keys() | options.keys()):
        if asked.get(name) != options.get(name):
            yield f"--option {name}={','.join(_texts(asked.get(name)))}"
    chosen = _mapping(facts.get("selection"))
    if chosen != run.selection:
        for name, value in chosen.items():
            yield from (f"--{name} {text}" for text in _texts(value))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    """Return the entries of a list, or one value, as texts."""
    return [str(entry) for entry in (value if isinstance(value, list | tuple) else [value])]
