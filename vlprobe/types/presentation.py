"""How a probe is presented on pages: descriptive text, headline metrics, and a card for each kind of case. Pages are
drawn only from this data, so that no page's code names a probe or a kind.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

# Contents of a card below its verdict:
#   captions         one picture and its texts, each with its score
#   edit             one picture, its caption and the edited caption
#   changed_picture  a picture and its changed copy, a true caption and a wrong one
#   caption_search   a picture and the caption that it ranks first among its own and altered ones
#   picture_search   a caption, its picture and the mixed picture that it ranks first
#   pair             two pictures, two captions and their four scores
#   triplet          three texts and their three cosines
#   rankings         the pictures that each wording of a query ranks first
#   series           pictures in an order, and the place that the model predicts
CardBody = Literal[
    "captions",
    "edit",
    "changed_picture",
    "caption_search",
    "picture_search",
    "pair",
    "triplet",
    "rankings",
    "series",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPresentation:
    """How cases of one kind are presented.

    Some kinds measure how much a score or a ranking changes. Their margin is minus the size of the change, so 0 is
    best and no case counts as fooled. These kinds need their own `summary`.
    """

    label: str  # the question in plain words
    lie: str = ""  # what may fool a model: "is fooled by {lie}", "believes {lie}"
    accuracy: str = ""  # the metric that is the share of cases that do not fool a model
    # Between a model's name and `lie`; "is moved by" where no case counts as fooled
    verb: str = "is fooled by"
    winner: str = ""  # the winner where a model is fooled, in "{winner} wins by"; "" by the body
    lies: str = "lies"  # the counted things: "763 {lies} believed"
    sentence: str = ""  # Markdown, where the probe's text does not describe these cases
    question: str = ""  # a sentence that says what should win
    body: CardBody = "captions"
    is_movement: bool = False  # the margin is minus the size of a change
    edit_label: str = ""  # heading above the edited caption on an `edit` card
    edit_column: str = "wrong"  # heading of the edited caption's score
    legend: str = ""  # instructions for reading a card, where it needs them
    # Markdown with {n_cases}, {n_tied} and {model}; "" for the share of fooled cases
    summary: str = ""
    several_comparisons: bool = False  # the margin is that of the worst of several comparisons
    guess_held: float = math.nan  # share of the cases that a guess holds; NaN: not defined
    is_share: bool = False  # for a change: it is a share, not a cosine

    @property
    def wrong_side(self) -> str:
        """What may fool a model, or else the question in plain words."""
        return self.lie or self.label


class OtherSide(NamedTuple):
    """Where the trade-off of the other side of a pair of picture and caption is measured."""

    probe: str
    up: str  # its metric on the y axis
    words: str  # what is changed there, such as "changed pictures"


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Two properties that a model should have at once, each measured by a metric of the probe."""

    down: str  # the metric on the x axis, which usually should be low
    ups: tuple[str, ...]  # the metrics on the y axis, which should be high, each an alternative
    # The change that should leave the score the same; "" if the x axis is not a change of the score
    shifted_by: str = "a rewording"
    x_words: str = ""  # the meaning of the x axis; "" for how far `shifted_by` moves the score
    y_words: str = ""  # the meaning of the y axis; "" for wrong captions rejected
    # Metrics on the x axis that replace `down`, by metric on the y axis
    downs: Mapping[str, str] = field(default_factory=dict)
    # The same trade-off with the pictures changed instead of the captions, or the reverse, by metric on the y axis
    others: Mapping[str, "OtherSide"] = field(default_factory=dict)

    def x_metric(self, up: str) -> str:
        """Return the metric on the x axis for a metric on the y axis."""
        return self.downs.get(up, self.down)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """The titles, labels and other text with which pages, reports and commands present a probe."""

    title: str  # the probe in a list of probes
    name: str = ""  # the probe as a question that needs no paper
    photographs_name: str = (
        ""  # the same for the bundled photographs, if their cases are of another sort
    )
    asks: str = ""  # the question in one plain sentence
    position: int  # place in the list of probes
    sentence: str  # Markdown: the result and its better direction, for readers new to the paper
    kinds: Mapping[str, KindPresentation]  # the first is shown first
    # The two to four most informative metrics: rates with one direction
    headlines: tuple[str, ...] = ()
    trade_off: TradeOff | None = None
    retrieval_metrics: tuple[str, ...] = ()  # plain recall, which fine-tuning easily loses
    subtype_label: str = "Type of edit"  # meaning of the column `subtype`
    # Stored names of subtypes and strengths, in words
    value_labels: Mapping[str, str] = field(default_factory=dict)
    value_order: tuple[str, ...] = ()  # stored names with a natural order, in that order

    @property
    def main_metrics(self) -> tuple[str, ...]:
        """Return the headline metrics, or the two sides of the trade-off if there are no headline metrics."""
        if self.headlines or self.trade_off is None:
            return self.headlines
        return (*self.trade_off.ups, self.trade_off.down)

    @property
    def is_movement(self) -> bool:
        """Return whether all margins measure the size of a change, so that no case counts as fooled."""
        return all(kind.is_movement for kind in self.kinds.values())

    def kind(self, name: str) -> KindPresentation:
        """Return the presentation of a kind. A kind unknown to the probe is shown as plain captions."""
        return self.kinds.get(name) or KindPresentation(label=name)
