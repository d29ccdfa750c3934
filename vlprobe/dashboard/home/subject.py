"""The subject of Home: a question set, a kind of lie that can be seen, and the selected model."""

from collections import Counter
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.navigation import address
from vlprobe.dashboard.state import PageSubject, carried, view
from vlprobe.registry import model_order
from vlprobe.render.words import movement_kinds


@dataclass(frozen=True)
class Link:
    """A page and what its address says."""

    page: str
    query: dict[str, str]

    @property
    def href(self) -> str:
        """The address, relative to the dashboard's own."""
        return f"{address(self.page)}?{urlencode(self.query)}" if self.query else address(self.page)


def page_link(subject: PageSubject, page: str, **query: str) -> Link:
    """Return a link to a page about the same subject; empty parameters are left out."""
    parameters = {"set": subject.key, "model": subject.model, "kind": subject.kind} | query
    return Link(page, {name: value for name, value in parameters.items() if value})


def home_subject(subject: PageSubject) -> PageSubject:
    """Return the subject with the URL's model and kind if Home can show them, else the last ones viewed, else the
    model with most results and the kind that people see best.
    """
    kinds = view(views.showcase.kinds, subject.question_set)
    # A kind that only moves cannot fool a model: Home shows it if there is no other.
    kind = st.query_params.get("kind", "") or carried("kind", kinds, "")
    kind = kind if kind in kinds and kind not in movement_kinds() else kinds[0]
    models = view(views.showcase.headline_models, subject.question_set)
    model = st.query_params.get("model", "") or carried("model", models, "")
    return replace(subject, kind=kind, model=model if model in models else first_model(models))


def first_model(models: tuple[str, ...]) -> str:
    """Return the model with most results; of several the first as pages list them."""
    n_runs = Counter(view(views.runs.runs)["model"])
    return min(models, key=lambda name: (-n_runs[name], model_order(name)))
