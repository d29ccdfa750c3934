"""The commands for edits that a language model writes, and for people's verdicts on edits."""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

import click

from vlprobe.cli.output import FORMATS, Bar, item_choices, print_table
from vlprobe.cli.plugins import typed
from vlprobe.errors import InvalidInput


@click.command()
@click.argument("dataset")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--with",
    "writer",
    required=True,
    metavar="MODEL",
    help="Who writes: http:URL#MODEL (chat completions) or hf-gen:FOLDER.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    default=("visla",),
    show_default=True,
    metavar="KIND",
    help="visla (positive and negative), prsm (P1, P2, P3), negatives, or one such as negative:swap; docs/edits.md.",
)
@click.option(
    "--count",
    default=1,
    type=click.IntRange(1, 20),
    show_default=True,
    help="Edits of each kind for a caption.",
)
@click.option(
    "--captions",
    default=0,
    type=click.IntRange(0),
    help="Only the first N captions of each item [all].",
)
@click.option("--seed", default=42, show_default=True)
@click.option("--temperature", default=0.7, type=click.FloatRange(0, 2), show_default=True)
@click.option(
    "--attempts",
    default=3,
    type=click.IntRange(1, 10),
    show_default=True,
    help="At an edit; each after the first is told what was wrong.",
)
@item_choices
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps.")
@click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "bf16"]), default="fp32", show_default=True
)
@click.option(
    "--price",
    default="",
    metavar="SENT[/RECEIVED]",
    help="Of a million tokens, to reckon with, such as 0.02 or 2.5/10.",
)
@click.option(
    "--max-cost",
    default="",
    metavar="AMOUNT",
    help="Stop before a request that could cost more; the same command goes on [no limit].",
)
@click.pass_context
def edits(
    ctx: click.Context,
    dataset: str,
    output: Path,
    writer: str,
    kinds: tuple[str, ...],
    count: int,
    captions: int,
    seed: int,
    temperature: float,
    attempts: int,
    device: str,
    precision: str,
    price: str,
    max_cost: str,
    **choices: Any,
) -> None:
    """Have MODEL write paraphrases and foils of the captions of DATASET into OUTPUT, an edit a line.

    Every probe takes them as --option edits=OUTPUT. What no attempt got right stands in OUTPUT's
    neighbour .rejected.jsonl, with the reason. The same command again goes on, and asks nothing twice.
    """
    from vlprobe.perturb.instructions import chosen
    from vlprobe.runs.edits.write import EditOrder, write
    from vlprobe.runs.request import Request
    from vlprobe.storage.store import DEFAULT, Store

    typed(dataset, writer)
    order = EditOrder(
        items=Request((), dataset, "", seed=seed, **choices),
        writer=writer,
        choices=chosen(kinds),
        count=count,
        captions=captions,
        temperature=temperature,
        attempts=attempts,
        device=device,
        precision=precision,
        price=price,
        max_cost=max_cost,
    )
    with Bar() as bar:
        outcome = write(order, output, Store(ctx.obj or DEFAULT), bar)
    click.echo(f"{output}: {outcome.edits.total():,} edits ({_counted(outcome.edits)})", err=True)
    if outcome.rejected:
        click.echo(
            f"{outcome.rejected_path}: {outcome.rejected.total():,} not written ({_counted(outcome.rejected)})",
            err=True,
        )


@click.command()
@click.argument("edits_path", metavar="EDITS")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--sample", default=0, type=click.IntRange(0), help="N of the edits, drawn by the seed [all]."
)
@click.option("--seed", default=42, show_default=True)
def sheet(edits_path: str, output: Path, sample: int, seed: int) -> None:
    """Write the edits of a file as a CSV on which a person says what each means: same, different, unsure or broken.

    Their order is random and what was intended is not on it. Give every judge a copy of their own name.
    """
    from vlprobe.runs.edits.sheet import COLUMNS, drawn, open_edits
    from vlprobe.storage import files
    from vlprobe.surfaces.report.selection import defused

    edits_on_it = drawn(open_edits(edits_path).edits, sample, seed)
    if output.exists():
        raise InvalidInput(
            f"'{output}' is there, and may have verdicts on it. Name a new file, or remove this one."
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        [edit.id, defused(edit.caption), defused(edit.text), "", ""] for edit in edits_on_it
    )
    files.write_bytes(output, text.getvalue().encode("utf-8-sig"))
    click.echo(f"{output}: {len(edits_on_it):,} edits to judge", err=True)


@click.command()
@click.argument("edits_path", metavar="EDITS")
@click.argument("sheets", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--disputes", is_flag=True, help="The edits that somebody judged otherwise, instead.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the edits without those that were judged wrong into this new file.",
)
@click.option("--format", "how", type=FORMATS, default="table")
@click.pass_context
def verdicts(
    ctx: click.Context,
    edits_path: str,
    sheets: tuple[Path, ...],
    disputes: bool,
    output: Path | None,
    how: str,
) -> None:
    """Say how far people's verdicts agree with what was intended, and with each other.

    SHEETS are filled-in copies of a sheet, one per judge. Without any, verdicts that an earlier version stored in
    the cache count.
    """
    import pandas as pd

    from vlprobe.runs.edits import agreement
    from vlprobe.runs.edits.sheet import Verdict, open_edits, read_sheets
    from vlprobe.storage import files
    from vlprobe.storage import verdicts as stored_verdicts
    from vlprobe.storage.store import DEFAULT, Store

    judged = open_edits(edits_path)
    counted = (
        read_sheets(sheets, judged)
        if sheets
        else [
            Verdict(*row) for row in stored_verdicts.read(Store(ctx.obj or DEFAULT), judged.digest)
        ]
    )
    report = agreement.report(judged.edits, counted)
    if disputes:
        rows = [
            (
                dispute.edit.caption,
                dispute.edit.text,
                dispute.edit.meaning,
                dispute.edit.subtype,
                ", ".join(f"{judge}: {word}" for judge, word in dispute.verdicts.items()),
            )
            for dispute in report.disputes
        ]
        print_table(
            pd.DataFrame(rows, columns=["caption", "edit", "intended", "subtype", "verdicts"]), how
        )
    else:
        table = [
            (
                row.judge,
                row.meaning,
                row.n_edits,
                row.as_intended.value,
                row.as_intended.low,
                row.as_intended.high,
                row.unsure,
                row.broken,
            )
            for row in report.rows
        ]
        columns = ["judge", "intended", "edits", "as_intended", "low", "high", "unsure", "broken"]
        print_table(pd.DataFrame(table, columns=columns), how)
    click.echo(agreement.sentence(report), err=True)
    if output:
        if output.exists():
            raise InvalidInput(f"'{output}' is there already. Name a new file, or remove this one.")
        content, n_left_out = agreement.without_wrong(judged, counted)
        files.write_bytes(output, content)
        click.echo(f"{output}: {n_left_out:,} edits left out", err=True)


def _counted(counts: Counter[str]) -> str:
    """Names with their counts, most first."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common()) or "none"
