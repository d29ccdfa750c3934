"""What a job leaves on the disk, read with distrust: every value is of the sort that was written, or none is taken.

    cache/jobs/<id>/request.json    what was asked: a run's fields or a training's, and `created`
                    status.json     how far it is; not there before it is first started
                    process.json    {"pid": ...}

A folder whose name is no id, such as a file manager's copy, is no job, and nobody looks into it.
"""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage.files import parse_json, present, read, unreadable_message

ID = re.compile("[0-9a-f]{1,40}")
ENDED = ("done", "failed", "cancelled", "dead")
STATES = ("queued", "running", *ENDED)
LARGEST = 1e11  # of a number, and of seconds since 1970: a later date has no calendar


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.encode() or True)  # half a surrogate pair can be printed nowhere


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _whole(value: object) -> bool:
    return _number(value) and isinstance(value, int)


def _truth(value: object) -> bool:
    return isinstance(value, bool)


def _options(value: object) -> bool:
    return isinstance(value, dict) and bool(json.dumps(value, ensure_ascii=False).encode())


def _state(value: object) -> bool:
    return value in STATES


def _fields(**names: str) -> dict[str, Callable[[object], bool]]:
    """What each field must be, from the names of the fields of each sort."""
    sorts = {"text": _text, "texts": _texts, "number": _number, "whole": _whole, "truth": _truth, "options": _options}
    return {name: sorts[sort] for sort, own in names.items() for name in own.split()}


RUN = _fields(
    text="dataset probe device precision executor ray_address",
    texts="models",
    number="created",
    whole="seed limit batch_size workers memory",
    truth="keep_embeddings examine",
    options="options",
)
TRAINING = _fields(
    text="model output loss freeze scores device precision",
    texts="datasets",
    number="created rate decay margin",
    whole="steps batch_size piece warm_up close seed validate_every workers threads",
    truth="curriculum",
)
STATUS = {"state": _state} | _fields(
    text="label device error", texts="keys", number="done total queued started updated"
)
PROCESS = {"pid": lambda value: _whole(value) and 0 < value < 2**31}


def folders(root: Path) -> list[Path]:
    """The folders of all jobs of a cache that were written down, by their ids."""
    try:
        names = sorted(os.listdir(root / "jobs"))
    except OSError:
        return []
    return [root / "jobs" / name for name in names if ID.fullmatch(name) and is_job(root / "jobs" / name)]


def is_job(folder: Path) -> bool:
    """Whether what was asked is written down there, readable or not."""
    return present(folder / "request.json")


def request(folder: Path) -> dict:
    """What was asked. Raises InvalidInput where it is not what was written, FileNotFoundError where it is gone."""
    given = _read(folder / "request.json", None)
    training = "datasets" in given
    required = {"model", "datasets", "output"} if training else {"models", "dataset", "probe"}
    return _checked(folder / "request.json", given, TRAINING if training else RUN, required | {"created"})


def status(folder: Path) -> dict:
    """What the job last said of itself. Raises as `request` does."""
    return _read(folder / "status.json", STATUS, {"state"})


def pid(folder: Path) -> int:
    """The number of its process. Raises as `request` does."""
    return _read(folder / "process.json", PROCESS, {"pid"})["pid"]


def _read(path: Path, fields: Mapping[str, Callable[[object], bool]] | None, required: set[str] = frozenset()) -> dict:
    try:
        given = parse_json(read(path).decode())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInput(unreadable_message(path, error)) from None
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise _damaged(path)
    return given if fields is None else _checked(path, given, fields, required)


def _checked(path: Path, given: dict, fields: Mapping[str, Callable[[object], bool]], required: set[str]) -> dict:
    try:
        sound = required <= set(given) <= set(fields) and all(fields[name](value) for name, value in given.items())
    except (ValueError, TypeError, RecursionError):  # half a surrogate pair; what no state can be
        sound = False
    if not sound or not all(math.isfinite(value) for value in given.values() if isinstance(value, float)):
        raise _damaged(path)
    return given


def _damaged(path: Path) -> InvalidInput:
    return InvalidInput(f"'{path}' is damaged. Run `vlprobe verify --repair`, then start the run anew.")
