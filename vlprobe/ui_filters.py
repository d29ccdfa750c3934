"""Which cases to look at: pickers for everything that `views.Filter` knows, each named by the URL."""

import streamlit as st

from vlprobe import views
from vlprobe.ui_state import Questions, choose, search, view
from vlprobe.ui_words import MOVED, named
from vlprobe.views import Filter

SORTS = {"worst": "Most fooled first", "closest": "Closest calls first", "best": "Best held first"}
SORTS_MOVED = {"worst": "Moved most first", "best": "Moved least first"}
LAST = {"dataset": "In the dataset's order"}


def filters(asked: Questions) -> Filter:
    """The pickers, and the filter that they make."""
    known = view("choices", asked.key)
    left, middle = st.columns(2)
    with left:
        model = choose("Model", "model", {name: name for name in asked.models}, asked.models[0], always=True)
    with middle:
        there = set(known["kind"])
        kinds = {kind: words for kind, words in views.kinds(asked.probe).items() if kind in there}
        kind = choose("Kind of question", "kind", kinds, next(iter(kinds)))
    own = known[known["kind"] == kind]
    with st.expander(
        "More filters", expanded=any(name in st.query_params for name in ("type", "rule", "tag", "words"))
    ):
        columns = st.columns(2)
        with columns[0]:
            subtype = _any("Type", "type", own.groupby("subtype")["n_cases"].sum().to_dict())
        with columns[1]:
            chosen = own[own["subtype"] == subtype] if subtype else own
            rule = _any("Rule", "rule", chosen.groupby("rule")["n_cases"].sum().to_dict())
        with columns[0]:
            tags = {value: value.replace("=", ": ", 1) for value in view("tag_values", asked.key)}
            tag = choose("Tag", "tag", {"": "Any", **tags}, disabled=not tags)
        with columns[1]:
            contains = search("Caption contains", "words", "such as: bench")
    chosen = Filter(model, kind, subtype, rule, tag, contains, outcome="all")
    outcome = "all" if kind in MOVED else _outcome(asked, chosen)
    order = st.query_params.get("sort", "")
    return Filter(model, kind, subtype, rule, tag, contains, outcome, order if order in _orders(kind) else "worst")


def sorting(kind: str) -> str:
    """The order of the cards."""
    return choose("Order", "sort", _orders(kind), "worst")


def _orders(kind: str) -> dict[str, str]:
    return (SORTS_MOVED if kind in MOVED else SORTS) | LAST


def _any(label: str, name: str, counts: dict[str, int]) -> str:
    """A picker with "any" first; each choice says how many cases it has."""
    options = {value: f"{named(value)} ({count:,})" for value, count in counts.items() if value}
    return choose(label, name, {"": "Any", **options})


def _outcome(asked: Questions, chosen: Filter) -> str:
    counts = view("outcomes", asked.key, chosen)
    options = {
        "fooled": f"Fooled {counts['fooled']:,}",
        "tied": f"Tied {counts['tied']:,}",
        "held": f"Held {counts['held']:,}",
        "all": f"All {counts['all']:,}",
    }
    help_ = (
        "Fooled: what is wrong scores at least as high as what is right. Tied: exactly as high, which counts as fooled "
        "too. Held: what is right scores higher."
    )
    return choose("Outcome", "outcome", options, "fooled", segments=True, help_=help_)
