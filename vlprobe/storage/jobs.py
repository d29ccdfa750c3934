"""Files of a job, validated on reading: a file with one value of another type than what is written is damaged.

    cache/jobs/<id>/request.json    the fields of a run or of a training, and `created`
                    status.json     its state and progress; absent before its first start
                    process.json    {"pid": ...}

A folder whose name is no id, such as a file manager's copy, is not read.
"""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.storage.files import parse_json_object, present, read, unreadable_message

ID = re.compile("[0-9a-f]{1,40}")
ENDED = ("done", "failed", "cancelled", "dead")
STATES = ("queued", "running", *ENDED)
MAX_NUMBER = 1e11  # also of seconds since 1970: datetime has no later year


Check = Callable[[object], bool]


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.encode() or True)  # encode raises for half a surrogate pair


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_NUMBER


def _whole(value: object) -> bool:
    return _number(value) and isinstance(value, int)


def _truth(value: object) -> bool:
    return isinstance(value, bool)


def _options(value: object) -> bool:
    return isinstance(value, dict) and bool(json.dumps(value, ensure_ascii=False).encode())


def _state(value: object) -> bool:
    return value in STATES


def _fields(**names: str) -> dict[str, Check]:
    """The check of each field, from the names of the fields of each type."""
    checks = {"text": _text, "texts": _texts, "number": _number, "whole": _whole, "truth": _truth, "options": _options}
    return {name: checks[kind] for kind, field_names in names.items() for name in field_names.split()}


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
PROCESS: dict[str, Check] = {"pid": lambda value: isinstance(value, int) and _whole(value) and 0 < value < 2**31}


def folders(root: Path) -> list[Path]:
    """The folders of all jobs of a cache that have a request, sorted by id."""
    try:
        names = sorted(os.listdir(root / "jobs"))
    except OSError:
        return []
    return [root / "jobs" / name for name in names if ID.fullmatch(name) and is_job(root / "jobs" / name)]


def is_job(folder: Path) -> bool:
    """Whether the folder has a request, readable or not."""
    return present(folder / "request.json")


def request(folder: Path) -> dict[str, Any]:
    """The job's request. Raises InvalidInput where it is damaged, FileNotFoundError where it is gone."""
    fields = _read(folder / "request.json")
    training = "datasets" in fields
    required = {"model", "datasets", "output"} if training else {"models", "dataset", "probe"}
    return _checked(folder / "request.json", fields, TRAINING if training else RUN, required | {"created"})


def status(folder: Path) -> dict[str, Any]:
    """The job's latest status. Raises as `request` does."""
    path = folder / "status.json"
    return _checked(path, _read(path), STATUS, {"state"})


def pid(folder: Path) -> int:
    """The id of the job's process. Raises as `request` does."""
    path = folder / "process.json"
    return _checked(path, _read(path), PROCESS, {"pid"})["pid"]


def _read(path: Path) -> dict[str, Any]:
    try:
        return parse_json_object(read(path).decode())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInput(unreadable_message(path, error)) from None
    except ValueError:
        raise _damaged(path) from None


def _checked(path: Path, fields: dict[str, Any], checks: Mapping[str, Check], required: set[str]) -> dict[str, Any]:
    try:
        valid = required <= set(fields) <= set(checks) and all(checks[name](value) for name, value in fields.items())
    except (ValueError, TypeError, RecursionError):  # half a surrogate pair; an unhashable state
        valid = False
    if not valid or not all(math.isfinite(value) for value in fields.values() if isinstance(value, float)):
        raise _damaged(path)
    return fields


def _damaged(path: Path) -> InvalidInput:
    return InvalidInput(f"'{path}' is damaged. Run `vlprobe verify --repair`, then start the run anew.")
