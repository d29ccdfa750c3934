"""Whose pictures are, as the files of a dataset say: licence and source, for whoever publishes them."""

from collections.abc import Mapping

from vlprobe.datasets import coco
from vlprobe.datasets.file_formats import read_json
from vlprobe.datasets.sources import split_unpictured
from vlprobe.errors import InvalidInput


def credits_of(dataset: str) -> Mapping[str, str]:
    """A line by the file name of each picture; nothing where the dataset says nothing, or its files are gone.

    COCO's captions file has a table of licences and the page that each photograph was taken from; it names no
    authors.
    """
    prefix, _, path = dataset.partition(":")
    if prefix != coco.PREFIX or not path:
        return {}
    try:
        content = read_json(coco.captions_file(split_unpictured(dataset)[0]))
    except InvalidInput:
        return {}
    return _of_coco(content) if isinstance(content, dict) else {}


def _of_coco(content: Mapping[str, object]) -> dict[str, str]:
    licences = {
        row.get("id"): " ".join(str(row[name]) for name in ("name", "url") if row.get(name))
        for row in _rows(content.get("licenses"))
    }
    lines = {}
    for image in _rows(content.get("images")):
        licence, source = licences.get(image.get("license"), ""), image.get("flickr_url", "")
        facts = [
            f"{label}: {value}"
            for label, value in (("Licence", licence), ("Source", source))
            if value
        ]
        if facts:
            lines[str(image.get("file_name"))] = " · ".join(facts)
    return lines


def _rows(value: object) -> list[dict]:
    """The objects of a list; ids of licences are numbers or texts."""
    rows = value if isinstance(value, list) else []
    return [
        row
        for row in rows
        if isinstance(row, dict)
        and all(isinstance(row.get(key, 0), int | str) for key in ("id", "license"))
    ]
