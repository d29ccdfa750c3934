"""The command line: one command per public function. Data goes to stdout, progress and messages to
stderr.

Heavy modules are imported inside the commands, so that `vlprobe --help` answers at once.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlprobe import __version__
from vlprobe.cli.ask import ask
from vlprobe.cli.compare import compare, gate
from vlprobe.cli.completion import complete_runs, completion
from vlprobe.cli.edits import edits, sheet, verdicts
from vlprobe.cli.first_lists import first_lists
from vlprobe.cli.influence import influence
from vlprobe.cli.inputs import check, doctor, perturb
from vlprobe.cli.listing import PAPERS, metrics_table, names_table, published_table
from vlprobe.cli.options import options
from vlprobe.cli.output import (
    AVERAGING,
    FORMATS,
    print_folded,
    print_metrics,
    print_model_index,
    print_notes,
    print_table,
)
from vlprobe.cli.pictures import pictures
from vlprobe.cli.plugins import require
from vlprobe.cli.report import report
from vlprobe.cli.results import results_store
from vlprobe.cli.run import run
from vlprobe.cli.serve import dashboard
from vlprobe.cli.site import site
from vlprobe.cli.stored import remove, rename
from vlprobe.cli.suspects import errata, suspects
from vlprobe.cli.train import train, train_demo
from vlprobe.cli.verify import verify
from vlprobe.errors import VlprobeError, describe_shortage, plugin_errors
from vlprobe.storage.application import docs_folder

if TYPE_CHECKING:
    from vlprobe.views.export import Form

NO_MATCH = "No cases match these filters."


# Errors that may mean full memory or disk, and may be a bug.
SHORTAGES = (MemoryError, OSError, ImportError, RuntimeError)
# Commands that exit with 1 to report a regression, a failed check or damage: a mistake is 2 there.
FINDING = ("gate", "doctor", "verify")


class _Commands(click.Group):
    """Turn a VlprobeError, a full disk and a lack of memory into one line and exit code 1, or 2 in the
    commands of FINDING, and Ctrl-C into a hint; a bug keeps its traceback.
    """

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line, `--help` and `--version` included, which are printed before `invoke`."""
        try:
            return super().main(*arguments, **options)
        except SHORTAGES as error:
            self._report(error)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with plugin_errors():
                return super().invoke(ctx)
        except (VlprobeError, *SHORTAGES) as error:
            self._report(error)
            ctx.exit(2 if ctx.invoked_subcommand in FINDING else 1)
        except KeyboardInterrupt:
            click.echo(
                "Stopped. Finished parts are kept; the same command goes on from there.", err=True
            )
            ctx.exit(130)

    def _report(self, error: Exception) -> None:
        """Print the one line of an error. Raises the error if it has none."""
        line = str(error) if isinstance(error, VlprobeError) else describe_shortage(error)
        if not line:
            raise error
        click.echo(f"Error: {line}", err=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the location of the documentation on one line at any width, so that a path is not broken."""
        formatter.write(f"\nDocumentation: {docs_folder()}\n")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option(
    "--cache",
    envvar="VLPROBE_CACHE",
    help="Where results live: a folder or a URL, s3://... [cache].",
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="NAME",
    help="Lets the code of a plug-in run: its name, py:FILE.py or py:MODULE. Names typed in a command need none.",
)
@click.option(
    "--api",
    "apis",
    multiple=True,
    metavar="URL[#MODEL]",
    help="Lets models of a server be asked, http:URL#MODEL. Names typed in a command need none.",
)
@click.pass_context
def main(
    ctx: click.Context, cache: str | None, plugins: Sequence[str], apis: Sequence[str]
) -> None:
    """Probe vision-language models: perturb captions and pictures, see where a model is fooled."""
    ctx.obj = cache
    require(plugins, apis)


@main.command("list")
@click.argument(
    "collection",
    type=click.Choice(["models", "datasets", "probes", "rules", "metrics", "published"]),
)
@click.option("--paper", type=click.Choice(PAPERS), help="Published: only this paper's numbers.")
@click.option("--table", "number", type=click.IntRange(1), help="Published: only this table.")
@click.option(
    "--mark",
    type=click.Choice(["doubted", "differs", "remark"]),
    help="Published: only doubted numbers, those that the paper contradicts elsewhere, or those with a remark.",
)
@click.option(
    "--key", help="Published: the run beside them, by its KEY [the newest of each paper's probe]."
)
@click.option(
    "--model",
    help="Published: totals of this checkpoint on Winoground, SugarCrepe and ARO, such as openclip:ViT-B-32/openai.",
)
@click.option("--format", "how", type=FORMATS, default="table")
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
    """List the models, datasets, probes, edit rules or metrics that have a name, those of plug-ins too;
    or every number that the papers print, next to the numbers of a run, averaged as the papers do.
    """
    if collection == "published" and model:
        from vlprobe.views import totals

        print_table(totals.of_model(model), how)
    elif collection == "published":
        table = published_table(results_store(ctx), paper or "", number or 0, mark or "", key or "")
        print_folded(table, ("run_of", "note"), how, "vlprobe list published --format json")
    elif paper or number or mark or key or model:
        raise click.UsageError(
            "--paper, --table, --mark, --key and --model are options of `list published`."
        )
    elif collection == "metrics":
        print_table(metrics_table(), how)
    else:
        print_table(names_table(collection), how)


@main.command()
@click.argument("key", required=False, shell_complete=complete_runs)
@click.option(
    "--by",
    "slice_by",
    default="all",
    show_default=True,
    help="subtype, rule, strength_bin, comparison, caption_length, word_frequency or tag:NAME; seeds: mean and spread "
    "over draws of altered captions and pictures; crossed: triplets by both answers, of texts and of "
    "pictures; size: accuracy beside parameters and training data, with the printed models.",
)
@AVERAGING
@click.option(
    "--unit", type=click.Choice(["cosine", "spread"]), default="cosine", show_default=True
)
@click.option(
    "--format",
    "how",
    type=click.Choice([*FORMATS.choices, "model-index"]),
    default="table",
    help="model-index: of a run, for a model card of the Hugging Face hub.",
)
@click.pass_context
def show(
    ctx: click.Context, key: str | None, slice_by: str, averaging: str, unit: str, how: str
) -> None:
    """Show what is stored, and what came with vlprobe; with the KEY of a run, or the name of a model with one, the
    numbers of every model over the same questions.

    A run of an older version is marked as such, and stands beside runs of that version only.
    """
    from vlprobe import views
    from vlprobe.render.model_lookup import find_run

    store = results_store(ctx)
    if key is None and how == "model-index":
        raise click.UsageError(
            "A model-index is of one run. Name its KEY: vlprobe show lists them."
        )
    if key is None:
        print_folded(views.runs.runs(store), ("options", "note"), how)
        if n_shipped := sum(row.shipped for row in views.runs.run_rows(store)):
            click.echo(
                f"{n_shipped} of these came with vlprobe; VLPROBE_SHIPPED= hides them.", err=True
            )
    else:
        manifest = find_run(store, key)
        question_set = views.runs.question_set(
            store, manifest["case_key"], version_of=manifest["key"]
        )
        if how == "model-index":
            print_model_index(store, question_set, manifest["key"])
            return
        if slice_by == "seeds":
            table = views.papers.spread(store, question_set, averaging, unit)
        elif slice_by == "crossed":
            table = views.crossed.crossed_outcomes(store, question_set)
        elif slice_by == "size":
            table = views.figures.all_sizes(store, question_set)
        else:
            table = views.estimates.estimates(store, question_set, slice_by, averaging, unit)
        print_metrics(table, how)
        print_notes(question_set.runs)
        for model in question_set.models:
            for comparison in views.totals.compare(store, model, question_set.key):
                click.echo(f"{model}: {comparison.sentence}", err=True)
    for error in views.runs.unread(store):
        click.echo(f"Left out: {error}", err=True)


@main.command()
@click.argument("key", shell_complete=complete_runs)
@click.option(
    "--kind",
    default="",
    help="Such as flip, combined, paraphrase [the first kind that the model answered].",
)
@click.option("--subtype", default="", help="color, number, object; simple, advanced.")
@click.option("--rule", default="")
@click.option("--tag", default="", metavar="NAME=VALUE")
@click.option("--contains", default="", help="Only captions with these words.")
@click.option("--outcome", default="fooled", show_default=True, help="fooled, tied, held or all.")
@click.option(
    "--crossed",
    default="",
    metavar="KIND=OUTCOME",
    help="Only triplets whose other side has this outcome: t2t=fooled with --kind i2t --outcome held.",
)
@click.option(
    "--sort",
    default="worst",
    show_default=True,
    help="worst, closest, best, models (most models fooled first) or dataset.",
)
@click.option("--page", default=1, type=click.IntRange(1, 10**9), show_default=True)
@click.option("--size", default=20, type=click.IntRange(1, 10**6), show_default=True)
@click.option("--format", "how", type=FORMATS, default="table")
@click.pass_context
def failures(
    ctx: click.Context, key: str, page: int, size: int, how: str, **conditions: str
) -> None:
    """List the cases in which the model of run KEY is fooled, worst first; a model's name stands for its newest run."""
    from vlprobe import views
    from vlprobe.render.attribution import published_text
    from vlprobe.render.case_lines import CHOICES
    from vlprobe.render.model_lookup import find_run

    store = results_store(ctx)
    manifest = find_run(store, key)
    views.runs.kinds(manifest["run"]["probe"])  # raises for a probe of a plug-in that is not named
    model = manifest["run"]["model"]
    question_set = views.runs.question_set(store, manifest["case_key"], model=model)
    kind = views.kinds.choose_kind(store, question_set, conditions.pop("kind"), (model,))
    case_filter = replace(views.filter.Filter(model, kind), **conditions)
    table, total = views.failure_table.failure_table(store, question_set, case_filter, page, size)
    n_pages = max(1, -(-total // size))
    click.echo(f"{total} cases; page {page} of {n_pages}", err=True)
    if how == "table":
        table = views.failure_table.shortened_pictures(table)
        if not question_set.run(model).is_scored:
            words = [CHOICES[views.wall.verdict_of(margin)][1] for margin in table["margin"]]
            table = table.assign(margin=words).rename(columns={"margin": "answer"})
    empty = f"Page {page} is after the last page, {n_pages}." if total else NO_MATCH
    print_table(table, how, empty)
    if source := published_text([question_set.run(model)]):
        click.echo(source, err=True)


@main.command()
@click.option("--cancel", "cancel_id", metavar="ID", help="Stop this job at its next batch.")
@click.option("--resume", "resume_id", metavar="ID", help="Go on with a stopped job.")
@click.option("--log", "log_id", metavar="ID", help="The end of a job's log.")
@click.option("--format", "how", type=FORMATS, default="table")
@click.pass_context
def jobs(
    ctx: click.Context, cancel_id: str | None, resume_id: str | None, log_id: str | None, how: str
) -> None:
    """List the jobs that the dashboard started; cancel, resume or read one."""
    import pandas as pd

    from vlprobe.runs import jobs

    store = results_store(ctx)
    if cancel_id:
        jobs.cancel(store, cancel_id)
    elif resume_id:
        jobs.resume(store, resume_id)
    elif log_id:
        click.echo(jobs.log(store, log_id))
    else:
        rows = [
            (
                job.id,
                job.state,
                ", ".join(job.models),
                job.dataset,
                job.task,
                job.fraction,
                job.error,
            )
            for job in jobs.jobs(store)
        ]
        print_table(
            pd.DataFrame(
                rows, columns=["id", "state", "models", "dataset", "probe", "done", "error"]
            ),
            how,
        )
        for error in jobs.damaged(store):
            click.echo(f"Left out: {error}", err=True)


@main.command()
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["duckdb", "parquet", "csv"]),
    default="duckdb",
    show_default=True,
    help="One DuckDB file, or a folder of Parquet or CSV files.",
)
@click.option("--no-bundled", is_flag=True, help="Leave out results that came with vlprobe.")
@click.pass_context
def export(ctx: click.Context, output: Path, form: "Form", no_bundled: bool) -> None:
    """Write all results into OUTPUT for other programs, with a schema (docs/export.md). The column `bundled` of `runs`
    marks results that came with vlprobe.
    """
    from vlprobe import views

    store = results_store(ctx)
    rows = views.export.export(store, output, form, not no_bundled)
    click.echo(f"{output}: {rows:,} scores", err=True)
    for error in views.runs.unread(store):
        click.echo(f"Left out: {error}", err=True)


main.add_command(ask)
main.add_command(check)
main.add_command(compare)
main.add_command(completion)
main.add_command(dashboard)
main.add_command(doctor)
main.add_command(edits)
main.add_command(errata)
main.add_command(first_lists)
main.add_command(gate)
main.add_command(influence)
main.add_command(options)
main.add_command(perturb)
main.add_command(pictures)
main.add_command(remove)
main.add_command(rename)
main.add_command(report)
main.add_command(run)
main.add_command(sheet)
main.add_command(site)
main.add_command(suspects)
main.add_command(train)
main.add_command(train_demo)
main.add_command(verdicts)
main.add_command(verify)
