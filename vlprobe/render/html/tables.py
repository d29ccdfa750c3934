"""The tables of numbers as HTML: sizes that suit numbers with intervals, readable by screen readers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from vlprobe import views
from vlprobe.render import numbers as render_numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, mark, table, tag
from vlprobe.render.words import movement_kinds
from vlprobe.types import Metric
from vlprobe.views.leaders import Leader

BOLD = (
    "Bold: better than every other model here by more than chance. Where models are tied or nothing is above chance, "
    "nobody is in bold; a control, or a model that failed a check of being better than chance, never is."
)
ARROWS = {"up": "↑", "down": "↓", "none": ""}


def metrics(probe: str) -> dict[str, Metric]:
    """The probe's metrics by name; where two share a label, it says which kind of question is meant."""
    known = views.runs.metrics(probe)
    labels = [metric.label for metric in known.values()]
    words = views.runs.kinds(probe)
    return {
        name: replace(metric, label=f"{words[metric.kinds[0]].partition(':')[0]}: {metric.label}")
        if labels.count(metric.label) > 1
        else metric
        for name, metric in known.items()
    }


def told(metric: Metric, unit: str, chance: float) -> str:
    """A metric's unit, which way is better and what guessing gets, in a line.

    >>> from vlprobe import registry
    >>> told(next(m for m in registry.load_probe("lgip").metrics if m.name == "positive_rate"), "rate", 0.5)
    'in % · ↑ higher is better · guessing gets 50 %'
    """
    named = {"rate": "in %", "spread": "in spreads"}.get(unit, unit)
    way = f"{ARROWS[metric.direction]} {render_numbers.WAYS[metric.direction]}".strip()
    guessed = f"{100 * chance:.3g} %" if unit == "rate" else f"{chance:g}"
    return " · ".join(
        filter(None, (named, way, "" if math.isnan(chance) else f"guessing gets {guessed}"))
    )


def explained(metric: Metric, unit: str, chance: float, folded: bool) -> str:
    """The head of a metric's row: its name, what `told` says, and what it means and where it is from.

    Args:
        metric: Which one.
        unit: What `charts.unit_of` says of it.
        chance: What guessing gets; NaN where that is not defined.
        folded: Whether the meaning is shown when somebody asks for it, by a finger or a key.
    """
    means = tag("small", f"{metric.help} Source: {metric.source}.")
    means = (
        f"<details><summary><small>What it is</small></summary>{means}</details>"
        if folded
        else f"<br>{means}"
    )
    return f"{tag('span', metric.label)}<br>{tag('small', told(metric, unit, chance))}{means}"


def headline(
    numbers: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    models: Sequence[str],
    looks: Looks,
    chances: Mapping[str, float],
    leaders: Mapping[str, Leader],
) -> tuple[str, list[str]]:
    """A row a metric, a column a model: the value, its 95 % interval, n, and ties; and what nobody was asked.

    Args:
        numbers: What `views.estimates` returns for the whole question set.
        metrics: The probe's metrics by name, in order.
        unit: "cosine" or "spread".
        models: Columns, in order.
        looks: What `charts.styles` returns.
        chances: What guessing gets on each metric.
        leaders: What `views_leaders.leaders` returns; who leads is set in bold.
    """
    cells = {(row.model, row.metric): row for row in numbers.itertuples()}
    head = tag("th", "Metric", scope="col")
    head += "".join(
        f'<th scope="col">{mark(looks[model])} {breakable(model)}</th>' for model in models
    )
    rows, unasked = [], []
    for name, metric in metrics.items():
        if not numbers.loc[numbers["metric"] == name, "n_items"].any():
            unasked.append(metric.label)
            continue
        own = render_numbers.unit_of(metric, unit)
        first = explained(metric, own, chances[name], folded=False)
        best = leaders[name].models[0] if leaders[name].state == "leads" else ""
        tells = not set(metric.kinds) <= movement_kinds()
        row = "".join(
            _cell(cells.get((model, name)), own, model == best, tells) for model in models
        )
        rows.append(f'<tr><th scope="row" class="vp-metric">{first}</th>{row}</tr>')
    return table("Headline numbers of each model", head, rows), unasked


def _cell(found: object | None, unit: str, best: bool, tells: bool) -> str:
    if found is None or math.isnan(found.value):
        return f"<td>-<br><small>n = {found.n_items if found else 0:,}</small></td>"
    value = tag(
        "strong" if best else "span", render_numbers.number(found.value, unit), class_="value"
    )
    around = render_numbers.interval(found.low, found.high, unit)
    counted = f"n = {found.n_items:,}" + (f" · {found.ties:,} tied" if found.ties and tells else "")
    small = f"{around}<br>{counted}" if around else counted
    return f"<td>{value}<br><small>{small}</small></td>"


def facts(known: Mapping[str, object]) -> str:
    """What is known of the questions themselves: which edits were left out and why, what the data gets wrong, notes.

    Args:
        known: What `views.facts` returns.
    """
    dropped = sorted(known["dropped"].items(), key=lambda pair: -pair[1])
    wrong = [(one["meaning"], f"{one['count']:,} of {one['of']:,}") for one in known["findings"]]
    parts = [
        _counts(
            "Left out, because it would not be a fair question",
            [(why, f"{count:,}") for why, count in dropped],
        ),
        _counts("Found in the data, and to be kept in mind beside every score", wrong),
    ]
    return "".join([*parts, *(tag("p", note) for note in known["notes"])])


def _counts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    body = [f"<tr>{tag('th', text, scope='row')}{tag('td', count)}</tr>" for text, count in rows]
    head = tag("th", title, scope="col") + tag("th", "Times", scope="col")
    return table(title, head, body or ["<tr><td>Nothing</td></tr>"])
