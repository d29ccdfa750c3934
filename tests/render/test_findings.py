"""Findings name a better model only where the tests prove it. p and Holm's p by a second route."""

import math
import re
import unicodedata

import pytest

from tests.render.finding_scenes import (
    CONTROL,
    RANKINGS,
    REMARKS,
    SCENES,
    TRADE_OFFS,
    A,
    B,
    compared,
    leads,
    point,
)
from tests.views.believed_scenes import LIES, cases, counts_of, run_row, scene
from tests.views.test_believed import check_by_second_route
from vlprobe import registry
from vlprobe.metrics import estimate
from vlprobe.render import findings, numbers
from vlprobe.render.findings import verdict
from vlprobe.render.sentences import END_ISOLATE, ISOLATE, sentence_names
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import Leader, PairedCells, PairedTests, from_cells
from vlprobe.views.records import PointRow

NAN = math.nan
X, Y, Z = "a", "b", "c"
POWER = re.compile(
    r" ((?:There, a|A) true difference of [^()]+ would be found four times in five \(80 % power\)[^.]*(?:\.\d[^.]*)?|"
    r"With so few pictures, no difference could have been detected)\."
)


@pytest.fixture(autouse=True)
def fewer_exchanges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Where each lie has a picture of its own, p comes from a formula, and not from exchanges."""
    if "pictures" not in request.node.name:
        monkeypatch.setattr(estimate, "EXCHANGES", 1000)


@pytest.mark.parametrize("name", SCENES)
def test_the_heading_says_what_is_known(name: str):
    scene = SCENES[name]
    told = verdict(compared(name), scene.kind)
    without_power = POWER.sub("", told.detail)
    assert (told.heading, without_power) == (scene.heading, scene.detail)
    assert (told.row.model, told.row.subtype) == scene.row
    check_by_second_route(compared(name), cases(scene.pattern, scene.pictures))
    never_more_than_is_known(told.heading, compared(name))
    assert told.detail.endswith(".")
    assert not re.search(
        r"\bnan\b| {2}|\.\.|None ", f"{told.heading} {told.detail}".replace("None can", "")
    )


@pytest.mark.parametrize("name", SCENES)
def test_a_tie_says_which_difference_would_have_been_found(name: str):
    comparison = compared(name)
    told = verdict(comparison, SCENES[name].kind)
    tied = [row for row in comparison.rows if row.verdict == "tied" and not row.subtype]
    known = [row.detectable for row in tied if not math.isnan(row.detectable)]
    on_types = "The two are tied on " in told.detail
    assert len(POWER.findall(told.detail)) == bool(known) + on_types
    finite = [value for value in known if value < math.inf]
    if known and not finite:
        assert told.detail.endswith("With so few pictures, no difference could have been detected.")
    elif known and not comparison.is_movement:
        most, least = (f"{100 * end(finite):.1f} points" for end in (max, min))
        precise = (
            f"; in the most precise comparison, one of {least} would be" if most != least else ""
        )
        expected = (
            f"A true difference of {most} would be found four times in five (80 % power){precise}."
        )
        assert told.detail.endswith(expected)


def test_a_tie_on_one_type_of_edit_names_the_difference_of_that_type():
    pattern = {("number", "xo"): 90, ("number", "oo"): 220, ("color", "xo"): 10}
    pattern |= {("color", "ox"): 10, ("color", "oo"): 280}
    detail = verdict(scene(pattern, (A, B)), LIES).detail
    # 20 of 300 answers differ: SE = sqrt(20) / 300; with three tests z = 2.394
    least = (2.394 + 0.8416) * math.sqrt(20) / 300
    assert abs(least - 0.048) < 0.001
    found = re.search(
        r"The two are tied on colors\. There, a true difference of ([0-9.]+) points would be found",
        detail,
    )
    assert found and float(found[1]) == pytest.approx(100 * least, rel=0.1)


def never_more_than_is_known(heading: str, comparison: PairedTests) -> None:
    """Whoever a heading calls better is fit, above guessing, and clearly ahead after the correction."""
    names = sentence_names([one.model for one in comparison.contestants], {})
    if " fooled less often than " not in heading:
        return
    better, _, worse = heading.partition(".")[0].partition(" fooled less often than ")
    for one in comparison.contestants:
        if names[one.model] not in better or "tied with" in better:
            continue
        assert one.is_fit and one.standing in ("above", "unknown")
        for other in comparison.contestants:
            if names[other.model] in worse and other is not one:
                row = comparison.row((other if one is comparison.baseline else one).model)
                assert row.verdict == ("more" if one is comparison.baseline else "fewer")


@pytest.mark.parametrize("name", SCENES)
def test_the_row_of_a_verdict_shows_what_its_heading_says(name: str):
    comparison = compared(name)
    told = verdict(comparison, SCENES[name].kind)
    first, less, second = told.heading.partition(".")[0].partition(" less ")
    assert told.row in comparison.rows
    if less and "tied with" not in first:
        names = sentence_names([one.model for one in comparison.contestants], {})
        side = first if told.row.verdict == "fewer" else second
        assert told.row.verdict in ("fewer", "more")
        assert names[told.row.model] in side or " others" in side
    elif "are tied" in told.heading and " better" not in told.heading:
        assert told.row.verdict == "tied" and not told.row.subtype


@pytest.mark.parametrize(
    ("probe", "kind"),
    [
        (probe, kind)
        for probe in registry.names("probes")
        for kind in registry.load_probe(probe).presentation.kinds
    ],
)
def test_every_kind_of_every_probe_has_its_sentence(probe: str, kind: str):
    presented = registry.load_probe(probe).presentation.kind(kind)
    pattern = {("number", "xo"): 90, ("number", "oo"): 300}
    told = verdict(scene(pattern, (A, B), kind=presented), presented)
    if presented.is_movement:
        assert told.heading.endswith("are tied.") or " moves less than " in told.heading
        assert "fooled" not in told.heading + told.detail
        assert "believes" not in told.detail
    else:
        assert told.heading == "Pair-tuned is fooled less often than Tiny CLIP."
        lies = presented.lies if presented.lies != "lies" else "wrong captions"
        assert told.detail.startswith(f"It is fooled by 0.0 % of the {lies}, Tiny CLIP by 23.1 %.")


def test_where_nobody_is_fooled_models_move():
    moving = KindPresentation(label="Reworded", is_movement=True)
    table = cases({("simple", "xx"): 40, ("advanced", "xx"): 40})
    runs = [run_row(A), run_row(B)]
    counts = counts_of(table.assign(margin_1=-0.05))
    ahead = from_cells(PairedCells(counts, runs, moving, "cosine"), "", ())
    told = verdict(ahead, moving)
    assert (
        told.heading
        == "Pair-tuned moves less than Tiny CLIP. It moves less on “Advanced” and “Simple”."
    )
    assert told.detail == "It moves by 0.0500 (cosine), Tiny CLIP by 0.1000."
    same = from_cells(PairedCells(counts_of(table), runs, moving, "cosine"), "", ())
    assert verdict(same, moving).heading == "Tiny CLIP and Pair-tuned are tied."


def test_names_that_would_be_alike_are_told_apart():
    names = sentence_names(["hf:/a/clip", "hf:/b/clip", "x" * 90 + "1", "x" * 90 + "1 "], {})
    assert len(set(names.values())) == 4
    assert names["hf:/a/clip"] == "hf:/a/clip"
    renamed = sentence_names([A, B], {A: "Ours", B: "Ours"})
    assert len(set(renamed.values())) == 2


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a\u202eb\u2066c",
        "\x00\x1b[31m",
        "\ud800".encode("utf-8", "replace").decode(),
        "🦆" * 5000,
    ],
)
def test_a_name_can_be_anything(name: str):
    told = verdict(scene({("", "xo"): 90, ("", "oo"): 200}, (A, name)), LIES)
    assert "is fooled less often than Tiny CLIP." in told.heading
    plain = told.heading.replace(ISOLATE, "").replace(END_ISOLATE, "")
    assert plain.isprintable()
    assert not any(unicodedata.category(char) == "Cf" for char in plain)
    assert len(told.heading) < 120


def test_a_p_is_never_rounded_onto_the_limit():
    row = compared("just below the limit").rows[0]
    assert row.p_holm < 0.05
    assert numbers.chance(0.0499) == "p = .0499"
    assert float(numbers.chance(row.p_holm).partition("= ")[2]) < 0.05


NAMES = {
    "demo:eqsim": "Pair-tuned",
    "demo:softmax": "Tiny CLIP",
    "demo:sigmoid": "Tiny SigLIP",
    "demo:weak": "Half-trained",
}


@pytest.mark.parametrize("name", RANKINGS)
def test_a_ranking_names_the_better_models(name: str):
    everyone, expected = RANKINGS[name]
    assert findings.ranking(everyone, NAMES) == expected
    assert findings.unbeaten(everyone, NAMES) == REMARKS.get(name, "")


def finding_for(
    steady: Leader,
    alert: Leader,
    models: str | tuple = ("a", "b", "c"),
    unfit: tuple = (),
    units: tuple[str, str] = ("cosine", "rate"),
) -> findings.Finding:
    fit = [model for model in models if model not in (*unfit, CONTROL)]
    names = {model: model.upper() for model in models}
    points = [point(model) for model in models]
    return findings.trade_off(
        findings.Sides(
            points, steady, alert, fit, names, units, ("invariance error", "positive rate")
        )
    )


@pytest.mark.parametrize(("leaders_and_models", "heading", "best"), TRADE_OFFS)
def test_the_heading_of_a_trade_off(leaders_and_models, heading, best):
    finding = finding_for(*leaders_and_models)
    assert (finding.heading, finding.best) == (heading, best)


def test_where_nothing_is_above_chance_the_best_value_is_told():
    detail = finding_for(leads(X), Leader("chance", (Y,))).detail
    assert (
        detail == "B rejects 90.0 % of the wrong captions; a rewording shifts its score by 0.0100."
    )


def test_models_that_failed_their_checks_are_never_the_best():
    finding = finding_for(Leader("unknown"), Leader("unknown"), (X, Y), unfit=(X, Y))
    assert finding.heading == (
        "No model here matches these pictures with their captions better than chance."
    )
    assert finding.best == ""
    alone = finding_for(Leader("alone", (X,)), Leader("alone", (X,)), (X, Y), unfit=(Y,))
    assert (
        "The others failed their checks, so they are not compared with this model." in alone.detail
    )


def test_unknown_points_take_no_part():
    points = [point(X), PointRow(Y, NAN, NAN, NAN, 0.9, 0.8, 0.95)]
    sides = findings.Sides(
        points,
        Leader("alone", (X,)),
        Leader("alone", (X,)),
        [X, Y],
        {X: "A", Y: "B"},
        ("cosine", "rate"),
        ("invariance error", "positive rate"),
    )
    finding = findings.trade_off(sides)
    assert (
        finding.heading == "A rejects 90.0 % of the wrong captions."
        and "others" not in finding.detail
    )


@pytest.mark.parametrize(
    ("units", "detail"),
    [
        (
            ("cosine", "rate"),
            "A rejects 90.0 % of the wrong captions; a rewording shifts its score by 0.0100.",
        ),
        (
            ("spread", "spread"),
            "A wrong caption lowers the score of A by 0.900; a rewording shifts its score by 0.010 of its own spread.",
        ),
    ],
)
def test_the_detail_has_both_numbers_in_the_chosen_unit(units, detail):
    assert finding_for(leads(X), leads(X), units=units).detail == detail
