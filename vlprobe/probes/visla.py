"""VISLA and SugarCrepe++: two captions with the same meaning and a hard negative, also for text
encoders (papers/visla.txt).

An item has a case of kind `t2t` (the three texts) and, if it has a picture, a case of kind `i2t`. If
it has only one true caption (SugarCrepe), it has only a case of kind `i2t-pair`.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from rapidfuzz.distance import Levenshtein

from vlprobe.metrics import triplets
from vlprobe.perturb.edits_file import NO_EDIT, EditsFile
from vlprobe.probes import file_options
from vlprobe.scoring import cases as scoring_cases
from vlprobe.types import Case, Edit, Encoder, Item, Picture, Reader, Role, Run
from vlprobe.types.presentation import KindPresentation, Presentation, TradeOff

WORD = re.compile(r"\w+")


PRESENTATION = Presentation(
    title="Triplets (VISLA)",
    name="Paraphrase or lookalike (VISLA)",
    asks="Two captions mean the same, a third only looks similar.",
    position=4,
    sentence="Two captions mean the same; a third looks similar and is wrong. A model has to find the two that belong "
    "together, with texts only or with a picture. **Higher is better**: the model solves more triplets.",
    headlines=("t2t_accuracy", "i2t_accuracy", "pair_accuracy"),
    trade_off=TradeOff(
        down="t2t_accuracy",
        ups=("i2t_accuracy",),
        shifted_by="",
        x_words="paraphrases recognized by their texts",
        y_words="lookalikes rejected with the picture",
    ),
    subtype_label="Subset",
    value_labels={
        "generic": "Generic",
        "spatial": "Spatial",
        # SugarCrepe
        "add_att": "Added attribute",
        "add_obj": "Added object",
        "replace_att": "Wrong attribute",
        "replace_obj": "Wrong object",
        "replace_rel": "Wrong relation",
        "swap_att": "Swapped attributes",
        "swap_obj": "Swapped things",
    },
    kinds={
        "t2t": KindPresentation(
            label="Texts: two with the same meaning, one lookalike",
            lie="a lookalike sentence",
            accuracy="t2t_accuracy",
            lies="lookalike sentences",
            question="Two captions mean the same: they should be closer to each other than to the third.",
            body="triplet",
            several_comparisons=True,
            guess_held=1 / 3,
        ),
        "i2t": KindPresentation(
            label="A picture against the three texts",
            lie="a lookalike caption",
            accuracy="i2t_accuracy",
            lies="lookalike captions",
            question="A picture should prefer both true captions to the wrong one.",
            several_comparisons=True,
            guess_held=1 / 3,
        ),
        "i2t-pair": KindPresentation(
            label="A picture, its caption and a wrong caption",
            lie="a wrong caption",
            accuracy="pair_accuracy",
            sentence="A picture has two captions, and one of them is wrong. A model has to choose the true caption. "
            "**Higher is better**: fewer wrong captions fool the model.",
            question="The true caption should score higher than the wrong one.",
            guess_held=0.5,
        ),
    },
)


class Visla(file_options.ProbeWithEdits):
    """Measures how well a model tells two captions with the same meaning from a third that only looks similar."""

    name = "visla"
    version = 1
    dataset = "demo-triplets"
    presentation = PRESENTATION
    options = (
        file_options.edits_option(
            "A triplet is a caption, an edit with the same meaning and an edit with a "
            "different meaning."
        ),
    )
    metrics = triplets.METRICS

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create the cases for an item with a triplet. An item without a wrong caption has no case and is counted."""
        if edits := file_options.load_edits(options):
            return _triplets_of_file(item, edits)
        if not item.foils:
            return [], {"no negative": 1}
        negative, subset = item.foils[0], item.tags.get("subset", "")
        images = (item.image,) if item.image else ()
        if len(item.captions) == 1:
            if not images:
                return [], {"one true caption and no picture": 1}
            texts = (*item.captions, negative)
            return [_case(item, "i2t-pair", subset, images, texts, ("original", "different"))], {}
        return _triplet(item, item.captions[:2], negative, subset), {}

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Return a scorer. Its margin is the smaller of the two differences that should be positive. The scorer also
        computes the word overlap between the texts: the Jaccard index of each pair (NaN for cases with a picture).
        """
        score = scoring_cases.case_scorer(encoder, _margins)

        def score_triplets(cases: pa.Table) -> pa.Table:
            table = score(cases)
            overlaps = np.full((len(cases), 3), np.nan, dtype=np.float32)
            for row, (kind, texts) in enumerate(
                zip(cases["kind"].to_pylist(), cases["texts"].to_pylist(), strict=True)
            ):
                if kind == "t2t":
                    words = [frozenset(WORD.findall(text.lower())) for text in texts]
                    overlaps[row] = [
                        triplets.jaccard(*pair) for pair in itertools.combinations(words, 2)
                    ]
            for column, name in enumerate(("overlap_01", "overlap_02", "overlap_12")):
                table = table.append_column(name, [overlaps[:, column]])
            return table

        return score_triplets


def _triplet(
    item: Item, positives: Sequence[str], negative: str, subset: str, number: str = ""
) -> list[Case]:
    """Create the cases for one triplet. The true caption that looks more like the wrong one comes first."""
    near, far = sorted(positives, key=lambda caption: Levenshtein.distance(caption, negative))
    texts = (near, far, negative)
    roles: tuple[Role, ...] = ("original", "same", "different")
    cases = [_case(item, "t2t", subset, (), texts, roles, number)]
    if item.image:
        cases.append(_case(item, "i2t", subset, (item.image,), texts, roles, number))
    return cases


def _triplets_of_file(item: Item, edits: EditsFile) -> tuple[list[Case], Mapping[str, int]]:
    """Create triplets from a file: a caption, its n-th same-meaning edit and its n-th different-meaning edit."""
    cases: list[Case] = []
    for index, caption in enumerate(item.captions):
        for n, (positive, negative) in enumerate(edits.pairs(item, caption)):
            positives = (caption, positive.text)
            cases += _triplet(item, positives, negative.text, negative.subtype, f"{index}.{n}/")
    return cases, {} if cases else {NO_EDIT: 1}


def _case(
    item: Item,
    kind: str,
    subset: str,
    images: tuple[Picture, ...],
    texts: tuple[str, ...],
    roles: tuple[Role, ...],
    number: str = "",
) -> Case:
    edit = Edit(kind, subset, subset or kind)
    return Case(f"{item.id}/{number}{kind}", item.id, item.id, images, texts, roles, edit)


def _margins(rows: pd.DataFrame) -> np.ndarray:
    """Compute the margin of each case, a float array of shape (n,), from the columns that `scoring.cases.score_columns`
    defines.
    """
    names = ("score_0", "score_1", "score_2", "text_01", "text_02", "text_12")
    column = {
        name: rows[name].to_numpy() if name in rows else np.full(len(rows), np.nan)
        for name in names
    }
    of_texts = column["text_01"] - np.maximum(column["text_02"], column["text_12"])
    of_pictures = np.minimum(column["score_0"], column["score_1"]) - column["score_2"]
    of_pairs = column["score_0"] - column["score_1"]
    return np.select(
        [rows["kind"] == "t2t", rows["kind"] == "i2t"], [of_texts, of_pictures], of_pairs
    )


PROBE = Visla()
