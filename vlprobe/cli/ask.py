"""The command that writes questions for models that answer elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vlprobe.cli.output import Bar, case_choices, item_choices, parse_pairs, rejected_labels


@click.command()
@click.argument("dataset")
@click.argument("output", type=click.Path(path_type=Path, file_okay=False))
@click.option("--probe", default="lgip", show_default=True)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="Of the probe, as for run."
)
@click.option("--seed", default=42, show_default=True)
@item_choices
@case_choices
@click.option("--copy", "copies", is_flag=True, help="Copy all pictures into the folder.")
@click.pass_context
def ask(
    ctx: click.Context,
    dataset: str,
    output: Path,
    probe: str,
    options: Sequence[str],
    seed: int,
    copies: bool,
    **choices: Any,
) -> None:
    """Write the questions of a probe about DATASET into the folder OUTPUT, for any model elsewhere.

    Its answers come back as a model: embeddings:OUTPUT, scores:OUTPUT or scores:FILE.
    """
    from vlprobe.cli.plugins import typed
    from vlprobe.runs.ask import ask as write
    from vlprobe.runs.request import Request
    from vlprobe.storage.store import DEFAULT, Store

    choices["errata"] = rejected_labels(choices["errata"])
    request = Request((), dataset, probe, parse_pairs(options), seed, **choices)
    typed(dataset, probe, *request.options.values())
    with Bar() as bar:
        facts = write(request, output, Store(ctx.obj or DEFAULT), bar, copies)
    click.echo(
        f"{output}: {facts['n_pictures']:,} pictures, {facts['n_texts']:,} texts, {facts['n_cases']:,} cases; scores "
        f"take {facts['n_pairs']:,} pairs ({facts['needs']})",
        err=True,
    )
