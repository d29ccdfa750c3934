"""Probe options that name a file. Each file is read once and identified by its digest.

edits         most probes: edits that replace those from the probe's rules or dataset
vocabulary    `lgip` and `rococo`: nouns that replace the built-in words
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.perturb import edits_file, substitution
from vlprobe.perturb.edits_file import EditsFile
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside
from vlprobe.types import Item, Probe
from vlprobe.types.options import Option


@dataclass(frozen=True)
class FileOption:
    """Probe option that names a file, with a size limit and error messages.

    Args:
        name: The name of the option; the digest is stored under this name plus `_digest`.
        kind: Name of this kind of file in messages, within a sentence.
        called: Name of this kind of file in messages, at the start of a sentence.
        max_bytes: The maximum file size in bytes.
        when_large: End of the error message for a file that is too large.
        when_unreadable: End of the error message for a file that cannot be read.
    """

    name: str
    kind: str
    called: str
    max_bytes: int
    when_large: str
    when_unreadable: str

    def with_digest(self, options: Mapping[str, object]) -> dict[str, object]:
        """Add the full path and the digest of the file to the options. Raises InvalidInput if the file is too large or
        cannot be read.
        """
        path = files.parse_path(str(options[self.name]))
        try:
            path = path.resolve()
            refuse_outside(path)
            files.require_utf8(path, self.kind)
            if path.stat().st_size > self.max_bytes:
                raise InvalidInput(
                    f"{self.called} '{path}' is larger than {self.max_bytes >> 20} MiB. {self.when_large}"
                )
            digest = pictures.digest(files.read(path))
        except OSError as error:
            raise InvalidInput(
                f"{self.called} '{path}' cannot be read ({error.strerror}). {self.when_unreadable}"
            ) from None
        return {**options, self.name: str(path), f"{self.name}_digest": digest}

    def content(self, path: str, digest: str) -> bytes:
        """Read the file and check its digest. Raises InvalidInput if the file has changed during the run."""
        content = files.read(Path(path))
        if pictures.digest(content) != digest:
            raise InvalidInput(
                f"{self.called} '{path}' was changed during the run. Start the run again."
            )
        return content


EDITS = FileOption(
    name="edits",
    kind="the edits",
    called="The edits file",
    max_bytes=512 << 20,
    when_large="Split it into smaller files.",
    when_unreadable="Check the path, or create a file with `vlprobe perturb`.",
)


def edits_option(uses: str) -> Option:
    """Create a probe's option `edits`; `uses` is a sentence that explains how the probe uses the edits."""
    return Option(
        name="edits",
        default="",
        label="Edits from a file",
        help=f"File of JSON lines with one edit per line (docs/edits.md). {uses}",
        refers_to="file",
    )


def without_unset(options: Mapping[str, object], name: str) -> dict[str, object]:
    """Return a copy of the options without the option `name` if that option is off, so that the run keeps its key."""
    return {other: value for other, value in options.items() if other != name or value}


class ProbeWithEdits(Probe):
    """Probe with the option `edits`: a file whose edits replace those from the probe's rules or dataset."""

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Add the digest of the edits file to the options.

        If no file is given, remove the option so that the run keeps its key.
        """
        return EDITS.with_digest(options) if options["edits"] else without_unset(options, "edits")

    def check_items(self, items: Sequence[Item], options: Mapping[str, object]) -> None:
        """Raise InvalidInput if the edits file contains a caption that does not occur in any item."""
        if edits := load_edits(options):
            edits.check(items)


def load_edits(options: Mapping[str, object]) -> EditsFile | None:
    """Return the edits from the file that is named in a run's pinned options; None if no file is named."""
    if not options.get("edits"):
        return None
    edits = _edits_of(str(options["edits"]), str(options.get("edits_digest", "")))
    if edits is None:
        raise InvalidInput(
            f"The edits file '{options['edits']}' is in LGIP format, which only the lgip probe "
            "can read. For other probes, write one edit per line with `vlprobe perturb "
            "--format edits`."
        )
    return edits


def is_lgip_form(options: Mapping[str, object]) -> bool:
    """Return whether the edits file in a run's pinned options is in LGIP's format, with one picture per line."""
    return _edits_of(str(options["edits"]), str(options.get("edits_digest", ""))) is None


@functools.lru_cache(maxsize=2)  # called for each item with the edits of the whole file
def _edits_of(path: str, digest: str) -> EditsFile | None:
    """Read an edits file; return None if it is in LGIP's format. Raises InvalidInput if the file has changed."""
    content = EDITS.content(path, digest)
    return None if edits_file.is_lgip_form(content) else edits_file.read(content, path)


_WORDS = FileOption(
    name="vocabulary",
    kind="the vocabulary",
    called="The vocabulary",
    max_bytes=16 << 20,  # BERT's list has 0.2 MB
    when_large="Expected a smaller text file with one word per line.",
    when_unreadable="Expected a text file with one word per line.",
)


def vocabulary_option(uses: str) -> Option:
    """Create a probe's option `vocabulary`; `uses` completes the help sentence that begins with "Its nouns"."""
    return Option(
        name="vocabulary",
        default="",
        label="Words from a file",
        help="A text file with one word per line, such as BERT's vocab.txt. Its nouns that consist "
        f"of the letters a to z {uses}",
        refers_to="file",
    )


def pin_vocabulary(options: Mapping[str, object]) -> Mapping[str, object]:
    """Add the full path and the digest of the vocabulary to the options. If no vocabulary is given, remove the option
    so that the run keeps its key. Raises InvalidInput if the file cannot be read or has fewer than two nouns.
    """
    if not options.get("vocabulary"):
        return without_unset(options, "vocabulary")
    pinned = _WORDS.with_digest(options)
    _vocabulary_of(str(pinned["vocabulary"]), str(pinned["vocabulary_digest"]))
    return pinned


def load_vocabulary(options: Mapping[str, object]) -> substitution.Vocabulary | None:
    """Return the nouns from the vocabulary file that is named in a run's pinned options; None if no file is named."""
    if not options.get("vocabulary"):
        return None
    return _vocabulary_of(str(options["vocabulary"]), str(options.get("vocabulary_digest", "")))


@functools.lru_cache(maxsize=2)  # called for each item: 1,764 words take 3 ms
def _vocabulary_of(path: str, digest: str) -> substitution.Vocabulary:
    """Read the nouns in a vocabulary file. Raises InvalidInput if the file has changed or cannot be used."""
    content = _WORDS.content(path, digest)
    try:
        words = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The vocabulary '{path}' is not UTF-8 (byte {error.start}). Expected a text file with one word per line."
        ) from None
    nouns = substitution.vocabulary(words)
    lemmas = {noun.lemma for pool in nouns.values() for noun in pool}
    if len(lemmas) < 2:
        raise InvalidInput(
            f"The vocabulary '{path}' has only one noun, '{min(lemmas)}'. Expected at "
            "least two: captions with this noun could not be altered, and all others "
            "would get the same word."
        )
    return nouns
