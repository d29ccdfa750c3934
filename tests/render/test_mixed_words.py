"""The text on a search among mixed pictures states only what the run measured."""

from pathlib import Path

import pytest

from vlprobe.render import mixed
from vlprobe.render.charts.styles import Look
from vlprobe.scoring.mixtures import SHARES, Turn
from vlprobe.types import PictureEdit
from vlprobe.views.mixed.case import MixedCase, ModelRanks
from vlprobe.views.mixed.shares import ModelTurn, Standing

LOOKS = {f"m{number}": Look("#0072b2", "circle") for number in range(43)}


def search(
    clean: int = 1, mixed_rank: int = 2, subtype: str = "mix:0.9", lost: bool = True
) -> MixedCase:
    kind, _, lam = subtype.partition(":")
    edit = PictureEdit("patch" if kind == "patch" else "mix", Path("b.png"), float(lam), 1)
    return MixedCase(
        case=0,
        id="a/0/x",
        item="a",
        caption="A dog.",
        subtype=subtype,
        rule=f"{subtype}:seed1",
        edit=edit,
        right="a.png",
        partner="b.png",
        mixture="",
        partner_item="b",
        partner_caption="Two cats.",
        n_pictures=500,
        n_mixtures=498,
        ranks=(ModelRanks("m0", clean, mixed_rank, 0.5),),
        is_lost_to_own=lost,
        fronts=None,
    )


@pytest.mark.parametrize(
    ("case", "heading"),
    [
        (search(), "A tenth of another picture is enough to lose the right one"),
        (
            search(subtype="mix:0.6"),
            "Two fifths of another picture is enough to lose the right one",
        ),
        (search(subtype="mix:0.85"), "15 % of another picture is enough to lose the right one"),
        (
            search(subtype="patch:0.8"),
            "A patch of another picture over a fifth of the right one is enough to lose it",
        ),
        (search(mixed_rank=1, lost=False), "Tiny still finds the right picture"),
        (search(lost=False), "Another mixture outranks the right picture"),
        (search(3, 5, lost=False), "Tiny does not rank this picture first, even without mixtures"),
        (search(0, 0, lost=False), "Tiny does not rank this picture first, even without mixtures"),
    ],
)
def test_the_heading_states_that_a_mixture_won_only_if_it_did(case: MixedCase, heading: str):
    assert mixed.heading(case, "m0", "Tiny") == heading


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        (Standing(100, False, 2, 1, ()), "The mixture is the right picture itself"),
        (
            Standing(80, False, 2, 1, ()),
            "A fifth of another picture is enough to lose the right one",
        ),
        (Standing(70, True, 1, 2, ()), "Tiny still finds the right picture"),
        (Standing(70, True, 2, 3, ()), "Another mixture outranks the right picture"),
        (Standing(70, None, 0, 0, ()), "Not tested at this share"),
    ],
)
def test_the_heading_follows_the_slider(standing: Standing, said: str):
    assert mixed.heading(search(), "m0", "Tiny", standing) == said


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        (Standing(90, False, 2, 1, ()), ("Ranked 1st instead", "lie")),
        (Standing(90, False, 3, 2, ()), ("Ranked 2nd", "lie")),
        (Standing(90, False, 9, 0, ()), ("Above the right picture", "lie")),
        (Standing(70, True, 1, 2, ()), ("Ranked 2nd", "true")),
        (Standing(70, True, 1, 0, ()), ("Below the right picture", "true")),
        (Standing(100, False, 2, 1, ()), ("The same picture: a tie", "tie")),
        (Standing(70, None, 0, 0, ()), ("Not tested at this share", "quiet")),
    ],
)
def test_the_label_of_the_mixture_names_its_result(standing: Standing, said: tuple[str, str]):
    assert mixed.own_text(standing) == said


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ((1, 2), "found 1st before mixtures were added; now 2nd"),
        ((1, 1), "found 1st, with mixtures too"),
        ((2, 6), "2nd without mixtures; now 6th"),
        ((1, 0), "found 1st before mixtures were added; now below all retrieved candidates"),
    ],
)
def test_the_right_picture_is_labeled_with_its_ranks_before_and_after(
    ranks: tuple[int, int], said: str
):
    assert "".join(text for text, _ in mixed.right_text(*ranks)) == said


def rows(turns: list[ModelTurn]) -> dict:
    answers = mixed.MixedAnswers("m0", None, (), tuple(turns))
    return mixed.chart(search(), answers, LOOKS, lambda name: name)


def test_rows_mark_models_that_are_never_or_repeatedly_fooled():
    lost = (False,) * 26
    often = (False, True, False, *[True] * 23)
    shown = rows(
        [
            ModelTurn("m0", lost, Turn(0, 0)),
            ModelTurn("m1", often, Turn(94, 3)),
            ModelTurn("m2", (False, *[True] * 25), Turn(98, 1)),
            ModelTurn("m3", (None, None, True, *[None] * 3, False, *[None] * 19), None),
        ]
    )["rows"]
    assert [row["text"] for row in shown] == ["never", "94 %", "98 %", ""]
    assert [row["remark"] for row in shown] == [
        "",
        "more than once",
        "",
        "not fooled at 96 %; fooled at 88 %",
    ]
    assert shown[0]["segments"] == [(100, 50)] and shown[1]["segments"] == [(100, 98), (96, 94)]
    assert shown[3]["dots"] == [[96, True], [88, False]]


def test_of_many_models_the_first_rows_are_shown_and_the_rest_counted():
    turns = [ModelTurn(name, (None,) * len(SHARES), None) for name in LOOKS]
    shown = rows(turns)
    assert len(shown["rows"]) == mixed.MOST_ROWS and shown["more"] == "and 31 more models"
    assert shown["rows"][0]["remark"] == "not asked"
