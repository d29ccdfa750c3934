"""Tells a model that looks things up which pictures and texts a run shows to it."""

from vlprobe.runs.context import RunContext
from vlprobe.scoring.inputs import RunInputs
from vlprobe.types import Model, looks_up


def bind(context: RunContext, model: Model) -> str:
    """Has the model find the rows of all that the run asks about; nothing for any other model.

    Returns:
        What a reader must know of what is missing, "" if nothing.

    Raises:
        InvalidInput: it has no rows for some, and may not leave these unknown.
    """
    if not looks_up(model):
        return ""
    probe, root = context.probe, context.store.root
    candidates = probe.candidates(context.run, context.items, context.read_cases, root)
    inputs = RunInputs(context.items, context.read_cases, candidates, root)
    return model.bind(inputs, context.run.key, is_gallery=probe.needs == "gallery")
