"""The pictures in a site. Each picture is stored once, as a small copy in a script of limited size, and has a short
key.

Drawings by vlprobe and bundled photographs (with their credits) are always published. Other pictures are published only
if the user allows it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from vlprobe.datasets import drawn
from vlprobe.datasets.credits import picture_credits
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import containers
from vlprobe.types import Picture

CHUNK = 64  # pictures per script, about 600 kB


class Shelf:
    """Assigns a key to each picture, and records which pictures are missing and which may not be published."""

    def __init__(self, root: Path, may_publish: bool) -> None:
        self._root, self._may_publish = root, may_publish
        self._keys: dict[str, str] = {}
        self._chunks: list[list[str]] = []
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
        return sum(map(len, self._chunks))

    @property
    def chunks(self) -> Sequence[Sequence[str]]:
        """Data URLs of pictures, grouped by script. A picture's key has the number of the script and an index in it."""
        return self._chunks

    def add(self, names: Iterable[str]) -> None:
        """Add pictures to the site. It is faster to add many pictures at once, because they are read together."""
        new = [name for name in dict.fromkeys(names) if name and name not in self._keys]
        free = [
            name
            for name in new
            if self._may_publish or is_drawn(name) or all(picture_credits(name))
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
                if not self._chunks or len(self._chunks[-1]) == CHUNK:
                    self._chunks.append([])
                self._chunks[-1].append(source)
                self._keys[name] = f"{len(self._chunks) - 1}/{len(self._chunks[-1]) - 1}"

    def key(self, name: str) -> str:
        """Return a picture's key, or "" if the picture is missing or may not be published."""
        if name not in self._keys:
            self.add([name])
        return self._keys.get(name, "")

    def address(self, name: str) -> str:
        """Return a picture's data URL, or "" if the picture is missing or may not be published."""
        chunk, _, place = self.key(name).partition("/")
        return self._chunks[int(chunk)][int(place)] if place else ""


def is_drawn(name: str) -> bool:
    """Return whether vlprobe drew a picture and all pictures that are mixed into it.

    A picture counts as drawn by vlprobe if the file shows the scene that its name describes.
    """
    return all(map(drawn.is_drawing, Picture.from_name(name).paths))
