"""Compare on a site: each model with up to three others, the forest of their differences, and the pictures on
which two of them part.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations, product

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import case_card, wrong_captions
from vlprobe.render import forest
from vlprobe.render.findings import verdict
from vlprobe.render.html.figure import Link, figure_html
from vlprobe.render.sentences import unbroken
from vlprobe.render.wall import side_filter
from vlprobe.surfaces.site.cases import inert
from vlprobe.surfaces.site.subject import Subject, Values
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.bodies import body_of
from vlprobe.views.paired_tests import PairedTests
from vlprobe.views.records import AnswerRow
from vlprobe.views.wall import WallCard

MOST_MODELS = 8  # that are compared
RIVALS = 3  # beside a baseline at once
SHOWN = 6  # maximum number of cards in a column
OF_CASES = 0.2  # the share of a model's cases that a column may have


class Columns:
    """The cards of all columns, each card once."""

    def __init__(self, subject: Subject, kind_name: str) -> None:
        self.subject, self.kind_name = subject, kind_name
        self.kind = subject.presentation.kind(kind_name)
        self.models = compared(subject)
        self.n_shown = max(1, min(SHOWN, round(OF_CASES * subject.limits.n_cases)))
        self.cards: list[WallCard] = []
        self._places: dict[tuple[int, str], int] = {}
        self._columns: dict[tuple[str, str, str], list[object]] = {}

    def add(self, model: str, rival: str, subtype: str) -> None:
        """Add the first cases that fool only `model`, or that move it more."""
        store, question_set = self.subject.store, self.subject.question_set
        case_filter = side_filter(self.kind_name, model, rival, subtype)
        cards, _, n_cases = views.wall.wall(store, question_set, case_filter, 1, self.n_shown)
        card_places = [self._place(card, model) for card in cards]
        self._columns[model, rival, subtype] = [n_cases, card_places]

    def _place(self, card: WallCard, model: str) -> int:
        """The position of a card; if models search, each sees another one."""
        key = card.case, model if body_of(self.kind).uses_answer else ""
        if key not in self._places:
            self._places[key] = len(self.cards)
            self.cards.append(card)
        return self._places[key]

    def columns(self, subtypes: Sequence[str]) -> Values:
        """Count how many cases a column stands for, and its cards, by "MODEL>RIVAL:TYPE"."""
        keys = self.subject.keys
        return {
            f"{keys[model]}>{keys[rival]}:{subtypes.index(subtype)}": column
            for (model, rival, subtype), column in self._columns.items()
        }

    def drawn_cards(self) -> list[Values]:
        """Every card with a box for every model, in the order of the models."""
        subject = self.subject
        answers = self._answers()
        cards = [case_card(card, self.kind, answers.get(card.case)) for card in self.cards]
        subject.shelf.add(name for card in cards for name in json.facing_pictures(card))
        looks, names, source = subject.model_looks, subject.names, subject.shelf.key
        return [
            json.facing_card(card, self.models, names, looks, source, badge=False)
            | {"id": subject.case_key(card.case.case)}
            for card in cards
        ]

    def _answers(self) -> dict[int, dict[str, AnswerRow]]:
        if not body_of(self.kind).uses_answer or not self.cards:
            return {}
        numbers = list(dict.fromkeys(card.case for card in self.cards))
        store, question_set = self.subject.store, self.subject.question_set
        return views.rows.answer_rows(store, question_set, numbers, self.models)


def compared(subject: Subject) -> tuple[str, ...]:
    """The models that are compared."""
    return subject.models[:MOST_MODELS]


def contests(models: Sequence[str], n_baselines: int = MOST_MODELS) -> Iterator[tuple[str, ...]]:
    """The first models, each with up to three others at once.

    >>> list(contests("AB")), list(contests("ABCDE", 1))
    ([('A', 'B'), ('B', 'A')], [('A', 'B', 'C', 'D'), ('A', 'E')])
    """
    for model in models[:n_baselines]:
        others = [rival for rival in models if rival != model]
        for start in range(0, len(others), RIVALS):
            yield model, *others[start : start + RIVALS]


def compare_values(subject: Subject, kind_name: str) -> tuple[Values, list[int]]:
    """Return the data of the page for a kind, and the numbers of the cases that it shows."""
    columns = Columns(subject, kind_name)
    comparisons = [
        views.paired_tests.compare_models(subject.store, subject.question_set, models, kind_name)
        for models in contests(columns.models, subject.limits.n_baselines)
    ]
    subtypes = list(dict.fromkeys(row.subtype for each in comparisons for row in each.rows))
    baselines = set(columns.models[: subject.limits.n_baselines])
    for (model, rival), subtype in product(permutations(columns.models, 2), subtypes):
        if baselines & {model, rival}:
            columns.add(model, rival, subtype)
    values: Values = {
        "contests": [_contest(subject, columns.kind, each, subtypes) for each in comparisons],
        "columns": columns.columns(subtypes),
        "cards": columns.drawn_cards(),
        "titles": [forest.part_title(subtype, columns.kind) for subtype in subtypes],
        "movement": columns.kind.is_movement,
        "more": len(subject.models) - len(columns.models),
    }
    return values, [card.case for card in columns.cards]


def _contest(
    subject: Subject, kind: KindPresentation, comparison: PairedTests, subtypes: Sequence[str]
) -> Values:
    """The verdict, the forest plot, and the texts of each row."""
    finding = verdict(comparison, kind, subject.names)
    names = {each.model: subject.names[each.model] for each in comparison.contestants}

    def row_key(subtype: str, model: str) -> str:
        return f"{subject.keys[model]}:{subtypes.index(subtype)}"

    return {
        "models": [subject.keys[model] for model in names],
        "heading": unbroken(finding.heading),
        "detail": unbroken(finding.detail),
        "figure": _figure(subject, kind, comparison, lambda values: f"#row={row_key(*values)}"),
        "how": forest.how_to_read(comparison),
        "first": row_key(finding.row.subtype, finding.row.model),
        "rows": {
            row_key(row.subtype, row.model): [
                forest.row_in_full(row, comparison, names, kind),
                forest.rest(row, comparison, wrong_captions(kind)),
            ]
            for row in comparison.rows
        },
    }


def _figure(subject: Subject, kind: KindPresentation, comparison: PairedTests, link: Link) -> str:
    """The forest plot as markup; "" if no difference is known."""
    if all(math.isnan(row.difference) for row in comparison.rows):
        return ""
    baseline = comparison.baseline.model
    totals = views.totals.of_questions(
        subject.store, subject.question_set, comparison.kind, baseline
    )
    figure = forest.forest_figure(comparison, kind, subject.model_looks, subject.names, totals)
    alternative = f"How far each model is from {subject.names[baseline]}, by kind of edit"
    return inert(figure_html(figure, alternative, link))
