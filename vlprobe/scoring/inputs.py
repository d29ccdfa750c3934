"""The distinct pictures and texts that a run shows to a model, in the order in which `vlprobe ask` writes
them, and the keys that an imported file can use for them.

    p-16 hex digits         a picture, by its content and edit; t-16 hex digits: a text, by its letters
    ITEM_i0 ITEM_c0         the pictures and texts (captions, then foils) of an item, numbered from 0
    ITEM, path, name, stem  a picture without an edit; a name shared by two pictures is not a key
    the text itself
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vlprobe.scoring import pictures
from vlprobe.types import Item, Picture, Reader


def text_id(text: str) -> str:
    """Compute the id for a text, which is the same in every run.

    >>> text_id("a red dog")
    't-74a0998d2d47fc91'
    """
    return f"t-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def picture_id(picture: Picture, digest_of: Mapping[Path, str]) -> str:
    """Compute the id for a picture from the digest of its file, and for an edited picture also from the edit and the
    digest of its partner's file. For a missing picture, `digest_of` holds its identifying fields.
    """
    files = " ".join(digest_of[path] for path in picture.paths)
    content = f"{files} {picture.edit_key}" if picture.edit_key else files
    return f"p-{hashlib.blake2b(content.encode(), digest_size=8).hexdigest()}"


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The `types.Inputs` implementation for a run, for a dataset without cases, or for texts alone."""

    items: Sequence[Item] = ()  # all of their pictures and captions are inputs
    # Reads the cases in the run; their additional texts and changed pictures come next
    cases: Reader = field(default=lambda columns: iter(()))
    # Additional pictures and texts from galleries
    candidates: tuple[Sequence[Picture], Sequence[str]] = ((), ())
    cache: Path = Path()  # the folder with stored picture digests

    def pictures(self) -> Iterator[tuple[Picture, Sequence[str]]]:
        """Yield the pictures, distinct by path and edit, each with its possible keys."""
        item_pictures = [
            (picture, f"{item.id}_i{number}", item.id if number == 0 else "")
            for item in self.items
            for number, picture in enumerate(item.pictures)
        ]
        further = [*self.candidates[0], *self._changed_pictures()]
        digests = self._digests([*(picture for picture, _, _ in item_pictures), *further])
        paths = {picture.path for picture, _, _ in item_pictures} | {
            picture.path for picture in further if not picture.edit_key
        }
        n_of_name = Counter(name for path in paths for name in {path.name, path.stem})
        yielded: set[str] = set()
        for picture, *labels in (*item_pictures, *((picture,) for picture in further)):
            if picture.name not in yielded:
                yielded.add(picture.name)
                yield picture, _keys(picture, labels, digests, n_of_name)

    def _changed_pictures(self) -> list[Picture]:
        """Return the distinct pictures in the cases that are changed versions of a file."""
        names: dict[str, None] = {}
        for block in self.cases(["images"]):
            in_block = block["images"].combine_chunks().flatten().unique().to_pylist()
            names |= dict.fromkeys(name for name in in_block if name.startswith("{"))
        return [picture for picture in map(Picture.from_name, names) if picture.change]

    def _digests(self, images: Iterable[Picture]) -> dict[Path, str]:
        """Return digests for the files of all pictures and of their partners. A missing file gets its name instead."""
        digests: dict[Path, str] = {}
        paths: dict[Path, None] = {}
        for picture in images:
            if picture.absent:
                digests[picture.path] = f"absent {picture.absent}"
            else:
                paths[picture.path] = None
            if picture.edit:
                paths[picture.edit.partner] = None
        present = [path for path in paths if path not in digests]
        if not present:  # a list of texts has no cache to read
            return digests
        return digests | dict(zip(present, pictures.file_digests(present, self.cache), strict=True))

    def texts(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the distinct texts, each with its possible keys."""
        yielded: set[str] = set()
        for text, label in self._all_texts():
            key = text_id(text)
            if key not in yielded:
                yielded.add(key)
                yield text, (key, label, text) if label else (key, text)

    def _all_texts(self) -> Iterator[tuple[str, str]]:
        for item in self.items:
            for number, text in enumerate(item.captions):
                yield text, f"{item.id}_c{number}"
        labels = {
            text_id(text): f"{item.id}_c{number}"
            for item in self.items
            for number, text in enumerate(item.foils, len(item.captions))
        }
        for block in self.cases(["texts"]):
            for text in block["texts"].combine_chunks().flatten().unique().to_pylist():
                yield text, labels.get(text_id(text), "") if labels else ""
        for text in self.candidates[1]:
            yield text, ""


def _keys(
    picture: Picture,
    labels: Sequence[str],
    digests: Mapping[Path, str],
    n_of_name: Mapping[str, int],
) -> tuple[str, ...]:
    """Return the possible keys for a picture, with the most reliable key first."""
    key = picture_id(picture, digests)
    if picture.edit_key:
        return (key,)
    path = picture.path
    names = [name for name in (path.name, path.stem) if n_of_name[name] == 1]
    return tuple(dict.fromkeys(filter(None, (key, *labels, str(path), picture.absent, *names))))
