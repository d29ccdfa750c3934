"""Minimal pairs from frames of videos: two frames of one video, each with its own caption (EqBen,
appendix B.1 to B.3).

    frames:TABLE                pictures beside the table
    frames:TABLE@FOLDER         add +available to use only the pairs whose frames are there

TABLE is .csv, .tsv (tabs, no quotes) or .jsonl with a row for each frame. Columns:

    video, frame, time, caption             whose frame, its file, its second in the video, what it shows
    object                                  where a frame has a row for each object: whose row it is
    attention, spatial, contacting          three relations, as in Action Genome; or all in `relations`: a|b|c
    boundary                                second at which began what the caption says; empty before the first boundary
    faces                                   how many faces the frame shows, or true or false

A segment is a run of frames with one caption and one boundary; its middle frame stands for it.
Pairs are made of

    (no option)   neighbouring frames
    +ag           frames with at least 2 of 3 relations different; when a pair is chosen, the frame after its second is
                  skipped, and so is the frame after its first (B.1; the order in which pairs are
                  tried is our reading)
    +gebc         every segment and the next but one, unless a caption says up, down, upward, downward or towards (B.2)
    +youcook2     any two segments of a video, unless a frame shows a face (B.3)

No face detector is shipped: `faces` is the user's to fill in. Nor is the manual screening of B.2
reproduced. Two frames of one caption are never a pair. What is left out is counted in the notes. An
item is image I1, captions (T1,), foil_image I2, foils (T2,); pairs that share a frame are one
cluster.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, pairwise
from pathlib import Path

import numpy as np

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import read_json_lines, read_table
from vlprobe.datasets.validation import LoadedDataset, clustered_by_picture, validated
from vlprobe.errors import InvalidInput
from vlprobe.metrics.boundaries import boundary_time
from vlprobe.types import Item, Picture

PREFIX = "frames"
REQUIRED = ("video", "frame", "time", "caption")
RELATIONS = ("attention", "spatial", "contacting")
OPTIONAL = ("object", *RELATIONS, "relations", "boundary", "faces")
EXPECTED = (
    "a video, a frame, seconds in time, no later ones in boundary (if any), "
    "and a number, true or false in faces (if any)"
)
MOTION = re.compile(r"\b(up|down|upward|downward|towards)\b", re.IGNORECASE)
FACES_WORDS = {"": None, "false": 0, "no": 0, "true": 1, "yes": 1}

ALIKE = "have fewer than 2 of 3 relations different"
SKIPPED = "come right after a chosen frame"
MOVES = "have a caption that says where something moves"
FACES = "show a face"
SAME = "say the same of both frames"


@dataclass(frozen=True, slots=True)
class Frame:
    """A row of the table."""

    key: str  # the number of its line
    video: str
    object: str
    file: str
    time: float  # seconds
    caption: str
    relations: tuple[str, ...]
    boundary: float  # seconds; -inf before the first boundary
    faces: bool | None  # None: not said


_Pairs = Iterator[tuple[Frame, Frame, str]]  # with the reason for which they are left out, or none


@dataclass(frozen=True, slots=True)
class Boundary:
    """A moment at which the content of a video changes, and all frames of the video."""

    video: str
    seconds: float
    before: str
    after: str
    frames: tuple[Picture, ...]
    times: tuple[float, ...]  # seconds, of each frame, rising


def names() -> list[str]:
    """The form of a name; TABLE and FOLDER stand for paths."""
    return ["frames:TABLE@FOLDER", "frames:TABLE@FOLDER+ag"]


def load(name: str, cache: Path) -> LoadedDataset:
    """Pairs in the order of the videos in the table, and of time. Raises InvalidInput."""
    source = _source(name)
    filters = sorted(source.options & set(FILTERS))
    if len(filters) > 1:
        raise InvalidInput(
            f"'{name}' asks for {len(filters)} filters: {', '.join(filters)}. Expected at most one.",
        )
    rows, notes = [], []
    for file in source.files:
        frames, ignored = _read(file, *filters)
        captioned = [frame for frame in frames if frame.caption]
        without = [frame.key for frame in frames if not frame.caption]
        ignored += sources.count_note(
            without,
            len(frames),
            "have no caption and are left out",
            "frames",
        )
        choose = FILTERS["".join(filters)]
        pairs = [pair for sequence in _sequences(file, captioned) for pair in choose(sequence)]
        rows += [
            (_item(file, earlier, later), [earlier.file, later.file])
            for earlier, later, exclusion in pairs
            if not exclusion
        ]
        notes += ignored
        for reason in (ALIKE, SKIPPED, MOVES, FACES, SAME):
            keys = [
                f"{earlier.key}-{later.key}"
                for earlier, later, exclusion in pairs
                if exclusion == reason
            ]
            notes += sources.count_note(keys, len(pairs), f"{reason} and are left out", "pairs")
    if not rows:
        raise InvalidInput(
            f"'{name}' has no pair of frames. {' '.join(notes)} Expected frames of one video that differ."
        )
    items, picture_notes = sources.attach_pictures(source, rows)
    return validated(name, clustered_by_picture(items, cache), cache, notes + picture_notes)


def read_boundaries(name: str) -> list[Boundary]:
    """Every boundary of a table's videos, with the captions of the segments on its two sides.

    Raises:
        InvalidInput: a table that cannot be read, or one without boundaries.
    """
    source = _source(name)
    folder = source.images or source.files[0].parent
    all_boundaries = []
    for file in source.files:
        for sequence in _sequences(file, _read(file)[0]):
            frames = tuple(Picture(folder / frame.file) for frame in sequence)
            times = tuple(frame.time for frame in sequence)
            for before, after in pairwise(_segments(sequence)):
                if after[0].boundary > before[0].boundary:
                    captions = before[0].caption, after[0].caption
                    all_boundaries.append(
                        Boundary(after[0].video, after[0].boundary, *captions, frames, times),
                    )
    if not all_boundaries:
        raise InvalidInput(
            f"'{name}' has no boundaries. Expected a column boundary with the second at which each segment begins."
        )
    return all_boundaries


def predicted_times(
    boundaries: Sequence[Boundary],
    before: Sequence[np.ndarray],
    after: Sequence[np.ndarray],
) -> np.ndarray:
    """When each boundary happens as a model sees it: halfway between the two frames that best fit
    before, then after.

    Args:
        found: From `boundaries`.
        before: For each boundary, the similarity of every frame to the caption before it, shape
            (n_frames,).
        after: The same for the caption after it.

    Returns:
        Seconds, shape (n_boundaries,), NaN where a video has one frame: for
        `metrics.boundaries.boundary_accuracy`.

    Source: EqBen, appendix A.6.
    """
    times = []
    for boundary, was, becomes in zip(boundaries, before, after, strict=True):
        # In frames: half of it is the way to the next.
        frame_position = boundary_time(was, becomes, fps=1)
        times.append(
            math.nan
            if math.isnan(frame_position)
            else np.interp(frame_position, np.arange(len(was)), boundary.times)
        )
    return np.array(times)


def _neighbours(sequence: list[Frame]) -> _Pairs:
    for earlier, later in pairwise(sequence):
        yield earlier, later, _same_caption_reason(earlier, later)


def _action_genome(sequence: list[Frame]) -> _Pairs:
    kept_index = -2
    for start_index, earlier in enumerate(sequence):
        follows = start_index == kept_index + 1
        kept_later_index = -2
        for index, later in enumerate(sequence[start_index + 1 :], start_index + 1):
            differing = sum(
                relation != later_relation
                for relation, later_relation in zip(earlier.relations, later.relations, strict=True)
            )
            if follows or index == kept_later_index + 1:
                exclusion = SKIPPED
            elif differing < 2:
                exclusion = ALIKE
            else:
                exclusion = _same_caption_reason(earlier, later)
            if not exclusion:
                kept_index, kept_later_index = start_index, index
            yield earlier, later, exclusion


def _gebc(sequence: list[Frame]) -> _Pairs:
    middles = _middles(sequence)
    for earlier, later in zip(middles, middles[2:], strict=False):
        moves = MOTION.search(earlier.caption) or MOTION.search(later.caption)
        yield earlier, later, MOVES if moves else _same_caption_reason(earlier, later)


def _youcook2(sequence: list[Frame]) -> _Pairs:
    for earlier, later in combinations(_middles(sequence), 2):
        yield (
            earlier,
            later,
            FACES if earlier.faces or later.faces else _same_caption_reason(earlier, later),
        )


FILTERS = {"": _neighbours, "ag": _action_genome, "gebc": _gebc, "youcook2": _youcook2}


def _same_caption_reason(earlier: Frame, later: Frame) -> str:
    return SAME if earlier.caption == later.caption else ""


def _segments(sequence: list[Frame]) -> list[list[Frame]]:
    captioned = [frame for frame in sequence if frame.caption]
    return [
        list(run)
        for _, run in groupby(captioned, key=lambda frame: (frame.caption, frame.boundary))
    ]


def _middles(sequence: list[Frame]) -> list[Frame]:
    return [segment[(len(segment) - 1) // 2] for segment in _segments(sequence)]


def _source(name: str) -> sources.Source:
    source = sources.parse_source(
        name,
        [sources.AVAILABLE, *filter(None, FILTERS)],
        [".csv", ".tsv", ".jsonl"],
    )
    return source if source.images else replace(source, images=source.files[0].parent)


def _sequences(file: Path, frames: Sequence[Frame]) -> list[list[Frame]]:
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


def _read(file: Path, choice: str = "") -> tuple[list[Frame], list[str]]:
    """All frames of a table, and notes. Raises InvalidInput, also where a filter lacks a column."""
    rows = _rows(file)
    present = {column for _, row in rows for column in row}
    if not present.issuperset(REQUIRED):
        raise InvalidInput(
            f"'{file}' has the columns {', '.join(sorted(present)) or 'none'}. Expected {', '.join(REQUIRED)}, "
            f"and if need be {', '.join(OPTIONAL)}."
        )
    frame_by_row = {key: _frame(key, row) for key, row in rows}
    sources.refuse_rows(
        file,
        [key for key, frame in frame_by_row.items() if frame is None],
        len(rows),
        EXPECTED,
    )
    frames = [frame for frame in frame_by_row.values() if frame]
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
    return frames, sources.unread_columns(file, (row for _, row in rows), (*REQUIRED, *OPTIONAL))


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


def _frame(key: str, row: dict[str, str]) -> Frame | None:
    """The row as a frame; None where it is not one."""
    video, file = row.get("video", ""), row.get("frame", "")
    time, boundary = _number(row.get("time", "")), _number(row.get("boundary") or "-inf")
    faces = FACES_WORDS.get(row.get("faces", "").lower(), _number(row.get("faces", "")))
    relations = [row.get(column, "") for column in RELATIONS]
    if not any(relations):
        relations = row["relations"].split("|") if row.get("relations") else []
    is_known = (
        video
        and file
        and math.isfinite(time)
        and boundary <= time
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


def _item(file: Path, earlier: Frame, later: Frame) -> Item:
    """An item without its pictures."""
    tags = {"subset": file.stem, "video": earlier.video} | (
        {"object": earlier.object} if earlier.object else {}
    )
    return Item(
        f"{file.stem}/{earlier.key}-{later.key}",
        None,
        (earlier.caption,),
        tags,
        (later.caption,),
    )
