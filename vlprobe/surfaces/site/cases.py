"""Cases as the wall and the drawer of a site take them.

Values that all models share are stored once; a model's answer adds the differences.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import htpy
import numpy as np

from vlprobe import views
from vlprobe.datasets.credits import picture_credit
from vlprobe.render import case_lines, wall
from vlprobe.render.attribution import credit_line
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import cards as html_cards
from vlprobe.render.html import cases as html_cases
from vlprobe.render.html import drawer
from vlprobe.render.html.embed import embed
from vlprobe.render.words import value_label
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.surfaces.site.privacy import bare
from vlprobe.surfaces.site.subject import Subject, Values
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter
from vlprobe.views.wall import WallCard

CREDITS = {  # tags of a dataset that say whose a picture is
    "licence": "Licence",
    "license": "Licence",
    "author": "Author",
    "photographer": "Author",
    "credit": "Credit",
    "attribution": "Credit",
    "rights": "Rights",
}


def case_entries(subject: Subject, kind_name: str, numbers: Sequence[int]) -> list[Values]:
    """Every case with what each model did, in the order of the numbers.

    Returns:
        Of each: case (what all models see), models (what differs, by the model's key), margins (in
        the order of models, None where unknown), outcomes, picture (the number of its picture),
        type, and texts.
    """
    kind = subject.presentation.kind(kind_name)
    by_model = _cards(subject, kind_name, numbers)
    shared = by_model[subject.models[0]]
    subject.shelf.add(
        name for cards in by_model.values() for card in cards for name in _names(card, kind)
    )
    noted = _noted(subject)
    codes = views.rows.picture_codes(subject.store, subject.question_set.key)[list(numbers)]
    entries = []
    for index, card in enumerate(shared):
        drawn: dict[object, Values] = {}
        annotation = noted.get(card.case)
        common_values = _shared(subject, card, kind, annotation)
        values_by_model = {}
        for model, cards in by_model.items():
            answer = _distinct_answer(cards[index], kind, model)
            if answer not in drawn:
                drawn[answer] = _case(subject, cards[index], kind, annotation) | common_values
            values_by_model[model] = drawn[answer]
        common = values_by_model[subject.models[0]]
        entries.append(
            {
                "case": common,
                "models": {
                    subject.keys[model]: {
                        name: value for name, value in values.items() if value != common[name]
                    }
                    for model, values in values_by_model.items()
                    if values != common
                },
                "margins": [_number(verdict.margin) for verdict in card.verdicts],
                "picture": int(codes[index]),
                "type": card.subtype,
                "texts": list(card.texts),
            }
        )
    return entries


def _cards(
    subject: Subject, kind_name: str, numbers: Sequence[int]
) -> dict[str, Sequence[WallCard]]:
    """The cases as each model saw them: its margin, and where it searches its answer."""
    store, question_set = subject.store, subject.question_set
    if subject.presentation.kind(kind_name).body in views.wall.ANSWER_BODIES:
        return {
            model: views.wall.cards(store, question_set, Filter(model, kind_name), numbers)
            for model in subject.models
        }
    cards = views.wall.cards(store, question_set, Filter(subject.models[0], kind_name), numbers)
    return {
        model: [
            replace(
                card,
                margin=card.verdicts[number].margin,
                is_scored=card.verdicts[number].is_scored,
            )
            for card in cards
        ]
        for number, model in enumerate(subject.models)
    }


def _distinct_answer(card: WallCard, kind: KindPresentation, model: str) -> object:
    """Return the part of a model's answer that decides the look of its card: only the verdict, unless the answer is a
    movement or a search result.
    """
    is_told_apart = kind.is_movement or kind.body in views.wall.ANSWER_BODIES
    return model if is_told_apart else (views.wall.verdict_of(card.margin), card.is_scored)


def _number(margin: float) -> float | None:
    """None where it is unknown. Margins are float32: as few digits as name them."""
    return None if math.isnan(margin) else float(str(np.float32(margin)))


def _noted(subject: Subject) -> Mapping[int, Annotation]:
    """The annotations of cases, if they are published."""
    if not subject.limits.with_notes:
        return {}
    written = annotations.read(subject.store, subject.question_set.key).current
    return {annotation.case: annotation for annotation in written}


def _names(card: WallCard, kind: KindPresentation) -> list[str]:
    """Names of all pictures of a case, in its drawer too."""
    shots = [*card.images[:2], *([card.wrong_image] if card.wrong_image else [])]
    return [
        *shots,
        *(shot.name for strip in case_lines.strips(card, kind) for shot in strip.pictures),
    ]


def _shared(
    subject: Subject, card: WallCard, kind: KindPresentation, annotation: Annotation | None
) -> Values:
    """What the drawer says of a case whatever the model: bars, tags, note, credits and properties."""
    credits = credit(card.tags, _credits(subject, card))
    facts = _facts(card, kind, subject.limits.with_notes)
    rest = [
        annotation and embed(html_cards.chips(annotation.tags, annotation.note)),
        credits and htpy.p(".vp-quiet.vp-small")[credits],
        htpy.details[
            htpy.summary["Details"],
            htpy.dl(".vp-facts")[
                ([htpy.dt[name], htpy.dd(dir="auto")[value]] for name, value in facts)
            ],
        ],
    ]
    return {
        "bars": _inert(bars(card, kind, subject.model_looks, subject.names)),
        "rest": _inert(*htpy.fragment[rest].iter_chunks()),
    }


def _case(
    subject: Subject, card: WallCard, kind: KindPresentation, annotation: Annotation | None
) -> Values:
    """A case as the wall draws it, with the pictures and texts of its drawer."""
    tags = annotation.tags if annotation else ()
    key = subject.shelf.key
    return {
        **wall.card_data(card, kind, key, tags=tags, renamed=subject.names, badge=False),
        "id": subject.case_key(card.case),
        "pictures": _inert(pictures(card, kind, key, _absence)),
        "captions": _inert(drawer.captions(card, kind), strips(card, kind, key)),
    }


def _absence(name: str) -> str:
    return f"The picture {Picture.from_name(name).path.name} is not part of this site."


def _inert(*parts: str) -> str:
    """HTML whose pictures are keys and whose styles the script of the site sets: its policy forbids attributes."""
    return re.sub(r' (src|style)="', r' data-\1="', "".join(parts))


def bars(card: WallCard, kind: KindPresentation, looks: Looks, names: Mapping[str, str]) -> str:
    """One line per model, as `drawer.bars`, without the stored names of models, which may have paths in them."""
    verdicts = tuple(replace(one, model=names[one.model]) for one in card.verdicts)
    renamed = {name: looks[model] for model, name in names.items() if model in looks}
    return drawer.bars(
        replace(card, verdicts=verdicts), kind, renamed, {name: name for name in renamed}
    )


def strips(card: WallCard, kind: KindPresentation, source: Callable[[str], str]) -> str:
    """The rows of pictures of a series or of rankings as HTML; "" for other cases."""
    strip_pictures = [shot for strip in case_lines.strips(card, kind) for shot in strip.pictures]
    sources = {shot.name: source(shot.name) for shot in strip_pictures}
    if kind.body == "rankings":
        return drawer.ranking_strips(card, sources)
    return drawer.series_strip(card, sources) if kind.body == "series" else ""


def pictures(
    card: WallCard,
    kind: KindPresentation,
    source: Callable[[str], str],
    absence: Callable[[str], str] = html_cards.missing,
) -> str:
    """The pictures of a case side by side as HTML, each with its credit and the caption that is true of it.

    Args:
        card: The case.
        kind: How cases of its kind are shown.
        source: Gives the address of a picture by its name; "" where there is none.
        absence: Gives the text in the place of a picture without an address.
    """
    figures = []
    for name, label, alt, style in _shots(card, kind):
        address = source(name)
        image = (
            htpy.img(src=address, alt=alt) if address else htpy.div(".vp-missing")[absence(name)]
        )
        caption = label and htpy.figcaption(".vp-quiet.vp-small")[label]
        figures.append(
            htpy.figure(class_=style and f"is-{style}")[image, caption, credit_line(name)]
        )
    return str(htpy.div(".shots")[figures]) if figures else ""


def _shots(card: WallCard, kind: KindPresentation) -> list[tuple[str, str, str, str]]:
    """Name, label, alternative text and style of each picture above the texts."""
    if kind.body == "series":
        return []  # a strip below the texts
    if kind.body == "picture_search":
        shots = [(card.images[0], right_label(card), card.true_text, "right")]
        if card.wrong_image:
            is_wrong = card.margin <= 0
            label = "Ranked 1st instead" if is_wrong else "Best of the others"
            style = "wrong" if is_wrong else ""
            shots.append((card.wrong_image, label, "Another picture, or a mixed one", style))
        return shots
    if kind.body == "pair":
        return [(name, "", card.texts[number], "") for number, name in enumerate(card.images[:2])]
    return [(name, "", card.true_text, "") for name in card.images[:1]]


def right_label(card: WallCard) -> str:
    """The rank of the right picture, and its rank without mixed ones."""
    if card.answer is None:
        return "The right picture"
    rank, clean = (html_cases.rank(card.answer, name) for name in ("rank", "rank_clean"))
    mixed = bool(card.wrong_image and Picture.from_name(card.wrong_image).edit)
    return f"The right picture: rank {rank}" + (f", without mixtures {clean}" if mixed else "")


def credit(tags: Mapping[str, str], lines: Sequence[str] = ()) -> str:
    """Return the credits of a case's pictures; "" if none are recorded.

    Args:
        tags: Tags of the case, as its dataset has them.
        lines: The credits of pictures in the files of the dataset.
    """
    tagged = [
        f"{CREDITS[name.lower()]}: {value}"
        for name, value in tags.items()
        if name.lower() in CREDITS and value
    ]
    return " · ".join(dict.fromkeys([*tagged, *lines]))


def _credits(subject: Subject, card: WallCard) -> list[str]:
    """Return the credits in the dataset's files for the pictures of a case, and for those mixed into them."""
    names = [*card.images[:2], *([card.wrong_image] if card.wrong_image else [])]
    paths = []
    for picture in map(Picture.from_name, names):
        paths += [picture.path, picture.edit.partner] if picture.edit else [picture.path]
    return [
        subject.credits[path.name].text
        for path in paths
        if path.name in subject.credits and not picture_credit(str(path))  # below the picture
    ]


def _facts(card: WallCard, kind: KindPresentation, with_notes: bool) -> list[list[str]]:
    """Return the properties of a case, one per line: a name and a value."""
    lines = [["Question", kind.label]]
    if card.subtype:
        lines.append(["Type", value_label(card.subtype)])
    lines += [["Rule", card.rule], ["Case", card.id]]
    names = [Picture.from_name(name).path.name for name in card.images]
    if names:
        lines.append(["Pictures", ", ".join(names[:6]) + (" …" if len(names) > 6 else "")])
    lines += [[f"Tag {name}", value] for name, value in card.tags.items() if value]
    return [[name, text if with_notes else bare(text)] for name, text in lines if text]
