"""Commands that print results: the metrics of runs, and the cases that fool a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

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
    option_group,
    pass_results,
    question_sets_of,
)
from vlprobe.cli.output import (
    inform,
    print_folded,
    print_metrics,
    print_model_index,
    print_notes,
    print_rows,
    print_slice_notes,
    print_table,
    print_words,
)
from vlprobe.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from vlprobe.storage.store import Store
    from vlprobe.views.leaderboard import By

GROUPS = (
    "Models that share a letter are tied on that metric: paired tests by picture show no "
    "significant difference between them (p < .05, Holm-adjusted for all pairs). Controls and "
    "models that failed a check have no letter."
)
SHOWN_FORMATS = click.Choice([*FORMATS.choices, "model-index"])
IN_PRINT = ("model", "dataset", "probe", "n_items", "n_cases", "finished")  # in a LaTeX table
NO_MATCH = "No cases match these filters."


@click.command()
@click.argument("key", required=False, shell_complete=complete_runs)
@click.option(
    "--by",
    "slice_by",
    default="all",
    help="Break the metrics down by subtype, rule, strength_bin, comparison, slice (named slices), "
    "changed_words, caption_length, word_frequency, text_alone or tag:NAME. Other tables: seeds (mean and "
    "spread over draws of altered captions and pictures), crossed (triplets by both answers, "
    "with texts only and with the picture) and size (accuracy by number of parameters and "
    "training data, including published models).",
)
@AVERAGING
@UNIT
@click.option(
    "--format",
    "how",
    type=SHOWN_FORMATS,
    default="table",
    help="model-index prints the metadata of one run for a model card on the Hugging Face hub.",
)
@pass_results
def show(
    store: "Store", key: str | None, slice_by: str, averaging: str, unit: str, how: str
) -> None:
    """List stored and bundled results. With the KEY of a run or the name of a model, print the numbers of every
    model on the same questions.

    Runs from older versions are marked, and are compared only with runs from the same version.
    """
    from vlprobe.metrics.tie_groups import group_letters
    from vlprobe.render.model_lookup import find_run

    if key is None and how == "model-index":
        raise click.UsageError(
            "A model-index describes one run. Pass its KEY; `vlprobe show` lists the keys."
        )
    if key is None:
        table = views.runs.runs(store)
        if how == "latex":
            table = table[list(IN_PRINT)].assign(finished=table["finished"].str[:10])
        print_folded(table, ("options", "note"), how)
        if n_shipped := sum(row.shipped for row in views.runs.run_rows(store)):
            inform(
                f"{n_shipped} of these runs are bundled with vlprobe. To hide bundled "
                "runs, set VLPROBE_SHIPPED= (empty)."
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
            table = views.papers.spread(question_set, averaging, unit)
        elif slice_by == "crossed":
            table = views.figures.crossed_outcomes(question_set)
        elif slice_by == "size":
            table = views.figures.all_sizes(question_set)
        else:
            table = views.estimates.estimates(question_set, slice_by, averaging, unit)
        if slice_by == views.named_slices.BREAKDOWN:
            print_slice_notes(store, question_set.key)
        if slice_by == "all" and how in ("markdown", "latex"):
            groups = views.paired_tests.metric_tie_groups(question_set, averaging, unit)
            letters = {metric: group_letters(of_metric) for metric, of_metric in groups.items()}
            pairs = zip(table["metric"], table["model"], strict=True)
            column = [letters.get(metric, {}).get(model, "") for metric, model in pairs]
            table.insert(list(table).index("high") + 1, "group", column)
            if any(column):
                print_words([GROUPS], how)
        print_metrics(table, how, question_set, unit)
        print_notes(question_set.runs)
        for model in question_set.models:
            for comparison in views.totals.compare(store, model, question_set.key):
                inform(f"{model}: {comparison.sentence}")
    for error in views.runs.unread(store):
        inform(f"Left out: {error}")


_conditions = option_group(
    kind_option("the model"),
    click.option(
        "--subtype",
        default="",
        help="Type of edit, such as color, number or object for wrong captions, and simple or "
        "advanced for rewordings.",
    ),
    click.option("--rule", default="", help="Only cases made by this edit rule."),
    click.option(
        "--tag", default="", metavar="NAME=VALUE", help="Only cases of items with this tag."
    ),
    click.option(
        "--contains",
        default="",
        help="Only cases whose captions contain all of these words (dog* also finds dogs), and phrases in double "
        "quotes.",
    ),
    click.option(
        "--caption",
        default="",
        metavar="NAME=VALUE",
        help="Only cases in this bin of a breakdown by caption, such as 'text_alone=The text "
        "alone does not decide'.",
    ),
    click.option(
        "--unseen-by",
        default="",
        help="Only failures of dual encoders with this cause: the text tower hardly moved "
        "(words), the image tower hardly moved (picture), both hardly moved (both), both "
        "moved (match), or unknown.",
    ),
    click.option(
        "--exclude",
        "excluded",
        multiple=True,
        metavar="NAME=VALUE",
        help="Leave out cases with this value, such as subtype=color, tag:background=sea or "
        "'pair=four>five'; repeatable.",
    ),
)


@click.command()
@click.option(
    "--set",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Question set to include, given by its key or by one of its runs or models; "
    "repeatable. [default: all]",
)
@click.option(
    "--model",
    "names",
    multiple=True,
    help="Model to include; repeatable. [default: all]",
    metavar="NAME",
)
@click.option(
    "--by",
    type=click.Choice(["metric", "kind", "edit"]),
    default="metric",
    help="Columns of the table: metric prints the headline metric of each question set; kind and "
    "edit print the share of wrong captions preferred, as on Compare, by kind of case (kind) "
    "or also by type of edit and named slice (edit).",
)
@click.option(
    "--baseline",
    default="",
    metavar="NAME",
    help="With --by kind or --by edit, also print each model's difference from this model, or "
    "'tied' if the difference is not significant.",
)
@AVERAGING
@click.option(
    "--format",
    "how",
    type=SHOWN_FORMATS,
    default="table",
    help="csv and json print one row per model and question set; model-index prints the metadata "
    "of one model for a model card on the Hugging Face hub.",
)
@pass_results
def leaderboard(
    store: "Store",
    keys: Sequence[str],
    names: Sequence[str],
    by: "By",
    baseline: str,
    averaging: str,
    how: str,
) -> None:
    """Print a leaderboard of the models over several question sets: each set's headline metric, with 95 %
    intervals and ties.

    Models that share a letter in a column are tied there: paired tests by picture show no significant difference
    between them (p < .05, Holm-adjusted for all pairs). Models are sorted by the first question set. A cell without
    a number gives the reason.
    """
    from vlprobe.render.leaderboard import describe_columns, formatted_table, in_words
    from vlprobe.render.model_index import model_index
    from vlprobe.render.model_lookup import find_model
    from vlprobe.storage import display_names

    if how == "model-index" and len(names) != 1:
        raise click.UsageError("A model-index describes one model. Pass its name with --model.")
    if by == "metric" and baseline:
        raise click.UsageError("--baseline can only be used with --by kind or --by edit.")
    if by != "metric" and how == "model-index":
        raise click.UsageError("A model-index contains only metrics. Omit --by.")
    keys = keys or views.runs.case_keys(store)
    question_sets = question_sets_of(store, keys)
    models = [find_model(store, name) for name in names]
    pinned = find_model(store, baseline) if baseline else ""
    known = dict.fromkeys(model for each in question_sets for model in each.ordered_models)
    for model in filter(None, (*models, pinned)):
        if model not in known:
            raise NotFound("model with results on these question sets", model, known)
    columns = [
        column
        for each in question_sets
        for column in views.leaderboard.leaderboard(each, models, averaging, by, pinned)
    ]
    if how == "model-index":
        cells = [(column, column.cell(models[0]).estimate) for column in columns]
        runs = [
            (column.question_set.run(models[0]), [estimate], column.question_set.metrics)
            for column, estimate in cells
            if estimate
        ]
        if not runs:
            raise InvalidInput(f"'{models[0]}' has no results on these question sets.")
        click.echo(model_index(runs))
    elif how in ("csv", "json"):
        print_table(views.leaderboard.table(columns, pinned), how)
    else:
        renamed = display_names.read(store)
        if by == "edit":
            for each in question_sets:
                print_slice_notes(store, each.key)
        if how != "latex":  # which has them below the tables
            print_words(describe_columns(columns, renamed), how)
        if how == "table":
            print_table(in_words(columns, renamed), how)
        else:
            click.echo(formatted_table(columns, renamed, how), nl=False)


@click.command()
@click.argument("key", shell_complete=complete_runs)
@_conditions
@click.option("--slice", "named_slice", default="", help="Only the cases in this named slice.")
@click.option(
    "--outcome",
    default="fooled",
    help="Only cases with this outcome: fooled, tied, held (not fooled) or all.",
)
@click.option(
    "--crossed",
    default="",
    metavar="KIND=OUTCOME",
    help="Only triplets with this outcome for the other kind of question: --kind i2t --outcome "
    "held --crossed t2t=fooled lists triplets that fool the model only without the "
    "picture.",
)
@click.option(
    "--sort",
    default="worst",
    help="Order of the cases: worst, best, closest (smallest margins first), models (most "
    "models fooled first), suspects_last (worst first, suspect labels last) or dataset.",
)
@click.option("--page", default=1, type=click.IntRange(1, 10**9), help="Page to print.")
@click.option("--size", default=20, type=click.IntRange(1, 10**6), help="Cases per page.")
@FORMAT
@pass_results
def failures(store: "Store", key: str, page: int, size: int, how: str, **conditions: str) -> None:
    """List the cases in which the model of run KEY is fooled, worst first. KEY can also be the name of a model,
    which selects the model's newest run.
    """
    from vlprobe.case.card import CHOICE_WORDS
    from vlprobe.render.attribution import published_text
    from vlprobe.render.model_lookup import find_run

    of_slice = views.named_slices.locate(store, conditions["named_slice"])
    manifest = find_run(store, key, of_slice)
    views.runs.kinds(manifest["run"]["probe"])  # raises for an unnamed plug-in's probe
    model = manifest["run"]["model"]
    question_set = views.runs.question_set(store, manifest["case_key"], model=model)
    kind = conditions.pop("kind") or of_slice.get(question_set.key, "")
    kind = views.runs.choose_kind(question_set, kind, (model,))
    case_filter = views.filter.Filter.parse(model, kind, **conditions)
    table, total = views.cases.failure_table(question_set, case_filter, page, size)
    n_pages = max(1, -(-total // size))
    inform(f"{total} cases; page {page} of {n_pages}")
    if total:
        by_cause = views.causes.describe(views.causes.causes(question_set, model, kind))
        if by_cause:
            inform(by_cause)
    if how == "table":
        table = views.cases.shortened_pictures(table)
        if not question_set.run(model).is_scored:
            words = [CHOICE_WORDS[views.wall.verdict_of(margin)] for margin in table["margin"]]
            table = table.assign(margin=words).rename(columns={"margin": "answer"})
    empty = f"There is no page {page}; the last page is {n_pages}." if total else NO_MATCH
    print_table(table, how, empty)
    if source := published_text([question_set.run(model)]):
        inform(source)


@click.command()
@click.argument("name")
@click.option(
    "--probe",
    default="",
    help="Probe to report on. [default: the probe with results for the most steps]",
    shell_complete=complete_names("probes"),
)
@click.option(
    "--by",
    "slice_by",
    default="all",
    help="Break the metrics down by subtype, slice or another value, as in `vlprobe show`.",
)
@click.option(
    "--cases",
    is_flag=True,
    help="Print one row per case, with the step at which the case was learned or forgotten.",
)
@click.option(
    "--kind",
    default="",
    help="With --cases, kind of case to list. [default: the first kind that all steps answered]",
)
@click.option(
    "--outcome",
    default="",
    help="With --cases, list only cases with this outcome: learned, forgotten, always right, "
    "never right or unknown.",
)
@AVERAGING
@UNIT
@FORMAT
@pass_results
def steps(
    store: "Store",
    name: str,
    probe: str,
    slice_by: str,
    cases: bool,
    kind: str,
    outcome: str,
    averaging: str,
    unit: str,
    how: str,
) -> None:
    """Print the metrics of a training run by step, or the history of each case, from runs of the models NAME@STEP.

    A case is learned at the step from which the model is right through the last step, and forgotten at the step
    from which the model is fooled through the last step. To check a step for regressions, use `vlprobe gate
    NAME@STEP --against NAME@STEP`.
    """
    question_set, models = views.training_steps.find_training(store, name, probe)
    if not cases:
        table = views.training_steps.curves(question_set, models, slice_by, averaging, unit)
        print_metrics(table, how, question_set, unit)
        return
    if outcome not in ("", *views.training_steps.OUTCOMES):
        raise NotFound("outcome", outcome, views.training_steps.OUTCOMES)
    kind = views.runs.choose_kind(question_set, kind, tuple(models.values()))
    table = views.training_steps.cases_by_step(question_set, models, kind)
    counts = table["outcome"].value_counts()
    inform(
        f"{len(models)} steps, {len(table):,} cases of kind {kind}: "
        + ", ".join(f"{counts.get(each, 0):,} {each}" for each in views.training_steps.OUTCOMES)
        + "."
    )
    is_known = table["step"].notna()
    table["step"] = table["step"].astype("Int64").astype(object).where(is_known, None)
    print_table(table.loc[table["outcome"] == outcome] if outcome else table, how, NO_MATCH)


@click.group("slice")
def named_slices() -> None:
    """Save cases under a name, for use in `show --by slice`, `compare` and `gate`."""


@named_slices.command("save")
@click.argument("name")
@click.argument("key", shell_complete=complete_runs)
@_conditions
@pass_results
def save_slice(store: "Store", name: str, key: str, **conditions: str) -> None:
    """Save the cases of run KEY that meet the conditions as the slice NAME. An existing slice with this name is
    replaced.
    """
    from vlprobe.render.model_lookup import find_run

    manifest = find_run(store, key)
    model = manifest["run"]["model"]
    question_set = views.runs.question_set(store, manifest["case_key"], model=model)
    kind = views.runs.choose_kind(question_set, conditions.pop("kind"), (model,))
    case_filter = views.filter.Filter.parse(model, kind, outcome="all", **conditions)
    for each in (case_filter, *case_filter.exclusions()):
        views.cases.check_values(question_set, each)
    numbers, _, _ = views.cases.passing(question_set, case_filter)
    views.named_slices.save(question_set, name, case_filter.words(), numbers)
    inform(f"{len(numbers):,} cases saved as '{name}'.")


@named_slices.command("list")
@FORMAT
@pass_results
def list_slices(store: "Store", how: str) -> None:
    """List all slices, with the question set in which each slice was saved and a link to its cases in Explore."""
    rows = []
    for name, named in views.named_slices.read(store).items():
        cases = {"set": named.case_key, "kind": named.kind, "slice": name, "outcome": "all"}
        rows.append((name, len(named.digests), named.questions, f"explore?{urlencode(cases)}"))
    print_rows("name cases questions link", rows, how, "No slices are saved yet.")


@named_slices.command("remove")
@click.argument("name")
@pass_results
def remove_slice(store: "Store", name: str) -> None:
    """Delete the slice NAME. Its cases and results are kept."""
    from vlprobe.storage.bookmarks import SLICES

    SLICES.remove(store, name)


@click.command()
@click.argument("statement", required=False)
@click.option(
    "--init",
    "writes_init",
    is_flag=True,
    help="Write a script for `duckdb -init` that creates a view of each table, and print the "
    "path of the script.",
)
@FORMAT
@pass_results
def sql(store: "Store", statement: str | None, writes_init: bool, how: str) -> None:
    """Run a SELECT statement on all results and print the rows (docs/sql.md).

    The tables are the same as in `vlprobe export`: runs, cases, scores, estimates, annotations, and the probes' own
    tables. The column `bundled` of the table `runs` marks bundled results. STATEMENT cannot change anything or read
    other files.
    """
    if bool(statement) == writes_init:
        raise click.UsageError(
            'Pass either a SQL statement or --init: vlprobe sql "SELECT * FROM runs".'
        )
    if statement:
        print_table(views.sql.query(store, statement), how, "The query returned no rows.")
    else:
        click.echo(views.sql.init_script(store))
    for error in views.runs.unread(store):
        inform(f"Left out: {error}")
