"""The content of a site about one question set. It contains no local paths and no user names."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlprobe import views
from vlprobe.datasets.credits import Credit, credits_of
from vlprobe.registry import is_control
from vlprobe.render.charts.styles import Looks, mark_values, styles
from vlprobe.render.sentences import sentence_names, shortened
from vlprobe.render.words import model_name
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.surfaces.site.shelf import Shelf
from vlprobe.types.presentation import Presentation
from vlprobe.views.runs import QuestionSet

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


@dataclass(frozen=True)
class Subject:
    """One question set in a site, with everything that its pages need."""

    store: Store
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


def read_subject(store: Store, question_set: QuestionSet, shelf: Shelf, limits: Limits) -> Subject:
    """Read a question set and everything that its pages need."""
    models = question_set.ordered_models
    return Subject(
        store,
        question_set,
        question_set.presentation,
        models,
        question_set.rated_models,
        _names(models, display_names.read(store), limits.with_notes),
        {model: f"m{number}" for number, model in enumerate(models)},
        styles(views.runs.models(store)),
        views.showcase.kinds(store, question_set),
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
