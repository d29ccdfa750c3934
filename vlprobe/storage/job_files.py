"""Files of a job, validated when read: a file with a value of an unexpected type counts as damaged.

    cache/jobs/<id>/request.json    the fields of a run or of a training, or those of several runs
                                    as `requests`; and `created`
                    status.json     its state and progress; absent before its first start
                    process.json    {"pid": ...}

A folder whose name is not an id, such as a file manager's copy, is not read.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from vlprobe.errors import StoredDamage
from vlprobe.storage.files import convert, parse_json_object, present, read, unreadable

ID = re.compile("[0-9a-f]{1,40}")
ENDED = ("done", "failed", "cancelled", "dead")
STATES = ("queued", "running", *ENDED)
MAX_NUMBER = 10**11  # also of seconds since 1970: datetime has no later year

Number = Annotated[float, msgspec.Meta(gt=-MAX_NUMBER, lt=MAX_NUMBER)]
Whole = Annotated[int, msgspec.Meta(gt=-MAX_NUMBER, lt=MAX_NUMBER)]
TYPES: dict[str, Any] = {
    "text": str,
    "texts": list[str],
    "number": Number,
    "whole": Whole,
    "truth": bool,
    "options": dict[str, Any],
    "state": Annotated[str, msgspec.Meta(pattern=rf"^({'|'.join(STATES)})\Z")],
    "key": Annotated[str, msgspec.Meta(pattern=r"^[0-9a-z]{0,64}\Z")],
    "pid": Annotated[int, msgspec.Meta(gt=0, lt=2**31)],
}


def _file_type(required: str, **names: str) -> Any:
    """Return the type (of msgspec) of a file's content, from the names of the fields of each type; those not
    required may be absent.
    """
    fields = [
        (name, TYPES[kind]) for kind, field_names in names.items() for name in field_names.split()
    ]
    fields.sort(key=lambda field: field[0] not in required.split())
    typed = [field if field[0] in required.split() else (*field, None) for field in fields]
    return msgspec.defstruct("File", typed, forbid_unknown_fields=True)


REQUEST = {
    "text": "dataset probe device precision executor ray_address price max_cost",
    "texts": "models item where without without_tag errata",
    "whole": "seed sample limit batch_size workers memory",
    "truth": "keep_embeddings examine verify",
    "options": "options",
}
RUN = _file_type("models dataset probe created", number="created", **REQUEST)
TYPES["requests"] = Annotated[
    list[_file_type("models dataset probe", **REQUEST)], msgspec.Meta(min_length=1)
]
PLAN = _file_type("requests created", number="created", requests="requests")
TRAINING = _file_type(
    "model datasets output created",
    text="model output loss freeze eqsim scores device precision",
    texts="datasets",
    number="created rate decay margin",
    whole="steps batch_size piece warm_up close seed validate_every workers threads",
    truth="curriculum",
)
STATUS = _file_type(
    "state",
    state="state",
    text="label device error remedy probe",
    key="run_key case_key",
    texts="keys left_out",
    number="done total queued started updated",
)
PROCESS = _file_type("pid", pid="pid")


def folders(root: Path) -> list[Path]:
    """Return the folders of all jobs of a cache that have a request, sorted by id."""
    try:
        names = sorted(os.listdir(root / "jobs"))
    except OSError:
        return []
    return [
        root / "jobs" / name
        for name in names
        if ID.fullmatch(name) and is_job(root / "jobs" / name)
    ]


def is_job(folder: Path) -> bool:
    """Return whether the folder has a request, readable or not."""
    return present(folder / "request.json")


def request(folder: Path) -> dict[str, Any]:
    """Read the job's request. Raises InvalidInput if it is damaged, FileNotFoundError if it was deleted."""
    return _read(folder / "request.json", _request_type)


def _request_type(fields: dict[str, Any]) -> type[msgspec.Struct]:
    if "requests" in fields:
        return PLAN
    return TRAINING if "datasets" in fields else RUN


def status(folder: Path) -> dict[str, Any]:
    """Return the job's latest status. Raises as `request` does."""
    return _read(folder / "status.json", lambda fields: STATUS)


def pid(folder: Path) -> int:
    """Return the id of the job's process. Raises as `request` does."""
    return _read(folder / "process.json", lambda fields: PROCESS)["pid"]


def _read(
    path: Path, file_type: Callable[[dict[str, Any]], type[msgspec.Struct]]
) -> dict[str, Any]:
    try:
        fields = parse_json_object(read(path).decode())
        json.dumps(fields, ensure_ascii=False).encode()  # raises for half a surrogate pair
        convert(fields, file_type(fields))
        return fields
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError):
        raise StoredDamage(
            f"'{path}' is damaged.", "Run `vlprobe verify --repair`, then start the run again."
        ) from None
