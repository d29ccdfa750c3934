"""Presets: short names of the papers' models, each for existing weights and a row of the published tables."""

import open_clip
import pytest

from vlprobe import registry, views
from vlprobe.errors import NotFound
from vlprobe.models import controls, presets
from vlprobe.models import open_clip as openclip

PAPERS = {
    "lgip": ("lgip", 9),
    "eqben": ("eqben", 2),
    "rococo": ("rococo-clip", 3),
    "visla": ("visla", 15),
}
FAMILIES = registry.families("models")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_preset_is_listed_and_has_a_row_in_its_papers_tables(paper):
    prefix, count = PAPERS[paper]
    family = FAMILIES[prefix]
    table = views.published.load().query("paper == @paper")
    assert len(family.presets) == count
    assert set(family.NAMES) <= set(registry.names("models"))
    for preset in family.presets.values():
        assert preset.printed in set(table["model"])


@pytest.mark.parametrize("paper", PAPERS)
def test_every_preset_refers_to_existing_weights(paper):
    for preset in FAMILIES[PAPERS[paper][0]].presets.values():
        family, _, what = preset.weights.partition(":")
        assert family in (openclip.PREFIX, "hf")
        if family == openclip.PREFIX:
            assert tuple(what.split("/")) in open_clip.list_pretrained()


def test_only_the_prefix_demo_is_used_by_models_and_datasets():
    prefixes = [
        {name.partition(":")[0] for name in registry.names(folder)}
        for folder in ("models", "datasets")
    ]
    assert prefixes[0] & prefixes[1] <= {"demo"}


def test_a_preset_loads_its_model_and_names_it_in_the_note(monkeypatch):
    loaded = []

    def load(name, device, precision):
        loaded.append((name, device, precision))
        return controls.load("control:random")

    monkeypatch.setattr(registry, "load_model", load)
    model = FAMILIES["lgip"].load("lgip:siglip-base-224", "cpu", "bf16")
    assert loaded == [("hf:google/siglip-base-patch16-224", "cpu", "bf16")]
    assert "lgip:siglip-base-224, printed as SigLIP base-p16-224" in model.note


def test_an_unknown_preset_is_refused_with_a_suggestion_before_loading():
    with pytest.raises(NotFound, match="Did you mean 'lgip:siglip-base-224'"):
        registry.load_model("lgip:siglip-base-242")
    registry.check_name("models", "rococo-clip:vit-b-32")
    with pytest.raises(NotFound, match="Did you mean 'visla:rn50x4'"):
        registry.check_name("models", "visla:rn50x5")


def test_every_table_of_the_presets_file_is_a_paper_family():
    assert {family.PREFIX for family in presets.FAMILIES} == {
        prefix for prefix, _ in PAPERS.values()
    }
