"""Hard positives: cases from triplets, files and rules, and metrics compared with an enumeration of score orders."""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vlprobe.metrics import hard_positives
from vlprobe.metrics.judge import Judge
from vlprobe.perturb import lgip
from vlprobe.probes import hardpositives
from vlprobe.types import Item, Picture

PROBE = hardpositives.PROBE
IMAGE = Picture(Path("a.png"))
CAPTIONS = ("A man riding a red horse on a beach.", "A man rides a horse.")


def cases_of(item: Item, options: dict | None = None) -> list[tuple[str, ...]]:
    cases, _ = PROBE.cases(item, options or {"edits": ""}, 42)
    assert {case.roles for case in cases} <= {("original", "same", "different")}
    return [case.texts for case in cases]


def test_a_triplet_keeps_the_caption_order_of_its_dataset():
    triplet = Item(
        "a", IMAGE, ("A dog is chased by a cat.", "A cat chases a dog."), {}, ("A cat.",)
    )
    assert cases_of(triplet) == [(*triplet.captions, *triplet.foils)]


def test_an_item_without_a_picture_or_a_second_caption_is_counted():
    assert PROBE.cases(Item("a", None, CAPTIONS), {}, 42) == ([], {"no picture": 1})
    one = Item("a", IMAGE, CAPTIONS[:1], {}, ("A cat.",))
    assert PROBE.cases(one, {}, 42) == ([], {"one true caption": 1})


def test_rules_pair_each_wrong_caption_with_a_paraphrase_of_its_caption():
    item = Item("a", IMAGE, CAPTIONS)
    edits = lgip.edits(CAPTIONS, "a", kinds=("paraphrase", "flip", *lgip.ALL_KINDS[3:7])).edits
    same = [{text for text, edit in of if edit.kind == "paraphrase"} for of in edits]
    wrong = [{text for text, edit in of if edit.kind == "flip"} for of in edits]
    texts = cases_of(item)
    for caption, positive, negative in texts:
        number = CAPTIONS.index(caption)
        assert positive in same[number] and negative in wrong[number]
    assert len(texts) == sum(map(len, wrong)) > 4
    subtypes = {case.edit.subtype for case in PROBE.cases(item, {}, 42)[0] if case.edit}
    assert {"color", "negation"} <= subtypes
    assert cases_of(item) == texts


def test_an_edits_file_pairs_the_nth_edits_of_both_meanings(tmp_path: Path):
    lines = [("A man rides.", "same"), ("A man eats.", "different"), ("A man walks.", "different")]
    rows = [{"caption": CAPTIONS[1], "text": text, "meaning": meaning} for text, meaning in lines]
    file = tmp_path / "edits.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    options = PROBE.pin({"edits": str(file)}, tmp_path)
    item = Item("a", IMAGE, CAPTIONS)
    assert cases_of(item, dict(options)) == [(CAPTIONS[1], "A man rides.", "A man eats.")]
    assert PROBE.captions_of_rules(item, options) == ()
    assert PROBE.pin({"edits": ""}, tmp_path) == {}


def test_metrics_equal_an_enumeration_of_score_orders_and_ties_are_failures():
    scores = list(itertools.product((0.0, 0.5, 1.0), repeat=3))
    rows = pd.DataFrame(scores, columns=["score_0", "score_1", "score_2"])
    by_hand = {
        "original_accuracy": [c > n for c, p, n in scores],
        "augmented_accuracy": [n < min(c, p) for c, p, n in scores],
        "brittleness": [min(c, p) <= n <= max(c, p) for c, p, n in scores],
    }
    at_best = {
        "original_accuracy": [c >= n for c, p, n in scores],
        "augmented_accuracy": [n <= min(c, p) for c, p, n in scores],
        "brittleness": [not (n <= min(c, p) or n >= max(c, p)) for c, p, n in scores],
    }
    rows["margin"] = hardpositives._margins(rows)
    codes = {
        "item_code": range(len(rows)),
        "group_code": range(len(rows)),
        "subtype": "",
        "rule": "",
    }
    judge = Judge(PROBE.metrics, len(rows), ())
    judge.add(rows.assign(kind=hard_positives.KIND, **codes))
    table = judge.estimates()
    for row in table[(table["by"] == "all") & (table["averaging"] == "micro")].itertuples():
        assert row.value == pytest.approx(np.mean(by_hand[row.metric]))
        pairs = zip(by_hand[row.metric], at_best[row.metric], strict=True)
        assert row.ties == sum(strict != lenient for strict, lenient in pairs), row.metric


def test_a_random_model_gets_the_declared_chance():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(40_000, 3)), columns=["score_0", "score_1", "score_2"])
    for metric in PROBE.metrics:
        assert metric.value(rows).mean() == pytest.approx(metric.chance, abs=0.01), metric.name


def test_an_unknown_score_makes_only_the_metrics_that_need_it_unknown():
    rows = pd.DataFrame({"score_0": [0.5], "score_1": [np.nan], "score_2": [0.4]})
    values = {metric.name: metric.value(rows)[0] for metric in PROBE.metrics}
    assert values["original_accuracy"] == 1
    assert np.isnan([values["augmented_accuracy"], values["brittleness"]]).all()
