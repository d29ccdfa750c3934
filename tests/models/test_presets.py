"""The models of the papers by short names: each names weights that exist and a row of the published tables."""

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
def test_every_preset_is_listed_and_printed_in_its_paper(paper):
    prefix, count = PAPERS[paper]
    family = FAMILIES[prefix]
    table = views.published.load().query("paper == @paper")
    assert len(family.presets) == count
    assert set(family.NAMES) <= set(registry.names("models"))
    for preset in family.presets.values():
        assert preset.printed in set(table["model"])


@pytest.mark.parametrize("paper", PAPERS)
def test_every_preset_names_weights_that_its_family_knows(paper):
    for preset in FAMILIES[PAPERS[paper][0]].presets.values():
        family, _, what = preset.weights.partition(":")
        assert family in (openclip.PREFIX, "hf")
        if family == openclip.PREFIX:
            assert tuple(what.split("/")) in open_clip.list_pretrained()


def test_no_prefix_of_models_is_one_of_datasets_but_demo():
    prefixes = [
        {name.partition(":")[0] for name in registry.names(folder)}
        for folder in ("models", "datasets")
    ]
    assert prefixes[0] & prefixes[1] <= {"demo"}


def test_a_preset_loads_what_it_stands_for_and_says_so(monkeypatch):
    asked = []

    def load(name, device, precision):
        asked.append((name, device, precision))
        return controls.load("control:random")

    monkeypatch.setattr(registry, "load_model", load)
    model = FAMILIES["lgip"].load("lgip:siglip-base-224", "cpu", "bf16")
    assert asked == [("hf:google/siglip-base-patch16-224", "cpu", "bf16")]
    assert "lgip:siglip-base-224, printed as SigLIP base-p16-224" in model.note


def test_a_preset_that_is_not_there_is_one_line():
    with pytest.raises(NotFound, match="Did you mean 'lgip:siglip-base-224'"):
        registry.load_model("lgip:siglip-base-242")


def test_a_preset_is_looked_for_before_anything_is_loaded():
    registry.check_name("models", "rococo-clip:vit-b-32")
    with pytest.raises(NotFound, match="Did you mean 'visla:rn50x4'"):
        registry.check_name("models", "visla:rn50x5")


def test_every_table_of_the_file_is_a_family_of_a_paper():
    assert {family.PREFIX for family in presets.FAMILIES} == {
        prefix for prefix, _ in PAPERS.values()
    }
