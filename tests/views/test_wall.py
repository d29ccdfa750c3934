"""The wall groups the cases that pass a filter by picture, and matches a plain loop over the tables."""

import math
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.conftest import tiers
from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import case_card
from vlprobe.errors import StoredDamage
from vlprobe.storage.store import Store
from vlprobe.views.bodies import BODIES
from vlprobe.views.filter import Filter
from vlprobe.views.paired_outcomes import bucket
from vlprobe.views.records import CaseRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.wall import WallCard, first_of_each

MODELS = ("dealt:1", "dealt:2", "control:random")
column = "margin_of_model"


@pytest.fixture(scope="module")
def question_set(filled: Store, key: str) -> QuestionSet:
    return views.runs.question_set(filled, key)


def expected_cards(rows: pd.DataFrame, outcome: str, model: str) -> list[tuple[int, int]]:
    """Return by picture the worst case and the number of other cases, the worst picture first."""
    flips = rows[rows["kind"] == "flip"]
    passing = flips[(flips[model] <= 0) if outcome == "fooled" else (flips[model] > 0)]
    shown = []
    for _, of_item in passing.groupby("item"):
        worst = min(of_item.itertuples(), key=lambda row: (getattr(row, column), row.case))
        shown.append((getattr(worst, column), worst.case, len(of_item) - 1))
    return [(case, more) for _, case, more in sorted(shown)]


@pytest.mark.parametrize("outcome", ["fooled", "held"])
@pytest.mark.parametrize("model", MODELS[:2])
def test_a_wall_has_one_card_per_picture_with_its_worst_case(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame, outcome: str, model: str
):
    rows = rows.assign(**{column: rows[model]})
    expected = expected_cards(rows, outcome, model)
    chosen = Filter(model, outcome=outcome)
    shown: list[WallCard] = []
    for page in range(1, 99):
        cards, n_pictures, n_cases = views.wall.wall(question_set, chosen, page, 3)
        shown += cards
        if not cards:
            break
    assert [(card.case, card.more) for card in shown] == expected
    assert n_pictures == len(expected) == len({card.item for card in shown})
    assert n_cases == sum(more + 1 for _, more in expected)
    passing = views.wall.wall(question_set, chosen, size=999, grouped=False)[0]
    front_of = {card.item: card.case for card in shown}
    fronts = views.wall.fronts(question_set, chosen, rows["case"].tolist())
    assert fronts == {card.case: front_of[card.item] for card in passing}


@pytest.mark.parametrize("outcome", tiers(["all", "fooled"], ("all",)))
def test_a_caption_that_ranks_first_for_several_pictures_is_one_card(every_probe: Store, outcome):
    (row,) = (each for each in views.runs.question_set_rows(every_probe) if each.probe == "rococo")
    question_set = views.runs.question_set(every_probe, row.case_key)
    model = "control:random"  # the constant one prefers a single caption
    chosen = Filter(model, "i2t", outcome=outcome)
    scores = every_probe.files([question_set.run(model).key], "scores")[0]
    cases = every_probe.files([question_set.key], "cases")[0]
    table = duckdb.execute(
        f"SELECT \"case\", cases.item, margin, top FROM '{cases}' JOIN '{scores}' USING (\"case\") "
        f"WHERE cases.kind = 'i2t' AND (margin <= 0 OR {outcome == 'all'}) ORDER BY margin, \"case\""
    ).df()
    heads = table.drop_duplicates("item")  # the first case of each picture
    hubs = heads.groupby("top")["item"].agg(list)
    sizes = {top: table["item"].isin(items).sum() for top, items in hubs.items()}
    first = heads.drop_duplicates("top")[["case", "top"]].itertuples(index=False)
    expected = [(case, sizes[top] - 1, len(hubs[top])) for case, top in first]
    cards, n_groups, n_cases = views.wall.wall(question_set, chosen, 1, 500)
    assert [(card.case, card.more, card.n_pictures) for card in cards] == expected
    assert (n_groups, n_cases) == (len(hubs), len(table)) and n_groups < table["item"].nunique()
    hub = next(card for card in cards if card.n_pictures > 1)
    beside = views.wall.neighbors(question_set, chosen, hub.case)
    _, n_same = views.wall.same_group(question_set, chosen, hub.case)
    assert n_same == hub.more and beside.total_groups == n_groups
    described = case_card(hub, question_set.presentation.kind("i2t"))
    notes = json.wall_card(described, str)["notes"]
    assert f"first for {hub.n_pictures} pictures" in notes
    foreign = [card for card in cards if card.wrong_text not in card.texts]
    for each in foreign:  # their words were exchanged in a caption of another picture
        (line,) = json.wall_card(case_card(each, described.kind), str)["lines"]
        assert line[0] == ("from another picture: ", "quiet")
        assert "".join(text for text, _ in line[1:]) == each.wrong_text
    assert foreign


def test_a_flat_wall_is_the_list_of_failures(filled: Store, question_set: QuestionSet):
    chosen = Filter(MODELS[0])
    cards, _, n_cases = views.wall.wall(question_set, chosen, 1, 500, grouped=False)
    table, total = views.cases.failures(question_set, chosen, 1, 500)
    assert [card.case for card in cards] == table["case"].tolist()
    assert len(cards) == n_cases == total


def test_a_card_has_the_verdict_of_every_model_in_the_pages_order(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame
):
    cards, _, _ = views.wall.wall(question_set, Filter(MODELS[1]), 1, 20)
    by_case = rows.set_index("case")
    for card in cards:
        assert tuple(verdict.model for verdict in card.verdicts) == MODELS
        for verdict in card.verdicts:
            margin = float(by_case.loc[card.case, verdict.model])
            assert verdict.margin == margin
            assert verdict.verdict == ("held" if margin > 0 else "fooled" if margin < 0 else "tied")
        assert card.n_believed == sum(by_case.loc[card.case, list(MODELS)] <= 0)
        assert card.margin == by_case.loc[card.case, MODELS[1]]


def test_neighbors_lead_through_the_whole_wall(filled: Store, question_set: QuestionSet):
    chosen = Filter(MODELS[0])
    cards, n_pictures, _ = views.wall.wall(question_set, chosen, 1, 500)
    for place, card in enumerate(cards):
        beside = views.wall.neighbors(question_set, chosen, card.case)
        assert (beside.place, beside.total_groups) == (place + 1, n_pictures)
        assert beside.previous == (cards[place - 1].id if place else "")
        assert beside.next == (cards[place + 1].id if place + 1 < len(cards) else "")
        same_group, n_same = views.wall.same_group(question_set, chosen, card.case)
        assert len(same_group) == min(card.more, views.wall.SAME_GROUP)
        assert n_same == card.more
        assert {same.item for same in same_group} <= {card.item}
        assert card.case not in [same.case for same in same_group]
        for same in same_group[:1]:  # its picture's place, and its neighbors
            other = views.wall.neighbors(question_set, chosen, same.case)
            assert (other.place, other.next) == (beside.place, beside.next)
            others, _ = views.wall.same_group(question_set, chosen, same.case)
            assert card.case in [again.case for again in others]


def test_a_case_that_fails_the_filter_has_no_place(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame
):
    held = int(rows[(rows["kind"] == "flip") & (rows[MODELS[0]] > 0)]["case"].iloc[0])
    beside = views.wall.neighbors(question_set, Filter(MODELS[0]), held)
    assert (beside.place, beside.previous, beside.next) == (0, "", "")
    assert views.wall.same_group(question_set, Filter(MODELS[0]), held) == ((), 0)
    assert beside.total_groups > 0


def test_a_wall_without_cases_is_empty(filled: Store, question_set: QuestionSet):
    nothing = Filter(MODELS[0], contains="no caption says this")
    assert views.wall.wall(question_set, nothing) == ((), 0, 0)
    assert views.wall.neighbors(question_set, nothing, 0).total_groups == 0


def test_disagreements_are_the_cases_that_fool_only_one_of_two_models(
    filled: Store, question_set: QuestionSet, rows: pd.DataFrame
):
    first, second = MODELS[:2]
    flips = rows[rows["kind"] == "flip"]
    paired = Filter(first, other=second, sort="difference")
    for model, other, name in ((first, second, "only_first"), (second, first, "only_second")):
        side = bucket(paired, name)
        assert (side.model, side.other) == (model, other)
        cards, _, count = views.wall.wall(question_set, side, 1, 5, False)
        fooled = flips[(flips[model] <= 0) & (flips[other] > 0)]
        gap = (fooled[other] - fooled[model]).astype(np.float32)
        largest = fooled.assign(gap=gap).sort_values(["gap", "case"], ascending=[False, True])
        assert count == len(fooled)
        assert [card.case for card in cards] == largest["case"].tolist()[:5]
        assert all(card.margin <= 0 and len(card.verdicts) == 3 for card in cards)
    assert views.paired_outcomes.buckets(question_set, paired)["all"] == len(flips)


def test_the_first_case_of_each_group_matches_a_loop():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        codes = rng.integers(0, 7, n).astype(np.int32)
        keys = rng.integers(-2, 3, n).astype(np.float32)
        keys[rng.random(n) < 0.3] = np.nan
        heads, groups, sizes = first_of_each(codes, keys)
        firsts = {}
        for position, (code, sort_key) in enumerate(
            zip(codes.tolist(), keys.tolist(), strict=True)
        ):
            rank = (math.inf if math.isnan(sort_key) else sort_key, position)
            firsts[code] = min(firsts.get(code, rank), rank)
        assert heads.tolist() == sorted(position for _, position in firsts.values())
        assert codes[heads][groups].tolist() == codes.tolist()
        assert sizes.tolist() == [int(np.sum(codes == codes[head])) for head in heads]


def test_pictures_have_one_code_each(filled: Store, question_set: QuestionSet):
    codes = question_set.cases.picture_codes
    path = filled.files([question_set.key], "cases")[0]
    table = pd.read_parquet(path)
    names = [images[0] for images in table["images"]]
    pairs = set(zip(codes.tolist(), names, strict=True))
    assert len(pairs) == len(set(names)) == len(set(codes.tolist()))


def test_whole_captions_are_compared_word_by_word():
    changed = views.changes.changed_words
    assert changed("Two dogs run.", "Two cats run.") == ("dogs", "cats")
    assert changed("A dog runs.", "An owl runs.") == ("dog", "owl")
    assert changed("a dog", "the dog") == ("a", "the")
    assert changed("the same", "The same") == ("", "")
    assert changed("red bus by a tree", "blue bus by a lake") == ("red, tree", "blue, lake")
    assert changed("", "dog") == ("", "dog")
    assert len(changed("a " * 5000, "b " * 5000)[1]) < 1000


def test_a_row_has_the_two_texts_that_its_kind_compares():
    row = CaseRow(
        *(0, "id", "item", "t2t", "", "", "", "", (), ("near", "far", "wrong")),
        ("original", "same", "different"),
        {},
    )
    assert BODIES["triplet"].texts(row, "") == ("near", "wrong")
    searched = BODIES["caption_search"].texts(row, "wrong")
    assert searched[1] == "wrong" and searched[0] in ("near", "far")
    assert BODIES["caption_search"].texts(row, "of another picture") == (
        "near",
        "of another picture",
    )
    assert BODIES["picture_search"].texts(row, "{}") == ("near", "")
    shared = '[["a", "b"], ["a", "b"], ["c", "d"]]'
    assert BODIES["rankings"].texts(row, shared) == ("near", "wrong")


@pytest.mark.parametrize("probe", ["eqben", "lgip", "prsm", "rococo", "visla"])
def test_every_kind_of_every_probe_has_a_wall(every_probe: Store, probe: str):
    sets = views.runs.question_sets(every_probe)
    key = sets.loc[sets["probe"] == probe, "case_key"].iloc[0]
    question_set = views.runs.question_set(every_probe, key)
    table = pd.read_parquet(every_probe.root / "cases" / key / "cases.parquet").set_index("case")
    for kind in dict.fromkeys(table["kind"]):
        chosen = Filter("control:random", kind, outcome="all", sort="dataset")
        flat, _, n_cases = views.wall.wall(question_set, chosen, 1, 5000, False)
        of_kind = table[table["kind"] == kind]
        assert [card.case for card in flat] == of_kind.index.tolist() and len(flat) == n_cases
        groups: dict[tuple[str, ...], list[int]] = {}
        for card in flat:
            name = card.images if len(card.images) == 1 else ("item", card.item)
            groups.setdefault(name, []).append(card.case)
        if probe == "rococo" and kind.endswith("i2t"):  # one card per first candidate
            tops = {card.case: card.answer.columns["top"] for card in flat if card.answer}
            pictures, groups = groups, {}
            for numbers in pictures.values():
                groups.setdefault((tops[numbers[0]],), []).extend(numbers)
        grouped, n_pictures, _ = views.wall.wall(question_set, chosen, 1, 5000)
        assert [(card.case, card.more) for card in grouped] == [
            (cases[0], len(cases) - 1) for cases in groups.values()
        ]
        assert n_pictures == len(groups)
        for card in flat:
            check_texts(card, probe, of_kind.loc[card.case])


def check_texts(card: WallCard, probe: str, row: pd.Series) -> None:
    """Check the texts that a card compares, by probe."""
    assert card.true_text in row["texts"]
    if probe == "rococo" and card.kind == "t2i":
        assert card.wrong_text == "" and card.wrong_image and card.answer is not None
    elif probe == "prsm":
        assert card.wrong_text in row["texts"] and card.wrong_text != card.true_text
    elif probe == "rococo":
        assert card.answer is not None and card.wrong_text == card.answer.columns["top"]
        assert bool(card.target) == (card.wrong_text in row["texts"])
    else:
        assert card.answer is None and card.wrong_image == ""
        is_false = dict(zip(row["texts"], row["roles"], strict=True))[card.wrong_text]
        assert is_false == ("same" if card.kind == "paraphrase" else "different")
        assert card.source or card.target
        assert row["source"] in ("", card.source) and row["target"] in ("", card.target)


def test_answers_of_another_length_are_reported_as_damage(
    filled: Store, question_set: QuestionSet, monkeypatch: pytest.MonkeyPatch
):
    short = question_set.run(MODELS[1]).key
    true_margins = views.tables.AnswerTable(filled, short).margins
    monkeypatch.setattr(
        views.tables.AnswerTable,
        "margins",
        property(lambda table: true_margins[: 3 if table.key == short else None]),
    )
    with pytest.raises(StoredDamage, match="answers to 3 cases, fewer than its question set"):
        views.wall.wall(question_set, Filter(MODELS[0], outcome="all", sort="best"))


def test_cases_with_local_pictures_are_counted(filled: Store, question_set: QuestionSet):
    path = filled.files([question_set.key], "cases")[0]
    table = pd.read_parquet(path)
    flips = table[table["kind"] == "flip"]
    here = [all(Path(name).exists() for name in names) for names in flips["images"]]
    counted = views.rows.with_pictures(question_set, "flip")
    assert counted == (sum(here), len(flips)) and len(flips) > 0
