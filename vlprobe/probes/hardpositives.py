"""Hard positives: does a true caption still beat the wrong one after rewording? (Kamath et al. 2024, arXiv 2409.17958)

A case is a picture, a true caption, a second caption with the same meaning (the hard positive) and a wrong caption. It
comes from a dataset of triplets, from a file of edits, or from the rules of `lgip`. The rules pair each wrong caption
with an advanced paraphrase, so a negation makes a triple of caption, paraphrase and negation (SemCLIP, arXiv
2511.16527).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vlprobe.metrics.hard_positives import KIND, METRICS
from vlprobe.perturb import lgip
from vlprobe.perturb.draws import draw
from vlprobe.perturb.edits_file import NO_EDIT
from vlprobe.perturb.kinds.edits import LIES
from vlprobe.probes import file_options
from vlprobe.probes.lgip import PRESENTATION as LGIP_PRESENTATION
from vlprobe.probes.visla import PRESENTATION as VISLA_PRESENTATION
from vlprobe.scoring import cases as scoring_cases
from vlprobe.types import Case, Edit, Encoder, Item, Reader, Role, Run
from vlprobe.types.presentation import KindPresentation, Presentation

ROLES: tuple[Role, ...] = ("original", "same", "different")
Triplet = tuple[int, str, str, Edit]  # number of the caption, its paraphrase, the wrong caption

PRESENTATION = Presentation(
    title="Hard positives (2409.17958)",
    name="Hard positives (arXiv 2409.17958)",
    asks="Does a reworded true caption still beat the wrong one?",
    position=9,
    sentence="Two captions are true and mean the same; a third is wrong. A model that understands "
    "wording prefers both to the wrong one, not just the original one. **Higher is better**: "
    "rewording changes no answer.",
    headlines=("augmented_accuracy", "brittleness"),
    subtype_label="Wrong caption",
    value_labels={**VISLA_PRESENTATION.value_labels, **LGIP_PRESENTATION.value_labels},
    kinds={
        KIND: KindPresentation(
            label="A caption, a rewording of it and a wrong caption",
            lie="a wrong caption",
            accuracy="augmented_accuracy",
            question="Both true captions should score higher than the wrong one.",
            several_comparisons=True,
            guess_held=1 / 3,
        )
    },
)


class HardPositives(file_options.ProbeWithEdits):
    """Measures how often a true caption and its rewording both score higher than a wrong caption."""

    name = "hardpositives"
    version = 1
    needs = "pictures"
    dataset = "demo-triplets"
    presentation = PRESENTATION
    options = (
        file_options.edits_option(
            "A caption, an edit with the same meaning and an edit with a different meaning form a case."
        ),
    )
    metrics = METRICS

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Return the captions that rules edit: all, or none if the wrong captions come from a file or the dataset."""
        return () if item.foils or options.get("edits") else item.captions

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create one case per wrong caption. Captions and items without a case are counted by reason."""
        if item.image is None:
            return [], {"no picture": 1}
        dropped: Mapping[str, int] = {}
        if edits := file_options.load_edits(options):
            triplets = [
                (number, positive.text, negative.text, negative.edit(KIND))
                for number, caption in enumerate(item.captions)
                for positive, negative in edits.pairs(item, caption)
            ]
            dropped = {} if triplets else {NO_EDIT: 1}
        elif item.foils:
            if len(item.captions) < 2:
                return [], {"one true caption": 1}
            subset = item.tags.get("subset", "")
            edit = Edit(KIND, subset, subset or KIND)
            triplets = [(0, item.captions[1], item.foils[0], edit)]
        else:
            triplets, dropped = self._triplets_of_rules(item, seed)
        cases = []
        for position, (number, positive, negative, edit) in enumerate(triplets):
            texts, group = (item.captions[number], positive, negative), f"{item.id}/{number}"
            case_id = f"{group}/{position}"
            cases.append(Case(case_id, item.id, group, (item.image,), texts, ROLES, edit))
        return cases, dropped

    def _triplets_of_rules(self, item: Item, seed: int) -> tuple[list[Triplet], Mapping[str, int]]:
        """Make wrong captions by rules, and pair each of them with a paraphrase, preferably an advanced one."""
        kinds = ("paraphrase", "flip", *LIES)
        made = lgip.edits(item.captions, item.id, seed=seed, kinds=kinds)
        made = lgip.in_english(item.captions, made, self.foreign)
        dropped, triplets = Counter(made.dropped), []
        for number, edits in enumerate(made.edits):
            same = [(text, edit.subtype) for text, edit in edits if edit.kind == "paraphrase"]
            pool = [text for text, subtype in same if subtype == "advanced"]
            pool = pool or [text for text, _ in same]
            for negative, edit in edits:
                if edit.kind == "flip" and not pool:
                    dropped["no paraphrase"] += 1
                elif edit.kind == "flip":
                    positive = pool[
                        draw(seed, item.id, number, f"{KIND}:{edit.subtype}") % len(pool)
                    ]
                    wrong = Edit(KIND, edit.subtype, edit.rule, edit.source, edit.target)
                    triplets.append((number, positive, negative, wrong))
        return triplets, dict(dropped)

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Return a scorer. Its margin is the lower score of the two true captions minus the wrong caption's score."""
        return scoring_cases.case_scorer(encoder, _margins)


def _margins(rows: pd.DataFrame) -> np.ndarray:
    first, second, wrong = (rows[f"score_{number}"].to_numpy() for number in range(3))
    return np.minimum(first, second) - wrong


PROBE = HardPositives()
