"""EqBen: match two near-identical pictures with two captions (papers/eqben.txt).

A case is a sample (I1, I2; T1, T2) or, without a second picture, a picture with a caption and a foil.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe.metrics import pairs
from vlprobe.perturb.edits_file import NO_EDIT
from vlprobe.probes import file_options
from vlprobe.probes.fit import score_type
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring import pictures
from vlprobe.types import (
    Case,
    Edit,
    Encoder,
    Item,
    Picture,
    Reader,
    Role,
    Run,
    answers_cases,
    matches_side_by_side,
)
from vlprobe.types.presentation import KindPresentation, Presentation, TradeOff

ROLES: tuple[Role, ...] = ("original", "different")

PRESENTATION = Presentation(
    title="Pairs (EqBen)",
    name="Near-identical pairs (EqBen)",
    photographs_name="True caption or foil",
    asks="Two pictures, one difference: which caption is whose?",
    position=3,
    sentence="Two pictures differ in one thing, and each caption is true of only one of them. A "
    "model has to match "
    "them in both directions. **Higher is better**: the model matches more pairs.",
    headlines=("text_score", "image_score", "group_score", "foil_accuracy"),
    trade_off=TradeOff(
        down="equivariance_deviation",
        ups=("group_score",),
        shifted_by="",
        x_words="how unevenly the score follows the two changes",
        y_words="pairs matched in both directions",
    ),
    subtype_label="Subset",
    value_labels={
        "color": "Color",
        "number": "Number",
        "object": "Object",
        "location": "Location",
        "swap": "Swapped things",
        "size": "Size",
        "scene": "Scene",
        # VALSE
        "existence": "False claim of existence",
        "plurals": "Wrong plural",
        "counting-hard": "Wrong count (hard)",
        "counting-small-quant": "Wrong count (small numbers)",
        "counting-adversarial": "Count that is too low",
        "relations": "Wrong relation",
        "action-replacement": "Wrong action",
        "actant-swap": "Swapped roles",
        "coreference-standard": "Wrong answer to a question",
        "coreference-hard": "Wrong answer to a question (small set)",
        "foil-it": "Wrong noun",
        "coco2017": "COCO 2017 (plurals)",  # two names of one dataset, each of one phenomenon
        "coco_2017": "COCO 2017 (relations)",
        "VisDial_v1.0": "VisDial 1.0",
        "visual7w": "Visual7W",
    },
    kinds={
        "pair": KindPresentation(
            label="Two pictures, two captions",
            lie="a near-identical pair",
            accuracy="group_score",
            lies="near-identical pairs",
            question="Each of two pictures has its own caption: all four comparisons should favor it.",
            body="pair",
            legend="The matrix has the scores of the chosen model. The end of each row shows whether "
            "the picture prefers its own caption; the bottom of each column shows whether the "
            "caption prefers its own picture.",
            several_comparisons=True,
            guess_held=1 / 6,
        ),
        "foil": KindPresentation(
            label="One picture, two captions",
            lie="a wrong caption",
            accuracy="foil_accuracy",
            sentence="A picture has two captions, and one of them is wrong: a foil. A model has to choose the true "
            "caption. **Higher is better**: fewer foils fool the model.",
            question="The true caption should score higher than the wrong one.",
            guess_held=0.5,
        ),
    },
)


class EqBen(file_options.ProbeWithEdits):
    """Measures text, image and group scores on visually minimal pairs, and how evenly the similarity changes."""

    name = "eqben"
    version = 1
    needs = "pictures"
    dataset = "demo-pairs"
    presentation = PRESENTATION
    options = (
        file_options.edits_option(
            "Edits with a different meaning become foils of the picture's captions."
        ),
    )
    metrics = pairs.METRICS
    optional_metrics = order_metrics = pairs.ORDER_METRICS

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create the cases for an item. An item without a picture or a foil has no case, and the reason is counted."""
        edits = file_options.load_edits(options)
        if edits and item.image:
            rows = [row for text in item.captions for row in edits.of(item, text, "different")]
            foils = [((row.caption, row.text), row.edit("foil")) for row in rows]
            return _foil_cases(item, item.image, foils), {} if foils else {NO_EDIT: 1}
        if item.image is None or not item.foils:
            return [], {"no foil" if item.image else "no picture": 1}
        subset = item.tags.get("subset", "")
        if item.foil_image is None:
            edit = Edit("foil", subset, "foil")
            foils = [((item.captions[0], foil), edit) for foil in item.foils]
            return _foil_cases(item, item.image, foils), {}
        texts = (item.captions[0], item.foils[0])
        edit = Edit("pair", subset, "pair")
        images = (item.image, item.foil_image)
        return [Case(item.id, item.id, item.id, images, texts, ROLES, edit)], {}

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Return a scorer. Its margin is the smallest of the differences that should all be positive.

        For a generative model, the scorer also returns the answers for both orders of the captions, in the columns
        `order_12` and `order_21`. The column `probability` says whether the scores are probabilities.
        """
        score = scoring_cases.case_scorer(encoder, _margins, has_twins=True)
        gives_probabilities = score_type(encoder.model, self) == "probability"

        def score_in_both_orders(cases: pa.Table) -> pa.Table:
            table = score(cases)
            table = table.append_column(
                "probability", pa.array(np.full(len(cases), gives_probabilities))
            )
            for name, probabilities in zip(
                ("order_12", "order_21"), _orders(encoder, cases), strict=True
            ):
                table = table.append_column(name, pa.array(probabilities))
            return table

        return score_in_both_orders

    def survey(self, blocks: Iterable[pd.DataFrame]) -> Mapping[str, object]:
        """Return the size of each subset, and which side is weaker: accepting captions or rejecting foils."""
        return pairs.survey(blocks)

    def prepare(self, rows: pd.DataFrame, survey_facts: Mapping[str, object]) -> pd.DataFrame:
        """Add two columns from the survey to the rows: the size of the subset, and which side is weaker."""
        return pairs.prepare(rows, survey_facts)


def _foil_cases(
    item: Item, image: Picture, foils: Sequence[tuple[tuple[str, str], Edit]]
) -> list[Case]:
    """Create one case for each pair of a caption and a foil."""
    return [
        Case(f"{item.id}/{number}", item.id, item.id, (image,), texts, ROLES, edit)
        for number, (texts, edit) in enumerate(foils)
    ]


def _orders(encoder: Encoder, cases: pa.Table) -> np.ndarray:
    """Return the model's answers for both orders of the captions: first caption listed first, and listed second.

    The array is float32 of shape (2, n), in the form that `metrics.pairs` uses.
    """
    model = encoder.model
    if answers_cases(model) and model.capabilities.n_orders == 2:
        return model.orders(cases)
    probabilities = np.full((2, len(cases)), np.nan, dtype=np.float32)
    if not matches_side_by_side(model):
        return probabilities
    for row, case in enumerate(cases.select(["kind", "images", "texts"]).to_pylist()):
        if case["kind"] == "pair":
            left, right = (
                pictures.open_picture(Picture.from_name(name)) for name in case["images"]
            )
            left_caption, right_caption = case["texts"]
            probabilities[0, row] = model.first_is_left(left, right, left_caption, right_caption)
            probabilities[1, row] = 1 - model.first_is_left(
                left, right, right_caption, left_caption
            )
            encoder.progress("questions", row + 1, len(cases))
    return probabilities


def _margins(rows: pd.DataFrame) -> np.ndarray:
    foils = rows["score_0"].to_numpy() - rows["score_1"].to_numpy()
    if "score_3" not in rows:
        return foils
    return np.where(rows["kind"] == "foil", foils, pairs.margins(rows))


PROBE = EqBen()
