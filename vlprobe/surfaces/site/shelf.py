"""The pictures of a site: each once, as small copies in scripts of a bounded size, by short keys.

Drawings of vlprobe are published, and bundled photographs with their credits; all others only if the user allows it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from vlprobe.datasets import drawn
from vlprobe.datasets.credits import picture_credits
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import containers
from vlprobe.types import Picture

CHUNK = 64  # pictures of one script: about 600 kB


class Shelf:
    """Gives every picture a key, and remembers which pictures are not here and which may not go out."""

    def __init__(self, root: Path, may_publish: bool) -> None:
        self._root, self._may_publish = root, may_publish
        self._keys: dict[str, str] = {}
        self._chunks: list[list[str]] = []
        self._held_back: set[str] = set()

    @property
    def n_held_back(self) -> int:
        """Count the pictures left out because no one allowed their publication."""
        return len(self._held_back)

    @property
    def folders(self) -> set[str]:
        """The paths of all pictures that a page names."""
        paths = [Picture.from_name(name).path for name in self._keys]
        return {str(path.parent) for path in paths if path.is_absolute()}

    @property
    def n_pictures(self) -> int:
        """Count how many pictures go out."""
        return sum(map(len, self._chunks))

    @property
    def chunks(self) -> Sequence[Sequence[str]]:
        """Data addresses, in scripts; a picture's key is the number of its script and its place."""
        return self._chunks

    def add(self, names: Iterable[str]) -> None:
        """Add pictures, so that many are read at once."""
        new = [name for name in dict.fromkeys(names) if name and name not in self._keys]
        free = [
            name
            for name in new
            if self._may_publish or is_drawn(name) or all(picture_credits(name))
        ]
        self._held_back.update(
            name
            for name in set(new) - set(free)
            if containers.is_file(Picture.from_name(name).path)  # an absent one is not held back
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
        """The key of a picture; "" of one that is not here or does not go out."""
        if name not in self._keys:
            self.add([name])
        return self._keys.get(name, "")

    def address(self, name: str) -> str:
        """The data address of a picture; "" of one that is not here or does not go out."""
        chunk, _, place = self.key(name).partition("/")
        return self._chunks[int(chunk)][int(place)] if place else ""


def is_drawn(name: str) -> bool:
    """Return whether vlprobe drew the picture, and what is mixed into it: their files show the scenes that
    their names say.
    """
    return all(map(drawn.is_drawing, Picture.from_name(name).paths))
