"""Export of RoCOCO's altered captions and mixed pictures to a folder OUT:

    rand_voca.json ...         one file per policy (and seed) in RoCOCO's release format (`probes/released_layout.py`)
    altered_captions.jsonl     every altered caption, including those that do not fit that format (docs/edits.md)
    mix_0.9_seed1/NAME.png     mixed pictures, lossless, in one folder per strength and seed
    mixed_pictures.jsonl       file, picture, partner, kind, remaining share and box for each mixed picture
    altered.json               the request, counts, and what was skipped; written at the start and at the end

Repeating a request resumes it after an interruption. The files match the gallery used by a run, because both
are made from the same cases.
"""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow.compute as pc

from vlprobe import __version__
from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix
from vlprobe.perturb.edits_file import line
from vlprobe.probes import rococo
from vlprobe.probes.caption_foils import altered_in_order
from vlprobe.probes.released_layout import file_names, image_names, layouts
from vlprobe.probes.rococo import RococoOptions
from vlprobe.probes.rococo_galleries import (
    FROM_FILE,
    RELEASED,
    changed_items,
    item_numbers,
    mixed_pictures,
)
from vlprobe.runs.context import RunContext
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import QUESTION_FIELDS, prepare, write_questions
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.storage.store import Store
from vlprobe.types import Edit, Item, Picture, PictureEdit

FACTS = "altered.json"


def write(
    request: Request, folder: Path, store: Store, progress: Progress | None = None
) -> dict[str, Any]:
    """Write the decoys that a run of `rococo` would add to its galleries. The models in the request are ignored.

    Returns:
        The content of altered.json.

    Raises:
        InvalidInput: no caption or picture could be altered, OUT has other content, or the disk is full.
    """
    progress = progress or Progress()
    dataset, items, probe, run = prepare(request, store, progress)
    alters = any(run.options.get(name) for name in ("policies", "pictures", "edits"))
    if not alters and not any(item.foils for item in items):
        raise InvalidInput(
            f"Nothing in '{run.dataset}' is altered. Choose policies or picture edits, "
            "such as --option policies=danger."
        )
    context = RunContext(run, items, probe, request, store)
    identity = {name: getattr(run, name) for name in QUESTION_FIELDS}
    _claim(folder, json.loads(json.dumps(identity)))
    write_questions(context, dataset, progress)
    files.write_json(folder / FACTS, {"asked": identity, "finished": False})
    home, name_of = image_names(item.image for item in items if item.image)
    for item in items:
        if item.image and item.image.absent:
            name_of[item.image.name] = item.image.path.name
    captions = _write_captions(context, folder, name_of)
    mixed = _write_pictures(context, folder, name_of, progress)
    facts = {
        "asked": identity,
        "captions": captions,
        "pictures": mixed,
        "read_as": [f"rococo:{folder / name}" + (f"@{home}" if home else "") for name in captions],
        "finished": True,
    }
    files.write_json(folder / FACTS, facts)
    return facts


def _claim(folder: Path, identity: Mapping[str, object]) -> None:
    """Raise InvalidInput if the output folder is a file, or contains files that do not come from the same request."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"'{folder}' is a file, not a folder. Choose another path.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    try:
        facts = files.parse_json_object(files.read(folder / FACTS).decode())
    except (OSError, ValueError):
        facts = {}
    if facts.get("asked") != identity:
        raise InvalidInput(
            f"'{folder}' already exists and contains other files. Choose another folder, or "
            "delete this one."
        )


def _write_captions(
    context: RunContext, folder: Path, name_of: Mapping[str, str]
) -> dict[str, dict[str, object]]:
    """Write the altered captions. Returns each file's rule, number of pictures and skipped pictures, by file name."""
    by_rule = layouts(context.read_cases, name_of)
    if not by_rule:
        return {}
    counts_of_file: dict[str, dict[str, object]] = {}
    for rule, stem in file_names(by_rule).items():
        layout = by_rule[rule]
        files.write_bytes(folder / f"{stem}.json", layout.encoded())
        counts_of_file[f"{stem}.json"] = {
            "rule": rule,
            "pictures": len(layout.entries),
            "left_out": dict(layout.left_out),
        }
    maker = f"vlprobe {__version__}, rococo, seed {context.run.seed}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    with files.atomic_writer(folder / "altered_captions.jsonl") as handle:
        for item_id, rule, source, text in _altered(context):
            row = line(item_id, source, text, Edit("flip", rule, rule), maker, today)
            handle.write(row.encode() + b"\n")
    return counts_of_file


def _altered(context: RunContext) -> Iterator[tuple[str, str, str, str]]:
    """Yield the item id, rule, caption and altered caption for all altered captions in the run.

    If some captions of an item could not be altered, the edits are made again, to find out which caption each text
    comes from. Captions from a file of edits are skipped.
    """
    items = {item.id: item for item in context.items}
    draws = rococo.make_draws(cast(RococoOptions, context.run.options), context.run.seed)
    for block in context.read_cases(["kind", "subtype", "rule", "item", "texts", "roles"]):
        for case in block.filter(pc.field("kind") == "i2t").to_pylist():
            policy, rule, item = case["subtype"], case["rule"], items[case["item"]]
            pairs = list(zip(case["texts"], case["roles"], strict=True))
            altered = [text for text, role in pairs if role == "different"]
            if policy.startswith(FROM_FILE):
                continue
            if len(altered) == len(item.captions) or policy == RELEASED:
                sources = zip(item.captions, altered, strict=False)
            else:
                again, _ = altered_in_order(item, policy, draws, draws.by_rule(policy)[rule])
                sources = (
                    (caption, edited.text)
                    for caption, edited in zip(item.captions, again, strict=True)
                    if edited and edited.text in altered
                )
            for caption, text in sources:
                yield item.id, rule, caption, text


def _write_pictures(
    context: RunContext, folder: Path, name_of: Mapping[str, str], progress: Progress
) -> dict[str, int]:
    """Write the mixed pictures and their list. Returns the number of pictures by folder name."""
    pictures_by_id = {item.id: item.image for item in context.items if item.image}
    changed = changed_items(context.read_cases, item_numbers(pictures_by_id))
    if not changed:
        return {}
    stem_of, item_ids = file_names(changed), list(pictures_by_id)
    targets = _targets(context.items, name_of)
    mixed = [
        (rule, f"{stem_of[rule]}/{targets[item_ids[number]]}", picture)
        for rule, numbers in changed.items()
        for number, picture in zip(
            numbers.tolist(), mixed_pictures(pictures_by_id, rule, numbers), strict=True
        )
    ]
    with files.atomic_writer(folder / "mixed_pictures.jsonl") as handle:
        for done, (rule, file, picture) in enumerate(mixed, 1):
            row = _write_picture(folder, file, picture, name_of) | {"rule": rule}
            handle.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            progress.update("Writing pictures", done, len(mixed))
    return {stem_of[rule]: len(numbers) for rule, numbers in changed.items()}


def _targets(items: Sequence[Item], name_of: Mapping[str, str]) -> dict[str, str]:
    """Choose a file for each item's mixed picture, by item id: the picture's name as PNG, with a number if taken."""
    target_of: dict[str, str] = {}
    taken: set[str] = set()
    for item in items:
        if item.image:
            path = Path(name_of[item.image.name])
            target, number = path.with_suffix(".png").as_posix(), 1
            while target in taken:
                number += 1
                target = path.with_name(f"{path.stem}-{number}.png").as_posix()
            taken.add(target)
            target_of[item.id] = target
    return target_of


def _write_picture(
    folder: Path, file: str, picture: Picture, name_of: Mapping[str, str]
) -> dict[str, object]:
    """Write a mixed picture if it does not exist yet, and return its row for the list."""
    edit = cast(PictureEdit, picture.edit)
    path = folder / file
    if not path.exists():
        content = pictures.encode(pictures.open_picture(picture), "PNG")
        files.write_bytes(path, content, durable=False)
    row: dict[str, object] = {
        "file": file,
        "image": name_of[str(picture.path)],
        "partner": name_of[str(edit.partner)],
        "kind": edit.kind,
        "stays": edit.lam,
    }
    if edit.kind == "patch":
        width, height = pictures.open_picture(Picture(picture.path)).size
        row["box"] = list(mix.box(width, height, edit.lam, edit.seed))
    return row
