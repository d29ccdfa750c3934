import pytest
from PIL import Image

from tests.conftest import draw_fewer
from tools.world.scenes import draw
from vlprobe import registry
from vlprobe.datasets import demo
from vlprobe.datasets.world import items
from vlprobe.errors import InvalidInput, NotFound


@pytest.fixture
def three(monkeypatch):
    """Keep three scenes per split, so that a test draws for only milliseconds."""
    draw_fewer(monkeypatch, 3)


@pytest.mark.parametrize("scenes", [11, pytest.param(500, marks=pytest.mark.full)])
def test_the_demo_dataset_has_500_scenes_of_five_captions(scenes, tmp_path, monkeypatch):
    assert len(items.read("demo")) == len(items.read("demo:val")) == 500
    draw_fewer(monkeypatch, scenes)
    dataset = registry.load_dataset("demo", tmp_path)
    assert dataset.name == "demo"
    assert len(dataset.items) == len({item.id for item in dataset.items}) == scenes
    assert all(len(item.captions) == 5 for item in dataset.items)
    assert all(
        set(item.tags) == {"background", "objects", "colors", "count", "relation"}
        for item in dataset.items
    )
    assert dataset.items[10].id == "demo-00010"
    for item in dataset.items[::5]:
        with Image.open(item.image.path) as image:
            assert (image.size, image.mode) == ((224, 224), "RGB")


def test_the_tags_of_an_item_describe_its_scene(three, tmp_path):
    item = registry.load_dataset("demo", tmp_path).items[0]
    group = draw("test", 0).groups[0]
    assert item.tags == {
        "background": draw("test", 0).background,
        "objects": group.object,
        "colors": group.color,
        "count": str(group.count),
        "relation": "none",
    }


@pytest.mark.parametrize("name", ["demo", "demo-pairs", "demo-triplets"])
def test_a_second_load_draws_nothing_and_gives_the_same_digest(name, three, tmp_path, monkeypatch):
    first = registry.load_dataset(name, tmp_path)
    monkeypatch.setattr(demo, "render", lambda scene: pytest.fail("drawn again"))
    assert registry.load_dataset(name, tmp_path) == first


@pytest.mark.parametrize("name", ["demo", "demo-pairs"])
def test_an_interrupted_first_load_draws_only_the_missing_pictures(
    name, three, tmp_path, monkeypatch
):
    whole = registry.load_dataset(name, tmp_path)
    missing = {(item.foil_image or item.image).path for item in whole.items[1:9]}
    for path in missing:
        path.unlink()
    drawn, render = [], demo.render
    monkeypatch.setattr(demo, "render", lambda scene: drawn.append(scene) or render(scene))
    assert registry.load_dataset(name, tmp_path) == whole
    assert len(drawn) == len(missing) > 0
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_digest_covers_the_pixels(three, tmp_path):
    before = registry.load_dataset("demo", tmp_path)
    Image.new("RGB", (224, 224)).save(before.items[1].image.path)
    assert registry.load_dataset("demo", tmp_path).digest != before.digest


@pytest.mark.parametrize(
    ("name", "first"),
    [("demo", "00000"), ("demo-pairs", "object-000"), ("demo-triplets", "object-000")],
)
def test_the_val_split_shares_no_picture_with_test(name, first, three, tmp_path):
    val, test = (registry.load_dataset(each, tmp_path) for each in (f"{name}:val", name))
    assert val.items[0].id == f"{name}-val-{first}"
    assert val.digest != test.digest
    assert not {item.image.path for item in val.items} & {item.image.path for item in test.items}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("demo:trian", ""),
        ("demo-pairs:train", "Known: demo-pairs, demo-pairs:test, demo-pairs:val"),
        ("demo-triplets:tset", "Known: demo-triplets, "),
    ],
)
def test_an_unknown_split_is_refused_in_one_line(name, known, tmp_path):
    with pytest.raises(NotFound, match=f"{name}.*{known}"):
        registry.load_dataset(name, tmp_path)


@pytest.mark.parametrize("name", ["demo", "demo-pairs"])
def test_an_unwritable_cache_is_reported(name, three, tmp_path):
    (tmp_path / "demo").write_text("a file where a folder should be")
    with pytest.raises(InvalidInput, match="Cannot write"):
        registry.load_dataset(name, tmp_path)
