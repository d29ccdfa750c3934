"""Half-truths: does a short true caption score higher than the same caption with a wrong detail? (arXiv 2602.23906)

A case is a picture, a short true caption, the caption with a wrong detail, and the caption with the true detail.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vlprobe.metrics.half_truths import METRICS
from vlprobe.perturb.half_truths import KIND, half_truths
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.scoring import cases as scoring_cases
from vlprobe.types import Case, Encoder, Item, Probe, Reader, Role, Run
from vlprobe.types.presentation import KindPresentation, Presentation

ROLES: tuple[Role, ...] = ("original", "different", "same")

PRESENTATION = Presentation(
    title="Half-truths (2602.23906)",
    name="Half-truths (arXiv 2602.23906)",
    asks="Does a wrong detail lower the score of a short true caption?",
    position=8,
    sentence="A short caption is true; a longer one adds a wrong detail. A model that checks each detail prefers the "
    "short caption. **Higher is better**: fewer wrong details pass.",
    headlines=("half_truth_accuracy", "longer_wrong_preferred"),
    subtype_label="Wrong detail",
    value_labels={"object": "Object", "attribute": "Attribute", "relation": "Relation"},
    value_order=("object", "attribute", "relation"),
    kinds={
        KIND: KindPresentation(
            label="A short caption, and the same with a wrong detail",
            lie="a wrong detail",
            accuracy="half_truth_accuracy",
            lies="wrong details",
            question="The longer caption adds a wrong detail: the short one should score higher.",
            body="edit",
            edit_label="With a wrong detail",
            guess_held=0.5,
        )
    },
)


class HalfTruths(Probe):
    """Measures how often a short true caption is preferred to a longer one with a wrong detail."""

    name = "halftruths"
    version = 1
    needs = "pictures"
    dataset = "demo"
    presentation = PRESENTATION
    metrics = METRICS

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create up to three cases per caption of the item, and count the captions without a case, by type."""
        if item.image is None:
            return [], {"no picture": 1}
        made, dropped = half_truths(item.captions, item.id, seed)
        cases = []
        for number, (caption, of_caption) in enumerate(zip(item.captions, made, strict=True)):
            if caption in self.foreign:
                dropped[NOT_IN_ENGLISH] = dropped.get(NOT_IN_ENGLISH, 0) + 1
                continue
            group = f"{item.id}/{number}"
            for half_truth in of_caption:
                texts, edit = (half_truth.short, half_truth.text, caption), half_truth.edit
                case_id = f"{group}/{edit.subtype}"
                cases.append(Case(case_id, item.id, group, (item.image,), texts, ROLES, edit))
        return cases, dropped

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Return the captions that the rules edit: all captions of the item."""
        return item.captions

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Return a scorer. Its margin is the short caption's similarity minus the wrong caption's similarity."""
        return scoring_cases.case_scorer(encoder, _margins)


def _margins(rows: pd.DataFrame) -> np.ndarray:
    return (rows["score_0"] - rows["score_1"]).to_numpy()


PROBE = HalfTruths()
