"""Options of a probe or of a run: the type, default, allowed values and help text for each, and how values
are checked.

Options are data, not page code: the form on the Run page is drawn from them. Values from the form, the command
line and job files are all checked by `parse_options`, so that the same values are rejected with the same
messages.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vlprobe.errors import InvalidInput

Value = bool | int | str
WORDS = {"true": True, "1": True, "false": False, "0": False}
WHOLE = re.compile(r"-?[0-9]{1,18}")
REMOVED = {  # options of earlier versions, each with the value that had no effect and a remedy
    "approximate": ("0", "Galleries are always searched exactly, in blocks that fit in --memory")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. Its values have the type of its default; if the default is a tuple, its values are lists."""

    name: str
    default: Value | tuple[Value, ...]
    label: str  # shown next to the form field
    help: str  # a sentence or two
    # Values to pick from; the only ones, unless `pattern` allows others
    choices: tuple[Value, ...] = ()
    pattern: str = ""  # pattern that other texts must match in full
    expected: str = ""  # description of the allowed texts for error messages
    minimum: int | None = None  # for whole numbers
    maximum: int | None = None
    off_value: int | None = None  # a number outside the bounds that disables the option
    min_values: int = 0  # minimum length of a list
    # Kind of object that a text names; an empty name means none
    refers_to: Literal["", "dataset", "model", "file"] = ""

    @property
    def type(self) -> Literal["flag", "number", "choice", "text", "list"]:
        """Return the kind of form field for the option."""
        if isinstance(self.default, tuple):
            return "list"
        if isinstance(self.default, bool):
            return "flag"
        if isinstance(self.default, int):
            return "number"
        return "choice" if self.choices else "text"

    @property
    def open(self) -> bool:
        """Return whether values other than the choices are allowed."""
        return not self.choices or bool(self.pattern)

    @property
    def value(self) -> object:
        """Return the default as it is stored in a run: a list instead of a tuple."""
        return list(self.default) if isinstance(self.default, tuple) else self.default

    def parse(self, value: object) -> object:
        """Convert a value, or its text from the command line, to the option's type. Raises InvalidInput."""
        if self.type == "list":
            entries = (
                list(value)
                if isinstance(value, list | tuple)
                else [value]
                if value not in ("", None)
                else []
            )
            if len(entries) < self.min_values:
                raise InvalidInput(
                    f"Option '{self.name}' has no value. Expected {self._expected()}."
                )
            values = [self._entry(entry) for entry in entries]
            if repeated := [value for value in values if values.count(value) > 1]:
                raise InvalidInput(
                    f"Option '{self.name}' contains '{repeated[0]}' more than once. List "
                    "each value once."
                )
            return values
        if self.type in ("choice", "text") and isinstance(value, list | tuple):
            value = ",".join(map(str, value))  # a command line takes a text with commas for a list
        return self._entry(value)

    def _entry(self, value: object) -> Value:
        """Convert a single value or one element of a list."""
        text = str(value)
        if self.type == "flag":
            if text.lower() in WORDS:
                return WORDS[text.lower()]
        elif self._takes_integers():
            if WHOLE.fullmatch(text) and self._within(int(text)):
                return int(text)
        elif text in self.choices or (
            self.open and re.fullmatch(self.pattern or ".*", text, re.DOTALL)
        ):
            return text
        raise InvalidInput(f"Option '{self.name}' is '{text}'. Expected {self._expected()}.")

    def _takes_integers(self) -> bool:
        samples = [
            *self.choices,
            *(self.default if isinstance(self.default, tuple) else [self.default]),
        ]
        return any(isinstance(sample, int) for sample in samples)

    def _within(self, number: int) -> bool:
        above = self.minimum is None or number >= self.minimum
        return number == self.off_value or (
            above and (self.maximum is None or number <= self.maximum)
        )

    def _expected(self) -> str:
        if self.type == "flag":
            return "true or false"
        if self.expected:
            return self.expected
        if self._takes_integers():
            low = "" if self.minimum is None else f", {self.minimum} or more"
            return f"a whole number{low if self.maximum is None else f' from {self.minimum} to {self.maximum}'}"
        return f"one of: {', '.join(map(str, self.choices))}"


def parse_options(
    options: Sequence[Option], values: Mapping[str, object], owner: str
) -> dict[str, object]:
    """Check the given values, and return a value for every option by name. Options without a value get the default.

    Args:
        options: All existing options.
        values: The given values, by option name.
        owner: What the options belong to, such as "Probe 'lgip'", for error messages.

    Raises:
        InvalidInput: an option is unknown or was removed, or a value is not allowed.
    """
    unknown = sorted(set(values) - {option.name for option in options})
    for name in REMOVED.keys() & set(unknown):
        neutral, instead = REMOVED[name]
        if str(values[name]) not in (neutral, ""):
            raise InvalidInput(f"Option '{name}' was removed. {instead}. Do not set it.")
        unknown.remove(name)
    if unknown:
        names = ", ".join(option.name for option in options)
        raise InvalidInput(
            f"{owner} has no option '{unknown[0]}'. Available options: {names or 'none'}."
        )
    return {
        option.name: option.parse(values[option.name]) if option.name in values else option.value
        for option in options
    }
