"""The files that a training writes, and what is read of them when the same training is begun again.

FILE.safetensors    the weights; START@FILE is the model's name, START being what it was tuned from
FILE.json           the card: how the weights were made
FILE.jsonl          a line for each step: its loss and the parts of it; lines with `held_out` for validations
FILE.state.pt       what the same request goes on from after a stop; gone at the end
"""

import json
import tempfile
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import access
from vlprobe.storage.files import read

_COMPANIONS = (".json", ".jsonl", ".state.pt")  # suffixes of the files beside the weights


def prepare_folder(path: Path) -> None:
    """Makes the folder of the weights. Raises InvalidInput if a file of the training may not or
    cannot be written.
    """
    access.refuse_writing()
    for file in (path, *(path.with_suffix(suffix) for suffix in _COMPANIONS)):
        access.refuse_outside(file)
    try:  # before minutes of work, not after
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise InvalidInput(
            f"'{path}' cannot be written ({error.strerror}). Expected a file in a folder that can be written to."
        ) from None


def finished_card(path: Path, pinned: str) -> dict | None:
    """The card of the same training, if it has ended. Raises InvalidInput if the file holds
    something else.
    """
    # Killed after the weights, before the card
    if not path.exists() or path.with_suffix(".state.pt").exists():
        return None
    try:
        card = json.loads(path.with_suffix(".json").read_bytes())
    except (FileNotFoundError, ValueError):
        card = {}
    if card.get("pinned") != pinned:
        raise InvalidInput(
            f"'{path}' already exists, from another training run. Choose another output or "
            "delete it."
        )
    return card


def refuse_overwriting(path: Path, pinned: str) -> None:
    """Raise InvalidInput if a card or a log of another training run is next to the weights to
    write.
    """
    card, steps = path.with_suffix(".json"), path.with_suffix(".jsonl")
    texts = {card: _text(card)}
    if not path.with_suffix(".state.pt").exists():  # else the state says whose log it is
        texts[steps] = _text(steps).lstrip().partition("\n")[0]
    for file, text in texts.items():
        try:
            content = json.loads(text) if text else {"pinned": pinned}
        except ValueError:
            content = None
        if not isinstance(content, dict) or content.get("pinned") != pinned:
            raise InvalidInput(
                f"'{file}' already exists, and this training run would overwrite it. "
                "Choose another output or move the file."
            )


def _text(file: Path) -> str:
    try:
        return read(file).decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}), and this training run would "
            "overwrite it. Choose another output or move the file."
        ) from None


def read_log(path: Path) -> list[dict]:
    """Return the complete lines of the log next to the file of weights; empty if the log does
    not exist yet.
    """
    try:
        lines = path.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    entries = []
    for line in lines:
        try:
            entries.append(json.loads(line))
        except ValueError:  # being written just now, or cut off when the process was killed
            break
    return entries
