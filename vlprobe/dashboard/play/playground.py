"""The Playground: a picture, a caption, and every edit of it at once, while one types.

An upload lives in the session and nowhere else, until its owner asks to keep it. The URL names the
caption, the models and a picture that was picked, never an upload. Models that take long to load
are loaded when somebody asks for it.
"""

import random
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import streamlit as st

from vlprobe import registry, views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.loaded import load_player, loads_at_once
from vlprobe.dashboard.play.playground_tools import keeping, link, mixing, opened, photo, why
from vlprobe.dashboard.play.shelf import (
    DEMO,
    dataset_of_shelf,
    draw_samples,
    pick_shelf,
    take_sample,
)
from vlprobe.dashboard.state import choose, model_labels, plain, quiet, renamed, view
from vlprobe.errors import VlprobeError
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.render import charts
from vlprobe.render.html.elements import ordered, tag
from vlprobe.render.html.playground import glance, headline, table
from vlprobe.render.sentences import drawn_only, listed, sentence_names
from vlprobe.render.words import distinct
from vlprobe.runs import exhibits
from vlprobe.runs import playground as runs_playground
from vlprobe.runs.exhibits import Canvas, Exhibit
from vlprobe.runs.playground import Player
from vlprobe.storage import access

MODELS = ("demo:softmax", "demo:sigmoid", "demo:weak")
START = "demo-00012"  # it has a colour, a number and a thing, and the three models differ about it
SUFFIXES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
LONGEST = 300  # characters of a caption
PAUSE = "200ms"  # without a key pressed, and the caption is evaluated
MOST_MODELS = 4
WHICH = {"least": "The least telling", "any": "Drawn by lot"}
SHOW = {"all": "All edits", "fools": "Only what fools"}
READ = (
    "The line in the middle is your caption's own score; left is lower. A wrong caption should "
    "land to the left (●). At or right of the middle it **fools** the model (✗). Rewordings (◇) "
    "should stay in the middle. Each model has its own scale, and small differences are drawn "
    "larger."
)


@dataclass(frozen=True)
class PlayPicture:
    """The picture on the table, and where it comes from."""

    canvas: Canvas
    about: str  # alternative text
    caption: str  # that it comes with; nothing: an upload
    item: str = ""  # of the shelf; nothing: an upload
    is_drawn: bool = False  # by vlprobe, as the demo models know pictures


@st.fragment
def playground() -> None:
    """The half of Play below the switch. Typing runs this alone again, not the frame around it."""
    try:
        _page()
    except VlprobeError as error:
        st.error(plain(str(error)), icon=":material/error:")


def _page() -> None:
    take_sample()
    heading = st.empty()
    heading.title(
        "Playground: which captions fool the models?"
    )  # two lines on a phone, as the finding
    st.markdown(
        "Type a caption that is true of the picture. vlprobe rewords it and makes it wrong in "
        "every way it knows, and each model says how well the picture fits: live, while you type."
    )
    refused = _refused()
    if refused:
        st.error(plain(refused), icon=":material/error:")
    left, right = st.columns([2, 3], gap="large")
    with left:
        shelf = pick_shelf()
        picture = _picture(shelf)
    if picture is None:
        with right:
            st.info(
                "Remove the file, or choose another: then its picture stands here.",
                icon=":material/image:",
            )
        return
    with right:
        caption = _caption(picture)
        players = _players()
        results = st.container()
    if not caption or not players:
        with results:
            st.info(
                "Choose a model." if caption else "Type what the picture shows.",
                icon=":material/edit:",
            )
        return
    stored = view(views.runs.models)
    styles = charts.styles.styles(
        stored
        | {player.name: player.model.digest for player in players if player.name not in stored}
    )
    st.header("Every edit of your caption")
    seed, k, which, show = _options()
    edits, dropped = runs_playground.edits(
        caption, seed=seed, k=k, players=players if which == "least" else ()
    )
    if NOT_IN_ENGLISH in dropped:
        st.info(
            "This caption is not in English, and every rule is for English: it is left as it is. Write an edit of "
            "your own below, or run a probe with edits from a file.",
            icon=":material/translate:",
        )
    texts = [edited.text for edited in edits]
    answers = runs_playground.score(players, picture.canvas, caption, texts)
    names = sentence_names([player.name for player in players], renamed())
    unlearned = runs_playground.unlearned(players, [caption, *texts])
    if finding := headline(edits, answers, names):
        heading.title(plain(finding))
    with results:
        _say_limits(picture, players, caption, names, unlearned)
        st.html(glance(edits, answers, styles, names))
        st.markdown(READ)
    rows = table(caption, edits, answers, styles, show == "fools", names, unlearned)
    st.html(
        rows
        or tag(
            "p",
            "No wrong caption fools these models. Change a word, or draw others.",
            class_="vp-quiet",
        )
    )
    for answer in answers:
        if answer.alike.any():
            remark = (
                f"{names[answer.model]} cannot tell {answer.alike.sum()} of these edits from each "
                "other, so they score "
                "alike"
            )
            quiet(f"{remark}: words that it never learned are one to it.")
    if dropped:
        with st.expander("What could not be made, and why"):
            lines = [
                tag("p", f"{reason} ({count})", class_="vp-quiet vp-small")
                for reason, count in dropped.items()
            ]
            st.html("".join(lines))
    why(players, picture.canvas, caption, names)
    mixing(players, picture.canvas, caption, shelf, picture.item, styles, names)
    keeping([player.name for player in players], picture.canvas, caption)
    link(bool(picture.item))


def _say_limits(
    picture: PlayPicture,
    players: Sequence[Player],
    caption: str,
    names: Mapping[str, str],
    unlearned: Mapping[str, Set[str]],
) -> None:
    """Draw the limits of the chosen models: photographs, or words of the caption."""
    toys = [names[player.name] for player in players if player.name.startswith("demo:")]
    if toys and not picture.is_drawn:
        st.warning(plain(drawn_only(toys, len(players))), icon=":material/draw:")
    by_words: dict[tuple[str, ...], list[str]] = {}
    for player in players:
        words = [
            word
            for word in runs_playground.words_of(caption)
            if word in unlearned.get(player.name, ())
        ]
        if words:
            by_words.setdefault(tuple(dict.fromkeys(words)), []).append(names[player.name])
    for words, models in by_words.items():
        unknown_words = listed([f"“{word}”" for word in words])
        whom = "it" if len(models) == 1 else "them"
        quiet(
            f"Unknown to {listed(models)}: {unknown_words}. All unknown words are one and the same "
            f"to {whom}."
        )


def _picture(shelf: Mapping[str, Exhibit]) -> PlayPicture | None:
    """The upload, else the picture that the URL names; None: an upload that cannot be read."""
    frame = st.container(key="play_picture")
    default = START if START in shelf else next(iter(shelf))
    linked = st.query_params.get("item", "")
    item = linked if linked in shelf else default
    st.session_state["item"] = item
    is_upload = (
        st.session_state.get("play_file") is not None
    )  # it is shown until its owner removes it
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Picture",
            list(shelf),
            key="item",
            format_func=distinct(
                {name: exhibit.captions[0] for name, exhibit in shelf.items()}
            ).__getitem__,
            on_change=_picked,
            disabled=is_upload,
        )
        others = [name for name in shelf if name != item] or [item]
        st.button(
            "Another",
            icon=":material/casino:",
            key="another",
            on_click=_pick_one,
            args=(others,),
            disabled=is_upload,
        )
    draw_samples(shelf)
    _uploader()
    if is_upload and "play_upload" not in st.session_state:
        return None
    if is_upload:
        picture = PlayPicture(
            st.session_state["play_upload"][1], "The picture that you uploaded", ""
        )
    else:
        picture = PlayPicture(
            opened(shelf[item], "play_opened"),
            shelf[item].captions[0],
            shelf[item].captions[0],
            item,
            is_drawn=dataset_of_shelf().startswith(DEMO),
        )
    with frame:
        photo(picture.canvas.draw(), picture.about)
    return picture


def _picked() -> None:
    st.query_params["item"] = st.session_state["item"]
    st.session_state["play_fresh"] = True


def _pick_one(items: Sequence[str]) -> None:
    st.session_state["item"] = random.choice(items)
    _picked()


def _refused() -> str:
    """Decode a new upload, once; why it cannot be read, "" where it can or there is none.

    It is dropped when its owner removes it or leaves. Nothing is left of an earlier one where this
    one is refused, so that no answer about another picture can be taken for one about it.
    """
    file = None if access.read_only() else st.session_state.get("play_file")
    decoded = st.session_state.get("play_upload")
    if file is not None and decoded is not None and decoded[0] == file.file_id:
        return ""
    if st.session_state.pop("play_upload", None):
        st.session_state.pop("play_players", None)  # with what they remember of it
    if file is None:
        return ""
    try:
        st.session_state["play_upload"] = (
            file.file_id,
            exhibits.uploaded(file.getvalue(), file.name),
        )
    except VlprobeError as error:
        return str(error)
    return ""


def _uploader() -> None:
    """Draw the chooser for the user's picture."""
    if changes("Install vlprobe to try a picture of your own."):
        st.file_uploader("Or your own picture", SUFFIXES, key="play_file", on_change=_uploaded)
        quiet("Your picture is not stored unless you save it below.")


def _uploaded() -> None:
    st.session_state["play_fresh"] = True


def _caption(picture: PlayPicture) -> str:
    """Return the typed caption; a new picture has its own caption, an upload none."""
    fresh = st.session_state.pop("play_fresh", False)
    if fresh or ("caption" not in st.session_state and "caption" not in st.query_params):
        st.session_state["caption"] = picture.caption[:LONGEST]
    text = st.text_input(
        "Your caption",
        key="caption",
        live=PAUSE,
        max_chars=LONGEST,
        bind="query-params",
        placeholder="Type what the picture shows",
        help="Type a caption that is true of the picture. Everything below follows while you type.",
    )
    return " ".join(text.split())


def _players() -> list[Player]:
    """The chosen models. Those that are not loaded get a button each: loading may take long."""
    names = [name for name in dict.fromkeys(st.query_params.get_all("models")) if name][
        :MOST_MODELS
    ]
    names = names or list(MODELS)
    listed = [name for name in registry.names("models") if not registry.is_form(name)]
    options = dict.fromkeys([*listed, *ordered(view(views.runs.runs)["model"].unique()), *names])
    st.session_state["play_models"] = names
    st.multiselect(
        "Models",
        list(options),
        format_func=model_labels(options),
        key="play_models",
        max_selections=MOST_MODELS,
        accept_new_options=not access.read_only(),
        on_change=_chosen,
        help=(
            "Any name that the command line knows, such as openclip:ViT-B-32:openai. Others can "
            "be typed."
        ),
    )
    ready = st.session_state.setdefault("play_loaded", set())
    isolated_players = st.session_state.get("play_players", {})
    st.session_state["play_players"] = {
        name: isolated_players[name] for name in names if name in isolated_players
    }
    players = []
    for name in names:
        if name not in ready and not loads_at_once(name):
            if access.read_only():
                quiet(f"{name} is not at hand here.")
                continue
            if not st.button(f"Load {plain(name)}", icon=":material/download:", key=f"load_{name}"):
                quiet("Loading may take a while, and fetches weights that are not on this machine.")
                continue
        try:
            players.append(_apart(name, load_player(name)))
            ready.add(name)
        except VlprobeError as error:
            ready.discard(name)
            st.error(plain(str(error)), icon=":material/error:")
    return players


def _apart(name: str, player: Player) -> Player:
    """The model with a memory for pictures that is this session's own and ends with it."""
    isolated_players = st.session_state.setdefault("play_players", {})
    if name not in isolated_players or isolated_players[name].model is not player.model:
        isolated_players[name] = player.isolated()
    return isolated_players[name]


def _chosen() -> None:
    names = st.session_state["play_models"]
    if list(names) == list(MODELS):
        st.query_params.pop("models", None)
    else:
        st.query_params["models"] = names or [""]


def _options() -> tuple[int, int, str, str]:
    """Draw the settings of the edits other than the caption (seed, k, which word), and the filter of the list."""
    seed_text = st.query_params.get("draw", "")
    seed = int(seed_text) if seed_text.isdecimal() and len(seed_text) < 9 else 42
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = {str(k): str(k) for k in range(1, 6)}
        show = choose("Listed", "show", SHOW, "all", segments=True)
        help_ = "How many things RoCOCO exchanges in the caption at once."
        k = choose("Things exchanged", "k", words, "1", segments=True, help_=help_)
        help_ = (
            "The word whose loss changes the caption's embedding least, by the vote of the chosen "
            "models; or any."
        )
        which = choose("Which thing first", "word", WHICH, "least", segments=True, help_=help_)
        st.button(
            "Other words",
            icon=":material/casino:",
            key="draw_again",
            on_click=_draw,
            args=(seed + 1,),
        )
    return seed, int(k), which, show


def _draw(seed: int) -> None:
    st.query_params["draw"] = str(seed)
