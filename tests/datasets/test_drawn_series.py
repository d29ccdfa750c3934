from collections import Counter

import pytest

from vlprobe.datasets import drawn, drawn_series
from vlprobe.datasets.world.scene import OPPOSITE
from vlprobe.errors import NotFound
from vlprobe.scoring.pictures import open_picture
from vlprobe.types import Picture


def test_videos_change_one_thing_once():
    kinds = Counter()
    for series in drawn_series.drawn("test"):
        if not series.n_before:
            continue
        kinds[series.subset] += 1
        shown = [scene.specification for scene in series.scenes]
        assert len(shown) == drawn_series.FRAMES
        assert len(set(shown[: series.n_before])) == len(set(shown[series.n_before :])) == 1
        assert shown[0] != shown[-1]
        assert min(series.n_before, len(shown) - series.n_before) >= drawn_series.LEAST_FRAMES
        assert len({scene.seed for scene in series.scenes}) == len(shown)  # no frame twice
    assert kinds == {f"video-{kind}": drawn_series.SIZE for kind in drawn_series.KINDS}


def test_candidates_get_worse_by_one_fact_each():
    queries = [series for series in drawn_series.drawn("test") if not series.n_before]
    assert len(queries) == drawn_series.QUERIES
    for series in queries:
        first = series.scenes[0]

        def wrong(scene, first=first) -> int:
            facts = [scene.relation != first.relation]
            for group, own in zip(scene.groups, first.groups, strict=True):
                facts += [group.color != own.color, group.object != own.object]
            return sum(facts)

        assert [wrong(scene) for scene in series.scenes] == [0, 1, 2, 3, 4, 5]
        assert series.scenes[1].relation == OPPOSITE[first.relation]


def test_the_files_are_those_that_their_names_say(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "_LARGEST_SUBSET", 1)
    monkeypatch.setattr(drawn_series, "SIZE", 1)
    monkeypatch.setattr(drawn_series, "QUERIES", 1)
    monkeypatch.setattr(drawn_series, "KINDS", ("color",))
    items = drawn_series.load("demo-series:val", tmp_path).items
    video, query = items
    index = video.series.boundary_index
    assert (video.image, video.foil_image) == video.series.pictures[index : index + 2]
    assert query.series.times == () and query.image == query.series.pictures[0]
    drawn._contrasts.cache_clear()
    picture = video.series.pictures[0]
    redrawn = drawn.draw(Picture(picture.path))
    assert redrawn and redrawn.tobytes() == open_picture(picture).tobytes()
    drawn._contrasts.cache_clear()


def test_another_split_is_refused():
    with pytest.raises(NotFound):
        drawn_series.check_name("demo-series:train")
