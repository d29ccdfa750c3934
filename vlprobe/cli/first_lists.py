"""The command that prints the top results of two models for the same captions."""

import click

from vlprobe.cli.output import FORMATS, print_table
from vlprobe.cli.results import results_store


@click.command("first-lists")
@click.argument("before")
@click.argument("after")
@click.option("--size", default=20, type=click.IntRange(1, 10**6), show_default=True)
@click.option("--format", "how", type=FORMATS, default="table")
@click.pass_context
def first_lists(ctx: click.Context, before: str, after: str, size: int, how: str) -> None:
    """Print the first five pictures before and after: two runs of rococo over the same questions, by key or model."""
    import pandas as pd

    from vlprobe import views
    from vlprobe.errors import InvalidInput
    from vlprobe.render.model_lookup import find_model

    store = results_store(ctx)
    names = [find_model(store, name) for name in (before, after)]
    question_set = views.selection.select(store, names, ["rococo"])
    if question_set.probe != "rococo":
        raise InvalidInput(
            f"'{before}' and '{after}' are runs of {question_set.probe}. Expected two runs of rococo over the same "
            "questions: `vlprobe show` lists them."
        )
    first, second = question_set.models
    rows = [
        (
            row.caption,
            row.item,
            row.place_before,
            row.place_after,
            *map(" ".join, (row.before, row.after)),
        )
        for row in views.figures.first_lists(store, question_set, first, second, size)
    ]
    columns = ["caption", "item", "place_before", "place_after", "first_before", "first_after"]
    click.echo('Rank 6 means "not in the top five".', err=True)
    print_table(pd.DataFrame(rows, columns=pd.Index(columns)), how)
