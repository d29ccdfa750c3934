"""The Playground's verdicts as HTML: a line of marks a model, and a table with a row an edit."""

import html
import math
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

import numpy as np

from vlprobe.render import numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, mark, marked, tag
from vlprobe.render.words import DELETED, value_label
from vlprobe.runs import playground
from vlprobe.runs.playground import Answer, Edited
from vlprobe.views.changes import in_step

NO_NAMES: Mapping[str, str] = MappingProxyType({})
NO_WORDS: Mapping[str, Set[str]] = MappingProxyType({})
GROUPS = {
    "flip": (
        "Made wrong: a colour, a number or a thing",
        "It no longer fits, so the score should fall.",
    ),
    "substitution": (
        "A thing exchanged, as RoCOCO does",
        "It no longer fits, so the score should fall.",
    ),
    "deletion": (
        "A thing left out, as RoCOCO does",
        "It says less than your caption, so it should score lower.",
    ),
    "combined": ("Reworded and made wrong", "It no longer fits, so the score should fall."),
    "simple": ("Reworded simply", "It means the same, so the score should stay."),
    "advanced": ("Reworded more freely", "It means the same, so the score should stay."),
}
RULES = {"danger-paper": "One of the paper's danger words"} | {
    f"{name}-ei" if name != "random" else name: words for name, words in DELETED.items()
}
VERDICTS = {  # icon, word, colour class
    "fools": ("✗", "fools", "fooled"),
    "tie": ("✗", "fools: a tie", "fooled"),
    "held": ("✓", "held", "held"),
    "moved": ("◇", "moved", "tied"),
    "stayed": ("◇", "stayed", "held"),
}
HEIGHTS = {
    True: (16, 26, 36),
    False: (64, 74, 84),
}  # of wrong captions and of rewordings in a line; per cent


def verdict(wrong: bool, margin: float) -> str:
    """What an edit did to a model, as a key of VERDICTS; nothing where it is unknown.

    >>> verdict(True, 0.1), verdict(True, 0.0), verdict(True, -0.1), verdict(False, 0.0), verdict(True, math.nan)
    ('held', 'tie', 'fools', 'stayed', '')
    """
    if math.isnan(margin):
        return ""
    if not wrong:
        return "moved" if margin else "stayed"
    return "held" if margin > 0 else "fools" if margin < 0 else "tie"


def glance(
    edits: Sequence[Edited],
    answers: Sequence[Answer],
    looks: Looks,
    names: Mapping[str, str] = NO_NAMES,
) -> str:
    """A line a model: all edits around the caption's own score, in the middle; each line has its own scale.

    `names` are what models are called; one without a name is called as it is stored.
    """
    ends = "".join(
        tag("span", words) for words in ("← fits worse", "your caption", "fits better →")
    )
    return (
        "".join(_line(edits, answer, looks, names) for answer in answers)
        + f'<p class="vp-ends">{ends}</p>'
    )


def headline(
    edits: Sequence[Edited], answers: Sequence[Answer], names: Mapping[str, str] = NO_NAMES
) -> str:
    """What the answers come to: who is fooled most; "" where nothing can be judged."""
    n_wrong = sum(edited.wrong for edited in edits)
    fooled = {
        names.get(answer.model, answer.model): sum(
            edited.wrong and margin <= 0
            for edited, margin in zip(edits, playground.margins(answer).tolist(), strict=True)
        )
        for answer in answers
        if answer.sees
    }
    if not n_wrong or not fooled:
        return ""
    worst = max(fooled, key=lambda name: fooled[name])
    if not fooled[worst]:
        who = f"{worst} is" if len(fooled) == 1 else "No model is"
        return (
            f"{who} {'not ' if len(fooled) == 1 else ''}fooled by any of {n_wrong} wrong captions."
        )
    return f"{worst} is fooled by {fooled[worst]} of {n_wrong} wrong captions."


def _line(edits: Sequence[Edited], answer: Answer, looks: Looks, names: Mapping[str, str]) -> str:
    called = names.get(answer.model, answer.model)
    name = f"{mark(looks[answer.model])} <strong>{breakable(called)}</strong>"
    if not answer.sees:
        told = (
            "sees no pictures. The table has how near each edit is to your caption, text to text."
        )
        return f'<div class="vp-glance"><p>{name} {tag("span", told, class_="vp-quiet")}</p></div>'
    margins = playground.margins(answer)
    said, css = _said(edits, margins)
    widest = _widest(margins)
    marks = []
    for place, (edited, margin) in enumerate(zip(edits, margins.tolist(), strict=True)):
        if found := verdict(edited.wrong, margin):
            icon, word, color = VERDICTS[found]
            height = HEIGHTS[edited.wrong][place % 3]
            style = f"left:{50 - 48 * _drawn(margin, widest):.2f}%;top:{height}%"
            icon = "●" if found == "held" else icon
            marks.append(
                tag("i", icon, class_=f"vp-{color}", style=style, title=f"{word}: {edited.text}")
            )
    return (
        f'<div class="vp-glance"><p>{name} · {tag("span", said, class_=f"vp-{css}")}</p>'
        f'<div class="vp-track" role="img" aria-label="{html.escape(f"{called}: {said}")}"><b></b>'
        f"{''.join(marks)}</div></div>"
    )


def _widest(margins: np.ndarray) -> float:
    return float(np.nanmax(np.abs(margins), initial=0.0)) or 1.0


def _drawn(margin: float, widest: float) -> float:
    """Where a margin is drawn, -1 to 1: its square root, so that what is close to a tie can still be told apart."""
    return math.copysign(math.sqrt(abs(margin) / widest), margin)


def _number(score: float) -> str:
    return numbers.number(score, "cosine")


def _said(edits: Sequence[Edited], margins: np.ndarray) -> tuple[str, str]:
    wrong = [
        verdict(True, margin)
        for edited, margin in zip(edits, margins.tolist(), strict=True)
        if edited.wrong
    ]
    fooled, unknown = sum(one in ("fools", "tie") for one in wrong), wrong.count("")
    if not wrong:
        return "no wrong caption to judge by", "quiet"
    if unknown == len(wrong):
        return f"- unknown for all of {len(wrong)} wrong captions", "quiet"
    told = f"{len(wrong) - unknown} wrong captions{f', unknown for {unknown}' if unknown else ''}"
    if fooled:
        return f"✗ fooled by {fooled} of {told}", "fooled"
    return f"✓ not fooled by any of {told}", "held"


def table(
    caption: str,
    edits: Sequence[Edited],
    answers: Sequence[Answer],
    looks: Looks,
    only_fooling: bool = False,
    names: Mapping[str, str] = NO_NAMES,
    unlearned: Mapping[str, Set[str]] = NO_WORDS,
) -> str:
    """Every edit with its changed words marked, under its group in plain words, and a column a model.

    With `only_fooling`, the wrong captions that fool one of the models; nothing where there are none. `unlearned` has
    the words that a model knows nothing of, by the model.
    """
    shown = [
        place
        for place in range(len(edits))
        if not only_fooling or _fools_any(edits[place], answers, place)
    ]
    if not shown:
        return ""
    head = tag("th", "Edit", scope="col") + "".join(
        _head(answer, looks, names) for answer in answers
    )
    widest = [_widest(playground.margins(answer)) for answer in answers]
    bodies = []
    for group, (label, should) in GROUPS.items():
        places = [place for place in shown if edits[place].group == group]
        if places:
            words = f"{tag('strong', label)}<br>{tag('small', should)}"
            band = f'<tr class="band"><th scope="rowgroup" colspan="{len(answers) + 1}">{words}</th></tr>'
            rows = [
                _row(caption, edits[place], place, answers, widest, names, unlearned)
                for place in places
            ]
            bodies.append(f"<tbody>{band}{''.join(rows)}</tbody>")
    table = f'<table class="vp-play"><thead><tr>{head}</tr></thead>{"".join(bodies)}</table>'
    return f'<div class="vp-scroll">{table}</div>'


def changed(before: str, after: str) -> str:
    """The edit as HTML, with words that were taken out in <del> and words that were put in in <ins>, side by side.

    >>> changed("A red dog.", "A blue dog."), changed("A red dog.", "A dog.")
    ('A <del>red</del> <ins>blue</ins> dog.', 'A <del>red</del> dog.')
    """
    found = ""
    for out, put, differs in in_step(before, after):
        found += marked("del", out) if differs else ""
        if found.endswith("</del>") and put[:1].isalnum():
            found += " "
        found += marked("ins", put) if differs else html.escape(put)
    return found


def _fools_any(edited: Edited, answers: Sequence[Answer], place: int) -> bool:
    return edited.wrong and any(playground.margins(answer)[place] <= 0 for answer in answers)


def _head(answer: Answer, looks: Looks, names: Mapping[str, str]) -> str:
    told = f"your caption: {_number(answer.true)}" if answer.sees else "compares texts"
    called = breakable(names.get(answer.model, answer.model))
    return f'<th scope="col">{mark(looks[answer.model])} {called}<br>{tag("small", told)}</th>'


def _row(
    caption: str,
    edited: Edited,
    place: int,
    answers: Sequence[Answer],
    widest: Sequence[float],
    names: Mapping[str, str],
    unlearned: Mapping[str, Set[str]],
) -> str:
    subtype = edited.edit.subtype
    told = (
        "" if edited.group in ("simple", "advanced") else RULES.get(subtype, value_label(subtype))
    )
    words = f'<span class="vp-caption">{changed(caption, edited.text)}</span>'
    words += f"<br>{tag('small', told)}" if told else ""
    put_in = set(playground.words_of(edited.text)) - set(playground.words_of(caption))
    cells = [
        _cell(
            edited,
            answer,
            place,
            most,
            names.get(answer.model, answer.model),
            sorted(put_in & unlearned.get(answer.model, set())),
        )
        for answer, most in zip(answers, widest, strict=True)
    ]
    return f'<tr><th scope="row">{words}</th>{"".join(cells)}</tr>'


def _cell(
    edited: Edited, answer: Answer, place: int, widest: float, called: str, unlearned: Sequence[str]
) -> str:
    margin = float(playground.margins(answer)[place])
    found = verdict(edited.wrong, margin)
    if not answer.sees:
        told = tag("small", f"text to text {_number(answer.cosines[place])}")
    elif not found:
        told = "-"
    else:
        icon, word, css = VERDICTS[found]
        wide = 50 * abs(_drawn(margin, widest))
        bar = f'<i style="left:{50 - (wide if margin > 0 else 0):.2f}%;width:{wide:.2f}%"></i>'
        told = (
            f'{_number(answer.scores[place])} <span class="vp-{css}">{icon} {word}'
            f'<span class="vp-gap" aria-hidden="true">{bar}</span></span>'
        )
    if answer.unseen[place]:
        told += tag("small", "the same to this model")
    if unlearned:
        told += tag("small", f"unknown to it: {', '.join(unlearned)}")
    return f'<td data-model="{html.escape(called)}">{told}</td>'


def mixed(
    captions: tuple[str, str],
    scores: Mapping[str, np.ndarray | None],
    looks: Looks,
    names: Mapping[str, str] = NO_NAMES,
) -> str:
    """What mixing did to the scores of both captions, a column a model.

    Args:
        captions: The picture's own, and the other picture's.
        scores: By model, shape (3, 2): picture, mixed picture and other picture, with each caption; None: it sees none.
        looks: What `charts.styles` returns.
    """
    head = tag("th", "Score of the mixed picture with", scope="col")
    head += "".join(
        f'<th scope="col">{mark(looks[name])} {breakable(names.get(name, name))}</th>'
        for name in scores
    )
    rows = []
    for place, (label, before) in enumerate(
        (("your caption", "your picture"), ("the other's", "the other picture"))
    ):
        cells = "".join(
            _mixed_cell(names.get(name, name), own, place, before) for name, own in scores.items()
        )
        words = f'<span class="vp-caption">{html.escape(captions[place])}</span><br>{tag("small", label)}'
        rows.append(f'<tr><th scope="row">{words}</th>{cells}</tr>')
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="vp-scroll"><table class="vp-play vp-mixed">{table}</table></div>'


def _mixed_cell(name: str, scores: np.ndarray | None, place: int, before: str) -> str:
    if scores is None:
        told = tag("small", "sees no pictures")
    else:
        own = float(scores[1, place])
        told = _number(own)
        if place == 0 and (found := verdict(True, float(scores[0, 0] - scores[1, 0]))):
            icon, word, css = VERDICTS[found]
            told += " " + tag("span", f"{icon} {word}", class_=f"vp-{css}")
        told += tag("small", f"{before}: {_number(scores[0 if place == 0 else 2, place])}")
        if own > float(scores[1, 1 - place]):
            told += tag("small", "▲ the mixed picture fits this best")
    return f'<td data-model="{html.escape(name)}">{told}</td>'
