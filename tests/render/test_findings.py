"""Findings name a better model only if the tests prove it; a second computation checks p and Holm's p."""

import math
import re
import unicodedata
from dataclasses import replace

import pytest

from tests.render.finding_scenes import (
    CONTROL,
    RANKINGS,
    REMARKS,
    SCENES,
    TRADE_OFFS,
    A,
    B,
    C,
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
LABELS = ("invariance error", "positive rate")
X, Y, Z = "a", "b", "c"
POWER = re.compile(
    r" ((?:On [^.]+?, a|A) true difference (?:between [^.]+ )?of "
    r"[^()]+ would be found four times in five \(80 % power\)[^.]*(?:\.\d[^.]*)?|"
    r"With so few pictures, no difference could have been detected)\."
)


@pytest.fixture(autouse=True)
def fewer_exchanges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Use few exchanges; if each lie has a different picture, p comes from a formula and needs none."""
    if "pictures" not in request.node.name:
        monkeypatch.setattr(estimate, "EXCHANGES", 1000)


@pytest.mark.parametrize("name", SCENES)
def test_the_heading_and_detail_of_every_scene_follow_from_the_tests(name: str):
    scene = SCENES[name]
    finding = verdict(compared(name), scene.kind)
    without_power = POWER.sub("", finding.detail)
    assert (finding.heading, without_power) == (scene.heading, scene.detail)
    assert (finding.row.model, finding.row.subtype) == scene.row
    check_by_second_route(compared(name), cases(scene.pattern, scene.pictures))
    check_claim(finding.heading, compared(name))
    assert finding.detail.endswith(".")
    assert not re.search(
        r"\bnan\b| {2}|\.\.|None ", f"{finding.heading} {finding.detail}".replace("None can", "")
    )


@pytest.mark.parametrize("name", SCENES)
def test_a_tie_states_the_detectable_difference(name: str):
    comparison = compared(name)
    finding = verdict(comparison, SCENES[name].kind)
    tied = [row for row in comparison.rows if row.verdict == "tied" and not row.subtype]
    known = [row.detectable for row in tied if not math.isnan(row.detectable)]
    on_types = " are tied on " in finding.detail
    assert len(POWER.findall(finding.detail)) == bool(known) + on_types
    finite = [value for value in known if value < math.inf]
    if known and not finite:
        assert finding.detail.endswith(
            "With so few pictures, no difference could have been detected."
        )
    elif known and not comparison.is_movement:
        most, least = (f"{100 * end(finite):.1f} points" for end in (max, min))
        precise = (
            f"; in the most precise comparison, one of {least} would be" if most != least else ""
        )
        expected = (
            f"A true difference of {most} would be found four times in five (80 % power){precise}."
        )
        assert finding.detail.endswith(expected)


def test_a_tie_on_one_type_of_edit_names_the_difference_of_that_type():
    pattern = {("number", "xo"): 90, ("number", "oo"): 220, ("color", "xo"): 10}
    pattern |= {("color", "ox"): 10, ("color", "oo"): 280}
    detail = verdict(scene(pattern, (A, B)), LIES).detail
    # 20 of 300 answers differ: SE = sqrt(20) / 300; with three tests z = 2.394
    least = (2.394 + 0.8416) * math.sqrt(20) / 300
    assert abs(least - 0.048) < 0.001
    found = re.search(
        r"The two are tied on colors\. On colors, a true difference between Tiny CLIP and Pair-tuned of "
        r"([0-9.]+) points would be found",
        detail,
    )
    assert found and float(found[1]) == pytest.approx(100 * least, rel=0.1)
    more = verdict(scene(pattern, (A, B)), LIES).more
    assert more.startswith("On colors, a true difference between Tiny CLIP and Pair-tuned of")


@pytest.mark.parametrize("name", SCENES)
def test_no_finding_names_or_counts_a_slice_whose_cases_someone_chose(name: str):
    comparison, kind = compared(name), SCENES[name].kind
    of_slice = [replace(row, subtype="slice:Hard") for row in comparison.rows if row.subtype]
    with_slice = replace(comparison, rows=(*comparison.rows, *of_slice))
    assert str(verdict(with_slice, kind)) == str(verdict(comparison, kind))  # NaN is not itself


def check_claim(heading: str, comparison: PairedTests) -> None:
    """Check that a model called better passed its checks, is above guessing, and is clearly ahead after correction."""
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
def test_the_row_of_a_verdict_supports_its_heading(name: str):
    comparison = compared(name)
    finding = verdict(comparison, SCENES[name].kind)
    first, less, second = finding.heading.partition(".")[0].partition(" less ")
    assert finding.row in comparison.rows
    if less and "tied with" not in first:
        names = sentence_names([one.model for one in comparison.contestants], {})
        side = first if finding.row.verdict == "fewer" else second
        assert finding.row.verdict in ("fewer", "more")
        assert names[finding.row.model] in side or " others" in side
    elif "are tied" in finding.heading and " better" not in finding.heading:
        assert finding.row.verdict == "tied" and not finding.row.subtype


@pytest.mark.parametrize(
    ("probe", "kind"),
    [
        (probe, kind)
        for probe in registry.names("probes")
        for kind in registry.load_probe(probe).presentation.kinds
    ],
)
def test_every_kind_of_every_probe_has_a_sentence(probe: str, kind: str):
    presented = registry.load_probe(probe).presentation.kind(kind)
    pattern = {("number", "xo"): 90, ("number", "oo"): 300}
    finding = verdict(scene(pattern, (A, B), kind=presented), presented)
    if presented.is_movement:
        assert finding.heading.endswith("are tied.") or " moves less than " in finding.heading
        assert "fooled" not in finding.heading + finding.detail
        assert "believes" not in finding.detail
    else:
        assert finding.heading == "Pair-tuned is fooled less often than Tiny CLIP."
        lies = presented.lies if presented.lies != "lies" else "wrong captions"
        assert finding.detail.startswith(
            f"It is fooled by 0.0 % of the {lies}, Tiny CLIP by 23.1 %."
        )


def test_the_verdict_on_a_movement_compares_how_far_scores_move():
    moving = KindPresentation(label="Reworded", is_movement=True)
    table = cases({("simple", "xx"): 40, ("advanced", "xx"): 40})
    runs = [run_row(A), run_row(B)]
    counts = counts_of(table.assign(margin_1=-0.05))
    ahead = from_cells(PairedCells(counts, runs, moving, "cosine"), "", ())
    finding = verdict(ahead, moving)
    assert (
        finding.heading
        == "Pair-tuned moves less than Tiny CLIP. It moves less on “Advanced” and “Simple”."
    )
    assert finding.detail == "It moves by 0.0500 (cosine), Tiny CLIP by 0.1000."
    same = from_cells(PairedCells(counts_of(table), runs, moving, "cosine"), "", ())
    assert verdict(same, moving).heading == "Tiny CLIP and Pair-tuned are tied."


def test_equal_names_are_made_distinct():
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
def test_a_heading_stays_short_and_printable_with_any_name(name: str):
    finding = verdict(scene({("", "xo"): 90, ("", "oo"): 200}, (A, name)), LIES)
    assert "is fooled less often than Tiny CLIP." in finding.heading
    plain = finding.heading.replace(ISOLATE, "").replace(END_ISOLATE, "")
    assert plain.isprintable()
    assert not any(unicodedata.category(char) == "Cf" for char in plain)
    assert len(finding.heading) < 120


def test_p_is_never_rounded_to_the_significance_level():
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
    return findings.trade_off(findings.Sides(points, steady, alert, fit, names, units, LABELS))


@pytest.mark.parametrize(("leaders_and_models", "heading", "best"), TRADE_OFFS)
def test_the_heading_of_a_trade_off(leaders_and_models, heading, best):
    finding = finding_for(*leaders_and_models)
    assert (finding.heading, finding.best) == (heading, best)


def test_without_a_model_above_chance_the_detail_gives_the_best_values():
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
    other_finding = finding_for(Leader("alone", (X,)), Leader("alone", (X,)), (X, Y), unfit=(Y,))
    assert (
        "The others failed their checks, so they are not compared with this model."
        in other_finding.detail
    )


def test_unknown_points_are_ignored():
    points = [point(X), PointRow(Y, NAN, NAN, NAN, 0.9, 0.8, 0.95)]
    alone, names, units = Leader("alone", (X,)), {X: "A", Y: "B"}, ("cosine", "rate")
    sides = findings.Sides(points, alone, alone, [X, Y], names, units, LABELS)
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
    lead = "Both leads are clear (paired tests, p < .05 after Holm's correction)."
    assert finding_for(leads(X), leads(X), units=units).detail == f"{detail} {lead}"


def test_a_heading_names_the_gains_of_other_models_and_not_types_solved_without_the_picture():
    pattern = {("number", "oxx"): 120, ("shape", "oxx"): 150, ("object", "xox"): 60}
    comparison = scene(pattern | {("number", "ooo"): 300, ("object", "ooo"): 300}, (B, A, C))
    less = "Pair-tuned is fooled less often than Tiny CLIP and Tiny SigLIP."
    gain = "Tiny CLIP knows objects better."
    for solved, skill, row in (
        (("shape",), f"It counts better, {gain}", (A, "number")),
        (("number", "shape"), gain, (A, "object")),
        (("number", "shape", "object"), "", (A, "")),
    ):
        finding = verdict(replace(comparison, solved=solved), LIES)
        assert finding.heading == f"{less} {skill}".strip()
        assert finding.row.subtype == row[1] and finding.row in comparison.rows
        assert row[1] != "object" or finding.row.model == A


def test_a_heading_about_ties_names_the_gains_of_others_but_no_type_solved_without_the_picture():
    pattern = {("number", "xoo"): 60, ("shape", "oxx"): 60, ("object", "oox"): 300}
    comparison = scene(pattern | {("number", "ooo"): 300, ("shape", "ooo"): 300}, (B, A, C))
    start = "Pair-tuned is tied with Tiny CLIP, and fooled less often than Tiny SigLIP."
    finding = verdict(comparison, LIES)
    assert finding.heading == f"{start} Tiny CLIP counts better, Tiny SigLIP counts better."
    assert verdict(replace(comparison, solved={"number": 0.0}), LIES).heading == start
    pattern = {("number", "xo"): 60, ("shape", "ox"): 60, ("shape", "oo"): 300}
    pair = scene(pattern, (B, A))
    assert verdict(pair, LIES).heading.startswith(
        "Pair-tuned and Tiny CLIP are tied. Tiny CLIP counts"
    )
    finding = verdict(replace(pair, solved={"number": 0.0}), LIES)
    assert "counts" not in finding.heading and finding.row.subtype == "shape"
