"""A case as people look at it, as HTML: verdict, texts with the changed words marked, and what each model said."""

import base64
import html
import io
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from vlprobe import views
from vlprobe.errors import VlprobeError
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import cases
from vlprobe.render.html.elements import breakable, facts, mark, tag
from vlprobe.render.words import value_label
from vlprobe.scoring import pictures
from vlprobe.storage import shipped
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation, Presentation


def judged(kind: KindPresentation, margin: float) -> tuple[str, str, str]:
    """Icon, word and colour class of an outcome: what is only reworded moves or stays, what is wrong fools or not."""
    words = kind.verdict_words
    if math.isnan(margin):
        return "?", "Unknown", "tied"
    if not margin:
        return "=", words.zero, "held" if kind.is_movement else "tied"
    word = words.positive if margin > 0 else words.negative
    if kind.is_movement:
        return "↕", word, "tied"
    return ("✓", word, "held") if margin > 0 else ("✗", word, "fooled")


def verdict(kind: KindPresentation, margin: float) -> str:
    """The headline of a card."""
    icon, word, css = judged(kind, margin)
    if math.isnan(margin):
        by = "the model cannot tell the candidates apart"
    else:
        by = f"by {abs(margin):.3f}" if margin else kind.verdict_words.zero_margin
    return f'<p class="vp-verdict vp-{css}"><strong>{icon} {word}</strong> <small>{by}</small></p>'


def card(
    row: object,
    presentation: Presentation,
    said: Mapping[str, Mapping],
    names: Sequence[str],
    looks: Looks,
    picture: Callable[[str], str],
    everything: bool = False,
    beside: bool = False,
    called: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Verdict, texts and scores of one case.

    Args:
        row: The case, as `views.failures` has it.
        presentation: Of the case's probe.
        said: What the models said to it, by model, as `views.answers` has it.
        names: Models in order; the verdict is the first one's.
        looks: What `charts.styles` returns.
        picture: Gives the `src` of a small picture by its name.
        everything: All there is; else what a card has room for.
        beside: Also how far the margin of the first model is from that of the second.
        called: What models are called, where that is not their stored name.
    """
    mine = said[names[0]]
    kind = presentation.kind(row.kind)
    body = cases.body(row, presentation, mine, picture, everything)
    return "".join(
        [
            verdict(kind, float(mine["margin"])),
            *body,
            _scores(row, kind, said, names, looks, beside, called),
        ]
    )


def _scores(
    row: object,
    kind: KindPresentation,
    said: Mapping[str, Mapping],
    names: Sequence[str],
    looks: Looks,
    beside: bool,
    called: Mapping[str, str],
) -> str:
    """A line a model: what its kind of case has to tell, and the margin."""
    columns = cases.columns(row, kind)
    moved = kind.is_movement
    titles = ["Scores" if columns else "Model", *columns, "moved" if moved else "margin"]
    head = "".join(tag("th", title, scope="col") for title in titles)
    lines = []
    for name in names:
        answer = said[name]
        icon, word, css = judged(kind, float(answer["margin"]))
        cells = "".join(tag("td", told(answer)) for told in columns.values())
        margin = abs(answer["margin"]) if moved or not answer["margin"] else answer["margin"]
        sign = "" if moved or not margin else "+"
        margin = tag(
            "td",
            icon if math.isnan(margin) else f"{icon} {margin:{sign}.3f}",
            class_=f"vp-{css}",
            title=word,
        )
        lines.append(
            f'<tr><th scope="row" title="{html.escape(name)}">{mark(looks[name])} '
            f"{breakable(called.get(name, name))}</th>{cells}{margin}</tr>"
        )
    if beside:
        gap = float(said[names[0]]["margin"]) - float(said[names[1]]["margin"])
        gap = -gap if moved else gap  # how far it moved is told without a sign
        told = tag("td", "-" if math.isnan(gap) else f"{gap:+.3f}")
        first = tag(
            "th", "Difference, first minus second", scope="row", colspan=str(1 + len(columns))
        )
        lines.insert(2, f'<tr class="vp-apart">{first}{told}</tr>')
    return f'<table class="vp-scores"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def about(row: object, probe: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """What is known of a case beside its texts: the question, the rule, the words, the pictures, the tags."""
    question = views.runs.kinds(probe).get(row.kind, row.kind)
    known = {
        "Question": f"{question} · {value_label(row.subtype)}" if row.subtype else question,
        "Rule": row.rule,
    }
    if row.source or row.target:
        known["Words"] = f"{row.source or '(nothing)'} → {row.target or '(nothing)'}"
    known |= {"Case": row.id} | (
        {"Pictures": ", ".join(Picture.from_name(name).path.name for name in row.images)}
        if len(row.images)
        else {}
    )
    known |= {f"Tag {name}": value for name, value in dict(row.tags).items() if value}
    return facts({**known, **more})


def chips(tags: Sequence[str], note: str) -> str:
    """What people said of a case: tags, and a note below them."""
    shown = "".join(tag("span", name, class_="vp-chip") for name in tags)
    parts = [
        f'<p class="vp-chips">{shown}</p>' if shown else "",
        tag("p", note, class_="vp-note") if note else "",
    ]
    return "".join(parts)


def command(run_key: str, row: object, is_shipped: bool = False) -> str:
    """What finds the case in a terminal, which looks at one's own results unless it is told where."""
    cache = ["--cache", str(shipped.FOLDER)] if is_shipped else []
    words = ["vlprobe", *cache, "failures", run_key[:8], "--kind", row.kind, "--rule", row.rule]
    return shlex.join(
        [*words, "--outcome", "all", "--contains", row.texts[min(1, len(row.texts) - 1)]]
    )


def jpeg(name: str, side: int) -> bytes:
    """The picture of this name as a JPEG of at most so many pixels a side. Raises InvalidInput."""
    image = pictures.open_picture(Picture.from_name(name))
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


def inline(data: bytes) -> str:
    """A JPEG as what an <img> shows without fetching anything."""
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"


def source(name: str, side: int) -> str:
    """The picture of this name as what an <img> shows; nothing where it cannot be read."""
    try:
        return inline(jpeg(name, side))
    except VlprobeError:
        return ""


def shots(row: object, kind: KindPresentation, mine: Mapping, side: int) -> str:
    """The pictures of a case, one beside the other, or a line that says why one cannot be shown."""
    found = []
    for shot in cases.shots(row, kind, mine):
        data = source(shot.name, side)
        label = shot.label or row.texts[0]
        image = (
            f'<img src="{data}" alt="{html.escape(label)}">'
            if data
            else tag("div", missing(shot.name), class_="vp-missing")
        )
        told = tag("figcaption", shot.label, class_="vp-label") if shot.label else ""
        found.append(f"<figure{' class=vp-wrong' if shot.wrong else ''}>{told}{image}</figure>")
    return f'<div class="vp-shots">{"".join(found)}</div>' if found else ""


def missing(name: str) -> str:
    """What to say in place of a picture that cannot be shown."""
    return f"The picture {Picture.from_name(name).path.name} is missing or damaged."
