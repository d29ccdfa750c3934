"""Names of models that are files: PREFIX:FILE, options after plus signs."""

import re
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import files


def parse_options(
    name: str, pattern: re.Pattern[str], expected: str
) -> tuple[Path, list[re.Match[str]]]:
    """Split a name into its file and its options in order. A path that exists as written may contain a plus sign.

    Args:
        name: The name that the user typed.
        pattern: The pattern that a complete option matches.
        expected: The options in words, for an error.

    Raises:
        InvalidInput: no file is named, or the text after a plus sign is not an option.
    """
    prefix, _, text = name.partition(":")
    if not text:
        raise InvalidInput(f"'{name}' names no file. Expected {prefix}:FILE.")
    options = []
    while not files.parse_path(text).exists() and "+" in text:
        text, _, option = text.rpartition("+")
        match = pattern.fullmatch(option)
        if not match:
            raise InvalidInput(
                f"'{option[:80]}' in '{name}' is no option, or there is no such file. Expected {expected}."
            )
        options.append(match)
    return files.parse_path(text), options[::-1]
