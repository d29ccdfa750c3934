"""The Compare page: model pickers, main finding, forest plot, cases that fool only one of two models, and expanders.

The URL names the baseline (`model`), the models to compare with it (`with`, in the order chosen), the kind, the
question set and the selected row of the plot (`type`, `other`). For the *Case by case* expander, it names the
corners of the selected area (`area`), the bucket, the order and the page. Older URLs name the baseline `base`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import htpy
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import case_card
from vlprobe.dashboard import case_links, drawer, export, frame, margin_map, sentence
from vlprobe.dashboard.chart import selectable_chart, selected
from vlprobe.dashboard.navigation import address
from vlprobe.dashboard.play import page as play
from vlprobe.dashboard.state import (
    PageSubject,
    carry,
    counts,
    dataset_name,
    model_labels,
    model_name,
    n_passing,
    page_number,
    paginate,
    pick,
    plain,
    quiet,
    ranked_models,
    renamed,
    report_missing,
    store,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import BETWEEN, draw_row, fold, follow_links, link_page, press
from vlprobe.registry import is_control
from vlprobe.render import charts, forest
from vlprobe.render.findings import order_sentences, ties, verdict
from vlprobe.render.forest import describe_shared
from vlprobe.render.html import compare
from vlprobe.render.html.elements import embed, mark, marked_before, tag
from vlprobe.render.sentences import capitalized, counted, joined, sentence_names, unbroken
from vlprobe.render.wall import side_filter
from vlprobe.render.words import AVERAGED, movement_kinds
from vlprobe.scoring import thumbnails
from vlprobe.types import POOLED
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.bodies import body_of
from vlprobe.views.filter import Filter
from vlprobe.views.named_slices import PREFIX
from vlprobe.views.paired_outcomes import bucket
from vlprobe.views.paired_tests import MOST_RANKED, PairedTest, PairedTests
from vlprobe.views.runs import QuestionSet
from vlprobe.views.totals import Total
from vlprobe.views.wall import WallCard


def draw_page() -> None:
    """Draw the differences of a baseline and the other chosen models."""
    contest = compared_subject()
    with draw_row("sentence"):
        draw_sentence(contest)
        st.space("stretch")
        share_slot, export_slot = export.share_slots()
    if not contest.rivals:
        st.html(tag("h1", f"Compare {contest.names[contest.model]} with..."))
        quiet(f"Choose up to {MOST} models, in the list above.")
        return
    unit = "spread" if st.query_params.get("unit") == "spread" else "cosine"
    left_out = tuple(st.query_params.get_all("without"))
    types = view(views.leaderboard.chosen_types, contest.question_set, contest.kind, left_out)
    contest = replace(contest, types=types)
    arguments = contest.question_set, contest.compared, contest.kind, unit
    comparison = view(views.paired_tests.compare_models, *arguments, types=types)
    finding = verdict(comparison, contest.kind_presentation, renamed())
    heading, detail = (unbroken(text) for text in (finding.heading, finding.short))
    st.html(str(htpy.div(".vp-finding")[htpy.h1[heading], htpy.p[detail]]))
    if st.query_params.get("score") == "right" and not contest.kind_presentation.is_movement:
        quiet(COUNTS_FOOLED)
    if types:
        with draw_row("chosen_types"):
            st.markdown(f":small[Only {counted(len(types), 'type')} of edit.]", width="content")
            without = left_out_elsewhere(contest.question_set, contest.kind)
            press("Show all types", write_choice, {"without": without})
    say_left_out(contest)
    open_row = draw_forest(contest, comparison, finding.row, export_slot)
    frame.say_strangers(contest, contest.compared)
    table = view(views.estimates.estimates, contest.question_set)
    if not contest.types:  # these are of all types
        for line in order_sentences(table, contest.names, contest.compared):
            quiet(line)
        for line in play.human_sentences(contest, contest.compared):
            st.markdown(f":material/groups: {plain(line)}")
    side_filter = draw_columns(contest, comparison, open_row)
    scores = {contest.question_set.run(model).score_type for model in contest.compared}
    if not contest.kind_presentation.is_movement and "cosine" in scores:  # of two towers
        title = "Where the difference was missed: words, picture or match"
        fold("causes", title, "visibility_off", partial(_draw_causes, contest))
    draw_numbers = partial(_draw_numbers, contest, comparison, finding.more)
    fold("measured", "How it is measured", "function", draw_numbers)
    in_map = draw_fold(contest, open_row.model)
    fold("details", "Details", "data_object", partial(frame.draw_details, contest))
    shared = in_map or side_filter
    with share_slot:
        row = (open_row.subtype, open_row.model)
        drawer.draw_share(contest, shared, n_passing(contest, shared), row)
    if "case" in st.query_params:
        drawer_filter = in_map or filter_of_case(contest, open_row)
        is_grouped = in_map is None  # the map has one card per case
        drawer.draw_case(contest, drawer_filter, CARDS, is_grouped)


COUNTS_FOOLED = (
    "Differences counts the wrong captions that fool a model, also when the scorecard shows “Right, %”: "
    "a difference of −3 points here is +3 points there."
)
IN_CSV = "Cases right in one order only (base_halves, model_halves) count half in the differences of the CSV file."
MOST = views.paired_tests.MOST_COMPARED - 1  # models in addition to the baseline
FIRST = 4  # of them without a choice
# Widths in pixels: a letter, the rest of a tag, and the elements at the right of the picker.
LETTER, TAG, ARROW = 7.6, 58, 84
NARROWEST, WIDEST = 150, 900
OLD_CARDS, CARDS = 12, 60  # cards per page, formerly and now


def compared_subject() -> PageSubject:
    """Return the selection in the URL, or else the last one viewed. Stops the page if nothing can be compared."""
    if base := st.query_params.get("base", ""):  # an older URL, whose pages had fewer cards
        st.query_params["model"] = base
        if "type" not in st.query_params:
            st.query_params["type"] = ""
        page = st.query_params.get("page", "")
        if page.isdecimal() and len(page) < 9:
            st.query_params["page"] = str(1 + OLD_CARDS * max(int(page) - 1, 0) // CARDS)
        del st.query_params["base"]
    subject = sentence.subject(is_baseline=True)
    if len(subject.models) < 2:
        st.html(tag("h1", "There is nothing to compare yet."))
        st.info("Only one model has run this test. A comparison needs two.", icon=":material/info:")
        link_page("run", "Run another model", icon="play_circle")
        st.stop()
    rivals = _rivals(subject)
    st.query_params["with"] = BETWEEN.join(rivals)
    carry("with", BETWEEN.join(rivals))
    return replace(subject, rivals=tuple(rivals))


def _rivals(subject: PageSubject) -> list[str]:
    """Return the models to compare: those in the URL that exist, else those that the scorecard shows, or the best ones
    if the URL has no list. Controls are among the best only if there are no other models.
    """
    linked = st.query_params.get("with")
    choice = st.query_params.get("shown") or st.session_state.get("carried_with", "")
    listed = _split(choice if linked is None else linked)
    if linked is not None:
        if gone := [model for model in listed if model not in subject.models]:
            report_missing("Compared with it", "with", ", ".join(gone))
        if not listed:
            return []
    candidates = [model for model in ranked_models(subject) if model != subject.model]
    rivals = [model for model in listed if model in candidates]
    if linked is None and "shown" in st.query_params:  # the best of them, if there are too many
        rivals.sort(key=candidates.index)
    best = [model for model in candidates if not is_control(model)] or candidates
    rivals = rivals[:MOST] or best[:FIRST]
    if linked is None and (other := st.query_params.get("other")) in candidates:
        rivals = [other, *(model for model in rivals if model != other)][:MOST]
    return rivals


def _split(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, text.split(BETWEEN))))


def say_left_out(contest: PageSubject) -> None:
    """Name the models that the comparison leaves out, best first, except controls, and say whether the baseline is the
    best one.
    """
    rated = set(contest.question_set.rated_models) - {*contest.compared}
    ranked = ranked_models(contest)
    names = [model_name(model) for model in ranked if model in rated]
    if contest.model == ranked[0] and not contest.types:
        quiet(f"{model_name(contest.model)} is the baseline: it has the lowest value on all cases.")
    if names:
        others = [f"and {counted(len(names) - MOST, 'other')}"] * (len(names) > MOST)
        limit = f" (at most {MOST} models)" * (len(contest.rivals) == MOST)
        quiet(f"Not in this comparison{limit}: {', '.join([*names[:MOST], *others])}.")


def draw_sentence(subject: PageSubject) -> None:
    """Draw the pickers for models, kind and dataset in the form of a sentence."""
    sentence.draw_word("Compare")
    sentence.pick_model(subject, on_change=change_baseline)
    sentence.draw_word("on")
    sentence.pick_kind(subject)
    sentence.draw_word("in")
    sentence.pick_dataset(subject)
    sentence.draw_word("with")
    _pick_rivals(subject)


def _pick_rivals(subject: PageSubject) -> None:
    candidates = [model for model in subject.models if model != subject.model]
    rivals = list(subject.rivals)
    letters = sum(LETTER * len(model_name(model)) + TAG for model in rivals)
    st.session_state["with"] = rivals
    st.multiselect(
        "Compared with it",
        # The chosen models come first, in their order, so that each tag gets its model's mark.
        [*rivals, *(model for model in candidates if model not in rivals)],
        format_func=model_labels(subject.models),
        key="with",
        max_selections=MOST,
        on_change=lambda: _write_rivals(st.session_state["with"]),
        label_visibility="collapsed",
        placeholder="no model yet",
        width=int(min(max(letters + ARROW, NARROWEST), WIDEST)),
    )
    # Draw each model's mark in its tag, because a tag can only show text
    rules = [
        marked_before(f".st-key-with [data-tag]:nth-of-type({nth})", subject.looks[model])
        for nth, model in enumerate(rivals, 1)
    ]
    st.html(f"<style>{' '.join(rules)}</style>")


def _write_rivals(models: Sequence[str]) -> None:
    """Write the models to compare to the URL, and with the baseline as those that the scorecard shows."""
    shown = BETWEEN.join([st.query_params["model"], *models]) if models else ""
    carry("shown", shown)
    write_choice(
        {"with": BETWEEN.join(models), "shown": shown or None, "other": None, "area": None}
    )


def change_baseline() -> None:
    """Update the URL after the user picked a new baseline. If it was one of the other models, the two trade places."""
    old, new = st.query_params.get("model", ""), st.session_state["model"]
    if linked := _split(st.query_params.get("with", "")):
        rivals = [old if model == new else model for model in linked]
        changes = {"with": BETWEEN.join(rivals), "other": None, "area": None}
        if shown := _split(st.query_params.get("shown", "")):
            changes["shown"] = BETWEEN.join(dict.fromkeys([*shown, new]))
        write_choice(changes)


def draw_forest(
    contest: PageSubject, comparison: PairedTests, proof: PairedTest, export_slot: DeltaGenerator
) -> PairedTest:
    """Draw the forest plot, and return the row whose pictures are shown. By default, the heading describes this row.

    Args:
        proof: The row that the heading describes.
        export_slot: Where to draw the *Export* menu.
    """
    rival, subtype = st.query_params.get("other", ""), st.query_params.get("type")
    rival = rival if rival in contest.rivals else proof.model
    subtype = subtype if subtype in comparison.subtypes else proof.subtype
    open_row = comparison.row(rival, subtype)
    if all(math.isnan(row.difference) for row in comparison.rows):
        return open_row
    kind, baseline = contest.kind_presentation, contest.model
    totals = []
    if not contest.types:  # published totals are of all types
        totals = view(views.totals.of_questions, contest.question_set, contest.kind, baseline)
    dataset = dataset_name(contest.question_set.runs[0].dataset)
    left_out = tuple(st.query_params.get_all("without"))
    sized = view(views.leaderboard.of_types, contest.question_set, left_out)
    column_name = partial(views.leaderboard.column_name, contest.question_set, contest.kind)
    note = forest.solved_rows(comparison, kind)
    solved = [each for each in comparison.solved if each and not each.startswith(PREFIX)]
    draw_solved(note, [column_name(each) for each in solved], "solved")
    # On a phone, the bar with the legend does not stay in view
    with st.container(key="forest_legend"):
        _draw_legend(contest)

    kept = ("set", "kind", "model", "with", "tab", "without", "shown", "score")
    linked = {name: st.query_params.get_all(name) for name in kept}

    def row_address(subtype: str, model: str) -> str:
        return address("compare", linked | {"type": subtype, "other": model or proof.model})

    n_totals = counted(len(totals), "other model")
    without_totals = f"The figure leaves out the published totals of {n_totals}." if totals else ""
    of_halves = IN_CSV if any(sum(row.halves) for row in comparison.rows) else ""
    figure = partial(forest.forest_figure, comparison, kind, contest.looks, renamed())
    selectable_chart(
        lambda: forest.without_legend(figure(totals, row_address)),
        "forest",
        f"Difference between each model and {contest.names[baseline]}, by type of edit. Use the links or the pickers "
        "below to choose a row.",
        _choose,
        BETWEEN.join((contest.key, contest.kind, *contest.compared)),
        table=partial(rows_table, comparison, kind, contest.names, totals),
        caption=joined(forest.caption(comparison, kind, renamed(), dataset), without_totals),
        notes={"text": without_totals, "column": without_totals, "table": of_halves},
        text=partial(forest.rows_text, comparison, sized, kind, renamed()),
        printed=figure,
        has_tools=False,
        runs=[sized.run(model) for model in contest.compared],
        papers=["mieb"] if totals else [],
        slot=export_slot,
    )
    follow_links()
    place = comparison.subtypes.index(open_row.subtype)
    st.html(
        f'<style>.st-key-forest .shapelayer path[data-index="{place}"] {{ fill: var(--vp-press-tint) !important; '
        "fill-opacity: 1 !important; }</style>"
    )
    quiet(forest.how_to_read(comparison))
    if totals:
        rings = capitalized(forest.describe_totals(totals))
        quiet(f"{rings}. Point at a ring for its name; the exported CSV file lists all.")
    for name, named in view(views.named_slices.read).items():
        if named.caveat and f"{PREFIX}{name}" in comparison.subtypes:
            quiet(named.caveat)
    return open_row


def draw_row_picker(contest: PageSubject, comparison: PairedTests, open_row: PairedTest) -> None:
    """Draw pickers for the row whose pictures are shown, as a keyboard alternative to clicking the plot."""

    def show() -> None:
        subtype, rival = (st.session_state[name] for name in ("row_type", "row_model"))
        write_choice({"type": subtype, "other": rival})

    kind = contest.kind_presentation
    types = {name: forest.row_title(name, kind) for name in comparison.subtypes}
    models = {name: contest.names[name] for name in contest.rivals}
    for label, name, options, value in (
        ("Type of edit", "row_type", types, open_row.subtype),
        ("Compared with", "row_model", models, open_row.model),
    ):
        width = sentence.picker_width(options[value])
        pick(label, name, options, value, show, bare=True, width=width)


def _choose() -> None:
    """Write the selected row of the plot to the URL, so that the page shows its pictures."""
    rows, _ = selected("forest")
    if rows:
        write_choice({"type": str(rows[0][0]), "other": str(rows[0][1])})


SHOWN = 6  # cards per column


def side_filters(contest: PageSubject, row: PairedTest) -> list[Filter]:
    """Return the filters for the cases of a row that fool only the baseline, and those that fool only the other."""
    pairs = (contest.model, row.model), (row.model, contest.model)
    filters = [side_filter(contest.kind, *pair, row.subtype) for pair in pairs]
    return [each if row.subtype else replace(each, subtype=contest.types) for each in filters]


def draw_columns(contest: PageSubject, comparison: PairedTests, test: PairedTest) -> Filter:
    """Draw the cases that fool only one of two models, one column per model, and count the other cases. Returns the
    filter for the left column.
    """
    filters = side_filters(contest, test)
    with draw_row("parting"):
        st.html(tag("h2", "Where they disagree"), width="content")
        draw_row_picker(contest, comparison, test)
        st.space("stretch")
        _draw_legend(contest)
    with st.container(key="facing"):
        shared = [describe_shared(test, comparison, contest.names, contest.kind_presentation)]
        for case_filter, n_halves in zip(filters, test.halves, strict=True):
            both = replace(case_filter, other_outcome="fooled")
            if n_halves and (n_once := counts(contest, both)["tied"]):
                once = f"{n_once:,} fool {contest.names[case_filter.model]} in only one order"
                shared.append(f"Of the {test.both:,} that fool both, {once}.")
        if any(shared):
            quiet(joined(*shared))
        columns = zip(st.columns(2, gap="large"), ("left", "right"), filters, strict=True)
        for slot, name, case_filter in columns:
            with slot:
                share = ""
                if not comparison.is_movement:
                    # If cases were left out, a share would be of other cases than in the plot
                    share = case_links.share_text(contest, case_filter, not test.n_left_out)
                _draw_side(contest, name, case_filter, share)
    if not comparison.is_movement:
        # "=" differs between models asked in one order of the captions and in both
        runs = [contest.question_set.run(model) for model in contest.compared]
        twice = [contest.names[run.model] for run in runs if run.n_orders == 2]
        equal = ["equal scores"] if len(twice) < len(runs) else []
        equal += [f"fooled in one of two orders ({', '.join(twice)})"] if twice else []
        quiet(f"Marks on the cards: ✕ fooled, ✓ not fooled, = {', or '.join(equal)}.")
    return filters[0]


def filter_of_case(contest: PageSubject, row: PairedTest) -> Filter:
    """Return the filter for the column with the case in the URL, or for all cases of the kind if neither has it."""
    number = view(views.rows.case_number, contest.question_set, st.query_params["case"])
    if number is not None:
        for column in side_filters(contest, row):
            if view(views.wall.neighbors, contest.question_set, column, number).place:
                return column
    return Filter(contest.model, contest.kind, outcome="all", other=row.model)


def left_out_elsewhere(question_set: QuestionSet, kind: str) -> list[str]:
    """Return the columns of the scorecard that the URL leaves out, except those of a kind of cases."""
    of_kind = views.leaderboard.column_name(question_set, kind, "")
    return [name for name in st.query_params.get_all("without") if not name.startswith(of_kind)]


def draw_solved(note: str, columns: Collection[str], key: str) -> None:
    """Draw a note on columns that can be solved without the picture, and a button that leaves out these columns."""
    if note:
        with draw_row():
            st.markdown(f":small[:orange[:material/info:] {plain(note)}]", width="content")
            if columns:
                without = {*st.query_params.get_all("without"), *columns}
                press("Leave them out", write_choice, {"without": without}, key=key)


def _draw_legend(contest: PageSubject) -> None:
    entries = [
        htpy.span[embed(mark(contest.looks[model])), htpy.bdi[name]]
        for model, name in contest.names.items()
    ]
    st.html(str(htpy.p(".vp-legend")[entries]), width="content")


def _draw_side(contest: PageSubject, side: str, case_filter: Filter, share: str) -> None:
    """Draw one column: the number of cases, a link to all of them, their share, and cards for the first ones."""
    n_cases = n_passing(contest, case_filter)
    model, rival = contest.names[case_filter.model], contest.names[case_filter.other]
    words: list[htpy.Node] = [" fooled ", htpy.b[model], f", not {rival}"]
    if case_filter.kind in movement_kinds():
        words = [" move ", htpy.b[model], f" more than {rival}"]
    with draw_row(f"{side}_head"):
        st.html(str(htpy.p(".vp-side")[htpy.b(".vp-big")[f"{n_cases:,}"], htpy.span[words]]))
        if n_cases:
            query, help_ = case_links.query(contest, case_filter), f"All {n_cases:,} in Explore"
            link_page("explore", "See all", query, help=help_)
    if not n_cases:
        st.html(tag("p", "None.", class_="vp-quiet"))
        return
    if share:
        quiet(share)
    cards, _, _ = view(views.wall.wall, contest.question_set, case_filter, 1, SHOWN, True)
    values = card_values(contest, case_filter, cards, f"Only {model}, not {rival}")
    case_links.draw_wall(f"{side}_cards", values)


def card_values(
    contest: PageSubject,
    case_filter: Filter,
    cards: tuple[WallCard, ...],
    label: str,
    *,
    badge: bool = True,
) -> dict[str, object]:
    """Build the data for the `wall` component, with one small box per model on each card."""
    kind = contest.presentation.kind(case_filter.kind)
    answers = {}
    if body_of(kind).uses_answer:
        numbers = tuple(card.case for card in cards)
        answers = view(views.rows.answer_rows, contest.question_set, numbers, contest.compared)
    described = [case_card(card, kind, answers.get(card.case)) for card in cards]
    names = [name for card in described for name in json.facing_pictures(card)]
    source = thumbnails.addresses(store().root, names).__getitem__
    look = contest.compared, contest.names, contest.looks, source
    drawn = [json.facing_card(card, *look, badge=badge) for card in described]
    return {"label": label, "bare": True, "facing": True, "strip": False, "cards": drawn}


MEASURED = (
    "In the plot above, each wrong caption counts once. A model's share (in parentheses: the number) covers only those "
    "that both models answered. Intervals come from resampling pictures. p-values come from a paired permutation test "
    "by picture (McNemar's exact test if each picture has one answer), corrected for every pair of models, on all "
    f"cases and on all types of edit (Holm; Bonferroni for controls and for more than {MOST_RANKED} models)."
)

HOW_CAUSES = (
    "A tower hardly moved in a case if the two captions (or pictures) are at least as similar to "
    "it as in the most similar quarter of all cases that the model answered. A tower that plays "
    "no part in the failures would therefore be named in 25 % of them (counting 'both'). Ties "
    "count as failures. Click a part of a bar for its cases."
)


def _draw_causes(contest: PageSubject) -> None:
    """Draw each model's failures by who did not see the difference."""
    counts = view(views.causes.counts, contest.question_set, contest.kind)
    if counts.empty:
        quiet("Unknown for these cases, which have no stored cosines between captions.")
        return
    names = sentence_names(contest.question_set.models, renamed())
    case_links.chart_of_cases(
        lambda: charts.compare.causes(counts, names),
        "causes",
        "Share of each model's failures in which its text tower, its image tower, both or neither hardly moved.",
        contest,
        lambda model, cause: Filter(model, contest.kind, unseen_by=(cause,)),
    )
    quiet(HOW_CAUSES)


def _draw_numbers(contest: PageSubject, comparison: PairedTests, more: str) -> None:
    """Explain units and averaging, and list every number with its interval and p-value.

    Args:
        more: What the finding leaves out (see `Verdict`).
    """
    if more:
        quiet(more)
    with st.container(horizontal=True):
        unit = frame.unit(contest)
        averaging = frame.averaging(contest)
    quiet(MEASURED)
    st.html(compare.rows_table(comparison, contest.kind_presentation, contest.names))
    if not comparison.is_movement and (counts := ties(comparison, contest.names)):
        quiet(counts)
    table = view(
        views.paired_tests.compare_metrics, contest.question_set, contest.compared, averaging, unit
    )
    if not any(table["verdict"]):
        st.info("These models did not answer any of the same questions.")
        return
    # The plot has the difference in the share of all cases, with the one interval to cite
    is_same = table["metric"] == contest.kind_presentation.accuracy
    is_same &= (table["averaging"] == POOLED) & (not contest.types)
    every, table = table, table.loc[~is_same]
    if not any(table["verdict"]):
        return
    st.subheader("The numbers", anchor=False)
    quiet(AVERAGED[averaging])
    chances = view(views.papers.chances, contest.question_set)
    st.html(
        compare.differences(table, contest.metrics, unit, contest.looks, chances, contest.names)
    )
    export.draw_menu("compare", table=every)
    quiet(compare.how_to_read(every))


def rows_table(
    comparison: PairedTests,
    kind: KindPresentation,
    names: Mapping[str, str],
    totals: Sequence[Total] = (),
) -> pd.DataFrame:
    """Return the rows of the forest plot as a table, with one column per field, and with names as on the page. The
    published totals are further rows.
    """
    table = comparison.table()
    table.insert(0, "baseline", table.pop("baseline"))
    table.insert(1, "kind", comparison.kind)
    table["baseline_name"] = names[comparison.baseline.model]
    table["model_name"] = [names[model] for model in table["model"]]
    table["type"] = [forest.row_title(subtype, kind) for subtype in table["subtype"]]
    published = [
        {"model_name": total.model, "type": f"Published total ({forest.TOTALS_SOURCE})"}
        | {"value": total.fooled, "difference": total.fooled - comparison.baseline.share}
        for total in totals
    ]
    return pd.concat([table, pd.DataFrame(published)]).convert_dtypes() if published else table


PARAMETERS = ("area", "bucket", "tool", "sort")  # URL parameters that only this expander uses


def draw_fold(contest: PageSubject, rival: str) -> Filter | None:
    """Draw the *Case by case* expander if both models have scores. Returns its filter, or None if it is closed."""
    runs = [contest.question_set.run(model) for model in (contest.model, rival)]
    if not all(run.is_scored for run in runs):
        return None

    def draw() -> Filter:
        case_filter = _draw_margins(contest, rival)
        _draw_cards(contest, case_filter)
        return case_filter

    return fold("map", "Case by case", "scatter_plot", draw, PARAMETERS)


def _draw_margins(contest: PageSubject, rival: str) -> Filter:
    """Draw the scatter plot of two models' margins, and return the filter for the cases selected in it."""
    base, kind = contest.model, contest.kind
    area = margin_map.corners(st.query_params.get("area", ""))
    marked = Filter(base, kind, outcome="all", other=rival, within=area)
    case_filter = sentence.with_order(contest, marked)
    points, total = view(views.paired_outcomes.scatter, contest.question_set, base, rival, kind)
    margin_map.draw_map(replace(contest, rivals=(rival,)), points, total, case_filter)
    if kind in movement_kinds():
        return case_filter
    return bucket(case_filter, sentence.pick_bucket(contest, case_filter))


def _draw_cards(contest: PageSubject, case_filter: Filter) -> None:
    """Draw one page of cards for the selected cases."""
    n_cases = n_passing(contest, case_filter)
    with st.container(horizontal=True, vertical_alignment="bottom", key="map_bar"):
        st.html(tag("p", f"{n_cases:,} {'case' if n_cases == 1 else 'cases'}"), width="content")
        st.space("stretch")
        sentence.draw_order(contest, case_filter)
    if not n_cases:
        quiet("No cases match. Change the selection above, or clear the selected area.")
        return
    page = page_number(n_cases, CARDS)
    cards, _, _ = view(views.wall.wall, contest.question_set, case_filter, page, CARDS, False)
    values = card_values(contest, case_filter, cards, "Selected cases", badge=False)
    case_links.draw_wall("map_cards", values)
    if n_cases > CARDS:
        paginate(n_cases, CARDS)
