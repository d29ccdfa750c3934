"""RoCOCO: retrieval when altered captions or mixed pictures hide in the gallery
(papers/rococo.txt).

Kind `i2t`, one case per picture and policy: the gallery is every item's captions and, altered by that
policy, every caption once more. Kind `t2i`, one case per caption, strength and seed: the gallery is
every picture and each mixed with a partner. A patch or mixture that changes no pixel is neither a query nor in the
gallery, and is counted as dropped. The clean gallery is always scored with the altered one; without policies and
pictures only the clean gallery is used, as kinds `clean_i2t` and `clean_t2i`, and what needs an altered gallery is
unknown. A dataset that brings altered captions of its own (released files) is used unchanged.
"""

import copy
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from vlprobe.errors import Misfit
from vlprobe.metrics import retrieval
from vlprobe.perturb import mix
from vlprobe.probes import edits_option, rococo_fronts, rococo_options
from vlprobe.probes.caption_foils import (
    caption_cases,
    file_caption_cases,
    file_foils,
    voter_digest,
)
from vlprobe.probes.clean_gallery import KINDS, clean_cases
from vlprobe.probes.fit import check_fit
from vlprobe.probes.rococo_galleries import (
    RELEASED,
    PictureGalleries,
    RetrievalScorer,
    TextGalleries,
    changed_items,
    item_numbers,
    mixed_pictures,
    normalised,
)
from vlprobe.probes.rococo_options import RococoOptions
from vlprobe.scoring import pictures
from vlprobe.types import (
    Case,
    Edit,
    Encoder,
    Item,
    Picture,
    Probe,
    Reader,
    Run,
)
from vlprobe.types.presentation import KindPresentation, Presentation

PRESENTATION = Presentation(
    title="Retrieval (RoCOCO)",
    name="Decoys in search (RoCOCO)",
    asks="Does a search still find the right result among wrong captions and mixed pictures?",
    position=2,
    sentence="A model retrieves the caption of a picture, or the picture of a caption, while altered captions or mixed "
    "pictures are in the gallery. **Lower is better**: fewer correct first results are lost, and fewer decoys are "
    "ranked first.",
    headlines=("i2t_drop_rate", "i2t_rsms", "t2i_drop_rate", "t2i_rsms"),
    retrieval_metrics=("i2t_r1", "t2i_r1"),
    subtype_label="Alteration",
    value_labels={
        "rand-voca": "A random word",
        "same-concept": "A word of the same concept",
        "diff-concept": "A word of another concept",
        "danger": "A danger word",
        "released": "As released",
        "clean": "Unchanged",
    },
    value_order=("rand-voca", "same-concept", "diff-concept", "danger"),
    kinds={
        "i2t": KindPresentation(
            label="Find the caption: altered captions are in the gallery",
            lie="an altered caption",
            lies="altered captions",
            question="A picture retrieves its captions while altered captions are in the gallery: one of its captions "
            "should score higher than all of them.",
            body="caption_search",
        ),
        "t2i": KindPresentation(
            label="Find the picture: mixed pictures are in the gallery",
            lie="a mixed picture",
            lies="mixed pictures",
            question="A caption retrieves its picture while mixed pictures are in the gallery: the right picture "
            "should score higher than all of them.",
            body="picture_search",
        ),
        **KINDS,
    },
)


class Rococo(Probe):
    """Recall with and without altered captions and mixed pictures, and how often these win."""

    name = "rococo"
    version = 2
    needs = "gallery"
    dataset = "demo"
    presentation = PRESENTATION
    options = rococo_options.OPTIONS
    metrics = retrieval.METRICS
    side_tables = rococo_fronts.TABLES
    partners: Mapping[
        int, Mapping[str, Path]
    ] = {}  # by seed and item id: the picture that one is mixed with

    def check_options(self, options: Mapping[str, object]) -> None:
        """A vote takes voters, an altered picture a seed; no edit has two names."""
        rococo_options.check(cast(RococoOptions, options))

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Add the digests of the encoders that vote and of the vocabulary; leave out what is not
        asked for.

        Raises:
            InvalidInput: A file cannot be read.
        """
        pinned = rococo_options.pinned(edits_option.pinned(options))
        names = cast(RococoOptions, options)["influence"]
        return (
            {**pinned, "influence_digest": [voter_digest(name, cache) for name in names]}
            if names
            else pinned
        )

    def check_items(self, items: Sequence[Item], options: Mapping[str, object]) -> None:
        """Raise InvalidInput where a file has an edit of a caption that no item has."""
        edits_option.check_items(items, options)

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """All of a picture, unless its dataset or a file brings altered ones."""
        has_edits = item.foils or options.get("edits") or not item.image
        return item.captions if options["policies"] and not has_edits else ()

    def loads_models(self, options: Mapping[str, object]) -> bool:
        """Encoders vote which words are replaced."""
        return bool(options["influence"])

    def for_items(self, items: Sequence[Item], options: Mapping[str, object]) -> "Rococo":
        """The probe with the partners that these items' pictures are mixed with."""
        settings = cast(RococoOptions, options)
        paths = {item.id: item.image.path for item in items if item.image}
        if not paths or not settings["pictures"]:
            return self
        absent = [item.image.path.name for item in items if item.image and item.image.absent]
        if absent:
            raise Misfit(
                f"{len(absent):,} of {len(items):,} pictures are not here (first: '{absent[0]}'), and mixed pictures "
                "are made of them. Ask without: --option pictures=; with --option policies= for the clean gallery."
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
        """The queries of an item in every altered gallery; without partners, all edits of its picture are included."""
        if item.image is None:
            return [], {"no picture": 1}
        settings = cast(RococoOptions, options)
        has_edits = settings.get("edits") or item.foils
        if not (settings["policies"] or settings["pictures"] or has_edits):
            return clean_cases(item, item.image), {}
        edits = edits_option.loaded(options)
        draws = rococo_options.draws(settings, seed)
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
                cases.append(
                    Case(
                        f"{group}/{rule}",
                        item.id,
                        group,
                        (item.image,),
                        (caption,),
                        ("original",),
                        edit,
                    )
                )
        return cases, dropped

    def _unchanged(
        self, item: Item, picture: Picture, strengths: Sequence[str]
    ) -> set[tuple[str, int]]:
        """The strengths and seeds whose mixture has the pixels of the item's own picture."""
        if not self.partners:
            return set()
        unchanged = set()
        image = pictures.open_picture(Picture(picture.path))
        for seed, partner_of in self.partners.items():
            partner = partner_of[item.id]
            partner_image = mix.fitted(pictures.open_picture(Picture(partner)), image.size)
            for strength in strengths:
                kind, lam = rococo_options.strength(strength)
                if not mix.changes(
                    image, partner_image, mix.picture_edit(item.id, partner, kind, lam, seed)
                ):
                    unchanged.add((strength, seed))
        return unchanged

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> RetrievalScorer:
        """Ranks in both galleries; the margin is the right candidate's similarity minus the best
        altered one's.
        """
        check_fit(encoder.model, self)
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
        """The mixed pictures, and released captions in the form in which they are compared."""
        pictures_by_id = _pictures(items)
        changed = changed_items(cases, item_numbers(pictures_by_id))
        mixed = [
            picture
            for rule, numbers in changed.items()
            for picture in mixed_pictures(pictures_by_id, rule, numbers)
        ]
        edits = edits_option.loaded(run.options)
        spelled = [item for item in items if item.image and run.options["normalise"]]
        released = [(*item.captions, *item.foils) for item in spelled if item.foils]
        if edits:
            released = [(*item.captions, *file_foils(item, edits)) for item in spelled]
        return mixed, [normalised(text) for texts in released for text in texts]


def _pictures(items: Sequence[Item]) -> dict[str, Picture]:
    """The pictures by item id, in the order of the items."""
    return {item.id: item.image for item in items if item.image}


PROBE = Rococo()
