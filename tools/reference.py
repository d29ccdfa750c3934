"""Write the reference pages of the documentation from the code: `python -m tools.reference`.

Commands come from their help texts, options and metrics from the probes, table layouts from the reader's list, export
columns from the export schema, and file formats from the docstrings of their readers. A test compares the pages with
`pages()`.
"""

import inspect
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from vlprobe import registry, views
from vlprobe.cli.listing import option_rows
from vlprobe.cli.main import HELP, main
from vlprobe.datasets import (
    coco,
    csv,
    folder,
    frames,
    orders,
    pairs,
    queries,
    rococo,
    table,
    triplets,
)
from vlprobe.datasets.tables.layouts import LAYOUTS, NAMES
from vlprobe.models import answer_logs, embeddings, score_file, scores
from vlprobe.models.from_files import vectors
from vlprobe.perturb import edits_file
from vlprobe.views.export_schema import SCHEMA_VERSION, TABLES

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTE = "<!-- Written by `python -m tools.reference`. Do not edit. -->"
WIDTH = 100  # characters per line in the help of a command
BETTER = {"up": "higher", "down": "lower", "none": "-"}
READERS = {  # modules with a format in their docstring, by heading
    **{f"`{module.PREFIX}:`": module for module in (csv, folder, coco, table, pairs, triplets)},
    **{f"`{module.PREFIX}:`": module for module in (rococo, frames, orders, queries)},
    "`scores:`": scores,
    "Score files (`score_file`)": score_file,
    "Logs of other tools (`answer_logs`)": answer_logs,
    "`embeddings:`": embeddings,
    "Embedding files (`from_files.vectors`)": vectors,
    "Custom edits": edits_file,
}
BECOMES = {  # the cases that a table's rows become, by kind of layout
    "pair": "pairs",
    "foils": "foils",
    "triplet": "triplets",
    "captions": "captions",
    "options": "foils: of the listed captions one is right",
    "questions": "a pair for each question: question and answer are the text",
    "rows": "pairs of two rows after each other",
    "svo": "pairs of two rows with the same two pictures; others are counted",
    "people": "captions; gender, race and trait of each person are tags",
    "statements": "captions: the statements labeled true; false ones are counted and left out",
    "statement foils": "foils: a true statement, and false ones of the same picture and another relation; by name only",
    "statement triplets": "triplets: two true statements with subject and object exchanged; by name only",
}


def pages() -> dict[str, str]:
    """Return the text of each reference page, keyed by file name."""
    return {
        "commands.md": _page("Commands", _commands()),
        "options.md": _page("Options of the probes", _options()),
        "metrics.md": _page("Metrics", _metrics()),
        "columns.md": _page("File formats and columns", _columns()),
    }


def _page(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# {title}", "", NOTE, "", *lines]).rstrip() + "\n"


def _table(heading: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    names = heading.split(", ")
    yield f"| {' | '.join(names)} |"
    yield f"| {' | '.join('---' for _ in names)} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _commands() -> Iterator[str]:
    yield "The help of every command: `vlprobe COMMAND --help`. Global options go before the command."
    yield ""
    yield from _help("vlprobe", main)
    for name, command in sorted(main.commands.items()):
        yield from _help(f"vlprobe {name}", command)
        if isinstance(command, click.Group):
            for inner, of_group in sorted(command.commands.items()):
                yield from _help(f"vlprobe {name} {inner}", of_group)


def _help(name: str, command: click.Command) -> Iterator[str]:
    context = command.context_class(command, info_name=name, terminal_width=WIDTH, **HELP)
    text = re.split(r"\n *Documentation: ", command.get_help(context))[0].rstrip()
    yield from (f"## {name}", "", "```text", text.strip(), "```", "")


def _options() -> Iterator[str]:
    yield (
        "`--option NAME=VALUE` of `vlprobe run` sets an option of a probe, as do the fields of the Run page. "
        "`vlprobe options PROBE` prints this table."
    )
    yield ""
    for probe in registry.names("probes"):
        yield from (f"## {probe}", "")
        rows = option_rows(probe)
        yield from _table(
            "option, default, values, meaning",
            ((f"`{name}`", default, values, text) for name, _, default, values, text in rows),
        )


def _metrics() -> Iterator[str]:
    yield (
        "`vlprobe list metrics` prints this table. A dash means that chance depends on the data, or that there is no "
        "better direction. [How numbers are computed](../numbers/index.md) has formulas and worked examples."
    )
    yield ""
    for probe in registry.names("probes"):
        title = registry.load_probe(probe).presentation.title
        yield from (f"## {probe}", "", f"[{title}](../numbers/{probe}.md).", "")
        yield from _table(
            "metric, meaning, unit, better, chance, source",
            (
                (
                    f"`{metric.name}`",
                    metric.help,
                    metric.unit,
                    BETTER[metric.direction],
                    "-" if math.isnan(metric.chance) else f"{metric.chance:.3g}",
                    metric.source,
                )
                for metric in views.runs.metrics(probe).values()
            ),
        )


def _columns() -> Iterator[str]:
    yield "- [Files that vlprobe reads](#files-that-vlprobe-reads)"
    yield "- [Layouts of tables](#layouts-of-tables)"
    yield "- [Tables of an export](#tables-of-an-export)"
    yield from ("", "## Files that vlprobe reads", "")
    for heading, module in READERS.items():
        yield from (f"### {heading}", "", inspect.getdoc(module) or "", "")
    yield from ("## Layouts of tables", "")
    yield (
        "`table:FILE` uses the first layout whose columns the table has; `+layout=NAME` selects one. "
        "Letter case does not matter."
    )
    yield ""
    yield from _table("layout, columns, becomes", (_layout_row(name) for name in NAMES))
    yield from ("## Tables of an export", "")
    yield (
        f"The schema of `vlprobe export`, version {SCHEMA_VERSION}. [Publish](../publish.md#export-for-other-programs) "
        "has queries."
    )
    yield ""
    for name, columns in TABLES.items():
        yield from (f"### `{name}`", "")
        yield from _table(
            "column, content", ((f"`{column}`", text) for column, text in columns.items())
        )


def _layout_row(name: str) -> tuple[str, str, str]:
    """Return the name, columns and use of a table layout. Columns that only some of its forms have are alternatives."""
    layouts = [layout for layout in LAYOUTS if layout.name == name]
    forms = [dict.fromkeys((*form.columns.values(), *form.needs)) for form in layouts]
    required = [
        [column for column in form if column in layout.required]
        for form, layout in zip(forms, layouts, strict=True)
    ]
    common = [column for column in required[0] if all(column in form for form in required)]
    others = dict.fromkeys(column for form in required for column in form if column not in common)
    columns = ", ".join(common) + (f", and {' or '.join(others)}" if others else "")
    box = layouts[0].box
    becomes = BECOMES[layouts[0].kind]
    becomes += f", of the part of the picture in {', '.join(box)}" if box else ""
    becomes += "; rows that two of three annotators doubt are left out" if layouts[0].votes else ""
    return f"`{name}`", columns, becomes


def write() -> None:
    """Write the reference pages to docs/reference."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
