"""RoCOCO: retrieval with altered captions or mixed pictures in the gallery
(papers/rococo.txt).

Kind `i2t` has one case per picture and policy; the gallery contains every item's captions, plus every caption as
altered by that policy. Kind `t2i` has one case per caption, strength and seed; the gallery contains every picture,
plus each picture mixed with a partner. A patch or mixture that does not change any pixel is not used as a query or in
the gallery, and is counted as dropped. The clean gallery is always scored along with the altered one. Without policies
and pictures, only the clean gallery is used, as kinds `clean_i2t` and `clean_t2i`, and metrics of altered galleries
are unknown. A dataset with its own altered captions (released files) is used unchanged.
"""

import copy
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, cast

from vlprobe.errors import InvalidInput, Misfit
from vlprobe.metrics import retrieval
from vlprobe.perturb import mix, substitution
from vlprobe.probes import file_options, rococo_galleries
from vlprobe.probes.caption_foils import (
    Draws,
    caption_cases,
    file_caption_cases,
    file_foils,
    voter_digest,
)
from vlprobe.probes.rococo_galleries import (
    KINDS,
    RELEASED,
    PictureGalleries,
    RetrievalScorer,
    TextGalleries,
    changed_items,
    clean_cases,
    item_numbers,
    mixed_pictures,
    normalised,
)
from vlprobe.scoring import pictures
from vlprobe.types import Case, Edit, Encoder, Item, Picture, Reader, Run
from vlprobe.types.options import Option
from vlprobe.types.presentation import KindPresentation, OtherSide, Presentation, TradeOff

# Policies that need votes from encoders
VOTED_POLICIES = ("delete:low-ei", "delete:high-ei")


class RococoOptions(TypedDict):
    """Parsed options of a RoCOCO run."""

    policies: list[str]
    pictures: list[str]
    picture_seeds: list[int]
    influence: list[str]
    normalise: bool
    caption_seeds: NotRequired[list[int]]
    vocabulary: NotRequired[str]
    edits: NotRequired[str]


OPTIONS = (
    Option(
        name="policies",
        default=("rand-voca", "same-concept", "diff-concept", "danger"),
        label="Altered captions",
        help="How captions are altered: NAME replaces one noun of a caption, NAME:K replaces K "
        "nouns, and delete:WHICH deletes one noun. Without policies, there is no search among "
        "captions; without altered pictures as well, only the clean gallery is searched.",
        choices=(*substitution.POLICIES, *(f"delete:{which}" for which in substitution.DELETIONS)),
        pattern=f"({'|'.join(substitution.POLICIES)}):0*[1-5]",
        expected="NAME, NAME:K (2 to 5 words) or delete:WHICH, where NAME is one of "
        f"{', '.join(substitution.POLICIES)} and WHICH is one of {', '.join(substitution.DELETIONS)}",
    ),
    Option(
        name="pictures",
        default=("mix:0.9", "patch:0.9"),
        label="Altered pictures",
        help="mix:LAM blends a picture with another one, and patch:LAM pastes a part of another "
        "picture into it. LAM is the share of the original that remains. Without a value, "
        "there is no search among pictures.",
        choices=tuple(f"{kind}:{lam}" for lam in mix.LAMBDAS for kind in ("mix", "patch")),
        pattern=r"(mix|patch):0?\.[0-9]*[1-9][0-9]*",
        expected="mix:LAM or patch:LAM, 0 < LAM < 1",
    ),
    Option(
        name="picture_seeds",
        default=mix.SEEDS,
        label="Seeds of altered pictures",
        help="Each seed draws its own pictures to mix in and its own patches.",
        choices=mix.SEEDS,
        pattern="[0-9]+",
        expected="whole numbers, 0 or more",
        minimum=0,
    ),
    Option(
        name="caption_seeds",
        default=(),
        label="Seeds of altered captions",
        help="Each seed draws its own words, and results are averaged over the seeds. Without "
        "seeds, words are drawn once, with the run's seed.",
        choices=mix.SEEDS,
        pattern="[0-9]+",
        expected="whole numbers, 0 or more",
        minimum=0,
    ),
    file_options.vocabulary_option("replace the built-in list of the policy rand-voca."),
    Option(
        name="influence",
        default=(),
        label="Encoders that vote on the word",
        help="Text encoders that vote on which nouns matter least. Policies replace the nouns with "
        "the most votes; delete:high-ei deletes the noun voted most influential. Without "
        "encoders, nouns are chosen at random, and delete:low-ei and delete:high-ei are not "
        "available.",
        pattern=".+",
        refers_to="model",
    ),
    Option(
        name="normalise",
        default=True,
        label="Normalize released captions",
        help="Ignore case and punctuation, because released files spell altered captions "
        "differently from originals.",
    ),
    file_options.edits_option("Edits that change the meaning replace the altered captions."),
)


def check_settings(settings: RococoOptions) -> None:
    """Raise InvalidInput if votes are requested without voters, altered pictures without a seed, or a vocabulary
    without a policy that uses it, or if two values of an option mean the same edit.
    """
    needing_votes = [policy for policy in settings["policies"] if policy in VOTED_POLICIES]
    if needing_votes and not settings["influence"]:
        raise InvalidInput(
            f"Policy '{needing_votes[0]}' needs EI scores. Use the option 'influence' to choose "
            "the encoders that vote on the word."
        )
    if settings["pictures"] and not settings["picture_seeds"]:
        raise InvalidInput(
            "Altered pictures need a seed. Set one or more with the option 'picture_seeds'."
        )
    _refuse_synonyms("pictures", {name: parse_strength(name) for name in settings["pictures"]})
    # If policies name the number of words, a policy without a number means 1.
    _refuse_synonyms(
        "policies",
        {policy: re.sub(r":0*1$|(?<=:)0+", "", policy) for policy in settings["policies"]},
    )
    uses_words = any(policy.partition(":")[0] == "rand-voca" for policy in settings["policies"])
    if settings.get("vocabulary") and not uses_words:
        raise InvalidInput(
            "A vocabulary is set, but no policy uses it. Add rand-voca to the option 'policies', "
            "or remove the option 'vocabulary'."
        )


def make_draws(settings: RococoOptions, seed: int) -> Draws:
    """Create the settings for choosing words from a run's pinned options and seed."""
    return Draws(
        voters=tuple(settings["influence"]),
        seed=seed,
        caption_seeds=tuple(settings.get("caption_seeds", ())),
        words=file_options.load_vocabulary(settings),
    )


def parse_strength(name: str) -> tuple[Literal["mix", "patch"], float]:
    """Split a strength KIND:LAM into the kind of edit and the share of the picture that is kept.

    The pattern of the option does not allow any other form.

    >>> parse_strength("mix:0.9")
    ('mix', 0.9)
    """
    kind, lam = name.split(":")
    return cast(Literal["mix", "patch"], kind), float(lam)


def _refuse_synonyms(option: str, meanings: Mapping[str, object]) -> None:
    """Raise InvalidInput if two values of an option mean the same edit, which would then be in the gallery twice."""
    for value, meaning in meanings.items():
        synonym = next(name for name, same in meanings.items() if same == meaning)
        if synonym != value:
            raise InvalidInput(
                f"Option '{option}' contains the same edit twice, as '{synonym}' and "
                f"'{value}'. Remove one."
            )


PRESENTATION = Presentation(
    title="Retrieval (RoCOCO)",
    name="Decoys in search (RoCOCO)",
    asks="Does a search still find the right result among wrong captions and mixed pictures?",
    position=2,
    sentence="A model retrieves the caption of a picture, or the picture of a caption, while altered captions or mixed "
    "pictures are in the gallery. **Lower is better**: fewer correct first results are lost, and fewer decoys are "
    "ranked first.",
    headlines=("i2t_drop_rate", "i2t_rsms", "t2i_drop_rate", "t2i_rsms"),
    trade_off=TradeOff(
        down="i2t_drop_rate",
        ups=("i2t_r1", "t2i_r1"),
        shifted_by="",
        x_words="correct first results lost to decoys",
        y_words="first results that are right without decoys",
        downs={"t2i_r1": "t2i_drop_rate"},
        others={
            "i2t_r1": OtherSide("rococo", "t2i_r1", "mixed pictures as decoys"),
            "t2i_r1": OtherSide("rococo", "i2t_r1", "altered captions as decoys"),
        },
    ),
    retrieval_metrics=("i2t_r1", "t2i_r1"),
    subtype_label="Alteration",
    value_labels={
        "rand-voca": "Random word",
        "same-concept": "Word of the same concept",
        "diff-concept": "Word of another concept",
        "danger": "Misleading word (danger)",
        "released": "As released",
        "clean": "Unchanged",
    },
    value_order=("rand-voca", "same-concept", "diff-concept", "danger"),
    kinds={
        "i2t": KindPresentation(
            label="Find the caption: altered captions are in the gallery",
            lie="an altered caption",
            lies="altered captions",
            question="A picture retrieves its captions while altered captions are in the gallery: one "
            "of its captions should score higher than every altered caption.",
            body="caption_search",
        ),
        "t2i": KindPresentation(
            label="Find the picture: mixed pictures are in the gallery",
            lie="a mixed picture",
            lies="mixed pictures",
            question="A caption retrieves its picture while mixed pictures are in the gallery: the "
            "right picture should score higher than every mixed picture.",
            body="picture_search",
        ),
        **KINDS,
    },
)


class Rococo(file_options.ProbeWithEdits):
    """Measures recall with and without altered captions or mixed pictures, and how often an altered candidate wins."""

    name = "rococo"
    version = 2
    needs = "gallery"
    dataset = "demo"
    presentation = PRESENTATION
    options = OPTIONS
    metrics = retrieval.METRICS
    side_tables = rococo_galleries.TABLES
    # The picture that each item's picture is mixed with, by seed and item id
    partners: Mapping[int, Mapping[str, Path]] = {}

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raise InvalidInput if the options of a run contradict each other; see `check_settings`."""
        check_settings(cast(RococoOptions, options))

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Add the digests of the voting encoders and the vocabulary to the options, and remove options that are not
        used.

        Raises:
            InvalidInput: A file cannot be read.
        """
        pinned = file_options.pin_vocabulary(super().pin(options, cache))
        pinned = file_options.without_unset(pinned, "caption_seeds")
        if voters := cast(RococoOptions, options)["influence"]:
            pinned["influence_digest"] = [voter_digest(name, cache) for name in voters]
        return pinned

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Return the captions that rules edit: all, or none if the dataset or a file provides altered captions."""
        has_edits = item.foils or options.get("edits") or not item.image
        return item.captions if options["policies"] and not has_edits else ()

    def loads_models(self, options: Mapping[str, object]) -> bool:
        """Return whether the run loads encoders that vote on the words to replace."""
        return bool(options["influence"])

    def for_items(self, items: Sequence[Item], options: Mapping[str, object]) -> "Rococo":
        """Return a copy of the probe that knows which picture each item's picture is mixed with."""
        settings = cast(RococoOptions, options)
        paths = {item.id: item.image.path for item in items if item.image}
        if not paths or not settings["pictures"]:
            return self
        absent = [item.image.path.name for item in items if item.image and item.image.absent]
        if absent:
            raise Misfit(
                f"{len(absent):,} of {len(items):,} pictures are missing (first: "
                f"'{absent[0]}'), so mixed pictures cannot be made. To run without mixed "
                "pictures, set --option pictures= (and --option policies= for only the clean "
                "gallery)."
            )
        bound = copy.copy(self)
        bound.partners = {
            seed: {
                item_id: paths[partner_id]
                for item_id, partner_id in mix.partners(list(paths), seed).items()
            }
            for seed in settings["picture_seeds"]
        }
        return bound

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create an item's queries for every altered gallery.

        If the mixing partners are unknown, queries whose mixture does not change the picture are included.
        """
        if item.image is None:
            return [], {"no picture": 1}
        settings = cast(RococoOptions, options)
        has_edits = settings.get("edits") or item.foils
        if not (settings["policies"] or settings["pictures"] or has_edits):
            return clean_cases(item, item.image), {}
        edits = file_options.load_edits(options)
        draws = make_draws(settings, seed)
        policies = [RELEASED] if item.foils else settings["policies"]
        cases, dropped = (
            file_caption_cases(item, item.image, edits)
            if edits
            else caption_cases(item, item.image, policies, draws, self.foreign)
        )
        unchanged = self._unchanged(item, item.image, settings["pictures"])
        for strength, picture_seed in itertools.product(
            settings["pictures"], settings["picture_seeds"]
        ):
            if (strength, picture_seed) in unchanged:
                dropped[f"{strength}: changes no pixel"] += 1
                continue
            rule = f"{strength}:seed{picture_seed}"
            edit = Edit("t2i", strength, rule)
            for index, caption in enumerate(item.captions):
                group = f"{item.id}/{index}"
                case_id, images = f"{group}/{rule}", (item.image,)
                cases.append(Case(case_id, item.id, group, images, (caption,), ("original",), edit))
        return cases, dropped

    def _unchanged(
        self, item: Item, picture: Picture, strengths: Sequence[str]
    ) -> set[tuple[str, int]]:
        """Return the strengths and seeds for which mixing does not change any pixel of the item's picture."""
        if not self.partners:
            return set()
        unchanged = set()
        image = pictures.open_picture(Picture(picture.path))
        for seed, partner_of in self.partners.items():
            partner = partner_of[item.id]
            partner_image = mix.fitted(pictures.open_picture(Picture(partner)), image.size)
            for strength in strengths:
                kind, lam = parse_strength(strength)
                if not mix.changes(
                    image, partner_image, mix.picture_edit(item.id, partner, kind, lam, seed)
                ):
                    unchanged.add((strength, seed))
        return unchanged

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> RetrievalScorer:
        """Return a scorer that ranks the clean and the altered gallery. Its margin is the similarity of the right
        candidate minus that of the best altered candidate.
        """
        options = cast(RococoOptions, run.options)
        pictures_by_id = _pictures(items)
        item_number = item_numbers(pictures_by_id)
        texts = TextGalleries(encoder, cases, item_number, normalise=options["normalise"])
        changed = changed_items(cases, item_number)
        images = PictureGalleries(encoder, pictures_by_id, changed)
        return RetrievalScorer(pictures_by_id, texts, images)

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """Return the mixed pictures, and the released captions after normalization."""
        pictures_by_id = _pictures(items)
        changed = changed_items(cases, item_numbers(pictures_by_id))
        mixed = [
            picture
            for rule, numbers in changed.items()
            for picture in mixed_pictures(pictures_by_id, rule, numbers)
        ]
        edits = file_options.load_edits(run.options)
        spelled = [item for item in items if item.image and run.options["normalise"]]
        released = [(*item.captions, *item.foils) for item in spelled if item.foils]
        if edits:
            released = [(*item.captions, *file_foils(item, edits)) for item in spelled]
        return mixed, [normalised(text) for texts in released for text in texts]


def _pictures(items: Sequence[Item]) -> dict[str, Picture]:
    """Return the pictures by item id, in the order of the items. Items without a picture are left out."""
    return {item.id: item.image for item in items if item.image}


PROBE = Rococo()
