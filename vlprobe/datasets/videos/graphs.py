"""Captions of frames from their scene graphs, by EqBen's slot-filling template.

Source: EqBen, section 4.1. Appendix B.1 prints the template with the attention relation in the first
place; all captions of figures 5 and 16 have the contacting one there, such as "The person is sitting on
the sofa which is behind him/her.", and so has ours.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.videos.frame import RELATIONS, Frame

TEMPLATE = "The person is {contacting} the {object} which is {spatial} him/her."
# Relations of Action Genome that do not go into the template as they are written
WORDS = {"have it on the back": "having on the back", "other relationship": ""}
EXPECTED = (
    "an object and three relations for +graph: columns object and attention, spatial, contacting "
    "(or a|b|c in relations)"
)


def captioned(file: Path, frames: Sequence[Frame]) -> list[Frame]:
    """The frames with captions made of their relations; those that cannot be told have none.

    Raises:
        InvalidInput: a frame without an object, or without one of the relations that the template has.
    """
    faulty = [
        frame.key
        for frame in frames
        if not frame.object
        or len(frame.relations) != len(RELATIONS)
        or not all(frame.relations[1:])
    ]
    sources.refuse_rows(file, faulty, len(frames), EXPECTED)
    return [replace(frame, caption=caption(frame.object, *frame.relations[1:])) for frame in frames]


def caption(object_name: str, spatial: str, contacting: str) -> str:
    """Describe what a frame shows of one object; "" where a relation says nothing.

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
