"""Removal of private facts from a site: the paths of files on this machine, and the names of their owners."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s\"']+[/\\]?")
FOLDERS = re.compile(r"(?<![\w/.~])(?:~|[A-Za-z]:)?(?:/[^/\s:@+=\"']+)+(?=/)/")
PATHS = re.compile(r"(?:^|[:@=])(/[^:@+]+)")  # in the name of a model or a dataset


def bare(text: str) -> str:
    """A name or a setting without the folders of paths in it; not for captions, in which slashes may be words.

    >>> bare("edits file:/data/own/edits.jsonl"), bare("hf:org/model"), bare("3/4 of /tmp")
    ('edits file:edits.jsonl', 'hf:org/model', '3/4 of /tmp')
    """
    return FOLDERS.sub("", text)


class Privacy:
    """Removes folders of this machine from all texts.

    Args:
        roots: Folders of results.
        names: Names of models and datasets.
        folders: Folders of pictures.
        tells_all: Whether the user allowed their publication.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        names: Iterable[str],
        folders: Collection[str],
        tells_all: bool,
    ) -> None:
        self._tells_all = tells_all
        paths = [Path(path) for name in names for path in PATHS.findall(name)]
        private = {str(Path.home()), os.getcwd(), *folders}
        private |= {str(root.absolute()) for root in roots}
        private |= {str(path) for path in paths} | {str(path.parent) for path in paths}
        self._folders = sorted((folder for folder in private if folder != "/"), key=len)[::-1]

    def of(self, values: Mapping[str, object]) -> dict[str, object]:
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
