"""Cards of Compare: those of the wall, with a small box a model in place of the squares.

A box has the model's mark and a tick or a cross; where models search, also what each of them put first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from vlprobe.render.charts.styles import Looks
from vlprobe.render.marks import mark_values
from vlprobe.render.sentences import shorten
from vlprobe.render.wall import CHANGES, CardData, card_data, frames
from vlprobe.render.words import movement_kinds
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.changes import changed_words
from vlprobe.views.filter import Filter
from vlprobe.views.records import AnswerRow
from vlprobe.views.wall import ModelVerdict, WallCard

STATES = {
    "fooled": "believes it",
    "tied": "cannot tell",
    "held": "rejects it",
    "unknown": "no answer",
}
MOVED = {"fooled": "moves", "tied": "stays", "held": "stays", "unknown": "no answer"}
LONGEST_WINNER = 120  # characters of a text that a model put first
# In kinds that cannot fool a model: margins of which the first model's is clearly the lower one.
MOVED_MORE = ((-9.0, -8.99999), (9.0, 9.00001), (-9.0, 9.00001))


def side_filter(kind: str, model: str, rival: str, subtype: str) -> Filter:
    """The cases that only `model` believes; of movements, those that move it more."""
    beside = Filter(model, kind, subtype, other=rival, sort="difference")
    if kind in movement_kinds():
        return replace(beside, outcome="all", within=MOVED_MORE)
    return replace(beside, outcome="fooled", other_outcome="held")


def pictures(
    card: WallCard, kind: KindPresentation, answers: Mapping[int, Mapping[str, AnswerRow]]
) -> list[str]:
    """Names of all pictures that a card shows, those that models put first included."""
    names = [name for name, _ in frames(card, kind)]
    if kind.body == "picture_search":
        names += [winner(card, kind, answer) for answer in answers.get(card.case, {}).values()]
    return names


def winner(card: WallCard, kind: KindPresentation, answer: AnswerRow | None) -> str:
    """Return the model's first candidate: in a picture search the name of one, in a caption search a text; "" if the
    question has only two sides, so that tick and cross show it.
    """
    if answer is None or kind.body not in ("picture_search", "caption_search"):
        return ""
    if answer.margin > 0:
        return card.images[0] if kind.body == "picture_search" else card.true_text
    return str(answer.columns.get("top", ""))


def winner_words(card: WallCard, text: str) -> str:
    """A caption that a model ranked first, in as few words as distinguish it from the others: the inserted ones if it
    is an altered caption of this picture.
    """
    if text == card.true_text:
        return "a true one"
    true_texts = [
        true_text
        for true_text, role in zip(card.texts, card.roles, strict=True)
        if role != "different"
    ]
    if text not in card.texts or not true_texts:
        return shorten(text, LONGEST_WINNER)
    changes = [changed_words(true_text, text)[1] for true_text in true_texts]
    return shorten(min(filter(None, changes), key=len, default=text), LONGEST_WINNER)


def facing_card(
    card: WallCard,
    kind: KindPresentation,
    models: Sequence[str],
    names: Mapping[str, str],
    styles: Looks,
    answers: Mapping[str, AnswerRow],
    picture: Callable[[str], str],
    badge: bool = True,
) -> CardData:
    """One card as the component `wall` draws it.

    Args:
        card: The case.
        kind: How cases of its kind are shown.
        models: Those that are compared, the baseline first.
        names: What these are called.
        styles: Styles of the models.
        answers: The answer of each of them, for kinds that search.
        picture: Gives a thumbnail as a data address by the picture's name; "" where there is none.
        badge: Whether to show the number of other cases of the picture on it.
    """
    by_model = {verdict.model: verdict for verdict in card.verdicts}
    boxes = [
        box(by_model[model], card, kind, names[model], styles, answers.get(model), picture)
        for model in models
    ]
    spoken = ", ".join(str(drawn["label"]) for drawn in boxes)
    drawn_card = card_data(card, kind, picture, badge=badge)
    words = str(drawn_card["name"])
    return {
        **drawn_card,
        "name": f"{shorten(words, 400)} {spoken}",
        "tip": "\n".join(str(drawn["label"]) for drawn in boxes),
        "verdicts": [],
        "count": "",
        "notes": [] if kind.is_movement else drawn_card["notes"],
        "boxes": boxes,
    }


def box(
    verdict: ModelVerdict,
    card: WallCard,
    kind: KindPresentation,
    name: str,
    styles: Looks,
    answer: AnswerRow | None,
    picture: Callable[[str], str],
) -> dict[str, object]:
    """A model's box: mark, verdict, and where models search what it put first."""
    top = winner(card, kind, answer)
    is_change = verdict.verdict == "tied" and not verdict.is_scored
    state = f"is {CHANGES}" if is_change else STATES[verdict.verdict]
    text, source, label = "", "", f"{name} {state}"
    if kind.is_movement:
        text = movement(verdict, kind, answer)
        label = f"{name} {MOVED[verdict.verdict]} {text}".strip()
    elif kind.body == "picture_search" and top:
        wrong = "a mixed" if Picture.from_name(top).edit else "another"
        source = picture(top)
        label = f"{label}: {'the right' if top == card.images[0] else wrong} picture first"
    elif top:
        text = winner_words(card, top)
        label = f"{label}: first “{shorten(top, LONGEST_WINNER)}”"
    return {
        **mark_values(styles[verdict.model]),
        "state": "moved" if kind.is_movement else verdict.verdict,
        "text": text,
        "source": source,
        "label": label,
    }


def movement(verdict: ModelVerdict, kind: KindPresentation, answer: AnswerRow | None) -> str:
    """Compute how far a model moved: a share, or a cosine with three decimals."""
    if verdict.verdict == "unknown":
        return "-"
    if kind.is_share:
        return f"{-100 * verdict.margin:.0f} %"
    return f"{-verdict.margin:.3f}"
