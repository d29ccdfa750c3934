"""Reliability of models: which model checks each model failed, by dataset."""

from dataclasses import dataclass
from typing import Literal

from vlprobe import registry
from vlprobe.models.doctor import examine
from vlprobe.models.doctor.examine import Examination
from vlprobe.storage.store import Store
from vlprobe.views import runs
from vlprobe.views.runs import QuestionSet

Outcome = Literal["passed", "failed", "unjudged"]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The combined outcome of one model check for one model on all datasets."""

    outcome: Outcome  # "failed" if it failed on any dataset, "unjudged" if it was judged on none
    failed_on: tuple[str, ...]  # names of the datasets


@dataclass(frozen=True, slots=True)
class ModelFitness:
    """One model's row in the table of models and checks."""

    model: str
    is_control: bool
    checks: dict[str, CheckOutcome]  # by name of the check
    datasets: tuple[str, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that the model failed on any dataset."""
        return tuple(name for name, check in self.checks.items() if check.outcome == "failed")

    @property
    def judged(self) -> tuple[str, ...]:
        """Names of the checks that the model passed or failed."""
        return tuple(name for name, check in self.checks.items() if check.outcome != "unjudged")


@dataclass(frozen=True, slots=True)
class Warned:
    """A model with a warning on one question set: its note, and the failed checks that affect its numbers there."""

    model: str
    is_control: bool
    note: str  # for example that the model was never trained; "" for none
    failed: tuple[str, ...]  # names of the checks that failed on this dataset


def examinations(store: Store) -> list[Examination]:
    """Return the model checks of models that have results or at least one applicable check, latest first."""
    models = runs.models(store)
    return [
        examination
        for examination in examine.load(store)
        if examination.model in models
        or any(check.passed is not None for check in examination.checks)
    ]


def matrix(store: Store) -> tuple[ModelFitness, ...]:
    """Return a row for each checked model, using the latest checks on each dataset. Controls come last."""
    latest: dict[str, dict[str, Examination]] = {}
    for examination in examinations(store):
        latest.setdefault(examination.model, {}).setdefault(examination.dataset, examination)
    rows = []
    for model, by_dataset in latest.items():
        verdicts: dict[str, dict[str, bool | None]] = {}  # by check and dataset
        for dataset, examination in by_dataset.items():
            for check in examination.checks:
                verdicts.setdefault(check.name, {})[dataset] = check.passed
        checks: dict[str, CheckOutcome] = {}
        for name, of_check in verdicts.items():
            failed_on = tuple(dataset for dataset, passed in of_check.items() if passed is False)
            passed = "passed" if any(of_check.values()) else "unjudged"
            checks[name] = CheckOutcome("failed" if failed_on else passed, failed_on)
        rows.append(ModelFitness(model, registry.is_control(model), checks, tuple(by_dataset)))
    return tuple(sorted(rows, key=lambda row: (row.is_control, registry.natural_order(row.model))))


def warned(question_set: QuestionSet) -> tuple[Warned, ...]:
    """Return the models with a note or a failed check on the dataset of a question set, controls last."""
    failed: dict[tuple[str, str], tuple[str, ...]] = {}
    for examination in examine.load(question_set.store):
        names = tuple(check.name for check in examination.checks if check.passed is False)
        failed.setdefault((examination.model_digest, examination.dataset_digest), names)
    rows = []
    for run in question_set.runs:
        note = str(question_set.store.run(run.key).manifest()["note"])
        of_run = failed.get((run.model_digest, run.dataset_digest), ())
        if note or of_run:
            rows.append(Warned(run.model, registry.is_control(run.model), note, of_run))
    return tuple(sorted(rows, key=lambda row: (row.is_control, registry.natural_order(row.model))))
