"""Embeddings of a question set's pictures and captions by one encoder: a map, a search, and similar pictures.

Embeddings that a run stored are read. Missing ones are computed, without a press only by models that load at once.
"""

import contextlib
import importlib
import importlib.util
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from vlprobe import registry, views
from vlprobe.dashboard.chart import selectable_chart, selected
from vlprobe.dashboard.components import component
from vlprobe.dashboard.loaded import is_loaded, load_player, loads_at_once, ready_player
from vlprobe.dashboard.state import (
    PageSubject,
    attempt,
    choose,
    counts,
    model_name,
    plain,
    quiet,
    store,
    view,
    write_choice,
)
from vlprobe.errors import VlprobeError
from vlprobe.models import published
from vlprobe.render import charts
from vlprobe.render.sentences import shorten
from vlprobe.render.wall import value_text
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import access
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture
from vlprobe.views.filter import (
    Filter,
    is_ordered,
    region_cases,
    region_label,
    region_text,
)
from vlprobe.views.points import MOST_POINTS, Points, Side, hexagons, project

LEAST_POINTS = 3  # of a map
N_NEAREST = 24  # maximum number of pictures that a search shows
SEARCHED = "pictures like “{}”"  # label of a search's result
SEARCH_LENGTH, MODEL_LENGTH = 40, 30  # letters of its text, and of the model's name
REGION = "searched_region"  # session key: the region when the search was drawn last
PREVIEW = "map_preview"  # key of the component that previews and opens marks
OPENED = "map_opened"  # session key: whether a mark was clicked, so that the whole page reruns
COLORS = {"share": "Share fooled", "n_models": "Models fooled", "split": "Disagreement"}
MOST_SHARE = 0.5  # of the strongest color
LAYOUTS = {"pca": "PCA", "umap": "UMAP"}
LEAST_CASES, LEAST_RATIO, MOST_VALUES = 5, 1.5, 4  # of a value that is more frequent in a region
EYE = (
    "A region picked by eye can look unusual by chance. Check the pattern on other pictures "
    "before you report it."
)
# 500 drawn scenes take 10 s of CPU on a busy machine, 2.3 s if stored, and each press draws the page again
_embeddings = SingleFlightCache(256 << 20, lambda array: array.nbytes)


def encoders(subject: PageSubject) -> list[str]:
    """Return the models of a question set that may embed its pictures, the selected model first."""
    names = [name for name in subject.models if may_embed(name)]
    return sorted(names, key=lambda name: name != subject.model)


def may_embed(name: str) -> bool:
    """Return whether a model may have embeddings, judging by its name."""
    if registry.is_control(name) or name.startswith(f"{published.PREFIX}:"):
        return False
    with contextlib.suppress(VlprobeError):
        return registry.parse_name("models", name).capabilities is None
    return False


def ready_encoder(subject: PageSubject) -> str:
    """Return the encoder that the URL names, or else the first one, if it is loaded or loads at once; otherwise ""."""
    names = encoders(subject)
    linked = st.query_params.get("encoder", "")
    name = linked if linked in names else next(iter(names), "")
    return name if name and is_ready(name) else ""


def is_ready(name: str) -> bool:
    """Return whether a model is an encoder that is loaded or loads at once. Matching heads without embeddings and
    controls are not encoders.
    """
    if not may_embed(name):
        return False
    if is_loaded(name):
        return load_player(name).model.capabilities.embeds_images
    return loads_at_once(name)


def _all_points(subject: PageSubject, side: Side) -> Points:
    """Return the points of all cases of the page's kind, so that filters move no point."""
    every = Filter(subject.model, subject.kind, outcome="all")
    return view(views.points.points, subject.question_set, every, side)


def _vectors(encoder: str, side: Side, names: Sequence[str]) -> np.ndarray:
    """Return the L2-normalized embeddings of pictures or captions by a loaded encoder, shape (n, dim)."""
    folder = None if access.read_only() else store().root / "embeddings"
    inputs = list(map(Picture.from_name, names)) if side == "picture" else names
    compute = partial(load_player(encoder).embeddings, folder, inputs)
    return _embeddings.get((store().address, encoder, side, tuple(names)), compute)


def _wait(encoder: str, side: Side, n: int) -> contextlib.AbstractContextManager:
    """Show a spinner while pictures or captions are embedded: 500 drawn scenes take 10 s on a busy machine."""
    once = "This is done only once; later maps and searches are faster."
    return st.spinner(f"{model_name(encoder)} is embedding {n:,} {side}s. {once}")


def _places(encoder: str, side: Side, names: Sequence[str], layout: str) -> np.ndarray:
    """Return the place of each picture or caption on the map, shape (n, 2)."""

    def compute() -> np.ndarray:
        vectors = _vectors(encoder, side, names)
        if layout == "pca":
            return project(vectors)
        reducer = importlib.import_module("umap").UMAP(metric="cosine", random_state=0)
        return np.asarray(reducer.fit_transform(vectors))

    return _embeddings.get((store().address, encoder, side, tuple(names), layout), compute)


def count_nearest(subject: PageSubject) -> int:
    """Return the number of pictures that a search shows: at most a quarter of all, because more would narrow little."""
    return min(N_NEAREST, max(2, len(_all_points(subject, "picture").names) // 4))


def show_nearest(
    subject: PageSubject,
    encoder: str,
    label: str,
    text: str,
    picture: str = "",
    changes: Mapping[str, str | None] = MappingProxyType({}),
) -> None:
    """Filter the wall to the pictures whose embeddings are nearest to a text or, if it is given, a picture. `label`
    names them, and `changes` are other changes of the URL's parameters. The picture itself is not among them.
    """
    points = _all_points(subject, "picture")
    if not points.names:
        return
    with _wait(encoder, "picture", len(points.names)):
        vectors = _vectors(encoder, "picture", points.names)
    itself = points.names.index(picture) if picture in points.names else -1
    if itself >= 0:
        scores = vectors @ vectors[itself]
    else:
        query = load_player(encoder).texts([text])[0]
        # Some encoders have several vectors per picture
        scores = (vectors.reshape(len(vectors), -1, len(query)) @ query).max(axis=1)
    ranked = np.argsort(-scores, kind="stable")
    nearest = ranked[ranked != itself][: count_nearest(subject)]
    if not len(nearest):
        return
    cases_of = [points.cases[points.point_of == point] for point in nearest]
    similarities = [*np.repeat(scores[nearest], list(map(len, cases_of))), np.median(scores)]
    label = f"{label} by {shorten(model_name(encoder), MODEL_LENGTH)}"
    region = region_text(label, np.concatenate(cases_of), True, similarities)
    regions = [region] if "region" in changes else [*linked_regions(is_search=False), region]
    write_choice({**changes, "region": regions, "sort": "likeness"})


def linked_regions(*, is_search: bool) -> list[str]:
    """Return the search or the selection that the URL names. A new one of one sort leaves the other, and both hold."""
    return [text for text in st.query_params.get_all("region") if is_ordered(text) == is_search]


def draw_search(subject: PageSubject) -> None:
    """Draw a search for pictures by what they show, if an encoder of the question set is ready."""
    encoder = ready_encoder(subject)
    if not encoder:
        return

    def find() -> None:
        if text := st.session_state["shows"].strip():
            attempt(show_nearest, subject, encoder, SEARCHED.format(text[:SEARCH_LENGTH]), text)
        else:
            write_choice({"region": linked_regions(is_search=False)})

    region = "".join(linked_regions(is_search=True))
    if st.session_state.get(REGION) != region or "shows" not in st.session_state:
        # A link has a search, or the search was removed
        before, after = SEARCHED.split("{}")
        label = region_label(region)
        text = label.removeprefix(before).rpartition(after)[0] if label.startswith(before) else ""
        if st.session_state.get("shows", "").strip()[:SEARCH_LENGTH] != text:
            st.session_state["shows"] = text
    st.session_state[REGION] = region
    st.text_input(
        f"Pictures that show (by {plain(model_name(encoder))})",
        key="shows",
        placeholder="such as: a kitchen",
        max_chars=200,
        on_change=find,
        help=f"Shows the {N_NEAREST} pictures (at most a quarter of all) whose embeddings by "
        f"{plain(model_name(encoder))} are closest to that of the text, if their cases pass the other filters.",
    )


def draw_map(subject: PageSubject, case_filter: Filter, side: Side, encoder: str) -> None:
    """Draw a map of the filtered cases' pictures or captions. Selecting points filters the cases."""
    options = LAYOUTS if importlib.util.find_spec("umap") else {"pca": LAYOUTS["pca"]}
    layout = "pca"
    if len(options) > 1:
        layout = choose("Layout", "layout", options, "pca", segments=True)
    color = choose("Color", "color", COLORS, "share", segments=True, bare=True)
    if not is_ready(encoder) and ready_player(encoder, "encode_images", "pictures") is None:
        return
    points = view(views.points.points, subject.question_set, replace(case_filter, region=""), side)
    every = _all_points(subject, side).names
    if len(points.names) < LEAST_POINTS:
        quiet(f"A map needs at least {LEAST_POINTS} {side}s of these cases on this machine.")
        return
    row_of = {name: row for row, name in enumerate(every)}
    try:
        with _wait(encoder, side, len(every)):
            places = _places(encoder, side, every, layout)[[row_of[name] for name in points.names]]
    except VlprobeError as error:
        quiet(str(error))
        return
    is_grouped = len(places) > MOST_POINTS
    centers, mark_of = hexagons(places) if is_grouped else (places, np.arange(len(places)))
    # Another key for each region, so that only the URL's region is drawn and none is left over from the mouse
    key = f"points_{zlib.crc32(''.join(case_filter.region).encode())}"
    selectable_chart(
        partial(_figure, subject, points, centers, mark_of, color, case_filter.region),
        key,
        f"Map of {len(points.names):,} {side}s by their embeddings. The wall shows the same cases.",
        partial(_select, key, points, mark_of, side),
        carried=f"{encoder} {side}",
    )
    extent = f"{len(points.names):,} {side}s" + ", grouped into hexagons" * is_grouped
    n_checked = view(views.rows.with_pictures, subject.question_set, subject.kind)[1]
    if side == "picture" and not n_checked:
        extent += f". There are more than {views.rows.MOST_FILES:,} pictures, so this is a sample"
    where = f"{LAYOUTS[layout]} of {model_name(encoder)}'s embeddings"
    how = "Click a hexagon" if is_grouped else "Click a point to open its case"
    quiet(
        f"{how}, or drag around several to see their cases. {extent}. {where}; distances between groups mean little."
    )
    _draw_preview(subject, case_filter, points, mark_of, side, key)
    if case_filter.region:
        _draw_frequent(subject, case_filter)
        quiet(EYE)


def _figure(
    subject: PageSubject,
    points: Points,
    centers: np.ndarray,
    mark_of: np.ndarray,
    color: str,
    regions: Sequence[str],
) -> go.Figure:
    """Draw the map. `mark_of` is the mark of each point: itself or a hexagon, whose value is the mean of its points."""
    values = getattr(points, color)
    means = views.points.means(values, mark_of, len(centers))
    sizes = np.bincount(mark_of, minlength=len(centers))
    is_grouped = len(centers) < len(mark_of)
    texts = []
    for mark, (mean, size) in enumerate(zip(means.tolist(), sizes.tolist(), strict=True)):
        value = {
            "share": f"{100 * mean:.0f} % fooled",
            "n_models": f"{mean:.1f} models fooled",
            "split": f"models disagree on {100 * mean:.0f} %",
        }[color]
        name = f"{size:,} points" if is_grouped else points.labels[mark]
        texts.append(f"{name} · {'unknown' if math.isnan(mean) else value}")
    inside = None
    if regions:
        cases_inside = np.all(
            [np.isin(points.cases, region_cases(region)) for region in regions], axis=0
        )
        inside = np.bincount(mark_of[points.point_of[cases_inside]], minlength=len(centers)) > 0
    most = max(float(np.nanmax(values, initial=0)), 1.0) if color == "n_models" else MOST_SHARE
    return charts.points.point_map(
        centers, means, texts, COLORS[color], most, inside, sizes if is_grouped else None
    )


@st.fragment
def _draw_preview(
    subject: PageSubject,
    case_filter: Filter,
    points: Points,
    mark_of: np.ndarray,
    side: Side,
    key: str,
) -> None:
    """Draw the picture of the mark under the pointer. A click on a mark opens its case on the wall or, if the mark is a
    hexagon, filters the wall. Moving the pointer reruns only this part.
    """

    def read(name: str) -> int:
        mark = st.session_state[PREVIEW].get(name)
        return mark if isinstance(mark, int) and mark in mark_of else -1

    def open_mark() -> None:
        if (mark := read("open")) < 0:
            return
        st.session_state[OPENED] = True
        if np.count_nonzero(mark_of == mark) > 1:
            _filter_to([mark], points, mark_of, side)
            return
        numbers = points.cases[mark_of[points.point_of] == mark]
        of_mark = replace(case_filter, region=region_text("", numbers))
        for shown in (of_mark, of_mark.any_outcome()):
            cards, _, _ = view(views.wall.wall, subject.question_set, shown, 1, 1)
            if cards:
                st.query_params["case"] = cards[0].id
                return

    if st.session_state.pop(OPENED, False):
        st.rerun()
    mark, source = read("show") if PREVIEW in st.session_state else -1, ""
    if mark >= 0:
        number = int(points.cases[np.argmax(mark_of[points.point_of] == mark)])
        name = view(views.rows.questions, subject.question_set, (number,)).iloc[0]["images"][0]
        source = addresses(store().root, [name])[name]
    values = {"chart": key, "mark": mark, "source": source}
    component("points")(
        key=PREVIEW, data=values, on_show_change=lambda: None, on_open_change=open_mark
    )


def _select(key: str, points: Points, mark_of: np.ndarray, side: Side) -> None:
    """Filter the cases to those of the selected marks."""
    marks = [int(number) for (number,) in selected(key)[0]]
    if marks:
        _filter_to(marks, points, mark_of, side)


def _filter_to(marks: Sequence[int], points: Points, mark_of: np.ndarray, side: Side) -> None:
    """Filter the cases to those of the given marks."""
    is_inside = np.isin(mark_of, marks)
    numbers = points.cases[is_inside[points.point_of]]
    n_inside = np.count_nonzero(is_inside)
    label = f"{n_inside:,} {side}{'' if n_inside == 1 else 's'} on the map"
    write_choice({"region": [region_text(label, numbers), *linked_regions(is_search=True)]})


def _draw_frequent(subject: PageSubject, case_filter: Filter) -> None:
    """Say which changes, words and tags are more frequent in the region than elsewhere."""
    of_region = case_filter.any_outcome()
    both = of_region, replace(of_region, region="")
    every_facet = (view(views.facets.facets, subject.question_set, chosen) for chosen in both)
    inside, everywhere = (
        {
            (facet.name, row.value): row.n_asked
            for facet in facets
            if facet.name != "tagged"  # a tag of the region says nothing new about it
            for row in facet.rows
        }
        for facets in every_facet
    )
    n_inside, n_all = (counts(subject, chosen)["all"] for chosen in both)
    ratios = {
        value: (count / n_inside) / (everywhere[value] / n_all)
        for value, count in inside.items()
        if count >= LEAST_CASES and everywhere.get(value)
    }
    frequent = [value for value in ratios if ratios[value] >= LEAST_RATIO]
    frequent = sorted(frequent, key=lambda value: -ratios[value])[:MOST_VALUES]
    words = [
        f"{value_text(name, value)} ({inside[name, value]:,} of {everywhere[name, value]:,})"
        for name, value in frequent
    ]
    if words:
        quiet(f"More often here: {', '.join(words)}.")
