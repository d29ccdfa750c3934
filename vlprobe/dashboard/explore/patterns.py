"""Patterns above the wall: words that fool the model far more often than other edits
of the same type, as switches.
"""

import math

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.state import PageSubject, mark_picked, view
from vlprobe.render.wall import lift_words, pattern_words
from vlprobe.render.words import movement_kinds
from vlprobe.views.filter import MOST_PAIRS, Filter
from vlprobe.views.patterns import ASKED, Pattern

TITLE = "Patterns"
NO_RATES = "none: they count words that fool models, and a rewording fools none"


def chosen_pairs() -> tuple[str, ...]:
    """The patterns that the URL names; two of them are "or"."""
    return tuple(dict.fromkeys(filter(None, st.query_params.get_all("pair"))))[:MOST_PAIRS]


def draw_patterns(stored: PageSubject, case_filter: Filter) -> None:
    """One row of switches; where no words stand out, that."""
    if case_filter.kind in movement_kinds():
        component("patterns")(
            key="patterns",
            data={"title": TITLE, "nothing": NO_RATES, "patterns": []},
            on_toggle_change=_toggle,
        )
        return
    summary = view(views.patterns.patterns, stored.question_set, case_filter)
    listed = {pattern.key: _chip(pattern, case_filter.pair) for pattern in summary.patterns}
    if not case_filter.pair and summary.average == 1:
        return  # every case fools the model: no words can stand out
    if missing := [key for key in case_filter.pair if key not in listed]:
        everything = view(views.patterns.candidates, stored.question_set, case_filter)
        rare = {pattern.key: pattern for pattern in everything.patterns}
        for key in missing:
            listed[key] = _chip(rare[key], case_filter.pair) if key in rare else _unknown_chip(key)
    nothing = f"none: no two words were exchanged {ASKED} times"
    if summary.n_groups:
        nothing = "none: no words fool the model clearly more often than others"
    values = {"title": TITLE, "nothing": nothing, "patterns": list(listed.values())}
    component("patterns")(key="patterns", data=values, on_toggle_change=_toggle)


def _chip(pattern: Pattern, pairs: tuple[str, ...]) -> dict[str, object]:
    source, target = pattern_words(pattern.key)
    return {
        "key": pattern.key,
        "source": source,
        "target": target,
        "rate": pattern.rate,
        "counts": f"{pattern.n_believed:,} of {pattern.n_asked:,}",
        "tip": _tip(pattern),
        "on": pattern.key in pairs,
    }


def _tip(pattern: Pattern) -> str:
    """Return the rate against the average edit of the same type, and its certainty."""
    text = lift_words(pattern)
    if not math.isnan(pattern.low):
        text += f" (95 % of the resampled pictures: {pattern.low:.1f} to {pattern.high:.1f})"
    return f"{text}, on {pattern.n_pictures:,} pictures"


def _unknown_chip(key: str) -> dict[str, object]:
    """A pattern that a link names and that is none of this model's, to be switched off."""
    source, target = pattern_words(key)
    return {
        "key": key,
        "source": source[:80],
        "target": target[:80],
        "rate": 0.0,
        "counts": "",
        "tip": f"Asked fewer than {ASKED} times",
        "on": True,
    }


def _toggle() -> None:
    """Another pattern is chosen, or one no more; paging begins again."""
    key = st.session_state["patterns"].get("toggle")
    if not isinstance(key, str) or not key:
        return
    mark_picked()
    pairs = [pair for pair in chosen_pairs() if pair != key]
    if key not in chosen_pairs():
        pairs.append(key)
    for name in ("page", "case", "pair"):
        st.query_params.pop(name, None)
    if pairs:
        st.query_params["pair"] = pairs
