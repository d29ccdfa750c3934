"""Home without a browser: a first failure, numbers that open their cases, doors, the user's and bundled results."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import case_key_of, make_tiny, store_again, tiers
from tests.dashboard.test_pages import words
from tests.dashboard.walls import component_values, send, wall
from tests.views.test_leaders import examine
from tools.ship import PROBES
from vlprobe import views
from vlprobe.dashboard import embeddings
from vlprobe.dashboard.navigation import BELOW, ROW
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access, shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter

CLIP, WEAK = "demo:softmax", "demo:weak"
LGIP_KEY = "caca69741f742f8b"  # of the bundled answers about drawn scenes
PAGES = [name for name in {**ROW, **BELOW} if name != "home"]


def hero(at: AppTest) -> dict:
    ((_, values),) = component_values(at, "home")
    return values


def figures(at: AppTest) -> dict:
    ((_, values),) = component_values(at, "figures")
    return values


def test_a_fresh_clone_shows_a_failure_and_three_numbers(show_page, bundled):
    at = show_page(bundled)
    case = hero(at)["cases"][0]
    assert case["heading"] == ["You see trains.", "All six models say dogs."]
    assert [box["label"] for box in case["boxes"]] == ["True", "The lie"]
    assert case["verdict"] == "All six models chose this one"
    assert len(case["marks"]) == 6
    assert (
        case["present"].startswith("present?set=")
        and f"case={quote_plus(case['id'])}" in case["present"]
    )
    assert case["pictures"][0]["source"].startswith("data:image/webp;base64,")
    assert case["pictures"][0]["alt"] == "On the sand, three yellow trains are standing."
    numbers = figures(at)["numbers"]
    assert [entry["big"] for entry in numbers] == ["0.2 %", "17.1 %", "27.8 %"]
    assert all(
        entry["strong"] and entry["sentence"].startswith(entry["strong"]) for entry in numbers
    )
    assert numbers[0]["exact"] == "4 of 2,479 lies believed"
    assert [entry["title"] for entry in figures(at)["doors"]][:3] == [
        "Explore",
        "Compare",
        "Present",
    ]
    assert figures(at)["doors"][0]["sentence"] == "282 pictures that fool Tiny CLIP at least once"
    assert figures(at)["strip"]["of"] == "of 6,107"
    assert "Bundled results: six small models, 500 drawn scenes." in words(at)
    assert not at.error and not at.warning
    assert not list(bundled.root.glob("runs/*"))


def test_a_fresh_clone_opens_on_published_answers_of_real_models(show_page, tmp_path, monkeypatch):
    monkeypatch.delenv(shipped.SETTING)
    at = show_page(StoreAboveShipped(tmp_path / "own", shipped.PUBLISHED_FOLDER, shipped.FOLDER))
    case = hero(at)["cases"][0]
    assert case["verdict"] == "CLIP ViT-B/32, CLIP_COCO and CLIP_TROHN-Img chose this one"
    assert [mark["name"] for mark in case["marks"]] == [
        "CLIP ViT-B/32",
        "CLIP_COCO",
        "CLIP_TROHN-Img",
    ]
    chose_true = ["GPT-4V", "CLIP_TROHN-Text"]
    assert [mark["name"] for mark in case["right"]["marks"]] == chose_true
    assert case["right"]["verdict"] == "GPT-4V and CLIP_TROHN-Text"
    assert "model=published%3ACLIP+ViT-B%2F32&" in case["href"]  # a model that the case fools
    assert figures(at)["strip"]["guess"] == 0.5
    (picture,) = case["pictures"]
    assert picture["source"].startswith("data:image/webp;base64,")
    assert picture["credit"]["license"] == "CC BY-SA 2.0"
    assert next(row["name"] for row in figures(at)["strip"]["models"]) == "GPT-4V"
    links = {link.proto.label: link.proto.query_string for link in at.get("page_link")}
    drawn = ("Rewording", "Mixed pictures", "Trade-off by edits", "Try it")
    assert {"SugarCrepe", "VALSE", *drawn} <= links.keys()
    assert f"set={LGIP_KEY}" in links["Rewording"] == links["Trade-off by edits"]
    assert links["Try it"] == ""
    assert not at.error and not at.warning


def test_a_link_from_home_to_home_is_a_button_that_changes_the_url(
    show_page, tmp_path, monkeypatch
):
    monkeypatch.delenv(shipped.SETTING)
    here = "http://localhost:8501/"
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.url", property(lambda _: here))
    at = show_page(StoreAboveShipped(tmp_path / "own", shipped.PUBLISHED_FOLDER, shipped.FOLDER))
    assert {"SugarCrepe", "VALSE", "Rewording"} <= {button.label for button in at.button}


def test_the_counts_separate_questions_pictures_and_local_pictures(
    show_page, tmp_path, monkeypatch
):
    monkeypatch.delenv(shipped.SETTING)
    at = show_page(shipped.opened(tmp_path / "own"), "explore")
    assert [fold.label for fold in at.expander if fold.label.startswith("About")] == [
        "About the questions: 7,512 questions, 1,561 pictures, 30 of them on this machine"
    ]
    at = show_page(shipped.opened(tmp_path / "own"), "explore", set=LGIP_KEY)
    assert [fold.label for fold in at.expander if fold.label.startswith("About")] == [
        "About the questions: 500 pictures, 35,160 cases"
    ]


def test_explore_shows_as_many_cases_as_home_counts(show_page, bundled):
    at = show_page(bundled)
    for place, entry in enumerate(figures(at)["numbers"]):
        at = send(show_page(bundled), "figures", "go", entry["href"])
        believed = entry["exact"].split()[0]
        assert wall(at)["heading"].startswith(f"{believed} wrong captions preferred"), place
        assert at.query_params["model"] == CLIP
    door = figures(show_page(bundled))["doors"][0]
    at = send(show_page(bundled), "figures", "go", door["href"])
    assert "on 282 pictures" in wall(at)["heading"]


def test_the_door_to_mixed_pictures_opens_one_that_loses_to_its_mixture(show_page, bundled):
    door = figures(show_page(bundled))["doors"][-1]
    assert door["title"] == "Mixed pictures"
    assert door["sentence"] == "A tenth of another picture is enough to lose the right one"
    assert [one["source"][:16] for one in door["pictures"]] == ["data:image/webp;"] * 3
    assert door["pictures"][2]["alt"] == door["pictures"][0]["alt"] + ", mixed"
    at = send(show_page(bundled), "figures", "go", door["href"])
    ((_, mixed),) = component_values(at, "mixed")
    assert door["pictures"][0]["alt"] == mixed["query"]
    case = views.runs.question_set(bundled, at.query_params["set"])
    number = views.mixed.searches.order(case, CLIP, "mix:0.9")[0][0]
    scores = bundled.run(case.run(CLIP).key).table("scores").to_pandas().set_index("case")
    assert scores.loc[number, "rank_clean"] == 1
    assert scores.loc[number, "rank"] > 1
    assert json.loads(scores.loc[number, "top"])["path"].endswith("demo-00275.png")


def test_without_searches_among_mixed_pictures_home_has_no_door_to_them(show_page, filled_with_one):
    titles = [door["title"] for door in figures(show_page(filled_with_one))["doors"]]
    assert titles == ["Explore", "Compare", "Present", "Try it"]


def test_the_door_to_mixed_pictures_uses_the_selected_model(show_page, mixed_store):
    door = figures(show_page(mixed_store, model="hue:2"))["doors"][-1]
    assert "&model=hue%3A2&kind=t2i" in door["href"]


def test_the_case_opens_in_explore(show_page, bundled):
    at = show_page(bundled)
    case = hero(at)["cases"][0]
    at = send(at, "home", "go", case["href"])
    assert at.query_params["case"] == case["id"]
    assert at.query_params["kind"] == "flip"
    assert "three yellow" in words(at) or at.get("dialog")


def test_a_model_of_the_strip_opens_its_failures(show_page, bundled):
    at = show_page(bundled)
    for model in figures(at)["strip"]["models"][:2]:
        at = send(show_page(bundled), "figures", "go", model["href"])
        assert at.query_params["model"] == model["stored"]
        rate = wall(at)["note"].partition(" of ")[0]
        assert rate == model["value"]


def test_home_sends_the_next_failures_in_advance(show_page, bundled):
    at = show_page(bundled)
    first = hero(at)["cases"]
    assert [case["place"] for case in first] == [0, 1, 2]
    assert len({case["id"] for case in first}) == 3
    component_id = component_values(at, "home")[0][0]
    states = at._tree.get_widget_states()
    states.widgets.add(id=component_id).json_value = json.dumps({"place": 2})
    at._run(states)
    assert not at.exception
    then = hero(at)["cases"]
    assert [case["place"] for case in then] == [2, 3, 4]
    assert then[0] == first[2]


@pytest.mark.parametrize("probe", tiers(PROBES, ("series",)))
def test_home_opens_every_bundled_probe(show_page, bundled, probe):
    sets = views.runs.question_sets(bundled).set_index("probe")
    at = show_page(bundled, set=sets.loc[probe, "case_key"])
    assert not at.error and not at.warning
    case = hero(at)["cases"][0]
    assert all(line.endswith(".") for line in case["heading"])
    assert all(picture["source"] for picture in case["pictures"])
    assert len(case["pictures"]) == (2 if probe in ("eqben", "series") else 1)
    assert len(figures(at)["strip"]["models"]) == 6
    # 15 cases per type of video are too few
    assert len(figures(at)["numbers"]) == {"visla": 2, "prsm": 0, "series": 0}.get(probe, 3)
    for entry in figures(at)["strip"]["models"]:
        assert 0 <= entry["width"] <= 1
    assert len(json.dumps(hero(at))) < 1_000_000
    if probe != "lgip":
        assert "Bundled results ·" in words(at)


def test_the_width_of_a_bar_is_the_share_in_its_label(show_page, bundled):
    sets = views.runs.question_sets(bundled).set_index("probe")["case_key"]
    for probe in ("lgip", "rococo", "eqben"):
        for entry in figures(show_page(bundled, set=sets[probe]))["strip"]["models"]:
            assert f"{100 * entry['width']:.1f} %" == entry["value"]


def test_a_number_on_home_needs_at_least_30_cases(show_page, compared: Store):
    entries = figures(show_page(compared, model="guess"))["numbers"]
    counts = views.showcase.lie_counts(
        views.runs.question_set(compared, compared.runs()[0]["case_key"]), "flip"
    )
    n_lies = {one.subtype: one.n_lies for one in counts if one.model == "guess"}
    assert min(n_lies.values()) < 30
    links = [parse_qs(urlsplit(entry["href"]).query) for entry in entries]
    assert all(n_lies[link["type"][0]] >= 30 for link in links)


@pytest.fixture
def two_photographers(store_copy: Store) -> Store:
    """Return results of `guess` and `other` on the same pictures; `guess` failed a check against chance."""
    manifest = next(one for one in store_copy.runs() if one["run"]["model"] == "guess")
    for key, name in (("e" * 16, "other"), ("d" * 16, "third")):
        store_again(store_copy, manifest, key, model=name, model_digest=name)
    fail_chance(store_copy, manifest["run"])
    return store_copy


def fail_chance(store: Store, run: dict) -> None:
    examine(store, run["model_digest"], run["dataset_digest"], "r1_back")


def test_a_model_that_failed_its_checks_is_marked_and_no_headline_counts_it(
    show_page, two_photographers: Store
):
    at = show_page(two_photographers, model="guess")
    strip = {model["stored"]: model["remark"] for model in figures(at)["strip"]["models"]}
    assert strip == {"guess": "failed its checks", "other": "", "third": ""}
    for case in hero(at)["cases"]:
        assert re.search("(One of two|Both) models", " ".join(case["heading"]))
        assert {mark["name"] for mark in case["marks"]} <= {"other", "third"}
        assert "checks" not in case["verdict"]
    assert "guess" not in figures(at)["doors"][0]["sentence"]


def test_if_every_model_failed_its_checks_the_failure_is_marked_as_a_possible_guess(
    show_page, two_photographers: Store
):
    for manifest in two_photographers.runs():
        fail_chance(two_photographers, manifest["run"])
    at = show_page(two_photographers)
    for case in hero(at)["cases"]:
        assert case["verdict"].endswith(
            " chose this one. No model here passed its checks, so these may be guesses."
        )


@pytest.mark.full  # tests/browser/test_walk.py opens every page
@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_the_bundled_results(show_page, bundled, page):
    at = show_page(bundled, page)
    assert not at.error
    assert not [one for one in at.info if "Nothing has been run" in one.value]


def test_an_explanation_is_offered_only_if_the_model_can_be_loaded(show_page, bundled, monkeypatch):
    for folder, has_why in ((shipped.FOLDER, True), (shipped.PUBLISHED_FOLDER, False)):
        monkeypatch.setenv(shipped.SETTING, str(folder))
        assert {case["why"] for case in hero(show_page(bundled))["cases"]} == {has_why}


@pytest.mark.parametrize("name", ["openclip:ViT-B-32/openai", "hf-itm:a/b", "hf-gen:a/b"])
def test_a_model_that_must_be_loaded_first_is_not_a_ready_encoder(name: str):
    assert not embeddings.is_ready(name) and embeddings.is_ready("demo:softmax")
    assert not embeddings.is_ready("control:random")


def test_tags_on_bundled_cases_are_stored_in_the_users_cache(show_page, bundled):
    key = case_key_of(bundled)
    before = {path for path in shipped.FOLDER.rglob("*")}
    at = show_page(
        bundled, "explore", set=key, model=CLIP, case=hero(show_page(bundled))["cases"][0]["id"]
    )
    next(field for field in at.multiselect if field.label == "My tags").set_value(["telling"]).run()
    assert not at.exception
    assert (bundled.root / "mine" / "annotations" / f"{key}.jsonl").exists()
    assert {path for path in shipped.FOLDER.rglob("*")} == before


def test_the_users_results_come_first_and_bundled_ones_are_optional(show_page, bundled, tmp_path):
    execute(
        Request((WEAK,), make_tiny(tmp_path / "tiny"), "lgip", examine=False), Store(bundled.root)
    )
    at = show_page(bundled)
    assert "Your results ·" in words(at)
    options = at.selectbox(key="set").options
    assert [option.startswith("Bundled results ·") for option in options] == [False, *[True] * 6]
    assert hero(at)["kicker"] == "Failure of the day, from your results"
    at.selectbox(key="set").set_value(views.runs.question_sets(bundled)["case_key"][1]).run()
    assert "Bundled results: six small models" in words(at)


def test_results_that_finish_while_home_is_open_are_shown(show_page, bundled, tmp_path):
    at = show_page(bundled)
    assert "Bundled results" in words(at)
    execute(
        Request((WEAK,), make_tiny(tmp_path / "tiny"), "lgip", examine=False), Store(bundled.root)
    )
    at.run()
    assert "Your results ·" in words(at)
    at.selectbox(key="set").set_value(views.runs.question_sets(bundled)["case_key"][1]).run()
    at.run()
    assert "Bundled results: six small models" in words(at)


def test_home_does_not_switch_to_a_new_control_or_smaller_run(show_page, bundled, tmp_path):
    tiny, store = make_tiny(tmp_path / "tiny"), Store(bundled.root)
    at = show_page(bundled)
    execute(Request(("control:random",), tiny, "lgip", limit=2), store)
    at.run()
    assert "Bundled results" in words(at)
    execute(Request((WEAK,), tiny, "lgip", examine=False), store)
    at.run()
    assert ", 6 pictures · one model" in words(at)
    execute(Request((WEAK,), tiny, "lgip", limit=3, examine=False), store)
    at.run()
    assert ", 6 pictures · one model" in words(at)


def test_home_keeps_results_with_failures_and_a_link_to_results_without_any_shows_all_cases(
    show_page, bundled
):
    of_color = {"kinds": ["flip"], "flips": ["color"]}
    request = Request((CLIP,), "demo", "lgip", limit=20, options=of_color, examine=False)
    execute(request, Store(bundled.root))
    at = show_page(bundled)
    assert "Bundled results" in words(at) and hero(at)["cases"]
    at = show_page(bundled, set=case_key_of(bundled))
    door = figures(at)["doors"][0]
    assert door["sentence"] == "Every case of Tiny CLIP"
    at = send(at, "figures", "go", door["href"])
    assert wall(at)["heading"] == "100 wrong captions, on 20 pictures"


def test_without_any_results_one_button_fills_the_page(show_page, store: Store):
    at = show_page(store)
    assert [button.key for button in at.button] == ["demo"]
    assert not component_values(at, "home")


def test_a_read_only_home_has_no_link_to_run_a_test(show_page, bundled, monkeypatch):
    monkeypatch.setenv(access.READ_ONLY, "1")
    at = show_page(bundled)
    assert hero(at)["cases"]
    assert "Test your own model" not in [link.proto.label for link in at.get("page_link")]


def test_one_model_is_enough(show_page, filled_with_one: Store):
    at = show_page(filled_with_one)
    case = hero(at)["cases"][0]
    assert "models" not in " ".join(case["heading"])
    assert len(figures(at)["strip"]["models"]) == 1
    assert figures(at)["doors"][1]["sentence"].startswith("Test a second model")


@pytest.fixture
def filled_with_one(tmp_path: Path) -> Store:
    store = Store(tmp_path / "cache")
    execute(Request(("control:random",), make_tiny(tmp_path / "tiny"), "lgip"), store)
    return store


@pytest.fixture
def twenty_three(filled_with_one: Store) -> Store:
    """Return one run under 23 names, of which some are long and one is hostile."""
    (manifest,) = filled_with_one.runs()
    names = [f"openclip:A-Very-Long-Architecture-Name-{n}/{'tag' * 30}" for n in range(21)]
    for number, name in enumerate([*names, "x:<img src=x onerror=alert(1)>"]):
        key, digest = f"{number:016x}", f"{number:032x}"
        store_again(filled_with_one, manifest, key, model=name, model_digest=digest)
    return filled_with_one


def test_twenty_three_models_fit_and_leave_room_for_figures_and_slides(
    show_page, twenty_three: Store
):
    at = show_page(twenty_three)
    assert not at.error
    case = hero(at)["cases"][0]
    assert "All 22 models" in case["heading"][1]  # the control does not count
    assert len(case["marks"]) == 9
    assert case["more"] > 0
    strip = figures(at)["strip"]
    assert len(strip["models"]) == 12
    assert strip["more"] == "and 10 more models"
    at = send(at, "figures", "go", strip["more_href"])
    assert not at.error
    at = show_page(twenty_three, "breakdown")
    assert "too many models for a legend" in words(at)
    ((_, talk),) = component_values(show_page(twenty_three, "present"), "slides")
    slide = next(slide for slide in talk["slides"] if slide["id"] == "reveal")
    assert sum(len(option["marks"]) for option in slide["options"]) == 14
    assert slide["note"] == "Marks: the first 14 of 22 models."


def test_a_missing_picture_is_named(show_page, filled_with_one: Store, tmp_path: Path):
    for path in (tmp_path / "tiny").glob("*.png"):
        path.unlink()
    at = show_page(filled_with_one)
    (picture,) = hero(at)["cases"][0]["pictures"]
    assert picture["source"] == ""
    assert picture["name"].endswith(".png")


def test_a_link_to_missing_results_shows_a_warning(show_page, bundled):
    at = show_page(bundled, set="0" * 16)
    assert "not found" in at.warning[0].value
    assert hero(at)["cases"]


def test_an_address_that_is_not_on_the_page_is_ignored(show_page, bundled):
    for href in ("../../etc", "explore?model=nobody", "https://example.com", "<script>"):
        at = send(show_page(bundled), "figures", "go", href)
        assert hero(at)["cases"]
    at = send(show_page(bundled), "home", "go", "explore?case=no-case")
    assert hero(at)["cases"]


def test_the_url_selects_the_model_of_home(show_page, bundled):
    at = show_page(bundled, model="demo:eqsim")
    assert figures(at)["doors"][0]["sentence"].endswith("fool Pair-tuned at least once")
    counts = views.cases.outcomes(
        views.runs.question_set(bundled, at.query_params["set"]),
        Filter("demo:eqsim", "flip", subtype="number", outcome="all"),
    )
    assert figures(at)["numbers"][-1]["exact"].startswith(
        f"{counts['fooled']:,} of {counts['all']:,}"
    )


@pytest.mark.parametrize(
    "caption", ["</script><img src=x onerror=alert(1)>", "כלב אדום קטן", "dog " * 1250]
)
def test_hostile_captions_reach_the_page_as_short_text(show_page, tmp_path: Path, caption: str):
    dataset = make_tiny(tmp_path / "tiny")
    file = tmp_path / "tiny" / "captions.csv"
    text = file.read_text(encoding="utf-8").replace(
        "A red dog is sitting on a bench.", f"A red dog {caption}"
    )
    file.write_text(text, encoding="utf-8")
    store = Store(tmp_path / "cache")
    execute(Request(("control:random",), dataset, "lgip"), store)
    at = show_page(store)
    for case in hero(at)["cases"]:
        for box in case["boxes"]:
            assert sum(len(part) for part, _ in box["line"]) < 400
    assert len(json.dumps(hero(at))) < 1_000_000


def test_home_shows_the_same_failure_after_a_visit_to_another_page(show_page, bundled):
    at = show_page(bundled)
    component_id = component_values(at, "home")[0][0]
    states = at._tree.get_widget_states()
    states.widgets.add(id=component_id).json_value = json.dumps({"place": 1})
    at._run(states)
    second = hero(at)["cases"][0]
    at = send(at, "home", "go", second["href"])
    at.query_params.clear()
    at.switch_page("pages/home.py").run()
    assert hero(at)["cases"][0]["id"] == second["id"]


@pytest.mark.parametrize("with_results", [False, True])
def test_home_shows_the_progress_of_the_run_in_the_url(
    show_page, bundled, monkeypatch, store: Store, with_results: bool
):
    base = Store(bundled.root) if with_results else store
    job_id = jobs.write(Request(("demo:weak",), "demo", "lgip"), base)
    monkeypatch.setattr(jobs, "_reason_of_death", lambda folder: "")
    if not with_results:
        monkeypatch.setenv(shipped.SETTING, "")
    at = show_page(base, job=job_id)
    assert "demo:weak" in words(at) or "Half-trained" in words(at)
    assert "demo" not in [button.key for button in at.button]
    assert bool(component_values(at, "home")) is with_results
