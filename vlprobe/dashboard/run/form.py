"""Run a test, in three steps. Everything is checked before anything starts.

What there is to set, and what is allowed, is data of the probes and of the runner (`options`); this
draws it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from vlprobe import registry, views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.damage import error_text
from vlprobe.dashboard.jobs import begin, span
from vlprobe.dashboard.run import fields, steps
from vlprobe.dashboard.state import attempt, plain, quiet, view
from vlprobe.datasets.file_formats import read_head
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.frozen import pick_device
from vlprobe.probes.fit import check_name_fits
from vlprobe.registry import endpoints
from vlprobe.render.html.elements import tag
from vlprobe.runs import ray_cluster
from vlprobe.runs.request import Request
from vlprobe.runs.settings import SETTINGS
from vlprobe.storage import files
from vlprobe.types.options import Option, parse_options
from vlprobe.views.durations import NOTHING, UNKNOWN, Duration, expected, in_words
from vlprobe.views.records import RunRow

CLUSTER_SETTINGS = ("executor", "ray_address")
EVERYWHERE = ("auto", "cpu")  # devices that need no look
NO_CHANGES = (
    "What was run before is on the other pages. Install vlprobe to run your own models and "
    "pictures."
)


def draw() -> None:
    """Draw the three steps; earlier runs that cannot be read are reported, with the way to repair them below."""
    st.title("Run a test", anchor=False)
    stays = "Everything stays on this computer"
    if servers := ", ".join(endpoints.named()):
        stays += f", except what models of {servers} are asked"
    quiet(
        f"{stays}. You can close this page: the run continues, and finished work is never repeated."
    )
    try:
        if changes(NO_CHANGES):
            _draw()
    except VlprobeError as error:
        st.error(plain(error_text(error)), icon=":material/error:")


def _draw() -> None:
    """The steps, all that can be set, and at the bottom what is wrong with it, or how long
    it takes and one button.
    """
    models = steps.models()
    probes = steps.probes()
    dataset = steps.dataset(probes)
    typed = steps.options(probes)
    described = [option for option in SETTINGS if option.name not in _hidden_settings()]
    settings = fields.draw_fold("machine", "Size, machine and details", [described], "run")
    run_choice = (models, dataset, {name: typed[name] for name in probes}, settings)
    with st.bottom, st.container(horizontal=True, vertical_alignment="center", key="run_bar"):
        _bar(*run_choice)


def _hidden_settings() -> tuple[str, ...]:
    """Return the settings that visitors do not choose: the address of a Ray cluster, and all that
    concerns Ray unless the owner of the dashboard named a cluster.
    """
    return CLUSTER_SETTINGS[1:] if ray_cluster.allowed_cluster() else CLUSTER_SETTINGS


def _bar(
    models: Sequence[str],
    dataset: str,
    probes: Mapping[str, Mapping],
    settings: Mapping[str, object],
) -> None:
    """Draw the estimated duration, or the error, next to the button that starts it."""
    problem: VlprobeError | None = None
    try:
        requests = checked(models, dataset, probes, settings)
        _expectation(requests)
    except VlprobeError as error:
        problem = error
        if models and probes:
            st.error(plain(error_text(error)), icon=":material/error:")
        else:
            quiet(str(error))
    st.space("stretch")
    st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        key="start",
        disabled=problem is not None,
        help=plain(str(problem)) if problem else None,
        on_click=attempt,
        args=(_start, models, dataset, probes, settings),
    )


def checked(
    models: Sequence[str],
    dataset: str,
    probes: Mapping[str, Mapping],
    settings: Mapping[str, object],
) -> list[Request]:
    """Return the requests of the form, one per probe; nothing is loaded.

    Args:
        models: Names, as they were typed.
        dataset: The name of one; "": each probe's own drawn scenes.
        probes: Names of probes, each with its options as they were typed.
        settings: Settings of a run; omitted ones have their defaults.

    Raises:
        VlprobeError: the first thing that is wrong: a value that is not allowed, a name that is not
            known, a path where nothing is.
    """
    if not models:
        raise InvalidInput("Choose at least one model.")
    if not probes:
        raise InvalidInput("Choose at least one question.")
    run_settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parse_options(SETTINGS, settings, "A run").items()
    }
    if run_settings["executor"] == "ray":
        run_settings["ray_address"] = ray_cluster.allowed_cluster()
        ray_cluster.refuse_unnamed(run_settings["ray_address"])
    Budget(run_settings["price"], run_settings["max_cost"])
    requests = []
    for probe, typed in probes.items():
        loaded = registry.load_probe(probe)
        options = parse_options(loaded.options, typed, f"Probe '{probe}'")
        loaded.check_options(options)
        for option in loaded.options:
            _check_named(option, options[option.name])
        requests.append(
            Request(
                tuple(models),
                dataset or loaded.dataset,
                probe,
                options,
                **run_settings,
            )
        )
    for request in requests:
        registry.check_name("datasets", request.dataset)
    for name in models:
        model_name = registry.parse_name("models", name)
        model_name.check()
        for probe in probes:
            check_name_fits(model_name, registry.load_probe(probe))
    return requests


def _check_named(option: Option, value: object) -> None:
    """Raise a VlprobeError where the value names a file, a dataset or a
    model that cannot be there.
    """
    for name in filter(None, map(str, value if isinstance(value, list) else [value])):
        if option.refers_to == "file":
            read_head(files.parse_path(name))
        elif option.refers_to:
            registry.check_name(f"{option.refers_to}s", name)


def _start(
    models: Sequence[str],
    dataset: str,
    probes: Mapping[str, Mapping],
    settings: Mapping[str, object],
) -> None:
    """Begin one job for all probes, if all is still there."""
    requests = checked(models, dataset, probes, settings)
    if requests[0].executor == "local" and requests[0].device not in EVERYWHERE:
        pick_device(requests[0].device)
    begin(*requests)


def _expectation(requests: Sequence[Request]) -> None:
    """Draw an estimate of the duration from earlier runs, and the amount of work."""
    runs = view(views.runs.run_rows)
    total = sum(
        (
            UNKNOWN
            if request.where
            else expected(runs, request.models, request.dataset, request.probe, _at_most(request))
            for request in requests
        ),
        NOTHING,
    )
    models, questions = len(requests[0].models), len(requests)
    work = f"{models} model{'s' * (models > 1)} × {questions} question{'s' * (questions > 1)}"
    pictures = _pictures(runs, requests)
    work += f" × {pictures:,} pictures." if pictures else "."
    evidence = " ".join(filter(None, [work, _evidence(total), _servers(requests)]))
    st.html(
        f'<div role="status">{tag("strong", in_words(total))}'
        f"{tag('p', evidence, class_='vp-quiet vp-small')}</div>"
    )


def _evidence(total: Duration) -> str:
    """Return the basis of the estimate."""
    if not total.is_known:
        return "Nothing like it was run here before; the first seconds of the run tell."
    if total.low == total.high:
        return f"They took {span(total.low)} last time."
    return "Judging by other models on the same pictures."


def _servers(requests: Sequence[Request]) -> str:
    """Describe the data sent to a server, if one is used; its requests are counted once there are questions."""
    origins = {
        endpoints.of_name(name).origin
        for name in requests[0].models
        if name.startswith(endpoints.PREFIX)
    }
    if not origins:
        return ""
    limit = requests[0].max_cost
    return (
        f"Texts and pictures are sent to {', '.join(sorted(origins))}, at the cost of whoever serves this page"
        f"{f', {limit} at most' if limit else ''}. How many requests that takes is the first line of the job's log."
    )


def _pictures(runs: Sequence[RunRow], requests: Sequence[Request]) -> int:
    """Count the pictures of the run; 0 if they have not been read yet, or differ from probe to probe."""
    sizes = set()
    for request in requests:
        size = next((run.n_items for run in runs if run.dataset == request.dataset), 0)
        n_pictures = _at_most(request)
        sizes.add(0 if request.where else min(size, n_pictures) if n_pictures and size else size)
    return sizes.pop() if len(sizes) == 1 else 0


def _at_most(request: Request) -> int:
    """Count how many pictures a request leaves at most, without a look at the data; 0: all."""
    return min(filter(None, (request.limit, request.sample, len(request.item))), default=0)
