"""People against models: the votes of this server's rooms next to the compared models."""

from collections.abc import Sequence

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.play.room import all_rooms
from vlprobe.dashboard.state import PageSubject, plain, renamed, view
from vlprobe.render import quiz as render_quiz
from vlprobe.render.sentences import sentence_names
from vlprobe.storage import access


def human_sentences(stored: PageSubject, models: Sequence[str]) -> list[str]:
    """A sentence or two for each kind of lie of which people have answered
    enough; none without rooms.
    """
    if not access.quiz():
        return []
    names = sentence_names(models, renamed())
    sentences = []
    for kind in views.quiz.quiz_kinds(stored.probe):
        ballots = tuple(all_rooms().ballots(stored.key, kind))
        if ballots:
            baseline = view(
                views.quiz.human_baseline, stored.question_set, kind, ballots, tuple(models)
            )
            sentences.append(render_quiz.human_sentence(baseline, names))
    return [sentence for sentence in sentences if sentence]


def draw_human_baseline(stored: PageSubject, models: Sequence[str]) -> None:
    """Draw the results of people on the same lies, if rooms have voted on enough of them."""
    for sentence in human_sentences(stored, models):
        st.markdown(f":material/groups: {plain(sentence)}")
