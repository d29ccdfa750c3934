"""Cases by their caption: its length, and how often its rarest word occurs in the captions of the question set.

Nothing of it is stored: both follow from the texts of the cases, so that older runs have these slices, too.
The caption of a case is its first text. A bin is named by NAME=VALUE, as a filter and an address have it:

    caption_length=8 to 10 words
    word_frequency=Rarest word in 2 to 9 captions

Words are counted in the question set itself, in how many of its distinct captions each comes: a list of
general English would say of a word how rare it is elsewhere, not how often these models met it here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import registry
from vlprobe.metrics.judge import Judge, metrics_on
from vlprobe.scoring.cases import score_columns
from vlprobe.storage.store import Store
from vlprobe.views import rows as views_rows
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet

LENGTH, FREQUENCY = "caption_length", "word_frequency"
_EDGES = {LENGTH: (8, 11, 15), FREQUENCY: (2, 10, 100)}  # where a bin starts, after the first
VALUES = {
    LENGTH: ("1 to 7 words", "8 to 10 words", "11 to 14 words", "15 words or more"),
    FREQUENCY: (
        "Rarest word in 1 caption",
        "Rarest word in 2 to 9 captions",
        "Rarest word in 10 to 99 captions",
        "Rarest word in 100 captions or more",
    ),
}
BLOCK_CASES = 262_144  # at least, that are judged at once
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_COLUMNS = ("run", "case", "item", "kind", "subtype", "rule", "strength_bin")  # beside the scores


def names() -> dict[str, str]:
    """Every bin as a filter names it, and what it is called."""
    return {
        f"{binned_by}={value}": value for binned_by, values in VALUES.items() for value in values
    }


def members(store: Store, case_key: str, binned_by: str, values: Sequence[str]) -> np.ndarray:
    """Return the numbers of the cases whose caption is in one of these bins, rising."""
    codes = bin_codes(store, case_key, binned_by)
    chosen = [VALUES[binned_by].index(value) for value in values]
    return np.flatnonzero(np.isin(codes, chosen)).astype(np.int32)


def bin_codes(store: Store, case_key: str, binned_by: str) -> np.ndarray:
    """The place in VALUES of each case's bin, int8 of shape (n_cases,), by the case's number."""
    version = views_rows.cases_version(store, case_key)
    key = ("caption bins", version, binned_by)
    return views_rows.remember(key, lambda: _bin_codes(store, case_key, binned_by))


def _bin_codes(store: Store, case_key: str, binned_by: str) -> np.ndarray:
    codes, captions = views_rows.first_texts(store, case_key)
    tokens = [_WORD.findall(caption.lower()) for caption in captions]
    if binned_by == LENGTH:
        sizes = [len(of_caption) for of_caption in tokens]
    else:
        counted = Counter(word for of_caption in tokens for word in set(of_caption))
        sizes = [min((counted[word] for word in words), default=0) for words in tokens]
    bins = np.digitize(np.array(sizes, dtype=np.int64), _EDGES[binned_by]).astype(np.int8)
    return bins[codes]


def estimates(store: Store, question_set: QuestionSet, binned_by: str) -> pd.DataFrame:
    """The estimates of every run in these bins, in their stored form.

    Returns:
        `key` (of the run), `metric`, `averaging`, `slice`, `value`, `low`, `high`, `n_items`,
        `n_cases`, `ties`.
    """
    tables = []
    for run in question_set.runs:
        version = views_rows.answers_version(store, run.key)
        tables.append(
            views_rows.remember(
                ("caption estimates", version, binned_by),
                lambda run=run: _judged(store, question_set, run, binned_by),
            ).assign(key=run.key)
        )
    return pd.concat(tables, ignore_index=True)


def _judged(store: Store, question_set: QuestionSet, run: RunRow, binned_by: str) -> pd.DataFrame:
    probe = registry.load_probe(question_set.probe)
    units = views_rows.unit_codes(store, question_set.key)
    value_names = np.array(VALUES[binned_by], dtype=object)[
        bin_codes(store, question_set.key, binned_by)
    ]
    column = f"tag:{binned_by}"

    def blocks() -> Iterator[pd.DataFrame]:
        for table in views_rows.judged_blocks(store, question_set.key, run.key, BLOCK_CASES):
            yield _rows(table, units).assign(**{column: value_names[table["case"].to_numpy()]})

    survey = probe.survey(blocks())
    scale = str(store.run(run.key).manifest().get("score_type", "cosine"))
    metrics = metrics_on(scale, probe.metrics)
    judge = Judge(metrics, max(run.n_units, int(units.max(initial=0)) + 1), [binned_by])
    for block in blocks():
        judge.add(probe.prepare(block, survey))
    table = judge.estimates()
    return table.loc[table["by"] == column].drop(columns="by").reset_index(drop=True)


def _rows(table: pa.Table, units: np.ndarray) -> pd.DataFrame:
    """The input of the metrics, one row per case: see `Judge.add`."""
    rows = pd.DataFrame({name: table[name].to_pandas() for name in ("kind", "subtype", "rule")})
    rows["item_code"] = units[table["case"].to_numpy()]
    rows["group_code"] = pd.factorize(table["group"].to_pandas())[0]
    scores = table.select([name for name in table.column_names if name not in (*_COLUMNS, "group")])
    return rows.assign(**score_columns(scores))
