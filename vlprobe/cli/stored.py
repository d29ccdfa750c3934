"""The commands that change the store: removal of runs, and display names."""

from collections.abc import Sequence

import click

from vlprobe.cli.completion import complete_runs
from vlprobe.cli.results import results_store
from vlprobe.errors import InvalidInput, NotFound, printable


@click.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=complete_runs)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def remove(ctx: click.Context, keys: Sequence[str], yes: bool) -> None:
    """Remove stored runs, and questions that nobody else has answered; tags and notes stay. What came with
    vlprobe stays, too.

    The same `vlprobe run` makes them again.
    """
    from vlprobe.runs import removal

    store = results_store(ctx)
    manifests = removal.removable(store, keys)
    for manifest in manifests:
        run = manifest["run"]
        line = f"{manifest['key']}: {run['model']}, {run['probe']} on {run['dataset']}"
        click.echo(printable(line), err=True)
    if not yes:
        click.confirm(f"Remove {len(manifests)} of the stored runs?", abort=True, err=True)
    n_question_sets = removal.remove(store, manifests)
    click.echo(
        f"Removed: {len(manifests)} runs, and {n_question_sets} sets of questions without an answer.",
        err=True,
    )


@click.command()
@click.argument("stored", shell_complete=complete_runs)
@click.argument("name")
@click.pass_context
def rename(ctx: click.Context, stored: str, name: str) -> None:
    """Set the display name of a model or dataset. An empty NAME removes it.

    STORED is the stored or the present display name, or the beginning of a run's key, which stands for the run's
    model. No key and no number depends on it.
    """
    from vlprobe import views
    from vlprobe.render.model_lookup import find_model
    from vlprobe.storage import display_names

    store = results_store(ctx)
    rows = views.runs.run_rows(store)
    subjects = {subject: row.shipped for row in rows for subject in (row.model, row.dataset)}
    stored = find_model(store, stored)
    if stored not in subjects:
        try:
            stored = store.find(stored)["run"]["model"]
        except NotFound:
            raise NotFound("stored model or dataset", stored, sorted(subjects)) from None
    if subjects[stored]:
        raise InvalidInput(
            f"'{stored}' only appears in the bundled results, which are read-only. Run it once to rename it."
        )
    display_names.rename(store, stored, name)
    words = f"is called {' '.join(name.split())}" if name.strip() else "has its own name again"
    click.echo(printable(f"{stored} {words}."), err=True)
