"""Building the bundled answers from a small copy of the published files, and the errors that stop the build."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.datasets.test_pairs import valse
from tools import ship_published
from tools.ship_published import CLIPS, ORDERS, SCORED
from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.storage import shipped
from vlprobe.storage.store import Store

FREE, OTHER = "000000000001.jpg", "000000000002.jpg"
ROWS = [  # subset, picture, caption, foil
    ("add_obj", FREE, "A dog.", "A dog and a cat."),
    ("add_obj", OTHER, "A bus.", "A bus and a car."),
    ("swap_obj", FREE, "A dog on a mat.", "A mat on a dog."),
]
RIGHT = {"positive-first": (True, False, True), "negative-first": (True, True, False)}


def questions(subset: str) -> dict[str, dict]:
    rows = [row for row in ROWS if row[0] == subset]
    return {
        str(number): {"filename": file, "caption": f"{caption} ", "negative_caption": foil}
        for number, (_, file, caption, foil) in enumerate(rows)
    }


def write_csv(file: Path, rows: list[dict]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write files in the authors' layout, with three questions of SugarCrepe and two of VALSE."""
    data = tmp_path_factory.mktemp("published")
    real = data / "real"
    for subset in ("add_obj", "swap_obj"):
        rows = questions(subset)
        write_json(data / "sugarcrepe" / "data" / f"{subset}.json", rows)
        for order in ORDERS:
            verdicts = [
                right for row, right in zip(ROWS, RIGHT[order], strict=True) if row[0] == subset
            ]
            content: dict = {
                key: {**row, "correct": right}
                for (key, row), right in zip(rows.items(), verdicts, strict=True)
            }
            write_json(real / "gpt4v" / order / f"gpt4v-{subset}.json", content | {"accuracy": 0.5})
    for number, suffix in enumerate(CLIPS):
        write_csv(
            real / "bivlc" / f"SUGARCREPE_CORRECT_{suffix}.csv",
            [
                {
                    "filename": file,
                    "caption": caption,
                    "negative_caption": foil,
                    "type": subset.partition("_")[0],
                    "subtype": subset.partition("_")[2],
                    "correct": str(int(row != number)),
                }
                for row, (subset, file, caption, foil) in enumerate(ROWS)
            ],
        )
    pairs = {f"k{number}": valse(image_file=f"p{number}.jpg") for number in range(2)}
    write_json(data / "valse" / "existence.json", pairs)
    for number, suffix in enumerate(SCORED):
        folder = data / "scores" if number < 2 else real / "valse"
        write_csv(
            folder / f"valse_{suffix}.csv",
            [
                {"file": "existence", "key": f"k{row}", "caption_score": 0.7, "foil_score": 0.2 + row / 2}
                for row in range(2)
            ],
        )  # fmt: skip
    for folder in (
        data / "sugarcrepe",
        data / "valse",
        real / "gpt4v",
        real / "bivlc",
        real / "valse",
    ):
        (folder / "LICENSE").write_text("MIT License\n")
    for name, size in ((FREE, (1000, 500)), (OTHER, (60, 40))):
        path = data / "coco_real" / "val2017" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, "red").save(path)
    images = [
        {
            "file_name": name,
            "license": number,
            "flickr_url": f"http://f.com/1/{123456 + number}_ab_z.jpg",
        }
        for name, number in ((FREE, 5), (OTHER, 2))
    ]
    names = {2: "Attribution-NonCommercial License", 5: "Attribution-ShareAlike License"}
    urls = {2: "http://creativecommons.org/licenses/by-nc/2.0/"}
    urls[5] = "http://creativecommons.org/licenses/by-sa/2.0/"
    licenses = [{"id": number, "name": names[number], "url": urls[number]} for number in names]
    annotations = {"images": images, "licenses": licenses}
    write_json(data / "coco_real" / "annotations" / "captions_val2017.json", annotations)
    return real


@pytest.fixture(scope="module")
def built(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    target = tmp_path_factory.mktemp("built") / "store"
    size = ship_published.build(published, target)
    assert size == sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return Store(target)


def test_both_orders_of_gpt_4v_are_one_model(built):
    (question_set,) = [
        views.runs.question_set(built, row.case_key)
        for row in views.runs.question_set_rows(built)
        if row.dataset == "bundled:SugarCrepe"
    ]
    assert len(question_set.runs) == 5
    run = question_set.run("published:GPT-4V")
    assert (run.n_orders, run.score_type, run.n_cases) == (2, "verdict", 3)
    table = built.run(run.key).table("scores").to_pandas()
    assert table["order_12"].astype(bool).tolist() == list(RIGHT["positive-first"])
    assert table["order_21"].astype(bool).tolist() == list(RIGHT["negative-first"])
    for number, name in enumerate(name for name, _ in CLIPS.values()):
        margins = (
            built.run(question_set.run(f"published:{name}").key)
            .table("scores")["margin"]
            .to_pylist()
        )
        assert margins == [-1.0 if row == number else 1.0 for row in range(3)]


def test_only_photographs_with_a_free_license_are_bundled_and_they_are_resized(built):
    (row,) = json.loads((built.root / "photographs.json").read_text())
    assert (row["file"], row["license"]) == (FREE, "CC BY-SA 2.0")
    assert row["page"] == "https://www.flickr.com/photo.gne?id=123461"
    with Image.open(built.root / "photographs" / FREE) as image:
        assert image.size == (640, 320)
    assert [path.name for path in (built.root / "photographs").iterdir()] == [FREE]
    notice = (built.root / "CREDITS.md").read_text()
    assert row["page"] in notice and row["license_url"] in notice and OTHER not in notice


def copy_with_fault(published: Path, folder: Path, change: Callable[[Path], None]) -> Path:
    """Return a copy of the published files with a fault."""
    shutil.copytree(published.parent, folder)
    change(folder)
    return folder / "real"


def edit_json(name: str, edit: Callable[[dict], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        edit(content)
        (folder / name).write_text(json.dumps(content))

    return change


def edit_csv(name: str, edit: Callable[[list[dict]], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with (folder / name).open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        edit(rows)
        write_csv(folder / name, rows)

    return change


GPT = "real/gpt4v/positive-first/gpt4v-add_obj.json"
COCO_CSV = "real/bivlc/SUGARCREPE_CORRECT_CLIP_COCO.csv"
FAULTS = {
    "a missing photograph": (
        lambda folder: (folder / "coco_real" / "val2017" / FREE).unlink(),
        rf"Image '.*{FREE}' does not exist",
    ),
    "an answer to a question that is not in the set": (
        edit_csv(COCO_CSV, lambda rows: rows[0].update(caption="A dog and more.")),
        r"CLIP_COCO.csv' answers 1 questions that are not in the set \(first: 'A dog and more.' about",
    ),
    "a score of a question that is not in the set": (
        edit_csv("real/valse/valse_clipcap_cc.csv", lambda rows: rows[0].update(key="k9")),
        r"valse_clipcap_cc.csv' answers 1 questions that are not in the set \(first: 'existence/k9'\)",
    ),
    "a missing answer": (
        edit_csv(COCO_CSV, lambda rows: rows.pop()),
        r"lacks answers to 1 of 3 questions \(first: 'A dog on a mat.' in swap_obj\)",
    ),
    "a row that is there twice": (
        edit_csv(COCO_CSV, lambda rows: rows.append(rows[0])),
        r"answers 'A dog.' in add_obj more than once. Remove one of the rows.",
    ),
    "two orders that differ in length": (
        edit_json(GPT, lambda rows: rows.pop("1")),
        r"GPT-4V has 2 answers in positive-first and 3 in negative-first",
    ),
    "an answer that is neither right nor wrong": (
        edit_json(GPT, lambda rows: rows["1"].update(correct="yes")),
        (
            r"gpt4v-add_obj.json', question '1' \('A bus. '\), has \"yes\" in 'correct'. "
            r"Expected true or false"
        ),
    ),
    "a row without a caption": (
        edit_json(GPT, lambda rows: rows["1"].pop("caption")),
        "gpt4v-add_obj.json', question '1', has no text for caption or negative_caption",
    ),
    "a photograph without its author's page": (
        edit_json(
            "coco_real/annotations/captions_val2017.json",
            lambda content: content["images"][0].update(flickr_url="http://elsewhere/x.jpg"),
        ),
        rf"Photograph '{FREE}' has no credit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_the_published_files_stops_the_build_in_one_line(fault, published, tmp_path):
    change, message = FAULTS[fault]
    with pytest.raises(InvalidInput, match=message) as error:
        ship_published.build(
            copy_with_fault(published, tmp_path / "data", change), tmp_path / "store"
        )
    assert "\n" not in str(error.value)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("name", "license_"),
    [(OTHER, "Attribution-NonCommercial License"), ("000000000003.jpg", "unknown")],
)
def test_a_photograph_that_may_not_be_redistributed_is_refused_with_its_license(
    name, license_, published
):
    with pytest.raises(InvalidInput, match=f"'{name}' may not be redistributed: .*'{license_}'"):
        ship_published.collect_photographs([FREE, OTHER], published.parent / "coco_real", [name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: python -m tools.ship_published FOLDER"),
        (["nowhere"], "Error: 'nowhere.*' does not exist|Error: '.*valse' does not exist"),
        (["REAL", OTHER], f"Error: Photograph '{OTHER}' may not be redistributed: its license is"),
    ],
)
def test_the_build_command_stops_in_one_line_and_keeps_the_old_store(
    arguments, message, published, tmp_path, monkeypatch
):
    target = tmp_path / "store"
    monkeypatch.setattr(shipped, "PUBLISHED_FOLDER", target)
    given = [str(published) if each == "REAL" else each for each in arguments]
    with pytest.raises(SystemExit, match=message) as stopped:
        ship_published.main(given)
    assert "\n" not in str(stopped.value) and not target.exists()


def test_a_withdrawn_question_keeps_its_position(tmp_path):
    rows = {
        str(number): {"filename": "1.jpg", "caption": f"A {number}.", "negative_caption": "B."}
        for number in (107, 109)
    }
    write_json(tmp_path / "data" / "swap_obj.json", rows)
    items = ship_published.sugarcrepe_items(tmp_path / "data", tmp_path / "cache")
    assert [item.id for item in items] == ["swap_obj/107", "swap_obj/108", "swap_obj/109"]
    question = ship_published.question_of(items[1])
    assert (question.file, *ship_published.WITHDRAWN["swap_obj/108"][1:]) == (
        "000000310622.jpg",
        question.caption,
        question.foil,
    )
    assert [dict(item.tags).get("withdrawn", "") for item in items] == ["", "yes", ""]
    assert np.unique([str(item.image.path.parent) for item in items]).tolist() == [
        "pictures/coco/val2017"
    ]
