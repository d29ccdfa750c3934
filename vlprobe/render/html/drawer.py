"""One case in the drawer, as HTML: captions with the changed words marked, and one bar per model."""

from collections.abc import Mapping

import htpy

from vlprobe.render import case_lines
from vlprobe.render.attribution import credits_line
from vlprobe.render.case_lines import ICONS, CaptionLine, ModelBar, Strip
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import mark
from vlprobe.render.html.embed import embed
from vlprobe.render.sentences import count_word
from vlprobe.render.words import NOT_RENAMED
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.wall import WallCard


def captions(card: WallCard, kind: KindPresentation) -> str:
    """The texts of a case, the words marked that make one of them true and another one not."""
    return str(htpy.div(".vp-captions")[map(_row, case_lines.caption_lines(card, kind))])


def _row(line: CaptionLine) -> htpy.Element:
    return htpy.p[
        htpy.span(f".vp-role.vp-role-{line.style}")[
            htpy.span(aria_hidden="true")[line.icon], f" {line.label}"
        ],
        htpy.span(".vp-told", dir="auto")[
            (htpy.span(f".vp-{style}")[text] if style else text for text, style in line.runs)
        ],
    ]


def series_strip(card: WallCard, source: Mapping[str, str]) -> str:
    """The pictures of a series in their order, those framed that are right and that the model chose.

    Args:
        card: A case of a kind whose body is a series.
        source: Thumbnails as data addresses by the names of pictures.
    """
    strip = case_lines.series_strip(card)
    return str(htpy.div[_images(strip, source), htpy.p(".vp-quiet.vp-small")[strip.note]])


def ranking_strips(card: WallCard, source: Mapping[str, str]) -> str:
    """The first pictures of the query and of the wording that shares fewest with them.

    Args:
        card: A case of a kind whose answers are rankings.
        source: Thumbnails as data addresses by the names of pictures.
    """
    strips = case_lines.ranking_strips(card)
    if not strips:
        return ""
    rows = [[htpy.p(".vp-quiet.vp-small")[strip.label], _images(strip, source)] for strip in strips]
    return str(htpy.div[rows])


def _images(strip: Strip, source: Mapping[str, str]) -> htpy.Node:
    return [
        htpy.div(".vp-strip")[
            (
                htpy.img(
                    src=source.get(shot.name, ""), alt=shot.words, title=shot.words, class_=shot.css
                )
                for shot in strip.pictures
            )
        ],
        credits_line(shot.name for shot in strip.pictures),
    ]


def bars(
    card: WallCard, kind: KindPresentation, styles: Looks, renamed: Mapping[str, str] = NOT_RENAMED
) -> str:
    """One line per model: its mark and name, how far the lie or the truth wins, and the outcome in a word."""
    every = case_lines.bars(card, kind, renamed)
    return str(
        htpy.div(".vp-bars")[
            every.title
            and htpy.p(".vp-bars-title")[
                htpy.span(style=f"padding-left:{100 * every.title_at:.1f}%")[every.title]
            ],
            htpy.ul[(_bar(line, styles, every.zero) for line in every.lines)],
        ]
    )


def _bar(line: ModelBar, styles: Looks, zero: float) -> htpy.Element:
    side = "vp-lie-bar" if line.is_lie else "vp-true-bar"
    return htpy.li(title=", ".join(filter(None, [f"{line.model}: {line.word}", line.size])))[
        htpy.span(".vp-model")[_mark(styles, line.model), htpy.bdi[line.name]],
        line.size
        and htpy.span(".vp-track-line", aria_hidden="true")[
            htpy.b(style=f"left:{100 * zero:.1f}%"),
            htpy.i(f".{side}", style=f"left:{100 * line.begin:.1f}%;width:{100 * line.width:.1f}%"),
        ],
        htpy.span(f".vp-role.vp-role-{line.style}")[
            htpy.span(aria_hidden="true")[ICONS[line.style]], f" {line.word}"
        ],
    ]


def _mark(styles: Looks, model: str) -> htpy.Node:
    return embed(mark(styles[model])) if model in styles else None


def place_text(position: int, total: int, is_picture: bool) -> str:
    """The position of the case on the wall.

    >>> place_text(2, 282, True), place_text(0, 282, True)
    ('Picture 2 of 282', 'Not among the cases that pass the filters')
    """
    if not position:
        return "Not among the cases that pass the filters"
    return f"{'Picture' if is_picture else 'Case'} {position:,} of {total:,}"


def more_label(count: int, lies: str) -> str:
    """The button that lists the other cases of a picture.

    >>> more_label(3, "lies"), more_label(29, "mixed pictures")
    ('3 more lies on it', '29 more on it')
    """
    return f"{count:,} more lies on it" if count > 1 and lies == "lies" else f"{count:,} more on it"


def pattern_text(words: tuple[str, str], counted: tuple[int, int], others: str) -> str:
    """A pattern, how often it fools the model, and the other pictures shown with it.

    Args:
        words: Taken out and put in.
        counted: Number of its cases that fooled the model, and number of all its cases.
        others: A description of the pictures.
    """
    source, target = words
    believed_count, n_asked = counted
    return str(
        htpy.div(".vp-pattern")[
            htpy.strong[source, htpy.span(".vp-quiet")[" → "], target],
            htpy.p(".vp-quiet.vp-small")[f"fooled {believed_count:,} of {n_asked:,}"],
            htpy.p(".vp-quiet.vp-small")[others],
        ]
    )


def others_text(n_shown: int, n_others: int) -> str:
    """Return the description of a pattern's thumbnails.

    >>> others_text(3, 3), others_text(1, 1), others_text(4, 55)
    ('the other three', 'the other one', 'four of 55 others')
    """
    if n_shown == n_others:
        return f"the other {count_word(n_shown)}"
    return f"{count_word(n_shown)} of {n_others:,} others"
