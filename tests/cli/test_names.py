"""Models by their display names: `+as=NAME`, a name that the user set, and the short name on pages."""

import json
import shutil
from pathlib import Path

import pytest

import vlprobe
from tests.cli.test_failures import FIRST, SECOND, run_models, scores_file
from tests.cli.test_main import rows_of
from tests.conftest import call, draw_fewer, run_key_of, store_again
from tests.datasets.test_pairs import valse
from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.render.words import model_name
from vlprobe.storage.store import Store

# Twice the questions, because fewer than five pictures have no interval
ONE, TWO = (
    {**scores, **{f"{key}b": pair for key, pair in scores.items()}} for scores in (FIRST, SECOND)
)
NAMES = ("GPT-4V, right caption first", "CLIP ViT-B/32 (COCO)")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, str]]:
    """Return a cache with two models whose display names have spaces, a comma and a slash."""
    folder = tmp_path_factory.mktemp("named")
    rows = {key: valse(image_file=f"{key}.png", caption=f"A man runs {key}.") for key in ONE}
    (folder / "valse.json").write_text(json.dumps(rows), encoding="utf-8")
    models = tuple(
        f"{scores_file(folder / f'{number}.csv', scores)}+as={name}+logit"
        for number, (name, scores) in enumerate(zip(NAMES, (ONE, TWO), strict=True))
    )
    dataset = f"pairs:{folder / 'valse.json'}+unpictured"
    run_models(folder / "cache", "eqben", dataset, models)
    return folder / "cache", (models[0], models[1])


def test_a_display_name_may_have_spaces_and_slashes(named):
    assert tuple(map(model_name, named[1])) == NAMES


def test_every_command_finds_a_stored_model_by_its_display_name(named):
    cache, models = named
    first, second = (run_key_of(cache, model) for model in models)
    for words in (
        ("compare", 0, 1),
        ("gate", 0, "--against", 1, "--max-drop", "foil_accuracy=1"),
        ("failures", 1),
        ("show", 0),
        ("list", "published", "--key", 0),
    ):
        by_name = [NAMES[word] if isinstance(word, int) else word for word in words]
        by_key = [(first, second)[word] if isinstance(word, int) else word for word in words]
        assert call(cache, *by_name).output == call(cache, *by_key).output != ""


def test_run_accepts_the_display_name_of_a_model(named, tmp_path: Path):
    cache, models = named
    dataset = Store(cache).runs()[0]["run"]["dataset"]
    words = ("run", "--probe", "eqben", "--dataset", dataset, "--no-doctor", "--model", NAMES[0])
    rows = rows_of(cache, *words)
    assert {row["model"] for row in rows} == {models[0]}


def test_a_name_that_the_user_set_is_found_and_can_be_changed(named, tmp_path: Path):
    cache = Path(shutil.copytree(named[0], tmp_path / "cache"))
    call(cache, "rename", NAMES[0], "The big one")
    call(cache, "compare", "The big one", NAMES[1])
    call(cache, "rename", "The big one", "")
    assert "No stored run or model named 'The big one'" in (
        call(cache, "failures", "The big one", code=1).stderr
    )


def test_a_mistyped_display_name_is_suggested(named):
    error = call(named[0], "failures", "CLIP ViT-B/16 (COCO)", code=1).stderr
    assert f"Did you mean '{NAMES[1]}'?" in error and error.count("\n") == 1


def test_a_display_name_of_two_models_is_refused_in_one_line(named, tmp_path: Path):
    cache, models = named
    twin = models[0].replace("+logit", "+cosine")
    dataset = Store(cache).runs()[0]["run"]["dataset"]
    other = tmp_path / "cache"
    run_models(other, "eqben", dataset, (models[0], twin))
    for words in (("compare", NAMES[0], twin), ("failures", NAMES[0]), ("show", NAMES[0])):
        error = call(other, *words, code=1).stderr
        assert f"2 models are called '{NAMES[0]}'" in error and error.count("\n") == 1
    assert "are called" in call(other, "doctor", NAMES[0], code=2).stderr


def test_python_finds_models_by_their_display_names(named):
    cache, models = named
    results = vlprobe.results(models=list(NAMES), cache=cache)
    assert results.failures(NAMES[1]).total == results.failures(models[1]).total == 6
    assert results.value("foil_accuracy", NAMES[0]) == results.value("foil_accuracy", models[0])
    assert results.compare(*NAMES).sentence == results.compare(*models).sentence
    with pytest.raises(NotFound, match="No stored results of named 'nosuch'"):
        vlprobe.results(models="nosuch", cache=cache)


def test_a_display_name_cannot_load_code_or_call_a_server(tmp_path: Path, named, monkeypatch):
    """Check that only a typed name may import a plug-in or cost money, because a cache may come from someone else."""
    draw_fewer(monkeypatch, 6)  # drawing all 500 takes 5 s
    cache = Path(shutil.copytree(named[0], tmp_path / "cache"))
    store = Store(cache)
    manifest = store.runs()[0]
    name = "http:https://paid.example/v1#m+as=Ours"
    store_again(store, manifest, "e" * 16, model=name)
    assert "Ours" in call(cache, "show", "Ours").stdout
    error = call(cache, "doctor", "Ours", code=2).stderr
    assert "--api" in error or "may not be asked" in error


@pytest.mark.parametrize("option", ["as=", "as=" + "x" * 61])
def test_an_empty_or_long_display_name_is_refused(tmp_path: Path, option: str):
    name = f"{scores_file(tmp_path / 'a.csv', FIRST)}+{option}"
    with pytest.raises(InvalidInput, match=r"is not a valid option"):
        registry.load_model(name)


@pytest.mark.parametrize(
    ("words", "code"), [(("doctor", "demo:nope"), 2), (("run", "--model", "demo:nope"), 1)]
)
def test_an_unknown_model_is_refused_before_a_picture_is_drawn(words, code, tmp_path):
    error = call(tmp_path / "cache", *words, code=code).stderr
    assert "No model named 'demo:nope'" in error
    assert not list(tmp_path.rglob("*.png"))
