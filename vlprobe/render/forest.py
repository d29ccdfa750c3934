"""The forest plot of a comparison: one row per kind of edit and model, as the component `forest` draws it.

Places are percentages of the plot's width. The frame is set by comparable models: a control does not stretch it, and a
value beyond is drawn at the edge.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vlprobe.render.charts.styles import Looks
from vlprobe.render.marks import mark_values
from vlprobe.render.numbers import TOO_FEW
from vlprobe.render.sentences import sentence_names, shortened
from vlprobe.render.words import value_label, wrong
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.believed import BelievedRow, Comparison
from vlprobe.views.totals import Total

MINUS = "−"
PADDING = 0.05  # of the width, on both sides
LEAST_WIDTH = 0.01  # of a frame, in shares; all marks may lie on zero
MOST_TICKS = 8
TOTALS_SOURCE = "mteb, CC0"
TONES = {"fewer": "true", "more": "lie", "tied": "quiet", "unknown": "quiet"}


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of the axis that is drawn."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return the position of a value, in percent of the width; beyond the frame, at its edge."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def beyond(self, value: float) -> str:
        """Return the side of the frame where a value is: "left", "right", or "" inside."""
        return "left" if value < self.low else "right" if value > self.high else ""


def frame(comparison: Comparison) -> Frame:
    """Return the range that contains zero and all intervals of models that passed their checks."""
    fit = {contestant.model for contestant in comparison.rivals if contestant.is_fit}
    rows = [row for row in comparison.rows if row.model in fit] or list(comparison.rows)
    ends = [
        value
        for row in rows
        for value in (row.low, row.high, row.difference)
        if not math.isnan(value)
    ]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if high - low < LEAST_WIDTH * (1 if comparison.unit == "rate" else 0.1):
        middle = LEAST_WIDTH / 2 * (1 if comparison.unit == "rate" else 0.1)
        low, high = low - middle, high + middle
    padding = PADDING * (high - low)
    return Frame(low - padding, high + padding)


def ticks(limits: Frame) -> list[float]:
    """Round numbers inside of a frame, zero among them.

    >>> [round(value, 2) for value in ticks(Frame(-0.145, 0.165))]
    [-0.1, -0.05, 0.0, 0.05, 0.1, 0.15]
    """
    rough = (limits.high - limits.low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    lowest = math.ceil(limits.low / step)
    return [number * step for number in range(lowest, math.floor(limits.high / step) + 1)]


def signed(value: float, unit: str) -> str:
    """A difference with its sign: shares in points, cosines unchanged.

    >>> signed(-0.0658, "rate"), signed(0.05, "rate"), signed(0.0012, "cosine"), signed(0.0, "rate")
    ('−6.6', '+5.0', '+0.0012', '0.0')
    """
    text = magnitude(value, unit)
    if not text.strip("0."):
        return text
    return f"{MINUS if value < 0 else '+'}{text}"


def magnitude(value: float, unit: str) -> str:
    """A difference without its sign."""
    if math.isnan(value):
        return "-"
    return f"{100 * abs(value):.1f}" if unit == "rate" else f"{abs(value):.4f}"


def in_words(row: BelievedRow, comparison: Comparison) -> str:
    """A row in two or three words: "1.7 points fewer", "tied"."""
    if row.verdict == "unknown":
        return "not known"
    if row.verdict == "tied":
        return "tied, corrected" if only_uncorrected(row) else "tied"
    less = row.verdict == "fewer"
    points = " points" if comparison.unit == "rate" else ""
    if comparison.is_movement:
        return f"{magnitude(row.difference, comparison.unit)}{points} {'less' if less else 'more'}"
    return f"{magnitude(row.difference, comparison.unit)}{points} {'fewer' if less else 'more'}"


def only_uncorrected(row: BelievedRow) -> bool:
    """Return whether the row's own interval excludes 0, though its models are tied once p is corrected for all rows."""
    return row.verdict == "tied" and (row.low > 0 or row.high < 0)


def row_title(subtype: str, kind: KindPresentation) -> str:
    """Return the title of a group of rows: "A wrong number"; of all lies, "Any wrong word"."""
    title = part_title(subtype, kind).strip("“”")
    return title[:1].upper() + title[1:]


def part_title(subtype: str, kind: KindPresentation) -> str:
    """The same within a sentence; a type of edit without words of its own is quoted."""
    if subtype:
        title, label = wrong(subtype), value_label(subtype)
        return f"“{shortened(label)}”" if title.lower() == label.lower() else shortened(title)
    lie = kind.lie or kind.label
    article, _, rest = lie.partition(" ")
    return f"any {rest}" if article in ("a", "an", "another") and rest else f"any: {lie}"


def first_row(comparison: Comparison, rival: str) -> BelievedRow:
    """The row of a rival that is open at first: of its types of edit the one at which it is clearly
    furthest from the baseline, else all types together.
    """
    rows = [row for row in comparison.rows if row.model == rival]
    clear = [row for row in rows if row.subtype and row.verdict in ("fewer", "more")]
    return max(clear, key=lambda row: abs(row.difference), default=rows[0])


def rest(row: BelievedRow, comparison: Comparison, lies: str) -> str:
    """The results that both models share, and those in no column."""
    if comparison.is_movement:
        return ""
    lines = [f"Both believe {row.both:,} other {lies}, and reject {row.neither:,}."]
    if row.n_left_out:
        lines.append(f"{row.n_left_out:,} were answered by one of the two alone.")
    return " ".join(lines)


def values(
    comparison: Comparison,
    kind: KindPresentation,
    styles: Looks,
    renamed: Mapping[str, str],
    selected: tuple[str, str],
    totals: Sequence[Total] = (),
) -> dict[str, object]:
    """Return the data that the component draws.

    Args:
        comparison: Of two or more models.
        kind: How its kind of question is spoken of.
        styles: Styles of the models.
        renamed: Names that people gave to models.
        selected: The subtype and the model whose pictures are shown below.
        totals: Published totals that mean the same as the row of all lies; they do not stretch the
            frame.
    """
    limits = frame(comparison)
    names = sentence_names([contestant.model for contestant in comparison.contestants], renamed)
    base = names[comparison.baseline.model]
    moves = comparison.is_movement
    drawn_ticks = [
        {
            "at": limits.place(value),
            "text": base if value == 0 else _tick(value, comparison.unit),
            "zero": value == 0,
        }
        for value in ticks(limits)
    ]
    return {
        "label": f"How far each model is from {base}, by kind of edit",
        "less": f"{'moves' if moves else 'fooled'} less than {base}",
        "more": f"{'moves' if moves else 'fooled'} more",
        "zero": limits.place(0.0),
        "ticks": drawn_ticks,
        "groups": [
            {
                "title": row_title(subtype, kind),
                "count": _count(comparison, subtype, kind),
                "rows": [
                    _row(row, comparison, limits, names, styles, kind, selected)
                    for row in comparison.rows
                    if row.subtype == subtype
                ],
            }
            for subtype in comparison.subtypes
        ],
        "totals": _totals(totals, comparison, limits, kind) if totals else None,
    }


def _totals(
    totals: Sequence[Total], comparison: Comparison, limits: Frame, kind: KindPresentation
) -> dict[str, object]:
    """Hollow marks at the differences of published totals from the baseline."""
    differences = {total: total.fooled - comparison.baseline.share for total in totals}
    drawn = {
        total: difference
        for total, difference in differences.items()
        if not limits.beyond(difference)
    }
    count = f"{row_title('', kind)}: {len(drawn)} of {len(totals)} models in view"
    return {
        "legend": f"published totals ({TOTALS_SOURCE})",
        "count": count,
        "label": f"Published totals of other models on the same questions. {count}.",
        "marks": [
            {
                "at": limits.place(difference),
                "label": f"{total.model}: fooled by {100 * total.fooled:.1f} %, published total "
                f"({TOTALS_SOURCE})",
            }
            for total, difference in drawn.items()
        ],
    }


def _tick(value: float, unit: str) -> str:
    number = 100 * value if unit == "rate" else value
    return f"{MINUS if number < 0 else '+'}{abs(number):.4g}"


def _count(comparison: Comparison, subtype: str, kind: KindPresentation) -> str:
    """Count how many lies the rows of a subtype rest on: one figure, or from the least to the most."""
    counts = {row.n_lies for row in comparison.rows if row.subtype == subtype}
    fewest, largest = min(counts), max(counts)
    if fewest == largest:
        return f"{fewest:,} {kind.lies}"
    return f"{fewest:,} to {largest:,} {kind.lies}"


def _row(
    row: BelievedRow,
    comparison: Comparison,
    limits: Frame,
    names: Mapping[str, str],
    styles: Looks,
    kind: KindPresentation,
    selected: tuple[str, str],
) -> dict[str, object]:
    is_known = not math.isnan(row.difference)
    ends = [end if not math.isnan(end) else row.difference for end in (row.low, row.high)]
    return {
        "subtype": row.subtype,
        "model": row.model,
        "name": names[row.model],
        **mark_values(styles[row.model]),
        "at": limits.place(row.difference) if is_known else None,
        "ends": [limits.place(end) for end in ends] if is_known else None,
        "beyond": limits.beyond(row.difference) if is_known else "",
        "clear": row.verdict in ("fewer", "more"),
        "uncorrected": only_uncorrected(row),
        "text": in_words(row, comparison),
        "tone": TONES[row.verdict],
        "label": accessible_row(row, comparison, names, kind),
        "pressed": (row.subtype, row.model) == selected,
    }


def accessible_row(
    row: BelievedRow, comparison: Comparison, names: Mapping[str, str], kind: KindPresentation
) -> str:
    """A row for those who do not see it, and its tooltip."""
    unit = comparison.unit
    about = f"{row_title(row.subtype, kind)}, {names[row.model]}: {in_words(row, comparison)}"
    if math.isnan(row.difference):
        return about
    between = f", difference {signed(row.difference, unit)}"
    if not math.isnan(row.low):
        between += f", 95 % interval {signed(row.low, unit)} to {signed(row.high, unit)}"
    else:
        between += f", no interval ({TOO_FEW})"
    base = names[comparison.baseline.model]
    written = [
        f"{100 * value:.1f} %" if unit == "rate" else f"{value:.4f}"
        for value in (row.value, row.base)
    ]
    return f"{about}{between} ({written[0]}, {base} {written[1]})"


def how_to_read(comparison: Comparison) -> str:
    """The line below the plot."""
    n_rows = sum(not math.isnan(row.p) for row in comparison.rows)
    corrected = f", corrected for {n_rows:,} comparisons" if n_rows > 1 else ""
    dashed = ""
    if any(map(only_uncorrected, comparison.rows)):
        dashed = " Dashed: excludes 0 on its own, but not after the correction."
    hidden = ""
    if comparison.n_more_subtypes:
        hidden = f" {comparison.n_more_subtypes:,} rarer kinds of edit have no row."
    unit = "" if comparison.unit == "rate" else f" In {UNIT_WORDS[comparison.unit]}."
    return (
        f"Filled: clear difference (p < .05{corrected}). Hollow: no clear difference. "
        f"Lines: 95 % intervals of each comparison.{dashed}{unit}{hidden} Click a row for its pictures."
    )


UNIT_WORDS = {"cosine": "cosines", "spread": "the model's own spreads"}
