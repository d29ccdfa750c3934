"""A paraphrase: its text, and the spans of the caption that it keeps."""

from typing import NamedTuple

Segment = str | tuple[int, int]  # new words, or a span of the caption that is kept


class Paraphrase(NamedTuple):
    """A caption in other words."""

    text: str
    rule: str
    subtype: str  # simple or advanced
    source: str = ""
    target: str = ""
    # In the order of the text; a kept stretch may differ in the case of its first letter
    segments: tuple[Segment, ...] = ()

    def where(self, position: int) -> int | None:
        """Index in the text of a character of the stripped caption; None if it was replaced."""
        i = 0
        for segment in self.segments:
            if isinstance(segment, str):
                i += len(segment)
                continue
            start, end = segment
            if start <= position < end:
                return i + position - start
            i += end - start
        return None
