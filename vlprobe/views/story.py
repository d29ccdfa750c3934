"""Content for a talk about stored results: an opening case, the better model, and a mixed-picture search."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.metrics.blind import BlindAccuracy
from vlprobe.storage.store import Store
from vlprobe.views import rows as views_rows
from vlprobe.views import suspects as views_suspects
from vlprobe.views import wall as views_wall
from vlprobe.views.bodies import body_of, stored_body
from vlprobe.views.changes import is_in_several_places
from vlprobe.views.estimates import best_guess
from vlprobe.views.filter import Filter
from vlprobe.views.mixed import searches as mixed_searches
from vlprobe.views.mixed.case import MixedCase, mixed_case
from vlprobe.views.paired_tests import PairedTests, rank_models
from vlprobe.views.quiz import are_doubtful
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet, question_set_rows
from vlprobe.views.runs import question_set as open_set
from vlprobe.views.showcase import failure_strengths, headline_models, prefer_clear
from vlprobe.views.wall import WallCard

MOST_OPENERS = 200
MOST_SUGGESTIONS = 30
MOST_EXAMPLES = 24  # cases of a type of edit from which an example is chosen


@dataclass(frozen=True, slots=True)
class Opener:
    """The case that opens the slides, and the candidate after it."""

    card: WallCard
    next: str  # id of the next candidate; after the last comes the first; "": no other


@dataclass(frozen=True, slots=True)
class MixedStory:
    """A picture search that a model loses to a mixture of the right picture."""

    case: MixedCase
    dataset: str  # dataset of the pictures
    model: str  # model of the ranks
    n_fooled: int  # headline models that lose the search in the same way
    n_models: int  # headline models
    n_lost: int  # searches of this strength that the model found, and lost to their own mixture
    n_found: int  # searches of this strength that the model found


@dataclass(frozen=True, slots=True)
class Story:
    """The content of the slides about one kind of case."""

    probe: str
    dataset: str
    # Headline models: no controls, and if possible none that failed its checks
    models: tuple[str, ...]
    opener: Opener | None
    standings: PairedTests
    mixture: MixedStory | None
    runs: tuple[RunRow, ...] = ()  # runs of all models
    more: Opener | None = None  # the candidate after the opener
    guess: BlindAccuracy | None = None  # the best guess without the picture
    examples: Mapping[str, WallCard] = field(default_factory=dict)  # a case of each type of edit


def story(question_set: QuestionSet, kind: str) -> Story:
    """Collect the content for slides about one kind of case, which open with the first candidate."""
    is_search = stored_body(question_set.probe, kind).ranks == "pictures"
    newest = question_set.runs[0]
    models = headline_models(question_set)
    first, more, of_types = default_cases(question_set, kind)
    return Story(
        probe=question_set.probe,
        dataset=newest.dataset,
        models=models,
        opener=first,
        standings=rank_models(question_set, kind),
        mixture=None if is_search else mixture(question_set.store, newest.dataset, models),
        runs=question_set.runs,
        more=more,
        guess=best_guess(question_set, kind),
        examples=of_types,
    )


def default_cases(
    question_set: QuestionSet, kind: str
) -> tuple[Opener | None, Opener | None, dict[str, WallCard]]:
    """Return the cases on the slides that nobody changed: the first two candidates, and the `examples`."""
    first = opener(question_set, kind)
    more = opener(question_set, kind, first.next) if first and first.next else None
    used = [each.card for each in (first, more) if each]
    return first, more, examples(question_set, kind, used)


def order(question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the candidates for the opening case of the slides, sorted by the number of fooled headline models (most
    first).

    Among equals, each pair of replaced words appears once before any repeats, and the clearest failures (lowest mean
    margin) come first. No picture appears twice. If some pictures are not on this machine, cases without pictures are
    used only if no case has one. Margins are divided by each model's standard deviation over the kind. For published
    questions, cases with suspect labels are excluded, a failure of the first model counts more
    (`failure_strengths`), and cases that people understand at a glance are preferred (`prefer_clear`).

    Returns:
        Case numbers, which callers must not modify.
    """
    # 20 ms, three times in the first draw of the slides
    name = ("order", question_set.key, question_set.runs, kind)
    return question_set.store.listing_fact(name, lambda: _order(question_set, kind))


def _order(question_set: QuestionSet, kind: str) -> np.ndarray:
    models = headline_models(question_set)
    cases = question_set.cases
    numbers = cases.numbers("kind = ?", [kind])
    if not len(numbers):
        return numbers
    margins = views_rows.margins(question_set, models, numbers).astype(np.float64)
    scale = np.array([np.nanstd(row) if not np.isnan(row).all() else 1.0 for row in margins])
    relative = np.where(np.isnan(margins), 0.0, margins) / np.where(scale > 0, scale, 1.0)[:, None]
    is_suspect = views_suspects.are_suspect(question_set, kind, numbers)
    strength = failure_strengths(question_set, models, margins, models[0], is_suspect)
    is_pictured = views_rows.are_pictured(question_set, kind, numbers)
    is_chosen = ~is_suspect if is_pictured is None else ~is_suspect & is_pictured
    is_chosen = is_chosen if is_chosen.any() else np.ones_like(is_chosen)
    strength = prefer_clear(question_set, kind, numbers, strength * is_chosen)
    table = pd.DataFrame(
        {
            "number": numbers,
            "strength": strength,
            "margin": relative.mean(axis=0),
            "picture": cases.picture_codes[numbers],
            "source": cases.codes("source")[0][numbers],
            "target": cases.codes("target")[0][numbers],
        }
    )
    table = table.loc[is_chosen].sort_values(
        ["strength", "margin", "number"], ascending=[False, True, True]
    )
    table = table.drop_duplicates("picture").head(50 * MOST_OPENERS)
    again = table.groupby(["strength", "source", "target"]).cumcount()
    table = table.assign(again=again).sort_values(
        ["strength", "again", "margin", "number"], ascending=[False, True, True, True]
    )
    return table["number"].to_numpy()[:MOST_OPENERS]


def opener(
    question_set: QuestionSet, kind: str, case_id: str = "", added: tuple[str, ...] = ()
) -> Opener | None:
    """Return the case with the given id, or else the first candidate; None if the kind has no cases.

    Args:
        added: Ids of cases that the deck has already, which are not candidates.
    """
    numbers = _candidates(question_set, kind)
    number = views_rows.case_number(question_set, case_id) if case_id else None
    of_kind = question_set.cases.numbers("kind = ?", [kind])
    candidates = numbers.tolist()
    ids = views_rows.questions(question_set, candidates)["id"].tolist()
    if number is None or number not in of_kind:
        if not ids:
            return None
        case_id = next((name for name in ids if name not in added), ids[0])
        number = candidates[ids.index(case_id)]
    position = candidates.index(number) + 1 if number in candidates else 0
    following = [*ids[position:], *ids[:position]]
    next_id = next((name for name in following if name not in (case_id, *added)), "")
    (card,) = _shown(question_set, _fooled_model(question_set, number), kind, [number])
    return Opener(card, next_id)


def suggestions(question_set: QuestionSet, kind: str) -> tuple[WallCard, ...]:
    """Return the first candidates, which can be added to the slides."""
    chosen = _candidates(question_set, kind)[:MOST_SUGGESTIONS].tolist()
    if not chosen:
        return ()
    return _pictured(question_set, Filter(_fooled_model(question_set, chosen[0]), kind), chosen)


def examples(
    question_set: QuestionSet, kind: str, used: Sequence[WallCard] = ()
) -> dict[str, WallCard]:
    """Return a case for each type of edit: if possible a candidate for the opening case, whose picture and change are
    on no other slide and, except for swaps, with words that changed in one place. Cases of types without a picture
    on this machine have no images. Cases whose label may be wrong come last, as do published cases that fool models.

    Args:
        used: Cases on other slides.
    """
    numbers = question_set.cases.numbers("kind = ?", [kind])
    if not len(numbers):
        return {}
    numbers = np.concatenate([_candidates(question_set, kind), numbers])
    codes = question_set.cases.codes("subtype")[0][numbers]
    first = [np.flatnonzero(codes == code)[:MOST_EXAMPLES] for code in np.unique(codes)]
    case_filter = Filter(headline_models(question_set)[0], kind)
    cards = _pictured(question_set, case_filter, numbers[np.concatenate(first)].tolist())
    of_cards = np.array([card.case for card in cards])
    doubtful = of_cards[are_doubtful(question_set, kind, of_cards)]
    can_err = views_suspects.can_have_suspects(question_set)
    chosen = {}
    for subtype in dict.fromkeys(card.subtype for card in cards):
        taken = [*used, *chosen.values()]
        pictures = {card.images for card in taken}
        changes = {(card.source, card.target) for card in taken}
        of_type = [card for card in cards if card.subtype == subtype]
        chosen[subtype] = min(
            [card for card in of_type if views_rows.are_here(card.images[:1])]
            or [replace(card, images=()) for card in of_type],
            key=lambda card: (
                card.case in doubtful,
                bool(card.images) and card.images in pictures,
                (card.source, card.target) in changes,
                "swap" not in subtype
                and (
                    not (card.source and card.target)
                    or is_in_several_places(card.source, card.target)
                ),
                can_err and sum(answer.verdict != "held" for answer in card.verdicts),
                len(card.wrong_text),
            ),
        )
    return chosen


def _pictured(
    question_set: QuestionSet, case_filter: Filter, numbers: Sequence[int]
) -> tuple[WallCard, ...]:
    """Return cases, those without a picture with the picture of another case about the same item if there is one.

    Cases whose slides can do without a picture have none if it is not on this machine.
    """
    cards = views_wall.cards(question_set, case_filter, numbers)
    items = {card.item for card in cards if not card.images}
    statement = (
        "SELECT item, min(images[1]) FROM read_parquet(?) "
        "WHERE list_contains(?, item) AND len(images) > 0 GROUP BY item"
    )
    path = [question_set.cases.path]
    pictures = dict(question_set.store.fetch_rows(statement, [path, [*items]])) if items else {}
    shown = []
    for card in cards:
        images = card.images or tuple(filter(None, [pictures.get(card.item)]))
        is_optional = stored_body(question_set.probe, card.kind).is_picture_optional
        is_left_out = is_optional and not views_rows.are_here(images[:1])
        shown.append(replace(card, images=() if is_left_out else images))
    return tuple(shown)


def added_cards(
    question_set: QuestionSet, kind: str, case_ids: tuple[str, ...]
) -> tuple[WallCard, ...]:
    """Return the cases with the given ids, without ids that the kind does not have."""
    if not case_ids:
        return ()
    of_kind = set(question_set.cases.numbers("kind = ?", [kind]).tolist())
    numbers = [views_rows.case_number(question_set, case_id) for case_id in case_ids]
    chosen = [number for number in numbers if number is not None and number in of_kind]
    return _shown(question_set, headline_models(question_set)[0], kind, chosen) if chosen else ()


def _shown(
    question_set: QuestionSet, model: str, kind: str, numbers: Sequence[int]
) -> tuple[WallCard, ...]:
    """Return cases for slides. A rewording has the model's scores for both wordings, and of the wrong captions about
    the same picture that score between them the one with the highest score: one wording beats it, the other does not.
    """
    cards = _pictured(question_set, Filter(model, kind), numbers)
    of_kind = question_set.presentation.kind(kind)
    if not of_kind.is_movement or body_of(of_kind).uses_answer or not cards[0].is_scored:
        return cards
    condition = "list_contains(?, item) AND len(texts) = 2 AND roles[2] = 'different'"
    items = tuple(card.item for card in cards)
    others = question_set.cases.numbers(condition, [items]).tolist()
    lies = views_wall.cards(question_set, Filter(model, kind), others)
    rows = views_rows.answer_rows(question_set, [*numbers, *others], (model,))
    shown = []
    for card in cards:
        answer = rows[card.case][model]
        low, high = min(answer.scores), max(answer.scores)
        of_item = (lie for lie in lies if lie.item == card.item)
        scored = ((float(rows[lie.case][model].scores[1]), lie.wrong_text) for lie in of_item)
        between = (each for each in scored if low < each[0] < high)
        shown.append(replace(card, answer=answer, lie=max(between, default=card.lie)))
    return tuple(shown)


def _candidates(question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the cases in `order`. Searches are replaced by those that are lost to a mixture of the right picture, if
    there are any, because they are the easiest to understand.
    """
    is_search = stored_body(question_set.probe, kind).ranks == "pictures"
    best = _best_search(question_set) if is_search else None
    if best is None:
        return order(question_set, kind)
    subtype, _, model = best
    models = headline_models(question_set)
    return mixed_searches.order(question_set, model, subtype, models)[0][:MOST_OPENERS]


def _fooled_model(question_set: QuestionSet, number: int) -> str:
    """Return the first headline model that a case fools. If the case fools none, return the first headline model."""
    models = headline_models(question_set)
    margins = views_rows.margins(question_set, models, np.array([number]))
    return models[int(np.argmax(views_rows.are_fooled(question_set, models, margins)[:, 0]))]


def mixture(store: Store, dataset: str, models: Collection[str]) -> MixedStory | None:
    """Find a picture search for the slides that models lose to a mixture. The weakest mixture that beats any model is
    used, and the search that the most models lose to it.

    Returns:
        The search; None if no search with mixtures is stored or no model loses one.
    """
    for row in question_set_rows(store):
        kinds = registry.load_probe(row.probe).presentation.kinds.values()
        if row.dataset != dataset or all(body_of(kind).ranks != "pictures" for kind in kinds):
            continue
        searched = open_set(store, row.case_key)
        if not set(headline_models(searched)) <= set(models):
            continue
        if (best := _best_search(searched)) is None:
            continue
        subtype, n_fooled, model = best
        headline = headline_models(searched)
        number = int(mixed_searches.order(searched, model, subtype, headline)[0][0])
        case = mixed_case(searched, number, model)
        if not case.mixture:
            return None
        counts = mixed_searches.counts(searched, model, subtype)
        of_all = n_fooled, len(headline), counts.n_lost_to_own, counts.n_found
        return MixedStory(case, searched.runs[0].dataset, model, *of_all)
    return None


def _best_search(searched: QuestionSet) -> tuple[str, int, str] | None:
    """Find the weakest mixture that makes a headline model lose a search, and the search that most models lose.

    Returns:
        The subtype of the mixture, the number of models that lose the search, and the first of these models.
    """
    models = headline_models(searched)
    for subtype in mixed_searches.strengths(searched):
        best: tuple[str, int, str] | None = None
        for model in models:
            numbers, n_fooled = mixed_searches.order(searched, model, subtype, models)
            if len(numbers) and (best is None or n_fooled[0] > best[1]):
                best = subtype, int(n_fooled[0]), model
        if best is not None:
            return best
    return None
