"""A case as people look at it, as HTML: verdict, texts with the changed words marked, and what each model said."""

import base64
import html
import io
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from vlprobe import views
from vlprobe.errors import VlprobeError
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import cases
from vlprobe.render.html.elements import breakable, facts, mark, tag
from vlprobe.render.words import MOVED, named
from vlprobe.scoring import pictures
from vlprobe.types import Picture

LEGENDS = {
    "ranking": "Pictures from rank 1 to 5. Solid frame: the query's own picture. Dashed: not among the first five of "
    "the first wording.",
    "pair": "The matrix has the scores of the chosen model. Each picture should prefer its own caption (right of each "
    "row), and each caption its own picture (under each column).",
}
# What was asked, by kind; i2t of a probe that ranks is another question
ASKED = {
    "flip": "The caption was changed so that it no longer fits the picture: the true one should score higher.",
    "combined": "The caption was reworded and made wrong: the true one should score higher.",
    "search": "A picture looks for its captions while altered captions are among the candidates: one of its own should "
    "score higher than all of these.",
    "t2i": "A caption looks for its picture while mixed pictures are among the candidates: the right one should score "
    "higher than all of these.",
    "pair": "Each of two pictures has its own caption: all four comparisons should hold.",
    "foil": "A picture should prefer its caption to one that is false.",
    "t2t": "Two captions mean the same: they should be closer to each other than either is to the third.",
    "i2t": "A picture should prefer both true captions to the false one.",
    "i2t-pair": "A picture should prefer its caption to one that is false.",
}
STEADY = {
    "paraphrase": "Rewordings kept the caption's meaning, so the score should stay.",
    "ranking": "Queries were asked in several wordings, so the same pictures should be ranked first.",
}


def asked(probe: str, kind: str) -> str:
    """What cases of a kind ask, as a sentence."""
    return STEADY.get(kind) or ASKED["search" if kind == "i2t" and probe == "rococo" else kind]


def judged(kind: str, margin: float) -> tuple[str, str, str]:
    """Icon, word and colour class of an outcome: what is only reworded moves or stays, what is wrong fools or not."""
    if math.isnan(margin):
        return "?", "Unknown", "tied"
    if kind in MOVED:
        return ("↕", "Moved", "tied") if margin else ("=", "Stayed", "held")
    if margin > 0:
        return "✓", "Held", "held"
    return ("✗", "Fooled", "fooled") if margin < 0 else ("=", "Tied", "tied")


def verdict(kind: str, margin: float) -> str:
    """The headline of a card."""
    icon, word, css = judged(kind, margin)
    if math.isnan(margin):
        by = "the model cannot tell the candidates apart"
    else:
        by = f"by {abs(margin):.3f}" if margin else "not at all" if kind in MOVED else "equal scores"
    return f'<p class="vp-verdict vp-{css}"><strong>{icon} {word}</strong> <small>{by}</small></p>'


def card(
    row: object,
    said: Mapping[str, Mapping],
    names: Sequence[str],
    looks: Looks,
    picture: Callable[[str], str],
    everything: bool = False,
    beside: bool = False,
) -> str:
    """Verdict, texts and scores of one case.

    Args:
        row: The case, as `views.failures` has it.
        said: What the models said to it, by model, as `by_case` has it.
        names: Models in order; the verdict is the first one's.
        looks: What `charts.styles` returns.
        picture: Gives the `src` of a small picture by its name.
        everything: All there is; else what a card has room for.
        beside: Also how far the margin of the first model is from that of the second.
    """
    mine = said[names[0]]
    parts = [verdict(row.kind, float(mine["margin"])), *cases.body(row, mine, picture, everything)]
    return "".join([*parts, _scores(row, said, names, looks, beside)])


def by_case(answers: pd.DataFrame) -> dict[int, dict[str, dict]]:
    """What the models said, as `views.answers` has it, by case and model."""
    found: dict[int, dict[str, dict]] = {}
    for answer in answers.to_dict("records"):
        found.setdefault(answer["case"], {})[answer["model"]] = answer
    return found


def _scores(row: object, said: Mapping[str, Mapping], names: Sequence[str], looks: Looks, beside: bool) -> str:
    """A line a model: what its kind of case has to tell, and the margin."""
    columns = cases.columns(row, said[names[0]])
    moved = row.kind in MOVED
    titles = ["Scores" if columns else "Model", *columns, "moved" if moved else "margin"]
    head = "".join(tag("th", title, scope="col") for title in titles)
    lines = []
    for name in names:
        answer = said[name]
        icon, word, css = judged(row.kind, float(answer["margin"]))
        cells = "".join(tag("td", told(answer)) for told in columns.values())
        margin = abs(answer["margin"]) if moved or not answer["margin"] else answer["margin"]
        sign = "" if moved or not margin else "+"
        margin = tag("td", icon if math.isnan(margin) else f"{icon} {margin:{sign}.3f}", class_=f"vp-{css}", title=word)
        lines.append(f'<tr><th scope="row">{mark(looks[name])} {breakable(name)}</th>{cells}{margin}</tr>')
    if beside:
        gap = float(said[names[0]]["margin"]) - float(said[names[1]]["margin"])
        gap = -gap if moved else gap  # how far it moved is told without a sign
        told = tag("td", "-" if math.isnan(gap) else f"{gap:+.3f}")
        first = tag("th", "Difference, first minus second", scope="row", colspan=str(1 + len(columns)))
        lines.insert(2, f'<tr class="vp-apart">{first}{told}</tr>')
    return f'<table class="vp-scores"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def about(row: object, probe: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """What is known of a case beside its texts: the question, the rule, the words, the pictures, the tags."""
    question = views.runs.kinds(probe).get(row.kind, row.kind)
    known = {"Question": f"{question} · {named(row.subtype)}" if row.subtype else question, "Rule": row.rule}
    if row.source or row.target:
        known["Words"] = f"{row.source or '(nothing)'} → {row.target or '(nothing)'}"
    known |= {"Case": row.id} | (
        {"Pictures": ", ".join(Picture.from_name(name).path.name for name in row.images)} if len(row.images) else {}
    )
    known |= {f"Tag {name}": value for name, value in dict(row.tags).items() if value}
    return facts({**known, **more})


def chips(tags: Sequence[str], note: str) -> str:
    """What people said of a case: tags, and a note below them."""
    shown = "".join(tag("span", name, class_="vp-chip") for name in tags)
    parts = [f'<p class="vp-chips">{shown}</p>' if shown else "", tag("p", note, class_="vp-note") if note else ""]
    return "".join(parts)


def command(run_key: str, row: object) -> str:
    """What finds the case in a terminal."""
    words = ["vlprobe", "failures", run_key[:8], "--kind", row.kind, "--rule", row.rule]
    return shlex.join([*words, "--outcome", "all", "--contains", row.texts[min(1, len(row.texts) - 1)]])


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


def shots(row: object, mine: Mapping, side: int) -> str:
    """The pictures of a case, one beside the other, or a line that says why one cannot be shown."""
    found = []
    for shot in cases.shots(row, mine):
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
