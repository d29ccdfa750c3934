"""The Explore page: a sentence of pickers, the active filters, facets next to the wall of cards, and the drawer.

The wall is drawn before *Share* and before the facets, because counting the facets takes longer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import card_type, case_card, wrong_captions
from vlprobe.dashboard import (
    case_links,
    drawer,
    embeddings,
    filters,
    frame,
    sentence,
    tables,
)
from vlprobe.dashboard.decks import add_cases
from vlprobe.dashboard.lab import suspects
from vlprobe.dashboard.navigation import PAGE_SIZE
from vlprobe.dashboard.photographs import draw_download
from vlprobe.dashboard.state import (
    PageSubject,
    attempt,
    choose,
    command,
    counts,
    dataset_name,
    model_labels,
    model_name,
    n_passing,
    page_number,
    page_subject,
    paginate,
    plain,
    quiet,
    store,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import draw_row, draw_styles, draw_toast, link_page, press
from vlprobe.datasets.sources import AVAILABLE
from vlprobe.errors import InvalidInput
from vlprobe.render import wall as render_wall
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import capitalized, counted
from vlprobe.render.words import movement_kinds
from vlprobe.storage import access, annotations
from vlprobe.surfaces.report import selection
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.bodies import body_of
from vlprobe.views.filter import (
    ANY_ENDING,
    Filter,
    ordered_region,
    region_cases,
    region_similarities,
    region_text,
    search_parts,
)
from vlprobe.views.mixed.searches import KIND
from vlprobe.views.points import Side
from vlprobe.views.wall import WallCard


def draw_page() -> None:
    """Draw the whole Explore page."""
    draw_styles("cases", "explore")
    subject = sentence.subject()
    if subtype := st.query_params.pop("mixture", ""):  # a link of an earlier version
        st.query_params["type"] = subtype
    with draw_row("sentence"):
        verb = sentence.draw_sentence(subject)
        st.space("stretch")
        order = st.container(key="order", width="content")
        share_slot = st.container(key="explore_share", width="content")
    frame.say_strangers(subject)
    views_row = draw_row("views")
    with st.container(horizontal=True, gap="medium", key="explore_body"):
        rail = filters.FLIPPED if st.session_state.get(filters.FLIPPED) else "rail"
        rail_slot = st.container(key=rail, width=filters.WIDTH, gap="xsmall")
        wall_slot = st.container(key="explore_wall", width="stretch")
    with rail_slot:
        case_filter = filters.draw_filters(subject)
    with verb:
        outcomes = filters.required_outcomes(case_filter)
        sentence.draw_verb(subject, outcomes.get(subject.model, "all"))
    with order:
        sentence.draw_order(subject, case_filter)
    with views_row:
        close = partial(st.query_params.pop, "case", None)
        offered = dict(VIEWS)
        if not body_of(subject.kind_presentation).is_for_people:  # no wrong caption to judge
            del offered["suspects"]
        shown = choose("View", "view", offered, segments=True, bare=True, on_change=close)
        filters.draw_chips(case_filter)
    with wall_slot:
        draw_view = {"map": draw_map, "suspects": draw_suspects}.get(shown, draw_wall)
        draw_view(subject, case_filter)
    with rail_slot:
        filters.draw_rail(subject, case_filter)
    with share_slot:
        n_cases = n_passing(subject, case_filter)
        drawer.draw_share(subject, case_filter, n_cases)
    draw_toast()
    if region := st.session_state.pop(drawer.EXPORTED, ""):
        drawer.draw_export(subject, replace(case_filter, region=region))
    elif "case" in st.query_params and shown != "suspects":
        size = page_size(subject, case_filter.kind)
        drawer.draw_case(subject, case_filter, size, is_grouped())
    if any(run.note or run.older for run in subject.question_set.runs):
        with st.expander("Notes on these models", key="model_notes"):
            frame.notes(subject)
    tables.draw_set_details(subject.question_set)


def draw_map(subject: PageSubject, case_filter: Filter) -> None:
    """Draw a map of the filtered cases next to the wall. Selecting an area or points in the map filters the wall."""
    names = embeddings.encoders(subject)
    if not names:
        _draw_no_map(subject)
        return
    options = {"picture": "Pictures", "caption": "Captions"}
    with draw_row("map_options"):
        shown = choose("Map of", "points", options, "picture", segments=True, bare=True)
        label = model_labels(names)
        encoder = names[0]
        if len(names) > 1:
            of_names = {name: label(name) for name in names}
            encoder = choose("Encoder", "encoder", of_names, encoder, bare=True, width=220)
    side: Side = "picture" if shown == "picture" else "caption"
    left, right = st.columns([4, 3], gap="medium")
    with left:
        embeddings.draw_map(subject, case_filter, side, encoder)
    with right:
        draw_wall(subject, case_filter)


def _draw_no_map(subject: PageSubject) -> None:
    """Draw the command that adds a model with embeddings to a question set without one, and a link to another map."""
    st.info(NO_ENCODER, icon=":material/info:")
    n_here, n_cases = view(views.rows.with_pictures, subject.question_set, subject.kind)
    is_part = n_here < n_cases and views.rows.keeps_unpictured(subject.question_set)
    only = f"+{AVAILABLE}" * is_part
    words = view(views.runs.command, subject.question_set, (ENCODER,), only)
    st.code(command(*words), language="bash", wrap_lines=True)
    if only:
        quiet(
            f"{only}: only the {n_here:,} of {n_cases:,} cases with a picture on this machine, as a question set of "
            "its own. Without it, all cases; download their pictures first."
        )
        draw_download(subject, "map_download")
    for row in view(views.runs.question_set_rows):
        if embeddings.encoders(page_subject(row.case_key)):
            label = f"Open the map of {plain(dataset_name(row.dataset))}"
            link_page("explore", label, {"set": row.case_key, "view": "map"}, icon="map")
            break


def draw_suspects(subject: PageSubject, case_filter: Filter) -> None:
    """Draw the cases among the filtered ones whose label may be wrong, so that the user can judge them one by one."""
    case_filter = replace(case_filter, suspects=False)
    numbers, *_ = view(views.cases.passing, subject.question_set, case_filter)
    labels = [each.label for each in filters.active_filters(case_filter)]
    if case_filter.outcome in ("fooled", "tied", "held") and not case_filter.other:
        outcome = filters.OUTCOMES[case_filter.outcome].lower()
        labels.insert(0, f"{model_name(case_filter.model)} {outcome}")
    suspects.draw_suspects(subject, subject.kind, frozenset(numbers.tolist()), labels)


PAIRS_PAGE_SIZE = 30  # cards per page, for cards with two pictures
SUSPECT = (
    "At least two thirds of the strong models get such a case wrong, so its label may be wrong. "
    "Some of them are only hard. Rates count them, hidden or not."
)
ENCODER = "openclip:ViT-B-32/openai"
NO_ENCODER = (
    "This question set has no map yet: none of its models embeds pictures on this machine. To add one, run this "
    "in a terminal; its weights are downloaded once:"
)
VIEWS = {"": "Wall", "map": "Map", "suspects": "Suspect labels"}  # views of the same cases


def is_grouped() -> bool:
    """Return whether the wall shows one card per group, rather than one card per case."""
    return st.query_params.get("cards", "") != "every"


def page_size(subject: PageSubject, kind: str) -> int:
    """Return the number of cards per page. It is limited because a full page sends up to a megabyte of data."""
    presented = subject.presentation.kind(kind)
    return PAGE_SIZE if card_type(presented).counts_pictures else PAIRS_PAGE_SIZE


def draw_wall(subject: PageSubject, case_filter: Filter) -> None:
    """Draw the heading, one page of cards and the page numbers, or suggestions if no case passes the filter."""
    kind = subject.presentation.kind(case_filter.kind)
    size = page_size(subject, case_filter.kind)
    n_cases = n_passing(subject, case_filter)
    page = page_number(n_cases, size)
    arguments = size, is_grouped()
    cards, n_groups, _ = view(views.wall.wall, subject.question_set, case_filter, page, *arguments)
    n_cards = n_groups if is_grouped() else n_cases
    if n_cards and not cards:  # the link names a page beyond the last one
        page = page_number(n_cards, size)
        cards, _, _ = view(views.wall.wall, subject.question_set, case_filter, page, *arguments)
    if not cards:
        _draw_nothing(subject, case_filter)
        return
    has_pictures = any(card.images for card in cards)
    is_scored = subject.question_set.run(case_filter.model).is_scored
    heading = render_wall.heading(
        kind, case_filter.outcome, n_cases, n_groups, has_pictures, is_scored
    )
    _draw_cards(subject, case_filter, cards, heading)
    if n_cards > size:
        paginate(n_cards, size)


def _rate(subject: PageSubject, case_filter: Filter) -> str:
    """Describe how many wrong captions in the question set fool the model or, if none can, how far scores move."""
    counted = dict(counts(subject, case_filter))
    n_chosen = counted["all"]
    # Without filters that name an outcome, so that all cases count
    counted["all"] = counts(subject, case_filter.any_outcome())["all"]
    if not counted["all"]:
        return ""
    if case_filter.kind in movement_kinds():
        numbers, *_ = view(views.cases.passing, subject.question_set, case_filter)
        margins = views.rows.margins(subject.question_set, [case_filter.model], numbers)
        if np.isnan(margins).all():
            return ""
        is_share = subject.presentation.kind(case_filter.kind).is_share
        ends = np.abs(np.nanquantile(margins, (0.5, 0.1)))
        median, much = (f"{100 * end:.0f} %" if is_share else f"{end:.3f}" for end in ends)
        return f"half moved by at most {median}, a tenth by more than {much}"
    if n_chosen < counted["all"] or case_filter.tagged or case_filter.fooled or case_filter.held:
        return case_links.share_text(subject, case_filter)
    if case_filter.other:
        return ""
    n_orders = subject.question_set.run(case_filter.model).n_orders
    rate = render_wall.rate_text(counted, n_orders)
    fools = f"{model_name(case_filter.model)} is fooled by {rate}"
    return rate if case_filter.outcome == "fooled" else fools


def _draw_cards(
    subject: PageSubject, case_filter: Filter, cards: tuple[WallCard, ...], heading: str
) -> None:
    """Draw one page of cards, below a heading with the failure rate and the layout."""
    kind = subject.presentation.kind(case_filter.kind)
    described = [case_card(card, kind) for card in cards]
    notes = [
        _rate(subject, case_filter),
        f"grouped by {card_type(kind).group}" if is_grouped() else "every case",
    ]
    values = case_links.wall_values(
        described,
        heading,
        badge=is_grouped(),
        remarks=_remarks(subject, case_filter, cards),
        heading=heading,
        # On a phone, no picker shows the dataset
        place=dataset_name(subject.question_set.runs[0].dataset),
        legend=json.legend(described),
        total=n_passing(subject, case_filter),
    )
    reasons = _reasons(subject, case_filter, cards)
    for card, shown in zip(cards, values["cards"], strict=True):
        shown["cases"] = card.more + 1 if is_grouped() else 1
        # In place of a missing picture, the card shows the caption
        if any(frame["source"] for frame in shown["frames"]) and reasons.get(card.case):
            shown["notes"].insert(0, reasons[card.case])
    if len(similarities := region_similarities(ordered_region(case_filter.region))):
        median = f"median picture {similarities[-1]:.2f}"
        notes.append(f"No.: rank among all pictures by cosine similarity ({median})")
    lacks = not all(frame["source"] for card in values["cards"] for frame in card["frames"])
    n_cases, n_suspect = n_passing(subject, case_filter), 0
    if views.suspects.can_have_suspects(subject.question_set):
        n_suspect = n_cases - n_passing(subject, replace(case_filter, suspects=True))
    n_own = 0
    if case_filter.kind == KIND and not case_filter.lost_to:
        n_own = n_passing(subject, replace(case_filter, lost_to=True))
    of_suspects = {"icon": "flag", "key": "hide_suspects", "help": SUSPECT}
    if lacks or n_suspect or n_own:
        with draw_row("pictures_offer"):
            if n_own:
                label = f"Only {n_own:,} lost to own mixtures"
                press(label, write_choice, {"lost": "own"}, icon="filter_alt", key="only_own")
            if n_suspect == n_cases:
                label = f"Judge the {counted(n_cases, 'suspect label')}"
                notes.append("all with a suspect label")
                press(label, write_choice, {"view": "suspects"}, **of_suspects)
            elif n_suspect:
                label = f"Hide {counted(n_suspect, 'suspect label')}"
                press(label, write_choice, {"suspects": "hide"}, **of_suspects)
            if lacks:
                pictured = replace(case_filter, pictured=True)
                n_pictured = n_passing(subject, pictured)
                notes.append(_pictures_here(subject, case_filter, n_pictured))
                if n_pictured and not case_filter.pictured:
                    label = f"Only the {counted(n_pictured, 'case')} with a picture"
                    shown = {"pictured": "here"}
                    press(label, write_choice, shown, icon="image", key="only_pictured")
                draw_download(subject, "wall_download")
    values |= {"note": " · ".join(filter(None, notes))}
    values |= {"offered": [] if access.read_only() else annotations.SUGGESTED}
    case_links.draw_wall(
        "wall", values, partial(attempt, _use_selected, subject, case_filter, cards)
    )


def _remarks(
    subject: PageSubject, case_filter: Filter, cards: Sequence[WallCard]
) -> dict[int, tuple[str, ...]]:
    """Return the lines below cards by case number: a suspect label, the tags and whether there is a note, and the tags
    and notes of other cases of the card.
    """
    written = {each.case: each for each in annotations.read(store(), subject.key).current}
    remarks: dict[int, tuple[str, ...]] = {}
    for case, each in written.items():
        tags = [f"My tags: {', '.join(each.tags)}"] * bool(each.tags)
        remarks[case] = (" · ".join([*tags, *["✎ note"] * bool(each.note)]),)
    if is_grouped() and written:
        cases = subject.question_set, case_filter, tuple(sorted(written))
        behind: dict[int, list[tuple[str, ...]]] = {}
        for case, front in view(views.wall.fronts, *cases).items():
            if case != front:
                texts = (*written[case].tags, *["✎ note"] * bool(written[case].note))
                behind.setdefault(front, []).append(texts)
        n_behind = {card.case: card.more for card in cards}
        for front, texts in behind.items():
            own = written.get(front)
            is_whole = len(texts) == n_behind.get(front)
            if is_whole and own and own.tags and not own.note and {*texts} == {own.tags}:
                remarks[front] = (f"{remarks[front][0]} (all {len(texts) + 1} cases)",)
                continue
            others = dict.fromkeys(text for several in texts for text in several)
            remarks[front] = (*remarks.get(front, ()), f"Other cases: {', '.join(others)}")
    numbers = np.array([card.case for card in cards])
    of_kind = subject.question_set, case_filter.kind, numbers
    for case in views.suspects.list_unjudged(*of_kind):
        remarks[case] = ("⚑ suspect label", *remarks.get(case, ()))
    return remarks


def _reasons(
    subject: PageSubject, case_filter: Filter, cards: Sequence[WallCard]
) -> dict[int, str]:
    """Say by case number why a search lists a case: the rank and the similarity of its picture, or the part of its
    captions with a searched word.
    """
    reasons = {}
    search = ordered_region(case_filter.region)
    similarities = region_similarities(search)[:-1]
    if len(similarities):
        numbers, codes = region_cases(search), subject.question_set.cases.picture_codes
        is_known = numbers < len(codes)  # a link may have any numbers
        numbers, similarities = numbers[is_known], similarities[is_known]
        _, first, pictures = np.unique(codes[numbers], return_index=True, return_inverse=True)
        ranks = np.argsort(np.argsort(first))[pictures] + 1
        for card in cards:
            for place in np.flatnonzero(numbers == card.case)[:1]:
                reasons[card.case] = f"No. {ranks[place]} · similarity {similarities[place]:.2f}"
        return reasons
    for part in search_parts(case_filter.contains)[:1]:
        part = part.rstrip(ANY_ENDING) or part
        for card in cards:
            text = next((text for text in card.texts if part.casefold() in text.casefold()), "")
            start = text.rfind(" ", 0, max(0, text.casefold().find(part.casefold()) - 8)) + 1
            reasons[card.case] = f"{'…' * bool(start)}{text[start:]}"
    return reasons


def _use_selected(
    subject: PageSubject, case_filter: Filter, cards: Sequence[WallCard], sent: object
) -> None:
    """Do what the user chose for the cases on selected cards, for the cases in front of them, or for all cases that
    pass the filter: show only them, add them to the slides, export them, tag them, or save them as a slice.

    Raises:
        InvalidInput: the deck is full, the tag is not valid, or there are more than `selection.MOST` cases.
    """
    if not isinstance(sent, Mapping) or not isinstance(sent.get("ids"), Sequence):
        return
    ids = {card.case: card.id for card in cards if card.id in sent["ids"]}
    is_every = sent.get("every") is True
    if is_every or (ids and is_grouped() and sent.get("front") is not True):
        numbers, _, _ = view(views.cases.passing, subject.question_set, case_filter)
        if not is_every:  # each selected case, and those behind its card
            fronts = views.wall.fronts(subject.question_set, case_filter, numbers)
            of_cards = [case for case, front in fronts.items() if front in ids]
            places = list(ids)
            of_cards.sort(key=lambda case: (places.index(fronts[case]), case != fronts[case]))
            numbers = np.array(of_cards)
        if len(numbers) > selection.MOST:
            raise InvalidInput(
                f"{len(numbers):,} cases are too many to select at once. The maximum is "
                f"{selection.MOST:,}. Use more filters."
            )
        rows = views.rows.questions(subject.question_set, numbers.tolist())
        ids = dict(zip(rows["case"].tolist(), rows["id"], strict=True))
    if not ids:
        return
    named = counted(len(ids), "case")
    numbers = np.array(list(ids))
    region = region_text(f"{len(ids):,} selected {named.split()[-1]}", numbers)
    name = " ".join(str(sent.get("tag", "")).split())
    if sent.get("act") == "slice" and name:
        words = replace(case_filter, region=region).words()
        views.named_slices.save(subject.question_set, name, words, numbers)
        saved = f"Saved {named} as the slice {plain(name)}"
        st.session_state["toast"] = f"{saved}, a column on Compare. The address now links to it."
        write_choice({"slice": name, "region": None})
    elif sent.get("act") == "deck":
        add_cases(subject.key, case_filter.kind, list(ids.values()))
    elif sent.get("act") == "export":
        st.session_state[drawer.EXPORTED] = region
    elif name:
        st.session_state["toast"] = drawer.toggle_tag(subject.key, ids, name)
    else:
        write_choice({"region": [region, *embeddings.linked_regions(is_search=True)]})


def _pictures_here(subject: PageSubject, case_filter: Filter, n_pictured: int) -> str:
    """Describe how many cases that pass a filter have a picture on this machine. Returns "" if that is not known."""
    if not view(views.rows.with_pictures, subject.question_set, case_filter.kind)[1]:
        return ""
    have = "has" if n_pictured == 1 else "have"
    first = " (shown first)" if n_pictured else ""
    n_cases = n_passing(subject, case_filter)
    return f"{n_pictured:,} of {n_cases:,} cases {have} a picture on this machine{first}"


def _draw_nothing(subject: PageSubject, case_filter: Filter) -> None:
    """Explain that no case passes, and offer to drop the filter that hides the fewest cases, or all filters."""
    kind = subject.presentation.kind(case_filter.kind)
    any_outcome = case_filter.any_outcome()
    asked = n_passing(subject, any_outcome) or not filters.active_filters(any_outcome)
    nothing = _nothing(case_filter, kind) if asked else "No questions match these filters."
    if case_filter.suspects and n_passing(subject, replace(case_filter, suspects=False)):
        nothing = "All of these cases are hidden because of their suspect labels."
    st.html(tag("h1", nothing, class_="vp-nothing"))
    if "-" in case_filter.contains:
        quiet("Each word of the search must occur in a caption; a minus excludes no word.")
    for active, n_cases in filters.nearest_to_drop(subject, case_filter):
        change = f"Without the filter {plain(active.label)}" if active.label else "With any outcome"
        label = f"{change}: {counted(n_cases, 'case')}"
        drop, look = (filters.drop, active.parameter, active.value), {"key": "drop_nearest"}
        press(label, *drop, icon="filter_list_off", **look)
        return
    everything = Filter(case_filter.model, case_filter.kind, outcome="all")
    n_all = n_passing(subject, everything)
    n_fooled = n_passing(subject, Filter(case_filter.model, case_filter.kind))
    if n_fooled and filters.active_filters(case_filter):
        label = f"Clear all filters: {counted(n_fooled, 'case')}"
        press(label, filters.clear_filters, key="drop_all")
    elif n_all:
        press(f"Show all: {counted(n_all, 'case')}", filters.clear_filters, "all", key="show_all")


def _nothing(case_filter: Filter, kind: KindPresentation) -> str:
    name = model_name(case_filter.model)
    none = f"none of the {'tagged ' * bool(case_filter.tagged)}{wrong_captions(kind)}"
    if case_filter.outcome == "held" and not case_filter.other:
        return f"{name} rejects {none} here."
    if kind.is_movement or case_filter.outcome == "all":
        return "No cases match these filters."
    if case_filter.outcome == "tied":
        return f"{name} has no ties here."
    return f"{capitalized(none)} fools {name} here."
