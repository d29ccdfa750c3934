"""Suspect labels: cases that strong models get wrong, reviewers' verdicts on their labels, and the
effect on accuracy.

A case that every strong model gets wrong is more often mislabeled than hard. Leaving out cases that
models get wrong always makes them look better, so only cases that a reviewer rejected are left out.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from vlprobe.storage import annotations, errata
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.errata import Erratum, Verdict
from vlprobe.views import rows as views_rows
from vlprobe.views.bodies import stored_body
from vlprobe.views.records import CaseRow, RunRow, records
from vlprobe.views.runs import QuestionSet

LEAST_ACCURACY = 0.85  # default minimum accuracy of a strong model
VERDICT_OF_TAG: dict[str, Verdict] = {tag: verdict for verdict, tag in errata.TAGS.items()}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One model's share of correctly answered cases. A tie counts as wrong, and an answer that changes with the order
    of the captions counts as half right.

    Attributes:
        model: Name of the model.
        all_cases: Accuracy on the cases that the model answered, NaN if there are none.
        without: Accuracy without the cases that reviewers rejected.
    """

    model: str
    all_cases: float
    without: float


@dataclass(frozen=True, slots=True)
class Suspect:
    """A case that may be mislabeled, because strong models do not prefer the caption that is
    labeled as true.

    Attributes:
        case: Number of the case in the question set.
        id: Id of the case.
        true_text: The caption labeled as true.
        wrong_text: The caption labeled as wrong.
        n_rejecting: Number of strong models that do not score the true caption higher.
        verdict: The reviewers' verdict; "" if there is none.
    """

    case: int
    id: str
    true_text: str
    wrong_text: str
    n_rejecting: int
    verdict: Verdict | Literal[""]


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspect cases of one kind, with the models that were used to find the suspects.

    Attributes:
        strong: The models used to find suspects, best first.
        suspects: Cases rejected by at least two strong models and at least two thirds of them,
            those with a picture on this machine first, then most rejections first, then by case number.
        accuracies: Accuracies of every model that is not a control, best first.
    """

    strong: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    accuracies: tuple[Accuracy, ...]


def suspects(
    question_set: QuestionSet, kind: str, least_accuracy: float = LEAST_ACCURACY
) -> Suspects:
    """Find the cases of one kind that may be mislabeled, sorted by how many strong models reject
    the label.

    Args:
        least_accuracy: Minimum accuracy of a strong model on the cases that it answered.
    """
    runs = [question_set.run(model) for model in question_set.rated_models]
    numbers = question_set.cases.numbers("kind = ?", [kind])
    margins = views_rows.margins(question_set, question_set.rated_models, numbers)
    verdicts = read_verdicts(question_set)
    is_kept = np.array(
        [verdicts.get(int(case), "") not in errata.REJECTING for case in numbers], dtype=bool
    )
    accuracies = [
        Accuracy(run.model, _accuracy(row, run), _accuracy(row[is_kept], run))
        for run, row in zip(runs, margins, strict=True)
    ]
    n_rejecting, threshold = _rejections(margins, runs, least_accuracy)
    keys = views_rows.pictured_first(question_set, kind, numbers, -n_rejecting)
    order = np.lexsort((numbers, keys))
    order = order[n_rejecting[order] >= threshold]
    body = stored_body(question_set.probe, kind)
    rows = records(CaseRow, views_rows.questions(question_set, numbers[order].tolist()))
    best_first = sorted(
        accuracies, key=lambda each: (-np.nan_to_num(each.all_cases, nan=-1.0), each.model)
    )
    return Suspects(
        tuple(each.model for each in best_first if each.all_cases >= least_accuracy),
        tuple(
            Suspect(row.case, row.id, *body.texts(row, ""), int(count), verdicts.get(row.case, ""))
            for row, count in zip(rows, n_rejecting[order], strict=True)
        ),
        tuple(best_first),
    )


def can_have_suspects(question_set: QuestionSet) -> bool:
    """Return whether labels may be wrong: only those of published questions, because people wrote them.

    Drawn scenes and rule-based edits have no wrong labels, and cases that fool every model are what readers look for.
    """
    return any(question_set.run(model).publication for model in question_set.rated_models)


def list_unjudged(question_set: QuestionSet, kind: str, numbers: np.ndarray) -> list[int]:
    """Return the given cases that may be mislabeled and that no reviewer has judged."""
    judged = read_verdicts(question_set)
    of_kind = numbers[are_suspect(question_set, kind, numbers)]
    return [case for case in of_kind.tolist() if case not in judged]


def are_suspect(question_set: QuestionSet, kind: str, numbers: np.ndarray) -> np.ndarray:
    """Return whether each of the given cases may be mislabeled (see `suspects`): bool of shape (n,).

    See `can_have_suspects` for question sets without suspects.
    """
    if not can_have_suspects(question_set):
        return np.zeros(len(numbers), dtype=bool)
    runs = [question_set.run(model) for model in question_set.rated_models]
    every = question_set.cases.numbers("kind = ?", [kind])
    margins = views_rows.margins(question_set, question_set.rated_models, every)
    n_rejecting, threshold = _rejections(margins, runs, LEAST_ACCURACY)
    return np.isin(numbers, every[n_rejecting >= threshold])


def are_rejected_by_best(
    question_set: QuestionSet, kind: str, numbers: np.ndarray, except_for: str = ""
) -> np.ndarray:
    """Return whether one of the two best models does not prefer the caption that is labeled as true: bool, shape (n,).
    The answers of the model `except_for` do not count.

    An answer that changes with the order of the captions counts. Nothing is rejected if fewer than two models are
    strong, or if labels cannot be wrong (see `can_have_suspects`).
    """
    runs = [question_set.run(model) for model in question_set.rated_models]
    every = question_set.cases.numbers("kind = ?", [kind])
    margins = views_rows.margins(question_set, question_set.rated_models, every)
    accuracies = np.nan_to_num(
        [_accuracy(row, run) for run, row in zip(runs, margins, strict=True)]
    )
    best = np.argsort(-accuracies, kind="stable")[:2]
    is_strong = accuracies[best] >= LEAST_ACCURACY
    if not can_have_suspects(question_set) or np.count_nonzero(is_strong) < 2:
        return np.zeros(len(numbers), dtype=bool)
    best = [place for place in best if runs[place].model != except_for]
    return np.isin(numbers, every[(margins[best] <= 0).any(axis=0)])


def are_doubted(question_set: QuestionSet, kind: str, numbers: np.ndarray) -> np.ndarray:
    """Return whether each of the given cases may be mislabeled and no reviewer accepted its label: bool, shape (n,)."""
    verdicts = read_verdicts(question_set)
    accepted = [case for case, verdict in verdicts.items() if verdict == "right"]
    return are_suspect(question_set, kind, numbers) & ~np.isin(numbers, accepted)


def has_suspects(question_set: QuestionSet, kind: str) -> bool:
    """Return whether any case of a kind may be mislabeled (see `suspects`)."""
    numbers = question_set.cases.numbers("kind = ?", [kind])
    return bool(are_suspect(question_set, kind, numbers).any())


def _rejections(
    margins: np.ndarray, runs: Sequence[RunRow], least_accuracy: float
) -> tuple[np.ndarray, int]:
    """Count the strong models that reject each case, shape (n_cases,), and return the minimum count for a suspect."""
    is_strong = [
        _accuracy(row, run) >= least_accuracy for run, row in zip(runs, margins, strict=True)
    ]
    threshold = max(2, math.ceil(2 * sum(is_strong) / 3))
    return np.count_nonzero(margins[np.array(is_strong, dtype=bool)] <= 0, axis=0), threshold


def _accuracy(margins: np.ndarray, run: RunRow) -> float:
    answered = margins[~np.isnan(margins)]
    return float(views_rows.rights(answered, run.n_orders).mean()) if len(answered) else math.nan


def read_verdicts(question_set: QuestionSet) -> dict[int, Verdict]:
    """Return the reviewers' verdicts by case number. If a case has several verdict tags, the first one counts."""
    return {
        annotation.case: VERDICT_OF_TAG[tag]
        for annotation in annotations.read(question_set.store, question_set.key).current
        for tag in reversed(annotation.tags)
        if tag in VERDICT_OF_TAG
    }


def judge(
    question_set: QuestionSet, case: int, case_id: str, verdict: Verdict | Literal[""]
) -> None:
    """Store a reviewer's verdict on a case as a tag. An earlier verdict is replaced; "" removes it.

    Raises:
        InvalidInput: the case has too many tags, or the cache is read-only.
    """
    current = next(
        (
            each
            for each in annotations.read(question_set.store, question_set.key).current
            if each.case == case
        ),
        Annotation(case, case_id),
    )
    tags = tuple(tag for tag in current.tags if tag not in VERDICT_OF_TAG)
    added = (errata.TAGS[verdict],) if verdict else ()
    annotations.write(question_set.store, question_set.key, replace(current, tags=(*tags, *added)))


def export(question_set: QuestionSet, reviewer: str) -> list[Erratum]:
    """Return all verdicts on cases in a question set as a list of errata, signed with the reviewer's name."""
    verdicts = read_verdicts(question_set)
    notes = {
        each.case: each.note
        for each in annotations.read(question_set.store, question_set.key).current
    }
    rows = records(CaseRow, views_rows.questions(question_set, sorted(verdicts)))
    signed = []
    for row in rows:
        verdict = errata.question_digest(row.images, row.texts), verdicts[row.case], reviewer
        images = tuple(name.rpartition("/")[2] for name in row.images)
        signed.append(Erratum(*verdict, images, tuple(row.texts), notes.get(row.case, "")))
    return signed


def matching_cases(
    question_set: QuestionSet, digests: Collection[str]
) -> dict[str, list[tuple[int, str]]]:
    """Find the cases in a question set that have one of the given digests. Return (number, id) pairs by digest."""
    cases: dict[str, list[tuple[int, str]]] = {}
    numbers = question_set.cases.numbers("TRUE", [])
    for start in range(0, len(numbers), 10_000):
        block = views_rows.questions(question_set, numbers[start : start + 10_000].tolist())
        for case, case_id, images, texts in zip(
            block["case"], block["id"], block["images"], block["texts"], strict=True
        ):
            digest = errata.question_digest(images, texts)
            if digest in digests:
                cases.setdefault(digest, []).append((int(case), str(case_id)))
    return cases


def apply(question_set: QuestionSet, errata_of_file: Sequence[Erratum]) -> int:
    """Tag each case in a question set with the verdict from the errata, and return the number of
    tagged cases.

    If reviewers disagree on a label, it is kept if any of them accepts it.
    """
    verdict_of: dict[str, Verdict] = {}
    for erratum in errata_of_file:
        if verdict_of.get(erratum.digest) != "right":
            verdict_of[erratum.digest] = erratum.verdict
    cases = matching_cases(question_set, verdict_of.keys())
    for digest, matching in cases.items():
        for case, case_id in matching:
            judge(question_set, case, case_id, verdict_of[digest])
    return sum(map(len, cases.values()))
