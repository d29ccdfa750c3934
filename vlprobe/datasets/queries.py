"""Versions of a query that have the same meaning, to measure the stability of rankings (PRSM).

    queries:FILE       P1: paraphrases from a table (.csv, .tsv) or .jsonl with columns `query` (an id) and `caption`,
                       a row for each version, two or more per query; a column `version` names them
                       (else o, c1, c2, ...)
    queries:FILE+p2    P2: prefixes, from SocialCounterfactuals' prompts: np (none), p3 (a photo of), p2 (a picture of),
                       p1 (an image of)
    queries:FILE+p3    P3: synonyms for attributes: o (as written), a1 and a2 (one replaced), a12 (both)

An item is a query without a picture. Its captions are the versions, and its setting is P1, P2 or
P3. Tags: `versions`, their names in order, joined by commas; `gender`, `race` and `trait` if the
prompt has them; and in P1 the table's other columns.

We chose the synonyms, as close in meaning as possible, because PRSM's were written by GPT-5 and
are not published. No synonym is itself an attribute in the dataset, which would turn the query into
another query.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import check_records_head, read_json_lines, read_table
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.errors import InvalidInput
from vlprobe.perturb.tokens import takes_an
from vlprobe.types import Item

PREFIX = "queries"
NAMES = ("queries:FILE", "queries:FILE+p2", "queries:FILE+p3")
PREFIXES = {"np": "", "p3": "A photo of", "p2": "A picture of", "p1": "An image of"}  # PRSM's names
SYNONYMS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
KINDS = {attribute: kind for kind, pairs in SYNONYMS.items() for attribute in pairs}
_ATTRIBUTE = "|".join(sorted(KINDS, key=len, reverse=True))
PROMPT = re.compile(
    rf"(?P<lead>.*\b)(?P<article>[Aa]n?) (?P<one>{_ATTRIBUTE}) (?P<two>{_ATTRIBUTE}) (?P<who>.+)"
)
LEAD = re.compile(rf"^(?:{'|'.join(filter(None, PREFIXES.values()))}) ", re.IGNORECASE)
P1_EXPECTED = "columns query (an id) and caption with text in both; for SocialCounterfactuals' prompts add +p2 or +p3"
PROMPTS_EXPECTED = (
    'lines such as {"caption": "a White male barber", "output_1": "a White female barber", ...}'
)


def check_name(name: str) -> None:
    """Check a dataset name and the start of its file, without loading it. Raises NotFound or InvalidInput."""
    check_records_head(
        sources.parse_source(name, ["p2", "p3"], [".csv", ".tsv", ".jsonl"]).files[0]
    )


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the queries in the order of the file. Raises InvalidInput."""
    source = sources.parse_source(name, ["p2", "p3"], [".csv", ".tsv", ".jsonl"])
    if len(source.files) != 1 or source.images or len(source.options) > 1:
        raise InvalidInput(
            f"'{name}' is not valid. Expected one file, no image folder, and at most one "
            "of +p2 and +p3."
        )
    file = source.files[0]
    if not source.options:
        items, notes = _from_table(file)
    else:
        items, notes = _from_prompts(file, *source.options)
    return validated(name, items, cache, notes)


def _from_table(file: Path) -> tuple[list[Item], list[str]]:
    rows = [(str(line), row) for line, row in _rows(file)]
    required = ("query", "caption")
    faulty = [
        line for line, row in rows if not all(row.get(column, "").strip() for column in required)
    ]
    sources.refuse_rows(file, faulty, len(rows), P1_EXPECTED)
    queries: dict[str, list[dict[str, str]]] = {}
    for _, row in rows:
        queries.setdefault(row["query"], []).append(row)
    lone = [query for query, versions in queries.items() if len(versions) < 2]
    notes = sources.count_note(
        lone, len(queries), "have one version only and are left out", "queries"
    )
    items = [
        _paraphrased(file, query, versions)
        for query, versions in queries.items()
        if len(versions) > 1
    ]
    return items, notes


def _rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    if file.suffix != ".jsonl":
        yield from read_table(file)
        return
    for number, row in enumerate(read_json_lines(file), 1):
        fields = row if isinstance(row, dict) else {}
        yield number, {key: str(value) for key, value in fields.items() if value is not None}


def _paraphrased(file: Path, query: str, versions: list[dict[str, str]]) -> Item:
    labels = [row.get("version") or ("o" if not n else f"c{n}") for n, row in enumerate(versions)]
    tags = {}
    for column in dict.fromkeys(column for row in versions for column in row):
        values = {row.get(column, "") for row in versions}
        if column in ("query", "caption", "version"):
            continue
        if len(values) > 1:
            listing = ", ".join(value or "nothing" for value in sorted(values))
            raise InvalidInput(
                f"'{file}': the versions of query '{query}' differ in {column} ({listing}). Tags "
                "belong to queries, so all rows of a query need the same value."
            )
        tags[column] = values.pop()
    captions = tuple(row["caption"].strip() for row in versions)
    tags = {"versions": ",".join(labels), **{k: v for k, v in tags.items() if v}}
    return Item(query, None, captions, tags, setting="P1")


def _from_prompts(file: Path, setting: str) -> tuple[list[Item], list[str]]:
    if file.suffix != ".jsonl":
        raise InvalidInput(f"'{file}' is not a .jsonl file. Expected {PROMPTS_EXPECTED}.")
    records = read_json_lines(file)
    faulty = [f"row {n}" for n, row in enumerate(records, 1) if not _is_prompts(row)]
    sources.refuse_rows(file, faulty, len(records), PROMPTS_EXPECTED)
    rows = [row for row in records if isinstance(row, dict)]
    written = [row[column].strip() for row in rows for column in row if _holds_prompt(column)]
    queries = list(
        dict.fromkeys(LEAD.sub("", text, count=1) if setting == "p2" else text for text in written)
    )
    notes = [f"{len(written)} prompts in the file make {len(queries)} distinct queries."]
    notes += sources.unread_columns(
        file,
        rows,
        ["filename", *(column for row in rows for column in row if _holds_prompt(column))],
    )
    unknown = [text for text in queries if not PROMPT.fullmatch(text)]
    if setting == "p2":
        notes += sources.count_note(
            unknown, len(queries), "do not contain two known attributes", "queries"
        )
        return [_prefixed(text) for text in queries], notes
    notes += sources.count_note(
        unknown, len(queries), "do not contain two known attributes and are left out", "queries"
    )
    return [_with_synonyms(match) for text in queries if (match := PROMPT.fullmatch(text))], notes


def _holds_prompt(column: str) -> bool:
    return column == "caption" or column.startswith("output_")


def _is_prompts(row: object) -> bool:
    if not isinstance(row, dict) or "caption" not in row:
        return False
    prompts = [value for column, value in row.items() if _holds_prompt(column)]
    return all(isinstance(prompt, str) and prompt.strip() for prompt in prompts)


def _prefixed(text: str) -> Item:
    """Build a query from text without a prefix. Its four versions begin with the four prefixes (one is empty)."""
    inner = text[0].lower() + text[1:] if re.match("An? ", text) else text
    versions = [f"{prefix} {inner}" if prefix else text for prefix in PREFIXES.values()]
    tags = {"versions": ",".join(PREFIXES), **_attributes(text)}
    return Item(f"p2/{text}", None, tuple(versions), tags, setting="P2")


def _with_synonyms(prompt: re.Match[str]) -> Item:
    """Build a query from a prompt. Its versions replace the first attribute, the second, or both with synonyms, and
    adapt the articles.
    """
    text = prompt[0]
    lead, article, first, second, head_noun = prompt.groups()
    first_synonym, second_synonym = _synonym(first), _synonym(second)
    versions = {"o": (first, second), "a1": (first_synonym, second), "a2": (first, second_synonym)}
    versions["a12"] = (first_synonym, second_synonym)
    captions = [
        f"{lead}{article[0]}{'n' if takes_an(one) else ''} {one} {other} {head_noun}"
        for one, other in versions.values()
    ]
    tags = {"versions": ",".join(versions), **_attributes(text)}
    return Item(f"p3/{text}", None, (text, *captions[1:]), tags, setting="P3")


def _synonym(attribute: str) -> str:
    return SYNONYMS[KINDS[attribute]][attribute]


def _attributes(text: str) -> dict[str, str]:
    match = PROMPT.fullmatch(text)
    return {KINDS[match[group]]: match[group] for group in ("one", "two")} if match else {}
