"""Below the failure: the rate at which each type of lie is believed, every model, the doors, and the subject."""

from collections.abc import Mapping

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.home.mixed_door import TITLE, mixed_door
from vlprobe.dashboard.home.subject import Link, page_link
from vlprobe.dashboard.navigation import ROW, page_file
from vlprobe.dashboard.state import PageSubject, model_name, view
from vlprobe.render import home
from vlprobe.render.sentences import counted, shortened
from vlprobe.views.showcase import LieCount

KEY = "figures"


def draw_figures(about: PageSubject) -> None:
    """Numbers, models and doors; each leads to what is behind it."""
    counts = view(views.showcase.lie_counts, about.question_set, about.kind)
    kind = about.kind_presentation
    links: dict[str, Link] = {}

    def address(key: str, query: Mapping[str, str]) -> str:
        links[key] = page_link(about, "explore", **query)
        return links[key].href

    values = {
        "numbers": home.numbers(counts, about.model, model_name(about.model), kind, address),
        "strip": _strip(about, counts, links, address),
        "doors": _doors(about, links),
    }
    pressed = component("figures")(key=KEY, data=values)
    link = links.get(str(pressed.get("go")))
    if link:
        st.switch_page(page_file(link.page), query_params=link.query)


def _strip(
    about: PageSubject,
    counts: tuple[LieCount, ...],
    links: dict[str, Link],
    address: home.Address,
) -> dict[str, object]:
    """Every model, and the way to those that have no room."""
    kind = about.kind_presentation
    rated = about.question_set.rated_models
    names = {name: model_name(name) for name in rated}
    credible = view(views.paired_tests.fit_models, about.question_set)
    strip = home.strip(counts, names, credible, kind, about.looks, address)
    n_more = len(rated) - home.MOST_MODELS
    if n_more <= 0:
        return strip
    links["more"] = Link("tradeoff", {"set": about.key})
    more = f"and {counted(n_more, 'more model')}"
    return strip | {"more": more, "more_href": links["more"].href}


def _doors(about: PageSubject, links: dict[str, Link]) -> list[dict[str, object]]:
    """The doors, in words about what is behind them; the one to mixed pictures shows one."""
    question_set = about.question_set
    fooled = view(views.showcase.n_fooling_pictures, question_set, about.kind, about.model)
    name = shortened(model_name(about.model))
    is_movement = about.kind_presentation.is_movement
    behind = {
        "explore": f"{counted(fooled, 'picture')} that fool{'s' if fooled == 1 else ''} {name}"
        if not is_movement
        else f"Every case of {name}",
        "compare": "Who is better, and on what"
        if len(about.models) > 1
        else "Test a second model, then see which is better",
        "play": "Spot the lie before the models do",
    }
    behind |= (
        {"present": "The story in slides"}
        if "present" in ROW
        else {"tradeoff": "Invariance and sensitivity"}
    )
    queries: Mapping[str, Link] = {
        "explore": page_link(about, "explore"),
        "compare": page_link(about, "compare"),
    }
    doors = []
    for page, sentence in behind.items():
        key = f"door:{page}"
        links[key] = queries.get(page, Link(page, {"set": about.key}))
        doors.append(
            {"key": key, "href": links[key].href, "title": ROW[page], "sentence": sentence}
        )
    if door := mixed_door(about):
        links["door:mixed"] = door.link
        doors.append(
            {
                "key": "door:mixed",
                "href": door.link.href,
                "title": TITLE,
                "sentence": door.sentence,
                "pictures": [{"source": source, "alt": alt} for source, alt in door.pictures],
            }
        )
    return doors
