"""Answers from real models, which their authors published for each question: published:NAME.

    published:GPT-4V             on SugarCrepe, with the captions in both orders
    published:CLIP ViT-B/32      and CLIP_COCO, CLIP_TROHN-Text, CLIP_TROHN-Img on SugarCrepe
    published:ALBEF 14M          and ten others on VALSE

The answers are bundled with vlprobe (`tools.ship_published`) and only apply to the questions in `bundled:` datasets.
"""

import functools
from typing import TypedDict, cast

import numpy as np

from vlprobe.errors import NotFound
from vlprobe.models.score_table import ScoreSource, ScoreTable
from vlprobe.models.scores import ASKED_TWICE, ScoreFile
from vlprobe.scoring import pictures
from vlprobe.storage import shipped
from vlprobe.storage.files import parse_path
from vlprobe.storage.store import Store
from vlprobe.types import Publication, ScoreType

PREFIX = "published"
NAMES = ()  # all answers are stored already, so these models are not offered for runs
NOTE = "Published by its authors, not computed here"


class _Manifest(TypedDict):
    """The fields in the manifest of a bundled run that describe its model."""

    key: str
    case_key: str
    run: dict[str, str]
    score_type: ScoreType
    publication: dict[str, str]


class PublishedAnswers(ScoreFile):
    """A model that looks up published answers in memory.

    Args:
        name: The name, published:NAME.
        publication: The source of the answers.
        scale: The scale of the scores.
        table: The scores for the two captions in each question, by item id.
    """

    def __init__(
        self, name: str, publication: Publication, scale: ScoreType, table: ScoreTable
    ) -> None:
        orders = np.empty(0) if table.orders is None else table.orders
        arrays = (values.astype("<f4").tobytes() for values in (table.scores, orders))
        content = [name, *table.rows, *arrays]
        digest = pictures.digest(repr(content).encode())
        source = ScoreSource(parse_path(publication.source), scale, False, False, {})
        super().__init__(name, source, digest, table)
        self.publication = self._published = publication
        notes = [f"{NOTE}: {publication.about}"]
        if scale == "verdict":
            notes.append("only verdicts (right or wrong), no scores")
        if table.orders is not None:
            notes.append(ASKED_TWICE)
        self.note = "; ".join(notes)

    def facts(self) -> dict[str, str]:
        """Describe the answers, as a dictionary from subject to text."""
        return {
            **super().facts(),
            "architecture": self._published.about,
            "published by": f"{self._published.authors}, {self._published.source}",
            "license": self._published.license,
        }


def check_name(name: str) -> None:
    """Raise NotFound if no answers are bundled under this name."""
    _manifest(name)


def load(name: str, device: str = "auto", precision: str = "fp32") -> PublishedAnswers:
    """Load bundled answers by name. The device and the precision are ignored. Raises NotFound."""
    manifest = _manifest(name)
    store = Store(shipped.PUBLISHED_FOLDER)
    items = store.cases(manifest["case_key"]).table("cases", ["item"])["item"].to_pylist()
    columns = ["scores", "order_12", "order_21"]
    answers = store.run(manifest["key"]).table("scores", columns)
    orders = np.stack([answers[column].to_numpy() for column in columns[1:]], axis=1)
    table = ScoreTable(
        {item: row for row, item in enumerate(items)},
        np.array(answers["scores"].to_pylist(), dtype=np.float64)[:, :, None],
        orders=None if np.isnan(orders).all() else orders.astype(np.float64),
        is_verdict=manifest["score_type"] == "verdict",
    )
    source = Publication(**manifest["publication"])
    return PublishedAnswers(name, source, manifest["score_type"], table)


def publication(name: str) -> Publication | None:
    """Return the source of bundled answers by name, or None if no answers have this name."""
    try:
        return Publication(**_manifest(name)["publication"])
    except NotFound:
        return None


@functools.cache  # 2 ms, and each name needs it; the files are part of the installation
def _manifests() -> list[dict]:
    return Store(shipped.PUBLISHED_FOLDER).runs()


def _manifest(name: str) -> _Manifest:
    manifests = _manifests()
    for manifest in manifests:
        if manifest["run"]["model"] == name:
            return cast(_Manifest, manifest)
    raise NotFound("published model", name, [manifest["run"]["model"] for manifest in manifests])
