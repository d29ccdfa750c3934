"""Cards of the wall in words: the data that the component `wall` draws, and its screen reader text.

A line is a list of runs: a text and the style that it has, "true" for what is true, "lie" for what
was made wrong, "changed" for what was only reworded.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence

from vlprobe.registry import is_control
from vlprobe.render.attribution import credit_values
from vlprobe.render.sentences import count_word, shorten
from vlprobe.render.words import model_name, value_label
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.pattern_groups import TAG, TYPE, words_of
from vlprobe.views.patterns import Pattern
from vlprobe.views.wall import ModelVerdict, WallCard

Run = tuple[str, str]
CardData = dict[str, object]
MOST_SQUARES = 12  # of more models the count is shown without squares
SHEET = 3  # texts in the place of a picture
VERDICT_WORDS = {  # in the order of the legend
    "fooled": "fooled",
    "held": "held",
    "tied": "cannot tell",
    "unknown": "no answer",
}
# Of an answer that is right or wrong only, and changes with the order of the captions
CHANGES = "right in one order only"
BELIEVED = {  # what happened to the lies that are counted, by the body of their kind
    "pair": "not told apart",
    "caption_search": "ranked above the true ones",
    "picture_search": "ranked above the right one",
    "series": "missed",
}


def change(card: WallCard, kind: KindPresentation) -> list[Run]:
    """The removed words and the inserted ones; empty if there are none."""
    is_neutral = kind.is_movement or kind.body in ("pair", "series")
    true_style, lie_style = ("changed", "changed") if is_neutral else ("true", "lie")
    source, target = changed_words(card)
    if source and target:
        return [(source, true_style), ("became", "arrow"), (target, lie_style)]
    if target:
        return [("added: ", "quiet"), (target, lie_style)]
    return [("left out: ", "quiet"), (source, true_style)] if source else []


def changed_words(card: WallCard) -> tuple[str, str]:
    """The removed and inserted words, without the capital that only begins a caption."""
    source, target = shorten(card.source, 80), shorten(card.target, 80)
    return _without_capital(source, card.true_text), _without_capital(target, card.wrong_text)


def _without_capital(words: str, caption: str) -> str:
    begins = words and caption.startswith(words) and words[1:].islower()
    return words[:1].lower() + words[1:] if begins else words


def pattern_words(key: str) -> tuple[str, str]:
    """Return the name of a pattern: the words removed and inserted, or a type or a tag and nothing.

    >>> pattern_words("four>five"), pattern_words("type:color"), pattern_words(">knife")
    (('four', 'five'), ('Color', ''), ('…', 'knife'))
    """
    if key.startswith(TYPE):
        return value_label(key.removeprefix(TYPE)), ""
    if key.startswith(TAG):
        return key.removeprefix(TAG).replace("=", ": ", 1), ""
    source, target = words_of(key)
    return source or "…", target or "(nothing)"


def lift_words(pattern: Pattern) -> str:
    """Compute how often the words of a pattern are believed, against other edits."""
    others = "the average" if pattern.key.startswith(TYPE) else "edits of the same type"
    return f"Believed {pattern.lift:.1f} times as often as {others} ({100 * pattern.base:.1f} %)"


def verdict_word(verdict: ModelVerdict) -> str:
    """A verdict in words; without scores, "tied" is an answer that changes with the order."""
    is_change = verdict.verdict == "tied" and not verdict.is_scored
    return CHANGES if is_change else VERDICT_WORDS[verdict.verdict]


def judges(card: WallCard) -> list[ModelVerdict]:
    """The verdicts that are counted: those of all models but controls, which are meant to fail; where there are only
    controls, theirs.
    """
    models = [verdict for verdict in card.verdicts if not is_control(verdict.model)]
    return models or list(card.verdicts)


def count_text(card: WallCard) -> str:
    """Count how many models believe what is wrong, ties included, of how many; of one model, whether it
    does. Controls are not counted.
    """
    verdicts = judges(card)
    if len(verdicts) == 1:
        return verdict_word(verdicts[0])
    believed = sum(verdict.verdict in ("fooled", "tied") for verdict in verdicts)
    return f"{believed} of {len(verdicts)}"


def stayed(card: WallCard) -> tuple[int, int] | None:
    """Count the first pictures of a query that are also among the first of the wording that shares fewest with it, and
    all of them; None if the answer has no rankings.
    """
    rankings = top_lists(card)
    if len(rankings) < 2:
        return None
    return min(len(set(rankings[0]) & set(names)) for names in rankings[1:]), len(rankings[0])


def top_lists(card: WallCard) -> list[list[str]]:
    """Names of the pictures that each wording ranks first."""
    top = str(card.answer.columns.get("top", "")) if card.answer else ""
    return json.loads(top) if top.startswith("[") else []


def verdict_text(card: WallCard, kind: KindPresentation) -> str:
    """Return the models' answers to the case, for a screen reader."""
    if kind.body == "rankings":
        shared = stayed(card)
        return f"{shared[0]} of the first {shared[1]} stayed" if shared else "no answer"
    if kind.is_movement:
        return f"moved by {_size(card.margin)}"
    several = len(judges(card)) > 1
    return f"believed by {count_text(card)} models" if several else count_text(card)


def _size(margin: float) -> str:
    return "-" if math.isnan(margin) else f"{abs(margin):.3f}"


def accessible_name(card: WallCard, kind: KindPresentation) -> str:
    """A sentence that stands for the card."""
    begin = card.wrong_text or card.true_text
    if kind.body in ("picture_search", "rankings"):
        begin = kind.lie
    elif card.source and card.target:
        begin = f"{card.source} became {card.target}"
    begin = shorten(begin[:1].upper() + begin[1:], 160).removesuffix(".")
    return f"{begin}, {verdict_text(card, kind)}: {shorten(card.true_text)}"


def tooltip(verdicts: Sequence[ModelVerdict], renamed: Mapping[str, str]) -> str:
    """The names of the models, those that are fooled first."""
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


def card_data(
    card: WallCard,
    kind: KindPresentation,
    picture: Callable[[str], str],
    *,
    tags: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
    badge: bool = True,
) -> CardData:
    """One card as the component draws it.

    Args:
        card: The case.
        kind: How cases of its kind are shown.
        picture: Gives a thumbnail as a data address by the picture's name; "" where there is none.
        tags: Tags of the case.
        renamed: Names that people gave to models.
        badge: Whether to show the number of other cases of the picture on the picture.
    """
    verdicts = judges(card)
    shows_squares = not kind.is_movement and len(verdicts) <= MOST_SQUARES
    count, word = "" if kind.is_movement else count_text(card), "fooled"
    if count and not shows_squares:  # nothing else says what is counted
        count, word = f"{count} {word}", ""
    notes = [verdict_text(card, kind)] if kind.is_movement else []
    return {
        "id": card.id,
        "name": accessible_name(card, kind),
        "tip": "" if kind.is_movement else tooltip(verdicts, renamed or {}),
        "frames": [
            {
                "source": picture(name),
                "name": Picture.from_name(name).path.name,
                "style": style,
                "text": shorten(text, 160),
                "credit": credit_values(name),
            }
            for (name, style), text in zip(
                frames(card, kind), _alternatives(card, kind), strict=False
            )
        ],
        "badge": f"+{card.more:,}" if badge and card.more else "",
        "texts": _texts(card, kind),
        "lines": _lines(card, kind),
        "verdicts": [verdict.verdict for verdict in verdicts] if shows_squares else [],
        "count": count,
        "word": word if len(verdicts) > 1 else "",
        "notes": [*notes, *([", ".join(tags)] if tags else [])],
    }


def _alternatives(card: WallCard, kind: KindPresentation) -> Sequence[str]:
    """Return the text in place of each missing picture."""
    if kind.body == "series":
        return [card.true_text, card.texts[-1]]
    return card.texts if kind.body == "pair" else [card.true_text]


def frames(card: WallCard, kind: KindPresentation) -> list[tuple[str, str]]:
    """Names of the pictures on a card, and whether one is framed as a wrong winner."""
    if kind.body == "picture_search" and card.wrong_image:
        return [(card.wrong_image, "wrong" if card.margin <= 0 else "")]
    if kind.body == "series":  # from the first to the last
        return [(name, "") for name in (card.images[0], card.images[-1])]
    return [(name, "") for name in card.images[: 2 if kind.body == "pair" else 1]]


def _texts(card: WallCard, kind: KindPresentation) -> list[list[Run]]:
    """Return the text in place of pictures if the case has none."""
    if card.images:
        return []
    if kind.body == "rankings":
        return [[(shorten(card.true_text), "")]]
    return [
        [("✕ " if role == "different" else "✓ ", "quiet"), (shorten(text, 160), "")]
        for text, role in list(zip(card.texts, card.roles, strict=True))[:SHEET]
    ]


def _lines(card: WallCard, kind: KindPresentation) -> list[list[Run]]:
    if kind.body in ("picture_search", "rankings"):
        return [[(shorten(card.true_text), "")]] if card.images else []
    words = change(card, kind)
    if words:
        return [words]
    return [[(shorten(card.wrong_text), "")]] if card.wrong_text and card.images else []


def heading(
    kind: KindPresentation,
    outcome: str,
    n_cases: int,
    n_pictures: int,
    has_pictures: bool = True,
    is_scored: bool = True,
) -> str:
    """The page in a sentence.

    Args:
        kind: How cases of the kind are shown.
        outcome: Outcome of the filter: "fooled", "tied", "held" or "all".
        n_cases: How many cases pass.
        n_pictures: On how many pictures.
        has_pictures: Whether the cases have pictures at all.
        is_scored: Whether the model has scores; else its answers are right or wrong only.
    """
    lies = kind.lies[:-1] if n_cases == 1 and kind.lies.endswith("s") else kind.lies
    happened = {
        "fooled": BELIEVED.get(kind.body, "believed"),
        "tied": "scored exactly as high as the truth"
        if is_scored
        else "chosen in one of two orders",
        "held": "seen through",
    }.get(outcome, "")
    sentence = f"{n_cases:,} {lies} {'' if kind.is_movement else happened}".strip()
    if not has_pictures or kind.body == "pair":
        return sentence
    return f"{sentence}, on {n_pictures:,} {'picture' if n_pictures == 1 else 'pictures'}"


def tied_text(counted: Mapping[str, int], n_orders: int) -> str:
    """Return the text after the share of fooled cases: how many have equal scores, or are fooled in one of
    two orders of the captions.

    >>> tied_text({"tied": 3, "fooled": 9}, 1), tied_text({"tied": 694, "fooled": 934}, 2)
    (', 3 by a tie', ': 240 in both orders, 694 in one')
    """
    if n_orders == 2:
        both = counted["fooled"] - counted["tied"]
        return f": {both:,} in both orders, {counted['tied']:,} in one"
    return f", {counted['tied']:,} by a tie" if counted["tied"] else ""


def legend(kind: KindPresentation, cards: Sequence[WallCard]) -> list[tuple[str, str]]:
    """Return the legend of the squares: the states that the cards have."""
    n_models = len(judges(cards[0])) if cards else 0
    if kind.is_movement or not 1 < n_models <= MOST_SQUARES:
        return []
    shown = [verdict for card in cards for verdict in judges(card)]
    words = {verdict_word(verdict): verdict.verdict for verdict in shown}
    words |= {VERDICT_WORDS[state]: state for state in ("fooled", "held")}
    lead = f"{count_word(n_models)} squares, {count_word(n_models)} models:"
    return [
        ("", lead),
        *((words[word], word) for word in (*VERDICT_WORDS.values(), CHANGES) if word in words),
    ]
