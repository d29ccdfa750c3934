"""Every view matches a plain loop over the Parquet files of a small real store."""

import dataclasses
import json
import re
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from tests.conftest import make_tiny
from vlprobe import views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

RANDOM = "control:random"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("views")
    store = Store(folder / "cache")
    execute(Request((RANDOM, "control:constant"), make_tiny(folder / "tiny"), "lgip"), store)
    execute(
        Request((RANDOM,), make_tiny(folder / "tiny"), "lgip", {"kinds": ["flip"]}, limit=3), store
    )
    return store


@pytest.fixture(scope="module")
def case_key(filled: Store) -> str:
    return views.runs.question_sets(filled).sort_values("n_items")["case_key"].iloc[-1]


@pytest.fixture(scope="module")
def rows(filled: Store, case_key: str) -> pd.DataFrame:
    """Return the questions and the random model's answers, joined without SQL."""
    run = views.runs.runs(filled).query("case_key == @case_key and model == @RANDOM")["key"].iloc[0]
    questions = pd.read_parquet(filled.root / "cases" / case_key / "cases.parquet")
    answers = pd.read_parquet(filled.root / "runs" / run / "scores.parquet")[
        ["case", "margin", "scores"]
    ]
    return questions.merge(answers, on="case")


def test_the_command_of_a_question_set_has_its_limit_and_options(filled: Store, case_key: str):
    (other,) = set(views.runs.question_sets(filled)["case_key"]) - {case_key}
    words = " ".join(
        views.runs.command(views.runs.question_set(filled, other), ("m",), "+available")
    )
    assert words.startswith("run --model m --dataset ") and "+available --probe lgip" in words
    assert "--option kinds=flip" in words and words.endswith(" --limit 3")
    assert "--limit" not in views.runs.command(views.runs.question_set(filled, case_key), ())


def list_cases(store: Store, key: str, chosen: views.filter.Filter, size: int = 7) -> list[int]:
    """Return all cases of all pages, in order."""
    total = views.cases.failures(views.runs.question_set(store, key), chosen, 1, size)[1]
    pages = range(1, -(-total // size) + 1)
    found = [
        case
        for page in pages
        for case in views.cases.failures(views.runs.question_set(store, key), chosen, page, size)[
            0
        ]["case"]
    ]
    assert len(found) == total
    return found


def test_the_label_of_a_question_set_has_its_options_in_words(tmp_path):
    """Check the label; the picker once showed "flips ['color', 'object'] · kinds ['paraphrase', 'flip']"."""
    store, dataset = Store(tmp_path / "cache"), make_tiny(tmp_path / "tiny")
    options = {"kinds": ["paraphrase", "flip"], "flips": ["color", "object"], "k_same": 3}
    execute(Request((RANDOM,), dataset, "lgip", options, examine=False), store)
    (row,) = views.runs.question_set_rows(store)
    assert row.label.endswith(" pictures · color, object · k_same 3 · kinds reworded, wrong")
    assert "a false word written on it" in views.runs._describe_options(
        {
            "probe": "pictures",
            "options": {"changes": ["fog", "false-word"]},
            "seed": 42,
        }
    )


def test_question_sets_list_their_options_and_models(filled: Store):
    sets = views.runs.question_sets(filled).set_index("n_items")
    assert sets.loc[6, "models"] == ["control:constant", RANDOM] or sets.loc[6, "models"] == [
        RANDOM,
        "control:constant",
    ]
    assert sets.loc[3, "models"] == [RANDOM]
    assert "kinds" in sets.loc[3, "label"]
    assert "kinds" not in sets.loc[6, "label"]


def test_an_empty_store_gives_empty_tables_with_their_columns(store: Store):
    assert views.runs.runs(store).empty
    assert "model" in views.runs.runs(store)
    assert list(views.runs.question_sets(store)["case_key"]) == []


def test_the_whole_estimates_are_means_of_the_margins(
    filled: Store, case_key: str, rows: pd.DataFrame
):
    table = (
        views.estimates.estimates(views.runs.question_set(filled, case_key), averaging="micro")
        .query("model == @RANDOM")
        .set_index("metric")
    )
    flips = rows[rows["kind"] == "flip"]
    assert table.loc["sensitivity_gap", "value"] == pytest.approx(
        flips["margin"].astype(float).mean(), abs=1e-7
    )
    assert table.loc["positive_rate", "value"] == pytest.approx((flips["margin"] > 0).mean())
    assert table.loc["positive_rate", "n_cases"] == len(flips)


def test_the_unit_spread_divides_cosines_and_keeps_rates(filled: Store, case_key: str):
    cosine = (
        views.estimates.estimates(views.runs.question_set(filled, case_key))
        .query("model == @RANDOM")
        .set_index("metric")
    )
    spread = (
        views.estimates.estimates(views.runs.question_set(filled, case_key), unit="spread")
        .query("model == @RANDOM")
        .set_index("metric")
    )
    spread_of = (
        views.runs.runs(filled)
        .query("model == @RANDOM and case_key == @case_key")["spread"]
        .iloc[0]
    )
    for column in ("value", "low", "high"):
        assert spread.loc["invariance_error", column] == pytest.approx(
            cosine.loc["invariance_error", column] / spread_of
        )
        assert spread.loc["positive_rate", column] == cosine.loc["positive_rate", column]
    with pytest.raises(InvalidInput, match="furlong"):
        views.estimates.estimates(views.runs.question_set(filled, case_key), unit="furlong")


def test_slices_of_a_metric_contain_all_its_cases(filled: Store, case_key: str):
    whole = (
        views.estimates.estimates(views.runs.question_set(filled, case_key))
        .query("model == @RANDOM")
        .set_index("metric")["n_cases"]
    )
    assert views.estimates.slices(views.runs.question_set(filled, case_key))[0] == "subtype"
    assert "tag:thing" in views.estimates.slices(views.runs.question_set(filled, case_key))
    for by in ("subtype", "rule", "tag:thing"):
        parts = (
            views.estimates.estimates(views.runs.question_set(filled, case_key), by)
            .query("model == @RANDOM")
            .groupby("metric")["n_cases"]
            .sum()
        )
        assert parts.to_dict() == whole.to_dict()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"outcome": "all"},
        {"outcome": "held"},
        {"kind": "combined", "outcome": "all"},
        {"kind": "paraphrase", "subtype": "simple", "outcome": "all"},
        {"subtype": "color", "outcome": "all"},
        {"tag": "thing=dog", "outcome": "all"},
        {"contains": "BENCH", "outcome": "all"},
        {"kind": "", "outcome": "fooled", "sort": "closest"},
        {"outcome": "all", "sort": "best"},
        {"outcome": "all", "sort": "dataset"},
    ],
    ids=str,
)
def test_a_filter_passes_the_cases_of_a_loop_in_the_same_order(
    filled: Store, case_key: str, rows: pd.DataFrame, given: dict
):
    chosen = views.filter.Filter.parse(RANDOM, **given)
    tag, _, value = given.get("tag", "").partition("=")
    outcome = {
        "fooled": lambda m: m <= 0,
        "held": lambda m: m > 0,
        "tied": lambda m: m == 0,
        "all": lambda m: True,
    }
    order = {
        "worst": lambda row: row.margin,
        "closest": lambda row: abs(row.margin),
        "best": lambda row: -row.margin,
        "dataset": lambda row: 0,
    }
    passing = [
        row
        for row in rows.itertuples()
        if (not chosen.kind or row.kind == chosen.kind)
        and (not chosen.subtype or row.subtype in chosen.subtype)
        and (not tag or dict(row.tags).get(tag) == value)
        and chosen.contains.lower() in ["", *re.findall(r"\w+", " ".join(row.texts).lower())]
        and outcome[chosen.outcome](row.margin)
    ]
    expected = sorted(passing, key=lambda row: (order[chosen.sort](row), row.case))
    assert expected
    assert list_cases(filled, case_key, chosen) == [row.case for row in expected]


def test_every_case_that_passes_has_the_rule_of_the_filter(filled: Store, case_key: str):
    for row in views.estimates.choices(views.runs.question_set(filled, case_key)).itertuples():
        chosen = views.filter.Filter(RANDOM, row.kind, row.subtype, row.rule, outcome="all")
        table, total = views.cases.failures(
            views.runs.question_set(filled, case_key), chosen, size=1000
        )
        assert total == row.n_cases
        assert set(table["rule"]) == {row.rule}


def test_outcomes_count_the_cases_of_the_lists(filled: Store, case_key: str):
    for model in (RANDOM, "control:constant"):
        chosen = views.filter.Filter(model, contains="bench")
        counts = views.cases.outcomes(views.runs.question_set(filled, case_key), chosen)
        for outcome, count in counts.items():
            assert (
                count
                == views.cases.failures(
                    views.runs.question_set(filled, case_key),
                    dataclasses.replace(chosen, outcome=outcome),
                )[1]
            )
        assert counts["fooled"] + counts["held"] == counts["all"]
    assert counts["tied"] == counts["fooled"] == counts["all"]


@pytest.mark.parametrize("text", ["'; DROP TABLE x; --", "%", "_", '"', "\\", "100 % sure\n"])
def test_special_characters_in_a_search_are_literal(filled: Store, case_key: str, text: str):
    for chosen in (
        views.filter.Filter(RANDOM, contains=text),
        views.filter.Filter.parse(RANDOM, tag=f"thing={text}"),
    ):
        assert views.cases.failures(views.runs.question_set(filled, case_key), chosen)[1] == 0


def test_a_caption_search_finds_whole_words_in_any_order_and_phrases_in_quotes():
    captions = [
        "a red dog on a blue bench",
        "a sheared, colored dog",
        "the blue-red dog, a Röd bench",
        "一只红色的狗",
        "男がコーヒーを飲む、犬が2匹いる",
    ]

    def found(words: str) -> set[str]:
        condition, values = views.filter.Filter(RANDOM, kind="", contains=words).where((), ())
        with duckdb.connect() as database:
            database.execute("CREATE TABLE cases AS SELECT [unnest(?)] AS texts", [captions])
            rows = database.execute(f"SELECT texts[1] FROM cases WHERE {condition}", values)
            return {text for (text,) in rows.fetchall()}

    first, second, third, fourth, fifth = captions
    assert found("") == set(captions)
    assert found("red") == found("RED") == {first, third}
    assert found("dog red") == {first, third}
    assert found("color") == set() and found("color*") == found("COL** dog") == {second}
    assert found('"on a bl*"') == {first} and found("*ed") == found("*") == found("re*d") == set()
    assert found('"red dog"') == {first, third} and found('"dog red"') == set()
    assert found("blue dog") == {first, third} and found('"blue bench" red') == {first}
    assert found("röd") == {third} and found("r") == set()
    assert found("colored") == {second} and found('"sheared, colored"') == {second}
    assert found("红色") == {fourth}
    assert found("コーヒー") == found("2匹") == found("飲む") == {fifth}


def test_unknown_names_are_refused_with_a_list_of_known_ones(filled: Store, case_key: str):
    with pytest.raises(NotFound, match="control:constant"):
        views.cases.failures(
            views.runs.question_set(filled, case_key), views.filter.Filter("control:constnt")
        )
    with pytest.raises(NotFound, match="fooled"):
        views.cases.failures(
            views.runs.question_set(filled, case_key),
            views.filter.Filter(RANDOM, outcome="fooledd"),
        )
    with pytest.raises(NotFound, match="question set"):
        views.estimates.estimates(views.runs.question_set(filled, "0" * 16))


def test_a_page_beyond_the_last_is_empty_and_has_the_total(filled: Store, case_key: str):
    table, total = views.cases.failures(
        views.runs.question_set(filled, case_key),
        views.filter.Filter(RANDOM, outcome="all"),
        page=999,
    )
    assert table.empty
    assert total > 0


def test_answers_are_those_of_every_model(filled: Store, case_key: str, rows: pd.DataFrame):
    table = views.rows.answers(views.runs.question_set(filled, case_key), [0, 3]).set_index(
        ["case", "model"]
    )
    assert len(table) == 4
    for case in (0, 3):
        row = rows.set_index("case").loc[case]
        assert table.loc[(case, RANDOM), "margin"] == row["margin"]
        assert list(table.loc[(case, RANDOM), "scores"]) == list(row["scores"])


def test_an_export_contains_every_score(filled: Store, tmp_path: Path):
    import duckdb

    n_written = views.export.export(filled, tmp_path / "out.duckdb")
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM scores").fetchall() == [(n_written,)]
    manifests = [json.loads(path.read_text()) for path in filled.root.glob("runs/*/manifest.json")]
    assert n_written == sum(manifest["n_cases"] for manifest in manifests)
    with pytest.raises(InvalidInput, match="exists"):
        views.export.export(filled, tmp_path / "out.duckdb")


def test_an_export_contains_a_probe_s_further_tables(every_probe: Store, tmp_path: Path):
    import duckdb

    views.export.export(every_probe, tmp_path / "out.duckdb")
    runs = [run for run in every_probe.runs() if run["run"]["probe"] == "rococo"]
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as connection:
        counted = connection.execute("SELECT run, count(*) FROM fronts GROUP BY run").fetchall()
    assert dict(counted) == {run["key"]: run["n_cases"] for run in runs} and len(runs) == 2


def test_an_unknown_answer_counts_neither_as_fooled_nor_as_not_fooled(tmp_path):
    cache = Store(tmp_path / "cache")
    manifest = execute(Request(("control:constant",), make_tiny(tmp_path / "tiny"), "prsm"), cache)[
        0
    ]
    margins = cache.run(manifest["key"]).table("scores").to_pandas()["margin"]
    assert margins.isna().any()
    counts = views.cases.outcomes(
        views.runs.question_set(cache, manifest["case_key"]),
        views.filter.Filter("control:constant", kind="ranking"),
    )
    assert (counts["held"], counts["fooled"]) == ((margins > 0).sum(), (margins <= 0).sum())
    assert counts["all"] == len(margins)


def test_a_failed_check_is_noted_only_on_runs_of_its_dataset(store: Store, tmp_path: Path):
    first, second = make_tiny(tmp_path / "first"), make_tiny(tmp_path / "second")
    captions = Path(second.removeprefix("csv:"))
    captions.write_text(captions.read_text().replace("bench", "chair"))
    execute(Request(("control:constant",), first, "lgip", {"kinds": ["flip"]}), store)
    execute(Request(("control:constant",), second, "lgip", {"kinds": ["flip"]}), store)
    notes = views.runs.runs(store).set_index("dataset")["note"]
    assert len(notes) == 2
    for dataset, note in notes.items():
        named = {path for path in (first, second) if f"failed on {path}." in note}
        assert named == {dataset}
