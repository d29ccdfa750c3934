"""All models of one kind of question, the best first, with brackets around those that cannot be told apart."""

import html
import math
from collections.abc import Mapping, Sequence

from vlprobe.case.card import preferred, wrong_captions
from vlprobe.metrics.blind import METHODS, BlindAccuracy
from vlprobe.metrics.tie_groups import group_letters, group_names
from vlprobe.render.charts.styles import Looks
from vlprobe.render.findings import power_of_ties
from vlprobe.render.html.elements import column_heads, model_label, table, tag
from vlprobe.render.numbers import TOO_FEW, interval, number
from vlprobe.render.sentences import counted, joined
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import PairedTests

MOST_BRACKETS = 12  # more groups have letters only
MEMBER = "border-left:3px solid var(--vp-press);padding-left:6px"
PASSED = "border-left:1px dotted var(--vp-edge)"  # a model between two members of a group


def scorecard(
    tests: PairedTests,
    kind: KindPresentation,
    looks: Looks,
    names: Mapping[str, str],
    blind: BlindAccuracy | None = None,
) -> str:
    """Return the table of all models: share, interval, and a bracket with a letter for each group of ties.

    Args:
        tests: What `views.paired_tests.rank_models` returns.
        kind: How the kind of case is described.
        looks: The look of each model.
        names: Display names of models.
        blind: The best guess without the picture, for a last row.
    """
    groups = tests.tie_groups
    letters = group_letters(groups)
    ordered = [*tests.fit, *(each for each in tests.contestants if not each.is_fit)]
    places = {each.model: place for place, each in enumerate(ordered)}
    share = f"{wrong_captions(kind)} {preferred(kind)}"
    share = "Moved on average" if tests.is_movement else share[:1].upper() + share[1:]
    is_drawn = len(groups) <= MOST_BRACKETS
    columns = len(groups) if is_drawn else 1
    head = column_heads(["Model", share])
    head += f'<th scope="colgroup" colspan="{max(columns, 1)}">Tied</th>'
    rows = []
    for place, each in enumerate(ordered):
        label = model_label(looks[each.model], names[each.model])
        value = _with_interval(each.share, each.low, each.high, tests.unit)
        if not each.is_fit:
            reason = "control" if each.is_control else "failed a check"
            cells = f'<td colspan="{max(columns, 1)}">{tag("small", reason)}</td>'
        elif is_drawn:
            cells = "".join(
                _bracket(group, letter, each.model, place, places)
                for group, letter in zip(groups, group_names(len(groups)), strict=True)
            )
        else:
            cells = tag("td", letters.get(each.model, ""))
        rows.append(f'<tr><th scope="row">{label}</th><td>{value}</td>{cells}</tr>')
    if blind is not None:
        guess = blind.accuracy
        value = _with_interval(1 - guess.value, 1 - guess.high, 1 - guess.low, "rate")
        label = f"<em>No picture</em><br>{tag('small', METHODS[blind.method])}"
        rows.append(
            f'<tr><th scope="row">{label}</th><td>{value}</td><td colspan="{max(columns, 1)}"></td></tr>'
        )
    return table("All models, and which of them are tied", head, rows)


def _with_interval(value: float, low: float, high: float, unit: str) -> str:
    """A value, and its interval on a line of its own, so that brackets fit beside it on a phone."""
    if math.isnan(value):
        return number(value, unit)
    limits = interval(low, high, unit) or f"- ({TOO_FEW})"
    return f"{number(value, unit)}<br>{tag('small', limits)}"


def _bracket(
    group: Sequence[str], letter: str, model: str, place: int, places: Mapping[str, int]
) -> str:
    """The cell of a model in the column of a group."""
    if model in group:
        return f'<td style="{MEMBER}">{html.escape(letter)}</td>'
    is_between = places[group[0]] < place < places[group[-1]]
    return f'<td style="{PASSED}"></td>' if is_between else "<td></td>"


def how_to_read(tests: PairedTests) -> str:
    """Return the explanation of the letters, and the difference that tied models would have shown."""
    return joined(
        "Models that share a letter are tied: no paired test by picture tells them apart (p adjusted for "
        f"{counted(len(tests.rows), 'pair')}, Holm). Being tied is not "
        "transitive, so a model can have several letters.",
        power_of_ties(tests),
    )
