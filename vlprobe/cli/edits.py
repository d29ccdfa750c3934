"""Commands for edits that a language model writes, and for human verdicts on edits."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from vlprobe.cli.arguments import (
    COSTS,
    FORMAT,
    LOADING,
    SEED,
    cache_store,
    item_choices,
    typed,
)
from vlprobe.cli.output import ProgressBar, inform, print_rows
from vlprobe.render.text_tables import formatted
from vlprobe.runs.request import Request
from vlprobe.storage import files


@click.command()
@click.argument("dataset")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--with",
    "writer",
    required=True,
    metavar="MODEL",
    help="Model that writes the edits: http:URL#MODEL (chat completions) or hf-gen:FOLDER.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    default=("visla",),
    metavar="KIND",
    help="Kind of edit to write: visla (positive and negative), prsm (P1, P2, P3), negatives, "
    "or a single kind such as negative:swap (see docs/edits.md); repeatable.",
)
@click.option(
    "--count",
    default=1,
    type=click.IntRange(1, 20),
    help="Number of edits per kind and caption.",
)
@click.option(
    "--captions",
    default=0,
    type=click.IntRange(0),
    help="Number of captions to edit per item, from the first. [default: all]",
)
@SEED
@click.option(
    "--temperature",
    default=0.7,
    type=click.FloatRange(0, 2),
    help="Sampling temperature of MODEL.",
)
@click.option(
    "--attempts",
    default=3,
    type=click.IntRange(1, 10),
    help="Maximum number of attempts per edit. After a rejected attempt, the next request "
    "includes the reason.",
)
@item_choices
@LOADING
@COSTS
@click.pass_context
def edits(
    ctx: click.Context,
    dataset: str,
    output: Path,
    writer: str,
    kinds: tuple[str, ...],
    seed: int,
    **settings: Any,
) -> None:
    """Have MODEL write paraphrases and foils of the captions in DATASET, and save them in OUTPUT, one edit per
    line.

    Pass the file to any probe with --option edits=OUTPUT. A .rejected.jsonl file next to it lists the edits
    that failed every attempt, with the reason. To resume, repeat the command; no request is sent twice.
    """
    from vlprobe.perturb.instructions import chosen
    from vlprobe.runs.edits.write import EditOrder, write

    typed(dataset, writer)
    choices = {name: settings.pop(name) for name in ("item", "where", "sample", "limit")}
    items = Request((), dataset, "", seed=seed, **choices)
    order = EditOrder(items=items, writer=writer, choices=chosen(kinds), **settings)
    with ProgressBar() as bar:
        outcome = write(order, output, cache_store(ctx), bar)
    inform(f"{output}: {outcome.edits.total():,} edits ({_counted(outcome.edits)})")
    if outcome.rejected:
        inform(
            f"{outcome.rejected_path}: {outcome.rejected.total():,} not written ({_counted(outcome.rejected)})"
        )


@click.command()
@click.argument("edits_path", metavar="EDITS")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--sample",
    default=0,
    type=click.IntRange(0),
    help="Number of edits to draw at random, using the seed. [default: all]",
)
@SEED
def sheet(edits_path: str, output: Path, sample: int, seed: int) -> None:
    """Write edits to a CSV sheet in which a person marks each one as same, different, unsure or broken.

    The edits are in random order, without their intended meaning. Give each judge a copy named after that judge.
    """
    import pandas as pd

    from vlprobe.runs.edits.sheet import COLUMNS, open_edits, sample_edits

    edits_on_it = sample_edits(open_edits(edits_path).edits, sample, seed)
    files.require_new(output, "verdicts")
    rows = [(edit.id, edit.caption, edit.text, "", "") for edit in edits_on_it]
    table = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    files.write_bytes(output, formatted(table, "csv").encode("utf-8-sig"))
    inform(f"{output}: {len(edits_on_it):,} edits to judge")


@click.command()
@click.argument("edits_path", metavar="EDITS")
@click.argument("sheets", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--disputes",
    is_flag=True,
    help="Instead of the agreement, list the edits for which at least one verdict differs from "
    "the intended meaning.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file for the edits that were not judged wrong.",
)
@FORMAT
@click.pass_context
def verdicts(
    ctx: click.Context,
    edits_path: str,
    sheets: tuple[Path, ...],
    disputes: bool,
    output: Path | None,
    how: str,
) -> None:
    """Report how well human verdicts agree with the intended meaning and with each other.

    SHEETS are filled-in copies of a sheet, one per judge. Without SHEETS, the verdicts that earlier versions of
    vlprobe stored in the cache are used.
    """
    from vlprobe.runs.edits import sheet

    judged = sheet.open_edits(edits_path)
    counted = (
        sheet.read_sheets(sheets, judged)
        if sheets
        else sheet.read_stored(cache_store(ctx), judged.digest)
    )
    report = sheet.report(judged.edits, counted)
    if disputes:
        rows = []
        for edit, of_judges in report.disputes:
            words = ", ".join(f"{judge}: {word}" for judge, word in of_judges.items())
            rows.append((edit.caption, edit.text, edit.meaning, edit.subtype, words))
        print_rows("caption edit intended subtype verdicts", rows, how)
    else:
        table = [
            (judge, meaning, n_edits, share.value, share.low, share.high, unsure, broken)
            for judge, meaning, n_edits, share, unsure, broken in report.rows
        ]
        columns = "judge intended edits as_intended low high unsure broken"
        print_rows(columns, table, how)
    inform(sheet.sentence(report))
    if output:
        files.require_new(output)
        content, n_left_out = sheet.without_wrong(judged, counted)
        files.write_bytes(output, content)
        inform(f"{output}: {n_left_out:,} edits left out")


def _counted(counts: Counter[str]) -> str:
    """Format names with their counts as one line, most frequent first."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common()) or "none"
