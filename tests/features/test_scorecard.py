"""Compare's scorecard has the numbers of Explore, the ties of the paired tests, and all options in its link."""

import itertools
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest

from tests.conftest import call, case_key_of, question_set_of
from tests.dashboard.test_pages import bodies, open_page
from tests.dashboard.walls import figure_of, wall
from tests.surfaces.test_report import values as report_values
from vlprobe import dashboard, views
from vlprobe.dashboard import case_links, chart, export
from vlprobe.errors import InvalidInput
from vlprobe.features.compare import page
from vlprobe.features.compare.data import RULE_NAME, UNDECIDED, Scorecard
from vlprobe.render.attribution import source_line
from vlprobe.render.charts.styles import PATHS, SIZE, styles
from vlprobe.render.forest import (
    forest_figure,
    in_columns,
    only_uncorrected,
    row_title,
    rows_text,
    signed,
    without_legend,
)
from vlprobe.render.html.compare import rows_table
from vlprobe.render.html.elements import mark
from vlprobe.render.leaderboard import formatted_table, in_words
from vlprobe.render.wall import value_text
from vlprobe.render.words import value_label
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import display_names, shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.surfaces import paper
from vlprobe.surfaces.site.compare import compare_values
from vlprobe.surfaces.site.subject import Limits, Shelf, read_subject
from vlprobe.views.filter import Filter
from vlprobe.views.leaderboard import (
    FAILED,
    NO_VALUE,
    LeaderboardCell,
    leaderboard,
    ranked_models,
)

CONSTANT = "control:constant"
GPT, TROHN = "published:GPT-4V", "published:CLIP_TROHN-Text"


@pytest.fixture(scope="module")
def question_set(tmp_path_factory):
    """The question set of published answers to SugarCrepe, in the bundled results."""
    roots = tmp_path_factory.mktemp("scorecard"), shipped.PUBLISHED_FOLDER, shipped.FOLDER
    return question_set_of(StoreAboveShipped(*roots), dataset="bundled:SugarCrepe")


@pytest.fixture(scope="module")
def columns(question_set):
    """Return the columns of the scorecard with GPT-4V as the baseline."""
    return leaderboard(question_set, by="edit", baseline=GPT)


@pytest.fixture
def files(monkeypatch):
    """Return the functions that make the files of a page's download buttons, by label. The page fills them in."""
    made = {}
    monkeypatch.setattr(
        export, "file_button", lambda label, make, *_, **__: made.update({label: make})
    )
    return made


@pytest.fixture(scope="module")
def valse(question_set):
    """Return the columns of the scorecard of published answers to VALSE."""
    return leaderboard(question_set_of(question_set.store, dataset="bundled:VALSE"), by="edit")


def test_the_models_of_one_page_differ_in_color_and_all_marks_fill_the_same_square(question_set):
    looks = styles(views.runs.models(question_set.store))
    drawn = [looks[model] for model in question_set.models]
    assert len({look.color for look in drawn}) == len(drawn) == 5
    for look in drawn:
        assert f"width: {SIZE}px; height: {SIZE}px" in mark(look)
        corners = [float(number) for number in re.findall(r"-?[\d.]+", PATHS[look.symbol])]
        assert max(corners) - min(corners) > 0.75 * SIZE or look.symbol == "circle"


def test_at_most_two_of_the_eleven_models_of_valse_share_a_color_or_a_symbol(question_set, valse):
    looks = styles(views.runs.models(question_set.store))
    drawn = [looks[model] for model in ranked_models(valse)]
    assert len(set(drawn)) == len(drawn) == 11
    colors = [look.color for look in drawn]
    assert max(map(colors.count, colors)) == 2 and len(set(colors[:6])) == 6
    assert len({look.symbol for look in drawn}) == 10  # in grayscale, only two are alike


def address(*_) -> str:
    return "x"


def card(columns, **choices) -> Scorecard:
    models = ranked_models(columns)
    return Scorecard(columns, {name: name for name in models}, styles(models), GPT, **choices)


def test_a_cell_has_the_counts_of_explore_and_the_share_of_compare(question_set, columns):
    for column in columns:
        for model in (GPT, TROHN):
            case_filter = Filter.parse(model, "foil", subtype=column.subtype)
            counted = views.cases.outcomes(question_set, case_filter)
            assert column.cells[model].n_fooled == counted["fooled"]
            assert column.n_cases == counted["all"]
    tests = views.paired_tests.compare_models(question_set, (GPT, TROHN), "foil")
    for column in columns:
        row = tests.row(TROHN, column.subtype)
        assert column.cells[TROHN].estimate.value == pytest.approx(row.value)
        assert column.cells[GPT].estimate.value == pytest.approx(row.base)
        assert column.cells[TROHN].difference == pytest.approx(row.difference)


def test_colored_cells_are_the_lowest_one_and_those_tied_with_it(question_set, columns):
    (column,) = [column for column in columns if column.subtype == "swap_obj"]
    best = min(column.cells, key=lambda model: column.cells[model].estimate.value)
    assert best == GPT
    others = [model for model in question_set.ordered_models if model != best]
    tests = views.paired_tests.compare_models(question_set, (best, *others), "foil")
    tied = {row.model for row in tests.rows if row.subtype == "swap_obj" and row.verdict == "tied"}
    assert {model for model, cell in column.cells.items() if cell.is_best} == {best, *tied}
    whole = columns[0]
    assert [model for model, cell in whole.cells.items() if cell.is_best] == [TROHN]
    assert (
        card(columns).finding()[0]
        == f"{TROHN} is fooled least. {GPT} is best against swapped attributes."
    )


def test_a_model_that_a_tied_one_beats_or_that_guesses_worse_than_chance_is_not_colored(
    question_set, valse
):
    drawn = leaderboard(question_set_of(question_set.store, "lgip", "demo"), by="edit")
    for column in (*drawn, *valse):
        best = [model for model, cell in column.cells.items() if cell.is_best]
        may_win = {each.model for each in column.ranking.fit if each.may_win}
        assert may_win.issuperset(best)
        assert all(column.cells[model].estimate.value <= 0.5 for model in best)
        pairs = itertools.permutations(best, 2)
        assert not any(column.ranking.verdict(*pair) == "more" for pair in pairs)
        if (column.kind, column.subtype) == ("combined", "number"):
            assert "demo:scvc" in best and "demo:eqsim" in best
            assert "a" not in column.cells["demo:weak"].group or "demo:weak" in best


def test_a_model_whose_interval_includes_guessing_is_not_colored(columns):
    """Check the color, because the finding states that such a model is not better than guessing."""
    whole = columns[0]
    chance = [
        replace(each, standing="guessing") if each.model == TROHN else each
        for each in whole.ranking.contestants
    ]
    column = replace(whole, ranking=replace(whole.ranking, contestants=tuple(chance)))
    assert not column.narrowed(whole.cells).cells[TROHN].is_best
    assert whole.narrowed(whole.cells).cells[TROHN].is_best


def test_a_model_is_called_best_only_if_no_other_is_tied_with_it(valse):
    """Check VALSE; ALBEF 14M was once bold and "best" in a column in which ten models are tied with it."""
    scorecard = card(valse)
    (hard,) = [column for column in valse if column.subtype == "coreference-hard"]
    assert scorecard._top(hard) == [] and len(hard.cells) > 10
    assert "(hard)" not in "".join(scorecard.finding())
    assert "<b>" not in scorecard._printed(hard, "published:ALBEF 14M")
    for column in valse:
        clear, fit = scorecard._clear(column), [each.model for each in column.ranking.fit]
        others = [model for model in fit if model != clear]
        assert not clear or not any(column.ranking.verdict(clear, m) == "tied" for m in others)
    heading = card([hard]).finding()[0]
    assert heading == "Against a wrong answer to a question (small set): All 11 models are tied."


def test_a_heading_counts_the_columns_that_it_does_not_name(columns):
    named = [column for column in columns if column.subtype][:6]
    assert card(columns)._phrase(named).endswith(" and in 3 other columns")
    assert " others" not in card(columns)._phrase(named)
    assert " other column" not in card(columns)._phrase(named[:4])  # one more is named


def test_a_model_that_failed_a_check_on_one_of_two_datasets_may_be_colored_on_the_other(columns):
    cells = {GPT: replace(columns[0].cells[GPT], note=FAILED, is_best=False)}
    failed = replace(columns[0], cells=columns[0].cells | cells)
    assert "Never colored" not in card([failed, *columns[1:]]).reading()[1]
    assert "Never colored" in card([failed]).reading()[1]


def test_a_row_counts_the_columns_that_a_model_won_tied_and_lost(columns):
    scorecard = card(columns)
    (tally,) = re.findall(rf"{TROHN}.*?vp-tally\">([^<]*)", scorecard.html(), re.DOTALL)[:1]
    verdicts = [column.cells[TROHN].verdict for column in columns if column.subtype]
    counts = [verdicts.count(verdict) for verdict in ("fewer", "tied", "more")]
    assert tally == "{} won, {} tied, {} lost".format(*counts) and sum(counts) == 7
    assert scorecard.html().count("vp-tally") == len(columns[0].cells) - 1  # all but the baseline
    of_slice = replace(columns[-1], subtype="slice:Two cases")
    assert card([*columns, of_slice])._tally(TROHN) == tally
    assert "types of edit on which a model is clearly better than" in scorecard.reading()[1]
    assert "vp-tally" not in card(columns[:1]).html()


def test_the_count_of_a_model_with_both_orders_explains_its_halves(columns):
    html = card(columns).html(address, address, address)
    assert "of them in only one order of the captions (counted as half): Explore" in html


def test_all_cases_are_those_of_the_chosen_types_and_the_types_keep_their_numbers(
    question_set, columns
):
    left_out = [column.name for column in columns if column.subtype.startswith("add")]
    few = leaderboard(question_set, by="edit", baseline=GPT, left_out=left_out)
    pooled, *of_types = few
    types = [column.subtype for column in of_types]
    assert list(pooled.pooled) == types and len(types) == pooled.n_types - 2 == 5
    for model in (TROHN, GPT):
        case_filter = Filter.parse(model, "foil", subtype=types)
        counted = views.cases.outcomes(question_set, case_filter)
        n_fooled = counted["fooled"] - counted["tied"] / 2 * (model == GPT)
        assert pooled.cells[model].estimate.value == pytest.approx(n_fooled / counted["all"])
        assert pooled.n_cases == counted["all"]
    alike = {"ranking": None, "question_set": question_set}  # whose sizes are of the chosen types
    assert [replace(column, **alike) for column in of_types] == [
        replace(column, **alike) for column in columns if column.subtype in types
    ]
    tests = views.paired_tests.compare_models(
        question_set, (GPT, TROHN), "foil", types=tuple(types)
    )
    row, cell = tests.row(TROHN), pooled.cells[TROHN]
    assert (row.difference, row.low, row.p_holm) == (
        *(cell.difference, cell.difference_low, cell.p_holm),
    )
    assert tests.baseline.share == pooled.cells[GPT].estimate.value
    scorecard = card(few)
    assert scorecard.title(pooled) == "5 of 7 types"
    assert scorecard.finding()[0] == f"On 5 of 7 types together: {GPT} is fooled least."
    assert "+".join(types) in set(scorecard.table()["subtype"])
    one = leaderboard(question_set, by="edit", left_out=[c.name for c in columns[2:]])
    assert [column.subtype for column in one] == [columns[1].subtype]
    assert card(one).finding()[0].startswith("Against swapped things: ")
    every = leaderboard(question_set, by="edit", left_out=[c.name for c in columns[1:]])
    assert every == []
    whole = card(columns, unsolved=few)
    without = f"”. Without them: {GPT} is fooled least."
    assert without in whole.caption() and without in whole.text("markdown")
    clips = [model for model in question_set.models if model != GPT]
    narrow, few = ([each.narrowed(clips) for each in several] for several in (columns, few))
    alike = card(narrow, unsolved=few).note()
    assert alike.endswith(f"”. {TROHN} is fooled least with and without them.")
    one, few = ([each.narrowed([GPT]) for each in several] for several in (columns, few))
    assert GPT not in card(one, unsolved=few).note()  # one model is not the best
    (solved, *_), others = (
        [each for each in columns if each.blind < views.estimates.SOLVED],
        columns[:1],
    )
    left_out = [solved.name]
    few = leaderboard(question_set, by="edit", baseline=GPT, left_out=left_out)
    note = card([*others, solved], unsolved=few).note()
    assert note.startswith("One column can be") and "Without it: " in note
    searches = question_set_of(question_set.store, "rococo", "demo")
    danger = f"{searches.key[:8]}.i2t.danger"
    finding = card(leaderboard(searches, by="edit", left_out=[danger])).finding()[0]
    assert "demo:eqsim is clearly best against an altered caption (3 of 4 types)" in finding


def test_a_choice_of_types_leaves_the_p_values_of_models_that_failed_a_check(monkeypatch):
    question_set = question_set_of(Store(shipped.PUBLISHED_FOLDER), dataset="bundled:SugarCrepe")
    failed = question_set.run("published:CLIP_COCO")
    digests = {(failed.model_digest, failed.dataset_digest)}
    monkeypatch.setattr(views.paired_tests.examine, "models_at_chance", lambda _: digests)
    pair, types = (GPT, "published:CLIP_COCO"), ("replace_obj", "replace_att", "swap_obj")
    every = views.paired_tests.compare_models(question_set, pair, "foil")
    few = views.paired_tests.compare_models(question_set, pair, "foil", types=types)
    for subtype in types:
        assert few.row(pair[1], subtype) == every.row(pair[1], subtype)


def test_both_tabs_have_the_types_of_the_link_and_pictures_of_these_types(
    monkeypatch, question_set, columns
):
    left_out = [column.name for column in columns if column.subtype.startswith("add")]
    monkeypatch.delenv(shipped.SETTING, raising=False)
    store, query = question_set.store, {"set": question_set.key, "without": left_out}
    at = open_page(monkeypatch, store, "compare", **query)
    assert not at.exception and "On 5 of 7 types together: GPT-4V" in bodies(at)
    assert "5 of 7 types" in bodies(at) and "Added object" not in bodies(at)
    assert all(name in bodies(at) for name in left_out)  # in the links to the other tab
    drawn = case_key_of(store, "rococo", "demo")
    sets = {"sets": f"{question_set.key}|{drawn}"}
    at = open_page(monkeypatch, store, "compare", **query, **sets)
    assert "On 5 of 7 types together: GPT-4V" in bodies(at)  # not one column per test
    at = open_page(monkeypatch, store, "compare", **query, **sets, by="kind")
    links = re.findall(
        rf"compare\?[^'\"]*tab=differences[^'\"]*set={question_set.key}[^'\"]*", bodies(at)
    )
    assert links and not any("without=" in link for link in links)  # they count all types
    query |= {"tab": "differences", "type": "", "other": "published:CLIP_COCO", "model": GPT}
    query |= {"shown": f"{GPT}|{TROHN}|published:CLIP_COCO"}
    at = open_page(monkeypatch, store, "compare", **query)
    assert at.multiselect(key="with").value == ["published:CLIP_COCO", TROHN]
    text = bodies(at)
    assert "Added object" not in text
    assert any("Only 5 types of edit" in each.value for each in at.markdown)
    elsewhere = f"{drawn[:8]}.t2i.mix"
    at.query_params["without"] = [*left_out, elsewhere]
    everything = next(each for each in at.run().button if each.label == "Show all types")
    assert everything.click().run().query_params["without"] == elsewhere
    at = open_page(monkeypatch, store, "compare", **query)
    links = re.findall(r"compare\?[^'\"\\]+", str(figure_of(at, "forest")))
    assert links and all(link.count("without=") == len(left_out) for link in links)
    only = [
        views.cases.outcomes(
            question_set,
            Filter.parse(
                *(a, "foil"),
                **{"subtype": [c.subtype for c in columns if c.subtype and c.name not in left_out]},
                **{"other": b, "other_outcome": "held"},
            ),
        )["fooled"]
        for a, b in itertools.permutations((GPT, "published:CLIP_COCO"))
    ]
    assert all(f'<b class="vp-big">{n:,}</b>' in text for n in only)


def test_a_row_has_the_name_of_a_model_on_slides_if_it_begins_otherwise(columns):
    names = {name: name.removeprefix("published:") for name in ranked_models(columns)}
    html = replace(card(columns), names=names).html()
    assert "on slides: Text-tuned CLIP" in html and html.count("on slides") == 3


def different(p: dict) -> set:
    """Return the tests that Holm's method rejects at the 5 % level."""
    rejected = set()
    for rank, (name, value) in enumerate(sorted(p.items(), key=lambda each: each[1])):
        if value * (len(p) - rank) >= 0.05:
            break
        rejected.add(name)
    return rejected


def test_a_pair_has_one_verdict_on_both_tabs_whichever_models_are_compared(question_set, columns):
    others = [model for model in question_set.models if model != GPT]
    for compared in [(GPT, *others), *((GPT, other) for other in others)]:
        tests = views.paired_tests.compare_models(question_set, compared, "foil")
        for column in columns:
            letters = {model: set(cell.group) for model, cell in column.cells.items()}
            for model in compared[1:]:
                row, cell = tests.row(model, column.subtype), column.cells[model]
                assert row.verdict == cell.verdict
                assert (row.verdict == "tied") == bool(letters[GPT] & letters[model])
                assert row.n_tests == (70 if column.subtype else 10)
    narrowed = replace(question_set, runs=question_set.runs[:2])  # as in `vlprobe compare A B`
    pair = views.paired_tests.compare_models(narrowed, narrowed.models, "foil")
    whole = views.paired_tests.compare_models(question_set, narrowed.models, "foil")
    assert pair.rows == whole.rows


def test_models_share_a_letter_in_a_type_exactly_if_they_are_tied(
    question_set, columns, monkeypatch
):
    models = question_set.ordered_models
    pairs = list(itertools.combinations(models, 2))
    tests = {pair: views.paired_tests.compare_models(question_set, pair, "foil") for pair in pairs}
    types = [column.subtype for column in columns[1:]]
    p = {
        (subtype, frozenset(pair)): tests[pair].row(pair[1], subtype).p
        for subtype, pair in itertools.product(types, pairs)
    }
    clear = different(p)  # all types form one family of 70 tests
    for column in columns[1:]:
        tied = {frozenset(pair) for pair in pairs} - {
            pair for subtype, pair in clear if subtype == column.subtype
        }
        letters = {model: set(column.cells[model].group) for model in models}
        assert {frozenset(pair) for pair in pairs if letters[pair[0]] & letters[pair[1]]} == tied
        beside = {model for model, cell in column.cells.items() if cell.verdict == "tied"}
        assert beside == {model for pair in tied if GPT in pair for model in pair - {GPT}}
    monkeypatch.setattr(views.paired_tests, "MOST_RANKED", 2)
    few = leaderboard(question_set, by="edit", baseline=GPT)
    without_p = [
        {model: replace(cell, p_holm=0.0) for model, cell in column.cells.items()}
        for column in (few[0], columns[0])
    ]
    assert without_p[0] == without_p[1]
    reading = Scorecard(few, {model: model for model in models}, {}).reading()[1]
    assert "Bonferroni-corrected for every pair of models, shown or not: 10 tests" in reading
    for column, whole in zip(few[1:], columns[1:], strict=True):
        assert not any(cell.group for cell in column.cells.values())
        best = min(column.cells, key=lambda model: column.cells[model].estimate.value)
        assert column.cells[best].is_best
        p = {pair: tests[pair].row(pair[1], column.subtype).p for pair in pairs if best in pair}
        n_tied = sum(70 * value >= 0.05 for value in p.values())  # Bonferroni's method
        assert sum(cell.is_best for cell in column.cells.values()) == 1 + n_tied
        assert {model: cell.estimate for model, cell in column.cells.items()} == {
            model: cell.estimate for model, cell in whole.cells.items()
        }


def test_the_letters_of_selected_models_follow_from_the_ties_among_them(question_set, columns):
    for column, pair in itertools.product(columns, itertools.combinations(columns[0].cells, 2)):
        is_tied = column.ranking.verdict(*pair) == "tied"
        groups = sorted(cell.group for cell in column.narrowed(pair).cells.values())
        assert groups == (["a", "a"] if is_tied else ["a", "b"])
    a, b, c = list(columns[0].cells)[:3]
    groups = [(a, b), (b, c)]  # a is better than c
    values = zip((a, b, c), (0.1, 0.2, 0.3), strict=True)
    cells = {
        model: LeaderboardCell(replace(columns[0].cells[model].estimate, value=value))
        for model, value in values
    }
    chain = replace(columns[0], cells=cells, ranking=None, tie_groups=groups)
    whole = chain.narrowed((a, b, c))
    assert [whole.cells[model].group for model in (a, b, c)] == ["a", "ab", "b"]
    few = whole.narrowed((b, c))
    assert {cell.group for cell in few.cells.values()} == {"a"}
    assert "textbf" not in formatted_table([few], {}, "latex")
    assert "textbf" in formatted_table([whole.narrowed((a, c))], {}, "latex")


def test_the_finding_is_about_the_models_on_the_page(monkeypatch, question_set, columns):
    shown = [model for model in question_set.ordered_models if model != TROHN]
    few = card(leaderboard(question_set, shown, by="edit", baseline=GPT))
    heading = f"Of the four models shown: {GPT} is fooled least."
    assert few.finding()[0].startswith(heading) and heading in few.caption()
    assert "shown" not in card(columns).finding()[0] and TROHN not in few.rows
    assert [model for model, cell in few.columns[0].cells.items() if cell.is_best] == [GPT]
    every = {model: cell.estimate for model, cell in columns[0].cells.items() if model != TROHN}
    assert {model: cell.estimate for model, cell in few.columns[0].cells.items()} == every
    monkeypatch.delenv(shipped.SETTING, raising=False)
    at = open_page(
        monkeypatch, question_set.store, "compare", set=question_set.key, shown="|".join(shown)
    )
    assert not at.exception and "GPT-4V is fooled least." in bodies(at)
    assert "TROHN-Text" not in bodies(at)
    assert at.selectbox(key="model").value == GPT  # the best one of those shown


def test_the_first_of_many_question_sets_are_shown_and_a_line_counts_all(monkeypatch, question_set):
    drawn = case_key_of(question_set.store, dataset="demo")
    monkeypatch.delenv(shipped.SETTING, raising=False)
    monkeypatch.setattr("vlprobe.features.compare.page.MOST_SETS", 1)
    keys = [question_set.key, drawn]
    at = open_page(monkeypatch, question_set.store, "compare", sets="|".join(keys))
    line = "1 of 2 question sets are shown. Choose others in the list of question sets."
    assert not at.exception and line in bodies(at)
    assert "Tiny CLIP" not in next(body for body in bodies(at).split("<table") if "score" in body)
    assert "Wrong relation" not in bodies(at)  # 46 columns of types, with all bundled sets
    at = open_page(monkeypatch, question_set.store, "compare", sets="|".join(keys), by="edit")
    assert "Wrong relation" in bodies(at)
    at = open_page(monkeypatch, question_set.store, "compare", sets=keys[0])
    assert "Choose others" not in bodies(at) and "Wrong relation" in bodies(at)


@pytest.mark.full
def test_the_scorecard_of_all_bundled_question_sets_has_a_column_for_each_test_and_its_models(
    monkeypatch, question_set
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    sets = [
        views.runs.question_set(question_set.store, row.case_key)
        for row in views.runs.question_set_rows(question_set.store)
    ]
    assert len(sets) == 8
    query = {"sets": "|".join(each.key for each in sets)}
    at = open_page(monkeypatch, question_set.store, "compare", **query)
    tables = [body for body in bodies(at).split("<table") if "vp-scorecard" in body]
    assert not at.exception and len(tables) == 3  # the six demo models, SugarCrepe and VALSE
    n_tests = sum(len(views.leaderboard.ranked_kinds(each)) for each in sets)
    assert sum(table.count('scope="col"') - 1 for table in tables) == n_tests == 12
    for each in sets:
        shares = views.paired_tests.model_shares(each, views.leaderboard.ranked_kinds(each)[0])
        for row in shares:
            shown = f"{100 * row.share:.1f}"
            assert any(f"<b>{shown}</b>" in table for table in tables), (each.label, row.model)


def test_movements_have_separate_wording(monkeypatch, question_set, columns):
    store = question_set.store
    foils = columns
    key = case_key_of(store, "prsm")
    columns = leaderboard(views.runs.question_set(store, key), by="edit")
    assert {(column.metric.name, column.metric.label) for column in columns} == {
        ("moved", "Movement")
    }
    scorecard = replace(card(columns), is_right=True)
    heading = scorecard.finding()[0]
    assert "moves least" in heading or "tied" in heading
    reading = scorecard.reading()[0] + scorecard.reading()[1]
    assert "fooled" not in heading + reading and "right" not in heading
    assert "guessing" not in reading and scorecard.title(columns[0]) == "Movement"
    assert "fooled" not in scorecard.html(address, address, address)
    for each in (scorecard, replace(scorecard, is_right=False)):
        assert "Movement, with 95 % intervals." in each.caption()
        assert "Fooled" not in each.caption() + each.text("latex")
    both = card([*foils, *columns])
    assert "A full bar is 50 %." in both.reading()[1]
    assert "Colored: best, or tied" in replace(both, is_right=True).reading()[0]
    monkeypatch.delenv(shipped.SETTING, raising=False)
    at = open_page(monkeypatch, store, "compare", set=key)
    assert not at.exception and "moves least" in bodies(at) + "moves least" * ("tied" in heading)
    assert "score" not in [group.key for group in at.button_group]


def test_a_model_that_failed_a_check_is_named_and_excluded_from_the_comparison(columns):
    """Check the heading; it once read "There is no second model to compare" above a table of two models."""

    def without(failed: set[str]) -> Scorecard:
        return card(
            [
                replace(
                    column,
                    cells={
                        model: replace(
                            column.cells[model], note=FAILED * (model in failed), is_best=False
                        )
                        for model in (GPT, TROHN)
                    },
                )
                for column in columns
            ]
        )

    expected = f"Not compared: {without(set()).names[TROHN]}, which failed a check."
    assert without({TROHN}).finding() == (expected, "")
    assert without({GPT, TROHN}).finding()[0].startswith(f"Not compared: {TROHN} and {GPT}")
    legend = f"Never colored: {without(set()).names[TROHN]}, which failed a check."
    assert legend in without({TROHN}).reading()[1] and legend not in without(set()).reading()[1]


def test_the_legend_explains_missing_values_only_if_a_cell_lacks_one(columns):
    noted = {model: replace(cell, note=FAILED) for model, cell in columns[-1].cells.items()}
    assert "n/a" not in card([*columns[:-1], replace(columns[-1], cells=noted)]).reading()[1]
    missing = {GPT: LeaderboardCell(note=NO_VALUE)}
    last = replace(columns[-1], cells=columns[-1].cells | missing)
    assert "n/a" in card([columns[0], last]).reading()[1]
    assert "No model" not in card([columns[0], last]).reading()[1]


def test_an_unknown_column_in_the_url_does_not_reverse_the_order(monkeypatch, columns):
    for order, expected in (("-gone", (0, False)), (f"-{columns[1].name}", (1, True))):
        monkeypatch.setattr(page.st, "query_params", {"order": order})
        assert page._sorted_by(columns) == expected


def test_a_column_sorts_the_rows_and_the_share_right_is_the_complement(columns):
    place = [column.subtype for column in columns].index("swap_att")
    values = [
        columns[place].cells[model].estimate.value for model in card(columns, sort=place).rows
    ]
    assert values == sorted(values)
    assert card(columns, sort=place, is_reversed=True).rows == card(columns, sort=place).rows[::-1]
    html = card(columns, is_right=True).html(address, address, address)
    (cell,) = re.findall(r'title="90\.1 %[^"]*"[^>]*><b>([^<]*)', html)
    assert cell == "90.1"
    assert "98.6 % of “Added attribute”" in card(columns).note()


def picker_key(at) -> str:
    """Return the key of the picker of models, which keeps its selection in the browser while its popover is closed."""
    (key,) = [str(each.key) for each in at.multiselect if str(each.key).startswith("shown_models_")]
    return key


def test_the_counts_of_the_csv_add_up_to_its_values_and_the_baseline_is_named(
    question_set, columns
):
    table = card(columns).table()
    table = table.loc[table["model"] != RULE_NAME]
    share = (table["n_fooled"] - table["n_halves"] / 2) / table["n_cases"]
    assert share.to_numpy() == pytest.approx(table["value"].to_numpy())
    of_base = table[table["model"] == GPT]
    assert (of_base["n_halves"] > 0).all() and set(of_base["verdict"]) == {"baseline"}
    assert (table.loc[table["model"] != GPT, "n_halves"] == 0).all()
    assert "note" not in table  # no value is missing
    tests = views.paired_tests.compare_models(question_set, (GPT, TROHN), "foil")
    for is_right in (False, True):
        based = leaderboard(question_set, by="edit", baseline=GPT)
        of_rival = card(based, is_right=is_right).table().query("model == @TROHN")
        for row, test in zip(of_rival.itertuples(), tests.rows, strict=True):
            ends = (-test.high, -test.low) if is_right else (test.low, test.high)
            assert (row.difference_low, row.difference_high) == pytest.approx(ends)
            assert row.difference_low <= row.difference <= row.difference_high
            assert row.p_holm == test.p_holm and row.subtype == test.subtype


def test_a_type_of_edit_has_one_name(question_set, columns):
    keys = views.runs.question_sets(question_set.store).set_index("dataset")["case_key"]
    for key in (question_set.key, keys["bundled:VALSE"]):
        questions = views.runs.question_set(question_set.store, key)
        for subtype in views.paired_tests.rank_by_type(questions, "foil"):
            if subtype:
                titles = {
                    row_title(subtype, questions.presentation.kind("foil")),
                    value_label(subtype),
                }
                assert len(titles) == 1, titles


def test_kinds_with_the_same_types_of_edit_have_separate_group_heads(question_set, columns):
    store = question_set.store
    key = case_key_of(store, "lgip")
    question_set = views.runs.question_set(store, key)
    heads = r'<th scope="colgroup" colspan="(\d+)">.*?<small>(.*?)</small>'
    drawn = leaderboard(question_set, by="edit")
    widths, titles = zip(*re.findall(heads, card(drawn).html()), strict=True)
    kinds = list(dict.fromkeys(column.kind for column in drawn))
    counts = [sum(column.kind == kind for column in drawn) for kind in kinds]
    assert len(kinds) > 1 and [*map(int, widths)] == counts
    for kind, title in zip(kinds, titles, strict=True):
        assert title.endswith(f": {question_set.presentation.kind(kind).wrong_side}")
    of_types = [column for column in drawn if column.subtype]
    assert card(of_types)._noun == "types of edit" and card(drawn)._noun == "tests"
    by_kind = card(leaderboard(question_set, by="kind")).html()
    assert [width for width, _ in re.findall(heads, by_kind)] == [str(len(kinds))]
    assert len(re.findall(heads, card(columns).html())) == 1


def test_columns_solved_without_the_picture_are_named_above_the_table_and_the_best_guess_below(
    monkeypatch, question_set
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    at = open_page(monkeypatch, question_set.store, "compare", set=question_set.key)
    drawn = " ".join(str(getattr(element, "proto", "")) for element in at.main)
    order = "columns can be solved", "Without them: GPT-4V is fooled least.", "Leave them out"
    order += "vp-scorecard", "How to read the table", "the best guess from"
    places = [drawn.index(words) for words in order]
    assert places == sorted(places)
    without = next(button for button in at.button if button.label == "Leave them out")
    few = " ".join(str(getattr(element, "proto", "")) for element in without.click().run().main)
    assert "columns can be solved" not in few and "the best guess" not in few  # it is for all types


def test_sets_without_a_common_model_have_a_finding_and_a_table_each(monkeypatch, question_set):
    drawn = case_key_of(question_set.store, dataset="demo")
    monkeypatch.delenv(shipped.SETTING, raising=False)
    at = open_page(
        monkeypatch, question_set.store, "compare", sets="|".join([question_set.key, drawn])
    )
    assert not at.exception and "n/a" not in bodies(at) and at.button_group(key="score")
    assert "Hsieh et al., SugarCrepe" in bodies(at)
    first = open_page(
        monkeypatch, question_set.store, "compare", sets="|".join([drawn, question_set.key])
    )
    assert "Hsieh et al., SugarCrepe" in bodies(first)
    headings = re.findall(r"vp-finding.*?<h1>(.*?)</h1>", bodies(first), re.DOTALL)
    drawn_first, other = headings
    assert drawn_first.startswith("Drawn scenes: Pair-tuned is clearly best against")
    assert other.startswith("SugarCrepe: CLIP_TROHN-Text is fooled least.")
    assert picker_key(at) != picker_key(
        open_page(monkeypatch, question_set.store, "compare", sets=drawn)
    )
    table, other = (body for body in bodies(at).split("<table") if "vp-scorecard" in body)
    assert "Tiny CLIP" in other and "GPT-4V" in table
    assert "tab=differences" in table and "explore?" in table


def test_the_legend_explains_counts_if_a_shown_model_saw_both_orders(columns):
    rule = (
        f"{GPT} saw the captions in both orders. Counts: cases fooled in both orders "
        "+ cases fooled in only one order, each counted as half."
    )
    assert rule in card(columns).reading()[1]
    shown = [replace(each, cells={TROHN: each.cells[TROHN]}) for each in columns]
    assert "both orders" not in card(shown).reading()[1]


def test_the_score_right_reverses_heading_legend_bars_counts_and_tooltips(question_set, columns):
    right = replace(card(columns), is_right=True)
    assert right.finding()[0].startswith(f"{TROHN} is right most often.")
    assert "is the model with the highest value on all cases, of those" in right.reading()[1]
    assert "Colored: highest" in right.reading()[0] and "A full bar is 100 %." in right.reading()[1]
    html = right.html(address, address, address)
    counted = views.cases.outcomes(question_set, Filter.parse(GPT, "foil"))
    share, column_size = 100 * (1 - columns[0].cells[GPT].estimate.value), columns[0].n_cases
    assert f"right on {counted['held']:,} of 7,512, in both orders of the captions" in html
    once = counted["tied"]
    assert f'cases that do not fool {GPT}: Explore">{counted["held"]:,} + {once:,} × ½<' in html
    assert (counted["held"] + once / 2) / column_size == pytest.approx(share / 100)
    fooled = card(columns).html(address, address, address)
    assert f">{counted['fooled'] - once:,} + {once:,} × ½<" in fooled
    assert f"width:{share:.1f}%" in html and "vp-right" in html
    cell = columns[0].cells[GPT]
    estimate = replace(cell.estimate, value=1 - 15 / column_size, n_cases=column_size)
    cells = {GPT: replace(cell, estimate=estimate, n_fooled=column_size)}
    once_only = card([replace(columns[0], cells=cells)], is_right=True)
    assert ">0 + 30 × ½<" in once_only.html(address, address, address)


def test_differences_are_shown_at_every_width_and_the_legend_names_the_baseline(columns):
    for shown in (columns, columns[:1]):
        drawn = card(shown)
        assert f"Small figures: difference from {GPT} in points, or tied." in drawn.reading()[0]
        assert ">+2.8<" in drawn.html(address, address, address)
    css = (Path(dashboard.__file__).parent / "compare.css").read_text()
    assert not re.search(r"vp-numbers small[^}]*display: none", css)


def test_the_bars_of_all_columns_have_one_scale_that_the_legend_names(columns):
    whole = columns[0]
    cell = whole.cells[GPT]
    worse = replace(cell, estimate=replace(cell.estimate, value=0.707))
    above = replace(whole, cells={**whole.cells, GPT: worse})
    mixed = card([above, columns[1]])
    assert "width:70.7%" in mixed.html() and "width:16.9%" in mixed.html()
    assert "A full bar is 100 %. Guessing: 50.0 %." in mixed.reading()[1]
    assert "A full bar is 50 %. Guessing: 50.0 %." in card(columns).reading()[1]
    assert "width:33.7%" in card(columns).html()


def test_each_heading_has_its_rate_of_guessing_or_says_that_lower_is_better(question_set, columns):
    store = question_set.store
    probes = ("lgip", "visla", "prsm")
    others = [leaderboard(question_set_of(store, probe), by="kind") for probe in probes]
    all_tests = card([columns[0], *itertools.chain.from_iterable(others)])
    for is_right, (half, third) in ((False, ("50.0", "66.7")), (True, ("50.0", "33.3"))):
        html = replace(all_tests, is_right=is_right).html()
        rates = re.findall(r"<small>guessing (\S+)\u00a0%</small>", html)
        assert set(rates) == {half, third} and rates.count(third) == 2  # VISLA: 1 of 3 orders
        assert html.count("<small>lower is better</small>") == 1
        assert "Guessing: the share of a model that guesses" in all_tests.reading()[1]
        assert (
            "Movement, lower is" in replace(all_tests, is_right=is_right).text("markdown")
        ) is is_right
    assert "guessing" not in card(columns).html()
    alone = card([column.narrowed({GPT}) for column in columns])
    assert "vp-best" in card(columns).html() and "vp-best" not in alone.html()


def test_hidden_models_stay_in_the_correction(question_set, columns):
    few = [column.narrowed((GPT, TROHN)) for column in columns]
    assert "every pair of models, shown or not: 10 tests" in card(few).reading()[1]
    of_models = zip(few, columns, strict=True)
    assert all(one.cells[TROHN].verdict == all_.cells[TROHN].verdict for one, all_ in of_models)


def test_the_rule_of_fewer_words_has_a_dash_where_nearly_all_captions_are_of_equal_length(valse):
    undecided = [column for column in valse if math.isnan(column.blind)]
    drawn = card(valse).html()
    assert len(undecided) == drawn.count(f'title="{UNDECIDED}">-<') == 8
    assert f" -: {UNDECIDED}" in card(valse).reading()[1] and "so the rule cannot choose" in card(
        valse
    ).text("latex")
    pairs = views.caption_bins.caption_pairs(valse[0].question_set.cases, "foil")
    for column in valse:
        of_type = pairs[pairs["subtype"] == column.subtype] if column.subtype else pairs
        lengths = [
            (len(true.split()), len(wrong.split()))
            for true, wrong in zip(of_type["true"], of_type["wrong"], strict=True)
        ]
        n_equal = sum(true == wrong for true, wrong in lengths)
        if n_equal > 0.95 * len(lengths):
            assert column in undecided
        else:
            n_wrong = sum(true >= wrong for true, wrong in lengths)
            assert column.blind == pytest.approx(n_wrong / len(lengths))


def test_the_sentence_below_the_heading_counts_the_columns_in_which_models_are_colored(
    question_set, columns, valse
):
    for shown in (columns, valse):
        counts = {
            model: sum(column.cells[model].is_best for column in shown if column.subtype)
            for model in shown[0].cells
        }
        first, second, *_ = sorted(set(counts.values()), reverse=True)
        detail = card(shown).finding()[1]
        assert detail.startswith("Best, or tied for best, on the most types of edit: ")
        named = dict(re.findall(r"(?:edit: |then )(.*?) \((\d+) of \d+\)", detail.split(".")[0]))
        assert [int(n) for n in named.values()] == [first, second]
        for names, n in named.items():
            leaders = {model for model, count in counts.items() if count == int(n)}
            assert leaders == set(re.split(", | and ", names))
    failed = [
        replace(column, cells=column.cells | {TROHN: replace(column.cells[TROHN], note=FAILED)})
        for column in columns
    ]
    left_out = [column.narrowed(column.cells) for column in failed]
    assert f"Not ranked: {TROHN}, which failed a check." in card(left_out).finding()[1]
    drawn = card(leaderboard(question_set_of(question_set.store, "series"), by="edit"))
    assert "for best" not in drawn.finding()[1]  # all six models are tied
    # Of several sets, all cases are counted, but not also their types
    single = card([columns[0], columns[1], valse[0]])
    assert "One of two tests has a tie at the top." in single.finding()[1]
    single = card([columns[0], replace(valse[0], subtype="x")])
    assert "Best, or tied for best, on the most tests: " in single.finding()[1]


def test_a_slice_is_colored_like_a_type_but_not_counted_unless_answers_selected_it(columns):
    first, of_type, *_ = columns
    of_slice = replace(of_type, subtype="slice:Any cases")
    assert of_slice.narrowed(of_slice.cells).cells == of_type.cells
    with_it = card([first, of_type, of_slice])
    assert with_it.finding() == card([first, of_type]).finding()
    assert "The heading does not count named slices" in with_it.reading()[1]
    assert "so no model is best" in card([of_slice]).finding()[0]


def test_a_biased_slice_and_a_column_with_too_few_pictures_are_not_colored_or_counted(columns):
    first, of_type, *_ = columns
    of_slice = replace(of_type, subtype="slice:Two cases", caveat="selected by answers")
    cells = {
        model: replace(cell, estimate=replace(cell.estimate, low=math.nan, high=math.nan))
        for model, cell in of_type.cells.items()
    }
    few = replace(of_type, cells=cells)
    apart = [each.narrowed(each.cells) for each in (of_slice, few)]
    assert any(cell.is_best for cell in of_type.cells.values())
    assert not any(cell.is_best for each in apart for cell in each.cells.values())
    assert not any(cell.group for cell in apart[1].cells.values())  # ties are unknown
    with_them, without = card([first, of_type, *apart]), card([first, of_type])
    assert with_them.finding() == without.finding()
    title = without.title(of_type)
    note = f"“Two cases (slice)” (models' answers selected the cases); “{title}” (fewer than 5 pictures)."
    assert f"Not colored, and not counted in the heading: {note}" in with_them.reading()[1]
    assert "Not colored" not in without.reading()[1]
    hidden = card([first, of_type, replace(of_type, cells={})])  # all its models are hidden
    assert "Not colored" not in hidden.reading()[1]


def test_a_column_in_which_all_models_are_tied_is_not_colored_or_counted_but_named(question_set):
    sets = [question_set_of(question_set.store, probe) for probe in ("lgip", "series")]
    columns = [column for each in sets for column in leaderboard(each, by="kind")]
    tied = [column for column in columns if column.all_tied]
    assert [column.n_cases for column in tied] == [45, 40]
    for column in tied:
        models = column.cells
        words = {column.ranking.verdict(a, b) for a, b in itertools.combinations(models, 2)}
        assert words == {"tied"} and not any(cell.is_best for cell in models.values())
        assert column.narrowed(list(models)[:1]).all_tied is False
    scorecard = card(columns)
    names = "“Another moment” (45 cases) and “Another candidate” (40 cases)"
    detail = scorecard.finding()[1]
    assert f"Not counted: {names}, without a clear difference between models." in detail
    assert "(2 of 2)" in detail and "of 4" not in detail
    assert scorecard.html().count("all tied") == 2
    assert "(no clear difference between models)" in scorecard.reading()[1]
    both = [column.narrowed(["demo:plain", "demo:weak"]) for column in tied[:1]]
    assert card(both).finding()[0].endswith(" and demo:weak are tied.")


def test_a_type_of_edit_has_one_title_on_every_page_and_in_tables(question_set, columns, valse):
    kind = question_set.presentation.kind("foil")
    for every in (columns, valse):
        scorecard, printed = card(every), in_words(every, {})
        for column, head in zip(every, printed.columns[1:], strict=True):
            if column.subtype:
                titles = row_title(column.subtype, kind), value_text("subtype", column.subtype)
                assert {scorecard.title(column), head, *titles} == {head}
                assert head[0].isupper() and not head.startswith(("A ", "An "))


def test_a_column_of_many_tied_models_has_no_best_one(valse, monkeypatch):
    """Only pairs with the best of many models are tested."""
    monkeypatch.setattr(views.paired_tests, "MOST_RANKED", 3)
    (clean,) = [column for column in valse if column.subtype == "coreference-hard"]
    best = clean.ranking.fit[0].model
    tied = [model for model in clean.cells if clean.ranking.verdict(model, best) == "tied"]
    narrowed = clean.narrowed([best, *tied])
    assert len(tied) > 1 and narrowed.all_tied
    assert not any(cell.is_best for cell in narrowed.cells.values())


def test_intervals_replace_counts_below_the_shares(columns):
    switches = {"Show counts": "compare?below="}
    html = card(columns, has_intervals=True).html(address, address, address, switches)
    assert '<a class="vp-go" href="compare?below="' in html and "Show counts" in html
    row = columns[0].cells[TROHN].estimate
    assert f">{100 * row.low:.1f} to {100 * row.high:.1f}</span>" in html
    assert "×" not in html


def test_no_model_is_colored_where_all_share_a_letter_although_some_may_be_guessing(valse):
    (clean,) = [column for column in valse if column.subtype == "coreference-hard"]
    letters = {cell.group for cell in clean.cells.values()}
    assert letters == {"a"} and clean.all_tied
    assert {each.may_win for each in clean.ranking.fit} == {True, False}  # only some beat guessing
    assert not any(cell.is_best for cell in clean.cells.values())


def test_types_have_one_order_with_every_baseline_in_the_scorecard_and_in_the_plot_of_differences(
    question_set, columns
):
    elsewhere = leaderboard(question_set, by="edit", baseline="of another set")
    order = [column.subtype for column in columns]
    for first, drawn in ((GPT, elsewhere), (TROHN, leaderboard(question_set, by="edit"))):
        models = first, *(model for model in question_set.models if model != first)
        tests = views.paired_tests.compare_models(question_set, models, "foil")
        assert [column.subtype for column in drawn] == list(tests.subtypes) == order
    n_fooled = [sum(cell.estimate.value for cell in each.cells.values()) for each in columns[1:]]
    assert n_fooled == sorted(n_fooled, reverse=True)
    assert {cell.verdict for column in elsewhere for cell in column.cells.values()} == {"unknown"}


def test_tables_and_figure_have_only_the_models_that_answered_a_question_set(columns, valse):
    scorecard = card([*columns, *valse])
    figure = scorecard.figure()
    rows = [axis.ticktext for axis in figure.select_yaxes() if axis.ticktext]
    assert {len(names) for names in rows} == {5, 11}
    tables = [part for part in scorecard.text("markdown").split("\n\n") if "Cases" in part]
    assert "not run" not in "".join(tables)
    latex = scorecard.text("latex")
    labels = re.findall(r"\\label{(.*)}", latex)
    assert labels == [
        f"tab:vlprobe-scorecard-{name}" for name in ("1-sugarcrepe-593a", "2-valse-f125")
    ]
    assert latex.count("SugarCrepe, True caption or foil: n = 7,512 cases") == 1
    assert latex.count("GPT-4V saw the captions in both orders") == 1  # it did not answer VALSE
    assert [table.count("\n") for table in tables] == [2 + 5 + 1, 2 + 11 + 1]
    title = figure.layout.title
    assert title.text.endswith("fooled, lower is better")
    room = figure.layout.width or 672
    for axis in figure.select_xaxes():  # wide enough for intervals and at least two ticks
        low, high = axis.range
        assert (axis.domain[1] - axis.domain[0]) * (room - figure.layout.margin.l) > 90
        assert math.floor(high / axis.dtick) - math.ceil(low / axis.dtick) >= 1


def test_the_figure_of_several_tests_names_movement(question_set):
    rows = views.runs.question_set_rows(question_set.store)
    sets = [
        views.runs.question_set(question_set.store, row.case_key)
        for row in rows
        if row.dataset == "demo"
    ]
    columns = [
        column
        for each in sets
        for column in views.leaderboard.leaderboard(each, (), "micro", "kind", "demo:softmax")
    ]
    models = ranked_models(columns)
    scorecard = Scorecard(columns, dict(zip(models, models, strict=True)), styles(models))
    narrow, left_out = paper.fitted_scorecard(scorecard, "column")
    assert narrow is scorecard and not left_out
    layout = narrow.figure(paper.WIDTHS["column"]).layout
    assert {note.font.size for note in layout.annotations} == {layout.yaxis.tickfont.size}
    assert layout.yaxis.tickfont.size >= 6.5 / 72 * 96 and layout.height <= 9 * 96
    row = (
        (layout.height - layout.margin.t - layout.margin.b)
        * (layout.yaxis.domain[1] - layout.yaxis.domain[0])
        / len(models)
    )
    assert row > layout.yaxis.tickfont.size  # no name is on another one
    assert scorecard.heads()[0] == "Drawn scenes, LGIP: Wrong word"
    latex = scorecard.text("latex")
    assert r"\multicolumn{2}{c}{Drawn scenes, LGIP}" in latex and "–" in latex
    assert (
        latex.count("Drawn scenes, LGIP") == 1 and r"\label{tab:vlprobe-scorecard-3-sets-" in latex
    )
    title = scorecard.figure().layout.title.text  # each panel names its question set
    assert title == "<b>3 question sets</b>: fooled or movement, lower is better"
    assert (
        scorecard.caption().count(
            "fool a model, or (columns of that name) mean movement, with 95 % intervals."
        )
        == 1
    )
    based = replace(scorecard, baseline="demo:softmax")
    html = based.html(lambda *_: "", lambda *_: "", lambda _: "")
    differences = re.findall(r"<small>([^<]?\d+\.\d)</small>", html)
    assert {text[0] for text in differences} == {"+", "−"}


def test_the_view_all_tests_is_offered_only_for_more_than_one_test(monkeypatch, question_set):
    drawn = [
        row.case_key
        for row in views.runs.question_set_rows(question_set.store)
        if row.dataset == "demo"
    ]
    monkeypatch.delenv(shipped.SETTING, raising=False)

    def labels(sets: list[str]) -> list[str]:
        query = {"sets": "|".join(sets), "by": "edit"}
        at = open_page(monkeypatch, question_set.store, "compare", **query)
        assert not at.exception
        return re.findall(r"by=kind[^>]*>([^<]*)", bodies(at))

    assert labels([question_set.key]) == []
    assert {*labels([question_set.key, drawn[0]])} == {"One column per test"}
    at = open_page(monkeypatch, question_set.store, "compare", set=question_set.key)
    key = drawn[0]
    # Another picker, because a closed one would send its former selection
    other = open_page(monkeypatch, question_set.store, "compare", set=key, by="kind")
    assert not {each.key for each in at.multiselect} & {each.key for each in other.multiselect}
    # One press leads from all tests of the drawn scenes back to the other question set
    (sets,) = [each for each in other.selectbox if str(each.key).startswith("dataset_of_")]
    sets.set_value(question_set.key).run()
    assert not other.exception and "CLIP_TROHN-Text is fooled least." in bodies(other)


def test_the_heading_of_a_lab_page_counts_a_case_fooled_in_one_of_two_orders_half(
    monkeypatch, question_set, columns
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    at = open_page(monkeypatch, question_set.store, "pairs", set=question_set.key, model=GPT)
    share = f"{100 * columns[0].cells[GPT].estimate.value:.1f} %"
    (title,) = at.title
    assert share == "7.8 %" and f"is fooled by a wrong caption, {share} of 7,512" in title.value
    assert title.value.endswith(" in one (counted as half)")


def test_breakdown_sorts_types_worst_first_and_counts_halves_separately(
    monkeypatch, question_set, columns
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    at = open_page(monkeypatch, question_set.store, "breakdown", set=question_set.key, model=GPT)
    (title,) = at.title
    assert title.value == "GPT-4V is fooled most often by swapped things"
    links = [link.proto.label for link in at.get("page_link") if "½" in link.proto.label]
    assert links[0] == "Swapped things: **19 + 45 × ½ of 246**"
    assert "Added attribute: **16 + 82 × ½ of 692**" in links
    shares = {each.subtype: each.cells[GPT].estimate.value for each in columns if each.subtype}
    titles = [value_label(name) for name in sorted(shares, key=shares.__getitem__, reverse=True)]
    assert [label.partition(":")[0] for label in links] == titles


def test_the_counts_below_the_differences_add_up_to_the_chart(monkeypatch, question_set, columns):
    """Check that cases that fool GPT-4V in one order, which count half in the chart, have separate counts below it."""
    monkeypatch.delenv(shipped.SETTING, raising=False)
    pair = {"model": GPT, "with": TROHN, "other": TROHN, "type": "swap_att", "tab": "differences"}
    at = open_page(monkeypatch, question_set.store, "compare", set=question_set.key, **pair)
    text = " ".join(re.sub("<[^>]+>", "", bodies(at)).split())
    n_base = int(re.search(r"(\d+) fooled GPT-4V, not CLIP_TROHN-Text", text)[1])
    n_model = int(re.search(r"(\d+) fooled CLIP_TROHN-Text, not", text)[1])
    share, n_asked, n_twice, n_once = re.search(
        r"([\d.]+) % of (\d+) cases \((\d+) \+ (\d+) × ½\): a case that fools GPT-4V in one order",
        text,
    ).groups()
    n_twice, n_once = int(n_twice), int(n_once)
    assert (n_base, n_model) == (80, 89) and n_twice + n_once == n_base
    total_twice, total_once, total_model, shown = re.search(
        r"GPT-4V is fooled by (\d+) \+ (\d+) × ½ of 666 wrong captions and CLIP_TROHN-Text by (\d+): "
        r"a difference of \+([\d.]+) points",
        text,
    ).groups()
    n_both = int(total_model) - n_model
    assert f"{n_both} fool both models" in text
    assert int(total_twice) - n_twice + int(total_once) - n_once == n_both
    shared = (
        f"Of the {n_both} that fool both, {int(total_once) - n_once} fool GPT-4V in only one order."
    )
    assert shared in text
    (column,) = [column for column in columns if column.subtype == "swap_att"]
    assert share == f"{100 * (n_twice + n_once / 2) / column.n_cases:.1f}"
    # Explore has the same numbers for the same cases
    pair = {"model": GPT, "other": TROHN, "bucket": "only_first", "type": "swap_att"}
    at = open_page(monkeypatch, question_set.store, "explore", set=question_set.key, **pair)
    assert f"{share} % of {n_asked} cases ({n_twice} + {n_once} × ½): a case" in wall(at)["note"]
    assert (
        f"Swapped attributes :gray[{share}\u00a0% of {n_asked}]"
        in at.button_group(key="facet_subtype").options
    )
    points = (int(total_model) - int(total_twice) - int(total_once) / 2) / column.n_cases
    assert points == pytest.approx(column.cells[TROHN].difference)
    assert f"{100 * points:.1f}" == shown
    assert "= equal scores, or fooled in one of two orders (GPT-4V)." in text


def test_each_exported_difference_follows_from_the_numbers_of_its_row(monkeypatch, question_set):
    menus = {}
    draw = lambda key, *given, **named: menus.update({key: named})  # noqa: E731
    monkeypatch.delenv(shipped.SETTING, raising=False)
    monkeypatch.setattr("vlprobe.dashboard.chart.draw_menu", draw)
    open_page(monkeypatch, question_set.store, "compare", set=question_set.key, tab="differences")
    menu = menus["forest"]
    rows = menu["table"]().dropna(subset=["n_cases"])
    assert {"published:GPT-4V"} == {*rows.loc[rows["model_halves"] > 0, "model"]}
    weights = rows["only_model"] - rows["model_halves"] / 2
    weights -= rows["only_base"] - rows["base_halves"] / 2
    assert (weights / rows["n_cases"]).tolist() == pytest.approx(rows["difference"].tolist())
    assert "base_halves" in menu["notes"]["table"]
    # The figure has no row of published totals, so its caption says so
    left_out = "The figure leaves out the published totals of 42 other models."
    assert left_out in menu["caption"] and menu["notes"]["column"] == left_out
    line = "Swapped attributes | GPT-4V | 9.9 % (66) | 18.6 % (124) | -8.7 (-11.6 to -5.7)"
    assert line in menu["text"]("markdown") and f"{(66 - 124) / 666:.3f}" == "-0.087"
    assert "In parentheses: the number of cases." in menu["text"]("latex")


def test_differences_opens_on_a_type_that_needs_the_picture_and_names_what_another_does_better(
    monkeypatch, question_set
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    query = {"set": question_set.key, "tab": "differences"}
    at = open_page(monkeypatch, question_set.store, "compare", **query)
    (heading,) = re.findall("<h1>(.*?)</h1>", bodies(at))
    assert heading.startswith("CLIP_TROHN-Text is fooled less often than GPT-4V")
    assert heading.endswith("GPT-4V does better on “Swapped attributes”.")
    pickers = [at.selectbox(key=key).value for key in ("row_type", "row_model")]
    assert pickers == ["swap_att", GPT]
    press = next(button for button in at.button if button.label == "Leave them out")
    at = press.click().run()
    assert "Added" not in str(figure_of(at, "forest")) and not at.exception
    back = next(button for button in at.button if button.label == "Show all types")
    assert "Added object" in str(figure_of(back.click().run(), "forest"))


def test_halves_are_explained_also_where_cases_were_left_out(monkeypatch, question_set):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    whole = case_links.share_text
    monkeypatch.setattr(case_links, "share_text", lambda *given: whole(*given[:2], False))
    query = {"set": question_set.key, "tab": "differences", "model": GPT, "with": TROHN}
    at = open_page(monkeypatch, question_set.store, "compare", **query, type="swap_att")
    (line,) = re.findall(r">([^<]*): a case that fools GPT-4V in one order only", bodies(at))
    assert re.fullmatch(r"\(\d+ \+ \d+ × ½\)", line)


@pytest.mark.full
def test_a_report_opens_with_the_models_row_and_finding_of_differences(
    monkeypatch, question_set, files
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    others = [model for model in question_set.ordered_models if model not in (GPT, TROHN)]
    query = {"model": GPT, "with": "|".join([TROHN, *others]), "other": TROHN}
    query |= {"type": "add_obj", "tab": "differences"}
    at = open_page(monkeypatch, question_set.store, "compare", set=question_set.key, **query)
    (heading,) = re.findall("<h1[^>]*>(.*?)</h1>", bodies(at))
    chosen = files["Download as a report"].keywords
    kind, compared, row = (chosen[name] for name in ("kind", "compared", "row"))
    assert (kind, row) == ("foil", ("add_obj", TROHN))
    assert compared == (GPT, TROHN, *others)
    limits = Limits(1, n_baselines=1, compared=compared, row=row)
    subject = read_subject(question_set, Shelf(question_set.store.root, False), limits)
    values, _ = compare_values(subject, kind)
    (contest,) = values["contests"]
    assert contest["models"] == [subject.keys[model] for model in compared] == values["models"]
    assert contest["heading"] == heading.replace("&nbsp;", "\N{NO-BREAK SPACE}")
    assert contest["notes"][0].startswith("Two rows can be solved without the picture")
    rival, number = contest["first"].split(":")
    assert (rival, values["titles"][int(number)]) == (subject.keys[TROHN], "an added object")
    assert values["columns"][f"m0>{contest['first']}"][::2] == [254, 185]  # 185 in one order only


@pytest.mark.full
def test_a_report_from_the_scorecard_has_the_models_shown_the_best_first_and_its_task(
    monkeypatch, question_set, files
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    query = {"set": question_set.key, "model": GPT, "tab": "scorecard"}
    at = open_page(monkeypatch, question_set.store, "compare", **query)
    assert "The report has all" not in bodies(at)
    make = files["Download as a report"]
    compared = make.keywords["compared"]
    assert compared[:2] == (GPT, TROHN) and {*compared} == {*question_set.models}
    text = make()
    (intro,) = re.findall(r'<section class="numbers">.*?(A picture has .*?)</p>', text, re.DOTALL)
    assert intro.endswith("A model has to choose the true caption.")  # with no direction
    shown = "|".join(question_set.ordered_models[:2])
    open_page(monkeypatch, question_set.store, "compare", **query, shown=shown)
    compared = files["Download as a report"].keywords["compared"]
    assert {*compared} == {*question_set.ordered_models[:2]}


@pytest.mark.full
def test_a_report_from_the_scorecard_has_all_question_sets_of_the_page(
    monkeypatch, question_set, files
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    rows = views.runs.question_set_rows(question_set.store)
    keys = {row.probe: row.case_key for row in rows if row.dataset.startswith("demo")}
    sets = "|".join((keys["prsm"], keys["visla"]))
    at = open_page(monkeypatch, question_set.store, "compare", set=keys["prsm"], sets=sets)
    assert "The report has all 2 question sets." in bodies(at)
    text = files["Download as a report"]()
    assert [entry["key"] for entry in report_values(text)["index"]["sets"]] == [
        key[:8] for key in sets.split("|")
    ]
    numbers = text[text.index('<section class="numbers">') :]
    assert "vp-scorecard" in numbers.partition("<h1>Bundled")[0]  # both question sets in one table
    for title in ("Drawn scenes · Rephrased search (PRSM)", "Paraphrase or lookalike (VISLA)"):
        assert re.search(rf"<h1>[^<]*{re.escape(title)}", numbers)


def test_the_exported_forest_has_one_legend_line_per_model_and_the_page_has_none(question_set):
    kind, looks = (
        question_set.presentation.kind("foil"),
        styles(views.runs.models(question_set.store)),
    )
    for models in (question_set.models[:2], question_set.models):
        tests = views.paired_tests.compare_models(question_set, models, "foil")
        layout = forest_figure(tests, kind, looks, {}).layout
        assert layout.margin.b >= max(72, 20 * (len(models) + 1))
        assert layout.height > layout.margin.b + layout.margin.t
        on_page = without_legend(forest_figure(tests, kind, looks, {})).layout
        assert on_page.showlegend is False
        assert layout.height - on_page.height == layout.margin.b - on_page.margin.b > 50


def test_the_titles_of_a_forest_fit_left_of_it_with_their_whole_number(question_set):
    rows = views.runs.question_set_rows(question_set.store)
    (key,) = [row.case_key for row in rows if row.dataset == "demo-pairs"]
    pairs = views.runs.question_set(question_set.store, key)
    kind = views.runs.choose_kind(pairs, "")
    tests = views.paired_tests.compare_models(pairs, pairs.models[:2], kind)
    looks = styles(pairs.models)
    figure = forest_figure(tests, pairs.presentation.kind(kind), looks, {})
    titles = [text.partition("</b><br>")[2] for text in figure.layout.yaxis.ticktext]
    assert titles[0] == "1,500 near-identical<br>pairs"


def test_an_exported_forest_fits_a_page_and_every_interval_has_caps(question_set):
    kind, looks = (
        question_set.presentation.kind("foil"),
        styles(views.runs.models(question_set.store)),
    )
    models = question_set.models
    tests = views.paired_tests.compare_models(question_set, models, "foil")
    shown = forest_figure(tests, kind, looks, {})
    printed = paper.print_style(forest_figure(tests, kind, looks, {}), "text")
    assert shown.layout.height > printed.layout.height
    assert 7 * 96 < printed.layout.height <= 9 * 96  # no space is left empty
    narrow = paper.print_style(forest_figure(tests, kind, looks, {}), "column")
    assert narrow.layout.height <= 9 * 96 and narrow.layout.font.size >= paper.LEAST_LETTERS
    ends = {(row.low, row.high) for row in tests.rows if only_uncorrected(row)}
    capped = [trace for trace in printed.data if trace.mode == "lines+markers"]
    assert {trace.marker.symbol for trace in capped} == {"line-ns"}
    drawn = {pair for trace in capped for pair in zip(trace.x[::3], trace.x[1::3], strict=True)}
    assert {(round(a / 100, 9), round(b / 100, 9)) for a, b in drawn} == {
        (round(a, 9), round(b, 9)) for a, b in ends
    }
    # In a column of text, most dashes are behind the mark: only the shade tells the two sorts of intervals apart
    assert all(trace.opacity == 0.5 for trace in narrow.data if trace.mode == "lines+markers")
    solid = [trace for trace in printed.data if trace.error_x.array is not None]
    assert all(trace.opacity is None for trace in solid)
    assert all(trace.error_x.width for trace in solid)
    n_rows = sum(len(trace.error_x.array) for trace in solid) + len(drawn)
    assert n_rows == len(tests.rows) == 32


def test_a_tie_in_the_table_of_rows_has_its_detectable_difference(
    question_set,
):
    tests = views.paired_tests.compare_models(question_set, (GPT, TROHN), "foil")
    table = rows_table(
        tests,
        question_set.presentation.kind("foil"),
        {model: model for model in question_set.models},
    )
    tied = [row.detectable for row in tests.rows if row.verdict == "tied"]
    powers = re.findall(r"<td>tied \(80 % power: (\d+\.\d) points\)</td>", table)
    assert [float(power) for power in powers] == [round(100 * value, 1) for value in tied] != []


def test_a_tie_with_too_few_pictures_for_any_difference_has_a_note(question_set):
    tests = views.paired_tests.compare_models(question_set, (GPT, TROHN), "foil")
    few = replace(tests.rows[0], verdict="tied", detectable=math.inf)
    table = rows_table(
        replace(tests, rows=(few,)),
        question_set.presentation.kind("foil"),
        {model: model for model in question_set.models},
    )
    assert "<td>tied (too few pictures to detect any difference)</td>" in table
    assert "Difference (points)" in table and "fewer than 5 pictures" not in table
    unknown = replace(few, low=math.nan, high=math.nan)
    table = rows_table(
        replace(tests, rows=(unknown,)),
        question_set.presentation.kind("foil"),
        {GPT: "", TROHN: ""},
    )
    assert ", fewer than 5 pictures</td>" in table


def test_a_latex_cell_without_an_interval_has_the_reason_below_its_value(columns):
    few = {
        model: replace(cell, estimate=replace(cell.estimate, low=math.nan, high=math.nan))
        for model, cell in columns[0].cells.items()
    }
    latex = card([replace(columns[0], cells=few)]).text("latex")
    assert latex.count("-, fewer than 5 pictures") == len(few)


def test_a_table_without_links_has_counts_and_notes_but_no_hint_of_a_link(columns):
    cells = columns[0].cells
    noted = {**cells, TROHN: replace(cells[TROHN], note=FAILED)}
    html = card([replace(columns[0], cells=noted)]).html()
    assert '<span class="vp-count" title=' in html and ": Explore" not in html
    (row,) = [each for each in html.split("<tr") if f"<small> {FAILED}</small>" in each]
    assert TROHN in row


def test_exported_tables_name_the_test_the_baseline_the_halves_and_the_sources(
    monkeypatch, question_set
):
    menus = {}
    draw = lambda key, *given, **named: menus.update({key: (given, named)})  # noqa: E731
    monkeypatch.delenv(shipped.SETTING, raising=False)
    monkeypatch.setattr(export, "draw_menu", draw)
    monkeypatch.setattr("vlprobe.dashboard.chart.draw_menu", draw)
    query = {"set": question_set.key, "model": GPT}
    open_page(monkeypatch, question_set.store, "compare", **query, tab="differences")
    open_page(monkeypatch, question_set.store, "compare", **query)
    rows, scores = menus["forest"][1]["text"], menus["scorecard"][0][3]
    for how in ("latex", "markdown"):
        for text in (rows(how), scores(how)):
            assert "Differences from GPT-4V" in text and "95" in text and "Holm" in text
            assert "Hsieh et al., SugarCrepe" in text and "MIT license" in text
            assert "https://github.com/RAIVNLab/sugar-crepe" in text.replace("\\", "")
            assert "GPT-4V saw the captions in both orders; a case" in text
        assert "paired permutation test by picture" in rows(how)
        assert "Two columns can be solved without the picture" in scores(how)
        assert "“Fewer words” counts captions of equal length as wrong." in scores(how)
    for latex in (rows("latex"), scores("latex")):
        (caption,) = re.findall(r"\\caption{(.*)}", latex)
        assert len(caption.split()) < 65 and "http" not in caption
        entries = latex.partition("% @misc{hsieh-sugarcrepe,")[2]
        assert "%   eprint = {2306.14610}" in entries
        assert "%   author = {Cheng-Yu Hsieh and Jieyu Zhang and Zixian Ma and" in entries
        assert "%   title = {{SugarCrepe: Fixing Hackable Benchmarks" in entries
        assert "%   howpublished = {\\url{https://github.com/RAIVNLab/sugar-crepe/" in entries
        assert "%   note = {MIT license. Published answers: GPT-4V}," in entries


@pytest.mark.parametrize("width", paper.WIDTHS)
def test_a_scorecard_figure_has_the_first_columns_that_fit_with_readable_text(columns, width):
    whole = card(columns)
    assert paper.fitted_scorecard(whole, width) == (whole, "")
    names = {f"{n}": f"Model {n}" for n in range(40)}
    many = [
        replace(column, cells=dict.fromkeys(names, next(iter(column.cells.values()))))
        for column in columns
    ]
    looks = dict.fromkeys(names, next(iter(whole.looks.values())))
    crowded = Scorecard(many, names, looks)
    fitted, left_out = paper.fitted_scorecard(crowded, width)
    n = len(fitted.columns)
    assert 1 < n < 8 and fitted.columns == many[:n]
    assert f"“{crowded.heads()[n]}”" in left_out and f"“{crowded.heads()[n - 1]}”" not in left_out
    layout = fitted.figure(paper.WIDTHS[width]).layout
    assert layout.yaxis.tickfont.size >= 6.5 / 72 * 96 and layout.height <= 9 * 96


def test_a_caption_has_the_winners_and_titles_of_the_page_also_if_the_figure_leaves_out_columns(
    question_set, columns, valse
):
    keys = [case_key_of(question_set.store, probe, "demo") for probe in ("lgip", "rococo")]
    drawn = [
        column
        for key in keys
        for column in leaderboard(views.runs.question_set(question_set.store, key), by="edit")
    ]
    whole = card(drawn)
    heading = whole.finding()[0]
    assert heading == (
        "demo:eqsim is clearly best against a wrong word and an altered caption. "
        "demo:scvc is clearly best against a mixed picture."
    )
    assert whole.caption().startswith(heading)
    narrow = replace(whole, columns=drawn[:9], every=drawn)  # without mixed pictures
    assert narrow.caption().startswith(heading.partition(". ")[0] + ". Share")
    assert narrow.heads()[-1].endswith("Altered caption")  # not "All"
    assert any("Wrong number (a wrong word)" in head for head in whole.heads())
    assert not any("stays) (" in head for head in whole.heads())
    both = card([*columns, *valse]).caption()
    assert both.startswith(f"SugarCrepe: {TROHN} is fooled least.") and " VALSE: " in both


def test_a_trade_off_without_values_is_not_an_empty_figure(question_set):
    with pytest.raises(InvalidInput, match="No model has values for both metrics"):
        paper.printed_figure(question_set, "trade-off", "text")


def test_a_figure_for_print_does_not_change_the_figure_of_the_page(question_set):
    figure = go.Figure().add_scatter(x=[1], y=[1], name="short", meta="a longer name for print")
    printed = paper.print_style(figure)
    assert printed.data[0].name == "a longer name for print" and figure.data[0].name == "short"


def test_a_difference_without_an_interval_has_no_bounds_in_the_table(question_set):
    tests = views.paired_tests.compare_models(question_set, (GPT, TROHN), "foil")
    first, *others = tests.rows
    few = replace(tests, rows=(replace(first, difference=0.1, low=math.nan, high=math.nan),))
    names, kind = {GPT: "GPT", TROHN: "TROHN"}, question_set.presentation.kind("foil")
    assert in_columns(few, kind, names)["Difference"].tolist() == ["+10.0"]
    assert in_columns(tests, kind, names)["Difference"].str.contains(" to ").all() and others
    assert signed(math.nan, "rate") == "-"


def test_exports_count_the_cases_and_pictures_of_the_types_and_warn_of_solved_ones(
    monkeypatch, question_set, columns
):
    menus = {}

    def keep(key, figure=None, table=None, caption="", text=None, *, runs=(), papers=(), **_):
        menus[key] = caption + source_line(runs), text, [*papers]

    monkeypatch.delenv(shipped.SETTING, raising=False)
    monkeypatch.setattr(export, "draw_menu", keep)
    monkeypatch.setattr(chart, "draw_menu", keep)
    path = question_set.cases.path
    table = question_set.store.fetch_table("SELECT subtype, cluster FROM read_parquet(?)", [[path]])
    assert "Two rows can be solved" in paper.printed_figure(question_set, "compare", "text")[1]
    for start, number in (("add_obj", "One"), ("add", ""), ("none", "Two")):
        left_out = [each.name for each in columns if each.subtype.startswith(start)]
        counted = table.loc[~table["subtype"].str.startswith(start)]
        size = f"n = {len(counted):,} cases, {counted['cluster'].nunique():,} pictures"
        query = {"set": question_set.key, "without": left_out, "model": GPT}
        tabs = {"scorecard": ("scorecard", "columns"), "differences": ("forest", "rows")}
        for tab, (key, noun) in tabs.items():
            at = open_page(monkeypatch, question_set.store, "compare", tab=tab, **query)
            caption, text, papers = menus.pop(key)
            assert papers == ["mieb"] * (tab == "differences" and not left_out)  # totals are shown
            nouns = noun if number == "Two" else noun[:-1]
            if tab == "scorecard" and start == "add":
                assert "Left out: Added attribute and Added object." in caption + text("latex")
            for shown in (caption, text("markdown"), text("latex")):
                assert size in shown
                assert (f"{number} {nouns} can be solved" in shown) is bool(number)
            on_page = " ".join(each.value for each in at.markdown)
            assert (f"{number} {nouns} can be solved" in on_page) is bool(number)
            assert ("The report covers all types" in bodies(at)) is bool(left_out)


def test_the_figure_of_the_scorecard_can_be_exported(monkeypatch, question_set, columns):
    menus = []
    monkeypatch.delenv(shipped.SETTING, raising=False)
    monkeypatch.setattr(export, "draw_menu", lambda *given, **_: menus.append(given))
    at = open_page(monkeypatch, question_set.store, "compare", set=question_set.key, model=GPT)
    ((_, figure, _, caption, _),) = menus
    assert not at.exception and "CLIP_TROHN-Text is fooled least." in caption
    printed, facts = paper.printed_figure(question_set, "scorecard", "text")
    baseline = "Dashed line and bold name: GPT-4V, the baseline. "  # only on the page
    before, note, _ = caption.partition("Two columns can be solved without the picture")
    assert facts.startswith(before.replace(baseline, "")) and baseline in caption
    assert note and note in facts
    figures = (
        (printed, leaderboard(question_set, by="edit")),
        (paper.print_style(figure()), columns),
    )
    for drawn, columns in figures:
        marks = {tuple(trace.customdata[0]): trace for trace in drawn.data if trace.customdata}
        assert len(marks) == len(columns) * len(columns[0].cells)
        for column in columns:
            for model, cell in column.cells.items():
                mark, row = marks[model, column.kind, column.subtype], cell.estimate
                low, high = row.value - row.low, row.high - row.value
                assert (mark.x[0], mark.error_x.arrayminus[0], mark.error_x.array[0]) == (
                    pytest.approx((row.value, low, high))
                )
        notes = [note.text for note in drawn.layout.annotations]
        counts = [note.rpartition("<br>")[2] for note in notes if "cases" in note]
        assert counts == [f"{column.n_cases:,} cases" for column in columns]
        values = sorted(re.sub("</?b>|\u2007", "", note) for note in notes if "cases" not in note)
        cells = [cell for column in columns for cell in column.cells.values()]
        shown = [f"{100 * cell.estimate.value:.1f}<sup>{cell.group}</sup>" for cell in cells]
        assert values == sorted(shown)
        for place, column in enumerate(columns, 1):
            axis = drawn.layout[f"xaxis{place if place > 1 else ''}"]
            ends = [(row.low, row.high) for row in (c.estimate for c in column.cells.values())]
            least, most = min(low for low, _ in ends), max(high for _, high in ends)
            width = axis.range[1] - axis.range[0]
            assert axis.range[0] < least < most < axis.range[1] and axis.showticklabels is None
            assert most - least > 0.85 * width  # the intervals fill the panel
            panel = (axis.domain[1] - axis.domain[0]) * (672 - 2 * 60)
            assert panel * min(high - low for low, high in ends) / width > 6  # pixels between marks
        assert "<b>SugarCrepe, True caption or foil</b>: fooled" in drawn.layout.title.text
        assert drawn.layout.height <= 9 * 96
    lines = [trace for trace in figure().data if trace.mode == "lines"]  # above the grid
    assert [line.x[0] for line in lines] == [c.cells[GPT].estimate.value for c in columns]
    assert {line.line.dash for line in lines} == {"3px,2px"}  # no long gaps
    assert not [trace for trace in printed.data if trace.mode == "lines"]
    # Each line of the grid has its number
    assert {axis.ticklabeloverflow for axis in figure().select_xaxes()} == {"allow"}
    assert "<b>GPT-4V</b>" in figure().layout.yaxis.ticktext


@pytest.mark.full  # more marks than any current result
def test_letters_and_titles_of_the_printed_scorecard_fit_for_30_models_and_two_sets(columns):
    names = [f"organization/a-model-with-a-long-name-{number}" for number in range(30)]
    cells = list(columns[0].cells.values())
    many = [
        replace(column, cells={name: cells[i % 5] for i, name in enumerate(names)})
        for column in columns
    ]
    looks = dict.fromkeys(names, styles(names)[names[0]])
    other = [
        replace(column, question_set=replace(column.question_set, key="other"))
        for column in columns
    ]
    shown = list(columns[0].cells)
    two = Scorecard([*columns, *other], dict(zip(shown, shown, strict=True)), styles(shown))
    for scorecard in (Scorecard(many, {name: name for name in names}, looks), two):
        figure = paper.fitted_scorecard(scorecard, "text")[0].figure()
        layout = figure.layout
        assert layout.height <= 9 * 96
        plot = layout.height - layout.margin.t - layout.margin.b
        low, high = layout.yaxis.domain
        row = plot * (high - low) / len(scorecard.rows)
        titles = [note for note in layout.annotations if "cases" in note.text]
        letters = [note.font.size for note in layout.annotations if note not in titles]
        assert max(*letters, layout.yaxis.tickfont.size) <= row
        size = titles[0].font.size
        gap = plot * (low - layout[f"yaxis{1 + next_row(figure)}"].domain[1])
        assert gap >= 1.2 * size * max(note.text.count("<br>") + 1 for note in titles)
        left, _ = layout.xaxis.domain
        panel = (672 - layout.margin.l - layout.margin.r) * (layout.xaxis2.domain[0] - left)
        widest = max(
            len(line) for note in titles for line in re.sub("</?b>", "", note.text).split("<br>")
        )
        assert panel >= 0.6 * size * widest


def next_row(figure) -> int:
    """Return the number of panels in the first row."""
    axes = [figure.layout[name] for name in figure.layout if name.startswith("yaxis")]
    return sum(axis.domain == figure.layout.yaxis.domain for axis in axes)


def test_a_model_renamed_later_has_its_new_name_in_the_exported_figure(
    monkeypatch, question_set, tmp_path
):
    roots = tmp_path / "cache", shipped.PUBLISHED_FOLDER, shipped.FOLDER
    store = StoreAboveShipped(*roots)
    menus = []
    monkeypatch.delenv(shipped.SETTING, raising=False)
    monkeypatch.setattr(export, "draw_menu", lambda *given, **_: menus.append(given))
    ranked = []
    monkeypatch.setattr(paper.views.paired_tests, "rank_models", lambda *_: ranked.append(1))
    open_page(monkeypatch, store, "compare", set=question_set.key)
    display_names.rename(store, TROHN, "Our champion")
    open_page(monkeypatch, store, "compare", set=question_set.key)
    (_, _, _, before, _), (_, figure, _, after, _) = menus
    assert "Our champion" not in before and "Our champion is fooled least." in after
    assert "Our champion" in [trace.name for trace in figure().data] and not ranked


def test_one_model_is_a_row_without_a_comparison(monkeypatch, tiny, store):
    execute(Request((CONSTANT,), tiny, "lgip", examine=False), store)
    at = open_page(monkeypatch, store, "compare")
    assert not at.exception and "There is no second model to compare." in bodies(at)
    assert "vp-scorecard" in bodies(at)


def test_latex_and_markdown_have_the_table_on_the_page_and_csv_one_row_for_each_cell(columns):
    shown = (GPT, TROHN)
    columns = [replace(each, cells={name: each.cells[name] for name in shown}) for each in columns]
    for is_right in (False, True):
        scorecard = card(columns, is_right=is_right, sort=1)
        head, _, counts, *rows, rule, _, caption = scorecard.text("markdown").splitlines()
        assert counts.startswith("| Cases | 7,512 |") and "Fewer words (no picture)" in rule
        assert "Differences from GPT-4V are in points; tied: no clear difference." in (
            caption.replace("published:", "")
        )
        assert head.split(" | ")[1:3] == ["All", scorecard.title(columns[1])]
        assert [row.split(" | ")[0].strip("| ") for row in rows] == [f"{GPT} (baseline)", TROHN]
        value = columns[0].cells[GPT].estimate.value
        share = 1 - value if is_right else value
        assert rows[0].split(" | ")[1].startswith(f"{100 * share:.1f} % (")
        assert rf"{100 * share:.1f} \%" in scorecard.text("latex")
        latex = scorecard.text("latex")
        n_parts = 2  # of at most 5 columns
        assert (
            len(re.findall(r"\\\\(\[2pt\])?\n", latex)) == n_parts * (3 + 2 * len(shown))
            and "Bold: clearly best." in latex
        )
        bold = [
            column for column in columns if sum(cell.is_best for cell in column.cells.values()) == 1
        ]
        assert 1 < len(bold) < len(columns) and latex.count("textbf") == len(bold)
        assert "".join(rows).count("**") == 2 * len(bold)
        table = scorecard.table()
        assert len(table) == (len(shown) + 1) * len(columns)
        assert {"model", "model_name", "dataset", "dataset_name"} <= set(table)
        printed = [cell.split(" %")[0] for cell in rule.split(" | ")[1:]]
        of_rule = table.loc[table["model"] == RULE_NAME, "value"]
        assert [f"{100 * value:.1f}" for value in of_rule] == printed
        (of_base,) = table.loc[(table["model"] == GPT) & (table["subtype"] == ""), "value"]
        assert of_base == pytest.approx(share)
        assert set(table["better"]) == {"up" if is_right else "down"}
        assert set(table["metric"]) == {"rejected" if is_right else "preferred"}
        assert ("n_right" in table) is is_right and ("n_fooled" in table) is not is_right
        assert ".0," not in scorecard.table().loc[:, ["n_items", "n_cases"]].to_csv()


@pytest.mark.parametrize("text_columns", ["onecolumn", "twocolumn"])
def test_latex_files_of_both_tabs_fit_a_paper_as_they_are(
    monkeypatch, question_set, columns, tmp_path, text_columns
):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    latex = shutil.which("pdflatex")
    if latex is None:
        pytest.skip("needs pdflatex")
    tests = views.paired_tests.compare_models(question_set, (GPT, TROHN), "foil")
    kind = question_set.presentation.kind("foil")
    tables = card(columns).text("latex") + rows_text(tests, question_set, kind, {}, "latex")
    assert tables.count(r"\begin{table*}") == 2  # across both columns of text
    ranks = formatted_table(leaderboard(question_set), {}, "latex")
    for command in (("show", GPT), ("show", GPT, "--by", "subtype"), ("compare", GPT, TROHN)):
        ranks += call(tmp_path, *command, "--format", "latex").stdout
    assert r"\begin{table}" in ranks  # in one column of text
    assert "{\\footnotesize (6.0–7.3), $-$1.2}" in tables  # interval and difference
    packages = r"\usepackage{booktabs}\usepackage{adjustbox}"
    body = (
        r"\ref{tab:vlprobe-scorecard-sugarcrepe-593a} \ref{tab:vlprobe-differences-sugarcrepe-593a}"
    )
    body += tables + ranks
    whole = rf"\documentclass[{text_columns}]{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "a.tex").write_text(whole, encoding="utf-8")
    for _ in range(2):  # labels are known in the second run
        command = [latex, "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for problem in ("undefined", "Float too large", r"Overfull \hbox"):
        assert problem not in done.stdout


def test_relabeled_runs_keep_the_correction_for_all_models(question_set):
    """Check `compare KEY1 KEY2`, which labels two runs of one model; a label adds or removes no test."""
    plain = views.paired_tests.compare_models(question_set, [GPT, TROHN], "foil")
    renamed = {GPT: f"{GPT} (one)", TROHN: f"{TROHN} (two)"}
    runs = tuple(replace(run, model=renamed.get(run.model, run.model)) for run in question_set.runs)
    labels = list(renamed.values())
    labelled = views.paired_tests.compare_models(replace(question_set, runs=runs), labels, "foil")
    numbers = [(row.subtype, row.p_holm, row.n_tests, row.verdict) for row in plain.rows]
    assert [(row.subtype, row.p_holm, row.n_tests, row.verdict) for row in labelled.rows] == numbers
    (run,) = [run for run in question_set.runs if run.model == GPT]
    two = replace(question_set, runs=(replace(run, model="A (one)"), replace(run, model="A (two)")))
    whole = views.paired_tests._all_models(two)
    assert len({each.model for each in whole.runs}) == len(whole.runs) == len(question_set.runs) + 1
    assert GPT not in [each.model for each in whole.runs]


def test_another_choice_of_types_tests_only_all_cases_again(monkeypatch, question_set, columns):
    questions = replace(question_set, store=question_set.store.snapshot())
    tests, tested = views.paired_tests._test_rows, []
    leaderboard(questions, by="edit", baseline=GPT)
    monkeypatch.setattr(
        *(views.paired_tests, "_test_rows"),
        lambda keys: tested.extend(subtype for _, subtype, _ in keys) or tests(keys),
    )
    leaderboard(questions, by="edit", baseline=GPT, left_out=[columns[-1].name])
    assert set(tested) == {""}  # types cost half of the CPU


def test_differences_opens_without_the_scorecard_s_tests_of_all_pairs(monkeypatch, question_set):
    monkeypatch.delenv(shipped.SETTING, raising=False)
    for name in ("leaderboard", "rank_by_type"):  # on VALSE they take 19 s of CPU
        monkeypatch.setattr(views.leaderboard, name, lambda *_, **__: pytest.fail("all pairs"))
    query = {"set": question_set.key, "tab": "differences"}
    at = open_page(monkeypatch, question_set.store, "compare", **query)
    assert not at.exception and figure_of(at, "forest")
    assert any("Two rows can be solved without" in each.value for each in at.markdown)
