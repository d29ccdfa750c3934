"""The questions of a round: the run, the kind, hard ones or random ones; the URL names all of it."""

import random
from collections.abc import Callable

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.cases.sentence import stored_kinds
from vlprobe.dashboard.state import (
    PageSubject,
    carry,
    choose,
    dataset_name,
    page_subject,
    quiet,
    view,
)
from vlprobe.datasets import bundled
from vlprobe.errors import VlprobeError
from vlprobe.render.words import presentations
from vlprobe.views.quiz import Draw, QuizRound

DRAWS: dict[str, str] = {"hard": "Hard ones", "fair": "By lot"}
LARGEST_SEED = 10**6
ABOUT_DRAWS = (
    "Hard ones fooled at least two models in three. By lot: each lie is as likely as any other, "
    "and how often people are right can be compared with models."
)


def pick_round() -> tuple[PageSubject, QuizRound] | None:
    """The questions that the address names; None if no stored run is eligible."""
    sets = _quiz_sets()
    if not sets:
        return None
    set_key = _pick("Questions of", "set", sets)
    stored = page_subject(set_key)
    presentation = stored.presentation
    quiz_kinds = views.quiz.quiz_kinds(stored.probe)
    in_order = sorted(quiz_kinds, key=lambda kind: kind not in stored_kinds(stored))
    kinds = {kind: presentation.kind(kind).label for kind in in_order}
    kind = _pick("Kind of lie", "kind", kinds)
    draw = choose("Chosen", "quiz", DRAWS, "hard", segments=True, help_=ABOUT_DRAWS)
    quiz = _drawn(stored, kind, "fair" if draw == "fair" else "hard")
    if not quiz.questions and draw == "hard":
        quiet("No model that knows anything was asked these questions: drawn by lot instead.")
        quiz = _drawn(stored, kind, "fair")
    return stored, quiz


def _quiz_sets() -> dict[str, str]:
    """Question sets that have kinds with two captions, as people read them: published questions
    about photographs, then by probe, the most complete first.
    """
    table = view(views.runs.question_sets)
    keys: dict[str, list[str]] = {probe: [] for probe in presentations()}
    labels: dict[str, str] = {}
    for case_key, probe, dataset in zip(
        table["case_key"], table["probe"], table["dataset"], strict=True
    ):
        if views.quiz.quiz_kinds(probe):
            keys[probe].append(case_key)
            labels[case_key] = f"{dataset_name(dataset)}: {presentations()[probe].name}"
    in_order = [key for of_probe in keys.values() for key in of_probe]
    is_published = dict(
        zip(table["case_key"], table["dataset"].str.startswith(f"{bundled.PREFIX}:"), strict=True)
    )
    in_order.sort(key=lambda key: not is_published[key])
    is_twin = {key: list(labels.values()).count(labels[key]) > 1 for key in in_order}
    return {key: f"{labels[key]} · {key[:6]}" if is_twin[key] else labels[key] for key in in_order}


def _pick(label: str, name: str, options: dict[str, str]) -> str:
    """A picker shared with other pages; their choice is kept for them if it is not eligible here."""
    carried = st.session_state.get(f"carried_{name}", "")
    linked = st.query_params.get(name, "")
    if linked and linked not in options and (linked == carried or _is_stored(name, linked)):
        del st.query_params[name]
    value = choose(label, name, options, next(iter(options)))
    if carried and carried not in options:
        carry(name, carried)
    return value


def _is_stored(name: str, value: str) -> bool:
    """Return whether a link's value is stored but not eligible: it names results that exist here."""
    if name == "set":
        return value in set(view(views.runs.question_sets)["case_key"])
    return any(value in presentation.kinds for presentation in presentations().values())


def _drawn(stored: PageSubject, kind: str, draw: Draw) -> QuizRound:
    return view(views.quiz.quiz_round, stored.question_set, kind, draw, seed())


def seed() -> int:
    """The number of the round in the address; without one, a new one."""
    seed_text = st.query_params.get("round", "")
    if seed_text.isdecimal() and len(seed_text) < 9:
        return int(seed_text)
    new_seed()
    return int(st.query_params["round"])


def new_seed() -> None:
    """Another round."""
    st.query_params["round"] = str(random.randrange(LARGEST_SEED))


def attempted(action: Callable[..., object], *arguments: object) -> bool:
    """Return whether an action of a room came off; what went wrong is kept for the page to say."""
    try:
        action(*arguments)
    except VlprobeError as error:
        st.session_state["quiz_problem"] = str(error)
        return False
    return True
