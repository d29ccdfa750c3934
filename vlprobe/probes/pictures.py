"""Changed pictures: when a picture is changed, it should keep its score, and the true caption should
still score higher than the wrong one.

A case is a picture, its changed copy, a true caption and a wrong one. The change either keeps the
content of the picture (noise, blur, JPEG, rotation, ...) or writes the word of the wrong caption on
it (a typographic attack). Sources: LGIP (equations 2, 4 and 5) with the picture in place of the
caption; MMRB (arXiv 2212.08044) for the changes.
"""

import copy
import difflib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from PIL import Image

from vlprobe.metrics import picture_changes as metrics
from vlprobe.perturb import lgip, picture_changes
from vlprobe.perturb.draws import draw
from vlprobe.probes import file_options
from vlprobe.probes.fit import check_fit
from vlprobe.probes.picture_search import PictureSearch
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring import pictures
from vlprobe.types import (
    Case,
    Edit,
    Encoder,
    Item,
    Metric,
    Picture,
    PictureChange,
    Probe,
    Reader,
    Role,
    Run,
)
from vlprobe.types.options import Option
from vlprobe.types.presentation import KindPresentation, OtherSide, Presentation, TradeOff

ROLES: tuple[Role, ...] = ("original", "different")
SAMPLE_SIDE = 64  # pixels of the small copy that shows whether a change does anything
LABELS = {name: kind.label for name, kind in picture_changes.KINDS.items()}

PRESENTATION = Presentation(
    title="Changed pictures (MMRB)",
    name="Changed pictures (MMRB)",
    asks="Does noise, blur or a word written on a picture change which caption wins?",
    position=7,
    sentence="A picture is changed, but its content stays the same. A model that understands "
    "pictures keeps its score "
    "(**invariance**) and still prefers the true caption to a wrong one (**sensitivity**).",
    headlines=("picture_positive_rate", "decision_flips", "typographic_positive_rate"),
    trade_off=TradeOff(
        down="picture_invariance_error",
        ups=("picture_positive_rate", "picture_sensitivity_gap"),
        shifted_by="a change to the picture",
        others={
            f"picture_{up}": OtherSide("lgip", up, "edited captions")
            for up in ("positive_rate", "sensitivity_gap")
        },
    ),
    subtype_label="Kind of change",
    value_labels={
        **LABELS,
        **{
            f"{name}:{severity}": f"{label}, severity {severity}"
            for name, label in LABELS.items()
            for severity in picture_changes.SEVERITIES
        },
        **{name: f"Severity {severity}" for severity, name in picture_changes.BINS.items()},
    },
    value_order=tuple(LABELS),
    kinds={
        metrics.CHANGED: KindPresentation(
            label="Changed picture",
            lie="a wrong caption of a changed picture",
            accuracy="picture_positive_rate",
            lies="wrong captions of changed pictures",
            question="The picture is changed, but its content stays the same: the true caption "
            "should score higher.",
            body="changed_picture",
            guess_held=0.5,
        ),
        metrics.WRITTEN: KindPresentation(
            label="A false word written on the picture",
            lie="a word written on the picture",
            accuracy="typographic_positive_rate",
            lies="wrong captions of pictures with a false word",
            question="The wrong caption's word is written on the picture: the true caption should still score higher.",
            body="changed_picture",
            guess_held=0.5,
        ),
    },
)


class PictureOptions(TypedDict):
    """Parsed options of a run with changed pictures."""

    changes: list[str]
    severities: list[int]
    search: NotRequired[bool]


class ChangedPictures(Probe):
    """Measures how scores, and the preference for the true caption, react when a picture is changed."""

    name = "pictures"
    version = 1
    needs = "pictures"
    dataset = "demo"
    presentation = PRESENTATION
    options = (
        Option(
            name="changes",
            default=tuple(picture_changes.KINDS),
            label="Picture changes",
            help="Each change creates one changed version of every picture per severity. "
            "false-word writes the wrong caption's word on the picture, and true-word writes "
            "the true caption's word.",
            choices=tuple(picture_changes.KINDS),
            min_values=1,
        ),
        Option(
            name="severities",
            default=(3,),
            label="Severities",
            help="Strength of the changes, from 1 (barely visible) to 5 (strong). Choose "
            "several severities to see curves.",
            choices=picture_changes.SEVERITIES,
            min_values=1,
            expected="whole numbers from 1 to 5",
        ),
        Option(
            name="search",
            default=False,
            label="Search with changed pictures",
            help="Also rank all captions for each changed picture, and all changed pictures for "
            "each true caption. Requires a model that embeds pictures and texts.",
        ),
    )
    optional_metrics = metrics.SEARCH_METRICS
    metrics = metrics.METRICS

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raise InvalidInput if a severity is out of range, before any file is read."""
        for severity in cast(PictureOptions, options)["severities"]:
            picture_changes.check_severity(severity)

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Remove the option `search` if it is off, so that the run key does not depend on it."""
        return file_options.without_unset(options, "search")

    def metrics_of(self, options: Mapping[str, object], n_orders: int = 1) -> tuple[Metric, ...]:
        """Return the probe's metrics, including the search metrics if the option `search` is on."""
        return (*self.metrics, *self.optional_metrics) if options.get("search") else self.metrics

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create one case per change and severity, with the item's first caption that has a wrong version.

        Changes that may make a caption wrong (a mirror and "left", gray and "red") and changes that leave every pixel
        the same are dropped and counted.
        """
        if item.image is None:
            return [], {"no picture": 1}
        captions = _captions(item, seed, self.foreign)
        if captions is None:
            return [], {"no caption that can be made wrong": 1}
        settings = cast(PictureOptions, options)
        texts, wording = captions
        sample = None if item.image.absent else _sample(item.image)
        cases: list[Case] = []
        dropped: Counter[str] = Counter()
        for name in settings["changes"]:
            word = _word(name, wording)
            if word is None:
                dropped[f"{name}: no word to write"] += 1
                continue
            if any(picture_changes.contradicted(name, text) for text in texts):
                dropped[f"{name}: may contradict the caption"] += 1
                continue
            number = draw(seed, item.id, 0, f"change:{name}") % 2**31
            for severity in settings["severities"]:
                change = PictureChange(name, severity, number, word)
                if sample is not None and picture_changes.apply(sample, change) == sample:
                    dropped[f"{name}: changes no pixel"] += 1
                    continue
                kind = metrics.WRITTEN if name == picture_changes.FALSE_WORD else metrics.CHANGED
                rule = f"{name}:{severity}"
                edit = Edit(kind, name, rule, wording.source, wording.target)
                images = (item.image, replace(item.image, change=change))
                cases.append(
                    Case(f"{item.id}/{rule}", item.id, item.id, images, texts, ROLES, edit)
                )
        return cases, dropped

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Return the captions that rules edit: all, or none if the dataset provides wrong captions."""
        return () if item.foils else item.captions

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Return a scorer. Its margin is the changed picture's similarity to the true caption minus its similarity to
        the wrong caption.
        """
        score = scoring_cases.case_scorer(encoder, _margins)
        if not run.options.get("search"):
            return score
        searching = copy.copy(self)
        searching.needs = "gallery"
        check_fit(encoder.model, searching, items)
        search = PictureSearch(encoder, items, cases)

        def score_and_search(cases: pa.Table) -> pa.Table:
            table = score(cases)
            for name, values in search(cases).items():
                table = table.append_column(name, pa.array(values))
            return table

        return score_and_search

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """Return the pictures and captions of all items if the option `search` is on, else none."""
        pictured = [item for item in items if item.image and run.options.get("search")]
        return [item.image for item in pictured if item.image], [
            caption for item in pictured for caption in item.captions
        ]

    def survey(self, blocks: Iterable[pd.DataFrame]) -> Mapping[str, object]:
        """Compute the mean recall of searches with unchanged pictures, if the run has searches."""
        blocks = iter(blocks)
        first = next(blocks, pd.DataFrame())
        is_searched = metrics.SEARCH_COLUMNS[0] in first
        return metrics.survey_search(itertools.chain([first], blocks)) if is_searched else {}

    def prepare(self, rows: pd.DataFrame, survey_facts: Mapping[str, object]) -> pd.DataFrame:
        """Add two columns: the severity as the bin for curves, and the recall with unchanged pictures, if known."""
        rows = rows.assign(strength_bin=picture_changes.BIN + rows["rule"].str.rpartition(":")[2])
        if means := cast(dict[tuple[str, str], float], survey_facts.get("clean_recall_sums")):
            for direction in ("i2t", "t2i"):
                sums = [means[direction, rule] for rule in rows["rule"]]
                rows[f"{direction}_clean_recall_sum"] = sums
        return rows


def _margins(rows: pd.DataFrame) -> np.ndarray:
    return (rows["score_2"] - rows["score_3"]).to_numpy()


def _captions(
    item: Item, seed: int, foreign: Mapping[str, str]
) -> tuple[tuple[str, str], Edit] | None:
    """Return a true and a wrong caption for an item, and the differing words; None if there is no wrong caption.

    The wrong caption is the dataset's own foil, or the first flip that LGIP's strict rules make.
    """
    if item.foils:
        texts = item.captions[0], item.foils[0]
        return texts, Edit("flip", "", "foil", *_different_words(*texts))
    flips = lgip.edits(item.captions, item.id, seed=seed, kinds=("flip",), k_diff=1)
    edits = lgip.in_english(item.captions, flips, foreign)
    for caption, of_caption in zip(item.captions, edits.edits, strict=True):
        for text, edit in of_caption:
            return (caption, text), edit
    return None


def _different_words(true_caption: str, wrong_caption: str) -> tuple[str, str]:
    """Return two texts: the words of the true caption that differ from the wrong caption, and the reverse."""
    true_words, wrong_words = true_caption.split(), wrong_caption.split()
    blocks = difflib.SequenceMatcher(None, true_words, wrong_words, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    return (
        " ".join(" ".join(true_words[start:end]) for _, start, end, _, _ in changed).strip(" ."),
        " ".join(" ".join(wrong_words[start:end]) for _, _, _, start, end in changed).strip(" ."),
    )


def _word(name: str, wording: Edit) -> str | None:
    """Return the word that a change writes on the picture: "" if it writes none, None if the word is too long."""
    if picture_changes.KINDS[name].function:
        return ""
    word = wording.target if name == picture_changes.FALSE_WORD else wording.source
    return word if 0 < len(word) <= picture_changes.LONGEST_WORD else None


def _sample(picture: Picture) -> Image.Image:
    """Return a small copy of a picture for testing changes."""
    image = pictures.open_picture(picture)
    image.thumbnail((SAMPLE_SIDE, SAMPLE_SIDE))
    return image


PROBE = ChangedPictures()
