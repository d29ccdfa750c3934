import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe.datasets import frames
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics.boundaries import boundary_accuracy


def row(second: float, caption: str, **others) -> dict:
    return {"video": "v", "frame": f"v{second:g}.png", "time": second, "caption": caption, **others}


def write(folder: Path, rows: list[dict], name: str = "table.csv", options: str = "") -> str:
    """A table and its frames; returns the dataset's name."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if name.endswith(".jsonl"):
        text = "\n".join(json.dumps(row) for row in rows)
    else:
        comma = "\t" if name.endswith(".tsv") else ","
        lines = [columns, *([row.get(column, "") for column in columns] for row in rows)]
        text = "\n".join(comma.join(map(str, line)) for line in lines)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "frames").mkdir(exist_ok=True)
    for number, file in enumerate({row["frame"] for row in rows if row.get("frame")}):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(folder / "frames" / file)
    return f"frames:{folder / name}@{folder / 'frames'}{options}"


def pairs(name: str, cache: Path) -> list[tuple[str, str]]:
    return [(item.captions[0], item.foils[0]) for item in frames.load(name, cache).items]


def related(*relations: str) -> list[dict]:
    """Frames at 0, 1, 2... seconds whose captions are A, B, C..., in the order of time."""
    return [row(time, chr(65 + time), relations=text) for time, text in enumerate(relations)]


def test_neighbouring_frames_of_a_video_are_pairs(tmp_path):
    rows = [
        row(2, "C"),
        row(0, "A"),
        row(1, "B"),
        row(0, "X", video="w"),
        row(1, "X", video="w"),
        row(2, "Y", video="w"),
    ]
    dataset = frames.load(write(tmp_path, rows), tmp_path)
    assert [(item.captions, item.foils) for item in dataset.items] == [
        (("A",), ("B",)),
        (("B",), ("C",)),
        (("X",), ("Y",)),
    ]
    item = dataset.items[0]
    assert (item.id, item.tags) == ("table/3-4", {"subset": "table", "video": "v"})
    assert (item.image.path.name, item.foil_image.path.name) == ("v0.png", "v1.png")
    assert dataset.notes == (
        "1 of 4 pairs say the same of both frames and are left out (first: 5-6).",
    )


def test_frames_of_action_genome_differ_in_two_of_three_relations_and_the_next_is_skipped(tmp_path):
    # By hand. From A: B has one different (alike), C two (chosen), so D is skipped, and E has three (chosen).
    # A was chosen, so B is skipped as a first. From C: D none, E two (chosen). So D is skipped; E has nobody after it.
    rows = related(
        "look|front|hold",
        "look|front|touch",
        "look|side|touch",
        "look|side|touch",
        "away|behind|touch",
    )
    dataset = frames.load(write(tmp_path, rows, options="+ag"), tmp_path)
    assert [item.captions + item.foils for item in dataset.items] == [
        ("A", "C"),
        ("A", "E"),
        ("C", "E"),
    ]
    assert dataset.notes == (
        "2 of 10 pairs have fewer than 2 of 3 relations different and are left out (first: 2-3).",
        "5 of 10 pairs come right after a chosen frame and are left out (first: 2-5).",
    )


def test_the_three_relations_can_have_a_column_each_and_capitals_do_not_matter(tmp_path):
    columns = ("attention", "spatial", "contacting")
    texts = [("Look", "front", "hold"), ("look", "Front ", "touch"), ("away", "side", "HOLD")]
    rows = [
        row(time, chr(65 + time), **dict(zip(columns, text, strict=True)))
        for time, text in enumerate(texts)
    ]
    assert pairs(write(tmp_path, rows, options="+ag"), tmp_path) == [("A", "C")]


def test_a_frame_with_two_objects_is_in_two_sequences(tmp_path):
    rows = [
        {**row(time, f"{thing} {time}", relations=text), "object": thing}
        for time, text in enumerate(["a|b|c", "x|y|c"])
        for thing in ("dish", "cup")
    ]
    dataset = frames.load(write(tmp_path, rows, options="+ag"), tmp_path)
    assert [(item.captions[0], item.foils[0]) for item in dataset.items] == [
        ("dish 0", "dish 1"),
        ("cup 0", "cup 1"),
    ]
    assert [item.tags["object"] for item in dataset.items] == ["dish", "cup"]


def test_boundaries_are_skipped_once_and_captions_of_motion_are_dropped(tmp_path):
    # Segments A A A | B | C up | D | D (another boundary) | E: their middles are A at 1, B, C, D at 5, D at 6, E.
    told = [
        ("A", ""),
        ("A", ""),
        ("A", ""),
        ("B", 2.5),
        ("Man goes UP.", 3.5),
        ("D", 4.5),
        ("D", 5.5),
        ("E upset", 6.5),
    ]
    rows = [row(time, caption, boundary=boundary) for time, (caption, boundary) in enumerate(told)]
    dataset = frames.load(write(tmp_path, rows, options="+gebc"), tmp_path)
    assert [item.captions + item.foils for item in dataset.items] == [("B", "D"), ("D", "E upset")]
    assert dataset.items[1].image.path.name == "v5.png"
    assert dataset.notes == (
        "2 of 4 pairs have a caption that says where something moves and are left out (first: 3-6).",
    )


def test_the_middle_frames_of_steps_are_paired_unless_they_show_a_face(tmp_path):
    told = [
        ("cut", 1),
        ("cut", 0),
        ("cut", 1),
        ("", 0),
        ("fry", 0),
        ("boil", "true"),
        ("boil", "false"),
        ("eat", 2),
    ]
    rows = [row(time, caption, faces=faces) for time, (caption, faces) in enumerate(told)]
    dataset = frames.load(write(tmp_path, rows, options="+youcook2"), tmp_path)
    assert [item.captions + item.foils for item in dataset.items] == [("cut", "fry")]
    assert [item.image.path.name for item in dataset.items] == ["v1.png"]
    assert dataset.notes == (
        "1 of 8 frames have no caption and are left out (first: 5).",
        "5 of 6 pairs show a face and are left out (first: 3-7).",
    )


def test_json_lines_and_tabs_are_read_alike(tmp_path):
    rows = [
        row(0, "A", relations=["a", "b", "c"], faces=False),
        row(1, "B", relations=["a", "x", "y"], faces=0),
    ]
    tabs = [{**row, "relations": "|".join(row["relations"])} for row in rows]
    for option in ("+ag", "+youcook2", ""):
        assert pairs(write(tmp_path, rows, "a.jsonl", option), tmp_path) == [("A", "B")]
        assert pairs(write(tmp_path, tabs, "b.tsv", option), tmp_path) == [("A", "B")]


def test_frames_beside_the_table_need_no_folder_and_missing_ones_are_counted(tmp_path):
    name = write(tmp_path, [row(0, "A"), row(1, "B"), row(2, "C")])
    (tmp_path / "frames" / "v2.png").unlink()
    with pytest.raises(InvalidInput, match=r"1 of 2 rows .* lack a picture"):
        frames.load(name, tmp_path)
    dataset = frames.load(f"{name}+available", tmp_path)
    assert len(dataset.items) == 1
    assert "1 of 2 rows have no picture" in dataset.notes[0]
    for file in (tmp_path / "frames").iterdir():
        file.rename(tmp_path / file.name)
    assert len(frames.load(f"frames:{tmp_path / 'table.csv'}+available", tmp_path).items) == 1


def test_columns_that_are_not_read_are_named(tmp_path):
    dataset = frames.load(
        write(tmp_path, [row(0, "A", mood="x"), row(1, "B", author="y")]), tmp_path
    )
    assert dataset.notes == ("Columns of table.csv that are not read: author, mood.",)


@pytest.mark.parametrize(
    "rows, options, said",
    [
        (
            [{"video": "v", "frame": "f.png"}],
            "",
            "has the columns frame, video. Expected video, frame, time, caption",
        ),
        ([row(0, "A"), row(1, "B", time="soon")], "", r"1 of 2 rows .*first: 3\)"),
        ([row(0, "A"), row(1, "B", time="nan")], "", r"1 of 2 rows"),
        ([row(0, "A"), row(1, "B", frame="")], "", r"1 of 2 rows"),
        ([row(0, "A", boundary=1)], "", r"1 of 1 rows .*no later ones in boundary"),
        ([row(1, "A", boundary=1), row(2, "B", boundary="")], "", r"1 of 2 rows .*do not fall"),
        ([row(0, "A", faces="many")], "", r"1 of 1 rows"),
        ([row(0, "A"), row(0, "B")], "", r"1 of 2 rows .*one row for each time"),
        ([row(0, "A"), row(1, "B")], "+ag", r"2 of 2 rows .*three relations for \+ag"),
        (
            [row(0, "A", relations="a|b|c"), row(1, "B", relations="a||c")],
            "+ag",
            r"1 of 2 rows .*first: 3\)",
        ),
        ([row(0, "A"), row(1, "B")], "+youcook2", r"2 of 2 rows .*no face detector is shipped"),
        ([row(0, "A", faces=0), row(1, "B", faces="")], "+youcook2", r"1 of 2 rows .*first: 3\)"),
        ([row(0, "A")], "", "has no pair of frames"),
        ([row(0, "A"), row(1, "A")], "", "no pair of frames. 1 of 1 pairs say the same"),
        ([row(0, "A"), row(1, "B")], "+ag+gebc", "2 filters: ag, gebc"),
    ],
)
def test_bad_input_is_counted_and_named_in_one_line(tmp_path, rows, options, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        frames.load(write(tmp_path, rows, options=options), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_line_of_json_that_is_no_row_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(row(0, 'A'))}\n[1]\n")
    with pytest.raises(InvalidInput, match=r"1 of 2 rows .*first: 2\)"):
        frames.load(f"frames:{tmp_path / 'a.jsonl'}", tmp_path)


def test_an_unknown_filter_is_named(tmp_path):
    with pytest.raises(NotFound, match="Known: available, ag, gebc, youcook2"):
        frames.load(write(tmp_path, [row(0, "A"), row(1, "B")], options="+agg"), tmp_path)


def film(folder: Path) -> str:
    """Uneven times; what is seen changes at 1.2 and at 4 seconds; one frame has no caption."""
    told = [(0, "A", ""), (0.5, "A", ""), (2, "", 1.2), (3, "B", 1.2), (4.5, "C", 4)]
    other = [
        {**row(time, caption, boundary=boundary), "video": "w"}
        for time, caption, boundary in [(1, "X", ""), (2, "Y", 1.5)]
    ]
    return write(
        folder, [row(time, caption, boundary=boundary) for time, caption, boundary in told] + other
    )


def test_boundaries_are_where_the_column_says_and_are_sought_in_all_frames_of_their_video(tmp_path):
    found = frames.read_boundaries(film(tmp_path))
    assert [(one.video, one.seconds, one.before, one.after) for one in found] == [
        ("v", 1.2, "A", "B"),
        ("v", 4.0, "B", "C"),
        ("w", 1.5, "X", "Y"),
    ]
    assert found[0].times == found[1].times == (0, 0.5, 2, 3, 4.5)
    assert [picture.path.name for picture in found[2].frames] == ["v1.png", "v2.png"]


def test_a_predicted_time_is_halfway_between_the_two_frames_that_fit_best(tmp_path):
    found = frames.read_boundaries(film(tmp_path))
    rng = np.random.default_rng(0)
    before, after = ([rng.random(len(one.times)) for one in found] for _ in range(2))
    by_hand = []
    for one, was, becomes in zip(found, before, after, strict=True):
        best = max(
            range(len(one.times) - 1),
            key=lambda at, was=was, becomes=becomes: was[at] + becomes[at + 1],
        )
        by_hand.append((one.times[best] + one.times[best + 1]) / 2)
    assert frames.predicted_times(found, before, after) == pytest.approx(by_hand)
    perfect = [np.array([1.0, 1, 0, 0, 0]), np.array([0.0, 0, 0, 1, 0]), np.array([1.0, 0])]
    predicted = frames.predicted_times(found, perfect, [1 - was for was in perfect])
    assert predicted == pytest.approx([1.25, 3.75, 1.5])
    rates = boundary_accuracy(predicted, np.array([one.seconds for one in found]), (0.04, 0.1, 0.3))
    assert rates == pytest.approx({0.04: 1 / 3, 0.1: 2 / 3, 0.3: 1.0})


def test_a_video_of_one_frame_has_no_prediction():
    one = frames.Boundary("v", 1.0, "A", "B", (None,), (0.0,))
    assert math.isnan(frames.predicted_times([one], [np.ones(1)], [np.ones(1)])[0])


def test_a_table_without_boundaries_says_so(tmp_path):
    with pytest.raises(InvalidInput, match="has no boundaries"):
        frames.read_boundaries(write(tmp_path, [row(0, "A"), row(1, "B")]))
