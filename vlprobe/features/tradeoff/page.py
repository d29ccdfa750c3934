"""The Trade-off page: pickers, the main finding, the figure, the worst mistake of one model, and expanders.

The URL names the question set (`set`), the shown models if not all are shown (`shown`), and the model whose
worst mistake is next to the figure (`model`).
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import htpy
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.case import html
from vlprobe.case.card import case_card, wrong_captions
from vlprobe.dashboard import case_links, export, frame, sentence, tables
from vlprobe.dashboard.chart import ARMS, chart, selectable_chart, selected
from vlprobe.dashboard.lab import papers
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.sentence import draw_word, picker_width
from vlprobe.dashboard.state import (
    PageSubject,
    carried,
    carry,
    choose,
    counts,
    dataset_name,
    model_labels,
    page_subject,
    pick,
    plain,
    quiet,
    report_missing,
    set_labels,
    store,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import (
    BETWEEN,
    draw_row,
    draw_styles,
    fold,
    link_page,
    open_page,
)
from vlprobe.features.tradeoff import data
from vlprobe.features.tradeoff.data import TradeOffData
from vlprobe.metrics.picture_changes import CHANGED
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.registry import is_control
from vlprobe.render import charts
from vlprobe.render.html.elements import embed, mark, marked_before, model_label, tag
from vlprobe.render.numbers import number, with_interval
from vlprobe.render.sentences import joined, listed
from vlprobe.render.words import AVERAGED, edit_title, presentations, probe_name, value_label
from vlprobe.scoring.thumbnails import addresses
from vlprobe.types import AS_PAPER, Metric
from vlprobe.views.filter import STRENGTH, Filter
from vlprobe.views.tradeoff import COMBINED, published_values

LARGE = 680  # pixels of the longer side of the picture, twice its size on the page
MOST_PANELS = 4  # panels per row
# Session key: the set without a trade-off for which another one is shown
INSTEAD = "trade_off_instead"
SIDES = {"both": "Both", "one": "These questions only"}
PUBLISHED = {"shown": "Shown", "hidden": "Hidden"}
PUBLISHED_HELP = (
    "The paper's values for nine models on COCO. The pictures differ, so compare only roughly."
)
HOW_TO_READ = (
    "Axes where lower is better are reversed, so the top right corner is ideal. The lines "
    "through a mark are 95 % intervals: where they overlap, the order may be due to chance. The "
    "dashed line joins the models that no other model beats on both counts: on one of the two, "
    "each is ahead of every other model by more than the intervals. The line leaves out controls "
    "and models that may be guessing. Controls, published models and models that failed their "
    "checks do not extend the axes. A model on a dotted line is only guessing. A model is fooled "
    "where the wrong caption scores at least as high as the true one."
)
WORDINGS = {
    "simple": "Simple rewordings",
    "advanced": "Advanced rewordings",
    **{name: value_label(name) for name in kind_edits.REWORDINGS},
}
HOW_PANELS = (
    "All panels have the same axes, and the top right corner is ideal. A type whose marks are "
    "lower is harder. Click a mark for the wrong captions of that type that fool the model."
)
HOW_STRENGTH = (
    "The curve of a model that understands captions rises to the right. Half of the strength "
    "comes from the type of change (color below number below object), and half from how far "
    "apart the model puts the two captions. Weak is the lowest quarter of strengths, and strong "
    "is the highest. Click a mark for its wrong captions. "
)
HOW_SEVERITY = (
    "All changes are pooled, by severity. To get curves, run the test with several severities. "
    "Click a mark for its cases. "
)
SEARCHES = {"i2t": "captions for a picture", "t2i": "pictures for a caption"}  # by direction
HOW_WORDINGS = (
    "Further left means less invariance error. Simple rewordings put a frame around the caption, "
    "such as 'a photo of'. Advanced rewordings use a synonym or another sentence order. Changes "
    "of letter case, punctuation and typos, where they were tested, keep every word. "
)


def draw_page() -> None:
    """Draw the whole Trade-off page."""
    draw_styles("cases", "tradeoff")
    subject = trade_off_subject()
    with draw_row("sentence"):
        draw_word("Trade-off of")
        sentence.pick_shown(page_subject(subject.key).models)
        draw_word("in")
        _pick_set(subject)
        st.space("stretch")
        trade_off = _draw_how_it_is_measured(subject)
        export_slot = export.draw_share(subject)
    finding = trade_off.finding(subject.names)
    detail = joined(finding.detail, AVERAGED[AS_PAPER] if trade_off.averaging == AS_PAPER else "")
    st.html(str(htpy.div(".vp-finding")[htpy.h1[finding.heading], detail and htpy.p[detail]]))
    frame.say_strangers(subject, subject.models)
    left = st.session_state.get(INSTEAD, {}).get(subject.key)
    if left in view(views.runs.case_keys):
        run = page_subject(left).question_set.runs[0]
        name = f"{probe_name(run.probe, run.dataset)} on {dataset_name(run.dataset)}"
        needs = "A trade-off needs two measures."
        quiet(f"{name} has no trade-off, so this page shows another question set. {needs}")
        carry("set", left)  # what the user chose, for other pages
    model = pinned(subject, finding.best)
    figure_column, mistake_column = st.columns([13, 5], gap="large")
    with figure_column, st.container(gap="xsmall"):
        _draw_figure(subject, trade_off, {finding.best, model}, export_slot)
        _draw_models(subject, trade_off, model)
    with mistake_column, st.container(gap="xsmall"):
        _draw_worst_mistake(subject, trade_off, model)

    def draw_numbers() -> None:
        table = tables.all_numbers(subject, trade_off.averaging, trade_off.unit)
        export.draw_menu("numbers", table=table)

    fold("kinds", "By type of edit", "grid_view", partial(_draw_kinds, subject, trade_off))
    fold("numbers", "The numbers", "function", draw_numbers)
    if subject.probe == "lgip":
        draw_table = partial(papers.draw_table, subject)
        fold("paper", "Compared with the paper", "menu_book", draw_table)
    fold("details", "Details", "data_object", partial(frame.draw_details, subject))


def trade_off_subject() -> PageSubject:
    """Return the selection in the URL, or else the last one viewed. Its question set contains only the models to show.

    Without results, draw a button that runs the demo and stop the page.
    """
    table = view(views.runs.question_sets)
    keys = view(views.tradeoff.sets_with_trade_off)
    linked = st.query_params.get("set", "")
    without = set(table["case_key"]) - set(keys)
    if linked in without and "numbers" in st.query_params.get("open", ""):  # of the former overview
        open_page("breakdown", st.query_params.to_dict())
    if not keys:
        question = (
            "Which model keeps its score when a caption is reworded, and notices when it is wrong?"
        )
        st.html(tag("h1", question))
        frame.begin(next(name for name, each in presentations().items() if each.trade_off))
        quiet(
            "The stored results have only one side of the trade-off, so there is nothing to plot."
        )
        link_page("explore", "Explore their cases")
        st.stop()
    before = st.session_state.get("carried_set", "")
    if linked in without:
        before, linked = linked, ""
        st.query_params["set"] = carried("set", keys, keys[0])
    if not linked or linked == before:  # chosen here, or linked by the user
        st.session_state.pop(INSTEAD, None)
    shown = linked if linked in keys else carried("set", keys, keys[0])
    if not linked and before in without:
        st.session_state[INSTEAD] = {shown: before}
    subject = page_subject(shown)
    models = sentence.shown_models(subject.models, not linked)
    runs = tuple(run for run in subject.question_set.runs if run.model in models)
    return replace(subject, question_set=replace(subject.question_set, runs=runs), models=models)


def _pick_set(subject: PageSubject) -> None:
    """Draw a picker for question sets. The labels are dataset names, or more precise if a dataset name repeats."""
    table = view(views.runs.question_sets)
    rows = table.loc[table["case_key"].isin(view(views.tradeoff.sets_with_trade_off))]
    first = dict(rows.drop_duplicates("probe")[["probe", "case_key"]].to_numpy().tolist())
    tests = {probe: presentations()[probe].name for probe in presentations() if probe in first}

    def change() -> None:  # opens the most complete question set of the test
        st.session_state.pop(INSTEAD, None)
        left = dict.fromkeys(("up", "shown", "model"))
        write_choice(left | {"set": first[st.session_state["trade_off_of"]]})

    if len(tests) > 1:
        look = {"bare": True, "width": picker_width(tests[subject.probe])}
        pick("Test", "trade_off_of", tests, subject.probe, change, **look)
        draw_word("in")
    rows = rows.loc[rows["probe"] == subject.probe]
    names = [dataset_name(dataset) for dataset in rows["dataset"]]
    options = {
        key: name if names.count(name) == 1 else label
        for name, (key, label) in zip(names, set_labels(rows).items(), strict=True)
    }
    width = picker_width(options.get(subject.key, ""))
    choose("Pictures", "set", options, subject.key, always=True, bare=True, width=width)


def pinned(subject: PageSubject, default: str) -> str:
    """Return the model whose worst mistake is shown: the one in the URL, else the last one viewed, else `default`."""
    linked = st.query_params.get("model", "")
    if linked in subject.models:
        carry("model", linked)
        return linked
    if linked and linked not in page_subject(subject.key).models:
        report_missing("Model", "model", linked)
        del st.query_params["model"]
    return carried("model", subject.models, default or subject.models[0])


def pin(model: str) -> None:
    """Write the selected model to the URL."""
    carry("model", model)
    write_choice({"model": model})


def _draw_how_it_is_measured(subject: PageSubject) -> TradeOffData:
    """Draw a popover with all settings that change the figure, and return the data for the figure."""
    sides = views.tradeoff.trade_off_sides(subject.probe)
    with st.popover(
        "How it is measured", icon=":material/function:", key="measured", type="tertiary"
    ):
        st.markdown(subject.presentation.sentence)
        names = {name: subject.metrics[name].label for name in sides.ups}
        up = choose("Sensitivity measured by", "up", names, sides.ups[0], segments=True)
        unit = frame.unit(subject)
        averaging = frame.averaging(subject)
        shows_published = _pick_published(subject, unit)
        other = view(views.tradeoff.other_side, subject.question_set, up)
        side = (
            choose("Captions and pictures", "sides", SIDES, "both", segments=True) if other else ""
        )
        for metric in (subject.metrics[sides.x_metric(up)], subject.metrics[up]):
            tables.explain(metric)
        quiet(HOW_TO_READ)
    choices = up, averaging, unit, shows_published, side == "both"
    return view(data.trade_off_data, subject.question_set, *choices)


def _pick_published(subject: PageSubject, unit: str) -> bool:
    """Draw a switch for the models that the paper published, and return whether to show them. By default, they are
    hidden if the paper lacks some kinds of edits.
    """
    if unit != "cosine" or subject.probe != "lgip":
        return False
    default = "hidden" if view(views.estimates.mixed_kinds, subject.question_set) else "shown"
    label, help_ = "Published models", PUBLISHED_HELP
    return choose(label, "printed", PUBLISHED, default, segments=True, help_=help_) == "shown"


def _draw_figure(
    subject: PageSubject, trade_off: TradeOffData, named: Collection[str], slot: DeltaGenerator
) -> None:
    """Draw the figure, and name the models outside its axes. Users can click a model or select several in an area.

    In a narrow window, where names without room are hidden, a legend above the figure has all models.
    """
    tables.cards(trade_off.up, trade_off.down)
    arguments = subject.question_set, trade_off, subject.names
    figure_of = partial(data.trade_off_figure, trade_off, subject.looks, subject.names, named)
    st.html(f'<p class="vp-small vp-narrow">{_marks(subject)}</p>')
    figure = selectable_chart(
        figure_of,
        "tradeoff",
        data.alternative(trade_off, subject.names),
        lambda: _select(page_subject(subject.key).models),
        BETWEEN.join(sorted(named)),
        table=partial(data.figure_table, *arguments),
        text=partial(data.table_text, *arguments),
        printed=figure_of,
        caption=data.caption(trade_off, subject.names),
        runs=subject.question_set.runs,
        papers=trade_off.papers,
        notes={"table": data.TABLE_NOTE},
        slot=slot,
    )
    annotations = figure.to_plotly_json()["layout"]["annotations"]
    rules = [
        f'.st-key-tradeoff .annotation[data-index="{place}"] {{ display: none; }}'
        for place, each in enumerate(annotations)
        if each.get("name") == data.WIDE_ONLY
    ]
    st.html(f"<style>@media (max-width: 900px) {{ {' '.join(rules)} }}</style>")
    for note in data.edge_notes(trade_off, subject.names):
        quiet(note)


def _select(every: Collection[str]) -> None:
    models, is_area = selected("tradeoff")
    names = [str(values[0]) for values in models]
    if is_area and names:
        sentence.show_models(list(dict.fromkeys(names)), every)
    elif names:
        pin(names[0])


def _draw_models(subject: PageSubject, trade_off: TradeOffData, model: str) -> None:
    """Draw a button with the value of each model, which also serves as a keyboard alternative to the figure."""
    labels = model_labels(subject.models)
    values = {point.model: number(point.y, trade_off.y_unit) for point in trade_off.points}
    models = [point.model for point in trade_off.points]
    st.session_state["pinned"] = model
    with st.container(key="models"):
        st.pills(
            "Select a model to see its worst mistake",
            models,
            format_func=lambda name: f"{plain(labels(name))} {values[name]}",
            key="pinned",
            required=True,
            on_change=lambda: pin(st.session_state["pinned"]),
        )
    quiet(data.other_note(trade_off) + data.arms_note(trade_off))
    rules = [
        marked_before(f".st-key-pinned button:nth-of-type({nth})", subject.looks[name])
        for nth, name in enumerate(models, 1)
    ]
    place = data.place_of_mark(trade_off, model)
    rules.append(
        f".st-key-tradeoff .scatterlayer > .trace:nth-of-type({place}) .point "
        "{ stroke: var(--vp-press) !important; stroke-width: 7px !important; paint-order: stroke; }"
    )
    st.html(f"<style>{' '.join(rules)}</style>")


def _draw_worst_mistake(subject: PageSubject, trade_off: TradeOffData, model: str) -> None:
    """Draw the wrong caption that fools the selected model most, the model's values, and a link to other mistakes."""
    name = subject.names[model]
    st.html(str(htpy.h2(".vp-model")[embed(mark(subject.looks[model])), htpy.bdi[name]]))
    failures = data.failures(trade_off.up, model)
    wall_cards, _, _ = view(views.wall.wall, subject.question_set, failures, 1, 1, True)
    kind = subject.presentation.kind(failures.kind)
    if wall_cards:
        card = wall_cards[0]
        answers = view(views.rows.answer_rows, subject.question_set, (card.case,))
        described = case_card(card, kind, answers[card.case])
        quiet("Its worst mistake:")
        if pictures := html.shots(
            described,
            lambda name: (
                large_picture(name, LARGE) or addresses(store().root, [name]).get(name, "")
            ),
        ):
            st.html(str(pictures))
        if scores := html.matrix(described, model):
            st.html(str(scores))
        st.html(str(html.captions(described.texts)))
    else:
        quiet(f"None of the {wrong_captions(kind)} fools this model here.")
    cells = (
        htpy.tr[htpy.th(scope="row")[label], htpy.td[with_interval(*values)]]
        for label, values in trade_off.rows(model)
    )
    st.html(str(htpy.table(".vp-values")[cells]))
    if n_fooled := counts(subject, failures)["fooled"]:
        with st.container(key="failures"):
            query = case_links.query(subject, failures)
            label = data.failures_link(n_fooled, wrong_captions(kind))
            link_page("explore", label, query)


def _draw_kinds(subject: PageSubject, trade_off: TradeOffData) -> None:
    """Draw the trade-off for each type of wrong caption, and each metric by strength or by type of rewording."""
    _draw_types(subject, trade_off)
    if not trade_off.shifted_by:
        return
    left, right = st.columns(2, gap="large")
    if trade_off.up.kinds == (CHANGED,):
        for column, metric in ((left, trade_off.up), (right, trade_off.down)):
            with column:
                st.subheader(metric.label, anchor=False)
                _draw_strength(subject, trade_off, metric)
        _draw_searches(subject, trade_off)
        quiet(HOW_SEVERITY + ARMS.strip())
        return
    with left:
        st.subheader("Weak and strong flips", anchor=False)
        if _draw_strength(subject, trade_off, trade_off.up):
            quiet(HOW_STRENGTH + ARMS.strip())
    with right:
        st.subheader("Simple and advanced rewordings", anchor=False)
        _draw_wordings(subject, trade_off)


def _draw_searches(subject: PageSubject, trade_off: TradeOffData) -> None:
    """Draw the searches with changed pictures by severity, in both directions, if the run has searches."""
    slices = view(views.estimates.estimates, subject.question_set, "strength_bin")
    known = set(slices.dropna(subset=["value"])["metric"])
    for measure in ("r1_kept", "overlap", "mmi"):
        for column, direction in zip(st.columns(2, gap="large"), SEARCHES, strict=True):
            metric = subject.metrics.get(f"changed_{direction}_{measure}")
            if metric is not None and metric.name in known:
                with column:
                    st.subheader(f"{metric.label}, {SEARCHES[direction]}", anchor=False)
                    _draw_strength(subject, trade_off, metric)


def _draw_types(subject: PageSubject, trade_off: TradeOffData) -> None:
    """Draw the trade-off once for each type of wrong caption, on the same axes, with links to the cases."""
    by_type = view(data.trade_offs_by_type, subject.question_set, trade_off)
    if not by_type:
        quiet("These models were not tested with both rewordings and flips.")
        return
    published = " &emsp; hollow: published" if trade_off.printed else ""
    st.html(f'<p class="vp-small">{_marks(subject)}{published}</p>')
    types = list(by_type)
    for start in range(0, len(types), MOST_PANELS):
        row = types[start : start + MOST_PANELS]
        for column, name in zip(st.columns(len(row)), row, strict=True):
            with column:
                st.markdown(f"**{_type_label(name)}**")
                _draw_panel(subject, by_type[name], name)
    quiet(HOW_PANELS)


def _marks(subject: PageSubject) -> str:
    """Return the mark and the name of each model as HTML, as a legend."""
    labels = [model_label(subject.looks[model], subject.names[model]) for model in subject.models]
    return " &emsp; ".join(f'<span style="white-space: nowrap">{each}</span>' for each in labels)


def _draw_panel(subject: PageSubject, of_type: TradeOffData, name: str) -> None:
    figure_of = partial(data.trade_off_figure, of_type, subject.looks, subject.names)
    printed = partial(figure_of, named=subject.models)  # with titles and names
    alt = f"{_type_label(name)}: one mark per model."
    queries = {}
    for model in subject.models:
        failures = data.failures(of_type.up, model, name)
        case_filter = Filter(model, COMBINED) if name == COMBINED else failures
        queries[model] = case_links.query(subject, case_filter)
    panel, papers = figure_of(is_panel=True), of_type.papers
    for point in chart(panel, f"type_{name}", alt, True, printed, papers=papers):
        if model := point.get("customdata"):  # published models have no cases
            open_page("explore", queries[str(model[0])])
    with st.popover("Failures", icon=":material/image_search:", width="stretch"):
        for model, query in queries.items():
            link_page("explore", plain(subject.names[model]), query)


def _type_label(name: str) -> str:
    return "Flips of a reworded caption" if name == COMBINED else edit_title(name)


def _draw_strength(subject: PageSubject, trade_off: TradeOffData, metric: Metric) -> bool:
    """Draw a metric by the strength of flips or the severity of changes. Return False if the run has neither."""
    question_set, names = subject.question_set, subject.names
    if "strength_bin" not in view(views.estimates.slices, question_set):
        quiet("This run has no flips, so strength is not defined.")
        return False
    table = view(
        *(views.estimates.estimates, question_set, "strength_bin"),
        *(trade_off.averaging, trade_off.unit),
    )
    figure = partial(
        charts.tradeoff.by_strength,
        *(table, metric, trade_off.unit, subject.looks, names),
        published_values("lgip", 5, metric.name) if trade_off.printed else None,
        names.get(st.query_params.get("model", ""), ""),
    )
    alt = f"{metric.label} by the strength of the change, one line per model."
    models = {display_name: model for model, display_name in names.items()}

    def target(display_name: str, name: str) -> Filter | None:
        model = models.get(display_name, "")
        return case_links.slice_filter(subject, model, metric.kinds, STRENGTH, name)

    key, papers = f"strength_{metric.name}", trade_off.papers
    case_links.chart_of_cases(figure, key, alt, subject, target, papers=papers)
    return True


def _draw_wordings(subject: PageSubject, trade_off: TradeOffData) -> None:
    """Draw how much each type of rewording changes the score."""
    down = trade_off.down
    table = view(
        *(views.estimates.estimates, subject.question_set, "subtype"),
        *(trade_off.averaging, trade_off.unit),
    )
    table = table.loc[table["metric"] == down.name].dropna(subset=["value"])
    rows = {name: words for name, words in WORDINGS.items() if name in set(table["slice"])}
    if not rows:
        quiet("This run has no rewordings.")
        return
    controls = [model for model in subject.models if is_control(model)]
    left_out = controls if len(controls) < len(subject.models) else []
    table = table.loc[~table["model"].isin(left_out)].replace({"model": dict(subject.names)})
    looks = {name: subject.looks[model] for model, name in subject.names.items()}
    figure = charts.dots.dots(table, down, trade_off.unit, rows, looks)
    if trade_off.printed:
        published = published_values("lgip", 4, down.name)
        charts.tradeoff.beside(figure, published, list(rows), trade_off.x_unit)
    alt = f"{down.label} for simple and advanced rewordings, one mark per model."
    chart(figure, "wordings", alt, papers=trade_off.papers)
    names = listed([subject.names[model] for model in left_out])
    squeezed = f" Not shown, because the other marks would be squeezed together: {names}."
    quiet(HOW_WORDINGS + ARMS.strip() + squeezed * bool(left_out))
