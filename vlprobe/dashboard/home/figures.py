"""Below the failure: how often which lie is believed, every model, the doors, and
what all of it is about.
"""

import math
from collections.abc import Mapping

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.home.mixed_door import TITLE, mixed_door
from vlprobe.dashboard.home.subject import Link, Subject
from vlprobe.dashboard.navigation import ROW, page_file
from vlprobe.dashboard.state import model_name, view
from vlprobe.render import showcase as words
from vlprobe.render.marks import mark_values
from vlprobe.render.sentences import counted, share, shortened
from vlprobe.render.wall import BELIEVED
from vlprobe.render.words import WRONG_SUBTYPES, presentations, value_label, wrong
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.showcase import LieCount

NUMBERS = 3  # types of lies that have a number
MOST_MODELS = 12  # in the strip
SCALES = (0.1, 0.25, 0.5, 1.0)  # shares at which a bar may be full
KEY = "figures"


def draw_figures(about: Subject) -> None:
    """Numbers, models and doors; each leads to what is behind it."""
    counts = view(views.showcase.lie_counts, about.questions.question_set, about.kind)
    links: dict[str, Link] = {}
    values = {
        "numbers": _numbers(about, counts, links),
        "strip": _strip(about, counts, links),
        "doors": _doors(about, links),
    }
    pressed = component("figures")(key=KEY, data=values)
    link = links.get(str(pressed.get("go")))
    if link:
        st.switch_page(page_file(link.page), query_params=link.query)


def _numbers(
    about: Subject, counts: tuple[LieCount, ...], links: dict[str, Link]
) -> list[dict[str, object]]:
    """The types of lies that the model believes least, in between and most."""
    lie_counts = [count for count in counts if count.model == about.model and count.n_lies]
    if not lie_counts or not math.isnan(lie_counts[0].moved):
        return []
    lie_counts.sort(key=lambda count: (count.n_believed / count.n_lies, count.subtype))
    if len(lie_counts) > NUMBERS:
        lie_counts = [lie_counts[0], lie_counts[len(lie_counts) // 2], lie_counts[-1]]
    kind = presentations()[about.questions.probe].kind(about.kind)
    phrases = [_phrase(count.subtype, kind) for count in lie_counts]
    rates = [count.n_believed / count.n_lies for count in lie_counts]
    sentences = words.number_sentences(phrases, rates, shortened(model_name(about.model)))
    numbers = []
    for count, phrase, sentence in zip(lie_counts, phrases, sentences, strict=True):
        key = f"number:{count.subtype}"
        links[key] = about.link("explore", type=count.subtype)
        numbers.append(
            {
                "key": key,
                "href": links[key].href,
                "big": words.one_in(count.n_believed, count.n_lies),
                "sentence": sentence,
                "strong": phrase.split()[-1] if phrase.startswith("a wrong ") else "",
                "exact": f"{count.n_believed:,} of {count.n_lies:,} {kind.lies} {_believed(kind)}",
            }
        )
    return numbers


def _strip(
    about: Subject, counts: tuple[LieCount, ...], links: dict[str, Link]
) -> dict[str, object]:
    """Every model with the share of lies that it believes, or how far it is moved."""
    kind = presentations()[about.questions.probe].kind(about.kind)
    rated = views.showcase.rated_models(about.questions.question_set)
    totals = {name: [count for count in counts if count.model == name] for name in rated}
    rates = {name: _rate(model_counts) for name, model_counts in totals.items()}
    known_rates = [rate for rate in rates.values() if not math.isnan(rate)]
    full = next((scale for scale in SCALES if max(known_rates, default=0) <= scale), 1.0)
    models = []
    for name in rated[:MOST_MODELS]:
        key = f"model:{name}"
        links[key] = about.link("explore", model=name)
        is_share = not kind.is_movement or kind.is_share
        models.append(
            {
                "key": key,
                "href": links[key].href,
                "name": model_name(name),
                "stored": name,
                "mark": mark_values(about.questions.looks[name]),
                "value": share(rates[name]) if is_share else _cosine(rates[name]),
                "width": 0 if math.isnan(rates[name]) else min(rates[name] / full, 1),
            }
        )
    n_lies = {sum(count.n_lies for count in model_counts) for model_counts in totals.values()}
    n_more = len(rated) - len(models)
    if n_more:
        links["more"] = Link("tradeoff", {"set": about.questions.key})
    lies = kind.lies[:1].upper() + kind.lies[1:]
    return {
        "label": "Moved on average" if kind.is_movement else f"{lies} {_believed(kind)}",
        "of": f"of {n_lies.pop():,}" if len(n_lies) == 1 else "",
        "models": models,
        "more": f"and {counted(n_more, 'more model')}" if n_more else "",
        "more_href": links["more"].href if n_more else "",
    }


def _phrase(subtype: str, kind: KindPresentation) -> str:
    """What is wrong with lies of a type, for a sentence."""
    if not subtype:
        return kind.lie
    is_known = subtype in WRONG_SUBTYPES or ":" in subtype
    return wrong(subtype) if is_known else f"{kind.lie} ({value_label(subtype).lower()})"


def _believed(kind: KindPresentation) -> str:
    """What happened to the lies that are counted, as Explore says it."""
    return BELIEVED.get(kind.body, "believed")


def _rate(lie_counts: list[LieCount]) -> float:
    """The share of a model's lies that it believes, or its mean movement."""
    n_lies = sum(count.n_lies for count in lie_counts)
    if not n_lies:
        return math.nan
    if math.isnan(lie_counts[0].moved):
        return sum(count.n_believed for count in lie_counts) / n_lies
    return sum(count.moved * count.n_lies for count in lie_counts) / n_lies


def _cosine(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _doors(about: Subject, links: dict[str, Link]) -> list[dict[str, object]]:
    """The doors, in words about what is behind them; the one to mixed pictures shows one."""
    question_set = about.questions.question_set
    fooled = view(views.showcase.n_fooling_pictures, question_set, about.kind, about.model)
    name = shortened(model_name(about.model))
    is_movement = presentations()[about.questions.probe].kind(about.kind).is_movement
    behind = {
        "explore": f"{counted(fooled, 'picture')} that fool{'s' if fooled == 1 else ''} {name}"
        if not is_movement
        else f"Every case of {name}",
        "compare": "Who is better, and on what"
        if len(about.questions.models) > 1
        else "Ask a second model, then see who is better",
        "play": "Spot the lie before the models do",
    }
    behind |= (
        {"present": "The story in slides"}
        if "present" in ROW
        else {"tradeoff": "How steady, and how alert"}
    )
    queries: Mapping[str, Link] = {
        "explore": about.link("explore"),
        "compare": about.link("compare"),
    }
    doors = []
    for page, sentence in behind.items():
        key = f"door:{page}"
        links[key] = queries.get(page, Link(page, {"set": about.questions.key}))
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
