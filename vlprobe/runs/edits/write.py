"""Caption edits that a language model writes for a dataset, stored in a file that every probe accepts.

Each answer is first checked against rules (`perturb.instructions`). A separate prompt then asks
whether the edit has the requested meaning. A failed edit is requested again, with the reason, a limited
number of times. Edits that still fail are written to a second file with their reasons and are
never used. Every raw answer is stored in the cache (`storage.answer_log`), so that the same command
resumes after an interruption and sends no request twice.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from vlprobe import registry
from vlprobe.errors import InvalidInput, printable
from vlprobe.models import writers
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.writers import Prompt, Writer, WriterAnswer
from vlprobe.perturb import instructions
from vlprobe.perturb.draws import draw
from vlprobe.perturb.instructions import EditKind, Message
from vlprobe.perturb.language import NOT_IN_ENGLISH, is_foreign
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.selection import select
from vlprobe.storage import files
from vlprobe.storage.store import Store
from vlprobe.types import Item

JUDGE_TOKENS = 16


@dataclass
class Task:
    """One caption edit to request from the language model, with retries."""

    caption: str
    choice: str  # the requested kind; `instructions.NEGATIVE` draws one
    number: int  # from 0, among the caption's edits with the same choice
    seed: int
    temperature: float
    # All captions of the pictures that have the caption, normalized by `replies.plain`
    true_captions: Collection[str]
    kind: EditKind = field(init=False)
    messages: list[Message] = field(init=False)
    attempt: int = 0
    text: str = ""  # the latest text that was written
    day: str = ""
    defect: str = ""  # defect of that text; "" if there is none
    is_accepted: bool = False
    is_closed: bool = False  # whether no further request follows, accepted or not
    n_kinds_tried: int = 0

    def __post_init__(self) -> None:
        self._begin()
        if self.kind.is_english and is_foreign(self.caption):
            self._close(NOT_IN_ENGLISH)
        elif self.kind.opening and instructions.plain(self.caption).startswith(self.kind.opening):
            self._close("the caption begins with these words")

    def _begin(self) -> None:
        number = self.number + self.n_kinds_tried
        self.kind = instructions.kind_of(self.choice, self.caption, self.seed, number)
        self.messages = instructions.request(self.kind, self.caption)

    def _close(self, defect: str) -> None:
        self.defect, self.is_closed = defect, True

    def prompt(self) -> Prompt:
        """Build the next prompt that requests the edit."""
        purpose = f"{self.choice} {self.number} {self.attempt}"
        return Prompt(
            self.messages,
            self.temperature,
            draw(self.seed, self.caption, 0, purpose) % 2**31,
            max_tokens=2 * len(self.caption.encode()) // 3 + 48,
            label=f"the request for '{self.choice}' of '{self.caption[:60]}'",
        )

    def question(self) -> Prompt:
        """Build the prompt that asks whether the edit means the same as the caption."""
        return Prompt(
            instructions.question(self.caption, self.text),
            temperature=0.0,
            seed=0,
            max_tokens=JUDGE_TOKENS,
            label=f"the question about the meaning of '{self.text[:60]}'",
        )

    def take(self, answer: WriterAnswer, earlier: Collection[str]) -> bool:
        """Read the answer to `prompt` and return whether it passes the rules.

        Args:
            earlier: Existing edits of the caption, normalized by `replies.plain`.
        """
        self.text, self.day = instructions.text_of(answer.text), answer.day
        self.defect = instructions.defect(
            self.text,
            self.caption,
            self.kind,
            is_cut=answer.is_cut,
            earlier=earlier,
            true_captions=self.true_captions,
        )
        return not self.defect

    def judge(self, answer: WriterAnswer) -> None:
        """Read the answer to `question`, and accept the edit if it has the requested meaning."""
        self.defect = instructions.judged_defect(answer.text, self.kind)
        self.is_accepted = self.is_closed = not self.defect

    def retry(self, attempts: int) -> None:
        """Prepare the next request, which includes the reason for the failure, unless `attempts` requests were
        already made.
        """
        self.attempt += 1
        if self.attempt >= attempts:
            self.is_closed = True
        elif self.defect != instructions.NONE_POSSIBLE:
            self.messages = instructions.again(self.messages, self.text, self.defect)
        elif self.choice == instructions.NEGATIVE:
            self.n_kinds_tried += 1
            self._begin()
        else:
            self.is_closed = True

    def line(self, maker: str) -> str:
        """Format the task as a line in a file of edits, with a `reason` if the edit was not accepted."""
        row = {"caption": self.caption, "text": self.text, "meaning": self.kind.meaning}
        row |= {"subtype": self.kind.subtype, "rule": self.kind.rule, "maker": maker}
        row |= {"made": self.day}
        if not self.is_accepted:
            row |= {"reason": self.defect}
        return json.dumps(row, ensure_ascii=False)


CAPTIONS_AT_A_TIME = 64
REJECTED = ".rejected.jsonl"


@dataclass(frozen=True)
class EditOrder:
    """A request for edits: which captions, which kinds of edits, and which model writes them."""

    items: Request  # gives the dataset, the seed and the item selection
    writer: str
    choices: tuple[str, ...]  # kinds of edits, from `instructions.chosen`
    count: int = 1  # edits of each kind per caption
    captions: int = 0  # number of captions to edit per item, from the first; 0: all
    temperature: float = 0.7
    attempts: int = 3  # attempts per edit
    device: str = "auto"
    precision: str = "fp32"
    price: str = ""
    max_cost: str = ""


class Outcome(NamedTuple):
    """The result of writing edits."""

    edits: Counter[str]  # by subtype
    rejected: Counter[str]  # by reason
    rejected_path: Path


class _WritingStage:
    """Progress receiver that labels all requests with the captions they are for."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self.label = progress, ""

    def update(self, label: str, done: float, total: float) -> None:
        """Report the progress of the current batch of requests."""
        self._progress.update(self.label or label, done, total)

    def tell(self, line: str) -> None:
        """Report a line that stays visible while the progress changes."""
        self._progress.tell(line)


def write(order: EditOrder, output: Path, store: Store, progress: Progress) -> Outcome:
    """Request edits from the language model and write them to a file. If the work is interrupted, the file contains
    the edits for all finished captions.

    Raises:
        InvalidInput: the dataset, the model or the file is not valid, or another process uses the same model.
        LimitReached: the next request could exceed the remaining budget.
    """
    dataset = registry.load_dataset(order.items.dataset, store.root)
    items, _ = select(dataset, order.items)
    captions = _captions(items, order.captions)
    budget = Budget(order.price, order.max_cost)
    writer = writers.load(order.writer, order.device, order.precision)
    stage = _WritingStage(progress)
    writer.open(store.root, budget, stage)
    _refuse_foreign_file(output, writer.maker)
    edits: dict[bool, list[str]] = {True: [], False: []}  # lines, by whether the edit is accepted
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    with writers.locked(writer):
        writer.log.reread()
        _tell_size(order, captions, writer, budget, progress)
        try:
            for number, tasks in _batches(captions, order):
                end = min(number + CAPTIONS_AT_A_TIME, len(captions))
                stage.label = f"Edits of captions {number + 1:,} to {end:,} of {len(captions):,}"
                _finish(tasks, writer, order.attempts)
                for task in tasks:
                    edits[task.is_accepted].append(f"{task.line(writer.maker)}\n")
                    reason = task.kind.subtype if task.is_accepted else task.defect
                    counts[task.is_accepted][reason] += 1
        finally:
            # The second file only if an edit was rejected or the file exists
            for path, lines in (
                (output, edits[True]),
                (output.with_suffix(REJECTED), edits[False]),
            ):
                if lines or files.present(path):
                    files.write_bytes(path, "".join(lines).encode())
    return Outcome(counts[True], counts[False], output.with_suffix(REJECTED))


def _captions(items: Sequence[Item], count: int) -> dict[str, set[str]]:
    """Return the distinct captions to edit, each with all normalized captions of the pictures it belongs to."""
    beside: dict[str, set[str]] = {}
    for item in items:
        every = {instructions.plain(caption) for caption in item.captions}
        for caption in item.captions[: count or None]:
            if caption.strip():
                beside.setdefault(caption, set()).update(every)
    if not beside:
        raise InvalidInput("None of the selected items has a caption to edit. Select other items.")
    return beside


def _batches(captions: dict[str, set[str]], order: EditOrder) -> Iterator[tuple[int, list[Task]]]:
    """Split the captions into batches. Yields the number of captions in earlier batches and the tasks for a batch."""
    listed = list(captions)
    for start in range(0, len(listed), CAPTIONS_AT_A_TIME):
        tasks = [
            Task(caption, choice, number, order.items.seed, order.temperature, captions[caption])
            for caption in listed[start : start + CAPTIONS_AT_A_TIME]
            for choice in order.choices
            for number in range(order.count)
        ]
        yield start, tasks


def _finish(tasks: Sequence[Task], writer: Writer, attempts: int) -> None:
    """Request edits until every task is closed."""
    accepted: dict[str, set[str]] = {task.caption: set() for task in tasks}
    while pending := [task for task in tasks if not task.is_closed]:
        answers = writers.answers_to(writer, [task.prompt() for task in pending])
        earlier = {caption: set(texts) for caption, texts in accepted.items()}
        passing = []
        for task in pending:
            if task.take(answers[task.prompt().name], earlier[task.caption]):
                earlier[task.caption].add(instructions.plain(task.text))
                passing.append(task)
        verdicts = writers.answers_to(writer, [task.question() for task in passing])
        for task in passing:
            task.judge(verdicts[task.question().name])
        for task in pending:
            if task.is_accepted:
                accepted[task.caption].add(instructions.plain(task.text))
            else:
                task.retry(attempts)


def _tell_size(
    order: EditOrder,
    captions: dict[str, set[str]],
    writer: Writer,
    budget: Budget,
    progress: Progress,
) -> None:
    """Report how many edits will be requested, with the minimum number of requests and tokens that they need."""
    answers = writer.log.answers
    n_edits = n_kept = sent = received = 0
    for _, tasks in _batches(captions, order):
        for task in tasks:
            if task.is_closed:
                continue
            prompt = task.prompt()
            n_edits += 1
            n_kept += prompt.name in answers
            if prompt.name not in answers:
                sent += prompt.tokens + task.question().tokens
                received += prompt.max_tokens // 4 + 4
    line = (
        f"{order.writer}: {n_edits:,} edits of {len(captions):,} captions, {n_kept:,} of "
        f"them already started. The rest needs at least {2 * (n_edits - n_kept):,} "
        f"requests, about {sent:,} tokens"
    )
    if budget.has_price:
        line += f", about {budget.cost(sent, received):.4g} by the price"
    progress.tell(printable(f"{line}."))


def _refuse_foreign_file(output: Path, maker: str) -> None:
    """Raise InvalidInput if the output file exists and contains anything but edits by the same writer."""
    if not files.present(output):
        return
    try:
        rows = [json.loads(line) for line in files.read(output).splitlines() if line.strip()]
        is_ours = all(row.get("maker") == maker for row in rows)
    except (OSError, ValueError, AttributeError, RecursionError):
        is_ours = False
    if not is_ours:
        raise InvalidInput(
            f"'{output}' already exists, and contains edits that {maker} did not write. Choose "
            "another file name, or delete the file."
        )
