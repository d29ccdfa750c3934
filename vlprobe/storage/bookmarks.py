"""Named entries that people save, such as dashboard views and question slices. They are shared by everyone
who uses the cache.

mine/bookmarks.json    name to the query string of a page address
mine/slices.json       name to a slice as JSON (`views.named_slices`)
mine/decks.json        question set and kind to the arrangement of slides as JSON

Each file is replaced atomically, by one process at a time.
"""

from dataclasses import dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import access, files, mine
from vlprobe.storage.store import Store

NAME_LENGTH = 60
MAX_BOOKMARKS = 100


@dataclass(frozen=True)
class NamedTexts:
    """A JSON file that maps the names of saved entries to their text.

    Attributes:
        file: The file name.
        noun: The word for an entry in messages, such as "slice".
        length: Maximum number of characters in the text of an entry.
    """

    file: str
    noun: str
    length: int

    def read(self, store: Store) -> dict[str, str]:
        """Return the text of each saved entry, sorted by name. Raises InvalidInput if the file is damaged."""
        texts = files.read_texts(self._path(store), f"so no {self.noun} can be listed")
        return dict(sorted(texts.items(), key=lambda pair: pair[0].lower()))

    def save(self, store: Store, name: str, text: str) -> None:
        """Save text under a name, replacing any entry with the same name.

        Raises:
            InvalidInput: the name is not valid, the text is too long, the limit is reached, or the cache is read-only.
        """
        access.refuse_writing()
        name = " ".join(name.split())
        if not 0 < len(name) <= NAME_LENGTH or not name.isprintable():
            raise InvalidInput(
                f"'{name[:80]}' is not a valid name for a {self.noun}. Expected 1 to "
                f"{NAME_LENGTH} characters."
            )
        if len(text) > self.length:
            raise InvalidInput(
                f"This {self.noun} has {len(text):,} characters. The maximum is {self.length:,}."
            )
        with files.lock(self._path(store).with_suffix(".lock"), lambda: None):
            texts = self.read(store) | {name: text}
            if len(texts) > MAX_BOOKMARKS:
                raise InvalidInput(
                    f"The limit of {MAX_BOOKMARKS} is reached. Delete a {self.noun} that is no "
                    "longer used."
                )
            files.write_json(self._path(store), texts)

    def remove(self, store: Store, name: str) -> None:
        """Remove the entry with the given name. Raises NotFound if there is none."""
        access.refuse_writing()
        with files.lock(self._path(store).with_suffix(".lock"), lambda: None):
            texts = self.read(store)
            if name not in texts:
                raise NotFound(self.noun, name, texts)
            del texts[name]
            files.write_json(self._path(store), texts)

    def version(self, store: Store) -> tuple[int, int]:
        """Return a value that changes when any entry changes."""
        return files.version(self._path(store))

    def _path(self, store: Store) -> Path:
        return mine.path(store.root, self.file)


VIEWS = NamedTexts("bookmarks.json", "saved view", 4000)
DECKS = NamedTexts("decks.json", "deck", 2_000_000)
SLICES = NamedTexts("slices.json", "slice", 16_000_000)
