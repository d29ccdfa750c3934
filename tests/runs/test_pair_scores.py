"""`vlprobe score` adds a column of scores to a table, with models of any family, and resumes after an interruption."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

import vlprobe
from tests.conftest import CAPTIONS, call, make_tiny
from tests.models.answered import questions, vectors
from vlprobe import registry
from vlprobe.cli import main
from vlprobe.errors import InvalidInput
from vlprobe.models.controls import ControlEncoder as Control
from vlprobe.runs import pair_scores
from vlprobe.runs.playground import Player
from vlprobe.types import Capabilities

MODEL = "control:random"
PAIRS = [(f"{n}.png", text) for n, (_, _, *texts) in enumerate(CAPTIONS) for text in texts]


@pytest.fixture
def photos(tmp_path) -> Path:
    """Return a folder with the pictures of `tiny` and its table `captions.csv`."""
    make_tiny(tmp_path / "photos")
    return tmp_path / "photos"


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


def rows_of(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.read_text("utf-8"))))


def expected(folder: Path, name: str = MODEL) -> np.ndarray:
    """Compute the score of each pair separately with the model."""
    model = registry.load_model(name)
    scores = []
    for image, text in PAIRS:
        pixels = np.stack([model.preprocess(Image.open(folder / image).convert("RGB"))])
        vector = model.encode_images(pixels)[0].reshape(-1, model.capabilities.dim)
        scores.append((vector @ model.encode_texts(model.tokenize([text]))[0]).max())
    return np.array(scores)


def test_score_keeps_the_rows_of_a_csv_and_adds_a_column(photos, cache):
    answer = call(cache, "score", str(photos / "captions.csv"), "--model", MODEL)
    assert f"{photos / 'captions-scored.csv'}: 12 scores" in answer.stderr and not answer.stdout
    before, after = (rows_of(photos / f"{name}.csv") for name in ("captions", "captions-scored"))
    assert [
        {**row, "score": line["score"]} for row, line in zip(before, after, strict=True)
    ] == after
    scores = [float(row["score"]) for row in after]
    assert scores == pytest.approx(expected(photos), abs=1e-6)
    assert len(set(scores)) > 6


def test_unusual_separators_headers_and_quotes_are_preserved(photos, cache):
    rows = [("Bild", " Text", "n"), ("0.png", 'A "red"; dog,\non a bench', "1"), ("1.png", "é", "")]
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows(rows)
    table = photos / "odd.csv"
    table.write_bytes(b"\xef\xbb\xbf" + text.getvalue().replace("é", "\xe9").encode() + b"\n\n")
    name = f"{table}+image=bild+caption=text"
    call(cache, "score", name, "--model", MODEL, "--out", str(photos / "o.csv"), "--column", "fit")
    written = list(csv.reader(io.StringIO((photos / "o.csv").read_text("utf-8")), delimiter=";"))
    assert [row[:-1] for row in written] == [list(row) for row in rows]
    assert written[0][-1] == "fit" and all(float(row[-1]) for row in written[1:])


def test_json_lines_keep_nested_values_and_unknown_scores_are_null(photos, cache):
    lines = [
        {"image": "0.png", "caption": CAPTIONS[0][2], "more": {"a": [1, None]}, "é": True},
        {"image": "gone.png", "caption": "A dog.", "more": {"a": []}, "é": False},
    ]
    for line in lines:  # a list is no id of an item, but a score needs none
        line["id"] = ["q", "r"]
    table = photos / "pairs.jsonl"
    table.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    lack = call(cache, "score", str(table), "--model", MODEL, code=1).stderr
    assert "1 of 2 rows" in lack and "gone.png" in lack and "unpictured" in lack
    answer = call(cache, "score", f"{table}+unpictured", "--model", MODEL)
    assert "2 scores, 1 of them unknown" in answer.stderr
    written = [
        json.loads(line) for line in (photos / "pairs-scored.jsonl").read_text("utf-8").splitlines()
    ]
    assert [
        {**line, "score": row["score"]} for line, row in zip(lines, written, strict=True)
    ] == written
    assert written[0]["score"] == pytest.approx(expected(photos)[0], abs=1e-6)
    assert written[1]["score"] is None


def test_parquet_keeps_its_types_and_can_contain_the_pictures(photos, cache):
    table = pa.table(
        {
            "image": pa.array(
                [{"bytes": (photos / image).read_bytes(), "path": image} for image, _ in PAIRS]
            ),
            "caption": [text for _, text in PAIRS],
            "count": pa.array(range(len(PAIRS)), pa.int16()),
            "tags": [["a", None]] * len(PAIRS),
        }
    ).replace_schema_metadata({"huggingface": "{}", "mine": "kept"})
    pq.write_table(table, photos / "pairs.parquet", row_group_size=5)
    call(cache, "score", str(photos / "pairs.parquet"), "--model", MODEL)
    written = pq.read_table(photos / "pairs-scored.parquet")
    assert written.drop_columns("score").equals(table)
    assert written.schema.metadata == {b"mine": b"kept"}
    assert written["score"].type == pa.float32()
    assert written["score"].to_numpy() == pytest.approx(expected(photos), abs=1e-6)


def test_an_interrupted_command_resumes_and_writes_the_same_file(photos, cache, monkeypatch):
    table, whole = str(photos / "captions.csv"), photos / "whole.csv"
    call(cache, "score", table, "--model", MODEL, "--out", str(whole))
    monkeypatch.setattr(pair_scores, "CHUNK_ROWS", 5)
    scored: list[str] = []
    limit = 7
    encode = Control.encode_texts

    def count(model: Control, tokens: np.ndarray) -> np.ndarray:
        if len(scored) >= limit:
            raise KeyboardInterrupt
        scored.extend(["text"] * 5)
        return encode(model, tokens)

    monkeypatch.setattr(Control, "encode_texts", count)
    answer = call(cache, "score", table, "--model", MODEL, code=130)
    assert "to continue" in answer.stderr and not (photos / "captions-scored.csv").exists()
    (kept,) = (path for path in (cache / "scored").iterdir() if path.suffix != ".lock")
    assert kept.stat().st_size == 4 * 10
    with kept.open("ab") as handle:
        handle.write(b"\0\1")  # half a number, as a killed process leaves it
    limit, scored = 100, []
    call(cache, "score", table, "--model", MODEL)
    assert len(scored) == 5  # a single call, for the last two rows
    assert (photos / "captions-scored.csv").read_bytes() == whole.read_bytes()
    assert list((cache / "scored").iterdir()) == []


def test_another_model_or_a_changed_table_starts_from_the_beginning(photos, cache, monkeypatch):
    monkeypatch.setattr(pair_scores, "CHUNK_ROWS", 5)
    table = photos / "captions.csv"
    with monkeypatch.context() as patch:
        patch.setattr(Control, "encode_texts", lambda model, tokens: 1 / 0)
        assert isinstance(
            CliRunner()
            .invoke(main.main, ["--cache", str(cache), "score", str(table), "--model", MODEL])
            .exception,
            ZeroDivisionError,
        )
    table.write_text("image,caption\n0.png,A dog.\n", encoding="utf-8")
    call(cache, "score", str(table), "--model", "control:constant")
    (row,) = rows_of(photos / "captions-scored.csv")
    assert float(row["score"]) == pytest.approx(1)


class Head(Control):
    """A pair scorer that combines the brightness of the picture and the length of the text."""

    name, digest, note = "head", "head1", ""

    def __init__(self) -> None:
        pass

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(scores_pairs=True, score_type="logit")

    def encode_pictures(self, pixels):
        return [np.float32(array.mean()) for array in pixels]

    def match(self, encoded, tokens, logits=False):
        lengths = np.asarray(tokens).sum(axis=1) % 7
        return (np.array([*encoded]) * 100 + lengths).astype(np.float32)


def test_a_data_frame_gets_the_pair_scores_of_a_matching_head(photos, cache):
    frame = pd.DataFrame(PAIRS, columns=["photo", "text"], index=range(5, 17))
    model = Head()
    scored = vlprobe.score(frame, model, image="photo", caption="text", folder=photos, cache=cache)
    assert list(scored) == ["photo", "text", "score"] and scored.index.equals(frame.index)
    for (image, text), score in zip(PAIRS, scored["score"], strict=True):
        pixels = model.preprocess(Image.open(photos / image).convert("RGB"))
        one = model.match(model.encode_pictures([pixels]), model.tokenize([text]))
        assert score == pytest.approx(one[0])
    assert "score" not in frame


def test_imported_embeddings_score_the_pairs_of_a_table(photos, cache):
    folder = photos.parent / "questions"
    questions(f"csv:{photos / 'captions.csv'}", "lgip", folder, vlprobe.storage.store.Store(cache))
    images, texts = vectors(folder)
    np.save(folder / "pictures.npy", images)
    np.save(folder / "texts.npy", texts)
    call(cache, "score", str(photos / "captions.csv"), "--model", f"embeddings:{folder}")
    written = rows_of(photos / "captions-scored.csv")
    assert [float(row["score"]) for row in written] == pytest.approx(expected(photos), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("picture,caption\n0.png,A dog.\n", "does not match any layout"),
        ("image,words\n0.png,A dog.\n", "does not match any layout"),
        ("image,caption\n,A dog.\n", "row 1, column 'image'"),
        ("image,caption\n0.png,\n", "row 1, column 'caption'"),
        ('image,caption\n0.png,"[""a"", ""b""]"\n', "expected one text per row"),
        (
            "image,caption,Score\n0.png,A dog.,1\n",
            "already has a column 'score'. Choose another name",
        ),
        ("image,caption\n", "has no rows"),
        ("image,caption\n0.png,a,b\n", "line 2"),
        ("image,caption\n../../etc/nothing.png,A dog.\n", "have no picture"),
    ],
)
def test_a_table_that_cannot_be_scored_is_refused_in_one_line(photos, cache, text, message):
    table = photos / "bad.csv"
    table.write_text(text, encoding="utf-8")
    answer = call(cache, "score", str(table), "--model", MODEL, code=1)
    assert len(answer.stderr.splitlines()) == 1 and message in answer.stderr
    assert not (photos / "bad-scored.csv").exists()


def test_invalid_outputs_models_and_tables_are_refused_in_one_line(photos, cache):
    table = str(photos / "captions.csv")
    exists = call(cache, "score", table, "--model", MODEL, "--out", table, code=1)
    assert "already exists. Choose another file name" in exists.stderr
    other = call(cache, "score", table, "--model", MODEL, "--out", "x.parquet", code=1)
    assert "must end in '.csv'" in other.stderr
    assert "Did you mean" in call(cache, "score", table, "--model", "demo:softmx", code=1).stderr
    assert (
        "not a table that can be scored"
        in call(cache, "score", f"{table}+available", "--model", MODEL, code=1).stderr
    )
    (photos / "pairs.json").write_text('[{"image": "0.png", "caption": "A dog."}]')
    form = call(cache, "score", str(photos / "pairs.json"), "--model", MODEL, code=1)
    assert "Cannot add a column" in form.stderr
    frame = pd.DataFrame({"image": ["0.png", "gone.png"], "caption": ["A dog.", "A cat."]})
    with pytest.raises(InvalidInput, match=r"Row 1 .*gone\.png' does not exist"):
        vlprobe.score(frame, MODEL, folder=photos, cache=cache)
    with pytest.raises(vlprobe.errors.NotFound, match="Did you mean 'caption'"):
        vlprobe.score(frame, MODEL, caption="captoin", folder=photos, cache=cache)
    with pytest.raises(InvalidInput, match="has a column 'image'"):
        vlprobe.score(frame, MODEL, column="image", folder=photos, cache=cache)
    with pytest.raises(InvalidInput, match="expected a path in 'image'"):
        vlprobe.score(frame.assign(image=[1, 2]), MODEL, folder=photos, cache=cache)


class TextOnly(Head):
    name = "texts"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(embeds_texts=True, dim=4)


class Chooser(TextOnly):
    name = "hf-gen:llava+choice"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(answers_cases=True, chooses=True, n_orders=2)


def test_a_text_encoder_and_a_choosing_model_are_refused_by_score(photos, cache):
    frame = pd.DataFrame({"image": ["0.png"], "caption": ["A dog."]})
    with pytest.raises(InvalidInput, match="'texts' does not accept pictures"):
        vlprobe.score(frame, TextOnly(), folder=photos, cache=cache)
    with pytest.raises(InvalidInput, match=r"only chooses between two captions.* Remove \+choice"):
        vlprobe.score(frame, Chooser(), folder=photos, cache=cache)
    with pytest.raises(InvalidInput, match=r"only chooses between two captions.* Remove \+choice"):
        Player(Chooser())
