"""The papers' figures on their pages, on a small store that holds all five probes."""

import json
import os
import re
from functools import partial

import numpy as np
import pytest
from PIL import Image

from tests.conftest import make_tiny
from tests.dashboard.test_pages import bodies, open_page
from vlprobe import registry, views
from vlprobe.dashboard import loaded
from vlprobe.dashboard.lab import influence as dashboard_influence
from vlprobe.dashboard.lab import papers
from vlprobe.dashboard.pictures import changed_at
from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, substitution
from vlprobe.probes.released_layout import layouts
from vlprobe.render import charts
from vlprobe.runs import jobs
from vlprobe.runs.consensus import consensus
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.storage.store import Store
from vlprobe.types import Picture

RANDOM, CONSTANT = "control:random", "control:constant"


@pytest.fixture
def key(every_probe: Store) -> dict[str, str]:
    return dict(views.runs.question_sets(every_probe).set_index("probe")["case_key"])


def _embed(model, texts):
    return model.encode_texts(model.tokenize(texts))


def chart_keys(at) -> set[str]:
    return {element.key for element in at.get("plotly_chart")}


@pytest.mark.parametrize(
    ("page", "probe", "figures"),
    [
        ("pairs", "eqben", {"subsets", "deviations"}),
        ("triplets", "visla", {"triplets", "distances", "lures"}),
    ],
)
def test_a_page_draws_its_paper_s_figures(
    open_probe, key, page: str, probe: str, figures: set[str]
):
    at = open_probe(page, set=key[probe])
    assert not at.error and not at.exception
    assert figures <= chart_keys(at)


def test_a_figure_is_drawn_once_per_address(open_probe, key, monkeypatch):
    made: list[str] = []
    dots = charts.dots.dots

    def counted(table, metric, *rest):
        made.append(metric.name)
        return dots(table, metric, *rest)

    monkeypatch.setattr(charts.dots, "dots", counted)
    specs = [
        {chart.key: chart.proto.spec for chart in at.get("plotly_chart")}["subsets"]
        for at in (
            open_probe("pairs", set=key["eqben"], **choice)
            for choice in ({"x": "1"}, {"x": "1"}, {"x": "1", "score": "text_score"})
        )
    ]
    assert made == ["group_score", "text_score"]
    assert specs[0] == specs[1] != specs[2]


def test_a_gallery_too_small_for_an_overlap_shows_a_note(open_probe, key):
    at = open_probe("rankings", set=key["prsm"])
    assert not at.exception
    assert not any(
        name.startswith("depth") for name in chart_keys(at)
    ) and "too small to compute an overlap" in bodies(at)


def test_words_of_captions_and_parts_of_a_failure_have_their_numbers_and_a_legend(open_probe, key):
    at = open_probe("retrieval", set=key["rococo"], reader=RANDOM, looker=RANDOM)
    at.button(key="load_encode_texts").click().run()
    text = bodies(at)
    assert not at.error and not at.exception and "severity" in chart_keys(at)
    assert text.count('class="vp-words"') == dashboard_influence.CAPTIONS
    numbers = [float(number) for number in re.findall(r'vp-word".*?<small>([\d.]+)</small>', text)]
    assert len(numbers) > 2 * dashboard_influence.CAPTIONS and max(numbers) > 0
    assert "Noun with the least influence" in text and "most influence" in text
    titles = [element.value for element in at.markdown]
    assert "**The right picture**" in titles and "**Ranked first instead**" in titles
    assert text.count("Strongest in row") == 2


def test_a_click_computes_the_least_influential_words_and_altered_captions_can_be_downloaded(
    open_probe, key, every_probe, monkeypatch
):
    at = open_probe("retrieval", set=key["rococo"])
    assert "consensus" not in chart_keys(at)
    assert "with each word left out once" in bodies(at)
    at.button(key="ask_consensus").click().run()
    assert not at.exception
    assert {"consensus", "source_words"} <= chart_keys(at)
    items = views.figures.item_captions(views.runs.question_set(every_probe, key["rococo"]), 100)
    models = [registry.load_model(name) for name in (RANDOM, CONSTANT)]
    encoders = [partial(_embed, model) for model in models]
    for all_words in (False, True):
        votes = consensus(items, encoders, all_words=all_words)
        assert f"**{100 * votes.share_of_two:.1f} %** of {votes.n_captions:,} captions" in "".join(
            element.value for element in at.markdown
        )
        at.toggle(key="consensus_all_words").set_value(True).run()
    reader = partial(every_probe.cases(key["rococo"]).blocks, "cases")
    rule = at.selectbox(key="altered").value
    entries = json.loads(papers.altered_captions(reader, rule))
    assert entries == layouts(reader, {}, rule)[rule].entries == []  # two captions a picture


def test_opening_the_page_loads_no_model(open_probe, key, monkeypatch):
    def refuse(name: str):
        raise AssertionError(f"{name} was loaded")

    monkeypatch.setattr(dashboard_influence, "load_player", refuse)
    monkeypatch.setattr("vlprobe.registry.load_model", refuse)
    at = open_probe("retrieval", set=key["rococo"])
    assert not at.exception and {"severity"} <= chart_keys(at)
    assert at.button(key="load_encode_texts") and at.button(key="load_encode_images")
    assert 'class="vp-words"' not in bodies(at)


def test_a_click_starts_a_job_for_the_missing_strengths_only(open_probe, key, monkeypatch):
    requests = []
    monkeypatch.setattr(jobs, "start", lambda request, store: requests.append(request) or "0")
    at = open_probe("retrieval", set=key["rococo"], edit="mix")
    assert "Measured at 10 %; not yet at 20 %, 30 %, 40 %" in bodies(at)
    at.button(key="ask_severity").click().run()
    (request,) = requests
    assert (
        request.options["pictures"] == ["mix:0.8", "mix:0.7", "mix:0.6"]
        and request.options["policies"] == []
    )
    assert request.options["picture_seeds"] == [1] and set(request.models) == {RANDOM, CONSTANT}


def test_a_model_that_cannot_be_loaded_is_one_line_and_a_read_only_dashboard_offers_no_run(
    open_probe, key, monkeypatch
):
    def missing(name: str):
        raise InvalidInput(f"The weights of {name} are gone.")

    monkeypatch.setattr(loaded, "load_player", missing)
    monkeypatch.setattr(access, "read_only", lambda: True)
    at = open_probe(
        "retrieval", set=key["rococo"], edit="danger", measure="rsms", reader=RANDOM, looker=RANDOM
    )
    for does in ("encode_texts", "encode_images"):
        at.button(key=f"load_{does}").click().run()
        assert not at.exception
        assert f"The weights of {RANDOM} are gone." in bodies(at)
        assert "vp-word" not in bodies(at)
    assert "ask_severity" not in {button.key for button in at.button}


def test_the_deviation_of_one_subset_names_its_group_scores(open_probe, every_probe, key):
    table = views.estimates.estimates(
        views.runs.question_set(every_probe, key["eqben"]), "subtype"
    ).query("metric == 'group_score'")
    deviation = table[table["model"] == RANDOM].iloc[0]
    at = open_probe("pairs", set=key["eqben"], subset=deviation["slice"])
    assert f"Coin flip {100 * deviation['value']:.1f} %" in bodies(at)


def test_the_least_influential_noun_moves_the_caption_embedding_least_when_it_is_removed():
    captions = ("A red dog on a bench near a fire hydrant.", "Nothing at all.")
    model = registry.load_model(RANDOM)
    scores, least = dashboard_influence._influences(RANDOM, captions)

    def moved(caption: str, start: int, end: int) -> float:
        rows = model.encode_texts(model.tokenize([caption, influence.without(caption, start, end)]))
        return 1 - float(rows[0] @ rows[1])

    assert scores[0] == {
        start: pytest.approx(moved(captions[0], start, end), abs=1e-6)
        for start, end in influence.word_spans(captions[0])
    }
    nouns = {
        captions[0][n.start : n.end]: moved(captions[0], n.start, n.end)
        for n in substitution.sources(captions[0])
    }
    assert len(nouns) > 1 and least == [min(nouns, key=nouns.get), ""]


def test_the_influence_of_picture_parts_is_recomputed_when_the_file_changes(tmp_path):
    path = tmp_path / "picture.png"
    Image.new("RGB", (40, 40), "red").save(path)
    name = Picture(path).name
    before = dashboard_influence._occlusion(RANDOM, name, changed_at(Picture.from_name(name)))
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    os.utime(path, ns=(1, 1))
    after = dashboard_influence._occlusion(RANDOM, name, changed_at(Picture.from_name(name)))
    assert not np.allclose(before, after)


def test_a_page_about_foils_or_caption_pairs_describes_them_and_has_no_empty_sections(
    monkeypatch, tmp_path
):
    row = {"dataset": "SWiG", "linguistic_phenomena": "plurals", "mturk": {"caption": 3}}
    row |= {"image_file": "0.png", "caption": "A red dog.", "foil": "A red cat."}
    rows = {name: row | {"image_file": f"{name}.png"} for name in ("0", "1", "2")}
    make_tiny(tmp_path / "pictures")
    (tmp_path / "foils.json").write_text(json.dumps(rows), "utf-8")
    store = Store(tmp_path / "cache")
    name = f"pairs:{tmp_path / 'foils.json'}@{tmp_path / 'pictures'}"
    execute(Request((RANDOM,), name, "eqben", examine=False), store)
    execute(Request((RANDOM,), name, "visla", examine=False), store)
    at = open_page(monkeypatch, store, "pairs")
    assert not at.exception and not at.error
    assert "one of them is wrong" in at.markdown[0].value and "Two pictures" not in bodies(at)
    assert {"subsets"} == chart_keys(at) and "score" not in {
        one.key for one in at.get("button_group")
    }
    assert [header.value for header in at.header] == ["Accuracy by type of difference"]
    at = open_page(monkeypatch, store, "triplets")
    assert not at.exception and "one of them is wrong" in at.markdown[0].value
    assert [header.value for header in at.header] == [
        "Meaning or wording",
        "Size and training data",
    ]
    assert "subset" not in {one.key for one in at.selectbox} and "grey cross" not in bodies(at)


def test_excluded_models_are_listed_by_their_display_names(open_probe, key, monkeypatch):
    monkeypatch.setattr(dashboard_influence, "loads_at_once", lambda name: name != RANDOM)
    monkeypatch.setattr(dashboard_influence, "model_name", lambda name: "ViT-B-32")
    at = open_probe("retrieval", set=key["rococo"])
    assert "To include these models, load them above: ViT-B-32." in bodies(at)
