import json
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import estimates_of
from vlprobe.datasets import frames
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute


def row(second: float, caption: str, **others) -> dict:
    return {"video": "v", "frame": f"v{second:g}.png", "time": second, "caption": caption, **others}


def write(folder: Path, rows: list[dict], name: str = "table.csv", options: str = "") -> str:
    """Write a table and its frames, and return the dataset's name."""
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
    """Return rows for frames at 0, 1, 2... seconds with the captions A, B, C... and these relations."""
    return [row(time, chr(65 + time), relations=text) for time, text in enumerate(relations)]


def test_neighboring_frames_of_a_video_are_pairs(tmp_path):
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
        "1 of 4 pairs have the same caption for both frames and are left out (first: 5-6).",
    )


def test_action_genome_pairs_differ_in_two_relations_and_the_next_frame_is_skipped(tmp_path):
    # By hand. From A: B differs in one relation (too similar), C in two (chosen), so D is skipped, and E in three
    # (chosen).
    # A was chosen, so B is skipped as the first frame. From C: D in none, E in two (chosen). So D is skipped; E is the
    # last.
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
        "5 of 10 pairs directly follow a selected frame and are left out (first: 2-5).",
    )


def test_the_three_relations_can_be_in_separate_columns_and_ignore_case(tmp_path):
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


def test_segments_after_a_boundary_are_skipped_once_and_captions_of_motion_are_dropped(tmp_path):
    # Segments A A A | B | C up | D | D (another boundary) | E: the middle frames are A at 1, B, C, D at 5, D at 6, E.
    labels = [
        ("A", ""),
        ("A", ""),
        ("A", ""),
        ("B", 2.5),
        ("Man goes UP.", 3.5),
        ("D", 4.5),
        ("D", 5.5),
        ("E upset", 6.5),
    ]
    rows = [
        row(time, caption, boundary=boundary) for time, (caption, boundary) in enumerate(labels)
    ]
    dataset = frames.load(write(tmp_path, rows, options="+gebc"), tmp_path)
    assert [item.captions + item.foils for item in dataset.items] == [("B", "D"), ("D", "E upset")]
    assert dataset.items[1].image.path.name == "v5.png"
    assert dataset.notes == (
        (
            "2 of 4 pairs have a caption that describes a direction of motion and are left "
            "out (first: 3-6)."
        ),
    )


def test_the_middle_frames_of_steps_are_paired_unless_they_show_a_face(tmp_path):
    labels = [
        ("cut", 1),
        ("cut", 0),
        ("cut", 1),
        ("", 0),
        ("fry", 0),
        ("boil", "true"),
        ("boil", "false"),
        ("eat", 2),
    ]
    rows = [row(time, caption, faces=faces) for time, (caption, faces) in enumerate(labels)]
    dataset = frames.load(write(tmp_path, rows, options="+youcook2"), tmp_path)
    assert [item.captions + item.foils for item in dataset.items] == [("cut", "fry")]
    assert [item.image.path.name for item in dataset.items] == ["v1.png"]
    assert dataset.notes == (
        "1 of 8 frames have no caption and are left out (first: 5).",
        "5 of 6 pairs show a face and are left out (first: 3-7).",
    )


def test_json_lines_and_tab_separated_tables_give_the_same_pairs(tmp_path):
    rows = [
        row(0, "A", relations=["a", "b", "c"], faces=False),
        row(1, "B", relations=["a", "x", "y"], faces=0),
    ]
    tabs = [{**row, "relations": "|".join(row["relations"])} for row in rows]
    for option in ("+ag", "+youcook2", ""):
        assert pairs(write(tmp_path, rows, "a.jsonl", option), tmp_path) == [("A", "B")]
        assert pairs(write(tmp_path, tabs, "b.tsv", option), tmp_path) == [("A", "B")]


def test_frames_next_to_the_table_need_no_folder_and_missing_ones_are_counted(tmp_path):
    name = write(tmp_path, [row(0, "A"), row(1, "B"), row(2, "C")])
    (tmp_path / "frames" / "v2.png").unlink()
    with pytest.raises(InvalidInput, match=r"1 of 2 rows .* have no picture"):
        frames.load(name, tmp_path)
    dataset = frames.load(f"{name}+available", tmp_path)
    assert len(dataset.items) == 1
    assert "1 of 2 rows have no picture" in dataset.notes[0]
    for file in (tmp_path / "frames").iterdir():
        file.rename(tmp_path / file.name)
    assert len(frames.load(f"frames:{tmp_path / 'table.csv'}+available", tmp_path).items) == 1


def test_unused_columns_are_named_in_a_note(tmp_path):
    dataset = frames.load(
        write(tmp_path, [row(0, "A", mood="x"), row(1, "B", author="y")]), tmp_path
    )
    assert dataset.notes == ("Columns of table.csv that are not read: author, mood.",)


@pytest.mark.parametrize(
    "rows, options, message",
    [
        (
            [{"video": "v", "frame": "f.png"}],
            "",
            "has the columns frame, video. Expected video, frame, time, caption",
        ),
        ([row(0, "A"), row(1, "B", time="soon")], "", r"1 of 2 rows .*first: 3\)"),
        ([row(0, "A"), row(1, "B", time="nan")], "", r"1 of 2 rows"),
        ([row(0, "A"), row(1, "B", frame="")], "", r"1 of 2 rows"),
        ([row(0, "A", boundary=1)], "", r"1 of 1 rows .*at most time"),
        ([row(1, "A", boundary=1), row(2, "B", boundary="")], "", r"1 of 2 rows .*do not decrease"),
        ([row(0, "A", faces="many")], "", r"1 of 1 rows"),
        ([row(0, "A"), row(0, "B")], "", r"1 of 2 rows .*one row per time"),
        ([row(0, "A"), row(1, "B")], "+ag", r"2 of 2 rows .*three relations for \+ag"),
        (
            [row(0, "A", relations="a|b|c"), row(1, "B", relations="a||c")],
            "+ag",
            r"1 of 2 rows .*first: 3\)",
        ),
        ([row(0, "A"), row(1, "B")], "+youcook2", r"2 of 2 rows .*vlprobe has no face detector"),
        ([row(0, "A", faces=0), row(1, "B", faces="")], "+youcook2", r"1 of 2 rows .*first: 3\)"),
        ([row(0, "A")], "", "has no pair of frames"),
        ([row(0, "A"), row(1, "A")], "", "no pair of frames. 1 of 1 pairs have the same caption"),
        ([row(0, "A"), row(1, "B")], "+ag+gebc", "2 filters: ag, gebc"),
    ],
)
def test_bad_input_is_counted_and_named_in_one_line(tmp_path, rows, options, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        frames.load(write(tmp_path, rows, options=options), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_json_line_that_is_not_a_row_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(row(0, 'A'))}\n[1]\n")
    with pytest.raises(InvalidInput, match=r"1 of 2 rows .*first: 2\)"):
        frames.load(f"frames:{tmp_path / 'a.jsonl'}", tmp_path)


def test_an_unknown_filter_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(
        NotFound, match="Known: available, boundaries, graph, video, ag, gebc, youcook2"
    ):
        frames.load(write(tmp_path, [row(0, "A"), row(1, "B")], options="+agg"), tmp_path)


def film(folder: Path) -> str:
    """Write a dataset with uneven times, boundaries at 1.2 and 4 seconds, and one frame without a caption."""
    labels = [(0, "A", ""), (0.5, "A", ""), (2, "", 1.2), (3, "B", 1.2), (4.5, "C", 4)]
    other = [
        {**row(time, caption, boundary=boundary), "video": "w"}
        for time, caption, boundary in [(1, "X", ""), (2, "Y", 1.5)]
    ]
    return write(
        folder,
        [row(time, caption, boundary=boundary) for time, caption, boundary in labels] + other,
    )


def test_boundaries_of_the_column_are_placed_among_all_frames_of_the_video(tmp_path):
    items = frames.load(film(tmp_path) + "+boundaries", tmp_path).items
    assert [(one.id, one.captions, one.foils, one.series.boundary) for one in items] == [
        ("table/v@1.2", ("A",), ("B",), 1.2),
        ("table/v@4", ("B",), ("C",), 4.0),
        ("table/w@1.5", ("X",), ("Y",), 1.5),
    ]
    assert items[0].series.times == items[1].series.times == (0, 0.5, 2, 3, 4.5)
    assert [picture.path.name for picture in items[2].series.pictures] == ["v1.png", "v2.png"]
    assert [one.image.path.name for one in items] == ["v0.5.png", "v3.png", "v1.png"]
    assert [one.foil_image.path.name for one in items] == ["v2.png", "v4.5.png", "v2.png"]
    assert items[0].cluster == items[1].cluster != ""  # boundaries of one video are one cluster


def test_the_series_probe_finds_a_boundary_in_a_dataset_of_frames(tmp_path, store):
    """Run the probe from the table to the estimate, with imported scores that follow the color of the frames."""
    rows = [row(t, "dark" if t < 3 else "red", boundary="" if t < 3 else 2.5) for t in range(6)]
    name = write(tmp_path, rows, options="+boundaries")
    for second in range(6):
        shade = 250 if second >= 3 else 0
        Image.new("RGB", (4, 4), (shade, second, 0)).save(tmp_path / "frames" / f"v{second}.png")
    (item,) = frames.load(name, tmp_path).items
    scores = {f"{item.id}_c{c}_i{i}": abs((c == 1) - (i < 3)) for c in (0, 1) for i in range(6)}
    file = tmp_path / "scores.jsonl"
    file.write_text(
        "\n".join(json.dumps({"label": label, "score": score}) for label, score in scores.items())
    )
    request = Request((f"scores:{file}",), name, "series", examine=False)
    (manifest,) = execute(request, store)
    estimates = estimates_of(store, manifest)["value"]
    assert estimates["boundary_within_0.1"] == estimates["boundary_accuracy"] == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(0, "A"), row(1, "B")], "has no boundary between two captions"),
        (
            [row(0, "A"), row(1, "A"), row(2, "B", boundary=0.5)],
            r"1 of 3 rows .*a boundary after the last frame of the caption before it",
        ),
        ([row(0, "A"), row(1, "B", boundary=9)], r"1 of 2 rows .*at most time"),
    ],
)
def test_invalid_boundaries_are_refused_in_one_line(tmp_path, rows, message):
    with pytest.raises(InvalidInput, match=message):
        frames.load(write(tmp_path, rows, options="+boundaries"), tmp_path)


def test_captions_from_scene_graphs_equal_those_in_the_papers_figures(tmp_path):
    graphs = [
        ("not_looking_at|behind|sitting_on", "sofa"),
        ("looking_at|beneath|lying_on", "sofa"),
        ("unsure|on_the_side_of|other_relationship", "sofa"),
    ]
    rows = [
        {"video": "v", "frame": f"{n}.png", "time": n, "relations": relations, "object": thing}
        for n, (relations, thing) in enumerate(graphs)
    ]
    dataset = frames.load(write(tmp_path, rows, options="+graph+ag"), tmp_path)
    assert [item.captions + item.foils for item in dataset.items] == [
        (
            "The person is sitting on the sofa which is behind him/her.",
            "The person is lying on the sofa which is beneath him/her.",
        )
    ]
    assert "1 of 3 frames have no caption and are left out (first: 4)." in dataset.notes


@pytest.mark.parametrize("change", [{"object": ""}, {"relations": ""}, {"relations": "a||c"}])
def test_a_scene_graph_without_object_or_relations_is_refused_in_one_line(tmp_path, change):
    rows = [
        {"video": "v", "frame": "0.png", "time": 0, "relations": "a|b|c", "object": "cup"} | change
    ]
    with pytest.raises(
        InvalidInput, match=r"1 of 1 rows .*an object and three relations for \+graph"
    ):
        frames.load(write(tmp_path, rows, options="+graph"), tmp_path)
