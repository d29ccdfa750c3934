"""What a fine-tuning repaired, in pictures: cases that fooled the model before and do
not fool the model after.
"""

from dataclasses import dataclass, replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, frame
from vlprobe.dashboard.cases.sentence import stored_kinds
from vlprobe.dashboard.lab import opening
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import Questions, model_name, plain, questions, quiet, view
from vlprobe.render.words import movement_kinds, presentations
from vlprobe.views.filter import Filter
from vlprobe.views.paired_outcomes import bucket
from vlprobe.views.wall import Disagreements

N_READ = 60  # cases, of which those with the same picture are shown once
KEY = "repaired_examples"


@dataclass(frozen=True)
class Repaired:
    """The questions that show most of what changed."""

    questions: Questions
    case_filter: Filter  # of the model before
    disagreements: Disagreements


def draw(before: str, after: str) -> None:
    """A sentence on how many cases each of the two alone believes, and the first of
    those that were repaired.
    """
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
    frame.say_strangers(repaired.questions, (before, after))
    by_picture = {card.images or (card.item,): card for card in reversed(disagreements.only_base)}
    cards = [
        card for card in disagreements.only_base if by_picture[card.images or (card.item,)] is card
    ][: opening.N_EXAMPLES]
    label = f"Repaired: {kind.lies} that fooled {model_name(before)} alone"
    of_two = bucket(replace(repaired.case_filter, other=after), "only_first")
    parameters = case_links.query(repaired.questions, of_two)
    opening.draw_cards(cards, kind, label, parameters, KEY)
    st.page_link(
        page_file("explore"),
        label=f"All {disagreements.n_only_base:,}",
        icon=":material/image_search:",
        query_params=parameters,
    )


def _most_repaired(before: str, after: str) -> Repaired | None:
    """Of all questions that both were asked, those with most cases repaired beyond
    the cases that were broken.
    """
    every: list[Repaired] = []  # without cards: those of all but one are not shown
    for key in view(views.repair.repair_sets, (before, after)).values():
        stored = questions(key)
        for kind in stored_kinds(stored):
            if kind not in movement_kinds():
                counts = _disagreements(stored, before, after, kind, 0)
                every.append(Repaired(stored, Filter(before, kind), counts))
    every = [candidate for candidate in every if candidate.disagreements.n_only_base]
    if not every:
        return None
    most = max(
        every,
        key=lambda candidate: (
            candidate.disagreements.n_only_base - candidate.disagreements.n_only_other
        ),
    )
    kind = most.case_filter.kind
    return replace(most, disagreements=_disagreements(most.questions, before, after, kind, N_READ))


def _disagreements(
    stored: Questions, before: str, after: str, kind: str, n_read: int
) -> Disagreements:
    arguments = stored.question_set, before, after, Filter(before, kind), n_read
    return view(views.wall.disagreements, *arguments)
