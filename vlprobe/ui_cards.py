"""Cases as people look at them: the picture, both captions with the changed words marked, and what each model said.

Captions are data: they are escaped and never go through Markdown. Pictures are only those that the store names.
"""

import difflib
import html
import io
import re
import shlex
from collections.abc import Sequence
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from vlprobe import pictures
from vlprobe.errors import VlprobeError
from vlprobe.types import Picture
from vlprobe.ui_filters import named, sorting
from vlprobe.ui_state import Questions, plain, quiet, tag, turn, view
from vlprobe.ui_tables import breakable, mark
from vlprobe.views import Filter

SIZE = 12  # cards on a page
ROLES = {"original": "True caption", "same": "Means the same", "different": "Does not fit"}
BEFORE = "Reworded, before it was made wrong"
HIGHER = ' <span class="vp-higher">▲ scores higher</span>'
EDITED = {"flip": "Made wrong", "combined": "Reworded and made wrong", "paraphrase": "Reworded"}


def cards(asked: Questions, chosen: Filter) -> None:
    """One page of cards, how many there are in all, the order, the link to this view, and the details of one."""
    bar = st.columns([3, 2, 1], vertical_alignment="bottom")
    with bar[1]:
        sorting(chosen.kind)
    total = view("outcomes", asked.key, chosen)[chosen.outcome]
    with bar[0]:
        page = turn(total, SIZE)
    with bar[2], st.popover("Link", icon=":material/link:", width="stretch"):
        quiet("Opens exactly this view, wherever this dashboard runs on the same results.")
        st.code(f"{st.context.url or ''}?{urlencode(st.query_params.to_dict())}", language=None, wrap_lines=True)
    table, _ = view("failures", asked.key, chosen, page, SIZE)
    if table.empty:
        st.info("No case passes these filters. Widen them, or choose another outcome.", icon=":material/search_off:")
        return
    said = view("answers", asked.key, tuple(int(case) for case in table["case"]))
    rows = list(table.itertuples())
    grid = st.grid(min_column_width=245, border=True, gap="small", key="cards")
    for row in rows:
        with grid.cell():
            _pictures(row, 480)
            st.html(_card(row, said[said["case"] == row.case], asked, chosen.model))
            st.button("Details", key=f"open_{row.case}", on_click=_open, args=(row.id,), width="stretch")
    if st.query_params.get("case", "") in set(table["id"]):
        _details(rows, said, asked, chosen)


def _open(case_id: str) -> None:
    st.query_params["case"] = case_id


def _close() -> None:
    st.query_params.pop("case", None)


@st.dialog("One case", width="medium", position="right", on_dismiss=_close)
def _details(rows: list, said: pd.DataFrame, asked: Questions, chosen: Filter) -> None:
    ids = [row.id for row in rows]
    place = ids.index(st.query_params["case"])
    row = rows[place]
    with st.container(horizontal=True, vertical_alignment="center"):
        before, after = ids[max(place - 1, 0)], ids[min(place + 1, len(ids) - 1)]
        st.button("Previous", shortcut="Left", on_click=_open, args=(before,), disabled=place == 0)
        st.button("Next", shortcut="Right", on_click=_open, args=(after,), disabled=place == len(ids) - 1)
        st.html(tag("p", f"{place + 1} of {len(ids)} on this page", class_="vp-quiet"))
    with st.container(key="bigger"):
        _pictures(row, 1000)
    own = said[said["case"] == row.case]
    st.html(_card(row, own, asked, chosen.model, everything=True))
    edit = EDITED.get(row.kind, row.kind)
    facts = {"Edit": f"{edit}, {named(row.subtype).lower()}", "Rule": row.rule}
    if row.source or row.target:
        facts["Words"] = f"{row.source or '(nothing)'} → {row.target or '(nothing)'}"
    facts |= {"Case": row.id, "Pictures": ", ".join(row.images)}
    facts |= {f"Tag {name}": value for name, value in dict(row.tags).items() if value}
    lines = "".join(f"{tag('dt', name)}<dd>{breakable(value)}</dd>" for name, value in facts.items())
    st.html(f'<dl class="vp-facts">{lines}</dl>')
    st.html(tag("p", "The same in a terminal:", class_="vp-quiet"))
    st.code(_command(row, asked, chosen), language="bash", wrap_lines=True)


def _command(row: object, asked: Questions, chosen: Filter) -> str:
    stored = view("runs")
    own = stored[(stored["case_key"] == asked.key) & (stored["model"] == chosen.model)]
    words = ["vlprobe", "failures", own["key"].iloc[0][:8], "--kind", row.kind, "--rule", row.rule]
    return shlex.join([*words, "--outcome", "all", "--contains", row.texts[1]])


def _pictures(row: object, side: int) -> None:
    """The case's pictures, or a line that says why one cannot be shown."""
    places = st.columns(len(row.images)) if len(row.images) > 1 else [st.container()]
    for name, place in zip(row.images, places, strict=len(row.images) > 0):
        picture = Picture.named(name)
        try:
            data = _thumbnail(name, picture.path.stat().st_mtime_ns if picture.path.exists() else 0, side)
        except VlprobeError:
            place.html(tag("div", f"The picture {picture.path.name} is missing or damaged.", class_="vp-missing"))
        else:
            place.image(data, width="stretch", alt=row.texts[0])


@st.cache_data(max_entries=400, show_spinner=False)
def _thumbnail(name: str, changed: int, side: int) -> bytes:
    """A JPEG of at most this many pixels a side; `changed`, the file's time, makes a new one of a changed file."""
    image = pictures.open_picture(Picture.named(name))
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


def _card(row: object, said: pd.DataFrame, asked: Questions, model: str, everything: bool = False) -> str:
    """Verdict, captions and scores of one case as HTML."""
    mine = said[said["model"] == model].iloc[0]
    parts = [verdict(row.kind, float(mine["margin"])), *_captions(row, mine["scores"], everything)]
    others = [name for name in asked.models if name != model]
    names = [model, *others] if everything else [model, *others[:4]]
    parts.append(_scores(row, said.set_index("model"), names, asked))
    if len(names) < len(asked.models):
        parts.append(tag("p", f"{len(asked.models) - len(names)} more models in the details.", class_="vp-quiet"))
    return f'<div class="vp-card">{"".join(parts)}</div>'


def _captions(row: object, scores: Sequence[float], everything: bool) -> list[str]:
    """The original, then other texts with what was changed: one on a card of an edit, all of them in the details."""
    shown = len(row.texts) if everything else 2 if row.kind in EDITED else 4
    scored = list(scores[:2] if row.kind in EDITED else scores) if _paired(row, scores) else []
    highest = max(scored, default=0.0) if len(set(scored)) > 1 else None
    found = []
    for place, (text, role) in enumerate(zip(row.texts[:shown], row.roles[:shown], strict=True)):
        label = ROLES[role]
        if place and row.kind in EDITED:
            label = f"{EDITED[row.kind]}: {named(row.subtype).lower()}" if place == 1 else BEFORE
        chip = place < len(scored) and scored[place] == highest
        told = f"{html.escape(label)}{HIGHER if chip else ''}"
        marked = diff(row.texts[0], text)[1] if place else diff(text, row.texts[1] if len(row.texts) > 1 else text)[0]
        found.append(f'<p class="vp-caption"><small>{told}</small><br>{marked}</p>')
    if shown < len(row.texts) and row.kind not in EDITED:
        found.append(tag("p", f"{len(row.texts) - shown} more captions in the details.", class_="vp-quiet"))
    return found


def _paired(row: object, scores: Sequence[float]) -> bool:
    """Whether the scores are those of one picture with each text, in order."""
    return len(row.images) == 1 and len(scores) == len(row.texts)


def _scores(row: object, said: pd.DataFrame, names: Sequence[str], asked: Questions) -> str:
    """A line a model: the scores where one picture meets a caption and its edit, and the margin."""
    paired = all(_paired(row, said.loc[name]["scores"]) for name in names)
    columns = [0, 1] if paired and (row.kind in EDITED or len(row.texts) == 2) else []
    second = "reworded" if row.kind == "paraphrase" else "wrong"
    last = "moved" if row.kind == "paraphrase" else "margin"
    titles = ["Scores", "true", second, last] if columns else ["Model", last]
    head = "".join(tag("th", title, scope="col") for title in titles)
    lines = []
    for name in names:
        answer = said.loc[name]
        icon, word, css = judged(row.kind, float(answer["margin"]))
        cells = "".join(tag("td", f"{answer['scores'][column]:.3f}") for column in columns)
        margin = abs(answer["margin"]) if row.kind == "paraphrase" or not answer["margin"] else answer["margin"]
        sign = "" if row.kind == "paraphrase" or not margin else "+"
        margin = tag("td", f"{icon} {margin:{sign}.3f}", class_=f"vp-{css}", title=word)
        lines.append(f'<tr><th scope="row">{mark(asked.looks[name])} {breakable(name)}</th>{cells}{margin}</tr>')
    return f'<table class="vp-scores"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def judged(kind: str, margin: float) -> tuple[str, str, str]:
    """Icon, word and colour class of an outcome: a reworded caption moves or stays, a wrong one fools or not."""
    if kind == "paraphrase":
        return ("↕", "Moved", "tied") if margin else ("=", "Stayed", "held")
    if margin > 0:
        return "✓", "Held", "held"
    return ("✗", "Fooled", "fooled") if margin < 0 else ("=", "Tied", "tied")


def verdict(kind: str, margin: float) -> str:
    """The headline of a card."""
    icon, word, css = judged(kind, margin)
    by = f"by {abs(margin):.3f}" if margin else "equal scores"
    return f'<p class="vp-verdict vp-{css}"><strong>{icon} {word}</strong> <small>{by}</small></p>'


def diff(before: str, after: str) -> tuple[str, str]:
    """Both captions as HTML: words that were taken out in <del>, words that were put in in <ins>. Case is no change."""
    left, right = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (before, after))
    matcher = difflib.SequenceMatcher(
        None, [token.lower() for token in left], [token.lower() for token in right], autojunk=False
    )
    shown: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in matcher.get_opcodes():
        shown[0].append(_marked("" if kind == "equal" else "del", "".join(left[a:b])))
        shown[1].append(_marked("" if kind == "equal" else "ins", "".join(right[c:d])))
    return "".join(shown[0]), "".join(shown[1])


def _marked(element: str, text: str) -> str:
    """Escaped, and inside the element but for the spaces around it."""
    words = text.strip()
    if not element or not words:
        return html.escape(text)
    start = text.index(words)
    return f"{text[:start]}<{element}>{html.escape(words)}</{element}>{text[start + len(words) :]}"


def summary(asked: Questions, chosen: Filter) -> None:
    """How often the model is fooled, in a sentence."""
    counts = view("outcomes", asked.key, chosen)
    model = plain(chosen.model)
    if chosen.kind == "paraphrase":
        st.markdown(
            f"**{counts['all']:,}** rewordings kept a caption's meaning, so the score of {model} should stay too. "
            f"The cards show how far it moved; it stayed exactly the same **{counts['tied']:,}** times."
        )
    elif counts["all"]:
        share = f"{100 * counts['fooled'] / counts['all']:.1f} %"
        ties = f", {counts['tied']:,} of them by a tie" if counts["tied"] else ""
        edited = "The caption was changed so that it no longer fits the picture: the true one should score higher. "
        st.markdown(
            f"{edited if chosen.kind in EDITED else ''}{model} was fooled **{counts['fooled']:,}** times of "
            f"**{counts['all']:,}** ({share}){ties}. "
            "The margin is the score of what should win minus the score of what should lose."
        )
