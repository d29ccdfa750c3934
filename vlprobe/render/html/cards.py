"""A case for people to look at, as HTML: verdict, texts with marked words, every model's scores."""

import base64
import html
import io
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from vlprobe import views
from vlprobe.datasets import bundled
from vlprobe.errors import VlprobeError
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import cases
from vlprobe.render.html.elements import column_heads, facts, model_label, tag
from vlprobe.render.words import value_label
from vlprobe.scoring import pictures
from vlprobe.types import Picture
from vlprobe.types.presentation import CHOICE_WORDS, KindPresentation, Presentation
from vlprobe.views.records import AnswerRow, CaseRow


def judged(kind: KindPresentation, margin: float, is_scored: bool = True) -> tuple[str, str, str]:
    """Icon, word and colour class of an outcome.

    A rewording moves the score or not; a wrong caption fools the model or not.
    """
    words = kind.verdict_words if is_scored else CHOICE_WORDS
    if math.isnan(margin):
        return "?", "Unknown", "tied"
    if not margin:
        return "=", words.zero, "held" if kind.is_movement else "tied"
    word = words.positive if margin > 0 else words.negative
    if kind.is_movement:
        return "↕", word, "tied"
    return ("✓", word, "held") if margin > 0 else ("✗", word, "fooled")


def verdict(kind: KindPresentation, margin: float, is_scored: bool = True) -> str:
    """The headline of a card; without scores, it has no margin."""
    icon, word, css = judged(kind, margin, is_scored)
    if not is_scored:
        size = "no answer" if math.isnan(margin) else ""
    elif math.isnan(margin):
        size = "the model cannot tell the candidates apart"
    else:
        size = f"by {abs(margin):.3f}" if margin else kind.verdict_words.zero_margin
    headline = f"<strong>{icon} {word}</strong> <small>{size}</small>"
    return f'<p class="vp-verdict vp-{css}">{headline}</p>'


def card(
    case: CaseRow,
    presentation: Presentation,
    answers: Mapping[str, AnswerRow],
    models: Sequence[str],
    styles: Looks,
    picture: Callable[[str], str],
    everything: bool = False,
    beside: bool = False,
    called: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Verdict, texts and scores of one case.

    Args:
        case: Which one.
        presentation: Presentation of the case's probe.
        answers: To the case, by model.
        models: In order; the verdict is the first one's.
        styles: What `charts.styles` returns.
        picture: Gives the `src` of a small picture by its name.
        everything: All there is; else what a card has room for.
        beside: Also how far the margin of the first model is from that of the second.
        called: Display names of models, if different from their stored names.
    """
    answer = answers[models[0]]
    kind = presentation.kind(case.kind)
    texts = cases.body(case, presentation, answer, picture, everything)
    scores = _scores(case, kind, [answers[model] for model in models], styles, beside, called)
    return "".join([verdict(kind, answer.margin, answer.is_scored), *texts, scores])


def _scores(
    case: CaseRow,
    kind: KindPresentation,
    answers: Sequence[AnswerRow],
    styles: Looks,
    beside: bool,
    called: Mapping[str, str],
) -> str:
    """One line per model: the result for its kind of case, and the margin; for answers without scores, the model's
    choice.
    """
    has_scores = any(answer.is_scored for answer in answers)
    columns = cases.columns(case, kind) if has_scores else {}
    last = "moved" if kind.is_movement else "margin" if has_scores else "answer"
    titles = ["Scores" if columns else "Model", *columns, last]
    headings = column_heads(titles)
    lines = []
    for answer in answers:
        name = called.get(answer.model, answer.model)
        heading = model_label(styles[answer.model], name)
        cells = "".join(
            tag("td", cell_text(answer) if answer.is_scored else "-")
            for cell_text in columns.values()
        )
        margin = _margin_cell(kind, answer)
        tip = html.escape(answer.model)
        lines.append(f'<tr><th scope="row" title="{tip}">{heading}</th>{cells}{margin}</tr>')
    if beside and answers[0].is_scored and answers[1].is_scored:
        gap = answers[0].margin - answers[1].margin
        gap = -gap if kind.is_movement else gap  # the movement is shown without a sign
        title = "Difference, first minus second"
        heading = tag("th", title, scope="row", colspan=str(1 + len(columns)))
        cell = tag("td", "-" if math.isnan(gap) else f"{gap:+.3f}")
        lines.insert(2, f'<tr class="vp-apart">{heading}{cell}</tr>')
    return (
        f'<table class="vp-scores"><thead><tr>{headings}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _margin_cell(kind: KindPresentation, answer: AnswerRow) -> str:
    """Icon and margin, or without scores what was chosen; a distance that something moved has no
    sign.
    """
    margin = answer.margin
    icon, word, css = judged(kind, margin, answer.is_scored)
    text = icon if answer.is_scored else f"{icon} {word}"
    if answer.is_scored and not math.isnan(margin):
        is_signed = margin and not kind.is_movement
        text = f"{icon} {margin:+.3f}" if is_signed else f"{icon} {abs(margin):.3f}"
    return tag("td", text, class_=f"vp-{css}", title=word)


def about(case: CaseRow, probe: str, origin: Mapping[str, str] = MappingProxyType({})) -> str:
    """The details of a case other than its texts: the question, the rule, the words, the pictures, the tags.

    Args:
        case: Which one.
        probe: Whose.
        origin: More facts by their name, such as the dataset.
    """
    question = views.runs.kinds(probe).get(case.kind, case.kind)
    if case.subtype:
        question = f"{question} · {value_label(case.subtype)}"
    values = {"Question": question, "Rule": case.rule}
    if case.source or case.target:
        values["Words"] = f"{case.source or '(nothing)'} → {case.target or '(nothing)'}"
    values["Case"] = case.id
    if len(case.images):
        names = [Picture.from_name(name).path.name for name in case.images]
        values["Pictures"] = ", ".join(names)
    values |= {f"Tag {name}": value for name, value in dict(case.tags).items() if value}
    return facts({**values, **origin})


def chips(tags: Sequence[str], note: str) -> str:
    """The annotations of a case: tags, and a note below them."""
    spans = "".join(tag("span", name, class_="vp-chip") for name in tags)
    row = f'<p class="vp-chips">{spans}</p>' if spans else ""
    return row + (tag("p", note, class_="vp-note") if note else "")


def command(run_key: str, case: CaseRow) -> str:
    """Return the command that finds the case in a terminal."""
    words = ["vlprobe", "failures", run_key[:8], "--kind", case.kind, "--rule", case.rule]
    text = case.texts[min(1, len(case.texts) - 1)]
    return shlex.join([*words, "--outcome", "all", "--contains", text])


def jpeg(name: str, side: int) -> bytes:
    """The picture of this name as a JPEG of up to this many pixels per side. Raises InvalidInput."""
    image = pictures.open_picture(Picture.from_name(name))
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


def inline(content: bytes) -> str:
    """A JPEG as what an <img> shows without fetching anything."""
    return f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"


def source(name: str, side: int) -> str:
    """The picture of this name as what an <img> shows; nothing where it cannot be read."""
    try:
        return inline(jpeg(name, side))
    except VlprobeError:
        return ""


def missing(name: str) -> str:
    """Return the text in place of a picture that cannot be shown."""
    file = Picture.from_name(name).path.name
    return file if bundled.is_absent(name) else f"The picture {file} is missing or damaged."
