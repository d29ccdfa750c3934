"""The Playground below the table of edits: important words and parts, mixed pictures, saved pictures, and the link."""

import shlex
from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np
import streamlit as st
from PIL import Image

from vlprobe.dashboard.access import changes
from vlprobe.dashboard.state import address, choose, plain, quiet, store
from vlprobe.errors import VlprobeError
from vlprobe.perturb.influence import word_spans
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.influence import coloured_words, heat, legend, worded
from vlprobe.render.html.playground import mixed
from vlprobe.render.words import distinct
from vlprobe.runs import exhibits, playground
from vlprobe.runs.exhibits import Canvas, Exhibit
from vlprobe.runs.playground import Player

MAPS = {"shown": "Shown", "hidden": "Hidden"}
SIDE = 640  # pixels of a picture on the page
KINDS = {"mix": "Mix", "patch": "Patch"}


def why(players: Sequence[Player], canvas: Canvas, caption: str, names: Mapping[str, str]) -> None:
    """Draw the basis of one model's score: words of the caption, parts of the picture."""
    st.header("What it looks at")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options = {player.name: names[player.name] for player in players}
        name = choose("Model", "for", options, players[0].name)
        visibility = choose("Parts of the picture", "map", MAPS, "shown", segments=True)
    player = next(player for player in players if player.name == name)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown(
            "**Words.** How much the caption's meaning changes, to this model, when the word is "
            "left out."
        )
        if player.embeds_texts:
            scores = {
                start: token_influence[0]
                for start, token_influence in playground.influences(
                    [player], caption, word_spans(caption)
                ).items()
            }
            st.html(coloured_words(*worded(caption, scores)))
            quiet("A wrong word goes unnoticed most easily where the number is small.")
        else:
            quiet(
                "This model looks at a picture and a text together and has no meaning of a text "
                "alone: unknown."
            )
    if visibility == "hidden":
        return
    with right:
        st.markdown(
            "**Parts.** How much your caption's score falls when that part of the picture is black."
        )
        if not player.sees:
            quiet("This model sees no pictures.")
            return
        try:
            values = playground.parts_that_matter(player, canvas, caption)
        except VlprobeError as error:  # too few pixels
            quiet(str(error))
            return
        if not np.isfinite(values).all():
            quiet(
                "This model gives scores that are not numbers, so nothing can be said of the parts."
            )
            return
        row, column = np.unravel_index(np.argmax(values), values.shape)
        alt = (
            f"The score falls most, by {values.max():.3f}, without row {row + 1}, column "
            f"{column + 1}."
        )
        with st.container(key="play_heat"):
            small = canvas.draw().copy()
            small.thumbnail((SIDE, SIDE))
            photo(heat(small, values), alt)
        st.html(legend(values))


@st.fragment
def mixing(
    players: Sequence[Player],
    canvas: Canvas,
    caption: str,
    shelf: Mapping[str, Exhibit],
    item: str,
    styles: Looks,
    names: Mapping[str, str],
) -> None:
    """The picture with another one mixed in, and its scores with both captions; the slider reruns only this."""
    st.header("Mix in another picture")
    st.markdown(
        "Your caption should prefer your picture to a mixed one. Where the mixed picture scores as "
        "high or higher, it **fools** the model."
    )
    others = {key: exhibit.captions[0] for key, exhibit in shelf.items() if key != item}
    if not others:
        quiet("There is no other picture to mix with.")
        return
    left, right = st.columns([2, 3], gap="large")
    with right:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            partner = shelf[_partner(others)]
            kind = choose("Edit", "edit", KINDS, "mix", segments=True)
        stays = st.slider(
            "How much of your picture stays", 5, 95, 80, 5, "%d %%", key="lam", bind="query-params"
        )
        partner_canvas = opened(partner, "play_other")
        mixture = exhibits.edited(
            canvas, partner_canvas, "patch" if kind == "patch" else "mix", stays / 100
        )
        captions = (caption, partner.captions[0])
        scores = {
            player.name: player.scores([canvas, mixture, partner_canvas], captions)
            if player.sees
            else None
            for player in players
        }
        st.html(mixed(captions, scores, styles, names))
    with left, st.container(key="play_mix"):
        photo(mixture.draw(), f"Your picture; {100 - stays} % is of another: {captions[1]}")


def _partner(others: Mapping[str, str]) -> str:
    """The other picture that the address names; Compare's parameter of
    this name is about models.
    """
    linked = st.query_params.get("with", "")
    st.session_state["with"] = linked if linked in others else next(iter(others))
    return st.selectbox(
        "Other picture",
        list(others),
        format_func=distinct(others).__getitem__,
        key="with",
        on_change=_write_partner,
    )


def _write_partner() -> None:
    st.query_params["with"] = st.session_state["with"]


def photo(image: Image.Image, about: str) -> None:
    """The displayed picture, small enough to be sent at every key."""
    small = image.copy()
    small.thumbnail((SIDE, SIDE))
    buffer = BytesIO()
    small.save(buffer, "JPEG", quality=88)
    st.image(buffer.getvalue(), width="stretch", alt=about)


def opened(exhibit: Exhibit, slot: str) -> Canvas:
    """A picture of the shelf, opened when it is picked and not at every key; each slot
    of the session holds one.
    """
    cached = st.session_state.get(slot)
    if cached is None or cached[0] != exhibit:
        cached = st.session_state[slot] = (exhibit, exhibits.canvas(exhibit.open()))
    return cached[1]


def keeping(models: Sequence[str], canvas: Canvas, caption: str) -> None:
    """Store picture and caption as a dataset on request, and show its location and how to run it."""
    st.header("Keep it")
    if not changes("Nothing can be kept."):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name of the dataset", "playground", max_chars=60, key="play_name")
        is_pressed = st.button("Keep as a dataset", icon=":material/save:", key="play_keep")
    quiet(
        "Keep more pictures under the same name, and they become one dataset. The camera's notes "
        "are not kept."
    )
    if not is_pressed:
        return
    try:
        folder = exhibits.keep(canvas, caption, name, store().root).resolve()
    except VlprobeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    st.success(
        f"Kept in {plain(str(folder))}. Ask all questions about it in a terminal:",
        icon=":material/check:",
    )
    model_flags = [word for model in models for word in ("--model", model)]
    st.code(
        shlex.join(["vlprobe", "run", *model_flags, "--dataset", f"folder:{folder}"]),
        language="bash",
        wrap_lines=True,
    )


def link(complete: bool) -> None:
    """The address of what is seen."""
    with st.popover("Link", icon=":material/link:"):
        quiet(
            "Opens this caption, these models and this picture."
            if complete
            else "Holds all but your own picture."
        )
        st.code(address(), language=None, wrap_lines=True)
