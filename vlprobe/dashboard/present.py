"""The Present page: slides about a question set, which can be shown here or downloaded as a file, and the quiz."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.dashboard import components, decks, frame
from vlprobe.dashboard.components import component
from vlprobe.dashboard.export import file_button
from vlprobe.dashboard.photographs import draw_download
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.play import page as quiz
from vlprobe.dashboard.sentence import list_kinds
from vlprobe.dashboard.state import (
    PageSubject,
    attempt,
    choose,
    linked_choice,
    mark_picked,
    page_subject,
    pick,
    quiet,
    renamed,
    short_set_labels,
    store,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import draw_row, link_page, press
from vlprobe.errors import MissingDependency
from vlprobe.render import findings
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import sentence_names
from vlprobe.render.slides import deck, values
from vlprobe.render.slides.arrangement import CASE, MOST_SLIDES, TEXT, Arrangement, arrange, parse
from vlprobe.render.slides.case import question_and_answer
from vlprobe.render.slides.models import full_names, name_line, slide_names
from vlprobe.render.slides.values import Slide
from vlprobe.render.words import distinct, presentations, value_label
from vlprobe.scoring.thumbnails import addresses
from vlprobe.surfaces import powerpoint
from vlprobe.surfaces.page import slides_file
from vlprobe.views.records import QuestionSetRow
from vlprobe.views.story import (
    Opener,
    Story,
    added_cards,
    opener,
    story,
    suggestions,
)

SIDE = 1000  # maximum pixels of a picture
SMALL_SIDE = 480  # in the file of a deck with many pictures, so that it stays below 10 MB
MANY_PICTURES = 24  # a page with more shows thumbnails, and large pictures near the open slide
IN_A_ROW = 5  # pictures; a slide with more has small ones in rows (slides.js)
NEAR = 6  # slides from the open one on, with large pictures
MOST_SUGGESTIONS = 5
MOST_LISTED = 30  # question sets whose kinds are listed
ABOUT = "about"  # session key of the picker
SLIDES_KEY = "slides"  # of the component
RESET = "deck_before_reset"  # session key: name and arrangement of the deck that was reset last
SHARED = " All browsers on this computer share your changes."
NO_SLIDE = "No slide is checked, so there is nothing to start or to download."
OPENED = "opened"  # session key: name of a deck, and the cases that it opened with before
POWERPOINT = "A file for PowerPoint, Keynote or LibreOffice, with texts and charts that you can edit, and notes."
TABS = {"slides": "Slides", "quiz": "Quiz"}
QUIZ_PARAMETERS = ("quiz", "round", "room")  # a link with one of these opens the quiz


def draw_page() -> None:
    """Draw the whole Present page with the tab that the URL names."""
    bar, tab = draw_row("play_bar"), "quiz"
    # First, because a room that cannot be joined is removed from the URL, and the quiz says why
    is_quiz = any(name in st.query_params for name in QUIZ_PARAMETERS)
    # Only who opened the room can choose the slides. After a reload, the browser's secret is known in the quiz only
    if (st.query_params.get("tab") == "slides" and decks.is_own()) or not quiz.is_guest():
        with bar:
            default = "quiz" if is_quiz else "slides"
            # Always in the URL: the quiz writes parameters that change the default
            tab = choose("Show", "tab", TABS, default, segments=True, bare=True, always=True)
    (quiz.draw_quiz if tab == "quiz" else _draw_slides)(bar)


def _draw_slides(bar: DeltaGenerator) -> None:
    """Draw the slides, and their pickers and buttons in the row above. Without results, say so and stop the page."""
    rows = view(views.runs.question_set_rows)
    if not rows:
        st.html(tag("h1", "No results yet, so no slides can be made.", class_="vp-nothing"))
        link_page("run", "Run a test", icon="play_arrow")
        st.stop()
    with bar, st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="talk"):
        subject, kind = _pick_subject(rows)
        name = f"{subject.key} {kind}"
        arrangement = decks.read(name)
        talk_story = _story(subject, kind, arrangement)
        if talk_story.opener:
            _draw_openers(name, talk_story.opener)
        download, reset = (st.container(width="content") for _ in range(2))
    _draw_editor(subject, talk_story, arrangement, download, reset)
    if line := name_line(subject.models, renamed()):
        quiet(line)
    frame.say_strangers(subject, names=full_names(renamed()))


def _pick_subject(rows: Sequence[QuestionSetRow]) -> tuple[PageSubject, str]:
    """Draw a picker for the question set and the kind of cases, and return both. A set beyond the first ones, whose
    kinds would take long to list, is offered with its default kind.
    """
    labels = short_set_labels(rows)
    subject = page_subject(linked_choice("About", "set", labels, rows[0].case_key, always=True))
    kind = view(views.runs.default_kind, subject.question_set)
    if len(kinds := list_kinds(subject)) > 1:
        kind = linked_choice("Fooled by", "kind", dict.fromkeys(kinds, ""), kind)
    subjects = {}
    for position, row in enumerate(rows):
        names = [""]
        if position < MOST_LISTED or row.case_key == subject.key:
            names = view(views.runs.list_kinds, row.case_key, row.probe)
        for name in names:
            wrong = f": {presentations()[row.probe].kind(name).wrong_side}" * (len(names) > 1)
            subjects[f"{row.case_key} {name}"] = labels[row.case_key] + wrong
    pick("About", ABOUT, distinct(subjects), f"{subject.key} {kind}", _open_subject, width=440)
    return subject, kind


def _open_subject() -> None:
    """Write the chosen question set and kind to the URL."""
    key, _, kind = st.session_state[ABOUT].partition(" ")
    write_choice({"set": key, "kind": kind or None})


def _draw_editor(
    subject: PageSubject,
    talk_story: Story,
    arrangement: Arrangement,
    download: DeltaGenerator,
    reset: DeltaGenerator,
) -> None:
    """Draw the slides with their order, titles and notes, which are stored as soon as the user changes them."""
    name = f"{subject.key} {talk_story.standings.kind}"
    base = deck.slides(talk_story, renamed())
    shown = [each.card.id for each in (talk_story.opener, talk_story.more) if each]
    linked = st.query_params.get("case", "")
    has_room = len(base) + len(arrangement.cases) + len(arrangement.own_slides()) < MOST_SLIDES
    is_new = has_room and linked not in ("", *shown, *arrangement.cases)
    added = (*arrangement.cases, *[linked] * is_new)
    cases = _added(subject, talk_story, added)
    slides = arrange([*base, *cases, *arrangement.own_slides()], arrangement)
    talk = _talk(subject, talk_story, slides, arrangement.figures)
    every = [*talk["slides"], *filter(None, (slide["question"] for slide in talk["slides"]))]
    pictured = {slide["case"] for slide in every if slide["pictures"]}
    keeps_unpictured = views.rows.keeps_unpictured(subject.question_set)
    for slide in every:
        slide["lacks"] = keeps_unpictured and slide["case"] not in ("", *pictured)
        slide["titled"] = arrangement.titles.get(slide["key"])
        slide["noted"] = arrangement.notes.get(slide["key"])
    saved = "Saved" if decks.is_kept() else "Saved until you close this page"
    talk |= {
        "deck": name,
        "editable": True,
        "opened": next((slide.id for slide in slides if linked and slide.case == linked), ""),
        "saved": saved if decks.is_own() else "Saved in this browser",
        "kept": None if decks.is_own() else {"name": name, "text": decks.session_text(name)},
        "suggestions": _suggestions(subject, talk_story, {*shown, *added}),
    }
    if any(slide["lacks"] for slide in every):
        quiet("The photograph of a slide marked “No picture” is not on this computer.")
        draw_download(subject, "slides_download")
    shown = [
        slide
        for slide in talk["slides"]
        if slide["on"] and ((slide["titled"] or "").strip() or not slide["id"].startswith(TEXT))
    ]
    with download:
        _draw_download(subject, slides, talk, shown, arrangement.figures)
    with reset:
        _draw_reset(name, arrangement)
    # What the browser sends is for the deck that was drawn, not for the one that the URL names by then
    keys = [slide["key"] for slide in every]
    opening = talk_story.opener.card.id if talk_story.opener else ""
    is_shared = decks.is_kept() and arrangement != Arrangement()
    component("slides")(
        key=SLIDES_KEY,
        data=talk | {"detail": talk["detail"] + SHARED * is_shared if shown else NO_SLIDE},
        on_deck_change=partial(attempt, _save_sent, name, keys, opening),
        on_kept_change=partial(attempt, _restore_kept, name),
        on_near_change=lambda: None,
    )


def _save_sent(name: str, keys: Collection[str], opening: str) -> None:
    """Store the deck that the browser sent. Slides that were added since it was drawn are kept.

    Args:
        name: Name of the deck, as in `decks.read`.
        keys: `Slide.text_key` of the slides that were drawn.
        opening: Id of the case that it opened with.

    Raises:
        InvalidInput: What was sent is not valid, the deck is full, or its file is damaged.
    """
    sent = st.session_state[SLIDES_KEY].get("deck")
    if sent is not None:
        known = sent.get("known") if isinstance(sent, Mapping) else None
        known = known if isinstance(known, Sequence) else ()
        arrangement = replace(parse(sent), opening=opening)
        decks.save(name, arrangement.with_unsent(decks.read(name), keys, known))
        st.query_params.pop("case", None)  # the deck has its case, or the user removed it


def _restore_kept(name: str) -> None:
    """Restore a visitor's deck that the browser kept, with the later additions of the session.

    Raises InvalidInput if it is not valid or the deck is full.
    """
    sent = st.session_state[SLIDES_KEY].get("kept")
    if sent is not None:
        kept, session = parse(sent), decks.read(name)
        figures = {**kept.figures, **session.figures}
        decks.save(name, replace(kept.with_unsent(session, (), ()), figures=figures))


def _draw_reset(name: str, arrangement: Arrangement) -> None:
    """Draw a button that removes all changes to a deck, and after a reset one that restores them."""
    reset_name, before = st.session_state.get(RESET, ("", Arrangement()))
    if arrangement != Arrangement():
        label, icon, other = "Reset the deck", "restart_alt", Arrangement()
        tip = "Restores the order, titles and notes of all slides, and removes added slides."
    elif reset_name == name:
        label, icon, other = "Undo reset", "undo", before
        tip = "Restores the deck as it was before the reset."
    else:
        return
    press(label, _exchange, name, other, icon=icon, key="reset", help=tip)


def _exchange(name: str, after: Arrangement) -> None:
    """Store another arrangement of a deck, and keep the stored one, which another page may have changed, for Undo."""
    before = decks.read(name)
    decks.save(name, after)
    st.session_state[RESET] = name, before


def _added(subject: PageSubject, talk_story: Story, case_ids: tuple[str, ...]) -> list[Slide]:
    """Return a slide for each added case. Cases of other question sets or kinds are left out."""
    kind = subject.presentation.kind(talk_story.standings.kind)
    names = slide_names(subject.models, renamed())
    # Read at once: one `opener` a case, which orders all candidates, took minutes for 200 cases
    cards = view(added_cards, subject.question_set, talk_story.standings.kind, case_ids)
    return [
        question_and_answer(talk_story.models, card, kind, names, f"{CASE}{card.id}")
        for card in cards
    ]


def _suggestions(
    subject: PageSubject, talk_story: Story, shown: Collection[str]
) -> list[dict[str, str]]:
    """Return the next cases that fool the most models and that no slide shows, with a small picture, as input for
    the component.
    """
    cards = view(suggestions, subject.question_set, talk_story.standings.kind)
    cards = [card for card in cards if card.id not in shown][:MOST_SUGGESTIONS]
    sources = addresses(store().root, [card.images[0] for card in cards if card.images])
    return [
        {
            "id": f"{CASE}{card.id}",
            "source": sources.get(card.images[0], "") if card.images else "",
            "alt": card.true_text,
            "label": value_label(card.subtype),
        }
        for card in cards
    ]


def _story(subject: PageSubject, kind: str, arrangement: Arrangement) -> Story:
    """Return the content of the slides. If the deck or, without changes to it, the URL names another case to open with,
    only that case and the one after it are loaded again. Neither repeats a case that the deck has, unless it is named.
    """
    talk_story, added = view(story, subject.question_set, kind), arrangement.cases
    is_default = arrangement == Arrangement()
    named = st.query_params.get("case", "") if is_default else arrangement.opening
    for case_id in (named, "") if named or added else ():
        first = view(opener, subject.question_set, kind, case_id, added)
        if first and case_id in (first.card.id, ""):  # not of another kind or question set
            follows = first.next
            more = view(opener, subject.question_set, kind, follows, added) if follows else None
            return replace(talk_story, opener=first, more=more)
    return talk_story


def _draw_openers(name: str, opening: Opener) -> None:
    """Draw buttons that open the slides with the next case, and with the one before it again."""
    opened_name, opened = st.session_state.get(OPENED, ("", ()))
    opened = opened if opened_name == name else ()
    if opening.next:
        press(
            "Another one",
            _open_case,
            *(name, opening.next, (*opened, opening.card.id)),
            icon="refresh",
            key="another",
            help="Replaces the first case; cases that fool the most models come first.",
        )
    if opened:
        press(
            "Previous case",
            _open_case,
            *(name, opened[-1], opened[:-1]),
            icon="undo",
            key="previous",
            help="Opens with the case before again, with its titles and notes.",
        )


def _open_case(name: str, case_id: str, opened: tuple[str, ...]) -> None:
    """Open the slides with another case, which a deck that the user has changed keeps, and store the earlier ones."""
    mark_picked()
    st.query_params["case"] = case_id
    st.session_state[OPENED] = name, opened
    arrangement = decks.read(name)
    if arrangement != Arrangement():
        decks.save(name, replace(arrangement, opening=case_id))


def _talk(
    subject: PageSubject,
    talk_story: Story,
    slides: tuple[Slide, ...],
    figures: Mapping[str, str],
) -> values.Values:
    """Build the data for the `slides` component. `figures` are data URLs by slide id."""
    kind = subject.presentation.kind(talk_story.standings.kind)
    pictures = values.picture_names(slides)
    # Pictures in rows are small, and a deck of searches has 20 of them
    single = values.picture_names([each for each in slides if len(each.pictures) <= IN_A_ROW])
    opened = (st.session_state.get(SLIDES_KEY) or {}).get("near")
    place = next((index for index, slide in enumerate(slides) if slide.id == opened), 0)
    near = slides[max(place - 1, 0) : place + NEAR]  # from the slide before the open one on
    is_large = len(single) > MANY_PICTURES
    # 200 large pictures of drawn scenes take 20 s or more, their stored thumbnails .4 s
    sources = addresses(store().root, pictures) if is_large or single != pictures else {}
    shown = [name for name in single if not is_large or name in values.picture_names(near)]
    large = {name: large_picture(name, SIDE) for name in shown if name not in figures}
    sources |= {**large, **figures}
    names = slide_names(subject.models, renamed())
    heading = findings.ranking(talk_story.standings, names)
    detail = deck.describe_questions(talk_story, kind, renamed())
    if is_large:
        detail += f" {len(slides)} slides; a deck has at most {MOST_SLIDES}."
    exact = sentence_names(subject.models, renamed())
    talk = values.talk_values(slides, subject.looks, sources, names, heading, detail, exact)
    return talk | {"near": [slide.id for slide in near] if is_large else []}


def _font() -> bytes:
    """Return the font of the page, Source Sans (SIL Open Font License), which Streamlit serves; empty without it."""
    folder = Path(st.__file__).parent / "static/static/media"
    return next((file.read_bytes() for file in folder.glob("SourceSansVF-Upright*.woff2")), b"")


def _draw_download(
    subject: PageSubject,
    slides: tuple[Slide, ...],
    talk: values.Values,
    shown: Sequence[values.Values],
    figures: Mapping[str, str],
) -> None:
    """Draw buttons that download the slides: as a single web page that works offline, and as a PowerPoint file."""
    script, sheets = components.source("slides")

    def sent() -> values.Values:
        pictures = talk["pictures"]
        names = values.picture_names(slides)
        if talk["near"]:
            pictures = {
                key: figures.get(name) or large_picture(name, SMALL_SIDE)
                for key, name in zip(pictures, names, strict=True)
            }
        return {**talk, "slides": shown, "pictures": pictures, "near": []}

    name = f"vlprobe_slides_{subject.key[:8]}"
    with st.container(horizontal=True):
        file_button(
            "HTML",
            lambda: slides_file(sent(), script, sheets, slides[0].title, _font()),
            f"{name}.html",
            "text/html",
            key="offline_file",
            disabled=not shown,
            help="One file with slides, pictures and notes that opens in any browser, without a network connection.",
        )
        file_button(
            "PowerPoint",
            lambda: powerpoint.powerpoint_file(sent()),
            f"{name}.pptx",
            powerpoint.MIME,
            key="powerpoint_file",
            help=POWERPOINT
            if powerpoint.is_installed()
            else str(MissingDependency(*powerpoint.NEEDED)),
            disabled=not (shown and powerpoint.is_installed()),
        )
