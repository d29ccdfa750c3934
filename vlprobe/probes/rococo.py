"""RoCOCO: retrieval when altered captions or mixed pictures hide in the gallery (papers/rococo.txt).

Kind `i2t`, a case a picture and policy: the gallery is every item's captions and, altered by that policy, every caption
once more. Kind `t2i`, a case a caption, strength and seed: the gallery is every picture and each mixed with a partner.
A patch or mixture that changes no pixel is neither asked about nor in the gallery, and is counted as dropped. The clean
gallery is always scored beside the altered one. A dataset that brings altered captions of its own (released files) is
used as it is.
"""

import copy
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.metrics import retrieval
from vlprobe.perturb import influence, mix, substitution
from vlprobe.probes.fit import check_fit
from vlprobe.probes.rococo_galleries import (
    RELEASED,
    PictureGalleries,
    TextGalleries,
    changed_items,
    mixed_pictures,
    normalised,
)
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring import nearest, pictures
from vlprobe.types import Case, Edit, Encoder, Item, Picture, Probe, Reader, Run, TextEncoder, embeds_texts
from vlprobe.types.options import Option
from vlprobe.types.presentation import KindPresentation, Presentation

VOTED = ("delete:low-ei", "delete:high-ei")  # policies that make nothing without the encoders' vote


PRESENTATION = Presentation(
    title="Retrieval (RoCOCO)",
    position=2,
    sentence="A model searches for the caption of a picture, or the picture of a caption, while captions with a wrong "
    "word or mixed pictures hide among the candidates. **Down is good**: it loses less of what it found before, and "
    "fewer false candidates come first.",
    headlines=("i2t_drop_rate", "i2t_rsms", "t2i_drop_rate", "t2i_rsms"),
    retrieval_metrics=("i2t_r1", "t2i_r1"),
    subtype_label="What was altered",
    value_labels={
        "rand-voca": "A random word",
        "same-concept": "A word of the same concept",
        "diff-concept": "A word of another concept",
        "danger": "A danger word",
        "released": "As released",
    },
    value_order=("rand-voca", "same-concept", "diff-concept", "danger"),
    kinds={
        "i2t": KindPresentation(
            label="Find the caption: altered captions are in the gallery",
            question="A picture looks for its captions while altered captions are among the candidates: one of its own "
            "should score higher than all of these.",
            body="caption_search",
        ),
        "t2i": KindPresentation(
            label="Find the picture: mixed pictures are in the gallery",
            question="A caption looks for its picture while mixed pictures are among the candidates: the right one "
            "should score higher than all of these.",
            body="picture_search",
        ),
    },
)


class Rococo(Probe):
    """Recall with and without altered captions and mixed pictures in the gallery, and how often these come first."""

    name = "rococo"
    version = 2
    needs = "gallery"
    dataset = "demo"
    presentation = PRESENTATION
    options = (
        Option(
            name="policies",
            default=("rand-voca", "same-concept", "diff-concept", "danger"),
            label="Altered captions",
            help="Which words are put in. NAME exchanges one noun of a caption, NAME:K as many as K, delete:WHICH "
            "leaves one out. None: no query for captions.",
            choices=(*substitution.POLICIES, *(f"delete:{which}" for which in substitution.DELETIONS)),
            pattern=f"({'|'.join(substitution.POLICIES)}):0*[1-5]",
            expected=f"NAME, NAME:K (2 to 5 words) or delete:WHICH with a NAME of {', '.join(substitution.POLICIES)} "
            f"and a WHICH of {', '.join(substitution.DELETIONS)}",
        ),
        Option(
            name="pictures",
            default=("mix:0.9", "patch:0.9"),
            label="Altered pictures",
            help="mix:LAM blends a picture with another, patch:LAM pastes a part of it; LAM is the share that stays. "
            "None: no query for pictures.",
            choices=tuple(f"{kind}:{lam}" for lam in mix.LAMBDAS for kind in ("mix", "patch")),
            pattern=r"(mix|patch):0?\.[0-9]*[1-9][0-9]*",
            expected="mix:LAM or patch:LAM, 0 < LAM < 1",
        ),
        Option(
            name="picture_seeds",
            default=mix.SEEDS,
            label="Seeds of altered pictures",
            help="Partners and patches are drawn anew for each.",
            choices=mix.SEEDS,
            pattern="[0-9]+",
            expected="whole numbers, 0 or more",
            minimum=0,
        ),
        Option(
            name="influence",
            default=(),
            label="Encoders that vote on the word",
            help="Models that embed texts: the noun that most of them find least influential is exchanged. None: a "
            "noun at random.",
            pattern=".+",
            refers_to="model",
        ),
        Option(
            name="normalise",
            default=True,
            label="Even out released captions",
            help="Released files spell altered captions differently from originals: both are compared without case "
            "and marks.",
        ),
        nearest.APPROXIMATE,
    )
    metrics = retrieval.METRICS
    partners: Mapping[int, Mapping[str, Path]] = {}  # by seed and item id: the picture that one is mixed with

    def check_options(self, options: Mapping[str, object]) -> None:
        """A vote takes voters, an altered picture a seed, an approximate search faiss; no edit has two names."""
        voted = [policy for policy in options["policies"] if policy in VOTED]
        if voted and not options["influence"]:
            raise InvalidInput(
                f"Policy '{voted[0]}' needs EI scores: name encoders that vote on the word as the option 'influence'."
            )
        if options["pictures"] and not options["picture_seeds"]:
            raise InvalidInput("Altered pictures take a seed. Name one or more as the option 'picture_seeds'.")
        strengths = [(strength, *str(strength).split(":")) for strength in options["pictures"]]
        _refuse_synonyms("pictures", {strength: (kind, float(lam)) for strength, kind, lam in strengths})
        # Where policies name the number of words, 1 is what a policy without a number means.
        _refuse_synonyms("policies", {policy: re.sub(r":0*1$|(?<=:)0+", "", policy) for policy in options["policies"]})
        nearest.pin_options(options)

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Adds the digests of the encoders that vote; leaves out what an exact search has no use for.

        Raises:
            InvalidInput: Too few candidates are to be looked up.
        """
        options = nearest.pin_options(options)
        names = options["influence"]
        return {**options, "influence_digest": [_voter(name).digest for name in names]} if names else options

    def loads_models(self, options: Mapping[str, object]) -> bool:
        """Encoders vote which words are replaced."""
        return bool(options["influence"])

    def for_items(self, items: Sequence[Item], options: Mapping[str, object]) -> "Rococo":
        """The probe with the partners that these items' pictures are mixed with."""
        paths = {item.id: item.image.path for item in items if item.image}
        if not paths or not options["pictures"]:
            return self
        bound = copy.copy(self)
        bound.partners = {
            number: {one: paths[other] for one, other in mix.partners(list(paths), number).items()}
            for number in options["picture_seeds"]
        }
        return bound

    def cases(self, item: Item, options: Mapping[str, object], seed: int) -> tuple[list[Case], Mapping[str, int]]:
        """The queries of an item in every altered gallery; without partners, all edits of its picture are asked."""
        if item.image is None:
            return [], {"no picture": 1}
        made, dropped = [], Counter()
        for policy in [RELEASED] if item.foils else options["policies"]:
            foils, lost = _altered(item, policy, options, seed)
            dropped.update(lost)
            texts = (*item.captions, *foils)
            roles = ("original", *["same"] * (len(item.captions) - 1), *["different"] * len(foils))
            edit = Edit("i2t", policy, policy)
            made.append(Case(f"{item.id}/i2t/{policy}", item.id, item.id, (item.image,), texts, roles, edit))
        unchanged = self._unchanged(item, options)
        for strength in options["pictures"]:
            for number in options["picture_seeds"]:
                if (strength, number) in unchanged:
                    dropped[f"{strength}: changes no pixel"] += 1
                    continue
                for index, caption in enumerate(item.captions):
                    group, rule = f"{item.id}/{index}", f"{strength}:seed{number}"
                    edit = Edit("t2i", strength, rule)
                    made.append(Case(f"{group}/{rule}", item.id, group, (item.image,), (caption,), ("original",), edit))
        return made, dropped

    def _unchanged(self, item: Item, options: Mapping[str, object]) -> set[tuple[str, int]]:
        """The strengths and seeds whose mixture has the pixels of the item's own picture."""
        found = set()
        image = pictures.open_picture(Picture(item.image.path)) if self.partners else None
        for number, partner_of in self.partners.items():
            partner = partner_of[item.id]
            partner_image = mix.fitted(pictures.open_picture(Picture(partner)), image.size)
            for strength in options["pictures"]:
                kind, lam = strength.split(":")
                if not mix.changes(image, partner_image, mix.picture_edit(item.id, partner, kind, float(lam), number)):
                    found.add((strength, number))
        return found

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Ranks in both galleries; the margin is the right candidate's similarity minus the best altered one's."""
        check_fit(encoder.model, self)
        shown = [item for item in items if item.image]
        code = {item.id: number for number, item in enumerate(shown)}
        k = int(run.options.get("approximate", 0))
        texts = TextGalleries(encoder, cases, code, run.options["normalise"], k)
        images = PictureGalleries(encoder, shown, changed_items(cases, shown), k)
        n_cases = sum(len(block) for block in cases(["case"])) if k else 0

        def score(part: pa.Table) -> pa.Table:
            rows = part.select(["id", "kind", "subtype", "rule", "item"]).to_pandas()
            found = pd.DataFrame(index=rows.index, columns=list(_COLUMNS))
            names = nearest.recall_columns(k, apart=True) if k else ()
            told = pd.DataFrame(index=rows.index, columns=names, dtype=np.float64)
            for (kind, subtype, rule), own in rows.groupby(["kind", "subtype", "rule"], sort=False):
                query_item = own["item"].map(code).to_numpy()
                if kind == "i2t":
                    ranked = texts.search([shown[number].image for number in query_item], query_item, subtype)
                else:
                    asked = [part["texts"][number][0].as_py() for number in own.index]
                    ranked = images.search(asked, query_item, rule)
                for column in _COLUMNS[:-1]:
                    found.loc[own.index, column] = getattr(ranked.found, column)
                found.loc[own.index, "top"] = [ranked.name_of(number) for number in ranked.found.which_altered]
                if k:
                    measured = nearest.measures_recall(own["id"], run.seed, n_cases)
                    asked = ranked.queries[measured]
                    own_told = nearest.recall_table(ranked.gallery, asked, measured, names, ranked.altered)
                    for name, column in own_told.items():
                        told.loc[own.index, name] = column
            pairs = np.stack([found["best_own"].astype(np.float32), found["best_altered"].astype(np.float32)], axis=1)
            return pa.table(
                {
                    "scores": pa.array(list(pairs), pa.list_(pa.float32())),
                    "text_scores": pa.array([[]] * len(rows), pa.list_(pa.float32())),
                    "margin": pa.array(pairs[:, 0] - pairs[:, 1]),
                    **{
                        name: pa.array(found[name].astype(np.float64), pa.int32(), from_pandas=True)
                        for name in _COUNTED
                    },
                    "top": pa.array(found["top"].tolist(), pa.string()),
                    **{name: pa.array(told[name]) for name in told},
                }
            )

        return score

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """The mixed pictures, and released captions as they are compared."""
        shown = [item for item in items if item.image]
        mixed = [
            one for rule, changed in changed_items(cases, shown).items() for one in mixed_pictures(shown, rule, changed)
        ]
        released = [item for item in shown if item.foils and run.options["normalise"]]
        return mixed, [normalised(text) for item in released for text in (*item.captions, *item.foils)]

    def survey(self, blocks: Iterable[pd.DataFrame]) -> Mapping[str, object]:
        """How much of what should be found an approximate search found."""
        return nearest.survey(blocks)


_COUNTED = ("rank_clean", "rank", "top_altered", "least_rank_clean", "least_rank", "top_tied")
_COLUMNS = ("best_own", "best_altered", *_COUNTED, "top")


def _refuse_synonyms(option: str, meanings: Mapping[str, object]) -> None:
    """Raises InvalidInput where two values of an option mean the same, so that it would be in the gallery twice."""
    for value, meaning in meanings.items():
        synonym = next(name for name, same in meanings.items() if same == meaning)
        if synonym != value:
            raise InvalidInput(f"Option '{option}' names one edit as '{synonym}' and as '{value}'. Name it once.")


def _altered(item: Item, policy: str, options: Mapping[str, object], seed: int) -> tuple[list[str], Mapping[str, int]]:
    if policy == RELEASED:
        return list(item.foils), {}
    name, _, detail = policy.partition(":")
    voters = options["influence"]
    scores = None
    if voters:
        spans = [[(noun.start, noun.end) for noun in substitution.sources(caption)] for caption in item.captions]
        scores = influence.influence(item.captions, spans, [_encode(_voter(voter)) for voter in voters])
    if name == "delete":
        made, dropped = substitution.delete(item.captions, item.id, detail, seed=seed, influence=scores)
    else:
        if detail and not detail.isdigit():
            raise InvalidInput(f"Policy '{policy}' is not known. Expected NAME, NAME:K (2 to 5 words) or delete:WHICH.")
        k = int(detail or 1)
        made, dropped = substitution.alter(item.captions, item.id, name, k=k, seed=seed, influence=scores)
    return [one.text for one in made if one], {f"{policy}: {reason}": count for reason, count in dropped.items()}


@functools.cache
def _voter(name: str) -> TextEncoder:
    model = registry.load_model(name)
    if not embeds_texts(model):
        raise InvalidInput(f"'{name}' embeds no texts and cannot vote on words. Name a text encoder or a dual encoder.")
    return model


def _encode(model: TextEncoder) -> Callable[[Sequence[str]], np.ndarray]:
    return lambda texts: model.encode_texts(model.tokenize(texts))


PROBE = Rococo()
