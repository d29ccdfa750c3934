"""Commands that write results to files: a report, a site, figures, and tables for other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlprobe import views
from vlprobe.cli.arguments import pass_results, question_set_of, question_sets_of
from vlprobe.cli.output import inform, print_slice_notes
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import files

if TYPE_CHECKING:
    from vlprobe.storage.store import Store
    from vlprobe.surfaces.paper import Width
    from vlprobe.views.export import Form


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--set",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Question set to report on, given by its key or by one of its runs or models; "
    "repeatable. [default: the most complete]",
)
@pass_results
def report(store: "Store", output: Path, keys: Sequence[str]) -> None:
    """Write a comparison of all models on question sets as a single HTML file that works offline."""
    from vlprobe.surfaces.report import report as page

    question_sets = question_sets_of(store, keys or views.runs.case_keys(store)[:1])
    content = page.report(*question_sets).encode()
    files.write_bytes(output, content)
    inform(f"{output}: {len(content) / 1e6:.1f} MB")
    for question_set in question_sets:
        print_slice_notes(store, question_set.key)


@click.command()
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Question set to publish, given by its key or by one of its runs or models; "
    "repeatable. The site shows question sets in this order. [default: the most complete]",
)
@click.option(
    "--cases",
    "n_cases",
    default=60,
    type=click.IntRange(1, 5000),
    help="Number of failures to publish per model and kind: this many of the worst, and this "
    "many pictures with their worst case. For ties and for cases that did not fool the "
    "model, half as many are published.",
)
@click.option(
    "--max-size",
    default=50.0,
    type=click.FloatRange(0, min_open=True),
    metavar="MB",
    help="Maximum size of the site; larger sites are not written.",
)
@click.option(
    "--with-notes",
    is_flag=True,
    help="Also publish tags, notes and the paths of files on this machine.",
)
@click.option(
    "--i-may-publish",
    "may_publish",
    is_flag=True,
    help="Also publish pictures that vlprobe did not draw. With this option, you confirm that "
    "you have the right to publish them.",
)
@click.option(
    "--space",
    is_flag=True,
    help="Add the settings for a static Hugging Face Space (README.md) and for GitHub Pages (.nojekyll).",
)
@click.option("--dry-run", is_flag=True, help="Report the size of the site without writing it.")
@pass_results
def site(
    store: "Store",
    output: Path,
    keys: Sequence[str],
    max_size: float,
    space: bool,
    dry_run: bool,
    **limits: Any,
) -> None:
    """Write question sets to the new folder OUTPUT as web pages that work from disk or on any web server.

    Bundled results can be published, too; they are the default if no other results are stored.
    """
    from vlprobe.surfaces.site import bundle
    from vlprobe.surfaces.site.subject import Limits

    bundle.check_output(output)
    case_keys = views.runs.case_keys(store)
    question_sets = question_sets_of(store, keys or case_keys[:1])
    contents = bundle.site(question_sets, Limits(**limits), space)
    inform(
        f"{output}: {len(contents.files)} files, {contents.n_bytes / 1e6:.1f} MB; {contents.n_cases:,} cases, "
        f"{contents.n_pictures:,} pictures"
    )
    if contents.n_held_back:
        inform(
            f"{contents.n_held_back:,} pictures are left out because vlprobe did not draw them "
            "and other people may hold rights to them. To include these pictures, use "
            "--i-may-publish."
        )
    for question_set in question_sets:
        print_slice_notes(store, question_set.key)
    bundle.check_size(contents, output, int(max_size * 1e6))
    if not dry_run:
        bundle.write(contents, output)


@click.command()
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["duckdb", "parquet", "csv"]),
    default="duckdb",
    help="One DuckDB file, or a folder of Parquet or CSV files.",
)
@click.option("--no-bundled", is_flag=True, help="Leave out bundled results.")
@pass_results
def export(store: "Store", output: Path, form: "Form", no_bundled: bool) -> None:
    """Write all results to OUTPUT for other programs, with a schema (docs/publish.md). The column `bundled` of the
    table `runs` marks bundled results.
    """
    rows = views.export.export(store, output, form, not no_bundled)
    inform(f"{output}: {rows:,} scores")
    for error in views.runs.unread(store):
        inform(f"Left out: {error}")


@click.command()
@click.argument("name")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--set",
    "key",
    default="",
    metavar="KEY",
    help="Question set to draw, given by its key or by one of its runs or models. [default: "
    "the most complete one with data for this figure]",
)
@click.option(
    "--width",
    type=click.Choice(["column", "text"]),
    default="text",
    help="3.5 or 7 inches.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="Model to draw; repeatable, with the baseline first. For steps, the NAME of a training "
    "run selects its models NAME@STEP. [default: the first four models for compare, the first "
    "two for map, all for other figures]",
)
@click.option("--force", is_flag=True, help="Replace OUTPUT if it exists.")
@pass_results
def figure(
    store: "Store",
    name: str,
    output: Path,
    key: str,
    width: "Width",
    models: Sequence[str],
    force: bool,
) -> None:
    """Draw a figure from the dashboard for a paper. OUTPUT is a .svg, .png or .pdf file.

    NAME is trade-off, strength (a metric by the strength of the change), steps (a metric by training step, for the
    models NAME@STEP), compare (paired differences), scorecard (all models with letters for ties) or map (the
    margins of two models). The command prints the facts for the figure's caption: the finding, the number of cases,
    the test and its correction. It requires the package kaleido ('vlprobe[figures]') and Chrome or Chromium.
    """
    from vlprobe.render.model_lookup import find_model
    from vlprobe.surfaces import paper

    if name not in paper.FIGURES:
        raise NotFound("figure", name, paper.FIGURES)
    suffix = output.suffix.lower()
    if suffix not in paper.FORMATS:
        raise InvalidInput(
            f"'{output}' ends in '{suffix}'. Expected one of: {', '.join(paper.FORMATS)}."
        )
    if (output.exists() or output.is_symlink()) and not force:
        raise InvalidInput(
            f"'{output}' already exists. Choose another file name, or replace the file with "
            "--force."
        )
    known = views.runs.models(store)
    chosen: list[str] = []
    for model in models:
        of_training = views.training_steps.models_of(known, model) if name == "steps" else []
        chosen += of_training or [find_model(store, model)]
    for model in chosen:
        if model not in known:
            raise NotFound("model with results", model, known)
    candidates = (
        question_set_of(store, key or row.case_key)
        for row in views.runs.question_set_rows(store)
        if key or set(chosen) <= set(row.models)
    )
    question_set = next((each for each in candidates if key or name in paper.available(each)), None)
    if question_set is None:
        raise InvalidInput(
            f"No stored results{' of these models' * bool(chosen)} contain the data for the "
            f"figure '{name}'. Run a probe first: vlprobe run --help."
        )
    drawn, caption = paper.printed_figure(question_set, name, width, chosen)
    defaults = paper.default_models(question_set, name)
    if not chosen and len(defaults) < len(question_set.models):
        inform(
            f"The figure shows only the first {len(defaults)} of {len(question_set.models)} "
            f"models: {', '.join(defaults)}. Choose others with --model."
        )
    files.write_bytes(output, paper.rendered(drawn, suffix))
    click.echo(caption)
