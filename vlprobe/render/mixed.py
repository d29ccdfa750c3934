"""Describe one search in a gallery with mixed pictures, in words and as input for the component
`mixed`.

A line of text is a list of runs. A run is a piece of text and its style, "strong" or "".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vlprobe.case.card import Run
from vlprobe.render.charts.styles import Looks, mark_values
from vlprobe.render.sentences import capitalized, shorten
from vlprobe.scoring.mixtures import SHARES, boxes
from vlprobe.views.mixed.case import SHOWN, Candidate, Fronts, MixedCase
from vlprobe.views.mixed.shares import ModelTurn, Standing, others

AMOUNTS = {10: "a tenth", 20: "a fifth", 30: "three tenths", 40: "two fifths", 50: "half"}
MOST_ROWS = 12  # models in the chart
Source = Callable[[str], int]  # maps a picture name to its index among the sources; -1 if missing


@dataclass(frozen=True, slots=True)
class MixedAnswers:
    """The answers to one search by the selected model and by all other models."""

    model: str
    fronts: Fronts | None
    standings: tuple[Standing, ...]  # for the selected model, by descending share
    turns: tuple[ModelTurn, ...]  # for the models in the chart
    waiting: tuple[str, ...] = ()  # models that are still being evaluated

    @property
    def is_waiting(self) -> bool:
        """Return whether the selected model is still being evaluated."""
        return self.model in self.waiting


def amount(stays: int) -> str:
    """Describe how much of the other picture a mixture contains if `stays` percent of the right one remain.

    >>> amount(90), amount(88)
    ('a tenth', '12 %')
    """
    return AMOUNTS.get(100 - stays, f"{100 - stays} %")


def ordinal(number: int) -> str:
    """Return a rank as an ordinal number.

    >>> ordinal(1), ordinal(2), ordinal(13), ordinal(1021)
    ('1st', '2nd', '13th', '1,021st')
    """
    is_teen = 10 < number % 100 < 20
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def is_patched(case: MixedCase) -> bool:
    """Return whether part of the other picture is pasted into the right one. Otherwise, the two are blended."""
    return case.subtype.startswith("patch:")


def heading(case: MixedCase, model: str, name: str, standing: Standing | None = None) -> str:
    """Return the outcome of the search in one line, in the run or at the share of a `standing`. A mixture is called the
    winner only if it ranks first.
    """
    ranks = case.ranks_of(model)
    share, rank, is_lost = case.share, ranks.with_mixtures, case.is_lost_to_own
    if standing and standing.share != case.share and ranks.clean == 1:
        share, rank, is_lost = standing.share, standing.right_rank, standing.own_rank == 1
        if share == SHARES[0]:
            return "The mixture is the right picture itself"
        if standing.is_won is None:
            return "Not tested at this share"
    if is_lost:
        part = amount(share)
        if is_patched(case):
            return f"A patch of another picture over {part} of the right one is enough to lose it"
        return f"{capitalized(part)} of another picture is enough to lose the right one"
    if ranks.clean == 1 and rank == 1:
        return f"{name} still finds the right picture"
    if ranks.clean == 1:
        return "Another mixture outranks the right picture"
    return f"{name} does not rank this picture first, even without mixtures"


def right_text(clean: int, with_mixtures: int) -> list[Run]:
    """Describe the ranks of the right picture without and with mixtures."""
    clean_rank, rank = (
        ordinal(place) if place else "below all retrieved candidates"
        for place in (clean, with_mixtures)
    )
    if clean == 1 and with_mixtures == 1:
        return [("found ", ""), (clean_rank, "strong"), (", with mixtures too", "")]
    if clean == 1:
        words = ("found ", ""), (clean_rank, "strong"), (" before mixtures were added; now ", "")
        return [*words, (rank, "strong")]
    return [(clean_rank, "strong"), (" without mixtures; now ", ""), (rank, "strong")]


def own_text(standing: Standing) -> tuple[str, str]:
    """Describe the rank of the right picture's own mixture. The returned style is "lie" if the mixture wins."""
    if standing.is_won is None:
        return "Not tested at this share", "quiet"
    if standing.share == SHARES[0]:
        return "The same picture: a tie", "tie"
    place = f"Ranked {ordinal(standing.own_rank)}" if standing.own_rank else ""
    if standing.is_won:
        return place or "Below the right picture", "true"
    place = f"{place} instead" if standing.own_rank == 1 else place
    return place or "Above the right picture", "lie"


def steps(case: MixedCase, answers: MixedAnswers, name: str) -> list[dict]:
    """Return the texts for the slider, which has a step for each mixing share that was or can be evaluated. `name` is
    the display name of the selected model.
    """
    known = {standing.share: standing for standing in answers.standings}
    shares = sorted({*SHARES, *known} if answers.is_waiting else known, reverse=True)
    ranks = case.ranks_of(answers.model)
    built = []
    for share in shares:
        standing = known.get(share, Standing(share, None, 0, 0, ()))
        text, style = own_text(standing)
        is_unknown = standing.is_won is None
        right = [("…", "")] if is_unknown else right_text(ranks.clean, standing.right_rank)
        part = f"{capitalized(amount(share))} of this one" if share < SHARES[0] else "None of it"
        built.append(
            {
                "share": share,
                "heading": heading(case, answers.model, name, standing),
                "stays": f"{share} %",
                "part": part,
                "right": right,
                "own": text,
                "style": style,
                "order": list(standing.order),
            }
        )
    return built


def component_data(
    case: MixedCase,
    answers: MixedAnswers,
    source: Source,
    size: tuple[int, int],
    looks: Looks,
    name_of: Callable[[str], str],
) -> dict:
    """Return the input for the component `mixed`, with pictures as indices.

    Args:
        source: Function that stores a picture and returns its index in the list of sources.
        size: Size of the right picture in pixels, which determines the position of a patch.
    """
    built = steps(case, answers, name_of(answers.model))
    shares = [step["share"] for step in built]
    caption = shorten(case.caption)
    partner = shorten(case.partner_caption)
    patches = []
    if is_patched(case):  # other shares have the patch of the nearest step
        by_share = dict(zip(SHARES, boxes(size, case.edit), strict=True)) if case.edit else {}
        nearest = [min(SHARES, key=lambda step: abs(step - share)) for share in shares]
        patches = [by_share[share] for share in nearest]
    return {
        "id": case.id,
        "query": caption,
        "right": {"source": source(case.right), "alt": caption},
        "partner": {
            "source": source(case.partner) if case.partner else -1,
            "alt": partner or "an unknown picture",
        },
        "alt": f"{caption}, mixed with a part of: {partner}",
        "steps": built,
        "start": shares.index(case.share),
        "boxes": patches,
        "strips": strips(case, answers, source),
        "chart": chart(case, answers, looks, name_of),
        "note": note(case, answers),
        "pending": bool(answers.waiting),
    }


def note(case: MixedCase, answers: MixedAnswers) -> str:
    """Return a sentence that explains what the slider changes."""
    kind = "patch" if is_patched(case) else "mixture"
    if len(answers.standings) < 2 and not answers.is_waiting:
        return f"This model is not available, so only the run's own {kind} has a result."
    return (
        f"The slider changes this picture's own {kind} and tests it again; in all others, "
        f"{case.share} % of the original picture remains."
    )


def strips(case: MixedCase, answers: MixedAnswers, source: Source) -> dict:
    """Return the first five pictures in the galleries without and with mixtures, or {} if they are unknown."""
    if answers.fronts is None:
        return {}
    partner = case.partner_item, case.partner, case.mixture
    own_mixture = Candidate(case.item, case.right, case.caption, *partner, score=0.0)
    hidden = "patched ones" if is_patched(case) else "mixtures"
    return {
        "clean": {
            "label": f"First five of {case.n_pictures:,} pictures",
            "frames": [_frame(case, each, source) for each in answers.fronts.clean[:SHOWN]],
        },
        "whole": {
            "label": f"First five, with {case.n_mixtures:,} {hidden} hidden in the gallery",
            "frames": [_frame(case, each, source) for each in others(answers.fronts, case.item)],
            "own": _frame(case, own_mixture, source),
        },
    }


def _frame(case: MixedCase, candidate: Candidate, source: Source) -> dict:
    """Return a candidate's frame: the picture and, if the page draws the mixture, the picture mixed into it."""
    is_own = candidate.item == case.item
    alt = shorten(candidate.caption or candidate.item, 160)
    if candidate.is_mixture:
        what = "the right picture's own mixture" if is_own else "mixed"
        is_drawn = is_own or not is_patched(case)  # blended on the page, from both pictures
        return {
            "source": source(candidate.picture if is_drawn else candidate.mixture),
            "over": source(candidate.partner_picture) if is_drawn else -1,
            "stays": case.share,
            "style": "lie",
            "name": f"{alt} ({what})",
        }
    return {
        "source": source(candidate.picture),
        "over": -1,
        "stays": SHARES[0],
        "style": "true" if is_own else "",
        "name": f"{alt} (the right picture)" if is_own else alt,
    }


def chart(
    case: MixedCase, answers: MixedAnswers, looks: Looks, name_of: Callable[[str], str]
) -> dict:
    """Return a chart with one row per model that shows up to which share of the right picture the mixture wins."""
    turns = answers.turns[:MOST_ROWS]
    kind = "patch" if is_patched(case) else "mixture"
    rows = [_row(each, looks, name_of(each.model)) for each in turns]
    left_out = len(answers.turns) - len(turns)
    return {
        "title": "When each model sees the difference",
        "note": f"Bars: shares of the right picture at which the {kind} still wins",
        "rows": rows,
        "ticks": [[share, f"{share} %"] for share in SHARES if share % 10 == 0],
        "more": f"and {left_out} more models" if left_out else "",
    }


def _row(each: ModelTurn, looks: Looks, name: str) -> dict:
    values = mark_values(looks[each.model])
    base = {"name": name, **values, "segments": [], "dots": [], "at": -1, "remark": ""}
    if each.turn is None:
        dots = [
            [share, has_won]
            for share, has_won in zip(SHARES, each.wins, strict=True)
            if has_won is not None
        ]
        known = "; ".join(
            f"{'not fooled' if won else 'fooled'} at {share} %" for share, won in dots
        )
        return base | {"dots": dots, "text": "", "remark": known or "not asked"}
    return base | {
        "segments": segments(each.wins),
        "at": each.turn.share or SHARES[-1],
        "text": "never" if each.turn.is_never else f"{each.turn.share} %",
        "remark": "more than once" if each.turn.n_changes > 1 else "",
    }


def segments(wins: Sequence[bool | None]) -> list[tuple[int, int]]:
    """Return the first and last share of each uninterrupted range in which the mixture wins.

    >>> segments([False] * 10 + [True] * 16)
    [(100, 80)]
    >>> segments([True, False, False] + [True] * 22 + [False])
    [(98, 94), (50, 50)]
    """
    ranges: list[tuple[int, int]] = []
    start = -1
    for place, has_won in enumerate([*wins, True]):
        if not has_won and start < 0:
            start = place
        elif has_won and start >= 0:
            ranges.append((SHARES[start], SHARES[min(place, len(SHARES) - 1)]))
            start = -1
    return ranges
