"""Descriptions of the models on slides, for an audience that has never heard of them."""

from collections.abc import Mapping, Sequence

from vlprobe.render.sentences import listed, sentence_names
from vlprobe.render.slides.values import Slide
from vlprobe.render.words import model_name
from vlprobe.views.records import RunRow

SALESFORCE = ", by Salesforce: learned from 4 to 129 million pictures"
PEVL = ", by Tsinghua University: learned where things are in pictures"
CLIPCAP = ", by Tel Aviv University: made to write captions"
TOYS = ": small teaching models that learned from drawings"
TUNED = ": Tiny CLIP, trained again to avoid such mistakes"
# Plain name ("" keeps the name), and words after it that say who made the model and how it differs, by stored name
MODELS = {
    "published:CLIP ViT-B/32": (
        "CLIP",
        ", by OpenAI: learned from 400 million pictures of the web",
    ),
    "published:CLIP_COCO": ("COCO-tuned CLIP", ": CLIP, trained again on true captions"),
    "published:CLIP_TROHN-Text": ("Text-tuned CLIP", ": CLIP, trained again on wrong captions"),
    "published:CLIP_TROHN-Img": (
        "Picture-tuned CLIP",
        ": CLIP, trained again on wrong captions and pictures",
    ),
    "published:GPT-4V": ("", ", by OpenAI: a chat program that also looks at pictures"),
    "published:ALBEF 4M": ("", SALESFORCE),
    "published:ALBEF 14M": ("", SALESFORCE),
    "published:BLIP 129M": ("BLIP", SALESFORCE),
    "published:BLIP CapFilt-L": ("BLIP filtered", SALESFORCE),
    "published:BLIP ViT-L": ("BLIP large", SALESFORCE),
    "published:BLIP-2 ITM": ("BLIP-2", SALESFORCE),
    "published:X-VLM 16M": ("X-VLM", ", by ByteDance: learned from 16 million pictures"),
    "published:PEVL pretraining": ("PEVL", PEVL),
    "published:PEVL VRD": ("PEVL tuned", PEVL),
    "published:ClipCap CC": ("ClipCap web", CLIPCAP),
    "published:ClipCap COCO": ("", CLIPCAP),
    "demo:softmax": ("", TOYS),
    "demo:sigmoid": ("", TOYS),
    "demo:weak": ("", ": Tiny CLIP, trained for a shorter time"),
    "demo:plain": ("", ": Tiny CLIP, trained for a longer time"),
    "demo:eqsim": ("", TUNED),
    "demo:scvc": ("", TUNED),
}
PLAIN_NAMES = {model: name for model, (name, _) in MODELS.items() if name}


def slide_names(models: Sequence[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each model on slides: the name that a user gave, or else a plain one."""
    return sentence_names(models, {**PLAIN_NAMES, **renamed})


def full_names(renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the names that users gave, and the plain ones, with the name of the other pages if that begins otherwise.

    >>> full_names({})["published:CLIP_TROHN-Img"], full_names({})["published:CLIP ViT-B/32"]
    ('Picture-tuned CLIP (CLIP_TROHN-Img)', 'CLIP')
    """
    exact = {model: model_name(model) for model in PLAIN_NAMES}
    plain = {
        model: name if exact[model].startswith(name) else f"{name} ({exact[model]})"
        for model, name in PLAIN_NAMES.items()
    }
    return {**plain, **renamed}


def name_line(models: Sequence[str], renamed: Mapping[str, str]) -> str:
    """Say which models have another name on slides and in the quiz than on other pages, or return "".

    >>> name_line(["published:CLIP_COCO", "published:GPT-4V"], {})
    'On slides and in the quiz: COCO-tuned CLIP (CLIP_COCO).'
    """
    full = full_names(renamed)
    names = [
        full[model]
        for model in models
        if model in full and model not in renamed and " (" in full[model]
    ]
    return f"On slides and in the quiz: {listed(names)}." if names else ""


def describe_models(models: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Say in a sentence for each group of models what they are, with the exact names of those that have a plain one.

    Args:
        names: Names by model, as `slide_names` returns them.
    """
    return [f"{', '.join(each)}{line}." for line, each in _groups(models, names).items() if line]


def _groups(models: Sequence[str], names: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the full names of models by what is said about them; "" if there is nothing."""
    lines: dict[str, list[str]] = {}
    full = full_names({})
    for model in models:
        is_plain = names[model] == PLAIN_NAMES.get(model)
        name = full[model] if is_plain else names[model]
        lines.setdefault(MODELS.get(model, ("", ""))[1], []).append(name)
    return lines


def models_slide(models: Sequence[str], runs: Sequence[RunRow], names: Mapping[str, str]) -> Slide:
    """Return the slide that says what a model is, and who made these.

    Args:
        models: The models of the talk.
        runs: Their runs, whose descriptions are in the speaker notes.
        names: Names by model.
    """
    unknown = _groups(models, names).get("", [])
    known = [f"- {line}" for line in describe_models(models, names)]
    known += [f"- {listed(unknown)}"] * bool(unknown)
    abouts = {run.model: run.publication.about for run in runs if run.publication}
    exact = [f"{names[model]}: {abouts[model]}." for model in models if model in abouts]
    return Slide(
        id="models",
        heading=(("A model is a program that judges how well a text fits a picture.", ""),),
        detail="\n".join(known),
        notes=(
            "A model learns from pictures with their captions. No one writes rules for it.",
            " ".join(["If someone asks:", *exact] * bool(exact)),
        ),
    )
