"""Compare's order of cards and the picker of who is fooled; all other filters are in `explore.filters`."""

from dataclasses import replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import Questions, choose, plain, view
from vlprobe.render.words import movement_kinds
from vlprobe.views.filter import Filter

SORTS = {"worst": "Most fooled first", "closest": "Closest calls first", "best": "Best held first"}
SORTS_MOVED = {"worst": "Moved most first", "best": "Moved least first"}
BESIDE = {"difference": "Largest difference first"}
LAST = {"dataset": "In the dataset's order"}
TIES = "Fooled: what is wrong scores at least as high as what is right; a tie counts as fooled."


def ordered(chosen: Filter) -> Filter:
    """The filter with the order that the URL names."""
    orders = _orders(chosen)
    order = st.query_params.get("sort", "")
    return replace(chosen, sort=order if order in orders else next(iter(orders)))


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
