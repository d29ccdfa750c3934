"""Output files of a training run, which are also read when the same run is started again.

FILE.safetensors    the weights; the model's name is START@FILE, where START is the model it was tuned from
FILE.json           the card: request, data and losses
FILE.jsonl          one line per step with the loss and its terms; validations add lines with `held_out`
FILE.state.pt       the state from which the same request continues after a stop; deleted at the end
"""

import json
import tempfile
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import access
from vlprobe.storage.files import read

_COMPANIONS = (".json", ".jsonl", ".state.pt")  # suffixes of the files next to the weights


def prepare_folder(path: Path) -> None:
    """Create the folder for the weights. Raises InvalidInput if one of the output files cannot be written."""
    access.refuse_writing()
    for file in (path, *(path.with_suffix(suffix) for suffix in _COMPANIONS)):
        access.refuse_outside(file)
    try:  # before minutes of work, not after
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise InvalidInput(
            f"'{path}' cannot be written ({error.strerror}). Choose a file in a writable folder."
        ) from None


def finished_card(path: Path, pinned: str) -> dict | None:
    """Return the card if the same training run has finished, or None if its files are free to be written.

    Raises InvalidInput if a file from another training run would be overwritten, or if a file cannot be read.
    """
    card_file, log_file = path.with_suffix(".json"), path.with_suffix(".jsonl")
    is_stopped = path.with_suffix(".state.pt").exists()  # killed before the card was written
    if path.exists() and not is_stopped:
        card = _object(_text(card_file))
        if card.get("pinned") != pinned:
            raise InvalidInput(
                f"'{path}' already exists and belongs to another training run. Choose another "
                "output, or delete the file."
            )
        return card
    texts = {card_file: _text(card_file)}
    if not is_stopped:  # otherwise the state identifies the log
        texts[log_file] = _text(log_file).lstrip().partition("\n")[0]
    for file, text in texts.items():
        if text and _object(text).get("pinned") != pinned:
            raise InvalidInput(
                f"'{file}' already exists, and this training run would overwrite it. "
                "Choose another output or move the file."
            )
    return None


def _object(text: str) -> dict:
    """Parse a JSON object. Return an empty dictionary if the text is anything else."""
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


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
    """Return the complete lines in the log next to the weights, or an empty list if there is no log yet."""
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
