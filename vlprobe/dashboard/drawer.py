"""The drawer that shows a single case and links to its neighbors, and the *Share* popover."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs

import htpy
import numpy as np
import streamlit as st

from vlprobe import views
from vlprobe.case import html
from vlprobe.case.card import CaseCard, bar_lengths, card_type, case_card, wrong_captions
from vlprobe.dashboard import embeddings, filters, mixed, widgets
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.case_links import count_text, draw_wall, wall_values
from vlprobe.dashboard.case_links import query as case_query
from vlprobe.dashboard.components import component
from vlprobe.dashboard.decks import add_cases
from vlprobe.dashboard.export import draw_link, draw_part, file_button
from vlprobe.dashboard.loaded import load_player, loads_at_once, ready_player
from vlprobe.dashboard.photographs import draw_download
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.play import playground
from vlprobe.dashboard.state import (
    PageSubject,
    attempt,
    counts,
    link_docs,
    model_labels,
    model_name,
    n_passing,
    plain,
    query,
    quiet,
    renamed,
    store,
    view,
)
from vlprobe.dashboard.widgets import draw_row, draw_toast, link_page, open_page, press
from vlprobe.render.attribution import credit_line
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import capitalized, counted, halves_note, shorten
from vlprobe.render.wall import orders, pattern_words, rate_text
from vlprobe.render.words import is_plural, movement_kinds, value_label, wrong
from vlprobe.runs import exhibits
from vlprobe.scoring import pictures
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import access, annotations
from vlprobe.storage.annotations import Annotation, Annotations
from vlprobe.storage.bookmarks import NAME_LENGTH, SLICES, VIEWS, NamedTexts
from vlprobe.surfaces.report import report, selection
from vlprobe.types import Picture
from vlprobe.views.filter import Filter
from vlprobe.views.mixed.searches import KIND
from vlprobe.views.wall import Neighbours, WallCard

SHOWN_ALIKE = 4  # number of thumbnails
MARGIN = (
    "Margin = score of the true caption minus score of the wrong one (the smallest difference, if "
    "there are several)."
)
LENGTHS = {  # what bar lengths are, by their unit
    "spread": (
        " Bar lengths are in standard deviations of the model's scores for pictures with captions of other pictures."
    ),
    "side": " Models have different score scales, and the spread of some is unknown, so there are no bars.",
}
T = TypeVar("T")
UNDO = "case_undo_before"  # session key: question set and annotation before the last change
EXPORTED = "exported_region"  # session key: the selected cases to export
WHY = "case_why_of"  # session key: id of the case whose words and parts are shown
TABS = ("Answers", "Why", "More like this", "Notes")
LISTED_CAPTION = 60  # maximum characters of a caption on a button
NAMED_CAPTION = 36  # and in the name of a search


def _close() -> None:
    st.query_params.pop("case", None)
    st.session_state.pop(UNDO, None)


@st.dialog("One case", width="small", position="right", on_dismiss=_close)
def draw_case(subject: PageSubject, case_filter: Filter, size: int, is_grouped: bool) -> None:
    """Draw the drawer with the case that the URL names, even if the case does not pass the filter.

    Args:
        subject: The question set.
        case_filter: The filter for the wall.
        size: Number of cards on one page of the wall.
        is_grouped: Whether the wall has one card per group; otherwise one per case.
    """
    case_id = st.query_params.get("case", "")
    number = view(views.rows.case_number, subject.question_set, case_id)
    if number is None:
        st.info("This case is not in the question set.", icon=":material/search_off:")
        return
    (card,) = view(views.wall.cards, subject.question_set, case_filter, (number,))
    kind = subject.presentation.kind(card.kind)
    near = view(views.wall.neighbors, subject.question_set, case_filter, number, is_grouped)
    n_cards = near.total_groups if is_grouped else n_passing(subject, case_filter)
    with st.container(key="case_head", gap="xsmall"):  # stays in view while the rest scrolls
        noun = card_type(kind).group if is_grouped and card.images else "case"
        _draw_steps(subject, card, near, n_cards, size, noun)
        draw_toast()
        if problem := st.session_state.pop("problem", ""):
            st.error(link_docs(problem), icon=":material/error:")
    case_filter = _about_fooled(case_filter, card)
    (card,) = view(views.wall.cards, subject.question_set, case_filter, (number,))
    answers = view(views.rows.answer_rows, subject.question_set, (number,))
    described = case_card(card, kind, answers[number])
    written = annotations.read(store(), subject.key)
    strips = described.strips()
    if is_mixed := card.kind == KIND:
        # The picture's own mixture and both of its pictures are above
        strips = [strip for strip in strips if strip.pictures[0].name not in card.images]
        _draw_key_tags(subject, card, _annotation(written, card))
        has_pictures = views.rows.are_here(card.images[:1])
        of_search = subject.question_set, number, case_filter.model
        search = view(views.mixed.case.mixed_case, *of_search)
        if search.fronts is None and strips:  # no gallery shows the mixture that ranks first
            draw_pictures(described)
        with st.container(key="case_mixed"):
            mixed.draw_search(subject, case_filter.model, search)
    else:
        has_pictures = draw_pictures(described)
    if card.images and not views.rows.are_here(card.images):
        draw_download(subject, "case_download")
    if not is_mixed:
        _draw_key_tags(subject, card, _annotation(written, card))
        st.html(str(html.captions(described.texts)))
    answers, why, alike, notes = st.tabs(TABS, key="case_tab")
    with answers:
        for strip in strips:
            st.html(str(htpy.fragment[html.strips([strip], _thumbnail)]))
        first = subject.compared if subject.rivals else ()
        st.html(str(html.bars(described, subject.looks, renamed(), first)))
        _draw_type(subject, case_filter.model, card)
        with st.expander("Details", key="case_details", icon=":material/data_object:"):
            _draw_details(subject, case_filter, described)
    with why:
        _draw_why(subject, case_filter.model, described)
    with alike:
        _draw_alike(subject, case_filter, described)
    with notes:
        _draw_annotation(subject, card, written)
    ways = ["deck", *["zoom"] * has_pictures, *["play"] * bool(_players(subject, card))]
    with st.container(key="case_foot"):  # stays in view, like the head
        shown = st.session_state.get(WHY) == card.id and card.id
        component("keys")(key="case_keys", data={"ways": ways, "opened": shown or ""})


def _about_fooled(case_filter: Filter, card: WallCard) -> Filter:
    """Return the filter for a model that the case fools, if the wall requires it: the drawer explains failures. The
    sentence's model may be right where others are required to be fooled.
    """
    states = {each.model: each.verdict for each in card.verdicts}
    if case_filter.other or states[case_filter.model] in ("fooled", "tied"):
        return case_filter
    fooled = (model for model in case_filter.fooled if states[model] in ("fooled", "tied"))
    return replace(case_filter, model=next(fooled, case_filter.model))


def _draw_steps(
    subject: PageSubject,
    card: WallCard,
    near: Neighbours,
    n_cards: int,
    size: int,
    noun: str,
) -> None:
    """Draw the case's position on the wall, and buttons for the slides, Try it, and the previous and next case."""
    where = html.place_text(near.place, n_cards, noun)
    with draw_row("case_steps"):
        st.html(tag("p", where, class_="vp-quiet vp-small"), width="stretch")
        if _has_words(card):
            dataset = subject.question_set.runs[0].dataset
            caption = {"from": dataset, "item": card.item, "text": card.true_text}
            if card.wrong_text and card.kind not in movement_kinds():
                caption["wrong"] = card.wrong_text
            models, label = _players(subject, card), "Try your own words"
            look = {
                "icon": "draw",
                "disabled": not models,
                "help": label if models else no_player(),
            }
            with st.container(key="case_try", width="content"):
                link_page("try", label, caption | {"models": models}, **look)
        added = add_cases, subject.key, card.kind, [card.id]
        look = {"icon": "add_to_queue", "key": "case_deck", "type": "tertiary"}
        press("Add to the slides", *added, **look, help="Add to the slides")
        for label, shortcut, icon, case_id, position in (
            ("Previous", "Left", "chevron_left", near.previous, near.place - 1),
            ("Next", "Right", "chevron_right", near.next, near.place + 1),
        ):
            # The wall behind the drawer turns to the page that contains the case
            opened, page = {"case": case_id}, 1 + (position - 1) // size
            if page > 1 or "page" in st.query_params:
                opened["page"] = str(page)
            look = {"icon": icon, "key": f"case_{label.lower()}", "type": "tertiary"}
            keyed = {"shortcut": shortcut, "disabled": not case_id}
            press(label, st.query_params.update, opened, **look, **keyed)


def _has_words(card: WallCard) -> bool:
    """Return whether the case's picture is on this machine, which users need to test it with their own captions."""
    return views.rows.are_here(card.images[:1])


def no_player() -> str:
    """Say why the user cannot test a case with words of their own."""
    download = f" The page Try it downloads one ({playground.REAL_MB} MB)."
    return f"Your own words need a model for photographs.{download * (not access.read_only())}"


def _players(subject: PageSubject, card: WallCard) -> list[str]:
    """Return the models that can judge the user's own words: those of the question set, or others on this machine that
    know such pictures. Empty if the picture is not here.
    """
    is_drawn = subject.question_set.runs[0].dataset.startswith(playground.DEMO)
    names = embeddings.encoders(subject) or playground.MODELS * is_drawn or playground.names_here()
    names = [name for name in names if loads_at_once(name) or not access.read_only()]
    return names[: playground.MOST_MODELS] * _has_words(card)


def _thumbnail(name: str) -> str:
    """Return the `src` of an <img> that shows a small version of a picture, or "" if the picture cannot be read."""
    return addresses(store().root, [name])[name]


def _draw_type(subject: PageSubject, model: str, card: WallCard) -> None:
    """Draw a link to the cases with the same type of edit, with the number of those that fool the model."""
    if not card.subtype or card.kind in movement_kinds():
        return
    of_type = Filter.parse(model, card.kind, subtype=card.subtype)
    label = f"{_fools(card)} {model_name(model)} in {_rate(subject, of_type)}"
    link_page("explore", plain(label), case_query(subject, of_type))


def _fools(card: WallCard) -> str:
    """Return the type of edit of a case as the subject of a sentence, with its verb."""
    phrase = wrong(card.subtype)
    return f"{capitalized(phrase)} {'fool' if is_plural(phrase) else 'fools'}"


def _rate(subject: PageSubject, case_filter: Filter) -> str:
    """Describe how many of the filter's cases fool its model: the share if some of them count as half."""
    if subject.question_set.run(case_filter.model).n_orders == 2:
        return rate_text(counts(subject, case_filter), 2, "cases")
    noun = "searches, by its own mixture or another" if case_filter.kind == KIND else "cases"
    return f"{count_text(subject, case_filter)} {noun}"


def _draw_why(subject: PageSubject, model: str, described: CaseCard) -> None:
    """Draw which side of the model did not see the difference, and which words and parts of the picture matter.

    Words and parts need a model that is on this machine: the filter's, or another encoder of the question set.
    """
    card = described.case
    table = view(views.causes.causes, subject.question_set, model, card.kind)
    if text := views.causes.sentence(table, card.case, model_name(model)):
        quiet(text)
    for text in _circumstances(subject, model, card):
        quiet(text)
    encoders = embeddings.encoders(subject)
    if not _has_words(card):
        quiet("To show which words and parts matter, vlprobe needs the picture on this computer.")
        return
    if model not in encoders:
        lacks = "a model whose weights are on this computer. The view Map gives the command."
        if encoders:
            lacks = f"an encoder, and {model_name(model)} cannot be used as one here. Choose another model."
        quiet(f"To show which words and parts matter, vlprobe needs {lacks}")
    if not encoders:
        return
    if model not in encoders:
        label = model_labels(encoders)
        model = st.selectbox("Model", encoders, format_func=label, key="case_why_model")
    is_open = st.session_state.get(WHY) == card.id
    press(
        "Hide words and parts" if is_open else "Show words and parts",
        *(st.session_state.__setitem__, WHY, "" if is_open else card.id),
        icon="psychology_alt",
        key="case_why",
    )
    if is_open:
        _draw_words_and_parts(model, described)


def _circumstances(subject: PageSubject, model: str, card: WallCard) -> list[str]:
    """Describe what the answers tell about a failure: doubts about the label, the other models, the kind of edit, and
    the lengths of the captions.
    """
    if card.kind in movement_kinds() or not (card.wrong_text or card.wrong_image):
        return []
    sentences = []
    of_case = subject.question_set, card.kind, np.array([card.case])
    if card.wrong_text and views.suspects.list_unjudged(*of_case):
        sentences.append(
            "The label may be wrong: at least two thirds of the strong models reject it. Judge it in the view Suspect "
            "labels."
        )
    verdict = next(each for each in card.verdicts if each.model == model)
    if verdict.is_in_one_order:
        sentences.append(
            f"{model_name(model)} changes its answer with the order of the two captions, so it guesses here."
        )
    if card.subtype:
        both = (Filter(model, card.kind, subtype=types) for types in ((card.subtype,), ()))
        of_type, of_all = (
            view(views.facets.model_rates, subject.question_set, each)[model] for each in both
        )
        if not math.isnan(of_type):
            sentences.append(
                f"{_fools(card)} {model_name(model)} in {100 * of_type:.1f} % of the cases, "
                f"any edit in {100 * of_all:.1f} %."
            )
            is_asked_twice = subject.question_set.run(model).n_orders == 2
            sentences.append(halves_note([model_name(model)] * is_asked_twice))
    n_words = len(card.wrong_text.split()) - len(card.true_text.split())
    if card.wrong_text and n_words:
        by = f"{counted(abs(n_words), 'word')} {'longer' if n_words > 0 else 'shorter'}"
        sentences.append(f"The wrong caption is {by} than the true one.")
    return list(filter(None, sentences))


def _draw_words_and_parts(model: str, described: CaseCard) -> None:
    """Draw how much each word of both captions and each part of the picture adds to a model's margin.

    A case without a wrong caption has no margin: then, how far words move the embedding and parts change the score,
    for a mixed picture next to the right one.
    """
    card, shots = described.case, described.pictures
    if not loads_at_once(model) and ready_player(model, "encode_texts", "texts") is None:
        return
    player = load_player(model)
    shown = [shots[0], *shots[1:] * bool(card.wrong_image)]
    canvases = [
        exhibits.canvas(pictures.open_picture(Picture.from_name(shot.name))) for shot in shown
    ]
    explanation = (
        f"How far {model_name(model)}'s margin (score of the true caption minus score of the wrong one) falls without "
        "the word, or when the part is black. Below 0, the word or part speaks for the wrong caption."
    )
    # A reworded caption is true, too
    wrong_text = card.wrong_text if player.sees and card.kind not in movement_kinds() else ""
    with st.container(key="case_why_open"):
        if wrong_text:
            playground.draw_margin_words(player, canvases[0], card.true_text, wrong_text)
        else:
            for text in filter(None, (card.true_text, card.wrong_text)):
                playground.draw_words(player, text)
            explanation = (
                f"Words: how far {model_name(model)}'s embedding of the caption moves without the word. Parts: how "
                "far the caption's score falls when the part is black."
            )
        for column, shot, canvas in zip(st.columns(len(shown)), shown, canvases, strict=True):
            with column:
                if len(shots) > 1:
                    draw_part(shot.label)
                playground.draw_parts(player, canvas, card.true_text, wrong_text)
        quiet(explanation)


def _draw_alike(subject: PageSubject, case_filter: Filter, described: CaseCard) -> None:
    """Draw other cases about the same picture, cases with the same change, and a button for the nearest pictures. The
    filters do not matter.
    """
    card = described.case
    possible = orders(described.kind.is_movement, card.is_scored)
    sort = next(iter(possible))
    every = Filter(case_filter.model, card.kind, outcome="all", sort=sort)
    same, n_same = view(views.wall.same_group, subject.question_set, every, card.case)
    if same:
        label = html.more_label(n_same, wrong_captions(described.kind), described.group)
        draw_part(f"{label}, regardless of filters, {possible[sort].lower()}")
        with st.container(key="case_more_list", gap=None):
            siblings = [case_card(sibling, described.kind) for sibling in same]
            changes_of = [
                (each.changed_words, each.swapped_words) for each in (*siblings, described)
            ]
            for sibling, change in zip(siblings, changes_of, strict=False):
                _draw_sibling(sibling, card.wrong_text, changes_of.count(change) > 1)
    has_pattern = _draw_pattern(subject, case_filter, described)
    encoder = embeddings.ready_encoder(subject) if _has_words(card) else ""
    if encoder:
        label = f"Show the {embeddings.count_nearest(subject)} most similar pictures"
        if st.button(label, icon=":material/image_search:", key="case_similar"):
            name = f"pictures like the one of “{shorten(card.true_text, NAMED_CAPTION)}”"
            of_case = name, card.true_text, card.images[0], filters.CLEARED
            attempt(embeddings.show_nearest, subject, encoder, *of_case)
            st.rerun()  # of the page: the drawer alone would look for a case
    if not (same or has_pattern or encoder):
        nowhere = f", and this change fools {model_name(case_filter.model)} in no other case"
        is_movement = described.kind.is_movement
        quiet(f"No other case has this picture{'' if is_movement else nowhere}.")


def _draw_sibling(sibling: CaseCard, wrong_text: str, is_repeated: bool) -> None:
    """Draw a button that opens another case of the group, with its changed words or, if `is_repeated`, its caption with
    those words in bold. `wrong_text` is the wrong caption of the open case.
    """
    source, target = sibling.changed_words
    words = plain(shorten(f"{source} → {target}", LISTED_CAPTION))
    if sibling.case.wrong_text == wrong_text:  # the same caption for another picture
        words = plain(shorten(sibling.case.true_text, LISTED_CAPTION))
    elif sibling.swapped_words[0] and not is_repeated:
        words = plain(shorten(" ⇄ ".join(sibling.swapped_words), LISTED_CAPTION))
    elif is_repeated or not (source and target):
        runs = sibling.wrong_runs(LISTED_CAPTION)
        words = "".join(_bold(text) if style else plain(text) for text, style in runs)
    if sibling.case.kind == KIND:
        words = f"{words} · {value_label(sibling.case.rule)}"
    fooled = " fooled" * (len(sibling.judges) > 1 and not sibling.kind.is_movement)
    label = f"{words} · {sibling.count_text}{fooled}"
    key = f"case_sibling_{sibling.case.case}"
    press(label, st.query_params.__setitem__, "case", sibling.case.id, key=key, type="tertiary")


def _bold(text: str) -> str:
    """Return Markdown that prints text in bold. Spaces and punctuation at its ends are outside the marks, which would
    otherwise be printed.

    >>> _bold(", two dogs ")
    ', **two dogs** '
    """
    words = re.search(r"\w(.*\w)?", text, re.DOTALL)
    if not words:
        return plain(text)
    return f"{plain(text[: words.start()])}**{plain(words[0])}**{plain(text[words.end() :])}"


def _draw_pattern(subject: PageSubject, case_filter: Filter, described: CaseCard) -> bool:
    """Draw other pictures on which the same replaced words or, if there are none, the same type of edit fools the
    model. Return whether there are any.
    """
    card, kind = described.case, described.kind
    if kind.is_movement:
        return False
    key = view(views.patterns.pattern_of, subject.question_set, card.kind, card.case)
    alike = Filter(case_filter.model, card.kind, pair=(key,) if key else ())
    if not key or counts(subject, alike)["all"] < 2:
        if not card.subtype:
            return False
        key = f"type:{card.subtype}"
        sort = "worst" if card.is_scored else "models"
        alike = Filter(case_filter.model, card.kind, subtype=(card.subtype,), sort=sort)
    here = replace(alike, pictured=views.rows.keeps_unpictured(subject.question_set))
    for shown in dict.fromkeys((here, alike)):
        cards, n_shown, _ = view(views.wall.wall, subject.question_set, shown, 1, SHOWN_ALIKE + 1)
        others = [case_card(each, kind) for each in cards if each.images != card.images]
        if others:
            break
    else:
        return False
    others = others[:SHOWN_ALIKE]
    is_counted = not shown.pictured or views.rows.are_here(card.images)
    n_others = n_shown - (card.margin <= 0 and is_counted)
    with st.container(horizontal=True, key="case_pattern"):
        order = orders(kind.is_movement, card.is_scored).get(shown.sort, "in any order").lower()
        words = f"{html.others_text(len(others), n_others, shown.pictured)}, {order}"
        source, target = pattern_words(key)
        text = htpy.div(".vp-pattern")[
            htpy.strong[source, target and [htpy.span(".vp-quiet")[" → "], target]],
            htpy.p(".vp-quiet.vp-small")[f"fooled in {_rate(subject, alike)}"],
            htpy.p(".vp-quiet.vp-small")[words],
        ]
        with st.container(width=128, gap="xsmall"):
            st.html(str(text))
            has_more = n_others > len(others) or shown != alike
            if has_more and st.button("Show all", key="case_pattern_all", type="tertiary"):
                open_page("explore", case_query(subject, alike))
        draw_wall("case_alike", wall_values(others, words, badge=False) | {"strip": True})
    return True


def _draw_details(subject: PageSubject, case_filter: Filter, described: CaseCard) -> None:
    """Draw a case's scores and rule, a button that saves it as a web page, and the equivalent command."""
    card, kind = described.case, described.kind
    if subject.question_set.is_scored:
        _, unit = bar_lengths(card.verdicts, kind)
        st.html(tag("p", MARGIN + LENGTHS.get(unit, ""), class_="vp-quiet vp-small"))
    if kind.legend:
        st.html(tag("p", kind.legend, class_="vp-quiet vp-small"))
    compared = filter(None, (case_filter.model, case_filter.other))
    models = tuple(dict.fromkeys((*compared, *subject.models)))
    names = {name: model_name(name) for name in models}
    beside = bool(case_filter.other)
    shown = described.strips()
    answer = described.answers[case_filter.model]
    # Without scores, the table would repeat the answers above
    has_scores = any(described.answers[model].is_scored for model in models)
    more = (
        html.verdict(kind, answer.margin, answer.is_scored),
        html.captions(described.more_texts),
        html.strips([row for row in described.strips(True) if row not in shown], _thumbnail),
        has_scores and html.numbers(described, models, subject.looks, names, beside),
    )
    st.html(str(htpy.div(".vp-card")[more]))
    st.html(html.properties(described))
    run = subject.question_set.run(case_filter.model)
    st.html(tag("p", "In a terminal:", class_="vp-quiet"))
    st.code(html.command(run.key, described), language="bash", wrap_lines=True)
    arguments = subject.question_set, case_filter.model, card.case, case_filter.other
    file_button(
        "Save as a web page",
        partial(report.case_page, *arguments),
        f"vlprobe_case_{card.case}.html",
        "text/html",
        help="A single file that includes the pictures. It works offline and contains no scripts.",
    )


def _draw_annotation(subject: PageSubject, card: WallCard, written: Annotations) -> None:
    """Draw a case's tags and note, in editable fields if changes are allowed."""
    current = _annotation(written, card)
    if not changes("Tags and notes cannot be changed here."):
        if current.tags or current.note:
            st.html(str(htpy.fragment[html.chips(current.tags, current.note)]))
        return
    tags_key, note_key = f"case_tags_{card.case}", f"case_note_{card.case}"

    def save_tags() -> None:
        attempt(partial(_write, tags=tuple(st.session_state[tags_key])), subject.key, card)

    def save_note() -> None:
        attempt(partial(_write, note=st.session_state[note_key]), subject.key, card)

    offered = dict.fromkeys([*current.tags, *written.tags, *annotations.SUGGESTED])
    with st.container(key="case_tags", gap="xsmall"):
        with draw_row("case_saved"):
            st.html(tag("p", "My tags", class_="vp-part"), width="stretch")
        st.multiselect(
            "My tags",
            list(offered),
            _value(tags_key, list(current.tags)),
            key=tags_key,
            label_visibility="collapsed",
            max_selections=annotations.MAX_CASE_TAGS,
            accept_new_options=True,
            select_all=False,
            placeholder="Choose a tag, or type a new one",
            on_change=save_tags,
        )
        st.text_area(
            "Note",
            _value(note_key, current.note) or "",
            key=note_key,
            max_chars=annotations.NOTE_LENGTH,
            height=80,
            on_change=save_note,
        )


def _value(key: str, value: T) -> T | None:
    """Return the initial value for a field, or None if the field is already drawn and Streamlit keeps its value.

    A drawn field is set to the stored value if the two differ: another person changed it, or the input was refused.
    """
    if key not in st.session_state:
        return value
    if st.session_state[key] != value:
        st.session_state[key] = value
    return None


def _annotation(written: Annotations, card: WallCard) -> Annotation:
    """Find the annotation for a case, or return an empty one if there is none."""
    of_case = (annotation for annotation in written.current if annotation.case == card.case)
    return next(of_case, Annotation(card.case, card.id))


def _write(case_key: str, card: WallCard, **changes: Any) -> None:
    """Store a case's changed tags or note, and remember the previous ones for Undo."""
    previous = _annotation(annotations.read(store(), case_key), card)
    annotations.write(store(), case_key, replace(previous, **changes))
    st.session_state[UNDO] = (case_key, previous)


def toggle_tag(case_key: str, ids: Mapping[int, str], name: str) -> str:
    """Add a tag to several cases, given by number with their ids, or remove it if all of them have it. Return what was
    done. Raises InvalidInput if the tag is not valid or a case has too many tags.
    """
    st.session_state.pop(UNDO, None)  # the state before would also take back this tag
    written = {each.case: each for each in annotations.read(store(), case_key).current}
    before = [written.get(case, Annotation(case, case_id)) for case, case_id in ids.items()]
    is_removed = all(name in each.tags for each in before)
    kept = ({*each.tags, name} - ({name} if is_removed else set()) for each in before)
    changed = [replace(each, tags=tuple(tags)) for each, tags in zip(before, kept, strict=True)]
    annotations.write_all(store(), case_key, changed)
    n_cases = counted(len(ids), "case")
    if is_removed:
        return f"Removed the tag {plain(name)} from {n_cases}"
    return f"Tagged {n_cases}: {plain(name)}. The same tag again removes it."


def _draw_key_tags(subject: PageSubject, card: WallCard, annotation: Annotation) -> None:
    """Draw buttons for the tags that the number keys add or remove, and an Undo button."""
    if access.read_only():
        return
    tags = annotation.tags
    with draw_row("case_key_tags", gap="xsmall"):
        for key, name in enumerate(annotations.SUGGESTED, 1):
            has_tag = name in tags
            changed = tuple(each for each in tags if each != name) + (name,) * (not has_tag)
            press(
                name,  # Streamlit adds the key to the label
                partial(_write, tags=changed),
                *(subject.key, card),
                icon="check" if has_tag else "",
                key=f"case_tag_{key}",
                shortcut=str(key),
                type="primary" if has_tag else "secondary",
            )
        saved_key, previous = st.session_state.get(UNDO, ("", None))
        if previous and (saved_key, previous.case) == (subject.key, card.case):
            st.html(tag("p", "✓ Saved", class_="vp-saved", role="status"), width="content")
            press("Undo", _undo, subject.key, previous, key="case_undo", type="tertiary")


def _undo(case_key: str, previous: Annotation) -> None:
    annotations.write(store(), case_key, previous)
    st.session_state.pop(UNDO, None)


SIDE = 1000  # maximum pixels of a picture
DRAWN_SIDE = 448  # pixels of a drawn scene, twice the size of its file


def draw_pictures(card: CaseCard) -> bool:
    """Draw the pictures of a case side by side, with their true captions as alternative text. Return whether there is
    one to zoom into.
    """
    shots = card.pictures if card.has_large_pictures else []
    sources = [large_picture(shot.name, SIDE, DRAWN_SIDE) for shot in shots]
    if not shots:
        return False
    with st.container(key="case_pictures"):
        if any(sources):
            with st.container(key="case_zoom"):
                component("zoom")(key="zoom", data={"case": card.case.id})
        columns = st.columns(len(shots), gap="small") if len(shots) > 1 else [st.container()]
        for shot, source, column in zip(shots, sources, columns, strict=True):
            label = f"{shot.label}{shot.detail}"
            with column, st.container(key=f"case_picture_{shot.style or 'plain'}{label}"):
                if source:
                    st.image(source, width="stretch", alt=shot.alt)
                else:
                    st.html(tag("div", html.missing(shot.name), class_="vp-missing"))
                if credit := credit_line(shot.name):
                    st.html(str(credit))
                if label:
                    st.html(tag("p", label, class_="vp-quiet vp-small"))
    return any(sources)


LISTED_CASES = 50  # maximum number of listed cases with tags or notes


def draw_share(
    subject: PageSubject, case_filter: Filter, n_cases: int, row: tuple[str, str] = ("", "")
) -> None:
    """Draw the *Share* popover: a link, downloads, saved views, slices, and cases with tags or notes."""
    with st.popover("Share", icon=":material/ios_share:", key="share", type="tertiary"):
        draw_link(subject, row)
        draw_part("Files")
        _files(subject, case_filter, n_cases)
        draw_part("Saved views")
        _saved_views()
        draw_part("Slices")
        _slices(subject, case_filter, n_cases)
        draw_part("Tags and notes")
        _annotated(subject)


@st.dialog("Export the selected cases")
def draw_export(subject: PageSubject, case_filter: Filter) -> None:
    """Draw buttons that download the cases that were selected on the wall. A download closes the dialog: its button
    loses the focus, so Escape would not.
    """
    n_cases = n_passing(subject, case_filter)
    if _files(subject, case_filter, n_cases, key="selected_export_", on_click="rerun"):
        st.rerun()


def _files(
    subject: PageSubject,
    case_filter: Filter,
    n_cases: int,
    key: str = "export_",
    on_click: str = "ignore",
) -> bool:
    """Draw buttons that download the filtered cases, and return whether one was clicked. `key` begins their keys."""
    limit = selection.MOST
    extent = f"The first {limit:,} of {n_cases:,} cases, in the order shown"
    if n_cases <= limit:
        extent = "The only case" if n_cases == 1 else f"All {n_cases:,} cases"
    quiet(
        f"{extent}, with the captions, the scores, every model's margin (1, 0 or −1 for a choice without scores), and "
        "your tags and notes."
    )
    with st.container(horizontal=True):
        clicked = [
            file_button(
                *(label, partial(make, subject.question_set, case_filter)),
                *(f"vlprobe_cases.{label.lower()}", mime, f"{key}{label}"),
                disabled=not n_cases,
                on_click=on_click,
            )
            for label, make, mime in (
                ("CSV", selection.as_csv, "text/csv"),
                ("JSON", selection.as_json, "application/json"),
            )
        ]
    return any(clicked)


@widgets.show_errors()
def _saved_views() -> None:
    saved = VIEWS.read(store())
    if not saved:
        quiet("No views saved yet. Saved views are shared with everyone who uses this cache.")
    links = {name: (plain(name), parse_qs(text)) for name, text in saved.items()}

    def save(name: str) -> None:
        VIEWS.save(store(), name, query("case", "page"))

    _draw_named(VIEWS, "view", links, "Save this view as", save)


@widgets.show_errors()
def _slices(subject: PageSubject, case_filter: Filter, n_cases: int) -> None:
    """Draw the named slices of the question set, and a form that saves the filtered cases as a slice."""
    named, refusals = view(views.named_slices.applicable, subject.key)
    for refusal in refusals:
        st.warning(plain(refusal), icon=":material/warning:")
    quiet(
        "Each slice gets a column on Compare and a row in reports. You can also use slices "
        "with vlprobe show, compare and gate."
    )
    links = {}
    for name, numbers in named.items():
        of_slice = Filter(case_filter.model, case_filter.kind, outcome="all", named_slice=name)
        links[name] = (
            f"{plain(name)}: {counted(len(numbers), 'case')}",
            case_query(subject, of_slice),
        )

    def save(name: str) -> None:
        numbers, _, _ = view(views.cases.passing, subject.question_set, case_filter)
        words = case_filter.words()
        views.named_slices.save(subject.question_set, name, words, numbers)

    _draw_named(SLICES, "slice", links, f"Save {counted(n_cases, 'case')} as a slice", save)


def _draw_named(
    texts: NamedTexts,
    noun: str,
    links: Mapping[str, tuple[str, Mapping]],
    prompt: str,
    save: Callable[[str], None],
) -> None:
    """Draw links to saved views or slices, each with a Remove button, and a form that saves another one."""
    may_change = changes(f"{noun.capitalize()}s cannot be saved or removed here.")

    def submit(name: str) -> None:
        st.session_state[f"{noun}_nameless"] = not name
        if name:
            attempt(save, name)

    for index, (name, (label, parameters)) in enumerate(links.items()):
        with draw_row(f"saved_{noun}_{index}"):
            link_page("explore", label, parameters, width="stretch")
            if may_change:
                look = {"key": f"forget_{noun}_{index}", "type": "tertiary"}
                help_ = f"Delete the {noun} {plain(name)}"
                press("Remove", texts.remove, store(), name, **look, help=help_)
    if may_change:
        with st.form(f"save_{noun}", border=False, clear_on_submit=True):
            st.text_input(prompt, key=f"{noun}_name", max_chars=NAME_LENGTH)
            st.form_submit_button(
                "Save" if noun == "view" else "Save slice",
                icon=":material/bookmark_add:",
                on_click=lambda: submit(st.session_state[f"{noun}_name"].strip()),
            )
            if st.session_state.pop(f"{noun}_nameless", False):
                quiet("Type a name first.")


def _annotated(subject: PageSubject) -> None:
    """Draw links to the cases that have tags or notes."""
    written = annotations.read(store(), subject.key)
    if written.damaged:
        damaged = plain("; ".join(written.damaged))
        st.warning(
            f"These lines are damaged and were skipped: {damaged}.", icon=":material/warning:"
        )
    if not written.current:
        quiet("This question set has no tags or notes yet. Open a case to tag it or write a note.")
        return
    n_cases = len(written.current)
    limit = f" Here: {LISTED_CASES}." if n_cases > LISTED_CASES else ""
    quiet(f"{n_cases:,} {'case' if n_cases == 1 else 'cases'}, latest first.{limit}")
    listed = written.current[:LISTED_CASES]
    numbers = tuple(sorted(annotation.case for annotation in listed))
    table = view(views.rows.questions, subject.question_set, numbers)
    texts = dict(zip(table["case"], table["texts"], strict=True))
    query = {
        name: st.query_params[name] for name in ("set", "model", "kind") if name in st.query_params
    }
    for annotation in listed:
        if annotation.case in texts:  # otherwise the file names a case that does not exist
            label = plain(texts[annotation.case][:2][-1])
            link_page("explore", label, query | {"case": annotation.id})
            quiet(" · ".join(filter(None, [*annotation.tags, annotation.note])))
