"""Frames of generated video files, and files that are not videos."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

av = pytest.importorskip("av", reason="needs requirements-models.txt")

from vlprobe.datasets import frames  # noqa: E402
from vlprobe.errors import InvalidInput  # noqa: E402

TWO = [{"video": "a.mp4", "time": time, "caption": f"at {time}"} for time in (0.3, 1.2)]


def write_video(path: Path, seconds: float = 2.0, rate: int = 10) -> None:
    """Write a video whose red channel increases by 10 per frame."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        stream.bit_rate = 4_000_000
        for number in range(round(seconds * rate)):
            pixels = np.full((32, 32, 3), (10 * number, 0, 0), np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def table(folder: Path, rows: list[dict], options: str = "") -> str:
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return f"frames:{folder / 'rows.jsonl'}@{folder}+video{options}"


def red(path: Path) -> float:
    return float(np.asarray(Image.open(path).convert("RGB"))[..., 0].mean())


def test_extracted_frames_are_those_shown_at_the_given_times(tmp_path):
    write_video(tmp_path / "a.mp4")
    rows = [{"video": "a.mp4", "time": time, "caption": f"at {time}"} for time in (0.3, 1.25, 1.9)]
    items = frames.load(table(tmp_path, rows), tmp_path / "cache").items
    shades = [red(item.image.path) for item in items] + [red(items[-1].foil_image.path)]
    assert shades == pytest.approx([30, 120, 190], abs=6)
    again = frames.load(table(tmp_path, rows), tmp_path / "cache")
    assert [item.image for item in again.items] == [item.image for item in items]


def test_segments_are_sampled_at_five_frames_per_second(tmp_path):
    write_video(tmp_path / "a.mp4")
    rows = [
        {"video": "a.mp4", "caption": "dark", "boundary": ""},
        {"video": "a.mp4", "caption": "light", "boundary": 1.1},
    ]
    (item,) = frames.load(table(tmp_path, rows, "+boundaries"), tmp_path / "cache").items
    assert item.series.times == pytest.approx([number / 5 for number in range(10)])
    assert (item.captions, item.foils, item.series.boundary) == (("dark",), ("light",), 1.1)
    shades = [red(picture.path) for picture in item.series.pictures]
    assert shades == pytest.approx([20 * number for number in range(10)], abs=6)
    assert (item.image, item.foil_image) == item.series.pictures[5:7]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"time": 7}, r"requests second 7 of .*last frame is at second 1.9. Expected times within"),
        ({"time": -1}, "1 of 1 rows"),
        ({"boundary": 8}, r"begins at second 8 of .*Expected times within the video"),
        ({"video": "gone.mp4", "time": 0}, "video 'gone.mp4', .* is not in"),
        ({"video": "../a.mp4", "time": 0}, "is not in"),
    ],
)
def test_times_outside_of_a_video_and_missing_videos_are_refused_in_one_line(
    tmp_path, row, message
):
    write_video(tmp_path / "a.mp4")
    rows = [{"video": "a.mp4", "caption": "A", "time": ""} | row]
    with pytest.raises(InvalidInput, match=message) as caught:
        frames.load(table(tmp_path, rows), tmp_path / "cache")
    assert "\n" not in str(caught.value)


PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.mp4\n#EXT-X-ENDLIST\n"
HOSTILE = {
    "text": b"no video",
    "empty": b"",
    "playlist": PLAYLIST.encode(),
    "concat": b"ffconcat version 1.0\nfile a.mp4\n",
    "address": b"#EXTM3U\n#EXTINF:2,\nhttp://127.0.0.1:9/a.ts\n",
}


@pytest.mark.parametrize("kind", [*HOSTILE, "cut", "picture"])
def test_files_that_are_not_videos_and_playlists_are_refused(tmp_path, kind):
    write_video(tmp_path / "a.mp4")
    write_video(tmp_path / "b.mp4")
    if kind == "cut":
        (tmp_path / "b.mp4").write_bytes((tmp_path / "a.mp4").read_bytes()[:200])
    elif kind == "picture":
        Image.new("RGB", (8, 8)).save(tmp_path / "b.mp4", format="PNG")
    else:
        (tmp_path / "b.mp4").write_bytes(HOSTILE[kind])
    rows = [{"video": "b.mp4", "time": 0, "caption": "A"}]
    with pytest.raises(
        InvalidInput, match=r"b\.mp4' (cannot be read|has no frame|has no video stream|is empty)"
    ):
        frames.load(table(tmp_path, rows), tmp_path / "cache")


def test_a_video_with_an_unknown_codec_is_refused_in_one_line(tmp_path):
    write_video(tmp_path / "a.mp4")
    content = (tmp_path / "a.mp4").read_bytes()
    assert content.count(b"mp4v") == content.count(b"esds") == 1
    (tmp_path / "a.mp4").write_bytes(content.replace(b"mp4v", b"zzzz").replace(b"esds", b"free"))
    name = table(tmp_path, TWO)
    with pytest.raises(InvalidInput, match="has an unknown codec"):
        frames.load(name, tmp_path / "cache")


def test_a_video_with_random_bytes_changed_is_read_or_refused_in_one_line(tmp_path):
    write_video(tmp_path / "a.mp4")
    whole, rng = (tmp_path / "a.mp4").read_bytes(), np.random.default_rng(0)
    name = table(tmp_path, TWO)
    outcomes = set()
    for number in range(90):
        broken = bytearray(whole)
        for place in rng.integers(
            len(whole) - 900, len(whole), number % 5
        ):  # the position of the header
            broken[place] = rng.integers(256)
        (tmp_path / "a.mp4").write_bytes(broken)
        try:
            outcomes.add(len(frames.load(name, tmp_path / "cache").items))
        except InvalidInput as error:
            assert str(error).isprintable()
            outcomes.add("one line")
    assert outcomes >= {1, "one line"}


def test_too_many_or_too_large_frames_are_refused(tmp_path, monkeypatch):
    write_video(tmp_path / "a.mp4")
    rows = [{"video": "a.mp4", "time": 1, "caption": "A"}]
    for limit, value, message in (
        ("MOST_PIXELS", 1000, "have 1,024 pixels"),
        ("MOST_DECODED", 3, "more than 3 frames"),
        ("MOST_FRAMES", 0, "requests 1 frames of"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(frames, limit, value)
            with pytest.raises(InvalidInput, match=message):
                frames.load(table(tmp_path, rows), tmp_path / "cache")
