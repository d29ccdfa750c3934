"""The core of the Playground, compared with the edits of the probes, the scorer of runs, and loops over single
calls.
"""

import io
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, lgip, mix, substitution
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.runs import exhibits, playground
from vlprobe.runs.playground import Edited, Player
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.types import Capabilities, DualEncoder, Edit, PairScorer, Picture, PictureEdit

CAPTION = "Four purple cats floating above four green boats."


@pytest.fixture(scope="module")
def softmax() -> Player:
    return Player(registry.load_model("demo:softmax"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scene") / "cats.png"
    exhibits.shelf("demo", path.parent)[12].open().save(path)
    return path


class Counting(DualEncoder):
    """A model that counts the texts and pictures that it encodes."""

    def __init__(self, model) -> None:
        self.model, self.name = model, model.name
        self.texts = self.images = 0
        self.preprocess, self.tokenize = model.preprocess, model.tokenize

    @property
    def capabilities(self):
        return self.model.capabilities

    def encode_texts(self, tokens):
        self.texts += len(tokens)
        return self.model.encode_texts(tokens)

    def encode_images(self, pixels):
        self.images += len(pixels)
        return self.model.encode_images(pixels)


class Pairs(PairScorer):
    """A pair scorer: the score is the brightness of a picture divided by the number of words."""

    name = "pairs"
    capabilities = Capabilities(scores_pairs=True, score_type="probability")

    def __init__(self) -> None:
        self.matched = 0

    def preprocess(self, image):
        return np.asarray(image, np.float32) / 255

    def encode_pictures(self, pixels):
        return [np.array(own.mean()) for own in pixels]

    def tokenize(self, texts):
        return np.array([[len(text.split()), -1] for text in texts])

    def match(self, seen, tokens, logits=False):
        self.matched += len(seen)
        return np.array(
            [float(one) / row[0] for one, row in zip(seen, tokens, strict=True)], np.float32
        )


def test_edits_are_exactly_those_of_lgip_the_additional_kinds_and_rococo():
    edits, _ = playground.edits(CAPTION, seed=7, k=2)
    expected = {
        text
        for text, _ in lgip.edits(
            [CAPTION], "playground", seed=7, kinds=lgip.ALL_KINDS, k_same=1000
        ).edits[0]
    }
    for policy in substitution.POLICIES:
        made, _ = substitution.alter([CAPTION], "playground", policy, k=2, seed=7)
        expected |= {one.text for one in made if one}
    made, _ = substitution.delete([CAPTION], "playground", "random", seed=7)
    expected |= {one.text for one in made if one}
    assert {one.text for one in edits} == expected
    assert [one.group for one in edits] == sorted(
        (one.group for one in edits), key=list(playground.GROUPS).index
    )
    assert {one.edit.subtype for one in edits if one.group == "flip"} == {
        "color",
        "number",
        "object",
    }
    by_group = {
        group: {one.edit.subtype for one in edits if one.group == group}
        for group in ("statement", "surface")
    }
    offered = set(kind_edits.NAMES)
    assert by_group["statement"] == offered & {"negation", "relation", "attribute-swap"}
    assert by_group["surface"] == offered & set(kind_edits.REWORDINGS)
    wrong_groups = {one.group for one in edits if one.wrong}
    assert wrong_groups - {"statement"} == {"flip", "combined", "substitution", "deletion"}
    assert len({(one.group, one.text) for one in edits}) == len(edits)


def test_the_least_influential_word_is_replaced_if_models_vote(softmax: Player):
    edits, _ = playground.edits(CAPTION, players=[softmax])
    whole = softmax.texts([CAPTION])[0]
    nouns = {CAPTION[noun.start : noun.end]: noun for noun in substitution.sources(CAPTION)}
    moved = {
        word: 1
        - float(whole @ softmax.texts([influence.without(CAPTION, noun.start, noun.end)])[0])
        for word, noun in nouns.items()
    }
    least, most = min(moved, key=moved.get), max(moved, key=moved.get)
    assert {one.edit.source for one in edits if one.group == "substitution"} == {least}
    taken = {one.edit.subtype: one.edit.source for one in edits if one.group == "deletion"}
    assert taken["high-ei"] == most
    assert least in taken.values()


def test_edits_that_cannot_be_made_are_reported():
    edits, dropped = playground.edits("A dog.", k=3)
    assert "same-concept: fewer than k words to exchange" in dropped
    assert not [one for one in edits if one.edit.subtype == "same-concept"]


def test_playground_scores_equal_those_of_a_run(softmax: Player, scene: Path):
    edits, _ = playground.edits(CAPTION)
    texts = [one.text for one in edits]
    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    (answer,) = playground.score([softmax], canvas, CAPTION, texts)
    cases = pa.table(
        {
            "images": [[Picture(scene).name]] * len(texts),
            "texts": [[CAPTION, text] for text in texts],
            **{name: [""] * len(texts) for name in ("kind", "subtype", "rule")},
        }
    )
    run = scoring_cases.case_scorer(
        CachedEncoder(softmax.model), lambda rows: (rows["score_0"] - rows["score_1"]).to_numpy()
    )(cases)
    expected = np.array(run["scores"].to_pylist())
    np.testing.assert_allclose(answer.true, expected[:, 0], atol=1e-6)
    np.testing.assert_allclose(answer.scores, expected[:, 1], atol=1e-6)
    np.testing.assert_allclose(playground.margins(answer), run["margin"].to_numpy(), atol=1e-6)
    np.testing.assert_allclose(answer.cosines, np.ravel(run["text_scores"].to_pylist()), atol=1e-6)


def test_a_model_doubts_a_caption_if_one_of_the_others_scores_higher(softmax: Player, scene: Path):
    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    texts = [CAPTION, "A dog.", "Two red buses on a road."]
    scores = {text: softmax.scores([canvas], [text])[0, 0] for text in texts}
    for text in texts:
        doubts = max(scores, key=scores.__getitem__) != text
        doubters, rivals = playground.doubters([softmax], canvas, text, texts)
        assert doubters == ["demo:softmax"] * doubts
        assert (scores[rivals[0]] > scores[text]) == doubts


def test_a_model_encodes_only_new_texts_and_pictures(softmax: Player, scene: Path):
    model = Counting(softmax.model)
    player = Player(model)
    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    playground.score([player], canvas, CAPTION, ["A dog.", "A cat."])
    assert (model.texts, model.images) == (3, 1)
    playground.score(
        [player],
        exhibits.uploaded(scene.read_bytes(), "again.png"),
        CAPTION,
        ["A cat.", "A dog.", "A bus."],
    )
    assert (model.texts, model.images) == (4, 1)
    playground.parts_that_matter(player, canvas, CAPTION)
    playground.parts_that_matter(player, canvas, "A dog.")
    assert (model.texts, model.images) == (4, 17)


def test_an_edit_that_the_tokenizer_erases_is_an_exact_tie_and_is_marked(
    softmax: Player, scene: Path
):
    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    (answer,) = playground.score([softmax], canvas, "A red dog.", ["a red  DOG.", "A blue dog."])
    assert answer.unseen.tolist() == [True, False]
    assert not answer.alike.any()
    assert playground.margins(answer)[0] == 0


def test_edits_to_unknown_words_are_exact_ties_in_every_batch(softmax: Player, scene: Path):
    player = Player(softmax.model)
    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    player.texts(["A red zebra."])
    player.texts(["A red llama.", "A cat.", "Two boats.", "A pink bus."])
    edits = ["A red llama.", "A red wolf.", "A red cat.", "A red cat."]
    (answer,) = playground.score([player], canvas, "A red zebra.", edits)
    assert answer.unseen.tolist() == [True, True, False, False]
    assert answer.alike.tolist() == [True, True, False, False]  # equal texts are not marked
    assert playground.margins(answer)[:2].tolist() == [0, 0]
    assert playground.margins(answer)[2] != 0


def test_wrong_captions_that_look_the_same_to_every_model_count_once(softmax: Player, scene: Path):
    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    texts = ["A red llama.", "A red wolf.", "A blue cat.", "A red owl."]
    edits = [Edited("substitution", text, Edit("flip", "object", "rule")) for text in texts]
    asked = [softmax], canvas, "A red cat."
    words = playground.unlearned([softmax], texts)
    apart, (answer,) = playground.score_apart(*asked, edits, words)
    assert [each.text for each in apart] == [texts[0], texts[2]]
    assert len(answer.scores) == 2 and not answer.alike.any()
    assert playground.score_apart(*asked, edits, {softmax.name: frozenset()})[0] == edits
    edits[1] = Edited("simple", texts[1], Edit("paraphrase", "simple", "rule"))
    apart, _ = playground.score_apart(*asked, edits, words)
    assert [each.text for each in apart] == texts[:3]


def test_a_text_encoder_compares_only_texts(softmax: Player, scene: Path):
    class Texts:
        name, capabilities = "texts", Capabilities(embeds_texts=True, dim=softmax.model.dim)
        tokenize, encode_texts = softmax.model.tokenize, softmax.model.encode_texts

    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    (answer,) = playground.score([Player(Texts())], canvas, CAPTION, ["A dog."])
    assert np.isnan([answer.true, *answer.scores, *playground.margins(answer)]).all()
    expected = float(softmax.texts([CAPTION])[0] @ softmax.texts(["A dog."])[0])
    assert answer.cosines.tolist() == pytest.approx([expected], abs=1e-6)


def test_a_pair_scorer_scores_each_pair_once():
    player = Player(Pairs())
    canvas = exhibits.canvas(Image.new("RGB", (8, 8), (51, 51, 51)))
    for _ in range(2):
        (answer,) = playground.score([player], canvas, "one two", ["one", "one two three four"])
    assert player.model.matched == 3
    assert [answer.true, *answer.scores] == pytest.approx([0.1, 0.2, 0.05])
    assert np.isnan(answer.cosines).all()
    edits, _ = playground.edits("A dog on a bench.", players=[player])  # a pair scorer cannot vote
    assert {one.edit.subtype for one in edits if one.group == "deletion"} == {"random"}


def test_the_score_of_a_picture_with_several_vectors_is_the_best_one():
    class Several:
        name, capabilities = (
            "several",
            Capabilities(embeds_texts=True, embeds_images=True, dim=2, image_dim=4),
        )
        preprocess = staticmethod(lambda image: np.zeros(1))
        encode_images = staticmethod(
            lambda pixels: np.tile(np.float32([1, 0, 0.6, 0.8]), (len(pixels), 1))
        )
        tokenize = staticmethod(lambda texts: np.array([[len(text)] for text in texts]))
        encode_texts = staticmethod(lambda tokens: np.tile(np.float32([0, 1]), (len(tokens), 1)))

    found = Player(Several()).scores([exhibits.canvas(Image.new("RGB", (8, 8)))], ["a"])
    assert found.tolist() == [[pytest.approx(0.8)]]


def test_parts_that_matter_are_decreases_of_the_score(softmax: Player, scene: Path):
    image = Image.open(scene).convert("RGB")
    canvas = exhibits.canvas(image)
    falls = playground.parts_that_matter(softmax, canvas, CAPTION)
    text = softmax.texts([CAPTION])[0]

    def plain(picture: Image.Image) -> float:
        return float(softmax.model.encode_images(softmax.model.preprocess(picture)[None])[0] @ text)

    side = image.width // 4
    for row, column in ((0, 0), (1, 2), (3, 3)):
        masked = image.copy()
        masked.paste((0, 0, 0), (column * side, row * side, (column + 1) * side, (row + 1) * side))
        assert falls[row, column] == pytest.approx(plain(image) - plain(masked), abs=1e-5)


def test_words_and_parts_that_matter_are_decreases_of_the_score_or_margin(
    softmax: Player, scene: Path
):
    canvas = exhibits.canvas(Image.open(scene).convert("RGB"))
    falls = playground.words_that_matter(softmax, canvas, "A red dog.")
    whole, shorter = softmax.scores([canvas], ["A red dog.", "A dog."])[0]
    assert list(falls) == [0, 2, 6] and falls[2] == pytest.approx(whole - shorter, abs=1e-6)
    true, wrong = (
        playground.parts_that_matter(softmax, canvas, caption) for caption in (CAPTION, "A dog.")
    )
    margins = playground.parts_that_matter(softmax, canvas, CAPTION, "A dog.")
    np.testing.assert_allclose(margins, true - wrong, atol=1e-6)


def test_a_mixed_picture_equals_that_of_rococo():
    one, other = (Image.new("RGB", (40, 30), color) for color in ("white", "navy"))
    for kind in ("mix", "patch"):
        made = exhibits.edited(exhibits.canvas(one), exhibits.canvas(other), kind, 0.7).draw()
        assert (
            made.tobytes() == mix.apply(one, other, PictureEdit(kind, Path("x"), 0.7, 1)).tobytes()
        )
    keys = {
        exhibits.edited(exhibits.canvas(one), exhibits.canvas(other), "mix", lam).key
        for lam in (0.7, 0.8, 0.7)
    }
    assert len(keys) == 2


def test_an_upload_is_rotated_upright_resized_and_checked(tmp_path: Path):
    image = Image.new("RGB", (3000, 1500), "red")
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    assert exhibits.uploaded(buffer.getvalue(), "phone.jpg").draw().size == (512, 1024)
    buffer = io.BytesIO()
    Image.new("CMYK", (20, 10)).save(buffer, "JPEG")
    assert exhibits.uploaded(buffer.getvalue(), "print.jpg").draw().mode == "RGB"
    for data in (b"", b"no picture", b"\x89PNG\r\n\x1a\n broken"):
        with pytest.raises(InvalidInput, match=r"'notes\.txt'"):
            exhibits.uploaded(data, "notes.txt")


def test_saved_pictures_are_a_dataset_with_the_same_embeddings(
    softmax: Player, scene: Path, tmp_path: Path
):
    canvas = exhibits.uploaded(scene.read_bytes(), "cats.png")
    folder = exhibits.keep(canvas, CAPTION, "../../My Cats!", tmp_path)
    assert folder == tmp_path / "mine" / "kept" / "my-cats"
    exhibits.keep(canvas, "  Cats \n and boats. ", "my cats", tmp_path)
    exhibits.keep(canvas, CAPTION, "my cats", tmp_path)
    (item,) = registry.load_dataset(f"folder:{folder}", tmp_path).items
    assert item.captions == (CAPTION, "Cats and boats.")
    kept = CachedEncoder(softmax.model).images([item.image])
    np.testing.assert_allclose(kept, softmax.images([canvas])[0], atol=1e-6)
    assert sorted(path.suffix for path in folder.iterdir()) == [".png", ".txt"]


def test_two_people_who_save_one_picture_at_once_save_both_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    canvas = exhibits.canvas(Image.new("RGB", (8, 8)))
    write, other = exhibits.write_bytes, []

    def slowly(path: Path, data: bytes) -> None:
        if not other:  # another person saves while the first one is about to write
            other.append(
                threading.Thread(
                    target=exhibits.keep, args=(canvas, "The other.", "dogs", tmp_path)
                )
            )
            other[0].start()
            other[0].join(0.2)
        write(path, data)

    monkeypatch.setattr(exhibits, "write_bytes", slowly)
    folder = exhibits.keep(canvas, "The first.", "dogs", tmp_path)
    other[0].join()
    (text,) = folder.glob("*.txt")
    assert text.read_text(encoding="utf-8").splitlines() == ["The first.", "The other."]


def test_players_can_have_separate_picture_caches(softmax: Player):
    model = Counting(softmax.model)
    common = Player(model)
    one, canvas = common.isolated(), exhibits.canvas(Image.new("RGB", (64, 64), "red"))
    one.scores([canvas], ["A dog."])
    common.isolated().scores([canvas], ["A dog."])
    one.scores([canvas], ["A dog."])
    assert (model.images, model.texts) == (2, 1)
    assert one._lock is common._lock


def test_texts_are_tokenized_under_the_lock():
    model = Pairs()
    player, tokenize = Player(model), model.tokenize

    def tokenized(texts: list[str]) -> np.ndarray:
        assert player._lock._is_owned()
        return tokenize(texts)

    model.tokenize = tokenized
    playground.score([player], exhibits.canvas(Image.new("RGB", (8, 8))), "A dog.", ["A cat."])


@pytest.mark.parametrize(
    ("caption", "name", "word"), [("A dog.", "../..", "name"), (" \n", "dogs", "caption")]
)
def test_nothing_is_saved_without_a_name_and_a_caption(
    tmp_path: Path, caption: str, name: str, word: str
):
    with pytest.raises(InvalidInput, match=word):
        exhibits.keep(exhibits.canvas(Image.new("RGB", (8, 8))), caption, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_saved_on_a_read_only_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    with pytest.raises(InvalidInput, match="read-only"):
        exhibits.keep(exhibits.canvas(Image.new("RGB", (8, 8))), "A dog.", "dogs", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_demo_shelf_has_the_pictures_of_its_dataset_and_stores_nothing(tmp_path: Path):
    from tools.world.captions import captions
    from tools.world.scenes import distinct
    from vlprobe.datasets.world.renderer import render

    found = exhibits.shelf("demo", tmp_path)
    scenes = distinct("test", 3)
    assert [exhibit.captions for exhibit in found[:3]] == [captions(scene, 5) for scene in scenes]
    assert found[1].open().tobytes() == render(scenes[1]).tobytes()
    assert not list(tmp_path.iterdir())


def test_the_shelf_of_a_dataset_has_its_pictures(tiny: str, tmp_path: Path):
    found = exhibits.shelf(tiny, tmp_path)
    items = registry.load_dataset(tiny, tmp_path).items
    assert [(exhibit.id, exhibit.captions) for exhibit in found] == [
        (item.id, item.captions) for item in items
    ]
    assert found[0].open().size == (64, 48)
