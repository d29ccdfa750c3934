"""The probe of changed pictures: its cases, its dropped changes, and its numbers compared with a second computation."""

from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.conftest import draw_fewer, estimates_of, image_vector, text_vector
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.metrics import picture_changes as metrics
from vlprobe.perturb import picture_changes
from vlprobe.probes.pictures import PROBE, _different_words
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.scoring.pictures import open_picture
from vlprobe.storage.store import Store
from vlprobe.types import Item, Picture

OPTIONS = {"changes": list(picture_changes.KINDS), "severities": [3]}


@pytest.fixture
def photograph(tmp_path: Path) -> Path:
    path = tmp_path / "dog.png"
    pixels = np.random.RandomState(0).randint(0, 255, (60, 80, 3)).astype("uint8")
    Image.fromarray(pixels).save(path)
    return path


def kinds_of(item: Item, options: dict = OPTIONS) -> tuple[dict[str, str], Counter]:
    """Return the kind of case per change of an item, and the counts of dropped changes."""
    cases, dropped = PROBE.cases(item, options, 7)
    return {case.edit.subtype: case.edit.kind for case in cases}, Counter(dropped)


def test_each_change_is_a_case_with_the_picture_and_its_changed_copy(photograph: Path):
    item = Item("1", Picture(photograph), ("A dog runs.",), foils=("A cat runs.",))
    cases, dropped = PROBE.cases(item, OPTIONS, 7)
    assert [case.edit.subtype for case in cases] == list(picture_changes.KINDS) and not dropped
    for case in cases:
        assert case.images[0] == item.image and case.texts == ("A dog runs.", "A cat runs.")
        name = case.images[1].name
        assert Picture.from_name(name) == case.images[1]
        assert open_picture(case.images[1]).tobytes() != open_picture(case.images[0]).tobytes()
    words = {case.edit.subtype: case.images[1].change.word for case in cases}
    assert (words["false-word"], words["true-word"], words["jpeg"]) == ("cat", "dog", "")


def test_only_a_false_word_counts_as_a_typographic_attack(photograph: Path):
    kinds, _ = kinds_of(Item("1", Picture(photograph), ("A dog.",), foils=("A cat.",)))
    assert [change for change, kind in kinds.items() if kind == metrics.WRITTEN] == ["false-word"]


def test_without_a_foil_the_wrong_caption_is_a_flip(photograph: Path):
    cases, _ = PROBE.cases(Item("1", Picture(photograph), ("Two dogs run.",)), OPTIONS, 7)
    assert {case.texts[0] for case in cases} == {"Two dogs run."}
    assert {case.texts[1] for case in cases} != {"Two dogs run."}


def test_changes_that_may_contradict_a_caption_are_counted(photograph: Path):
    item = Item(
        "1", Picture(photograph), ("A red dog on the left.",), foils=("A blue dog on the left.",)
    )
    kinds, dropped = kinds_of(item)
    assert not {"grayscale", "hue", "brightness", "flip"} & kinds.keys()
    assert dropped["flip: may contradict the caption"] == 1


def test_a_change_that_changes_no_pixel_is_counted(tmp_path: Path):
    gray = tmp_path / "gray.png"
    Image.fromarray(np.tile(np.arange(60, dtype="uint8"), (60, 1))).convert("RGB").save(gray)
    kinds, dropped = kinds_of(Item("1", Picture(gray), ("A dog.",), foils=("A cat.",)))
    assert "grayscale" not in kinds and dropped["grayscale: changes no pixel"] == 1
    assert "jpeg" in kinds


def test_items_without_a_picture_or_a_wrong_caption_are_counted(photograph: Path):
    assert PROBE.cases(Item("1", None, ("A dog.",)), OPTIONS, 7) == ([], {"no picture": 1})
    cases, dropped = PROBE.cases(Item("1", Picture(photograph), ("Hm.",)), OPTIONS, 7)
    assert not cases and dropped == {"no caption that can be made wrong": 1}


@pytest.mark.parametrize(
    ("true_caption", "wrong_caption", "words"),
    [
        ("A red dog.", "A blue dog.", ("red", "blue")),
        ("A dog runs", "A dog and a cat runs", ("", "and a cat")),
        ("A cat and a dog", "A dog and a cat", ("cat dog", "dog cat")),
    ],
)
def test_the_differing_words_of_two_captions_are_found(true_caption, wrong_caption, words):
    assert _different_words(true_caption, wrong_caption) == words


def test_the_numbers_equal_those_computed_with_the_model_directly(store: Store, monkeypatch):
    draw_fewer(monkeypatch, 6)  # drawing all 500 takes 10 s
    options = {"changes": ["pixelate", "rotation", "false-word"], "severities": [4]}
    request = Request(("demo:weak",), "demo", "pictures", options, examine=False)
    manifest = execute(request, store)[0]
    entry = store.run(manifest["key"])
    cases = store.cases(manifest["case_key"]).table("cases").to_pylist()
    rows = entry.table("scores").to_pylist()
    model = registry.load_model("demo:weak")
    vector = cache(partial(image_vector, model))
    for case, row in zip(cases, rows, strict=True):
        vectors = np.stack([vector(name) for name in case["images"]])
        texts = model.encode_texts(model.tokenize(case["texts"]))
        expected = (vectors @ texts.T).reshape(-1)
        assert np.allclose(row["scores"], expected, atol=1e-5)
        assert row["margin"] == pytest.approx(expected[2] - expected[3], abs=1e-5)
    is_changed = [case["kind"] == metrics.CHANGED for case in cases]
    scores = np.array([row["scores"] for row in rows])[is_changed]
    before, after = scores[:, 0] > scores[:, 1], scores[:, 2] > scores[:, 3]
    estimates = estimates_of(store, manifest, averaging="micro")["value"]
    for name, value in {
        "picture_positive_rate": after.mean(),
        "unchanged_positive_rate": before.mean(),
        "decision_flips": (before != after).mean(),
        "picture_invariance_error": np.abs(scores[:, 0] - scores[:, 2]).mean(),
    }.items():
        assert estimates[name] == pytest.approx(value, abs=1e-6), name


def naive_rank(scores: np.ndarray, right: list[int]) -> int:
    """Return the rank of the best right candidate by counting the others that score at least as high."""
    best = max(scores[number] for number in right)
    return 1 + sum(score >= best for number, score in enumerate(scores) if number not in right)


def test_searches_with_changed_pictures_equal_plain_rankings(store: Store, monkeypatch):
    composed = Counter()
    compose = pictures.compose

    def counting(picture: Picture, contents):
        composed[picture.name] += 1
        return compose(picture, contents)

    monkeypatch.setattr(pictures, "compose", counting)
    draw_fewer(monkeypatch, 14)  # drawing all 500 takes 10 s
    options = {"changes": ["pixelate", "gaussian-noise"], "severities": [5], "search": True}
    request = Request(("demo:weak",), "demo", "pictures", options, limit=14, examine=False)
    manifest = execute(request, store)[0]
    changed_names = [name for name in composed if name.startswith("{")]
    assert {composed[name] for name in changed_names} == {1}  # decoded and encoded once
    monkeypatch.setattr(pictures, "compose", compose)
    entry = store.run(manifest["key"])
    cases = store.cases(manifest["case_key"]).table("cases").to_pylist()
    rows = entry.table("scores").to_pandas()
    model = registry.load_model("demo:weak")
    items = registry.load_dataset("demo", store.root).items
    captions = [text for item in items for text in item.captions]
    text_vectors = model.encode_texts(model.tokenize(captions))
    vector = cache(partial(image_vector, model))
    changed = {(case["item"], case["rule"]): case["images"][1] for case in cases}
    overlaps, losses = [], []
    for case, row in zip(cases, rows.to_dict("records"), strict=True):
        number = next(n for n, item in enumerate(items) if item.id == case["item"])
        own_captions = [n for n, text in enumerate(captions) if text in items[number].captions]
        both = [text_vectors @ vector(name) for name in case["images"]]
        query = text_vector(model, case["texts"][0])
        galleries = [
            np.stack([vector(item.image.name) for item in items]),
            np.stack([vector(changed.get((i.id, case["rule"]), i.image.name)) for i in items]),
        ]
        ranked = [gallery @ query for gallery in galleries]
        ranks = (
            [naive_rank(s, own_captions) for s in both],
            [naive_rank(s, [number]) for s in ranked],
        )
        assert ranks[0] == [row["i2t_rank_clean"], row["i2t_rank_changed"]]
        assert ranks[1] == [row["t2i_rank_clean"], row["t2i_rank_changed"]]
        first = [set(np.argsort(-scores)[:10]) for scores in ranked]
        overlaps.append(len(first[0] & first[1]) / 10)
        assert row["t2i_overlap"] == pytest.approx(overlaps[-1])
        losses.append([sum(rank <= k for k in (1, 5, 10)) for rank in ranks[1]])
    by_metric = estimates_of(store, manifest, averaging="micro")["value"]
    clean, after = np.array(losses).T
    rules = np.array([case["rule"] for case in cases])
    impacts = {rule: 1 - after[rules == rule].sum() / clean[rules == rule].sum() for rule in rules}
    assert by_metric["changed_t2i_mmi"] == pytest.approx(np.mean([impacts[r] for r in rules]))
    assert by_metric["changed_t2i_overlap"] == pytest.approx(np.mean(overlaps))
    is_kept = rows["t2i_rank_clean"] <= 5
    assert by_metric["changed_t2i_r5_kept"] == pytest.approx(
        (rows["t2i_rank_changed"][is_kept] <= 5).mean()
    )
    curve = {
        row["slice"]
        for row in entry.table("estimates").to_pylist()
        if row["metric"] == "changed_t2i_mmi" and row["by"] == "strength_bin"
    }
    assert curve == {"severity-5"}


def test_without_searches_the_key_and_the_metrics_of_a_run_are_unchanged():
    off = {**OPTIONS, "search": False}
    assert PROBE.pin(off, Path()) == PROBE.pin(OPTIONS, Path()) == OPTIONS
    assert PROBE.metrics_of(off) == PROBE.metrics


def test_the_search_metrics_give_the_values_of_the_worked_example():
    rows = pd.DataFrame(
        {"rule": "fog:3", "i2t_rank_clean": [1, 1, 7, 30], "i2t_rank_changed": [1, 4, 12, 8]}
    )
    rows = rows.assign(t2i_rank_clean=1, t2i_rank_changed=1)
    means = metrics.survey_search([rows[:2], rows[2:]])["clean_recall_sums"]
    assert means["i2t", "fog:3"] == 7 / 4
    rows["i2t_clean_recall_sum"] = means["i2t", "fog:3"]
    by_name = {metric.name: metric for metric in metrics.SEARCH_METRICS}
    for name, expected in {"r1_kept": 0.5, "r10_kept": 2 / 3, "mmi": 1 / 7}.items():
        metric = by_name[f"changed_i2t_{name}"]
        weights = metric.weight(rows) if metric.weight else None
        assert np.average(metric.value(rows), weights=weights) == pytest.approx(expected)


def test_a_severity_out_of_range_is_refused_before_the_dataset_is_read(store: Store):
    options = {"severities": [3, 7]}
    request = Request(("demo:weak",), "coco:/nothing/is/here", "pictures", options)
    with pytest.raises(InvalidInput, match=r"^Severity 7 is out of range\. .* from 1 to 5\.$"):
        execute(request, store)
