"""A picture search at every mixing share: which picture wins, and the top candidates.

Only the mixture of the right picture changes; all other candidates stay at the strength of the run.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vlprobe.scoring.mixtures import SHARES, ShareScores, Turn, turn
from vlprobe.views.mixed.case import SHOWN, Candidate, Fronts, MixedCase

OWN = -1  # in an order of candidates, stands for the right picture's own mixture


@dataclass(frozen=True, slots=True)
class Standing:
    """One model's result in a picture search when the right picture is mixed at a given share."""

    share: int  # percentage of the right picture that remains
    is_won: bool | None  # whether the right picture scores higher than its mixture; None: unknown
    right_rank: int  # rank among all candidates; 0: unknown
    own_rank: int  # rank of the mixture in `order`; 0: beyond the top candidates, or unknown
    order: tuple[int, ...]  # top candidates: indices of `others`, or OWN


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """The mixing share at which a model starts to prefer the right picture to its mixture."""

    model: str
    wins: tuple[bool | None, ...]  # by share, in the order of SHARES; None: not evaluated
    turn: Turn | None  # None: not evaluated at every share


def others(fronts: Fronts, item: str) -> tuple[Candidate, ...]:
    """Return the top candidates in the gallery with mixtures, best first, without the mixture of the given item."""
    return tuple(
        candidate
        for candidate in fronts.with_mixtures
        if not (candidate.item == item and candidate.is_mixture)
    )


def standings(
    case: MixedCase, model: str, fronts: Fronts | None, scores: ShareScores | None
) -> tuple[Standing, ...]:
    """Compute one model's result in a picture search at each mixing share.

    Args:
        fronts: The model's top candidates at the run's strength; None means unknown.
        scores: The model's similarities at every share; None means that only the run's own share is known.

    Returns:
        One entry for each of SHARES, or only one for the run's share. At the run's share, the
        stored answer is kept even if new scores exist.
    """
    ranks = case.ranks_of(model)
    own_scores = {} if scores is None else _shifted(scores, ranks.score)
    stored_own = math.nan if fronts is None else fronts.own_score
    if not math.isnan(stored_own) or case.share not in own_scores:
        own_scores[case.share] = stored_own
    at_run = own_scores[case.share]
    return tuple(
        _standing(case, ranks.with_mixtures, ranks.score, share, mixture, at_run, fronts)
        for share, mixture in sorted(own_scores.items(), reverse=True)
    )


def _shifted(scores: ShareScores, right: float) -> dict[int, float]:
    """Return the mixture's score at each share, shifted so that the right picture's score equals its stored score."""
    return {
        share: right + (mixture - scores.right)
        for share, mixture in zip(SHARES, scores.mixtures, strict=True)
    }


def _standing(
    case: MixedCase,
    stored_rank: int,
    right: float,
    share: int,
    mixture: float,
    own_at_run: float,
    fronts: Fronts | None,
) -> Standing:
    if math.isnan(mixture):
        is_won = None if not case.is_lost_to_own else False
        return Standing(share, is_won, stored_rank, int(case.is_lost_to_own), ())
    rank = stored_rank
    if stored_rank and not math.isnan(own_at_run):
        rank += int(mixture >= right) - int(own_at_run >= right)
    if fronts is None:
        return Standing(share, right > mixture, rank, 0, ())
    beside = others(fronts, case.item)
    place = _place(fronts, case, mixture, is_stored=share == case.share)
    is_among = place < len(beside) or len(beside) == case.n_pictures + case.n_mixtures - 1
    order = list(range(min(len(beside), SHOWN)))
    if is_among:
        order.insert(place, OWN)
    own_rank = place + 1 if is_among else fronts.own_rank if share == case.share else 0
    return Standing(share, right > mixture, rank, own_rank, tuple(order[:SHOWN]))


def _place(fronts: Fronts, case: MixedCase, mixture: float, is_stored: bool) -> int:
    """Count the top candidates that rank before the mixture of the right picture, by stored order or by score."""
    if is_stored:
        for place, candidate in enumerate(fronts.with_mixtures):
            if candidate.item == case.item and candidate.is_mixture:
                return place
    # The right picture comes after candidates with equal scores
    return sum(
        candidate.score > mixture
        or (candidate.score == mixture and (candidate.item != case.item or candidate.is_mixture))
        for candidate in others(fronts, case.item)
    )


def model_turn(
    model: str, scores: ShareScores | None, stored_wins: Mapping[int, bool], share: int
) -> ModelTurn:
    """Find the mixing share at which a model starts to prefer the right picture to its mixture.

    Args:
        scores: The model's similarities at every share; None means that they were not computed again.
        stored_wins: Whether the right picture wins in stored runs, by share.
        share: The displayed share, at which a stored result is kept.
    """
    if scores is None:
        known: dict[int, bool | None] = {**stored_wins, SHARES[0]: None}
        return ModelTurn(model, tuple(known.get(each_share) for each_share in SHARES), None)
    wins = dict(zip(SHARES, scores.wins, strict=True))
    if share in stored_wins and share in wins:
        wins[share] = stored_wins[share]
    won = [wins[each_share] for each_share in SHARES]
    return ModelTurn(model, tuple(won), turn(won))


def by_turn(turns: Sequence[ModelTurn]) -> list[ModelTurn]:
    """Sort models by how early they prefer the right picture. Models that never do or were not tested come last."""
    return sorted(
        turns, key=lambda each: (each.turn is None, -(each.turn.share if each.turn else 0))
    )
