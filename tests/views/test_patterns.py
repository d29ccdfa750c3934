"""Planted patterns are found and no others; the count of a chip is that of its filter."""

import csv
import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from PIL import Image

from tests.conftest import question_set_of
from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.views import pattern_groups, patterns
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import CaseTable

MODEL = "control:random"
PICTURES = 48


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return an LGIP run on forty-eight pictures of dogs or cars in some color, with three captions each."""
    folder = tmp_path_factory.mktemp("counted")
    numbers, colors, things = ("two", "three", "four"), ("red", "blue"), ("dogs", "cars")
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["image", "caption", "half"])
        looks = itertools.islice(
            itertools.cycle(itertools.product(numbers, colors, things)), PICTURES
        )
        for number, (count, color, thing) in enumerate(looks):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
            for caption in (
                f"{count.capitalize()} {color} {thing} on a field.",
                f"There are {count} {color} {thing}.",
                f"A photo of {count} {thing} that are {color}.",
            ):
                writer.writerow([f"{number}.png", caption, "left" if number < 24 else "right"])
    store = Store(folder / "cache")
    options = {"kinds": ["flip", "paraphrase"], "k_same": 1}
    dataset = f"csv:{folder / 'captions.csv'}"
    execute(Request((MODEL,), dataset, "lgip", options, examine=False), store)
    return store


@pytest.fixture(scope="module")
def question_set(counted: Store) -> QuestionSet:
    return question_set_of(counted)


@pytest.fixture(scope="module")
def rows(counted: Store, question_set: QuestionSet) -> pd.DataFrame:
    """Return the flips, with the pair of each in lower case."""
    table = pd.read_parquet(counted.root / "cases" / question_set.key / "cases.parquet")
    pairs = [
        f"{source}>{target}".lower()
        for source, target in zip(table["source"], table["target"], strict=True)
    ]
    return table.assign(pair=pairs)


def set_margins(monkeypatch: pytest.MonkeyPatch, margins: np.ndarray) -> None:
    """Set the margins of every run."""
    monkeypatch.setattr(views.tables.AnswerTable, "margins", property(lambda table: margins))


def draw_margins(
    rows: pd.DataFrame, rate: float, seed: int, pair: str = "", more: float = 0
) -> np.ndarray:
    """Return margins by which lies fool the model at one rate, and those of one pair at another; the lies of a
    picture and a pair fool it together in half of the pictures.
    """
    rng = np.random.default_rng(seed)
    cells = rows["item"] + rows["pair"]
    of_cell = dict(zip(dict.fromkeys(cells), rng.random(len(cells)), strict=False))
    together = {item: rng.random() < 0.5 for item in dict.fromkeys(rows["item"])}
    drawn = np.where(rows["item"].map(together), cells.map(of_cell), rng.random(len(rows)))  # pyright: ignore
    rates = np.where(rows["pair"] == pair, more, rate)
    return np.where(drawn < rates, -0.1, 0.1).astype(np.float32)


def test_a_planted_pattern_is_found_with_its_numbers(
    counted: Store, question_set: QuestionSet, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
):
    flip_rows = rows[rows["kind"] == "flip"]
    counts = Counter(flip_rows["pair"])
    pair, n_asked = counts.most_common(1)[0]
    counts += Counter(flip_rows["subtype"])
    margins = draw_margins(rows, 0.08, 3, pair, 0.8)
    margins[rows.index[rows["pair"] == pair][0]] = 0.0  # a tie counts as fooled
    set_margins(monkeypatch, margins)
    found = patterns.patterns(question_set, MODEL, "flip")
    flips = rows.assign(believed=margins <= 0)[rows["kind"] == "flip"]
    assert [pattern.key for pattern in found] == [pair]
    pattern = found[0]
    mine = flips[flips["pair"] == pair]
    base = flips.loc[flips["subtype"] == mine["subtype"].iloc[0], "believed"].mean()  # pyright: ignore
    groups = patterns.candidates(question_set, MODEL, "flip")
    assert len(groups) == sum(count >= patterns.ASKED for count in counts.values())
    assert (pattern.n_asked, pattern.n_believed) == (n_asked, mine["believed"].sum())
    assert pattern.n_pictures == mine["item"].nunique()  # pyright: ignore
    assert pattern.rate == pytest.approx(mine["believed"].mean())
    assert pattern.base == pytest.approx(base)
    assert pattern.excess == pytest.approx(mine["believed"].sum() - base * n_asked)
    assert pattern.lift == pytest.approx(pattern.rate / base)
    assert pattern.q <= patterns.Q


def test_the_numbers_of_every_group_are_those_of_a_loop(
    counted: Store, question_set: QuestionSet, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
):
    margins = draw_margins(rows, 0.3, 5)
    margins[::17] = np.nan
    set_margins(monkeypatch, margins)
    found = patterns.candidates(question_set, MODEL, "flip")
    table = rows.assign(margin=margins)[(rows["kind"] == "flip") & ~np.isnan(margins)]
    rates = (table["margin"] <= 0).groupby(table["subtype"]).mean()  # pyright: ignore
    agreeing, possible, groups = {}, {}, {}
    every = [
        *table.groupby("pair"),
        *((f"type:{subtype}", group) for subtype, group in table.groupby("subtype")),
    ]
    for pair, group in every:
        if len(group) < patterns.ASKED:
            continue
        cells = [(cell["margin"] <= 0).tolist() for _, cell in group.groupby("item")]
        rate_of = float((group["margin"] <= 0).mean())
        two = [pair_ for cell in cells for pair_ in itertools.permutations(cell, 2)]
        agreeing[pair] = sum(one * other - rate_of**2 for one, other in two)
        possible[pair] = len(two) * rate_of * (1 - rate_of)
        groups[pair] = cells
    shared = sum(agreeing.values()) / sum(possible.values())
    p_values = {}
    for pair, cells in groups.items():
        mine = max(shared, agreeing[pair] / possible[pair] if possible[pair] else 0, 0)
        n, k = sum(map(len, cells)), sum(map(sum, cells))
        size = n**2 / sum(len(cell) * (1 + (len(cell) - 1) * min(mine, 1)) for cell in cells)
        rate = (table["margin"] <= 0).mean()
        if not pair.startswith("type:"):
            rate = rates[table.loc[table["pair"] == pair, "subtype"].iloc[0]]  # pyright: ignore
        tail = scipy.stats.beta.cdf(rate, k / n * size, size - k / n * size + 1)
        p_values[pair] = tail if k > rate * n else 1.0  # pyright: ignore
    q_values = scipy.stats.false_discovery_control(list(p_values.values()))
    assert {one.key for one in found} == set(groups)
    for one in found:
        assert one.q == pytest.approx(q_values[list(p_values).index(one.key)], rel=1e-6)
    excess = [one.excess for one in found]
    assert excess == sorted(excess, reverse=True)


def test_words_of_a_type_that_often_fools_are_not_a_pattern(
    counted: Store, question_set: QuestionSet, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
):
    """Check that if all flips of numbers fool the model, no pair of numbers is a pattern."""
    margins = draw_margins(rows, 0.05, 21)
    margins[rows["subtype"] == "number"] = -0.1
    set_margins(monkeypatch, margins)
    numbers = set(rows.loc[rows["subtype"] == "number", "pair"])
    found = patterns.candidates(question_set, MODEL, "flip")
    of_numbers = [one for one in found if one.key in numbers]
    assert of_numbers and {(one.rate, one.base, one.lift) for one in of_numbers} == {(1, 1, 1)}
    clear = {one.key for one in patterns.patterns(question_set, MODEL, "flip")}
    assert not numbers & clear and "type:number" in clear


def test_without_a_planted_pattern_the_false_discovery_rate_is_as_promised(
    counted: Store, question_set: QuestionSet, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
):
    n_false = 0
    for seed in range(60):
        set_margins(monkeypatch, draw_margins(rows, 0.15, 1000 + seed))
        n_false += bool(patterns.patterns(question_set, MODEL, "flip"))
    assert n_false <= scipy.stats.binom.ppf(0.99, 60, patterns.Q)


def test_a_chip_counts_the_cases_that_it_opens(
    counted: Store, question_set: QuestionSet, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
):
    set_margins(monkeypatch, draw_margins(rows, 0.3, 7))
    chosen = Filter(MODEL)
    found = patterns.candidates(question_set, MODEL, "flip")
    assert found
    for one in found:
        opened = views.wall.wall(question_set, replace(chosen, pair=(one.key,)))
        assert opened[2] == one.n_believed
        counts = views.cases.outcomes(question_set, replace(chosen, pair=(one.key,)))
        assert (counts["fooled"], counts["all"]) == (one.n_believed, one.n_asked)
    two = replace(chosen, pair=tuple(one.key for one in found[:2]))  # two chips are "or"
    assert views.wall.wall(question_set, two)[2] == found[0].n_believed + found[1].n_believed


def test_rewordings_and_unknown_kinds_have_no_pattern(counted: Store, question_set: QuestionSet):
    for kind in ("paraphrase", "combined", "no such kind", ""):
        assert patterns.candidates(question_set, MODEL, kind) == ()


def test_a_model_that_is_never_or_always_fooled_has_no_pattern(
    counted: Store, question_set: QuestionSet, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
):
    for margin in (0.1, -0.1):
        set_margins(monkeypatch, np.full(len(rows), margin, dtype=np.float32))
        assert patterns.patterns(question_set, MODEL, "flip") == ()
        assert patterns.candidates(question_set, MODEL, "flip")
    set_margins(monkeypatch, np.full(len(rows), np.nan, dtype=np.float32))
    assert patterns.patterns(question_set, MODEL, "flip") == ()


def test_unknown_patterns_pass_no_case_and_too_many_are_refused(
    counted: Store, question_set: QuestionSet
):
    strange = ("never>asked", "", ">", "type:", "'; DROP TABLE cases; --", "<img onerror=x>")
    assert views.wall.wall(question_set, Filter(MODEL, pair=strange)) == ((), 0, 0)
    with pytest.raises(InvalidInput, match="at most 100"):
        views.wall.wall(question_set, Filter(MODEL, pair=tuple(map(str, range(101)))))


@pytest.mark.parametrize("probe", ["eqben", "visla", "rococo"])
def test_patterns_of_whole_captions_are_types_tags_and_words(every_probe: Store, probe: str):
    sets = views.runs.question_sets(every_probe)
    key = sets.loc[sets["probe"] == probe, "case_key"].iloc[0]
    question_set = views.runs.question_set(every_probe, key)
    table = pd.read_parquet(every_probe.root / "cases" / key / "cases.parquet")
    for kind in dict.fromkeys(table["kind"]):
        groups = pattern_groups.pattern_groups(CaseTable(every_probe, key), probe, kind)
        of_kind = table[table["kind"] == kind].set_index("case")
        assert len(groups.keys) and len(groups.cases) == len(groups.codes)
        assert (np.diff(groups.cases) >= 0).all()
        for case, code in zip(groups.cases.tolist(), groups.codes.tolist(), strict=True):
            row, name = of_kind.loc[case], groups.keys[code]
            if name.startswith("type:"):
                assert name == f"type:{row['subtype']}"
            elif name.startswith("tag:"):
                assert name.removeprefix("tag:") in [f"{tag}={text}" for tag, text in row["tags"]]
            else:
                source, target = name.split(">")
                assert target in " ".join(row["texts"]).lower()
                assert source in " ".join(row["texts"]).lower()
        for model in question_set.models:
            for one in patterns.candidates(question_set, model, kind):
                chip = Filter(model, kind, pair=(one.key,))
                assert views.wall.wall(question_set, chip)[2] == one.n_believed


def test_an_altered_caption_fools_the_model_if_it_ranks_first(every_probe: Store):
    sets = views.runs.question_sets(every_probe)
    key = sets.loc[sets["probe"] == "rococo", "case_key"].iloc[0]
    question_set = views.runs.question_set(every_probe, key)
    run = question_set.run(MODEL)
    groups = pattern_groups.pattern_groups(CaseTable(every_probe, key), "rococo", "i2t")
    scores = pd.read_parquet(every_probe.root / "runs" / run.key / "scores.parquet").set_index(
        "case"
    )
    answers = views.tables.AnswerTable(every_probe, run.key)
    counts, believed_rows = pattern_groups.answers(groups, answers)
    assert groups.captions is not None
    for place, (case, caption) in enumerate(
        zip(groups.cases.tolist(), groups.captions.tolist(), strict=True)
    ):
        row = scores.loc[case]
        is_lost = row["margin"] <= 0
        assert believed_rows[place] == (is_lost and row["top"] == caption)
        assert counts[place] == (not is_lost or row["top"] == caption)
    for name in ("type:danger", *groups.keys[:4]):
        members = pattern_groups.members(groups, answers, [name])
        rows_of = [
            case
            for case, code, counted in zip(groups.cases, groups.codes, counts, strict=True)
            if groups.keys[code] == name and counted
        ]
        assert members.tolist() == sorted(set(rows_of))


def test_a_single_change_is_named_only_if_one_run_of_words_differs():
    single = views.changes.single_change
    assert single("Four red dogs.", "Five red dogs.") == ("four", "five")
    assert single("A dog.", "An owl.") == ("dog", "owl")
    assert single("a b c d e f", "a v w x y f") is None
    assert single("same", "SAME") is None
    assert single("he is", "he is not") == ("", "not")
    assert single("", "") is None
