"""RoCOCO's figure 11: whether models agree on the word of a caption that does least, and which words these are.

Models run only after a click: those that are bundled or were loaded above.
"""

from collections.abc import Mapping

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.chart import chart
from vlprobe.dashboard.loaded import load_player, loads_at_once
from vlprobe.dashboard.state import PageSubject, model_name, quiet, view
from vlprobe.errors import VlprobeError
from vlprobe.render import charts, numbers
from vlprobe.render.sentences import listed
from vlprobe.runs.consensus import PRINTED, Consensus, consensus

PICTURES = 100  # whose captions are read
WORDS = 25  # bars
FEWEST = 2


def draw(stored: PageSubject) -> None:
    """Draw the button that runs the models, and both halves of the figure after the run."""
    loaded_above = st.session_state.get("figures_loaded", set())
    ready = [name for name in stored.models if loads_at_once(name) or name in loaded_above]
    absent = [model_name(name) for name in stored.models if name not in ready]
    if absent:
        quiet(f"Left out until loaded above: {listed(absent)}.")
    if len(ready) < FEWEST:
        quiet("It takes two models or more that read.")
        return
    all_words = st.toggle(
        "Any word, not only a noun",
        key="consensus_all_words",
        help="A run exchanges nouns. Any word is how the paper scores captions: with four models and three nouns two "
        "always agree.",
    )
    if not st.session_state.get("consensus_asked"):
        st.button(
            f"Ask {len(ready)} models",
            icon=":material/how_to_vote:",
            key="ask_consensus",
            on_click=_ask,
        )
        quiet(f"They read the captions of the first {PICTURES} pictures, once without each word.")
        return
    captions = view(views.figures.item_captions, stored.question_set, PICTURES)
    try:
        with st.spinner("Reading the captions"):
            votes = _consensus(tuple(ready), captions, all_words)
    except VlprobeError as error:
        quiet(str(error))
        return
    _figures(votes)


def _ask() -> None:
    st.session_state["consensus_asked"] = True


def _figures(votes: Consensus) -> None:
    st.markdown(
        f"Two models or more name the same word in **{numbers.number(votes.share_of_two, 'rate')}** of "
        f"{votes.n_captions:,} captions, at random they would in {numbers.number(votes.chance_of_two, 'rate')}."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        alt = "How many models name the same word, in shares of the captions, beside chance."
        chart(charts.papers.agreement(votes.agreement), "consensus", alt)
    with right:
        alt = "The words that are named most often, in shares of the captions."
        chart(charts.papers.source_words(votes.source_words, WORDS), "source_words", alt)
    quiet(
        "How to read it: each model names the word without which the caption's embedding moves least. Bars above the "
        "marks: models overlook the same words, so one alteration fools them all. The paper's four models: two or "
        f"more agree in over {100 * PRINTED:.0f} % of its captions. Of {votes.n_captions:,} captions here "
        f"{votes.n_single:,} have one such word alone, on which all agree."
    )


@st.cache_data(max_entries=20, show_spinner=False)  # .9 s with three demo models
def _consensus(
    names: tuple[str, ...], captions: Mapping[str, tuple[str, ...]], all_words: bool
) -> Consensus:
    """Return the models that embed texts."""
    players = [load_player(name) for name in names]
    readers = [player for player in players if player.model.capabilities.embeds_texts]
    return consensus(captions, [player.texts for player in readers], all_words=all_words)
