"""The content of a case of each kind, as HTML: its pictures, its texts, and its comparisons.

The column `top` of an answer is what the model put first: a text (RoCOCO), a mixed picture's name,
or lists of names (PRSM).
"""

import difflib
import html
import json
import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import cast

from vlprobe.render import series
from vlprobe.render.attribution import credits_line
from vlprobe.render.html.elements import column_heads, marked, tag
from vlprobe.render.words import value_label
from vlprobe.types.presentation import KindPresentation, Presentation
from vlprobe.views.changes import in_step
from vlprobe.views.records import AnswerRow, CaseRow

BEFORE = "Reworded, before it was made wrong"
HIGHER = ' <span class="vp-higher">▲ scores higher</span>'
HIGHEST = ' <span class="vp-higher">▲ highest</span>'
NOT_FIRST = "Ranked 1st, should not win"


def _rank_text(answer: AnswerRow) -> str:
    after, before = (rank(answer, name) for name in ("rank", "rank_clean"))
    return f"rank {after}" if after == before else f"rank {after}; in the clean gallery {before}"


def rank(answer: AnswerRow, column: str) -> str:
    """A rank; of an approximate search, which versions before 0.3.0 had, more than it looked up."""
    value = answer.number(column)
    if math.isnan(value):
        return f"more than {int(answer.number('looked_up')):,}"
    return f"{int(value):,}"


def body(
    case: CaseRow,
    presentation: Presentation,
    answer: AnswerRow,
    picture: Callable[[str], str],
    everything: bool,
) -> list[str]:
    """The texts of a case and what the model made of them, as HTML.

    Args:
        case: Which one.
        presentation: Presentation of its probe.
        answer: The model's.
        picture: Gives the `src` of a small picture by its name.
        everything: All there is, for the details; else what a card has room for.
    """
    kind = presentation.kind(case.kind)
    scores = answer.scores if answer.is_scored else ()
    bodies = {
        "caption_search": lambda: _searched(case, answer, everything),
        "picture_search": lambda: [_text("Asked for", html.escape(case.texts[0]))],
        "pair": lambda: _pair(case, answer.scores),
        "triplet": lambda: _triplet(case, answer),
        "rankings": lambda: _rankings(case, answer, picture, everything),
        "series": lambda: _series(case, answer, picture),
        "edit": lambda: _captions(case, presentation, scores, everything),
        "captions": lambda: _captions(case, presentation, scores, everything),
    }
    return bodies[kind.body]()


def _text(label: str, content: str, suffix: str = "", css: str = "") -> str:
    """A caption below its label; `content` and `suffix` are HTML."""
    classes = f"vp-caption {css}".strip()
    return f'<p class="{classes}"><small>{html.escape(label)}{suffix}</small><br>{content}</p>'


def _searched(case: CaseRow, answer: AnswerRow, everything: bool) -> list[str]:
    """RoCOCO, picture to caption: the first candidate, next to the true caption that it was made of."""
    roles = list(zip(case.texts, case.roles, strict=True))
    true_texts = [text for text, role in roles if role != "different"]
    altered_texts = [text for text, role in roles if role == "different"]
    is_wrong, top = bool(answer.columns["top_altered"]), answer.text("top")
    label = NOT_FIRST if is_wrong else "Best of the altered captions"
    css = "vp-wrong" if is_wrong else ""
    best = f"Best of its {len(true_texts)} true captions"
    lines = [_text(best, _rank_text(answer).capitalize())]
    source = true_texts[0]
    if top in altered_texts:
        source = max(true_texts, key=lambda text: _likeness(text, top))
        before, after = diff(source, top)
        lines += [_text("True caption", before), _text(label, after, css=css)]
    else:
        lines += [
            _text("One of them", html.escape(source)),
            _text(f"{label}, made of another picture's", html.escape(top), css=css),
        ]
    if everything:
        lines += [_text("True caption", html.escape(text)) for text in true_texts if text != source]
        lines += [
            _text("Altered, was in the gallery", html.escape(text))
            for text in altered_texts
            if text != top
        ]
    return lines


def _likeness(before: str, after: str) -> float:
    """The share of words that two captions have in common and in order, 0 to 1."""
    return difflib.SequenceMatcher(None, before.split(), after.split()).ratio()


def _matrix(titles: Sequence[str], lines: Sequence[str]) -> str:
    """A small table of scores; `lines` are HTML."""
    return (
        f'<table class="vp-scores vp-matrix"><thead><tr>{column_heads(titles)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _pair(case: CaseRow, scores: Sequence[float]) -> list[str]:
    """EqBen: the 2 x 2 scores; next to rows and under columns, the outcome of the comparison."""
    before, after = diff(*case.texts)
    s11, s12, s21, s22 = (float(score) for score in scores)
    lines = [
        f"<tr>{tag('th', 'Picture 1', scope='row')}{_matching(s11)}{_score_cell(s12)}"
        f"{_held(s11 - s12)}</tr>",
        f"<tr>{tag('th', 'Picture 2', scope='row')}{_score_cell(s21)}{_matching(s22)}"
        f"{_held(s22 - s21)}</tr>",
        f"<tr>{tag('th', 'own picture', scope='row')}{_held(s11 - s21)}{_held(s22 - s12)}"
        "<td></td></tr>",
    ]
    return [
        _text("Caption 1, true of picture 1", before),
        _text("Caption 2, true of picture 2", after),
        _matrix(("Scores", "Caption 1", "Caption 2", "own caption"), lines),
    ]


def _score_cell(score: float) -> str:
    return tag("td", f"{score:.3f}")


def _matching(score: float) -> str:
    """The score of what belongs together, set apart."""
    return tag("td", f"{score:.3f}", class_="vp-own")


def _held(gap: float) -> str:
    """Return whether what belongs together scores higher."""
    if gap > 0:
        return tag("td", "✓ held", class_="vp-held")
    if gap < 0:
        return tag("td", "✗ failed", class_="vp-fooled")
    return tag("td", "= tied", class_="vp-tied")


def _triplet(case: CaseRow, answer: AnswerRow) -> list[str]:
    """VISLA, only texts: three captions and their three cosines."""
    caption, same, wrong = case.texts
    scores = cast(Sequence[float], answer.columns["text_scores"])
    same_score, *wrong_scores = (float(scores[index]) for index in range(3))
    lines = []
    for name, overlap, score in zip(
        ("P1, P2", "P1, N", "P2, N"),
        ("overlap_01", "overlap_02", "overlap_12"),
        (same_score, *wrong_scores),
        strict=True,
    ):
        is_same = not lines
        words = tag("td", _share(answer.number(overlap)))
        cells = (
            f"{_matching(score)}{words}<td></td>"
            if is_same
            else f"{_score_cell(score)}{words}{_held(same_score - score)}"
        )
        lines.append(f"<tr>{tag('th', name, scope='row')}{cells}</tr>")
    return [
        _text("P1, true", html.escape(caption)),
        _text("P2, means the same", html.escape(same)),
        _text("N, does not", diff(caption, wrong)[1]),
        _matrix(("Scores", "cosine", "same words", "is lower"), lines),
    ]


def _rankings(
    case: CaseRow, answer: AnswerRow, picture: Callable[[str], str], everything: bool
) -> list[str]:
    """PRSM: the first candidates for each wording; pictures new to the first wording's are framed."""
    rankings: list[list[str]] = json.loads(answer.text("top"))
    query = set(rankings[0])
    n_shared = [len(query & set(names)) for names in rankings]
    least = min(range(1, len(rankings)), key=n_shared.__getitem__)
    wordings = range(len(rankings)) if everything else (0, least)
    right = case.images[0] if case.images else ""
    lines = []
    for wording in wordings:
        label, suffix = "Query", ""
        if wording:
            label = "Reworded" if everything else "The wording that shares least"
            suffix = f" <span>· {n_shared[wording]} of {len(rankings[0])} are the same</span>"
        lines.append(_text(label, html.escape(case.texts[wording]), suffix))
        images = []
        for position, name in enumerate(rankings[wording], 1):
            alt, css = ranked_words(position, name, right, query)
            images.append(f'<img src="{picture(name)}" alt="{alt}" title="{alt}" class="{css}">')
        lines.append(_strip(images, rankings[wording]))
    if len(wordings) < len(rankings):
        remark = f"{len(rankings) - 2} more wordings in the details."
        lines.append(tag("p", remark, class_="vp-quiet vp-small"))
    return lines


def _strip(images: Sequence[str], names: Sequence[str]) -> str:
    """Return small pictures in a row, with their credits below."""
    return f'<div class="vp-strip">{"".join(images)}</div>{credits_line(names) or ""}'


def _series(case: CaseRow, answer: AnswerRow, picture: Callable[[str], str]) -> list[str]:
    """Pictures in an order: the texts, and a strip with the right place and the model's framed."""
    labels = series.text_labels(case.kind)
    before, after = diff(case.texts[0], case.texts[-1])
    lines = [_text(labels[0], before)]
    if len(case.texts) > 1:
        lines.append(_text(labels[1], after))
    images = []
    for shot in series.strip(case.kind, case.images, answer):
        alt = html.escape(shot.words)
        images.append(
            f'<img src="{picture(shot.name)}" alt="{alt}" title="{alt}" class="{shot.css}">'
        )
    lines.append(_strip(images, case.images))
    return [*lines, tag("p", series.finding(case.kind, answer), class_="vp-quiet vp-small")]


def ranked_words(position: int, name: str, right: str, query: Set[str]) -> tuple[str, str]:
    """Return the text for a picture in a ranking, and its class.

    Args:
        position: From 1.
        name: Name of the picture.
        right: The query's own picture.
        query: Pictures that the first wording ranks first; others are new.
    """
    if name == right:
        return f"Rank {position}, the query's own picture", "vp-right"
    return (f"Rank {position}", "") if name in query else (f"Rank {position}, new", "vp-new")


def _captions(
    case: CaseRow, presentation: Presentation, scores: Sequence[float], everything: bool
) -> list[str]:
    """The original, then other texts with what was changed.

    A card of an edit has one of them; the details have all.
    """
    kind = presentation.kind(case.kind)
    is_edit = kind.body == "edit"
    n_texts = len(case.texts) if everything else 2 if is_edit else 4
    is_scored = len(case.images) == 1 and len(scores) == len(case.texts)
    text_scores = list(scores[:2] if is_edit else scores) if is_scored else []
    highest = max(text_scores, default=0.0) if len(set(text_scores)) > 1 else None
    original = case.texts[0]
    lines = []
    texts = zip(case.texts[:n_texts], case.roles[:n_texts], strict=True)
    for index, (text, role) in enumerate(texts):
        score = text_scores[index] if index < len(text_scores) else None
        label = presentation.role_labels[role]
        if index and is_edit:
            edit = f"{kind.edit_label}: {value_label(case.subtype).lower()}"
            label = edit if index == 1 else BEFORE
        elif not is_edit and score is not None:
            label = f"{label} · {score:.3f}"
        chip = ""
        if score is not None and score == highest:
            chip = HIGHER if len(text_scores) == 2 else HIGHEST
        if role == "same" and not is_edit:
            content = html.escape(text)
        elif index:
            content = diff(original, text)[1]
        else:
            is_paired = len(case.texts) == 2 or is_edit
            content = diff(text, case.texts[1] if is_paired else text)[0]
        lines.append(_text(label, content, chip))
    return lines


def columns(case: CaseRow, kind: KindPresentation) -> Mapping[str, Callable[[AnswerRow], str]]:
    """Return the values that the table of models has next to the margin, by heading."""
    if kind.body == "edit" or (kind.body == "captions" and len(case.texts) == 2):
        return {
            "true": lambda answer: _score(answer, 0),
            kind.edit_column: lambda answer: _score(answer, 1),
        }
    if kind.body in ("caption_search", "picture_search"):
        return {
            "rank": lambda answer: rank(answer, "rank"),
            "clean": lambda answer: rank(answer, "rank_clean"),
        }
    if kind.body == "series":
        heading, name, digits = series.score_column(case.kind)
        return {heading: lambda answer: _rounded(answer.number(name), digits)}
    if kind.body == "rankings":
        return {
            "top 10": lambda answer: _share(answer.number("local_10")),
            "top 100": lambda answer: _share(answer.number("local_100")),
            "corr.": lambda answer: _rounded(answer.number("global"), 3),
        }
    return {}


def _score(answer: AnswerRow, index: int) -> str:
    return f"{answer.scores[index]:.3f}" if len(answer.scores) > index else "-"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"


def _rounded(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def diff(before: str, after: str) -> tuple[str, str]:
    """Both captions as HTML: removed words in <del>, inserted words in <ins>; a difference in case is not a change."""
    sources, targets = [], []
    for source, target, differs in in_step(before, after):
        sources.append(marked("del", source) if differs else html.escape(source))
        targets.append(marked("ins", target) if differs else html.escape(target))
    return "".join(sources), "".join(targets)
