"""A model with imported scores: scores:FILE, with options after plus signs.

    scores:FILE                      a score for each case, caption and picture; see `score_file` for
                                     files and columns
    +probability +cosine +logit      the scale of the scores; without it, all metrics that use cosines
                                     or need probabilities are unknown
    +verdict                         right or wrong only: answers are counted, and scores are not
                                     compared
    +partial                         mark cases without a score as unknown; without it, they are rejected
    +matrix                          FILE has a score for every picture and text; not needed for a
                                     folder with scores.npy; see `from_files.matrix`
    +key=COLUMN/COLUMN +score=COLUMN +caption=COLUMN +image=COLUMN +c0_i0=COLUMN +t0_t1=COLUMN
    +t0_t2=COLUMN +t1_t2=COLUMN +correct=COLUMN +correct_first=COLUMN +correct_second=COLUMN
                                     names of columns
    +as=NAME                         the display name: up to 60 characters, without "+"

A case is found by its own id, or by the id of its item if the item has only one case. Either id may omit the
name of the data file, which is the part up to the first slash, if the result is not ambiguous.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models import score_file
from vlprobe.models.from_files import matrix as score_matrix
from vlprobe.models.score_table import BOUNDS, UNKNOWN_SCALE, ScoreSource, ScoreTable
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.types import Capabilities, CaseAnswerer, Picture, Reader, ScoreType

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "scores"
NAMES = ("scores:FILE",)
PARTIAL, MATRIX = "partial", "matrix"
ASKED_TWICE = (
    "asked in both orders of the captions: a share of wrong answers is the mean of both, and a "
    "case counts as fooled where either answer is wrong"
)
OPTION = re.compile(
    r"(probability|cosine|logit|verdict|partial|matrix)|as=[^+]{1,60}|"
    r"(key|score|caption|image|correct(?:_first|_second)?|t0_t1|t0_t2|t1_t2|c[0-9]{1,5}_i[0-9]{1,5})=(.+)"
)
EXPECTED = (
    "probability, cosine, logit, verdict, partial, matrix, as=NAME, key=COLUMN, score=COLUMN, "
    "correct=COLUMN or c0_i0=COLUMN"
)
CASE_COLUMNS = ("id", "item", "item_code", "images", "texts")


def check_name(name: str) -> None:
    """Raise InvalidInput if the file does not exist, or an option is not valid."""
    source = _parse_name(name)
    (score_matrix.check if source.is_matrix else score_file.check_file)(source.file)


def named_capabilities(name: str) -> Capabilities:
    """Derive the capabilities of imported scores only from the options in the name."""
    source = _parse_name(name)
    is_matrix = source.is_matrix
    return Capabilities(answers_cases=not is_matrix, looks_up=is_matrix, has_matrix=is_matrix)


def load(
    name: str, device: str = "auto", precision: str = "fp32"
) -> "ScoreFile | score_matrix.ScoreMatrix":
    """Load imported scores by name. The device and the precision are ignored. Raises InvalidInput."""
    source = _parse_name(name)
    if source.is_matrix:
        return score_matrix.load(name, source)
    content = score_file.read_content(source.file)
    table = score_file.parse(source.file, content, source.mapping)
    if table.is_verdict and source.scale != "verdict":
        raise InvalidInput(
            f"'{source.file}' has verdicts (right or wrong) but no scores. Use "
            f"'scores:{source.file}+verdict'."
        )
    scores = table.scores[~np.isnan(table.scores)]
    if source.scale == "verdict":
        outside, problem = scores[~np.isin(scores, (0.0, 1.0))], "neither 0 nor 1"
    else:
        low, high = BOUNDS.get(source.scale, (-np.inf, np.inf))
        outside = scores[(scores < low) | (scores > high)]
        problem = f"outside the range of a {source.scale}"
    if len(outside) and not table.is_verdict:
        raise InvalidInput(
            f"{len(outside):,} of {len(scores):,} scores in '{source.file}' are {problem} "
            f"(first: {outside[0]:g}). Remove '+{source.scale}' or choose another scale."
        )
    return ScoreFile(name, source, pictures.digest(content), table)


def _parse_name(name: str) -> ScoreSource:
    text, words, mapping = files.split_options(name, OPTION, EXPECTED)
    file = files.parse_path(text)
    scales = sorted(words - {PARTIAL, MATRIX})
    if len(scales) > 1:
        raise InvalidInput(f"'{name}' has several scales: {' and '.join(scales)}. Choose one.")
    is_matrix = MATRIX in words or files.is_file(file / "scores.npy")
    if is_matrix and scales == ["verdict"]:
        raise InvalidInput(
            f"'{name}' is a score matrix, but '+verdict' requires a file with one answer per "
            "case. Remove '+verdict'."
        )
    return ScoreSource(
        file,
        cast(ScoreType, scales[0]) if scales else "unknown",
        PARTIAL in words,
        is_matrix,
        mapping,
    )


class _Answer(NamedTuple):
    """The answer to a case that a file contains."""

    case_id: str
    row: int | None  # the row in the score table
    scores: np.ndarray  # float64 with shape (captions, pictures), NaN if missing


class ScoreFile(CaseAnswerer):
    """A model that looks up its answers in a score file."""

    def __init__(
        self, name: str, source: ScoreSource, content_digest: str, table: ScoreTable
    ) -> None:
        self.name, self._source, self._table = name, source, table
        self.n_scores = table.n_scores
        how = [content_digest, source.scale, source.partial, sorted(source.mapping.items())]
        self.digest = pictures.digest(f"scores version 1 {json.dumps(how)}".encode())
        self.note = "scores from a file: spreads and similarities of texts are unknown"
        if source.scale == "verdict":
            self.note = "answers from a file, right or wrong: margins are unknown"
        if table.n_unparsed:
            self.note += (
                f"; {table.n_unparsed:,} of {len(table.scores):,} replies name no caption, or several, and are "
                f"unknown (first: '{table.first_unparsed[:80]}')"
            )
        if table.orders is not None:
            self.note += f"; {ASKED_TWICE}"
        if source.scale == "unknown":
            self.note += UNKNOWN_SCALE

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the file, which answers the cases that it contains."""
        n_orders = 1 if self._table.orders is None else 2
        return Capabilities(answers_cases=True, score_type=self._source.scale, n_orders=n_orders)

    @property
    def has_ids(self) -> bool:
        """Whether rows name their case, and not only have its position in the data."""
        return not self._table.by_place

    def facts(self) -> dict[str, str]:
        """Describe the contents of the file, as a dictionary from subject to text."""
        table = self._table
        _, captions, images = table.scores.shape
        keyed = "by their captions" if table.by_content else "by name"
        keyed = "by their position in the data" if table.by_place else keyed
        return {
            "architecture": "none: scores from a file",
            "parameters": "unknown",
            "scores": f"{table.n_scores:,} scores of {len(table.scores):,} cases {keyed}, "
            f"{'asked in both orders, ' if table.orders is not None else ''}"
            f"captions up to {captions} and pictures up to {images}",
        }

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        """Raise InvalidInput, because a score file cannot tokenize text."""
        raise InvalidInput(
            f"'{self.name}' only has scores for the cases in its file. Choose a model to "
            "score other texts."
        )

    def answers(self, cases: "pa.Table") -> np.ndarray:
        """Return the scores for the pictures and texts in each case, picture by picture, float32 with shape
        (n_pairs,), NaN if a score is missing.
        """
        blocks = [answer.scores.T.ravel() for answer in self._lookups(cases)]
        return np.concatenate(blocks or [np.empty(0)]).astype(np.float32)

    def orders(self, cases: "pa.Table") -> np.ndarray:
        """Return the answers with the true caption listed first, and with it second, float32 with shape (2, n)."""
        orders = self._table.orders
        return self._by_case(cases, np.full((0, 2), np.nan) if orders is None else orders).T

    def text_answers(self, cases: "pa.Table") -> np.ndarray | None:
        """Return the scores for the text pairs in each case, float32 with shape (n_cases, pairs) in the order 01, 02,
        12, or None if the file has no such scores.
        """
        text_scores = self._table.text_scores
        return None if text_scores is None else self._by_case(cases, text_scores)

    def _by_case(self, cases: "pa.Table", values: np.ndarray) -> np.ndarray:
        """Return the row of values for each case, float32 with shape (n_cases, columns), NaN if it has no row."""
        of_case = np.full((len(cases), values.shape[1]), np.nan, dtype=np.float32)
        for case, answer in enumerate(self._lookups(cases) if len(values) else ()):
            if answer.row is not None:
                of_case[case] = values[answer.row]
        return of_case

    def check_cases(self, cases: Reader) -> str:
        """Check that the file answers the cases. Return a note for readers, or "" if there is nothing to note.

        Raises:
            InvalidInput: Scores for some captions and pictures in the cases are missing, and the name has no
                `+partial`; or one row in the file would answer two cases.
        """
        case_of_row: dict[int, str] = {}
        rows_of_texts: set[int] = set()
        n_pairs = n_missing = n_of_texts = n_rounded = 0
        first_missing = first_case = ""
        for block in cases(CASE_COLUMNS):
            for case_id, row, scores in self._lookups(block):
                if not scores.size:
                    if row is not None and self._table.text_scores is not None:
                        rows_of_texts.add(row)
                    else:
                        n_of_texts += 1
                    continue
                first_case = first_case or case_id
                n_pairs += scores.size
                if row is not None:
                    is_repeated = case_of_row.setdefault(row, case_id) != case_id
                    if is_repeated and not self._table.by_content:
                        raise InvalidInput(
                            f"'{self._source.file}' has one row that matches both "
                            f"'{case_of_row[row]}' and '{case_id}'. Write the full id of "
                            "each case, including its file name."
                        )
                missing = np.argwhere(np.isnan(scores))
                if (
                    self._table.n_unparsed
                    and row is not None
                    and np.isnan(self._table.scores[row]).all()
                ):
                    continue  # a reply that names no caption, which the model's note counts
                n_missing += len(missing)
                if len(missing) and not first_missing:
                    first_missing = "{}_c{}_i{}".format(case_id, *missing[0])
                distinct = np.unique(scores[~np.isnan(scores)])
                # Scores are stored as float32, in which some become equal
                n_rounded += len(np.unique(distinct.astype(np.float32))) < len(distinct)
        if n_missing == n_pairs and not rows_of_texts:
            raise self._strange(first_case)
        if n_missing and not self._source.partial and n_missing < n_pairs:
            raise InvalidInput(
                f"'{self._source.file}' lacks {n_missing:,} of {n_pairs:,} required scores "
                f"(first: {first_missing}). Add them, or use '{self.name}+{PARTIAL}' to "
                "mark these cases as unknown."
            )
        n_rows = len(self._table.scores)
        n_unused = n_rows - len(rows_of_texts.union(case_of_row))
        sentences = {
            f"{n_missing:,} of {n_pairs:,} scores are missing: their cases are unknown": n_missing,
            f"{n_unused:,} of {n_rows:,} cases in the file are not among the questions": n_unused,
            f"{n_of_texts:,} cases compare only texts and are unknown": n_of_texts,
            f"{n_rounded:,} cases have scores that differ only beyond seven digits: ties here": n_rounded,
        }
        return "; ".join(sentence for sentence, count in sentences.items() if count)

    def has_answers(self, cases: "pa.Table") -> bool:
        """Return whether the file has a score for any of the cases."""
        has_texts = self._table.text_scores is not None
        return any(
            row is not None and (has_texts or not np.isnan(scores).all())
            for _, row, scores in self._lookups(cases)
        )

    def _lookups(self, cases: "pa.Table") -> Iterator[_Answer]:
        """Look up the file's answer to each case, in the order of the cases."""
        table = self._table
        if table.by_content:
            yield from self._lookups_by_content(cases)
            return
        _, most_captions, most_images = table.scores.shape
        columns = (cases[name].to_pylist() for name in ("id", "item", "item_code"))
        lists = (cases[name].combine_chunks() for name in ("texts", "images"))
        counts = (column.value_lengths().to_pylist() for column in lists)
        for case_id, item, item_code, n_texts, n_images in zip(*columns, *counts, strict=True):
            scores = np.full((n_texts, n_images), np.nan)
            row = self._row(case_id, item, item_code)
            if row is not None:
                texts, images = min(n_texts, most_captions), min(n_images, most_images)
                scores[:texts, :images] = table.scores[row, :texts, :images]
            yield _Answer(case_id, row, scores)

    def _lookups_by_content(self, cases: "pa.Table") -> Iterator[_Answer]:
        """Look up the log's answer to each case by its picture and its captions, which may be in any order."""
        table = self._table
        columns = (cases[name].to_pylist() for name in ("id", "texts", "images"))
        for case_id, texts, images in zip(*columns, strict=True):
            texts = [text.strip() for text in texts]
            scores = np.full((len(texts), len(images)), np.nan)
            key = tuple(sorted(texts))
            names = [Path(Picture.from_name(name).path).stem for name in images[:1]]
            matches = (table.by_content.get((key, name)) for name in (*names, ""))
            row = next((row for row in matches if row is not None), None)
            if row is not None and len(images):
                order = [table.texts[row].index(text) for text in texts]
                scores[:, :1] = table.scores[row, order, :1]
            yield _Answer(case_id, row, scores)

    def _row(self, case_id: str, item: str, item_code: int) -> int | None:
        is_only_one = case_id in (item, f"{item}/0", f"{item}/i2t-pair")
        if self._table.by_place:
            return item_code if is_only_one and item_code < len(self._table.scores) else None
        keys = [case_id, item] if is_only_one else [case_id]
        for key in (*keys, *(key.partition("/")[2] for key in keys)):
            if key and key in self._table.rows:
                return self._table.rows[key]
        return None

    def _strange(self, case_id: str) -> InvalidInput:
        if not case_id:
            return InvalidInput(
                f"All cases compare only texts, but '{self.name}' only has scores with "
                "pictures. Choose a text encoder."
            )
        if self._table.by_content:
            texts, picture = next(iter(self._table.by_content))
            subject = f" about '{picture}'" if picture else ""
            return InvalidInput(
                f"'{self._source.file}' answers none of these questions: its first captions are "
                f"'{' / '.join(texts)[:120]}'{subject}. Expected captions and names of "
                "pictures of the dataset."
            )
        key = next(iter(self._table.rows), "")
        holds = f"its first row is '{key[:80]}'" if key else "it has no rows"
        return InvalidInput(
            f"'{self._source.file}' has none of the scores that the cases need: {holds}, and the first case is "
            f"'{case_id}'. Expected the ids of the cases or of their items."
        )
