"""Render the results of the Playground: one line of marks per model, and a table with one row per edit."""

import html
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from vlprobe.render import numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, mark, marked, model_label, tag
from vlprobe.render.sentences import counted, some_models
from vlprobe.render.words import DELETED, NOT_RENAMED, value_label
from vlprobe.runs import playground
from vlprobe.runs.playground import Answer, Edited
from vlprobe.views.changes import in_step

NO_WORDS: Mapping[str, Set[str]] = MappingProxyType({})
FALLS = "It no longer fits, so the score should fall."
STAYS = "It means the same, so the score should stay."
SAYS_LESS = "It says less than your caption, so it should score lower."
GROUPS = {
    "flip": ("Wrong color, number or object", FALLS),
    "statement": ("Wrong negation, relation or word order", FALLS),
    "substitution": ("Object replaced, as in RoCOCO", FALLS),
    "deletion": ("Object removed, as in RoCOCO", SAYS_LESS),
    "combined": ("Reworded and made wrong", FALLS),
    "simple": ("Reworded simply", STAYS),
    "advanced": ("Reworded more freely", STAYS),
    "surface": ("Letter case, punctuation or typo changed", STAYS),
}
RULES = {"danger-paper": "One of the paper's danger words"} | DELETED
VERDICTS = {  # icon, word, color class
    "fools": ("✗", "fools", "fooled"),
    "tie": ("✗", "fools: a tie", "fooled"),
    "held": ("✓", "not fooled", "held"),
    "moved": ("◇", "moved", "tied"),
    "stayed": ("◇", "stayed", "held"),
}
TEXTS_ALONE = (
    "has no image input. The table shows the text-to-text similarity between each edit and your "
    "caption."
)
# Heights of wrong captions and of rewordings in a line, in percent. Neighbors differ.
HEIGHTS = {True: (16, 26, 36), False: (64, 74, 84)}


def verdict(wrong: bool, margin: float) -> str:
    """Return how an edit affects a model, as a key of VERDICTS, or "" if unknown.

    >>> verdict(True, 0.1), verdict(True, 0.0), verdict(True, -0.1)
    ('held', 'tie', 'fools')
    >>> verdict(False, 0.0), verdict(True, math.nan)
    ('stayed', '')
    """
    if math.isnan(margin):
        return ""
    if not wrong:
        return "moved" if margin else "stayed"
    return "held" if margin > 0 else "fools" if margin < 0 else "tie"


def moved_share(move: float, scale: float) -> str:
    """Say how far a score moved, in percent of how far wrong captions move it, or "" if that is unknown.

    >>> moved_share(-0.008, 0.2), moved_share(0.0004, 0.2), moved_share(0.0, 0.2), moved_share(0.1, math.nan)
    ('moved 4 %', 'moved < 1 %', 'stayed', '')
    """
    if math.isnan(scale) or not scale:
        return ""
    percent = 100 * abs(move) / scale
    return f"moved {percent:.0f} %" if percent >= 0.5 else "moved < 1 %" if move else "stayed"


def glance(
    edits: Sequence[Edited],
    answers: Sequence[Answer],
    styles: Looks,
    names: Mapping[str, str] = NOT_RENAMED,
    unlearned: Mapping[str, Set[str]] = NO_WORDS,
) -> str:
    """Render one line per model that shows all edits relative to the caption's own score. Each line has its own scale.

    Args:
        names: Display names of models, if different from their stored names.
        unlearned: Words that each model does not know, by model name.
    """
    ends = "".join(
        tag("span", words) for words in ("← fits worse", "your caption", "fits better →")
    )
    lines = "".join(_line(edits, each, styles) for each in _columns(answers, names, unlearned))
    return f'{lines}<p class="vp-ends">{ends}</p>'


def headline(
    edits: Sequence[Edited],
    answers: Sequence[Answer],
    names: Mapping[str, str] = NOT_RENAMED,
    unlearned: Mapping[str, Set[str]] = NO_WORDS,
) -> str:
    """Name the model that is fooled by most edits, or return "" if nothing can be judged."""
    n_wrong = sum(edited.wrong for edited in edits)
    columns = _columns([answer for answer in answers if answer.sees], names, unlearned)
    n_fooled = {column.name: column.n_fooled(edits) for column in columns}
    if not n_wrong or not n_fooled:
        return ""
    worst = max(n_fooled, key=lambda name: sum(n_fooled[name]))
    clear, same = n_fooled[worst]
    ties = f" ({counted(same, 'tie')} on words that it does not know)" if same else ""
    if clear or same:
        return f"{worst} is fooled by {clear + same} of {n_wrong} wrong captions{ties}."
    subject = f"{worst} is not" if len(n_fooled) == 1 else "No model is"
    return f"{subject} fooled by any of {n_wrong} wrong captions."


def doubt(n_doubters: int, n_models: int) -> str:
    """Say that most models prefer a caption of another picture, so that the user's caption may be wrong, or return "".

    >>> doubt(2, 3)
    "Two of three models find that another picture's caption fits better than yours."
    >>> doubt(1, 2), doubt(0, 0)
    ('', '')
    """
    if 2 * n_doubters <= n_models:
        return ""
    verb = "finds" if n_models == 1 else "find"
    who = some_models(n_doubters, n_models)
    return f"{who} {verb} that another picture's caption fits better than yours."


@dataclass(frozen=True)
class _Column:
    """One model's answer, and its column in the table of edits."""

    answer: Answer
    name: str  # display name
    unlearned: Set[str]  # words that the model does not know
    margins: np.ndarray  # shape (n,), one per edit
    widest: float  # the largest absolute margin
    scale: float = math.nan  # how far wrong captions move the score

    def n_fooled(self, edits: Sequence[Edited]) -> tuple[int, int]:
        """Count the wrong captions that fool the model, except for ties on words that it does not know, and these
        ties.
        """
        words = [playground.words_of(edited.text) for edited in edits]
        is_new = [not self.unlearned.isdisjoint(each) for each in words]
        wrong = np.array(
            [edited.wrong for edited in edits], dtype=bool
        )  # a caption may have no edits
        fooled = wrong & (self.margins <= 0)
        ties = fooled & self.answer.unseen & np.array(is_new, dtype=bool)
        return int((fooled & ~ties).sum()), int(ties.sum())


def _columns(
    answers: Sequence[Answer], names: Mapping[str, str], unlearned: Mapping[str, Set[str]]
) -> list[_Column]:
    columns = []
    for answer in answers:
        margins, name = playground.margins(answer), names.get(answer.model, answer.model)
        widest = float(np.nanmax(np.abs(margins), initial=0.0)) or 1.0
        unknown_words = unlearned.get(answer.model, frozenset())
        columns.append(_Column(answer, name, unknown_words, margins, widest))
    return columns


def _line(edits: Sequence[Edited], column: _Column, styles: Looks) -> str:
    heading = f"{mark(styles[column.answer.model])} <strong>{breakable(column.name)}</strong>"
    if not column.answer.sees:
        remark = tag("span", TEXTS_ALONE, class_="vp-quiet")
        return f'<div class="vp-glance"><p>{heading} {remark}</p></div>'
    summary, css = _summary(edits, column.margins)
    if same := column.n_fooled(edits)[1]:
        summary += f" ({counted(same, 'tie')} on words that it does not know)"
    symbols = []
    for index, (edited, margin) in enumerate(zip(edits, column.margins.tolist(), strict=True)):
        if outcome := verdict(edited.wrong, margin):
            icon, word, color = VERDICTS[outcome]
            height = HEIGHTS[edited.wrong][index % 3]
            style = f"left:{50 - 48 * _drawn(margin, column.widest):.2f}%;top:{height}%"
            icon = "●" if outcome == "held" else icon
            title = f"{word}: {edited.text}"
            symbols.append(tag("i", icon, class_=f"vp-{color}", style=style, title=title))
    alt = html.escape(f"{column.name}: {summary}")
    return (
        f'<div class="vp-glance"><p>{heading} · {tag("span", summary, class_=f"vp-{css}")}</p>'
        f'<div class="vp-track" role="img" aria-label="{alt}"><b></b>'
        f"{''.join(symbols)}</div></div>"
    )


def _drawn(margin: float, widest: float) -> float:
    """Return where to draw a margin, -1 to 1. The square root keeps small margins distinguishable."""
    return math.copysign(math.sqrt(abs(margin) / widest), margin)


def _number(score: float) -> str:
    return numbers.number(score, "cosine")


def _summary(edits: Sequence[Edited], margins: np.ndarray) -> tuple[str, str]:
    """Return text that says how many wrong captions fool a model, and the text's color class."""
    wrong = margins[np.array([edited.wrong for edited in edits], dtype=bool)]
    n_fooled, n_unknown = int((wrong <= 0).sum()), int(np.isnan(wrong).sum())
    if not len(wrong):
        return "no wrong captions to score", "quiet"
    if n_unknown == len(wrong):
        return f"- unknown for all {len(wrong)} wrong captions", "quiet"
    judged = f"{len(wrong) - n_unknown} wrong captions"
    judged += f", unknown for {n_unknown}" if n_unknown else ""
    if n_fooled:
        return f"✗ fooled by {n_fooled} of {judged}", "fooled"
    return f"✓ not fooled by any of {judged}", "held"


def table(
    caption: str,
    edits: Sequence[Edited],
    answers: Sequence[Answer],
    styles: Looks,
    only_fooling: bool = False,
    names: Mapping[str, str] = NOT_RENAMED,
    unlearned: Mapping[str, Set[str]] = NO_WORDS,
) -> str:
    """Render a table with one row per edit and one column per model. Edits are grouped by type, and changed words are
    marked.

    Args:
        only_fooling: Include only wrong captions that fool at least one model. The result is "" if there are none.
        names: Display names of models, if different from their stored names.
        unlearned: Words that each model does not know, by model name.
    """
    columns = [
        replace(column, scale=playground.wrong_distance(edits, column.answer))
        for column in _columns(answers, names, unlearned)
    ]
    indices = [
        index
        for index, edited in enumerate(edits)
        if not only_fooling
        or (edited.wrong and any(column.margins[index] <= 0 for column in columns))
    ]
    if not indices:
        return ""
    head = tag("th", "Edit", scope="col")
    head += "".join(_head(column, styles) for column in columns)
    bodies = []
    for group, (label, expectation) in GROUPS.items():
        rows = [
            _row(caption, edits[index], index, columns)
            for index in indices
            if edits[index].group == group
        ]
        if rows:
            words = f"{tag('strong', label)}<br>{tag('small', expectation)}"
            band = f'<th scope="rowgroup" colspan="{len(columns) + 1}">{words}</th>'
            bodies.append(f'<tbody><tr class="band">{band}</tr>{"".join(rows)}</tbody>')
    edit_table = f'<table class="vp-play"><thead><tr>{head}</tr></thead>{"".join(bodies)}</table>'
    return f'<div class="vp-scroll">{edit_table}</div>'


def changed(caption: str, edited: str) -> str:
    """Render an edited caption as HTML, with removed words in <del> and inserted words in <ins>.

    >>> changed("A red dog.", "A blue dog."), changed("A red dog.", "A dog.")
    ('A <del>red</del> <ins>blue</ins> dog.', 'A <del>red</del> dog.')
    """
    content = ""
    for source, target, differs in in_step(caption, edited):
        content += marked("del", source) if differs else ""
        if content.endswith("</del>") and target[:1].isalnum():
            content += " "
        content += marked("ins", target) if differs else html.escape(target)
    return content


def _head(column: _Column, styles: Looks) -> str:
    answer = column.answer
    remark = f"your caption: {_number(answer.true)}" if answer.sees else "compares texts"
    heading = model_label(styles[answer.model], column.name)
    return f'<th scope="col">{heading}<br>{tag("small", remark)}</th>'


def _row(caption: str, edited: Edited, index: int, columns: Sequence[_Column]) -> str:
    """Render one row of the table. `index` is the position of the edit's score in an answer."""
    subtype = edited.edit.subtype
    words = f'<span class="vp-caption">{changed(caption, edited.text)}</span>'
    is_reworded = edited.group in ("simple", "advanced")
    if rule := "" if is_reworded else RULES.get(subtype, value_label(subtype)):
        words += f"<br>{tag('small', rule)}"
    put_in = set(playground.words_of(edited.text)) - set(playground.words_of(caption))
    cells = "".join(_cell(column, edited, index, put_in) for column in columns)
    return f'<tr><th scope="row">{words}</th>{cells}</tr>'


def _cell(column: _Column, edited: Edited, index: int, put_in: Set[str]) -> str:
    answer, margin = column.answer, float(column.margins[index])
    outcome = verdict(edited.wrong, margin)
    if not answer.sees:
        content = tag("small", f"text to text {_number(answer.cosines[index])}")
    elif not outcome:
        content = "-"
    else:
        icon, word, css = VERDICTS[outcome]
        word = word if edited.wrong else moved_share(margin, column.scale) or word
        width = 50 * abs(_drawn(margin, column.widest))
        bar = f'<i style="left:{50 - (width if margin > 0 else 0):.2f}%;width:{width:.2f}%"></i>'
        content = (
            f'{_number(answer.scores[index])} <span class="vp-{css}">{icon} {word}'
            f'<span class="vp-gap" aria-hidden="true">{bar}</span></span>'
        )
    if answer.unseen[index]:
        content += tag("small", "looks the same to this model")
    if unknown_words := sorted(put_in & column.unlearned):
        content += tag("small", f"unknown to it: {', '.join(unknown_words)}")
    return f'<td data-model="{html.escape(column.name)}">{content}</td>'


def mixed(
    captions: tuple[str, str],
    scores: Mapping[str, np.ndarray | None],
    styles: Looks,
    names: Mapping[str, str] = NOT_RENAMED,
) -> str:
    """Render a table that shows how mixing two pictures affects the scores of both captions, with one column per model.

    Args:
        captions: The picture's caption and the other picture's caption.
        scores: Scores of shape (3, 2) by model: picture, mixed picture and other picture, each with both captions. None
            if the model has no image input.
        names: Display names of models, if different from their stored names.
    """
    labels = {model: names.get(model, model) for model in scores}
    heads = [model_label(styles[model], name) for model, name in labels.items()]
    head = tag("th", "Score of the mixed picture with", scope="col")
    head += "".join(f'<th scope="col">{each}</th>' for each in heads)
    rows = []
    for index, label in enumerate(("your caption", "the other's")):
        cells = "".join(_mixed_cell(labels[model], scores[model], index) for model in scores)
        caption = f'<span class="vp-caption">{html.escape(captions[index])}</span>'
        words = f"{caption}<br>{tag('small', label)}"
        rows.append(f'<tr><th scope="row">{words}</th>{cells}</tr>')
    content = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="vp-scroll"><table class="vp-play vp-mixed">{content}</table></div>'


def _mixed_cell(name: str, scores: np.ndarray | None, caption: int) -> str:
    """Render the score between the mixed picture and a caption (0 or 1), and the score of the caption's own picture."""
    if scores is None:
        content = tag("small", "sees no pictures")
    else:
        score = float(scores[1, caption])
        content = _number(score)
        outcome = verdict(True, float(scores[0, 0] - scores[1, 0])) if caption == 0 else ""
        if outcome:
            icon, word, css = VERDICTS[outcome]
            content += " " + tag("span", f"{icon} {word}", class_=f"vp-{css}")
        picture, whose = ((0, "your picture"), (2, "the other picture"))[caption]
        content += tag("small", f"{whose}: {_number(scores[picture, caption])}")
        if score > float(scores[1, 1 - caption]):
            content += tag("small", "▲ the mixed picture fits this caption best")
    return f'<td data-model="{html.escape(name)}">{content}</td>'
