"""Command that fine-tunes OpenCLIP models."""

from collections.abc import Sequence
from dataclasses import replace

import click

from vlprobe.cli.arguments import (
    DEVICE,
    FORMAT,
    PRECISION,
    cache_store,
    loadable_names,
    typed,
)
from vlprobe.cli.output import ProgressBar, inform, print_rows
from vlprobe.training.request import TrainRequest as Default


@click.command()
@click.option(
    "--model", required=True, help="The model to fine-tune: demo:, openclip:, hf: or hf-itm:."
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    default=["demo-train"],
    show_default=True,
    help="Training data; repeatable.",
)
@click.option(
    "--output",
    required=True,
    metavar="FILE.safetensors",
    help="File for the weights; a card and a log are written next to it.",
)
@click.option(
    "--loss",
    default=Default.loss,
    show_default=True,
    help=(
        "Weighted sum of losses, such as clip+0.5*eqsim. Losses: clip, sigmoid, hardneg, eqsim, sc, vc, "
        "consistency, flip."
    ),
)
@click.option("--steps", default=Default.steps, show_default=True)
@click.option("--batch-size", default=Default.batch_size, show_default=True)
@click.option(
    "--piece",
    default=Default.piece,
    help="Rows per forward pass of a tower, to save memory; 0: all.",
)
@click.option("--rate", default=Default.rate, show_default=True, help="Peak learning rate.")
@click.option("--warm-up", default=Default.warm_up, show_default=True, help="Steps.")
@click.option("--decay", default=Default.decay, show_default=True, help="Weight decay.")
@click.option(
    "--freeze",
    type=click.Choice(["image", "text"]),
    default=None,
    help="Tower to freeze.",
)
@click.option(
    "--close",
    default=Default.close,
    show_default=True,
    help="EqSim: number of close pairs per row; hardneg: number of hard negatives per row.",
)
@click.option(
    "--eqsim",
    type=click.Choice(["hybrid", "v1", "v2", "v2-close", "v1+v2-close"]),
    default=Default.eqsim,
    show_default=True,
    help="EqSim: v2 on close pairs and v1 on the others, or a variant of EqBen's table 6 (EqBen: v1+v2-close).",
)
@click.option(
    "--margin",
    default=Default.margin,
    show_default=True,
    help="EqSim: tolerated difference (margin).",
)
@click.option(
    "--scores",
    type=click.Choice(["cosine", "softmax"]),
    default=Default.scores,
    help="EqSim: the scores to compare.",
)
@click.option("--curriculum", is_flag=True, help="Start with the weakest flips.")
@click.option("--seed", default=Default.seed, show_default=True)
@click.option("--validate-every", default=Default.validate_every, show_default=True, help="Steps.")
@DEVICE
@PRECISION
@click.option(
    "--workers",
    default=Default.workers,
    show_default=True,
    help="Number of threads that read pictures.",
)
@click.option(
    "--threads", default=Default.threads, help="Number of torch threads; 0: torch decides."
)
@FORMAT
@click.pass_context
def train(
    ctx: click.Context, datasets: Sequence[str], freeze: str | None, how: str, **given
) -> None:
    """Fine-tune a model and print the losses on held-out data. To resume, repeat the command."""
    from vlprobe.training.objective import PARTS, added_time_text, weights
    from vlprobe.training.trainer import train as tune

    request = Default(datasets=tuple(datasets), freeze=freeze or "", **given)
    typed(request.model, *request.datasets)
    request = replace(request, model=loadable_names(ctx, [request.model])[0])
    with ProgressBar() as bar:
        card = tune(request, cache_store(ctx).root, bar.update)
    trained, judged = weights(request.loss), card["held_out"]
    rows = [
        (name, trained.get(name, 0.0), judged["before"][name], judged["after"][name], PARTS[name])
        for name in judged["after"]
    ]
    print_rows("part weight before after meaning", rows, how)
    for source in card["data"]:
        if count := source.get("not_english", 0):
            inform(
                f"{source['name']}: {count:,} captions are not in English; consistency and flip do not edit them."
            )
    if "added_time" in card:
        inform(f"{added_time_text(card['added_time'])}.")
    inform(f"Probe it as {card['tuned']}")
