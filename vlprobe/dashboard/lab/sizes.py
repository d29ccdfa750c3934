"""Does accuracy grow with a model, or with what it was trained on?"""

from functools import partial

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.chart import ARMS, chart
from vlprobe.dashboard.state import PageSubject, choose, model_name, quiet, view
from vlprobe.render import charts
from vlprobe.render.words import value_label
from vlprobe.views.sizes import ACCURACIES, TABLES

AXES = {"parameters": "Parameters", "samples": "Training data"}


def accuracy_over_size(stored: PageSubject) -> None:
    """Draw VISLA's printed models and the user's over their size or their data."""
    names = {name: stored.metrics[name].label for name in ACCURACIES}
    subsets = {name: value_label(name) for name in TABLES}
    with st.container(horizontal=True):
        metric = choose("Measured by", "accuracy", names, ACCURACIES[0], segments=True)
        subset = choose("Subset of triplets", "size_subset", subsets, "generic", segments=True)
        across = choose("Over", "over", AXES, "parameters", segments=True)
    table = view(views.sizes.sizes, stored.question_set, metric, subset)
    called = {model: model_name(model) for model in stored.models}
    chance = stored.metrics[metric].chance
    make = partial(charts.sizes.sizes, table, across, stored.looks, called, chance)
    chart(make, "sizes", f"{names[metric]} over {AXES[across].lower()}, a mark a model.")
    unknown = table.loc[(table["source"] == "run") & table[across].isna(), "model"]
    without = f" Not known of {', '.join(map(model_name, unknown))}." if len(unknown) else ""
    quiet(
        "How to read it: hollow and grey are the models that VISLA prints (tables 2, 5, 8 and 9), on "
        "its own triplets; yours are on the triplets of this page. Parameters of yours are counted "
        f"by the doctor, training data is what the paper prints of the same weights.{without} "
        f"On the dotted line a model only guesses. {ARMS.strip()}"
    )
