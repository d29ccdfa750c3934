"""The pictures of one case, as large as the drawer has room for and never cropped."""

import streamlit as st

from vlprobe.dashboard.pictures import large_picture
from vlprobe.render.attribution import credit_line
from vlprobe.render.html import cards as html_cards
from vlprobe.render.html import cases as html_cases
from vlprobe.render.html.elements import tag
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.wall import WallCard

SIDE = 1000  # pixels at most
DRAWN_SIDE = 448  # of a drawn scene: twice the size of its file


def draw_pictures(card: WallCard, kind: KindPresentation) -> None:
    """The case's pictures side by side, each with the caption that is true
    of it as alternative text.
    """
    shots = _shots(card, kind)
    if not shots:
        return
    with st.container(key="case_pictures"):
        columns = st.columns(len(shots), gap="small") if len(shots) > 1 else [st.container()]
        for (name, label, alt, style), column in zip(shots, columns, strict=True):
            with column, st.container(key=f"case_picture_{style}{label}"):
                _draw_picture(name, alt)
                if label:
                    st.html(tag("p", label, class_="vp-quiet vp-small"))


def _shots(card: WallCard, kind: KindPresentation) -> list[tuple[str, str, str, str]]:
    """Name, label, alternative text and style of each picture."""
    if kind.body == "picture_search":
        shots = [(card.images[0], _rank_label(card), card.true_text, "right")]
        if card.wrong_image:
            mixed = _is_mixed(card)
            label = (
                "Ranked 1st instead"
                if card.margin <= 0
                else f"Best of the {'mixed' if mixed else 'others'}"
            )
            style = "wrong" if card.margin <= 0 else "plain"
            shots.append(
                (
                    card.wrong_image,
                    label,
                    f"{card.true_text}, mixed" if mixed else "Another picture",
                    style,
                )
            )
        return shots
    if kind.body == "pair":
        return [
            (name, "", card.texts[index], f"plain{index}")
            for index, name in enumerate(card.images[:2])
        ]
    if kind.body == "series":
        return []  # a strip below the texts
    return [(name, "", card.true_text, "plain") for name in card.images[:1]]


def _rank_label(card: WallCard) -> str:
    """Return the rank of the right picture, and its rank without mixed ones."""
    if card.answer is None:
        return "The right picture"
    ranks = [html_cases.rank(card.answer, name) for name in ("rank", "rank_clean")]
    clean = f", without mixtures {ranks[1]}" if _is_mixed(card) else ""
    return f"The right picture: rank {ranks[0]}{clean}"


def _is_mixed(card: WallCard) -> bool:
    """Return whether what stands against the right picture is a mixed one."""
    return bool(card.wrong_image and Picture.from_name(card.wrong_image).edit)


def _draw_picture(name: str, alt: str) -> None:
    if source := large_picture(name, SIDE, DRAWN_SIDE):
        st.image(source, width="stretch", alt=alt)
    else:
        st.html(tag("div", html_cards.missing(name), class_="vp-missing"))
    if credit := credit_line(name):
        st.html(str(credit))
