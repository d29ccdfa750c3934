"""Filters for cases. A filter consists of an SQL condition on the questions and conditions on margins in memory."""

import base64
import binascii
import functools
import itertools
import math
import re
import unicodedata
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb import picture_changes
from vlprobe.storage import annotations
from vlprobe.views import caption_bins, causes

# Functions from the margins of cases to whether each has the outcome; an unknown margin has none.
OUTCOMES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fooled": lambda margin: margin <= 0,
    "tied": lambda margin: margin == 0,
    "held": lambda margin: margin > 0,
    "all": lambda margin: np.ones(len(margin), dtype=bool),
}
LIKENESS = "likeness"  # the order of a region that keeps the order of its cases
# By margin or, without scores, by answer and number of fooled models; suspect labels last
SUSPECTS_LAST = "suspects_last"
OTHER_OUTCOMES = {"": OUTCOMES["all"], "fooled": OUTCOMES["fooled"], "held": OUTCOMES["held"]}
# Functions from the margins of both models, and from `cases.order_values`, to sort keys: the smallest first, unknown
# last. Most need only the first model's margins.
SORTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "worst": lambda margin, second, value: margin,
    "closest": lambda margin, second, value: np.abs(margin),
    "best": lambda margin, second, value: -margin,
    "difference": lambda margin, second, value: -np.abs(margin - second),
    "models": lambda margin, second, value: -value,
    LIKENESS: lambda margin, second, value: value,
    SUSPECTS_LAST: lambda margin, second, value: value,
    "dataset": lambda margin, second, value: np.zeros(len(margin), dtype=np.int8),
}
TEXTS, PICTURES = "t2t", "i2t"  # sides of a triplet (visla)
SIDE_OUTCOMES = ("fooled", "held")
# Bins of cases by the model's answers, with their names in filters and links
STRENGTH, LURE = "strength_bin", "lure"
STRENGTHS = ("weak", "medium", "strong")  # strength of wrong captions for the model itself (lgip)
SEVERITIES = tuple(picture_changes.BINS.values())  # strength of changed pictures
LURE_EDGES = np.linspace(-1, 1, 9)  # bin edges for differences of two Jaccard indices (visla)
LURE_VALUE = "greatest(scores.overlap_02, scores.overlap_12) - scores.overlap_01"
CORNERS = 500  # maximum number of corners of a polygon
MOST_PAIRS = 100
REGION_BYTES = 1 << 20  # of the bits of a region: 8 million cases
REGION_LABEL = 100  # maximum characters
ANY_ENDING = "*"  # at the end of a word of a caption search
ORDERED = "."  # at the end of a region that keeps the order of its cases
SCORED = "+."  # at the end of an ordered region with similarities


def lure_bins() -> dict[str, str]:
    """Return the labels of the lure bins by name, from left to right; a bin includes its lower edge."""
    return {
        f"{low:.2f} to {high:.2f}": f"{low:g} to {high:g}"
        for low, high in itertools.pairwise(LURE_EDGES)
    }


class Slice(NamedTuple):
    """A property and one of its values, written NAME=VALUE in links and options. It selects cases with that value."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


# Fields of a filter that are slices: values by name, and an example for messages. A tag may have any name and value.
SLICES: dict[str, tuple[Mapping[str, Collection[str]], str]] = {
    "tag": ({}, "background=sea"),
    "bin": ({STRENGTH: (*STRENGTHS, *SEVERITIES), LURE: lure_bins()}, "strength_bin=weak"),
    "caption": (caption_bins.VALUES, "caption_length=8 to 10 words"),
    "crossed": (dict.fromkeys((TEXTS, PICTURES), SIDE_OUTCOMES), "t2t=fooled"),
    "excluded": ({}, "subtype=color or tag:background=sea"),
}
SWITCHES = {
    "lost_to": "own",
    "pictured": "here",
    "suspects": "hide",
}  # on-off fields, and the word for "on"
# Fields that can have several values
SEVERAL = ("subtype", "rule", "tag", "bin", "caption", "unseen_by", "tagged", "region", "excluded")
# Facets that are fields of a filter
PLAIN_FACETS = ("subtype", "rule", "pair", "unseen_by", "tagged")
MOST_EXCLUDED = 200
AGREEMENTS = ("", "one", "split")


@dataclass(frozen=True)
class Filter:
    """A filter that selects cases by their properties and by models' answers. An empty field allows any value, and an
    invalid filter cannot be created.

    If a field has several values, a case passes if it has one of them. If the values are slices with
    several names, the case needs one value for each name. A case must be in every region.

    Raises:
        NotFound: A field has a value that does not exist.
        InvalidInput: The filter compares two models but the second one is missing, or it has too many
            corners or patterns.

    Attributes:
        model: Model whose answers the filter uses.
        kind: Kind of the cases.
        subtype: Types of edit.
        rule: Rules that made the edit.
        tag: Tags from the dataset, written NAME=VALUE.
        contains: Words that the texts of the case must contain, each in one of them, and phrases in double quotes. A
            word that ends in ANY_ENDING may continue.
        outcome: One of OUTCOMES.
        sort: One of SORTS.
        other: A second model that answered the same questions.
        other_outcome: One of OTHER_OUTCOMES, for the second model.
        within: Corners of a polygon, each with the model's margin and the second model's margin.
        tagged: Tags that people gave the case, or `annotations.ANY` or `annotations.NOTE`.
        pair: Keys of patterns (`views.pattern_groups`); the case is a member of at least one pattern.
        lost_to: Whether to keep only picture searches that find the right picture among the originals but rank a
            mixture of that picture first once mixtures are added.
        bin: Bins of the model's answer: STRENGTH or LURE.
        caption: Bins of the caption (`views.caption_bins`).
        pictured: Whether to keep only cases whose pictures are all on this machine.
        suspects: Whether to hide cases whose label may be wrong (`views.suspects`) unless a reviewer accepted it.
        crossed: The kind of the other side of the same triplet, and the outcome of the model's answer to it.
        fooled: Names of other models that must be fooled.
        held: Names of other models that must not be fooled.
        agreement: "one": exactly one model is fooled; "split": some models are fooled and some are
            not. Controls do not count.
        named_slice: Name of a saved slice (`views.named_slices`).
        unseen_by: Causes of the failure: which of the two towers did not see the difference (`views.causes`).
        region: Cases that were selected one by one, such as on a map or by a search, as in `region_text`.
        excluded: Values that no selected case may have, each with the name of its facet (`views.facets`).
    """

    model: str
    kind: str = "flip"
    subtype: tuple[str, ...] = ()
    rule: tuple[str, ...] = ()
    tag: tuple[Slice, ...] = ()
    contains: str = ""
    outcome: str = "fooled"
    sort: str = "worst"
    other: str = ""
    other_outcome: str = ""
    within: tuple[tuple[float, float], ...] = ()
    tagged: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    lost_to: bool = False
    bin: tuple[Slice, ...] = ()
    caption: tuple[Slice, ...] = ()
    pictured: bool = False
    suspects: bool = False
    crossed: Slice | None = None
    fooled: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    agreement: str = ""
    named_slice: str = ""
    unseen_by: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    excluded: tuple[Slice, ...] = ()

    def __post_init__(self) -> None:
        # A string means one value, as before several were allowed
        for name in ("subtype", "rule", "unseen_by", "tagged", "region"):
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, (value,) if value else ())
        # Tags in links of older versions
        tagged = tuple(dict.fromkeys(map(annotations.current_name, self.tagged)))
        object.__setattr__(self, "tagged", tagged)
        excluded = (
            each._replace(value=annotations.current_name(each.value))
            if each.name == "tagged"
            else each
            for each in self.excluded
        )
        object.__setattr__(self, "excluded", tuple(excluded))
        for name, names in (
            ("outcome", OUTCOMES),
            ("other_outcome", OTHER_OUTCOMES),
            ("sort", SORTS),
            ("agreement", AGREEMENTS),
        ):
            if getattr(self, name) not in names:
                raise NotFound(name.replace("_", " "), getattr(self, name), names)
        for cause in self.unseen_by:
            if cause not in causes.LABELS:
                raise NotFound("cause", cause, causes.LABELS)
        for name, chosen in self._slices():
            values, example = SLICES[name]
            if values and chosen.name not in values:
                raise InvalidInput(
                    f"'{str(chosen)[:80]}' is not a valid {name}. Expected a value such as "
                    f"{example}."
                )
            if values and chosen.value not in values[chosen.name]:
                raise NotFound(chosen.name, chosen.value, values[chosen.name])
        if self.paired and not self.other:
            raise InvalidInput("Only one model is given. Choose a second model for the comparison.")
        if self.within and not 3 <= len(self.within) <= CORNERS:
            raise InvalidInput(
                f"The selection has {len(self.within)} corners. Expected 3 to {CORNERS}."
            )
        for region in self.region:
            region_cases(region)
        if len(self.pair) > MOST_PAIRS:
            raise InvalidInput(
                f"{len(self.pair)} patterns are chosen. Expected at most {MOST_PAIRS}."
            )
        if len(self.excluded) > MOST_EXCLUDED:
            raise InvalidInput(
                f"{len(self.excluded)} values are excluded. Expected at most {MOST_EXCLUDED}."
            )
        self.exclusions()

    def _slices(self) -> Iterator[tuple[str, Slice]]:
        """Yield each slice in the filter, together with the name of the field that contains it."""
        for name in SLICES:
            value = getattr(self, name)
            chosen = value if name in SEVERAL else filter(None, [value])
            yield from ((name, each) for each in chosen)

    @classmethod
    def parse(cls, model: str, kind: str = "flip", **words: Any) -> "Filter":
        """Create a filter from the string values used in links and options.

        Args:
            words: The other fields, by name. Slices are written NAME=VALUE, switches with their
                word in SWITCHES, and "" allows any value. Fields in SEVERAL accept one string or a sequence.

        Raises:
            NotFound, InvalidInput: See `Filter`.
        """
        values = dict(words)
        has_order = ordered_region(_texts(words.get("region", "")))
        sorts = [name for name in SORTS if name != LIKENESS or has_order]
        if words.get("sort", "worst") not in sorts:
            raise NotFound("sort", words["sort"], sorts)
        for name in (*SEVERAL, *SLICES):
            if name in words:
                chosen = tuple(dict.fromkeys(filter(None, _texts(words[name]))))
                if name in SLICES:
                    chosen = tuple(_parse_slice(name, text) for text in chosen)
                values[name] = chosen if name in SEVERAL else next(iter(chosen), None)
        for name in SWITCHES.keys() & words:
            if words[name] not in ("", SWITCHES[name]):
                raise NotFound(name.replace("_", " "), words[name], ["", SWITCHES[name]])
            values[name] = bool(words[name])
        return cls(model, kind, **values)

    def words(self) -> dict[str, Any]:
        """Return the filter's fields in the form that `parse` accepts. A field with several values becomes a list."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in (*SEVERAL, *SLICES):
            texts = [str(slice_) for field, slice_ in self._slices() if field == name]
            texts = texts or list(getattr(self, name) or ())
            values[name] = texts if len(texts) > 1 else "".join(texts)
        for name, word in SWITCHES.items():
            values[name] = word if values[name] else ""
        return values

    @property
    def paired(self) -> bool:
        """Return whether the filter or its sort order depends on the second model's margins."""
        return bool(self.other_outcome or self.within or self.sort == "difference")

    @property
    def reads_tags(self) -> bool:
        """Return whether the cases or their order depend on tags and notes that people added."""
        is_excluding = any(each.name == "tagged" for each in self.excluded)
        sorts_by_tags = self.sort == SUSPECTS_LAST
        return bool(self.tagged) or self.suspects or sorts_by_tags or is_excluding

    def any_outcome(self) -> "Filter":
        """Return a copy of the filter without its conditions on which models are fooled."""
        return replace(
            self,
            outcome="all",
            other_outcome="",
            within=(),
            fooled=(),
            held=(),
            agreement="",
            lost_to=False,
            suspects=False,
        )

    def exclusions(self) -> "list[Filter]":
        """For each facet with excluded values, return a filter for the cases that have one of these values.

        Raises:
            NotFound, InvalidInput: A facet or a value does not exist.
        """
        return [
            Filter(self.model, self.kind, outcome="all").with_values(facet, values)
            for facet, values in values_by_name(self.excluded).items()
        ]

    def values_of(self, facet: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the values of a facet that the filter requires, and the values that it excludes."""
        field, name = facet_field(facet)
        required = getattr(self, field)
        if name:
            required = values_by_name(required).get(name, ())
        return required, values_by_name(self.excluded).get(facet, ())

    def with_values(
        self, facet: str, required: Sequence[str], excluded: Sequence[str] = ()
    ) -> "Filter":
        """Return a copy of the filter that requires or excludes only the given values of a facet."""
        field, name = facet_field(facet)
        values = tuple(required)
        if name:
            others = [each for each in getattr(self, field) if each.name != name]
            values = (*others, *(Slice(name, value) for value in required))
        kept = [each for each in self.excluded if each.name != facet]
        kept += [Slice(facet, value) for value in excluded]
        return replace(self, **{field: values, "excluded": tuple(kept)})

    def where(self, tagged_cases: Sequence[int], answer_columns: Collection[str]) -> "Where":
        """Build the filter's SQL condition on the table `cases` and, for `bin` and `crossed`, the
        table `scores`.

        It covers all fields except those computed in memory: `pair`, `lost_to`, `caption`, `pictured`,
        `suspects`, `named_slice`, `unseen_by`, `region` and `excluded`.

        Args:
            tagged_cases: Numbers of the cases to which people gave one of the tags `tagged`.
            answer_columns: Names of the columns that the model's run stores for each answer.
        """
        terms: list[tuple[str, list[object]]] = []
        if self.kind:
            terms.append(("cases.kind = ?", [self.kind]))
        for column in ("subtype", "rule"):
            if values := getattr(self, column):
                terms.append((f"cases.{column} IN (SELECT unnest(?))", [values]))
        for name, values in values_by_name(self.tag).items():
            terms.append(("cases.tags[?] IN (SELECT unnest(?))", [name, values]))
        for pattern in _word_patterns(self.contains):
            text = "array_to_string(cases.texts, chr(10))"
            terms.append((f"regexp_matches({text}, ?)", [pattern]))
        if self.tagged:
            terms.append(('cases."case" IN (SELECT unnest(?::BIGINT[]))', [tuple(tagged_cases)]))
        for name, values in values_by_name(self.bin).items():
            if not BIN_COLUMNS[name] <= set(answer_columns):
                terms.append(("false", []))
            elif name == STRENGTH:
                terms.append(("scores.strength_bin IN (SELECT unnest(?))", [values]))
            else:
                conditions, edges = zip(*map(_in_lure_bin, values), strict=True)
                terms.append((f"(({') OR ('.join(conditions)}))", [*itertools.chain(*edges)]))
        if self.crossed:
            terms.append(_answered_on_other_side(self.crossed))
        condition = " AND ".join(["true", *(term for term, _ in terms)])
        return Where(condition, tuple(value for _, values in terms for value in values))


def _word_patterns(search: str) -> list[str]:
    """Return a regular expression of RE2 for each word of a caption search, and for each phrase in double quotes.

    Upper and lower case are equal. Words are found as whole words: "red" is not a part of "sheared", but "red*" also
    finds "reddish". Letters of scripts without upper and lower case, such as Chinese, are found anywhere, because many
    of them have no spaces.
    """

    def edge(character: str, side: str) -> str:
        is_bounded = character.isalnum() and unicodedata.category(character) not in ("Lo", "Lm")
        return rf"({side}|[^\p{{Lu}}\p{{Ll}}\p{{Lt}}\pM\pN_])" if is_bounded else ""

    patterns = []
    for part in search_parts(search):
        text = part.rstrip(ANY_ENDING) or part
        end = edge(text[-1], "$") if text == part else ""
        patterns.append(f"(?i){edge(text[0], '^')}{re.escape(text)}{end}")
    return patterns


def search_parts(search: str) -> list[str]:
    """Return the words of a caption search and the phrases in double quotes.

    >>> search_parts('red "on the sea"')
    ['red', 'on the sea']
    """
    return [phrase or word for phrase, word in re.findall(r'"([^"]+)"|([^\s,;]+)', search)]


def facet_field(facet: str) -> tuple[str, str]:
    """Return the filter field that holds a facet's values, and the name of the slices if the values are slices, else
    "". Raises NotFound.

    >>> facet_field("subtype"), facet_field("tag:scene"), facet_field("caption_length")
    (('subtype', ''), ('tag', 'scene'), ('caption', 'caption_length'))
    """
    if facet in PLAIN_FACETS:
        return facet, ""
    prefix, _, name = facet.partition(":")
    if prefix == "tag" and name:
        return "tag", name
    for field in ("caption", "bin"):
        if facet in SLICES[field][0]:
            return field, facet
    bins = (*SLICES["caption"][0], *SLICES["bin"][0])
    raise NotFound("facet", facet, (*PLAIN_FACETS, *bins, "tag:NAME"))


def values_by_name(slices: Iterable[Slice]) -> dict[str, tuple[str, ...]]:
    """Group slices by name, and return the values for each name."""
    by_name: dict[str, tuple[str, ...]] = {}
    for name, value in slices:
        by_name[name] = (*by_name.get(name, ()), value)
    return by_name


def _texts(value: str | Sequence[str]) -> Sequence[str]:
    """Return the texts of a field with one or several of them."""
    return [value] if isinstance(value, str) else value


def _parse_slice(field: str, text: str) -> Slice:
    name, equals, value = text.partition("=")
    if not equals:
        example = SLICES[field][1]
        raise InvalidInput(
            f"{field.capitalize()} '{name[:80]}' is not valid. Expected NAME=VALUE, such "
            f"as {example}."
        )
    return Slice(name, value)


BIN_COLUMNS = {STRENGTH: {"strength_bin"}, LURE: {"overlap_01", "overlap_02", "overlap_12"}}


class Where(NamedTuple):
    """An SQL condition on the tables `cases` and `scores` of a run, with its parameters."""

    condition: str
    values: tuple[object, ...]

    @property
    def needs_scores(self) -> bool:
        """Return whether the condition uses the table `scores`."""
        return "scores" in self.condition


def _in_lure_bin(name: str) -> tuple[str, list[object]]:
    """Build the SQL condition for triplets in a lure bin. The first and the last bin are open-ended."""
    position = list(lure_bins()).index(name)
    terms, edges = [f"NOT isnan({LURE_VALUE})"], []  # DuckDB sorts NaN above all numbers
    if position:
        terms.append(f"{LURE_VALUE} >= ?")
        edges.append(float(LURE_EDGES[position]))
    if position < len(LURE_EDGES) - 2:
        terms.append(f"{LURE_VALUE} < ?")
        edges.append(float(LURE_EDGES[position + 1]))
    return " AND ".join(terms), edges


def _answered_on_other_side(side: Slice) -> tuple[str, list[object]]:
    """Build the SQL condition on the other side of a triplet. The two sides' ids differ only in the kind at the end."""
    passes = "margin <= 0" if side.value == "fooled" else "margin > 0"
    kind = PICTURES if side.name == TEXTS else TEXTS
    return (
        "cases.kind = ? AND (cases.item, cases.id[:-4]) IN (SELECT (other_side.item, other_side.id[:-4]) "
        'FROM cases AS other_side JOIN scores USING ("case") '
        f"WHERE other_side.kind = ? AND NOT isnan(scores.margin) AND scores.{passes})",
        [kind, side.name],
    )


def corners_text(corners: Iterable[tuple[float, float]]) -> str:
    """Format polygon corners as text for a link. `parse_corners` is the inverse."""
    return ";".join(f"{x:.5f},{y:.5f}" for x, y in corners)


def region_text(
    label: str,
    numbers: np.ndarray,
    is_ordered: bool = False,
    similarities: Sequence[float] = (),
) -> str:
    """Format case numbers and a label as text for a link. If `is_ordered` is set, the text keeps the order of the
    numbers.

    Args:
        similarities: For an ordered region, the similarity of each case to a query and, at the end, that of the median
            picture.

    >>> region_label(region_text("like a kitchen", np.array([3, 5])))
    'like a kitchen'
    """
    content = numbers.astype("<u4").tobytes()
    if not is_ordered:
        bits = np.zeros(int(np.max(numbers, initial=-1)) + 1, dtype=bool)
        bits[numbers] = True
        content = np.packbits(bits).tobytes()
    content += np.asarray(similarities, "<f4").tobytes()
    packed = base64.urlsafe_b64encode(zlib.compress(content, 9)).decode()
    end = SCORED if len(similarities) else ORDERED * is_ordered
    return f"{label[:REGION_LABEL]}~{packed}{end}"


def region_label(text: str) -> str:
    """Return the label in a `region_text`."""
    return text.rpartition("~")[0]


def region_cases(text: str) -> np.ndarray:
    """Return the case numbers in a `region_text` as a read-only array. They are ascending unless the text keeps their
    order.

    Raises:
        InvalidInput: The text is not valid.

    >>> region_cases(region_text("x", np.array([5, 3]))).tolist()
    [3, 5]
    >>> region_cases(region_text("x", np.array([5, 3]), is_ordered=True)).tolist()
    [5, 3]
    """
    return _read_region(text)[0]


def region_similarities(text: str) -> np.ndarray:
    """Return the similarities in a `region_text` as a read-only float32 array of shape (n_cases + 1,), the median
    picture's last. It is empty if the text has none. Raises InvalidInput, as `region_cases` does.

    >>> region_similarities(region_text("x", np.array([5, 3]), True, [0.5, 0.25, 0.0])).tolist()
    [0.5, 0.25, 0.0]
    """
    return _read_region(text)[1]


# A page makes up to 30 filters: 24 ms each for 100,000 of 1.5 million cases. None, a selection and a search.
@functools.lru_cache(maxsize=3)
def _read_region(text: str) -> tuple[np.ndarray, np.ndarray]:
    label, _, packed = text.rpartition("~")
    numbers, similarities = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    if not text:
        return numbers, similarities
    try:
        inflater = zlib.decompressobj()
        compressed = base64.urlsafe_b64decode(packed.removesuffix(SCORED).removesuffix(ORDERED))
        content = inflater.decompress(compressed, REGION_BYTES)
        is_valid = inflater.eof and len(label) <= REGION_LABEL
        if is_ordered(text):
            numbers = np.frombuffer(content, dtype="<u4").astype(np.int64)
        else:
            numbers = np.flatnonzero(np.unpackbits(np.frombuffer(content, dtype=np.uint8)))
        if text.endswith(SCORED):
            similarities = np.frombuffer(content, dtype="<f4")[len(numbers) // 2 :]
            numbers = numbers[: len(numbers) // 2]
            is_sized = len(similarities) == len(numbers) + 1
            is_valid &= is_sized and bool(np.isfinite(similarities).all())
    except (binascii.Error, zlib.error, ValueError):
        is_valid = False
    if not is_valid:
        raise InvalidInput("The selection in this link is not valid. Select the cases again.")
    numbers.setflags(write=False)
    similarities.setflags(write=False)
    return numbers, similarities


def is_ordered(region: str) -> bool:
    """Return whether a `region_text` keeps the order of its cases."""
    return region.endswith(ORDERED)


def ordered_region(regions: Sequence[str]) -> str:
    """Return the first of several `region_text`s that keeps the order of its cases, which is a search, or ""."""
    return next(filter(is_ordered, regions), "")


def parse_corners(text: str) -> tuple[tuple[float, float], ...]:
    """Parse polygon corners from a link in the form x,y;x,y;... Return an empty tuple if the text
    is invalid.

    >>> parse_corners("0,0;1,0;1,1"), parse_corners("0,0;nan,1;1,1")
    (((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)), ())
    """
    try:
        corners = tuple(
            (float(x), float(y)) for x, y in (pair.split(",") for pair in text.split(";") if pair)
        )
    except ValueError:
        return ()
    is_finite = all(math.isfinite(number) for corner in corners for number in corner)
    return corners if 3 <= len(corners) <= CORNERS and is_finite else ()
