"""A probe: does a caption fit its picture better than one that says nothing? `--probe blank`"""

import numpy as np

from vlprobe.scoring.cases import case_scorer
from vlprobe.types import Case, Edit, Metric, Probe
from vlprobe.types.presentation import KindPresentation, Presentation

BEATS = "Share of captions that score above a caption that says nothing."


class Blank(Probe):
    name, version, needs, dataset = "blank", 1, "pictures", "demo"
    presentation = Presentation(title="Blank captions", name="Better than nothing?", position=9,
        asks="Does a caption beat a blank one?", sentence=BEATS, headlines=("beats_blank",),
        kinds={"blank": KindPresentation(label="A blank one", lie="a blank", lies="blanks")})  # fmt: skip
    metrics = (Metric("beats_blank", 1, "Beats a blank", BEATS, "rate", "up", 0.5, "ours", ("blank",),
                      lambda rows: np.heaviside(rows["margin"], 0)),)  # fmt: skip

    def cases(self, item, options, seed):
        texts, roles = (item.captions[0], "A photograph."), ("original", "different")
        edit = Edit("blank", "blank", "blank")
        return [Case(item.id, item.id, item.id, (item.image,), texts, roles, edit)], {}

    def scorer(self, encoder, run, items, cases, cache):
        return case_scorer(encoder, lambda rows: (rows["score_0"] - rows["score_1"]).to_numpy())


PROBE = Blank()
