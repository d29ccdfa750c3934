"""Detect captions that are not in English. Results for many captions are cached in `cache/languages.json`."""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path

from vlprobe.perturb import language
from vlprobe.storage import files, memo

MEMO = "languages.json"
MOST = 64  # sets of captions whose results are cached, the latest ones
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
    rows = dict(memo.read(cache / MEMO))
    try:
        foreign = files.convert(rows.pop(digest), dict[str, str])
        if foreign.keys() <= set(every):
            return foreign
    except (KeyError, ValueError):  # not cached, or damaged
        pass
    foreign = language.foreign_captions(every)
    memo.write(cache / MEMO, rows | {digest: foreign}, MOST)
    return foreign
