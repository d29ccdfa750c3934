"""Which models can answer a probe, and what their scores are in it."""

from vlprobe.errors import InvalidInput
from vlprobe.types import Model, Probe


def score_type(model: Model, probe: Probe) -> str:
    """What a score of the model is in the probe: "cosine", or a pair scorer's own.

    With a pair scorer, a gallery is short-listed by cosine and the short list ranked by the logit
    of the pair.
    """
    declared = model.capabilities.score_type
    return "logit + cosine" if declared != "cosine" and probe.needs == "gallery" else declared


def check_fit(model: Model, probe: Probe) -> None:
    """Raises InvalidInput where the probe `needs` "pictures" or a "gallery" and the model lacks
    what that takes.
    """
    capabilities = model.capabilities
    if probe.needs and not capabilities.takes_pictures:
        raise InvalidInput(
            f"Probe '{probe.name}' needs a model that sees pictures, and '{model.name}' is a text encoder. "
            "Choose another model, or the probe visla, where texts are compared with texts."
        )
    if probe.needs == "gallery" and not (capabilities.embeds_images and capabilities.embeds_texts):
        raise InvalidInput(
            f"Probe '{probe.name}' searches a gallery, and '{model.name}' has no embeddings to search with: it looks "
            "at each pair. Choose a dual encoder, a head with one beside it (BLIP, BLIP-2), or another probe."
        )
