"""What a site does not tell: where files lie on this machine, and whose folder they lie in."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from vlprobe.render.site.subject import Subject, Values

HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s\"']+[/\\]?")
PATHS = re.compile(r"(?:^|[:@=])(/[^:@+]+)")  # in the name of a model or a dataset


class Privacy:
    """Takes folders of this machine out of all texts."""

    def __init__(self, subjects: Sequence[Subject], tells_all: bool) -> None:
        self._tells_all = tells_all
        folders = {str(Path.home()), os.getcwd()}
        for subject in subjects:
            folders |= {str(Path(root).absolute()) for root in subject.store.roots}
            names = [name for run in subject.question_set.runs for name in (run.model, run.dataset)]
            paths = [Path(path) for name in names for path in PATHS.findall(name)]
            folders |= {str(path.parent) for path in paths} | {str(path) for path in paths}
        self._folders = sorted(
            (folder for folder in folders if folder.count("/") > 1), key=len, reverse=True
        )

    def of(self, values: Values) -> Values:
        """The values without folders."""
        return {name: self._without(value) for name, value in values.items()}

    def _without(self, value: object) -> object:
        if self._tells_all:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {name: self._without(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self._without(entry) for entry in value]
        return value

    def _text(self, text: str) -> str:
        if "/" not in text and "\\" not in text:
            return text
        for folder in self._folders:
            text = text.replace(f"{folder}/", "")
        return HOMES.sub("", text)
