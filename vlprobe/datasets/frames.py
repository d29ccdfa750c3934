"""Minimal pairs from frames of videos, two frames of one video, each with its own caption (EqBen,
appendix B.1 to B.3), and boundaries of videos to be found (A.6).

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

and what follows goes with any of them, or alone:

    +boundaries   no pairs: an item is a boundary, with all frames of its video, for the probe `series` (A.6)
    +graph        captions are written from `object`, `spatial` and `contacting` by EqBen's template (4.1, B.1)
    +video        frames are taken out of the file FOLDER/video, with PyAV (vlprobe[data]): at
                  the row's `time`; rows without one are segments, cut into 5 frames a second (A.6). The column
                  `frame` is not read; frames are kept in the cache.

No face detector is shipped: `faces` is the user's to fill in. Nor is the manual screening of B.2
reproduced. Two frames of one caption are never a pair. What is left out is counted in the notes. An
item is image I1, captions (T1,), foil_image I2, foils (T2,); pairs that share a frame are one
cluster, as are the boundaries of a video.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.validation import LoadedDataset, clustered_by_picture, validated
from vlprobe.datasets.videos import clips, pairing, rows
from vlprobe.datasets.videos.rows import Frame
from vlprobe.errors import InvalidInput
from vlprobe.types import Item, Series

PREFIX = "frames"
BOUNDARIES, GRAPH, VIDEO = "boundaries", "graph", "video"
_Rows = list[tuple[Item, Sequence[str]]]  # items without their pictures, and the names of these


def names() -> list[str]:
    """The form of a name; TABLE and FOLDER stand for paths."""
    return ["frames:TABLE@FOLDER", "frames:TABLE@FOLDER+ag", "frames:TABLE@FOLDER+boundaries"]


def load(name: str, cache: Path) -> LoadedDataset:
    """Pairs or boundaries in the order of the videos in the table, and of time. Raises InvalidInput."""
    source = _source(name)
    choices = sorted(source.options & {*pairing.FILTERS, BOUNDARIES})
    if len(choices) > 1:
        raise InvalidInput(
            f"'{name}' asks for {len(choices)} filters: {', '.join(choices)}. Expected at most one.",
        )
    choice = "".join(choices)
    item_rows: _Rows = []
    notes: list[str] = []
    for file in source.files:
        frames, ignored = rows.read(
            file,
            choice,
            writes_captions=GRAPH in source.options,
            is_video=VIDEO in source.options,
        )
        if VIDEO in source.options:
            frames = clips.extracted(file, frames, source.images or file.parent, cache)
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


def _source(name: str) -> sources.Source:
    options = [sources.AVAILABLE, BOUNDARIES, GRAPH, VIDEO, *filter(None, pairing.FILTERS)]
    source = sources.parse_source(name, options, [".csv", ".tsv", ".jsonl"])
    return source if source.images else replace(source, images=source.files[0].parent)


def _pairs(file: Path, frames: Sequence[Frame], choice: str) -> tuple[_Rows, list[str]]:
    captioned = [frame for frame in frames if frame.caption]
    without = [frame.key for frame in frames if not frame.caption]
    notes = sources.count_note(without, len(frames), "have no caption and are left out", "frames")
    pairs = [
        pair
        for sequence in rows.sequences(file, captioned)
        for pair in pairing.FILTERS[choice](sequence)
    ]
    for reason in pairing.EXCLUSIONS:
        keys = [
            f"{earlier.key}-{later.key}"
            for earlier, later, exclusion in pairs
            if exclusion == reason
        ]
        notes += sources.count_note(keys, len(pairs), f"{reason} and are left out", "pairs")
    return [
        (_pair(file, earlier, later), [earlier.file, later.file])
        for earlier, later, exclusion in pairs
        if not exclusion
    ], notes


def _pair(file: Path, earlier: Frame, later: Frame) -> Item:
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


def _boundaries(file: Path, frames: Sequence[Frame], choice: str) -> tuple[_Rows, list[str]]:
    """Every boundary of each video, with all its frames, those without a caption too."""
    item_rows: _Rows = []
    early = []
    for sequence in rows.sequences(file, frames):
        times = tuple(frame.time for frame in sequence)
        for before, after in pairwise(rows.segments(sequence)):
            previous, following = before[-1], after[0]
            if following.boundary <= previous.boundary:
                continue
            if following.boundary <= previous.time:
                early.append(following.key)
                continue
            tags = {"subset": file.stem, "video": following.video}
            item = Item(
                f"{file.stem}/{following.video}/{following.object}@{following.boundary:g}".replace(
                    "/@", "@"
                ),
                None,
                (previous.caption,),
                tags | ({"object": following.object} if following.object else {}),
                (following.caption,),
                series=Series((), times, following.boundary),
            )
            item_rows.append((item, [frame.file for frame in sequence]))
    expected = "a boundary after the last frame of the caption before it"
    sources.refuse_rows(file, early, len(frames), expected)
    return item_rows, []
