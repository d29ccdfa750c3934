"""Output from commands: tables to stdout, progress and messages to stderr."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from vlprobe import views
from vlprobe.errors import InvalidInput, printable
from vlprobe.render.text_tables import folded, formatted, markdown_text, terminal_width, text_lines
from vlprobe.runs.request import Progress

if TYPE_CHECKING:
    import pandas as pd

    from vlprobe.storage.store import Store
    from vlprobe.views.records import RunRow
    from vlprobe.views.runs import QuestionSet

FOLDED = 48  # maximum characters for a cell that may be pages long
NOTE = 200  # length of a note that gets a separate line
WHOLE = "vlprobe show --format json"
READ = ("table", "markdown", "latex")  # formats for people
NOTHING = "There is nothing to show yet."


def inform(line: str) -> None:
    """Print a message to stderr, because stdout is reserved for data."""
    click.echo(line, err=True)


@contextlib.contextmanager
def text_output(path: Path | None) -> Iterator[IO[str]]:
    """Open a file for writing text, or stdout if `path` is None. Raises InvalidInput if the file cannot be written."""
    if path is None:
        with click.open_file("-", "w", encoding="utf-8") as handle:
            yield handle
        return
    try:
        with path.open("w", encoding="utf-8") as handle:
            yield handle
    except OSError as error:
        raise InvalidInput(
            f"Cannot write '{path}' ({error.strerror}). Check that the folder exists and is writable."
        ) from None


def print_table(table: "pd.DataFrame", how: str, empty: str = NOTHING, caption: str = "") -> None:
    """Print a table as text, csv, json, Markdown or LaTeX. Unknown numbers are "-", except in csv and json.

    Text in cells is untrusted. It is escaped so that a spreadsheet does not run it as a formula, the terminal does not
    interpret it, and Markdown and LaTeX do not treat it as markup. On a terminal, a text table is fitted to the width.
    The caption is for LaTeX; without one, it names the command.
    """
    from vlprobe.metrics.estimate import FEWEST_ITEMS
    from vlprobe.render.numbers import TOO_FEW

    if how != "table":
        context, command = click.get_current_context(silent=True), []
        while context and context.parent:
            command.insert(0, str(context.info_name))
            context = context.parent
        note = (caption or f"Output of vlprobe {' '.join(command)}.") if how == "latex" else ""
        click.echo(formatted(table, how, note=note, label="-".join(command) or "table"), nl=False)
    elif table.empty:
        inform(empty)
    else:
        lines, cut = text_lines(table, terminal_width())
        for line in lines:
            click.echo(line)
        if cut:
            inform(
                "These columns were shortened or left out to fit the screen: "
                f"{', '.join(cut)}. To see everything, use --format json."
            )
        is_few = table["n_items"].between(1, FEWEST_ITEMS - 1) if "n_items" in table else False
        if "low" in table and any(table["low"].isna() & is_few):
            inform(f"Rows without an interval are based on {TOO_FEW}.")


def print_rows(
    columns: str, rows: Iterable[Sequence[object]], how: str, empty: str = NOTHING
) -> None:
    """Print rows as a table (see `print_table`). `columns` lists the column names, separated by spaces."""
    import pandas as pd

    print_table(pd.DataFrame(list(rows), columns=pd.Index(columns.split())), how, empty)


def print_metrics(table: "pd.DataFrame", how: str, runs: "Sequence[RunRow]") -> None:
    """Print a table of metrics. Metrics without a value in any row are omitted, except in csv and json.

    A line printed to stderr tells how many metrics were omitted.

    Args:
        table: One row per metric and model, with `metric`, `value` and, in comparisons, `base`.
        runs: The runs that the caption of a LaTeX table names as the source.
    """
    from vlprobe.render.attribution import source_line

    if how in READ and "metric" in table:
        columns = [name for name in ("value", "base") if name in table]
        has_value = table[columns].notna().to_numpy().any(axis=1)
        known = set(table["metric"].to_numpy()[has_value])
        n_metrics = len(set(table["metric"]))
        if known and (n_empty := n_metrics - len(known)):
            table = table.loc[table["metric"].isin(list(known))]
            inform(
                f"{n_empty} of {n_metrics} metrics {'has' if n_empty == 1 else 'have'} no "
                "value for these questions. To list all metrics, use --format json."
            )
    measured = "differences from base" if "difference" in table else "values"
    of_interval = f", with 95 % intervals of {measured} (low to high)" if "low" in table else ""
    letters = " Models that share a letter are tied." if "group" in table else ""
    print_table(table, how, caption=f"Metrics{of_interval}.{letters} {source_line(runs)}")


def print_words(sentences: Sequence[str], how: str) -> None:
    """Print sentences above a table. They go to stdout for table and Markdown output, and to stderr otherwise."""
    for sentence in filter(None, sentences):
        if how == "markdown":
            click.echo(markdown_text(sentence) + "\n")
        else:
            click.echo(printable(sentence), err=how != "table")


def print_folded(
    table: "pd.DataFrame", columns: Sequence[str], how: str, full_command: str = WHOLE
) -> None:
    """Print a table (see `print_table`). In text tables, shorten long values in the given columns, and print a line to
    stderr with the command `full_command`, which prints everything.
    """
    if how != "table":
        print_table(table, how)
        return
    short = table.assign(
        **{name: table[name].map(lambda text: folded(text, FOLDED)) for name in columns}
    )
    print_table(short, how)
    if any((short[name] != table[name]).any() for name in columns):
        inform(
            f"Long texts in {' and '.join(columns)} are shortened. To read them in full: "
            f"{full_command}"
        )


def print_slice_notes(store: "Store", case_key: str) -> None:
    """Print to stderr why saved slices with cases in a question set do not apply to it, or why their numbers are
    biased.
    """
    numbers, refusals = views.named_slices.applicable(store, case_key)
    slices = views.named_slices.read(store)
    for note in (*refusals, *filter(None, (slices[name].caveat for name in numbers))):
        inform(note)


def print_notes(runs: "Iterable[RunRow]") -> None:
    """Print warnings about the models' numbers to stderr, one line per model."""
    runs = list(runs)
    for row in (row for row in runs if row.older):
        inform(
            f"{printable(row.model)} was run with an {row.older}. This run is not compared "
            "with newer runs."
        )
    cut = False
    for row in (row for row in runs if row.note):
        line = folded(row.note, NOTE)
        cut |= line.endswith("…")
        inform(f"Note on {printable(row.model)}: {printable(line)}")
    if cut:
        inform(f"To read the full notes: {WHOLE}")


def print_model_index(store: "Store", question_set: "QuestionSet", key: str) -> None:
    """Print all metrics of a run to stdout in the model-index format of a Hugging Face model card."""
    from vlprobe.render.model_index import model_index
    from vlprobe.views.records import EstimateRow, records

    run = next(row for row in views.runs.run_rows(store) if row.key == key)
    alone = replace(question_set, runs=(run,))
    estimates = records(EstimateRow, views.estimates.estimates(alone))
    click.echo(model_index([(run, estimates, alone.metrics)]))


class ProgressBar(Progress):
    """Progress line on stderr. It is rewritten in place on a terminal; elsewhere, each stage gets one line."""

    def __init__(self) -> None:
        self.label, self.width = "", 0

    def update(self, label: str, done: float, total: float) -> None:
        """Show the current stage and its progress."""
        if sys.stderr.isatty():
            line = f"{label}  {100 * done / max(total, 1):5.1f} %"
            sys.stderr.write("\r" + line.ljust(self.width))
            self.width = len(line)
        elif label != self.label:
            sys.stderr.write(label + "\n")
        self.label = label
        sys.stderr.flush()

    def tell(self, line: str) -> None:
        """Print a line to stderr that stays visible above the progress line."""
        self._clear()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def _clear(self) -> None:
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            self.width = 0
