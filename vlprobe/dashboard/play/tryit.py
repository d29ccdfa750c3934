"""The first screen of Try it: one edit of each kind with the verdict of each model, and a game to beat the models."""

from collections.abc import Mapping, Sequence, Set

import numpy as np
import streamlit as st

from vlprobe.dashboard.components import component
from vlprobe.perturb import picture_changes
from vlprobe.render.charts.styles import Looks, mark_values
from vlprobe.render.html.playground import moved_share
from vlprobe.render.sentences import listed
from vlprobe.render.words import value_label
from vlprobe.runs import exhibits
from vlprobe.runs import playground as runs_playground
from vlprobe.runs.exhibits import Canvas
from vlprobe.runs.playground import Answer, Edited, Player
from vlprobe.types import Edit, PictureChange
from vlprobe.views.changes import word_runs

KEY = "tryit"  # of the component
MOST_FIRST = 4  # kinds of wrong captions at first
PICTURE_CHANGES = ("defocus-blur", "gaussian-noise", "jpeg", "crop", "rotation")
GROUPS = ("flip", "statement", "simple", "advanced", "surface")  # the others are listed below
SUBSTITUTION = "substitution"  # RoCOCO's replaced objects
SEVERITY, SEED = 3, 42
MOST_ROWS = 9
MOST_SEEDS = 8  # tried for one more edit of a kind
LONGEST = 300  # maximum characters of a wrong caption
# Session keys
ROWS, TURNS, CLAIM, CHANGED = "try_rows", "try_turns", "try_claim", "try_changed"
CLAIMED = "try_claimed"  # session key: the item that the claim is about
ALL_EDITS = "all-edits"  # anchor of the heading above all edits
OTHER = "other-picture"
LABELS = {"wording": "Wording", OTHER: "Other picture"}
SCALE = (
    "100 %: as far as wrong captions move the score on average. A rewording should hardly move it."
)
UNCHECKED = "vlprobe cannot check that your caption is wrong. "
TRUE_CLAIM = "This is the true caption. Change a word to make it wrong."
Values = dict[str, object]


def draw_rows(
    players: Sequence[Player],
    canvas: Canvas,
    caption: str,
    edits: Sequence[Edited],
    answers: Sequence[Answer],
    others: Sequence[str],
    looks: Looks,
    names: Mapping[str, str],
    doubt: str,
) -> None:
    """Draw a row for each kind of edit, buttons that add kinds, and a field for a wrong caption of the user.

    Args:
        edits: All edits of the caption.
        answers: For each player, its scores of the edits.
        others: Captions of other pictures, one of which is the wrong caption if there is no other.
        doubt: Why the caption may be wrong, so that no model can be fooled; "" if it may be true.
    """
    # Without a word that a model can tell from the replaced one, the verdict would be a tie
    unseen = {
        edited.text
        for place, edited in enumerate(edits)
        if edited.group == SUBSTITUTION and all(answer.unseen[place] for answer in answers)
    }
    fooled = np.sum([runs_playground.margins(answer) < 0 for answer in answers], axis=0)
    # Wrong captions that fool the most models come first
    known = sorted(zip(fooled, edits, strict=True), key=lambda each: -each[0] * each[1].wrong)
    by_kind = _by_kind([edited for _, edited in known if edited.text not in unseen])
    _take()
    kinds = [kind for kind, (edited, *_) in by_kind.items() if edited.wrong][:MOST_FIRST]
    kinds = list(dict.fromkeys([*kinds, "wording", *st.session_state[ROWS]]))
    if not any(one.wrong for of_kind in by_kind.values() for one in of_kind):
        by_kind[OTHER] = [Edited("flip", text, Edit("flip", OTHER, OTHER)) for text in others]
        kinds = [OTHER, *kinds] if others else kinds
    scales = [runs_playground.wrong_distance(edits, answer) for answer in answers]
    turns = st.session_state.get(TURNS, {})
    shown = {
        kind: _nth(caption, kind, turns.get(kind, 0), by_kind[kind])
        for kind in kinds
        if kind in by_kind
    }
    claim = st.session_state.get(CLAIM, "")
    is_true = runs_playground.words_of(claim) == runs_playground.words_of(caption)
    claims = [claim] if claim and not is_true else []
    texts = [*(edited.text for edited in shown.values()), *claims]
    scored = runs_playground.score(players, canvas, caption, texts)
    rows = []
    for kind in kinds:
        if kind in PICTURE_CHANGES:
            rows.append(_picture_row(players, canvas, caption, answers, scales, kind))
        elif kind in shown:
            place, edited = list(shown).index(kind), shown[kind]
            style = "lie" if edited.wrong else "true"
            changes = word_runs(caption, edited.text, True)
            row: Values = {"kind": kind, "label": _label(kind), "more": True}
            row["runs"] = [[text, style if differs else ""] for text, differs in changes]
            row["verdicts"] = [
                _verdict(each, place, edited.wrong, bool(doubt), scale)
                for each, scale in zip(scored, scales, strict=True)
            ]
            rows.append(row)
    last = len(shown), True, bool(doubt), np.nan
    beaten = [_verdict(each, *last) for each in scored] if claims else []
    note = TRUE_CLAIM if claim and is_true else UNCHECKED
    if claims and doubt:
        note = f"Not counted. {doubt}"
    elif claims:
        note += _explain_claim(players, caption, claim, beaten, names)
    n_fooled = sum(verdict["state"] == "fooled" for verdict in beaten)
    others = [kind for kind in (*by_kind, *PICTURE_CHANGES) if kind not in kinds]
    can_add = len(rows) < MOST_ROWS
    # Of those that the page's heading counts
    wrong, here = [one.text for one in edits if one.wrong], {one.text for one in shown.values()}
    n_shown = sum(text in here for text in wrong)
    label = f"{n_shown} of {len(wrong)} wrong captions shown. See all" if wrong else ""
    component("tryit")(
        key=KEY,
        data={
            "models": [
                {"name": names[each.name], **mark_values(looks[each.name])} for each in players
            ],
            "rows": rows,
            "chips": [{"kind": kind, "label": _label(kind)} for kind in others if can_add],
            "all": {
                "label": label,
                "id": ALL_EDITS,
                "scale": SCALE * bool(np.isfinite(scales).any()),
            },
            "beat": {
                "text": claim,
                "verdicts": beaten,
                "count": f"{n_fooled} of {len(players)}" if claims and not doubt else "",
                "note": note,
            },
        },
        on_renew_change=lambda: None,
        on_add_change=lambda: None,
        on_claim_change=lambda: None,
    )


def _take() -> None:
    """Handle a message from the component: another edit of a kind, one more kind, or a caption that was typed."""
    sent = st.session_state.get(KEY) or {}
    kinds = st.session_state.setdefault(ROWS, [])
    if isinstance(kind := sent.get("renew"), str):
        turns = st.session_state.setdefault(TURNS, {})
        turns[kind] = turns.get(kind, 0) + 1
    if isinstance(kind := sent.get("add"), str) and kind not in kinds and len(kinds) < 20:
        kinds.append(kind)
    if isinstance(claim := sent.get("claim"), str):
        st.session_state[CLAIM] = " ".join(claim.split())[:LONGEST]


def _by_kind(edits: Sequence[Edited]) -> dict[str, list[Edited]]:
    """Group edits by row: their type, or "wording" for rewordings. Combined edits have none, and RoCOCO's
    replaced objects have one only if no other edit makes the caption wrong.
    """
    by_kind: dict[str, list[Edited]] = {}
    groups = GROUPS
    if not any(edited.wrong and edited.group in GROUPS for edited in edits):
        groups = (*GROUPS, SUBSTITUTION)
    for edited in edits:
        if edited.group == SUBSTITUTION and edited.group in groups:
            by_kind.setdefault("object", []).append(edited)
        elif edited.group in groups:
            is_wording = edited.group in ("simple", "advanced")
            kind = "wording" if is_wording else edited.edit.subtype
            by_kind.setdefault(kind, []).append(edited)
    return by_kind


def _nth(caption: str, kind: str, turn: int, first: Sequence[Edited]) -> Edited:
    """Return the edit of a kind that is shown after `turn` renewals. If there are too few, other seeds add some."""
    pool = {edited.text: edited for edited in first}
    for seed in range(SEED + 1, SEED + MOST_SEEDS + 1):
        if turn < len(pool):
            break
        for edited in _by_kind(runs_playground.edits(caption, seed=seed)[0]).get(kind, ()):
            pool.setdefault(edited.text, edited)
    return list(pool.values())[turn % len(pool)]


def _label(kind: str) -> str:
    if kind in PICTURE_CHANGES:
        return picture_changes.KINDS[kind].label
    return LABELS.get(kind) or value_label(kind)


def _verdict(answer: Answer, place: int, is_wrong: bool, is_doubtful: bool, scale: float) -> Values:
    """Return a model's verdict on one edit. A rewording has none: it shows how far the score moves. For a caption that
    may be wrong, the verdict only says which of both scores is higher.
    """
    margin = runs_playground.margins(answer)[place]
    if np.isnan(margin) or not is_wrong:
        return _moved(float(answer.scores[place]) - answer.true, scale)
    if is_doubtful:
        return _moved(-float(margin), np.nan) if margin else {"state": "moved", "text": "a tie"}
    if margin == 0:
        return {"state": "tie", "text": "a tie"}
    state = "fooled" if margin < 0 else "right"
    return {"state": state, "text": state}


def _explain_claim(
    players: Sequence[Player],
    caption: str,
    claim: str,
    verdicts: Sequence[Values],
    names: Mapping[str, str],
) -> str:
    """Say which models score the user's wrong caption like the true one, and which of its words models do not know."""
    new = set(runs_playground.words_of(claim)) - set(runs_playground.words_of(caption))
    unlearned = runs_playground.unlearned(players, [claim])
    remark = unknown_words(sorted(new), unlearned, names)
    pairs = zip(players, verdicts, strict=True)
    tied = [names[player.name] for player, verdict in pairs if verdict["state"] == "tie"]
    if not tied:
        return f"{remark} A verdict on unknown words is a guess. " if remark else ""
    verb = "scores" if len(tied) == 1 else "score"
    return f"A tie does not count here: {listed(tied)} {verb} both captions the same. {remark} "


def unknown_words(
    words: Sequence[str], unlearned: Mapping[str, Set[str]], names: Mapping[str, str]
) -> str:
    """Say which of the words models do not know, or return "" if they know all of them."""
    by_words: dict[str, list[str]] = {}
    for model, unknown in unlearned.items():
        if of_model := [f"“{word}”" for word in dict.fromkeys(words) if word in unknown]:
            by_words.setdefault(listed(of_model), []).append(names[model])
    remarks = (f"Words unknown to {listed(by_words[each])}: {each}." for each in by_words)
    return " ".join(remarks)


def _moved(move: float, scale: float) -> Values:
    """Return the change of a score as a verdict, in percent of `scale` if that is known. NaN is unknown."""
    if np.isnan(move):
        return {"state": "unknown", "text": "unknown"}
    if share := moved_share(move, scale):
        return {"state": "moved", "text": share}
    words = "scores lower" if move < 0 else "scores higher" if move else "stayed"
    return {"state": "moved", "text": words}


def _changed(canvas: Canvas, kind: str) -> Canvas:
    """Return the changed picture. The session keeps those of one picture: each press needs them again."""
    if st.session_state.get(CHANGED, ("",))[0] != canvas.key:
        st.session_state[CHANGED] = (canvas.key, {})
    changed: dict[str, Canvas] = st.session_state[CHANGED][1]
    if kind not in changed:
        image = picture_changes.apply(canvas.draw(), PictureChange(kind, SEVERITY, SEED))
        changed[kind] = exhibits.canvas(image)
    return changed[kind]


def _picture_row(
    players: Sequence[Player],
    canvas: Canvas,
    caption: str,
    answers: Sequence[Answer],
    scales: Sequence[float],
    kind: str,
) -> Values:
    """Return a row that shows how far the caption's score moves when the picture is changed."""
    changed = _changed(canvas, kind)
    verdicts = [
        _moved(float(player.scores([changed], [caption])[0, 0]) - answer.true, scale)
        for player, answer, scale in zip(players, answers, scales, strict=True)
    ]
    words = [["Same caption, changed picture", ""]]
    return {"kind": kind, "label": _label(kind), "runs": words, "verdicts": verdicts, "more": False}
