"""Convert a case to JSON values for the web components that draw cards on the Explore and Compare pages."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from vlprobe.case.card import VERDICT_WORDS, CaseCard, Run, Shot, verdict_word
from vlprobe.render.attribution import credit_values
from vlprobe.render.charts.styles import Looks, mark_values
from vlprobe.render.sentences import CHANGES, LONGEST, shorten
from vlprobe.render.words import NOT_RENAMED, model_name
from vlprobe.types import Picture
from vlprobe.views.wall import ModelVerdict

Values = dict[str, object]
Source = Callable[[str], str]  # from a picture's name to a data URL or a key; "" if there is none
MOST_SQUARES = 12  # if there are more models, the count is shown without squares
LONGEST_BEGIN, SHORT_BEGIN = 24, 10  # characters before the changed words of a caption
SHEET = 3  # maximum number of texts in place of a picture
STATES = {
    "fooled": "is fooled",
    "tied": "cannot tell",
    "held": "is not fooled",
    "unknown": "no answer",
}
MOVED = {"fooled": "moves", "tied": "stays", "held": "stays", "unknown": "no answer"}


def picture(shot: Shot, source: Source) -> Values:
    """Return a picture's address, file name and credit."""
    return {
        "source": source(shot.name),
        "name": Picture.from_name(shot.name).path.name,
        "credit": credit_values(shot.name),
    }


def wall_card(
    card: CaseCard,
    source: Source,
    *,
    remarks: Sequence[str] = (),
    renamed: Mapping[str, str] = NOT_RENAMED,
    badge: bool = True,
) -> Values:
    """Return a card as input for the component `wall`. Each of the `remarks` is a line below the card."""
    kind, verdicts = card.kind, card.judges
    shows_squares = not kind.is_movement and len(verdicts) <= MOST_SQUARES
    count, word = "" if kind.is_movement else card.count_text, "fooled"
    if count and not shows_squares:  # nothing else shows what is counted
        count, word = f"{count} {word}", ""
    note = card.verdict_text if kind.is_movement else card.half_text
    notes = [note] if note else []
    if badge and card.case.n_pictures > 1:
        notes.append(f"first for {card.case.n_pictures:,} pictures")
    if card.front != card.pictures:  # the mixed picture, not the right one
        notes += [f"shown: {shot.label.lower()}" for shot in card.front]
    return {
        "id": card.case.id,
        "name": card.name,
        "tip": "" if kind.is_movement else tooltip(verdicts, renamed),
        "frames": [
            {
                **picture(shot, source),
                "style": shot.style if shot.style == "wrong" else "",
                "text": shorten(shot.alt, 160),
            }
            for shot in card.front
        ],
        "badge": f"+{card.case.more:,}" if badge and card.case.more else "",
        "texts": _sheet(card),
        "lines": _lines(card),
        "verdicts": [
            (each.verdict, f"{model_name(each.model, renamed)}: {verdict_word(each)}")
            for each in verdicts * shows_squares
        ],
        "count": count,
        "word": word if len(verdicts) > 1 else "",
        "notes": [*notes, *remarks],
    }


def _sheet(card: CaseCard) -> list[list[Run]]:
    """Return the lines of text that replace the picture on a card without pictures."""
    case = card.case
    if case.images:
        return []
    if card.shows_query:
        return [[(shorten(case.true_text), "")]]
    return [
        [("✕ " if role == "different" else "✓ ", "quiet"), (shorten(text, 160), "")]
        for text, role in list(zip(case.texts, case.roles, strict=True))[:SHEET]
    ]


def _lines(card: CaseCard) -> list[list[Run]]:
    """Return the lines of text below the picture on a card: the query, the replaced words, or the wrong caption with
    its changed words marked.
    """
    case = card.case
    if card.shows_query:
        return [[(shorten(case.true_text), "")]] if case.images else []
    if words := card.change:
        return [words]
    if not (case.wrong_text and case.images):
        return []
    lead = [] if card.kind.is_movement or card.is_neutral else [("wrong: ", "quiet")]
    runs = card.wrong_runs(LONGEST)
    place = next((place for place, (_, style) in enumerate(runs) if style), 0)
    begin = "".join(text for text, _ in runs[:place])
    if len(begin) > LONGEST_BEGIN:  # the marked words would be cut off
        begin = f"… {begin[begin.rfind(' ', 0, -SHORT_BEGIN) + 1 :]}"
    return [[*lead, (begin, ""), *runs[place:]]]


def tooltip(verdicts: Sequence[ModelVerdict], renamed: Mapping[str, str] = NOT_RENAMED) -> str:
    """List the names of the models for each verdict, starting with the fooled models."""
    lines = []
    for word in (*VERDICT_WORDS.values(), CHANGES):
        names = [
            model_name(verdict.model, renamed)
            for verdict in verdicts
            if verdict_word(verdict) == word
        ]
        if names:
            lines.append(f"{word}: {', '.join(names)}")
    return "\n".join(lines)


def legend(cards: Sequence[CaseCard]) -> list[Run]:
    """Return the legend for the colored squares on cards. Only verdicts that occur on the cards are included."""
    n_models = len(cards[0].judges) if cards else 0
    if not 1 < n_models <= MOST_SQUARES or cards[0].kind.is_movement:
        return []
    shown = [verdict for card in cards for verdict in card.judges]
    words = {verdict_word(verdict): verdict.verdict for verdict in shown}
    words |= {VERDICT_WORDS[state]: state for state in ("fooled", "held")}
    lead = "One square per model:"
    return [
        ("", lead),
        *((words[word], word) for word in (*VERDICT_WORDS.values(), CHANGES) if word in words),
    ]


def facing_card(
    card: CaseCard,
    models: Sequence[str],
    names: Mapping[str, str],
    looks: Looks,
    source: Source,
    badge: bool = True,
) -> Values:
    """Return a card for the Compare page: a `wall_card` with one box per model instead of colored squares.

    Args:
        card: The case, with the answers of the compared models if its kind is a search.
        models: Names of the compared models, the baseline first.
    """
    by_model = {verdict.model: verdict for verdict in card.case.verdicts}
    boxes = [box(card, by_model[model], names[model], looks, source) for model in models]
    labels = [str(drawn["label"]) for drawn in boxes]
    on_wall = wall_card(card, source, badge=badge)
    shown = (card.verdict_text, card.half_text)  # the boxes say it
    return {
        **on_wall,
        "name": f"{shorten(card.name, 400)} {', '.join(labels)}",
        "tip": "\n".join(labels),
        "verdicts": [],
        "count": "",
        "notes": [note for note in cast(list[str], on_wall["notes"]) if note not in shown],
        "boxes": boxes,
    }


def box(card: CaseCard, verdict: ModelVerdict, name: str, looks: Looks, source: Source) -> Values:
    """Return one model's box on a card: its symbol, its verdict and, for a search, its first-ranked candidate."""
    kind, winner = card.kind, card.winner_of(card.answers.get(verdict.model))
    state = f"is {CHANGES}" if verdict.is_in_one_order else STATES[verdict.verdict]
    text, address, label = "", "", f"{name} {state}"
    if kind.is_movement:
        text = f"{-100 * verdict.margin:.0f} %" if kind.is_share else f"{-verdict.margin:.3f}"
        text = "-" if verdict.verdict == "unknown" else text
        label = f"{name} {MOVED[verdict.verdict]} {text}".strip()
    elif winner:
        text, label = winner.text, f"{label}: {winner.sentence}"
        address = winner.picture and source(winner.picture)
    return {
        **mark_values(looks[verdict.model]),
        "state": "moved" if kind.is_movement else verdict.verdict,
        "text": text,
        "source": address,
        "label": label,
    }


def facing_pictures(card: CaseCard) -> list[str]:
    """Return the names of all pictures on a card for the Compare page, including the ones that models rank first."""
    winners = map(card.winner_of, card.answers.values())
    return [
        *(shot.name for shot in card.front),
        *(winner.picture for winner in winners if winner and winner.picture),
    ]


def picture_names(card: CaseCard) -> list[str]:
    """Return the names of all pictures in a case, including the ones in the drawer."""
    shots = [*card.pictures, *(shot for strip in card.strips() for shot in strip.pictures)]
    return [shot.name for shot in shots]
