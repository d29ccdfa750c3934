"""Imported embeddings as a model: they give the same numbers as the model that computed them."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import make_tiny, tiers
from tests.models import answered
from tests.models.test_scores import values
from tests.probes.test_common import PROBES, make
from vlprobe import registry, views
from vlprobe.errors import InvalidInput
from vlprobe.models import embeddings
from vlprobe.models.doctor import examine
from vlprobe.runs.playground import Player
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

OPTIONS = {"rococo": {"policies": ["same-concept"], "pictures": ["mix:0.8"], "picture_seeds": [1]}}


def run(name: str, data: str, probe: str, store, **settings) -> dict:
    request = Request((name,), data, probe, OPTIONS.get(probe, {}), examine=False, **settings)
    return execute(request, store)[0]


def scored(manifest: dict, store) -> list[dict]:
    rows = store.run(manifest["key"]).table("scores").to_pylist()
    return [{name: value for name, value in row.items() if name != "run"} for row in rows]


def save_embeddings(
    folder: Path, data: str, probe: str, store, sides: tuple[str, ...] = ("pictures", "texts")
) -> str:
    answered.questions(data, probe, folder, store, **OPTIONS.get(probe, {}))
    images, texts = answered.vectors(folder)
    for side, array in (("pictures", images), ("texts", texts)):
        if side in sides:
            np.save(folder / f"{side}.npy", array)
    return f"embeddings:{folder}"


@pytest.mark.parametrize("probe", tiers(PROBES, ("lgip", "prsm")))
def test_imported_embeddings_give_exactly_the_scores_of_the_model(probe, tmp_path, store):
    data = make(probe, tmp_path / "data", 6)
    name = save_embeddings(tmp_path / "out", data, probe, store)
    computed, looked_up = (run(model, data, probe, store) for model in (answered.MODEL, name))
    expected, imported_rows = scored(computed, store), scored(looked_up, store)
    assert len(imported_rows) == len(expected) > 5
    np.testing.assert_equal(imported_rows, expected)
    assert looked_up["spread"] == computed["spread"] or np.isnan(computed["spread"])
    assert looked_up["note"] == "embeddings from a file" and looked_up["score_type"] == "cosine"


def lines(file: Path, ids: list[str], array: np.ndarray, column: str) -> str:
    rows = [{"id": key, column: row.tolist()} for key, row in zip(ids, array, strict=True)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"embeddings:{file}"


def table(file: Path, ids: list[str], array: np.ndarray, listed: bool) -> str:
    with file.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(
            ["id", "embedding"] if listed else ["id", *(f"e{n}" for n in range(array.shape[1]))]
        )
        for key, row in zip(ids, array.tolist(), strict=True):
            writer.writerow([key, json.dumps(row)] if listed else [key, *row])
    return f"embeddings:{file}"


def parquet(file: Path, ids: list[str], array: np.ndarray, kind: object) -> str:
    pq.write_table(pa.table({"what": ids, "vec": pa.array(array.tolist(), kind)}), file)
    return f"embeddings:{file}+key=what+vector=vec"


def archive(file: Path, **arrays: np.ndarray) -> str:
    np.savez(file, **arrays)
    return f"embeddings:{file}"


FORMS = {
    "JSON lines": lambda f, ids, both, i, t: lines(f / "e.jsonl", ids, both, "embedding"),
    "JSON lines of vectors": lambda f, ids, both, i, t: lines(f / "e.jsonl", ids, both, "vector"),
    "any order": lambda f, ids, both, i, t: lines(f / "e.jsonl", ids[::-1], both[::-1], "vector"),
    "a table of lists": lambda f, ids, both, i, t: table(f / "e.csv", ids, both, True),
    "a table of numbers": lambda f, ids, both, i, t: table(f / "e.csv", ids, both, False),
    "mapped columns": lambda f, ids, both, i, t: parquet(
        f / "e.parquet", ids, both, pa.list_(pa.float32())
    ),
    "lists of a fixed size": lambda f, ids, both, i, t: parquet(
        f / "e.parquet", ids, both, pa.list_(pa.float32(), both.shape[1])
    ),
    "an archive by place": lambda f, ids, both, i, t: archive(f / "e.npz", pictures=i, texts=t),
    "an archive with ids": lambda f, ids, both, i, t: archive(
        f / "e.npz",
        pictures=i[::-1],
        texts=t[::-1],
        picture_ids=np.array(ids[: len(i)][::-1]),
        text_ids=np.array(ids[len(i) :][::-1]),
    ),
    "mapped arrays": lambda f, ids, both, i, t: (
        archive(f / "e.npz", im=i, cap=t) + "+pictures=im+texts=cap+as=CLIP"
    ),
    "doubles that are longer than 1": lambda f, ids, both, i, t: (
        archive(f / "e.npz", pictures=i.astype(np.float64) * 7, texts=t.astype(np.float64) * 3)
        + "+normalise"
    ),
}


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """Write the questions of one probe with embeddings. Return the data, the folder, the store and the candidates that
    the model ranks first.
    """
    folder = tmp_path_factory.mktemp("questions")
    data, store = make_tiny(folder / "data"), Store(folder / "cache")
    save_embeddings(folder / "out", data, "prsm", store)
    expected = scored(run(answered.MODEL, data, "prsm", store), store)
    return data, folder / "out", store, [row["top"] for row in expected]


QUICK = ("JSON lines", "a table of numbers", "lists of a fixed size", "an archive with ids")


@pytest.mark.parametrize("form", tiers(FORMS, QUICK))
def test_every_format_of_embeddings_and_keys_gives_the_same_ranking(form, questions, tmp_path):
    data, out, store, expected = questions
    images, texts = (np.load(out / f"{side}.npy") for side in ("pictures", "texts"))
    ids = [
        row["id"] for side in ("pictures", "texts") for row in answered.rows(out / f"{side}.jsonl")
    ]
    name = FORMS[form](tmp_path, ids, np.concatenate([images, texts]), images, texts)
    assert [row["top"] for row in scored(run(name, data, "prsm", store), store)] == expected


def test_a_table_of_numbers_can_have_missing_values_and_very_long_rows(tmp_path):
    (tmp_path / "e.csv").write_text("id,text2,e0,e1\n007,a dog,None,None\nb,,0,1\n")
    (vectors, _) = embeddings.vector_file.read(tmp_path / "e.csv", {}, normalise=False)
    assert vectors["texts"].rows == {"007": 0, "b": 1} and vectors["texts"].missing == {0}
    cells = ", ".join(["0.0078125"] * (1 << 18))
    (tmp_path / "long.csv").write_text(f'id,embedding\na,"[{cells}]"\n')
    (vectors, _) = embeddings.vector_file.read(tmp_path / "long.csv", {}, normalise=True)
    assert vectors["texts"].array.shape == (1, 1 << 18)


KEYS = {
    "labels": lambda item, number, path: (f"{item}_i0", f"{item}_c{number}"),
    "names and texts": lambda item, number, path: (path.name, None),
    "stems": lambda item, number, path: (path.stem, None),
    "paths": lambda item, number, path: (str(path), None),
}


@pytest.mark.parametrize("keys", tiers(KEYS, ("labels", "names and texts")))
def test_pictures_are_found_by_name_or_label_and_texts_by_label_or_text(
    keys, tiny, tmp_path, store
):
    dataset = registry.load_dataset(tiny, store.root)
    rng = np.random.default_rng(0)
    rows: dict[str, list[float]] = {}
    for item in dataset.items:
        for number, caption in enumerate(item.captions):
            picture, text = KEYS[keys](item.id, number, item.image.path.resolve())
            for key in (picture, text or caption):
                vector = rng.normal(size=4)
                rows.setdefault(key, (vector / np.linalg.norm(vector)).tolist())
    file = tmp_path / "e.jsonl"
    file.write_text(
        "".join(json.dumps({"id": key, "embedding": row}) + "\n" for key, row in rows.items())
    )
    clean = Request(
        (f"embeddings:{file}",), tiny, "rococo", {"policies": [], "pictures": []}, examine=False
    )
    manifest = execute(clean, store)[0]
    first = dataset.items[0]
    picture, text = KEYS[keys](first.id, 0, first.image.path.resolve())
    top = store.run(manifest["key"]).table("scores").to_pylist()[0]
    own_scores = [
        rows[KEYS[keys](first.id, n, first.image.path.resolve())[1] or c]
        for n, c in enumerate(first.captions)
    ]
    assert top["scores"][0] == pytest.approx(
        max(np.dot(rows[picture], vector) for vector in own_scores), abs=1e-6
    )


@pytest.mark.full  # real data, seconds
def test_published_clip_embeddings_give_the_published_recall(shared_data, tmp_path, store):
    content = json.loads((shared_data / "embeddings" / "ids_captions_first500.json").read_text())
    with (tmp_path / "coco.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["image", "caption"])
        writer.writerows(
            zip((f"{n:012d}.jpg" for n in content["ids"]), content["captions"], strict=True)
        )
    data = f"csv:{tmp_path / 'coco.csv'}+unpictured"
    name = f"embeddings:{shared_data}/embeddings/features_clip.npy+normalise+as=CLIP"
    request = Request((name,), data, "rococo", {"policies": [], "pictures": []})
    manifest = execute(request, store)[0]
    metrics = values(store, manifest)
    recalls = [
        round(100 * metrics[f"{side}_r{k}"], 1) for side in ("t2i", "i2t") for k in (1, 5, 10)
    ]
    assert recalls == [50.6, 76.6, 86.2, 55.2, 80.8, 89.2]
    assert manifest["notes"][0].startswith("0 of 500 have a picture here")
    checks = {
        check.name: check.passed
        for check in examine.load(store, manifest["run"]["model_digest"])[0].checks
    }
    assert checks["finite"] and checks["matched_auc"] and checks["r1_forth"]
    assert checks["text_batch"] is None


def test_missing_embeddings_are_counted_and_refused_or_unknown_with_an_option(
    tiny, tmp_path, store
):
    name = save_embeddings(tmp_path / "out", tiny, "lgip", store)
    texts = np.load(tmp_path / "out" / "texts.npy")
    texts[-3:] = np.nan
    np.save(tmp_path / "out" / "texts.npy", texts)
    with pytest.raises(InvalidInput, match=r"lacks 3 of \d+ texts \(first: text '.*\+partial'"):
        run(name, tiny, "lgip", store)
    manifest = run(f"{name}+partial", tiny, "lgip", store)
    assert "3 of" in manifest["note"]
    assert "texts are missing: their cases are unknown" in manifest["note"]
    margins = [row["margin"] for row in scored(manifest, store)]
    assert 0 < np.isnan(margins).sum() < len(margins)
    name = save_embeddings(tmp_path / "gallery", tiny, "prsm", store)
    images = np.load(tmp_path / "gallery" / "pictures.npy")
    images[0] = np.nan
    np.save(tmp_path / "gallery" / "pictures.npy", images)
    with pytest.raises(
        InvalidInput, match=r"lacks 1 of 6 pictures .*A search needs all pictures and texts"
    ):
        run(f"{name}+partial", tiny, "prsm", store)


def test_embeddings_of_texts_only_are_a_text_encoder(tiny, tmp_path, store):
    data = make("visla", tmp_path / "data", 6)
    name = save_embeddings(tmp_path / "out", data, "visla", store, ("texts",))
    metrics = values(store, run(name, data, "visla", store))
    expected = values(store, run(answered.MODEL, data, "visla", store))
    assert metrics["words_t2t_accuracy"] == expected["words_t2t_accuracy"]
    with pytest.raises(InvalidInput, match="only has text embeddings"):
        run(name, tiny, "lgip", store)


def test_failures_of_imported_embeddings_are_listed(tiny, tmp_path, store):
    name = save_embeddings(tmp_path / "out", tiny, "lgip", store)
    manifests = [run(model, tiny, "lgip", store) for model in (name, "control:constant")]
    questions = views.runs.question_set(store, manifests[0]["case_key"])
    rows, total = views.cases.failures(questions, views.filter.Filter(name, "flip"))
    assert total and not rows.empty
    assert {row.model for row in questions.runs} == {name, "control:constant"}


def test_new_texts_and_another_question_set_are_refused_in_one_line(tiny, tmp_path, store):
    name = save_embeddings(tmp_path / "out", tiny, "prsm", store)
    model = embeddings.load(name)
    with pytest.raises(InvalidInput, match="cannot score new words"):
        Player(model)
    with pytest.raises(InvalidInput, match="to embed other texts"):
        model.tokenize(["a dog"])
    with pytest.raises(InvalidInput, match=r"lacks \d+ of \d+ texts"):
        run(name, tiny, "lgip", store)
    for side in ("pictures", "texts"):
        (tmp_path / "out" / f"{side}.parquet").unlink()
        (tmp_path / "out" / f"{side}.jsonl").unlink()
    with pytest.raises(InvalidInput, match=r"texts without ids, but the question set has \d+"):
        run(name, tiny, "lgip", store)
    with pytest.raises(InvalidInput, match=r"has none of the 6 pictures .*first key is"):
        run(lines(tmp_path / "e.jsonl", ["x"], np.eye(1, 4), "vector"), tiny, "prsm", store)


def test_the_digest_depends_on_the_bytes_and_the_options(tmp_path):
    first = lines(tmp_path / "a.jsonl", ["x"], np.eye(1, 4), "vector")
    again = lines(tmp_path / "b.jsonl", ["x"], np.eye(1, 4), "vector")
    other = lines(tmp_path / "c.jsonl", ["y"], np.eye(1, 4), "vector")
    names = [first, other, f"{first}+partial", f"{first}+normalise", f"{first}+key=id"]
    assert len({embeddings.load(name).digest for name in names}) == len(names)
    assert embeddings.load(again).digest == embeddings.load(first).digest
