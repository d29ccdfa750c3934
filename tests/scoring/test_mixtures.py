"""One picture mixed with its partner at every share, against single mixtures and scores."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix
from vlprobe.scoring import mixtures
from vlprobe.scoring.mixtures import SHARES, Turn, turn
from vlprobe.types import PictureEdit

CAPTION = "A red dog beside two blue cars."


def noise(seed: int, width: int, height: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


def edit(kind, lam: float = 0.9) -> PictureEdit:
    return PictureEdit(kind, Path("partner.png"), lam, 7)


@pytest.mark.parametrize("kind", ["mix", "patch"])
def test_every_mixture_has_the_pixels_of_a_run(kind):
    image, partner = noise(1, 60, 44), noise(2, 31, 50)
    pictures = mixtures.pictures_by_share(image, partner, edit(kind))
    assert len(pictures) == len(SHARES) == 26 and (SHARES[0], SHARES[-1]) == (100, 50)
    assert pictures[0] == image
    for share, picture in zip(SHARES[1:], pictures[1:], strict=True):
        expected = mix.apply(image, partner, edit(kind, share / 100))
        assert np.array_equal(np.asarray(picture), np.asarray(expected)), share


def test_a_large_picture_is_shrunk_before_it_is_mixed():
    pictures = mixtures.pictures_by_share(noise(1, 1600, 400), noise(2, 40, 40), edit("mix"))
    assert {picture.size for picture in pictures} == {(1024, 256)}


def test_scores_match_those_of_single_pictures():
    model = registry.load_model("demo:softmax")
    image, partner = noise(1, 90, 90), noise(2, 90, 90)
    scores = mixtures.share_scores(
        model, CAPTION, mixtures.pictures_by_share(image, partner, edit("mix"))
    )
    text = model.encode_texts(model.tokenize([CAPTION]))[0]
    assert scores.right == scores.mixtures[0] and not scores.wins[0]
    for share, score in list(zip(SHARES, scores.mixtures, strict=True))[::5]:
        mixture = mix.apply(image, partner, edit("mix", share / 100)) if share < 100 else image
        vector = model.encode_images(model.preprocess(mixture)[None])[0]
        assert score == pytest.approx(float(vector @ text), abs=1e-6)
    assert scores.wins == tuple(scores.right > score for score in scores.mixtures)


def plain_turn(wins: list[bool]) -> int:
    """Return the highest share such that the right picture wins there and at all lower ones, or 0 for none."""
    # `all` of an empty list would be true
    shares = [share for place, share in enumerate(SHARES) if all(wins[place:])]
    return max(shares, default=0)


@pytest.mark.parametrize("seed", range(20))
def test_the_crossover_share_matches_a_plain_search(seed: int):
    wins = (np.random.default_rng(seed).random(26) < (0.2, 0.9, 0.98)[seed % 3]).tolist()
    assert turn(wins).share == plain_turn(wins)
    runs = "".join("LW"[won] for won in wins).replace("LW", "L|W").replace("WL", "W|L").split("|")
    assert turn(wins).n_changes == len(runs) - 1


def test_the_crossover_share_covers_never_and_always():
    assert turn([False] * 26) == Turn(0, 0) and turn([False] * 26).is_never
    assert turn([False, *[True] * 25]) == Turn(98, 1)
    assert turn([*[True] * 25, False]) == Turn(0, 1)


def test_a_patch_has_the_box_that_a_run_uses():
    size = (640, 480)
    boxes = mixtures.boxes(size, edit("patch"))
    assert boxes[0] == (0, 0, 0, 0)
    for share, box in zip(SHARES[1:], boxes[1:], strict=True):
        pixels = [round(value * side) for value, side in zip(box, size * 2, strict=True)]
        assert tuple(pixels) == mix.box(*size, share / 100, 7)


def test_a_pair_scorer_is_not_scored_at_every_share(monkeypatch):
    model = registry.load_model("control:random")
    assert mixtures.can_ask(model)
    texts = registry.load_model("control:constant")
    capabilities = texts.capabilities
    monkeypatch.setattr(
        type(texts),
        "capabilities",
        property(lambda self: type(capabilities)(embeds_texts=True, scores_pairs=True)),
    )
    assert not mixtures.can_ask(texts)
    with pytest.raises(
        InvalidInput, match="only has scores for the mixing shares used in its runs"
    ):
        mixtures.share_scores(texts, CAPTION, [noise(1, 8, 8)])
