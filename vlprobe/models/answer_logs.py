"""Readers for the logs of other evaluation tools, which record the caption a model chose or its score for each caption.

    .json    SugarCrepe's GPT-4V answers: {"0": {"answer": ..., "caption", "negative_caption", "correct"}}
    .xlsx    VLMEvalKit: columns A, B, answer, prediction, and index
    .jsonl   lmms-eval: lines with doc_id, doc, target and filtered_resps
    .eval    inspect_ai: a zip archive with samples/ID_epoch_N.json, or the same log as .json
    .json    mteb: TASK_predictions.json for image-text pairs, by subset and split

Every reader yields one `LoggedAnswer` per question. The chosen caption scores 1 and the others 0. A model that answers
"neither" scores 0 for both captions, which is a tie and counts as a failure. A reply that `parse_choice` does not
understand scores NaN. Such replies are counted and reported, never guessed.

Files are untrusted, so sizes are checked before memory is allocated.
"""

import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vlprobe.datasets.file_formats import read_json, read_json_lines
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.models.score_table import MAX_BYTES, MAX_CELLS, MAX_ROWS
from vlprobe.storage import files

UNKNOWN = -1  # a reply that names no option or several options
NEITHER = -2  # a reply that rejects every option
LETTERS = "ABCDEFGHIJ"
ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3}
NEITHER_NOR = re.compile(
    r"\bneither\b[^.;\n]{0,200}?\bnor\b(?:[^.;\n(]{0,40}\([1-9]\))?", re.IGNORECASE
)
REJECTION = re.compile(
    r"\b(?:neither|none of the (?:provided )?(?:captions?|options?|above|two))\b", re.IGNORECASE
)
BARE = re.compile(r"\W*([1-9]|[A-Ja-j])\W*")  # "(2)", "2." or "B" as the whole reply
LEADING = re.compile(r"\s*([1-9]|[A-J])[.):]\s+\S")  # "B. A dog on a bench"
MARKED = re.compile(r"\(([1-9]|[A-Ja-j])\)")  # "(2)" anywhere
NAMED = re.compile(  # "Output 2", "the answer is B"
    r"\b(?:output|answer(?: is)?|caption|option|choice|choose|select)\s*:?\s*\**([1-9]|[A-J])(?![\w'])",
    re.IGNORECASE,
)
ORDINAL = re.compile(
    r"\bthe (first|second|third|fourth) (?:caption|option|choice|one|sentence)\b", re.IGNORECASE
)
PAIRS = (
    ("caption", "negative_caption"),
    ("caption", "foil"),
    ("true_caption", "false_caption"),
    ("caption_0", "caption_1"),
)
OPTION_LISTS = ("options", "choices", "candidates")
PICTURES = ("filename", "image_file", "image_path", "image_id", "file_name", "image")
ZIP_DAMAGE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError)
REPLIES = ("filtered_resps", "resps")


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One question in a log, with the model's answer."""

    # the captions that the model chose from, the true one first; () if only `key` names the question
    texts: tuple[str, ...]
    # one row per picture, one score per caption, NaN if unknown
    scores: tuple[tuple[float, ...], ...]
    key: str = ""  # the question's name in the log
    picture: str = ""  # the picture's file name without folder and suffix, "" if the log names none
    reply: str = ""  # the model's reply if it could not be parsed


def parse_choice(reply: str, options: Sequence[str]) -> int:
    """Return the index of the option that a reply chooses.

    The first of these rules that applies decides:
      1. The reply equals one of the options, apart from case, quotes and the final period.
      2. The reply is a number or a letter, as in "(2)" or "B", or begins with one, as in "B. A dog".
      3. The reply names one option, as in "(2)", "Output 2", "the answer is B", "the first caption". The text from
         "neither" to "nor" is ignored. If the reply names several options, the result is UNKNOWN, or NEITHER if the
         reply also contains "neither" or "none of the captions".
      4. The reply contains "neither" or "none of the captions".
      5. The reply contains the text of one option. If one option is part of another, the longer one counts.

    Args:
        reply: The model's reply.
        options: The captions in the order in which the model saw them.

    Returns:
        The index of the option, NEITHER, or UNKNOWN.

    >>> parse_choice("(2)", ["a dog", "a cat"]), parse_choice("The first caption.", ["a dog", "a cat"])
    (1, 0)
    >>> parse_choice("Neither (1) nor (2)", ["a dog", "a cat"]) == NEITHER
    True
    >>> parse_choice("It could be A or B.", ["a dog", "a cat"]) == UNKNOWN
    True
    """
    reply = reply.replace("*", "")
    normal = [_normalize(option) for option in options]
    text = _normalize(reply)
    if normal.count(text) == 1:
        return normal.index(text)
    bare = BARE.fullmatch(reply) or LEADING.match(reply)
    if bare:
        return _option_index(bare[1], len(options))
    remaining = NEITHER_NOR.sub("neither", reply)
    marks = [*MARKED.findall(remaining), *NAMED.findall(remaining)]
    named = {_option_index(mark, len(options)) for mark in marks}
    named |= {ORDINALS[word.lower()] for word in ORDINAL.findall(remaining)}
    rejects = REJECTION.search(reply) is not None
    if len(named) == 1:
        index = named.pop()
        return index if 0 <= index < len(options) else UNKNOWN
    if named or rejects:
        return NEITHER if rejects else UNKNOWN
    contained = [index for index, option in enumerate(normal) if option and option in text]
    longest = [
        index
        for index in contained
        if not any(other != index and normal[index] in normal[other] for other in contained)
    ]
    return longest[0] if len(longest) == 1 else UNKNOWN


def _normalize(text: str) -> str:
    return " ".join(text.strip().strip("\"'“”‘’`*").rstrip(".").lower().split())


def _option_index(mark: str, n_options: int) -> int:
    index = int(mark) - 1 if mark.isdigit() else LETTERS.index(mark.upper())
    return index if index < n_options else UNKNOWN


def read_log(file: Path, content: bytes) -> list[LoggedAnswer] | None:
    """Read the answers in a log, or return None if the file is not a log from a known tool.

    Args:
        file: The path of the log, for its suffix and for error messages.
        content: The bytes of the log.

    Raises:
        InvalidInput: The file is damaged, too large, or lacks required fields.
        MissingDependency: The file is an .xlsx file, and python-calamine is not installed.
    """
    suffix = file.suffix.lower()
    if suffix == ".xlsx":
        return list(_vlmevalkit(file, content))
    if suffix == ".eval":
        return list(_inspect(file, _archived_samples(file, content)))
    if suffix == ".jsonl":
        lines = read_json_lines(file)
        first = lines[0] if lines else None
        is_log = isinstance(first, dict) and {"doc_id", "doc"} <= first.keys()
        return list(_lmms_eval(file, lines)) if is_log else None
    if suffix != ".json":
        return None
    log = read_json(file)
    if not isinstance(log, dict):
        return None
    if "mteb_model_meta" in log:
        return list(_mteb(file, log))
    if isinstance(log.get("samples"), list) and "eval" in log:
        return list(_inspect(file, log["samples"]))
    questions = {key: row for key, row in log.items() if isinstance(row, dict)}
    if questions and all("negative_caption" in row for row in questions.values()):
        return list(_sugarcrepe(file, questions))
    return None


def _sugarcrepe(
    file: Path, questions: Mapping[str, Mapping[str, object]]
) -> Iterator[LoggedAnswer]:
    """Read SugarCrepe's GPT-4V answers. A row that is not `correct` and chose neither caption is a tie."""
    for key, row in questions.items():
        caption, foil, correct = row.get("caption"), row.get("negative_caption"), row.get("correct")
        if not isinstance(caption, str) or not isinstance(foil, str):
            raise InvalidInput(
                f"'{file}', question '{key}', has no text for caption or negative_caption. "
                "Expected both texts, as in SugarCrepe's layout."
            )
        if not isinstance(correct, bool):
            raise InvalidInput(
                f"'{file}', question '{key}' ('{caption[:60]}'), has "
                f"{json.dumps(correct)[:40]} in 'correct'. Expected true or false."
            )
        answer = row.get("answer")
        choice = answer.get("multiple_choice_answer") if isinstance(answer, dict) else None
        scores = (float(correct), float(not correct and choice == foil))
        yield LoggedAnswer((caption.strip(), foil.strip()), (scores,), key, _picture(row))


def _vlmevalkit(file: Path, content: bytes) -> Iterator[LoggedAnswer]:
    """Read VLMEvalKit's predictions for multiple-choice questions."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise MissingDependency(f"'{file}'", "python-calamine", "'vlprobe[data]'") from None
    _refuse_bomb(file, content)
    try:
        rows = CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_index(0).to_python()
    except (CalamineError, ValueError, OSError, IndexError) as error:
        raise InvalidInput(
            f"'{file}' is not a readable spreadsheet ({str(error)[:120]}). Download it again."
        ) from None
    header = [str(name).strip() for name in rows[0]] if rows else []
    options = [name for name in header if name in LETTERS]
    if len(rows) > MAX_ROWS or len(options) < 2 or not {"answer", "prediction"} <= set(header):
        raise InvalidInput(
            f"'{file}' has the columns {', '.join(header[:12]) or 'none'}. Expected VLMEvalKit's "
            "columns: A, B, answer and prediction, with one question per row."
        )
    for number, values in enumerate(rows[1:], 2):
        row = dict(zip(header, map(str, values), strict=False))
        texts = [row[name].strip() for name in options if row[name].strip()]
        mark = row["answer"].strip().upper()
        true = texts.index(row[mark].strip()) if mark in options and row[mark].strip() else UNKNOWN
        if true == UNKNOWN:
            raise InvalidInput(
                f"'{file}', row {number}: the answer is '{row['answer'][:40]}'. Expected one of {', '.join(options)}."
            )
        yield _chosen(texts, true, row["prediction"], row.get("index", ""), _picture(row))


def _lmms_eval(file: Path, lines: Iterable[object]) -> Iterator[LoggedAnswer]:
    """Read samples from lmms-eval. The options in `doc` are a list, the fields A, B..., or a caption and a foil."""
    for number, line in enumerate(lines, 1):
        if not isinstance(line, dict) or not isinstance(line.get("doc"), dict):
            raise InvalidInput(
                f"'{file}', line {number}, has no 'doc' object. Expected samples written by "
                "lmms-eval (--log_samples)."
            )
        doc, target = line["doc"], line.get("target")
        options = _options(doc)
        if not options:
            raise InvalidInput(
                f"'{file}', line {number}: 'doc' has the fields {', '.join(list(doc)[:10])}. "
                "Expected options, choices, A and B, or caption and negative_caption."
            )
        true = _target(target, options)
        if true == UNKNOWN:
            raise InvalidInput(
                f"'{file}', line {number}: the target '{str(target)[:60]}' is not one of "
                f"the {len(options)} options."
            )
        reply = next((line[name] for name in REPLIES if line.get(name)), "")
        while isinstance(reply, list):
            reply = reply[0] if reply else ""
        yield _chosen(options, true, str(reply), str(line["doc_id"]), _picture(doc))


def _inspect(file: Path, samples: Iterable[object]) -> Iterator[LoggedAnswer]:
    """Read inspect_ai's samples for a multiple-choice task. Only the first epoch is used."""
    for sample in samples:
        if not isinstance(sample, dict) or not isinstance(sample.get("choices"), list):
            raise InvalidInput(
                f"'{file}' has a sample without choices. Expected a log of a multiple-choice task."
            )
        if sample.get("epoch", 1) != 1:
            continue
        options = [str(choice).strip() for choice in sample["choices"]]
        target = sample.get("target")
        if isinstance(target, list) and len(target) == 1:
            target = target[0]
        true = _target(target, options)
        if true == UNKNOWN:
            raise InvalidInput(
                f"'{file}', sample '{sample.get('id')}': the target '{str(target)[:60]}' "
                "is not one of the choices."
            )
        metadata = sample.get("metadata")
        picture = _picture(metadata) if isinstance(metadata, dict) else ""
        yield _chosen(options, true, _inspect_reply(sample), str(sample.get("id", "")), picture)


def _inspect_reply(sample: Mapping[str, object]) -> str:
    """Return the answer that a scorer extracted from a sample, or else the model's completion."""
    scores = sample.get("scores")
    for score in scores.values() if isinstance(scores, dict) else ():
        if isinstance(score, dict) and isinstance(score.get("answer"), str) and score["answer"]:
            return score["answer"]
    output = sample.get("output")
    if isinstance(output, dict) and isinstance(output.get("completion"), str):
        return output["completion"]
    choices = output.get("choices") if isinstance(output, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else ""
    if isinstance(content, list):  # parts of a message: reasoning, text, pictures
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _archived_samples(file: Path, content: bytes) -> Iterator[object]:
    """Parse the samples in a .eval archive, in the order of the archive."""
    _refuse_bomb(file, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [
            info for info in archive.infolist() if re.fullmatch(r"samples/.+\.json", info.filename)
        ]
        if not names:
            raise InvalidInput(
                f"'{file}' has no samples. Expected the log of a finished inspect_ai evaluation."
            )
        for info in names:
            try:
                yield files.parse_json(_member(content, archive, info).decode("utf-8"))
            except (ValueError, UnicodeDecodeError) as error:
                raise InvalidInput(
                    f"'{file}', '{info.filename}', is not valid JSON ({str(error)[:120]}). Download it again."
                ) from None


def _mteb(file: Path, log: Mapping[str, object]) -> Iterator[LoggedAnswer]:
    """Read mteb's predictions for image-text pairs, one matrix per question. Keys are SUBSET/NUMBER or NUMBER."""
    subsets = {name: splits for name, splits in log.items() if name != "mteb_model_meta"}
    n_cells = 0
    for subset, splits in subsets.items():
        if not isinstance(splits, dict) or len(splits) != 1:
            raise InvalidInput(f"'{file}', subset '{subset}', must have exactly one split.")
        (questions,) = splits.values()
        for number, matrix in enumerate(questions if isinstance(questions, list) else [None]):
            rows = matrix if isinstance(matrix, list) else []
            widths = {len(row) if isinstance(row, list) else 0 for row in rows}
            if len(widths) != 1 or widths == {0}:
                raise InvalidInput(
                    f"The predictions for question {number} of '{subset}' in '{file}' are not a "
                    "matrix. Expected one row per picture, with one score per caption."
                )
            n_cells += sum(len(row) for row in rows)
            if n_cells > MAX_CELLS:
                raise InvalidInput(
                    f"'{file}' has more than {MAX_CELLS:,} scores. Split it by subset."
                )
            scores = tuple(tuple(_number(file, value) for value in row) for row in rows)
            yield LoggedAnswer(
                (), scores, f"{subset}/{number}" if len(subsets) > 1 else str(number)
            )


def _number(file: Path, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(
            f"'{file}' contains the score {json.dumps(value)[:40]}. Expected finite numbers."
        )
    return float(value)


def _options(doc: Mapping[str, object]) -> list[str]:
    """Return the captions to choose from in their original order, or [] if `doc` has no known fields for them."""
    for name in OPTION_LISTS:
        options = doc.get(name)
        listed = options if isinstance(options, list) else []
        if len(listed) > 1 and all(isinstance(one, str) for one in listed):
            return [str(option).strip() for option in listed]
    letters = [str(doc[letter]).strip() for letter in LETTERS if isinstance(doc.get(letter), str)]
    if len(letters) > 1:
        return letters
    for names in PAIRS:
        if all(isinstance(doc.get(name), str) for name in names):
            return [str(doc[name]).strip() for name in names]
    return []


def _target(target: object, options: Sequence[str]) -> int:
    """Return the index of the true option, which `target` gives as an index, a letter, or the text."""
    if isinstance(target, int) and not isinstance(target, bool) and 0 <= target < len(options):
        return target
    return max(parse_choice(str(target), options), UNKNOWN)


def _picture(row: Mapping[str, object]) -> str:
    name = next(
        (row[name] for name in PICTURES if isinstance(row.get(name), str) and row[name]), ""
    )
    return Path(str(name)).stem


def _chosen(options: Sequence[str], true: int, reply: str, key: str, picture: str) -> LoggedAnswer:
    """Build an answer for a multiple-choice question, with the true caption first."""
    choice = parse_choice(reply, options)
    order = [true, *(index for index in range(len(options)) if index != true)]
    unknown = choice == UNKNOWN
    scores = tuple(math.nan if unknown else float(index == choice) for index in order)
    texts = tuple(options[index] for index in order)
    return LoggedAnswer(texts, (scores,), key, picture, reply if unknown else "")


def _refuse_bomb(file: Path, content: bytes) -> None:
    """Raise InvalidInput if a zip archive is damaged or claims to unpack to more than MAX_BYTES."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, ValueError, EOFError, OSError):
        raise InvalidInput(f"'{file}' is not a complete zip archive. Download it again.") from None
    if size > MAX_BYTES:
        raise InvalidInput(
            f"'{file}' unpacks to {size >> 20:,} MiB. Expected at most {MAX_BYTES >> 20} MiB."
        )


def _member(content: bytes, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Read a member of a zip archive. Arrow reads zstd, which Python before 3.14 cannot. Raises ValueError."""
    try:
        if info.compress_type != 93:
            return archive.read(info)
        import pyarrow as pa

        lengths = struct.unpack_from("<HH", content, info.header_offset + 26)
        start = info.header_offset + 30 + sum(lengths)  # after the name and the extra field
        packed = pa.BufferReader(content[start : start + info.compress_size])
        with pa.CompressedInputStream(packed, "zstd") as stream:
            return stream.read(info.file_size)
    except (*ZIP_DAMAGE, struct.error) as error:
        raise ValueError(str(error)) from None
