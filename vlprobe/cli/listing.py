"""Commands that list names and values: models, datasets, probes, metrics, published numbers, options and jobs."""

from typing import TYPE_CHECKING

import click

from vlprobe import __version__, registry, views
from vlprobe.cli.arguments import FORMAT, complete_names, results_store, typed
from vlprobe.cli.output import inform, print_folded, print_rows, print_table
from vlprobe.errors import InvalidInput
from vlprobe.views.published import SOURCES

if TYPE_CHECKING:
    import pandas as pd

    from vlprobe.storage.store import Store
    from vlprobe.types.options import Option


def print_names(collection: str, how: str) -> None:
    """Print all valid names of models, datasets, probes or rules, and where each name comes from.

    For a plug-in that was not named with --plugin, only the metadata is read. Unusable plug-ins are reported to
    stderr.
    """
    usable, problems = registry.installed_plugins(collection)
    providers = {"py": "a file"} | {plugin.name: plugin.provider for plugin in usable}
    listed = registry.names(collection)
    prefixes = {name.partition(":")[0] for name in listed}
    listed += [plugin.name for plugin in usable if plugin.name not in prefixes]
    origin = f"vlprobe {__version__}"
    rows = [(name, providers.get(name.partition(":")[0], origin)) for name in listed]
    for line in problems:
        inform(f"Left out: {line}")
    print_rows(f"{collection.removesuffix('s')} from", rows, how)


def published_table(store: "Store", paper: str, table: int, mark: str, key: str) -> "pd.DataFrame":
    """Return the numbers in the papers' tables, next to the numbers from one run for each paper.

    Args:
        paper: Only this paper; "": all papers.
        table: Only the table with this number; 0: all tables.
        mark: Only cells with this mark from `views.papers.MARKS`; "": all cells.
        key: The key of the run to use; "": the newest run of each paper's probe.

    Raises:
        NotFound: no run has the key.
        InvalidInput: the run belongs to another paper's probe.
    """
    import pandas as pd

    from vlprobe.render.model_lookup import find_run

    manifest = find_run(store, key) if key else None
    names = [paper] if paper else list(SOURCES)
    if manifest:
        probe = manifest["run"]["probe"]
        names = [name for name in views.papers.papers_of(probe) if paper in ("", name)]
        if not names:
            raise InvalidInput(
                f"Run {key} used the probe '{probe}', which has no metric in the tables of "
                f"{paper or 'the papers'}. Expected a run of one of these probes: "
                f"{', '.join(views.papers.probes_of(paper) or SOURCES)}; `vlprobe show` lists "
                "the keys."
            )
    by_paper, known = [], views.runs.known_manifests(store)
    for name in names:
        of_paper = (each for each in reversed(known) if each["run"]["probe"] == name)
        newest = manifest or next(of_paper, None)
        if newest is None:
            by_paper.append(views.papers.cells(name).assign(run_of=""))
            continue
        model = newest["run"]["model"]
        question_set = views.runs.question_set(
            store, newest["case_key"], version_of=newest["key"], model=model
        )
        of_run = views.papers.beside(question_set, model, name)
        by_paper.append(of_run.assign(run_of=f"{model} on {newest['run']['dataset']}"))
    cells = pd.concat(by_paper, ignore_index=True)
    cells = cells.loc[cells["table"] == table] if table else cells
    return cells.loc[cells["mark"] == mark] if mark else cells


@click.command("list")
@click.argument(
    "collection",
    type=click.Choice(["models", "datasets", "probes", "rules", "metrics", "published"]),
)
@click.option(
    "--paper",
    type=click.Choice(list(SOURCES)),
    help="For published: print only the numbers in this paper.",
)
@click.option(
    "--table",
    "number",
    type=click.IntRange(1),
    help="For published: print only the table with this number.",
)
@click.option(
    "--mark",
    type=click.Choice(["doubted", "differs", "remark"]),
    help="For published: print only numbers that are doubtful, that differ from another number "
    "in the paper, or that have a remark.",
)
@click.option(
    "--key",
    help="For published: KEY of the run to compare with. [default: the newest run of each "
    "paper's probe]",
)
@click.option(
    "--model",
    help="For published: print the published totals of this checkpoint, such as "
    "openclip:ViT-B-32/openai, on Winoground, SugarCrepe and ARO.",
)
@FORMAT
@click.pass_context
def list_(
    ctx: click.Context,
    collection: str,
    paper: str | None,
    number: int | None,
    mark: str | None,
    key: str | None,
    model: str | None,
    how: str,
) -> None:
    """List the names of all models, datasets, probes, edit rules or metrics, including those of plug-ins. With
    published, list every number in the papers' tables next to the same number from a run, averaged as in the
    papers.
    """
    if collection == "published" and model:
        from vlprobe.views import totals

        print_table(totals.of_model(model), how)
    elif collection == "published":
        table = published_table(results_store(ctx), paper or "", number or 0, mark or "", key or "")
        print_folded(table, ("run_of", "note"), how, "vlprobe list published --format json")
    elif paper or number or mark or key or model:
        raise click.UsageError(
            "--paper, --table, --mark, --key and --model can only be used with `list published`."
        )
    elif collection == "metrics":
        rows = [
            (row.name, probe, row.unit, row.direction, row.chance, row.source, row.help)
            for probe in registry.names("probes")
            for row in views.runs.metrics(probe).values()
        ]
        print_rows("metric probe unit better chance source meaning", rows, how)
    else:
        print_names(collection, how)


@click.command()
@click.option("--cancel", "cancel_id", metavar="ID", help="Stop this job at its next batch.")
@click.option("--resume", "resume_id", metavar="ID", help="Resume a stopped job.")
@click.option("--log", "log_id", metavar="ID", help="Print the end of a job's log.")
@FORMAT
@click.pass_context
def jobs(
    ctx: click.Context, cancel_id: str | None, resume_id: str | None, log_id: str | None, how: str
) -> None:
    """List the jobs started in the dashboard, or cancel a job, resume it or print its log."""
    from vlprobe.runs import jobs

    store = results_store(ctx)
    if cancel_id:
        jobs.cancel(store, cancel_id)
    elif resume_id:
        jobs.resume(store, resume_id)
    elif log_id:
        click.echo(jobs.log(store, log_id))
    else:
        rows = []
        for job in jobs.jobs(store):
            progress = job.task, job.fraction, job.error
            rows.append((job.id, job.state, ", ".join(job.models), job.dataset, *progress))
        print_rows("id state models dataset probe done error", rows, how)
        for error in jobs.damaged(store):
            inform(f"Left out: {error}")


@click.command()
@click.argument("probe", shell_complete=complete_names("probes"))
@FORMAT
def options(probe: str, how: str) -> None:
    """List the options of PROBE that can be set with `--option NAME=VALUE`."""
    typed(probe)
    empty = f"Probe '{probe}' has no options."
    print_rows("option type default values meaning", option_rows(probe), how, empty)


def option_rows(probe: str) -> list[tuple[str, str, str, str, str]]:
    """Return a row for each of a probe's options: name, type, default, allowed values and meaning."""
    rows = []
    for option in registry.load_probe(probe).options:
        default, meaning = _typed_text(option.default), " ".join(option.help.split())
        rows.append((option.name, option.type, default, _values(option), meaning))
    return rows


def _typed_text(value: object) -> str:
    """Format a value the way users type it on the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _values(option: "Option") -> str:
    """Describe the allowed values of an option."""
    texts = [_typed_text(option.choices)] if option.choices else []
    if option.pattern:
        texts.append(option.expected)
    if option.minimum is not None or option.maximum is not None:
        low, high = (
            "" if bound is None else str(bound) for bound in (option.minimum, option.maximum)
        )
        texts.append(
            f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less"
        )
    if option.off_value is not None:
        texts.append(f"{option.off_value}: off")
    if option.refers_to:
        texts.append(f"a {option.refers_to}")
    return "; ".join(filter(None, texts))
