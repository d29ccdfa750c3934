"""Building the bundled results: the same numbers in less space, without paths of this machine."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.conftest import draw_fewer, make_tiny
from tools import ship
from vlprobe import registry
from vlprobe.datasets.world.renderer import VERSION
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.runs import verify
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures, thumbnails
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.types import Picture, PictureEdit

RANDOM = "control:random"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[dict]]:
    """Run a control on a few items of the default dataset of every probe, and return the store and the manifests."""
    store = Store(tmp_path_factory.mktemp("ship") / "cache")
    with pytest.MonkeyPatch.context() as patch:  # draw fewer pictures
        draw_fewer(patch, 4)
        manifests = [
            manifest
            for probe in ship.PROBES
            for manifest in execute(Request((RANDOM,), "", probe), store)
        ]
    return store, manifests


@pytest.fixture(scope="module")
def copied(cache: tuple[Store, list[dict]], tmp_path_factory: pytest.TempPathFactory) -> Store:
    store, manifests = cache
    folder = tmp_path_factory.mktemp("copy") / "shipped"
    size = ship.ship(store, manifests, folder)
    assert size == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Store(folder)


def test_a_bundled_entry_is_an_ordinary_store_entry(cache, copied):
    assert [damage for damage in verify.damages(copied)] == []
    assert [run["key"] for run in copied.runs()] == [run["key"] for run in cache[0].runs()]
    assert len(examine.load(copied)) == len(examine.load(cache[0])) > 0


def test_bundling_changes_only_the_names_of_pictures(cache, copied):
    store, manifests = cache
    prefix = f"{store.root}/"
    for manifest in manifests:
        pairs = [(store.run(manifest["key"]), copied.run(manifest["key"]))]
        pairs.append((store.cases(manifest["case_key"]), copied.cases(manifest["case_key"])))
        for entry, copy in pairs:
            for name in (Path(record["name"]).stem for record in entry.manifest()["files"]):
                before, after = entry.table(name), copy.table(name)
                assert after.schema.equals(before.schema)
                if name == "fronts":
                    continue
                if manifest["run"]["probe"] == "lgip" and name == "scores":
                    before, after = (
                        table.drop_columns(["text_scores"]) for table in (before, after)
                    )
                rows = json.dumps(before.to_pylist()).replace(prefix, "")
                assert json.dumps(after.to_pylist()) == rows


def test_first_candidates_are_bundled_only_for_lost_pictures(cache, copied):
    store, manifests = cache
    (manifest,) = [row for row in manifests if row["run"]["probe"] == "rococo"]
    before, after = (
        folder.run(manifest["key"]).table("fronts").to_pylist() for folder in (store, copied)
    )
    answers = store.run(manifest["key"]).table("scores").to_pylist()
    n_lost = 0
    for row, copy, answer in zip(before, after, answers, strict=True):
        lost = answer["kind"] == "t2i" and answer["rank_clean"] == 1 < answer["rank"]
        n_lost += lost
        emptied = {name: value if name in ("run", "case") else None for name, value in row.items()}
        assert copy == (row if lost else emptied)
    assert 0 < n_lost < len(before)


def test_no_bundled_file_contains_a_path_of_this_machine(cache, copied):
    for path in copied.root.rglob("*"):
        if path.suffix == ".parquet":
            content = str(pq.read_table(path).to_pylist())
        else:
            content = path.read_text() if path.is_file() else ""
        assert str(cache[0].root) not in content


def test_the_pictures_of_bundled_cases_are_drawn_if_there_is_no_file(
    cache, copied, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VLPROBE_ROOTS", str(tmp_path))  # only this folder may be read
    names = set()
    for manifest in cache[1]:
        for images in copied.cases(manifest["case_key"]).table("cases")["images"].to_pylist():
            names.update(images)
    assert len(names) >= 12
    for name in sorted(names)[::4]:
        assert pictures.read_bytes(Path(name)) == (cache[0].root / name).read_bytes()
    monkeypatch.chdir("/")
    with pytest.raises(InvalidInput, match="outside"):
        pictures.read_bytes(Path("demo/test-00000000/demo-00000.png"))


def test_thumbnails_of_scenes_are_bundled_and_others_are_drawn_when_shown(
    cache, copied, monkeypatch, tmp_path
):
    monkeypatch.chdir("/")
    monkeypatch.setenv("VLPROBE_SHIPPED", str(copied.root))
    monkeypatch.setenv("VLPROBE_ROOTS", str(tmp_path))
    names = [
        name
        for manifest in cache[1]
        for names in copied.cases(manifest["case_key"]).table("cases")["images"].to_pylist()
        for name in names
    ]
    scene = next(name for name in names if "/test-" in name)
    other = next(name for name in names if "/scenes-" in name)
    first, second = sorted({name for name in names if "/test-" in name})[:2]
    edit = PictureEdit("mix", Path(second), 0.9, 1)
    mixed = Picture(Path(first), edit).name
    kept = tmp_path / "thumbnails"
    content = thumbnails.thumbnail(tmp_path, scene)
    assert not kept.exists()
    assert content == thumbnails.make(Picture(Path(scene)), ((cache[0].root / scene).read_bytes(),))
    for number, name in enumerate((other, mixed), 1):
        image = Image.open(io.BytesIO(thumbnails.thumbnail(tmp_path, name)))
        assert image.size == (224, 224)
        assert len(list(kept.rglob("*.webp"))) == number
    addresses = thumbnails.addresses(tmp_path, [scene, other, mixed, "demo/test-0/demo-00000.png"])
    assert [bool(address) for address in addresses.values()] == [True, True, True, False]


def test_scenes_are_drawn_if_the_thumbnail_file_is_damaged(copied, monkeypatch, tmp_path):
    monkeypatch.setenv("VLPROBE_SHIPPED", str(tmp_path))
    (tmp_path / shipped.THUMBNAILS).write_bytes(b"damaged")
    scene = Picture(Path(f"demo/test-{VERSION}/demo-00003.png"))
    assert shipped.thumbnail(thumbnails.name_key(scene)) is None
    drawing = thumbnails.thumbnail(tmp_path / "own", scene.name)
    monkeypatch.setenv("VLPROBE_SHIPPED", str(copied.root))
    assert drawing == shipped.thumbnail(thumbnails.name_key(scene))


def test_bundling_refuses_too_large_results_and_local_paths(cache, copied, monkeypatch, tmp_path):
    store, manifests = cache
    with monkeypatch.context() as patch:
        patch.setattr(ship, "LARGEST", 1000)
        with pytest.raises(InvalidInput, match="too many to ship"):
            ship.ship(store, manifests, copied.root)
    assert copied.runs()  # the existing results remain
    elsewhere = make_tiny(store.root / "elsewhere")
    foreign = execute(Request((RANDOM,), elsewhere, "lgip", limit=2), store)
    with pytest.raises(InvalidInput, match="would be shipped"):
        ship.ship(store, foreign, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_the_bundled_results_are_all_probes_on_all_demo_models(monkeypatch):
    run_requests = []
    monkeypatch.setattr(
        ship, "execute", lambda request, store, progress: run_requests.append(request) or []
    )
    assert ship.runs(Store("unused")) == []
    assert {request.probe for request in run_requests} == set(ship.PROBES)
    for request in run_requests:
        assert not any(map(registry.is_control, request.models))
        assert request.models == tuple(registry.families("models")["demo"].NAMES)
        assert (request.limit, request.dataset, request.options, request.seed) == (0, "", {}, 42)
