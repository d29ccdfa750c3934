"""Where the difference was missed: whether the text or the image tower of a dual encoder hardly moved in a case.

A tower hardly moves in a case if the two inputs that it should tell apart are as similar to it as in the closest
quarter of the cases of that kind that the model answered. The similarity of the texts is the cosine of the wrong
caption and the closest true one; the similarity of the pictures is the cosine of the two pictures of a pair. So 25 %
of all cases are expected for each tower, and more among failures means that the tower has a part in them.

Cosines of texts and pictures are stored with the answers. They are unknown for models without embeddings, for models
whose scores do not come from the two towers, and, for pictures, if a case has no twin picture.
"""

import math
from collections.abc import Collection

import pandas as pd

from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import AnswerTable, CaseTable, remembered

QUARTILE = 0.75  # of similarities: the closest quarter counts as "hardly moved"
FEWEST = 20  # answered cases of a kind; with fewer, the quartile says nothing
WORDS, PICTURE, BOTH, MATCH, UNKNOWN = "words", "picture", "both", "match", "unknown"
LABELS = {
    WORDS: "Captions look alike to the text encoder",
    PICTURE: "Pictures look alike to the image encoder",
    BOTH: "Both look alike",
    MATCH: "Neither: they are matched wrongly",
    UNKNOWN: "Unknown",
}
SENTENCES = {
    WORDS: "The captions look alike to {model}'s text encoder: their embeddings are closer (cosine {text:.3f}) than in "
    "three quarters of the cases.",
    PICTURE: "The pictures look alike to {model}'s image encoder: their embeddings are closer (cosine {picture:.3f}) "
    "than in three quarters of the cases.",
    BOTH: "The captions (cosine {text:.3f}) and the pictures (cosine {picture:.3f}) look alike to {model}: closer than "
    "in three quarters of the cases.",
    MATCH: "{model} tells the captions (cosine {text:.3f}) and the pictures (cosine {picture:.3f}) apart, but matches "
    "them wrongly.",
    UNKNOWN: "{model}'s text encoder tells the captions apart (cosine {text:.3f}). Only a second picture, which fits "
    "the wrong caption, would show whether its image encoder sees the difference.",
}
PICTURE_COLUMN = "picture_similarity"
# Cosine of the wrong caption and the closest true caption; NaN if a case has other texts
_TEXT = """CASE
    WHEN cases.roles = ['original', 'different'] THEN scores.text_scores[1]
    WHEN cases.roles = ['original', 'same', 'different']
        THEN greatest(scores.text_scores[2], scores.text_scores[3])
    WHEN cases.roles = ['original', 'different', 'same']
        THEN greatest(scores.text_scores[1], scores.text_scores[3])
END"""


def statement(columns: Collection[str]) -> str:
    """Build a SELECT of `case`, `fooled`, `cause`, `text` and `picture` (cosines) from the tables `cases` and `scores`.

    Its parameter is the kind of the cases. Cases without a known margin or without a picture are left out.
    """
    picture = f"scores.{PICTURE_COLUMN}" if PICTURE_COLUMN in columns else "NULL"
    text = _TEXT if "text_scores" in columns else "NULL"
    return f"""
        SELECT "case", fooled, text, picture, CASE
            WHEN text IS NULL OR n < {FEWEST} THEN '{UNKNOWN}'
            WHEN text >= text_limit AND coalesce(picture >= picture_limit, false) THEN '{BOTH}'
            WHEN text >= text_limit THEN '{WORDS}'
            WHEN picture IS NULL THEN '{UNKNOWN}'
            WHEN picture >= picture_limit THEN '{PICTURE}'
            ELSE '{MATCH}'
        END AS cause
        FROM (
            SELECT "case", fooled, text, picture, count(text) OVER () AS n,
                quantile_cont(text, {QUARTILE}) OVER () AS text_limit,
                quantile_cont(picture, {QUARTILE}) OVER () AS picture_limit
            FROM (
                SELECT "case", scores.margin <= 0 AS fooled, {_known(text)} AS text,
                    {_known(picture)} AS picture
                FROM cases JOIN scores USING ("case")
                WHERE cases.kind = ? AND NOT isnan(scores.margin) AND len(cases.images) > 0
            )
        )"""


def _known(cosine: str) -> str:
    """Return SQL that is NULL if the cosine is NaN, which DuckDB sorts above all numbers."""
    return f"nullif(({cosine})::DOUBLE, 'nan'::DOUBLE)"


def answer_columns(run: RunRow, answers: AnswerTable) -> tuple[str, ...]:
    """Return the columns of a run's answers, excluding the cosines of the two towers if the scores do not come from
    them.
    """
    hidden = () if run.score_type == "cosine" else ("text_scores", PICTURE_COLUMN)
    return tuple(name for name in answers.columns if name not in hidden)


def causes(question_set: QuestionSet, model: str, kind: str) -> pd.DataFrame:
    """Return the cause and the two cosines of each case of a kind that a model answered, indexed by case number.

    Returns:
        `fooled`, `cause` (one of LABELS), `text` and `picture` (NaN if unknown).
    """
    run = question_set.run(model)
    answers = question_set.answers(run.model)
    return _causes(question_set.cases, answers, statement(answer_columns(run, answers)), kind)


@remembered
def _causes(cases: CaseTable, answers: AnswerTable, select: str, kind: str) -> pd.DataFrame:
    table = cases.store.fetch_table(
        "WITH cases AS (FROM read_parquet(?)), scores AS (FROM read_parquet(?)) "
        f'{select} ORDER BY "case"',
        [[cases.path], [answers.path], kind],
    )
    return table.set_index("case")


def counts(question_set: QuestionSet, kind: str) -> pd.DataFrame:
    """Count the cases of a kind by model and cause. Models without a known cause are left out.

    Returns:
        `model`, `cause`, `n_fooled` (failures, with ties) and `n_cases` (answered cases).
    """
    rows = []
    for model in question_set.models:
        table = causes(question_set, model, kind)
        if set(table["cause"]) - {UNKNOWN}:
            for cause in LABELS:
                is_fooled = table["fooled"].to_numpy()[table["cause"] == cause]
                rows.append((model, cause, int(is_fooled.sum()), len(is_fooled)))
    return pd.DataFrame(rows, columns=pd.Index(["model", "cause", "n_fooled", "n_cases"]))


def sentence(table: pd.DataFrame, case: int, name: str) -> str:
    """Describe the cause of a failure in a sentence, or return "" if the model is not fooled or nothing is known.

    Args:
        table: The table that `causes` returns.
        case: Number of the case.
        name: Display name of the model.
    """
    if case not in table.index:
        return ""
    (row,) = table.loc[[case]].to_dict("records")
    if not row["fooled"] or math.isnan(row["text"]) or len(table["text"].dropna()) < FEWEST:
        return ""
    return SENTENCES[row["cause"]].format(model=name, text=row["text"], picture=row["picture"])


def describe(cases: pd.DataFrame) -> str:
    """Summarize the causes of a model's failures in one line, or return "" if none is known."""
    counted = cases.loc[cases["fooled"], "cause"].value_counts()
    if not counted.drop(UNKNOWN, errors="ignore").sum():
        return ""
    shares = [
        f"{cause} {counted[cause] / counted.sum():.1%}" for cause in LABELS if cause in counted
    ]
    return f"Where the difference was missed, as shares of the failures: {', '.join(shares)}."
