"""One edit requested from a language model: prompt, answer and outcome."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from vlprobe.models.writers.prompts import Prompt, WriterAnswer
from vlprobe.perturb import instructions, replies
from vlprobe.perturb.draws import draw
from vlprobe.perturb.instructions import EditKind, Message
from vlprobe.perturb.language import NOT_IN_ENGLISH, is_foreign

JUDGE_TOKENS = 16


@dataclass
class Task:
    """An edit of a caption that is requested, possibly several times."""

    caption: str
    choice: str  # of a kind; `instructions.NEGATIVE` draws one
    number: int  # from 0, of those of this choice
    seed: int
    temperature: float
    true_captions: Collection[
        str
    ]  # of the pictures that have the caption, as `replies.plain` gives them
    kind: EditKind = field(init=False)
    messages: list[Message] = field(init=False)
    attempt: int = 0
    text: str = ""  # the last one that was written
    day: str = ""
    defect: str = ""  # of that text; "" while there is none
    is_accepted: bool = False
    is_closed: bool = False  # whether no further request follows, accepted or not
    n_kinds_tried: int = 0

    def __post_init__(self) -> None:
        self._begin()
        if self.kind.is_english and is_foreign(self.caption):
            self._close(NOT_IN_ENGLISH)
        elif self.kind.opening and replies.plain(self.caption).startswith(self.kind.opening):
            self._close("the caption begins with these words")

    def _begin(self) -> None:
        number = self.number + self.n_kinds_tried
        self.kind = instructions.kind_of(self.choice, self.caption, self.seed, number)
        self.messages = instructions.request(self.kind, self.caption)

    def _close(self, defect: str) -> None:
        self.defect, self.is_closed = defect, True

    def prompt(self) -> Prompt:
        """Next prompt."""
        purpose = f"{self.choice} {self.number} {self.attempt}"
        return Prompt(
            self.messages,
            self.temperature,
            draw(self.seed, self.caption, 0, purpose) % 2**31,
            max_tokens=2 * len(self.caption.encode()) // 3 + 48,
            label=f"the request for '{self.choice}' of '{self.caption[:60]}'",
        )

    def question(self) -> Prompt:
        """Return the second question: whether the text means the same."""
        return Prompt(
            instructions.question(self.caption, self.text),
            temperature=0.0,
            seed=0,
            max_tokens=JUDGE_TOKENS,
            label=f"the question about the meaning of '{self.text[:60]}'",
        )

    def take(self, answer: WriterAnswer, earlier: Collection[str]) -> bool:
        """Read an answer; whether rules let it pass.

        Args:
            answer: To `prompt`.
            earlier: Edits that the caption has, as `replies.plain` gives them.
        """
        self.text, self.day = replies.text_of(answer.text), answer.day
        self.defect = replies.defect(
            self.text,
            self.caption,
            self.kind,
            is_cut=answer.is_cut,
            earlier=earlier,
            true_captions=self.true_captions,
        )
        return not self.defect

    def judge(self, answer: WriterAnswer) -> None:
        """Read the answer to `question`."""
        self.defect = replies.judged_defect(answer.text, self.kind)
        self.is_accepted = self.is_closed = not self.defect

    def retry(self, attempts: int) -> None:
        """Prepare the next request with the reason of the failure, unless `attempts` requests were made."""
        self.attempt += 1
        if self.attempt >= attempts:
            self.is_closed = True
        elif self.defect != replies.NONE_POSSIBLE:
            self.messages = instructions.again(self.messages, self.text, self.defect)
        elif self.choice == instructions.NEGATIVE:
            self.n_kinds_tried += 1
            self._begin()
        else:
            self.is_closed = True

    def line(self, maker: str) -> str:
        """Format as a line of a file of edits, or with `reason` if it was not accepted."""
        row = {"caption": self.caption, "text": self.text, "meaning": self.kind.meaning}
        row |= {"subtype": self.kind.subtype, "rule": self.kind.rule, "maker": maker}
        row |= {"made": self.day}
        if not self.is_accepted:
            row |= {"reason": self.defect}
        return json.dumps(row, ensure_ascii=False)


def tasks_of(
    caption: str,
    choices: Sequence[str],
    count: int,
    seed: int,
    temperature: float,
    true_captions: Collection[str],
) -> list[Task]:
    """List all edits to request for one caption."""
    return [
        Task(caption, choice, number, seed, temperature, true_captions)
        for choice in choices
        for number in range(count)
    ]
