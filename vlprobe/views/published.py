"""Every number in the result tables of the five papers, as printed, to draw next to a user's run.

`published.csv`: one row a printed cell. Cells printed as a dash, and columns of words, have no row.

    paper, table   lgip tables 2-7, rococo 3-7, eqben 2-12, visla 2-9, prsm 1
    dataset        what was scored; `none` for facts about a model, `row_mean` for the mean of a row's other cells,
                   `eqben` for the mean of the five subsets times three scores
    split          the part of it, or the edit; `all` for the whole
    model          as printed, without citations. Rows printed as "+ FT" or "+ EQSIM" carry the model of their block and
                   the data of the fine-tuning: "FIBER + EQSIM (F30K)". PRSM never says which CLIP
                   it used.
    metric, unit   below
    value          as printed, never rescaled: 400M is 400 with the unit million, a drop rate keeps its minus sign
    note           why a cell differs from another print of it, or how it was read; a note that holds "suspect:" says
                   why the number itself is doubted, one that holds "the text says" what contradicts it

Metrics (units: percent where none is named):

    lgip     invariance_error, sensitivity_gap, combined_gap (cosine); positive_rate, combined_positive_rate (share);
             invariance_increase (from the simple to the advanced paraphrases)
    rococo   i2t_ or t2i_ before: r1 (clean gallery), r1_new (altered items added), drop_rate, rsms (top-1 is altered)
    eqben    text_score, image_score, group_score, avg; group_accuracy (split: the order of the captions in the
             question); min_pc_pf and acc (VALSE); i2t_r1 to t2i_r10 (retrieval); boundary_accuracy (splits are
             thresholds in seconds)
    visla    t2t_accuracy, i2t_accuracy, p1_n, p2_n (split: the side compared with the captions, text or image);
             parameters, embedding_dimension, pretraining_samples, finetuning_samples (units in the
             row)
    prsm     global (rank correlation); local_100, local_1000 (share); n (count).
             split: group / kind of paraphrase / versions compared
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_CSV = Path(__file__).with_name("published.csv")


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a paper's numbers."""

    title: str
    authors: str
    year: int
    identifier: str


SOURCES = {
    "lgip": Source(
        "Language-Guided Invariance Probing of Vision–Language Models",
        "Jae Joong Lee",
        2025,
        "arXiv:2511.13494v2",
    ),
    "rococo": Source(
        "RoCOCO: Robustness Benchmark of MS-COCO to Stress-test Image-Text Matching Models",
        "Seulki Park, Daeho Um, Hajung Yoon, Sanghyuk Chun, Sangdoo Yun, Jin Young Choi",
        2023,
        "arXiv:2304.10727",
    ),
    "eqben": Source(
        "Equivariant Similarity for Vision-Language Foundation Models",
        "Tan Wang, Kevin Lin, Linjie Li, Chung-Ching Lin, Zhengyuan Yang, Hanwang Zhang, Zicheng Liu, Lijuan Wang",
        2023,
        "arXiv:2303.14465",
    ),
    "visla": Source(
        "VISLA Benchmark: Evaluating Embedding Sensitivity to Semantic and Lexical Alterations",
        "Sri Harsha Dumpala, Aman Jaiswal, Chandramouli Sastry, Evangelos Milios, Sageev Oore, Hassan Sajjad",
        2024,
        "github.com/Sri-Harsha/visla_benchmark",
    ),
    "prsm": Source(
        "PRSM: A Measure to Evaluate CLIP's Robustness Against Paraphrases",
        "Udo Schlegel, Franziska Weeber, Jian Lan, Thomas Seidl",
        2025,
        "arXiv:2511.11141",
    ),
}


def load() -> "pd.DataFrame":
    """The published numbers, one row a cell: `table` is int64, `value` float64, the rest text; an
    empty note is ''.
    """
    import pandas as pd

    return pd.read_csv(
        _CSV,
        dtype={
            **{"paper": "str", "table": "int64", "dataset": "str", "split": "str", "model": "str"},
            **{"metric": "str", "value": "float64", "unit": "str", "note": "str"},
        },
        keep_default_na=False,
        encoding="utf-8",
    )


def texts() -> "pd.Series":
    """The values of `load` in their printed form: 0.010, not 0.01."""
    import pandas as pd

    cells = pd.read_csv(_CSV, dtype="str", keep_default_na=False, encoding="utf-8")
    return pd.Series(cells["value"])
