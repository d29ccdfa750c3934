"""Create all slides for a talk from stored results. The functions have no side effects."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from vlprobe.case.card import CaseCard, card_type, case_card
from vlprobe.metrics.blind import SHORT_METHODS, BlindAccuracy
from vlprobe.registry import is_control
from vlprobe.render import findings
from vlprobe.render.attribution import published_by, published_text
from vlprobe.render.mixed import amount
from vlprobe.render.numbers import interval, number
from vlprobe.render.sentences import (
    capitalized,
    count_word,
    counted,
    halves_note,
    joined,
    listed,
    shorten,
    some_models,
    unbroken,
)
from vlprobe.render.slides.case import (
    MOST_BARS,
    ROOM,
    case_slides,
    question_and_answer,
    side_pictures,
)
from vlprobe.render.slides.models import full_names, models_slide, slide_names
from vlprobe.render.slides.values import NO_PICTURE, Figure, Slide, SlideBar, SlidePicture
from vlprobe.render.words import NOT_RENAMED, dataset_name, is_plural, presentations, wrong
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import ModelShare, PairedTests, SubtypeShare
from vlprobe.views.showcase import LEAST_ANSWERS
from vlprobe.views.story import MixedStory, Story

MOST_FIGURES = 4
LONGEST_EXAMPLE = 110  # characters of a caption below a picture or in its place


def slides(story: Story, renamed: Mapping[str, str] = NOT_RENAMED) -> tuple[Slide, ...]:
    """Return the slides for a talk. Slides whose results are unknown are omitted.

    Args:
        renamed: Display names that users gave to models and datasets.
    """
    kind = presentations()[story.probe].kind(story.standings.kind)
    models = [contestant.model for contestant in story.standings.contestants]
    names = slide_names(models, renamed)
    deck = case_slides(story.models, story.opener.card, kind, names) if story.opener else []
    if not all(map(is_control, story.models)):
        deck.insert(2, models_slide(story.models, story.runs, names))
    dataset = dataset_name(story.dataset, renamed)
    sources = published_text(story.runs, full_names(renamed))
    asked_twice = {run.model for run in story.runs if run.n_orders == 2}
    halves = halves_note([names[model] for model in models if model in asked_twice])
    measured = [*_who_is_better(story, kind, names), *_how_often(story, kind, halves)]
    credit = joined(f"{dataset}.", published_by(story.runs))
    deck += [replace(each, note=joined(each.note, credit)) for each in measured]
    if story.more:
        deck.append(question_and_answer(story.models, story.more.card, kind, names, "more"))
    cards = [each.card for each in (story.opener, story.more) if each] + [*story.examples.values()]
    if not kind.is_movement:  # the title says how often the best model is fooled
        best = {each.model for each in story.standings.fit[:1]}
        cards.sort(
            key=lambda card: not best & {one.model for one in card.verdicts if one.margin <= 0}
        )
    pictures = side_pictures(case_card(cards[0], kind), 0) if cards else ()
    closing = Slide(
        id="closing",
        layout="beside" if pictures else "stacked",
        heading=((_takeaway(story.standings, kind, names), ""),),
        detail=_advice(story.standings, kind),
        pictures=pictures,
        note=joined(f"Cases: {dataset}.", published_by(story.runs)),
        notes=(findings.ranking(story.standings, names), sources),
    )
    return (*deck, *_mixed(story.mixture, renamed), closing)


def _takeaway(standings: PairedTests, kind: KindPresentation, names: Mapping[str, str]) -> str:
    """Return the sentence for people to remember: how often even the best model is fooled, if that is known."""
    fit = [each for each in standings.fit if each.share > 0]
    is_better = standings.is_movement or any(each.may_win for each in fit)
    if not (is_better and standings.best) or not 1 < len(fit) == len(standings.fit):
        return findings.ranking(standings, names)
    if standings.is_movement and standings.unit != "rate":
        return "Even the steadiest model here changes its score when only the words change."
    headline = _headline([min(fit, key=lambda each: each.share)], standings, kind)
    best = "steadiest" if standings.is_movement else "best"
    return unbroken(f"Even with the {best} model here, {headline[0].lower()}{headline[1:]}")


def _advice(standings: PairedTests, kind: KindPresentation) -> str:
    """Return the sentence that a talk ends with; "" if it does not follow from the results."""
    if not any(each.share > 0 for each in standings.fit):
        return ""
    if kind.is_share:
        return "Other words find other pictures: search twice."
    if standings.is_movement:
        return "Ask twice, in other words."
    return "Check a model's answer before you rely on it."


def describe_questions(
    story: Story, kind: KindPresentation, renamed: Mapping[str, str] = NOT_RENAMED
) -> str:
    """Return a line of text with the number of models, the number of questions, and the dataset."""
    n_models = len(story.models)
    subject = capitalized(f"{count_word(n_models)} {'model' if n_models == 1 else 'models'}")
    lies = kind.lies if story.standings.n_cases != 1 else kind.lies.removesuffix("s")
    dataset = dataset_name(story.dataset, renamed)
    return f"{subject}, {story.standings.n_cases:,} {lies}. {dataset}."


# How often.


def _how_often(story: Story, kind: KindPresentation, halves: str) -> list[Slide]:
    """Return a slide that shows how often each type of edit fools the models: a few types with an example each, the
    least effective first.

    Args:
        halves: A note on answers that count as half, for the speaker notes; "" without any.
    """
    standings = story.standings
    rows = [
        row
        for row in standings.shares
        if row.n_answers >= LEAST_ANSWERS and not math.isnan(row.share)
    ]
    if len(rows) < 2:
        return []
    rows = sorted(rows, key=lambda row: (row.share, row.subtype))
    title = _worst_subtypes(rows)  # from all types
    pictured = {name for name, card in story.examples.items() if card.images}
    shown = [row for row in _mildest_and_worst(rows, pictured) if row.subtype in story.examples]
    cards = [case_card(story.examples[row.subtype], kind) for row in shown]
    of_cards = [card.wrong_runs(LONGEST_EXAMPLE) for card in cards]
    is_marked = all(any(style == "lie" for _, style in runs) for runs in of_cards)
    n_models = len(standings.fit)
    whose = "one model" if n_models == 1 else f"{count_word(n_models)} models together"
    left_out = len(standings.shares) - len(shown)
    remainder = f"{capitalized(counted(left_out, 'more kind'))} not shown." if left_out else ""
    ends = [
        f"{capitalized(wrong(row.subtype))}: {_share(row)} ({row.n_answers:,} answers)."
        for row in (shown or rows)[:: max(len(shown or rows) - 1, 1)]
    ]
    return [
        Slide(
            id="often",
            heading=((title, ""),),
            pictures=tuple(map(_example, cards)),
            figures=tuple(
                Figure(
                    number(row.share, "rate"), wrong(row.subtype), f"of {row.n_answers:,} answers"
                )
                for row in shown
            ),
            note=joined(
                "Each caption is wrong in the marked words." * (is_marked and bool(cards)),
                f"How often each kind is {card_type(kind).believed}, by {whose}.",
                remainder,
            ),
            notes=(
                "Before you show this slide, ask which kind of mistake is the hardest to notice.",
                " ".join(reversed(ends)),
                halves,
            ),
        )
    ]


def _mildest_and_worst(
    rows: Sequence[SubtypeShare], pictured: Collection[str]
) -> list[SubtypeShare]:
    """Return the first row, the last one and the worst of those between, `MOST_FIGURES` in all; types that the title
    names, and then those with a picture, are preferred. If there are more, two sets of one kind count as one, of which
    one that the title names or else the more general is kept.
    """
    if len(rows) > MOST_FIGURES:
        named = _worst(rows)  # by the title
        general = sorted(
            rows, key=lambda row: (row not in named, "(" in wrong(row.subtype), -row.share)
        )
        heads = {wrong(row.subtype).partition(" (")[0]: row for row in reversed(general)}
        rows = [row for row in rows if row in heads.values()]
    named = _worst(rows)
    between = sorted(
        rows[1:-1], key=lambda row: (row not in named, row.subtype not in pictured, -row.share)
    )
    left_out = between[MOST_FIGURES - 2 :]
    return [row for row in rows if row not in left_out]


def _example(card: CaseCard) -> SlidePicture:
    """Return the picture of a case, if it is on this machine, with the wrong caption."""
    caption = tuple(card.wrong_runs(LONGEST_EXAMPLE))
    if not card.case.images:
        true_text = shorten(card.case.true_text, LONGEST_EXAMPLE)
        return SlidePicture("", f"True: {true_text}", caption)
    shot = card.front[0]
    return SlidePicture(shot.name, shot.alt, caption)


def _worst_subtypes(rows: Sequence[SubtypeShare]) -> str:
    """Name the types of edit that fool models most often: the fewest that are clearly above all others. Rows must be
    sorted by share, ascending.
    """
    if any(math.isnan(row.low) or math.isnan(row.high) for row in rows):
        return "How often each kind of lie fools models."
    if max(row.low for row in rows) <= min(row.high for row in rows):
        return "All kinds of lies fool models about equally often."
    worst = _worst(rows)
    is_clear = _is_clear(rows, len(worst))
    return f"{_fool(worst)} most often{'' if is_clear else ', but not clearly'}."


def _worst(rows: Sequence[SubtypeShare]) -> Sequence[SubtypeShare]:
    """Return the fewest last rows that are clearly above all others, or the last row if there are none."""
    n_clear = (n for n in range(1, min(len(rows), MOST_FIGURES)) if _is_clear(rows, n))
    return rows[-next(n_clear, 1) :]


def _is_clear(rows: Sequence[SubtypeShare], n_worst: int) -> bool:
    """Return whether the intervals of the last `n_worst` rows are above those of all others."""
    return min(row.low for row in rows[-n_worst:]) > max(row.high for row in rows[:-n_worst])


def _fool(rows: Sequence[SubtypeShare]) -> str:
    """Return the start of a sentence: types of edit and a verb, such as "A wrong color fools"."""
    names = [wrong(row.subtype) for row in reversed(rows)]
    heads = [name.partition(" (")[0] for name in names]
    # Two sets of one kind count as one
    pairs = zip(names, heads, strict=True)
    what = list(dict.fromkeys(head if heads.count(head) > 1 else name for name, head in pairs))
    is_one = len(what) == 1 and not is_plural(what[0])
    return f"{capitalized(listed(what))} {'fools' if is_one else 'fool'}"


def _share(row: SubtypeShare | ModelShare) -> str:
    """Write a share with its interval in words."""
    ends = interval(row.low, row.high, "rate")
    between = f", with 95 % confidence between {ends.replace(' to ', ' % and ')}" if ends else ""
    return f"{number(row.share, 'rate')}{between}"


# Who is better.


def _who_is_better(story: Story, kind: KindPresentation, names: Mapping[str, str]) -> list[Slide]:
    standings = story.standings
    fit = [each for each in standings.fit if not math.isnan(each.share)]
    known = [each for each in standings.contestants if not math.isnan(each.share)]
    unfit = [each for each in known if not each.is_fit]
    if not fit and not unfit:
        return []
    bars = fit if len(fit) <= MOST_BARS else [*fit[: MOST_BARS - 1], fit[-1]]
    heading = _headline(fit or unfit, standings, kind)
    left_out = len(fit) - len(bars)
    note = _measured(standings, kind, all(run.score_type == "cosine" for run in story.runs))
    apart = [  # named, but not drawn with the others
        f"{names[each.model]}, {'a control' if each.is_control else 'which failed its checks'}: "
        f"{number(each.share, standings.unit)}."
        for each in unfit[:2]
        if bars
    ]
    if left_out:
        note += f" Not shown between the last two: {counted(left_out, 'model')}."
    blind = 1 - story.guess.accuracy.value if story.guess else math.inf
    if beaten := [names[each.model] for each in fit if each.low > blind]:
        note += f" The guess from the texts alone beats {listed(beaten)}: wrong captions often give themselves away."
    drawn = bars or unfit[:MOST_BARS]
    scale, limit, label = _scale(drawn, standings)
    return [
        Slide(
            id="better",
            heading=((heading, ""),),
            bars=_bars(drawn, standings, story.guess, scale),
            scale=scale,
            limit=limit * scale,
            limit_label=label,
            note=" ".join([note, *apart]),
            notes=_ranking_notes(story, fit or unfit, kind, names),
        )
    ]


def _scale(
    rows: Sequence[ModelShare | SubtypeShare], standings: PairedTests
) -> tuple[float, float, str]:
    """Return the width per share of a bar, the share at which a line crosses the bars, and its label."""
    ends = [max(filter(math.isfinite, (each.share, each.high)), default=0.0) for each in rows]
    guess = 0.0 if standings.is_movement or math.isnan(standings.guess) else standings.guess
    limit = guess or _round_end(max(ends))
    label = number(limit, "rate").replace(".0 %", " %")
    if standings.unit != "rate":
        label = f"{limit:g}"
    return ROOM / max([*ends, limit]), limit, f"guessing, {label}" if guess else label


def _headline(
    contestants: Sequence[ModelShare], standings: PairedTests, kind: KindPresentation
) -> str:
    """Say how often the best and the worst model are fooled, or how far scores move on average."""
    lowest, highest = (pick(each.share for each in contestants) for pick in (min, max))
    shares = number(lowest, standings.unit)
    if shares != number(highest, standings.unit):
        shares = interval(lowest, highest, standings.unit)
    if standings.is_movement and standings.unit == "rate":
        return f"{shares} of the top pictures change."
    if standings.is_movement:
        return f"A score moves by {shares} on average."
    return f"{shares} of the {kind.lies} are {card_type(kind).believed}."


def _round_end(longest: float) -> float:
    """Return the end of the scale for bars that guessing does not limit.

    >>> [_round_end(each) for each in (0.104, 0.513, 0.0142, 0.0)]
    [0.2, 1.0, 0.02, 1.0]
    """
    power = 10.0 ** math.floor(math.log10(longest)) if longest > 0 else 1.0
    return round(next(step * power for step in (1, 2, 5, 10) if step * power >= longest), 9)


def _bars(
    contestants: Sequence[ModelShare],
    standings: PairedTests,
    guess: BlindAccuracy | None,
    scale: float,
) -> tuple[SlideBar, ...]:
    bars = tuple(
        SlideBar(
            model=contestant.model,
            start=0.0,
            end=contestant.share * scale,
            text=number(contestant.share, standings.unit),
            low=contestant.low * scale,
            high=contestant.high * scale,
            style="best" if contestant.model == standings.best else "",
            remark="a control"
            if contestant.is_control
            else "failed its checks" * contestant.is_unfit,
        )
        for contestant in contestants
    )
    if guess is None:
        return bars
    blind = 1 - guess.accuracy.value
    remark = f"best guess {SHORT_METHODS[guess.method]}"
    return (
        *bars,
        SlideBar(NO_PICTURE, 0.0, min(blind * scale, 1.0), number(blind, "rate"), remark=remark),
    )


def _measured(standings: PairedTests, kind: KindPresentation, is_cosine: bool) -> str:
    counts = f"{standings.n_cases:,} {kind.lies}."
    if standings.is_movement:
        moved = (
            "Share of the top pictures that change"
            if kind.is_share
            else f"How far a score{' (-1 to 1)' * is_cosine} moves"
        )
        return f"{moved} when only the words change: {counts} Thin lines: margin of error (95 %)."
    happened = card_type(kind).believed
    return f"Share of the {kind.lies} that are {happened}: {counts} Thin lines: margin of error (95 %)."


def _ranking_notes(
    story: Story,
    contestants: Sequence[ModelShare],
    kind: KindPresentation,
    names: Mapping[str, str],
) -> tuple[str, ...]:
    """Say what a bar is, what the best and the worst model did, and what the line means."""
    standings = story.standings
    lines = ["Each bar is a model: a shorter bar is better."]
    if not standings.is_movement:
        ends = (contestants[0], contestants[-1])[: len(contestants)]
        lines[0] += "".join(
            f" {names[each.model]} is fooled by "
            f"{number(each.share, 'rate')} of {each.n_cases:,} {kind.lies}."
            for each in ends
        )
    if kind.is_share:
        lines.append(
            "The share is of up to 100 pictures per search. The searches on slides are among the worst."
        )
    if story.guess:
        blind = number(1 - story.guess.accuracy.value, "rate")
        lines.append(
            f"A guess that never looks at the picture is wrong in {blind}. A model "
            "with a longer bar does no better."
        )
    n_pairs = len(standings.rows)
    if n_pairs:
        clear = sum(pair.verdict in ("fewer", "more") for pair in standings.rows)
        differ = "all differ clearly" if clear else "none differs clearly"
        if 0 < clear < n_pairs:
            differ = f"{clear:,} differ clearly; the rest are tied or unknown"
        lines.append(f"Of {counted(n_pairs, 'pair')} of models, {differ}.")
    return (*lines, findings.unbeaten(standings, names))


# Mixed pictures.


def _mixed(mixture: MixedStory | None, renamed: Mapping[str, str]) -> list[Slide]:
    if mixture is None:
        return []
    case = mixture.case
    ranks = case.ranks_of(mixture.model)
    losing = some_models(mixture.n_fooled, mixture.n_models)
    losing += " loses" if mixture.n_fooled == 1 else " lose"
    title = f"{capitalized(amount(case.share))} of another picture is enough to lose the right one."
    pictures = (
        SlidePicture(case.right, case.caption, "The right picture", "true"),
        SlidePicture(case.partner, "The picture that is mixed in", "The other picture"),
        SlidePicture(
            case.mixture, f"{case.caption} Mixed with another.", "Ranked first instead", "lie"
        ),
    )
    return [
        Slide(
            id="mixed",
            heading=((title, ""),),
            detail=f"“{shorten(case.caption, 160)}” {losing} this picture to its own mixture.",
            pictures=tuple(picture for picture in pictures if picture.name),
            note=f"{dataset_name(mixture.dataset, renamed)}: {case.n_pictures:,} pictures, and "
            f"{case.n_mixtures:,} mixtures hidden among them.",
            notes=(
                f"{mixture.model} ranks the right picture number {ranks.clean or '?'} without "
                f"mixtures and number {ranks.with_mixtures or '?'} with them.",
                (
                    f"At this strength, {mixture.model} loses {mixture.n_lost:,} of "
                    f"{mixture.n_found:,} successful searches to their own mixture."
                ),
                f"{case.share} % of the right picture remains in the mixture.",
            ),
            is_extra=True,
        )
    ]
