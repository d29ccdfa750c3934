"""The content of a site about one question set, and the site's pictures. It contains no local paths and no user names.

Drawings by vlprobe and bundled photographs (with their credits) are always published. Other pictures are published only
if the user allows it.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlprobe import views
from vlprobe.datasets import drawn
from vlprobe.datasets.credits import Credit, credits_of, picture_credits
from vlprobe.registry import is_control
from vlprobe.render.charts.styles import Looks, mark_values, styles
from vlprobe.render.sentences import sentence_names, shortened
from vlprobe.render.words import model_name
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import containers, display_names
from vlprobe.types import Picture
from vlprobe.types.presentation import Presentation
from vlprobe.views.runs import QuestionSet

CHUNK = 64  # pictures per script, about 600 kB


class Shelf:
    """Stores each picture of a site once, as a small copy in a script of limited size, under a short key."""

    def __init__(self, root: Path, may_publish: bool) -> None:
        self._root, self._may_publish = root, may_publish
        self._keys: dict[str, str] = {}
        # Data URLs by script. A picture's key has the number of the script and an index in it.
        self.chunks: list[list[str]] = []
        self._held_back: set[str] = set()

    @property
    def n_held_back(self) -> int:
        """Number of pictures that are left out because the user did not allow publishing them."""
        return len(self._held_back)

    @property
    def folders(self) -> set[str]:
        """Folders of all pictures that have absolute paths."""
        paths = [Picture.from_name(name).path for name in self._keys]
        return {str(path.parent) for path in paths if path.is_absolute()}

    @property
    def n_pictures(self) -> int:
        """Number of published pictures."""
        return sum(map(len, self.chunks))

    def add(self, names: Iterable[str]) -> None:
        """Add pictures to the site. It is faster to add many pictures at once, because they are read together."""
        new = [name for name in dict.fromkeys(names) if name and name not in self._keys]
        free = [
            name
            for name in new
            if self._may_publish
            # Drawn by vlprobe: each file, also of mixed pictures, shows the scene that its name describes
            or all(map(drawn.is_drawing, Picture.from_name(name).paths))
            or all(picture_credits(name))
        ]
        self._held_back.update(
            name
            for name in set(new) - set(free)
            if containers.is_file(Picture.from_name(name).path)  # missing ones are not held back
        )
        sources = addresses(self._root, free)
        for name in new:
            self._keys[name] = ""
            if source := sources.get(name):
                if not self.chunks or len(self.chunks[-1]) == CHUNK:
                    self.chunks.append([])
                self.chunks[-1].append(source)
                self._keys[name] = f"{len(self.chunks) - 1}/{len(self.chunks[-1]) - 1}"

    def key(self, name: str) -> str:
        """Return a picture's key, or "" if the picture is missing or may not be published."""
        if name not in self._keys:
            self.add([name])
        return self._keys.get(name, "")

    def address(self, name: str) -> str:
        """Return a picture's data URL, or "" if the picture is missing or may not be published."""
        chunk, _, place = self.key(name).partition("/")
        return self.chunks[int(chunk)][int(place)] if place else ""


HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s\"']+[/\\]?")
FOLDERS = re.compile(r"(?<![\w/.~])(?:~|[A-Za-z]:)?(?:/[^/\s:@+=\"']+)+(?=/)/")
PATHS = re.compile(r"(?:^|[:@=])(/[^:@+]+)")  # in the name of a model or a dataset
Values = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """Limits on how much a site publishes, and what may be published."""

    n_cases: int = 60  # for each model, kind and outcome
    with_notes: bool = False  # publish tags, notes and paths
    may_publish: bool = False  # publish pictures that vlprobe did not draw
    n_baselines: int = 8  # number of models used as baselines
    compared: tuple[
        str, ...
    ] = ()  # models that Compare shows first, the baseline before the others
    row: tuple[str, str] = ("", "")  # subtype and model of the row of Compare that opens first


@dataclass(frozen=True)
class Subject:
    """One question set in a site, with everything that its pages need."""

    question_set: QuestionSet
    presentation: Presentation
    models: tuple[str, ...]  # in display order, controls last
    rated: tuple[str, ...]  # models that are not controls, or all if there are only controls
    names: Mapping[str, str]  # display name of each model
    keys: Mapping[str, str]  # name of each model in addresses; stored names are not published
    model_looks: Looks
    kinds: tuple[str, ...]  # kinds that have cases, in the order of Home
    credits: Mapping[str, Credit]  # credit for a picture, by its file name
    shelf: Shelf
    limits: Limits

    @property
    def key(self) -> str:
        """Name of the question set in the site's addresses."""
        return self.question_set.key[:8]

    def name(self, kind: str, page: str) -> str:
        """Return the name under which the data for a page about a kind of case is stored."""
        return f"{self.key}-{page}-{self.kinds.index(kind)}"

    @staticmethod
    def case_key(number: int) -> str:
        """Return a case's name in the site's addresses. The case id is not used because it can contain a path."""
        return f"c{number}"

    def marks(self) -> list[Values]:
        """Return the key, name and symbol for every model."""
        return [
            {
                "key": self.keys[model],
                "name": self.names[model],
                "counts": not is_control(model),
                **mark_values(self.model_looks[model]),
            }
            for model in self.models
        ]


def read_subject(question_set: QuestionSet, shelf: Shelf, limits: Limits) -> Subject:
    """Read a question set and everything that its pages need."""
    models = question_set.ordered_models
    return Subject(
        question_set,
        question_set.presentation,
        models,
        question_set.rated_models,
        _names(models, display_names.read(question_set.store), limits.with_notes),
        {model: f"m{number}" for number, model in enumerate(models)},
        styles(views.runs.models(question_set.store)),
        views.showcase.kinds(question_set),
        credits_of(question_set.runs[0].dataset) if limits.may_publish else {},
        shelf,
        limits,
    )


def _names(
    models: Sequence[str], renamed: Mapping[str, str], with_notes: bool
) -> Mapping[str, str]:
    """Return a unique name for each model. Folders are removed from the names unless notes are published."""
    if with_notes:
        return sentence_names(models, renamed)
    names: dict[str, str] = {}
    for model in models:
        name = shortened(bare(model_name(model, renamed))) or bare(model)
        same = sum(other_name.rpartition(" (")[0] == name for other_name in names.values())
        names[model] = f"{name} ({same + 2})" if name in names.values() else name
    return names


def bare(text: str) -> str:
    """Remove folders from paths in a name or a setting. Not for captions, in which slashes can separate words.

    >>> bare("edits file:/data/own/edits.jsonl"), bare("hf:org/model"), bare("3/4 of /tmp")
    ('edits file:edits.jsonl', 'hf:org/model', '3/4 of /tmp')
    """
    return FOLDERS.sub("", text)


def private_folders(
    roots: Iterable[Path], names: Iterable[str], folders: Iterable[str]
) -> list[str]:
    """Return the local folders that must not occur in published text, the longest first."""
    paths = [Path(path) for name in names for path in PATHS.findall(name)]
    private = {str(Path.home()), os.getcwd(), *folders}
    private |= {str(root.absolute()) for root in roots}
    private |= {str(path) for path in paths} | {str(path.parent) for path in paths}
    return sorted(private - {"/"}, key=len, reverse=True)


def without_folders(value: Any, folders: Sequence[str]) -> Any:
    """Remove folders and home directories from all strings in nested lists and dicts."""
    if isinstance(value, str) and ("/" in value or "\\" in value):
        for folder in folders:
            value = value.replace(f"{folder}/", "")
        return HOMES.sub("", value)
    if isinstance(value, dict):
        return {
            without_folders(name, folders): without_folders(entry, folders)
            for name, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_folders(entry, folders) for entry in value]
    return value
