"""LGIP uses the additional kinds of edits only if chosen, as paraphrases or flips; its default cases are unchanged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import case_key_of, make_tiny
from vlprobe import registry, views
from vlprobe.errors import InvalidInput
from vlprobe.perturb import edits_file, lgip
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.probes.lgip import PROBE
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.types import Edit, Item, Picture, Run
from vlprobe.views.published import TABLES

CAPTIONS = (
    "A red bird sitting on top of a blue car near a tree.",
    "A woman riding a horse above a river.",
)
ITEM = Item("one", Picture(Path("/data/1.jpg")), CAPTIONS)


@pytest.fixture
def every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every kind selectable, even those that judges rejected."""
    options = [
        replace(option, choices=lgip.ALL_KINDS) if option.name == "kinds" else option
        for option in PROBE.options
    ]
    monkeypatch.setattr(type(PROBE), "options", tuple(options))


def run(options: dict, version: int = PROBE.version) -> Run:
    return Run("m", "m", "d", "d", "lgip", version, ("positive_rate@2",), options)


def test_the_key_of_a_default_run_is_unchanged():
    pinned = dict(PROBE.pin(PROBE.defaults, Path()))
    assert run(pinned, version=2).key == "7fc4f018cc778b51"
    assert run(pinned, version=2).case_key == "b15e70a80763a2ea"


@pytest.mark.parametrize("name", kind_edits.NAMES)
def test_each_additional_kind_can_be_used_separately_with_the_right_role(name: str):
    cases, _ = PROBE.cases(ITEM, {**PROBE.defaults, "kinds": [name]}, seed=42)
    side = ("flip", "different") if name in kind_edits.LIES else ("paraphrase", "same")
    assert cases
    assert {(case.edit.kind, case.roles[1]) for case in cases} == {side}
    assert {case.edit.subtype for case in cases} == {name}
    assert all(case.texts[0] in CAPTIONS and len(case.texts) == 2 for case in cases)


def test_the_cases_of_all_kinds_include_the_default_cases():
    default, _ = PROBE.cases(ITEM, dict(PROBE.defaults), seed=42)
    every, _ = PROBE.cases(ITEM, {**PROBE.defaults, "kinds": list(lgip.ALL_KINDS)}, seed=42)
    texts = {case.id: case.texts for case in every}
    assert {case.id: case.texts for case in default}.items() <= texts.items()
    assert len(every) > len(default)


def test_only_kinds_that_judges_accepted_can_be_chosen():
    (option,) = [option for option in PROBE.options if option.name == "kinds"]
    assert option.choices == (*lgip.KINDS, *kind_edits.NAMES)
    assert option.parse(list(option.choices)) == list(option.choices)
    for kinds in (["quantifier"], ["flip", "quantifier"], []):
        with pytest.raises(InvalidInput, match="Expected"):
            option.parse(kinds)


@pytest.mark.parametrize("name", kind_edits.NAMES)
def test_the_kind_of_an_edit_in_a_file_is_its_subtype(tmp_path: Path, name: str):
    kind = "flip" if name in kind_edits.LIES else "paraphrase"
    file = tmp_path / "edits.jsonl"
    rows = [Edit(kind, name, "r"), Edit("flip", "color", "r")]
    lines = [
        edits_file.line("one", CAPTIONS[0], f"Text {number}.", edit, "me", "")
        for number, edit in enumerate(rows)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    both = ["Text 0.", "Text 1."] if kind == "flip" else ["Text 1."]
    for chosen, texts in ([name], ["Text 0."]), (["flip"], both), (["combined"], []):
        options = PROBE.pin({**PROBE.defaults, "kinds": chosen, "edits": str(file)}, tmp_path)
        cases, _ = PROBE.cases(ITEM, options, seed=42)
        assert [case.texts[1] for case in cases] == texts


def test_kinds_that_plugin_rules_cannot_make_are_refused(monkeypatch):
    monkeypatch.setattr("vlprobe.registry.check_name", lambda collection, name: None)
    PROBE.check_options({**PROBE.defaults, "rules": "theirs"})
    with pytest.raises(InvalidInput, match="cannot make edits of kind 'typo'"):
        PROBE.check_options({**PROBE.defaults, "rules": "theirs", "kinds": ["flip", "typo"]})


def test_each_kind_has_separate_estimates_in_the_trade_off(tmp_path: Path, every_kind: None):
    store = Store(tmp_path / "cache")
    options = {"kinds": list(lgip.ALL_KINDS)}
    folder = make_tiny(tmp_path / "tiny")
    execute(Request(("control:random",), folder, "lgip", options, examine=False), store)
    key = str(case_key_of(store))
    question_set = views.runs.question_set(store, key)
    table = views.estimates.estimates(question_set, "subtype")
    choices = views.estimates.choices(question_set)
    lies = set(choices.loc[choices["kind"] == "flip", "subtype"])
    rewordings = set(choices.loc[choices["kind"] == "paraphrase", "subtype"])
    assert {"negation", "relation"} <= lies and {"case", "punctuation", "typo"} <= rewordings
    assert lies == set(table.loc[table["metric"] == "positive_rate", "slice"])
    assert rewordings == set(table.loc[table["metric"] == "invariance_error", "slice"])
    points = views.tradeoff.trade_off_by_type(question_set, "positive_rate")
    assert set(points["type"]) == lies | {"combined"}
    # The totals are not comparable with the paper's and are in no column of it.
    assert views.estimates.mixed_kinds(question_set) == {"flip", "paraphrase"}
    for table_of_paper in TABLES["lgip"]:
        cells = views.papers.run_cells(question_set, table_of_paper)
        for column, cell in zip(table_of_paper.columns, cells, strict=True):
            is_whole = column.breakdown == "all" and not column.metric.startswith("combined")
            assert (cell[-1] == views.papers.MIXED) == is_whole
            assert np.isnan(cell[2][0]) or not is_whole
    # The weighted metrics have strengths only for LGIP's three types and skip the others.
    whole = views.estimates.estimates(question_set, "all", "micro").set_index("metric")
    of_types = table.loc[(table["metric"] == "weighted_positive_rate") & table["value"].notna()]
    assert set(of_types["slice"]) <= {"color", "number", "object"}
    assert np.isfinite(whole.loc["weighted_positive_rate", "value"])


def test_a_run_with_one_type_of_flips_is_not_compared_with_the_papers_totals(tmp_path: Path):
    store, options = Store(tmp_path / "cache"), {"flips": ["color"], "k_same": 1}
    folder = make_tiny(tmp_path / "tiny")
    execute(Request(("control:random",), folder, "lgip", options, limit=3, examine=False), store)
    (row,) = views.runs.question_set_rows(store)
    question_set = views.runs.question_set(store, row.case_key)
    assert views.estimates.mixed_kinds(question_set) == {"flip", "combined"}
    choices = views.estimates.choices(question_set)
    assert set(choices.loc[choices["kind"] == "flip", "subtype"]) == {"color"}


@pytest.mark.parametrize(("probe", "n_texts"), [("eqben", 2), ("rococo", 2)])
def test_wrong_captions_of_these_kinds_can_be_used_by_other_probes(
    tmp_path: Path, probe: str, n_texts: int
):
    edited = lgip.edits(CAPTIONS, ITEM.id, kinds=["relation"])
    file = tmp_path / "edits.jsonl"
    lines = [
        edits_file.line(ITEM.id, caption, text, edit, "rules", "")
        for caption, of_caption in zip(CAPTIONS, edited.edits, strict=True)
        for text, edit in of_caption
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    other = registry.load_probe(probe)
    options = other.pin({**other.defaults, "edits": str(file)}, tmp_path)
    cases, _ = other.cases(ITEM, options, 42)
    lies = {text for of_caption in edited.edits for text, _ in of_caption}
    case_texts = {
        text
        for case in cases
        for text, role in zip(case.texts, case.roles, strict=True)
        if role == "different"
    }
    assert len(lies) == n_texts and case_texts == lies


def test_a_vocabulary_is_part_of_the_key_and_refused_if_unused(tmp_path: Path):
    file = tmp_path / "words.txt"
    file.write_text("zebra\noven\n")
    probe = registry.load_probe("lgip")
    defaults = probe.defaults
    assert "vocabulary" not in probe.pin(defaults, tmp_path)
    pinned = probe.pin({**defaults, "vocabulary": str(file)}, tmp_path)
    assert pinned["vocabulary"] == str(file) and pinned["vocabulary_digest"]
    item = Item("a", Picture(tmp_path), ("A red umbrella on a bench.",))
    targets = {case.edit.target for case in probe.cases(item, pinned, 42)[0] if case.edit}
    assert targets & {"zebra", "oven"}
    for wrong in ({"rules": "paper"}, {"kinds": ["paraphrase"]}, {"edits": "x.jsonl"}):
        with pytest.raises(InvalidInput, match="A vocabulary is set, but no edit uses it"):
            probe.check_options({**defaults, "vocabulary": str(file), **wrong})
    file.write_text("zebra\n")
    with pytest.raises(InvalidInput, match="has only one noun, 'zebra'"):
        probe.pin({**defaults, "vocabulary": str(file)}, tmp_path)


@pytest.mark.parametrize("rules", lgip.RULES)
@pytest.mark.parametrize("types", [["color"], ["object", "color"], ["number"]])
def test_choosing_types_of_flips_only_removes_the_other_types(rules: str, types: list[str]):
    captions = ("Two dogs near a red car.", "A black cat and three birds.")
    item = Item("a", Picture(Path("/data/1.jpg")), (*captions, "Un perro rojo y dos gatos."))
    defaults = {**PROBE.defaults, "rules": rules}

    def texts(options: dict) -> dict[tuple[str, ...], str]:
        cases, _ = PROBE.cases(item, PROBE.pin(options, Path()), seed=42)
        return {case.texts: case.edit.subtype for case in cases if case.edit.kind != "paraphrase"}

    every = texts(defaults)
    chosen = texts({**defaults, "flips": types})
    assert chosen == {text: kind for text, kind in every.items() if kind in types}
    assert set(chosen.values()) == set(types) and len(chosen) < len(every)


def test_types_of_flips_are_ordered_in_the_key_and_other_types_are_not_counted():
    first, second = (
        PROBE.pin({**PROBE.defaults, "flips": names}, Path())["flips"]
        for names in (["object", "color"], ["color", "object"])
    )
    assert first == second == ["color", "object"]
    every = PROBE.pin({**PROBE.defaults, "flips": ["object", "number", "color"]}, Path())
    assert every == PROBE.pin(PROBE.defaults, Path())
    item = Item("a", Picture(Path("/data/1.jpg")), ("No red cars near one of the dogs.",))
    _, dropped = PROBE.cases(item, PROBE.defaults, seed=42)
    assert any(reason.startswith("flip:color, ") for reason in dropped)
    _, dropped = PROBE.cases(item, {**PROBE.defaults, "flips": ["object"]}, seed=42)
    assert not any(reason.startswith(("flip:color, ", "flip:number, ")) for reason in dropped)


@pytest.mark.parametrize(
    "options", [{"edits": "x.jsonl"}, {"rules": "py:x.py"}, {"kinds": ["paraphrase", "typo"]}]
)
def test_types_of_flips_are_refused_if_unused(options: dict):
    with pytest.raises(InvalidInput, match="no edit uses them"):
        PROBE.check_options({**PROBE.defaults, "flips": ["color"], **options})
    PROBE.check_options({**PROBE.defaults, "flips": ["color"]})
