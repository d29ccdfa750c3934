"""Items selected by id, by tag, at random and by limit are the same in every command."""

import hashlib
import json
from dataclasses import dataclass, field, replace

import pytest

from tests.conftest import call
from tests.runs.test_run import request
from vlprobe import views
from vlprobe.dashboard.lab.page import _request
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.runs.selection import select
from vlprobe.storage.store import Store
from vlprobe.types import Item, Run
from vlprobe.types.selection import describe


@dataclass
class Made:
    """A dataset in memory whose items have two tags."""

    name: str = "made"
    digest: str = "d"
    items: list[Item] = field(
        default_factory=lambda: [
            Item(
                f"i{number}",
                None,
                ("a caption",),
                {"thing": "dog" if number % 2 else "bus", "size": str(number % 3)},
            )
            for number in range(60)
        ]
    )


def ids(**choices) -> list[str]:
    return [item.id for item in select(Made(), Request((), "made", "lgip", **choices))[0]]


def test_without_a_selection_every_item_is_used_and_nothing_is_recorded():
    items, recorded = select(Made(), Request((), "made", "lgip"))
    assert len(items) == 60 and recorded == ({}, 0)


def test_values_of_one_tag_are_joined_by_or_and_different_tags_by_and():
    rows = [(item.id, item.tags) for item in Made().items]
    assert ids(where=("thing=dog", "size=1")) == [
        name for name, tags in rows if tags["thing"] == "dog" and tags["size"] == "1"
    ]
    assert ids(where=("size=0", "size=2")) == [name for name, tags in rows if tags["size"] != "1"]
    assert ids(where=("thing=dog",), item=("i3", "i1", "i2")) == ["i1", "i3"]


def test_a_sample_depends_on_the_seed_and_contains_the_smaller_samples():
    ten = ids(sample=10)
    assert ids(sample=10) == ten and len(set(ten)) == 10
    assert ids(sample=10, seed=7) != ten
    assert set(ids(sample=4)) < set(ten)
    assert ten == sorted(ten, key=lambda name: int(name[1:]))  # in the order of the dataset
    assert set(ids(sample=10, where=("thing=dog",))) <= set(ids(where=("thing=dog",)))


def test_every_item_is_sampled_about_equally_often():
    counts = dict.fromkeys(ids(), 0)
    for seed in range(400):
        for name in ids(sample=15, seed=seed):
            counts[name] += 1
    # 400 draws of 15 from 60: 100 times each, with a standard deviation of 8.7
    assert sum(counts.values()) == 6000
    assert all(60 < count < 140 for count in counts.values())


def test_a_limit_takes_the_first_items_of_the_sample():
    assert ids(sample=10, limit=3) == ids(sample=10)[:3]
    _, recorded = select(Made(), Request((), "made", "lgip", sample=100, limit=100))
    assert recorded == (
        {},
        0,
    )  # a number above the total selects all items and does not change the run


def test_the_key_of_a_run_without_a_selection_is_unchanged():
    run = Run("m", "d1", "data", "d2", "lgip", 1, ("a@1",), {"rules": "strict"}, 42, 5)
    fields = {
        "model_digest": "d1",
        "dataset_digest": "d2",
        "probe": "lgip",
        "probe_version": 1,
        "metrics": ["a@1"],
        "options": {"rules": "strict"},
        "seed": 42,
        "limit": 5,
    }
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]
    assert run.key == digest
    assert "selection" not in run.record()
    chosen = {
        replace(run, selection=selection).key
        for selection in ({"item": ["a"]}, {"item": ["b"]}, {"where": ["a"]}, {"sample": 5})
    }
    assert len(chosen | {digest}) == 5


def test_selections_are_part_of_the_key_regardless_of_order_and_of_the_label(tiny, store):
    whole = execute(request(tiny), store)[0]
    assert "selection" not in whole["run"]
    all_ids = sorted(set(store.cases(whole["case_key"]).table("cases")["item"].to_pylist()))
    two = tuple(all_ids[:2])
    chosen = execute(request(tiny, item=two), store)[0]
    assert chosen["n_items"] == 2 and chosen["run"]["selection"] == {"item": list(two)}
    assert execute(request(tiny, item=two[::-1]), store)[0]["key"] == chosen["key"]
    tagged = execute(request(tiny, where=("thing=dog",)), store)[0]
    drawn = execute(request(tiny, sample=2), store)[0]
    assert len({m["case_key"] for m in (whole, chosen, tagged, drawn)}) == 4
    labels = {row.case_key: row.label for row in views.runs.question_set_rows(store)}
    assert labels[tagged["case_key"]].endswith(" · where thing=dog")
    assert labels[drawn["case_key"]].endswith(" · sample 2")
    asked_again = _request(Run(**drawn["run"]))
    assert execute(asked_again, store)[0]["key"] == drawn["key"]
    question_set = views.runs.question_set(store, tagged["case_key"])
    assert views.figures.request_fields(question_set)["where"] == ("thing=dog",)


def test_the_label_of_many_ids_is_their_count():
    assert describe({"item": [str(number) for number in range(1200)]}) == ["1,200 items by id"]
    assert describe({"item": ["a", "b"], "sample": 3}) == ["item a, b", "sample 3"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"item": ("x",)}, "has no item 'x'. The first ids are: i0, i1, i2"),
        ({"where": ("thing",)}, "'thing' is not valid. Expected TAG=VALUE"),
        ({"where": ("=dog",)}, "Expected TAG=VALUE"),
        ({"where": ("colour=red",)}, "has the tag 'colour'. Available tags: thing, size."),
        ({"where": ("thing=cat",)}, "has the tag 'thing=cat'. Values of this tag: bus, dog."),
        ({"item": ("i0",), "where": ("thing=dog",)}, "Values of this tag: bus."),
        ({"item": ("i0", "i1"), "where": ("thing=dog", "size=0")}, "matches all of"),
    ],
)
def test_a_selection_without_matching_items_is_refused_in_one_line(choices, message):
    with pytest.raises(InvalidInput) as caught:
        ids(**choices)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"sample": -1}, "'sample' is '-1'. Expected a whole number, 0 or more"),
        ({"where": ("dog",)}, "'where' is 'dog'. Expected TAG=VALUE"),
        ({"item": ("a", "a")}, "'item' contains 'a' more than once"),
    ],
)
def test_a_run_refuses_invalid_selections_before_reading_the_dataset(store, choices, message):
    with pytest.raises(InvalidInput, match=message):
        execute(Request(("control:random",), "csv:nowhere.csv", "lgip", **choices), store)


def test_run_ask_and_perturb_accept_the_same_selections(tiny, tmp_path):
    choices = ["--where", "thing=dog", "--where", "thing=cat", "--sample", "2", "--seed", "3"]
    store = Store(tmp_path / "cache")
    lines = call(store.root, "perturb", tiny, *choices).stdout.splitlines()
    written = [json.loads(line) for line in lines]
    call(store.root, "ask", tiny, str(tmp_path / "out"), *choices)
    facts = json.loads((tmp_path / "out" / "questions.json").read_text())
    ran = ["run", "--model", "control:random", "--dataset", tiny, "--no-doctor", *choices]
    call(store.root, *ran)
    (stored,) = store.runs()
    assert facts["selection"] == stored["run"]["selection"]
    assert facts["case_key"] == stored["case_key"]
    assert stored["run"]["selection"]["where"] == ["thing=cat", "thing=dog"]
    assert stored["n_items"] == len(written) == 2
