"""What a command prints: tables on stdout, how far it is on stderr."""

import sys
from typing import TYPE_CHECKING

import click

from vlprobe.errors import printable

if TYPE_CHECKING:
    import pandas as pd

FORMATS = click.Choice(["table", "csv", "json"])


def print_table(table: "pd.DataFrame", how: str) -> None:
    """The table as text, csv or json; unknown numbers are "-" in text.

    Words are data: as csv no spreadsheet runs them, as text they do not steer the terminal.
    """
    from vlprobe.report_selection import defused

    if how == "csv":
        click.echo(table.map(defused).to_csv(index=False), nl=False)
    elif how == "json":
        click.echo(table.to_json(orient="records", indent=1))
    elif table.empty:
        click.echo("Nothing to show yet.", err=True)
    else:
        table = table.map(lambda value: printable(value) if isinstance(value, str) else value)
        click.echo(table.to_string(index=False, na_rep="-", float_format=lambda value: f"{value:.4f}"))


class Bar:
    """A progress line on stderr, rewritten in place on a terminal, a line a stage elsewhere."""

    def __init__(self) -> None:
        self.label, self.width = "", 0

    def update(self, label: str, done: float, total: float) -> None:
        """Says what is being done, and how much of it is."""
        if sys.stderr.isatty():
            line = f"{label}  {100 * done / max(total, 1):5.1f} %"
            sys.stderr.write("\r" + line.ljust(self.width))
            self.width = len(line)
        elif label != self.label:
            sys.stderr.write(label + "\n")
        self.label = label
        sys.stderr.flush()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
