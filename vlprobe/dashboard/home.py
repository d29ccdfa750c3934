"""The Home page: running jobs, one failure, the results of all models, and links to other pages."""

import datetime
from dataclasses import replace

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, embeddings, frame
from vlprobe.dashboard.components import component
from vlprobe.dashboard.jobs import demo_button, watched
from vlprobe.dashboard.navigation import ROW, address
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.run.progress import panel
from vlprobe.dashboard.state import (
    PageSubject,
    carried,
    dataset_name,
    mark_picked,
    model_name,
    pick_question_set,
    quiet,
    renamed,
    store,
    view,
)
from vlprobe.dashboard.widgets import draw_row, follow_link, link_page
from vlprobe.datasets import bundled
from vlprobe.render import home
from vlprobe.render import mixed as words
from vlprobe.render.sentences import count_word, counted, joined, shortened
from vlprobe.render.slides.models import name_line
from vlprobe.render.words import movement_kinds, probe_name
from vlprobe.runs import jobs
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage.access import read_only
from vlprobe.views.mixed.case import MixedCase
from vlprobe.views.mixed.searches import KIND
from vlprobe.views.rows import are_here
from vlprobe.views.runs import QuestionSet

ABOUT_MODELS = "A model is a program that scores how well a caption fits a picture."
EVERY_SECONDS = 2
LEADING = "home_leading"  # session key: the most complete question set at the last check


def draw_page() -> None:
    """Draw the whole Home page. If the URL names a run that has not succeeded yet, the run is drawn above it."""
    job = watched()
    if job is not None and job.state != "done":
        panel(job)
    if view(views.runs.question_sets).empty:
        if job is None:
            _draw_nothing()
        return
    leading = _show_new_results()
    body, foot = st.container(key="home"), st.container(key="home_foot")
    with foot:
        draw_sets()
    with foot, draw_row():
        about_slot = st.container(width="content")
        if not read_only():
            link_page("run", "Test your own model", width="content")
        with st.popover("Change", type="tertiary"):
            subject = home_subject(pick_question_set(default=leading))
    with about_slot:
        about = f"{_describe(subject).removesuffix('.')}. {ABOUT_MODELS}"
        quiet(joined(about, name_line(subject.models, renamed())))
        frame.say_strangers(subject)
    with body:
        draw_hero(subject)
        draw_figures(subject)
        case_links.draw_blind(subject)


def _show_new_results() -> str:
    """Return the first question set with a failure. Switch to a new one while jobs run, unless the user chose one."""
    keys = view(views.runs.question_sets)["case_key"].tolist()
    sets = (view(views.runs.question_set, key) for key in keys)
    leading = next((each.key for each in sets if view(views.showcase.has_failures, each)), keys[0])
    earlier = st.session_state.get(LEADING, leading)
    if leading != earlier and st.query_params.get("set", earlier) == earlier:
        mark_picked()
        st.query_params.clear()
        st.query_params["set"] = leading
    st.session_state[LEADING] = leading
    version = store().version()

    def look() -> None:
        if store().version() != version:
            st.rerun()

    if jobs.unfinished_jobs(store()):
        st.fragment(look, run_every=EVERY_SECONDS)()
    return leading


def _draw_nothing() -> None:
    """Draw the page for a cache without any results, with a button that runs the demo."""
    st.title("No results yet", anchor=False)
    quiet(
        "The demo tests three tiny models on 500 drawn scenes. It takes a minute or two "
        "and works offline."
    )
    demo_button()
    if not read_only():
        link_page("run", "Or test your own model", icon="tune")


def _describe(subject: PageSubject) -> str:
    """Describe the page's question set in one line."""
    question_set, run = subject.question_set, subject.question_set.runs[0]
    n_models = len(question_set.rated_models)
    models = f"{count_word(n_models)} {'model' if n_models == 1 else 'models'}"
    if question_set.shipped and question_set.probe == "lgip":
        return (
            f"Bundled results: {count_word(n_models)} small models, {run.n_items:,} drawn scenes. "
            "No download or setup needed."
        )
    results = "Bundled results" if question_set.shipped else "Your results"
    unit = "picture" if run.n_items == run.n_units else "question"
    pictures = f"{dataset_name(run.dataset)}, {counted(run.n_items, unit)}"
    return f"{results} · {probe_name(run.probe, run.dataset)} · {pictures} · {models}"


def home_subject(subject: PageSubject) -> PageSubject:
    """Select the kind and model from the URL if Home can show them, else the last ones viewed, else the defaults."""
    kinds = view(views.showcase.kinds, subject.question_set)
    # A kind that measures movement cannot fool a model, so Home shows it only if there is no other.
    kind = st.query_params.get("kind", "") or carried("kind", kinds, "")
    kind = kind if kind in kinds and kind not in movement_kinds() else kinds[0]
    models = view(views.showcase.headline_models, subject.question_set)
    model = st.query_params.get("model", "") or carried("model", models, "")
    model = model if model in models else view(views.runs.default_model, models)
    return replace(subject, kind=kind, model=model)


SHIPPED_SEED = 196  # orders the bundled failures
AHEAD = 3  # failures sent to the browser at once, including the one shown
HERO_KEY = "hero"
SIDE = 860  # maximum pixels of a photograph, twice its size on the page
DRAWN_SIDE = 672  # pixels of a drawn scene, three times the size that models see
PLACE = "home_place"  # session key: the failure that was shown last


@st.fragment
def draw_hero(subject: PageSubject) -> None:
    """Draw one failure, which opens its case when clicked. Showing another one reruns only this part of the page."""
    question_set, kind = subject.question_set, subject.kind_presentation
    # The user's failures are reordered every day
    seed = SHIPPED_SEED if question_set.shipped else datetime.date.today().toordinal()
    showcases = view(views.showcase.showcases, question_set, subject.kind, subject.model, seed)
    if not showcases:
        st.title(home.nothing(kind), anchor=False)
        return
    position = _place(subject) % len(showcases)
    places = range(position, position + min(AHEAD, len(showcases)))
    shown = {place: showcases[place % len(showcases)] for place in places}
    headliners = view(views.showcase.headline_models, question_set)
    names = {name: model_name(name) for name in headliners}
    fit = view(views.paired_tests.fit_models, question_set)
    looks = names, fit, subject.looks, lambda name: large_picture(name, SIDE, DRAWN_SIDE)
    is_ready = embeddings.is_ready(subject.model)
    cases = []
    for place, case in shown.items():
        fooled = [each.model for each in case.card.verdicts if each.verdict in ("fooled", "tied")]
        fooled = [name for name in fooled if name in names]
        # The filters of Explore pass only cases that fool the chosen model
        model = subject.model if subject.model in fooled else next(iter(fooled), subject.model)
        href = address("explore", case_links.page_query(subject, case=case.card.id, model=model))
        talk = {"set": subject.key, "kind": subject.kind, "case": case.card.id}
        why = is_ready and are_here(case.card.images[:1])
        values = {"place": place, "present": address("present", talk), "why": why}
        cases.append(home.failure(case, kind, subject.model, *looks, href) | values)
    kicker = home.kicker(subject.presentation, kind, question_set.shipped)
    values = {"kicker": kicker, "cases": cases, "only": len(showcases) == 1}
    pressed = component("home")(key=HERO_KEY, data=values)
    follow_link(pressed, [case[name] for case in cases for name in ("href", "present")])


def _place(subject: PageSubject) -> int:
    """Return the position of the failure to show, counted from 0. A visitor who returns sees the same failure again."""
    place_key = subject.key, subject.kind
    previous = st.session_state.get(PLACE, {}).get(place_key, 0)
    position = (st.session_state.get(HERO_KEY) or {}).get("place", previous)
    position = position if isinstance(position, int) and 0 <= position < 10**6 else 0
    st.session_state[PLACE] = {place_key: position}
    return position


def draw_figures(subject: PageSubject) -> None:
    """Draw the main numbers, the models and large links to other pages. Each element opens a page with details."""
    counts = view(views.showcase.lie_counts, subject.question_set, subject.kind)

    def cases_address(**query: str) -> str:
        return address("explore", case_links.page_query(subject, **query))

    kind, more_href = subject.kind_presentation, address("tradeoff", {"set": subject.key})
    names = {name: model_name(name) for name in subject.question_set.rated_models}
    fit = view(views.paired_tests.fit_models, subject.question_set)
    links = cases_address, more_href
    strip = home.strip(counts, names, fit, kind, subject.looks, *links)
    name = model_name(subject.model)
    numbers = home.numbers(counts, subject.model, name, kind, cases_address)
    doors = _doors(subject)
    hrefs = [more_href, *(each["href"] for each in (*numbers, *strip["models"], *doors))]
    values = {"numbers": numbers, "strip": strip, "doors": doors}
    follow_link(component("figures")(key="figures", data=values), hrefs)


def _doors(subject: PageSubject) -> list[home.Values]:
    """Build the data for the large links to other pages. The link to mixed pictures includes an example."""
    question_set, name = subject.question_set, shortened(model_name(subject.model))
    n_fooled = view(views.showcase.n_fooling_pictures, question_set, subject.kind, subject.model)
    sentences = home.doors(subject.kind_presentation, name, n_fooled)
    if len(subject.models) < 2:
        sentences["compare"] = "Test a second model, then see which is better"
    # Compare has a default baseline of its own
    every = {} if n_fooled else {"outcome": "all"}
    queries = {
        "explore": case_links.page_query(subject) | every,
        "compare": case_links.page_query(subject, model=""),
    }
    queries |= {"present": {"set": subject.key}, "try": {}}
    doors: list[home.Values] = [
        {"href": address(page, query), "title": ROW[page], "sentence": sentences[page]}
        for page, query in queries.items()
    ]
    if door := mixed_door(subject):
        doors.append(door)
    return doors


PROBE = "rococo"
MIXED_TITLE = "Mixed pictures"


def mixed_door(subject: PageSubject) -> home.Values | None:
    """Build the link to the searches among mixed pictures, or return None if no model has run them."""
    question_set = _searched(subject)
    if question_set is None:
        return None
    rated = question_set.rated_models
    model = subject.model if subject.model in rated else view(views.runs.default_model, rated)
    query = {"set": question_set.key, "model": model, "kind": KIND}
    door = {"href": address("explore", query), "title": MIXED_TITLE, "pictures": []}
    subtype = view(views.mixed.searches.strengths, question_set)[0]
    # The first search that the model wins among original pictures, but loses to the right picture's mixture
    numbers, _ = view(views.mixed.searches.order, question_set, model, subtype)
    if not len(numbers):
        return door | {"sentence": "No right picture is outranked by its own mixture here"}
    case = view(views.mixed.case.mixed_case, question_set, int(numbers[0]), model)
    query |= {"type": subtype, "lost": "own", "sort": "models", "case": case.id}
    sentence = words.heading(case, model, model_name(model))
    opened = {"href": address("explore", query), "sentence": sentence}
    return door | opened | {"pictures": _door_pictures(case)}


def _searched(subject: PageSubject) -> QuestionSet | None:
    """Return the searches among mixed pictures in Home's question set, else on its dataset, else the most complete."""
    rows = view(views.runs.question_set_rows)
    dataset = next((row.dataset for row in rows if row.case_key == subject.key), "")
    candidates = sorted(
        (row for row in rows if row.probe == PROBE),
        key=lambda row: (row.case_key != subject.key, row.dataset != dataset),
    )
    # Load one at a time: there may be hundreds, and the first one usually matches.
    every = (view(views.runs.question_set, row.case_key) for row in candidates)
    return next((search for search in every if view(views.mixed.searches.strengths, search)), None)


def _door_pictures(case: MixedCase) -> list[dict[str, str]]:
    """Return the right picture, its partner and the mixture, or an empty list if one cannot be shown."""
    named_pictures = {
        case.right: case.caption,
        case.partner: case.partner_caption,
        case.mixture: f"{case.caption}, mixed",
    }
    sources = addresses(store().root, [name for name in named_pictures if name])
    if len(sources) < len(named_pictures) or not all(sources.values()):
        return []
    return [{"source": sources[name], "alt": alt} for name, alt in named_pictures.items()]


def draw_sets() -> None:
    """Draw links to the bundled results for photographs and for drawn scenes, if the store shows both."""
    rows = [row for row in view(views.runs.question_set_rows) if row.shipped]
    published = {
        dataset_name(row.dataset): ("home", {"set": row.case_key})
        for row in rows
        if row.dataset.startswith(f"{bundled.PREFIX}:")
    }
    drawn = {row.probe: row.case_key for row in rows if row.dataset == "demo"}
    if not published or not {"lgip", "rococo"} <= drawn.keys():
        return
    scenes = {
        "Rewording": ("home", {"set": drawn["lgip"]}),
        "Mixed pictures": ("explore", {"set": drawn["rococo"], "kind": KIND}),
        "Trade-off by edits": ("tradeoff", {"set": drawn["lgip"]}),
        "Try it": ("try", {}),
    }
    with draw_row("home_sets"):
        for title, links in (("Photographs:", published), ("Drawn scenes:", scenes)):
            with st.container(width="content"):
                quiet(title)
            for label, (page, query) in links.items():
                link_page(page, label, query, width="content")
