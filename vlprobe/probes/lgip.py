"""LGIP: similarity should not change when a caption is reworded, and should fall when the caption becomes wrong
(papers/lgip.txt).

A case is an image, one of its captions and one edit of that caption. A combined case has a third text: the paraphrase
that was flipped. Its margin is still relative to the original caption, as in equation 3.
"""

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.metrics import pairwise
from vlprobe.perturb import flips, lgip, lgip_format, other_languages
from vlprobe.perturb.edits_file import NO_EDIT, EditsFile
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.perturb.other_languages import OTHER_LANGUAGES
from vlprobe.perturb.templates import has_marker
from vlprobe.probes import file_options
from vlprobe.scoring import cases as scoring_cases
from vlprobe.types import Case, Edit, Encoder, Item, Picture, Reader, Role, Run
from vlprobe.types.options import Option
from vlprobe.types.presentation import KindPresentation, OtherSide, Presentation, TradeOff

PRESENTATION = Presentation(
    title="Edits of captions (LGIP)",
    name="Wording and meaning (LGIP)",
    asks="Does the score drop when a word is wrong, and stay when only the wording changes?",
    position=1,
    sentence="A model that understands captions keeps its score when a caption is only reworded (**invariance**), and "
    "lowers it when a word is wrong (**sensitivity**). The chart shows both for every model.",
    trade_off=TradeOff(
        down="invariance_error",
        ups=("positive_rate", "sensitivity_gap"),
        others={
            up: OtherSide("pictures", f"picture_{up}", "changed pictures")
            for up in ("positive_rate", "sensitivity_gap")
        },
    ),
    value_labels={
        "color": "Color",
        "number": "Number",
        "object": "Object",
        "negation": "Negation",
        "relation": "Relation",
        "attribute-swap": "Swapped attributes",
        "word-order": "Word order",
        "case": "Letter case",
        "punctuation": "Punctuation",
        "typo": "Typo",
        # Rules of rewordings
        "there-is": "“There is” added",
        "there-out": "“There is” left out",
        "copula-in": "“is” added",
        "copula-out": "“is” left out",
        "relative": "“that is” added",
        "with-to-has": "“has” for “with”",
        "relative-has": "“that has” for “with”",
        "synonym": "Synonym",
        "simple-present": "Simple present",
        "progressive": "Progressive",
        "participle": "Participle",
        "passive": "Passive",
        "inversion": "Inverted order",
        "scene-first": "Place first",
        "simple": "Simple",
        "advanced": "Advanced",
        "weak": "Weak",
        "medium": "Medium",
        "strong": "Strong",
    },
    value_order=("weak", "medium", "strong"),
    kinds={
        "flip": KindPresentation(
            label="Wrong caption: it no longer fits the picture",
            lie="a wrong word",
            accuracy="positive_rate",
            question="An edit makes the caption wrong: the true caption should score higher.",
            body="edit",
            edit_label="Wrong",
            guess_held=0.5,
        ),
        "combined": KindPresentation(
            label="Reworded and wrong",
            lie="a reworded wrong caption",
            accuracy="combined_positive_rate",
            question="An edit rewords the caption and makes it wrong: the true caption should score higher.",
            body="edit",
            edit_label="Reworded and wrong",
            guess_held=0.5,
        ),
        "paraphrase": KindPresentation(
            label="Reworded only",
            lie="a rewording",
            verb="is moved by",
            lies="rewordings",
            question="A rewording keeps the meaning of the caption, so the score should stay the same.",
            body="edit",
            edit_label="Reworded",
            edit_column="reworded",
            is_movement=True,
            summary="**{n_cases:,}** rewordings keep the meaning of a caption, so the score of "
            "{model} should stay the same. The cards show how far it moved; it stayed exactly "
            "the same **{n_tied:,}** times.",
        ),
    },
)


RULES_OF_PLUGIN = r"py:.+|[A-Za-z0-9][A-Za-z0-9._-]*"


class LgipOptions(TypedDict):
    """Parsed options of an LGIP run."""

    rules: str
    rules_digest: NotRequired[str]
    kinds: list[str]
    k_same: int
    k_diff: int
    tag: str
    edits: str
    edits_digest: NotRequired[str]
    vocabulary: NotRequired[str]
    flips: NotRequired[list[str]]


class Lgip(file_options.ProbeWithEdits):
    """Measures whether scores stay the same under paraphrases, and fall when a color, number or object is changed."""

    name = "lgip"
    version = 3
    needs = "pictures"
    dataset = "demo"
    presentation = PRESENTATION
    options = (
        Option(
            name="rules",
            default="strict",
            label="Rule set",
            help="strict keeps captions grammatical and drops flips that leave the caption true; "
            "paper follows LGIP literally. The name of a plug-in selects that plug-in's "
            "rules.",
            choices=lgip.RULES,
            pattern=RULES_OF_PLUGIN,
            expected=f"one of: {', '.join(lgip.RULES)}, or a plug-in's name",
        ),
        Option(
            name="kinds",
            default=lgip.KINDS,
            label="Kinds of edit",
            help="LGIP's kinds reword a caption, make it wrong (a color, a number, an object), "
            "or do both at once. Among the others, negation, relation, attribute-swap and "
            "word-order make a caption wrong; case, punctuation and typo keep its meaning. "
            "Each of these adds at most one edit per caption.",
            choices=lgip.ALL_KINDS,
            min_values=1,
        ),
        Option(
            name="flips",
            default=flips.TYPES,
            label="Types of wrong words",
            help="Which words LGIP's flips change, also in reworded captions.",
            choices=flips.TYPES,
            min_values=1,
        ),
        Option(
            name="k_same",
            default=6,
            label="Rewordings per caption (max)",
            help="More rewordings give more cases. The limit applies only to LGIP's kinds of edit.",
            minimum=0,
        ),
        Option(
            name="k_diff",
            default=6,
            label="Wrong captions per caption (max)",
            help="More wrong captions give more cases. The limit applies only to LGIP's kinds "
            "of edit.",
            minimum=0,
        ),
        Option(
            name="tag",
            default="rule",
            label="How advanced rewordings are recognized",
            help="rule uses the rule that made the rewording; marker uses the paper's test for "
            "marker words.",
            choices=lgip.TAGS,
        ),
        file_options.edits_option(
            "These edits replace the edits made by rules: 'same' marks a rewording, and "
            "'different' marks a wrong caption. LGIP's format is also accepted."
        ),
        file_options.vocabulary_option(
            "replace the 11 objects in LGIP's flips. A flip can then replace any noun in "
            "a caption with one of these words."
        ),
    )
    metrics = pairwise.METRICS

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raise a VlprobeError if a vocabulary or types of flips are given but not used, or if the plug-in with the
        rules is missing, is not allowed, or cannot make one of the chosen kinds of edits.
        """
        types = cast(LgipOptions, options).get("flips", flips.TYPES)
        is_strict = options["rules"] == "strict" and not options["edits"]
        if options.get("vocabulary") and not (
            is_strict and "flip" in cast(LgipOptions, options)["kinds"] and "object" in types
        ):
            raise InvalidInput(
                "A vocabulary is set, but no edit uses it. Only the rules 'strict' use a vocabulary, for "
                "edits of kind 'flip' that change objects. Choose these, or remove the option "
                "'vocabulary'."
            )
        if len(types) < len(flips.TYPES) and (
            options["edits"]
            or options["rules"] not in lgip.RULES
            or {"flip", "combined"}.isdisjoint(cast(LgipOptions, options)["kinds"])
        ):
            raise InvalidInput(
                "Types of wrong words are chosen, but no edit uses them. Only the rules 'strict' and "
                "'paper' do, for edits of kind 'flip' or 'combined'. Choose these, or remove the "
                "option 'flips'."
            )
        if options["rules"] in lgip.RULES:
            return
        registry.check_name("rules", str(options["rules"]))
        kinds = cast(LgipOptions, options)["kinds"]
        if of_ours := [name for name in kind_edits.NAMES if name in kinds]:
            raise InvalidInput(
                f"The rules '{options['rules']}' come from a plug-in, which cannot make edits of "
                f"kind '{of_ours[0]}'. Expected one of: {', '.join(lgip.KINDS)}; or choose the "
                "rules 'strict'."
            )

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Add the digests of the plug-in's rules, the edits file and the vocabulary, for those that are used. Remove
        the types of flips if all are chosen, so that the run keeps its key.
        """
        if options["rules"] not in lgip.RULES:
            rules = registry.load_rules(str(options["rules"]))
            options = {**options, "rules": rules.name, "rules_digest": rules.digest}
        options = file_options.pin_vocabulary(options)
        types = cast(LgipOptions, options).get("flips", flips.TYPES)
        chosen = [name for name in flips.TYPES if name in types]
        options = {**options, "flips": chosen if len(chosen) < len(flips.TYPES) else []}
        options = file_options.without_unset(options, "flips")
        return file_options.EDITS.with_digest(options) if options["edits"] else options

    def check_items(self, items: Sequence[Item], options: Mapping[str, object]) -> None:
        """Raise InvalidInput if the edits file contains a caption that does not occur in any item."""
        if options["edits"] and not file_options.is_lgip_form(options):
            super().check_items(items, options)

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Return the captions that built-in rules edit: all, or none if the edits come from a file or a plug-in."""
        return () if options["edits"] or options["rules"] not in lgip.RULES else item.captions

    def options_of_languages(self, options: Mapping[str, object]) -> Mapping[str, object]:
        """Add the version of the tables for other languages, if they are used."""
        settings = cast(LgipOptions, options)
        if settings["edits"] or not lgip.has_tables(settings["rules"], settings["kinds"]):
            return {}
        return {OTHER_LANGUAGES: other_languages.VERSION}

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create one case per edit of each caption. Count the edits that are left out, by reason."""
        if item.image is None:
            return [], {"no picture": 1}
        settings = cast(LgipOptions, options)
        if settings["edits"] and file_options.is_lgip_form(options):
            caption_edits = _edits_from_file(item, item.image, settings)
        elif edits := file_options.load_edits(options):
            caption_edits = _listed_edits(item, edits, settings["kinds"])
        else:
            caption_edits = _new_edits(item, settings, seed, self.foreign)
        cases = []
        for number, (caption, edits) in enumerate(
            zip(item.captions, caption_edits.edits, strict=True)
        ):
            group = f"{item.id}/{number}"
            for position, (text, edit) in enumerate(edits):
                role: Role = "same" if edit.kind == "paraphrase" else "different"
                texts: tuple[str, ...] = (caption, text)
                roles: tuple[Role, ...] = ("original", role)
                if edit.via:
                    texts, roles = (*texts, edit.via), (*roles, "same")
                cases.append(
                    Case(f"{group}/{position}", item.id, group, (item.image,), texts, roles, edit)
                )
        return cases, caption_edits.dropped

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Return a scorer. Its margin is the original caption's similarity minus the edited caption's similarity; for a
        paraphrase, it is the negative absolute value of this difference.
        """
        return scoring_cases.case_scorer(encoder, _margins)

    def survey(self, blocks: Iterable[pd.DataFrame]) -> Mapping[str, object]:
        """Compute the first and third quartiles of the strengths of this model's flips."""
        return {
            "quartiles": pairwise.quartiles(np.concatenate([_strengths(rows) for rows in blocks]))
        }

    def prepare(self, rows: pd.DataFrame, survey_facts: Mapping[str, object]) -> pd.DataFrame:
        """Add two columns: the strength of each flip, and the bin of the strength among all flips of this model."""
        low, high = cast(tuple[float, float], survey_facts["quartiles"])
        strengths = _strengths(rows)
        return rows.assign(
            strength=strengths, strength_bin=pairwise.strength_bins(strengths, low, high)
        )


def _new_edits(
    item: Item, options: LgipOptions, seed: int, foreign: Mapping[str, str]
) -> lgip.CaptionEdits:
    """Edit the item's captions by vlprobe's rules."""
    if options["rules"] in lgip.RULES:
        return lgip.edits(
            item.captions,
            item.id,
            seed=seed,
            rules=options["rules"],
            kinds=options["kinds"],
            k_same=options["k_same"],
            k_diff=options["k_diff"],
            tag=options["tag"],
            words=file_options.load_vocabulary(options),
            flip_types=options.get("flips", flips.TYPES),
            foreign=foreign,
        )
    rules = registry.load_rules(options["rules"])
    if options.get("rules_digest") != rules.digest:
        raise InvalidInput(
            f"The rules '{rules.name}' were changed during the run. Start the run again."
        )
    k_same, k_diff = options["k_same"], options["k_diff"]
    return rules.edits(
        item.captions, item.id, seed, kinds=options["kinds"], k_same=k_same, k_diff=k_diff
    )


def _listed_edits(item: Item, edits: EditsFile, kinds: Sequence[str]) -> lgip.CaptionEdits:
    """Return the edits of the chosen kinds for an item's captions, from an edits file with one edit per line."""
    every, n_without = [], 0
    for caption in item.captions:
        of_caption = []
        for row in edits.of(item, caption):
            if row.meaning == "same":
                subtype = row.subtype or ("simple" if has_marker(row.text) else "advanced")
                edit = row.edit("paraphrase", subtype)
            else:
                edit = replace(row.edit("combined" if row.via else "flip"), via=row.via)
            if _is_chosen(edit, kinds):
                of_caption.append((row.text, edit))
        n_without += not of_caption
        every.append(tuple(of_caption))
    return lgip.CaptionEdits(tuple(every), {NO_EDIT: n_without} if n_without else {})


def _is_chosen(edit: Edit, kinds: Sequence[str]) -> bool:
    """Return whether the kind or the subtype of an edit is one of the chosen kinds."""
    return edit.kind in kinds or edit.subtype in kinds


def _edits_from_file(item: Item, picture: Picture, options: LgipOptions) -> lgip.CaptionEdits:
    """Return the edits of the chosen kinds for an item's picture and captions, from a file in LGIP's format.

    Raises:
        InvalidInput: The file has no line for the picture and captions, or several different lines whose
            paths share the same number of folders with the picture's path.
    """
    image_path = Path(picture.name)
    lines = _lines_by_file_name(options["edits"], options.get("edits_digest", ""))
    fitting = [line for line in lines.get(image_path.name, ()) if line.captions == item.captions]
    if not fitting:
        raise InvalidInput(
            f"The edits file '{options['edits']}' has no line for the picture and captions of "
            f"item '{item.id}'. Expected one line per item, as written by `vlprobe perturb`."
        )
    n_shared = [_shared_folders(Path(line.image_path), image_path) for line in fitting]
    nearest = [
        line for line, count in zip(fitting, n_shared, strict=True) if count == max(n_shared)
    ]
    if any(line.edits != nearest[0].edits for line in nearest):
        raise InvalidInput(
            f"The edits file '{options['edits']}' has {len(nearest)} different lines for item "
            f"'{item.id}' (same file name and captions). Write each image_path with its folder."
        )
    of_chosen_kinds = [
        tuple((text, edit) for text, edit in edits if _is_chosen(edit, options["kinds"]))
        for edits in nearest[0].edits
    ]
    return lgip.CaptionEdits(tuple(of_chosen_kinds), {})


def _shared_folders(path: Path, image_path: Path) -> int:
    """Count the parent folders with the same name in both paths, from the file upward until two names differ."""
    folders = zip(reversed(path.parent.parts), reversed(image_path.parent.parts), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], folders))


@functools.lru_cache(maxsize=2)  # called for each item with the lines of the whole file
def _lines_by_file_name(path: str, digest: str) -> dict[str, list[lgip_format.ImageEdits]]:
    """Return the lines of an edits file in LGIP's format, grouped by the picture's file name without folders.

    `digest` is the digest of the file, so that a changed file is read again.
    """
    lines: dict[str, list[lgip_format.ImageEdits]] = {}
    try:
        with open(path, encoding="utf-8") as handle:
            for image in lgip_format.read(handle, path):
                lines.setdefault(Path(image.image_path).name, []).append(image)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"'{path}' is not UTF-8 (byte {error.start}). Save it as UTF-8."
        ) from None
    return lines


def _strengths(rows: pd.DataFrame) -> np.ndarray:
    """Compute how strong each flip is: float64 of shape (n,).

    The strength is NaN for cases that are not flips, and in runs without stored cosines between texts, such as the
    bundled results.
    """
    if "text_01" not in rows:
        return np.full(len(rows), np.nan)
    strengths = pairwise.strength(rows["subtype"].to_numpy(), rows["text_01"].to_numpy())
    return np.where(rows["kind"] == "flip", strengths, np.nan)


def _margins(rows: pd.DataFrame) -> np.ndarray:
    gap = (rows["score_0"] - rows["score_1"]).to_numpy()
    return np.where(rows["kind"] == "paraphrase", -np.abs(gap), gap)


PROBE = Lgip()
