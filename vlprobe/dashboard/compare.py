"""Two to four models on the same cases: pickers, sentences and numbers, and the cases on which they part.

The URL names the models (`base`, `with`), the marked area of the scatter (`area`, its corners) and the bucket, so that
a link reopens the same cards.
"""

import math

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.chart_panels import inked
from vlprobe.dashboard.filters import buckets, ordered
from vlprobe.dashboard.state import Questions, choose, not_here, picked, plain, quiet, view
from vlprobe.render import charts
from vlprobe.render.html import compare
from vlprobe.render.words import movement_kinds, value_label
from vlprobe.views.compare import SIGNIFICANCE
from vlprobe.views.filter import Filter, parse_corners
from vlprobe.views.paired_outcomes import PairedOutcomes, bucket

MOST = 3  # models beside the baseline
BETWEEN = "|"  # names in the URL
CORNERS = 40  # of a lasso: as many as a link can bear
TOOLS = {"box": "Box", "lasso": "Lasso"}
HOW_TO_READ = (
    "How to read it: a mark is a case. Right of the vertical line {first} is right, above the horizontal line {second} "
    "is. So the top left has what only {first} gets wrong, the bottom right what only {second} does. Drag over marks "
    "to see their cases below."
)
HOW_TO_READ_MOVED = (
    "How to read it: a mark is a case, and its margin is how far the model moved: 0 is best, and nobody is fooled. "
    "Drag over marks to see their cases below."
)


def compared(asked: Questions) -> tuple[str, ...]:
    """Pickers for the baseline and up to three models beside it. With one model there is nothing to compare: stops."""
    if len(asked.models) < 2:
        st.info(
            "One model was asked these questions; to compare takes two.", icon=":material/info:"
        )
        st.page_link("pages/run.py", label="Ask another model", icon=":material/play_circle:")
        st.stop()
    left, right = st.columns([1, 2])
    with left:
        names = {name: name for name in asked.models}
        base = choose("Baseline", "base", names, asked.models[0], always=True)
    others = [name for name in asked.models if name != base]
    chosen = _chosen(asked, others)
    st.query_params["with"] = BETWEEN.join(chosen)
    st.session_state["with"] = chosen
    with right:
        st.multiselect(
            "Compared with it", others, key="with", max_selections=MOST, on_change=_models
        )
    if not chosen:
        st.info(
            f"Nothing is compared with {plain(base)}. Choose one to {MOST} models in the list above.",
            icon=":material/compare_arrows:",
        )
        st.stop()
    return (base, *chosen)


def _chosen(asked: Questions, others: list[str]) -> list[str]:
    """The models that the URL names, in the order of the page; an empty list stays empty, and no list means the first.

    A list that names nobody else who is here counts as none.
    """
    listed = [name for name in st.query_params.get("with", "").split(BETWEEN) if name]
    if gone := [name for name in listed if name not in asked.models]:
        not_here("Compared with it", "with", ", ".join(gone))
    if "with" in st.query_params and not listed:
        return []
    return [name for name in others if name in listed][:MOST] or others[:MOST]


def _models() -> None:
    picked()
    st.query_params["with"] = BETWEEN.join(st.session_state["with"])
    st.query_params.pop("page", None)


def in_words(asked: Questions, table: pd.DataFrame, unit: str) -> None:
    """What the comparison says, for people who do not read tables of p-values."""
    if table["verdict"].eq("").all():
        st.info(
            "Nothing is known of these models on the same questions, so nothing can be compared."
        )
        return
    st.html(compare.in_words(table, asked.metrics, unit, asked.looks, compare.main(asked.probe)))


def differences(asked: Questions, table: pd.DataFrame, unit: str) -> None:
    """Every metric with its paired differences; what p means, below."""
    body, unknown = compare.differences(
        table, asked.metrics, unit, asked.looks, view(views.papers.chances, asked.question_set)
    )
    st.html(body)
    quiet(compare.how_to_read(table))
    if unknown:
        quiet(f"Not asked here, or unknown for these models: {', '.join(unknown)}.")


def margins(asked: Questions, models: tuple[str, ...]) -> Filter:
    """The scatter of two models' margins, who is fooled, and the filter of the cases that are marked."""
    base, *others = models
    known = set(view(views.estimates.choices, asked.question_set)["kind"])
    kinds = {kind: words for kind, words in views.runs.kinds(asked.probe).items() if kind in known}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        other = others[0]
        if len(others) > 1:
            other = choose(f"{base} against", "other", {name: name for name in others}, others[0])
        kind = choose("Kind of question", "kind", kinds, next(iter(kinds)))
    moved = kind in movement_kinds()
    area = corners(st.query_params.get("area", ""))
    chosen = ordered(Filter(base, kind, outcome="all", other=other, within=area))
    points, total = view(views.paired_outcomes.scatter, asked.question_set, base, other, kind)
    if not moved:
        st.markdown(
            _fooled(
                view(views.paired_outcomes.paired_outcomes, asked.question_set, base, other, kind),
                base,
                other,
            )
        )
    left, right = st.columns([5, 2], gap="medium")
    with right:
        tool = choose("Mark an area with a", "tool", TOOLS, "box", segments=True)
        quiet((HOW_TO_READ_MOVED if moved else HOW_TO_READ).format(first=base, second=other))
        if total > len(points):
            quiet(
                f"Drawn: {len(points):,} of {total:,} cases, chosen by lot. An area finds all cases inside it."
            )
        if area:
            inside = view(views.paired_outcomes.buckets, asked.question_set, chosen)["all"]
            st.html(
                f'<p class="vp-marked"><strong>{inside:,}</strong> of {total:,} cases are in the marked area.</p>'
            )
            st.button(
                "Take the area away", key="unmark", icon=":material/ink_eraser:", on_click=_unmark
            )
    with left:
        words = {name: value_label(name) for name in points["subtype"].unique()}
        figure = charts.compare.margins(points, base, other, asked.looks, words, area, tool, moved)
        # A new key for each area: what is drawn is the area of the URL, and no other is left over from the mouse.
        key = BETWEEN.join([base, other, kind, tool, st.query_params.get("area", "")])
        with st.container(key="margins"):
            st.plotly_chart(
                inked(figure),
                key=key,
                alt=f"Margins of {base} against {other}, a mark a case. The choice below leads to the same cases.",
                config={"displayModeBar": False, "scrollZoom": False},
                on_select=lambda: _mark(key),
                selection_mode=("box", "lasso"),
            )
    return chosen if moved else bucket(chosen, buckets(asked, chosen))


def _fooled(found: PairedOutcomes, first: str, second: str) -> str:
    """How often only one of the two is fooled, and whether that may be chance."""
    one, other = found.counts["only_first"], found.counts["only_second"]
    if math.isnan(found.p):
        return ""
    more, less = (second, first) if one < other else (first, second)
    uneven = f"{plain(more)} is fooled more often than {plain(less)}, by more than chance explains"
    word = "These are tied: a split as uneven may be chance" if found.p >= SIGNIFICANCE else uneven
    how = "each case decided by a fair coin (McNemar's exact test)"
    if not found.independent:
        how = "each picture's answers exchanged as a whole by a fair coin (randomization test)"
    ties = [
        f"{plain(name)} {n:,}"
        for name, n in ((first, found.tied_first), (second, found.tied_second))
        if n
    ]
    told = f" Ties, which count as fooled: {', '.join(ties)}." if ties else ""
    told += f" Unknown, and in none of these counts: {found.unknown:,}." if found.unknown else ""
    return (
        f"**{one:,}** cases fool only {plain(first)}, **{other:,}** only {plain(second)}, "
        f"{found.counts['both_fooled']:,} both and {found.counts['both_held']:,} neither. "
        f"**{word}** ({charts.compare.chance(found.p)} for this comparison alone; {how}).{told}"
    )


def corners(text: str) -> tuple[tuple[float, float], ...]:
    """The corners that a URL names: x,y;x,y;... Nothing where it is not that, or too many for a link."""
    found = parse_corners(text)
    return found if len(found) <= CORNERS + 1 else ()


def _mark(key: str) -> None:
    """The area that was drawn goes into the URL: a box by its corners, a lasso by so many of its points."""
    drawn = st.session_state[key]["selection"]
    if drawn["lasso"]:
        xs, ys = drawn["lasso"][-1]["x"], drawn["lasso"][-1]["y"]
        step = -(-len(xs) // CORNERS)
        found = list(zip(xs[::step], ys[::step], strict=True))
    elif drawn["box"]:
        (x, to_x), (y, to_y) = drawn["box"][-1]["x"], drawn["box"][-1]["y"]
        found = [(x, y), (to_x, y), (to_x, to_y), (x, to_y)]
    else:
        return
    st.query_params["area"] = ";".join(f"{x:.5f},{y:.5f}" for x, y in found)
    for name in ("bucket", "page"):
        st.query_params.pop(name, None)


def _unmark() -> None:
    for name in ("area", "page"):
        st.query_params.pop(name, None)
