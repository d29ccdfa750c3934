"""Commands for labels that may be wrong: list labels that models reject, and export or import verdicts on them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlprobe import views
from vlprobe.cli.arguments import (
    FORMAT,
    complete_runs,
    kind_option,
    pass_results,
    question_set_of,
)
from vlprobe.cli.output import inform, print_rows

if TYPE_CHECKING:
    from vlprobe.storage.store import Store

KEY = click.argument("key", shell_complete=complete_runs)


@click.command()
@KEY
@kind_option("every model")
@click.option(
    "--accuracy",
    default=0.85,
    type=click.FloatRange(0, 1),
    help="Minimum accuracy for a model to count as strong.",
)
@click.option("--size", default=20, type=click.IntRange(1, 10**6), help="Number of cases to list.")
@FORMAT
@pass_results
def suspects(store: "Store", key: str, kind: str, accuracy: float, size: int, how: str) -> None:
    """List the cases in run KEY's question set whose label is rejected by at least two strong models and by at
    least two thirds of the strong models. KEY can also be the name of a model, which selects the model's newest
    run.

    Such a case is more often mislabeled than hard. Review the cases under Lab > Suspect labels, then export your
    verdicts with `vlprobe errata export`.
    """
    from vlprobe.render.attribution import published_text

    question_set = question_set_of(store, key)
    kind = views.runs.choose_kind(question_set, kind, question_set.models)
    ranking = views.suspects.suspects(question_set, kind, accuracy)
    strong = ", ".join(ranking.strong) or "none"
    inform(f"Strong models: {strong}. {len(ranking.suspects):,} suspect labels.")
    n_strong = len(ranking.strong)
    rows = [
        (row.id, f"{row.n_rejecting} of {n_strong}", row.verdict, row.true_text, row.wrong_text)
        for row in ranking.suspects[:size]
    ]
    columns = "case rejected_by verdict true_caption wrong_caption"
    print_rows(columns, rows, how, "No label is rejected by enough strong models.")
    for each in ranking.accuracies:
        inform(
            f"{each.model}: right in {each.all_cases:.2%} of all cases, and in "
            f"{each.without:.2%} of those whose label was not rejected"
        )
    if source := published_text(question_set.runs):
        inform(source)


@click.group()
def errata() -> None:
    """Share verdicts on labels as JSON lines, with the digest of each question."""


@errata.command("export")
@KEY
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--reviewer", required=True, help="Your name or handle, shown to readers of the file."
)
@pass_results
def export_errata(store: "Store", key: str, out: Path, reviewer: str) -> None:
    """Write the verdicts on labels in run KEY's question set to OUT."""
    from vlprobe.storage import errata, files

    files.require_new(out)
    question_set = question_set_of(store, key)
    verdicts = views.suspects.export(question_set, reviewer)
    files.write_bytes(out, errata.lines(verdicts).encode())
    inform(f"{len(verdicts):,} verdicts written to {out}.")


@errata.command("import")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@pass_results
def import_errata(store: "Store", path: Path) -> None:
    """Store the verdicts in FILE as tags on their cases, in every question set that contains them."""
    from vlprobe.storage import errata

    verdicts = errata.read(path)
    n_cases = sum(
        views.suspects.apply(views.runs.question_set(store, row.case_key), verdicts)
        for row in views.runs.question_set_rows(store)
    )
    inform(f"{len(verdicts):,} verdicts read; {n_cases:,} cases tagged.")
