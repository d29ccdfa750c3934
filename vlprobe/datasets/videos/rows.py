"""The rows of a table of frames: the video, the time and the content of each frame."""

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import read_json_lines, read_table
from vlprobe.datasets.videos import graphs
from vlprobe.datasets.videos.frame import FACES_WORDS, RELATIONS, Frame
from vlprobe.errors import InvalidInput

REQUIRED = ("video", "frame", "time", "caption")
OPTIONAL = ("object", *RELATIONS, "relations", "boundary", "faces")
EXPECTED = (
    "a video, a frame, seconds in time, no later ones in boundary (if any), "
    "and a number, true or false in faces (if any)"
)


def segments(sequence: list[Frame]) -> list[list[Frame]]:
    """Runs of frames with one caption and one boundary; frames without a caption are in none."""
    captioned = [frame for frame in sequence if frame.caption]
    return [
        list(run)
        for _, run in groupby(captioned, key=lambda frame: (frame.caption, frame.boundary))
    ]


def sequences(file: Path, frames: Sequence[Frame]) -> list[list[Frame]]:
    """The frames of each video (and object) by time. Raises InvalidInput for impossible times."""
    sequences: dict[tuple[str, str], dict[float, Frame]] = {}
    repeated = []
    for frame in frames:
        first_at_time = sequences.setdefault((frame.video, frame.object), {}).setdefault(
            frame.time,
            frame,
        )
        if first_at_time is not frame:
            repeated.append(frame.key)
    expected = "one row for each time of a video, or of an object in a video where there is a column object"
    sources.refuse_rows(file, repeated, len(frames), expected)
    ordered = [[by_time[time] for time in sorted(by_time)] for by_time in sequences.values()]
    falling = [
        later.key
        for sequence in ordered
        for earlier, later in pairwise(sequence)
        if later.boundary < earlier.boundary
    ]
    sources.refuse_rows(file, falling, len(frames), "boundaries that do not fall as time goes on")
    return ordered


def read(
    file: Path, choice: str, *, writes_captions: bool, is_video: bool
) -> tuple[list[Frame], list[str]]:
    """All frames of a table, and notes.

    Args:
        file: The table.
        choice: The filter, some of which need columns.
        writes_captions: Whether captions are made of the relations.
        is_video: Whether frames are taken out of videos: a row then names no file, and may be
            without a time.

    Raises:
        InvalidInput: a row that is not a frame, or a column that is not there.
    """
    rows = _rows(file)
    present = {column for _, row in rows for column in row}
    needed = [
        column
        for column in REQUIRED
        if not (is_video and column in ("frame", "time"))
        and not (writes_captions and column == "caption")
    ]
    if not present.issuperset(needed):
        raise InvalidInput(
            f"'{file}' has the columns {', '.join(sorted(present)) or 'none'}. Expected {', '.join(needed)}, "
            f"and if need be {', '.join(OPTIONAL)}."
        )
    frame_by_row = {key: _frame(key, row, is_video) for key, row in rows}
    sources.refuse_rows(
        file,
        [key for key, frame in frame_by_row.items() if frame is None],
        len(rows),
        EXPECTED,
    )
    frames = [frame for frame in frame_by_row.values() if frame]
    _refuse_lacks(file, frames, choice)
    if writes_captions:
        frames = graphs.captioned(file, frames)
    return frames, sources.unread_columns(file, (row for _, row in rows), (*REQUIRED, *OPTIONAL))


def _refuse_lacks(file: Path, frames: Sequence[Frame], choice: str) -> None:
    """Raises InvalidInput where a filter lacks a column."""
    if choice == "ag":
        faulty = [
            frame.key for frame in frames if len(frame.relations) != 3 or not all(frame.relations)
        ]
        expected = f"three relations for +ag: columns {', '.join(RELATIONS)}, or a|b|c in relations"
        sources.refuse_rows(file, faulty, len(frames), expected)
    if choice == "youcook2":
        faulty = [frame.key for frame in frames if frame.faces is None]
        expected = "a column faces for +youcook2, with a number, true or false: no face detector is shipped"
        sources.refuse_rows(file, faulty, len(frames), expected)


def _rows(file: Path) -> list[tuple[str, dict[str, str]]]:
    if file.suffix != ".jsonl":
        return [(str(line), row) for line, row in read_table(file)]
    records = read_json_lines(file)
    faulty = [str(number) for number, row in enumerate(records, 1) if not isinstance(row, dict)]
    sources.refuse_rows(file, faulty, len(records), EXPECTED)
    return [
        (str(number), {key.strip().lower(): _text(value) for key, value in row.items()})
        for number, row in enumerate(records, 1)
        if isinstance(row, dict)
    ]


def _text(value: object) -> str:
    """A value of a JSON line as a table would write it."""
    if isinstance(value, list):
        return "|".join(map(_text, value))
    return "" if value is None else str(value).strip()


def _frame(key: str, row: dict[str, str], is_video: bool) -> Frame | None:
    """The row as a frame; None where it is not one. A row of a video without a time is a segment."""
    video, file = row.get("video", ""), "" if is_video else row.get("frame", "")
    time, boundary = _number(row.get("time", "")), _number(row.get("boundary") or "-inf")
    faces = FACES_WORDS.get(row.get("faces", "").lower(), _number(row.get("faces", "")))
    relations = [row.get(column, "") for column in RELATIONS]
    if not any(relations):
        relations = row["relations"].split("|") if row.get("relations") else []
    is_segment = is_video and not row.get("time")
    is_known = (
        video
        and (file or is_video)
        and (is_segment or (math.isfinite(time) and time >= 0 and boundary <= time))
        and not math.isnan(boundary)
        and (faces is None or faces >= 0)
    )
    if not is_known:
        return None
    shows = None if faces is None else faces > 0
    relations = tuple(relation.strip().lower() for relation in relations)
    return Frame(
        key,
        video,
        row.get("object", ""),
        file,
        time,
        row.get("caption", ""),
        relations,
        boundary,
        shows,
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
