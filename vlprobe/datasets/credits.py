"""Credits for photographs, read from the files of a dataset: page, license and license URL.

COCO's captions file has a table of licenses and the source URL of each photograph, but
no authors. Bundled photographs come with their credits.
"""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlprobe.datasets import bundled, coco
from vlprobe.datasets.file_formats import read_json
from vlprobe.datasets.sources import split_unpictured
from vlprobe.errors import InvalidInput
from vlprobe.storage import shipped
from vlprobe.types import Picture

MANIFEST = "photographs.json"  # of the bundled photographs
FLICKR_ID = re.compile(r"/([0-9]{6,})_[0-9a-f]+(?:_[a-z])?\.[a-z]+$")


@dataclass(frozen=True, slots=True)
class Credit:
    """Credit for a photograph; "" means unknown."""

    page: str = ""  # URL of the author's page for the photograph
    license: str = ""
    license_url: str = ""

    @property
    def text(self) -> str:
        """Return the credit as one line of plain text."""
        license_ = " ".join(filter(None, [self.license, self.license_url]))
        facts = (("License", license_), ("Source", self.page))
        return " · ".join(f"{label}: {value}" for label, value in facts if value)


def credits_of(dataset: str) -> Mapping[str, Credit]:
    """Return the credits for a dataset's photographs, by file name; empty if there are none or its files are gone."""
    prefix, _, path = dataset.partition(":")
    if prefix == bundled.PREFIX:
        return bundled_credits()
    if prefix != coco.PREFIX or not path:
        return {}
    try:
        content = read_json(coco.captions_file(split_unpictured(dataset)[0]))
    except InvalidInput:
        return {}
    return coco_credits(content)


def picture_credit(name: str) -> Credit | None:
    """Return the credit for a bundled photograph, which pages show below it; None for any other picture.

    Args:
        name: The stored name of the picture: either relative, or a path in the cache into which a run copied it.
    """
    return picture_credits(name)[0]


def picture_credits(name: str) -> tuple[Credit | None, ...]:
    """Return the credit for a picture and for the picture mixed into it, if there is one. None means unknown."""
    coco_folder = bundled.COCO.parts
    return tuple(
        bundled_credits().get(path.name)
        if path.parts[:-1][-len(coco_folder) :] == coco_folder
        else None
        for path in Picture.from_name(name).paths
    )


@functools.cache  # .6 ms, and each card of a page needs it
def bundled_credits() -> Mapping[str, Credit]:
    """Return the credits for the bundled photographs by file name."""
    try:
        rows = json.loads((shipped.PUBLISHED_FOLDER / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {row["file"]: Credit(row["page"], row["license"], row["license_url"]) for row in rows}


def coco_credits(content: object) -> dict[str, Credit]:
    """Return the credits in a COCO captions file by file name of the photograph."""
    if not isinstance(content, dict):
        return {}
    licenses = {row.get("id"): row for row in _rows(content.get("licenses"))}
    credits = {}
    for image in _rows(content.get("images")):
        license_ = licenses.get(image.get("license"), {})
        page = photograph_page(str(image.get("flickr_url") or ""))
        texts = (license_.get("name"), license_.get("url"))
        credit = Credit(page, *(str(text or "") for text in texts))
        if credit.text:
            credits[str(image.get("file_name"))] = credit
    return credits


def photograph_page(flickr_url: str) -> str:
    """Return the author's page for a photograph from its file's URL on Flickr; another URL is returned unchanged.

    >>> photograph_page("http://farm7.staticflickr.com/6116/6255196340_da26cf2c9e_z.jpg")
    'https://www.flickr.com/photo.gne?id=6255196340'
    """
    match = FLICKR_ID.search(flickr_url)
    return f"https://www.flickr.com/photo.gne?id={match[1]}" if match else flickr_url


def _rows(value: object) -> list[dict[str, Any]]:
    """Return the dicts in a list whose ids and license ids are numbers or strings; empty if the value is not a list."""
    rows = value if isinstance(value, list) else []
    return [
        row
        for row in rows
        if isinstance(row, dict)
        and all(isinstance(row.get(key, 0), int | str) for key in ("id", "license"))
    ]
