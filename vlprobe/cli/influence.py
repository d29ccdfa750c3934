"""The command that finds the least influential noun of a caption."""

from collections.abc import Sequence
from typing import Any

import click

from vlprobe.cli.output import FORMATS, Bar, item_choices, print_table
from vlprobe.cli.plugins import typed
from vlprobe.cli.results import loadable_names


@click.command()
@click.argument("dataset")
@click.option(
    "--model", "models", multiple=True, required=True, help="An encoder of texts; two or more."
)
@click.option(
    "--words",
    "n_words",
    type=click.IntRange(1),
    help="Print the N words named most often instead (figure 11 b).",
)
@click.option(
    "--all-words",
    is_flag=True,
    help="Any word can be named, not only a noun that a run would take.",
)
@click.option("--seed", default=42, show_default=True, help="Of the draw among level nouns.")
@item_choices
@click.option("--format", "how", type=FORMATS, default="table")
@click.pass_context
def influence(
    ctx: click.Context,
    dataset: str,
    models: Sequence[str],
    n_words: int | None,
    all_words: bool,
    seed: int,
    how: str,
    **choices: Any,
) -> None:
    """Count how many models name the same noun of a caption of DATASET as the one that does least (RoCOCO, figure 11).

    A noun does little where the caption's embedding hardly moves without it. Beside the share of captions stands
    what models would reach that name one at random.
    """
    from vlprobe import registry
    from vlprobe.probes.caption_foils import load_voter, text_encoder
    from vlprobe.runs.consensus import PRINTED, consensus
    from vlprobe.runs.request import Request
    from vlprobe.runs.selection import select
    from vlprobe.storage.store import DEFAULT, Store

    typed(dataset, *models)
    models = loadable_names(ctx, models)
    with Bar() as bar:
        bar.update("Reading the data", 0, 1)
        loaded = registry.load_dataset(dataset, Store(ctx.obj or DEFAULT).root)
        items, _ = select(loaded, Request((), dataset, "", seed=seed, **choices))
        encoders = []
        for name in dict.fromkeys(models):
            bar.update(f"Loading {name}", 0, 1)
            encoders.append(text_encoder(load_voter(name)))
        bar.update("Asking the models", 0, 1)
        votes = consensus({item.id: item.captions for item in items}, encoders, seed, all_words)
    print_table(votes.source_words.head(n_words) if n_words else votes.agreement, how)
    click.echo(
        f"Two models or more name the same word in {votes.share_of_two:.1%} of {votes.n_captions:,} captions, by "
        f"chance in {votes.chance_of_two:.1%} ({votes.n_single:,} have one such word alone). The paper: over "
        f"{PRINTED:.0%}, of four models on COCO.",
        err=True,
    )
