"""Both answers to one triplet as a table of two by two: by only the texts, and with the picture."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, export
from vlprobe.dashboard.state import PageSubject, model_name, quiet, view
from vlprobe.dashboard.tables import show
from vlprobe.render.html.elements import breakable, column_heads, mark, tag
from vlprobe.render.numbers import with_interval
from vlprobe.render.words import value_label
from vlprobe.views.crossed import OUTCOMES, PICTURES, TEXTS
from vlprobe.views.filter import Filter

CELLS = [(texts, pictures) for pictures in OUTCOMES for texts in OUTCOMES]
HEADS = {
    ("fooled", "fooled"): "Both wrong",
    ("held", "fooled"): "Texts right, picture wrong",
    ("fooled", "held"): "Texts wrong, picture right",
    ("held", "held"): "Both right",
}


def both_sides(stored: PageSubject) -> None:
    """A row a model and subset, a column for each pair of outcomes; a number opens its cases.
    Nothing is drawn if no triplet has answers on both sides.
    """
    table = view(views.crossed.crossed_outcomes, stored.question_set)
    if table.empty:
        return
    st.header("Both answers to one triplet")
    counts = {
        (model, subset, texts, pictures): (n_cases, share, low, high)
        for model, subset, texts, pictures, n_cases, share, low, high, _ in table.itertuples(
            index=False
        )
    }
    subsets = sorted(table["slice"].unique())
    lines = []
    for name in subsets if len(subsets) > 2 else subsets[:1]:
        for model in stored.models:
            if (model, name, *CELLS[0]) not in counts:
                continue
            cells = "".join(
                _cell(stored, model, name, cell, counts[model, name, *cell]) for cell in CELLS
            )
            called = f"{mark(stored.looks[model])} {breakable(model_name(model))}"
            subset = tag("td", value_label(name) if name else "All")
            lines.append(f'<tr><th scope="row">{called}</th>{subset}{cells}</tr>')
    heads = column_heads(["Model", "Subset", *(HEADS[cell] for cell in CELLS)])
    show("Both answers to one triplet", heads, lines)
    quiet(
        "How to read it: each triplet is asked twice, by its three texts alone and beside its "
        "picture, and counted once. Texts wrong and picture right is what VISLA's figure 10 shows; "
        "both wrong its figure 9, whose false captions are nearer than both true ones. A tie is "
        "wrong. Below a number its share and the 95 % interval of that. A number opens its triplets; the "
        "figures print examples and no counts."
    )
    export.download(table, "both_sides", "Both answers as CSV")


def _cell(
    stored: PageSubject,
    model: str,
    subset: str,
    cell: tuple[str, str],
    numbers: tuple[int, float, float, float],
) -> str:
    """A count with its share and interval, and the way to its cases."""
    texts, pictures = cell
    n_cases, share, low, high = numbers
    words = f"{n_cases:,}"
    if n_cases:
        of_cell = Filter(
            model, PICTURES, subtype=subset, outcome=pictures, crossed=f"{TEXTS}={texts}"
        )
        words = f'<a href="{case_links.address(stored, of_cell)}">{words}</a>'.replace("&", "&amp;")
    return f"<td>{words}<br><small>{with_interval(share, low, high, 'rate')}</small></td>"
