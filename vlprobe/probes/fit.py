"""Check whether a model can run a probe, and determine the type of its scores."""

from collections.abc import Sequence

from vlprobe.errors import InvalidInput, Misfit
from vlprobe.registry import ModelName
from vlprobe.types import Capabilities, Item, Model, Probe

# Pictures or captions of a gallery for a model that takes a forward pass per pair
MOST_CANDIDATES = 500


def score_type(model: Model, probe: Probe) -> str:
    """Return the type of the scores that a model gives in a probe: "cosine", or the type that a pair scorer declares.

    A model that scores pairs searches a gallery in two steps: it selects a short list by cosine, and re-ranks the list
    by the logit of each pair. If it has no embeddings, it ranks the whole gallery by the logit of every pair.
    """
    declared = model.capabilities.score_type
    if model.capabilities.looks_up:
        return declared
    if takes_every_pair(model.capabilities, probe):
        return "logit"
    return "logit + cosine" if declared != "cosine" and probe.needs == "gallery" else declared


def takes_every_pair(capabilities: Capabilities, probe: Probe) -> bool:
    """Return whether a model needs one forward pass per pair of picture and text to search the probe's galleries."""
    embeds = capabilities.embeds_images or capabilities.embeds_texts
    return probe.needs == "gallery" and capabilities.scores_pairs and not embeds


def check_name_fits(name: ModelName, probe: Probe) -> None:
    """Run `check_fit` before the model is loaded, if the model's name determines what the model supports."""
    if name.capabilities:
        _refuse_misfit(name.text, name.capabilities, probe, ())


def check_fit(model: Model, probe: Probe, items: Sequence[Item] = ()) -> None:
    """Raise InvalidInput if the probe `needs` "pictures" or a "gallery" and the model does not support it.

    Args:
        items: The items of the run, for the cost estimate in the error message.
    """
    _refuse_misfit(model.name, model.capabilities, probe, items)


def _refuse_misfit(
    name: str, capabilities: Capabilities, probe: Probe, items: Sequence[Item]
) -> None:
    if capabilities.asks_server and probe.needs:
        _refuse_server(name, capabilities, probe, items)
        return
    if capabilities.answers_cases and probe.needs == "gallery":
        raise Misfit(
            f"Probe '{probe.name}' searches a gallery, but '{name}' only has scores for cases. A "
            f"gallery needs a score for every picture with every caption{_pairs(items)}. Import "
            "a matrix (+matrix), or choose another model or a probe such as eqben."
        )
    if capabilities.answers_cases or capabilities.has_matrix:
        return
    if capabilities.looks_up:
        if probe.needs and not capabilities.embeds_images:
            raise Misfit(
                f"Probe '{probe.name}' uses pictures, but '{name}' only has text "
                "embeddings. Add image embeddings, or choose the probe visla, which "
                "compares texts."
            )
        return
    if probe.needs and not capabilities.takes_pictures:
        raise Misfit(
            f"Probe '{probe.name}' needs a model with an image input, but '{name}' is a "
            "text encoder. Choose another model, or the probe visla, which compares "
            "texts."
        )
    embeds_both = capabilities.embeds_images and capabilities.embeds_texts
    if takes_every_pair(capabilities, probe):
        check_candidates(name, probe, *_counts(items), _pairs(items))
    elif probe.needs == "gallery" and not embeds_both:
        raise Misfit(
            f"Probe '{probe.name}' searches a gallery, but '{name}' embeds either pictures or "
            "texts, not both. Choose a dual encoder, or another probe."
        )


def _refuse_server(
    name: str, capabilities: Capabilities, probe: Probe, items: Sequence[Item]
) -> None:
    if capabilities.answers_cases and probe.needs == "gallery":
        raise Misfit(
            f"Probe '{probe.name}' searches a gallery, but '{name}' scores one picture and "
            "one text per request. A gallery needs a request for every picture with every "
            f"caption{_pairs(items)}. Use embeddings (without "
            "+chat), or choose a probe such as eqben."
        )
    if capabilities.looks_up and not capabilities.embeds_images:
        raise Misfit(
            f"Probe '{probe.name}' uses pictures, but '{name}' only returns text embeddings. "
            f"If the server accepts pictures, use '{name}+pictures'; otherwise, choose the "
            "probe visla, which compares texts."
        )


def check_candidates(
    name: str, probe: Probe, n_pictures: int, n_captions: int, pairs: str = ""
) -> None:
    """Raise Misfit if the model needs one forward pass per pair and the gallery is too large for that."""
    if (most := max(n_pictures, n_captions)) > MOST_CANDIDATES:
        raise Misfit(
            f"Probe '{probe.name}' searches a gallery of {most:,} candidates, but '{name}' needs "
            f"a forward pass for every picture with every caption{pairs}. Expected at most "
            f"{MOST_CANDIDATES} candidates: use --limit, or a model with embeddings."
        )


def _counts(items: Sequence[Item]) -> tuple[int, int]:
    """Count the distinct pictures and captions in a list of items."""
    n_pictures = len({item.image.name for item in items if item.image})
    return n_pictures, len({caption for item in items for caption in item.captions})


def _pairs(items: Sequence[Item]) -> str:
    """Describe the number of pairs in a clean gallery in parentheses, for error messages; "" without pictures."""
    n_pictures, n_captions = _counts(items)
    if not n_pictures:
        return ""
    return (
        f" ({n_pictures:,} pictures x {n_captions:,} captions = {n_pictures * n_captions:,} "
        "pairs, without altered or reworded candidates)"
    )


def check_pictures(model: Model, items: Sequence[Item]) -> None:
    """Raise InvalidInput if the model needs pictures and the picture of any item is missing on this machine."""
    absent = [item for item in items if any(picture.absent for picture in item.pictures)]
    if absent and model.capabilities.takes_pictures:
        raise InvalidInput(
            f"{len(absent):,} of {len(items):,} items have no picture here, but '{model.name}' "
            "needs pictures. Use +available instead of +unpictured to test only the items "
            "with pictures, or import scores from a file."
        )
