"""Tars laid out as webdataset has them: the files of a row have one name up to its first dot.

`000017.jpg` is the picture of row 000017, `000017.txt` its caption, the fields of `000017.json` further
columns. A tar is read where it lies.
"""

from pathlib import Path
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.storage import files, tars

PICTURES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
TEXTS = {"txt": "caption", "caption": "caption", "text": "caption", "cls": "class"}
MOST_TEXT_BYTES = 1 << 20  # of a member that is text
KEY = "__key__"  # webdataset's name of the column that names a row
LEFT_OUT = "__"  # begins the names of webdataset's own members


def rows_of(file: Path) -> list[dict[str, Any]]:
    """A row for each picture of a tar, in its order.

    Raises:
        InvalidInput: it is not a tar, has no pictures, or a member that is text cannot be read.
        OSError: it cannot be read.
    """
    rows: dict[str, dict[str, Any]] = {}
    with file.open("rb") as tar:
        for name, member in tars.members(file).items():
            folder, _, base = name.rpartition("/")
            stem, _, ending = base.partition(".")
            kind = ending.lower().rpartition(".")[2]
            if base.startswith((LEFT_OUT, ".")) or not ending:
                continue
            row = rows.setdefault(f"{folder}/{stem}" if folder else stem, {})
            if kind in PICTURES:
                # With dots in between, as in 000017.left.jpg, it is a column of its own.
                column = ending.lower().rpartition(".")[0] or "image"
                row[column] = f"{file.absolute()}/{name}"
            elif kind in TEXTS or kind == "json":
                if member.n_bytes > MOST_TEXT_BYTES:
                    raise InvalidInput(
                        f"'{name}' in '{file}' has {member.n_bytes:,} bytes. "
                        f"Expected a text of at most {MOST_TEXT_BYTES:,}."
                    )
                tar.seek(member.start)
                _add_text(file, name, kind, tar.read(member.n_bytes), row)
    pictured = {key: row for key, row in rows.items() if _has_picture(row)}
    if not pictured:
        raise InvalidInput(
            f"'{file}' has no pictures. Expected members such as 000017.jpg and 000017.txt."
        )
    return [{KEY: key, **row} for key, row in pictured.items()]


def _has_picture(row: dict[str, Any]) -> bool:
    return any(isinstance(value, str) and ".tar/" in value.lower() for value in row.values())


def _add_text(file: Path, name: str, kind: str, content: bytes, row: dict[str, Any]) -> None:
    try:
        text = content.decode("utf-8-sig")
        if kind == "json":
            fields = files.parse_json_object(text)
            row.update({key: value for key, value in fields.items() if key not in row})
        else:
            row[TEXTS[kind]] = text.strip()
    except ValueError as error:
        raise InvalidInput(
            f"'{name}' in '{file}' cannot be read ({error}). Expected UTF-8, and an object where it is JSON."
        ) from None
