"""RoCOCO's tables: several draws per number, deletions, more words, and four released files in one table."""

import json
import math
import statistics

import pytest
from click.testing import CliRunner
from PIL import Image

from tests.conftest import make_tiny
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.render.charts import styles
from vlprobe.render.html import papers
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

RANDOM = "control:random"
POLICIES = [
    *("delete:random", "delete:high-ei", "delete:low-ei"),
    *(f"rand-voca:{count}" for count in (2, 3)),
]


def answers_of(store, manifest):
    answers = store.run(manifest["key"]).table("scores").to_pandas()
    clean, new = answers["rank_clean"] == 1, answers["rank"] == 1
    return answers.assign(clean=clean, new=new, rsms=answers["top_altered"])


def cells_of(store, manifest, number):
    question_set = views.runs.question_set(store, manifest["case_key"])
    columns = next(
        each.columns for each in views.published.TABLES["rococo"] if each.number == number
    )
    cells = views.papers.remade(question_set, number).query("source == 'run'")
    return question_set, [(columns[cell.column], cell) for cell in cells.itertuples()]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Return a store for all runs of this file."""
    return Store(tmp_path_factory.mktemp("rococo_tables") / "cache")


@pytest.fixture(scope="module")
def rococo_run(tmp_path_factory, store):
    """Return a run with deletions and more words, three draws each."""
    tiny = make_tiny(tmp_path_factory.mktemp("drawn") / "tiny")
    options = {
        "policies": POLICIES,
        "pictures": ["mix:0.7"],
        "caption_seeds": [1, 10, 100],
        "influence": [RANDOM],
    }
    return execute(Request((RANDOM,), tiny, "rococo", options, examine=False), store)[0]


def test_deletions_and_more_words_fill_their_tables_with_the_spread_over_draws(rococo_run, store):
    answers = answers_of(store, rococo_run)
    for number in (5, 6, 7):
        _, cells = cells_of(store, rococo_run, number)
        filled = 0
        for column, cell in cells:
            if column.breakdown == "all":
                continue
            rows = answers.loc[answers["subtype"] == column.slices[0]]
            if rows.empty:
                assert math.isnan(cell.value)
                assert (cell.n_seeds, math.isnan(cell.sd)) == (0, True)
                continue
            by_seed = []
            for rule in rows["rule"].unique():
                of_seed = rows.loc[rows["rule"] == rule]
                clean, new = of_seed["clean"].mean(), of_seed["new"].mean()
                by_seed.append(
                    {
                        "r1_new": new,
                        "rsms": of_seed["rsms"].mean(),
                        "drop_rate": (clean - new) / clean if clean else math.nan,
                    }[column.metric[4:]]
                )
            assert len(by_seed) == 3
            assert cell.value == pytest.approx(statistics.fmean(by_seed), nan_ok=True)
            if not math.isnan(by_seed[0]):
                filled += 1
                assert cell.n_seeds == 3
                assert cell.sd == pytest.approx(statistics.stdev(by_seed))
        assert filled


def test_the_command_prints_mean_and_spread_over_draws(rococo_run, store):
    key = rococo_run["key"]
    shown = CliRunner().invoke(
        main, ["--cache", str(store.root), "show", key, "--by", "seeds", "--format", "json"]
    )
    rows = {(row["metric"], row["slice"]): row for row in json.loads(shown.stdout)}
    assert {name for _, name in rows} == {*POLICIES, "mix:0.7"}
    answers = answers_of(store, rococo_run)
    of_policy = answers.loc[answers["subtype"] == "rand-voca:3"]
    values = of_policy.groupby("rule")["rsms"].mean().tolist()
    row = rows["i2t_rsms", "rand-voca:3"]
    assert row["n_seeds"] == 3
    assert (row["lowest"], row["highest"]) == pytest.approx((min(values), max(values)))
    assert row["mean"] == pytest.approx(statistics.fmean(values))
    assert row["sd"] == pytest.approx(statistics.stdev(values), abs=1e-9)


def test_one_draw_has_no_spread(tiny, store):
    options = {"policies": ["danger"], "pictures": ["mix:0.7"], "picture_seeds": [1]}
    manifest = execute(Request((RANDOM,), tiny, "rococo", options, examine=False), store)[0]
    question_set = views.runs.question_set(store, manifest["case_key"])
    assert views.papers.spread(question_set).empty
    cells = views.papers.remade(question_set, 3)
    assert set(cells["n_seeds"]) == {0}


def test_a_table_shows_the_number_of_draws_behind_a_mean(rococo_run, store):
    question_set, _ = cells_of(store, rococo_run, 6)
    table = next(each for each in views.published.TABLES["rococo"] if each.number == 6)
    cells = views.papers.remade(question_set, 6)
    html = papers.remade(cells, table, question_set.metrics, styles.styles(question_set.models))
    assert html.table.count(", 3 draws") == sum(cells["n_seeds"].gt(0) & ~cells["value"].isna())
    assert "followed by their standard deviation" in html.remark


@pytest.mark.full  # test_papers.py has one file at a time
def test_the_four_released_files_fill_different_columns_of_one_table(store, tmp_path):
    names = {
        "rand_voca": "Random word",
        "same_concept": "Same concept",
        "diff_concept": "Another concept",
        "danger": "Danger",
    }
    for number in range(6):
        Image.new("RGB", (32, 32), (40 * number, 9, 9)).save(
            tmp_path / f"COCO_val2014_{number:012}.jpg"
        )
    manifests = {}
    for file in (*names, "other_pictures"):
        rows = [
            {
                "image": f"val2014/COCO_val2014_{number:012}.jpg",
                "caption": [f"A dog number {number}, {v}" for v in range(5)]
                + [f"a {file} number {number}, {v}" for v in range(5)],
            }
            for number in range(6 if file != "other_pictures" else 5)
        ]
        (tmp_path / f"{file}.json").write_text(json.dumps(rows))
        request = Request(
            (RANDOM,),
            f"rococo:{tmp_path / file}.json@{tmp_path}",
            "rococo",
            {"pictures": []},
            examine=False,
        )
        manifests[file] = execute(request, store)[0]
    raw = Request(
        (RANDOM,),
        f"rococo:{tmp_path / 'danger'}.json@{tmp_path}",
        "rococo",
        {"pictures": [], "normalise": False},
        examine=False,
    )
    execute(raw, store)  # other options: not part of this table
    for file in names:
        _, cells = cells_of(store, manifests[file], 3)
        for column, cell in cells:
            if column.metric == "i2t_rsms":
                of_file = next(name for name, title in names.items() if title == column.group)
                expected = answers_of(store, manifests[of_file])["rsms"].mean()
                assert cell.value == pytest.approx(expected)
    _, cells = cells_of(store, manifests["other_pictures"], 3)
    assert all(math.isnan(cell.value) for column, cell in cells if column.breakdown != "all")
