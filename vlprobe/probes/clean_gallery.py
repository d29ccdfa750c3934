"""The clean gallery of a search: nothing is altered, and the rival of the right candidate is the best of all
others.
"""

from vlprobe.types import Case, Edit, Item, Picture, Role
from vlprobe.types.presentation import KindPresentation

CLEAN = "clean"  # the policy and the rule of a gallery in which nothing is altered
CAPTIONS, PICTURES = "clean_i2t", "clean_t2i"  # kinds of its cases, by what is searched
KINDS = {
    CAPTIONS: KindPresentation(
        label="Find the caption: nothing is altered",
        lie="another picture's caption",
        winner="the other caption",
        lies="captions of other pictures",
        question="A picture looks for its captions among those of all pictures: one of its own should score higher "
        "than all others.",
        body="caption_search",
    ),
    PICTURES: KindPresentation(
        label="Find the picture: nothing is altered",
        lie="another picture",
        winner="the other picture",
        lies="other pictures",
        question="A caption looks for its picture among all pictures: the right one should score higher than all "
        "others.",
        body="picture_search",
    ),
}


def clean_cases(item: Item, picture: Picture) -> list[Case]:
    """The queries of an item in a gallery in which nothing is altered."""
    same: list[Role] = ["same"] * (len(item.captions) - 1)
    cases = [
        Case(
            f"{item.id}/{CAPTIONS}",
            item.id,
            item.id,
            (picture,),
            item.captions,
            ("original", *same),
            Edit(CAPTIONS, CLEAN, CLEAN),
        )
    ]
    for index, caption in enumerate(item.captions):
        group = f"{item.id}/{index}"
        case_id, edit = f"{group}/{PICTURES}", Edit(PICTURES, CLEAN, CLEAN)
        cases.append(Case(case_id, item.id, group, (picture,), (caption,), ("original",), edit))
    return cases
