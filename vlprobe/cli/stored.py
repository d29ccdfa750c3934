"""Commands that change the store: removal, display names, repair of damage, and downloads of photographs."""

from collections.abc import Sequence

import click

from vlprobe import registry, views
from vlprobe.cli.arguments import cache_store, complete_names, complete_runs, results_store
from vlprobe.cli.output import ProgressBar, inform
from vlprobe.errors import InvalidInput, NotFound, printable
from vlprobe.storage import access

MOST_FAILURES = 10  # failures that are listed; the rest are counted


@click.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=complete_runs)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def remove(ctx: click.Context, keys: Sequence[str], yes: bool) -> None:
    """Remove stored runs, and question sets that no other run uses. Tags, notes and bundled results are kept.

    To recreate a removed run, repeat its `vlprobe run` command.
    """
    from vlprobe.render.sentences import counted
    from vlprobe.runs import verify as results

    store = results_store(ctx)
    manifests = results.removable(store, keys)
    for manifest in manifests:
        run = manifest["run"]
        line = f"{manifest['key']}: {run['model']}, {run['probe']} on {run['dataset']}"
        inform(printable(line))
    if not yes:
        click.confirm(f"Remove {len(manifests)} of the stored runs?", abort=True, err=True)
    n_question_sets = results.remove(store, manifests)
    question_sets = counted(n_question_sets, "question set")
    inform(f"Removed: {counted(len(manifests), 'run')}, and {question_sets} without answers.")


@click.command()
@click.argument("subject_name", metavar="MODEL_OR_DATASET", shell_complete=complete_runs)
@click.argument("name")
@click.pass_context
def rename(ctx: click.Context, subject_name: str, name: str) -> None:
    """Set the display name of a model or dataset. An empty NAME restores the original name.

    MODEL_OR_DATASET is the name used in commands, the current display name, or the beginning of a run's key, which
    selects the model of that run. Keys and numbers do not change.
    """
    from vlprobe.render.model_lookup import find_model
    from vlprobe.storage import display_names

    store = results_store(ctx)
    rows = views.runs.run_rows(store)
    subjects = {subject: row.shipped for row in rows for subject in (row.model, row.dataset)}
    subject_name = find_model(store, subject_name)
    if subject_name not in subjects:
        try:
            subject_name = store.find(subject_name)["run"]["model"]
        except NotFound:
            raise NotFound("stored model or dataset", subject_name, sorted(subjects)) from None
    if subjects[subject_name]:
        raise InvalidInput(
            f"'{subject_name}' only appears in the bundled results, which are read-only. To "
            "rename it, use it in a run first."
        )
    display_names.rename(store, subject_name, name)
    words = f"is called {' '.join(name.split())}" if name.strip() else "has its original name again"
    inform(printable(f"{subject_name} {words}."))


@click.command()
@click.option(
    "--repair", is_flag=True, help="Remove damaged entries. To recreate them, repeat their runs."
)
@click.pass_context
def verify(ctx: click.Context, repair: bool) -> None:
    """Check stored results against their checksums. Exit with 1 if anything is damaged, and with 2 on a usage error.

    Print one line to stdout per damaged entry. --repair removes damaged entries; to recreate them, repeat their
    `vlprobe run` commands.
    """
    from vlprobe.runs import verify

    store = cache_store(ctx)
    if repair:
        store.require_local_writable()
    damages = verify.damages(store)
    for damage in damages:
        click.echo(f"{damage.path}: {damage.why}")
    # Without files that were created again in the meantime
    still = verify.damages(store, again=damages) if repair and damages else []
    verify.repair(still)
    gone = sum(bool(damage.drop) for damage in still)
    if not damages:
        inform("All checksums match.")
    elif repair:
        inform(
            f"{gone} of {len(damages)} damaged entries were removed. To recreate them, repeat "
            "their runs."
        )
    else:
        inform(
            f"Damaged entries: {len(damages)}. `vlprobe verify --repair` removes those that "
            "can be recreated."
        )
    ctx.exit(1 if damages and not (repair and all(damage.drop for damage in damages)) else 0)


@click.command("pictures")
@click.argument("dataset", shell_complete=complete_names("datasets"))
@click.option(
    "--from",
    "host",
    default="",
    metavar="URL",
    help="URL of a mirror with the same folders as COCO's server. [default: images.cocodataset.org]",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def pictures(ctx: click.Context, dataset: str, host: str, yes: bool) -> None:
    """Download the COCO photographs that DATASET uses and that are not on this machine yet.

    DATASET must be one that includes questions whose picture is missing, such as bundled:SugarCrepe or
    triplets:FILE@FOLDER/val2017+unpictured. To resume an interrupted download, run the same command again.
    """
    from vlprobe.datasets import photographs

    access.refuse_writing()
    store = cache_store(ctx)
    items = registry.load_dataset(dataset, store.root).items
    host = host.rstrip("/") or photographs.HOST
    addresses, n_other = photographs.missing(items, host)
    if n_other:
        inform(
            f"{n_other:,} missing pictures are not from COCO, so they cannot be downloaded. "
            "Add these pictures yourself."
        )
    if not addresses:
        inform("No COCO photographs are missing.")
        return
    inform(photographs.announcement(addresses, "the command again", host))
    if not yes:
        click.confirm("Download them?", abort=True, err=True)
    with ProgressBar() as bar:
        report = photographs.download(
            store, addresses, lambda done, total: bar.update("Downloading photographs", done, total)
        )
    inform(photographs.summary(report))
    for path, reason in list(report.failures.items())[:MOST_FAILURES]:
        inform(f"Not downloaded: {path.name} ({reason})")
    if report.failures:
        raise InvalidInput(
            f"{len(report.failures):,} of {len(addresses):,} photographs are still missing. Repeat the "
            "command to try again."
        )
