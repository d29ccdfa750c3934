"""Render a case as HTML: texts with marked words, rows of pictures, bars and tables of scores."""

import base64
import io
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import htpy

from vlprobe.case.card import (
    ICONS,
    Bars,
    CaseCard,
    CaseText,
    ModelBar,
    Run,
    Strip,
    outcome,
    ranked_shot,
)
from vlprobe.case.card import bars as model_bars
from vlprobe.datasets import bundled
from vlprobe.errors import VlprobeError
from vlprobe.render.attribution import credit_line, credits_line
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import embed, facts, mark, model_label
from vlprobe.render.sentences import count_word
from vlprobe.render.words import NOT_RENAMED
from vlprobe.scoring import pictures
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.figures import FirstLists
from vlprobe.views.records import AnswerRow

Source = Callable[[str], str]  # from a picture's name to an <img> source; "" if it cannot be read
OUTCOMES = {"true": "held", "lie": "fooled", "tie": "tied", "quiet": "tied"}  # CSS classes by style
CLASSES = {"true": "vp-t", "lie": "vp-l", "changed": "vp-changed"}  # CSS classes of marked words


def words(runs: Iterable[Run]) -> htpy.Node:
    """Render a line of runs as HTML, with marked words in color."""
    return [htpy.span(f".{CLASSES[style]}")[text] if style else text for text, style in runs]


def captions(texts: Sequence[CaseText], longest: int = 0) -> htpy.Node:
    """Render the texts of a case with their roles, cut to `longest` characters, or uncut if that is 0."""
    lines = [
        htpy.p[
            htpy.span(f".vp-role.vp-role-{text.role.style}")[
                htpy.span(aria_hidden="true")[text.role.icon], f" {text.role.label}"
            ],
            htpy.span(".vp-told", dir="auto")[words(text.runs(longest))],
        ]
        for text in texts
    ]
    return htpy.div(".vp-captions")[lines] if lines else None


def strips(rows: Sequence[Strip], source: Source) -> htpy.Node:
    """Render rows of pictures with credits."""
    return [
        htpy.div[
            strip.label and htpy.p(".vp-quiet.vp-small")[strip.label],
            htpy.div(".vp-strip")[
                (
                    htpy.img(
                        src=source(shot.name),
                        alt=shot.alt,
                        title=shot.alt,
                        class_=f"vp-{shot.style}" if shot.style else "",
                    )
                    for shot in strip.pictures
                )
            ],
            credits_line(shot.name for shot in strip.pictures),
            strip.note and htpy.p(".vp-quiet.vp-small")[strip.note],
        ]
        for strip in rows
    ]


def first_lists(
    lists: FirstLists, picture_of: Mapping[str, str], source: Source, names: Sequence[str]
) -> htpy.Node:
    """Render a caption and the first pictures that each of two models retrieves for it, before and after fine-tuning.

    Args:
        picture_of: Names of the pictures by item.
    """
    rows = [
        Strip(
            name,
            [
                replace(
                    ranked_shot(position, item, lists.item, set(lists.original)),
                    name=picture_of.get(item, ""),
                )
                for position, item in enumerate(items, 1)
            ],
        )
        for name, items in zip(names, (lists.original, lists.tuned), strict=True)
    ]
    caption = htpy.p(dir="auto")[htpy.strong[lists.caption]]
    return htpy.div(style="max-width:40rem")[caption, strips(rows, source)]


def bars(
    card: CaseCard,
    looks: Looks,
    renamed: Mapping[str, str] = NOT_RENAMED,
    first: Sequence[str] = (),
) -> htpy.Element:
    """Render one line per model, the `first` ones in this order: its symbol and name, a bar for how far one caption
    wins, and the verdict.
    """
    drawn = model_bars(card, renamed)
    places = {model: place for place, model in enumerate(first)}
    lines = sorted(drawn.lines, key=lambda line: places.get(line.model, len(places)))
    return htpy.div(".vp-bars")[
        drawn.title
        and htpy.p(".vp-bars-title")[
            htpy.span(style=f"padding-left:{100 * drawn.title_at:.1f}%")[drawn.title]
        ],
        htpy.ul[(_bar(line, looks, drawn) for line in lines)],
    ]


def _bar(line: ModelBar, looks: Looks, drawn: Bars) -> htpy.Element:
    side = "vp-lie-bar" if line.is_lie else "vp-true-bar"
    # A word such as "rises 0.012" has a number
    has_number = line.width and line.style != "moved"
    ends = f"left:{100 * line.begin:.1f}%;width:{100 * line.width:.1f}%"
    return htpy.li(title=", ".join(filter(None, [f"{line.name}: {line.word}", line.size])))[
        htpy.span(".vp-model")[
            embed(mark(looks[line.model])) if line.model in looks else None, htpy.bdi[line.name]
        ],
        (drawn.title and line.size)
        and [
            htpy.span(".vp-track-line", aria_hidden="true")[
                htpy.b(style=f"left:{100 * drawn.zero:.1f}%"), htpy.i(f".{side}", style=ends)
            ],
            htpy.span(".vp-number")[f"{line.width / drawn.scale:.2f}" if has_number else ""],
        ],
        htpy.span(f".vp-role.vp-role-{line.style}")[
            htpy.span(aria_hidden="true")[ICONS[line.style]], f" {line.word}"
        ],
    ]


def verdict(kind: KindPresentation, margin: float, is_scored: bool = True) -> htpy.Element:
    """Render a model's answer as the headline of a card: the verdict, and the margin if there is one."""
    icon, style, word = _outcome(kind, margin, is_scored)
    size = f"by {abs(margin):.3f}" if is_scored and margin and not math.isnan(margin) else ""
    return htpy.p(f".vp-verdict.vp-{style}")[
        htpy.strong[f"{icon} {word.capitalize()}"], " ", htpy.small[size]
    ]


def _outcome(kind: KindPresentation, margin: float, is_scored: bool) -> tuple[str, str, str]:
    """Return the icon, the color class and the words for a model's answer."""
    style, word = outcome(kind, margin, is_scored)
    return "↕" if word == "moved" else ICONS[style], OUTCOMES[style], word


def numbers(
    card: CaseCard,
    models: Sequence[str],
    looks: Looks,
    names: Mapping[str, str] = NOT_RENAMED,
    beside: bool = False,
) -> htpy.Node:
    """Render the first model's comparisons, and one line per model with its numbers and its margin (or its choice, if
    it has no scores). If `beside` is true, also render the difference between the first two margins.
    """
    kind, answers = card.kind, [card.answers[model] for model in models]
    has_scores = any(answer.is_scored for answer in answers)
    columns = card.columns if has_scores else {}
    last = "moved" if kind.is_movement else "margin" if has_scores else "answer"
    lines = [
        htpy.tr[
            htpy.th(scope="row", title=answer.model)[
                embed(model_label(looks[answer.model], names.get(answer.model, answer.model)))
            ],
            [htpy.td[cell(answer) if answer.is_scored else "-"] for cell in columns.values()],
            _margin_cell(kind, answer),
        ]
        for answer in answers
    ]
    if beside and answers[0].is_scored and answers[1].is_scored:
        gap = answers[0].margin - answers[1].margin
        gap = -gap if kind.is_movement else gap  # movements are shown without a sign
        title = htpy.th(scope="row", colspan=1 + len(columns))["Difference (first minus second)"]
        cell = htpy.td["-" if math.isnan(gap) else f"{gap:+.3f}"]
        lines.insert(2, htpy.tr(".vp-apart")[title, cell])
    return [
        matrix(card, models[0]),
        htpy.table(".vp-scores")[
            htpy.thead[
                htpy.tr[
                    (_head(title) for title in ("Scores" if columns else "Model", *columns, last))
                ]
            ],
            htpy.tbody[lines],
        ],
    ]


def _head(title: str) -> htpy.Element:
    return htpy.th(scope="col")[title]


def matrix(card: CaseCard, model: str) -> htpy.Node:
    """Render a model's scores for a case with several comparisons, such as a pair; None for other cases."""
    if not (scores := card.matrix(model)):
        return None
    rows = [
        htpy.tr[
            htpy.th(scope="row")[title],
            (htpy.td(class_=style and f"vp-{style}")[text] for text, style in cells),
        ]
        for title, cells in scores.rows
    ]
    return htpy.table(".vp-scores.vp-matrix")[
        htpy.thead[htpy.tr[map(_head, scores.titles)]], htpy.tbody[rows]
    ]


def _margin_cell(kind: KindPresentation, answer: AnswerRow) -> htpy.Element:
    """Render a table cell with an icon and the margin or, without scores, the choice. Movements have no sign."""
    margin = answer.margin
    icon, style, word = _outcome(kind, margin, answer.is_scored)
    text = "" if answer.is_scored else word
    if answer.is_scored and not math.isnan(margin):
        is_signed = margin and not kind.is_movement
        text = f"{margin:+.3f}" if is_signed else f"{abs(margin):.3f}"
    return htpy.td(f".vp-{style}", title=word)[f"{icon} {text}".strip()]


def missing(name: str) -> str:
    """Return the text to show instead of a picture that cannot be shown."""
    file = Picture.from_name(name).path.name
    return file if bundled.is_absent(name) else f"The picture {file} is missing or damaged."


def shots(
    card: CaseCard, source: Source, absence: Callable[[str], str] = missing
) -> htpy.Element | None:
    """Render the pictures of a case side by side, each with its label and credit.

    Args:
        absence: Function that returns the text to show instead of a picture that has no address.
    """
    if not card.has_large_pictures or not card.pictures:
        return None
    figures = []
    for shot in card.pictures:
        address, label = source(shot.name), f"{shot.label}{shot.detail}"
        figures.append(
            htpy.figure(class_=f"is-{shot.style}" if shot.style else None)[
                htpy.img(src=address, alt=shot.alt)
                if address
                else htpy.div(".vp-missing")[absence(shot.name)],
                label and htpy.figcaption(".vp-quiet.vp-small")[label],
                credit_line(shot.name),
            ]
        )
    return htpy.div(".shots")[figures]


def properties(card: CaseCard, origin: Mapping[str, str] | None = None) -> str:
    """Render the properties of a case, except its texts. `origin` has additional properties by name."""
    return facts({**card.facts, **(origin or {})})


def chips(tags: Sequence[str], note: str) -> htpy.Node:
    """Render people's annotations on a case: the tags, with the note below them."""
    return [
        htpy.p(".vp-chips")[(htpy.span(".vp-chip")[name] for name in tags)] if tags else None,
        htpy.p(".vp-note")[note] if note else None,
    ]


def command(run_key: str, card: CaseCard) -> str:
    """Return a shell command that lists the case in a terminal."""
    case_ = card.case
    arguments = ["vlprobe", "failures", run_key[:8], "--kind", case_.kind, "--rule", case_.rule]
    text = case_.texts[min(1, len(case_.texts) - 1)]
    words = text if '"' in text else f'"{text}"'  # a phrase, if possible
    return shlex.join([*arguments, "--outcome", "all", "--contains", words])


def data_address(name: str, side: int) -> str:
    """Encode a picture as a data URL with a JPEG of up to `side` pixels, or return "" if it cannot be read."""
    try:
        image = pictures.open_picture(Picture.from_name(name))
    except VlprobeError:
        return ""
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def place_text(position: int, total: int, noun: str) -> str:
    """Describe the position of a case in the list on the Explore page.

    >>> place_text(2, 282, "picture"), place_text(0, 282, "picture")
    ('Picture 2 of 282', 'Not among the cases that pass the filters')
    """
    if not position:
        return "Not among the cases that pass the filters"
    return f"{noun.capitalize()} {position:,} of {total:,}"


def more_label(count: int, lies: str, group: str = "picture") -> str:
    """Return the heading of the other cases of a group on the wall.

    >>> more_label(3, "wrong captions"), more_label(1, "altered captions", "caption")
    ('3 more wrong captions for this picture', '1 more case with this caption or picture')
    """
    if group == "caption":
        return f"{count:,} more {'case' if count == 1 else 'cases'} with this caption or picture"
    noun = lies.removesuffix("s") if count == 1 else lies
    return f"{count:,} more {noun} for this {group}"


def others_text(n_shown: int, n_others: int, is_pictured: bool = False) -> str:
    """Describe how many of a pattern's other cases are shown as thumbnails.

    Args:
        is_pictured: Whether other cases are left out, because their picture is not on this machine.

    >>> others_text(3, 3), others_text(1, 1), others_text(4, 55)
    ('Here: the other three pictures', 'Here: the other picture', 'Here: four of 55 other pictures')
    >>> others_text(1, 1, True)
    'Here: the other picture that is on this machine'
    """
    text = f"{count_word(n_shown)} of {n_others:,} other pictures"
    if n_shown == n_others:
        text = f"the other {count_word(n_shown)} pictures" if n_shown > 1 else "the other picture"
    verb = "is" if n_others == 1 else "are"
    return f"Here: {text}{f' that {verb} on this machine' * is_pictured}"
