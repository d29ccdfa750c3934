"""Planning of runs, which turns names into pinned Runs, and their execution.

The stages of a run, each skipped if its output is stored: `check_data`, `write_cases`, `answer`
(score, then judge) and the model checks. The cases are shared by all models; each model scores them
part by part. Stored parts are not scored again, so the same call resumes after a crash, a
cancellation or a full disk.
"""

import contextlib
import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from vlprobe import registry
from vlprobe.datasets.audit import NOT_ENGLISH
from vlprobe.datasets.languages import foreign_captions
from vlprobe.errors import InvalidInput, Misfit, plugin_errors
from vlprobe.models.doctor import examine as doctor_examine
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.endpoint.served import ServedModel
from vlprobe.probes.fit import check_fit, check_pictures
from vlprobe.registry import ModelName, model_memo
from vlprobe.runs import questions, ray_cluster, selection
from vlprobe.runs.answers import answer
from vlprobe.runs.context import RunContext
from vlprobe.runs.executor import LocalExecutor, SharedEncoder, announce_pairs, recurring_texts
from vlprobe.runs.ray_executor import RayExecutor
from vlprobe.runs.request import Progress, Request, RunKeys
from vlprobe.runs.settings import SETTINGS
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.storage import files, memo
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.store import Entry, Store
from vlprobe.types import (
    Dataset,
    Item,
    Model,
    Picture,
    Probe,
    Run,
    answers_cases,
    embeds_images,
    looks_up,
)
from vlprobe.types.options import parse_options

# Of a run of a known probe: all that its captions and pictures depend on
QUESTION_FIELDS = (
    *("dataset", "dataset_digest", "probe_version"),
    *("options", "seed", "limit", "selection"),
)


class Plan(NamedTuple):
    """The results of executing several run requests as one plan."""

    manifests: list[list[dict]]  # for each request, in the order of its models
    left_out: list[str]  # reasons why a model has no answer to a request, one line each


def execute(
    request: Request,
    store: Store,
    progress: Progress | None = None,
    models: Mapping[str, Model] = MappingProxyType({}),
    dataset: Dataset | None = None,
) -> list[dict]:
    """Carry out a run request. Everything that is already stored is skipped.

    Args:
        progress: Receives the progress; may raise an error to stop.
        models: Models that are already loaded, by name.
        dataset: The dataset, if it is already loaded.

    Returns:
        The manifest of each model's run, in the order of the request. Finished runs are kept if a
        later model fails.
    """
    return execute_plan([request], store, progress, models, dataset).manifests[0]


@plugin_errors()
def execute_plan(
    requests: Sequence[Request],
    store: Store,
    progress: Progress | None = None,
    models: Mapping[str, Model] = MappingProxyType({}),
    dataset: Dataset | None = None,
    leaves_out: bool = False,
) -> Plan:
    """Run several requests that only differ in probe, options and dataset.

    Each dataset is read, each model is loaded, and each picture and text is embedded only once. Keys
    and stored bytes are the same as for single runs.

    Args:
        requests: At least one request.
        store: As in `execute`; the same applies to `progress`, `models` and `dataset`, which all requests share.
        leaves_out: Whether to skip and report a probe that cannot run; otherwise, its error is raised.
    """
    progress, settings = progress or Progress(), requests[0]
    for request in requests:
        parse_options(
            SETTINGS, {option.name: getattr(request, option.name) for option in SETTINGS}, "A run"
        )
    if settings.executor == "ray":
        ray_cluster.allowed()
    if models and settings.executor != "local":
        raise InvalidInput(
            f"'{next(iter(models))}' exists only in this process, but Ray workers load "
            "models by name. Use the local executor, or pass the name of a model."
        )
    names = {
        name: registry.parse_name("models", name) for name in settings.models if name not in models
    }
    for parsed in names.values():
        parsed.check()
    with memo.reading_all() if settings.verify else contextlib.nullcontext():
        write_error = _write_error(store)
        questions_of = _prepare_all(requests, store, progress, dataset)
        budget = Budget(settings.price, settings.max_cost)
        execution = _Execution(store, progress, models, names, write_error, leaves_out, budget)
        lacking = [execution.lacks_cases(prepared) for _, prepared in questions_of]
        answers = [
            {
                name: manifest
                for name, parsed in names.items()
                if (manifest := _stored_answer(parsed, *question, store, write_error is None))
            }
            for question in questions_of
        ]
        with_cases = [each for each, lacks in zip(answers, lacking, strict=True) if not lacks]
        missing = [name for name in settings.models if any(name not in each for each in with_cases)]
        is_on_ray = missing and settings.executor == "ray"  # even if no cluster can be reached
        connecting = functools.partial(progress.update, "Connecting to the Ray cluster", 0, 1)
        with ray_cluster.joined(connecting) if is_on_ray else contextlib.nullcontext():
            for name in dict.fromkeys(missing):
                execution.answer(name, questions_of, answers)
        return Plan(
            [
                [manifest_of[name] for name in settings.models if name in manifest_of]
                for manifest_of in answers
            ],
            list(dict.fromkeys(execution.left_out)),  # models with the same reason share a line
        )


def _prepare_all(
    requests: Sequence[Request], store: Store, progress: Progress, dataset: Dataset | None
) -> list[tuple[Request, "Prepared"]]:
    """Prepare each request. Each dataset is read only once."""
    datasets: dict[str, Dataset] = {}
    questions_of = []
    for request in requests:
        name = request.dataset or registry.load_probe(request.probe).dataset
        prepared = prepare(request, store, progress, dataset or datasets.get(name))
        datasets[name] = prepared.dataset
        questions_of.append((request, prepared))
    return questions_of


def _stored_answer(
    model_name: ModelName, request: Request, prepared: "Prepared", store: Store, is_writable: bool
) -> dict | None:
    """Return the manifest of a complete run if the model's digest is cached and nothing is left to do, or None.

    The model is not loaded, and torch is not imported.
    """
    if request.device not in ("auto", "cpu"):  # loading shows whether it exists
        return None
    identity = model_memo.look_up(model_name, request.precision, store.root)
    if identity is None:
        return None
    run = replace(prepared.run, model=identity.name, model_digest=identity.digest)
    context = RunContext(run, prepared.items, prepared.probe, request, store)
    if not context.run_entry.complete:
        return None
    if is_writable and not (
        questions.are_stored(context)
        and (not request.examine or _is_examined(context, prepared.dataset))
    ):
        return None
    return context.run_entry.manifest()


@dataclass
class _Execution:
    """Executes the requests in a plan, one model at a time."""

    store: Store
    progress: Progress
    models: Mapping[str, Model]  # models that are already loaded, by name
    names: Mapping[str, ModelName]  # parsed names of all other models
    write_error: InvalidInput | None
    leaves_out: bool
    budget: Budget
    left_out: list[str] = field(default_factory=list)

    def lacks_cases(self, prepared: "Prepared") -> bool:
        """Return whether a probe is known to have no cases for a dataset, and report it as skipped.

        Raises Misfit if probes must not be skipped.
        """
        misfit = questions.known_misfit(prepared.run, prepared.probe, self.store.root)
        if misfit:
            self._leave_out(prepared, misfit)
        return misfit is not None

    def _leave_out(self, prepared: "Prepared", misfit: Misfit) -> None:
        if not self.leaves_out:
            raise misfit
        self.left_out.append(f"{prepared.probe.name}: {misfit}")

    def answer(
        self,
        model_name: str,
        questions_of: Sequence[tuple[Request, "Prepared"]],
        answers: Sequence[dict[str, dict]],
    ) -> None:
        """Run one model on all requests that lack its answer, and add the manifests to `answers`."""
        request = questions_of[0][0]
        # The workers on a cluster choose their own devices
        device = request.device if request.executor == "local" else "cpu"
        self.progress.begin_run(RunKeys())
        self.progress.update(f"Loading {model_name}", 0, 1)
        model = self.models.get(model_name) or model_memo.load(
            self.names[model_name], device, request.precision, self.store.root
        )
        runs = [
            (context, prepared.dataset, manifest_of)
            for (planned, prepared), manifest_of in zip(questions_of, answers, strict=True)
            if model_name not in manifest_of
            and (context := self._context(planned, prepared, model))
        ]
        shared = None
        embeds = not (looks_up(model) or answers_cases(model))
        if len(runs) > 1 and request.executor == "local" and embeds:
            shared = SharedEncoder(recurring_texts([context for context, _, _ in runs]))
        with contextlib.closing(shared) if shared else contextlib.nullcontext():
            for context, dataset, manifest_of in runs:
                if not self.write_error:
                    _run_stages(context, dataset, model, self.progress, shared)
                manifest_of[model_name] = context.run_entry.manifest()

    def _context(self, request: Request, prepared: "Prepared", model: Model) -> RunContext | None:
        """Prepare a model's run and write its cases. Returns None if the run is skipped."""
        if self.lacks_cases(prepared):
            return None
        try:
            check_fit(model, prepared.probe, prepared.items)
            check_pictures(model, prepared.items)
            if isinstance(model, ServedModel):
                model.open(self.store.root, self.budget, self.progress)
            run = replace(prepared.run, model=model.name, model_digest=model.digest)
            if (n_orders := model.capabilities.n_orders) > 1:
                run = replace(run, metrics=metric_names(prepared.probe, run.options, n_orders))
            context = RunContext(run, prepared.items, prepared.probe, request, self.store)
            if self.write_error and not context.run_entry.complete:
                raise self.write_error
            if not self.write_error:
                write_questions(context, prepared.dataset, self.progress)
                if not context.run_entry.complete:
                    announce_pairs(context, model, self.progress.tell)
            return context
        except Misfit as misfit:
            self._leave_out(prepared, misfit)
            return None


class Prepared(NamedTuple):
    """The data and plan for a request, which do not depend on the model."""

    dataset: Dataset
    items: Sequence[Item]  # the items that the request selects from the dataset
    probe: Probe
    run: Run  # without a model


def prepare(
    request: Request, store: Store, progress: Progress, dataset: Dataset | None = None
) -> Prepared:
    """Load the probe and the dataset for a request, and pin the versions of both.

    Raises VlprobeError if one of them or an option is unknown or invalid.
    """
    probe = registry.load_probe(request.probe)
    options = parse_options(probe.options, request.options, f"Probe '{probe.name}'")
    probe.check_options(options)
    options = probe.pin(options, store.root)
    if probe.code_digest:
        options = {**options, "plugin_digest": probe.code_digest}
    if dataset is None:
        dataset_name = request.dataset or probe.dataset
        progress.update(f"Reading {dataset_name}", 0, 1)
        dataset = registry.load_dataset(dataset_name, store.root)
    probe.check_items(dataset.items, options)
    selected, run_selection = selection.select(dataset, request)
    items = [item.with_pictures(_with_whole_path) for item in selected]
    probe, options = _without_foreign(probe, options, items, store)
    run = Run(  # everything that affects results, except the model
        model="",
        model_digest="",
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        probe=probe.name,
        probe_version=probe.version,
        metrics=metric_names(probe, options),
        options=dict(options),
        seed=request.seed,
        limit=run_selection.limit,
        selection=run_selection.record,
    )
    if without := selection.left_out(store, run.case_key, request):
        run = replace(run, selection={**run.selection, "without": without})
    return Prepared(dataset, items, probe, run)


def _without_foreign(
    probe: Probe, options: Mapping[str, object], items: Sequence[Item], store: Store
) -> tuple[Probe, Mapping[str, object]]:
    """Find the captions that are not in English. Return a probe whose rules skip them, and options with their number.
    If there are none, the probe and options are returned unchanged, so that the run key stays the same.
    """
    captions = {caption for item in items for caption in probe.captions_of_rules(item, options)}
    foreign = foreign_captions(captions, store.root)
    if not foreign:
        return probe, options
    bound = copy.copy(probe)
    bound.foreign = foreign
    counted = {NOT_ENGLISH: len(foreign), **probe.options_of_languages(options)}
    return bound, {**options, **counted}


def write_questions(context: RunContext, dataset: Dataset, progress: Progress) -> None:
    """Write the cases for a run to the store, unless they are already stored."""
    with _lock(context, context.case_entry, progress):
        if not questions.are_stored(context):
            findings = questions.check_data(context, progress)
            questions.write_cases(context, getattr(dataset, "notes", ()), findings, progress)


def _lock(
    context: RunContext, entry: Entry, progress: Progress
) -> contextlib.AbstractContextManager[None]:
    """Lock an entry, and report it if another process holds the lock."""
    waiting = f"{context.label}: another process is working on it"
    return files.lock(entry.folder / ".lock", lambda: progress.update(waiting, 0, 1))


def _run_stages(
    context: RunContext,
    dataset: Dataset,
    model: Model,
    progress: Progress,
    shared: SharedEncoder | None,
) -> None:
    """Score a run whose cases are written, then run the model checks. If another process is at the same stage, wait for
    it.
    """
    # Requests to a server are only sent from this machine
    is_on_ray = context.request.executor == "ray" and not isinstance(model, ServedModel)
    if not context.run_entry.complete:
        with _lock(context, context.run_entry, progress):
            if not context.run_entry.complete:
                executor = (
                    RayExecutor(context, progress)
                    if is_on_ray
                    else LocalExecutor(context, model, progress, shared)
                )
                with contextlib.closing(executor):
                    answer(context, model, executor)
    if context.request.examine:
        _examine(context, dataset, model, progress, shared)


def _write_error(store: Store) -> InvalidInput | None:
    """Return the error that prevents writing to the store, or None. It only matters for runs that are not stored yet.

    Raises InvalidInput if the store cannot be written and holds no runs, before any model is loaded.
    """
    refuse_writing()
    try:
        store.require_writable()
    except InvalidInput as error:
        if not any(store.root.glob("runs/*/manifest.json")):
            raise
        return error
    return None


def _with_whole_path(picture: Picture) -> Picture:
    """Return a copy of the picture with an absolute path, which is valid from any working folder."""
    return replace(picture, path=picture.path.resolve())


def metric_names(probe: Probe, options: Mapping[str, object], n_orders: int = 1) -> tuple[str, ...]:
    """Return the names of a run's metrics as name@version, for `Run.metrics`."""
    metrics = probe.metrics_of(options, n_orders)
    return tuple(f"{metric.name}@{metric.version}" for metric in metrics)


def _examine(
    context: RunContext,
    dataset: Dataset,
    model: Model,
    progress: Progress,
    shared: SharedEncoder | None = None,
) -> None:
    """Run the model checks on a dataset, unless their results are already stored.

    Pictures that the run has embedded are not embedded again.
    """
    if _is_examined(context, dataset):
        return
    if looks_up(model):
        # Else nothing was scored now, and the model was not bound to its inputs
        is_judged = model.is_bound
    else:
        is_judged = answers_cases(model) or bool(doctor_examine.sample(dataset.items, model))
    if not is_judged:
        return
    with contextlib.ExitStack() as stack:
        encoder = shared.encoder if shared else None
        request = context.request
        embeds = embeds_images(model) and not (looks_up(model) or answers_cases(model))
        if encoder is None and embeds and request.keep_embeddings:
            # It reads the embeddings that the store has now
            encoder = CachedEncoder(
                model,
                context.store.root / "embeddings",
                workers=request.workers,
                memory=request.memory << 20,
            )
            stack.enter_context(contextlib.closing(encoder))
        images = encoder.stored_images if encoder and embeds_images(model) else None
        doctor_examine.examine(model, dataset, context.store.root, progress.update, images)


def _is_examined(context: RunContext, dataset: Dataset) -> bool:
    """Return whether results of the model checks on a dataset are stored."""
    examinations = doctor_examine.load(context.store, context.run.model_digest)
    return any(examination.dataset_digest == dataset.digest for examination in examinations)
