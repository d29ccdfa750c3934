"""The failure at the top of Home: picture, captions, who was fooled;
another one without a reload.
"""

import datetime

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.home.subject import Link, page_link
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.state import PageSubject, model_name, view
from vlprobe.render import home
from vlprobe.render.words import movement_kinds
from vlprobe.views.runs import QuestionSet
from vlprobe.views.showcase import Showcase

SHIPPED_SEED = 196  # of the order in which shipped failures are shown; own ones change with the day
AHEAD = 3  # failures that the browser has, the one that is shown among them
KEY = "hero"
SIDE = 860  # maximum pixels of a photograph: twice those of its place on the page
DRAWN_SIDE = 672  # of a drawn scene: three times those that models see
PLACE = "home_place"  # in the session: the failure that was shown last


@st.fragment
def draw_hero(about: PageSubject) -> None:
    """The failure; a click on it opens its page, and another failure reruns only this part."""
    question_set = about.question_set
    showcases = view(
        views.showcase.showcases, question_set, about.kind, about.model, seed_of(question_set)
    )
    if not showcases:
        moves = about.kind in movement_kinds()
        st.title("Nothing moves here." if moves else "No lie is believed here.", anchor=False)
        return
    position = _place(about) % len(showcases)
    window = [
        (at, showcases[at % len(showcases)])
        for at in range(position, position + min(AHEAD, len(showcases)))
    ]
    values = {
        "kicker": home.kicker(about.presentation, about.kind_presentation, question_set.shipped),
        "cases": [_case(about, showcase) | {"place": at} for at, showcase in window],
        "only": len(showcases) == 1,
    }
    pressed = component("home")(key=KEY, data=values)
    for _, showcase in window:
        if pressed.get("go") == showcase.card.id:
            link = _link(about, showcase)
            st.switch_page(page_file(link.page), query_params=link.query)


def seed_of(question_set: QuestionSet) -> int:
    """The seed of the order of failures: fixed for bundled ones, changing daily for the user's."""
    return SHIPPED_SEED if question_set.shipped else datetime.date.today().toordinal()


def picture_source(name: str) -> str:
    """The picture at the size of its place, as a data address; "" if it cannot be read."""
    return large_picture(name, SIDE, DRAWN_SIDE)


def _place(about: PageSubject) -> int:
    """Return the position of the failure to show, from 0: the previous one for a returning visitor."""
    subject = about.key, about.kind
    before = st.session_state.get(PLACE, {}).get(subject, 0)
    position = (st.session_state.get(KEY) or {}).get("place", before)
    position = position if isinstance(position, int) and 0 <= position < 10**6 else 0
    st.session_state[PLACE] = {subject: position}
    return position


def _link(about: PageSubject, showcase: Showcase) -> Link:
    return page_link(about, "explore", case=showcase.card.id)


def _case(about: PageSubject, showcase: Showcase) -> dict[str, object]:
    """One failure as the component draws it."""
    kind = about.kind_presentation
    question_set = about.question_set
    return home.failure(
        showcase,
        kind,
        about.model,
        {name: model_name(name) for name in view(views.showcase.headline_models, question_set)},
        view(views.paired_tests.fit_models, question_set),
        about.looks,
        picture_source,
        _link(about, showcase).href,
    )
