"""The subject of a report, and the size of its pictures."""

from collections.abc import Mapping
from dataclasses import dataclass

from vlprobe.render.charts.styles import Looks
from vlprobe.storage.store import Store
from vlprobe.types import Metric
from vlprobe.types.presentation import Presentation
from vlprobe.views.runs import QuestionSet

LARGE, SMALL = 320, 112  # pixels per side, of a single picture and of one in a row of five
UNIT = "cosine"


@dataclass(frozen=True)
class Subject:
    """The subject of a report; every section of it takes this."""

    store: Store
    question_set: QuestionSet
    models: tuple[str, ...]  # by name, controls last
    presentation: Presentation
    metrics: Mapping[str, Metric]
    chances: Mapping[str, float]  # what guessing gets on each metric
    styles: Looks
