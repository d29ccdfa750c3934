"""The tables of RoCOCO."""

from collections.abc import Mapping

from vlprobe.views.paper_tables.columns import Column, PaperTable

_COCO = "Their pictures: the 5,000 of COCO's test split."
_DROP = "The paper prints drop rates with a minus sign; here a loss is positive."


def _rococo(
    kind: str, policies: Mapping[str, tuple[str, str]], released: bool = False
) -> tuple[Column, ...]:
    """RoCOCO's columns: of each policy, by its name in published.csv, the title and the slice of a
    run; `released` where the authors gave away their files of it.
    """
    columns = [Column("Clean gallery", "R@1", f"{kind}_r1", ("coco_5k", "clean", f"{kind}_r1"))]
    for split, (title, slice_name) in policies.items():
        for label, metric, sign in (
            ("R@1", "r1_new", 1),
            ("Drop", "drop_rate", -1),
            ("RSMS", "rsms", 1),
        ):
            columns.append(
                Column(
                    title,
                    label,
                    f"{kind}_{metric}",
                    ("rococo", split, f"{kind}_{metric}"),
                    breakdown="subtype",
                    slices=(slice_name,),
                    released=split if released else "",
                    sign=sign,
                )
            )
    return tuple(columns)


def _pictures(*lams: float) -> tuple[Column, ...]:
    kinds = [(kind, lam) for kind in ("mix", "patch") for lam in lams]
    return _rococo(
        "t2i",
        {f"{kind}_{lam}": (f"{kind.capitalize()} {lam}", f"{kind}:{lam}") for kind, lam in kinds},
    )


TABLES = (
    PaperTable(
        3,
        "Find the caption",
        f"{_COCO} {_DROP}",
        _rococo(
            "i2t",
            {
                "rand_voca": ("Random word", "rand-voca"),
                "same_concept": ("Same concept", "same-concept"),
                "diff_concept": ("Another concept", "diff-concept"),
                "danger": ("Danger", "danger"),
            },
            released=True,
        ),
    ),
    PaperTable(4, "Find the picture", f"{_COCO} {_DROP}", _pictures(0.9, 0.8)),
    PaperTable(
        5,
        "A noun left out",
        f"{_COCO} {_DROP} On the noun voted presumably VSRN, CLIP, VSE∞ and BLIP; here those of the option influence.",
        _rococo(
            "i2t",
            {
                "random_deletion": ("Any noun", "delete:random"),
                "high_ei_deletion": ("The one that does most", "delete:high-ei"),
                "low_ei_deletion": ("The one that does least", "delete:low-ei"),
            },
        ),
    ),
    PaperTable(
        6,
        "More words exchanged",
        f"{_COCO} {_DROP} The paper exchanges any words for words of BERT's vocabulary and gives means over three "
        "draws; here nouns go first, the words are those of the option vocabulary or our own, and the option "
        "caption_seeds makes draws.",
        _rococo(
            "i2t",
            {
                f"substitution_{count}": (f"{count} words", f"rand-voca:{count}")
                for count in range(2, 6)
            },
        ),
    ),
    PaperTable(7, "Find the picture, stronger", f"{_COCO} {_DROP}", _pictures(0.7, 0.6)),
)
