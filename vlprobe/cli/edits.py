"""The commands about edits that a language model writes, and what people think of edits."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from vlprobe.cli.output import Bar, item_choices
from vlprobe.cli.plugins import typed


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


def _counted(counts: Counter[str]) -> str:
    """Names with their counts, most first."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common()) or "none"
