"""EqBen's metrics for samples of two pictures and two captions, in which each caption is true only of its own picture.

Rows have the columns `score_0` to `score_3`: s11, s12, s21, s22, where s12 is the similarity of the first picture to
the second caption. All comparisons are strict, so a tie is a failure. The column `probability` marks scores that are
probabilities. `order_12` and `order_21` are a generative model's results for the two orders of the captions in the
question, with the true caption (for a pair, the left picture's caption) listed first or second. For a pair they are
the probability that the model matches both captions correctly; for a caption and its foil they are 1 if it chose the
caption, else 0. They are NaN for a model evaluated in only one order.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict, cast

import numpy as np
import pandas as pd

from vlprobe.types import Metric, zero_margin

Column = Callable[[pd.DataFrame], np.ndarray]  # maps cases to one value per row


def _scores(rows: pd.DataFrame) -> tuple[np.ndarray, ...]:
    return tuple(rows[f"score_{column}"].to_numpy(np.float64) for column in range(4))


def margins(rows: pd.DataFrame) -> np.ndarray:
    """For each sample, return the smallest of the four differences that should be positive. The
    sample is solved if this difference is above 0.
    """
    return np.minimum(*_differences(rows))


def _differences(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Compute two differences per sample that are positive if the sample passes the text score and the image score.

    Each is the smaller of the two differences that the score needs. If it is 0, the sample fails only because of a tie.
    """
    s11, s12, s21, s22 = _scores(rows)
    return np.minimum(s11 - s12, s22 - s21), np.minimum(s11 - s21, s22 - s12)


def text_score(rows: pd.DataFrame) -> np.ndarray:
    """For each sample, return 1 if both pictures prefer their own caption (s11 > s12 and s22 > s21), else 0.

    Source: EqBen section 5, Winoground.
    """
    return (_differences(rows)[0] > 0).astype(np.float64)


def image_score(rows: pd.DataFrame) -> np.ndarray:
    """For each sample, return 1 if both captions prefer their own picture (s11 > s21 and s22 > s12), else 0.

    Source: EqBen section 5, Winoground.
    """
    return (_differences(rows)[1] > 0).astype(np.float64)


def group_score(rows: pd.DataFrame) -> np.ndarray:
    """For each sample, return 1 if the text score and the image score are both 1, else 0.

    Source: EqBen section 5, Winoground.

    >>> samples = pd.DataFrame([[3.0, 1.0, 2.0, 4.0], [3.0, 3.0, 1.0, 4.0]], columns=[f"score_{n}" for n in range(4)])
    >>> group_score(samples).tolist()  # in the second sample the first picture fits both captions equally
    [1.0, 0.0]
    """
    return text_score(rows) * image_score(rows)


def equivariance_deviation(rows: pd.DataFrame) -> np.ndarray:
    """Compute how unequally the scores in each sample respond to equal changes:
    |(s11-s12) - (s22-s21)| + |(s11-s21) - (s22-s12)|.

    Source: EqBen, figure 6, which has no formula; this is the deviation that equation 6 (EqSim v2)
        minimizes.
    """
    s11, s12, s21, s22 = _scores(rows)
    return np.abs((s11 - s12) - (s22 - s21)) + np.abs((s11 - s21) - (s22 - s12))


def foil_accuracy(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the picture prefers its caption to the foil, else 0. For a model that was evaluated
    with the captions in both orders, return the mean over both. Source: VALSE; EqBen table 8.

    >>> foil_accuracy(pd.DataFrame({"margin": [0.2, 0.0]})).tolist()
    [1.0, 0.0]
    >>> orders = {"order_12": [1.0, 0.0, 0.0], "order_21": [1.0, 1.0, 0.0]}
    >>> foil_accuracy(pd.DataFrame({"margin": [1.0, 0.0, -1.0], **orders})).tolist()
    [1.0, 0.5, 0.0]
    """
    preferred = (rows["margin"].to_numpy() > 0).astype(np.float64)
    first, second = _orders(rows)
    return np.where(np.isnan(first + second), preferred, (first + second) / 2)


def _orders(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns `order_12` and `order_21` as float64. If the rows lack them, return NaN."""
    first, second = (
        rows[name].to_numpy(np.float64) if name in rows else np.full(len(rows), math.nan)
        for name in ("order_12", "order_21")
    )
    return first, second


def _foil_tied(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return whether caption and foil score the same. If the order changes the answer, it is no tie."""
    first, second = _orders(rows)
    return zero_margin(rows) & np.isnan(first + second)


def right_in_both_orders(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the model chose the caption in both orders, else 0; NaN without two orders."""
    first, second = _orders(rows)
    return np.where(np.isnan(first + second), math.nan, np.minimum(first, second))


def order_flips(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the answer depends on the order of the captions, else 0; NaN without two orders.

    >>> asked_twice = pd.DataFrame({"order_12": [1.0, 0.0, 0.0], "order_21": [1.0, 1.0, 0.0]})
    >>> order_flips(asked_twice).tolist()
    [0.0, 1.0, 0.0]
    """
    first, second = _orders(rows)
    return np.abs(first - second)


def _of_probabilities(rows: pd.DataFrame, outcome: np.ndarray) -> np.ndarray:
    """Return the outcomes of the cases whose scores are probabilities, and NaN for all other cases."""
    is_probability = (
        rows["probability"].to_numpy(bool)
        if "probability" in rows
        else np.zeros(len(rows), dtype=bool)
    )
    return np.where(is_probability, outcome, math.nan)


def caption_accepted(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the caption's probability is above one half (p_c), else 0.

    Source: VALSE; EqBen table 2.
    """
    return _of_probabilities(rows, rows["score_0"].to_numpy() > 0.5)


def foil_rejected(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the foil's probability is below one half (p_f), else 0.

    Source: VALSE; EqBen table 2.
    """
    return _of_probabilities(rows, rows["score_1"].to_numpy() < 0.5)


def _caption_tied(rows: pd.DataFrame) -> np.ndarray:
    return _of_probabilities(rows, rows["score_0"].to_numpy() == 0.5) == 1


def _rejection_tied(rows: pd.DataFrame) -> np.ndarray:
    return _of_probabilities(rows, rows["score_1"].to_numpy() == 0.5) == 1


def judged_rightly(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return the share of its two texts, caption and foil, that the model classifies correctly (acc).
    Source: VALSE; EqBen table 2.

    >>> pair = pd.DataFrame({"score_0": [0.9, 0.7], "score_1": [0.2, 0.6], "probability": True})
    >>> judged_rightly(pair).tolist()
    [1.0, 0.5]
    """
    return (caption_accepted(rows) + foil_rejected(rows)) / 2


def weaker_side(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return p_c or p_f, whichever is lower over the whole run: min(p_c, p_f).

    Source: VALSE; EqBen table 2. Every slice uses the same side, so the value of a slice can be above its own minimum.
    """
    return np.where(rows["captions_are_weaker"], caption_accepted(rows), foil_rejected(rows))


def matched(rows: pd.DataFrame, *orders: str) -> np.ndarray:
    """For each pair, return 1 if the model, shown both pictures side by side, matches both captions
    in every given order, else 0.

    >>> matched(pd.DataFrame({"order_12": [0.9, 0.9], "order_21": [0.6, 0.1]}), "order_12", "order_21").tolist()
    [1.0, 0.0]

    Source: EqBen, section 5.5, where people read LLaVA's free-form answers; here we use the
        probability of the first word of the answer.
    """
    lowest = _lowest(rows, orders)
    return np.where(np.isnan(lowest), math.nan, lowest > 0.5)


def _lowest(rows: pd.DataFrame, orders: Sequence[str]) -> np.ndarray:
    if not set(orders) <= set(rows):
        return np.full(len(rows), math.nan)
    return rows[list(orders)].to_numpy(np.float64).min(axis=1)


class Survey(TypedDict):
    """Facts about a whole run that the metrics for individual cases need."""

    subset_sizes: Mapping[str, int]  # pairs in each subset
    captions_are_weaker: bool  # whether at most as many captions are accepted as foils are rejected


def survey(blocks: Iterable[pd.DataFrame]) -> Mapping[str, object]:
    """Compute the `Survey` of a run from blocks of scored cases."""
    sizes: Counter[str] = Counter()
    accepted, rejected = 0.0, 0.0
    for rows in blocks:
        sizes.update(rows["subtype"].to_numpy()[(rows["kind"] == "pair").to_numpy()].tolist())
        is_foil = (rows["kind"] == "foil").to_numpy()
        if is_foil.any():
            accepted += float(np.nansum(caption_accepted(rows)[is_foil]))
            rejected += float(np.nansum(foil_rejected(rows)[is_foil]))
    return Survey(subset_sizes=sizes, captions_are_weaker=accepted <= rejected)


def prepare(rows: pd.DataFrame, survey_facts: Mapping[str, object]) -> pd.DataFrame:
    """Add the columns `subset_size` and `captions_are_weaker`, from the survey, to a block of cases."""
    surveyed = cast(Survey, survey_facts)
    sizes = [surveyed["subset_sizes"].get(subset, math.nan) for subset in rows["subtype"]]
    return rows.assign(subset_size=sizes, captions_are_weaker=surveyed["captions_are_weaker"])


_metric = functools.partial(
    Metric,
    version=3,
    unit="rate",
    direction="up",
    chance=0.5,
    source="EqBen, section 5",
    kinds=("pair",),
)
_foil_metric = functools.partial(_metric, source="VALSE; EqBen, table 2", kinds=("foil",))


def _order_metric(
    *, name: str, label: str, help: str, chance: float = 0.5, orders: tuple[str, ...]
) -> Metric:
    return _metric(
        name=name,
        label=label,
        help=help,
        chance=chance,
        value=lambda rows: matched(rows, *orders),
        tied=lambda rows: _lowest(rows, orders) == 0.5,
        source="EqBen, section 5.5",
    )


METRICS = (
    _metric(
        name="text_score",
        label="Text score",
        help="Share of pairs in which each picture prefers its own caption.",
        chance=0.25,
        value=text_score,
        tied=lambda rows: _differences(rows)[0] == 0,
    ),
    _metric(
        name="image_score",
        label="Image score",
        help="Share of pairs in which each caption prefers its own picture.",
        chance=0.25,
        value=image_score,
        tied=lambda rows: _differences(rows)[1] == 0,
    ),
    _metric(
        name="group_score",
        label="Group score",
        help="Share of pairs with both a correct image and a correct text score.",
        chance=1 / 6,
        value=group_score,
    ),
    _metric(
        name="average_score",
        label="Average",
        help="Mean of the text, image and group scores, with equal weight for every subset.",
        chance=(0.25 + 0.25 + 1 / 6) / 3,
        source="EqBen, table 3",
        value=lambda rows: (text_score(rows) + image_score(rows) + group_score(rows)) / 3,
        weight=lambda rows: 1 / rows["subset_size"].to_numpy(np.float64),
        even_over="subtype",
        averaging=("micro",),
        tied=lambda rows: np.minimum(*map(np.abs, _differences(rows))) == 0,
    ),
    _metric(
        name="equivariance_deviation",
        label="Equivariance deviation",
        help="How unequally the score responds to equal changes; 0 means that the responses are "
        "equal. Use spread units to compare models.",
        unit="cosine",
        direction="down",
        chance=math.nan,
        value=equivariance_deviation,
        tied=None,
    ),
    _order_metric(
        name="matched_12",
        label="Matched, captions in order",
        help="Share of picture pairs matched with their captions when the caption of the picture "
        "on the left is listed first.",
        orders=("order_12",),
    ),
    _order_metric(
        name="matched_21",
        label="Matched, captions swapped",
        help="Share of picture pairs matched with their captions when the caption of the picture "
        "on the right is listed first. A model that follows the order fails.",
        orders=("order_21",),
    ),
    _order_metric(
        name="matched_both",
        label="Matched in both orders",
        help="Share of picture pairs matched with their captions in both orders of the captions.",
        chance=0.25,
        orders=("order_12", "order_21"),
    ),
    _foil_metric(
        name="foil_accuracy",
        label="Foil accuracy",
        help="Share of pictures that score their caption above a foil; for models tested with the "
        "captions in both orders, the mean of the two.",
        value=foil_accuracy,
        tied=_foil_tied,
    ),
    _foil_metric(
        name="caption_accepted",
        label="Captions accepted (p_c)",
        help="Share of true captions with a probability above 0.5, for models that return "
        "probabilities.",
        chance=math.nan,
        value=caption_accepted,
        tied=_caption_tied,
    ),
    _foil_metric(
        name="foil_rejected",
        label="Foils rejected (p_f)",
        help="Share of foils with a probability below 0.5, for models that return probabilities.",
        chance=math.nan,
        value=foil_rejected,
        tied=_rejection_tied,
    ),
    _foil_metric(
        name="judged_rightly",
        label="Correct judgments (acc)",
        help="Mean of two shares: accepted captions and rejected foils. Chance is 0.5.",
        value=judged_rightly,
        tied=lambda rows: _caption_tied(rows) | _rejection_tied(rows),
    ),
    _foil_metric(
        name="weaker_side",
        label="Weaker side (min)",
        help="The lower of two shares: accepted captions and rejected foils. A model that always "
        "says yes gets 0.",
        chance=math.nan,
        value=weaker_side,
        tied=lambda rows: np.where(
            rows["captions_are_weaker"], _caption_tied(rows), _rejection_tied(rows)
        ),
    ),
)

_both_orders_metric = functools.partial(
    _foil_metric, source="SugarCrepe, gpt-4v-results: positive-first and negative-first", tied=None
)
# For models that were evaluated with both orders of a caption and its foil
ORDER_METRICS = (
    _both_orders_metric(
        name="right_in_both_orders",
        label="Correct in both orders",
        help="Share of questions answered correctly in both orders of the captions.",
        chance=0.25,
        value=right_in_both_orders,
    ),
    _both_orders_metric(
        name="order_flips",
        label="Answer changes with the order",
        help="Share of questions whose answer changes when the two captions are swapped. A "
        "model that always picks the first caption gets 100 %.",
        direction="down",
        value=order_flips,
    ),
    _both_orders_metric(
        name="right_true_first",
        label="Correct, true caption listed first",
        help="Share of correct answers when the true caption is listed first.",
        value=lambda rows: _orders(rows)[0],
    ),
    _both_orders_metric(
        name="right_wrong_first",
        label="Correct, wrong caption listed first",
        help="Share of correct answers when the wrong caption is listed first.",
        value=lambda rows: _orders(rows)[1],
    ),
)
