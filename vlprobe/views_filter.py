"""Which cases to look at, as people choose them and as SQL."""

from dataclasses import dataclass

from vlprobe.errors import InvalidInput, NotFound

SORTS = {
    "worst": "margin ASC, case_number ASC",
    "closest": "abs(margin) ASC, case_number ASC",
    "best": "isnan(margin), margin DESC, case_number ASC",
    "difference": "isnan(margin - other_margin), abs(margin - other_margin) DESC, case_number ASC",
    "dataset": "case_number ASC",
}
OUTCOMES = {"fooled": "margin <= 0", "tied": "margin = 0", "held": "margin > 0 AND NOT isnan(margin)", "all": "true"}
OTHER_OUTCOMES = {"": "true", "fooled": "other_margin <= 0", "held": "other_margin > 0 AND NOT isnan(other_margin)"}
CORNERS = 500  # of a polygon


@dataclass(frozen=True)
class Filter:
    """Which cases of one model to look at. Empty means any."""

    model: str
    kind: str = "flip"
    subtype: str = ""
    rule: str = ""
    tag: str = ""  # name=value
    contains: str = ""  # words in a caption
    outcome: str = "fooled"
    sort: str = "worst"
    other: str = ""  # another model that was asked the same
    other_outcome: str = ""  # fooled (or tied) or held
    within: tuple[tuple[float, float], ...] = ()  # corners of a polygon: margin of the model, margin of the other
    tagged: str = ""  # what people said of the case

    @property
    def paired(self) -> bool:
        """Whether the other model's margins decide which cases pass, or in which order."""
        return bool(self.other_outcome or self.within or self.sort == "difference")


def condition(chosen: Filter) -> tuple[str, list[object]]:
    """What a case meets that passes the filter, but for `tagged`, and the values of the question marks.

    It speaks of `margin`, `other_margin` (where `paired`), `kind`, `subtype`, `rule`, `asked.texts` and `asked.tags`.
    """
    for name, known in (("outcome", OUTCOMES), ("other_outcome", OTHER_OUTCOMES), ("sort", SORTS)):
        if getattr(chosen, name) not in known:
            raise NotFound(name.replace("_", " "), getattr(chosen, name), known)
    if chosen.paired and not chosen.other:
        raise InvalidInput("Only one model is named. Name the other that it is to be compared with.")
    terms, values = [OUTCOMES[chosen.outcome], OTHER_OUTCOMES[chosen.other_outcome]], []
    for column in ("kind", "subtype", "rule"):
        if getattr(chosen, column):
            terms.append(f"{column} = ?")
            values.append(getattr(chosen, column))
    if chosen.tag:
        name, equals, value = chosen.tag.partition("=")
        if not equals:
            raise InvalidInput(f"Tag '{chosen.tag}' is not NAME=VALUE, such as background=sea.")
        terms.append("asked.tags[?] = ?")
        values += [name, value]
    if chosen.contains:
        terms.append("contains(lower(array_to_string(asked.texts, chr(10))), lower(?))")
        values.append(chosen.contains)
    if chosen.within:
        inside, corners = _inside(chosen.within)
        terms.append(inside)
        values += corners
    return " AND ".join(terms), values


def _inside(corners: tuple[tuple[float, float], ...]) -> tuple[str, list[object]]:
    """Whether the two margins lie in the polygon: a ray from the point crosses its sides an odd number of times."""
    if not 3 <= len(corners) <= CORNERS:
        raise InvalidInput(f"A selection has {len(corners)} corners. Expected 3 to {CORNERS}.")
    sides = list(zip(corners, (*corners[1:], corners[0]), strict=True))
    xs, ys = zip(*corners, strict=True)
    term = "margin BETWEEN ? AND ? AND other_margin BETWEEN ? AND ?"
    values: list[object] = [min(xs), max(xs), min(ys), max(ys)]
    if len(set(corners)) == 4 and all(a[0] == b[0] or a[1] == b[1] for a, b in sides):
        return term, values
    crossed = []
    for (x, y), (to_x, to_y) in sides:
        if y != to_y:
            crossed.append(
                "CAST((other_margin < ?) <> (other_margin < ?) AND margin < ? + other_margin * ? AS INTEGER)"
            )
            slope = (to_x - x) / (to_y - y)
            values += [y, to_y, x - y * slope, slope]
    return f"{term} AND ({' + '.join(crossed) or '0'}) % 2 = 1", values
