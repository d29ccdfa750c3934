"""The bundled answers of real models: vlprobe reproduces every number that their authors published.

The tables are those of ../shared/data/real/README.md; the tests read the bundled store only.
"""

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.conftest import question_set_of
from tools import ship_published
from vlprobe import registry, views
from vlprobe.datasets import bundled, credits, photographs
from vlprobe.models.published import NOTE
from vlprobe.runs import verify
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures, thumbnails
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.views import story
from vlprobe.views.filter import Filter
from vlprobe.views.paired_outcomes import bucket

STORE = Store(shipped.PUBLISHED_FOLDER)
SUBSETS = [
    "add_att",
    "add_obj",
    "replace_att",
    "replace_obj",
    "replace_rel",
    "swap_att",
    "swap_obj",
]
SIZES = (692, 2062, 788, 1652, 1406, 666, 246)
CLIPS = {  # percent correct per subset, and the mean of the seven
    "CLIP ViT-B/32": (68.79, 77.21, 80.08, 90.92, 69.20, 63.96, 61.38, 73.08),
    "CLIP_COCO": (81.79, 89.86, 86.55, 94.67, 75.89, 71.02, 63.01, 80.40),
    "CLIP_TROHN-Text": (96.97, 96.99, 94.42, 94.92, 92.11, 81.38, 79.67, 90.92),
    "CLIP_TROHN-Img": (94.08, 95.59, 88.45, 94.37, 84.00, 73.12, 69.11, 85.53),
}
GPT4V = {  # correct answers per order of the captions and subset, and the mean of the seven in percent
    "right_true_first": (604, 1859, 734, 1578, 1240, 607, 211, 90.2),
    "right_wrong_first": (666, 1918, 740, 1604, 1298, 593, 198, 91.7),
}
VALSE = {  # percent of 7,702 with the caption scored above the foil
    "ALBEF 14M": 69.44,
    "ALBEF 4M": 69.10,
    "BLIP 129M": 68.81,
    "BLIP CapFilt-L": 68.16,
    "BLIP ViT-L": 70.35,
    "BLIP-2 ITM": 74.05,
    "X-VLM 16M": 74.50,
    "PEVL pretraining": 68.89,
    "PEVL VRD": 64.48,
    "ClipCap CC": 65.75,
    "ClipCap COCO": 68.53,
}


@cache
def question_set(name: str) -> views.runs.QuestionSet:
    return question_set_of(STORE, dataset=name)


@pytest.mark.parametrize("folder", [shipped.PUBLISHED_FOLDER, shipped.FOLDER])
def test_a_dataset_and_a_probe_have_one_bundled_question_set(folder: Path):
    rows = views.runs.question_set_rows(Store(folder))
    assert rows and len({(row.dataset, row.probe) for row in rows}) == len(rows)


@cache
def estimates(name: str, by: str) -> pd.DataFrame:
    """Return values by model, metric and slice."""
    table = views.estimates.estimates(question_set(name), by, "micro")
    return table.set_index(["model", "metric", "slice"]).sort_index()


@cache
def answers() -> pd.DataFrame:
    """Return GPT-4V's answers with their questions, without the metrics."""
    questions = question_set("bundled:SugarCrepe")
    cases = STORE.cases(questions.key).table("cases").to_pandas()
    scores = STORE.run(questions.run("published:GPT-4V").key).table("scores").to_pandas()
    return cases.assign(first=scores["order_12"], second=scores["order_21"])


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("SugarCrepe", "A green bowl of many large white apples."),
        ("VALSE", "A woman holds down her phone in front of her face."),
    ],
)
def test_home_and_the_slides_open_with_a_case_that_people_understand_at_a_glance(name, first):
    questions = question_set(f"bundled:{name}")
    model = views.showcase.headline_models(questions)[0]
    slides = views.story.suggestions(questions, "foil")[:10]
    home = [each.card for each in views.showcase.showcases(questions, "foil", model)][:10]
    for cards in (slides, home):
        assert cards[0].wrong_text == first
        words = " ".join(f"{card.true_text} {card.wrong_text}" for card in cards[:3]).lower()
        assert not {"no", "not", "without", "exactly"} & set(words.split())
        assert all(len(card.true_text.split()) <= 12 for card in cards[:3])
        assert not any(card.subtype.startswith("add_") for card in cards[:3])


def test_every_bundled_model_answered_every_question():
    assert question_set("bundled:SugarCrepe").models[0] == "published:CLIP_TROHN-Img"
    names = {f"published:{name}" for name in (*CLIPS, "GPT-4V")}
    assert set(question_set("bundled:SugarCrepe").models) == names
    assert set(question_set("bundled:VALSE").models) == {f"published:{name}" for name in VALSE}
    for name, n_cases, n_pictures in (("SugarCrepe", 7512, 1561), ("VALSE", 7702, 6091)):
        for run in question_set(f"bundled:{name}").runs:
            assert (run.n_cases, run.n_units, run.older) == (n_cases, n_pictures, "")


@pytest.mark.parametrize("model", CLIPS)
def test_a_clip_model_has_its_published_numbers(model):
    table = estimates("bundled:SugarCrepe", "subtype")
    *expected, mean = CLIPS[model]
    rows = [table.loc[(f"published:{model}", "foil_accuracy", subset)] for subset in SUBSETS]
    assert [row["n_cases"] for row in rows] == list(SIZES)
    assert [round(100 * row["value"], 2) for row in rows] == expected
    assert round(100 * sum(row["value"] for row in rows) / 7, 2) == mean


@pytest.mark.parametrize("metric", GPT4V)
def test_gpt_4v_has_its_published_counts_in_each_order(metric):
    table = estimates("bundled:SugarCrepe", "subtype")
    *expected, mean = GPT4V[metric]
    rows = [table.loc[("published:GPT-4V", metric, subset)] for subset in SUBSETS]
    assert [row["n_cases"] for row in rows] == list(SIZES)
    assert [round(row["value"] * row["n_cases"], 6) for row in rows] == expected
    assert round(100 * sum(row["value"] for row in rows) / 7, 1) == mean


def test_the_headline_of_gpt_4v_is_the_mean_of_both_orders():
    table = estimates("bundled:SugarCrepe", "all").droplevel("slice").loc["published:GPT-4V"]
    right = sum(GPT4V["right_true_first"][:7]) + sum(GPT4V["right_wrong_first"][:7])
    assert table["value"]["foil_accuracy"] == pytest.approx(right / (2 * 7512))
    both = np.count_nonzero(answers()["first"] + answers()["second"] == 2)
    assert both == 6578
    assert table["value"]["right_in_both_orders"] == pytest.approx(both / 7512)


def test_gpt_4v_changes_its_answer_with_the_order_on_694_of_7506_questions():
    table = answers()
    flips = table["first"] != table["second"]
    assert (np.count_nonzero(flips), len(table)) == (694, 7512)
    question = table["images"].map(tuple) + table["texts"].map(tuple)
    by_question = np.array(flips.groupby(question).max())
    assert (np.count_nonzero(by_question), len(by_question)) == (694, 7506)
    row = estimates("bundled:SugarCrepe", "all").loc[("published:GPT-4V", "order_flips", "")]
    assert row["value"] == pytest.approx(694 / 7512)
    assert 0.08 < row["low"] < row["value"] < row["high"] < 0.11
    facts = views.runs.facts(question_set("bundled:SugarCrepe"))
    assert "7,512 rows, 7,506 distinct" in facts["notes"][0]
    (withdrawn,) = table.loc[
        [dict(tags).get("withdrawn") == "yes" for tags in table["tags"]], "item"
    ]
    assert withdrawn == "swap_obj/108"


@pytest.mark.parametrize("model", VALSE)
def test_a_model_has_its_published_number_on_valse(model):
    row = estimates("bundled:VALSE", "all").loc[(f"published:{model}", "foil_accuracy", "")]
    assert row["n_cases"] == 7702
    assert round(100 * row["value"], 2) == VALSE[model]
    questions = question_set("bundled:VALSE")
    scores = (
        STORE.run(questions.run(f"published:{model}").key).table("scores").to_pandas()["scores"]
    )
    assert round(100 * sum(caption > foil for caption, foil in scores) / 7702, 2) == VALSE[model]


def test_the_store_is_undamaged_small_and_has_no_local_paths():
    paths = [path for path in STORE.root.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in paths) <= 10_000_000
    assert list(verify.damages(STORE)) == []
    for path in STORE.root.rglob("*.parquet"):
        content = str(pd.read_parquet(path).to_dict("records")) if "cases" in path.parts else ""
        assert "/tmp/" not in content and "/work/" not in content
    for path in STORE.root.rglob("*.json"):
        assert "/tmp/" not in path.read_text() and "/work/" not in path.read_text()


def test_every_bundled_photograph_is_credited_and_may_be_redistributed():
    rows = json.loads((STORE.root / credits.MANIFEST).read_text())
    folder = STORE.root / bundled.PHOTOGRAPHS
    assert {row["file"] for row in rows} == {path.name for path in folder.iterdir()}
    notice = (STORE.root / "CREDITS.md").read_text()
    for row in rows:
        assert row["license"] in ("CC BY 2.0", "CC BY-SA 2.0")
        kind = "by-sa" if "SA" in row["license"] else "by"
        assert row["license_url"] == f"https://creativecommons.org/licenses/{kind}/2.0/"
        assert row["page"].startswith("https://www.flickr.com/photo.gne?id=")
        assert row["page"] in notice and row["file"] in notice
        image = Image.open(io.BytesIO((folder / row["file"]).read_bytes()))
        assert max(image.size) <= 640
    assert notice.count("MIT License") == 5


def test_147_questions_on_30_photographs_have_a_bundled_photograph():
    questions = question_set("bundled:SugarCrepe")
    table = STORE.cases(questions.key).table("cases", ["images", "texts"]).to_pandas()
    here = table[[views.rows.are_here(list(images)) for images in table["images"]]]
    names = here["images"].map(lambda images: images[0])
    assert names.nunique() == 30
    assert (len(here), len(set(names + here["texts"].map(tuple).map(str)))) == (148, 147)
    assert views.rows.with_pictures(questions, "foil") == (148, 7512)
    for name in names.unique():
        assert len(pictures.read_bytes(Path(name))) > 10_000
        credit = credits.picture_credit(name)
        assert credit and credit.page.startswith("https://www.flickr.com/")
    assert credits.picture_credit("demo/test-3c69a21e/demo-00000.png") is None


def test_a_wall_filtered_to_available_pictures_shows_the_bundled_photographs(tmp_path):
    questions = question_set("bundled:SugarCrepe")
    chosen = Filter.parse("published:GPT-4V", "foil", sort="models", pictured="here")
    cards, n_pictures, n_cases = views.wall.wall(questions, chosen, 1, 60)
    assert 0 < n_pictures <= 30 and n_cases >= n_pictures
    assert cards[0].n_believed == max(card.n_believed for card in cards)
    quiz = views.quiz.quiz_round(questions, "foil", "fair")
    assert quiz.questions and all(bundled.is_bundled(Path(q.picture)) for q in quiz.questions)


def test_every_bundled_model_has_its_publication_and_a_note():
    for name in ("bundled:SugarCrepe", "bundled:VALSE"):
        for run in question_set(name).runs:
            assert run.publication is not None
            assert run.publication.source.startswith("https://github.com/")
            assert run.publication.license == "MIT" and run.publication.about
            assert run.note.startswith(NOTE)


@pytest.mark.full  # 7,512 questions and more
@pytest.mark.parametrize("name", ["bundled:SugarCrepe", "bundled:VALSE"])
def test_repeating_a_bundled_run_returns_the_same_keys_and_scores(name, tmp_path):
    """Therefore, another model's run on `bundled:` data can be compared with these."""
    models = question_set(name).models[:2] if "VALSE" in name else ("published:GPT-4V",)
    store = Store(tmp_path / "cache")
    manifests = execute(Request(models, name, "eqben"), store)
    stored = [STORE.run(question_set(name).run(model).key) for model in models]
    for manifest, entry in zip(manifests, stored, strict=True):
        assert manifest["key"] == entry.manifest()["key"]
        again, before = (
            each.table("scores").to_pandas() for each in (store.run(manifest["key"]), entry)
        )
        pd.testing.assert_frame_equal(again, before)
    loaded = registry.load_dataset(f"{name}+available", store.root)
    assert len(loaded.items) == {"bundled:SugarCrepe": 148, "bundled:VALSE": 16}[name]
    assert all(item.image and item.image.path.is_file() for item in loaded.items)


@pytest.mark.full  # tests/tools/test_ship_published.py builds from a small copy
def test_rebuilding_the_bundled_answers_gives_the_same_store(tmp_path, shared_data):
    folder = shared_data / "real"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/real, the published answers")
    ship_published.build(folder, tmp_path / "built")
    built = Store(tmp_path / "built")
    assert {run["key"] for run in built.runs()} == {run["key"] for run in STORE.runs()}
    for run in STORE.runs():
        tables = [
            store.run(run["key"]).table(name).to_pandas()
            for store in (built, STORE)
            for name in ("scores", "estimates")
        ]
        pd.testing.assert_frame_equal(tables[0], tables[2])
        pd.testing.assert_frame_equal(tables[1], tables[3])
    for name in ("CREDITS.md", credits.MANIFEST):
        assert (built.root / name).read_bytes() == (STORE.root / name).read_bytes()


def test_cases_with_a_picture_come_first_on_every_page_in_the_order_of_the_filter():
    questions = question_set("bundled:SugarCrepe")
    first, second = "published:GPT-4V", "published:CLIP ViT-B/32"

    def are_here(images: Iterable[tuple[str, ...]]) -> list[bool]:
        return [views.rows.are_here(names) for names in images]

    for sort in ("models", "best"):
        chosen = Filter(first, "foil", sort=sort)
        cards, n_pictures, n_cases = views.wall.wall(questions, chosen, 1, 100)
        every, total = views.cases.failures(questions, chosen, 1, 100)
        only = replace(chosen, pictured=True)
        pictured_cards, n_pictured, _ = views.wall.wall(questions, only, 1, 100)
        n_pictured_cases = views.cases.failures(questions, only)[1]
        assert are_here(card.images for card in cards) == [
            place < n_pictured for place in range(min(100, n_pictures))
        ]
        assert are_here(map(tuple, every["images"])) == [
            place < n_pictured_cases for place in range(min(100, total))
        ]
        assert [card.id for card in cards[:n_pictured]] == [card.id for card in pictured_cards]
        without = [card.n_believed for card in cards[n_pictured:]]
        assert sort != "models" or without == sorted(without, reverse=True)
        assert n_cases == total > 900
    for name in ("only_first", "only_second"):
        side = bucket(Filter(first, "foil", other=second, sort="difference"), name)
        here = are_here(card.images for card in views.wall.wall(questions, side, 1, 60, False)[0])
        assert here == sorted(here, reverse=True) and True in here


def test_new_hard_rounds_leave_out_swaps_that_add_words_because_both_captions_may_be_true(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(views.rows, "are_pictured", lambda *arguments: None)
    monkeypatch.setattr(views.rows, "are_here", lambda names: [True] * len(list(names)))
    store = shipped.StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER)
    questions = question_set_of(store, dataset="bundled:SugarCrepe")
    first = views.quiz.FIRST_WITHOUT_REWORDED
    lie = "A wooden table with bread on it next to a plate."
    for seed, is_asked in ((0, True), (first, False)):
        every = views.quiz.quiz_round(questions, "foil", "hard", seed, 100)
        assert is_asked == any(lie in question.captions for question in every.questions)


def test_an_example_on_the_slide_of_kinds_has_no_doubtful_label_if_another_case_has_a_picture(
    tmp_path: Path,
):
    store = shipped.StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER)
    examples = views.story.examples(question_set_of(store, dataset="bundled:SugarCrepe"), "foil")
    # The two best models reject "watch a goat" for "pet a goat", and both may be true
    assert examples["replace_rel"].wrong_text == "Two plastic containers next to a wooden table."
    # Not "A shower" for "A bath", which fools a model: a shower curtain may be in the picture
    assert {answer.verdict for answer in examples["replace_obj"].verdicts} == {"held"}


def test_a_photograph_downloaded_into_the_cache_is_shown(tmp_path: Path):
    store = shipped.StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER)
    questions = question_set_of(store, dataset="bundled:SugarCrepe")
    before, n_before = store.version(), views.rows.with_pictures(questions, "foil")[0]
    chosen = Filter("published:GPT-4V", "foil", outcome="all", sort="dataset")
    card = views.wall.wall(questions, chosen, 1, 60)[0][40]
    assert not views.rows.are_here(card.images) and card.images[0].startswith("pictures/coco/")
    file = tmp_path / card.images[0]
    photographs.download(store, {}, lambda done, total: None)
    assert store.version() != before
    file.parent.mkdir(parents=True)
    Image.new("RGB", (64, 48), "teal").save(file)
    (shown,) = views.wall.cards(questions, chosen, [card.case])
    assert shown.images == (str(file),) and views.rows.are_here(shown.images)
    assert thumbnails.address(tmp_path, shown.images[0]).startswith("data:image/webp")
    n_after = views.rows.with_pictures(questions, "foil")[0]
    assert n_after == n_before + 1 + card.more


def test_home_and_slides_start_with_a_failure_of_many_models_and_show_no_suspect_labels():
    questions = question_set("bundled:SugarCrepe")
    suspects = {each.id for each in views.suspects.suspects(questions, "foil").suspects}
    failures = views.showcase.showcases(questions, "foil", "published:GPT-4V", 196)
    opener = story.opener(questions, "foil")
    assert opener is not None
    for card in (failures[0].card, opener.card):
        fooled = {each.model for each in card.verdicts if each.verdict == "fooled"}
        clip = ("CLIP ViT-B/32", "CLIP_COCO", "CLIP_TROHN-Img")
        assert fooled == {f"published:{model}" for model in clip}
        assert views.rows.are_here(card.images)
    assert len(failures) == 20 and not suspects & {each.card.id for each in failures}
    texts = [case.card.true_text for case in failures]
    place = next(place for place, text in enumerate(texts) if text.startswith("Two girls pet"))
    assert place > texts.index("A red traffic stop sign with a blank white sign below it.")
    # The models that each failure fools in both orders of the captions
    fooled = [
        [each.model for each in case.card.verdicts if each.verdict == "fooled"]
        for case in failures
        if "no" in case.card.true_text.split() or case.card.subtype.startswith("add_")
    ]
    counts = [len(names) + 1.5 * ("published:GPT-4V" in names) for names in fooled]
    assert counts == sorted(counts, reverse=True) and all(fooled)
    best, fooled_best = {"published:GPT-4V", "published:CLIP_TROHN-Text"}, set()
    for seed in range(3):
        quiz = views.quiz.quiz_round(questions, "foil", "hard", seed)
        assert len(quiz.questions) == 10 and quiz.n_fooled == 2
        for question in quiz.questions:
            assert sum(each.verdict == "fooled" for each in question.verdicts) >= 2
        assert not suspects & {each.id for each in quiz.questions}
        assert quiz.is_selected and sum(each.is_clear for each in quiz.questions) >= 6
        captions = [caption for each in quiz.questions for caption in each.captions]
        assert not any("girls watch a goat" in caption for caption in captions)  # they pet it, too
        for question in quiz.questions:
            held = {each.model for each in question.verdicts if each.verdict == "held"}
            assert best <= held or question.subtype != "replace_rel"
            assert not question.subtype.startswith("add_")
            fooled_best |= best - held
        cases = tuple(each.case for each in quiz.questions)
        following = views.quiz.quiz_round(questions, "foil", "hard", seed + 1, shown=cases)
        shown = {each.picture for each in quiz.questions}
        are_shown = [each.picture in shown for each in following.questions]
        assert len({each.picture for each in following.questions}) == 10
        assert 0 < sum(are_shown) < 10 and are_shown == sorted(are_shown)  # known ones last
        assert sum(each.case in cases for each in following.questions) <= 1
        for question in following.questions:
            fooled_best |= {each.model for each in question.verdicts if each.verdict != "held"}
    assert best <= fooled_best  # no model is right by construction
    everything = views.tables.CaseTable(STORE, questions.key).numbers("kind = ?", ["foil"])
    is_suspect = views.suspects.are_suspect(questions, "foil", everything)
    assert np.count_nonzero(is_suspect) == len(suspects) == 468
