"""Named slices: cases that people saved under a name, and models' metrics on them.

A slice stores the id of each case and a digest of the case's texts. It applies to every question set
that has all of these cases, whatever the probe's version, the limit or the other questions. If some cases are missing
or their texts differ, the slice is rejected.
"""

import contextlib
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vlprobe.errors import InvalidInput, NotFound, StoredDamage
from vlprobe.storage.bookmarks import SLICES
from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views import caption_bins, runs
from vlprobe.views.filter import is_ordered
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import CaseTable

BREAKDOWN = "slice"
PREFIX = "slice:"  # marks a named slice among the types of edit
MOST_CASES = 100_000
# Conditions of a filter on the answers of several models, or on an area that looks extreme on a map
BY_ANSWERS = frozenset(
    (
        *("region", "within", "agreement", "unseen_by", "lost_to", "crossed", "suspects"),
        *("fooled", "held"),
    )
)


@dataclass(frozen=True)
class NamedSlice:
    """A set of cases that someone saved under a name.

    Attributes:
        name: Name of the slice.
        kind: Kind of the cases.
        case_key: Key of the question set in which the slice was saved.
        questions: Label of that question set.
        filter: Conditions that selected the cases when the slice was saved, as `Filter.words`.
        digests: Digest of each case's kind and texts, by case id.
    """

    name: str
    kind: str
    case_key: str
    questions: str
    filter: Mapping[str, Any]
    digests: Mapping[str, str]

    @property
    def caveat(self) -> str:
        """A warning that the slice's numbers are biased because answers selected its cases, or ""."""
        names = BY_ANSWERS & self.filter.keys()
        regions = self.filter.get("region", ())
        if all(map(is_ordered, [regions] if isinstance(regions, str) else regions)):
            names -= {"region"}  # a search for pictures by their embeddings
        excluded = self.filter.get("excluded", ())
        excluded = [excluded] if isinstance(excluded, str) else excluded
        is_excluding = any(str(value).startswith("unseen_by=") for value in excluded)
        outcomes = {self.filter.get(name, "all") for name in ("outcome", "other_outcome")}
        if not (names or outcomes - {"all", ""} or is_excluding):
            return ""
        return (
            f"The slice '{self.name}' was selected by an area of a map or by models' answers, so its numbers look "
            "extreme. Check them on other pictures."
        )


def save(
    question_set: QuestionSet, name: str, words: Mapping[str, Any], numbers: np.ndarray
) -> None:
    """Save the cases with the given numbers under a name. An earlier slice with the same name is replaced.

    Args:
        words: The filter that selected the cases, as `Filter.words`.

    Raises:
        InvalidInput: There are no cases or too many, the name is invalid, or the cache is read-only.
    """
    if not 0 < len(numbers) <= MOST_CASES:
        raise InvalidInput(
            f"The filter selects {len(numbers):,} cases. Expected 1 to {MOST_CASES:,}."
        )
    table = _questions(question_set.store, question_set.key, '"case"', numbers.tolist())
    kinds = table["kind"].unique()
    content = {
        "kind": kinds[0] if len(kinds) == 1 else "",
        "case_key": question_set.key,
        "questions": question_set.label,
        "filter": {name: value for name, value in words.items() if value},
        "digests": dict(zip(table["id"], map(_digest, table["kind"], table["texts"]), strict=True)),
    }
    SLICES.save(question_set.store, name, json.dumps(content, ensure_ascii=False))


def read(store: Store) -> dict[str, NamedSlice]:
    """Return all saved slices, by name, read once per snapshot. Raises InvalidInput if a slice is damaged."""
    return store.listing_fact(("slices", SLICES.version(store)), lambda: _parse(store))


def _parse(store: Store) -> dict[str, NamedSlice]:
    slices = {}
    for name, text in SLICES.read(store).items():
        try:
            content = json.loads(text)
            digests = {str(case_id): str(each) for case_id, each in content["digests"].items()}
            kind, case_key = str(content["kind"]), str(content["case_key"])
            questions, words = str(content["questions"]), dict(content["filter"])
            slices[name] = NamedSlice(name, kind, case_key, questions, words, digests)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InvalidInput(
                f"The slice '{name[:80]}' is damaged. Remove the slice and save it again."
            ) from None
    return slices


def find(store: Store, name: str) -> NamedSlice:
    """Return a saved slice. Raises NotFound."""
    slices = read(store)
    if name not in slices:
        raise NotFound("slice", name, slices, "`vlprobe slice list` lists all slices.")
    return slices[name]


def locate(store: Store, name: str) -> dict[str, str]:
    """Return the kind of a slice's cases, by the key of each question set that the slice applies to. An empty name
    gives an empty mapping.

    Raises NotFound.
    """
    if not name:
        return {}
    named = find(store, name)
    kinds = {}
    for key in {row.case_key for row in runs.run_rows(store)}:
        with contextlib.suppress(StoredDamage):  # a damaged question set does not have the slice
            if not _apply(store, key, named)[1]:
                kinds[key] = named.kind
    return kinds


def members(question_set: QuestionSet, name: str) -> np.ndarray:
    """Return the case numbers in a saved slice: int32 of shape (n,), ascending.

    Raises:
        NotFound: There is no slice with this name.
        InvalidInput: Some cases are missing from the question set or have other texts.
    """
    named = find(question_set.store, name)
    table, refusal = _apply(question_set.store, question_set.key, named)
    if refusal:
        raise InvalidInput(refusal)
    return _numbers(table)


def _apply(store: Store, case_key: str, named: NamedSlice) -> tuple[pd.DataFrame, str]:
    """Return the slice's cases that a question set has, ascending, and why the slice does not apply, or "".

    Computed once per snapshot: a site with two slices calls this 141 times, which took 8.6 of 38 s.
    """
    name = "slice", case_key, named.name, SLICES.version(store)
    return store.listing_fact(name, lambda: _match(store, case_key, named))


def _match(store: Store, case_key: str, named: NamedSlice) -> tuple[pd.DataFrame, str]:
    table = _questions(store, case_key, "id", list(named.digests))
    digests = dict(zip(table["id"], map(_digest, table["kind"], table["texts"]), strict=True))
    missing = [case_id for case_id in named.digests if case_id not in digests]
    changed = [case_id for case_id in digests if digests[case_id] != named.digests[case_id]]
    refusal = ""
    if missing or changed:
        what = [
            f"{len(ids):,} of its {len(named.digests):,} cases {words}, such as '{ids[0][:80]}'"
            for ids, words in ((missing, "are missing"), (changed, "have other texts"))
            if ids
        ]
        refusal = (
            f"The questions in the slice '{named.name}' have changed: {'; '.join(what)}. The slice was saved in "
            f"'{named.questions}'. Save the slice again."
        )
    return table, refusal


def _numbers(table: pd.DataFrame) -> np.ndarray:
    return table["case"].to_numpy().astype(np.int32)


def applicable(store: Store, case_key: str) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Return the case numbers for each slice that applies to a question set, by slice name, and the reasons why other
    slices do not apply.

    A slice without any case in the question set is omitted from both.
    """
    by_name: dict[str, np.ndarray] = {}
    refusals = []
    for name, named in read(store).items():
        table, refusal = _apply(store, case_key, named)
        if not refusal:
            by_name[name] = _numbers(table)
        elif len(table):
            refusals.append(refusal)
    return by_name, tuple(refusals)


def of_kind(question_set: QuestionSet, kind: str) -> dict[str, np.ndarray]:
    """Return the case numbers for each applicable slice that has cases of a kind, by slice name."""
    of_kind = question_set.cases.numbers("kind = ?", [kind])
    members = {
        name: np.intersect1d(numbers, of_kind)
        for name, numbers in applicable(question_set.store, question_set.key)[0].items()
    }
    return {name: numbers for name, numbers in members.items() if len(numbers)}


def estimates(question_set: QuestionSet) -> pd.DataFrame:
    """Compute estimates for every run in every saved slice, with the columns of `caption_bins.estimates`."""
    tables = []
    for name, numbers in applicable(question_set.store, question_set.key)[0].items():
        for run in question_set.runs:
            table = caption_bins.judge_run(question_set, run, numbers=numbers).estimates()
            overall = table.loc[table["by"] == "all"].drop(columns="by")
            tables.append(overall.assign(slice=name, key=run.key))
    return pd.concat(tables, ignore_index=True).dropna(subset=["value"])


def measures(
    question_set: QuestionSet, run: RunRow, numbers: np.ndarray, wanted: Collection[tuple[str, str]]
) -> dict[tuple[str, str], Measure]:
    """Compute a run's measures on a slice's cases, with one row per item, by (metric, averaging)."""
    sums = caption_bins.judge_run(question_set, run, numbers=numbers).sums()
    by_pair = {}
    for metric, averaging in wanted:
        of_pair = sums.loc[(sums["metric"] == metric) & (sums["averaging"] == averaging)]
        total, weight, item = (of_pair[column] for column in ("total", "weight", "item_code"))
        by_pair[metric, averaging] = Measure(
            (total / weight).to_numpy(), weight.to_numpy(), item.to_numpy()
        )
    return by_pair


def rows(store: Store, case_keys: Collection[str]) -> list[dict[str, object]]:
    """Return the rows of the export table `slices`, one per slice and case."""
    slices = read(store).values()
    applied = [(named, key, *_apply(store, key, named)) for key in case_keys for named in slices]
    return [
        {
            "name": named.name,
            "case_key": key,
            "case": case,
            "id": case_id,
            "digest": named.digests[case_id],
            "filter": json.dumps(named.filter, ensure_ascii=False),
        }
        for named, key, table, refusal in applied
        if not refusal
        for case, case_id in table[["case", "id"]].itertuples(index=False)
    ]


def _questions(store: Store, case_key: str, column: str, values: list[Any]) -> pd.DataFrame:
    """Return case, id, kind and texts for the cases whose `column` is one of `values`."""
    return store.fetch_table(
        f'SELECT "case", id, kind, texts FROM read_parquet(?) '
        f'WHERE {column} IN (SELECT unnest(?)) ORDER BY "case"',
        [[CaseTable(store, case_key).path], values],
    )


def _digest(kind: str, texts: Collection[str]) -> str:
    """Return a digest of a question's kind and texts: 12 hexadecimal digits."""
    text = json.dumps([kind, *texts], ensure_ascii=False)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=6).hexdigest()
