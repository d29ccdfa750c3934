"""Detect captions that are not in English. The result for each set of captions is cached in
`cache/languages/<digest>.json`.
"""

import contextlib
import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.perturb import language
from vlprobe.storage import files

VERSION = 3  # of the results: raise it whenever one changes
# Minimum number of captions for which results are cached: fewer take less than half a second
REMEMBERED = 500


def foreign_captions(captions: Collection[str], cache: Path | None) -> Mapping[str, str]:
    """Return the captions that are almost certainly not in English, with the codes of their languages; "": unknown.

    Args:
        captions: Any texts.
        cache: Folder in which the results for many captions are cached, if it is writable; None: no caching.
    """
    every = sorted(set(captions))
    if len(every) < REMEMBERED or cache is None:
        return language.foreign_captions(every)
    digest = hashlib.sha256(json.dumps([VERSION, every]).encode()).hexdigest()[:32]
    path = cache / "languages" / f"{digest}.json"
    foreign = _remembered(path, every)
    if foreign is None:
        foreign = language.foreign_captions(every)
        with contextlib.suppress(InvalidInput):
            files.write_bytes(path, json.dumps({"foreign": foreign}).encode(), durable=False)
    return foreign


def _remembered(path: Path, captions: Collection[str]) -> Mapping[str, str] | None:
    """Return the cached result for a set of captions; None if there is no valid result in the file."""
    try:
        foreign = files.parse_json_object(files.read(path).decode())["foreign"]
        verdict = files.convert(foreign, dict[str, str])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return verdict if verdict.keys() <= set(captions) else None
