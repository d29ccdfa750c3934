"""Model checks as a stage of a run, done once per model and dataset."""

import contextlib

from vlprobe.models.doctor import examine as doctor_examine
from vlprobe.runs.context import RunContext
from vlprobe.runs.executor import SharedEncoder
from vlprobe.runs.request import Progress
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.types import Dataset, Model, answers_cases, looks_up
from vlprobe.types.protocols import embeds_images


def examine(
    context: RunContext,
    dataset: Dataset,
    model: Model,
    progress: Progress,
    shared: SharedEncoder | None = None,
) -> None:
    """Run the model checks on a dataset, unless their results are already stored.

    Pictures that the run has embedded are not embedded again.
    """
    if is_stored(context, dataset):
        return
    if looks_up(model):
        # Else nothing was scored now, and the model was not bound to its inputs
        is_judged = model.is_bound
    else:
        is_judged = answers_cases(model) or bool(doctor_examine.sample(dataset.items, model))
    if not is_judged:
        return
    with contextlib.ExitStack() as stack:
        encoder = shared.encoder if shared else None
        request = context.request
        embeds = embeds_images(model) and not (looks_up(model) or answers_cases(model))
        if encoder is None and embeds and request.keep_embeddings:
            # It reads the embeddings that the store has now
            encoder = CachedEncoder(
                model,
                context.store.root / "embeddings",
                workers=request.workers,
                memory=request.memory << 20,
            )
            stack.enter_context(contextlib.closing(encoder))
        doctor_examine.examine(
            model,
            dataset,
            context.store.root,
            progress.update,
            encoder.stored_images if encoder and embeds_images(model) else None,
        )


def is_stored(context: RunContext, dataset: Dataset) -> bool:
    """Return whether results of the model checks on a dataset are stored."""
    examinations = doctor_examine.load(context.store, context.run.model_digest)
    return any(examination.dataset_digest == dataset.digest for examination in examinations)
