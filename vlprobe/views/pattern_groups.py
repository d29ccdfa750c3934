"""Groups of cases with the same pattern: the same word replacement, type or tag.

A pattern is identified by its key, as in the filter and the URL parameter `pair`:

    four>five        the removed and the inserted words, in lowercase
    >knife           altered captions in a gallery with these words in place of any other words
    type:color       a subtype
    tag:index=sea    a tag from the dataset

If a case stores the words of its edit, the words and the edit's type are its patterns. If it stores
only whole captions, a single replaced run of at most three words is a pattern; question sets with
more than MOST_TEXTS cases of this form have only types and tags as patterns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe import registry
from vlprobe.views.bodies import body_of
from vlprobe.views.changes import single_change
from vlprobe.views.tables import AnswerTable, CaseTable, remembered

BETWEEN = ">"
TYPE, TAG = "type:", "tag:"
MOST_TEXTS = 200_000  # most captions to compare word by word, about 4 microseconds each
MOST_COUNTED = 1 << 24  # above this number of possible word pairs, sorting is faster than counting


@dataclass(frozen=True, slots=True, eq=False)
class PatternGroups:
    """Cases and their patterns, with one row per case and pattern. A case can have several patterns or none."""

    cases: np.ndarray  # case numbers, int32, ascending
    codes: np.ndarray  # index of each row's pattern in `keys`, int32
    keys: tuple[str, ...]
    # For caption searches: the altered caption of each row, which must rank first to fool a model.
    captions: np.ndarray | None = None


NONE = PatternGroups(np.empty(0, np.int32), np.empty(0, np.int32), ())


def answers(groups: PatternGroups, table: AnswerTable) -> tuple[np.ndarray, np.ndarray]:
    """For each row of `groups`, return whether a model answered it, and whether it fooled the model.

    A row does not count if a caption search is lost to a different altered caption, because this
    says nothing about the row's caption.

    Returns:
        Whether each row counts as answered, and whether the model was fooled by it (including
        ties): bool of shape (n_rows,) each.
    """
    margins = table.margins[groups.cases]
    is_fooled = margins <= 0
    is_answered = ~np.isnan(margins)
    if groups.captions is None:
        return is_answered, is_fooled

    is_first = _rank_first(table, groups)
    return is_answered & (is_first | ~is_fooled), is_first & is_fooled


@remembered
def _rank_first(table: AnswerTable, groups: PatternGroups) -> np.ndarray:
    """Return whether the model ranks each row's altered caption above all other captions in the case."""
    numbers = np.unique(groups.cases)
    ranked = table.store.fetch_table(
        'SELECT "case", top FROM read_parquet(?) WHERE "case" IN '
        '(SELECT unnest(?::BIGINT[])) ORDER BY "case"',
        [[table.path], numbers.tolist()],
    )
    tops = ranked["top"].to_numpy(dtype=object)
    return groups.captions == tops[np.searchsorted(ranked["case"].to_numpy(), groups.cases)]


def members(groups: PatternGroups, table: AnswerTable, keys: Sequence[str]) -> np.ndarray:
    """Return the case numbers that belong to any of the given patterns for a model, in ascending order."""
    is_chosen = np.isin(np.array(groups.keys, dtype=object), list(keys))
    is_member = is_chosen[groups.codes] if len(groups.keys) else np.empty(0, dtype=bool)
    if groups.captions is not None:
        is_member &= answers(groups, table)[0]
    return np.unique(groups.cases[is_member])


def keys_of(groups: PatternGroups, case: int) -> tuple[str, ...]:
    """Return the keys of all patterns that a case belongs to."""
    first, last = np.searchsorted(groups.cases, [case, case + 1]).tolist()
    return tuple(groups.keys[code] for code in groups.codes[first:last].tolist())


def words_of(key: str) -> tuple[str, str]:
    """Split the key of a word pattern into removed and inserted words. Returns ("", "") for other patterns.

    >>> words_of("four>five"), words_of("type:color")
    (('four', 'five'), ('', ''))
    """
    if key.startswith((TYPE, TAG)) or BETWEEN not in key:
        return "", ""
    source, _, target = key.partition(BETWEEN)
    return source, target


def pattern_groups(table: CaseTable, probe: str, kind: str) -> PatternGroups:
    """Return the patterns in cases of one kind, or NONE if the kind cannot fool a model."""
    presentation = registry.load_probe(probe).presentation.kind(kind)
    if presentation.is_movement:
        return NONE
    groups = _stored_words(table)
    if len(groups.keys):
        return groups
    is_search = body_of(presentation).ranks == "captions"
    return _altered_captions(table, kind) if is_search else _types_tags_and_words(table, kind)


@remembered
def _stored_words(table: CaseTable) -> PatternGroups:
    source_codes, sources = table.codes("source")
    target_codes, targets = table.codes("target")
    pair_codes = source_codes.astype(np.int64) * max(len(targets), 1) + target_codes
    pairs, codes = _distinct(pair_codes, len(sources) * len(targets))
    exchanges = [
        (sources[pair // len(targets)].lower(), targets[pair % len(targets)].lower())
        for pair in pairs.tolist()
    ]
    names = [BETWEEN.join(exchange) if any(exchange) else "" for exchange in exchanges]
    if not any(names):
        return NONE
    type_codes, types = table.codes("subtype")
    return _gathered(
        np.repeat(np.arange(len(codes)), 2),
        np.stack([codes, len(names) + type_codes], axis=1).ravel(),
        [*names, *(f"{TYPE}{name}" if name else "" for name in types)],
    )


def _distinct(codes: np.ndarray, n_possible: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct codes in ascending order, and for each row the index of its code in that list."""
    if n_possible > MOST_COUNTED:
        return np.unique(codes, return_inverse=True)
    is_present = np.bincount(codes, minlength=n_possible) > 0
    return np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[codes]


def _gathered(cases: np.ndarray, codes: np.ndarray, names: Sequence[str]) -> PatternGroups:
    """Build pattern groups from rows of cases and pattern names. Equal names are merged; "" is omitted."""
    distinct = [name for name in dict.fromkeys(names) if name]
    index_of = {name: index for index, name in enumerate(distinct)} | {"": -1}
    indices = np.array([index_of[name] for name in names], dtype=np.int32)
    of_rows = indices[codes] if len(names) else np.empty(0, np.int32)
    member = np.flatnonzero(of_rows >= 0)
    return PatternGroups(cases[member].astype(np.int32), of_rows[member], tuple(distinct))


@remembered
def _types_tags_and_words(cases_table: CaseTable, kind: str) -> PatternGroups:
    store, parameters = cases_table.store, [[cases_table.path], kind]
    compared = table = store.fetch_table(
        'SELECT "case", subtype, tags FROM read_parquet(?) WHERE kind = ? ORDER BY "case"',
        parameters,
    )
    if len(table) <= MOST_TEXTS:
        compared = store.fetch_table(
            "SELECT \"case\", texts[1] AS before, texts[list_position(roles, 'different')] "
            "AS after FROM read_parquet(?) WHERE kind = ? AND "
            "list_contains(roles, 'different') ORDER BY \"case\"",
            parameters,
        )
    names: list[tuple[int, str]] = [
        (case, f"{TYPE}{subtype}")
        for case, subtype in zip(table["case"], table["subtype"], strict=True)
        if subtype
    ]
    names += [
        (case, f"{TAG}{name}={value}")
        for case, tags in zip(table["case"], table["tags"], strict=True)
        for name, value in dict(tags).items()
        if name not in ("subset", "picture")  # the subtype, and the resampling unit
    ]
    for case, original, edited in () if compared is table else compared.itertuples(index=False):
        if change := single_change(original, edited):
            names.append((case, BETWEEN.join(change)))
    names.sort(key=lambda pair: pair[0])
    cases = np.array([case for case, _ in names], dtype=np.int32)
    return _gathered(cases, np.arange(len(names)), [name for _, name in names])


@remembered
def _altered_captions(cases_table: CaseTable, kind: str) -> PatternGroups:
    """Build two patterns for each altered caption: one for the words exchanged, and one for only the words inserted."""
    table = cases_table.store.fetch_table(
        'SELECT "case", texts, roles FROM read_parquet(?) WHERE kind = ? ORDER BY "case"',
        [[cases_table.path], kind],
    )
    if sum(np.count_nonzero(roles == "different") for roles in table["roles"]) > MOST_TEXTS:
        return NONE
    cases: list[int] = []
    names: list[str] = []
    captions: list[str] = []
    for case, texts, roles in table.itertuples(index=False):
        for (source, target), caption in _exchanges(list(texts), list(roles)):
            for name in (f"{source}{BETWEEN}{target}", f"{BETWEEN}{target}"):
                cases.append(case)
                names.append(name)
                captions.append(caption)
    gathered = _gathered(np.array(cases, dtype=np.int32), np.arange(len(names)), names)
    return PatternGroups(
        gathered.cases, gathered.codes, gathered.keys, np.array(captions, dtype=object)
    )


def _exchanges(texts: Sequence[str], roles: Sequence[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield each altered caption with the words that were removed and inserted.

    Altered captions are stored in the same order as the originals, but some originals may have
    none.
    """
    true_texts = [text for text, role in zip(texts, roles, strict=True) if role != "different"]
    start = 0
    for caption in (text for text, role in zip(texts, roles, strict=True) if role == "different"):
        for index in range(start, len(true_texts)):
            change = single_change(true_texts[index], caption)
            if change and all(change):
                yield change, caption
                start = index + 1
                break
