"""The pictures that the Playground offers: those of a dataset that was run, or
the demo's; a few to press.
"""

import contextlib
from collections.abc import Mapping

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.state import choose, dataset_name, plain, store, view
from vlprobe.errors import VlprobeError
from vlprobe.runs import exhibits
from vlprobe.runs.exhibits import Exhibit
from vlprobe.scoring import thumbnails

SAMPLES = 10  # pictures to press
DEMO = "demo"


def pick_shelf() -> dict[str, Exhibit]:
    """The pictures to pick from: the demo's, or those of a dataset that was run;
    the URL can name no other.
    """
    stored = view(views.runs.runs)["dataset"].unique().tolist()
    names = [DEMO, *sorted(name for name in stored if not name.startswith(DEMO))]
    linked = st.query_params.get("from", "")
    if linked not in names and linked in stored:
        names.append(linked)
    options = {name: dataset_name(name) for name in names}
    name = choose("Pictures of", "from", options, DEMO) if len(names) > 1 else DEMO
    root = str(store().root)
    try:
        shelf = _exhibits(name, root)
    except VlprobeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        shelf = _exhibits(DEMO, root)
    every = {exhibit.id: exhibit for exhibit in shelf}
    item = st.query_params.get("item", "")
    further = _further(name, root, item) if item and item not in every else None
    return every | {further.id: further} if further else every


@st.cache_resource(
    max_entries=50, show_spinner="Opening the picture"
)  # reads the data set's annotations
def _further(dataset: str, root: str, item: str) -> Exhibit | None:
    """A picture that a link names and that is not among the first of its dataset."""
    with contextlib.suppress(VlprobeError):
        return exhibits.exhibit(dataset, store().root, item)
    return None


def dataset_of_shelf() -> str:
    """The dataset whose pictures are on the shelf: one that was run, or the demo."""
    name = st.query_params.get("from", DEMO)
    return name if name in set(view(views.runs.runs)["dataset"]) else DEMO


@st.cache_resource(
    max_entries=3, show_spinner="Opening the pictures"
)  # 8 ms of the demo; reads annotations
def _exhibits(dataset: str, root: str) -> tuple[Exhibit, ...]:
    return exhibits.shelf(dataset, store().root)


def take_sample() -> None:
    """A sample that was pressed becomes the picture."""
    pressed = (st.session_state.get("samples") or {}).get("open")
    if pressed:
        st.query_params["item"] = str(pressed)
        st.session_state["play_fresh"] = True


def draw_samples(shelf: Mapping[str, Exhibit]) -> None:
    """A few pictures of the shelf to press."""
    step = max(1, len(shelf) // SAMPLES)
    cards = [
        {
            "id": key,
            "name": shelf[key].captions[0],
            "tip": shelf[key].captions[0],
            "frames": [
                {"source": _sample(dataset_of_shelf(), key, shelf[key]), "name": key, "style": ""}
            ],
            "badge": "",
            "texts": [],
            "lines": [],
            "verdicts": [],
            "count": "",
            "notes": [],
        }
        for key in list(shelf)[::step][:SAMPLES]
    ]
    values = {
        "label": "Samples",
        "strip": True,
        "cards": cards,
        "heading": "",
        "note": "",
        "legend": [],
    }
    component("wall")(key="samples", data=values, on_open_change=lambda: None)


@st.cache_data(max_entries=400, show_spinner=False)  # 2 ms each, for eight samples in every run
def _sample(dataset: str, item: str, _exhibit: Exhibit) -> str:
    """A small picture of the shelf as a data address, kept by its dataset and id; ""
    where it cannot be read.
    """
    try:
        return thumbnails.data_address(thumbnails.encode(_exhibit.open()))
    except VlprobeError:
        return ""
