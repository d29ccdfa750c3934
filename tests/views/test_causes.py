"""Where the difference was missed: a tower that was built to miss it, and a second computation without SQL."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import tiers
from vlprobe import views
from vlprobe.errors import NotFound
from vlprobe.models.controls import ControlEncoder
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.views import causes
from vlprobe.views.filter import Filter

COLORS = {
    "red": (220, 20, 20),
    "green": (20, 200, 20),
    "blue": (20, 20, 220),
    "gold": (220, 200, 10),
}
PAIRS = list(itertools.permutations(COLORS, 2))
UNREAD = {"maroon": "red", "scarlet": "red"}  # words that the text tower reads as "red"
SWAPPED = {"green": "blue", "blue": "green"}
SIDE = 16
MODEL = "towers:1"


class Towers(ControlEncoder):
    """Both towers map to colors. The text tower ignores the words UNREAD, the image tower the lower half."""

    dim = 3

    def __init__(self, name: str = MODEL) -> None:
        super().__init__("random")
        self.name = self.digest = name

    def preprocess(self, image: Image.Image) -> np.ndarray:
        return np.asarray(image)[: SIDE // 2].reshape(-1, 3).mean(0)

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        return unit(pixels)

    def tokenize(self, texts) -> np.ndarray:
        tokens = []
        for text in texts:
            words = re.findall(r"\w+", text)
            color = next(word for word in words if word in COLORS or word in UNREAD)
            color = UNREAD.get(color, color)
            color = SWAPPED.get(color, color) if "swapped" in words else color
            tokens.append(COLORS[color])
        return np.array(tokens, dtype=np.int64)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        return unit(tokens)


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def write_pairs(folder: Path) -> tuple[str, list[str]]:
    """Write forty pairs: ten missed by the text tower, ten by the image tower, ten matched wrongly, ten right."""
    folder.mkdir()
    rows, expected = [], []

    def add(number: int, cause: str, colors, words, note: str = "") -> None:
        names = []
        for side, (upper, lower) in enumerate(colors):
            image = Image.new("RGB", (SIDE, SIDE), COLORS[upper])
            image.paste(COLORS[lower], (0, SIDE // 2, SIDE, SIDE))
            names.append(f"{number}-{side}.png")
            image.save(folder / names[-1])
        captions = [f"a {word} thing {note} {number}" for word in words]
        rows.append(
            dict(
                zip(("image0", "image1", "caption0", "caption1"), [*names, *captions], strict=True)
            )
        )
        expected.append(cause)

    for number in range(10):
        first, second = PAIRS[number]
        add(number, "words", [("red", "red"), ("gold", "gold")], ["maroon", "scarlet"])
        add(10 + number, "picture", [("red", first), ("red", second)], [first, second])
        add(20 + number, "match", [("green", "red"), ("blue", "red")], ["green", "blue"], "swapped")
        add(30 + number, "match", [(first, "red"), (second, "red")], [first, second])
    (folder / "pairs.json").write_text(json.dumps(rows))
    return f"pairs:{folder / 'pairs.json'}", expected


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory):
    """Return a store with the answers of `Towers`, its question set, and the built-in cause of each case."""
    folder = tmp_path_factory.mktemp("towers")
    data, expected = write_pairs(folder / "pairs")
    store = Store(folder / "cache")
    request = Request((MODEL,), data, "eqben", examine=False)
    (manifest,) = execute(request, store, models={MODEL: Towers()})
    return views.runs.question_set(store, manifest["case_key"]), expected


def test_the_tower_that_was_built_to_miss_a_difference_is_named(towers):
    question_set, expected = towers
    table = causes.causes(question_set, MODEL, "pair")
    assert table["cause"].tolist() == expected
    assert table["fooled"].tolist() == [True, True, True, False] * 10
    counts = causes.counts(question_set, "pair").set_index("cause")
    assert counts["n_fooled"].to_dict() == {
        **{"words": 10, "picture": 10, "both": 0, "match": 10, "unknown": 0}
    }
    assert counts["n_cases"].sum() == 40 and counts["n_cases"]["match"] == 20


def test_the_wall_shows_the_cases_of_one_cause_and_the_facet_counts_them(towers):
    question_set, expected = towers
    case_filter = Filter(MODEL, "pair", unseen_by=("picture",))
    table, total = views.cases.failures(question_set, case_filter)
    assert total == 10
    assert {expected[case] for case in table["case"]} == {"picture"}
    facets = {each.name: each for each in views.facets.facets(question_set, case_filter)}
    rows = {row.value: (row.n_fooled, row.n_asked) for row in facets["unseen_by"].rows}
    assert rows == {"words": (10, 10), "picture": (10, 10), "match": (10, 20)}
    both = case_filter.with_values("unseen_by", ["words", "picture"])
    assert len(views.cases.passing(question_set, both)[0]) == 20
    assert Filter.parse(**both.words()) == both
    with pytest.raises(NotFound, match="No cause named 'luck'"):
        Filter(MODEL, "pair", unseen_by=("luck",))


def test_each_cause_has_a_sentence_and_a_right_answer_has_no_sentence(towers):
    question_set, _ = towers
    table = causes.causes(question_set, MODEL, "pair")
    sentences = [causes.sentence(table, case, "Towers") for case in table.index]
    assert [bool(text) for text in sentences] == table["fooled"].tolist()
    assert sentences[0].startswith(
        "The captions look alike to Towers's text encoder: their embeddings are closer (cosine 1.000)"
    )
    assert sentences[1].startswith("The pictures look alike to Towers's image encoder")
    assert sentences[2].endswith("but matches them wrongly.")
    line = (
        "Where the difference was missed, as shares of the failures: words 33.3%, picture 33.3%, "
        "match 33.3%."
    )
    assert causes.describe(table) == line


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return shipped.StoreAboveShipped(tmp_path_factory.mktemp("causes"), shipped.FOLDER)


@pytest.mark.parametrize(
    ("dataset", "kind", "has_twins"),
    tiers(
        [("demo", "flip", False), ("demo-pairs", "pair", True), ("demo-triplets", "i2t", False)],
        [("demo", "flip", False), ("demo-pairs", "pair", True)],
    ),
)
def test_causes_match_a_loop_over_the_stored_cosines(bundled, dataset, kind, has_twins):
    keys = {
        row.dataset: row.case_key
        for row in views.runs.question_set_rows(bundled)
        if row.probe in ("lgip", "eqben", "visla")
    }
    question_set = views.runs.question_set(bundled, keys[dataset])
    model = "demo:softmax"
    cases = bundled.cases(question_set.key).table("cases", ["case", "kind", "roles"]).to_pandas()
    cases = cases.loc[cases["kind"] == kind]
    answers = bundled.run(question_set.run(model).key).table("scores").to_pandas().loc[cases.index]
    texts = []
    for roles, cosines in zip(cases["roles"], answers["text_scores"], strict=True):
        wrong = list(roles).index("different")
        pairs = itertools.combinations(range(len(roles)), 2)
        texts.append(max(each for pair, each in zip(pairs, cosines, strict=True) if wrong in pair))
    unmoved = np.array(texts) >= np.quantile(np.array(texts, float), 0.75)
    expected = np.where(unmoved, "words", "unknown").astype(object)
    if has_twins:
        similarity = answers["picture_similarity"].to_numpy(float)
        still = similarity >= np.quantile(similarity, 0.75)
        expected[:] = np.select(
            [unmoved & still, unmoved, still], ["both", "words", "picture"], "match"
        )
    table = causes.causes(question_set, model, kind)
    assert table["cause"].tolist() == expected.tolist()
    assert table.index.tolist() == cases["case"].tolist()
    np.testing.assert_allclose(table["text"], texts)


def test_answers_without_towers_and_small_sets_have_no_known_cause(towers, tmp_path, monkeypatch):
    question_set, _ = towers
    published = shipped.StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER)
    row = next(row for row in views.runs.question_set_rows(published) if "VALSE" in row.dataset)
    assert causes.counts(views.runs.question_set(published, row.case_key), "foil").empty
    run, answers = question_set.runs[0], question_set.answers(MODEL)
    assert "text_scores" in causes.answer_columns(run, answers)
    matching_head = replace(run, score_type="logit")
    assert "text_scores" not in causes.answer_columns(matching_head, answers)
    monkeypatch.setattr(causes, "FEWEST", 41)
    table = causes.causes(question_set, MODEL, "pair")
    assert set(table["cause"]) == {"unknown"} and not causes.describe(table)
