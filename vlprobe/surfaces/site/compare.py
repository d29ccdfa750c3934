"""The Compare page of a site.

Each model is compared with up to three others at once, or with as many as on the page from which a report was
downloaded. The page has a forest plot of the differences, and the pictures on which two models disagree.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import case_card
from vlprobe.render import forest
from vlprobe.render.charts.theme import page_figures
from vlprobe.render.findings import order_sentences, verdict
from vlprobe.render.sentences import unbroken
from vlprobe.render.wall import side_filter
from vlprobe.surfaces.site.subject import Subject, Values
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.bodies import body_of
from vlprobe.views.paired_tests import PairedTests
from vlprobe.views.wall import WallCard

MOST_MODELS = 8  # number of compared models
RIVALS = 3  # models compared with a baseline at once
SHOWN = 6  # maximum number of cards in a column
OF_CASES = 0.2  # maximum share of a model's cases in a column


def contests(
    models: Sequence[str], n_baselines: int = MOST_MODELS, n_rivals: int = RIVALS
) -> Iterator[tuple[str, ...]]:
    """Yield groups of models to compare: each of the first models as a baseline, followed by up to `n_rivals` others.

    >>> list(contests("AB")), list(contests("ABCDE", 1))
    ([('A', 'B'), ('B', 'A')], [('A', 'B', 'C', 'D'), ('A', 'E')])
    """
    for model in models[:n_baselines]:
        others = [rival for rival in models if rival != model]
        for start in range(0, len(others), n_rivals):
            yield model, *others[start : start + n_rivals]


def compare_values(subject: Subject, kind_name: str) -> tuple[Values, list[int]]:
    """Return the data for the Compare page of a kind of case, and the numbers of the cases that the page shows."""
    question_set = subject.question_set
    kind, limits = subject.presentation.kind(kind_name), subject.limits
    compared = [model for model in limits.compared if model in subject.models]
    models = tuple(dict.fromkeys((*compared, *subject.models)))[:MOST_MODELS]
    n_baselines = limits.n_baselines
    comparisons = [
        views.paired_tests.compare_models(question_set, group, kind_name)
        for group in contests(models, n_baselines, len(compared[1:]) or RIVALS)
    ]
    subtypes = list(dict.fromkeys(row.subtype for each in comparisons for row in each.rows))
    n_shown = max(1, min(SHOWN, round(OF_CASES * limits.n_cases)))
    columns: Values = {}
    cards: list[WallCard] = []  # distinct cards of all columns
    places: dict[tuple[int, str], int] = {}
    for (model, rival), subtype in product(permutations(models, 2), subtypes):
        if {model, rival} & set(models[:n_baselines]):
            case_filter = side_filter(kind_name, model, rival, subtype)
            first, _, n_cases = views.wall.wall(question_set, case_filter, 1, n_shown)
            n_halves = 0
            if question_set.run(model).n_orders == 2:
                n_halves = views.cases.outcomes(question_set, case_filter)["tied"]
            # In kinds that search, the card of a case depends on the model.
            keys = [(card.case, model if body_of(kind).uses_answer else "") for card in first]
            for key, card in zip(keys, first, strict=True):
                if places.setdefault(key, len(cards)) == len(cards):
                    cards.append(card)
            name = f"{subject.keys[model]}>{subject.keys[rival]}:{subtypes.index(subtype)}"
            columns[name] = [n_cases, [places[key] for key in keys], n_halves]
    numbers = list(dict.fromkeys(card.case for card in cards))
    answers = {}
    if body_of(kind).uses_answer and numbers:
        answers = views.rows.answer_rows(question_set, numbers, models)
    drawn = [case_card(card, kind, answers.get(card.case)) for card in cards]
    subject.shelf.add(name for card in drawn for name in json.facing_pictures(card))
    looks, names, source = subject.model_looks, subject.names, subject.shelf.key
    values: Values = {
        "contests": [_contest(subject, kind, each, subtypes) for each in comparisons],
        "columns": columns,
        "models": [subject.keys[model] for model in models],
        "cards": [  # with one box per model, in the order of the models
            json.facing_card(card, models, names, looks, source, badge=False)
            | {"id": subject.case_key(card.case.case)}
            for card in drawn
        ],
        "titles": [forest.part_title(subtype, kind) for subtype in subtypes],
        "movement": kind.is_movement,
    }
    return values, numbers


def _contest(
    subject: Subject, kind: KindPresentation, comparison: PairedTests, subtypes: Sequence[str]
) -> Values:
    """Return the data for one comparison: the finding, the forest plot, and the text for each row."""
    finding = verdict(comparison, kind, subject.names)
    names = {each.model: subject.names[each.model] for each in comparison.contestants}
    rows = [(row.subtype, row.model) for row in comparison.rows]
    orders = order_sentences(views.estimates.estimates(subject.question_set), names, list(names))
    first = (finding.row.subtype, finding.row.model)
    first = subject.limits.row if subject.limits.row in rows else first

    def row_key(subtype: str, model: str) -> str:
        return f"{subject.keys[model]}:{subtypes.index(subtype)}"

    return {
        "models": [subject.keys[model] for model in names],
        "heading": unbroken(finding.heading),
        "detail": unbroken(finding.detail),
        "notes": [*filter(None, [forest.solved_rows(comparison, kind)]), *orders],
        "figure": _figure(subject, kind, comparison, lambda values: f"row={row_key(*values)}"),
        "how": f"{forest.how_to_read(comparison)} {forest.CLICK}",
        "first": row_key(*first),
        "rows": {
            row_key(row.subtype, row.model): [
                forest.row_in_full(row, comparison, names, kind),
                forest.describe_shared(row, comparison, names, kind),
            ]
            for row in comparison.rows
        },
    }


def _figure(
    subject: Subject,
    kind: KindPresentation,
    comparison: PairedTests,
    choice: Callable[[Sequence[str]], str],
) -> Values | None:
    """Return the forest plot, or None if no difference is known."""
    if all(math.isnan(row.difference) for row in comparison.rows):
        return None
    baseline = comparison.baseline.model
    totals = views.totals.of_questions(subject.question_set, comparison.kind, baseline)
    figure = forest.forest_figure(comparison, kind, subject.model_looks, subject.names, totals)
    figure = forest.without_legend(figure)
    figure.update_layout(margin_l=forest.MARGINS["l"] + 20)  # a page without the dashboard's font
    alternative = f"Difference between each model and {subject.names[baseline]}, by type of edit"
    return page_figures(figure, alternative, choice)
