"""Command that adds a score column to a table."""

from pathlib import Path

import click

from vlprobe.cli.arguments import (
    DEVICE,
    PRECISION,
    cache_store,
    complete_names,
    costs,
    loadable_names,
)
from vlprobe.cli.output import ProgressBar, inform
from vlprobe.cli.plugins import typed


@click.command()
@click.argument("file", metavar="FILE[@FOLDER][+OPTION...]")
@click.option("--model", required=True, shell_complete=complete_names("models"))
@click.option(
    "--out",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file to write, in the format of FILE [FILE-scored].",
)
@click.option("--column", default="score", show_default=True, help="Name of the new column.")
@DEVICE
@PRECISION
@costs()
@click.pass_context
def score(
    ctx: click.Context,
    file: str,
    model: str,
    output: Path | None,
    column: str,
    device: str,
    precision: str,
    price: str,
    max_cost: str,
) -> None:
    """Score how well each picture and text in a table fit, and add the scores as a column.

    FILE is .csv, .tsv, .jsonl or .parquet; FOLDER has the pictures [the folder of FILE]. Options:
    +image=COLUMN+caption=COLUMN, and +unpictured to leave the score empty where the picture is missing. A
    Parquet file can contain its pictures. To resume after an interruption, repeat the command.
    """
    from vlprobe import registry
    from vlprobe.models.endpoint.budget import Budget
    from vlprobe.runs import pair_scores

    typed(model)
    (name,) = loadable_names(ctx, [model])
    registry.check_name("models", name)
    budget = Budget(price, max_cost)
    with ProgressBar() as bar:
        scored_file, scores = pair_scores.score_table(
            file,
            lambda: registry.load_model(name, device, precision),
            output,
            column,
            cache_store(ctx),
            bar,
            budget,
        )
    n_unknown = sum(scores != scores)
    unknown = f", {n_unknown:,} of them unknown" if n_unknown else ""
    inform(f"{scored_file}: {len(scores):,} scores{unknown}")
