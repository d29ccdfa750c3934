"""PRSM: does a query rank the same pictures first when it is reworded? (papers/prsm.txt)

A case is one query in several versions, P1: any paraphrases (the captions of one picture, or a file's), P2: prefixes
("a photo of"...), P3: synonyms. The gallery is the dataset's own pictures, or those of the dataset named by the option
`gallery`; with the option `group`, a tag, each query is asked of the pictures of its own group alone.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.metrics import ranking
from vlprobe.perturb import lgip
from vlprobe.probes.fit import check_fit
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring import nearest
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.nearest import Nearest
from vlprobe.types import Case, Edit, Encoder, Item, Picture, Probe, Reader, Run
from vlprobe.types.options import Option
from vlprobe.types.presentation import MOVEMENT_WORDS, KindPresentation, Presentation

PREFIXES = ("template:a-photo-of", "template:a-picture-of", "template:an-image-of")
SHOWN = 5  # pictures of each version's ranking that are kept to look at


PRESENTATION = Presentation(
    title="Rankings (PRSM)",
    position=5,
    sentence="The same query is asked in several wordings, and a model ranks all pictures for each. **Up is good**: "
    "the same pictures come first, whatever the wording.",
    headlines=("prsm_local_10", "prsm_local_100", "prsm_local_1000"),
    subtype_label="Kind of rewording",
    value_labels={"P1": "P1: any other wording", "P2": "P2: a prefix", "P3": "P3: synonyms"},
    kinds={
        "ranking": KindPresentation(
            label="One query in several wordings",
            question="Queries were asked in several wordings, so the same pictures should be ranked first.",
            body="rankings",
            is_movement=True,
            verdict_words=MOVEMENT_WORDS,
            legend="Pictures from rank 1 to 5. Solid frame: the query's own picture. Dashed: not among the first five "
            "of the first wording.",
            summary="**{n_cases:,}** queries were asked in several wordings, so {model} should rank the same pictures "
            "first. Moved is the share of the first 100 that two wordings do not have in common (of the "
            "first 10 in a small gallery, or where an approximate search looks up fewer than 100; in a gallery of at "
            "most 10: 1 minus the rank correlation); nothing moved **{n_tied:,}** times.",
        ),
    },
)


class Prsm(Probe):
    """Stability of image rankings under reworded queries."""

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
            help="The dataset whose pictures are ranked; empty: the queries' own dataset.",
            refers_to="dataset",
        ),
        Option(
            name="group",
            default="",
            label="Grouped by the tag",
            help="Each query ranks the pictures with its own value of this tag alone; empty: all pictures.",
        ),
        nearest.APPROXIMATE,
    )
    metrics = ranking.METRICS

    def check_options(self, options: Mapping[str, object]) -> None:
        """An approximate search needs faiss."""
        nearest.pinned(options)

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Adds the digest of the gallery, and to an approximate search the depths at which its recall is measured."""
        options = nearest.pinned(options)
        if "approximate" in options:
            options["recall_depths"] = [1, *ranking.OVERLAPS]
        name = str(options["gallery"])
        return {**options, "gallery_digest": registry.load_dataset(name, cache).digest} if name else options

    def cases(self, item: Item, options: Mapping[str, object], seed: int) -> tuple[list[Case], Mapping[str, int]]:
        """The query sets of an item: as its dataset gives them, or made from its captions."""
        sets = {item.setting: item.captions} if item.setting else _sets(item, seed)
        made, dropped = [], {}
        for setting, versions in sets.items():
            texts = tuple(dict.fromkeys(versions))
            if len(texts) < 2:
                dropped[f"{setting}: one version only"] = 1
                continue
            roles = ("original", *["same"] * (len(texts) - 1))
            images = (item.image,) if item.image else ()
            made.append(
                Case(f"{item.id}/{setting}", item.id, item.id, images, texts, roles, Edit("ranking", setting, setting))
            )
        return made, dropped

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Measures of each query's rankings; the margin is how far the top overlap stays below 1.

        That of the first 100, or of 10 where the gallery has or an approximate search looks up fewer than that; in a
        gallery too small for these it is how far the rank correlation does.
        """
        check_fit(encoder.model, self)
        name, group = str(run.options["gallery"]), str(run.options["group"])
        shown = registry.load_dataset(name, cache).items if name else items
        candidates = [item for item in shown if item.image]
        if not candidates:
            raise InvalidInput(f"Dataset '{run.dataset}' has no pictures to rank. Name some: --option gallery=demo.")
        pictures = [item.image for item in candidates]
        if group and not any(group in item.tags for item in candidates):
            known = sorted({name for item in candidates for name in item.tags})
            raise InvalidInput(
                f"No picture of the gallery has the tag '{group}' to group by. It has: {', '.join(known)}."
            )

        k = int(run.options.get("approximate", 0))
        n_cases = sum(len(block) for block in cases(["case"])) if k else 0

        def made(numbers: np.ndarray) -> Gallery | Nearest:
            shown = [pictures[number] for number in numbers]
            whole = Gallery.of(lambda part: encoder.images(shown[part]), len(shown), encoder.image_dim, encoder.memory)
            return nearest.searched(whole, k, encoder)

        groups = np.array([item.tags.get(group, "") if group else "" for item in candidates])
        own = {item.id: item.tags.get(group, "") if group else "" for item in items}
        numbered = {value: np.flatnonzero(groups == value) for value in set(groups)}
        galleries = {value: (numbers, made(numbers)) for value, numbers in numbered.items()}

        def score(cases: pa.Table) -> pa.Table:
            texts = cases["texts"].to_pylist()
            encoder.texts([text for versions in texts for text in versions], keep=True)
            asked, names = [own[item] for item in cases["item"].to_pylist()], cases["id"].to_pylist()
            if lost := [row for row, value in enumerate(asked) if value not in galleries]:
                raise InvalidInput(
                    f"No picture of the gallery has {group} '{asked[lost[0]]}', "
                    f"which item '{cases['item'][lost[0]]}' asks of."
                )
            found, tops = [{}] * len(texts), [""] * len(texts)
            for value, (numbers, gallery) in galleries.items():
                rows = [row for row, one in enumerate(asked) if one == value]
                shown = [pictures[number] for number in numbers]
                ask = _nearest if isinstance(gallery, Nearest) else _rankings
                ranked = ask(encoder, gallery, shown, [texts[row] for row in rows])
                for row, (measured, best) in zip(rows, ranked, strict=True):
                    found[row] = measured | {"gallery_size": len(numbers)}
                    tops[row] = json.dumps([[shown[place].name for place in version] for version in best])
                if k:
                    measured = nearest.sampled([names[row] for row in rows], run.seed, n_cases)
                    depths = run.options.get("recall_depths", nearest.DEPTHS)
                    recall_names = nearest.columns(k, apart=False, depths=depths)
                    recalls = _looked_up(encoder, gallery, [texts[row] for row in rows], measured, recall_names)
                    for row, own_recalls in zip(rows, recalls, strict=True):
                        found[row] |= own_recalls
            table = pd.DataFrame(found).astype(np.float64)
            kept = np.array([row[_kept(row["gallery_size"], k)] for row in found])
            columns = {"margin": pa.array((kept - 1).astype(np.float32), from_pandas=True), "top": pa.array(tops)}
            columns |= {name: pa.array(table[name]) for name in table}
            nothing = pa.array([[]] * len(table), pa.list_(pa.float32()))
            return pa.table({"scores": nothing, "text_scores": nothing, **columns})

        return score

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """The pictures of a gallery that is not the dataset's own."""
        name = str(run.options["gallery"])
        return [item.image for item in registry.load_dataset(name, cache).items if item.image] if name else (), ()

    def survey(self, blocks: Iterable[pd.DataFrame]) -> Mapping[str, object]:
        """How much of what should be found an approximate search found."""
        return nearest.survey(blocks)


def _kept(gallery_size: int, k: int) -> str:
    """Which measure the margin is made of, whatever ties: of a run with one gallery always the same.

    >>> _kept(5000, 0), _kept(5000, 10), _kept(100, 0), _kept(10, 0)
    ('local_100', 'local_10', 'local_10', 'global')
    """
    depths = [depth for depth in (100, 10) if depth < gallery_size and (not k or depth <= k)]
    return f"local_{depths[0]}" if depths else "global"


def _rankings(
    encoder: Encoder, gallery: Gallery, shown: Sequence[Picture], queries: Sequence[Sequence[str]]
) -> Iterator[tuple[dict[str, float], list[list[int]]]]:
    """The measures of each query, and what each of its versions ranks first; as many queries at once as a block has."""
    with ThreadPoolExecutor(encoder.workers) as pool:
        for block in _blocks(queries, gallery.block):
            texts = [text for versions in block for text in versions]
            match = scoring_cases.matcher(encoder, shown, texts, asked="texts")
            values = np.concatenate([part for _, part in gallery.similarities(encoder.texts(texts), match)])
            ends = np.cumsum([len(versions) for versions in block])
            own = np.split(values, ends[:-1])
            share = -(-len(own) // encoder.workers)
            shares = [own[start : start + share] for start in range(0, len(own), share)]
            yield from itertools.chain.from_iterable(pool.map(_ranked, shares))


def _nearest(
    encoder: Encoder, gallery: Nearest, shown: Sequence[Picture], queries: Sequence[Sequence[str]]
) -> Iterator[tuple[dict[str, float], list[list[int]]]]:
    """As `_rankings`, of what an approximate search finds; one candidate more, to see what ties at the end."""
    for block in _blocks(queries, nearest.BLOCK):
        rows, values = gallery.search(encoder.texts([text for versions in block for text in versions]), gallery.k + 1)
        ends = np.cumsum([len(versions) for versions in block])[:-1]
        for own in zip(np.split(rows, ends), np.split(values, ends), strict=True):
            candidates, known = gallery.spread(*own)
            measured, order = ranking.first_measures(known)
            yield measured, candidates[order[:, :SHOWN]].tolist()


def _looked_up(
    encoder: Encoder,
    gallery: Nearest | Gallery,
    queries: Sequence[Sequence[str]],
    measured: np.ndarray,
    names: Sequence[str],
) -> list[dict[str, float]]:
    """Of each query what is stored beside its measures; recall is the mean over its versions."""
    sizes = [len(versions) for versions in queries]
    asked = encoder.texts([text for row in np.flatnonzero(measured) for text in queries[row]])
    columns = nearest.looked_up(gallery, asked, np.repeat(measured, sizes), names)
    parts = {name: np.split(column, np.cumsum(sizes)[:-1]) for name, column in columns.items()}
    return [{name: own[row].mean() for name, own in parts.items()} for row in range(len(queries))]


def _ranked(queries: Sequence[np.ndarray]) -> list[tuple[dict[str, float], list[list[int]]]]:
    ranker, found = ranking.Ranker(), []
    for values in queries:
        rankings = ranker(values)
        found.append((ranking.measures(rankings), rankings.order[:, :SHOWN].tolist()))
    return found


def _blocks(queries: Sequence[Sequence[str]], most: int) -> Iterator[list[Sequence[str]]]:
    """Queries in groups of at most so many versions, or of one query that has more.

    >>> list(_blocks(["abc", "def", "gh"], 6))
    [['abc', 'def'], ['gh']]
    """
    block: list[Sequence[str]] = []
    for versions in queries:
        if block and sum(map(len, block)) + len(versions) > most:
            yield block
            block = []
        block.append(versions)
    if block:
        yield block


def _sets(item: Item, seed: int) -> dict[str, list[str]]:
    first = item.captions[0]
    made = lgip.edits([first], item.id, seed=seed, kinds=["paraphrase"], k_same=1000).edits[0]
    prefixed = [text for text, edit in made if edit.rule in PREFIXES]
    synonyms = [text for text, edit in made if edit.rule.startswith("synonym")]
    return {"P1": list(item.captions), "P2": [first, *prefixed], "P3": [first, *synonyms]}


PROBE = Prsm()
