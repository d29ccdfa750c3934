"""Plain words for stored names. Words for a single probe come from the probe's `presentation`."""

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from vlprobe import registry
from vlprobe.render.dataset_names import DATASETS
from vlprobe.render.numbers import TOO_FEW
from vlprobe.types import AS_PAPER, POOLED
from vlprobe.types.presentation import Presentation
from vlprobe.views import caption_bins
from vlprobe.views.named_slices import PREFIX

if TYPE_CHECKING:
    import pandas as pd


# The text next to intervals from resampling.
INTERVALS = f"Rates have Wilson intervals; there is no interval with {TOO_FEW}."
AVERAGED = {  # a sentence on how values were averaged
    POOLED: "Values are pooled over all cases.",
    AS_PAPER: (
        "Averaged as in the papers: the mean of the per-caption means, so every caption counts "
        "equally."
    ),
}
SLICED_BY = {
    "strength_bin": "Strength of the flip",
    "slice": "Named slice",
    "rule": "Rule",
    "comparison": "Comparison of two wordings",
    caption_bins.CHANGED: "Changed words",
    caption_bins.LENGTH: "Caption length",
    caption_bins.FREQUENCY: "Rarest word in the caption",
    caption_bins.TEXT_ALONE: "Guess from the text alone",
}
DELETED = {
    "random": "Random word removed",
    "low-ei": "Least important word removed",
    "high-ei": "Most important word removed",
}
SHIPPED_MODELS = {  # names and descriptions of the bundled models
    "demo:softmax": ("Tiny CLIP", "A small CLIP model, trained on drawn scenes with CLIP's loss."),
    "demo:sigmoid": ("Tiny SigLIP", "The same small model, trained with SigLIP's loss."),
    "demo:weak": ("Half-trained", "The same small model, stopped early."),
    "demo:plain": ("Longer-trained", "The same small model, trained for longer."),
    "demo:eqsim": ("Pair-tuned", "Tiny CLIP, fine-tuned on near-identical pairs (EqSim)."),
    "demo:scvc": ("Mix-tuned", "Tiny CLIP, fine-tuned with wrong words and mixed pictures."),
    "control:random": ("Coin flip", "A control that answers by chance and should fail."),
    "control:constant": (
        "Always the same",
        "A control that gives every pair the same score and should fail.",
    ),
}
NOT_RENAMED: Mapping[str, str] = MappingProxyType({})

WRONG_SUBTYPES = {  # the error in a wrong caption, for use after "fooled by" or above a row
    "color": "a wrong color",
    "number": "a wrong number",
    "object": "a wrong object",
    "negation": "a negation",
    "relation": "a wrong relation",
    "attribute-swap": "swapped attributes",
    "word-order": "another word order",
    "case": "another letter case",
    "punctuation": "other punctuation",
    "typo": "a typo",
    "location": "a wrong location",
    "swap": "swapped things",
    "rand-voca": "a random word",
    "same-concept": "a word of the same concept",
    "diff-concept": "a word of another concept",
    "danger": "a misleading word (danger)",
    "existence": "a false claim of existence",
    "plurals": "a wrong plural",
    "counting-hard": "a wrong count (hard)",
    "counting-small-quant": "a wrong count (small numbers)",
    "counting-adversarial": "a count that is too low",
    "relations": "a wrong relation",
    "action-replacement": "a wrong action",
    "actant-swap": "swapped roles",
    "coreference-standard": "a wrong answer to a question",
    "coreference-hard": "a wrong answer to a question (small set)",
    "foil-it": "a wrong noun",
    "add_att": "an added attribute",
    "add_obj": "an added object",
    "replace_att": "a wrong attribute",
    "replace_obj": "a wrong object",
    "replace_rel": "a wrong relation",
    "swap_att": "swapped attributes",
    "swap_obj": "swapped things",
    "generic": "a generic change",
    "spatial": "a spatial change",
    "video-color": "a change of color",
    "video-number": "a change of number",
    "video-object": "a change of object",
}


def presentations() -> dict[str, Presentation]:
    """Return the presentations of all probes, sorted by position."""
    every = {name: registry.load_probe(name).presentation for name in registry.names("probes")}
    return dict(sorted(every.items(), key=lambda entry: entry[1].position))


@functools.cache  # tables ask for it in every row
def movement_kinds() -> frozenset[str]:
    """Return the kinds of cases in which the margin measures how far a score or a result moved.

    In these kinds, the margin is never above 0, and no model can be fooled.
    """
    every = [
        kind for presentation in presentations().values() for kind in presentation.kinds.items()
    ]
    return frozenset(name for name, kind in every if kind.is_movement)


@functools.cache  # tables ask for it in every cell
def _value_labels() -> dict[str, str]:
    return {
        name: label
        for probe in presentations().values()
        for name, label in probe.value_labels.items()
    }


@functools.cache  # a sort asks for it with every name
def _value_order() -> tuple[str, ...]:
    of_captions = [name for names in caption_bins.VALUES.values() for name in names]
    of_probes = [name for probe in presentations().values() for name in probe.value_order]
    return (*of_probes, *of_captions)


def value_label(name: str) -> str:
    """Return plain words for a stored name. Unknown names are returned unchanged.

    >>> value_label("color"), value_label("mix:0.9"), value_label("danger:3"), value_label("flip:color")
    ('Color', 'Mixed picture (90 % stays)', 'Misleading word (danger), 3 words', 'Wrong color')
    >>> value_label("relation:in-front-of")
    'Relation: in front of'
    >>> value_label("mix:0.9:seed1"), value_label("danger:3:seed10"), value_label("delete:low-ei")
    ('Mixed picture (90 % stays), draw 1', 'Misleading word (danger), 3 words, draw 10', 'Least important word removed')
    >>> value_label("template:in-this-image"), value_label("template:in-the-scene+flip:color")
    ('“in this image …”', '“… in the scene”, wrong color')
    """
    labels = _value_labels()
    if name.startswith(PREFIX):
        return f"{name.removeprefix(PREFIX)} (slice)"
    if name in labels:
        return labels[name]
    if seed := re.fullmatch(r"(.+):seed(\d+)", name):
        label = value_label(seed[1])
        return name if label == seed[1] else f"{label}, draw {seed[2]}"
    paraphrase, _, flip = name.partition("+flip:")
    if flip in WRONG_SUBTYPES:
        return f"{value_label(paraphrase)}, {as_title(WRONG_SUBTYPES[flip]).lower()}"
    edit, _, strength = name.partition(":")
    if edit == "template":
        words = strength.replace("-", " ")
        return f"“… {words}”" if strength == "in-the-scene" else f"“{words} …”"
    if edit in ("mix", "patch") and re.fullmatch(r"0?\.\d+", strength):
        word = "Mixed" if edit == "mix" else "Patched"
        return f"{word} picture ({100 * float(strength):.0f} % stays)"
    if edit == "delete" and strength in DELETED:
        return DELETED[strength]
    if strength in WRONG_SUBTYPES:
        return edit_title(strength)
    if edit == "relation":
        return f"{labels[edit]}: {strength.replace('-', ' ')}"
    return f"{labels[edit]}, {strength} words" if edit in labels and strength.isdigit() else name


def tag_label(tag: str, value: str) -> str:
    """Return plain words for the value of a tag. VALSE's phenomena share stored names with its types of edit.

    >>> tag_label("phenomenon", "plurals"), tag_label("dataset", "visual7w")
    ('Plurals', 'Visual7W')
    """
    return value[:1].upper() + value[1:] if tag == "phenomenon" else value_label(value)


def model_name(name: str, renamed: Mapping[str, str] = NOT_RENAMED) -> str:
    """Return a model's display name: the name set by a user, the name of a bundled model, or the last part of a path.

    >>> model_name("demo:softmax"), model_name("openclip:ViT-B-32/openai"), model_name("hf:/models/my-clip@rev")
    ('Tiny CLIP', 'ViT-B-32/openai', 'my-clip@rev')
    >>> model_name("demo:softmax", {"demo:softmax": "Ours"})
    'Ours'
    >>> model_name("scores:/data/blip.csv+probability"), model_name("scores:/data/a.csv+key=x/y+as=ALBEF")
    ('blip', 'ALBEF')
    >>> model_name("scores:a.csv+as=CLIP ViT-B/32, COCO+logit"), model_name("http:https://a.de/v1#m+as=Ours")
    ('CLIP ViT-B/32, COCO', 'Ours')
    >>> model_name("embeddings:/data/clip.npy+normalise")
    'clip'
    """
    if name in renamed:
        return renamed[name]
    if name in SHIPPED_MODELS:
        return SHIPPED_MODELS[name][0]
    if called := _display_option(name):
        return called
    if name.startswith(("scores:", "embeddings:")):
        return _last_part(re.sub(r"\.\w+(\+.*)?$", "", name.partition(":")[2]))
    bare = name.partition(":")[2] or name
    return _last_part(bare) if bare.startswith(("/", "./", "../", "~")) else bare


def dataset_name(name: str, renamed: Mapping[str, str] = NOT_RENAMED) -> str:
    """Return a dataset's display name. Pages show the full name in a tooltip.

    >>> dataset_name("demo"), dataset_name("coco:/data/val2017"), dataset_name("mine")
    ('Drawn scenes', 'Photographs (val2017)', 'mine')
    >>> dataset_name("pairs:/data/valse@/data/val2017+unpictured"), dataset_name("triplets:swap_obj.json@/data")
    ('Pairs (valse)', 'Triplets (swap_obj)')
    >>> dataset_name("table:/data/test.parquet+image=photo"), dataset_name("bundled:VALSE+available")
    ('Table (test)', 'VALSE with pictures')
    """
    if name in renamed:
        return renamed[name]
    prefix, _, path = name.partition(":")
    pattern = DATASETS.get(prefix)
    if not pattern or not (path or "{}" not in pattern):
        return name
    label = pattern.format(_last_part(_source_file(path) if "@" in path or "+" in path else path))
    return f"{label} with pictures" if name.startswith("bundled:") and "+" in path else label


def distinct(labels: Mapping[str, str]) -> dict[str, str]:
    """Make labels unique, because a picker cannot tell two equal labels apart.

    Equal labels are extended by the end of the stored names, just long enough to differ.

    >>> distinct({"csv:/a/x.csv": "Table (x.csv)", "csv:/b/x.csv": "Table (x.csv)", "demo": "Drawn"})
    {'csv:/a/x.csv': 'Table (x.csv) · a/x.csv', 'csv:/b/x.csv': 'Table (x.csv) · b/x.csv', 'demo': 'Drawn'}
    """
    names_by_label: dict[str, list[str]] = {}
    for name, label in labels.items():
        names_by_label.setdefault(label, []).append(name)
    told_apart = {
        name: f"{label} · {tail}" if tail else label
        for label, names in names_by_label.items()
        for name, tail in zip(names, _distinct_tails(names), strict=True)
    }
    if len(set(told_apart.values())) < len(labels):  # a label equals another one with its suffix
        return {name: name for name in labels}
    return {name: told_apart[name] for name in labels}


def _distinct_tails(names: Sequence[str]) -> list[str]:
    """Return the end of each path, just long enough to make the ends distinct; "" for a single path."""
    if len(names) == 1:
        return [""]
    parts = [name.split("/") for name in names]
    for n_parts in range(1, max(map(len, parts))):
        tails = ["/".join(path[-n_parts:]) for path in parts]
        if len(set(tails)) == len(tails):
            return tails
    return list(names)


def probe_name(probe: str, dataset: str) -> str:
    """Return the display name of a test on a dataset. The bundled photographs have foils instead of EqBen's pairs.

    >>> probe_name("eqben", "demo-pairs"), probe_name("eqben", "bundled:VALSE")
    ('Near-identical pairs (EqBen)', 'True caption or foil')
    """
    presentation = presentations().get(probe)
    if not presentation:
        return probe
    of_photographs = presentation.photographs_name if dataset.startswith("bundled:") else ""
    return of_photographs or presentation.name or probe


def set_labels(table: "pd.DataFrame", renamed: Mapping[str, str] = NOT_RENAMED) -> dict[str, str]:
    """Return unique labels for question sets in a picker, by question set key.

    Args:
        table: The table that `views.runs.question_sets` returns.
        renamed: Display names by stored name.
    """
    datasets = distinct({name: dataset_name(name, renamed) for name in table["dataset"]})
    labels = {
        key: label.replace(
            f"{dataset} · {probe}", f"{datasets[dataset]} · {probe_name(probe, dataset)}", 1
        )
        for key, label, dataset, probe in zip(
            *(table[name] for name in ("case_key", "label", "dataset", "probe")), strict=True
        )
    }
    return with_keys(labels)


def with_keys(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels by key, with the start of the key after those that are not unique.

    >>> with_keys({"1a2b3c4d": "A", "5e6f7a8b": "A", "9c": "B"})
    {'1a2b3c4d': 'A · 1a2b3c', '5e6f7a8b': 'A · 5e6f7a', '9c': 'B'}
    """
    n_alike = Counter(labels.values())
    return {
        key: label if n_alike[label] == 1 else f"{label} · {key[:6]}"
        for key, label in labels.items()
    }


def _source_file(path: str) -> str:
    """Return the FILE part of a name FILE@IMAGEDIR+OPTION, without the file's suffix."""
    bare = re.sub(r"(\+[a-z0-9]+(=[^+]*)?)+$", "", path).rpartition("@")
    return re.sub(r"\.(jsonl?|csv|tsv|parquet|arrow|tar)$", "", bare[0] or bare[2])


def _display_option(name: str) -> str:
    """Return the value of the option `+as=` in the name of a model from a file or a server, or ""."""
    if not name.startswith(("scores:", "embeddings:", "http:")):
        return ""
    _, option, called = name.rpartition("+as=")
    return called.partition("+")[0] if option else ""


def _last_part(path: str) -> str:
    """Return the last part of a path that is not empty."""
    return path.rstrip("/").rpartition("/")[2] or path


def wrong(subtype: str) -> str:
    """Describe what is wrong in captions of a subtype, in words that fit into a sentence.

    >>> wrong("color"), wrong("danger:3"), wrong("mix:0.9"), wrong("video-color")
    ('a wrong color', 'a misleading word (danger), 3 words', 'a mixed picture (90 % stays)', 'a change of color')
    """
    edit, _, strength = subtype.partition(":")
    if subtype.startswith(PREFIX):
        return value_label(subtype)
    if edit in ("mix", "patch"):
        return f"a {value_label(subtype).lower()}" if strength else f"a {edit}ed picture"
    phrase = WRONG_SUBTYPES.get(edit, value_label(edit).lower())
    return f"{phrase}, {strength} words" if strength.isdigit() else phrase


def edit_title(subtype: str) -> str:
    """Return the title of a type of edit, for headings, rows and columns: `wrong` without its article.

    >>> edit_title("color"), edit_title("danger:3"), edit_title("replace_rel"), edit_title("P1 of OCR")
    ('Wrong color', 'Misleading word (danger), 3 words', 'Wrong relation', 'P1 of OCR')
    >>> edit_title("relation:in-front-of"), edit_title("mix:0.9")
    ('Relation: in front of', 'Mixed picture (90 % stays)')
    """
    phrase, label = wrong(subtype), value_label(subtype)
    edit, _, detail = subtype.partition(":")
    has_detail = detail and not detail.isdigit() and edit not in ("mix", "patch")
    if has_detail or subtype.startswith(PREFIX):  # the phrase has no detail
        return label
    return label[:1].upper() + label[1:] if phrase == label.lower() else as_title(phrase)


def as_title(phrase: str) -> str:
    """Return a phrase with a capital letter and without its article, such as "Added object" for "an added object"."""
    phrase = phrase.removeprefix("a ").removeprefix("an ")
    return phrase[:1].upper() + phrase[1:]


def is_plural(phrase: str) -> bool:
    """Return whether a phrase is plural, so that the verb after it is "fool" instead of "fools".

    >>> is_plural("swapped roles"), is_plural("a wrong count (small numbers)"), is_plural("a false claim of things")
    (True, False, False)
    """
    head = re.split(r",| of | \(", phrase)[0]
    return head.endswith("s") and not head.startswith(("a ", "an ", "another "))


def slice_order(name: str) -> tuple[int, list[str | int], float]:
    """Return a sort key for slices: first in the order of probes and caption bins, then by name, with numbers in
    numeric order.

    Edits of pictures are sorted from weak to strong.
    """
    ordered_names = _value_order()
    edit, _, strength = name.partition(":")
    number = float(strength) if strength.replace(".", "", 1).isdigit() else 0.0
    rank = ordered_names.index(edit) if edit in ordered_names else len(ordered_names)
    return rank, registry.natural_order(edit), -number if edit in ("mix", "patch") else number


def breakdown_label(probe: str, name: str) -> str:
    """Return plain words for a breakdown of estimates, such as the label for "subtype"."""
    if name == "subtype":
        return presentations()[probe].subtype_label
    return SLICED_BY.get(name) or f"Tag: {name.removeprefix('tag:')}"
