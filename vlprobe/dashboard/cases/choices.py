"""Pickers for pages with cards: the cases of two models, and their order."""

from dataclasses import replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.cases.sentence import picker_width
from vlprobe.dashboard.state import PageSubject, choose, model_name, plain, view
from vlprobe.render.words import movement_kinds
from vlprobe.views.filter import Filter

ORDERS = {
    "worst": "Most fooled first",
    "closest": "Closest calls first",
    "best": "Least fooled first",
}
BY_MODELS = {"models": "Most models fooled first"}
ORDERS_MOVED = {"worst": "Moved most first", "best": "Moved least first"}
BETWEEN_TWO = {"difference": "Largest difference first"}
IN_ORDER = {"dataset": "In the dataset's order"}
TIES = "Fooled: the wrong one scores at least as high as the true one; a tie counts as fooled."


def pick_bucket(stored: PageSubject, case_filter: Filter) -> str:
    """Pick the model of two that is fooled. The default is only the first; for a marked area, all."""
    counted = view(views.paired_outcomes.buckets, stored.question_set, case_filter)
    model, second = (plain(model_name(name)) for name in (case_filter.model, case_filter.other))
    options = {
        "all": f"All {counted['all']:,}",
        "only_first": f"Only {model} fooled {counted['only_first']:,}",
        "only_second": f"Only {second} fooled {counted['only_second']:,}",
        "both_fooled": f"Both fooled {counted['both_fooled']:,}",
        "both_held": f"Neither fooled {counted['both_held']:,}",
    }
    fullest = next(
        name for name in ("only_first", "only_second", "all") if counted[name] or name == "all"
    )
    default = "all" if case_filter.within else fullest
    return choose("Cases", "bucket", options, default, segments=True, help_=TIES)


def orders(stored: PageSubject, case_filter: Filter) -> dict[str, str]:
    """Return the orders of the cards; the first is the default. Answers without scores have no order
    by margin.
    """
    if case_filter.kind in movement_kinds():
        return (BETWEEN_TWO if case_filter.other else {}) | ORDERS_MOVED | IN_ORDER
    models = filter(None, (case_filter.model, case_filter.other))
    if not all(stored.question_set.run(model).is_scored for model in models):
        return BY_MODELS | IN_ORDER
    return (BETWEEN_TWO if case_filter.other else {}) | ORDERS | BY_MODELS | IN_ORDER


def with_order(stored: PageSubject, case_filter: Filter) -> Filter:
    """The filter with the order that the URL names."""
    possible = orders(stored, case_filter)
    order = st.query_params.get("sort", "")
    return replace(case_filter, sort=order if order in possible else next(iter(possible)))


def draw_order(stored: PageSubject, case_filter: Filter, suffix: str = "") -> None:
    """The picker of the order; a change of the other filters may take an order away."""
    possible = orders(stored, case_filter)
    default = next(iter(possible))
    if suffix:
        choose("Order", "sort", possible, default, suffix=suffix)
    else:
        choose(
            "Order",
            "sort",
            possible,
            default,
            bare=True,
            width=picker_width(possible[case_filter.sort]),
        )
