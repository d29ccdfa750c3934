"""Command that runs one or several probes on models."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from vlprobe import registry, views
from vlprobe.cli.arguments import (
    COSTS,
    FORMAT,
    LOADING,
    SEED,
    cache_store,
    case_choices,
    complete_names,
    item_choices,
    loadable_names,
    parse_pairs,
    probe_options,
    rejected_labels,
    run_settings,
    typed,
)
from vlprobe.cli.output import ProgressBar, inform, print_notes, print_table
from vlprobe.errors import Misfit, NotFound
from vlprobe.models import frozen
from vlprobe.runs.request import Request
from vlprobe.types.options import REMOVED

if TYPE_CHECKING:
    from vlprobe.storage.store import Store

ALL = "all"


@click.command()
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    help="Name of a model; repeatable.",
    shell_complete=complete_names("models"),
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    help="Name of a dataset; repeatable. Each probe runs on the datasets it applies to. "
    "[default: the probe's demo data]",
    shell_complete=complete_names("datasets"),
)
@click.option(
    "--probe",
    "probes",
    multiple=True,
    default=("lgip",),
    help="Name of a probe, or 'all' for every probe that applies to the dataset; repeatable.",
    shell_complete=complete_names("probes"),
)
@probe_options(
    "Set an option for all probes that have it, such as rules=paper, or for one probe, "
    "such as lgip.rules=paper; repeatable."
)
@SEED
@item_choices
@case_choices
@LOADING
@run_settings("batch_size")
@click.option(
    "--workers",
    type=int,
    help="Number of threads that decode pictures and of processes that edit captions. "
    "[default: one per core, up to 16]",
)
@run_settings("memory")
@click.option(
    "--threads",
    default=0,
    type=click.IntRange(0, 1024),
    help="Number of PyTorch threads; 0 lets PyTorch decide.",
)
@run_settings("executor")
@click.option(
    "--ray-address",
    default="",
    metavar="HOST:PORT",
    help="HOST:PORT of the Ray cluster. If empty, the cluster in RAY_ADDRESS is used, or else a "
    "new cluster on this machine.",
)
@COSTS
@click.option("--no-embedding-cache", is_flag=True, help="Do not store embeddings for later runs.")
@click.option(
    "--verify",
    is_flag=True,
    help=("Compute the digests of all weights and pictures again instead of using cached digests."),
)
@click.option("--no-doctor", is_flag=True, help="Skip the model checks.")
@click.option("--profile", is_flag=True, help="Print the time spent on each step to stderr.")
@FORMAT
@click.pass_context
def run(
    ctx: click.Context,
    datasets: Sequence[str],
    probes: Sequence[str],
    options: Sequence[str],
    threads: int,
    ray_address: str,
    profile: bool,
    how: str,
    **settings,
) -> None:
    """Run probes on models. Repeating the command resumes the run, or prints the stored result if it is complete."""
    from vlprobe.runs.profile import Profile
    from vlprobe.runs.run import execute_plan

    if threads:
        frozen.use_threads(threads)
    if settings["executor"] == "ray":
        from vlprobe.runs import ray_cluster

        ray_cluster.allow(ray_address)
    elif ray_address:
        raise click.UsageError("--ray-address needs --executor ray.")
    typed(*settings["models"], *datasets, *probes, *parse_pairs(options).values())
    settings["models"] = tuple(loadable_names(ctx, settings["models"]))
    settings["errata"] = rejected_labels(settings["errata"])
    settings["keep_embeddings"] = not settings.pop("no_embedding_cache")
    settings["examine"] = not settings.pop("no_doctor")
    known = {name: value for name, value in settings.items() if value is not None}
    names = registry.names("probes") if ALL in probes else list(dict.fromkeys(probes))
    by_probe = _options_by_probe(names, parse_pairs(options))
    requests = [
        Request(dataset=dataset, probe=name, options=by_probe[name], **known)
        for dataset in dict.fromkeys(datasets or ("",))
        for name in names
    ]
    store = cache_store(ctx)
    leaves_out = ALL in probes or len(datasets) > 1
    with ProgressBar() as bar:
        clock = Profile(bar) if profile else None
        plan = execute_plan(requests, store, clock or bar, leaves_out=leaves_out)
    for reason in plan.left_out:
        inform(f"Left out {reason}")
    if not any(plan.manifests):
        raise Misfit(
            "None of these probes applies to the dataset (see above). Choose other probes "
            "or datasets."
        )
    _print_answers(store, [manifests for manifests in plan.manifests if manifests], how)
    if clock:
        inform(clock.report())


def _options_by_probe(
    probes: Sequence[str], options: Mapping[str, object]
) -> dict[str, dict[str, object]]:
    """Assign options to probes. An option NAME applies to every probe that has it, and PROBE.NAME to a single probe.

    If only one probe runs, it receives all options, even unknown ones, because it reports which ones it expects.
    """
    option_names = {
        name: {option.name for option in registry.load_probe(name).options} for name in probes
    }
    by_probe: dict[str, dict[str, object]] = {name: {} for name in probes}
    for name, value in options.items():
        head, _, option_name = name.partition(".")
        if head in option_names and option_name:
            by_probe[head][option_name] = value
            continue
        owners = [probe for probe in probes if name in option_names[probe]]
        if not owners and (len(probes) == 1 or name in REMOVED):
            owners = list(probes)  # `parse_options` reports what to do
        if not owners:
            raise NotFound("probe option", name, sorted(set().union(*option_names.values())))
        for probe in owners:
            by_probe[probe].setdefault(name, value)
    return by_probe


def _print_answers(store: "Store", answers: Sequence[Sequence[dict]], how: str) -> None:
    """Print the estimates from all runs in one table, then the notes on models and data.

    Args:
        answers: The run manifests, one list per dataset and probe. At least one.
    """
    import pandas as pd

    tables = []
    for manifests in answers:
        question_set = views.runs.question_set(store, manifests[0]["case_key"])
        estimates = views.estimates.estimates(question_set).drop(columns=["slice"])
        keys = dict.fromkeys(manifest["key"] for manifest in manifests)
        tables.append(pd.concat([estimates.loc[estimates["key"] == key] for key in keys]))
    for column in ("probe", "dataset"):
        values = [manifests[0]["run"][column] for manifests in answers]
        if len(set(values)) > 1:
            for table, value in zip(tables, values, strict=True):
                table.insert(0, column, value)
    print_table(pd.concat(tables), how)
    keys = {manifest["key"] for manifests in answers for manifest in manifests}
    print_notes(row for row in views.runs.run_rows(store) if row.key in keys)
    notes, findings = {}, {}  # each is printed once, even if several probes have it
    for manifests in answers:
        notes |= dict.fromkeys(manifests[0]["notes"])
        findings |= {str(finding): finding for finding in manifests[0]["findings"]}
    for note in notes:
        inform(f"Note on the data: {note}")
    for finding in findings.values():
        inform(
            f"Defect {finding['name']}: {finding['count']} of {finding['of']}. {finding['meaning']}"
        )
