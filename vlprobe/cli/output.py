"""Output from commands: tables to stdout, progress and messages to stderr."""

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click
from click.core import ParameterSource

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
PAPER = {"averaging", "low", "metric", "model", "n_items", "value"}  # columns that a paper needs


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


def print_table(table: "pd.DataFrame", how: str, empty: str = NOTHING) -> None:
    """Print a table as text, csv, json, Markdown or LaTeX. Unknown numbers are "-", except in csv and json.

    Text in cells is untrusted. It is escaped so that a spreadsheet does not run it as a formula, the terminal does not
    interpret it, and Markdown and LaTeX do not treat it as markup. On a terminal, a text table is fitted to the width.
    The caption of a LaTeX table names the command.
    """
    from vlprobe.metrics.estimate import FEWEST_ITEMS
    from vlprobe.render.numbers import TOO_FEW

    if how != "table":
        command, label = _command()
        note = f"Output of vlprobe {command}." if how == "latex" else ""
        click.echo(formatted(table, how, note=note, label=label), nl=False)
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


def _command() -> tuple[str, str]:
    """Return the name of the command that runs, such as "jobs cancel", and a label for its table that also has the
    values that the user typed, such as "show-clip-subtype", so that tables of one command have different labels.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return "", "table"
    command = context.command_path.removeprefix(context.find_root().command_path).strip()
    typed = [
        str(value)
        for name, value in context.params.items()
        if name != "how" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    return command, "-".join(re.findall("[a-z0-9]+", " ".join([command, *typed]).lower()))


def print_rows(
    columns: str, rows: Iterable[Sequence[object]], how: str, empty: str = NOTHING
) -> None:
    """Print rows as a table (see `print_table`). `columns` lists the column names, separated by spaces."""
    import pandas as pd

    print_table(pd.DataFrame(list(rows), columns=pd.Index(columns.split())), how, empty)


def print_metrics(
    table: "pd.DataFrame",
    how: str,
    question_set: "QuestionSet",
    unit: str = "cosine",
    named_slice: str = "",
) -> None:
    """Print a table of metrics. Metrics without a value in any row are omitted, except in csv and json.

    A line printed to stderr tells how many metrics were omitted.

    Args:
        table: One row per metric and model, with `metric`, `value` and, in comparisons, `base`.
        question_set: The source that the caption of a LaTeX table names.
        unit: "cosine" or "spread".
        named_slice: The slice whose cases the table is about; "" means all cases.
    """
    from vlprobe.render.attribution import with_source
    from vlprobe.render.sentences import joined, listed, sentence_names
    from vlprobe.storage import display_names

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
    if how != "latex":
        print_table(table, how)
        return
    renamed, (_, label) = display_names.read(question_set.store), _command()
    sources = question_set.runs, renamed
    of_cases = f"Cases of the slice “{named_slice}” only." if named_slice else ""
    if not {*table} >= PAPER:
        text = with_source(table, how, *sources, None, joined("Metrics.", of_cases), label=label)
        click.echo(text, nl=False)
        return
    names = sentence_names(question_set.models, renamed)
    measured = "values"
    if "difference" in table:
        compared = listed([names[model] for model in dict.fromkeys(table["model"])])
        base = names[table["baseline"].iloc[0]]
        measured = f"differences of {compared} from {base} (shares: in points)"
    letters = " Models that share a letter are tied." * ("group" in table)
    averages = "/".join(dict.fromkeys(table["averaging"]))
    caption = joined(
        f"Metrics ({averages} averages) with 95 % intervals of {measured}, resampled by picture."
        f"{letters}",
        of_cases,
    )
    paper = _paper_columns(table, question_set, unit, names)
    click.echo(with_source(paper, how, *sources, None, caption, label=label), nl=False)


def _paper_columns(
    table: "pd.DataFrame", question_set: "QuestionSet", unit: str, names: "Mapping[str, str]"
) -> "pd.DataFrame":
    """Return the columns of a table of metrics that a paper needs, with the names and numbers of the pages. The other
    columns are in the CSV file.
    """
    from vlprobe.render.numbers import between, chance_cell, interval, number, signed, unit_of
    from vlprobe.render.words import edit_title

    metrics = question_set.metrics
    units = [unit_of(metrics[name], unit) for name in table["metric"]]
    is_compared = "difference" in table
    paper = table.loc[:, ["model", "metric"]]
    paper["model"] = [names[model] for model in table["model"]]
    paper["metric"] = [metrics[name].label for name in table["metric"]]
    if "slice" in table and any(table["slice"]):
        paper["slice"] = [edit_title(name) or "All" for name in table["slice"]]
    for name, write in {"base": number, "value": number, "difference": signed}.items():
        if name in table:
            texts = map(write, table[name], units)
            paper[name] = [text.removesuffix(" points") for text in texts]
    ends = zip(table["low"], table["high"], units, strict=True)
    paper["interval"] = [(between if is_compared else interval)(*each) or "-" for each in ends]
    if is_compared:
        paper["p (Holm)"] = [chance_cell(p) for p in table["p_holm"]]
    paper["pictures"] = [f"{n:,}" for n in table["n_items"]]
    if is_compared and len(set(paper["model"])) == 1:  # the caption has the name
        paper = paper.drop(columns="model")
    if "group" in table:
        paper["group"] = table["group"]
    return paper


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
