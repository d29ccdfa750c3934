"""Selection of two frames of a video as a minimal pair, and the reasons for rejecting others (EqBen, appendix B.1 to
B.3)."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

from vlprobe.datasets.videos.frame import Frame
from vlprobe.datasets.videos.rows import segments

MOTION = re.compile(r"\b(up|down|upward|downward|towards)\b", re.IGNORECASE)
ALIKE = "have fewer than 2 of 3 relations different"
SKIPPED = "come right after a chosen frame"
MOVES = "have a caption that says where something moves"
FACES = "show a face"
SAME = "say the same of both frames"


EXCLUSIONS = (ALIKE, SKIPPED, MOVES, FACES, SAME)
Pairs = Iterator[tuple[Frame, Frame, str]]  # with the reason for which they are left out, or none


def _neighbours(sequence: list[Frame]) -> Pairs:
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
        yield (
            earlier,
            later,
            FACES if earlier.faces or later.faces else _same_caption_reason(earlier, later),
        )


FILTERS = {"": _neighbours, "ag": _action_genome, "gebc": _gebc, "youcook2": _youcook2}


def _same_caption_reason(earlier: Frame, later: Frame) -> str:
    return SAME if earlier.caption == later.caption else ""


def _middles(sequence: list[Frame]) -> list[Frame]:
    return [segment[(len(segment) - 1) // 2] for segment in segments(sequence)]
