"""The command that writes a complete comparison as one web page."""

from pathlib import Path

import click

from vlprobe.cli.results import results_store
from vlprobe.errors import InvalidInput


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--set",
    "key",
    default="",
    metavar="KEY",
    help="The question set, or a run of it [the most complete].",
)
@click.pass_context
def report(ctx: click.Context, output: Path, key: str) -> None:
    """Write a comparison of all models on one question set as one HTML file that opens offline."""
    from vlprobe import views
    from vlprobe.storage import files
    from vlprobe.surfaces.report import report as page

    store = results_store(ctx)
    sets = views.runs.question_sets(store)
    if sets.empty:
        raise InvalidInput(
            "Nothing is stored yet, so there is nothing to report. Run a probe first: vlprobe run --help."
        )
    matching = (
        [case_key for case_key in sets["case_key"] if case_key.startswith(key)]
        if key
        else [sets["case_key"].iloc[0]]
    )
    case_key = matching[0] if len(matching) == 1 else store.find(key)["case_key"]
    content = page.report(store, views.runs.question_set(store, case_key)).encode()
    files.write_bytes(output, content)
    click.echo(f"{output}: {len(content) / 1e6:.1f} MB", err=True)
