"""The option `vocabulary` of the probe `rococo`: a file of words that rand-voca inserts."""

import functools
from collections.abc import Mapping, Sequence

from vlprobe.errors import InvalidInput
from vlprobe.perturb import substitution
from vlprobe.probes.file_option import FileOption
from vlprobe.types.options import Option

_FILE = FileOption(
    name="vocabulary",
    kind="the vocabulary",
    called="The vocabulary",
    is_plural=False,
    max_bytes=16 << 20,  # BERT's list has 0.2 MB
    when_large="Expected a word a line.",
    when_unreadable="Expected a text file with a word a line.",
)
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
    """Raise InvalidInput if a vocabulary is named that no policy uses."""
    if vocabulary and not any(policy.partition(":")[0] == POLICY for policy in policies):
        raise InvalidInput(
            f"A vocabulary is named, and no policy puts it in. Add {POLICY} to the option 'policies', or leave out the "
            "option 'vocabulary'."
        )


def with_digest(options: Mapping[str, object]) -> dict[str, object]:
    """The options with the full path of the file, and its digest. Raises InvalidInput if it cannot be
    read or has fewer than two nouns.
    """
    pinned = _FILE.with_digest(options)
    _loaded(str(pinned["vocabulary"]), str(pinned["vocabulary_digest"]))
    return pinned


def loaded(options: Mapping[str, object]) -> substitution.Vocabulary | None:
    """The words of the file that pinned options name; None without one."""
    if not options.get("vocabulary"):
        return None
    return _loaded(str(options["vocabulary"]), str(options.get("vocabulary_digest", "")))


@functools.lru_cache(maxsize=2)  # each item asks: 1,764 words take 3 ms
def _loaded(path: str, digest: str) -> substitution.Vocabulary:
    """The file's words; one that changed is not read for another."""
    content = _FILE.content(path, digest)
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
