"""Command that fine-tunes OpenCLIP models."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from vlprobe.cli.arguments import (
    FORMAT,
    LOADING,
    Command,
    cache_store,
    loadable_names,
    typed,
)
from vlprobe.cli.output import ProgressBar, inform, print_rows
from vlprobe.training.request import TrainRequest as Default


def _setting(name: str, meaning: str, **limits: Any) -> Callable[[Command], Command]:
    """Build the option for a field of `TrainRequest`, with the field's default."""
    option, default = f"--{name.replace('_', '-')}", getattr(Default, name)
    return click.option(option, default=default, show_default=True, help=meaning, **limits)


@click.command()
@click.option(
    "--model",
    required=True,
    help="Model to fine-tune; its name begins with demo:, openclip:, hf: or hf-itm:.",
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    default=["demo-train"],
    help="Training data; repeatable.",
)
@click.option(
    "--output",
    required=True,
    metavar="FILE.safetensors",
    help="File for the weights. A model card and a log are written next to this file.",
)
@_setting(
    "loss",
    "Weighted sum of losses, such as clip+0.5*eqsim. Losses: clip, sigmoid, hardneg, eqsim, sc, vc, "
    "consistency, flip.",
)
@_setting("steps", "Number of training steps.")
@_setting("batch_size", "Number of rows per batch.")
@_setting(
    "piece",
    "Number of rows per forward pass of a tower. Smaller values need less memory; 0 "
    "processes all rows at once.",
)
@_setting("rate", "Peak learning rate.")
@_setting("warm_up", "Number of warm-up steps.")
@_setting("decay", "Weight decay.")
@click.option(
    "--freeze", type=click.Choice(["image", "text"]), default=None, help="Tower to freeze."
)
@_setting(
    "close",
    "For eqsim, the number of close pairs per row; for hardneg, the number of hard "
    "negatives per row.",
)
@_setting(
    "eqsim",
    "Variant of eqsim: hybrid uses v2 on close pairs and v1 on the others; the other "
    "variants are from EqBen's table 6, and EqBen itself uses v1+v2-close.",
    type=click.Choice(["hybrid", "v1", "v2", "v2-close", "v1+v2-close"]),
)
@_setting("margin", "For eqsim, the largest difference that is not penalized (margin).")
@_setting(
    "scores",
    "For eqsim, the type of scores to compare.",
    type=click.Choice(["cosine", "softmax"]),
)
@click.option("--curriculum", is_flag=True, help="For flip, train on the weakest flips first.")
@_setting("seed", "Seed for all random choices.")
@_setting("validate_every", "Number of steps between validations.")
@LOADING
@_setting("workers", "Number of threads that decode pictures.")
@_setting("threads", "Number of PyTorch threads; 0 lets PyTorch decide.")
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
                f"{source['name']}: {count:,} captions are not in English. The losses "
                "consistency and flip do not edit these captions."
            )
    if "added_time" in card:
        inform(f"{added_time_text(card['added_time'])}.")
    inform(f"Probe it as {card['tuned']}")
