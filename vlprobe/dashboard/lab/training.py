"""Fine-tuning on the Repair page: the form, the losses during training, and the list of training runs."""

import hashlib
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from vlprobe import registry, views
from vlprobe.case.card import wrong_captions
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.chart import chart
from vlprobe.dashboard.export import draw_menu
from vlprobe.dashboard.jobs import STATES, begin, span
from vlprobe.dashboard.run.progress import draw_line, draw_log, draw_resume, draw_stop, reread
from vlprobe.dashboard.state import choose, dataset_name, link_docs, plain, quiet, store, view
from vlprobe.dashboard.widgets import link_page, press
from vlprobe.render import charts
from vlprobe.render.html.repair import ROLES
from vlprobe.render.words import movement_kinds, presentations
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job
from vlprobe.runs.request import Request
from vlprobe.surfaces import paper
from vlprobe.training import objective
from vlprobe.training.request import TrainRequest
from vlprobe.views.repair import added_time, loss_curves, seconds_per_step
from vlprobe.views.runs import QuestionSet

PROBES = {probe: presentation.title for probe, presentation in presentations().items()}
ROWS = 12  # rows in the list of training runs
COLUMNS = (
    "State",
    "Started",
    "From",
    "Loss",
    "Steps",
    "Seed, rate",
    "Held-out loss: start → now, ↓ lower is better",
)
# For each repair: its name, the terms added to CLIP's loss with their weights, and its purpose.
REPAIRS: dict[str, tuple[str, dict[str, float], str]] = {
    "plain": (
        *("Plain fine-tuning (control)", {}),
        "Only CLIP's own loss. The baseline for all other losses.",
    ),
    "eqsim": (
        *("EqSim (EqBen)", {"eqsim": 5.0}),
        "When the two captions are swapped, the similarity must change by the same amount for "
        "both pictures. For near-identical pairs.",
    ),
    "hardneg": (
        *("Hard negatives (EqBen's ablation)", {"hardneg": 1.0}),
        "Contrasts each pair only with its highest-scoring mismatches. Baseline for EqSim.",
    ),
    "scvc": (
        *("SC + VC (RoCOCO)", {"sc": 0.05, "vc": 0.2}),
        "Pushes the model away from captions with replaced words and from mixed pictures. For decoys in search; may "
        "reduce R@1.",
    ),
    "lgip": (
        *("Consistency + flips (LGIP)", {"consistency": 1.0, "flip": 1.0}),
        "Keeps the score when a caption is reworded, and lowers it when a word is wrong. For "
        "wording and meaning.",
    ),
}
# Variants of EqSim in the order of EqBen's table 6, with the pairs in a batch that they apply to.
VARIANTS = {
    "hybrid": "v2 on close pairs, v1 on the others (section 3)",
    "v1": "v1 on all pairs",
    "v2": "v2 on all pairs",
    "v2-close": "v2 on close pairs only",
    "v1+v2-close": "v1 on all pairs and v2 on close pairs (table 6)",
}
STARTS = ("demo:softmax", "demo:sigmoid", "demo:weak", "demo:plain")
DATASETS = {
    "demo-train|demo-train:pairs": "Scenes and minimal pairs",
    "demo-train|demo-train:pairs:1200": "Scenes and four times as many pairs",
    "demo-train": "Scenes",
    "demo-train:pairs": "Minimal pairs",
}
RATES = {3e-5: "0.00003", 1e-4: "0.0001", 3e-4: "0.0003"}
VALIDATIONS = 8  # validations per training run, so that its curve has marks


def trained() -> dict[str, str]:
    """Return the loss of each model that was fine-tuned on this dashboard and is ready to use, newest first."""
    return {
        request.tuned: request.loss
        for job, request in _trainings()
        if job.state == "done" and request.path.exists()
    }


def other_seeds(control: str, tuned: str) -> list[tuple[str, str]]:
    """Return pairs of models that were trained like `control` and `tuned` but with another seed, which both share."""
    requests = {request.tuned: request for job, request in _trainings() if job.state == "done"}
    if control not in requests or tuned not in requests:
        return []

    def by_seed(model: str) -> dict[int, str]:
        like = requests[model]
        return {
            request.seed: name
            for name, request in requests.items()
            if replace(request, seed=like.seed, output=like.output) == like
        }

    controls, repaired = by_seed(control), by_seed(tuned)
    pairs = [(controls[seed], repaired[seed]) for seed in sorted(controls.keys() & repaired)]
    return [pair for pair in pairs if not {control, tuned} & set(pair)]


def _trainings() -> list[tuple[Job, TrainRequest]]:
    """Return all training runs started in this dashboard with their requests, newest first."""
    every = [(job, job.request) for job in jobs.jobs(store())]
    return [(job, request) for job, request in every if isinstance(request, TrainRequest)]


def probe_all(models: tuple[str, ...], probes: Iterable[str] = PROBES) -> None:
    """Start one job that runs the models on the demo data of all given probes. Stored results are reused."""
    names = tuple(dict.fromkeys(filter(None, models)))
    begin(*(Request(names, registry.load_probe(probe).dataset, probe) for probe in probes))


def _probe_tuned(request: TrainRequest) -> None:
    """Select a newly trained model and run the three models on every probe. A model with a plain loss becomes the
    control, any other the repaired model.
    """
    st.query_params["control" if request.loss in objective.RETRIEVAL else "after"] = request.tuned
    probe_all(tuple(st.query_params.get(role.lower(), "") for role in ROLES))


def training_form() -> None:
    """Draw the form for a training run: the model to fine-tune, the loss and other settings, and a Start button."""
    if not changes("Install vlprobe to fine-tune your own models."):
        return
    losses = {name: f"**{title}.** {use}" for name, (title, _, use) in REPAIRS.items()}
    kind = st.radio("Loss", list(REPAIRS), 1, losses.__getitem__, key="train_kind")
    upper, lower = st.columns(3), st.columns(3)
    start = upper[0].selectbox("Start from", STARTS, key="train_start")
    help_ = "Drawn pictures that no probe uses. A tenth is held out (chosen by hash)."
    settings: dict[str, Any] = {"format_func": DATASETS.__getitem__, "help": help_}
    datasets = upper[1].selectbox("Train on", list(DATASETS), key="train_data", **settings)
    help_ = (
        "Multiplies the weights of the added terms relative to CLIP's loss. Higher values repair "
        "more but may hurt other metrics."
    )
    settings = {"key": "train_strength", "disabled": kind == "plain", "help": help_}
    strength = upper[2].number_input("Strength of the loss", 0.05, 20.0, 1.0, 0.5, **settings)
    settings = {"key": "train_steps", "help": "Batches of 128 pictures."}
    steps = lower[0].number_input("Steps", 1, 10_000, 200, 20, **settings)
    settings = {"format_func": RATES.__getitem__, "key": "train_rate"}
    rate = lower[1].selectbox("Learning rate", list(RATES), 2, **settings)
    settings = {"key": "train_seed", "help": "Sets the order of the batches."}
    seed = lower[2].number_input("Seed", 0, 1_000_000, 0, **settings)
    variant = TrainRequest.eqsim
    if "eqsim" in REPAIRS[kind][1]:
        help_ = (
            "v1 requires equal scores for the two mismatches; v2 also requires equal scores for "
            "the two matches. These are the variants in EqBen's table 6."
        )
        settings = {"format_func": VARIANTS.__getitem__, "key": "train_eqsim", "help": help_}
        variant = st.selectbox("EqSim counts", list(VARIANTS), **settings)
    request = tuning_request(start, datasets, kind, strength, int(steps), rate, int(seed), variant)
    quiet(f"{_effort(request.steps)} Loss: {_loss(request)}.")
    look = {"icon": "play_arrow", "type": "primary", "key": "train_begin"}
    press("Start fine-tuning", _begin, request, **look)


def tuning_request(
    start: str,
    datasets: str,
    kind: str,
    strength: float,
    steps: int,
    rate: float,
    seed: int,
    eqsim: str = TrainRequest.eqsim,
) -> TrainRequest:
    """Build a training request. Equal choices give the same file name, so that no training runs twice."""
    contrastive = "sigmoid" if start == "demo:sigmoid" else "clip"
    loss = contrastive
    for term, weight in REPAIRS[kind][1].items():
        factor = weight * strength
        loss += f"+{term}" if factor == 1 else f"+{factor:g}*{term}"
    chosen = TrainRequest(
        start,
        tuple(datasets.split("|")),
        "",
        loss=loss,
        eqsim=eqsim if "eqsim" in REPAIRS[kind][1] else TrainRequest.eqsim,
        steps=steps,
        rate=rate,
        warm_up=min(TrainRequest.warm_up, steps // 4),
        seed=seed,
        validate_every=max(1, steps // VALIDATIONS),
        device="cpu",
        threads=1,
    )
    digest = hashlib.sha256(json.dumps(chosen.recipe(), sort_keys=True).encode()).hexdigest()[:6]
    name = f"{start.partition(':')[2]}-{kind}-{steps}-seed{seed}-{digest}.safetensors"
    return replace(chosen, output=str(store().root / "trained" / name))


def _effort(steps: int) -> str:
    """Estimate the training time, based on the newest training run on this machine."""
    measured = (seconds_per_step(request.path) for _, request in _trainings())
    newest = next((seconds for seconds in measured if not math.isnan(seconds)), math.nan)
    if math.isnan(newest):
        return "We can estimate the time after the first steps."
    return (
        f"About {span(steps * newest)} on one core, at {newest:.2g} s per step, as in the "
        "last training run."
    )


def _begin(request: TrainRequest) -> None:
    same = [job.id for job, each in _trainings() if each == request and not job.ended]
    st.query_params["training"] = same[0] if same else jobs.start(request, store())


def trainings() -> None:
    """Draw a table of the newest training runs, and the losses of the selected run, updated while it runs."""
    begun = _trainings()
    if not begun:
        quiet("No training runs yet. They will appear here with their losses.")
        return
    options = {
        job.id: f"{_summary(request)} · "
        f"{time.strftime('%d %b, %H:%M:%S', time.localtime(job.created))}"
        for job, request in begun
    }
    job_id = choose("Training", "training", options, next(iter(options)), always=True)
    is_live = next(not job.ended for job, _ in begun if job.id == job_id)
    st.fragment(_live, run_every=2 if is_live else None)(job_id, not is_live)


def _live(job_id: str, ended: bool) -> None:
    """Draw the selected training run and the table of all runs. Both use the same list of jobs, so that they agree."""
    begun = _trainings()
    current = next((each for each in begun if each[0].id == job_id), None)
    if current is None:
        reread(job_id, ended)  # shows what happened to the job
    else:
        if current[0].ended != ended:
            st.rerun()
        _panel(*current)
    rows = [_row(*each) for each in begun[:ROWS]]
    st.dataframe(pd.DataFrame(rows, columns=pd.Index(COLUMNS)), hide_index=True)
    if len(begun) > ROWS:
        quiet(f"Showing the newest {ROWS} of {len(begun)} runs; select others above.")


def _loss(request: TrainRequest) -> str:
    """Describe a training request's loss. The EqSim variant is included if it is not the default."""
    variant = "" if request.eqsim == TrainRequest.eqsim else f", EqSim {request.eqsim}"
    return request.loss + variant


def _summary(request: TrainRequest) -> str:
    return f"{_loss(request)} from {request.model}, {request.steps} steps, seed {request.seed}"


def _row(job: Job, request: TrainRequest) -> list[str]:
    """Return a training run's row in the table."""
    table = loss_curves(request.path)
    terms = list(objective.weights(request.loss))
    held_out = table.loc[(table["side"] == "held out") & table["part"].isin(terms)]
    losses = [
        f"{term} {values.iloc[0]:.3f} → {values.iloc[-1]:.3f}"
        for term, values in held_out.groupby("part", sort=False)["value"]
    ]
    steps = f"{table['step'].max() if len(table) else 0:,} of {request.steps:,}"
    icon, word = STATES[job.state]
    when = time.strftime("%d %b, %H:%M", time.localtime(job.created))
    begun = [f"{icon} {word}", when, request.model, _loss(request), steps]
    return [*begun, f"{request.seed}, {request.rate:g}", "; ".join(losses) or "-"]


def _panel(job: Job, request: TrainRequest) -> None:
    with st.container(border=True, key="training_panel"):
        draw_line(job, _summary(request))
        if job.error:
            st.error(link_docs(job.error))
        if not job.ended:
            st.progress(job.fraction if job.total > 1 else 0.0, text=plain(job.label))
            quiet(_progress(job, request))
        elif job.label:
            quiet(f"{job.label.rstrip('.')}, {span(job.updated - job.created)} after it started.")
        if not math.isnan(share := added_time(request.path)):
            quiet(f"{objective.added_time_text(share)}.")
        _buttons(job, request)
        _curves(request, loss_curves(request.path))
        draw_log(job)


def _progress(job: Job, request: TrainRequest) -> str:
    """Describe how many steps are done, how long a step takes, and how much time is left."""
    since = f"{span(time.time() - job.created)} since the start"
    seconds = seconds_per_step(request.path)
    if job.state != "running" or job.total <= 1 or math.isnan(seconds):
        return since
    left = f"about {span((job.total - job.done) * seconds)} left"
    steps = f"{job.done:,.0f} of {job.total:,.0f} steps"
    return " · ".join([steps, f"{seconds:.2g} s a step", left, since])


def _buttons(job: Job, request: TrainRequest) -> None:
    if job.state == "done":
        st.markdown("Ready. To use the trained model, enter this name:")
        st.code(request.tuned, language=None, wrap_lines=True)
        if any(request.tuned in going.models for going in jobs.unfinished_jobs(store())):
            quiet("Its tests are running: see the top of this page.")
        elif changes("Install vlprobe to test this model."):
            look = {"icon": "play_arrow", "type": "primary", "key": "train_probe"}
            help_ = "Run all tests on this model and on the two other models selected above."
            press("Probe it", _probe_tuned, request, **look, help=help_)
    elif not changes("Training runs cannot be started or stopped here."):
        return
    elif not job.ended:
        draw_stop(job, "Stopping at the next step", "train_cancel")
    else:
        draw_resume(job, "train_resume")


def _curves(request: TrainRequest, table: pd.DataFrame) -> None:
    """Draw the curves of the loss and its parts so far, and a table of the losses on held-out pictures."""
    if table.empty:
        quiet(
            "No losses yet: the model and the pictures are loading. The first training "
            "run also draws its pictures, which takes a minute."
        )
        return
    weights = objective.weights(request.loss)
    names = {term: f"{term}: {objective.PARTS[term]}" for term in weights}
    alt = (
        "Losses step by step, on the training and the held-out pictures; the table has the latter."
    )
    chart(charts.repair.losses(table, names, request.steps), "training_losses", alt)
    quiet(
        "How to read it: lower is better. The thin line shows each batch before its "
        "update; diamonds show held-out pictures. Where the diamonds rise while the line "
        "falls, the model overfits. Losses do not show what was repaired; the probes do."
    )
    held_out = table.loc[table["side"] == "held out"].sort_values("step", kind="stable")
    if held_out.empty:
        return
    values = held_out.groupby("part", sort=False)["value"].agg(["first", "last"])
    values.insert(
        0,
        "weight",
        [f"{weights[part]:g}" if part in weights else "not trained" for part in values.index],
    )
    values.index = [f"{part}: {objective.PARTS[part]}" for part in values.index]
    titles = {
        "weight": "Weight",
        "first": "At the start",
        "last": f"At step {held_out['step'].max():,}",
    }
    table = values.rename(columns=titles).rename_axis("Part of the loss")
    st.dataframe(table)
    draw_menu("loss_parts", table=table.reset_index())


HOW = (
    "A case is learned at the step from which the model stays right until the last step. It is "
    "forgotten at the step from which the model stays wrong until the last step, if the model "
    "was right before. A tie counts as wrong."
)


def draw_steps() -> None:
    """Draw a training with results for at least two steps, if there is one: the models named NAME@STEP."""
    trainings = {
        f"{question_set.key[:8]}.{name}": (question_set, steps)
        for question_set, name, steps in view(views.training_steps.list_trainings)
    }
    if not trainings:
        return
    st.header("By training step")
    labels = {
        key: f"{key.partition('.')[2]}: {presentations()[question_set.probe].name}, "
        f"{dataset_name(question_set.runs[0].dataset)}"
        for key, (question_set, _) in trainings.items()
    }
    chosen = next(iter(trainings))
    if len(trainings) > 1:
        chosen = choose("Training", "steps", labels, chosen)
    question_set, steps = trainings[chosen]
    runs = tuple(question_set.run(model) for model in steps.values())
    figure, facts = view(paper.steps, replace(question_set, runs=runs))
    chart(figure, "training_steps", facts)
    quiet(facts)
    kinds = [
        kind
        for kind in view(views.leaderboard.ranked_kinds, question_set)
        if kind not in movement_kinds()
    ]
    if kinds:
        _draw_cases(question_set, steps, kinds)


def _draw_cases(question_set: QuestionSet, steps: Mapping[int, str], kinds: Sequence[str]) -> None:
    """Draw how many cases of a kind are learned and forgotten at each step."""
    kind = kinds[0]
    if len(kinds) > 1:
        labels = {name: question_set.presentation.kind(name).label for name in kinds}
        kind = choose("Kind of case", "steps_kind", labels, kind)
    table = view(_outcomes, question_set, tuple(steps.items()), kind)
    counts = table["outcome"].value_counts()
    outcomes = [
        f"{counts[name]:,} {name}" for name in views.training_steps.OUTCOMES if name in counts
    ]
    cases = wrong_captions(question_set.presentation.kind(kind))
    st.markdown(f"**{len(table):,} {plain(cases)}:** {', '.join(outcomes)}.")
    alt = "Bars: cases learned at each training step, and below the line, cases forgotten."
    chart(charts.repair.learned(table, list(steps)), "training_cases", alt)
    quiet(HOW)
    cases_table = partial(views.training_steps.cases_by_step, question_set, steps, kind)
    draw_menu("training_outcomes", table=cases_table)
    parameters = {"set": question_set.key, "model": list(steps.values())[-1], "kind": kind}
    link_page(
        "explore", "Cases that fool the model at the last step", parameters, icon="image_search"
    )


def _outcomes(
    question_set: QuestionSet, steps: tuple[tuple[int, str], ...], kind: str
) -> pd.DataFrame:
    return views.training_steps.outcomes_by_step(question_set, dict(steps), kind)
