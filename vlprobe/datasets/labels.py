"""The column `label`, which marks captions as true or false."""

from collections.abc import Mapping
from pathlib import Path

from vlprobe.errors import InvalidInput

LABEL = "label"
TRUTHS = {
    **dict.fromkeys(("1", "1.0", "true", "t", "yes", "y"), True),
    **dict.fromkeys(("0", "0.0", "false", "f", "no", "n"), False),
}


def is_true(value: str) -> bool | None:
    """Return whether a label means true; None if it means neither true nor false.

    >>> is_true("1"), is_true("False"), is_true("cat")
    (True, False, None)
    """
    return TRUTHS.get(value.strip().lower())


def check_values(file: Path, counts: Mapping[str, int], name: str) -> None:
    """Check that a table does not label some of its captions as false.

    Args:
        counts: Number of captions by label; blank labels are ignored.
        name: The `table:` name of the file, for the error message.

    Raises:
        InvalidInput: there are two labels, one for true and one for false captions.
    """
    labels = [label for label in counts if label.strip()]
    values = {is_true(label): label for label in labels}
    if len(labels) == 2 and set(values) == {True, False}:
        raise InvalidInput(
            f"In '{file}', {counts[values[False]]:,} of {sum(counts.values()):,} captions have "
            f"the label '{values[False]}', which marks wrong captions. To use only the true "
            f"captions, write {name}+label={values[True]}. If the column '{LABEL}' means "
            f"something else, write {name}+subset={LABEL}."
        )
