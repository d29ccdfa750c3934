"""What Home shows first, looked up before anybody asks; nothing of it needs a visitor."""

from vlprobe import views
from vlprobe.dashboard.home import hero
from vlprobe.dashboard.home.mixed_door import mixed_door
from vlprobe.dashboard.home.subject import Subject, first_model
from vlprobe.dashboard.state import questions, view
from vlprobe.render import showcase as words
from vlprobe.render.words import presentations


def prepare() -> None:
    """Keeps the answers that Home asks for of the first results, and the
    pictures of the first failures.
    """
    sets = view(views.runs.question_sets)
    if sets.empty:
        return
    stored = questions(sets["case_key"].iloc[0])
    question_set = stored.question_set
    kind = view(views.showcase.kinds, question_set)[0]
    model = first_model(view(views.showcase.headline_models, question_set))
    showcases = view(
        views.showcase.showcases, question_set, kind, model, hero.seed_of(question_set)
    )
    presentation = presentations()[question_set.probe].kind(kind)
    for showcase in showcases[: hero.AHEAD]:
        for shot in words.shots(showcase.card, presentation):
            hero.picture_source(shot.name)
    view(views.showcase.lie_counts, question_set, kind)
    view(views.showcase.n_fooling_pictures, question_set, kind, model)
    mixed_door(Subject(stored, kind, model))
