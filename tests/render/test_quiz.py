"""Sentences of the quiz: the fooled models, the score of a room, and the lies behind the shares."""

import dataclasses

import pytest

from vlprobe.render import quiz as words
from vlprobe.render.quiz import Participant
from vlprobe.render.slides.models import describe_models, slide_names
from vlprobe.views.quiz import QuizQuestion, QuizRound
from vlprobe.views.wall import ModelVerdict

CAPTIONS = "A red dog.", "A blue dog."
SEGMENTS = tuple(((caption, False),) for caption in CAPTIONS)
ANSWERS = {"a": -1.0, "b": -1.0, "c": 0.0, "d": 1.0}


def quiz_question(is_scored: bool, **margins: float) -> QuizQuestion:
    """Return a question with these answers."""
    verdicts = tuple(ModelVerdict(name, each, is_scored) for name, each in margins.items())
    return QuizQuestion(0, "x", "x", "foil", "", "p.png", 0, CAPTIONS, SEGMENTS, 0, verdicts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("is_scored", "margins", "heading"),
    [
        (False, ANSWERS, "Two of four models believed the lie, one right in one order only."),
        (True, ANSWERS, "Two of four models believed the lie, one cannot tell."),
        (False, {"c": 0.0, "d": 1.0}, "One of two models is right in one order only."),
        (True, {"c": 0.0, "d": 0.0}, "Both models cannot tell."),
        (False, {"c": 0.0}, "The model is right in one order only."),
        (True, {"d": 1.0}, "The model was not fooled."),
    ],
)
def test_a_model_that_is_right_in_one_order_only_is_counted_as_on_home(is_scored, margins, heading):
    assert words.outcome(None, quiz_question(is_scored, **margins)) == heading


def test_an_answer_that_is_right_in_one_order_only_counts_half():
    quiz = QuizRound(
        "s", "foil", "hard", (quiz_question(False, **ANSWERS),), tuple(ANSWERS), 1, 1, 2, ()
    )
    states = words.model_states(quiz, 1)
    assert states == {"a": ("wrong",), "b": ("wrong",), "c": ("tied",), "d": ("right",)}
    participant = Participant("c", (*states["c"], "right"))
    assert participant.total == 1.5
    assert words.scores_data([participant])[0]["total"] == "1.5"
    assert words.summary(Participant("You", ("right", "wrong")), [participant]) == (
        "You spotted one of two lies. C spotted one and a half."
    )
    scored = dataclasses.replace(quiz, questions=(quiz_question(True, **ANSWERS),))
    assert words.model_states(scored, 1)["c"] == ("wrong",)


def test_the_score_of_a_room_counts_only_answered_questions():
    room = Participant("The room", ("right", "wrong", "none", "none"))
    assert words.room_summary(room)[0] == "The room spotted one of two lies."
    assert [(each["total"], each["unit"]) for each in words.scores_data([room])] == [("1", "of 2")]
    nobody = Participant("The room", ("none", "none"))
    assert words.room_summary(nobody)[0] == "Nobody voted."
    skipped = Participant("The room", ("skipped", "none"))
    assert words.room_summary(skipped)[0] == "No question counts."
    assert words.scores_data([nobody])[0]["total"] == "-"


def test_a_skipped_question_does_not_count_for_people_or_models():
    answers = (quiz_question(True, a=1.0),) * 3
    states = words.model_states(
        QuizRound("s", "foil", "hard", answers, ("a",), 1, 1, 2, ()), 3, [1]
    )
    assert states == {"a": ("right", "skipped", "right")}
    you = Participant("You", words.states_of([True, None, False], [1]))
    assert words.summary(you, []) == "You spotted one of two lies."
    assert words.scores_data([you])[0]["unit"] == "of 2"
    every = Participant("You", words.states_of([None], [0]))
    assert words.summary(every, []) == "You skipped every question."


def test_the_last_screen_says_which_model_a_plain_name_stands_for():
    models = ["published:CLIP_TROHN-Img", "published:GPT-4V"]
    assert describe_models(models, slide_names(models, {})) == [
        "Picture-tuned CLIP (CLIP_TROHN-Img): CLIP, trained again on wrong captions and pictures.",
        "GPT-4V, by OpenAI: a chat program that also looks at pictures.",
    ]


def test_the_last_screen_names_no_best_model_if_the_questions_were_chosen_by_it():
    models = [
        Participant(name, (state, "right")) for name, state in (("a", "right"), ("b", "wrong"))
    ]
    person = Participant("You", ("right", "wrong"))
    assert words.summary(person, models).endswith("A spotted two.")
    assert words.summary(person, models, True).endswith(
        "Of the two models, the worst spotted one, the best two."
    )


def test_if_pictures_are_missing_the_note_states_the_lies_behind_the_shares():
    quiz = QuizRound("s", "foil", "fair", (), ("a", "b"), 148, 7512, 0, (0.7, 0.91))
    note = words.how_drawn(quiz)
    assert note.startswith("Drawn at random from 148 lies with a picture. On these, ")
    hard = dataclasses.replace(quiz, draw="hard", n_fooled=2)
    assert "On the 148 lies with a picture, the" in words.how_drawn(hard)
    assert "On the 148 lies, the" in words.how_drawn(dataclasses.replace(hard, n_all=148))
    selected = words.how_drawn(dataclasses.replace(hard, is_selected=True))
    assert words.FAVORS_THE_BEST in selected and "left out" not in words.how_drawn(hard)


@pytest.mark.parametrize("is_revealed", [False, True])
def test_capitals_and_periods_do_not_reveal_the_true_caption(is_revealed: bool):
    segments = ((("a bird ", True), ("is up", False)), (("A cat ", True), ("is up.", False)))
    question = dataclasses.replace(quiz_question(True), segments=segments)
    shown = words.question_data(question, {}, {}, is_revealed, None)["captions"]
    texts = ["".join(text for text, _ in caption["runs"]) for caption in shown]
    assert texts == ["A bird is up.", "A cat is up."]


@pytest.mark.parametrize(
    ("pair", "alike"),
    [
        (("Condiments..", "Plates."), ("Condiments.", "Plates.")),
        (("Plates ", "Plates and cups"), ("Plates", "Plates and cups")),
        (("A dog!", "A cat."), ("A dog.", "A cat.")),
        (("SOME FRUIT", "Some bowls."), ("Some fruit.", "Some bowls.")),
        (("A CAT", "A DOG"), ("A CAT", "A DOG")),
    ],
)
def test_neither_the_end_nor_the_case_of_a_caption_reveals_the_true_one(
    pair: tuple[str, str], alike: tuple[str, str]
):
    assert tuple(words.alike([[(pair[0], "")], [(pair[1], "")]])) == (
        ((alike[0], ""),),
        ((alike[1], ""),),
    )
