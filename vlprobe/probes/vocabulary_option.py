"""The option `vocabulary` of the probe `rococo`: a file of words for rand-voca to put in."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.perturb import substitution
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside
from vlprobe.types.options import Option

MAX_BYTES = 16 << 20  # BERT's list has 0.2 MB
POLICY = "rand-voca"
OPTION = Option(
    name="vocabulary",
    default="",
    label="Words from a file",
    help="A text file with a word a line, such as BERT's vocab.txt: what rand-voca puts in instead of our own list. "
    "Taken are its nouns in English letters.",
    refers_to="file",
)


def check(vocabulary: str, policies: Sequence[str]) -> None:
    """Raises InvalidInput where a vocabulary is named that no policy puts in."""
    if vocabulary and not any(policy.partition(":")[0] == POLICY for policy in policies):
        raise InvalidInput(
            f"A vocabulary is named, and no policy puts it in. Add {POLICY} to the option 'policies', or leave out the "
            "option 'vocabulary'."
        )


def with_digest(options: Mapping[str, object]) -> dict[str, object]:
    """The options with the whole path of the file, and its digest. Raises InvalidInput where it cannot be
    read or has fewer than two nouns.
    """
    path = files.parse_path(str(options["vocabulary"]))
    try:
        path = path.resolve()
        refuse_outside(path)
        files.require_utf8(path, "the vocabulary")
        if path.stat().st_size > MAX_BYTES:
            raise InvalidInput(
                f"The vocabulary '{path}' has more than {MAX_BYTES >> 20} MiB. Expected a word a line."
            )
        digest = pictures.digest(files.read(path))
    except OSError as error:
        raise InvalidInput(
            f"The vocabulary '{path}' cannot be read ({error.strerror}). Expected a text file with a word a line."
        ) from None
    _loaded(str(path), digest)
    return {**options, "vocabulary": str(path), "vocabulary_digest": digest}


def loaded(options: Mapping[str, object]) -> substitution.Vocabulary | None:
    """The words of the file that pinned options name; None without one."""
    if not options.get("vocabulary"):
        return None
    return _loaded(str(options["vocabulary"]), str(options.get("vocabulary_digest", "")))


@functools.lru_cache(maxsize=2)
def _loaded(path: str, digest: str) -> substitution.Vocabulary:
    """The file's words; one that changed is not read for another."""
    content = files.read(Path(path))
    if pictures.digest(content) != digest:
        raise InvalidInput(f"The vocabulary '{path}' was changed meanwhile. Start the run again.")
    try:
        words = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The vocabulary '{path}' is not UTF-8 (byte {error.start}). Expected a text file with a word a line."
        ) from None
    nouns = substitution.vocabulary(words)
    lemmas = {noun.lemma for pool in nouns.values() for noun in pool}
    if len(lemmas) < 2:
        raise InvalidInput(
            f"The vocabulary '{path}' has one noun, '{min(lemmas)}'. Expected two or more: a caption that has the word "
            "could not be altered, and all others alike."
        )
    return nouns
