"""Measures, on a sample of the cases, how much of an exact search an approximate one finds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe.scoring import nearest
from vlprobe.scoring.approximate_gallery import ApproximateGallery
from vlprobe.scoring.gallery import Gallery
from vlprobe.types import Reader, Run


@dataclass(frozen=True, slots=True)
class RecallSampling:
    """Which cases of a run measure the recall of its approximate search, and the columns that
    they fill.
    """

    seed: int
    n_cases: int  # of the run
    columns: tuple[str, ...]

    @classmethod
    def of_run(cls, run: Run, cases: Reader, columns: tuple[str, ...]) -> "RecallSampling":
        """The sample among all cases of the run."""
        return cls(run.seed, sum(len(block) for block in cases(["case"])), columns)

    def is_sampled(self, case_ids: Sequence[str]) -> np.ndarray:
        """Whether each of these cases measures the recall, bool of shape (n,)."""
        return nearest.measures_recall(case_ids, self.seed, self.n_cases)

    def measure(
        self,
        gallery: Gallery | ApproximateGallery,
        sampled_queries: np.ndarray,
        is_sampled: np.ndarray,
        is_altered: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """The columns, each float64 of shape (n_queries,); recall is NaN for queries outside the
        sample.

        Args:
            gallery: What was searched.
            sampled_queries: Embeddings of the queries in the sample, shape (n_sampled, width).
            is_sampled: Which of all queries these are, bool of shape (n_queries,).
            is_altered: Which candidates are altered, where these are searched apart from the
                originals.
        """
        return nearest.recall_table(gallery, sampled_queries, is_sampled, self.columns, is_altered)
