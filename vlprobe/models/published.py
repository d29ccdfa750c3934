"""Answers of real models, published by their authors for each question: published:NAME.

    published:GPT-4V             on SugarCrepe in both orders of the captions
    published:CLIP ViT-B/32      and CLIP_COCO, CLIP_TROHN-Text, CLIP_TROHN-Img on SugarCrepe
    published:ALBEF 14M          and ten others on VALSE

They are bundled with vlprobe (`tools.ship_published`) and only answer the questions of `bundled:` datasets.
"""

from typing import TypedDict, cast

import numpy as np

from vlprobe.errors import NotFound
from vlprobe.models.score_table import ScoreTable
from vlprobe.models.scores import ASKED_TWICE, ScoreFile, ScoreSource
from vlprobe.scoring import pictures
from vlprobe.storage import shipped
from vlprobe.storage.files import parse_path
from vlprobe.storage.store import Store
from vlprobe.types import Publication, ScoreType

PREFIX = "published"
NOTE = "Published by its authors, not computed here"


class _Manifest(TypedDict):
    """The part of the manifest of a bundled run that describes its model."""

    key: str
    case_key: str
    run: dict[str, str]
    score_type: ScoreType
    publication: dict[str, str]


class PublishedAnswers(ScoreFile):
    """Published answers in memory.

    Args:
        name: published:NAME.
        publication: The source of the answers.
        scale: The scale of the scores.
        table: The scores of the two captions of each question, by its item's id.
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
        """Describe the answers, by subject."""
        return {
            **super().facts(),
            "architecture": self._published.about,
            "published by": f"{self._published.authors}, {self._published.source}",
            "license": self._published.license,
        }


def names() -> list[str]:
    """None: every answer of these models is stored already, so no list of models to run has them."""
    return []


def check_name(name: str) -> None:
    """Raise NotFound if no such answers are bundled."""
    _manifest(name)


def load(name: str, device: str = "auto", precision: str = "fp32") -> PublishedAnswers:
    """Return the bundled answers of that name; they need no device and know no precision. Raises NotFound."""
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
    """Return the source of the bundled answers of that name; None if there are none."""
    try:
        return Publication(**_manifest(name)["publication"])
    except NotFound:
        return None


def _manifest(name: str) -> _Manifest:
    manifests = Store(shipped.PUBLISHED_FOLDER).runs()
    for manifest in manifests:
        if manifest["run"]["model"] == name:
            return cast(_Manifest, manifest)
    raise NotFound("published model", name, [manifest["run"]["model"] for manifest in manifests])
