"""The beginning of a dataset's file: what can be wrong with it is said at once, before all of it is read."""

import codecs
import json
from pathlib import Path

from vlprobe.datasets.checks import read_json, read_text
from vlprobe.errors import InvalidInput
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

BYTES = 65_536  # that are read
ESCAPE = 12  # letters of the longest thing that the end of the head may cut: two escapes


def head(path: Path) -> tuple[str, bool]:
    """The first letters of a UTF-8 file, and whether they are all of it. Raises InvalidInput."""
    refuse_outside(path)
    try:
        files.require_regular(path)
        is_long = path.stat().st_size > BYTES
        if is_long:
            with path.open("rb") as handle:
                text = codecs.getincrementaldecoder("utf-8-sig")().decode(handle.read(BYTES))
            return text.replace("\r\n", "\n").replace("\r", "\n"), False
    except OSError:
        pass  # reading it says what is wrong
    except UnicodeDecodeError as error:
        raise InvalidInput(f"'{path}' is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    return read_text(path), True


def look_at_json(path: Path) -> None:
    """Raises InvalidInput where the head is not that of a JSON file, and where a short one is not JSON."""
    text, whole = head(path)
    if whole:
        read_json(path)
        return
    try:
        json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except json.JSONDecodeError as error:
        cut = error.msg.startswith("Unterminated string") or len(error.doc) - error.pos <= ESCAPE
        if not cut:
            where = f"line {error.lineno}, column {error.colno}: {error.msg}"
            raise InvalidInput(
                f"'{path}' is not valid JSON ({where}). Expected a whole file; fetch or save it again."
            ) from None
    except RecursionError:
        raise InvalidInput(f"'{path}' is not valid JSON (nested too deeply). Check the file.") from None


def look_at_records(path: Path) -> None:
    """The same of a JSON file, or of the first line of a .jsonl file; a table is text. Raises InvalidInput."""
    if path.suffix == ".json":
        look_at_json(path)
        return
    text, whole = head(path)
    first, newline, _ = text.lstrip().partition("\n")
    if path.suffix != ".jsonl" or not first or not (newline or whole):
        return
    try:
        files.parse_json(first)
    except ValueError as error:
        reason = str(error).removeprefix("line 1, ")
        raise InvalidInput(
            f"'{path}', line 1, is not valid JSON ({reason}). Expected one object on every line."
        ) from None
