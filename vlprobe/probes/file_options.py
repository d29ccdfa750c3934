"""Files that options of probes name: read once, identified by their digests.

edits of every probe: edits in place of those from its rules or its dataset
vocabulary    of the probe `rococo`: words that rand-voca inserts
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
from vlprobe.types import Item
from vlprobe.types.options import Option


@dataclass(frozen=True)
class FileOption:
    """Error messages for a file, and its maximum size.

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


_EDITS = FileOption(
    name="edits",
    kind="the edits",
    called="Edits",
    is_plural=True,
    max_bytes=512 << 20,
    when_large="Expected a smaller file; cut it in parts.",
    when_unreadable="Write some: vlprobe perturb.",
)


def edits_option(uses: str) -> Option:
    """The option of a probe. `uses` is a sentence on the use of the edits."""
    return Option(
        name="edits",
        default="",
        label="Edits from a file",
        help=f"JSON lines, one edit per line (docs/edits.md). {uses}",
        refers_to="file",
    )


def pin_edits(options: Mapping[str, object]) -> dict[str, object]:
    """Add the file's digest, or remove `edits` if no file is named: a run without it keeps its key."""
    if not options["edits"]:
        return {name: value for name, value in options.items() if name != "edits"}
    return with_edits_digest(options)


def with_edits_digest(options: Mapping[str, object]) -> dict[str, object]:
    """The options with the full path of the file, and its digest. Raises InvalidInput if it cannot be read."""
    return _EDITS.with_digest(options)


def load_edits(options: Mapping[str, object]) -> EditsFile | None:
    """Return the edits of the file that pinned options name; None without one."""
    if not options.get("edits"):
        return None
    edits = _edits_of(str(options["edits"]), str(options.get("edits_digest", "")))
    if edits is None:
        raise InvalidInput(
            f"Edits '{options['edits']}' are in LGIP's form, which only the probe lgip reads. Expected one edit per "
            "line: vlprobe perturb --format edits."
        )
    return edits


def is_lgip_form(options: Mapping[str, object]) -> bool:
    """Return whether the file that pinned options name has one picture per line, as LGIP writes it."""
    return _edits_of(str(options["edits"]), str(options.get("edits_digest", ""))) is None


def check_edits(items: Sequence[Item], options: Mapping[str, object]) -> None:
    """Raise InvalidInput where the file has an edit of a caption that no item of the dataset has."""
    if edits := load_edits(options):
        edits.check(items)


@functools.lru_cache(maxsize=2)  # called for each item with the edits of the whole file
def _edits_of(path: str, digest: str) -> EditsFile | None:
    """Read the file's edits, None in LGIP's form; a changed file raises InvalidInput."""
    content = _EDITS.content(path, digest)
    return None if edits_file.is_lgip_form(content) else edits_file.read(content, path)


_WORDS = FileOption(
    name="vocabulary",
    kind="the vocabulary",
    called="The vocabulary",
    is_plural=False,
    max_bytes=16 << 20,  # BERT's list has 0.2 MB
    when_large="Expected one word per line.",
    when_unreadable="Expected a text file with one word per line.",
)
VOCABULARY_POLICY = "rand-voca"
VOCABULARY = Option(
    name="vocabulary",
    default="",
    label="Words from a file",
    help="A text file with one word per line, such as BERT's vocab.txt. Its nouns in English letters "
    "replace the built-in list of the policy rand-voca.",
    refers_to="file",
)


def check_vocabulary(vocabulary: str, policies: Sequence[str]) -> None:
    """Raise InvalidInput if a vocabulary is named that no policy uses."""
    if vocabulary and not any(policy.partition(":")[0] == VOCABULARY_POLICY for policy in policies):
        raise InvalidInput(
            f"A vocabulary is named, but no policy uses it. Add {VOCABULARY_POLICY} to the option 'policies', or "
            "leave out the option 'vocabulary'."
        )


def with_vocabulary_digest(options: Mapping[str, object]) -> dict[str, object]:
    """The options with the full path of the file, and its digest. Raises InvalidInput if it cannot be
    read or has fewer than two nouns.
    """
    pinned = _WORDS.with_digest(options)
    _vocabulary_of(str(pinned["vocabulary"]), str(pinned["vocabulary_digest"]))
    return pinned


def load_vocabulary(options: Mapping[str, object]) -> substitution.Vocabulary | None:
    """The words of the file that pinned options name; None without one."""
    if not options.get("vocabulary"):
        return None
    return _vocabulary_of(str(options["vocabulary"]), str(options.get("vocabulary_digest", "")))


@functools.lru_cache(maxsize=2)  # called for each item: 1,764 words take 3 ms
def _vocabulary_of(path: str, digest: str) -> substitution.Vocabulary:
    """Read the file's words; a changed file raises InvalidInput."""
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
            f"The vocabulary '{path}' has one noun, '{min(lemmas)}'. Expected two or more: a caption that has the word "
            "could not be altered, and all others alike."
        )
    return nouns
