"""The top five before and after training, against a loop over the stored rows of both runs."""

import json

from click.testing import CliRunner

from tests.conftest import call
from vlprobe import views
from vlprobe.case import html
from vlprobe.cli.main import main
from vlprobe.storage.store import Store

BEFORE, AFTER = "hue:1", "hue:2"


def rows_of(store: Store, question_set, model: str) -> list[list[str]]:
    key = question_set.run(model).key
    return store.run(key).table("fronts")["clean_items"].to_pylist()


def by_hand(store: Store, question_set) -> dict[str, tuple]:
    cases = store.cases(question_set.key).table("cases").to_pylist()
    lists = [rows_of(store, question_set, model) for model in (BEFORE, AFTER)]
    found = {}
    for case, first, second in zip(cases, *lists, strict=True):
        if case["kind"] == "t2i" and first[:5] != second[:5]:
            places = [
                (*items[:5], case["item"]).index(case["item"]) + 1
                if case["item"] in items[:5]
                else 6
                for items in (first, second)
            ]
            found[case["texts"][0]] = (case["item"], tuple(first[:5]), tuple(second[:5]), *places)
    return found


def question_set_of(store: Store):
    return views.runs.question_set(store, store.runs()[0]["case_key"])


def test_first_lists_are_the_stored_ones_and_the_largest_rise_comes_first(mixed_store: Store):
    question_set = question_set_of(mixed_store)
    expected = by_hand(mixed_store, question_set)
    lists = views.figures.first_lists(question_set, BEFORE, AFTER, 1000)
    assert (
        expected
        and {
            row.caption: (row.item, row.original, row.tuned, row.place_before, row.place_after)
            for row in lists
        }
        == expected
    )
    risen = [row.place_before - row.place_after for row in lists]
    assert risen == sorted(risen, reverse=True)
    few = views.figures.first_lists(question_set, BEFORE, AFTER, 2)
    assert few == lists[:2]
    assert views.figures.first_lists(question_set, BEFORE, BEFORE, 9) == []


def test_the_right_picture_and_new_pictures_are_framed(mixed_store: Store):
    question_set = question_set_of(mixed_store)
    picture_of = views.figures.gallery_pictures(question_set)
    for row in views.figures.first_lists(question_set, BEFORE, AFTER, 1000):
        source = {name: f"data:{item}" for item, name in picture_of.items()}
        drawn = str(html.first_lists(row, picture_of, source.__getitem__, ["Before", "After"]))
        assert drawn.count("<img") == len(row.original) + len(row.tuned)
        n_right = [*row.original, *row.tuned].count(row.item)
        assert drawn.count('class="vp-right"') == n_right
        new = len(set(row.tuned) - set(row.original) - {row.item})
        assert drawn.count('class="vp-new"') == new


def test_the_command_prints_both_lists_and_refuses_other_runs(mixed_store: Store):
    question_set = question_set_of(mixed_store)
    keys = [question_set.run(model).key for model in (BEFORE, AFTER)]
    words = ["--cache", str(mixed_store.root), "first-lists", *keys, "--format", "json"]
    answered = CliRunner().invoke(main, [*words, "--size", "3"])
    assert answered.exit_code == 0, answered.output
    rows = json.loads(answered.stdout)
    lists = views.figures.first_lists(question_set, BEFORE, AFTER, 3)
    assert [row["first_after"] for row in rows] == [" ".join(row.tuned) for row in lists]
    lone = call(mixed_store.root, "first-lists", keys[0], "nope", code=1)
    assert len(lone.stderr.splitlines()) == 1
