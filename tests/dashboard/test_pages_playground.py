"""The Playground without a browser: it shows the results of `play`, and an upload is not stored."""

import dataclasses
import io
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import component_values, send_to
from vlprobe import registry
from vlprobe.dashboard import filters, loaded
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.play import playground as page
from vlprobe.dashboard.play import tryit
from vlprobe.errors import InvalidInput
from vlprobe.render import charts
from vlprobe.render.html import playground
from vlprobe.render.numbers import number
from vlprobe.runs import exhibits
from vlprobe.runs import playground as runs_playground
from vlprobe.runs.playground import Player
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

CAPTION = "Two red dogs on a bench"
CONTROLS = ["control:random", "control:constant"]


@pytest.fixture
def show_try_it(monkeypatch: pytest.MonkeyPatch, store: Store):
    def show(**query) -> AppTest:
        options = {"models": CONTROLS, **query}
        return open_page(monkeypatch, store, "try", **options)

    return show


def red_picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (30, 20), "red").save(buffer, "PNG")
    return buffer.getvalue()


def store_files(store: Store) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file()]


def test_the_caption_has_a_parameter_of_its_own_and_old_links_work(show_try_it):
    """Explore's filter *caption* was lost on the way back from Try it."""
    at = show_try_it(caption=CAPTION)
    assert at.text_input(key="text").value == CAPTION
    assert "caption" not in at.query_params and "text" not in filters.PARAMETERS


def test_the_page_opens_with_a_picture_a_caption_and_the_verdicts_of_the_demo_models(
    show_try_it, store: Store
):
    at = show_try_it(models=[])
    assert not at.error
    assert at.text_input(key="text").value == "Four purple cats floating above four green boats."
    text = words(at)
    for name in ("Tiny CLIP", "Tiny SigLIP", "Half-trained"):
        assert f"{name} · " in text
    assert at.title[0].value == "Half-trained is fooled by 9 of 19 wrong captions."
    assert "Tiny CLIP · ✗ fooled by 2 of 19 wrong captions" in text
    assert not store_files(store)


def test_every_edit_of_the_typed_caption_is_shown_with_its_scores(show_try_it):
    at = show_try_it()
    at.text_input(key="text").set_value(f"  {CAPTION} ").run()
    players = [Player(registry.load_model(name)) for name in CONTROLS]
    edits, _ = runs_playground.edits(CAPTION, players=players)
    canvas = exhibits.canvas(
        next(one for one in exhibits.shelf("demo", Path()) if one.id == "demo-00012").open()
    )
    assert len(edits) > 15
    text = words(at)
    table = next(
        element.proto.body for element in at.get("html") if "vp-play" in element.proto.body
    )
    for answer in runs_playground.score(players, canvas, CAPTION, [one.text for one in edits]):
        for edited, score in zip(edits, answer.scores, strict=True):
            assert playground.changed(CAPTION, edited.text) in table
            assert number(float(score), "cosine") in text


def test_a_tie_counts_as_fooled(show_try_it):
    text = words(show_try_it(caption=CAPTION, models=["control:constant"], show="fools"))
    wrong = sum(one.wrong for one in runs_playground.edits(CAPTION)[0])
    assert f"fooled by {wrong} of {wrong} wrong captions" in text
    assert text.count("fools: a tie") >= wrong


def answer(scores: list[float], true: float = 0.5) -> runs_playground.Answer:
    none, row = np.zeros(len(scores), bool), np.array(scores, np.float32)
    return runs_playground.Answer("half", true, row, np.zeros(len(scores)), none, none, True)


@pytest.mark.parametrize(
    ("scores", "true", "told"),
    [
        ([0.1, math.nan, math.nan], 0.5, "✓ not fooled by any of 1 wrong captions, unknown for 2"),
        ([0.6, 0.1, math.nan], 0.5, "✗ fooled by 1 of 2 wrong captions, unknown for 1"),
        ([0.1, 0.1, 0.1], math.nan, "- unknown for all 3 wrong captions"),
    ],
)
def test_an_unknown_score_does_not_count_as_not_fooled(scores: list[float], true: float, told: str):
    edits = [one for one in runs_playground.edits(CAPTION)[0] if one.wrong][:3]
    looks = charts.styles.styles(["half"])
    assert told in playground.glance(edits, [answer(scores, true)], looks)
    body = playground.table(CAPTION, edits, [answer(scores, true)], looks)
    unknown = 3 if math.isnan(true) else sum(map(math.isnan, scores))
    assert body.count('<td data-model="half">-</td>') == unknown


def test_a_mixed_picture_next_to_one_without_a_score_has_no_verdict():
    scores = {"half": np.array([[math.nan, 0.1], [0.2, 0.1], [0.1, 0.3]]), "texts": None}
    body = playground.mixed(("a", "b"), scores, charts.styles.styles(["half", "texts"]))
    assert "your picture: -" in body
    assert "fools" not in body
    assert body.count("sees no pictures") == 2


def test_a_picture_of_a_few_pixels_shows_one_line_and_the_rest_of_the_page(show_try_it):
    at = show_try_it()
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(buffer, "PNG")
    at.file_uploader(key="play_file").set_value(("two.png", buffer.getvalue(), "image/png")).run()
    at.text_input(key="text").set_value("A red wall.").run()
    assert not at.error
    assert "A picture of 2 x 2 pixels is too small for 4 x 4 cells" in words(at)
    assert {"Mix in another picture", "Keep it"} <= {header.value for header in at.header}


def test_embeddings_of_an_upload_are_stored_in_the_session_only(show_try_it):
    at = show_try_it(models=["control:random"])
    common = loaded.load_player("control:random")
    at.file_uploader(key="play_file").set_value(("red.png", red_picture(), "image/png")).run()
    at.text_input(key="text").set_value("A red wall.").run()
    assert "not fooled" in words(at) or "fooled by" in words(at)
    assert not common._images._values
    assert at.session_state["play_players"]["control:random"]._images._values


def test_a_link_reopens_caption_picture_and_models(show_try_it):
    at = show_try_it(
        caption=CAPTION,
        item="demo-00003",
        models=["control:random"],
        k="2",
        word="any",
        draw="7",
        lam="40",
    )
    assert at.text_input(key="text").value == CAPTION
    assert at.selectbox(key="item").value == "demo-00003"
    assert at.multiselect(key="play_models").value == ["control:random"]
    assert at.slider(key="lam").value == 40
    text = words(at)
    for edited in runs_playground.edits(CAPTION, seed=7, k=2)[0]:
        if edited.group == "substitution":
            for word in edited.edit.target.split(", "):
                assert word in text


def test_another_picture_sets_its_caption(show_try_it):
    at = show_try_it(caption=CAPTION)
    at.selectbox(key="item").set_value("demo-00001").run()
    assert at.text_input(key="text").value.startswith("A red dog is flanked")
    assert at.query_params["item"] == "demo-00001"


def test_an_upload_is_stored_only_if_the_user_saves_it_and_then_leads_to_a_run(
    show_try_it, store: Store, tmp_path: Path
):
    at = show_try_it()
    at.file_uploader(key="play_file").set_value(("../red.png", red_picture(), "image/png")).run()
    assert at.text_input(key="text").value == ""
    assert "Type what the picture shows" in at.info[0].value
    at.text_input(key="text").set_value("A red wall.").run()
    assert "wrong captions" in words(at)
    assert not store_files(store)
    at.text_input(key="play_name").set_value("../Walls").run()
    at.button(key="play_keep").click().run()
    folder = store.root / "mine" / "kept" / "walls"
    assert sorted(path.suffix for path in folder.iterdir()) == [".png", ".txt"]
    assert any(code.value.endswith(f"--dataset folder:{folder.resolve()}") for code in at.code)
    (item,) = registry.load_dataset(f"folder:{folder}", tmp_path).items
    assert item.captions == ("A red wall.",)
    assert "Run a test on it" in [link.proto.label for link in at.get("page_link")]
    at.switch_page(page_file("run")).run()
    assert at.text_input(key="run_own").value == f"folder:{folder.resolve()}"


@pytest.mark.parametrize(
    "before", [None, red_picture()], ids=["a picture of the shelf", "an upload"]
)
def test_a_file_that_is_not_a_picture_shows_one_line_and_clears_the_previous_answers(
    show_try_it, before
):
    at = show_try_it(caption=CAPTION)
    if before:
        at.file_uploader(key="play_file").set_value(("red.png", before, "image/png")).run()
        at.text_input(key="text").set_value(CAPTION).run()
    assert "wrong captions" in words(at) and at.get("image")
    at.file_uploader(key="play_file").set_value(("*notes*.png", b"nothing", "image/png")).run()
    assert at.error[0].value.startswith(r"'\*notes\*.png' is not an image")
    assert not at.exception
    types = [element.type for element in at.main]
    assert types.index("error") < types.index("column")
    assert "wrong captions" not in words(at)
    assert not at.get("image")
    at.file_uploader(key="play_file").set_value(("red.png", red_picture(), "image/png")).run()
    at.text_input(key="text").set_value("A red wall.").run()
    assert not at.error
    assert "wrong captions" in words(at) and at.get("image")


REAL = "To judge this photograph, download a real model once."


def photographs(at: AppTest) -> list[str]:
    return [one.value for one in at.warning if "trained on drawings" in one.value]


def test_a_note_explains_that_small_models_guess_on_photographs(
    show_try_it, store: Store, tiny: str
):
    at = show_try_it(caption=CAPTION, models=["demo:weak", *CONTROLS])
    assert not photographs(at)
    at.file_uploader(key="play_file").set_value(("red.png", red_picture(), "image/png")).run()
    at.text_input(key="text").set_value(CAPTION).run()
    assert photographs(at) == [
        "Half-trained was trained on drawings. On photographs it mostly guesses. " + REAL
    ]
    order = [element.type for element in at.main]
    assert order.index("title") < order.index("warning") < order.index("column")
    execute(Request(("control:constant",), tiny, "lgip"), store)
    at = show_try_it(caption=CAPTION, models=["demo:weak", "demo:plain"], **{"from": tiny})
    assert photographs(at) == [
        "These models were trained on drawings. On photographs they mostly guess. " + REAL
    ]
    at = show_try_it(caption=CAPTION, models=CONTROLS, **{"from": tiny})
    assert not photographs(at)


def test_the_models_stay_until_one_for_photographs_is_loaded_and_come_back_with_one_press(
    show_try_it, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(page.open_clip, "cached_names", list)
    monkeypatch.setattr(page.hf, "cached_names", list)
    load = registry.load_model

    def load_model(name: str):
        if name == page.REAL:
            raise InvalidInput("The weights cannot be downloaded.")
        return load(name if name in page.MODELS else "control:random")

    monkeypatch.setattr(registry, "load_model", load_model)
    at = show_try_it(models=[])
    button = at.button(key="use_real")
    assert button.label == "Download CLIP (605 MB)"
    at = button.click().run()
    assert at.error[0].value.startswith(page.OFFLINE) and rows_of(at)["rows"]
    assert at.multiselect(key="play_models").value == list(page.MODELS)
    monkeypatch.setattr(page.hf, "cached_names", lambda: ["hf:openai/clip-vit-base-patch32"])
    page.names_here.clear()
    at = at.run()  # weights on this machine are offered first
    assert at.button(key="use_real").label == "Use openai/clip-vit-base-patch32"
    at = at.button(key="use_real").click().run()
    assert at.multiselect(key="play_models").value == ["hf:openai/clip-vit-base-patch32"]
    assert not at.error and rows_of(at)["rows"]
    at = at.button(key="use_bundled").click().run()
    assert at.multiselect(key="play_models").value == list(page.MODELS) and rows_of(at)["rows"]


def test_a_photograph_of_a_dataset_has_its_credit(
    show_try_it, store: Store, tiny: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(page, "credit_line", lambda name: f"<p>Photo {Path(name).name}</p>")
    execute(Request(("control:constant",), tiny, "lgip"), store)
    at = show_try_it(**{"from": tiny})
    assert f"Photo {at.selectbox(key='item').value}" in words(at)
    at.file_uploader(key="play_file").set_value(("red.png", red_picture(), "image/png")).run()
    assert "Photo " not in words(at)


def test_a_clicked_sample_replaces_the_upload(show_try_it):
    at = show_try_it()
    at.file_uploader(key="play_file").set_value(("red.png", red_picture(), "image/png")).run()
    assert at.text_input(key="text").value == ""
    send_to(at, "samples", "open", "demo-00006")
    assert at.text_input(key="text").value and "play_upload" not in at.session_state


def test_the_wrong_caption_of_a_case_is_in_the_field_that_beats_the_models(show_try_it):
    at = show_try_it(caption=CAPTION, wrong=f"a  wrong one {'x' * 400}")
    text = rows_of(at)["beat"]["text"]
    assert text.startswith("a wrong one x") and len(text) == tryit.LONGEST
    assert "wrong" not in at.query_params
    at.query_params["item"] = "demo-00007"  # of another case
    assert not rows_of(at.run())["beat"]["text"]


def test_words_that_a_model_never_learned_are_named(show_try_it):
    at = show_try_it(caption="Two red leopards on a bench", models=["demo:weak", "control:random"])
    text = words(at)
    assert "Words unknown to Half-trained: “leopards” and “bench”." in text
    player = loaded.load_player("demo:weak")
    assert player.unlearned(["two", "leopards", "church", "dogs"]) == {"leopards", "church"}
    assert loaded.load_player("control:random").unlearned(["leopards"]) == frozenset()
    assert "unknown to it: " in text  # for edits that insert such a word


@pytest.mark.parametrize(
    ("caption", "kind"),
    [("Traffic lights over a road at night.", ""), ("Wonderful summer vibes", "other-picture"),
     ("A red kangaroo.", "color"), ("A dog in a cafe.", "object")],
)  # fmt: skip
def test_every_caption_has_a_wrong_one_and_the_page_names_only_known_words(
    show_try_it, caption: str, kind: str
):
    at = show_try_it(caption=caption, models=["demo:softmax"])
    rows = {row["kind"]: row for row in rows_of(at)["rows"]}
    assert rows.keys() & ({kind} if kind else {"object", "other-picture"})
    assert not loaded.load_player("demo:softmax").unlearned(
        runs_playground.words_of(page.KNOWN.partition("such as")[2])
    )


def test_a_clicked_sample_becomes_the_picture_and_sets_its_caption(show_try_it):
    at = show_try_it(caption=CAPTION)
    samples = [one.proto for one in at.get("bidi_component") if "samples" in one.proto.id]
    assert len(samples) == 1 and "data:image/webp" in str(samples[0])
    send_to(at, "samples", "open", "demo-00006")
    assert at.query_params["item"] in ("demo-00006", ["demo-00006"])
    assert at.text_input(key="text").value != CAPTION


def test_the_picture_to_mix_with_does_not_change_the_compared_model(show_try_it):
    at = show_try_it(caption=CAPTION)
    at.session_state["carried_with"] = "demo:weak"
    at.run()
    assert at.selectbox(key="with").value.startswith("demo-0")
    assert at.session_state["carried_with"] == "demo:weak"


def test_a_link_does_not_load_a_model_before_a_click(show_try_it, monkeypatch: pytest.MonkeyPatch):
    loaded_names = []
    load = registry.load_model
    monkeypatch.setattr(
        registry, "load_model", lambda name: loaded_names.append(name) or load("control:random")
    )
    at = show_try_it(caption=CAPTION, models=["openclip:ViT-B-32:openai"])
    assert loaded_names == []
    assert "Choose a model" in at.info[0].value
    at.button(key="load_openclip:ViT-B-32:openai").click().run()
    assert loaded_names == ["openclip:ViT-B-32:openai"]
    assert at.header[0].value == "Every edit of your caption"


def test_an_unknown_model_shows_one_line(show_try_it):
    at = show_try_it(caption=CAPTION, models=["control:rendom", "control:constant"])
    assert "No model named 'control:rendom'" in at.error[0].value.replace("\\", "")
    assert "Always the same · " in words(at)
    assert "Always the same is fooled by" in at.title[0].value


def test_a_read_only_playground_cannot_upload_or_save(show_try_it, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    at = show_try_it(caption=CAPTION, models=["openclip:ViT-B-32:openai", *CONTROLS])
    assert not at.get("file_uploader")
    assert not [
        button
        for button in at.button
        if button.key in ("play_keep", "load_openclip:ViT-B-32:openai")
    ]
    assert "wrong captions" in words(at)
    text = words(show_try_it(models=[]))
    assert page.DRAWN in text and text.lower().count("install vlprobe") == 1


def test_captions_are_escaped(show_try_it):
    at = show_try_it(caption="A <b>red</b> dog & $5 *here*")
    bodies = " ".join(element.proto.body for element in at.get("html"))
    assert "<b>red" not in bodies
    assert "&lt;" in bodies


def test_pictures_of_a_dataset_that_was_run_can_be_picked_and_no_others(
    monkeypatch: pytest.MonkeyPatch, store: Store, tiny: str
):
    execute(Request(("control:constant",), tiny, "lgip"), store)
    query = {"models": CONTROLS, "from": tiny, "item": "3.png"}
    at = open_page(monkeypatch, store, "playground", **query)
    assert at.text_input(key="text").value == "A black cat sitting on a table."
    at = open_page(monkeypatch, store, "playground", **{**query, "from": "folder:/etc"})
    assert at.selectbox(key="item").value == "demo-00012"
    assert not at.error


@pytest.mark.parametrize(
    ("before", "after", "shown_as"),
    [
        ("A red dog.", "A blue dog.", "A <del>red</del> <ins>blue</ins> dog."),
        ("A red dog.", "A dog.", "A <del>red</del> dog."),
        ("A dog runs.", "In this image, a dog runs.", "<ins>In this image,</ins> a dog runs."),
        ("A dog (brown).", "Dog (brown).", "<del>A</del> Dog (brown)."),
        ("One dog runs", "Two dogs run", "<del>One dog runs</del> <ins>Two dogs run</ins>"),
        ("a <b> & dog", "a <b> & cat", "a &lt;b&gt; &amp; <del>dog</del> <ins>cat</ins>"),
    ],
)
def test_changed_words_are_shown_side_by_side(before: str, after: str, shown_as: str):
    assert playground.changed(before, after) == shown_as


def rows_of(at: AppTest) -> dict:
    """Return the data of the first screen of Try it."""
    ((_, sent),) = component_values(at, "tryit")
    return sent


def test_the_first_screen_has_one_edit_of_each_kind_and_renews_one_at_a_time(show_try_it):
    at = show_try_it(models=["demo:softmax"])
    first = rows_of(at)
    kinds = [row["kind"] for row in first["rows"]]
    verdicts = [row["verdicts"][0]["state"] for row in first["rows"]]
    # Those that fool the model come first
    assert kinds == ["relation", "attribute-swap", "color", "number", "wording"], kinds
    assert verdicts == ["fooled", "fooled", "right", "right", "moved"]
    at.session_state[tryit.KEY] = {"renew": "color", "add": "defocus-blur"}
    at.run()
    second = rows_of(at)
    assert [row == first["rows"][place] for place, row in enumerate(second["rows"][:5])] == [
        kind != "color" for kind in kinds
    ]
    blur = second["rows"][5]
    assert blur["label"] == "Defocus blur" and blur["verdicts"][0]["state"] == "moved"
    assert "defocus-blur" not in [chip["kind"] for chip in second["chips"]]


def test_verdicts_on_the_first_screen_follow_from_the_scores(show_try_it):
    at = show_try_it(models=["demo:softmax"])
    claim = "Four purple dogs floating above four green boats."
    at.session_state[tryit.KEY] = {"claim": claim}
    at.run()
    (player,) = [Player(registry.load_model("demo:softmax"))]
    canvas = exhibits.canvas(
        next(one for one in exhibits.shelf("demo", Path()) if one.id == "demo-00012").open()
    )
    caption = at.text_input(key="text").value
    sent = rows_of(at)
    texts = ["".join(text for text, _ in row["runs"]) for row in sent["rows"]]
    true, *scores = player.scores([canvas], [caption, *texts, claim])[0].tolist()
    for row, score in zip(sent["rows"], scores[:-1], strict=True):
        (verdict,) = row["verdicts"]
        if row["kind"] == "wording":
            edits = runs_playground.edits(caption, players=[player])[0]
            wrong = [one.text for one in edits if one.wrong]
            # Captions with unknown words have one score and count once
            distances = np.abs(true - np.unique(player.scores([canvas], wrong)[0]))
            percent = 100 * abs(score - true) / distances.mean()
            assert verdict["text"] == f"moved {percent:.0f} %"
        else:
            assert verdict["state"] == ("fooled" if score >= true else "right")
    state = "fooled" if scores[-1] >= true else "right"
    assert sent["beat"] == {
        "text": claim,
        "verdicts": [{"state": state, "text": state}],
        "count": f"{int(state == 'fooled')} of 1",
        "note": tryit.UNCHECKED,
    }
    assert sent["all"]["label"] == "4 of 19 wrong captions shown. See all"
    assert at.title[0].value.endswith("of 19 wrong captions.")


def test_a_tie_by_an_unknown_word_does_not_beat_a_model(show_try_it):
    at = show_try_it(models=["demo:softmax"])
    at.text_input(key="text").set_value("Four zyx cats above green boats.").run()
    at.session_state[tryit.KEY] = {"claim": "Four xyz cats above green boats."}
    at.run()
    beat = rows_of(at)["beat"]
    assert beat["verdicts"] == [{"state": "tie", "text": "a tie"}] and beat["count"] == "0 of 1"
    assert beat["note"] == tryit.UNCHECKED + (
        "A tie does not count here: Tiny CLIP scores both captions the same. "
        "Words unknown to Tiny CLIP: “xyz”. "
    )
    at.session_state[tryit.KEY] = {"claim": "asdf qwer"}
    at.run()
    beat = rows_of(at)["beat"]
    assert beat["verdicts"][0]["state"] in ("right", "fooled")
    assert beat["note"] == tryit.UNCHECKED + (
        "Words unknown to Tiny CLIP: “asdf” and “qwer”. A verdict on unknown words is a guess. "
    )


def test_edits_of_a_caption_that_fits_worse_than_those_of_other_pictures_do_not_count(show_try_it):
    at = show_try_it(caption="A red spaceship under a green moon.", models=["demo:softmax"])
    at.session_state[tryit.KEY] = {"claim": "A blue spaceship under a green moon."}
    at.run()
    doubt = "The model finds that another picture's caption fits better than yours."
    assert at.title[0].value == doubt
    sent = rows_of(at)
    states = {verdict["state"] for row in sent["rows"] for verdict in row["verdicts"]}
    assert states == {"moved"} and sent["beat"]["count"] == ""
    assert sent["beat"]["note"] == f"Not counted. {doubt}"
    assert "fooled by" not in words(at)
    # On a photograph, the model guesses, which is no reason to check the caption, and no verdict
    at.file_uploader(key="play_file").set_value(("red.png", red_picture(), "image/png")).run()
    at.text_input(key="text").set_value("Four purple cats.").run()
    assert at.title[0].value == page.TITLE and page.GUESSED in words(at)
    assert page.CHECK not in words(at)
    assert not any("tryit" in one.proto.id for one in at.get("bidi_component"))


def test_the_user_s_wrong_caption_is_cleared_with_its_picture_and_the_true_one_is_rejected(
    show_try_it,
):
    at = show_try_it(models=["demo:softmax"])
    at.session_state[tryit.KEY] = {"claim": at.text_input(key="text").value.upper()}
    at.run()
    beat = rows_of(at)["beat"]
    assert beat["note"] == tryit.TRUE_CLAIM and beat["verdicts"] == [] and beat["count"] == ""
    at.session_state[tryit.KEY] = {"claim": "A blue wall."}
    at.run()
    assert len(rows_of(at)["beat"]["verdicts"]) == 1
    at.session_state[tryit.KEY] = {}
    at.file_uploader(key="play_file").set_value(("red.png", red_picture(), "image/png")).run()
    at.text_input(key="text").set_value("A red wall.").run()
    beat = rows_of(at)["beat"]
    assert beat["text"] == "" and beat["verdicts"] == []


def test_a_changed_picture_is_computed_once_and_deleted_with_the_upload(show_try_it):
    at = show_try_it(caption=CAPTION)
    upload = at.file_uploader(key="play_file")
    upload.set_value(("red.png", red_picture(), "image/png")).run()
    at.text_input(key="text").set_value("A red wall.").run()
    at.session_state[tryit.KEY] = {"add": "jpeg"}
    at.run()
    key, changed = at.session_state[tryit.CHANGED]
    picture = changed["jpeg"]
    assert key == at.session_state["play_upload"][1].key
    at.session_state[tryit.KEY] = {"claim": "A blue wall."}
    at.run()
    assert at.session_state[tryit.CHANGED][1]["jpeg"] is picture
    at.session_state[tryit.ROWS] = []
    upload.set_value(None).run()
    assert tryit.CHANGED not in at.session_state


@pytest.mark.parametrize(
    "move, words", [(-0.0004, "scores lower"), (0.0004, "scores higher"), (0.0, "stayed")]
)
def test_without_other_wrong_captions_a_move_has_only_a_direction(move, words):
    assert tryit._moved(move, np.nan)["text"] == words


def test_the_headline_and_the_models_line_have_the_same_count_and_name_ties_on_unknown_words():
    edits = [one for one in runs_playground.edits(CAPTION)[0] if one.wrong][:3]
    words = {"half": {word for one in edits[1:] for word in runs_playground.words_of(one.text)}}
    given = dataclasses.replace(answer([0.6, 0.5, 0.5]), unseen=np.array([False, True, True]))
    heading = playground.headline(edits, [given], unlearned=words)
    ties = "2 ties on words that it does not know"
    assert heading == f"half is fooled by 3 of 3 wrong captions ({ties})."
    line = playground.glance(edits, [given], charts.styles.styles(["half"]), unlearned=words)
    assert f"fooled by 3 of 3 wrong captions ({ties})" in line
    held = dataclasses.replace(answer([0.1, 0.1, 0.1]), model="other")
    given = dataclasses.replace(given, scores=np.array([0.1, 0.5, 0.5], np.float32))
    heading = playground.headline(edits, [held, given], unlearned=words)
    assert heading == f"half is fooled by 2 of 3 wrong captions ({ties})."
    assert playground.headline(edits, [given]) == "half is fooled by 2 of 3 wrong captions."
