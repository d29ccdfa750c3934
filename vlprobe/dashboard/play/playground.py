"""The Playground: a picture, a caption, and all edits of the caption with their scores, updated while the user types.

An uploaded picture is kept only in the session, unless its owner saves it. The URL names the caption, the
models and a picture from a dataset, but never an upload. Models that take long to load are loaded only
on request.
"""

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator

from vlprobe import registry, views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.components import component
from vlprobe.dashboard.loaded import SLOW, load_player, loads_at_once
from vlprobe.dashboard.play import tryit
from vlprobe.dashboard.state import (
    address,
    choose,
    command,
    dataset_name,
    link_docs,
    model_labels,
    model_name,
    pick,
    plain,
    quiet,
    renamed,
    store,
    view,
)
from vlprobe.dashboard.widgets import draw_error, draw_row, link_page, press, show_errors
from vlprobe.datasets import bundled
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models import hf, open_clip
from vlprobe.perturb.influence import word_spans
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.render import charts
from vlprobe.render.attribution import credit_line
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import ordered, tag
from vlprobe.render.html.influence import colored_words, heat, legend, line, strongest, worded
from vlprobe.render.html.playground import doubt, glance, headline, mixed, table
from vlprobe.render.sentences import drawn_only, joined, sentence_names
from vlprobe.render.words import distinct
from vlprobe.runs import exhibits
from vlprobe.runs import playground as runs_playground
from vlprobe.runs.exhibits import Canvas, Exhibit
from vlprobe.runs.playground import Player
from vlprobe.scoring import thumbnails
from vlprobe.storage import access

MODELS = ("demo:softmax", "demo:sigmoid", "demo:weak")
START = "demo-00012"  # has a color, a number and an object, and the three models disagree on it
SUFFIXES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
LONGEST = 300  # maximum characters of a caption
PAUSE = "200ms"  # pause in typing after which the caption is evaluated
MOST_MODELS = 4
WHICH = {"least": "Least important", "any": "Random"}
SHOW = {"all": "All edits", "fools": "Only what fools"}
MAPS = {"shown": "Shown", "hidden": "Hidden"}
SIDE = 640  # pixels of a picture on the page
MAX_BYTES = 90_000  # of a picture with a heat map
KINDS = {"mix": "Mix", "patch": "Patch"}
FOR_CAPTIONS = ("for the wrong caption", "for the true caption")  # values below and above 0
SAMPLES = 4  # number of sample pictures
OTHERS = 20  # captions of other pictures that a true caption should beat
REAL, REAL_MB = "openclip:ViT-B-32/openai", 605  # a model that judges photographs, if none is here
GUESSED = "No verdicts here, because these models only guess."
DRAWN = "These models judge only drawn scenes like those above."
OFFLINE = (
    "CLIP could not be downloaded, so nothing has changed. The download needs the internet and "
    f"{REAL_MB} MB on the disk."
)
KNOWN = "The bundled models know few words, such as two, red, dog, cat, car, bus, boat and beach."
ALIKE = "words unknown to the models, which see the same caption in another edit"
CHECK = "Check your caption. Wrong captions are not counted until most models find that it fits."
SHOWS = "Type what the picture shows."
DEMO = "demo"
PICKS = "play_picks"  # session key: number of pictures that were picked
TITLE = "Try it: your picture, your words"
READ = (
    "The line in the middle is your caption's own score; lower scores are to the left. A wrong "
    "caption should land to the left of the line (●). If it lands on the line or to the right, "
    "it **fools** the model (✗). Rewordings (◇) should stay close to the line. Each model has "
    "its own scale, and small differences are exaggerated."
)


@dataclass(frozen=True)
class PlayPicture:
    """The picture in use, and where it comes from."""

    canvas: Canvas
    alternative: str  # alternative text
    caption: str  # the picture's own caption; "" for an upload
    item: str = ""  # id among the example pictures; "" for an upload
    # Whether vlprobe drew it, like the pictures that demo models are trained on
    is_drawn: bool = False


@st.fragment
@show_errors()
def playground() -> None:
    """Draw the Playground. Typing reruns only this part of the page."""
    heading = st.empty()
    heading.title(TITLE)  # until the finding replaces it
    caution = st.container()
    refused = _refused()
    if refused:
        st.error(link_docs(refused), icon=":material/error:")
    left, right = st.columns([2, 3], gap="large")
    with left:
        picture, shelf, before_upload = _picture()
    if picture is None:
        with right:
            st.info("Remove the file, or choose another one.", icon=":material/image:")
        return
    with right:
        caption = _caption(picture)
        remarks, first = st.container(), st.container()
        players = _players()
        results = st.container()
    toys = [player.name for player in players if player.name.startswith("demo:")]
    if toys and picture.is_drawn:
        with before_upload:
            own = "For your own photograph, {}." * (not access.read_only())
            _offer_real(lambda remedy: quiet(joined(DRAWN, own.format(remedy))))
    elif toys:
        remark = plain(drawn_only([model_name(name) for name in toys], len(players)))
        with caution:
            _offer_real(
                lambda remedy: st.warning(
                    f"{remark} To judge this photograph, {remedy}.", icon=":material/draw:"
                )
            )
    if not caption or not players:
        with results:
            remark = f"{SHOWS} {KNOWN}" if toys else SHOWS
            remark = "Choose a model, or load the chosen one." if caption else remark
            st.info(remark, icon=":material/edit:")
        return
    known_models = view(views.runs.models)
    digests = {player.name: player.model.digest for player in players}
    # Stored models come first, with their own digests
    styles = charts.styles.styles(known_models | digests | known_models)
    with st.expander("All edits and scores, and what models look at", key="play_all"):
        st.header("Every edit of your caption", anchor=tryit.ALL_EDITS)
        quiet(
            "Type a caption that is true of the picture. vlprobe rewords it and makes it "
            "wrong in every way it can, and each model scores the results as you type."
        )
        glances = st.container()
        seed, k, which, show = _options()
        edits, dropped = runs_playground.edits(
            caption, seed=seed, k=k, players=players if which == "least" else ()
        )
        if any(NOT_IN_ENGLISH in reason for reason in dropped):
            st.info(
                (
                    "The rules cannot edit this caption, because it is not in English. In eight "
                    "other languages, they change only colors and numbers. Write your own edit "
                    "below, or run a test with edits from a file."
                ),
                icon=":material/translate:",
            )
        unlearned = runs_playground.unlearned(players, [caption, *(one.text for one in edits)])
        n_edits, asked = len(edits), (players, picture.canvas, caption)
        edits, answers = runs_playground.score_apart(*asked, edits, unlearned)
        dropped = Counter(dropped) + Counter({ALIKE: n_edits - len(edits)})
        names = sentence_names([player.name for player in players], renamed())
        others = [exhibit.captions[0] for key, exhibit in shelf.items() if key != picture.item]
        doubters, rivals = runs_playground.doubters(
            players, picture.canvas, caption, others[:OTHERS]
        )
        others[:OTHERS] = rivals  # first the caption that the doubt is about
        doubtful = doubt(len(doubters), sum(player.sees for player in players))
        # On a photograph, models that know only drawings guess, and a guess is not a finding
        is_guess = len(toys) == len(players) and not picture.is_drawn
        guessed = GUESSED * (is_guess and bool(doubtful))
        if finding := doubtful or headline(edits, answers, names, unlearned):
            heading.title(TITLE if guessed else plain(finding))
        if not guessed:
            with first:
                tryit.draw_rows(
                    *(players, picture.canvas, caption, edits, answers),
                    *(others, styles, names, doubtful),
                )
        with remarks:
            if remark := tryit.unknown_words(runs_playground.words_of(caption), unlearned, names):
                remark += " All unknown words look the same to a model."
            if remark or doubtful:
                quiet(guessed or joined(doubtful and CHECK, remark))
        if not doubtful:
            with glances:
                st.html(glance(edits, answers, styles, names, unlearned))
                st.markdown(READ)
        rows = table(caption, edits, answers, styles, show == "fools", names, unlearned)
        st.html(
            rows
            or tag(
                "p",
                "No wrong caption fools these models. Change a word, or press “Other words” for a "
                "new set of edits.",
                class_="vp-quiet",
            )
        )
        for answer in answers:
            if answer.alike.any():
                remark = (
                    f"{names[answer.model]} scores {answer.alike.sum()} of these edits the same"
                )
                quiet(f"{remark}, because it does not know the words.")
        if dropped:
            with st.expander("Edits that could not be made"):
                lines = [
                    tag("p", f"{reason} ({count})", class_="vp-quiet vp-small")
                    for reason, count in dropped.items()
                ]
                st.html("".join(lines))
        _why(players, picture.canvas, caption, names)
        _mixing(players, picture.canvas, caption, shelf, picture.item, styles, names)
    _keeping([player.name for player in players], picture.canvas, caption)
    extent = " and this picture" if picture.item else ", but without your own picture"
    with st.popover("Link", icon=":material/link:"):
        quiet(f"This link opens this caption with these models{extent}.")
        st.code(address(), language=None, wrap_lines=True)


def _picture() -> tuple[PlayPicture | None, dict[str, Exhibit], DeltaGenerator]:
    """Draw the picture in use, and return it with the pictures to choose from and a container above the upload. The
    picture is the upload, or else the one that the URL names; None if the upload cannot be read.
    """
    frame, samples = st.container(key="play_picture"), st.container()
    is_upload = _own_file() is not None  # shown until its owner removes it or picks another picture
    with st.popover("More pictures", icon=":material/photo_library:"):
        dataset, shelf = _pick_shelf()
        default = START if START in shelf else next(iter(shelf))
        linked = st.query_params.get("item", "")
        item = linked if linked in shelf else default
        labels = distinct({name: exhibit.captions[0] for name, exhibit in shelf.items()})
        pick("Picture", "item", labels, item, _pick)
        others = [name for name in shelf if name != item] or [item]
        press("Another", _pick, others, icon="casino", key="another")
    with samples:
        _draw_samples(dataset, shelf, "" if is_upload else item)
    before_upload = st.container(key="play_drawn")
    with st.container(key="play_own"):
        _draw_upload()
    if is_upload and "play_upload" not in st.session_state:
        return None, shelf, before_upload
    if is_upload:
        canvas = st.session_state["play_upload"][1]
        picture = PlayPicture(canvas, "The picture that you uploaded", "")
    else:
        canvas, caption = _opened(shelf[item], "play_opened"), shelf[item].captions[0]
        picture = PlayPicture(canvas, caption, caption, item, dataset.startswith(DEMO))
    with frame:
        _photo(picture.canvas.draw(), picture.alternative)
        if picture.item and (credit := credit_line(shelf[item].picture)):
            st.html(str(credit))
    return picture, shelf, before_upload


def _draw_upload() -> None:
    """Draw a field for a picture of the user: a file, a picture that was pasted, or one from the camera."""
    if not changes("Install vlprobe to try a picture of your own."):
        return
    fresh: dict[str, Any] = {
        "on_change": st.session_state.__setitem__,
        "args": ("play_fresh", True),
    }
    st.file_uploader(
        *("Or your own picture: choose, drop or paste it", SUFFIXES),
        **{"key": _upload_key("play_file"), **fresh},
    )
    with st.popover("Camera", icon=":material/photo_camera:"):
        if st.toggle("Use this device's camera", key="play_camera_on"):
            st.camera_input("Take a picture", key=_upload_key("play_camera"), **fresh)
    quiet("Your picture is not stored unless you save it below.")


def _own_file() -> Any:
    """Return the picture that the user took or uploaded, or None."""
    keys = _upload_key("play_camera"), _upload_key("play_file")
    return next(filter(None, map(st.session_state.get, keys)), None)


def _upload_key(name: str) -> str:
    """Return the key of an upload field. It changes when a picture is picked, so that the field is empty again."""
    return f"{name}{st.session_state.get(PICKS, '')}"


def _pick(items: Sequence[str] = ()) -> None:
    """Write the picked picture to the URL or, if `items` is given, a random one of them. It replaces an upload."""
    st.query_params["item"] = random.choice(items) if items else st.session_state["item"]
    st.session_state["play_fresh"] = True
    st.session_state[PICKS] = st.session_state.get(PICKS, 0) + 1


def _refused() -> str:
    """Decode a new upload, once. Returns the reason if it cannot be read, or "" if it can or there is no upload.

    An upload is deleted when its owner removes it or leaves. If a new upload cannot be read, an earlier one and its
    cached scores are deleted too, so that they are not mistaken for scores of the new picture.
    """
    file = None if access.read_only() else _own_file()
    decoded = st.session_state.get("play_upload")
    if file is not None and decoded is not None and decoded[0] == file.file_id:
        return ""
    if st.session_state.pop("play_upload", None):
        st.session_state.pop("play_players", None)  # including their cached answers about it
        st.session_state.pop(tryit.CHANGED, None)
    if file is None:
        return ""
    try:
        canvas = exhibits.uploaded(file.getvalue(), file.name)
    except VlprobeError as error:
        return str(error)
    st.session_state["play_upload"] = file.file_id, canvas
    return ""


def _caption(picture: PlayPicture) -> str:
    """Draw the caption field and return its text. A new picture brings its own caption, and an upload an empty one.

    What the user wrote to beat the models is deleted with the picture that it was about.
    """
    fresh = st.session_state.pop("play_fresh", False)
    is_other = st.session_state.get(tryit.CLAIMED, picture.item) != picture.item  # by a link
    st.session_state[tryit.CLAIMED] = picture.item
    if fresh or is_other:
        st.session_state.pop(tryit.CLAIM, None)
    if wrong := " ".join(st.query_params.get("wrong", "").split()):  # of a case
        st.session_state[tryit.CLAIM] = wrong[:LONGEST]
        del st.query_params["wrong"]
    # A link of an earlier version. Explore has a filter of this name
    if linked := st.query_params.pop("caption", ""):
        st.session_state["text"] = linked[:LONGEST]
    if fresh or ("text" not in st.session_state and "text" not in st.query_params):
        st.session_state["text"] = picture.caption[:LONGEST]
    text = st.text_input(
        "Your caption (vlprobe cannot check that it is true)",
        key="text",
        live=PAUSE,
        max_chars=LONGEST,
        bind="query-params",
        placeholder="Type what the picture shows",
        help="Everything below updates as you type.",
    )
    return " ".join(text.split())


def _offer_real(draw_remark: Callable[[str], object]) -> None:
    """Draw a remark, a button that loads a model for photographs, and a link to the quiz about them. The chosen models
    stay until the other one is loaded.

    Args:
        draw_remark: Function that draws a sentence which ends with the given remedy.
    """
    here = [] if access.read_only() else names_here()
    name = here[0] if here else REAL
    remedy = "use a real model that is on this machine" if here else "download a real model once"
    draw_remark("install vlprobe" if access.read_only() else remedy)
    with draw_row():
        label = f"Use {plain(model_name(name))}" if here else f"Download CLIP ({REAL_MB} MB)"
        icon = f":material/{'add' if here else 'download'}:"
        is_pressed = not access.read_only() and st.button(label, icon=icon, key="use_real")
        rows = view(views.runs.question_set_rows)
        if any(row.dataset.startswith(f"{bundled.PREFIX}:") for row in rows):
            label = "Quiz: real models and photographs"
            link_page("present", label, {"tab": "quiz"}, icon="image")
    if is_pressed:
        try:
            load_player(name)
        except VlprobeError as error:
            draw_error(error if here else InvalidInput(f"{OFFLINE} The error was: {error}"))
        else:
            st.session_state.setdefault("play_loaded", set()).add(name)
            st.query_params["models"] = [name]
            st.rerun()


@st.cache_data(ttl=60, show_spinner=False)  # .2 s for 200 models in the hub's cache
def names_here() -> list[str]:
    """List the models for photographs whose weights are on this machine."""
    return [*open_clip.cached_names(), *hf.cached_names()]


def _players() -> list[Player]:
    """Draw the model picker and return the chosen models. A model that may take long to load gets a Load button."""
    linked = [name for name in dict.fromkeys(st.query_params.get_all("models")) if name]
    names = linked[:MOST_MODELS] or list(MODELS)
    complete = [name for name in registry.names("models") if not registry.is_form(name)]
    options = dict.fromkeys([*complete, *ordered(view(views.runs.runs)["model"].unique()), *names])
    st.session_state["play_models"] = names

    def choose_models() -> None:
        chosen = list(st.session_state["play_models"])
        st.query_params.pop("models", None)
        if chosen != list(MODELS):
            st.query_params["models"] = chosen or [""]

    st.multiselect(
        f"Models (up to {MOST_MODELS})",
        list(options),
        format_func=model_labels(options),
        key="play_models",
        max_selections=MOST_MODELS,
        accept_new_options=not access.read_only(),
        select_all=False,
        on_change=choose_models,
        help="Type any model name that the command line accepts, such as openclip:ViT-B-32/openai.",
    )
    if names != list(MODELS):
        back = {"icon": "undo", "type": "tertiary", "key": "use_bundled"}
        press("Back to the bundled models", st.query_params.pop, "models", None, **back)
    ready = st.session_state.setdefault("play_loaded", set())
    isolated = st.session_state.get("play_players", {})
    kept = {name: isolated[name] for name in names if name in isolated}
    st.session_state["play_players"] = kept
    players = []
    for name in names:
        if name not in ready and not loads_at_once(name):
            if access.read_only():
                quiet(f"{name} cannot be loaded here.")
                continue
            if not st.button(f"Load {plain(name)}", icon=":material/download:", key=f"load_{name}"):
                quiet(SLOW)
                continue
        try:
            player = load_player(name)
            if name not in kept or kept[name].model is not player.model:
                kept[name] = player.isolated()  # its cache of pictures ends with this session
            players.append(kept[name])
            ready.add(name)
        except VlprobeError as error:
            ready.discard(name)
            draw_error(error)
    return players


def _options() -> tuple[int, int, str, str]:
    """Draw the settings for RoCOCO's edits and a filter for the list of edits. Returns the seed, the number of words
    to replace, which word to start with, and the filter.
    """
    seed_text = st.query_params.get("draw", "")
    seed = int(seed_text) if seed_text.isdecimal() and len(seed_text) < 9 else 42
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = {str(k): str(k) for k in range(1, 6)}
        show = choose("Listed", "show", SHOW, "all", segments=True)
        help_ = "How many words RoCOCO replaces in the caption at once."
        k = choose("Words replaced", "k", words, "1", segments=True, help_=help_)
        help_ = (
            "Least important: the word whose removal changes the caption's embedding least, by a "
            "vote of the models. Random: any word."
        )
        which = choose("Start with", "word", WHICH, "least", segments=True, help_=help_)
        change = st.query_params.__setitem__, "draw", str(seed + 1)
        press("Other words", *change, icon="casino", key="draw_again")
    return seed, int(k), which, show


def _why(players: Sequence[Player], canvas: Canvas, caption: str, names: Mapping[str, str]) -> None:
    """Draw how much each word in the caption and each part of the picture influences one model."""
    st.header("Important words and parts")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options = {player.name: names[player.name] for player in players}
        name = choose("Model", "for", options, players[0].name)
        visibility = choose("Parts of the picture", "map", MAPS, "shown", segments=True)
    player = next(player for player in players if player.name == name)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown(
            "**Words.** How much this model's embedding of the caption changes when a word is "
            "left out."
        )
        draw_words(player, caption)
        if player.embeds_texts:
            quiet("A wrong word is most likely to go unnoticed where the number is small.")
    if visibility == "hidden":
        return
    with right:
        st.markdown(
            "**Parts.** How much your caption's score falls when a part of the picture is "
            "blacked out."
        )
        draw_parts(player, canvas, caption)


def draw_words(player: Player, caption: str) -> None:
    """Draw a caption whose words are colored by their influence on a model's embedding."""
    if not player.embeds_texts:
        quiet("Unknown, because this model cannot embed a text without a picture.")
        return
    moved = runs_playground.influences([player], caption, word_spans(caption))
    scores = {start: of_models[0] for start, of_models in moved.items()}
    st.html(colored_words(*worded(caption, scores)))


def draw_margin_words(player: Player, canvas: Canvas, true: str, wrong: str) -> None:
    """Draw two captions whose words are colored by how far the margin (true minus wrong) falls without them."""
    rows = []
    for sign, caption in ((1, true), (-1, wrong)):
        falls = runs_playground.words_that_matter(player, canvas, caption)
        rows.append(worded(caption, {start: sign * fall for start, fall in falls.items()}))
    values = [value for _, of_words in rows for value in of_words]
    lines = [line(words, of_words, strongest(values)) for words, of_words in rows]
    st.html("".join(lines) + legend(values, *FOR_CAPTIONS))


def draw_parts(player: Player, canvas: Canvas, caption: str, wrong: str = "") -> None:
    """Draw a picture whose parts are colored by how far a caption's score falls without them, or the margin over a
    wrong caption.
    """
    if not player.sees:
        quiet("This model has no image input.")
        return
    try:
        values = runs_playground.parts_that_matter(player, canvas, caption, wrong)
    except VlprobeError as error:  # the picture has too few pixels
        quiet(str(error))
        return
    if not np.isfinite(values).all():
        quiet(
            "This model's scores are not finite numbers, so the influence of the picture's parts "
            "is unknown."
        )
        return
    row, column = np.unravel_index(np.argmax(values), values.shape)
    place = f"row {row + 1}, column {column + 1}"
    alternative = (
        f"The {'margin' if wrong else 'score'} falls most, by {values.max():.3f}, without {place}."
    )
    bar = legend(values, *FOR_CAPTIONS) if wrong else legend(values)
    st.html(heat_map(canvas.draw(), alternative, values) + bar)


def heat_map(image: Image.Image, alternative: str, values: np.ndarray, least: float = 0.0) -> str:
    """Return a picture as HTML whose parts are tinted by `values` (see `heat`), and how to see it without."""
    source = thumbnails.data_address(thumbnails.encode(image, SIDE, MAX_BYTES))
    note = tag("p", "Press the picture to see it without colors.", class_="vp-quiet vp-small")
    return heat(source, image.width / image.height, alternative, values, least) + note


@st.fragment
def _mixing(
    players: Sequence[Player],
    canvas: Canvas,
    caption: str,
    shelf: Mapping[str, Exhibit],
    item: str,
    styles: Looks,
    names: Mapping[str, str],
) -> None:
    """Draw the picture mixed with another one, and scores for both captions. The slider reruns only this part."""
    st.header("Mix in another picture")
    st.markdown(
        "Your caption should fit your picture better than a mixed picture does. If the mixed "
        "picture scores at least as high, it **fools** the model."
    )
    others = {key: exhibit.captions[0] for key, exhibit in shelf.items() if key != item}
    if not others:
        quiet("There is no other picture to mix yours with.")
        return
    left, right = st.columns([2, 3], gap="large")
    with right:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            # On Compare, the parameter with this name lists models
            linked, labels = st.query_params.get("with", ""), distinct(others)
            linked = linked if linked in others else next(iter(others))

            def change() -> None:
                st.query_params["with"] = st.session_state["with"]

            partner = shelf[pick("Other picture", "with", labels, linked, change)]
            kind = choose("Edit", "edit", KINDS, "mix", segments=True)
        share: dict[str, Any] = {"format": "%d %%", "key": "lam", "bind": "query-params"}
        stays = st.slider("Share of your picture that remains", 5, 95, 80, 5, **share)
        second = _opened(partner, "play_other")
        edit = "patch" if kind == "patch" else "mix"
        mixture = exhibits.edited(canvas, second, edit, stays / 100)
        captions, canvases = (caption, partner.captions[0]), [canvas, mixture, second]
        scores = {
            player.name: player.scores(canvases, captions) if player.sees else None
            for player in players
        }
        st.html(mixed(captions, scores, styles, names))
    with left, st.container(key="play_mix"):
        _photo(
            mixture.draw(), f"Your picture, with {100 - stays} % of another mixed in: {captions[1]}"
        )


def _photo(image: Image.Image, alternative: str) -> None:
    """Draw a picture that is small enough to be sent to the browser at every key press."""
    small = image.copy()
    small.thumbnail((SIDE, SIDE))
    st.image(small, width="stretch", output_format="JPEG", alt=alternative)


def _opened(exhibit: Exhibit, slot: str) -> Canvas:
    """Open an example picture, or return it from the session if the slot already holds it."""
    cached = st.session_state.get(slot)
    if cached is None or cached[0] != exhibit:
        cached = st.session_state[slot] = (exhibit, exhibits.canvas(exhibit.open()))
    return cached[1]


def _keeping(models: Sequence[str], canvas: Canvas, caption: str) -> None:
    """Draw a button that saves the picture and caption in a dataset. After a click, show how to run the dataset."""
    st.header("Keep it")
    if not changes("Nothing can be saved here."):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Dataset name", "playground", max_chars=60, key="play_name")
        is_pressed = st.button("Save as a dataset", icon=":material/save:", key="play_keep")
    quiet("Pictures saved under the same name become one dataset. Camera metadata is removed.")
    if not is_pressed:
        return
    try:
        folder = exhibits.keep(canvas, caption, name, store().root).resolve()
    except VlprobeError as error:
        draw_error(error)
        return
    st.success(f"Saved in {plain(str(folder))}.", icon=":material/check:")
    st.session_state["run_own"] = f"folder:{folder}"  # the choice of the form
    link_page("run", "Run a test on it", icon="play_arrow")
    quiet("Or run all tests in a terminal:")
    flags = [word for model in models for word in ("--model", model)]
    run = command("run", *flags, "--dataset", f"folder:{folder}")
    st.code(run, language="bash", wrap_lines=True)


def _pick_shelf() -> tuple[str, dict[str, Exhibit]]:
    """Draw a picker for the demo and for datasets with stored runs. Returns the chosen one, and its pictures by id."""
    datasets = view(views.runs.runs)["dataset"].unique().tolist()
    names = [DEMO, *sorted(name for name in datasets if not name.startswith(DEMO))]
    linked = st.query_params.get("from", "")
    if linked not in names and linked in datasets:
        names.append(linked)
    options = {name: dataset_name(name) for name in names}
    name = choose("Pictures of", "from", options, DEMO) if len(names) > 1 else DEMO
    root = str(store().root)
    try:
        shelf = _exhibits(name, root)
    except VlprobeError as error:
        draw_error(error)
        name, shelf = DEMO, _exhibits(DEMO, root)
    every = {exhibit.id: exhibit for exhibit in shelf}
    item = st.query_params.get("item", "")
    linked_exhibit = _exhibit(name, root, item) if item and item not in every else None
    return name, every | ({linked_exhibit.id: linked_exhibit} if linked_exhibit else {})


@st.cache_resource(max_entries=50, show_spinner="Opening the picture")  # reads annotations
def _exhibit(dataset: str, root: str, item: str) -> Exhibit | None:
    """Load a picture that the URL names but that is not among the first pictures in its dataset."""
    with contextlib.suppress(VlprobeError):
        return exhibits.exhibit(dataset, store().root, item)
    return None


@st.cache_resource(max_entries=3, show_spinner="Opening the pictures")  # 8 ms for the demo
def _exhibits(dataset: str, root: str) -> tuple[Exhibit, ...]:
    return exhibits.shelf(dataset, store().root)


def _draw_samples(dataset: str, shelf: Mapping[str, Exhibit], opened: str) -> None:
    """Draw a few sample pictures to choose from. `opened` is the id of the one in use, or ""."""

    def pick_sample() -> None:
        if pressed := st.session_state["samples"].get("open"):
            _pick([str(pressed)])

    step = max(1, len(shelf) // SAMPLES)
    cards = []
    for key in list(shelf)[::step][:SAMPLES]:
        source = _sample(dataset, key, shelf[key])
        frame, caption = {"source": source, "name": key, "style": ""}, shelf[key].captions[0]
        cards.append({"id": key, "name": caption, "tip": caption, "frames": [frame]})
    values = {"label": "Samples", "strip": True, "cards": cards, "open": opened}
    component("wall")(key="samples", data=values, on_open_change=pick_sample)


@st.cache_data(max_entries=400, show_spinner=False)  # 2 ms each, for all samples in every run
def _sample(dataset: str, item: str, _exhibit: Exhibit) -> str:
    """Return a small version of a picture as a data URL, or "" if the picture cannot be read."""
    try:
        return thumbnails.data_address(thumbnails.encode(_exhibit.open()))
    except VlprobeError:
        return ""
