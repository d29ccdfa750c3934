"""RoCOCO's figures 7, 8 and 11: how much each word in a caption or part of a picture influences the embedding.

Figure 11 shows whether models agree on the least influential word. A model is loaded only after a click.
"""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.chart import chart
from vlprobe.dashboard.loaded import load_player, loads_at_once, ready_player
from vlprobe.dashboard.pictures import changed_at
from vlprobe.dashboard.play.playground import heat_map
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    model_labels,
    model_name,
    paginate,
    quiet,
    view,
)
from vlprobe.dashboard.widgets import press
from vlprobe.errors import VlprobeError
from vlprobe.perturb import influence, substitution
from vlprobe.render import charts, numbers
from vlprobe.render.attribution import credits_line
from vlprobe.render.html.elements import tag
from vlprobe.render.html.influence import legend, line, strongest, worded
from vlprobe.render.sentences import listed
from vlprobe.runs.consensus import PRINTED, Consensus, consensus
from vlprobe.scoring import pictures
from vlprobe.types import Picture
from vlprobe.views.filter import Filter
from vlprobe.views.records import FailureRow, records

CAPTIONS = 5  # number of captions colored at once
N_VOTED = 100  # number of pictures whose captions are used for the vote
WORDS = 25  # number of bars
FEWEST = 2  # minimum number of models for a vote


def word_influence(subject: PageSubject) -> None:
    """Draw RoCOCO's figure 7: the influence of each word in a few captions on the caption's embedding."""
    name = _pick_model(subject, "reader")
    model = ready_player(name, "encode_texts", "texts")
    if model is None:
        return
    total = view(views.figures.captions, subject.question_set, 1, CAPTIONS)[1]
    page = paginate(total, CAPTIONS, "captions")
    captions, _ = view(views.figures.captions, subject.question_set, page, CAPTIONS)
    try:
        with st.spinner("Reading the captions"):
            scores, nouns = _influences(name, tuple(captions))
    except VlprobeError as error:
        quiet(str(error))
        return
    largest = strongest([score for by_start in scores for score in by_start.values()])
    rows = []
    for caption, by_start, least in zip(captions, scores, nouns, strict=True):
        least_noun = tag(
            "p", f"Noun with the least influence: {least or '-'}", class_="vp-quiet vp-small"
        )
        rows.append(f"{line(*worded(caption, by_start), largest)}{least_noun}<br>")
    st.html("".join(rows) + legend([0.0, largest], "no influence", "most influence"))
    quiet(
        "How to read it: the number is how far the caption's embedding moves when the word is removed (1 - cosine). "
        "Replacing a noun that has little influence fools this model most easily, because the "
        "meaning changes, but the embedding hardly does."
    )


def word_votes(subject: PageSubject) -> None:
    """Draw a button that runs the models and, after a click, both halves of RoCOCO's figure 11."""
    loaded_above = st.session_state.get("figures_loaded", set())
    ready = [name for name in subject.models if loads_at_once(name) or name in loaded_above]
    absent = [model_name(name) for name in subject.models if name not in ready]
    if absent:
        quiet(f"To include these models, load them above: {listed(absent)}.")
    if len(ready) < FEWEST:
        quiet("At least two text encoders are needed.")
        return
    help_ = (
        "Runs replace only nouns. The paper considers any word, because if four models choose "
        "among three nouns, two of them always agree."
    )
    all_words = st.toggle("Any word, not just nouns", key="consensus_all_words", help=help_)
    key = "consensus_asked"
    if not st.session_state.get(key):
        ask, look = (st.session_state.__setitem__, key, True), {"icon": "how_to_vote"}
        press(f"Run {len(ready)} models", *ask, **look, key="ask_consensus")
        quiet(
            f"The models encode the captions of the first {N_VOTED} pictures with each "
            "word left out once."
        )
        return
    captions = view(views.figures.item_captions, subject.question_set, N_VOTED)
    try:
        with st.spinner("Reading the captions"):
            votes = _consensus(tuple(ready), captions, all_words)
    except VlprobeError as error:
        quiet(str(error))
        return
    st.markdown(
        "Two or more models name the same word in "
        f"**{numbers.number(votes.share_of_two, 'rate')}** of {votes.n_captions:,} captions; the "
        f"share expected by chance is {numbers.number(votes.chance_of_two, 'rate')}."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        alt = "Share of captions in which models name the same word, compared with chance."
        chart(charts.papers.agreement(votes.agreement), "consensus", alt)
    with right:
        alt = "The words that are named most often, as shares of the captions."
        chart(charts.papers.source_words(votes.source_words, WORDS), "source_words", alt)
    quiet(
        "How to read it: each model names the word whose removal moves the caption's embedding "
        "least. Bars above the chance marks mean that models overlook the same words, so one "
        "alteration can fool them all. Of the paper's four models, two or more agree in over "
        f"{100 * PRINTED:.0f} % of its captions. {votes.n_single:,} of {votes.n_captions:,} "
        "captions have only one word to choose from, so all models agree."
    )


@st.cache_data(max_entries=20, show_spinner=False)  # .9 s with three demo models
def _consensus(
    names: tuple[str, ...], captions: Mapping[str, tuple[str, ...]], all_words: bool
) -> Consensus:
    """Let each model that embeds texts vote on the least influential word in every caption."""
    players = [load_player(name) for name in names]
    readers = [player for player in players if player.model.capabilities.embeds_texts]
    return consensus(captions, [player.texts for player in readers], all_words=all_words)


def occlusion(subject: PageSubject) -> None:
    """Draw RoCOCO's figure 8 for one failure: how much each part of the picture influences the embedding."""
    name = _pick_model(subject, "looker")
    kinds = set(view(views.estimates.choices, subject.question_set)["kind"])
    failures = Filter(name, "t2i" if "t2i" in kinds else "i2t")
    total = view(views.cases.outcomes, subject.question_set, failures)["fooled"]
    if not total:
        quiet(f"{model_name(name)} was not fooled here, so there is no failure to show.")
        return
    table, _ = view(
        views.cases.failures, subject.question_set, failures, paginate(total, 1, "failure"), 1
    )
    row = records(FailureRow, table)[0]
    answer = (
        view(views.rows.answers, subject.question_set, (row.case,)).set_index("model").loc[name]
    )
    named_pictures, words = {"The right picture": row.images[0]}, f"Fooled by: {answer['top']}"
    if row.kind == "t2i":
        named_pictures["Ranked first instead"] = answer["top"]
        words = f"Query: {row.texts[0]}"
    st.html(tag("p", words))
    if ready_player(name, "encode_images", "pictures") is None:
        return
    columns = st.columns(2, gap="medium")
    for column, (title, picture) in zip(columns, named_pictures.items(), strict=False):
        with column:
            _part(title, picture, name)
    quiet(
        "How to read it: orange parts move the model's embedding most, pale parts least. Each of "
        "the 16 parts was blacked out in turn; the number is how far the embedding moved (1 - "
        "cosine), and the frame marks the part that moves it most. A mixed or patched picture is "
        "likely to rank first if the parts that matter most did not change."
    )


def _part(title: str, picture: str, name: str) -> None:
    st.markdown(f"**{title}**")
    try:
        image = pictures.open_picture(Picture.from_name(picture))
        with st.spinner("Testing parts of the picture"):
            values = _occlusion(name, picture, changed_at(Picture.from_name(picture)))
    except VlprobeError as error:
        quiet(str(error))
        return
    if not np.isfinite(values).all():
        quiet(
            f"{model_name(name)} returns embeddings that are not finite numbers, so the influence "
            "of the picture's parts is unknown."
        )
        return
    row, column = np.unravel_index(np.argmax(values), values.shape)
    strongest_part = f"strongest in row {row + 1}, column {column + 1}: {values[row, column]:.3f}"
    least = float(values.min())
    st.html(heat_map(image, f"{title}, {strongest_part}", values, least))
    if credit := credits_line([picture]):
        st.html(str(credit))
    st.html(
        legend(values, "moves least", "moves most", least)
        + tag("p", strongest_part.capitalize(), class_="vp-quiet vp-small")
    )


def _pick_model(subject: PageSubject, name: str) -> str:
    """Draw a picker for models and return the choice. The default is the model selected on the page."""
    label = model_labels(subject.models)
    linked = st.query_params.get("model", "")
    default = linked if linked in subject.models else subject.models[0]
    return choose("Model", name, {model: label(model) for model in subject.models}, default)


@st.cache_data(max_entries=100, show_spinner=False)  # 18 ms with a demo model, the smallest
def _influences(name: str, captions: tuple[str, ...]) -> tuple[list[dict[int, float]], list[str]]:
    """Return two lists with an entry per caption: how far the embedding moves without each word, keyed by the word's
    start, and the noun with the least influence.
    """
    words = [influence.word_spans(caption) for caption in captions]
    nouns = [
        [(noun.start, noun.end) for noun in substitution.sources(caption)] for caption in captions
    ]
    by_word, by_noun = (
        influence.influence(captions, spans, [load_player(name).texts]) for spans in (words, nouns)
    )
    least = [
        min(((by_start[start], caption[start:end]) for start, end in spans), default=((), ""))[1]
        for caption, spans, by_start in zip(captions, nouns, by_noun, strict=True)
    ]
    return [{start: score for start, (score,) in by_start.items()} for by_start in by_word], least


@st.cache_data(max_entries=100, show_spinner=False)  # 33 ms with a demo model, the smallest
def _occlusion(name: str, picture: str, changed: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Return how far the embedding moves when each of 16 picture parts is blacked out, shape (4, 4). `changed` contains
    the modification times of the files and is part of the cache key.
    """
    player = load_player(name)

    def encode(images):
        rows = player.embed_uncached(images)
        return rows / np.linalg.norm(
            rows, axis=1, keepdims=True
        )  # several vectors per picture count as one

    return 1 - influence.occlusion_map(pictures.open_picture(Picture.from_name(picture)), encode)
