"""Bins of cases by the changed words, by caption length, by how often the rarest word of the caption occurs in the
question set, and by whether the texts alone give the answer away.

Bins are not stored. They are computed from the texts of the cases, so older runs have these slices too. The caption
of a case is its first text. A bin is written NAME=VALUE in filters and links:

    caption_length=8 to 10 words
    word_frequency=Rarest word in 2 to 9 captions
    text_alone=The text alone decides
    changed_words=A color changed

The text alone decides a case if the best method in `metrics.blind` for its kind prefers the true caption.

A word's count is the number of distinct captions in the question set that contain the word. A
general word list would not reflect how often the models saw the word here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import registry
from vlprobe.metrics import blind
from vlprobe.metrics.judge import Judge, metrics_on
from vlprobe.perturb.concepts import CONCEPTS
from vlprobe.scoring.cases import score_columns
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import CaseTable, remember, remembered

CHANGED, LENGTH, FREQUENCY = "changed_words", "caption_length", "word_frequency"
TEXT_ALONE = "text_alone"
_EDGES = {LENGTH: (8, 11, 15), FREQUENCY: (2, 10, 100)}  # lower edges of all bins but the first
VALUES = {
    CHANGED: ("A color changed", "A number changed", "Other words changed"),
    LENGTH: ("1 to 7 words", "8 to 10 words", "11 to 14 words", "15 words or more"),
    FREQUENCY: (
        "Rarest word in 1 caption",
        "Rarest word in 2 to 9 captions",
        "Rarest word in 10 to 99 captions",
        "Rarest word in 100 captions or more",
    ),
    TEXT_ALONE: ("The text alone decides", "The text alone does not decide"),
}
_COLORS, _NUMBERS = (
    {concept.lemma for concept in CONCEPTS if group in concept.groups}
    for group in ("color", "number")
)
MOST_TEXTS = 200_000  # most captions to compare word by word, about 4 microseconds each
MOST_PAIRS = 50_000  # pairs of a kind that are guessed without the picture: 7,500 take 5 s
TWO_TEXTS = "roles = ['original', 'different']"
IS_PAIR = f"len(images) = 1 AND {TWO_TEXTS}"
BLOCK_CASES = 262_144  # minimum number of cases that are judged at once
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_COLUMNS = ("run", "case", "item", "kind", "subtype", "rule", "strength_bin")  # not scores


def names() -> dict[str, str]:
    """Return the labels of all caption bins. The keys are NAME=VALUE, as in filters."""
    return {
        f"{binned_by}={value}": value for binned_by, values in VALUES.items() for value in values
    }


def members(table: CaseTable, binned_by: str, values: Sequence[str]) -> np.ndarray:
    """Return the numbers of the cases whose caption is in one of the given bins, in ascending order."""
    chosen = [VALUES[binned_by].index(value) for value in values]
    return np.flatnonzero(np.isin(bin_codes(table, binned_by), chosen)).astype(np.int32)


@remembered
def bin_codes(table: CaseTable, binned_by: str) -> np.ndarray:
    """Return each case's bin as an index into VALUES: int8 of shape (n_cases,), -1 if a case has no bin."""
    if binned_by == TEXT_ALONE:
        return _text_alone_codes(table)
    if binned_by == CHANGED:
        return _changed_codes(table)
    codes, captions = table.first_texts()
    tokens = [_WORD.findall(caption.lower()) for caption in captions]
    if binned_by == LENGTH:
        sizes = [len(of_caption) for of_caption in tokens]
    else:
        counted = Counter(word for of_caption in tokens for word in set(of_caption))
        sizes = [min((counted[word] for word in words), default=0) for words in tokens]
    bins = np.digitize(np.array(sizes, dtype=np.int64), _EDGES[binned_by]).astype(np.int8)
    return bins[codes]


def _text_alone_codes(table: CaseTable) -> np.ndarray:
    codes = np.full(len(table.unit_codes), -1, dtype=np.int8)
    for kind in _guessed_kinds(table, MOST_PAIRS):
        pairs = caption_pairs(table, kind)
        units = pd.factorize(pairs["unit"])[0]
        margins = blind.margins(pairs["true"].tolist(), pairs["wrong"].tolist(), units)
        best = max(margins.values(), key=lambda margin: (margin > 0).mean())
        codes[pairs["case"]] = best <= 0
    return codes


def _changed_codes(table: CaseTable) -> np.ndarray:
    codes = np.full(len(table.unit_codes), -1, dtype=np.int8)
    pairs = table.store.fetch_rows(
        f'SELECT "case", lower(texts[1]), lower(texts[2]) FROM read_parquet(?) WHERE {TWO_TEXTS} '
        f"LIMIT {MOST_TEXTS + 1}",
        [[table.path]],
    )
    for case, *texts in pairs if len(pairs) <= MOST_TEXTS else ():
        left, right = (re.findall(r"\w+", text) for text in texts)
        differing = set(left) ^ set(right)
        if len(left) == len(right):  # exchanged words are in both captions
            pairs_of_words = zip(left, right, strict=True)
            differing = {word for pair in pairs_of_words if pair[0] != pair[1] for word in pair}
        is_number = bool(_NUMBERS & differing) or any(map(str.isdecimal, differing))
        codes[case] = [bool(_COLORS & differing), is_number, True].index(True)
    return codes


def caption_pairs(table: CaseTable, kind: str) -> pd.DataFrame:
    """Return the cases of a kind that have one picture, a true caption and a wrong caption, in case order.

    Returns:
        `case`, `subtype`, `unit` (the resampling unit, such as the picture), `true`, `wrong`.
    """
    return table.store.fetch_table(
        f'SELECT "case", subtype, {table.unit} AS unit, texts[1] AS true, texts[2] AS wrong '
        f'FROM read_parquet(?) WHERE {IS_PAIR} AND kind = ? ORDER BY "case"',
        [[table.path], kind],
    )


def guessed_kinds(question_set: QuestionSet) -> frozenset[str]:
    """Return the kinds of cases for which guesses from the texts alone are computed: kinds with
    enough pictures and at most MOST_PAIRS pairs of captions.
    """
    return _guessed_kinds(question_set.cases, MOST_PAIRS)


@remembered
def _guessed_kinds(table: CaseTable, most: int) -> frozenset[str]:
    rows = table.store.fetch_rows(
        f"SELECT kind FROM read_parquet(?) WHERE {IS_PAIR} GROUP BY kind "
        f"HAVING count(DISTINCT {table.unit}) >= ? AND count(*) <= ?",
        [[table.path], blind.FEWEST_PICTURES, most],
    )
    return frozenset(kind for (kind,) in rows)


def estimates(question_set: QuestionSet, binned_by: str) -> pd.DataFrame:
    """Compute the estimates for every run in each bin of `binned_by`, with the columns of stored estimates.

    Returns:
        `key` (the run's key), `metric`, `averaging`, `slice`, `value`, `low`, `high`, `n_items`,
        `n_cases`, `ties`.
    """
    tables = []
    for run in question_set.runs:

        def judge(run: RunRow = run) -> pd.DataFrame:
            table = judge_run(question_set, run, binned_by).estimates()
            of_bins = table.loc[table["by"] == f"tag:{binned_by}"]
            return of_bins.drop(columns="by").reset_index(drop=True)

        key = ("caption estimates", question_set.answers(run.model).version, binned_by)
        tables.append(remember(key, judge).assign(key=run.key))
    return pd.concat(tables, ignore_index=True)


def judge_run(
    question_set: QuestionSet, run: RunRow, binned_by: str = "", numbers: np.ndarray | None = None
) -> Judge:
    """Compute metrics from a run's stored answers, either in caption bins or only for the given case numbers."""
    probe = registry.load_probe(question_set.probe)
    cases = question_set.cases
    answers = question_set.answers(run.model)
    units = cases.unit_codes
    value_names = np.empty(len(units), dtype=object)
    if binned_by:
        names = np.array([*VALUES[binned_by], None], dtype=object)  # -1 is the last one
        value_names = names[bin_codes(cases, binned_by)]

    def blocks(members: np.ndarray | None = None) -> Iterator[pd.DataFrame]:
        for table in cases.judged_blocks(answers, BLOCK_CASES):
            case_numbers = table["case"].to_numpy()
            rows = _rows(table, units)
            rows[f"tag:{binned_by}"] = value_names[case_numbers]
            yield rows if members is None else rows.loc[np.isin(case_numbers, members)]

    survey = probe.survey(blocks())  # over all cases: a strength does not depend on the slice
    scale = str(question_set.store.run(run.key).manifest().get("score_type", "cosine"))
    metrics = metrics_on(scale, probe.metrics)
    judge = Judge(metrics, max(run.n_units, int(units.max(initial=0)) + 1), [binned_by])
    for block in blocks(numbers):
        judge.add(probe.prepare(block, survey))
    return judge


def _rows(table: pa.Table, units: np.ndarray) -> pd.DataFrame:
    """Convert a table of stored answers to the input of `Judge.add`, with one row per case."""
    rows = pd.DataFrame({name: table[name].to_pandas() for name in ("kind", "subtype", "rule")})
    rows["item_code"] = units[table["case"].to_numpy()]
    rows["group_code"] = pd.factorize(table["group"].to_pandas())[0]
    scores = table.select([name for name in table.column_names if name not in (*_COLUMNS, "group")])
    return rows.assign(**score_columns(scores))
