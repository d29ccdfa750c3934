"""PRSM: a reworded query should rank the same pictures first (papers/prsm.txt).

A case is one query in several versions. There are three settings for the versions. P1: any paraphrases (the captions of
one picture, or from a file). P2: prefixes ("a photo of"...). P3: synonyms. The gallery consists of the dataset's own
pictures, or the pictures of the dataset in the option `gallery`. With the option `group`, which names a tag,
each query searches only the pictures in its own group.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.metrics import ranking
from vlprobe.perturb import lgip
from vlprobe.perturb.edits_file import NO_EDIT, EditsFile
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.probes import file_options, prsm_ranking
from vlprobe.probes.prsm_ranking import GroupGallery, RankingScorer, group_of
from vlprobe.types import Case, Edit, Encoder, Item, Metric, Picture, Reader, Role, Run
from vlprobe.types.options import Option
from vlprobe.types.presentation import KindPresentation, Presentation

SETTINGS = ("P1", "P2", "P3")
MIN_SAMPLED = 100  # candidates, which give a standard error of at most .13 per query
PREFIXES = ("template:a-photo-of", "template:a-picture-of", "template:an-image-of")


PRESENTATION = Presentation(
    title="Rankings (PRSM)",
    name="Rephrased search (PRSM)",
    asks="Do different wordings of a search find the same pictures?",
    position=5,
    sentence="A query has several wordings, and a model ranks all pictures for each. **Higher is better**: all "
    "wordings return the same pictures first.",
    headlines=("prsm_local_10", "prsm_local_100", "prsm_local_1000"),
    subtype_label="Kind of rewording",
    value_labels={
        "P1": "P1: any other wording",
        "P2": "P2: a prefix",
        "P3": "P3: synonyms",
        "o-c1": "o-c1: the first paraphrase",
        "o-c2": "o-c2: the second paraphrase",
        "p1-p2": "p1-p2: an image of, a picture of",
        "p1-np": "p1-np: an image of, no prefix",
        "o-a1": "o-a1: the first attribute",
        "o-a2": "o-a2: the second attribute",
        "o-a12": "o-a12: both attributes",
    },
    value_order=("o-c1", "o-c2", "P1", "p1-p2", "p1-np", "P2", "o-a1", "o-a2", "o-a12", "P3"),
    kinds={
        "ranking": KindPresentation(
            label="One query in several wordings",
            lie="another wording",
            verb="is moved by",
            lies="wordings",
            question="A query has several wordings, so the same pictures should be ranked first.",
            body="rankings",
            is_movement=True,
            is_share=True,
            legend="Pictures from rank 1 to 5. Solid frame: the query's own picture. Dashed frame: "
            "not among the first five for the first wording.",
            summary="**{n_cases:,}** queries have several wordings, so {model} should rank the same pictures first. "
            "Moved is the share of the first 100 pictures that two wordings do not share (of the first 10 in a small "
            "gallery; 1 minus the rank correlation in a gallery of up to 10); nothing moved **{n_tied:,}** times.",
        )
    },
)


class PrsmOptions(TypedDict):
    """Parsed options of a PRSM run."""

    gallery: str
    group: str
    edits: NotRequired[str]
    sampled: NotRequired[int]


class Prsm(file_options.ProbeWithEdits):
    """Measures how stable the ranking of pictures is when a query is reworded."""

    name = "prsm"
    version = 2
    needs = "gallery"
    dataset = "demo"
    presentation = PRESENTATION
    options = (
        Option(
            name="gallery",
            default="",
            label="Pictures of",
            help="Dataset whose pictures are ranked. If empty, the pictures of the queries' "
            "dataset are ranked.",
            refers_to="dataset",
        ),
        Option(
            name="group",
            default="",
            label="Grouped by the tag",
            help="Each query ranks only the pictures that have the same value of this tag as "
            "the query. If empty, each query ranks all pictures.",
        ),
        file_options.edits_option(
            "Edits with the same meaning become the versions of a query, instead of the "
            "versions that the rules write."
        ),
        Option(
            name="sampled",
            default=0,
            label="Candidates for the rank correlation (0 = all)",
            help="Number of candidates sampled per query to estimate the rank correlation, for "
            "galleries that are too large to sort.",
            minimum=MIN_SAMPLED,
            off_value=0,
            expected=f"0 (all candidates) or at least {MIN_SAMPLED}",
        ),
    )
    metrics = ranking.METRICS
    optional_metrics = (ranking.SAMPLED_METRIC,)
    side_tables = prsm_ranking.TABLES

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Add the digest of the gallery's dataset to the options, and remove the option `sampled` if it is off."""
        pinned = file_options.without_unset(super().pin(options, cache), "sampled")
        if name := str(pinned["gallery"]):
            pinned["gallery_digest"] = registry.load_dataset(name, cache).digest
        return pinned

    def metrics_of(self, options: Mapping[str, object], n_orders: int = 1) -> tuple[Metric, ...]:
        """Return the probe's metrics. If candidates are sampled, the estimated rank correlation is included."""
        return (*self.metrics, *self.optional_metrics) if options.get("sampled") else self.metrics

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Return the query that rules reword; nothing if a dataset or a file provides the versions of the query."""
        return () if item.setting or options.get("edits") else item.captions[:1]

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create one case per set of query versions. The versions come from a file, the dataset, or the captions."""
        cases, dropped = [], {}
        query_sets: Mapping[str, Sequence[str]]
        if edits := file_options.load_edits(options):
            query_sets = _listed_sets(item, edits)
            dropped = {} if query_sets else {NO_EDIT: 1}
        elif item.setting:
            query_sets = {item.setting: item.captions}
        elif item.captions[0] in self.foreign:
            query_sets, dropped = {"P1": item.captions}, {NOT_IN_ENGLISH: 1}
        else:
            query_sets = _query_sets(item, seed)
        images = (item.image,) if item.image else ()
        for setting, versions in query_sets.items():
            texts = tuple(dict.fromkeys(versions))
            if len(texts) < 2:
                dropped[f"{setting}: one version only"] = 1
                continue
            rewordings: list[Role] = ["same"] * (len(texts) - 1)
            name = setting.rpartition("/")[2]
            edit = Edit("ranking", name, name)
            roles: tuple[Role, ...] = ("original", *rewordings)
            cases.append(Case(f"{item.id}/{setting}", item.id, item.id, images, texts, roles, edit))
        return cases, dropped

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> RankingScorer:
        """Return a scorer that ranks the gallery for each version of a query. Its margin is an agreement measure minus
        1.

        The measure is the overlap between the first 100 pictures, or the first 10 in a gallery of at most 100. For a
        gallery of at most 10 pictures, it is the rank correlation.
        """
        options = cast(PrsmOptions, run.options)
        if options.get("sampled") and encoder.scores_pairs:
            raise InvalidInput(
                f"Model '{encoder.model.name}' re-ranks a short list by pairs, which "
                "cannot be sampled. Remove the option 'sampled', or choose a dual "
                "encoder."
            )
        candidates = (
            registry.load_dataset(options["gallery"], cache).items if options["gallery"] else items
        )
        grouped = grouped_pictures(candidates, options["group"], run.dataset)
        galleries = {name: GroupGallery(encoder, pictures) for name, pictures in grouped.items()}
        return RankingScorer(
            encoder,
            galleries,
            {item.id: item for item in items},
            group_tag=options["group"],
            n_sampled=options.get("sampled", 0),
            seed=run.seed,
        )

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """Return the pictures in the gallery if they come from another dataset, else none."""
        name = str(run.options["gallery"])
        return [
            item.image for item in registry.load_dataset(name, cache).items if item.image
        ] if name else (), ()


def grouped_pictures(
    items: Sequence[Item], group_tag: str, dataset: str
) -> dict[str, list[Picture]]:
    """Group the pictures in a gallery by the value of a tag, in the order of the items. Without a tag, all pictures are
    in one group, "".

    Args:
        items: The items of the gallery; items without a picture are skipped.
        group_tag: The tag whose values define the groups.
        dataset: The name of the dataset, for error messages.

    Raises:
        InvalidInput: No item has a picture, or no item with a picture has the tag.
    """
    groups: dict[str, list[Picture]] = {}
    tags: set[str] = set()
    for item in items:
        if item.image:
            groups.setdefault(group_of(item, group_tag), []).append(item.image)
            tags |= item.tags.keys()
    if not groups:
        raise InvalidInput(
            f"Dataset '{dataset}' has no pictures to rank. Choose a gallery, such as "
            "--option gallery=demo."
        )
    if group_tag and group_tag not in tags:
        raise InvalidInput(
            f"No picture in the gallery has the tag '{group_tag}', so pictures cannot be grouped "
            f"by it. Tags in the gallery: {', '.join(sorted(tags))}."
        )
    return groups


def _listed_sets(item: Item, edits: EditsFile) -> dict[str, list[str]]:
    """Return each caption together with its same-meaning edits from a file, by setting.

    The setting is the subtype of the edit if it names a setting, else P1. For captions after the first, the key is
    prefixed with the caption's number.
    """
    query_sets: dict[str, list[str]] = {}
    for index, caption in enumerate(item.captions):
        for row in edits.of(item, caption, "same"):
            setting = row.subtype if row.subtype in SETTINGS else SETTINGS[0]
            name = f"{index}/{setting}" if index else setting
            query_sets.setdefault(name, [caption]).append(row.text)
    return query_sets


def _query_sets(item: Item, seed: int) -> dict[str, Sequence[str]]:
    """Return the versions of the item's first caption, by setting. Every set includes the caption itself."""
    caption = item.captions[0]
    paraphrases = lgip.edits(
        [caption], item.id, seed=seed, kinds=["paraphrase"], k_same=1000
    ).edits[0]
    prefixed = [text for text, edit in paraphrases if edit.rule in PREFIXES]
    synonyms = [text for text, edit in paraphrases if edit.rule.startswith("synonym")]
    return {"P1": list(item.captions), "P2": [caption, *prefixed], "P3": [caption, *synonyms]}


PROBE = Prsm()
