"""A file that an option of a probe names: read once, identified by its digest."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside


@dataclass(frozen=True)
class FileOption:
    """The error messages for a file, and its maximum size.

    Args:
        name: Name of the option; that of the digest has `_digest` behind it.
        kind: Name of the file's kind, within a sentence.
        called: The same at the beginning of one.
        is_plural: Whether that has several things, such as "Edits".
        max_bytes: Max bytes of the file.
        when_large: Message for a larger one.
        when_unreadable: Message for one that cannot be read.
    """

    name: str
    kind: str
    called: str
    is_plural: bool
    max_bytes: int
    when_large: str
    when_unreadable: str

    def with_digest(self, options: Mapping[str, object]) -> dict[str, object]:
        """The options with the full path of the file, and its digest. Raises InvalidInput if it
        cannot be read.
        """
        path = files.parse_path(str(options[self.name]))
        have = "have" if self.is_plural else "has"
        try:
            path = path.resolve()
            refuse_outside(path)
            files.require_utf8(path, self.kind)
            if path.stat().st_size > self.max_bytes:
                raise InvalidInput(
                    f"{self.called} '{path}' {have} more than {self.max_bytes >> 20} MiB. {self.when_large}"
                )
            digest = pictures.digest(files.read(path))
        except OSError as error:
            raise InvalidInput(
                f"{self.called} '{path}' cannot be read ({error.strerror}). {self.when_unreadable}"
            ) from None
        return {**options, self.name: str(path), f"{self.name}_digest": digest}

    def content(self, path: str, digest: str) -> bytes:
        """The bytes of the file with this digest. Raises InvalidInput where it has another by now."""
        content = files.read(Path(path))
        if pictures.digest(content) != digest:
            were = "were" if self.is_plural else "was"
            raise InvalidInput(
                f"{self.called} '{path}' {were} changed meanwhile. Start the run again."
            )
        return content
