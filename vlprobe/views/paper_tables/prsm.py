"""The table of PRSM."""

from vlprobe.probes.prsm_comparisons import COMPARISONS
from vlprobe.views.paper_tables.columns import Column, PaperTable

SETS = {"P1": "o-c1-c2", "P2": "p1-p2-p3-np", "P3": "o-a1-a2-a12"}  # all versions of a query
_MEASURES = {"global": "Spearman", "local_100": "Top 100", "local_1000": "Top 1,000"}


def _columns() -> tuple[Column, ...]:
    """The ten printed rows: the two or three comparisons of each setting, then all versions."""
    columns = []
    for setting, pairs in COMPARISONS.items():
        rows = {"-".join(pair): ("comparison", "-".join(pair)) for pair in pairs}
        rows[SETS[setting]] = ("subtype", setting)
        for name, (breakdown, slice_name) in rows.items():
            for measure, title in _MEASURES.items():
                printed = ("socialcounterfactuals", f"{setting.lower()}/{name}", measure)
                columns.append(
                    Column(
                        f"{setting} {name}",
                        title,
                        f"prsm_{measure}",
                        printed,
                        breakdown=breakdown,
                        slices=(slice_name,),
                    )
                )
    return tuple(columns)


TABLES = (
    PaperTable(
        1,
        "Overlap",
        "Their gallery: 170,832 pictures of SocialCounterfactuals and 72,876 of women or men, as we read the n "
        "that it prints (it also speaks of 170k query-result pairs). An overlap depends on the size of the "
        "gallery, so compare only with equal ones. The paper's rank correlations (0.02 to 0.04) can hardly be "
        "correlations of ranks beside such overlaps; yours are. The last columns of P1, P2 and P3 are means over "
        "three, four and four versions of a query in print, and over as many as it has in yours. Where captions "
        "or a file of edits are the versions of P1, a text that comes twice counts once, so that c2 may be the "
        "third paraphrase. Runs of before single comparisons were stored have a dash there: remove such a run "
        "and ask again to see them.",
        _columns(),
        {"overall": "CLIP, everyone", "female": "CLIP, women", "male": "CLIP, men"},
        groups={"female": "gender=female", "male": "gender=male"},
    ),
)
