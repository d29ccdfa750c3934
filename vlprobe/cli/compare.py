"""The commands that compare runs: in words and numbers, and as a gate."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from vlprobe.cli.completion import complete_names, complete_runs
from vlprobe.cli.output import (
    AVERAGING,
    FORMATS,
    print_metrics,
    print_notes,
    print_table,
    print_words,
)
from vlprobe.cli.results import results_store
from vlprobe.errors import InvalidInput

if TYPE_CHECKING:
    pass

MOST = 4  # runs in one comparison, as on the page Compare


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="A B [C D]", shell_complete=complete_runs)
@click.option(
    "--probe",
    default="",
    help="Of models whose names are given [the one that was last asked].",
    shell_complete=complete_names("probes"),
)
@click.option(
    "--kind",
    default="",
    help="Such as flip, combined, paraphrase [the first kind with an answer of every model].",
)
@click.option(
    "--by",
    "rows",
    type=click.Choice(["metric", "edit"]),
    default="metric",
    show_default=True,
    help="A row a metric, or the share of lies believed, a row a kind of edit.",
)
@AVERAGING
@click.option(
    "--unit", type=click.Choice(["cosine", "spread"]), default="cosine", show_default=True
)
@click.option("--format", "how", type=FORMATS, default="table")
@click.pass_context
def compare(
    ctx: click.Context,
    names: Sequence[str],
    probe: str,
    kind: str,
    rows: str,
    averaging: str,
    unit: str,
    how: str,
) -> None:
    """Compare runs B, C and D with run A on the same questions: what may be said, and paired differences.

    A run is the beginning of its key, or a model's stored or display name, which stands for its newest run. A
    difference counts where its p, adjusted for all rows (Holm), is below .05.
    """
    from vlprobe import views
    from vlprobe.render.findings import verdict
    from vlprobe.render.model_lookup import find_model
    from vlprobe.render.words import presentations
    from vlprobe.storage import display_names

    if len(names) > MOST:
        raise InvalidInput(f"{len(names)} runs are too many to compare. Name two to {MOST}.")
    store = results_store(ctx)
    names = [find_model(store, name) for name in names]
    question_set = views.selection.select(store, names, [probe] if probe else None)
    kind = views.kinds.choose_kind(store, question_set, kind)
    comparison = views.paired_tests.compare_models(
        store, question_set, question_set.models, kind, unit
    )
    finding = verdict(
        comparison, presentations()[question_set.probe].kind(kind), display_names.read(store)
    )
    print_words([finding.heading, finding.detail], how)
    if rows == "edit":
        table = comparison.table().replace({"subtype": {"": "all"}})
    else:
        table = views.paired_tests.compare_metrics(
            store, question_set, question_set.models, averaging, unit
        )
    if how in ("table", "markdown"):
        order = [
            "metric",
            "subtype",
            "model",
            "verdict",
            "difference",
            "low",
            "high",
            "base",
            "value",
        ]
        columns = list(dict.fromkeys([*(name for name in order if name in table), *table]))
        table = table.loc[:, columns]
    print_metrics(table, how)
    print_notes(question_set.runs)


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "--against",
    required=True,
    metavar="RUN",
    help="What it is compared with: a run of before, or of a plain training.",
    shell_complete=complete_runs,
)
@click.option(
    "--max-drop",
    "limits",
    multiple=True,
    required=True,
    metavar="METRIC=VALUE",
    help="Maximum allowed regression, in the metric's unit; repeatable.",
)
@click.option("--strict", is_flag=True, help="What the interval leaves open counts as broken, too.")
@AVERAGING
@click.option("--format", "how", type=FORMATS, default=None, help="All promises, on stdout.")
@click.pass_context
def gate(
    ctx: click.Context,
    run: str,
    against: str,
    limits: Sequence[str],
    strict: bool,
    averaging: str,
    how: str | None,
) -> None:
    """Fail with exit code 1 and one line per broken limit if RUN regressed against another run.

    A limit is broken if the whole 95 % interval of the paired difference is beyond it, or if the difference is
    unknown. A mistake, such as an unknown run or metric, exits with 2.
    """
    from dataclasses import asdict

    import pandas as pd

    from vlprobe import views
    from vlprobe.render.model_lookup import find_model

    store = results_store(ctx)
    max_drops = _limits(limits)
    probes = views.gate.probes_with(max_drops)
    names = [find_model(store, name) for name in (against, run)]
    question_set = views.selection.select(store, names, probes)
    promises = views.gate.promises(store, question_set, max_drops, averaging, strict)
    broken = [promise for promise in promises if promise.is_broken]
    if how:
        rows = [
            {**asdict(promise), "outcome": promise.outcome, "is_broken": promise.is_broken}
            for promise in promises
        ]
        print_table(pd.DataFrame(rows).drop(columns=["is_strict"]), how)
    for promise in promises:
        click.echo(promise.sentence, err=how is not None or not promise.is_broken)
    ctx.exit(1 if broken else 0)


def _limits(pairs: Sequence[str]) -> dict[str, float]:
    """`METRIC=VALUE` pairs. Raises InvalidInput."""
    limits: dict[str, float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            limit = float(text)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InvalidInput(
                f"'{pair}' is no promise. Expected METRIC=VALUE, such as positive_rate=0.01."
            )
        if name in limits:
            raise InvalidInput(f"'{name}' is promised more than once. Promise it once.")
        limits[name] = limit
    return limits
