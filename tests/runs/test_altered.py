"""Altered captions and mixed pictures written to files equal those in the galleries of a run."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import call, estimates_of
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.probes.released_layout import image_names
from vlprobe.runs.altered import write
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.types import Picture

THINGS = ("dog", "train", "pizza", "horse", "laptop", "boat")
OPTIONS = {
    "policies": ["danger", "rand-voca:2"],
    "caption_seeds": [1, 10],
    "pictures": ["mix:0.9", "patch:0.7"],
    "picture_seeds": [10],
}
MODEL = "control:random"


def make_dataset(folder: Path, without: str = "") -> str:
    """Draw six pictures with five captions each; one caption of the thing `without` has no noun."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["image", "caption"])
        for number, thing in enumerate(THINGS):
            pixels = rng.integers(0, 256, (20, 30 + number, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{thing}.png")
            for place in ("a table", "a beach", "a street", "a room", "a field"):
                plain = thing == without and place == "a street"
                text = "It is very nice here." if plain else f"A {thing} beside {place}."
                writer.writerow([f"{thing}.png", text])
    return f"csv:{folder / 'captions.csv'}"


def make_request(dataset: str, **options) -> Request:
    return Request((), dataset, "rococo", OPTIONS | options)


def numbers(store, dataset: str, **options) -> dict[str, float]:
    request = Request((MODEL,), dataset, "rococo", {"pictures": []} | options, examine=False)
    manifest = execute(request, store)[0]
    return estimates_of(store, manifest, averaging="micro")["value"].dropna().to_dict()


def test_a_written_file_has_the_captions_of_a_run_and_is_reproduced_byte_for_byte(store, tmp_path):
    dataset, out = make_dataset(tmp_path / "five"), tmp_path / "out"
    facts = write(make_request(dataset), out, store)
    assert {name: file["rule"] for name, file in facts["captions"].items()} == {
        "danger_seed1.json": "danger:seed1",
        "danger_seed10.json": "danger:seed10",
        "rand_voca_2_seed1.json": "rand-voca:2:seed1",
        "rand_voca_2_seed10.json": "rand-voca:2:seed10",
    }
    run = execute(Request((MODEL,), dataset, "rococo", OPTIONS, examine=False), store)[0]
    cases = store.cases(run["case_key"]).table("cases").to_pandas()
    for source, file in zip(facts["read_as"], facts["captions"].values(), strict=True):
        items = registry.load_dataset(source, store.root).items
        texts_by_item = (
            cases.loc[cases["rule"] == file["rule"]].set_index("item")["texts"].map(tuple)
        )
        assert len(items) == len(THINGS)
        for item in items:
            assert (*item.captions, *item.foils) == texts_by_item[item.image.path.name]
        path = out / Path(source.partition("@")[0].removeprefix("rococo:")).name
        again = tmp_path / "again" / path.stem
        write(Request((), source, "rococo", {"pictures": []}), again, store)
        assert (again / "released.json").read_bytes() == path.read_bytes()


def test_a_run_on_a_written_file_gives_the_numbers_of_the_original_run(store, tmp_path):
    dataset = make_dataset(tmp_path / "five")
    facts = write(
        make_request(dataset, policies=["danger"], caption_seeds=[]), tmp_path / "out", store
    )
    of_file = numbers(store, facts["read_as"][0], normalise=False)
    assert of_file == numbers(store, dataset, policies=["danger"])
    assert {"i2t_r1_new", "i2t_rsms"} <= set(of_file)


def test_the_pixels_of_mixed_pictures_equal_the_formula(store, tmp_path):
    folder, out = tmp_path / "five", tmp_path / "out"
    facts = write(make_request(make_dataset(folder), policies=[]), out, store)
    assert facts["pictures"] == {"mix_0.9_seed10": 6, "patch_0.7_seed10": 6}
    rows = [json.loads(line) for line in (out / "mixed_pictures.jsonl").read_text().splitlines()]
    assert len(rows) == 12
    for row in rows:
        image, partner = (Image.open(folder / row[name]) for name in ("image", "partner"))
        assert row["image"] != row["partner"]
        pixels, other = (np.asarray(one, float) for one in (image, partner.resize(image.size, 3)))
        written = np.asarray(Image.open(out / row["file"]), float)
        if row["kind"] == "mix":
            assert np.abs(written - (0.9 * pixels + 0.1 * other)).max() < 0.5 + 1e-9
        else:
            left, top, right, bottom = row["box"]
            inside = np.zeros(pixels.shape[:2], bool)
            inside[top:bottom, left:right] = True
            assert np.array_equal(written, np.where(inside[:, :, None], other, pixels))
            assert inside.mean() == pytest.approx(0.3, abs=0.05)


def test_a_picture_with_an_unalterable_caption_is_excluded_and_counted(store, tmp_path):
    dataset, out = make_dataset(tmp_path / "five", without="pizza"), tmp_path / "out"
    facts = write(
        make_request(dataset, policies=["danger"], caption_seeds=[], pictures=[]), out, store
    )
    assert facts["captions"]["danger.json"]["pictures"] == 5
    assert facts["captions"]["danger.json"]["left_out"] == {
        "a caption that could not be altered": 1
    }
    lines = [json.loads(line) for line in (out / "altered_captions.jsonl").read_text().splitlines()]
    assert len(lines) == 29
    for line in lines:  # the altered caption differs from its original by one word or article
        existing = set(line["caption"].split()) & set(line["text"].split())
        assert len(existing) >= len(line["caption"].split()) - 2
        assert line["text"] != line["caption"]
    edits = str(out / "altered_captions.jsonl")
    assert numbers(store, dataset, edits=edits, normalise=False)["i2t_rsms"] == pytest.approx(
        numbers(store, dataset, policies=["danger"])["i2t_rsms"]
    )


def test_the_same_request_resumes_and_another_one_is_refused_in_one_line(store, tmp_path):
    dataset, out = make_dataset(tmp_path / "five"), tmp_path / "out"
    request = make_request(dataset, policies=["danger"])
    facts = write(request, out, store)
    existing, deleted = out / "mix_0.9_seed10" / "dog.png", out / "patch_0.7_seed10" / "dog.png"
    times = existing.stat().st_mtime_ns
    content = deleted.read_bytes()
    deleted.unlink()
    assert write(request, out, store) == facts
    assert existing.stat().st_mtime_ns == times
    assert deleted.read_bytes() == content
    with pytest.raises(InvalidInput) as caught:
        write(make_request(dataset, policies=["rand-voca"]), out, store)
    assert str(caught.value) == (
        f"'{out}' already exists and contains other files. Choose another folder, or delete this one."
    )
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(InvalidInput, match=r"is a file, not a folder"):
        write(request, file, store)
    assert existing.is_file()


def test_an_unwritable_folder_is_refused_in_one_line_and_finished_files_remain(store, tmp_path):
    dataset, out = make_dataset(tmp_path / "five"), tmp_path / "out"
    write(make_request(dataset), out, store)
    shutil.rmtree(out / "patch_0.7_seed10")
    (out / "patch_0.7_seed10").write_text("in the way")
    with pytest.raises(InvalidInput, match=r"^Cannot write '.*patch_0.7_seed10"):
        write(make_request(dataset), out, store)
    assert (out / "danger_seed1.json").is_file()
    assert len(list((out / "mix_0.9_seed10").iterdir())) == 6
    (out / "patch_0.7_seed10").unlink()
    assert write(make_request(dataset), out, store)["finished"]


def test_a_request_without_alterations_is_refused_and_too_few_captions_are_counted(
    store, tmp_path, tiny
):
    with pytest.raises(InvalidInput, match=r"Nothing in .* is altered"):
        write(
            make_request(make_dataset(tmp_path / "five"), policies=[], pictures=[]),
            tmp_path / "out",
            store,
        )
    assert not (tmp_path / "out").exists()
    facts = write(
        make_request(tiny, policies=["danger"], caption_seeds=[]), tmp_path / "two", store
    )
    assert facts["captions"]["danger.json"] == {
        "rule": "danger",
        "pictures": 0,
        "left_out": {"2 captions instead of 5 or 6": 6},
    }


def test_the_folder_of_pictures_is_their_deepest_common_folder():
    names = ("/data/a/1.jpg", "/data/b/c/1.jpg")
    folder, name_of = image_names(Picture(Path(name)) for name in names)
    assert folder == Path("/data")
    assert list(name_of.values()) == ["a/1.jpg", "b/c/1.jpg"]
    assert image_names([]) == (None, {})


def test_perturb_writes_the_files_and_prints_their_dataset_name(store, tmp_path):
    dataset, out = make_dataset(tmp_path / "five"), tmp_path / "out"
    words = [store.root, "perturb", dataset]
    rococo = [*words, "--probe", "rococo"]
    options = ["--option", "policies=danger", "--option", "pictures=", "--limit", "4"]
    done = call(*rococo, str(out), *options)
    assert done.stdout == f"rococo:{out}/danger.json@{tmp_path / 'five'}\n"
    assert "danger.json: 4 pictures" in done.stderr
    assert "needs an output folder" in call(*rococo, code=2).stderr
    assert "require --probe rococo" in call(*words, str(out), code=2).stderr
    refused = call(*rococo, str(out), "--option", "polices=danger", code=1)
    assert refused.stderr.startswith("Error: Probe 'rococo' has no option 'polices'.")
