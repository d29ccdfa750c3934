"""Answers of models, and the heading that each comparison must have."""

import functools
import itertools

from tests.views.believed_scenes import scene
from vlprobe.render.sentences import END_ISOLATE, ISOLATE
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.believed import Comparison

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
    """The same answers of the first two models, with what further models do appended."""
    return {(subtype, models + extra): count for (subtype, models), count in answers.items()}


SCENES = {
    "clear": (
        CLEAR | REST,
        (A, B),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better.",
    ),
    "clear for the baseline": (
        {("number", "ox"): 90, ("number", "xo"): 20, ("color", "oo"): 400},
        (A, B),
        {},
        "Tiny CLIP is fooled less often than Pair-tuned. It counts better.",
    ),
    "clear, without types of edit": (
        {("", "xo"): 90, ("", "ox"): 20, ("", "oo"): 400},
        (A, B),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP.",
    ),
    "clear over all alone": (
        {
            ("number", "xo"): 17,
            ("number", "ox"): 7,
            ("object", "xo"): 17,
            ("object", "ox"): 6,
            ("color", "xo"): 15,
            ("color", "ox"): 6,
            ("color", "oo"): 300,
        },
        (A, B),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP.",
    ),
    "clear, opposite in one type": (
        {("number", "xo"): 190, ("number", "ox"): 20, ("number", "oo"): 400} | LOST,
        (A, B),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better, Tiny CLIP knows objects better.",
    ),
    "tied": (TIE | REST, (A, B), {}, "Tiny CLIP and Pair-tuned are tied."),
    "tied, the same answers": (
        {("number", "xx"): 20, ("number", "oo"): 90},
        (A, B),
        {},
        "Tiny CLIP and Pair-tuned are tied.",
    ),
    "tied, opposite": (
        CLEAR | LOST | REST,
        (A, B),
        {},
        "Tiny CLIP and Pair-tuned are tied. Pair-tuned counts better, Tiny CLIP knows objects better.",
    ),
    "tied, one is better at one type": (
        CLEAR
        | {
            ("object", "ox"): 60,
            ("object", "xo"): 40,
            ("color", "ox"): 45,
            ("color", "xo"): 30,
            ("color", "oo"): 500,
        },
        (A, B),
        {},
        "Tiny CLIP and Pair-tuned are tied. Pair-tuned counts better.",
    ),
    "just above the limit": (
        {("", "xo"): 20, ("", "ox"): 9, ("", "oo"): 70},
        (A, B),
        {},
        "Tiny CLIP and Pair-tuned are tied.",
    ),
    "just below the limit": (
        {("", "xo"): 21, ("", "ox"): 9, ("", "oo"): 70},
        (A, B),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP.",
    ),
    "clear alone, tied after correction": (
        {("number", "xo"): 21, ("number", "ox"): 9, ("object", "oo"): 70, ("color", "oo"): 70},
        (A, B),
        {},
        "Tiny CLIP and Pair-tuned are tied.",
    ),
    "both guess": (GUESS, (A, B), {}, "Neither can tell: both are as good as guessing."),
    "both guess, one more often": (
        {("number", "xo"): 90, ("number", "ox"): 40, ("number", "oo"): 60, ("number", "xx"): 90},
        (A, B),
        {},
        "Neither can tell: Tiny CLIP is worse than guessing, the rest as good.",
    ),
    "both below": (BELOW, (A, B), {}, "Neither can tell: both are worse than guessing."),
    "a third guesses": (
        letters(GUESS, "x") | {("number", "ooo"): 300},
        (A, B, C),
        {},
        "Tiny CLIP is tied with Pair-tuned, and fooled less often than Tiny SigLIP.",
    ),
    "all three guess": (
        {("number", "".join(way)): 40 for way in itertools.product("xo", repeat=3)},
        (A, B, C),
        {},
        "None can tell: all are as good as guessing.",
    ),
    "guessing, as far as five pictures tell": (
        {("number", "xo"): 2, ("number", "ox"): 1, ("number", "oo"): 2},
        (A, B),
        {},
        "Neither is known to be better than guessing.",
    ),
    "one lie": (
        {("number", "xo"): 1},
        (A, B),
        {},
        "Too little is known to tell Tiny CLIP and Pair-tuned apart.",
    ),
    "one picture with many lies": (
        {("number", "xo"): 30},
        (A, B),
        {"pictures": 1},
        "Too little is known to tell Tiny CLIP and Pair-tuned apart.",
    ),
    "no common answer": (
        {("number", "x?"): 30, ("number", "?o"): 30},
        (A, B),
        {},
        "Tiny CLIP and Pair-tuned cannot be compared.",
    ),
    "no answer at all": (
        {("number", "??"): 30},
        (A, B),
        {},
        "Tiny CLIP and Pair-tuned cannot be compared.",
    ),
    "a third without answers": (
        letters(CLEAR | REST, "?"),
        (A, B, C),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better.",
    ),
    "few pictures with many lies": (
        CLEAR | REST,
        (A, B),
        {"pictures": 4},
        "Tiny CLIP and Pair-tuned are tied.",
    ),
    "a control is worse": (
        {("number", "ox"): 90, ("number", "oo"): 100, ("number", "xx"): 9},
        (A, CONTROL),
        {},
        "Tiny CLIP is fooled less often than Coin flip, a control.",
    ),
    "a control is the baseline": (
        {("number", "xo"): 90, ("number", "oo"): 100, ("number", "xx"): 9},
        (CONTROL, A),
        {},
        "Tiny CLIP is fooled less often than Coin flip, a control.",
    ),
    "a control is fooled less often": (
        CLEAR | REST,
        (A, CONTROL),
        {},
        "Tiny CLIP does no better than Coin flip, a control.",
    ),
    "a control is tied": (
        TIE | REST,
        (A, CONTROL),
        {},
        "Tiny CLIP does no better than Coin flip, a control.",
    ),
    "a control is a tied baseline": (
        TIE | REST,
        (CONTROL, A),
        {},
        "Tiny CLIP does no better than Coin flip, a control.",
    ),
    "a control is a better baseline": (
        {("number", "ox"): 90, ("number", "xo"): 20, ("number", "oo"): 400},
        (CONTROL, A),
        {},
        "Tiny CLIP does no better than Coin flip, a control.",
    ),
    "a control beside two": (
        {
            ("number", "xoo"): 90,
            ("number", "oxx"): 20,
            ("number", "ooo"): 400,
            ("number", "oox"): 200,
        },
        (A, B, CONTROL),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP.",
    ),
    "a guessing model and a control": (
        GUESS,
        (A, CONTROL),
        {},
        "Tiny CLIP cannot tell: it is as good as guessing.",
    ),
    "two controls": (
        CLEAR | REST,
        (CONTROL, CONSTANT),
        {},
        "Both are controls: they are meant to fail.",
    ),
    "a model that failed its checks is ahead": (
        CLEAR | REST,
        (A, B),
        {"unfit": (B,)},
        "Tiny CLIP does no better than Pair-tuned, which failed its checks.",
    ),
    "a model that failed its checks is behind": (
        CLEAR | REST,
        (A, B),
        {"unfit": (A,)},
        "Pair-tuned is fooled less often than Tiny CLIP, which failed its checks. It counts better.",
    ),
    "nobody is fit": (
        CLEAR | REST,
        (A, B),
        {"unfit": (A, B)},
        "Both models fail a basic check here (matching pictures with their captions), so read this with care.",
    ),
    "nobody is fit, one a control": (
        CLEAR | REST,
        (A, CONTROL),
        {"unfit": (A,)},
        "Nothing to compare: only controls and models that failed their checks.",
    ),
    "a guess is not defined": (
        GUESS,
        (A, B),
        {"kind": KindPresentation(label="Search", lies="wrong captions")},
        "Tiny CLIP and Pair-tuned are tied.",
    ),
    "three, two are better": (
        {
            ("number", "xoo"): 90,
            ("number", "oxx"): 20,
            ("number", "ooo"): 200,
            ("color", "ooo"): 300,
        },
        (A, B, C),
        {},
        "Pair-tuned and Tiny SigLIP are fooled less often than Tiny CLIP. Both count better.",
    ),
    "three, one is tied and one worse": (
        {("", "oox"): 90, ("", "xoo"): 10, ("", "oxo"): 11, ("", "ooo"): 400},
        (A, B, D),
        {},
        "Tiny CLIP is tied with Pair-tuned, and fooled less often than Half-trained.",
    ),
    "four, as in the design": (
        {
            **{
                ("number", "xooo"): 180,
                ("number", "oxxx"): 30,
                ("number", "xxxx"): 60,
                ("number", "oooo"): 700,
            },
            **{
                ("object", "ooxx"): 160,
                ("object", "xxoo"): 20,
                ("object", "ooox"): 260,
                ("object", "oooo"): 900,
            },
            **{("object", "xoxx"): 25, ("object", "oxxx"): 20, ("color", "oooo"): 1200},
        },
        (A, B, C, D),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP. It counts better.",
    ),
    "four, nobody is better": (
        {("", "oxxx"): 90, ("", "xooo"): 20, ("", "oooo"): 400},
        (A, B, C, D),
        {},
        "Tiny CLIP is fooled less often than Pair-tuned, Tiny SigLIP and Half-trained.",
    ),
    "43 models": (
        {("", "x" + "o" * 42): 26, ("", "o" + "x" * 42): 3, ("", "o" * 43): 40},
        PLENTY,
        {},
        "model-1, model-2 and 40 others are fooled less often than model-0.",
    ),
    "a long name": (
        {("", "xo"): 90, ("", "oo"): 200},
        (A, LONG),
        {},
        "very-very-very-very…-very-very-very-long is fooled less often than Tiny CLIP.",
    ),
    "a hostile name": (
        {("", "ox"): 90, ("", "oo"): 200},
        (A, HOSTILE),
        {},
        "Tiny CLIP is fooled less often than </script><img src=x onerror=alert(1)>.",
    ),
    "a name that is written from right to left": (
        {("", "xo"): 90, ("", "oo"): 200},
        (A, RTL),
        {},
        f"{ISOLATE}\u05e9\u05dc\u05d5\u05dd{END_ISOLATE} is fooled less often than Tiny CLIP.",
    ),
    "types of edit without words": (
        {("P1", "xo"): 90, ("P1", "oo"): 90, ("<b>", "xo"): 90, ("<b>", "oo"): 90},
        (A, B),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP. It does better on “<b>” and “P1: any other wording”.",
    ),
    "many types of edit": (
        {(f"type {number}", "xo"): 40 for number in range(5)} | {("last", "oo"): 40},
        (A, B),
        {},
        "Pair-tuned is fooled less often than Tiny CLIP. It does better on 5 of 6 kinds of edit.",
    ),
}


@functools.cache
def compared(name: str) -> Comparison:
    """The comparison of a scene."""
    pattern, models, options, _ = SCENES[name]
    return scene(pattern, models, **options)
