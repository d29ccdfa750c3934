from collections import Counter

import pytest

from tests.conftest import draw_fewer
from tools.world import items
from tools.world.scenes import OPPOSITE, specification
from vlprobe import registry
from vlprobe.datasets import drawn
from vlprobe.errors import NotFound
from vlprobe.scoring.pictures import open_picture
from vlprobe.types import Picture


def test_each_video_has_a_single_change():
    kinds = Counter()
    for series in items.series("test"):
        if not series.n_before:
            continue
        kinds[series.tags["subset"]] += 1
        shown = [specification(scene) for scene in series.scenes]
        assert len(shown) == items.FRAMES
        assert len(set(shown[: series.n_before])) == len(set(shown[series.n_before :])) == 1
        assert shown[0] != shown[-1]
        assert min(series.n_before, len(shown) - series.n_before) >= items.LEAST_FRAMES
        assert len({scene.seed for scene in series.scenes}) == len(shown)  # no two frames are equal
    assert kinds == {f"video-{kind}": 15 for kind in ("color", "number", "object")}


def test_each_candidate_has_one_more_wrong_fact_than_the_previous():
    queries = [series for series in items.series("test") if not series.n_before]
    assert len(queries) == 40
    for series in queries:
        first = series.scenes[0]

        def wrong(scene, first=first) -> int:
            facts = [scene.relation != first.relation]
            for group, own in zip(scene.groups, first.groups, strict=True):
                facts += [group.color != own.color, group.object != own.object]
            return sum(facts)

        assert [wrong(scene) for scene in series.scenes] == [0, 1, 2, 3, 4, 5]
        assert series.scenes[1].relation == OPPOSITE[first.relation]


def test_the_files_of_a_series_show_the_scenes_in_their_names(tmp_path, monkeypatch):
    draw_fewer(monkeypatch, 1)
    video, *_, query = registry.load_dataset("demo-series:val", tmp_path).items
    index = video.series.boundary_index
    assert (video.image, video.foil_image) == video.series.pictures[index : index + 2]
    assert query.series.times == () and query.image == query.series.pictures[0]
    picture = video.series.pictures[0]
    redrawn = drawn.draw(Picture(picture.path))
    assert redrawn and redrawn.tobytes() == open_picture(picture).tobytes()


def test_a_train_split_of_the_series_is_refused():
    with pytest.raises(NotFound):
        registry.check_name("datasets", "demo-series:train")
