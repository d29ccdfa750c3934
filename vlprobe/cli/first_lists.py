"""The command that prints what two models rank first for the same captions."""

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
    """The first five pictures before and after: keys of two runs of rococo over the same questions."""
    import pandas as pd

    from vlprobe import views
    from vlprobe.errors import InvalidInput

    store = results_store(ctx)
    first, second = store.find(before), store.find(after)
    if first["case_key"] != second["case_key"] or first["run"]["probe"] != "rococo":
        raise InvalidInput(
            f"'{before}' and '{after}' are no two runs of rococo over the same questions. "
            "Take two of one row of `vlprobe show`."
        )
    question_set = views.runs.question_set(store, first["case_key"])
    models = first["run"]["model"], second["run"]["model"]
    rows = [
        (
            row.caption,
            row.item,
            row.place_before,
            row.place_after,
            *map(" ".join, (row.before, row.after)),
        )
        for row in views.first_lists.first_lists(store, question_set, *models, size)
    ]
    columns = ["caption", "item", "place_before", "place_after", "first_before", "first_after"]
    click.echo("A place of 6 is beyond the first five.", err=True)
    print_table(pd.DataFrame(rows, columns=pd.Index(columns)), how)
