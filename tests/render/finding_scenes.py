"""Scenes for every sentence on better models: comparisons, rankings and trade-offs, with the expected text."""

import functools
import itertools
import math
from dataclasses import dataclass, replace

from tests.views.believed_scenes import LIES, scene
from vlprobe import registry
from vlprobe.render.sentences import END_ISOLATE, ISOLATE
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import Leader, ModelShare, PairedTest, PairedTests
from vlprobe.views.records import PointRow

A, B, C, D = "demo:softmax", "demo:eqsim", "demo:sigmoid", "demo:weak"
CONTROL, CONSTANT = "control:random", "control:constant"
REST = {("color", "oo"): 300}
CLEAR = {("number", "xo"): 90, ("number", "ox"): 20, ("number", "oo"): 200}
LOST = {("object", "xo"): 20, ("object", "ox"): 90, ("object", "oo"): 200}
TIE = {("object", "xo"): 30, ("object", "ox"): 32, ("object", "oo"): 200}
GUESS = {("number", "xo"): 60, ("number", "ox"): 58, ("number", "oo"): 80, ("number", "xx"): 82}
BELOW = {("number", "xx"): 150, ("number", "oo"): 20, ("number", "xo"): 9, ("number", "ox"): 8}
LONG = f"hf:/models/{'very-' * 30}long"
HOSTILE = "</script><img src=x onerror=alert(1)>"
RTL = "mine:\u05e9\u05dc\u05d5\u05dd"
PLENTY = tuple(f"open:model-{number}" for number in range(43))


def letters(answers: dict[tuple[str, str], int], extra: str) -> dict[tuple[str, str], int]:
    """Return the answers of the first two models with those of further models appended."""
    return {(subtype, models + extra): count for (subtype, models), count in answers.items()}


def answers(subtype: str, **counts: int) -> dict[tuple[str, str], int]:
    """Return the number of cases of a type by the models' answers: x is fooled, o is not."""
    return {(subtype, models): count for models, count in counts.items()}


@dataclass(frozen=True)
class FindingScene:
    """Answers of models by type of edit, with the expected heading, details and row of the table
    (a model and a type of edit) that the heading is about.
    """

    pattern: dict[tuple[str, str], int]
    heading: str
    detail: str
    row: tuple[str, str] = (B, "")
    models: tuple[str, ...] = (A, B)
    pictures: int = 0
    kind: KindPresentation = LIES
    unfit: tuple[str, ...] = ()


SCENES = {
    "clear": FindingScene(
        CLEAR | REST,
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better.",
        "It is fooled by 3.3 % of the wrong captions, Tiny CLIP by 14.8 %. The two are tied "
        "on colors.",
        row=(B, "number"),
    ),
    "clear for the baseline": FindingScene(
        {("number", "ox"): 90, ("number", "xo"): 20, ("color", "oo"): 400},
        "Tiny CLIP is fooled less often than Pair-tuned. It counts better.",
        "It is fooled by 3.9 % of the wrong captions, Pair-tuned by 17.6 %. The two are "
        "tied on colors.",
        row=(B, "number"),
    ),
    "clear, without types of edit": FindingScene(
        {("", "xo"): 90, ("", "ox"): 20, ("", "oo"): 400},
        "Pair-tuned is fooled less often than Tiny CLIP.",
        "It is fooled by 3.9 % of the wrong captions, Tiny CLIP by 17.6 %.",
    ),
    "clear over all alone": FindingScene(
        answers("number", xo=17, ox=7)
        | answers("object", xo=17, ox=6)
        | answers("color", xo=15, ox=6, oo=300),
        "Pair-tuned is fooled less often than Tiny CLIP.",
        "It is fooled by 5.2 % of the wrong captions, Tiny CLIP by 13.3 %. The two are "
        "tied on numbers, objects and colors.",
    ),
    "clear, opposite in one type": FindingScene(
        {("number", "xo"): 190, ("number", "ox"): 20, ("number", "oo"): 400} | LOST,
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better, Tiny CLIP knows objects better.",
        "It is fooled by 12.0 % of the wrong captions, Tiny CLIP by 22.8 %.",
        row=(B, "number"),
    ),
    "tied": FindingScene(
        TIE | REST,
        "Tiny CLIP and Pair-tuned are tied.",
        "Tiny CLIP is fooled by 5.3 % of the wrong captions, Pair-tuned by 5.7 %.",
    ),
    "tied, the same answers": FindingScene(
        {("number", "xx"): 20, ("number", "oo"): 90},
        "Tiny CLIP and Pair-tuned are tied.",
        "Tiny CLIP is fooled by 18.2 % of the wrong captions, Pair-tuned by 18.2 %.",
    ),
    "tied, opposite": FindingScene(
        CLEAR | LOST | REST,
        "Tiny CLIP and Pair-tuned are tied. Pair-tuned counts better, Tiny CLIP knows objects better.",
        "Tiny CLIP is fooled by 12.0 % of the wrong captions, Pair-tuned by 12.0 %.",
        row=(B, "number"),
    ),
    "tied, one is better at one type": FindingScene(
        CLEAR | answers("object", ox=60, xo=40) | answers("color", ox=45, xo=30, oo=500),
        "Tiny CLIP and Pair-tuned are tied. Pair-tuned counts better.",
        "Tiny CLIP is fooled by 16.2 % of the wrong captions, Pair-tuned by 12.7 %.",
        row=(B, "number"),
    ),
    "just above the limit": FindingScene(
        {("", "xo"): 20, ("", "ox"): 9, ("", "oo"): 70},
        "Tiny CLIP and Pair-tuned are tied.",
        "Tiny CLIP is fooled by 20.2 % of the wrong captions, Pair-tuned by 9.1 %.",
    ),
    "just below the limit": FindingScene(
        {("", "xo"): 21, ("", "ox"): 9, ("", "oo"): 70},
        "Pair-tuned is fooled less often than Tiny CLIP.",
        "It is fooled by 9.0 % of the wrong captions, Tiny CLIP by 21.0 %.",
    ),
    "clear alone, tied after correction": FindingScene(
        {("number", "xo"): 21, ("number", "ox"): 9, ("object", "oo"): 70, ("color", "oo"): 70},
        "Tiny CLIP and Pair-tuned are tied.",
        "Tiny CLIP is fooled by 12.4 % of the wrong captions, Pair-tuned by 5.3 %.",
    ),
    "both guess": FindingScene(
        GUESS,
        "Neither can tell: both are as good as guessing.",
        "Tiny CLIP is fooled by 50.7 % of the wrong captions, Pair-tuned by 50.0 %. Guessing "
        "gets 50.0 %.",
    ),
    "both guess, one more often": FindingScene(
        {("number", "xo"): 90, ("number", "ox"): 40, ("number", "oo"): 60, ("number", "xx"): 90},
        "Neither can tell: Tiny CLIP is worse than guessing, and the rest are no better.",
        "Tiny CLIP is fooled by 64.3 % of the wrong captions, Pair-tuned by 46.4 %. Guessing "
        "gets 50.0 %.",
    ),
    "both below": FindingScene(
        BELOW,
        "Neither can tell: both are worse than guessing.",
        "Tiny CLIP is fooled by 85.0 % of the wrong captions, Pair-tuned by 84.5 %. Guessing "
        "gets 50.0 %.",
    ),
    "a third guesses": FindingScene(
        letters(GUESS, "x") | {("number", "ooo"): 300},
        "Tiny CLIP is tied with Pair-tuned, and fooled less often than Tiny SigLIP.",
        "Tiny CLIP is fooled by 24.5 % of the wrong captions, Pair-tuned by 24.1 %, Tiny "
        "SigLIP by 48.3 %. Tiny SigLIP is not clearly better than guessing.",
        row=(C, ""),
        models=(A, B, C),
    ),
    "all three guess": FindingScene(
        {("number", "".join(way)): 40 for way in itertools.product("xo", repeat=3)},
        "None can tell: all are as good as guessing.",
        "Tiny CLIP is fooled by 50.0 % of the wrong captions, Pair-tuned by 50.0 %, Tiny "
        "SigLIP by 50.0 %. Guessing gets 50.0 %.",
        models=(A, B, C),
    ),
    "guessing, as far as five pictures tell": FindingScene(
        {("number", "xo"): 2, ("number", "ox"): 1, ("number", "oo"): 2},
        "Neither is known to be better than guessing.",
        "Tiny CLIP is fooled by 40.0 % of the wrong captions, Pair-tuned by 20.0 %. Guessing "
        "gets 50.0 %.",
    ),
    "one lie": FindingScene(
        {("number", "xo"): 1},
        "There is too little data to compare Tiny CLIP and Pair-tuned.",
        "Both answered only one question on one picture; a test needs at least two pictures.",
    ),
    "one picture with many lies": FindingScene(
        {("number", "xo"): 30},
        "There is too little data to compare Tiny CLIP and Pair-tuned.",
        "Both answered only 30 questions on one picture; a test needs at least two pictures.",
        pictures=1,
    ),
    "no common answer": FindingScene(
        {("number", "x?"): 30, ("number", "?o"): 30},
        "Tiny CLIP and Pair-tuned cannot be compared.",
        "They did not answer any of the same questions.",
    ),
    "no answer at all": FindingScene(
        {("number", "??"): 30},
        "Tiny CLIP and Pair-tuned cannot be compared.",
        "They did not answer any of the same questions.",
    ),
    "a third without answers": FindingScene(
        letters(CLEAR | REST, "?"),
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better.",
        "It is fooled by 3.3 % of the wrong captions, Tiny CLIP by 14.8 %. Tiny CLIP and Pair-tuned are tied "
        "on colors. There is too little data on Tiny SigLIP.",
        row=(B, "number"),
        models=(A, B, C),
    ),
    "few pictures with many lies": FindingScene(
        CLEAR | REST,
        "Tiny CLIP and Pair-tuned are tied.",
        "Tiny CLIP is fooled by 14.8 % of the wrong captions, Pair-tuned by 3.3 %.",
        pictures=4,
    ),
    "a control is worse": FindingScene(
        {("number", "ox"): 90, ("number", "oo"): 100, ("number", "xx"): 9},
        "Tiny CLIP is fooled less often than Coin flip, a control.",
        "It is fooled by 4.5 % of the wrong captions, Coin flip by 49.7 %.",
        row=(CONTROL, ""),
        models=(A, CONTROL),
    ),
    "a control is the baseline": FindingScene(
        {("number", "xo"): 90, ("number", "oo"): 100, ("number", "xx"): 9},
        "Tiny CLIP is fooled less often than Coin flip, a control.",
        "It is fooled by 4.5 % of the wrong captions, Coin flip by 49.7 %.",
        row=(A, ""),
        models=(CONTROL, A),
    ),
    "a control is fooled less often": FindingScene(
        CLEAR | REST,
        "Tiny CLIP does no better than Coin flip, a control.",
        "Tiny CLIP is fooled by 14.8 % of the wrong captions, Coin flip by 3.3 %.",
        row=(CONTROL, ""),
        models=(A, CONTROL),
    ),
    "a control is tied": FindingScene(
        TIE | REST,
        "Tiny CLIP does no better than Coin flip, a control.",
        "Tiny CLIP is fooled by 5.3 % of the wrong captions, Coin flip by 5.7 %.",
        row=(CONTROL, ""),
        models=(A, CONTROL),
    ),
    "a control is a tied baseline": FindingScene(
        TIE | REST,
        "Tiny CLIP does no better than Coin flip, a control.",
        "Coin flip is fooled by 5.3 % of the wrong captions, Tiny CLIP by 5.7 %.",
        row=(A, ""),
        models=(CONTROL, A),
    ),
    "a control is a better baseline": FindingScene(
        {("number", "ox"): 90, ("number", "xo"): 20, ("number", "oo"): 400},
        "Tiny CLIP does no better than Coin flip, a control.",
        "Coin flip is fooled by 3.9 % of the wrong captions, Tiny CLIP by 17.6 %.",
        row=(A, ""),
        models=(CONTROL, A),
    ),
    "a control beside two": FindingScene(
        answers("number", xoo=90, oxx=20, ooo=400, oox=200),
        "Pair-tuned is fooled less often than Tiny CLIP.",
        "It is fooled by 2.8 % of the wrong captions, Tiny CLIP by 12.7 %, Coin flip by 31.0 %. "
        "Coin flip is a control, which should fail.",
        models=(A, B, CONTROL),
    ),
    "a guessing model and a control": FindingScene(
        GUESS,
        "Tiny CLIP cannot tell: it is as good as guessing.",
        "Tiny CLIP is fooled by 50.7 % of the wrong captions, Coin flip by 50.0 %. Guessing "
        "gets 50.0 %. Coin flip is a control, which should fail.",
        row=(CONTROL, ""),
        models=(A, CONTROL),
    ),
    "two controls": FindingScene(
        CLEAR | REST,
        "Both are controls, which should fail.",
        "Coin flip is fooled by 14.8 % of the wrong captions, Always the same by 3.3 %.",
        row=(CONSTANT, ""),
        models=(CONTROL, CONSTANT),
    ),
    "a model that failed its checks is ahead": FindingScene(
        CLEAR | REST,
        "Tiny CLIP does no better than Pair-tuned, which failed its checks.",
        "Tiny CLIP is fooled by 14.8 % of the wrong captions, Pair-tuned by 3.3 %. Pair-tuned "
        "fails a basic check here (matching pictures with their captions).",
        unfit=(B,),
    ),
    "a model that failed its checks is behind": FindingScene(
        CLEAR | REST,
        "Pair-tuned is fooled less often than Tiny CLIP, which failed its checks. It counts better.",
        "It is fooled by 3.3 % of the wrong captions, Tiny CLIP by 14.8 %. The two are tied "
        "on colors. Tiny CLIP fails a basic check here (matching pictures with their "
        "captions).",
        row=(B, "number"),
        unfit=(A,),
    ),
    "nobody is fit": FindingScene(
        CLEAR | REST,
        "Both models fail a basic check here (matching pictures with their captions), so interpret the results "
        "with care.",
        "Tiny CLIP is fooled by 14.8 % of the wrong captions, Pair-tuned by 3.3 %.",
        unfit=(A, B),
    ),
    "nobody is fit, one a control": FindingScene(
        CLEAR | REST,
        "Nothing to compare: only controls and models that failed their checks.",
        "Tiny CLIP is fooled by 14.8 % of the wrong captions, Coin flip by 3.3 %.",
        row=(CONTROL, ""),
        models=(A, CONTROL),
        unfit=(A,),
    ),
    "a guess is not defined": FindingScene(
        GUESS,
        "Tiny CLIP and Pair-tuned are tied.",
        "Tiny CLIP is fooled by 50.7 % of the wrong captions, Pair-tuned by 50.0 %.",
        kind=KindPresentation(label="Search", lies="wrong captions"),
    ),
    "three, two are better": FindingScene(
        answers("number", xoo=90, oxx=20, ooo=200) | answers("color", ooo=300),
        "Pair-tuned and Tiny SigLIP are fooled less often than Tiny CLIP. Both count better.",
        "Pair-tuned is fooled by 3.3 % of the wrong captions, Tiny SigLIP by 3.3 %, Tiny CLIP "
        "by 14.8 %.",
        row=(B, "number"),
        models=(A, B, C),
    ),
    "three, one is tied and one worse": FindingScene(
        {("", "oox"): 90, ("", "xoo"): 10, ("", "oxo"): 11, ("", "ooo"): 400},
        "Tiny CLIP is tied with Pair-tuned, and fooled less often than Half-trained.",
        "Tiny CLIP is fooled by 2.0 % of the wrong captions, Pair-tuned by 2.2 %, "
        "Half-trained by 17.6 %.",
        row=(D, ""),
        models=(A, B, D),
    ),
    "four, as in the design": FindingScene(
        answers("number", xooo=180, oxxx=30, xxxx=60, oooo=700)
        | answers("object", ooxx=160, xxoo=20, ooox=260, oooo=900, xoxx=25, oxxx=20)
        | answers("color", oooo=1200),
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better.",
        "It is fooled by 3.7 % of the wrong captions, Tiny CLIP by 8.0 %, Tiny SigLIP by 8.3 %, "
        "Half-trained by 15.6 %. Tiny CLIP and Pair-tuned are tied "
        "on objects and colors. Tiny SigLIP and Half-trained count better, but are worse "
        "on objects.",
        row=(B, "number"),
        models=(A, B, C, D),
    ),
    "four, nobody is better": FindingScene(
        {("", "oxxx"): 90, ("", "xooo"): 20, ("", "oooo"): 400},
        "Tiny CLIP is fooled less often than Pair-tuned, Tiny SigLIP and Half-trained.",
        "It is fooled by 3.9 % of the wrong captions, Pair-tuned by 17.6 %, Tiny SigLIP by "
        "17.6 %, Half-trained by 17.6 %.",
        models=(A, B, C, D),
    ),
    "43 models": FindingScene(
        {("", "x" + "o" * 42): 26, ("", "o" + "x" * 42): 3, ("", "o" * 43): 40},
        "model-1, model-2 and 40 others are fooled less often than model-0.",
        "model-1 is fooled by 4.3 % of the wrong captions, model-2 by 4.3 %, model-3 by 4.3 "
        "%, model-4 by 4.3 %, model-5 by 4.3 %, model-6 by 4.3 %, model-7 by 4.3 %, model-8 by 4.3 %.",
        row=("open:model-1", ""),
        models=PLENTY,
    ),
    "a long name": FindingScene(
        {("", "xo"): 90, ("", "oo"): 200},
        "very-very-very-very…-very-very-very-long is fooled less often than Tiny CLIP.",
        "It is fooled by 0.0 % of the wrong captions, Tiny CLIP by 31.0 %.",
        row=(LONG, ""),
        models=(A, LONG),
    ),
    "a hostile name": FindingScene(
        {("", "ox"): 90, ("", "oo"): 200},
        "Tiny CLIP is fooled less often than </script><img src=x onerror=alert(1)>.",
        "It is fooled by 0.0 % of the wrong captions, </script><img src=x onerror=alert(1)> "
        "by 31.0 %.",
        row=(HOSTILE, ""),
        models=(A, HOSTILE),
    ),
    "a name that is written from right to left": FindingScene(
        {("", "xo"): 90, ("", "oo"): 200},
        f"{ISOLATE}\u05e9\u05dc\u05d5\u05dd{END_ISOLATE} is fooled less often than Tiny CLIP.",
        "It is fooled by 0.0 % of the wrong captions, Tiny CLIP by 31.0 %.",
        row=(RTL, ""),
        models=(A, RTL),
    ),
    "types of edit without words": FindingScene(
        {("P1", "xo"): 90, ("P1", "oo"): 90, ("<b>", "xo"): 90, ("<b>", "oo"): 90},
        "Pair-tuned is fooled less often than Tiny CLIP. It does better on “<b>” and “P1: any other wording”.",
        "It is fooled by 0.0 % of the wrong captions, Tiny CLIP by 50.0 %. Tiny CLIP is not "
        "clearly better than guessing.",
        row=(B, "<b>"),
    ),
    "many types of edit": FindingScene(
        {(f"type {number}", "xo"): 40 for number in range(5)} | {("last", "oo"): 40},
        "Pair-tuned is fooled less often than Tiny CLIP. It does better on 5 of 6 types of edit.",
        "It is fooled by 0.0 % of the wrong captions, Tiny CLIP by 83.3 %. The two are tied "
        "on \u201cLast\u201d. Tiny CLIP is not clearly better than guessing.",
        row=(B, "type 0"),
    ),
}


@functools.cache
def compared(name: str) -> PairedTests:
    """Return the comparison of a scene."""
    each = SCENES[name]
    return scene(
        each.pattern, each.models, pictures=each.pictures, kind=each.kind, unfit=each.unfit
    )


def contestant(model: str, share: float = 0.2, **changes: object) -> ModelShare:
    n_believed = 0 if math.isnan(share) else round(1000 * share)
    known = {
        "model": model,
        "n_lies": 0 if math.isnan(share) else 1000,
        "n_cases": 0 if math.isnan(share) else 1000,
        "n_believed": n_believed,
        "n_tied": 0,
        "share": share,
        "low": share - 0.01,
        "high": share + 0.01,
        "standing": "above",
        "is_control": registry.is_control(model),
    }
    return ModelShare(**known | changes)


def paired(baseline: str, model: str, difference: float, verdict: str) -> PairedTest:
    """Return a test of two models on all cases."""
    counts = dict.fromkeys(("n_lies", "n_left_out", "n_pictures"), 9)
    counts |= dict.fromkeys(("only_base", "only_model", "both", "neither"), 0)
    numbers = dict.fromkeys(("base", "value", "low", "high", "p", "p_holm"), 0.01)
    known = {"subtype": "", "standing": "above", "base_standing": "above", "verdict": verdict}
    return PairedTest(
        model=model, baseline=baseline, difference=difference, **counts, **numbers, **known
    )


def held_against(contestants: list[ModelShare], tied: str = "", unknown: str = "", **changes):
    """Return PairedTests in which every pair is clear by its shares except the named ones: "AB,BC"."""
    fit = [one for one in contestants if one.is_fit]
    pairs = []
    for base, one in itertools.combinations(fit, 2):
        verdict = "fewer" if one.share < base.share else "more"
        letters = {letter: model for letter, model in zip("ABCD", (B, A, C, D), strict=True)}
        for named, word in ((tied, "tied"), (unknown, "unknown")):
            groups = [{letters[letter] for letter in group} for group in named.split(",") if group]
            if any({base.model, one.model} <= group for group in groups):
                verdict = word
        difference = one.share - base.share
        pairs.append(paired(base.model, one.model, difference, verdict))
    known = {"kind": "flip", "unit": "rate", "is_movement": False, "guess": 0.5}
    known |= {"n_cases": 1000}
    return PairedTests(contestants=tuple(contestants), rows=tuple(pairs), **known | changes)


FOUR = [contestant(B, 0.1), contestant(A, 0.2), contestant(C, 0.21), contestant(D, 0.4)]
RANKINGS = {
    "clear, the two between tied": (
        held_against(FOUR, tied="BC"),
        "Pair-tuned is fooled least, Half-trained most. The other two are tied.",
    ),
    "all clear": (held_against(FOUR), "Pair-tuned is fooled least, Half-trained most."),
    "all tied": (held_against(FOUR, tied="ABCD"), "All four are tied."),
    "a best one alone": (
        held_against(FOUR, tied="BCD"),
        "Pair-tuned is fooled least. The other three are tied.",
    ),
    "a worst one alone": (
        held_against(FOUR, tied="ABC"),
        "Half-trained is fooled most. The other three are tied.",
    ),
    "no best one": (held_against(FOUR, tied="AB,CD"), "No model is clearly the best."),
    "the last unclear": (
        held_against(FOUR, tied="CD"),
        "Pair-tuned is fooled least. It is not clear which model is fooled most.",
    ),
    "unknown between": (
        held_against(FOUR, unknown="BC"),
        "Pair-tuned is fooled least, Half-trained most. Some of the other two are tied.",
    ),
    "two, clear": (held_against(FOUR[:2]), "Pair-tuned is fooled less often than Tiny CLIP."),
    "two, tied": (held_against(FOUR[:2], tied="AB"), "Pair-tuned and Tiny CLIP are tied."),
    "two, unknown": (
        held_against(FOUR[:2], unknown="AB"),
        "There is too little data to compare Pair-tuned and Tiny CLIP.",
    ),
    "one": (held_against(FOUR[:1]), "Pair-tuned is the only model here."),
    "one and a control": (
        held_against([FOUR[0], contestant(CONTROL, 0.05)]),
        "Pair-tuned is the only model here.",
    ),
    "a control is never the best": (
        held_against([FOUR[0], FOUR[1], contestant(CONTROL, 0.01)]),
        "Pair-tuned is fooled less often than Tiny CLIP.",
    ),
    "controls alone": (
        held_against([contestant(CONTROL, 0.5)]),
        "All models here are controls, which should fail.",
    ),
    "one that failed its checks is never the best": (
        held_against([contestant(B, 0.01, is_unfit=True), FOUR[1], FOUR[3]]),
        "Tiny CLIP is fooled less often than Half-trained.",
    ),
    "all failed their checks": (
        held_against([replace(one, is_unfit=True) for one in FOUR]),
        "No model here passed its checks, so the models are not ranked.",
    ),
    "as good as guessing": (
        held_against([replace(one, standing="guessing") for one in FOUR]),
        "They do no better than guessing.",
    ),
    "one as good as guessing": (
        held_against([replace(FOUR[0], standing="guessing")]),
        "Pair-tuned does no better than guessing.",
    ),
    "a guess is never the best": (
        held_against([replace(FOUR[0], standing="guessing"), *FOUR[1:]], tied="BC"),
        "Half-trained is fooled most. No model is clearly the best.",
    ),
    "nothing known": (
        held_against([contestant(B, math.nan)]),
        "No model has results.",
    ),
    "movement": (
        held_against(FOUR, tied="BC", is_movement=True, unit="cosine"),
        "Pair-tuned is moved least, Half-trained most. The other two are tied.",
    ),
}
REMARKS = {  # on a ranking, in the speaker notes
    "all tied": "No model is clearly better than Pair-tuned, Tiny CLIP and 2 others.",
    "a worst one alone": "No model is clearly better than Pair-tuned, Tiny CLIP and Tiny SigLIP.",
    "no best one": "No model is clearly better than Pair-tuned and Tiny CLIP.",
}


def point(model: str, x: float = 0.01, y: float = 0.9) -> PointRow:
    return PointRow(model, x, x - 0.001, x + 0.001, y, y - 0.01, y + 0.01)


def leads(model: str) -> Leader:
    return Leader("leads", (model,))


def tied(*models: str) -> Leader:
    return Leader("tied", models)


# Leaders in invariance and in sensitivity, models, the heading, and the model to look at first.
TRADE_OFFS = [
    (
        (leads("a"), leads("a"), ("a", "b", "c")),
        "A has the lowest invariance error and the highest positive rate.",
        "a",
    ),
    (
        (leads("a"), leads("a"), ("a", "b")),
        "A has the lower invariance error and the higher positive rate.",
        "a",
    ),
    (
        (leads("a"), leads("a"), ("a", "b", CONTROL)),
        "A has the lower invariance error and the higher positive rate.",
        "a",
    ),
    (
        (leads("a"), leads("b"), ("a", "b")),
        "No model is best: A has the lower invariance error, and B has the higher positive rate.",
        "a",
    ),
    (
        (leads("a"), leads("b"), ("a", "b", "c")),
        "No model is best: A has the lowest invariance error, and B has the highest positive rate.",
        "a",
    ),
    (
        (leads("a"), tied("b", "a"), ("a", "b", "c")),
        "A has the lowest invariance error; it is tied with B on positive rate.",
        "a",
    ),
    (
        (leads("a"), tied("a", "b"), ("a", "b")),
        "A has the lower invariance error; it is tied with B on positive rate.",
        "a",
    ),
    (
        (leads("a"), tied("a", "b", "c", "d", "e"), ("a", "b", "c", "d", "e")),
        "A has the lowest invariance error; it is tied with B, C and 2 others on positive rate.",
        "a",
    ),
    (
        (leads("a"), tied("b", "c"), ("a", "b", "c")),
        "A has the lowest invariance error; B and C are tied for the highest positive rate.",
        "a",
    ),
    (
        (tied("a", "b"), leads("c"), ("a", "b", "c")),
        "C has the highest positive rate; A and B are tied for the lowest invariance error.",
        "c",
    ),
    (
        (tied("b", "a"), leads("b"), ("a", "b")),
        "B has the higher positive rate; it is tied with A on invariance error.",
        "b",
    ),
    ((tied("a", "b"), tied("b", "a"), ("a", "b")), "A and B are tied.", "b"),
    (
        (tied("a", "b"), tied("b", "a"), ("a", "b", "c")),
        "No model is best: B and A are tied for the lowest invariance error and the highest "
        "positive rate.",
        "b",
    ),
    (
        (tied("a", "b"), tied("c", "b"), ("a", "b", "c")),
        "No model is best: A and B are tied for the lowest invariance error; C and B are tied "
        "for the highest positive rate.",
        "c",
    ),
    (
        (tied("a", "b", "c", "d"), tied("e", "b"), ("a", "b", "c", "d", "e")),
        "No model is best: four are tied for the lowest invariance error; E and B are tied "
        "for the highest positive rate.",
        "e",
    ),
    ((leads("a"), Leader("unknown"), ("a", "b")), "A has the lower invariance error.", "a"),
    (
        (leads("a"), Leader("chance", ("b",)), ("a", "b")),
        "No model's positive rate is better than guessing.",
        "",
    ),
    (
        (Leader("alone", ("a",)), Leader("alone", ("a",)), ("a",)),
        "A rejects 90.0 % of the wrong captions.",
        "a",
    ),
    (
        (Leader("alone", ("a",)), Leader("alone", ("a",)), ("a", CONTROL)),
        "A rejects 90.0 % of the wrong captions.",
        "a",
    ),
    (
        (Leader("unknown"), Leader("unknown"), (CONTROL,)),
        "These are controls, which should fail.",
        "",
    ),
    (
        (Leader("unknown"), Leader("unknown"), ()),
        "No model here has values for both invariance error and positive rate.",
        "",
    ),
]
