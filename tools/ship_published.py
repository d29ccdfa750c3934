"""Build the bundled answers of real models: `python -m tools.ship_published FOLDER [PHOTOGRAPH...]`.

FOLDER contains the files that the authors published: `gpt4v/` (SugarCrepe's gpt-4v-results), `bivlc/` (BiVLC's
results) and `valse/` (outputs of fine-grained-evals). Its parent folder also contains `scores/` (the other outputs of
fine-grained-evals), the question sets (`sugarcrepe/data/`, `valse/`, each with its LICENSE) and COCO's photographs with
annotations (`coco_real/val2017/`, `coco_real/annotations/`). Photographs are bundled if their license allows it. If
photographs are named, exactly these are bundled, and the build fails if one may not be redistributed. The script does
not compute or change any answer.
"""

import functools
import hashlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from tools.ship import ship
from vlprobe import registry
from vlprobe.datasets import bundled, credits
from vlprobe.datasets.credits import Credit
from vlprobe.datasets.file_formats import read_json, read_table
from vlprobe.datasets.validation import LoadedDataset
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models import answer_logs, score_file
from vlprobe.models.published import PREFIX, PublishedAnswers
from vlprobe.models.score_table import ScoreTable, table_of_verdicts
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.storage import files, shipped
from vlprobe.storage.store import Store
from vlprobe.types import Dataset, Item, Picture, Publication, ScoreType

PROBE = "eqben"
LONGEST_SIDE = 640  # pixels of a bundled photograph
FREE_LICENSES = {4: "CC BY 2.0", 5: "CC BY-SA 2.0"}  # allow redistribution; by COCO's number
COCO_NAME = re.compile(r"(?:.*_)?([0-9]{12})\.jpg")
WITHDRAWN = {  # questions with published answers that SugarCrepe removed later
    "swap_obj/108": (
        "000000310622.jpg",
        "A West 32nd sign under a Korea Way road sign.",
        "A Korea Way sign under a West 32nd road sign.",
    )
}
ORDERS = ("positive-first", "negative-first")  # folders with GPT-4V's answers
MIT = "MIT"
_GPT4V = functools.partial(
    Publication,
    authors="Hsieh et al., SugarCrepe",
    source="https://github.com/RAIVNLab/sugar-crepe/tree/0047054/gpt-4v-results",
    license=MIT,
)
_BIVLC = functools.partial(
    Publication,
    authors="Miranda et al., BiVLC",
    source="https://github.com/IMirandaM/BiVLC/tree/84f0d17/results",
    license=MIT,
)
_VALSE = functools.partial(
    Publication,
    authors="Bugliarello et al., fine-grained-evals",
    source="https://github.com/e-bug/fine-grained-evals/tree/6cc5fc1/outputs/VALSE",
    license=MIT,
)
CLIPS = {  # model name used by the authors, and description, by file name suffix
    "ViT-B-32": ("CLIP ViT-B/32", "CLIP ViT-B/32 of OpenAI, as released"),
    "CLIP_COCO": ("CLIP_COCO", "CLIP ViT-B/32 fine-tuned on COCO's captions, the control"),
    "CLIP_TROHN-Text": ("CLIP_TROHN-Text", "CLIP ViT-B/32 fine-tuned with hard negative texts"),
    "CLIP_TROHN-Img": (
        "CLIP_TROHN-Img",
        "CLIP ViT-B/32 fine-tuned with hard negative texts and pictures",
    ),
}
SCORED: dict[str, tuple[str, str, ScoreType]] = {  # by file name suffix
    "albef_14m": ("ALBEF 14M", "ALBEF, pre-trained on 14M pictures", "probability"),
    "albef_4m": ("ALBEF 4M", "ALBEF, pre-trained on 4M pictures", "probability"),
    "blip_129m": ("BLIP 129M", "BLIP, pre-trained on 129M pictures", "probability"),
    "blip_capfiltl_129m": ("BLIP CapFilt-L", "BLIP with CapFilt-L, 129M pictures", "probability"),
    "blip_vitl_129m": ("BLIP ViT-L", "BLIP with ViT-L, 129M pictures", "probability"),
    "blip2_itm_pretrain": ("BLIP-2 ITM", "BLIP-2's matching head, pre-trained", "probability"),
    "x-vlm_16m": ("X-VLM 16M", "X-VLM, pre-trained on 16M pictures", "probability"),
    "pevl_pretraining": ("PEVL pretraining", "PEVL, pre-trained", "probability"),
    "pevl_vrd": ("PEVL VRD", "PEVL, fine-tuned on VRD", "probability"),
    "clipcap_cc": ("ClipCap CC", "ClipCap, trained on Conceptual Captions", "unknown"),
    "clipcap_coco": ("ClipCap COCO", "ClipCap, trained on COCO", "unknown"),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question, identified as in the published answers; texts are stripped."""

    subset: str
    file: str  # file name of the picture
    caption: str
    foil: str


@dataclass(frozen=True, slots=True)
class Photograph:
    """A bundled photograph with its credit."""

    file: str
    content: bytes
    credit: Credit


def build(
    folder: Path,
    target: Path,
    progress: Progress | None = None,
    required: Sequence[str] = (),
) -> int:
    """Store all published answers to both question sets, and write the bundled store.

    Args:
        folder: The folder with the files that the authors published; see the module docstring.
        target: The folder for the new store; an existing folder is replaced completely.
        progress: An object that receives progress updates.
        required: File names of the photographs to bundle; if empty, all whose license allows it.

    Returns:
        The size of the bundled store in bytes.

    Raises:
        InvalidInput: A photograph or an answer is missing, a photograph may not be redistributed, an answer
            belongs to no question in the set, a question has several answers, or the two orders have
            different numbers of answers.
    """
    data = folder.resolve().parent
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "cache")
        sets = {  # the last one is listed first
            "VALSE": valse_items(data / "valse", store.root),
            "SugarCrepe": sugarcrepe_items(data / "sugarcrepe" / "data", store.root),
        }
        names = {item.image.path.name for items in sets.values() for item in items if item.image}
        photographs = collect_photographs(names, data / "coco_real", required)
        for photograph in photographs:
            files.write_bytes(store.root / bundled.COCO / photograph.file, photograph.content)
        models = {
            "SugarCrepe": sugarcrepe_models(folder, sets["SugarCrepe"]),
            "VALSE": valse_models([folder / "valse", data / "scores"], sets["VALSE"]),
        }
        manifests = [
            manifest
            for name, items in sets.items()
            for manifest in _answer(
                bundled.with_pictures(f"{bundled.PREFIX}:{name}", items, store.root),
                models[name],
                store,
                progress,
            )
        ]
        licenses = {
            "SugarCrepe's questions": data / "sugarcrepe" / "LICENSE",
            "VALSE": data / "valse" / "LICENSE",
            "SugarCrepe's GPT-4V results": folder / "gpt4v" / "LICENSE",
            "BiVLC": folder / "bivlc" / "LICENSE",
            "fine-grained-evals": folder / "valse" / "LICENSE",
        }
        every_model = [model for of_set in models.values() for model in of_set]
        contents = {
            f"{bundled.PHOTOGRAPHS}/{photograph.file}": photograph.content
            for photograph in photographs
        }
        contents[credits.MANIFEST] = _manifest(photographs)
        contents["CREDITS.md"] = _credits(photographs, every_model, licenses)
        return ship(store, manifests, target, contents)


def _answer(
    dataset: LoadedDataset,
    models: Sequence[PublishedAnswers],
    store: Store,
    progress: Progress | None,
) -> list[dict]:
    by_name = {model.name: model for model in models}
    request = Request(tuple(by_name), dataset.name, PROBE)
    return execute(request, store, progress, by_name, cast(Dataset, dataset))


def sugarcrepe_items(folder: Path, cache: Path) -> list[Item]:
    """Load SugarCrepe's questions in order, including those that were removed after the answers were published."""
    items: list[Item] = []
    for item in registry.load_dataset(f"triplets:{folder}", cache).items:
        before = f"{item.tags['subset']}/{int(item.id.rpartition('/')[2]) - 1}"
        if before in WITHDRAWN and (not items or items[-1].id != before):
            file, caption, foil = WITHDRAWN[before]
            tags = {**item.tags, "withdrawn": "yes"}
            cluster = Path(file).stem
            items.append(Item(before, None, (caption,), tags, (foil,), cluster=cluster))
        items.append(item)
    return [replace(item, image=Picture(bundled.COCO / f"{item.cluster}.jpg")) for item in items]


def valse_items(folder: Path, cache: Path) -> list[Item]:
    """Load the VALSE questions that annotators confirmed. Questions about the same picture form one cluster."""
    nowhere = cache / "no-pictures"
    nowhere.mkdir(parents=True, exist_ok=True)
    name = f"pairs:{folder}@{nowhere}+unpictured"
    return [_with_name(item) for item in registry.load_dataset(name, cache).items]


def _with_name(item: Item) -> Item:
    """Name an item's picture as in a cache: COCO pictures by the number that all releases of COCO share."""
    assert item.image is not None
    match = COCO_NAME.fullmatch(item.image.path.name)
    relative = bundled.PICTURES / "valse" / item.image.path.name
    return replace(item, image=Picture(bundled.COCO / f"{match[1]}.jpg" if match else relative))


def question_of(item: Item) -> Question:
    """Return an item's question in the form that identifies it in the published answers."""
    file = item.image.path.name if item.image else ""
    return Question(item.tags["subset"], file, item.captions[0].strip(), item.foils[0].strip())


def sugarcrepe_models(folder: Path, items: Sequence[Item]) -> list[PublishedAnswers]:
    """Load the answers of GPT-4V in both orders, and of BiVLC's CLIP models. Raises InvalidInput."""
    orders = [gpt4v_answers(folder / "gpt4v" / order) for order in ORDERS]
    if len(orders[0]) != len(orders[1]):
        raise InvalidInput(
            f"GPT-4V has {len(orders[0]):,} answers in {ORDERS[0]} and {len(orders[1]):,} in {ORDERS[1]}. "
            "Expected an answer to each question in both orders."
        )
    table = verdict_table(items, orders, folder / "gpt4v")
    publication = _GPT4V("GPT-4V of OpenAI, asked in both orders of the captions")
    models = [PublishedAnswers(f"{PREFIX}:GPT-4V", publication, "verdict", table)]
    for suffix, (name, about) in CLIPS.items():
        file = folder / "bivlc" / f"SUGARCREPE_CORRECT_{suffix}.csv"
        table = verdict_table(items, [clip_answers(file)], file)
        models.append(PublishedAnswers(f"{PREFIX}:{name}", _BIVLC(about), "verdict", table))
    return models


def gpt4v_answers(folder: Path) -> dict[Question, bool]:
    """Read whether GPT-4V chose the true caption of each question, from the files gpt4v-SUBSET.json in a folder.

    A folder has the answers for one order of the captions.
    """
    rows: list[tuple[Question, object]] = []
    for file in sorted(folder.glob("gpt4v-*.json")):
        answers = answer_logs.read_log(file, score_file.read_content(file))
        if answers is None:
            raise InvalidInput(
                f"'{file}' has an entry without negative_caption, or no object. "
                "Expected SugarCrepe's gpt-4v-results."
            )
        subset = file.stem.removeprefix("gpt4v-")
        rows += [
            (Question(subset, f"{answer.picture}.jpg", *answer.texts), answer.scores[0][0] == 1)
            for answer in answers
        ]
    return _distinct(folder, rows)


def clip_answers(file: Path) -> dict[Question, bool]:
    """Read whether a CLIP model from BiVLC chose the true caption of each question."""
    verdicts = {"1": True, "0": False}
    rows: list[tuple[Question, object]] = []
    for _, row in read_table(file):
        names = ("type", "subtype", "filename", "caption", "negative_caption", "correct")
        kind, subtype, *texts, correct = (row.get(name, "").strip() for name in names)
        rows.append((Question(f"{kind}_{subtype}", *texts), verdicts.get(correct)))
    return _distinct(file, rows)


def _distinct(source: Path, rows: Iterable[tuple[Question, object]]) -> dict[Question, bool]:
    """Return the answers by question. Raises InvalidInput if a question has two answers or one is not true or false."""
    answers: dict[Question, bool] = {}
    for question, answer in rows:
        if not isinstance(answer, bool):
            raise InvalidInput(
                f"'{source}' has '{answer}' for '{question.caption}' ({question.subset}). "
                "Expected right or wrong."
            )
        if question in answers:
            raise InvalidInput(
                f"'{source}' answers '{question.caption}' in {question.subset} more than once. "
                "Remove one of the rows."
            )
        answers[question] = answer
    return answers


def verdict_table(
    items: Sequence[Item], orders: Sequence[Mapping[Question, bool]], source: Path
) -> ScoreTable:
    """Build a table of answers to the items, with one column per order.

    Raises:
        InvalidInput: An item has no answer, or an answer belongs to a question that is not in the set.
    """
    questions = [question_of(item) for item in items]
    known = set(questions)
    for answers in orders:
        if foreign := [question for question in answers if question not in known]:
            raise InvalidInput(
                f"'{source}' answers {len(foreign):,} questions that are not in the set (first: "
                f"'{foreign[0].caption}' about {foreign[0].file} in {foreign[0].subset})."
            )
        if missing := [question for question in questions if question not in answers]:
            raise InvalidInput(
                f"'{source}' lacks answers to {len(missing):,} of {len(questions):,} questions (first: "
                f"'{missing[0].caption}' in {missing[0].subset})."
            )
    verdicts = np.array(
        [[answers[question] for answers in orders] for question in questions], dtype=np.float64
    )
    return table_of_verdicts({item.id: row for row, item in enumerate(items)}, verdicts)


def valse_models(folders: Sequence[Path], items: Sequence[Item]) -> list[PublishedAnswers]:
    """Load the models from fine-grained-evals with their scores for VALSE's captions and foils."""
    models = []
    for suffix, (name, about, scale) in SCORED.items():
        paths = [folder / f"valse_{suffix}.csv" for folder in folders]
        file = next((path for path in paths if files.is_file(path)), paths[0])
        table = score_file.parse(file, score_file.read_content(file), {})
        ids = {item.id for item in items}
        if foreign := [key for key in table.rows if key not in ids]:
            raise InvalidInput(
                f"'{file}' answers {len(foreign):,} questions that are not in the set (first: "
                f"'{foreign[0]}')."
            )
        models.append(PublishedAnswers(f"{PREFIX}:{name}", _VALSE(about), scale, table))
    return models


def collect_photographs(
    names: Iterable[str], folder: Path, required: Sequence[str] = ()
) -> list[Photograph]:
    """Collect a question set's photographs that may be redistributed, in the form in which they are bundled.

    Args:
        names: File names of the pictures in the question set.
        folder: A folder with COCO's photographs in `val2017` and their licenses in `annotations/*.json`.
        required: Names of photographs that must be bundled; if empty, all whose license allows it.

    Raises:
        InvalidInput: A required photograph may not be redistributed or is unknown, or a photograph is missing.
    """
    images, licenses = _annotations(folder / "annotations")
    photographs = []
    for name in sorted(required or set(names) & set(images)):
        image = images.get(name, {})
        number = image.get("license")
        if number not in FREE_LICENSES:
            if not required:
                continue
            license_ = licenses.get(number, {}).get("name") or "unknown"
            raise InvalidInput(
                f"Photograph '{name}' may not be redistributed: its license is '{license_}'. "
                f"Expected {' or '.join(FREE_LICENSES.values())}."
            )
        page = credits.photograph_page(str(image.get("flickr_url")))
        license_url = str(licenses.get(number, {}).get("url", "")).replace("http://", "https://")
        if "photo.gne" not in page or not license_url.startswith("https://creativecommons.org/"):
            raise InvalidInput(
                f"Photograph '{name}' has no credit: its page is '{page}', its license '{license_url}'. "
                "Correct the annotations."
            )
        content = _resized(folder / "val2017" / name)
        photographs.append(
            Photograph(name, content, Credit(page, FREE_LICENSES[number], license_url))
        )
    return photographs


def _annotations(folder: Path) -> tuple[dict[str, dict], dict[object, dict]]:
    """Read COCO's images by file name, and its licenses by number. Raises InvalidInput if there are none."""
    images: dict[str, dict] = {}
    licenses: dict[object, dict] = {}
    for file in sorted(folder.glob("*.json")):
        content = read_json(file)
        if isinstance(content, dict):
            images |= {row["file_name"]: row for row in content.get("images", [])}
            licenses |= {row["id"]: row for row in content.get("licenses", [])}
    if not images:
        raise InvalidInput(
            f"'{folder}' has no COCO annotations. Expected the licenses of photographs."
        )
    return images, licenses


def _resized(path: Path) -> bytes:
    """Return a photograph's file, or a smaller copy if a side is longer than LONGEST_SIDE. Raises InvalidInput."""
    content = pictures.read_bytes(path)
    image = pictures.decode(content, str(path))
    if max(image.size) <= LONGEST_SIDE:
        return content
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def _manifest(photographs: Sequence[Photograph]) -> bytes:
    rows = [
        {
            "file": photograph.file,
            "page": photograph.credit.page,
            "license": photograph.credit.license,
            "license_url": photograph.credit.license_url,
            "bytes": len(photograph.content),
            "sha256": hashlib.sha256(photograph.content).hexdigest(),
        }
        for photograph in photographs
    ]
    return f"{json.dumps(rows, indent=1)}\n".encode()


def _credits(
    photographs: Sequence[Photograph],
    models: Sequence[PublishedAnswers],
    licenses: Mapping[str, Path],
) -> bytes:
    """Write CREDITS.md, which lists every photograph, every model with answers, and the license texts."""
    lines = [
        "# Credits",
        "",
        "Nothing here was computed by vlprobe. `python -m tools.ship_published` builds this folder.",
        "",
        "## Photographs",
        "",
        "From COCO val2017 (https://cocodataset.org), unchanged. Each belongs to its author.",
        "",
        "| file | author's page | license |",
        "| --- | --- | --- |",
        *(
            f"| {each.file} | {each.credit.page} | [{each.credit.license}]({each.credit.license_url}) |"
            for each in photographs
        ),
        "",
        "## Answers",
        "",
        "| model | what it is | published by | license |",
        "| --- | --- | --- | --- |",
        *(
            f"| {model.name.partition(':')[2]} | {model.publication.about} | "
            f"[{model.publication.authors}]({model.publication.source}) | {model.publication.license} |"
            for model in models
            if model.publication
        ),
        "",
        "## Questions",
        "",
        "SugarCrepe: https://github.com/RAIVNLab/sugar-crepe (MIT), made of COCO's captions (CC BY 4.0).",
        "VALSE: https://github.com/Heidelberg-NLP/VALSE (MIT).",
    ]
    for name, file in licenses.items():
        lines += ["", f"## License of {name}", "", "```", file.read_text().strip(), "```"]
    return "\n".join([*lines, ""]).encode()


def main(arguments: Sequence[str]) -> str:
    """Build the bundled answers and return a summary line with their size; exit with one line if an error occurs."""
    if not arguments:
        sys.exit("Usage: python -m tools.ship_published FOLDER [PHOTOGRAPH...]")
    folder, *required = arguments
    try:
        size = build(Path(folder), shipped.PUBLISHED_FOLDER, required=required)
    except (VlprobeError, OSError) as error:
        sys.exit(f"Error: {error}")
    return f"{size:,} bytes in {shipped.PUBLISHED_FOLDER}"


if __name__ == "__main__":
    sys.stdout.write(f"{main(sys.argv[1:])}\n")
