"""Home's door to mixed pictures: a picture, its partner and their mixture, which
takes the right one's place.
"""

from dataclasses import dataclass

from vlprobe import views
from vlprobe.dashboard.home.subject import Link, first_model
from vlprobe.dashboard.state import PageSubject, model_name, page_subject, store, view
from vlprobe.render import mixed as words
from vlprobe.scoring.thumbnails import addresses
from vlprobe.views.mixed.case import MixedCase
from vlprobe.views.mixed.searches import KIND
from vlprobe.views.runs import QuestionSet

PROBE = "rococo"
TITLE = "Mixed pictures"


@dataclass(frozen=True)
class MixedDoor:
    """The content and the target of the door."""

    link: Link
    sentence: str
    pictures: tuple[tuple[str, str], ...]  # right, partner, mixture: data address and what it is


def mixed_door(about: PageSubject) -> MixedDoor | None:
    """The door; None if no model has searched among mixed pictures."""
    question_set = _searched(about)
    if question_set is None:
        return None
    rated = question_set.rated_models
    model = about.model if about.model in rated else first_model(rated)
    link = Link("explore", {"set": question_set.key, "model": model, "kind": KIND})
    case = _first_lost(question_set, model)
    if case is None:
        return MixedDoor(link, "No search is lost to its own mixture here", ())
    return MixedDoor(link, words.heading(case, model, model_name(model)), _pictures(case))


def _searched(about: PageSubject) -> QuestionSet | None:
    """The most complete searches among mixed pictures: of what Home is about, else of the
    same pictures, else of any.
    """
    home_set = about.question_set
    rows = view(views.runs.question_set_rows)
    candidates = [row for row in rows if row.probe == PROBE]
    datasets = {row.case_key: row.dataset for row in rows}
    candidates.sort(
        key=lambda row: (row.case_key != home_set.key, row.dataset != datasets.get(home_set.key))
    )
    # One at a time: there may be hundreds, and the first one is most often it.
    every = (page_subject(row.case_key).question_set for row in candidates)
    return next((search for search in every if view(views.mixed.searches.strengths, search)), None)


def _first_lost(question_set: QuestionSet, model: str) -> MixedCase | None:
    """The case that the view of mixed pictures begins with: found clean,
    lost to its own mixture.
    """
    subtype = view(views.mixed.searches.strengths, question_set)[0]
    first_id = view(views.mixed.searches.place, question_set, model, subtype, None).next
    if not first_id:
        return None
    number = view(views.rows.case_number, question_set, first_id)
    return (
        None if number is None else view(views.mixed.case.mixed_case, question_set, number, model)
    )


def _pictures(case: MixedCase) -> tuple[tuple[str, str], ...]:
    """The three pictures; nothing where one of them cannot be shown."""
    named_pictures = {
        case.right: case.caption,
        case.partner: case.partner_caption,
        case.mixture: f"{case.caption}, mixed",
    }
    sources = addresses(store().root, [name for name in named_pictures if name])
    if len(sources) < len(named_pictures) or not all(sources.values()):
        return ()
    return tuple((sources[name], alt) for name, alt in named_pictures.items())
