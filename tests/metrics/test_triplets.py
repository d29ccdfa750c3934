"""VISLA's metrics against hand-made triplets and a plain loop."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.scoring.test_cases import PairsOnly
from vlprobe import registry
from vlprobe.metrics import triplets
from vlprobe.metrics.judge import Judge
from vlprobe.runs import case_workers
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.types import Item, Run

BY_NAME = {metric.name: metric.value for metric in triplets.METRICS}


def test_both_captions_must_beat_the_negative_strictly():
    rows = pd.DataFrame(
        [[0.3, 0.4, 0.2], [0.3, 0.2, 0.2], [0.1, 0.4, 0.2]],
        columns=["score_0", "score_1", "score_2"],
    )
    assert triplets.i2t_accuracy(rows).tolist() == [1, 0, 0]
    assert BY_NAME["i2t_p1_n"](rows).tolist() == [1, 1, 0]
    assert BY_NAME["i2t_p2_n"](rows).tolist() == [1, 0, 1]


def test_text_measures_agree_with_a_plain_loop():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(0, 3, (300, 3)) / 2, columns=["text_01", "text_02", "text_12"])
    loop = [
        (p1p2 > p1n and p1p2 > p2n, p1p2 > p2n, p1p2 > p1n)
        for p1p2, p1n, p2n in rows.itertuples(index=False)
    ]
    for column, name in enumerate(("t2t_accuracy", "t2t_p1_n", "t2t_p2_n")):
        assert BY_NAME[name](rows).tolist() == [float(line[column]) for line in loop]


def test_random_models_score_at_the_declared_chance_level():
    rng = np.random.default_rng(1)
    pairs = [f"{kind}_{pair}" for kind in ("text", "overlap") for pair in ("01", "02", "12")]
    names = ["score_0", "score_1", "score_2", *pairs]
    rows = pd.DataFrame(rng.normal(size=(40_000, 9)), columns=names)
    for metric in triplets.METRICS:
        assert metric.value(rows).mean() == pytest.approx(metric.chance, abs=0.01), metric.name


def test_jaccard_is_the_shared_over_all_words():
    assert triplets.jaccard(frozenset("abc"), frozenset("bcd")) == 0.5
    assert np.isnan(triplets.jaccard(frozenset(), frozenset()))


def test_word_overlap_is_measured_even_if_the_model_embeds_no_texts(tmp_path):
    texts = [
        ("a dog runs", "a dog is running", "the cats sleep"),
        ("a dog bites a man", "he is bitten", "a man bites"),
    ]
    items = [
        Item(str(number), None, (one, two), foils=(three,))
        for number, (one, two, three) in enumerate(texts)
    ]
    probe = registry.load_probe("visla")
    run = Run("pairs", "d", "made", "e", "visla", probe.version, ())
    (cases, _), *_ = case_workers.chunks(items, probe, run, 1)
    scores = probe.scorer(CachedEncoder(PairsOnly()), run, items, None, tmp_path)(
        pa.Table.from_batches([cases])
    )
    rows = (
        cases.select(["kind", "subtype", "rule"])
        .to_pandas()
        .assign(**scoring_cases.score_columns(scores))
    )
    judge = Judge(probe.metrics, 2, [])
    judge.add(rows.assign(item_code=[0, 1], group_code=[0, 1]))
    found = judge.estimates().query("by == 'all' and averaging == 'macro'").set_index("metric")
    shared = []
    for one, two, three in texts:
        bags = [set(text.split()) for text in (one, two, three)]
        alike = [
            len(x & y) / len(x | y)
            for x, y in ((bags[0], bags[1]), (bags[0], bags[2]), (bags[1], bags[2]))
        ]
        shared.append(alike[0] > max(alike[1:]))
    assert shared == [True, False]
    assert found.loc["words_t2t_accuracy", "value"] == np.mean(shared)
    assert np.isnan(found.loc["t2t_accuracy", "value"])
