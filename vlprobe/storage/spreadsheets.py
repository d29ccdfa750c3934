"""Escaping for untrusted text in cells that a spreadsheet may open."""

import re

# Blanks and zero-width characters that some spreadsheets skip before a formula; not those at the start of a cell.
SKIPPED = "(?:[^\\S\t\r\n]|[\0\xad\u200b-\u200f\u2060\ufeff])*"
FORMULA = re.compile(
    f"(?:^|(?<=[;\t\r\n]))(?={SKIPPED}[=+@\uff1d\uff0b\uff0d\uff20-])|^(?=[\t\r\n])"
)


def defused(value: object) -> object:
    """Escape text that a spreadsheet could run as a formula, by adding an apostrophe. Numbers are returned unchanged.

    >>> defused("=1+1"), defused("-"), defused(-0.5), defused("a dog; =1+1")
    ("'=1+1", "'-", -0.5, "a dog;' =1+1")
    """
    return FORMULA.sub("'", value) if isinstance(value, str) else value
