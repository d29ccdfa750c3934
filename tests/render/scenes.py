"""A card that tests of words and pages begin with."""

from vlprobe.views.wall import WallCard

TRAINS = WallCard(
    case=7,
    id="a/0",
    item="a",
    kind="flip",
    subtype="object",
    rule="flip:object",
    source="trains",
    target="dogs",
    true_text="On the sand, three yellow trains are standing.",
    wrong_text="On the sand, three yellow dogs are standing.",
    images=("folder/a.png",),
    wrong_image="",
    margin=-0.1,
    verdicts=(),
    more=0,
    texts=(),
    roles=(),
    tags={},
    answer=None,
)
