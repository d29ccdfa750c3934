"""Frames out of video files, kept in the cache as PNG, kept_frames by the digest of the video and the time.

Other versions of FFmpeg may decode other pixels: then the frames, and so the dataset, have another
digest.
"""

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vlprobe.datasets.videos.frame import Frame
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.scoring import pictures
from vlprobe.storage.access import refuse_outside
from vlprobe.storage.files import write_bytes

if TYPE_CHECKING:
    import av

FPS = 5  # frames a second that a segment is cut into; EqBen, appendix A.6
MOST_FRAMES = 5_000  # that are taken of one video
MOST_DECODED = 300_000  # that are decoded of one video: 83 minutes at 60 a second
MOST_PIXELS = 34_000_000  # of a frame: 8K
LATE = 0.5  # seconds after the last frame that are still inside: a frame lasts some time
# Demuxers of single files; none that opens others, as playlists do.
FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg"
EXPECTED = "an MP4, MOV, MKV, WebM, AVI or MPEG file with a video stream"


def extracted(file: Path, frames: Sequence[Frame], folder: Path, cache: Path) -> list[Frame]:
    """The frames with files in the cache; those without a time are segments, cut into FPS frames a second.

    Args:
        file: The table, for errors.
        frames: Its rows; `video` is the name of a file.
        folder: Where the videos are.
        cache: Pictures go to `cache/frames`.

    Raises:
        MissingDependency: PyAV is not installed.
        InvalidInput: a video that is not there or cannot be read, or a time outside of it.
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
            f"Video '{name}' of '{file}' is not in '{folder}'. Put it there, or drop its rows."
        )
    return path


def _of_video(file: Path, path: Path, frames: Sequence[Frame], cache: Path) -> list[Frame]:
    digest = pictures.file_digests([path], cache)[0]
    taken = cache / "frames"
    if any(math.isnan(frame.time) for frame in frames):
        frames = _cut(path, frames)
    if len(frames) > MOST_FRAMES:
        raise InvalidInput(
            f"'{file}' takes {len(frames):,} frames of '{path}'. Expected at most {MOST_FRAMES:,}; take fewer."
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
    """A frame each 1 / FPS s, with what the segment that it is in says; segments begin at their boundaries."""
    ordered = sorted(segments, key=lambda segment: segment.boundary)
    final_second = 0.0
    for seconds, _ in _decoded(path):
        final_second = seconds
    if ordered[-1].boundary > final_second:
        raise InvalidInput(
            f"Row {ordered[-1].key} begins at second {ordered[-1].boundary:g} of '{path}', whose last frame is at "
            f"{final_second:g}. Expected times inside of the video."
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
    """Writes the frames that are shown at these times, rising."""
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
            f"'{file}' asks for second {waiting[0]:g} of '{path}', whose last frame is at {final_second:g}. "
            "Expected times inside of the video."
        )


def _save(picture: "av.VideoFrame", path: Path) -> None:
    buffer = io.BytesIO()
    picture.to_image().save(buffer, format="PNG")
    write_bytes(path, buffer.getvalue())


def _decoded(path: Path) -> Iterator[tuple[float, "av.VideoFrame"]]:
    """Second, from the first frame, and picture of each frame. Raises InvalidInput."""
    try:
        import av
        from av.error import FFmpegError
    except ImportError:
        raise MissingDependency("Taking frames out of videos", "av", "'vlprobe[data]'") from None
    try:
        with (
            path.open("rb") as content,
            av.open(
                content, "r", options={"format_whitelist": FORMATS, "protocol_whitelist": "none"}
            ) as container,
        ):
            if not container.streams.video:
                raise InvalidInput(f"'{path}' shows no pictures. Expected {EXPECTED}.")
            stream = container.streams.video[0]
            if stream.codec_context is None:
                raise InvalidInput(
                    f"'{path}' has an unknown codec. Convert it, for instance to H.264."
                )
            _refuse_large(path, stream.codec_context.width * stream.codec_context.height)
            start = None
            for number, picture in enumerate(container.decode(stream)):
                _refuse_large(path, picture.width * picture.height)
                if number >= MOST_DECODED:
                    raise InvalidInput(
                        f"'{path}' has more than {MOST_DECODED:,} frames. Cut it into shorter ones."
                    )
                if picture.time is None:
                    raise InvalidInput(f"Frames of '{path}' have no time. Expected {EXPECTED}.")
                start = picture.time if start is None else start
                yield picture.time - start, picture
            if start is None:
                raise InvalidInput(f"'{path}' has no frame. Expected {EXPECTED}.")
    except (FFmpegError, OSError, ValueError) as error:
        raise InvalidInput(
            f"Video '{path}' cannot be read ({type(error).__name__}). Expected {EXPECTED}."
        ) from None


def _refuse_large(path: Path, n_pixels: int) -> None:
    if n_pixels > MOST_PIXELS:
        raise InvalidInput(
            f"Frames of '{path}' have {n_pixels:,} pixels. Expected at most {MOST_PIXELS:,}."
        )
