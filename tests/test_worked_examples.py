"""The examples in docs/numbers: the printed arithmetic and vlprobe both give the printed value."""

import re
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from vlprobe.metrics import pairs, pairwise, power, ranking, series
from vlprobe.metrics.judge import Judge
from vlprobe.probes import halftruths, hardpositives, lgip, pictures, visla
from vlprobe.probes import series as series_probe
from vlprobe.scoring import retrieval
from vlprobe.scoring.gallery import Gallery
from vlprobe.types import Item, Picture, Probe, Series
from vlprobe.views import causes

NUMBERS = Path(__file__).resolve().parent.parent / "docs" / "numbers"
WORDS = {"abs": abs, "min": min, "max": max}  # functions that the arithmetic may use
METRIC = re.compile(r"`([\w.]+)`")


def rows_of(page: str, marker: str) -> list[list[str]]:
    """Return the cells of the table below a marker, without the header."""
    text = (NUMBERS / f"{page}.md").read_text(encoding="utf-8")
    table = text.partition(f"<!-- {marker} -->")[2].strip().partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.split("\n")][
        2:
    ]


def given_table(page: str, of: str = "") -> pd.DataFrame:
    """Return the input table of an example; columns of numbers are converted to numbers."""
    table = pd.DataFrame(rows_of(page, f"given: {of}" if of else "given"))
    for column in table:
        numbers = pd.to_numeric(table[column], errors="coerce")
        if numbers.notna().all():
            table[column] = numbers
    return table


def by_hand(page: str, of: str = "") -> list[tuple[str, str, str]]:
    """Return the name, arithmetic and value of each line of an example."""
    return [
        (name, arithmetic.strip("`"), value)
        for name, arithmetic, value in rows_of(page, f"by hand: {of}" if of else "by hand")
    ]


EXAMPLES = [
    ("lgip", ""),
    ("rococo", ""),
    *(("eqben", of) for of in ("", "foils", "orders", "choices")),
    ("visla", ""),
    ("prsm", ""),
    *(("series", of) for of in ("", "order")),
    ("pictures", ""),
    ("halftruths", ""),
    ("hardpositives", ""),
    ("power", ""),
    ("causes", ""),
]


@pytest.mark.parametrize(("page", "of"), EXAMPLES)
def test_the_printed_arithmetic_gives_the_printed_value(page: str, of: str):
    lines = by_hand(page, of)
    assert len(lines) >= 3
    for name, arithmetic, value in lines:
        decimals = len(value.partition(".")[2])
        exact = float(eval(arithmetic, {"__builtins__": WORDS}))
        assert exact == pytest.approx(float(value), abs=0.51 * 10**-decimals), (name, arithmetic)


def judged(probe: Probe, rows: pd.DataFrame) -> dict[str, float]:
    """Compute vlprobe's metrics of scored cases, by `metric` and `metric, averaging`."""
    codes = {"item_code": 0, "group_code": 0, "subtype": "", "rule": "", "margin": 0.0}
    rows = rows.assign(**{name: value for name, value in codes.items() if name not in rows})
    rows = probe.prepare(rows, probe.survey([rows]))
    judge = Judge(probe.metrics, int(rows["item_code"].max()) + 1, ())
    judge.add(rows)
    table = judge.estimates()
    whole = table[table["by"] == "all"]
    means = {f"{row.metric}, {row.averaging}": row.value for row in whole.itertuples()}
    return means | {row.metric: row.value for row in whole.itertuples()}


def compare(page: str, of: str, computed: dict[str, float]) -> None:
    """Check that vlprobe computes the value of each line of an example."""
    for name, _, value in by_hand(page, of):
        name = METRIC.sub(r"\1", name)
        decimals = len(value.partition(".")[2])
        assert computed[name] == pytest.approx(float(value), abs=0.51 * 10**-decimals), name


def test_lgip():
    table = given_table("lgip")
    table.columns = ["group_code", "kind", "subtype", "edit", "score_0", "score_1", "text_01"]
    rows = table.assign(margin=lgip._margins(table), erased=table["text_01"] == 1)
    strengths = dict(
        zip(
            ("color", "number", "first flip of object", "second flip of object"),
            pairwise.strength(
                *(rows.loc[rows["kind"] == "flip", c].to_numpy() for c in ("subtype", "text_01"))
            ),
            strict=True,
        )
    )
    named = {
        "strength of the flip of color": strengths["color"],
        "strength of the flip of number": strengths["number"],
        "strength of the first flip of object": strengths["first flip of object"],
        "strength of the second flip of object": strengths["second flip of object"],
    }
    compare("lgip", "", judged(lgip.PROBE, rows) | named)


def test_the_lgip_example_has_ties():
    table = given_table("lgip")
    assert list(table[table[4] == table[5]][3]) == [
        "Two red cats on a bench.",
        "There are dogs that rest outside.",
    ]


def test_rococo():
    from vlprobe.probes import rococo

    table = given_table("rococo")
    similarities = table.iloc[:, 1:].to_numpy(np.float32)
    n = len(similarities)
    ranks = retrieval.retrieve(
        similarities,
        np.arange(n),
        Gallery(np.eye(2 * n, dtype=np.float32)),
        np.tile(np.arange(n), 2),
        np.repeat([False, True], n),
    )
    names = ("rank_clean", "rank", "least_rank_clean", "least_rank", "top_altered", "top_tied")
    columns = {name: getattr(ranks, name) for name in names}
    rows = pd.DataFrame({"kind": "i2t", "item_code": range(n), "group_code": range(n)} | columns)
    compare("rococo", "", judged(rococo.PROBE, rows))
    assert columns["top_tied"].tolist() == [False, False, False, True]


def eqben_rows(of: str, columns: list[str]) -> pd.DataFrame:
    table = given_table("eqben", of)
    table.columns = columns
    codes = range(len(table))
    return table.assign(item_code=codes, group_code=codes)


def test_eqben():
    from vlprobe.probes import eqben

    names = [f"score_{n}" for n in range(4)]
    rows = eqben_rows("", ["pair", "subtype", *names]).assign(kind="pair")
    deviations = pairs.equivariance_deviation(rows)
    named = {
        f"deviation of the {order} pair": value
        for order, value in zip(("first", "second", "third"), deviations, strict=True)
    }
    compare("eqben", "", judged(eqben.PROBE, rows) | named)


def test_eqben_of_foils_and_of_orders():
    from vlprobe.probes import eqben

    foils = eqben_rows("foils", ["picture", "score_0", "score_1"]).assign(
        kind="foil", probability=True
    )
    foils["margin"] = foils["score_0"] - foils["score_1"]
    compare("eqben", "foils", judged(eqben.PROBE, foils))
    orders = eqben_rows("orders", ["pair", "order_12", "order_21"]).assign(
        kind="pair", **{f"score_{n}": 0.0 for n in range(4)}
    )
    compare("eqben", "orders", judged(eqben.PROBE, orders))
    choices = eqben_rows("choices", ["picture", "order_12", "order_21"])
    margins = choices[["order_12", "order_21"]].mean(axis=1) - 0.5
    choices = choices.assign(
        kind="foil",
        probability=False,
        margin=margins,
        score_0=margins,
        score_1=-margins,
        captions_are_weaker=False,
    )
    metrics = eqben.PROBE.metrics_of({}, n_orders=2)
    means = {
        metric.name: metric.value(choices).mean() for metric in metrics if "foil" in metric.kinds
    }
    compare("eqben", "choices", means)


def triplet_texts() -> list[list[str]]:
    """Return the three texts of each triplet in the example."""
    text = (NUMBERS / "visla.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d) \| ([A-Z].+) \| (.+) \| (.+) \|$", text, re.MULTILINE)
    return [list(row[1:]) for row in table]


def test_visla():
    scores = given_table("visla")
    columns = ["score_0", "score_1", "score_2", "text_01", "text_02", "text_12"]
    scores.columns = ["triplet", *columns]
    overlaps = {}
    for number, texts in enumerate(triplet_texts()):
        item = Item(str(number), None, tuple(reversed(texts[:2])), foils=(texts[2],))
        cases, dropped = visla.PROBE.cases(item, {"edits": ""}, 42)
        assert [case.texts for case in cases] == [tuple(texts)] and not dropped  # P1 is nearer to N
        words = [frozenset(visla.WORD.findall(text.lower())) for text in texts]
        for name, (left, right) in {"01": (0, 1), "02": (0, 2), "12": (1, 2)}.items():
            overlap = visla.triplets.jaccard(words[left], words[right])
            overlaps.setdefault(f"overlap_{name}", []).append(overlap)
    codes = {"item_code": range(len(scores)), "group_code": range(len(scores))}
    rows = [scores.assign(kind=kind, **overlaps, **codes) for kind in ("i2t", "t2t")]
    of_kinds = pd.concat(rows, ignore_index=True)
    order = ("first", "second")
    named = {
        f"shared words of the {order[number]}: P1, {text}": overlaps[f"overlap_{name}"][number]
        for number in range(2)
        for name, text in (("01", "P2"), ("02", "N"))
    }
    compare("visla", "", judged(visla.PROBE, of_kinds) | named)


def test_prsm():
    values = given_table("prsm").iloc[:, 1:].to_numpy(np.float32)
    rankings = ranking.ranked(values)
    measures = ranking.pair_measures(rankings)
    means = ranking.means(measures)
    overlaps = ranking.top_overlaps(rankings, 2)
    named = {"prsm_local_k, k = 2": overlaps.mean()}
    for number, (left, right) in enumerate([(1, 2), (1, 3), (2, 3)]):
        named[f"correlation of {left} and {right}"] = measures["global"][number]
        named[f"first 2 of {left} and {right}"] = overlaps[number]
    named |= {f"prsm_{name}": value for name, value in means.items()}
    compare("prsm", "", named)
    assert np.isnan([means["local_10"], means["local_100"], means["local_1000"]]).all()


def test_series_boundary():
    table = given_table("series")
    video = Series((Picture.from_name("f"),) * len(table), tuple(table[0]), boundary=0.3)
    scores = table[[1, 2]].to_numpy()
    answer = series_probe._boundary(video, scores)
    rows = pd.DataFrame([answer | {"kind": "boundary"}])
    fits = series.boundary_scores(scores)
    named = {
        "fit between 0 and .2": fits[0],
        "fit between .2 and .4, the truth": fits[video.boundary_index],
        "fit between .4 and .6, the best": fits.max(),
        "fit between .6 and .8": fits[3],
        "seconds off": answer["seconds_off"],
        "margin": answer["margin"],
    }
    compare("series", "", judged(series_probe.PROBE, rows) | named)


def test_series_order():
    table = given_table("series", "order")
    people = Series((Picture.from_name("p"),) * len(table), edit_order=(3, 2, 1, 0))
    answer = series_probe._order(people, table[[1, 2]].to_numpy())
    rows = pd.DataFrame([answer | {"kind": "order"}])
    named = {"the model's order before and after": answer["kept"]}
    compare("series", "order", judged(series_probe.PROBE, rows) | named)


def test_changed_pictures():
    table = given_table("pictures")
    scores = table[[1, 2]].to_numpy().reshape(1, 4)
    rows = pd.DataFrame(scores, columns=[f"score_{number}" for number in range(4)])
    margin = pictures._margins(rows)
    rows = rows.assign(kind="picture-change", margin=margin)
    compare("pictures", "", judged(pictures.PROBE, rows) | {"margin": margin[0]})


def test_half_truths():
    scores = given_table("halftruths")[[1, 2]].to_numpy().T
    rows = pd.DataFrame(scores, columns=["score_0", "score_1", "score_2"])
    rows = rows.assign(kind="half-truth", margin=halftruths._margins(rows))
    compare("halftruths", "", judged(halftruths.PROBE, rows))


def test_hard_positives():
    scores = given_table("hardpositives")[[1, 2, 3]].to_numpy().T
    rows = pd.DataFrame(scores, columns=["score_0", "score_1", "score_2"])
    rows = rows.assign(kind="hard-positive", margin=hardpositives._margins(rows))
    compare("hardpositives", "", judged(hardpositives.PROBE, rows))


def test_power():
    rows = [tuple(row) for row in given_table("power").to_numpy()]
    (n_items, low, high, *_), _ = rows
    error = power.standard_error(low, high)
    named = {"standard error": error}
    for n_items, _, _, n_tests, difference in rows:
        tests = "1 test" if n_tests == 1 else f"{n_tests:.0f} tests"
        named[f"detectable, {tests}"] = power.detectable(error, int(n_items), int(n_tests), n_items)
        named[f"pictures, {tests}"] = power.pictures_needed(
            difference, error, int(n_items), int(n_tests), n_items
        )
    compare("power", "", named)


def test_causes(monkeypatch):
    table = given_table("causes")
    n = len(table)
    cases = pd.DataFrame({"case": range(n), "kind": "pair", "images": [["a", "b"]] * n})
    cases["roles"] = [["original", "different"]] * n
    scores = cases[["case"]].assign(
        text_scores=[[x] for x in table[1]], picture_similarity=table[2], margin=table[3]
    )
    monkeypatch.setattr(causes, "FEWEST", n)
    with duckdb.connect() as connection:
        connection.register("cases", cases).register("scores", scores)
        query = causes.statement(scores.columns)
        found = connection.execute(f'{query} ORDER BY "case"', ["pair"]).df()
    named = found.loc[found["fooled"], "cause"].value_counts(normalize=True).to_dict()
    for name, column in (("captions", 1), ("pictures", 2)):
        named[f"limit of {name}"] = np.quantile(table[column], causes.QUARTILE)
    compare("causes", "", named)
    assert found["cause"].tolist() == ["both", "words", "picture", *["match"] * 5]
