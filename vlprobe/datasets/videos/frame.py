"""One row of a table of frames."""

from dataclasses import dataclass

RELATIONS = ("attention", "spatial", "contacting")
FACES_WORDS = {"": None, "false": 0, "no": 0, "true": 1, "yes": 1}


@dataclass(frozen=True, slots=True)
class Frame:
    """A row of the table."""

    key: str  # the number of its line
    video: str
    object: str
    file: str
    time: float  # seconds; NaN: of a whole segment of a video
    caption: str
    relations: tuple[str, ...]
    boundary: float  # seconds; -inf before the first boundary
    faces: bool | None  # None: not said
