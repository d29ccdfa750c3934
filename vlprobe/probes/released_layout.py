"""Export a run's altered captions in RoCOCO's release format.

A file is a JSON list with one entry per picture. An entry has the fields `image` and `caption`, a list of five or six
original captions followed by five altered ones. The j-th altered caption is made from the j-th original.
`datasets/rococo.py` reads this format.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import pyarrow.compute as pc

from vlprobe.probes.rococo_galleries import RELEASED
from vlprobe.types import Picture, Reader

N_ALTERED = 5
N_ORIGINALS = (5, 6)
LONGEST_NAME = 80  # characters in a file name, without its extension


class ReleasedEntry(TypedDict):
    """One picture in a released file."""

    image: str
    caption: list[str]


@dataclass(frozen=True, slots=True)
class ReleasedLayout:
    """Content of one file: the entries, and the number of pictures left out, by reason."""

    entries: list[ReleasedEntry] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def encoded(self) -> bytes:
        """Encode the file as ASCII JSON with a space after commas and colons, as in the released files."""
        return json.dumps(self.entries).encode()


def layouts(
    cases: Reader, image_names: Mapping[str, str], rule: str = ""
) -> dict[str, ReleasedLayout]:
    """Build one file for each rule (a policy, or one of its seeds) from a run's altered captions.

    Args:
        image_names: The name that each picture gets in the file, by its stored name.
        rule: The rule to write; "" for all rules.
    """
    by_rule: dict[str, ReleasedLayout] = {}
    for block in cases(["kind", "rule", "images", "texts", "roles"]):
        is_case = pc.field("kind") == "i2t"
        if rule:
            is_case = is_case & (pc.field("rule") == rule)
        for case in block.filter(is_case).to_pylist():
            layout = by_rule.setdefault(case["rule"], ReleasedLayout())
            pairs = list(zip(case["texts"], case["roles"], strict=True))
            originals = [text for text, role in pairs if role != "different"]
            altered = [text for text, role in pairs if role == "different"]
            if reason := _misfit(originals, altered, case["rule"]):
                layout.left_out[reason] += 1
                continue
            captions = [*originals, *altered[:N_ALTERED]]
            layout.entries.append({"image": image_names[case["images"][0]], "caption": captions})
    return by_rule


def _misfit(originals: Sequence[str], altered: Sequence[str], rule: str) -> str:
    """Return the reason why a picture's captions do not fit the format, or "" if they do."""
    if len(originals) not in N_ORIGINALS:
        return f"{len(originals)} captions instead of 5 or 6"
    is_whole = len(altered) == (N_ALTERED if rule == RELEASED else len(originals))
    return "" if is_whole else "a caption that could not be altered"


def file_names(rules: Iterable[str]) -> dict[str, str]:
    """Return a unique file or folder name for each rule. Names contain only letters, digits, dots and underscores.

    >>> list(file_names(["rand-voca:2:seed1", "mix:0.9:seed10", "edits:../a b", "edits:a-b"]).values())
    ['rand_voca_2_seed1', 'mix_0.9_seed10', 'edits_a_b', 'edits_a_b_2']
    """
    name_of: dict[str, str] = {}
    for rule in rules:
        stem = re.sub(r"[^a-z0-9.]+|\.\.+", "_", rule.lower()).strip("._")[:LONGEST_NAME] or "rule"
        stem = re.sub("_+", "_", re.sub(r"_\.|\._", "_", stem))
        name, number = stem, 1
        while name in name_of.values():
            number += 1
            name = f"{stem}_{number}"
        name_of[rule] = name
    return name_of


def image_names(pictures: Iterable[Picture]) -> tuple[Path | None, dict[str, str]]:
    """Return the folder that contains all pictures, and each picture's path relative to it, by stored name.

    The folder is None if no picture is on this machine; pictures then keep their names from the dataset.
    """
    listed = [picture for picture in pictures if not picture.absent]
    absolute = {picture.name: picture.path.absolute() for picture in listed}
    parents = {path.parent for path in absolute.values()}
    folder = _common(parents)
    return folder, {
        name: path.relative_to(folder).as_posix() for name, path in absolute.items() if folder
    }


def _common(folders: Iterable[Path]) -> Path | None:
    """Return the innermost folder that contains all the given folders; None if there is none."""
    common: Path | None = None
    for folder in folders:
        common = folder if common is None else common
        while common != folder and common not in folder.parents:
            common = common.parent
    return common
