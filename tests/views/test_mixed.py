"""Searches that a mixed picture wins, against a loop that embeds every picture and mixture."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import mixing
from tests.conftest import case_key_of, question_set_of, tiers
from vlprobe import registry, views
from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix
from vlprobe.scoring import pictures
from vlprobe.storage import shipped
from vlprobe.storage.entry import Entry
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views.filter import Filter
from vlprobe.views.mixed import case as mixed
from vlprobe.views.mixed import searches as mixed_searches
from vlprobe.views.runs import QuestionSet

ONE = "hue:1"
STRENGTHS = ("mix:0.8", "mix:0.6", "patch:0.8")


def clear_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the views' cache."""
    monkeypatch.setattr(views.tables, "_cache", SingleFlightCache(1 << 20, views.tables._bytes))


@pytest.fixture(scope="module")
def question_set(mixed_store: Store) -> QuestionSet:
    return question_set_of(mixed_store)


@pytest.fixture(scope="module")
def searches(mixed_store: Store, question_set: QuestionSet) -> pd.DataFrame:
    """Return every search by every model, ranked by a plain loop over all candidates."""
    cases = mixed_store.cases(question_set.key).table("cases").to_pandas()
    cases = cases[cases["kind"] == "t2i"]
    items = registry.load_dataset(question_set.runs[0].dataset, mixed_store.root).items
    paths = {item.id: item.image.path for item in items if item.image}
    rows = []
    for name in mixing.MODELS:
        model = mixing.load(name)

        def vector(picture: Picture, model=model) -> np.ndarray:
            return model.encode_images(model.preprocess(pictures.open_picture(picture))[None])[0]

        clean = {item: vector(Picture(path)) for item, path in paths.items()}
        for rule, of_rule in cases.groupby("rule"):
            kind, lam, seed = str(rule).split(":")
            edits = mix.picture_edits(paths, kind, float(lam), int(seed.removeprefix("seed")))
            mixtures = {item: vector(Picture(paths[item], edits[item])) for item in paths}
            for row in of_rule.itertuples():
                text = model.encode_texts(model.tokenize([row.texts[0]]))[0]
                score, best = float(clean[row.item] @ text), {}
                for others in (clean, mixtures):
                    best[others is mixtures] = {
                        item: float(seen @ text)
                        for item, seen in others.items()
                        if others is mixtures or item != row.item
                    }
                beaten = all(score > other for other in best[False].values())
                own = best[True][row.item]
                whole = [*best[False].values(), *best[True].values(), score]
                rows.append(
                    {
                        "model": name,
                        "case": row.case,
                        "subtype": row.subtype,
                        "picture": row.item,
                        "found": beaten,
                        "lost": beaten and any(score <= other for other in best[True].values()),
                        "own": beaten and own == max(whole),
                        "margin": score - max(best[True].values()),
                        "first": _first(row.item, score, best),
                        "wins_pair": score > own,
                    }
                )
    return pd.DataFrame(rows)


def _first(item: str, score: float, best: dict[bool, dict[str, float]]) -> tuple[str, bool]:
    """Return the item ranked first among all pictures, and whether its mixture is; ties go to mixtures."""
    candidates = [(score, False, item)]
    candidates += [(other, mixed, name) for mixed in best for name, other in best[mixed].items()]
    _, is_mixed, name = max(candidates)
    return name, is_mixed


def of(searches: pd.DataFrame, model: str, subtype: str) -> pd.DataFrame:
    return searches[(searches["model"] == model) & (searches["subtype"] == subtype)]


@pytest.fixture(
    params=tiers(["stored", "stored of every third", "told by paths"], ("stored", "told by paths"))
)
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return runs with all, with part, and with none of the stored first candidates, as older versions left them."""
    files = Store.files

    def thinned(self: Store, keys: Sequence[str], table: str) -> list[str]:
        paths = files(self, keys, table)
        if table != "fronts":
            return paths
        for key, path in zip(keys, paths, strict=True):
            whole = pq.read_table(path).to_pylist()
            rows = [row if row["case"] % 3 else {"case": row["case"]} for row in whole]
            thin = pa.Table.from_pylist(rows, schema=pq.read_schema(path))
            pq.write_table(thin, self.root / f"thin-{key}.parquet")
        return [str(self.root / f"thin-{key}.parquet") for key in keys]

    if request.param == "stored of every third":
        monkeypatch.setattr(Store, "files", thinned)
    if request.param == "told by paths":
        has_table = Entry.has_table
        monkeypatch.setattr(
            Entry, "has_table", lambda self, name: name != "fronts" and has_table(self, name)
        )
    clear_cache(monkeypatch)


@pytest.mark.parametrize("subtype", STRENGTHS)
def test_found_and_lost_searches_are_counted_as_in_a_plain_loop(
    mixed_store: Store,
    question_set: QuestionSet,
    searches: pd.DataFrame,
    either: None,
    subtype: str,
):
    for model in mixing.MODELS:
        rows = of(searches, model, subtype)
        counts = mixed_searches.counts(question_set, model, subtype)
        assert counts.n_found == rows["found"].sum()
        assert (counts.n_lost, counts.n_lost_to_own) == (rows["lost"].sum(), rows["own"].sum())
    assert of(searches, ONE, subtype)["own"].any()


@pytest.mark.parametrize("model", mixing.MODELS)
def test_failures_name_the_first_picture_and_its_mixed_partner(
    mixed_store: Store, question_set: QuestionSet, searches: pd.DataFrame, model: str
):
    case_filter = Filter(model, "t2i", outcome="all", sort="dataset")
    table, total = views.cases.failure_table(question_set, case_filter, size=len(searches))
    rows = searches[searches["model"] == model]
    items = registry.load_dataset(question_set.runs[0].dataset, mixed_store.root).items
    paths = {item.id: str(item.image.path) for item in items if item.image}
    assert total == len(table) == len(rows) > 0
    for row, (item, is_mixed) in zip(
        table.itertuples(), rows.sort_values("case")["first"], strict=True
    ):
        partner = ""
        if is_mixed:
            seed = int(row.rule.rpartition(":seed")[2])
            partner = mix.partners(list(paths), seed)[item]
        assert row.first == " + ".join(filter(None, (item, partner)))
        assert row.first_image == paths[item]
        assert row.first_partner == (paths[partner] if partner else "")
    assert rows["first"].map(lambda first: first[1]).nunique() == 2


def test_blends_come_before_patches_and_the_mildest_strength_first(
    mixed_store: Store, question_set: QuestionSet
):
    assert mixed_searches.strengths(question_set) == STRENGTHS


@pytest.mark.parametrize("subtype", STRENGTHS)
def test_searches_that_fool_most_models_come_first_and_pictures_repeat_last(
    mixed_store: Store, question_set: QuestionSet, searches: pd.DataFrame, subtype: str
):
    numbers, n_fooled = mixed_searches.order(question_set, ONE, subtype)
    rows = of(searches, ONE, subtype).set_index("case")
    assert sorted(numbers) == sorted(rows.index[rows["own"]])
    fooled = searches[searches["own"] & ~searches["model"].str.startswith("control:")]
    expected = fooled.groupby("case").size()
    assert n_fooled.tolist() == [expected[number] for number in numbers]
    assert sorted(n_fooled, reverse=True) == n_fooled.tolist()
    table = pd.DataFrame({"picture": rows.loc[numbers, "picture"].tolist(), "fooled": n_fooled})
    seen = table.groupby(["fooled", "picture"]).cumcount()
    for n_models in set(n_fooled):
        assert seen[n_fooled == n_models].is_monotonic_increasing
        first = rows.loc[numbers[(n_fooled == n_models) & (seen == 0)], "margin"]
        assert first.round(6).is_monotonic_increasing


def test_controls_are_rated_if_run_without_others(mixed_store: Store, question_set: QuestionSet):
    runs = tuple(run for run in question_set.runs if run.model == "control:random")
    assert replace(question_set, runs=runs).rated_models == ("control:random",)
    assert question_set.rated_models == mixing.MODELS[:3]


@pytest.mark.parametrize("subtype", STRENGTHS)
def test_a_case_has_its_partner_its_mixture_and_the_ranks_of_every_model(
    mixed_store: Store, question_set: QuestionSet, subtype: str
):
    items = registry.load_dataset(question_set.runs[0].dataset, mixed_store.root).items
    paths = {item.id: item.image.path for item in items if item.image}
    for number in mixed_searches.order(question_set, ONE, subtype)[0][:3].tolist():
        case = mixed.mixed_case(question_set, number, ONE)
        kind, lam, seed = case.rule.split(":")
        edit = mix.picture_edits(paths, kind, float(lam), int(seed.removeprefix("seed")))[case.item]
        assert case.edit == edit and case.partner == str(edit.partner)
        assert Picture.from_name(case.mixture) == Picture(paths[case.item], edit)
        assert (case.n_pictures, case.n_mixtures) == (6, 6) and case.is_lost_to_own
        assert case.share == round(100 * float(lam))
        answers = views.rows.answers(question_set, [number]).set_index("model")
        assert [ranks.model for ranks in case.ranks] == list(mixing.MODELS)
        for ranks in case.ranks:
            answer = answers.loc[ranks.model]
            assert (ranks.clean, ranks.with_mixtures) == (answer["rank_clean"], answer["rank"])
        fronts = case.fronts
        assert fronts is not None and fronts.own_rank == 1
        first, second = fronts.with_mixtures[:2]
        assert (first.item, first.partner, first.is_mixture) == (case.item, case.partner_item, True)
        assert first.picture == case.right and first.partner_picture == case.partner
        assert fronts.own_score == first.score >= second.score
        assert fronts.clean[0].item == case.item and not fronts.clean[0].is_mixture
        assert len(fronts.clean) == 6


def test_a_search_for_a_caption_is_refused(mixed_store: Store, question_set: QuestionSet):
    cases = mixed_store.cases(question_set.key).table("cases").to_pandas()
    number = int(cases.loc[cases["kind"] == "i2t", "case"].iloc[0])
    with pytest.raises(InvalidInput, match="is not a search for a picture"):
        mixed.mixed_case(question_set, number, ONE)


def test_the_partner_in_an_older_run_is_recomputed_if_all_pictures_are_known(
    mixed_store: Store, question_set: QuestionSet, monkeypatch: pytest.MonkeyPatch
):
    number = int(mixed_searches.order(question_set, ONE, "mix:0.8")[0][0])
    case = mixed.mixed_case(question_set, number, ONE)
    monkeypatch.setattr(Entry, "has_table", lambda self, name: False)
    older = mixed.mixed_case(question_set, number, ONE)
    assert older.fronts is None
    assert (older.partner_item, older.edit) == (case.partner_item, case.edit)
    manifest = Entry.manifest
    monkeypatch.setattr(Entry, "manifest", lambda self: manifest(self) | {"n_items": 7})
    clear_cache(monkeypatch)
    unknown = mixed.mixed_case(question_set, number, ONE)
    assert (unknown.partner_item, unknown.partner, unknown.mixture) == ("", "", "")
    assert unknown.edit is None


def test_searches_without_stored_first_candidates_are_judged_by_their_mixture(
    mixed_store: Store, question_set: QuestionSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = mixed_searches.outcomes(question_set, ONE)
    shorter = Store(shutil.copytree(mixed_store.root, tmp_path / "cache"))
    path = Path(shorter.files([question_set.run(ONE).key], "fronts")[0])
    monkeypatch.setattr("vlprobe.storage.entry._verify_checksum", lambda *_given: None)
    pd.read_parquet(path).iloc[::2].to_parquet(path)
    partly = mixed_searches.outcomes(question_set, ONE)
    np.testing.assert_array_equal(partly.numbers, whole.numbers)
    np.testing.assert_array_equal(partly.is_own, whole.is_own)
    assert whole.is_own.any()


def test_the_stored_outcomes_of_a_search_at_other_strengths_are_returned(
    mixed_store: Store, question_set: QuestionSet, searches: pd.DataFrame, either: None
):
    order = mixed_searches.order(question_set, ONE, "mix:0.8")[0]
    cases = mixed_store.cases(question_set.key).table("cases", ["case", "id"]).to_pandas()
    ids = cases.set_index("case")["id"]
    for number in order[:4].tolist():
        case = mixed.mixed_case(question_set, number, ONE)
        wins = mixed.stored_wins(question_set, case, mixing.MODELS)
        sibling = int(ids.index[ids == ids[number].replace("mix:0.8", "mix:0.6")][0])
        for model in mixing.MODELS:
            rows = searches[searches["model"] == model].set_index("case")
            expected = {80: rows.loc[number, "wins_pair"], 60: rows.loc[sibling, "wins_pair"]}
            assert wins[model].items() <= expected.items()
            if case.fronts is not None and sibling % 3 and number % 3:
                assert wins[model] == expected
        assert wins[ONE][80] is False


def test_an_item_has_the_caption_of_its_first_search():
    store = Store(shipped.FOLDER)
    key = case_key_of(store, "rococo")
    table = store.cases(key).table("cases").to_pandas()
    searched = table[table["kind"] == "t2i"]
    expected = {item: rows["texts"].iloc[0][0] for item, rows in searched.groupby("item")}
    found = mixed.item_pictures(views.runs.question_set(store, key))
    assert expected
    assert {item: found[item].caption for item in expected} == expected
