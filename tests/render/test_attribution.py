"""Credits of photographs and sources of published answers in every place that shows them."""

from dataclasses import replace
from functools import cache
from typing import Any

import htpy
import pytest
from click.testing import CliRunner

from tests.conftest import question_set_of
from tests.surfaces.test_site import all_text
from vlprobe import views
from vlprobe.case import html, json
from vlprobe.case.card import case_card
from vlprobe.cli.main import main
from vlprobe.dashboard import components
from vlprobe.datasets import bundled, credits
from vlprobe.render import attribution, home
from vlprobe.render.charts.styles import styles
from vlprobe.render.findings import order_sentences
from vlprobe.render.slides import deck, values
from vlprobe.render.slides.values import Slide, SlidePicture
from vlprobe.render.words import presentations
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.surfaces.notebook.interface import load_dataset
from vlprobe.surfaces.notebook.objects import Results
from vlprobe.surfaces.page import slides_file
from vlprobe.surfaces.report.report import case_page, report
from vlprobe.surfaces.site.explore import case_entries
from vlprobe.surfaces.site.subject import Limits, Shelf, read_subject
from vlprobe.surfaces.site.tradeoff import tradeoff_values
from vlprobe.types import Picture, PictureEdit, Publication
from vlprobe.views.filter import Filter
from vlprobe.views.wall import WallCard

STORE = Store(shipped.PUBLISHED_FOLDER)
GPT4V = "published:GPT-4V"
NOTE = "Published by its authors, not computed here"


@cache
def question_set() -> views.runs.QuestionSet:
    return question_set_of(STORE, dataset="bundled:SugarCrepe")


@cache
def pictured() -> WallCard:
    """Return a case that fools GPT-4V, with its photograph."""
    chosen = Filter.parse(GPT4V, "foil", sort="models", pictured="here")
    cards, _, _ = views.wall.wall(question_set(), chosen, 1, 1)
    return cards[0]


@cache
def whole_report() -> str:
    """Return the report of GPT-4V and another model; one with all five would take twice as long to write."""
    runs = (question_set().run(GPT4V), question_set().run("published:CLIP_TROHN-Img"))
    return report(replace(question_set(), runs=runs))


@cache
def absent() -> WallCard:
    """Return a case without its photograph."""
    cards, _, _ = views.wall.wall(question_set(), Filter(GPT4V, "foil"), 1, 60)
    return next(card for card in cards if not views.rows.are_here(card.images))


def credit() -> credits.Credit:
    picture_credit = credits.picture_credit(pictured().images[0])
    assert picture_credit is not None
    return picture_credit


def not_bundled() -> dict[str, str]:
    """Return the line below the missing photograph of `absent`, with its page at COCO."""
    number = int(absent().images[0].rpartition("/")[2].removesuffix(".jpg"))
    page = f"https://cocodataset.org/#explore?id={number}"
    return {"label": "Picture not bundled", "page": page, "license": "", "licenseUrl": ""}


KIND = presentations()["eqben"].kind("foil")


def wall_values(card: WallCard) -> dict[str, Any]:
    """Return the data of a card for the wall's component."""
    return json.wall_card(case_card(card, KIND), str)


def test_a_card_of_the_wall_has_the_credit_of_its_picture_and_only_of_that():
    (frame,) = wall_values(pictured())["frames"]
    assert frame["credit"] == {
        "label": "Photo",
        "page": credit().page,
        "license": credit().license,
        "licenseUrl": credit().license_url,
    }
    (frame,) = wall_values(absent())["frames"]
    assert frame["credit"] == not_bundled()


def test_a_credit_of_html_has_both_links():
    line = str(attribution.credit_line(pictured().images[0]))
    for address in (credit().page, credit().license_url):
        assert f'href="{address}" target="_blank" rel="noopener noreferrer"' in line
    line = str(attribution.credit_line(absent().images[0]))
    assert f'href="{not_bundled()["page"]}"' in line and ">Picture not bundled</a>" in line
    valse = str(attribution.credit_line("pictures/valse/v7w_2369086.jpg"))
    assert "Picture not bundled" in valse and "<a" not in valse
    assert attribution.credit_line("/data/val2017/000000000724.jpg") is None
    name = "/cache/pictures/coco/val2017/000000000724.jpg"  # downloaded, without COCO's annotations
    line = str(attribution.credit_line(name))
    assert 'href="https://cocodataset.org/#explore?id=724"' in line
    assert "license not recorded" in line and not credits.picture_credit(name)
    several = str(attribution.credits_line([name, name.replace("724", "139"), name]))
    assert several.count("license not recorded") == 1 and several.count("<a ") == 2


def test_home_and_slides_have_the_credit():
    showcases = views.showcase.showcases(question_set(), "foil", GPT4V)
    assert all(views.rows.are_here(showcase.card.images) for showcase in showcases)
    looks = styles(views.runs.models(STORE))
    names = {model: model for model in question_set().models}
    drawn: dict[str, Any] = home.failure(showcases[0], KIND, GPT4V, names, names, looks, str, "")
    assert drawn["pictures"][0]["credit"]["page"].startswith("https://www.flickr.com/photo.gne?id=")
    opened = views.story.opener(question_set(), "foil", pictured().id)
    slide_story = replace(views.story.story(question_set(), "foil"), opener=opened)
    slides = deck.slides(slide_story)
    talk: dict[str, Any] = values.talk_values(
        slides, looks, {}, {name: name for name in names}, "", ""
    )
    shown = [picture for slide in talk["slides"] for picture in slide["pictures"]]
    assert all(picture["credit"]["license"] for picture in shown)
    assert [picture["credit"]["page"] for picture in shown[:2]] == 2 * [credit().page]
    for name in ("better", "often", "closing"):  # each may be the only slide that is shown
        slide = next(slide for slide in slides if slide.id == name)
        assert "SugarCrepe." in slide.note and NOTE in slide.note and "Hsieh et al." in slide.note
        assert "MIT" in slide.note
    assert "github.com/RAIVNLab" in slides[-1].notes[-1]


def test_a_report_and_a_page_of_a_case_have_credits_and_sources():
    page = case_page(question_set(), GPT4V, pictured().case)
    assert credit().page in page and credit().license_url in page
    assert NOTE in page and "https://github.com/RAIVNLab/sugar-crepe" in page
    whole = whole_report()
    assert NOTE in whole and "https://github.com/IMirandaM/BiVLC" in whole
    n_pictures = whole.count('<img src="data:image/webp')
    assert n_pictures and whole.count("vp-credit") >= 1
    assert "1.000" not in whole.split("About the questions")[0]  # answers have no margin


def test_a_site_includes_the_bundled_photographs_with_their_credit_by_default(tmp_path):
    shelf = Shelf(tmp_path, may_publish=False)
    subject = read_subject(question_set(), shelf, Limits())
    entries: list[dict[str, Any]] = [*case_entries(subject, [pictured(), absent()])]
    with_picture, without = entries
    shown = with_picture["case"]["pictures"]
    assert f'data-src="{shelf.key(pictured().images[0])}"' in shown and credit().page in shown
    assert credit().page not in with_picture["case"]["rest"]  # the credit occurs once
    shown = without["case"]["pictures"]
    assert "<img" not in shown and f'href="{not_bundled()["page"]}"' in shown
    assert shelf.n_held_back == 0


def test_a_line_names_the_authors_of_published_answers_only():
    runs = question_set().runs
    line = str(attribution.published_line(runs))
    assert line.count(NOTE) == 1
    assert "GPT-4V: " in line and "CLIP_COCO" in line
    only = str(attribution.published_line([question_set().run(GPT4V)]))
    assert "GPT-4V" not in only and "Hsieh et al., SugarCrepe" in only
    text = attribution.published_text(runs)
    assert text.startswith(f"{NOTE}. ") and "https://github.com/IMirandaM/BiVLC" in text
    demo_store = Store(shipped.FOLDER)
    drawn = views.runs.run_rows(demo_store)
    assert attribution.published_line(drawn) is None and attribution.published_text(drawn) == ""


def test_bibtex_keeps_the_address_and_the_authors_of_a_publication():
    address = "https://a.org/my%20files?x=1,2#top"
    source = Publication("", "Doe et al., Things", address + "{}\\ \n", "MIT")
    run = replace(question_set().run(GPT4V), publication=source)
    entries = attribution.bibliography([run], papers=["lgip", "mieb"])
    assert "@misc{mieb," in entries and "  eprint = {2504.10471}," in entries
    assert f"  howpublished = {{\\url{{{address}}}}}," in entries
    assert "  author = {Doe and others}," in entries and "  author = {Jae Joong Lee}," in entries


@pytest.mark.parametrize("address", ["javascript:alert(1)", "http://a/b", "data:text/html,x", ""])
def test_only_a_secure_address_becomes_a_link(address):
    run = question_set().run(GPT4V)
    publication = Publication("a", "<b>Authors</b>", address, "MIT")
    line = str(attribution.published_line([replace(run, publication=publication)]))
    assert "<a" not in line and "&lt;b&gt;Authors" in line


def test_the_pictures_of_a_case_have_their_credit():
    assert credit().page in str(html.shots(case_card(pictured(), KIND), str))


@pytest.fixture(scope="module")
def photographed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, str]]:
    """Return results on the bundled photographs only, and case keys by probe."""
    store = Store(tmp_path_factory.mktemp("photographed") / "cache")
    keys = {}
    for probe in ("lgip", "prsm"):
        request = Request(
            ("demo:softmax",), "bundled:SugarCrepe+available", probe, limit=30, examine=False
        )
        (manifest,) = execute(request, store)
        keys[probe] = manifest["case_key"]
    return store, keys


def first_cards(store: Store, key: str, kind: str) -> tuple[WallCard, ...]:
    stored = views.runs.question_set(store, key)
    cards, _, _ = views.wall.wall(stored, Filter("demo:softmax", kind, outcome="all"), 1, 1)
    return cards


def test_strips_of_rankings_have_the_credits_of_their_photographs(photographed, tmp_path):
    store, keys = photographed
    kind = next(iter(presentations()["prsm"].kinds))
    (card,) = first_cards(store, keys["prsm"], kind)
    strips = case_card(card, presentations()["prsm"].kind(kind)).strips()
    names = {shot.name for strip in strips for shot in strip.pictures}
    pages = {found.page for name in names if (found := credits.picture_credit(name))}
    assert len(pages) > 1
    drawer = str(htpy.fragment[html.strips(strips, str)])
    assert {page for page in pages if page in drawer} == pages
    subject = read_subject(
        views.runs.question_set(store, keys["prsm"]), Shelf(tmp_path, False), Limits()
    )
    entries: list[dict[str, Any]] = [*case_entries(subject, [card])]
    (entry,) = entries
    shown = entry["case"]["captions"]
    assert {page for page in pages if page in shown} == pages


@pytest.mark.full
def test_strips_of_rankings_are_in_a_report_with_their_credits(photographed):
    store, keys = photographed
    whole = report(views.runs.question_set(store, keys["prsm"]))
    assert "vp-strip" in whole and "Photos: " in whole


def test_a_mixture_has_the_credits_of_both_photographs_once():
    first, second = (bundled.COCO / name for name in sorted(credits.bundled_credits())[:2])
    mixture = Picture(first, PictureEdit("mix", second, 0.9, 1)).name
    pages = [credit.page for credit in attribution.distinct_credits([mixture, str(first)])]
    assert pages == [credits.bundled_credits()[path.name].page for path in (first, second)]
    values = attribution.photo_values(credits.bundled_credits()[first.name])
    assert values == attribution.credit_values(str(first))


def test_the_worst_mistake_of_the_trade_off_has_its_credit(photographed, tmp_path):
    store, keys = photographed
    question_set = views.runs.question_set(store, keys["lgip"])
    subject = read_subject(question_set, Shelf(tmp_path, False), Limits())
    values, numbers = tradeoff_values(subject)
    (example,) = values["examples"].values()
    (card,) = views.wall.cards(question_set, Filter("demo:softmax", "flip"), numbers)
    credit = credits.picture_credit(card.images[0])
    assert credit and credit.page in example and "1 wrong caption" not in example


def test_a_notebook_shows_credits_and_the_publishers_of_the_answers(monkeypatch, tmp_path):
    monkeypatch.setenv(shipped.SETTING, str(shipped.PUBLISHED_FOLDER))
    results = Results(STORE, question_set())
    failures = results.failures(GPT4V, limit=3)
    compared = results.compare(GPT4V, "published:CLIP_COCO")
    for shown in (results, failures, compared):
        page = shown._repr_html_()
        assert page.count(NOTE) == 1
    assert "Foil accuracy" in results._repr_html_()
    assert "Text score" not in results._repr_html_()  # no model has this metric
    assert "Hsieh et al., SugarCrepe" in failures._repr_html_()
    assert "Miranda et al., BiVLC" in compared._repr_html_()
    page = failures._repr_html_()
    photographs = [card for card in failures if views.rows.are_here(card.images)]
    assert photographs
    for card in photographs:
        found = credits.picture_credit(card.images[0])
        assert found and found.page in page and found.license_url in page
    loaded = load_dataset("bundled:SugarCrepe+available", cache=tmp_path)
    page = loaded._repr_html_()
    assert page.count("flickr.com/photo.gne") == page.count("<img") > 0
    bundled_store = Store(shipped.FOLDER)
    demo_results = Results(bundled_store, question_set_of(bundled_store, "eqben"))
    assert NOTE not in demo_results._repr_html_()


def test_the_effect_of_caption_order_is_stated_with_its_interval():
    table = views.estimates.estimates(question_set())
    (sentence,) = order_sentences(table, {})
    assert sentence.startswith("GPT-4V saw the captions in both orders: 9.2 % of its")
    assert "(95 % interval 8." in sentence
    assert sentence.endswith(
        "right in both orders for 87.6 % of the cases, in one order for 9.2 %, and in neither for 3.2 %."
    )
    assert order_sentences(table, {}, ["published:CLIP_COCO"]) == []
    assert sentence in whole_report()


def test_a_talk_uses_only_cases_with_a_local_photograph():
    numbers = views.story.order(question_set(), "foil")
    rows = views.rows.questions(question_set(), numbers.tolist())
    assert all(views.rows.are_here(list(images)) for images in rows["images"])
    assert question_set().label.endswith("bundled:SugarCrepe · eqben · 7,512 questions")


@pytest.mark.full
def test_every_photograph_of_a_site_and_of_exported_slides_has_its_credit(tmp_path, monkeypatch):
    monkeypatch.setenv(shipped.SETTING, str(shipped.PUBLISHED_FOLDER))
    command = ["--cache", str(tmp_path / "cache"), "site", str(tmp_path / "site"), "--cases", "12"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    site_text = all_text(tmp_path / "site")
    photographs = {name for name in credits.bundled_credits() if f'"{name}"' in site_text}
    assert len(photographs) >= 8  # photographs of the failures of five models
    for name in photographs:
        credit_of = credits.bundled_credits()[name]
        assert credit_of.page in site_text and credit_of.license_url in site_text
    assert NOTE in site_text and "Picture not bundled" in site_text
    assert all(name in site_text for name in ("Hsieh et al., SugarCrepe", "Miranda et al., BiVLC"))

    slide_story = views.story.story(question_set(), "foil")
    names = dict.fromkeys(question_set().models, "a model")
    slides = deck.slides(slide_story)
    sources = {name: "data:image/webp;base64,AAAA" for name in values.picture_names(slides)}
    talk = values.talk_values(slides, styles(views.runs.models(STORE)), sources, names, "", "")
    file = slides_file(talk, *components.source("slides"), "Slides")
    content = file.decode() if isinstance(file, bytes) else file
    assert slide_story.opener is not None
    shown = credits.picture_credit(slide_story.opener.card.images[0])
    assert shown is not None and shown.page in content and shown.license_url in content
    assert NOTE in content


def test_home_shows_both_captions_with_the_same_capital_and_period():
    showcases = views.showcase.showcases(question_set(), "foil", GPT4V)
    names = {model: model for model in question_set().models}
    looks = styles(views.runs.models(STORE))
    differs = 0
    for one in showcases:
        boxes = home.failure(one, KIND, GPT4V, names, names, looks, str, "")["boxes"]
        shown = ["".join(text for text, _ in box["line"]) for box in boxes]
        assert len({text[0].isupper() for text in shown}) == 1
        assert len({text.endswith(".") for text in shown}) == 1
        captions = one.card.true_text, one.card.wrong_text
        differs += len({text.strip()[0].isupper() for text in captions}) == 2
    assert differs


def test_a_slide_says_once_that_licenses_are_not_recorded():
    folder = "/cache/pictures/coco/val2017"
    pictures = tuple(SlidePicture(f"{folder}/000000000{n}.jpg", "") for n in (724, 139))
    slide = Slide("often", (("Kinds", ""),), pictures=(*pictures, SlidePicture("", "A text")))
    (sent,) = values.talk_values([slide], {}, {}, {}, "", "")["slides"]
    credits_ = [each["credit"] for each in sent["pictures"]]
    assert [each and (each["label"], each["license"]) for each in credits_] == [
        ("COCO 724", "license per photo not recorded"),
        ("COCO 139", ""),
        None,
    ]
