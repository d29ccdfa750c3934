"""The table of PRSM."""

from vlprobe.views.paper_tables.columns import Column, PaperTable

_PRSM_SETS = {"P1": "p1/o-c1-c2", "P2": "p2/p1-p2-p3-np", "P3": "p3/o-a1-a2-a12"}
TABLES = (
    PaperTable(
        1,
        "Overlap",
        "Their gallery: 170,832 pictures of SocialCounterfactuals, and 72,876 of women or men. An overlap depends "
        "on the size of the gallery, so compare only with equal ones. The paper's rank correlations (0.02 to 0.04) "
        "cannot be correlations of ranks beside such overlaps, so they are left out.",
        tuple(
            Column(
                setting,
                f"Top {k:,}",
                f"prsm_local_{k}",
                ("socialcounterfactuals", split, f"local_{k}"),
                breakdown="subtype",
                slices=(setting,),
            )
            for setting, split in _PRSM_SETS.items()
            for k in (100, 1000)
        ),
        {"overall": "CLIP, everyone", "female": "CLIP, women", "male": "CLIP, men"},
    ),
)
