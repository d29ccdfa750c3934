"""The command that downloads the photographs of a question set."""

import click

from vlprobe.cli.completion import complete_names
from vlprobe.cli.output import Bar
from vlprobe.errors import InvalidInput

MOST_FAILURES = 10  # that are listed; the rest are counted


@click.command("pictures")
@click.argument("dataset", shell_complete=complete_names("datasets"))
@click.option(
    "--from",
    "host",
    default="",
    metavar="URL",
    help="A mirror of COCO's folders [images.cocodataset.org].",
)
@click.option("--yes", is_flag=True, help="Download without asking.")
@click.pass_context
def pictures(ctx: click.Context, dataset: str, host: str, yes: bool) -> None:
    """Download the photographs of COCO that DATASET shows and this machine lacks.

    DATASET is one that keeps questions without a picture, such as bundled:SugarCrepe or
    triplets:FILE@FOLDER/val2017+unpictured. The same command again continues where it stopped.
    """
    from vlprobe import registry
    from vlprobe.datasets import photographs
    from vlprobe.storage import access
    from vlprobe.storage.store import DEFAULT, Store

    access.refuse_writing()
    store = Store(ctx.obj or DEFAULT)
    items = registry.load_dataset(dataset, store.root).items
    host = host.rstrip("/") or photographs.HOST
    addresses, n_other = photographs.missing(items, host)
    if n_other:
        click.echo(
            f"{n_other:,} missing pictures are not COCO's. Put them there yourself.", err=True
        )
    if not addresses:
        click.echo("No photograph of COCO is missing.", err=True)
        return
    click.echo(photographs.announcement(addresses, host), err=True)
    if not yes:
        click.confirm("Download them?", abort=True, err=True)
    with Bar() as bar:
        report = photographs.download(
            store, addresses, lambda done, total: bar.update("Downloading photographs", done, total)
        )
    click.echo(photographs.summary(report), err=True)
    for path, reason in list(report.failures.items())[:MOST_FAILURES]:
        click.echo(f"Not downloaded: {path.name} ({reason})", err=True)
    if report.failures:
        raise InvalidInput(
            f"{len(report.failures):,} of {len(addresses):,} photographs are still missing. Run the same command again."
        )
