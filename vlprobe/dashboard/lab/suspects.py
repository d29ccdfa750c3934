"""The Suspect labels page: cases that most strong models get wrong, because their label may be wrong. Users judge the
cases one by one, with a key for each verdict.

The URL names the question set (`set`), the kind (`kind`), the minimum accuracy of a strong model
(`accuracy`) and the case (`case`).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.case import html
from vlprobe.case.card import ROLES, case_card
from vlprobe.dashboard import frame
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.drawer import draw_pictures
from vlprobe.dashboard.export import draw_menu
from vlprobe.dashboard.lab import papers
from vlprobe.dashboard.sentence import list_kinds
from vlprobe.dashboard.state import PageSubject, choose, model_name, plain, quiet, view
from vlprobe.dashboard.widgets import draw_styles, press
from vlprobe.render.sentences import counted, listed
from vlprobe.storage import errata
from vlprobe.storage.errata import Verdict
from vlprobe.views.bodies import stored_body
from vlprobe.views.changes import change_in_words, changed_words
from vlprobe.views.filter import Filter
from vlprobe.views.suspects import Suspect, Suspects

ACCURACIES = {
    "0.85": "at least 85 % right",
    "0.7": "at least 70 % right",
    "0.95": "at least 95 % right",
}
CHOICES: dict[Verdict, tuple[str, str]] = {  # label and key of each button
    "right": ("Label right", "y"),
    "wrong": ("Label wrong", "w"),
    "both": ("Both acceptable", "b"),
    "unsure": ("Unsure", "u"),
}


def draw_page() -> None:
    """Draw the whole Suspect labels page."""
    draw_styles("cases")
    st.title("Suspect labels", anchor=False)
    with st.container(horizontal=True, key="lab_subject"):
        questions = papers.pick()
        kinds = list_kinds(questions)
        kinds = [name for name in kinds if stored_body(questions.probe, name).is_for_people]
        labels = {name: questions.presentation.kind(name).lie or name for name in kinds}
        kind = ""
        if kinds:
            default = view(views.runs.default_kind, questions.question_set, questions.models)
            kind = choose("Kind", "kind", labels, default if default in labels else kinds[0])
    frame.say_strangers(questions)
    draw_suspects(questions, kind)


def draw_suspects(
    questions: PageSubject,
    kind: str,
    selected: Collection[int] | None = None,
    labels: Sequence[str] = (),
) -> None:
    """Draw the list of cases with suspect labels, the open case, and the accuracy of each model.

    Args:
        questions: The question set.
        kind: The kind of case.
        selected: Numbers of the cases to consider [all].
        labels: Labels of the filters that selected them.
    """
    if not kind or not stored_body(questions.probe, kind).is_for_people:
        st.info(
            "These cases do not compare a true caption with a wrong one. Choose another question "
            "set."
        )
        return
    head = st.container(horizontal=True, vertical_alignment="bottom")
    with head:
        accuracy = choose("Strong models are", "accuracy", ACCURACIES, "0.85", width=260)
    ranking = views.suspects.suspects(questions.question_set, kind, float(accuracy))
    if not ranking.suspects:
        reason = "No label is rejected by at least two thirds of the strong models."
        if len(ranking.strong) < 2:
            reason = (
                "At least two strong models are needed, because the mistakes of one model do "
                "not show that labels are wrong. Lower the accuracy or run more models."
            )
        st.info(reason)
        _draw_accuracies(questions, ranking)
        return
    n_every, without = len(ranking.suspects), ""
    if selected is not None:
        listed_cases = tuple(each for each in ranking.suspects if each.case in selected)
        ranking = replace(ranking, suspects=listed_cases)
    if labels:
        without = f" Without the filters ({', '.join(labels)}): {counted(n_every, 'case')}."
    n_all = sum(each.n_rejecting == len(ranking.strong) for each in ranking.suspects)
    head.markdown(
        f"**At least two thirds of the strong models get {counted(len(ranking.suspects), 'case')} wrong; "
        f"all of them get {n_all:,} wrong.** Some are hard, and some are mislabeled.{plain(without)}"
    )
    if ranking.suspects:
        left, right = st.columns(2, gap="medium")
        with left:
            suspect = _pick(ranking)
        with right, st.container(key="suspect_case"):
            _draw_case(questions, kind, suspect)
    quiet(f"Strong models: {listed([model_name(model) for model in ranking.strong])}.")
    _draw_accuracies(questions, ranking)


def _pick(ranking: Suspects) -> Suspect:
    """Draw the list of suspects and return the open one: the one in the URL, or else the first without a verdict."""
    by_id = {each.id: each for each in ranking.suspects}
    linked = st.query_params.get("case", "")
    suspect = by_id.get(linked) or next(
        (each for each in ranking.suspects if not each.verdict), ranking.suspects[0]
    )
    n_judged = sum(bool(each.verdict) for each in ranking.suspects)
    st.progress(
        n_judged / len(ranking.suspects), f"{n_judged:,} of {len(ranking.suspects):,} judged"
    )
    rows = []
    for each in ranking.suspects:
        verdict = CHOICES[each.verdict][0] if each.verdict else ""
        texts = each.true_text, each.wrong_text
        changed = change_in_words(*texts, changed_words(*texts)[1].replace(", ", " … "))
        rows.append((changed or each.wrong_text, each.n_rejecting, verdict, each.wrong_text))
    heads = ["changed words", f"of {len(ranking.strong)}", "verdict", "wrong caption"]
    table = pd.DataFrame(rows, columns=pd.Index(heads))
    chosen = {"rows": [ranking.suspects.index(suspect)]}
    st.session_state["suspect_list"] = {"selection": chosen}  # marks the open case
    st.dataframe(
        table,
        hide_index=True,
        height=420,
        key="suspect_list",
        column_order=heads[:-1],  # the open case has the whole captions
        column_config={
            "verdict": st.column_config.TextColumn(width=120),
            f"of {len(ranking.strong)}": st.column_config.NumberColumn(
                width=44, help="Strong models that reject the label"
            ),
        },
        on_select=lambda: _open(ranking, suspect),
        selection_mode="single-row",
    )
    draw_menu("suspects", table=table)
    return suspect


def _open(ranking: Suspects, shown: Suspect) -> None:
    """Open the selected case. The mark of the case that is shown is no selection: it would follow the user to the
    wall.
    """
    rows = st.session_state["suspect_list"]["selection"]["rows"]
    if rows and ranking.suspects[rows[0]] != shown:
        st.query_params["case"] = ranking.suspects[rows[0]].id


def _draw_case(questions: PageSubject, kind: str, suspect: Suspect) -> None:
    (card,) = views.wall.cards(
        questions.question_set, Filter(questions.models[0], kind), [suspect.case]
    )
    described = case_card(card, questions.presentation.kind(kind))
    draw_pictures(described)
    labels = zip(described.sides, (ROLES["true"], ROLES["lie"]), strict=True)
    st.html(str(html.captions([replace(text, role=role) for text, role in labels])))
    if changes("Verdicts cannot be changed here."):
        _draw_verdicts(questions, suspect)


def _draw_verdicts(questions: PageSubject, suspect: Suspect) -> None:
    def judge(verdict: Verdict) -> None:
        of_case = questions.question_set, suspect.case, suspect.id
        views.suspects.judge(*of_case, "" if verdict == suspect.verdict else verdict)
        st.query_params.pop("case", None)

    with st.container(horizontal=True, key="suspect_buttons", gap="xsmall"):
        for choice, (label, key) in CHOICES.items():
            color = "primary" if choice == suspect.verdict else "secondary"
            press(label, judge, choice, key=f"suspect_{choice}", shortcut=key, type=color)
    quiet("Verdicts are saved at once as tags on the case. The same verdict again removes it.")


def _draw_accuracies(questions: PageSubject, ranking: Suspects) -> None:
    st.subheader("Accuracy with and without rejected labels", anchor=False)
    table = pd.DataFrame(
        {
            "model": [model_name(each.model) for each in ranking.accuracies],
            "right, %": [100 * each.all_cases for each in ranking.accuracies],
            "without, %": [100 * each.without for each in ranking.accuracies],
        }
    )
    st.dataframe(table.style.format(precision=2), hide_index=True)
    draw_menu("accuracies", table=table)
    n_rejected = sum(each.verdict in errata.REJECTING for each in ranking.suspects)
    quiet(
        f"Rejected labels: {n_rejected:,}. Excluding cases that models get wrong always makes the "
        "models look better, so only labels judged wrong, or with two acceptable captions, are "
        "excluded."
    )
    st.code(
        f"vlprobe errata export {questions.question_set.runs[0].key} errata.jsonl --reviewer NAME",
        language=None,
        wrap_lines=True,
    )
