"""Figure 11 of RoCOCO, compared with loops over single captions and an enumeration of all possible votes."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from tests.conftest import call
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, substitution
from vlprobe.probes.caption_foils import load_voter, text_encoder
from vlprobe.runs.consensus import consensus
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

MODELS = ("control:random", "control:constant")


def bag_of_words(salt: int):
    """Return a bag-of-words encoder with a random direction for each word."""

    def encode(texts):
        rows = []
        for text in texts:
            words = text.lower().strip(".").split()
            drawn = [np.random.default_rng([salt, *word.encode()]).normal(size=8) for word in words]
            row = np.ones(8) + np.sum(drawn, axis=0)
            rows.append(row / np.linalg.norm(row))
        return np.array(rows)

    return encode


@pytest.fixture
def encoders():
    return [bag_of_words(salt) for salt in (1, 2, 3)]


def items_of(dataset, tmp_path):
    return {
        item.id: item.captions for item in registry.load_dataset(dataset, tmp_path / "cache").items
    }


@pytest.mark.parametrize("all_words", [False, True])
def test_votes_equal_a_loop_over_single_captions_and_encoders(encoders, tiny, tmp_path, all_words):
    captions = items_of(tiny, tmp_path)
    votes_of = Counter()
    n_single = 0
    for text in itertools.chain(*captions.values()):
        spans = [(noun.start, noun.end) for noun in substitution.sources(text)]
        spans = influence.word_spans(text) if all_words else spans
        if not spans:
            continue
        n_single += len(spans) == 1
        named = Counter()
        for encode in encoders:
            rest = {start: influence.without(text, start, end) for start, end in spans}
            moved = {
                start: 1 - float(np.dot(encode([text])[0], encode([part])[0]))
                for start, part in rest.items()
            }
            named[min(moved, key=moved.get)] += 1
        votes_of[max(named.values())] += 1
    found = consensus(captions, encoders, all_words=all_words)
    counted = dict(zip(found.agreement["encoders"], found.agreement["captions"], strict=True))
    assert counted == {votes: votes_of[votes] for votes in (1, 2, 3)}
    assert (found.n_captions, found.n_single) == (votes_of.total(), n_single)
    assert found.agreement["by_chance"].sum() == pytest.approx(1)
    assert found.share_of_two == pytest.approx((votes_of[2] + votes_of[3]) / votes_of.total())


def test_the_nouns_are_those_that_a_run_with_these_encoders_deletes(encoders, tiny, tmp_path):
    captions = items_of(tiny, tmp_path)
    taken = Counter()
    for item_id, texts in captions.items():
        spans = [[(noun.start, noun.end) for noun in substitution.sources(text)] for text in texts]
        scores = influence.influence(texts, spans, encoders)
        altered, _ = substitution.delete(texts, item_id, "low-ei", seed=7, influence=scores)
        taken.update(each.edit.source.lower() for each in altered if each)
    words = consensus(captions, encoders, seed=7).source_words
    assert dict(zip(words["word"], words["captions"], strict=True)) == dict(taken)
    assert words["captions"].is_monotonic_decreasing
    assert words["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize(("n_words", "n_encoders"), [(1, 4), (2, 3), (3, 4), (5, 2), (4, 5)])
def test_agreement_by_chance_equals_an_enumeration_of_all_votes(n_words, n_encoders):
    ways = Counter(
        max(Counter(votes).values())
        for votes in itertools.product(range(n_words), repeat=n_encoders)
    )
    expected = {votes: count / n_words**n_encoders for votes, count in sorted(ways.items())}
    assert influence.agreement_by_chance(n_words, n_encoders) == pytest.approx(expected)


def test_one_encoder_and_captions_without_a_noun_are_refused_in_one_line(encoders):
    with pytest.raises(InvalidInput, match="between two or more encoders, but there is only one"):
        consensus({"a": ("A dog.",)}, encoders[:1])
    with pytest.raises(InvalidInput, match=r"No caption has a noun"):
        consensus({"a": ("It is very nice.",), "b": ()}, encoders)


def test_influence_prints_the_votes_or_the_words_and_the_papers_share(tiny, tmp_path):
    words = [tmp_path / "cache", "influence", tiny, "--format", "json"]
    models = [word for name in MODELS for word in ("--model", name)]
    done = call(*words, *models, "--limit", "4")
    rows = json.loads(done.stdout)
    assert [row["encoders"] for row in rows] == [1, 2]
    assert sum(row["captions"] for row in rows) == 8
    assert "The paper reports over 70% for four models on COCO." in done.stderr
    frequent = call(*words, *models, "--words", "2", "--seed", "1")
    assert len(json.loads(frequent.stdout)) == 2
    call(*words, *models, "--all-words", "--item", "0.png")
    refused = call(*words, "--model", MODELS[0], code=1)
    assert "between two or more encoders" in refused.stderr


def test_imported_embeddings_vote_like_the_model_that_computed_them(tiny, tmp_path):
    out, store = tmp_path / "out", Store(tmp_path / "cache")
    words = [store.root, "influence", tiny, "--format", "json"]
    assert "embeddings:" in call(*words, "--texts", str(out)).stderr
    texts = [json.loads(line)["text"] for line in (out / "texts.jsonl").read_text().splitlines()]
    assert len(texts) == len(set(texts))
    model = registry.load_model(MODELS[0])
    np.save(out / "texts.npy", model.encode_texts(model.tokenize(texts)))
    votes = [
        call(*words, "--model", MODELS[1], "--model", name).stdout
        for name in (MODELS[0], f"embeddings:{out}")
    ]
    assert votes[0] == votes[1] and json.loads(votes[0])
    options = {"policies": ["rand-voca"], "pictures": []}
    texts_of_cases = []
    for voter in (MODELS[0], f"embeddings:{out}"):
        request = Request(
            ("control:constant",), tiny, "rococo", options | {"influence": [voter]}, examine=False
        )
        manifest = execute(request, store)[0]
        cases = store.cases(manifest["case_key"]).table("cases", ["texts"])["texts"].to_pylist()
        texts_of_cases.append(cases)
    assert texts_of_cases[0] == texts_of_cases[1]


def test_embeddings_that_lack_a_text_of_a_vote_are_refused_in_one_line(tmp_path):
    np.save(tmp_path / "texts.npy", np.eye(1, 4, dtype=np.float32))
    (tmp_path / "texts.jsonl").write_text('{"id": "A dog."}\n')
    embed = text_encoder(load_voter(f"embeddings:{tmp_path}"))
    assert embed(["A dog."]).tolist() == [[1, 0, 0, 0]]
    with pytest.raises(InvalidInput, match=r"lacks 1 of 2 texts \(first: text 'A cat.'"):
        embed(["A dog.", "A cat."])
