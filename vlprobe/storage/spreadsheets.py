"""Words of anybody in cells that a spreadsheet may open."""

import re

FORMULA = re.compile("(?:^|(?<=[;\t\r\n]))(?=[ ]*[=+@\uff1d\uff0b\uff0d\uff20-])|^(?=[\t\r\n])")


def defused(value: object) -> object:
    """A cell that no spreadsheet runs: what begins like a formula gets an apostrophe; numbers stay
    numbers.

    >>> defused("=1+1"), defused("-"), defused(-0.5), defused("a dog; =1+1")
    ("'=1+1", "'-", -0.5, "a dog;' =1+1")
    """
    return FORMULA.sub("'", value) if isinstance(value, str) else value
