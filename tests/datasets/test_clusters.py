"""Items are resampled together if the dataset's reader says that they share a picture, not because of a user's column
name.
"""

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.sparse import csgraph

from tests.conftest import estimates_of, tiers
from vlprobe import registry, views
from vlprobe.datasets import validation
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.types import Item, Picture

RANDOM = "control:random"
CONSTANT = "control:constant"
INTERVAL = ["value", "low", "high", "n_items", "n_cases"]


def painted(folder: Path, number: int, name: str = "") -> str:
    """Write a picture with a unique color and return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    name = name or f"{number:012}.jpg"
    Image.new("RGB", (8, 8), (number % 256, 37 * number % 256, 101 * number % 256)).save(
        folder / name, quality=100
    )
    return name


def table(folder: Path, column: str) -> str:
    """Write six pictures with two captions each and a column with two values, and return the dataset's name."""
    rows = [
        {
            "image": painted(folder, number),
            "caption": f"A {color} dog {place}.",
            column: "ab"[number % 2],
        }
        for number, color in enumerate(("red", "blue", "green", "black", "white", "brown"))
        for place in ("on a bench", "in a park")
    ]
    with (folder / f"{column}.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, ["image", "caption", column])
        writer.writeheader()
        writer.writerows(rows)
    return f"csv:{folder / f'{column}.csv'}"


@pytest.mark.parametrize("probe", tiers(["lgip", "prsm"], ("lgip",)))
@pytest.mark.parametrize("column", ["picture", "setting", "cluster"])
def test_a_column_named_like_an_internal_field_is_an_ordinary_tag(
    tmp_path: Path, store: Store, probe: str, column: str
):
    named, plain = (
        execute(Request((RANDOM,), table(tmp_path / "data", name), probe, examine=False), store)[0]
        for name in (column, "weather")
    )
    assert named["n_units"] == plain["n_units"] == 6
    assert f"tag:{column}" in views.estimates.slices(
        views.runs.question_set(store, named["case_key"])
    )
    for by in ("all", "subtype", "tag:{}"):
        own, other = (
            views.estimates.estimates(
                views.runs.question_set(store, manifest["case_key"]), by.format(name)
            )[["metric", "slice", *INTERVAL]]
            for manifest, name in ((named, column), (plain, "weather"))
        )
        pd.testing.assert_frame_equal(own, other)


def rows(n_pictures: int, each: int) -> list[tuple[str, str, str]]:
    """Return picture, caption and foil for `each` rows per picture."""
    return [
        (f"{number:012}.jpg", f"caption {number} {row}", f"foil {number} {row}")
        for number in range(n_pictures)
        for row in range(each)
    ]


@pytest.fixture(scope="module")
def foils(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, str]]:
    """Run the same 40 questions about 8 pictures in the layouts of VALSE and SugarCrepe. Return the store and question
    sets by probe.
    """
    folder = tmp_path_factory.mktemp("foils")
    for number in range(8):
        painted(folder, number)
    names = ("image_file", "caption", "foil")
    valse = [dict(zip(names, row, strict=True)) for row in rows(8, 5)]
    names = ("filename", "caption", "negative_caption")
    crepe = {str(n): dict(zip(names, row, strict=True)) for n, row in enumerate(rows(8, 5))}
    (folder / "valse.json").write_text(json.dumps(valse))
    (folder / "crepe.json").write_text(json.dumps(crepe))
    store, keys = Store(folder / "cache"), {}
    for probe, name in (
        ("eqben", f"pairs:{folder}/valse.json"),
        ("visla", f"triplets:{folder}/crepe.json@{folder}"),
    ):
        manifest = execute(Request((RANDOM, CONSTANT), name, probe, examine=False), store)[0]
        keys[probe] = manifest["case_key"]
    return store, keys


def test_the_same_answers_have_the_same_interval_in_pairs_and_in_triplets(foils):
    store, keys = foils
    tables = {
        probe: estimates_of(store, {"case_key": key}, "model", "metric")
        for probe, key in keys.items()
    }
    pairs = tables["eqben"].loc[(RANDOM, "foil_accuracy"), INTERVAL]
    triplets = tables["visla"].loc[(RANDOM, "pair_accuracy"), INTERVAL]
    assert pairs.tolist() == triplets.tolist()
    assert pairs["n_items"] == 8


def test_the_same_answers_have_the_same_p_value_in_pairs_and_in_triplets(foils):
    store, keys = foils
    pairs, triplets = (
        views.paired_tests.compare_models(
            views.runs.question_set(store, keys[probe]), (RANDOM, CONSTANT), kind
        ).rows[0]
        for probe, kind in (("eqben", "foil"), ("visla", "i2t-pair"))
    )
    for name in ("only_base", "only_model", "both", "neither", "n_pictures"):
        assert getattr(pairs, name) == getattr(triplets, name)
    assert pairs.n_pictures < pairs.n_lies
    # the random draws differ because the clusters have other names
    assert pairs.p == pytest.approx(triplets.p, abs=0.005)


def test_pairs_connected_by_shared_pictures_are_one_cluster(tmp_path: Path):
    edges = [("a", "b"), ("c", "d"), ("b", "e"), ("f", "g"), ("h", "d"), ("e", "h"), ("i", "j")]
    colors = {name: number for number, name in enumerate("abcdefghij")}
    items = [
        Item(
            f"{one}{two}",
            Picture(
                tmp_path / painted(tmp_path, colors[one], f"{one}{two}0.png")
            ),  # copies with equal bytes
            ("a",),
            foils=("b",),
            foil_image=Picture(tmp_path / painted(tmp_path, colors[two], f"{one}{two}1.png")),
        )
        for one, two in edges
    ]
    units = {item.id: item.unit for item in validation.clustered_by_picture(items, tmp_path)}
    shared = np.array([[bool(set(one) & set(other)) for other in edges] for one in edges])
    n_components, component = csgraph.connected_components(shared)
    assert n_components == len(set(units.values())) == 3
    assert len(set(zip(component.tolist(), units.values(), strict=True))) == 3
    assert {key for key, unit in units.items() if unit == key} == {"ab", "fg", "ij"}


def test_digests_of_datasets_without_internal_tag_names_are_unchanged(tmp_path: Path):
    (tmp_path / "q.csv").write_text("query,caption,gender\n1,a dog,male\n1,one dog,male\n")
    (tmp_path / "t.json").write_text(
        json.dumps(
            [{"filename": "7.jpg", "caption": "a", "caption2": "b", "negative_caption": "c"}]
        )
    )
    of_tags = {
        f"queries:{tmp_path}/q.csv": [
            "1",
            ["a dog", "one dog"],
            [],
            {"gender": "male", "setting": "P1", "versions": "o,c1"},
        ],
        f"triplets:{tmp_path}/t.json": ["t/0", ["a", "b"], ["c"], {"picture": "7", "subset": "t"}],
    }
    for name, (*head, tags) in of_tags.items():
        row = json.dumps([*head, [list(pair) for pair in sorted(tags.items())], None, None])
        expected = hashlib.blake2b(row.encode() + b"\n", digest_size=16).hexdigest()
        assert registry.load_dataset(name, tmp_path).digest == expected


@pytest.mark.parametrize(("name", "field"), [("picture", "cluster"), ("setting", "setting")])
def test_a_tag_and_an_internal_field_give_different_digests(tmp_path: Path, name: str, field: str):
    meant = Item("a", None, ("a dog",), **{field: "7"})
    tagged = Item("a", None, ("a dog",), {name: "7"})
    digests = [validation.dataset_digest([item], tmp_path) for item in (meant, tagged)]
    assert digests[0] != digests[1]
