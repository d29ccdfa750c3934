"""Commands that compare runs, report their statistical power, and fail in CI if a model regressed."""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from vlprobe import views
from vlprobe.cli.arguments import (
    AVERAGING,
    FORMAT,
    FORMATS,
    UNIT,
    complete_names,
    complete_runs,
    kind_option,
    pass_results,
)
from vlprobe.cli.output import (
    READ,
    inform,
    print_metrics,
    print_notes,
    print_rows,
    print_slice_notes,
    print_table,
    print_words,
)
from vlprobe.errors import InvalidInput

if TYPE_CHECKING:
    from vlprobe.storage.store import Store

SLICE = click.option(
    "--slice",
    "named_slice",
    default="",
    help="Use only the cases in this named slice, and the models that answered its questions.",
)
LEADING = ("metric", "subtype", "model", "verdict", "difference", "low", "high", "base", "value")

PROBE_OF_RUNS = click.option(
    "--probe",
    default="",
    help="Probe whose runs to use if you name models instead of keys. [default: the probe that "
    "ran last]",
    shell_complete=complete_names("probes"),
)


@click.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="A B [C ...]", shell_complete=complete_runs
)
@PROBE_OF_RUNS
@kind_option("every model")
@click.option(
    "--by",
    "rows",
    type=click.Choice(["metric", "edit"]),
    default="metric",
    help="Rows of the table: metric prints one row per metric; edit prints the share of wrong "
    "captions preferred, with one row per type of edit and named slice. With --format markdown or "
    "latex, edit prints the table that Compare exports for a paper.",
)
@SLICE
@AVERAGING
@UNIT
@FORMAT
@pass_results
def compare(
    store: "Store",
    names: Sequence[str],
    probe: str,
    kind: str,
    rows: str,
    named_slice: str,
    averaging: str,
    unit: str,
    how: str,
) -> None:
    """Compare run A with up to seven others on the same questions. Print the main finding and the paired
    differences.

    Identify a run by the beginning of its key, or by the name of its model, which selects the model's newest run. A
    difference is significant if its Holm-adjusted p-value is below .05. Tests of metrics are adjusted for all rows.
    Tests by type of edit, and the finding, are adjusted for every pair of the models that answered these questions, as
    on the dashboard.
    """
    from vlprobe.render.findings import verdict
    from vlprobe.render.forest import rows_text
    from vlprobe.render.model_lookup import find_model
    from vlprobe.storage import display_names
    from vlprobe.views.paired_tests import MOST_COMPARED, compare_metrics, compare_models

    if len(names) > MOST_COMPARED:
        raise InvalidInput(
            f"Too many runs to compare: {len(names)}. Choose between 2 and {MOST_COMPARED}."
        )
    names = [find_model(store, name) for name in names]
    of_slice = views.named_slices.locate(store, named_slice)
    question_set = views.runs.select(store, names, [probe] if probe else None, of_slice)
    kind = views.runs.choose_kind(question_set, kind or of_slice.get(question_set.key, ""))
    comparison = compare_models(question_set, question_set.models, kind, unit, named_slice)
    presentation, renamed = question_set.presentation.kind(kind), display_names.read(store)
    finding = verdict(comparison, presentation, renamed)
    of_cases = f"In the slice '{named_slice}': " if named_slice else ""
    print_words([of_cases + finding.heading, finding.detail], how)
    if rows == "edit" and how in ("latex", "markdown"):
        click.echo(rows_text(comparison, question_set, presentation, renamed, how), nl=False)
        return
    if rows == "edit":
        table = comparison.table().replace({"subtype": {"": "all"}})
    else:
        table = compare_metrics(
            question_set, question_set.models, averaging, unit, named_slice=named_slice
        )
    if how in READ:
        leading = [name for name in LEADING if name in table]
        table = table.loc[:, [*leading, *(name for name in table if name not in leading)]]
    print_metrics(table, how, question_set, unit, named_slice)
    print_notes(question_set.runs)
    print_slice_notes(store, question_set.key)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="A [B C D]", shell_complete=complete_runs)
@click.option(
    "--detect",
    type=click.FloatRange(0, min_open=True),
    metavar="DIFFERENCE",
    help="Also print how many pictures are needed to detect a difference of this size, such as "
    "0.02 for two points.",
)
@click.option(
    "--tests",
    type=click.IntRange(1, 10**6),
    help="Number of simultaneous tests; the significance level is .05 divided by this number. "
    "[default: the number of rows in the table]",
)
@PROBE_OF_RUNS
@AVERAGING
@FORMAT
@pass_results
def plan(
    store: "Store",
    names: Sequence[str],
    detect: float | None,
    tests: int | None,
    probe: str,
    averaging: str,
    how: str,
) -> None:
    """Print, for each metric, the smallest difference from run A that its question set can detect with 80 % power.

    If only A is given, it is compared with every other model on the same questions. If there are no other models,
    vlprobe assumes a second model whose errors are independent of A's, the case that requires the most pictures.
    """
    from vlprobe.render.model_lookup import find_model, find_run

    if len(names) > 1:
        probes = [probe] if probe else None
        names = [find_model(store, name) for name in names]
        question_set = views.runs.select(store, names, probes)
        models = question_set.models
    else:
        if probe:
            raise click.UsageError(
                "--probe can only be used with two or more models. For one model, pass the "
                "key of a run instead; `vlprobe show` lists the keys."
            )
        manifest = find_run(store, names[0])
        model = manifest["run"]["model"]
        question_set = views.runs.question_set(
            store, manifest["case_key"], version_of=manifest["key"], model=model
        )
        models = (model, *(other for other in question_set.ordered_models if other != model))
    table = views.plan.plan(
        question_set, models, math.nan if detect is None else detect, tests or 0, averaging
    )
    inform(
        f"Number of two-sided tests: {tests or len(table):,}. Power: 80 %. Significance level: "
        "p < .05 after correction."
    )
    print_table(table, how)


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "--against",
    required=True,
    metavar="RUN",
    help="Run to compare with, such as an earlier run or a baseline model.",
    shell_complete=complete_runs,
)
@click.option(
    "--max-drop",
    "limits",
    multiple=True,
    required=True,
    metavar="METRIC=VALUE",
    help="Maximum regression allowed for METRIC, in the metric's unit; repeatable.",
)
@SLICE
@click.option("--strict", is_flag=True, help="Also fail if the difference is inconclusive.")
@AVERAGING
@click.option(
    "--format",
    "how",
    type=FORMATS,
    default=None,
    help="Print all limits to stdout as a table in this format.",
)
@pass_results
def gate(
    store: "Store",
    run: str,
    against: str,
    limits: Sequence[str],
    named_slice: str,
    strict: bool,
    averaging: str,
    how: str | None,
) -> None:
    """Exit with code 1, and print one line per broken limit, if RUN regressed compared with another run.

    A limit is broken if the whole 95 % interval of the paired difference is beyond it, or if the difference is
    unknown. A usage error, such as an unknown run or metric, exits with code 2.
    """
    import pandas as pd

    from vlprobe.render.model_lookup import find_model

    max_drops = _limits(limits)
    probes = views.gate.probes_with(max_drops)
    names = [find_model(store, name) for name in (against, run)]
    of_slice = views.named_slices.locate(store, named_slice)
    question_set = views.runs.select(store, names, probes, of_slice)
    promises = views.gate.promises(question_set, max_drops, averaging, strict, named_slice)
    broken = [promise for promise in promises if promise.is_broken]
    if how:
        rows = [
            {**asdict(promise), "outcome": promise.outcome, "is_broken": promise.is_broken}
            for promise in promises
        ]
        print_table(pd.DataFrame(rows).drop(columns=["is_strict"]), how)
    for promise in promises:
        click.echo(promise.sentence, err=how is not None or not promise.is_broken)
    sys.exit(1 if broken else 0)


def _limits(pairs: Sequence[str]) -> dict[str, float]:
    """Parse `METRIC=VALUE` pairs. Raises InvalidInput."""
    limits: dict[str, float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            limit = float(text)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InvalidInput(
                f"'{pair}' is not a valid limit. Expected METRIC=VALUE, such as positive_rate=0.01."
            )
        if name in limits:
            raise InvalidInput(f"'{name}' has more than one limit. Set only one.")
        limits[name] = limit
    return limits


@click.command("first-lists")
@click.argument("original", metavar="BEFORE")
@click.argument("tuned", metavar="AFTER")
@click.option("--size", default=20, type=click.IntRange(1, 10**6), help="Number of captions.")
@FORMAT
@pass_results
def first_lists(store: "Store", original: str, tuned: str, size: int, how: str) -> None:
    """Print the first five pictures that two rococo runs retrieve for the same captions. Identify each run by its
    key or its model.
    """
    from vlprobe.render.model_lookup import find_model

    names = [find_model(store, name) for name in (original, tuned)]
    question_set = views.runs.select(store, names, ["rococo"])
    if question_set.probe != "rococo":
        raise InvalidInput(
            f"'{original}' and '{tuned}' are runs of the probe {question_set.probe}. Expected "
            "two rococo runs on the same question set; `vlprobe show` lists the runs."
        )
    first, second = question_set.models
    rows = [
        (caption, item, place_before, place_after, " ".join(before), " ".join(after))
        for caption, item, before, after, place_before, place_after in views.figures.first_lists(
            question_set, first, second, size
        )
    ]
    inform('Rank 6 means "not in the top five".')
    print_rows("caption item place_before place_after first_before first_after", rows, how)
