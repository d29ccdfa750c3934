"""Which cases to look at: pickers for everything that `views.Filter` knows, each named by the URL."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import Questions, choose, counts, plain, search, store, view
from vlprobe.render.words import movement_kinds, value_label
from vlprobe.storage import annotations
from vlprobe.views.filter import Filter
from vlprobe.views.paired_outcomes import bucket

SORTS = {"worst": "Most fooled first", "closest": "Closest calls first", "best": "Best held first"}
SORTS_MOVED = {"worst": "Moved most first", "best": "Moved least first"}
BESIDE = {"difference": "Largest difference first"}
LAST = {"dataset": "In the dataset's order"}
MORE = ("type", "rule", "tag", "words", "tagged")
TIES = "Fooled: what is wrong scores at least as high as what is right; a tie counts as fooled."


def filters(asked: Questions) -> Filter:
    """The pickers, and the filter that they make."""
    known = view(views.estimates.choices, asked.question_set)
    columns = st.columns(3 if len(asked.models) > 1 else 2)
    with columns[0]:
        model = choose(
            "Model", "model", {name: name for name in asked.models}, asked.models[0], always=True
        )
    with columns[1]:
        there = set(known["kind"])
        kinds = {
            kind: words for kind, words in views.runs.kinds(asked.probe).items() if kind in there
        }
        kind = choose("Kind of question", "kind", kinds, next(iter(kinds)))
    other = ""
    if len(asked.models) > 1:
        with columns[2]:
            others = {name: name for name in asked.models if name != model}
            help_ = "Another model's answers to the same cases: who of the two is fooled, and how far apart they are."
            other = choose("Beside", "other", {"": "Nobody", **others}, help_=help_)
    own = known[known["kind"] == kind]
    with st.expander("More filters", expanded=any(name in st.query_params for name in MORE)):
        chosen = _more(asked, Filter(model, kind, outcome="all", other=other), own)
    if kind not in movement_kinds():
        chosen = (
            bucket(chosen, buckets(asked, chosen))
            if other
            else replace(chosen, outcome=_outcome(asked, chosen))
        )
    return ordered(chosen)


def ordered(chosen: Filter) -> Filter:
    """The filter with the order that the URL names."""
    orders = _orders(chosen)
    order = st.query_params.get("sort", "")
    return replace(chosen, sort=order if order in orders else next(iter(orders)))


def _more(asked: Questions, chosen: Filter, known: pd.DataFrame) -> Filter:
    columns = st.columns(2)
    with columns[0]:
        subtype = _any("Type", "type", known.groupby("subtype")["n_cases"].sum().to_dict())
    with columns[1]:
        own = known[known["subtype"] == subtype] if subtype else known
        rule = _any("Rule", "rule", own.groupby("rule")["n_cases"].sum().to_dict())
    with columns[0]:
        tags = {
            value: value.replace("=", ": ", 1)
            for value in view(views.estimates.tag_values, asked.question_set)
        }
        tag = choose("Tag of the dataset", "tag", {"": "Any", **tags}, disabled=not tags)
    with columns[1]:
        contains = search("Caption contains", "words", "such as: bench")
    with columns[0]:
        said = annotations.read(store(), asked.key).tags
        ours = {name: f"{name} ({count:,})" for name, count in said.items()}
        tagged = choose("Tag of yours", "tagged", {"": "Any", **ours}, disabled=not ours)
    return replace(chosen, subtype=subtype, rule=rule, tag=tag, contains=contains, tagged=tagged)


def sorting(chosen: Filter) -> str:
    """The order of the cards."""
    orders = _orders(chosen)
    return choose("Order", "sort", orders, next(iter(orders)))


def _orders(chosen: Filter) -> dict[str, str]:
    """What cards can be ordered by; the first is what they are ordered by unless somebody chose."""
    return (
        (BESIDE if chosen.other else {})
        | (SORTS_MOVED if chosen.kind in movement_kinds() else SORTS)
        | LAST
    )


def _any(label: str, name: str, counts: dict[str, int]) -> str:
    """A picker with "any" first; each choice says how many cases it has."""
    options = {
        value: f"{value_label(value)} ({count:,})" for value, count in counts.items() if value
    }
    return choose(label, name, {"": "Any", **options})


def _outcome(asked: Questions, chosen: Filter) -> str:
    counted = counts(asked, chosen)
    options = {
        "fooled": f"Fooled {counted['fooled']:,}",
        "tied": f"Tied {counted['tied']:,}",
        "held": f"Held {counted['held']:,}",
        "all": f"All {counted['all']:,}",
    }
    help_ = f"{TIES} Tied: exactly as high. Held: what is right scores higher."
    return choose("Outcome", "outcome", options, "fooled", segments=True, help_=help_)


def buckets(asked: Questions, chosen: Filter) -> str:
    """Who of two models is fooled. Without a choice, where only the first is; all of a marked area."""
    counted = view(views.paired_outcomes.buckets, asked.question_set, chosen)
    options = {
        "all": f"All {counted['all']:,}",
        "only_first": f"Only {plain(chosen.model)} fooled {counted['only_first']:,}",
        "only_second": f"Only {plain(chosen.other)} fooled {counted['only_second']:,}",
        "both_fooled": f"Both fooled {counted['both_fooled']:,}",
        "both_held": f"Both held {counted['both_held']:,}",
    }
    first = next(
        name for name in ("only_first", "only_second", "all") if counted[name] or name == "all"
    )
    return choose(
        "Cases", "bucket", options, "all" if chosen.within else first, segments=True, help_=TIES
    )
