"""Cases that a fine-tuning repaired, in pictures: cases that fooled the model before and do
not fool the model after.
"""

from dataclasses import dataclass, replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, frame
from vlprobe.dashboard.cases.sentence import stored_kinds
from vlprobe.dashboard.lab import opening
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import PageSubject, model_name, page_subject, plain, quiet, view
from vlprobe.render.words import movement_kinds, presentations
from vlprobe.views.filter import Filter
from vlprobe.views.paired_outcomes import bucket
from vlprobe.views.wall import Disagreements

KEY = "repaired_examples"


@dataclass(frozen=True)
class Repaired:
    """The questions that show most of what changed."""

    questions: PageSubject
    case_filter: Filter  # of the model before
    disagreements: Disagreements


def draw(models: tuple[str, str, str]) -> None:
    """A sentence on how many cases fool only the model before and how many only the model after, and
    the first of those that were repaired, with photographs where there are any.

    Args:
        models: Before, control and after.
    """
    before, _, after = models
    repaired = _most_repaired(before, after)
    if repaired is None:
        quiet("No question that fooled the model before is answered rightly by the model after.")
        return
    kind = presentations()[repaired.questions.probe].kind(repaired.case_filter.kind)
    names = [plain(model_name(name)) for name in (before, after)]
    disagreements = repaired.disagreements
    st.markdown(
        f"**{disagreements.n_only_base:,} {kind.lies} fooled {names[0]} and do not fool "
        f"{names[1]}.** The other way round it is {disagreements.n_only_other:,}. What training "
        "alone would have changed is in both numbers."
    )
    frame.say_strangers(repaired.questions, models)
    of_two = bucket(replace(repaired.case_filter, other=after, sort="difference"), "only_first")
    question_set = repaired.questions.question_set
    cards, _, _ = view(views.wall.wall, question_set, of_two, 1, opening.N_EXAMPLES, True)
    label = f"Repaired: {kind.lies} that fooled only {model_name(before)}"
    parameters = case_links.query(repaired.questions, of_two)
    opening.draw_cards(cards, kind, label, parameters, KEY)
    with st.container(horizontal=True):
        st.page_link(
            page_file("explore"),
            label=f"All {disagreements.n_only_base:,}",
            icon=":material/image_search:",
            query_params=parameters,
        )
        st.page_link(
            page_file("breakdown"),
            label="Each kind of wrong caption",
            icon=":material/bar_chart:",
            query_params={"set": repaired.questions.key},
        )


def _most_repaired(before: str, after: str) -> Repaired | None:
    """Return the question set, among those that both answered, with most cases repaired beyond the cases that were
    broken.
    """
    every: list[Repaired] = []
    for key in view(views.repair.repair_sets, (before, after)).values():
        stored = page_subject(key)
        for kind in stored_kinds(stored):
            if kind not in movement_kinds():
                arguments = stored.question_set, before, after, Filter(before, kind), 0
                counts = view(views.wall.disagreements, *arguments)
                every.append(Repaired(stored, Filter(before, kind), counts))
    every = [candidate for candidate in every if candidate.disagreements.n_only_base]
    if not every:
        return None
    return max(
        every,
        key=lambda candidate: (
            candidate.disagreements.n_only_base - candidate.disagreements.n_only_other
        ),
    )
