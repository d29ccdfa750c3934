"""Minimal pairs of two captioned frames from one video (EqBen, appendix B.1 to B.3), and boundaries in
videos (A.6).

    frames:TABLE                pictures next to the table
    frames:TABLE@FOLDER         add +available to use only the pairs whose frames exist

TABLE is a .csv, .tsv (tabs, no quotes) or .jsonl file with a row for each frame. Columns:

    video, frame, time, caption             name of the video, file of the frame, its second in the video, its caption
    object                                  object of the row, if a frame has a row for each object
    attention, spatial, contacting          three relations, as in Action Genome; or all in `relations`: a|b|c
    boundary                                second at which the captioned event began; empty before the first boundary
    faces                                   number of faces in the frame, or true or false

A segment is a run of frames with one caption and one boundary; its middle frame represents it.
The pairs are:

    (no option)   neighboring frames
    +ag           frames with at least 2 of 3 relations different; when a pair is chosen, the frame after its second is
                  skipped, and so is the frame after its first (B.1; the order in which pairs are
                  tried is our reading)
    +gebc         each segment and the second one after it, unless a caption has up, down, upward,
                  downward or towards (B.2)
    +youcook2     any two segments of a video, unless a frame shows a face (B.3)

These options can be used with or without one of the above:

    +boundaries   no pairs: each item is a boundary, with all frames of its video, for the probe `series` (A.6)
    +graph        captions are written from `object`, `spatial` and `contacting` with EqBen's template (4.1, B.1)
    +video        frames are extracted from the file FOLDER/video, with PyAV (vlprobe[data]), at
                  the row's `time`; a row without a time is a segment, cut into 5 frames per second (A.6). The column
                  `frame` is not read; frames are stored in the cache.

vlprobe has no face detector: fill in `faces` yourself. The manual screening in B.2 is not
reproduced. Two frames with the same caption are never a pair. The notes count excluded frames and pairs. An
item is image I1, captions (T1,), foil_image I2, foils (T2,). Pairs that share a frame form one
cluster, as do the boundaries in one video.

Appendix B.1 prints the template of +graph with the attention relation in the first place, but all captions in figures
5 and 16 have the contacting relation there, such as "The person is sitting on the sofa which is behind him/her.", and
so does ours. Frames from video files are stored in the cache as PNG, named by the digest of the video and the time.
Other versions of FFmpeg may decode other pixels, which changes the digests of the frames and of the dataset.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import read_rows
from vlprobe.datasets.validation import LoadedDataset, clustered_by_picture, validated
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.scoring import pictures
from vlprobe.storage.access import refuse_outside
from vlprobe.storage.files import write_bytes
from vlprobe.types import Item, Series

if TYPE_CHECKING:
    import av

RELATIONS = ("attention", "spatial", "contacting")
FACES_WORDS = {"": None, "false": 0, "no": 0, "true": 1, "yes": 1}


@dataclass(frozen=True, slots=True)
class Frame:
    """One row in a table of video frames."""

    key: str  # line number
    video: str
    object: str
    file: str
    time: float  # seconds; NaN for a whole segment of a video
    caption: str
    relations: tuple[str, ...]
    boundary: float  # seconds; -inf before the first boundary
    faces: bool | None  # None: unknown


TEMPLATE = "The person is {contacting} the {object} which is {spatial} him/her."
# Relations of Action Genome that the template does not use as written
WORDS = {"have it on the back": "having on the back", "other relationship": ""}
EXPECTED_GRAPHS = (
    "an object and three relations for +graph: columns object and attention, spatial, contacting "
    "(or a|b|c in relations)"
)


def captioned(file: Path, frames: Sequence[Frame]) -> list[Frame]:
    """Write a caption for each frame from its relations. If a relation cannot be put into words, the caption is empty.

    Raises:
        InvalidInput: a frame lacks an object, or a relation that the template needs.
    """
    faulty = [
        frame.key
        for frame in frames
        if not frame.object
        or len(frame.relations) != len(RELATIONS)
        or not all(frame.relations[1:])
    ]
    sources.refuse_rows(file, faulty, len(frames), EXPECTED_GRAPHS)
    return [replace(frame, caption=caption(frame.object, *frame.relations[1:])) for frame in frames]


def caption(object_name: str, spatial: str, contacting: str) -> str:
    """Describe one object in a frame in a sentence; return "" if a relation cannot be put into words.

    >>> caption("sofa", "behind", "sitting_on")
    'The person is sitting on the sofa which is behind him/her.'
    >>> caption("bag", "in_front_of", "other_relationship")
    ''
    """
    spatial, contacting = (
        WORDS.get(words := relation.replace("_", " ").strip().lower(), words)
        for relation in (spatial, contacting)
    )
    if not (spatial and contacting):
        return ""
    return TEMPLATE.format(contacting=contacting, object=object_name.strip(), spatial=spatial)


REQUIRED = ("video", "frame", "time", "caption")
OPTIONAL = ("object", *RELATIONS, "relations", "boundary", "faces")
EXPECTED_ROWS = (
    "columns video, frame, time (seconds), and optionally boundary (seconds, at most "
    "time) and faces (a number, true or false)"
)


def segments(sequence: list[Frame]) -> list[list[Frame]]:
    """Group consecutive frames that have the same caption and boundary. Frames without a caption are left out."""
    captioned = [frame for frame in sequence if frame.caption]
    return [
        list(run)
        for _, run in groupby(captioned, key=lambda frame: (frame.caption, frame.boundary))
    ]


def sequences(file: Path, frames: Sequence[Frame]) -> list[list[Frame]]:
    """Group the frames by video (and by object, if there is one), and sort each group by time.

    Raises:
        InvalidInput: a video has two rows for one time, or its boundaries decrease over time.
    """
    sequences: dict[tuple[str, str], dict[float, Frame]] = {}
    repeated = []
    for frame in frames:
        first_at_time = sequences.setdefault((frame.video, frame.object), {}).setdefault(
            frame.time, frame
        )
        if first_at_time is not frame:
            repeated.append(frame.key)
    expected = (
        "one row per time of a video (or of an object in a video, if there is a column object)"
    )
    sources.refuse_rows(file, repeated, len(frames), expected)
    ordered = [[by_time[time] for time in sorted(by_time)] for by_time in sequences.values()]
    falling = [
        later.key
        for sequence in ordered
        for earlier, later in pairwise(sequence)
        if later.boundary < earlier.boundary
    ]
    sources.refuse_rows(file, falling, len(frames), "boundaries that do not decrease over time")
    return ordered


def read(
    file: Path, choice: str, *, writes_captions: bool, is_video: bool
) -> tuple[list[Frame], list[str]]:
    """Read all frames in a table. Also return notes about columns that are ignored.

    Args:
        choice: The filter; some filters need certain columns.
        writes_captions: Whether to write captions from the relations.
        is_video: Whether to extract frames from videos; a row then has no file, and may lack a time.

    Raises:
        InvalidInput: a row does not describe a frame, or a column is missing.
    """
    rows = read_rows(file)
    present = {column for _, row in rows for column in row}
    needed = [
        column
        for column in REQUIRED
        if not (is_video and column in ("frame", "time"))
        and not (writes_captions and column == "caption")
    ]
    if not present.issuperset(needed):
        raise InvalidInput(
            f"'{file}' has the columns {', '.join(sorted(present)) or 'none'}. Expected "
            f"{', '.join(needed)}, and optionally {', '.join(OPTIONAL)}."
        )
    frame_by_row = {key: _frame(key, row, is_video) for key, row in rows}
    faulty = [key for key, frame in frame_by_row.items() if frame is None]
    sources.refuse_rows(file, faulty, len(rows), EXPECTED_ROWS)
    frames = [frame for frame in frame_by_row.values() if frame]
    _refuse_lacks(file, frames, choice)
    if writes_captions:
        frames = captioned(file, frames)
    return frames, sources.unread_columns(file, (row for _, row in rows), (*REQUIRED, *OPTIONAL))


def _refuse_lacks(file: Path, frames: Sequence[Frame], choice: str) -> None:
    """Raise InvalidInput if a row lacks a value that the filter needs."""
    if choice == "ag":
        faulty = [
            frame.key for frame in frames if len(frame.relations) != 3 or not all(frame.relations)
        ]
        expected = f"three relations for +ag: columns {', '.join(RELATIONS)}, or a|b|c in relations"
        sources.refuse_rows(file, faulty, len(frames), expected)
    if choice == "youcook2":
        faulty = [frame.key for frame in frames if frame.faces is None]
        expected = (
            "a column faces (a number, true or false) for +youcook2, because vlprobe has no "
            "face detector"
        )
        sources.refuse_rows(file, faulty, len(frames), expected)


def _frame(key: str, row: dict[str, str], is_video: bool) -> Frame | None:
    """Convert a table row to a frame; None if the row is invalid. If frames come from videos, a row may lack a time."""
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
    thing, text = row.get("object", ""), row.get("caption", "")
    return Frame(key, video, thing, file, time, text, relations, boundary, shows)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


MOTION = re.compile(r"\b(up|down|upward|downward|towards)\b", re.IGNORECASE)
ALIKE = "have fewer than 2 of 3 relations different"
SKIPPED = "directly follow a selected frame"
MOVES = "have a caption that describes a direction of motion"
FACES = "show a face"
SAME = "have the same caption for both frames"


EXCLUSIONS = (ALIKE, SKIPPED, MOVES, FACES, SAME)
Pairs = Iterator[tuple[Frame, Frame, str]]  # two frames, and the reason for leaving them out, or ""


def _neighbors(sequence: list[Frame]) -> Pairs:
    for earlier, later in pairwise(sequence):
        yield earlier, later, _same_caption_reason(earlier, later)


def _action_genome(sequence: list[Frame]) -> Pairs:
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


def _gebc(sequence: list[Frame]) -> Pairs:
    middles = _middles(sequence)
    for earlier, later in zip(middles, middles[2:], strict=False):
        moves = MOTION.search(earlier.caption) or MOTION.search(later.caption)
        yield earlier, later, MOVES if moves else _same_caption_reason(earlier, later)


def _youcook2(sequence: list[Frame]) -> Pairs:
    for earlier, later in combinations(_middles(sequence), 2):
        faces = earlier.faces or later.faces
        yield earlier, later, FACES if faces else _same_caption_reason(earlier, later)


FILTERS = {"": _neighbors, "ag": _action_genome, "gebc": _gebc, "youcook2": _youcook2}


def _same_caption_reason(earlier: Frame, later: Frame) -> str:
    return SAME if earlier.caption == later.caption else ""


def _middles(sequence: list[Frame]) -> list[Frame]:
    return [segment[(len(segment) - 1) // 2] for segment in segments(sequence)]


FPS = 5  # frames per second of a cut segment; EqBen, appendix A.6
MOST_FRAMES = 5_000  # extracted from one video
MOST_DECODED = 300_000  # decoded from one video: 83 minutes at 60 per second
MOST_PIXELS = 34_000_000  # in a frame: 8K
# Seconds after the last frame that still count as inside, because a frame lasts some time
LATE = 0.5
# Demuxers of single files, excluding those that open other files, such as playlists.
FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg"
EXPECTED_VIDEO = "an MP4, MOV, MKV, WebM, AVI or MPEG file with a video stream"


def extracted(file: Path, frames: Sequence[Frame], folder: Path, cache: Path) -> list[Frame]:
    """Extract the frames from their videos into files in the cache. A row without a time is a segment, from which FPS
    frames per second are taken.

    Args:
        frames: The rows of the table; `video` is the name of a file.
        cache: Cache folder; pictures are written to `cache/frames`.

    Raises:
        MissingDependency: PyAV is not installed.
        InvalidInput: a video is missing or cannot be read, or a time is outside of its video.
    """
    by_video: dict[str, list[Frame]] = {}
    for frame in frames:
        by_video.setdefault(frame.video, []).append(frame)
    return [
        frame
        for name, of_video in by_video.items()
        for frame in _of_video(file, _path(file, folder, name), of_video, cache)
    ]


def _path(file: Path, folder: Path, name: str) -> Path:
    path = folder / name
    refuse_outside(path)
    if Path(name).is_absolute() or ".." in Path(name).parts or not path.is_file():
        raise InvalidInput(
            f"The video '{name}', which '{file}' lists, is not in '{folder}'. Add the video or "
            "delete its rows."
        )
    return path


def _of_video(file: Path, path: Path, frames: Sequence[Frame], cache: Path) -> list[Frame]:
    digest = pictures.file_digests([path], cache)[0]
    taken = cache / "frames"
    if any(math.isnan(frame.time) for frame in frames):
        frames = _cut(path, frames)
    if len(frames) > MOST_FRAMES:
        raise InvalidInput(
            f"'{file}' requests {len(frames):,} frames of '{path}'. The maximum is {MOST_FRAMES:,}."
        )
    kept_frames = [
        replace(frame, file=str(taken / f"{digest}-{round(1000 * frame.time):09}.png"))
        for frame in frames
    ]
    missing = sorted({frame.time for frame in kept_frames if not Path(frame.file).exists()})
    if missing:
        _write(file, path, missing, {frame.time: Path(frame.file) for frame in kept_frames})
    return kept_frames


def _cut(path: Path, segments: Sequence[Frame]) -> list[Frame]:
    """Return one frame every 1 / FPS seconds, with the caption of its segment. A segment begins at its boundary."""
    ordered = sorted(segments, key=lambda segment: segment.boundary)
    final_second = 0.0
    for seconds, _ in _decoded(path):
        final_second = seconds
    if ordered[-1].boundary > final_second:
        raise InvalidInput(
            f"Row {ordered[-1].key} begins at second {ordered[-1].boundary:g} of '{path}', "
            f"whose last frame is at second {final_second:g}. Expected times within the video."
        )
    frames = []
    for number in range(math.floor(final_second * FPS + 1e-6) + 1):
        seconds = number / FPS
        inside = [segment for segment in ordered if segment.boundary <= seconds]
        segment = inside[-1] if inside else replace(ordered[0], caption="", boundary=-math.inf)
        frames.append(replace(segment, key=f"{segment.key}@{seconds:g}", time=seconds))
    return frames


def _write(
    file: Path, path: Path, missing: Sequence[float], file_of_time: dict[float, Path]
) -> None:
    """Decode a video, and write the frames that it shows at the missing times, which must be in ascending order."""
    waiting = list(missing)
    final_second, picture_before = 0.0, None
    for seconds, picture in _decoded(path):
        while waiting and picture_before is not None and waiting[0] < seconds - 1e-6:
            _save(picture_before, file_of_time[waiting.pop(0)])
        if not waiting:
            return
        final_second, picture_before = seconds, picture
    while waiting and picture_before is not None and waiting[0] <= final_second + LATE:
        _save(picture_before, file_of_time[waiting.pop(0)])
    if waiting:
        raise InvalidInput(
            f"'{file}' requests second {waiting[0]:g} of '{path}', whose last frame is at second "
            f"{final_second:g}. Expected times within the video."
        )


def _save(picture: "av.VideoFrame", path: Path) -> None:
    write_bytes(path, pictures.encode(picture.to_image(), "PNG"))


def _decoded(path: Path) -> Iterator[tuple[float, "av.VideoFrame"]]:
    """Decode a video. Yield the time (seconds from the first frame) and picture of each frame. Raises InvalidInput."""
    try:
        import av
        from av.error import FFmpegError
    except ImportError:
        raise MissingDependency("Extracting frames from videos", "av", "'vlprobe[data]'") from None
    try:
        with (
            path.open("rb") as content,
            av.open(
                content, "r", options={"format_whitelist": FORMATS, "protocol_whitelist": "none"}
            ) as container,
        ):
            if not container.streams.video:
                raise InvalidInput(f"'{path}' has no video stream. Expected {EXPECTED_VIDEO}.")
            stream = container.streams.video[0]
            if stream.codec_context is None:
                raise InvalidInput(
                    f"'{path}' has an unknown codec. Convert the video, for instance to H.264."
                )
            _refuse_large(path, stream.codec_context.width * stream.codec_context.height)
            start = None
            for number, picture in enumerate(container.decode(stream)):
                _refuse_large(path, picture.width * picture.height)
                if number >= MOST_DECODED:
                    raise InvalidInput(
                        f"'{path}' has more than {MOST_DECODED:,} frames. Split it into "
                        "shorter videos."
                    )
                if picture.time is None:
                    raise InvalidInput(
                        f"Frames of '{path}' have no timestamps. Expected {EXPECTED_VIDEO}."
                    )
                start = picture.time if start is None else start
                yield picture.time - start, picture
            if start is None:
                raise InvalidInput(f"'{path}' has no frames. Expected {EXPECTED_VIDEO}.")
    except (FFmpegError, OSError, ValueError) as error:
        raise InvalidInput(
            f"Video '{path}' cannot be read ({type(error).__name__}). Expected {EXPECTED_VIDEO}."
        ) from None


def _refuse_large(path: Path, n_pixels: int) -> None:
    if n_pixels > MOST_PIXELS:
        raise InvalidInput(
            f"Frames of '{path}' have {n_pixels:,} pixels. Expected at most {MOST_PIXELS:,}."
        )


PREFIX = "frames"
NAMES = ("frames:TABLE@FOLDER", "frames:TABLE@FOLDER+ag", "frames:TABLE@FOLDER+boundaries")
BOUNDARIES, GRAPH, VIDEO = "boundaries", "graph", "video"
_Rows = list[tuple[Item, Sequence[str]]]  # items without their pictures, and the pictures' names


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the pairs or boundaries, sorted by video as in the table, then by time. Raises InvalidInput."""
    options = [sources.AVAILABLE, BOUNDARIES, GRAPH, VIDEO, *filter(None, FILTERS)]
    source = sources.parse_source(name, options, [".csv", ".tsv", ".jsonl"], is_pictured=True)
    choices = sorted(source.options & {*FILTERS, BOUNDARIES})
    if len(choices) > 1:
        raise InvalidInput(
            f"'{name}' has {len(choices)} filters: {', '.join(choices)}. Expected at most one."
        )
    choice = "".join(choices)
    item_rows: _Rows = []
    notes: list[str] = []
    for file in source.files:
        frames, ignored = read(
            file, choice, writes_captions=GRAPH in source.options, is_video=VIDEO in source.options
        )
        if VIDEO in source.options:
            frames = extracted(file, frames, source.images or file.parent, cache)
        make = _boundaries if choice == BOUNDARIES else _pairs
        items_of_file, pair_notes = make(file, frames, choice)
        item_rows += items_of_file
        notes += ignored + pair_notes
    if not item_rows:
        wanted = "boundary between two captions" if choice == BOUNDARIES else "pair of frames"
        expected = (
            "a column boundary with the second at which each segment begins"
            if choice == BOUNDARIES
            else "frames of one video that differ"
        )
        raise InvalidInput(
            f"'{name}' has no {wanted}. {' '.join([*notes, ''])}Expected {expected}."
        )
    items, picture_notes = sources.attach_pictures(source, item_rows)
    return validated(name, clustered_by_picture(items, cache), cache, notes + picture_notes)


def _pairs(file: Path, frames: Sequence[Frame], choice: str) -> tuple[_Rows, list[str]]:
    captioned = [frame for frame in frames if frame.caption]
    without = [frame.key for frame in frames if not frame.caption]
    notes = sources.count_note(without, len(frames), "have no caption and are left out", "frames")
    pairs = [pair for sequence in sequences(file, captioned) for pair in FILTERS[choice](sequence)]
    for reason in EXCLUSIONS:
        keys = [
            f"{earlier.key}-{later.key}"
            for earlier, later, exclusion in pairs
            if exclusion == reason
        ]
        notes += sources.count_note(keys, len(pairs), f"{reason} and are left out", "pairs")
    return [
        (
            Item(
                f"{file.stem}/{earlier.key}-{later.key}",
                None,
                (earlier.caption,),
                _tags(file, earlier),
                (later.caption,),
            ),
            [earlier.file, later.file],
        )
        for earlier, later, exclusion in pairs
        if not exclusion
    ], notes


def _tags(file: Path, frame: Frame) -> dict[str, str]:
    tags = {"subset": file.stem, "video": frame.video, "object": frame.object}
    return {name: value for name, value in tags.items() if value or name != "object"}


def _boundaries(file: Path, frames: Sequence[Frame], choice: str) -> tuple[_Rows, list[str]]:
    """Return each boundary in each video, with all frames of the video, including those without a caption."""
    item_rows: _Rows = []
    early = []
    for sequence in sequences(file, frames):
        times = tuple(frame.time for frame in sequence)
        for segment, next_segment in pairwise(segments(sequence)):
            previous, following = segment[-1], next_segment[0]
            if following.boundary <= previous.boundary:
                continue
            if following.boundary <= previous.time:
                early.append(following.key)
                continue
            name = f"{file.stem}/{following.video}/{following.object}@{following.boundary:g}"
            series, foils = Series((), times, following.boundary), (following.caption,)
            item_id, captions = name.replace("/@", "@"), (previous.caption,)
            item = Item(item_id, None, captions, _tags(file, following), foils, series=series)
            item_rows.append((item, [frame.file for frame in sequence]))
    expected = "a boundary after the last frame of the caption before it"
    sources.refuse_rows(file, early, len(frames), expected)
    return item_rows, []
