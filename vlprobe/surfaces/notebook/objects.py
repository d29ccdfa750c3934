"""The results that functions of `import vlprobe` return. A notebook displays them as pictures, texts and tables."""

import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import htpy
import numpy as np
import pandas as pd

from vlprobe import registry, views
from vlprobe.case import html, json
from vlprobe.case.card import ROLES, CaseCard, CaseText, case_card
from vlprobe.errors import InvalidInput, MissingDependency, NotFound
from vlprobe.models.doctor.passport import read_passport
from vlprobe.render import findings
from vlprobe.render.attribution import credit_line, published_line
from vlprobe.render.charts.styles import styles
from vlprobe.render.html import compare as html_compare
from vlprobe.render.html import elements, tables
from vlprobe.render.html.elements import embed
from vlprobe.render.html.style import SHEET
from vlprobe.render.model_lookup import find_model
from vlprobe.render.sentences import LONGEST, sentence_names, shorten
from vlprobe.render.wall import heading
from vlprobe.render.words import dataset_name, model_name, presentations
from vlprobe.scoring import thumbnails
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.surfaces.notebook import drawing
from vlprobe.surfaces.site.pages import COMPONENTS, classic
from vlprobe.types import POOLED, Capabilities, Edit, Item, Model, Picture, Probe
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter
from vlprobe.views.paired_outcomes import bucket
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.wall import WallCard

SHOWN = 8  # number of items shown from a dataset
CONDITIONS = ("subtype", "rule", "tag", "contains", "outcome", "sort")
WORST = 4  # number of failures shown above a table


@dataclass(frozen=True, slots=True)
class EditedCaption:
    """A caption, its edited text, and a description of the edit."""

    caption: str
    text: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class Edits(Sequence[EditedCaption]):
    """The edits created for a list of captions, in the same order as the captions."""

    captions: tuple[str, ...]
    entries: tuple[EditedCaption, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index):
        return self.entries[index]

    @property
    def table(self) -> pd.DataFrame:
        """The edits as a table, with one row per edit: caption, text, kind, subtype, rule, source, target."""
        columns = ["kind", "subtype", "rule", "source", "target"]
        rows = [
            (entry.caption, entry.text, *(getattr(entry.edit, name) for name in columns))
            for entry in self.entries
        ]
        return pd.DataFrame(rows, columns=pd.Index(["caption", "text", *columns]))

    def _repr_html_(self) -> str:
        return drawing.frame(
            *(html.captions(self._texts(caption)) for caption in dict.fromkeys(self.captions))
        )

    def _texts(self, caption: str) -> list[CaseText]:
        """Return a caption and its edits, with the changed words marked."""
        texts = [CaseText(ROLES["true"], caption)]
        for entry in self.entries:
            if entry.caption == caption:
                is_same = entry.edit.kind == "paraphrase"
                role, mark = ("reworded", "changed") if is_same else ("lie", "lie")
                texts.append(CaseText(ROLES[role], entry.text, caption, mark, True))
        return texts


@dataclass(frozen=True, slots=True)
class LoadedData(Sequence[Item]):
    """A dataset that was loaded and checked."""

    name: str
    digest: str
    items: tuple[Item, ...]
    notes: tuple[str, ...]
    root: Path  # of the cache, for its thumbnails

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def __repr__(self) -> str:
        return f"<dataset {self.name}: {len(self.items):,} items>"

    def _repr_html_(self) -> str:
        shown = self.items[:SHOWN]
        sources = thumbnails.addresses(self.root, [item.image.name for item in shown if item.image])
        cards = []
        for item in shown:
            true = [CaseText(ROLES["true"], caption) for caption in item.captions[:2]]
            wrong = [CaseText(ROLES["lie"], foil) for foil in item.foils[:1]]
            cards.append([_picture(item, sources), html.captions([*true, *wrong], LONGEST)])
        n_captions = sum(len(item.captions) for item in self.items)
        title = f"{dataset_name(self.name)}: {len(self.items):,} items, {n_captions:,} captions"
        return drawing.frame(drawing.heading(title, " ".join(self.notes)), drawing.grid(cards))


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """A model that was loaded and is not trained further. `model` is the object that vlprobe calls."""

    model: Model

    @property
    def name(self) -> str:
        """The name under which the model's results are stored."""
        return self.model.name

    @property
    def digest(self) -> str:
        """Digest of the model's weights, preprocessing, tokenizer and precision."""
        return self.model.digest

    @property
    def note(self) -> str:
        """A note about the model for anyone who reads its scores."""
        return self.model.note

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do, such as embed pictures or texts."""
        return self.model.capabilities

    def similarity(self, pictures: Sequence[str | Path], texts: Sequence[str]) -> np.ndarray:
        """Compute the cosine between each picture and each text: float32 of shape (len(pictures), len(texts)).

        Raises InvalidInput if the model does not embed both pictures and texts.
        """
        if not (self.capabilities.embeds_images and self.capabilities.embeds_texts):
            raise InvalidInput(f"'{self.name}' does not have both image and text embeddings.")
        encoder = CachedEncoder(self.model)
        try:
            text_vectors = encoder.texts(list(texts))
            vectors = encoder.images([Picture(Path(path).resolve()) for path in pictures])
        finally:
            encoder.close()
        per_picture = vectors.reshape(len(vectors), -1, max(encoder.dim, 1))
        return np.einsum("pkd,td->ptk", per_picture, text_vectors).max(axis=2)

    def __repr__(self) -> str:
        return f"<model {self.name}>"

    def _repr_html_(self) -> str:
        facts = {name: words for name, words in read_passport(self.model).items() if words}
        title = drawing.heading(model_name(self.name), self.note)
        return drawing.frame(title, embed(elements.facts(facts)))


@dataclass(frozen=True, eq=False)
class Results:
    """The answers of one or more models to the same questions. Functions in `vlprobe.views` take `question_set`."""

    store: Store
    question_set: QuestionSet

    @property
    def key(self) -> str:
        """Key of the question set. `vlprobe.results(KEY)` loads these results again."""
        return self.question_set.key

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that answered the questions."""
        return self.question_set.ordered_models

    @property
    def probe(self) -> Probe:
        """The probe that the results come from."""
        return registry.load_probe(self.question_set.probe)

    @property
    def table(self) -> pd.DataFrame:
        """All metrics for all models with 95 % intervals, with the same columns as `vlprobe show`."""
        return self.sliced("all")

    def sliced(self, slicing: str, averaging: str = POOLED, unit: str = "cosine") -> pd.DataFrame:
        """Return the metrics in slices, such as by "subtype". `views.estimates.slices` lists the possible values."""
        return views.estimates.estimates(self.question_set, slicing, averaging, unit)

    def value(self, metric: str, model: str = "") -> float:
        """Return the value of one metric for a model [the first model]. Raises NotFound."""
        table = self.table
        rows = table.loc[(table["metric"] == metric) & (table["model"] == self._model(model))]
        if rows.empty:
            raise NotFound("metric", metric, list(self.question_set.metrics))
        return float(rows["value"].iloc[0])

    def failures(
        self, model: str = "", kind: str = "", limit: int = 12, **conditions: str
    ) -> "Failures":
        """Return the cases that fool a model. See `vlprobe.failures`."""
        presentation = self.question_set.presentation
        model = self._model(model)
        kind = views.runs.choose_kind(self.question_set, kind, (model,))
        unknown = sorted(set(conditions) - set(CONDITIONS))
        if unknown:
            raise InvalidInput(
                f"Unknown condition '{unknown[0]}'. Expected subtype, rule, tag, contains, outcome or sort."
            )
        case_filter = Filter.parse(model, kind, **conditions)
        cards, _, total = views.wall.wall(self.question_set, case_filter, size=limit, grouped=False)
        if not total:
            views.cases.check_values(self.question_set, case_filter)
        run = self.question_set.run(model)
        return Failures(self.store, case_filter, presentation.kind(kind), cards, total, run)

    def compare(self, model: str = "", other: str = "", kind: str = "") -> "Compared":
        """Compare two models on this question set. See `vlprobe.compare`."""
        named = [self._model(name) for name in (model, other) if name]
        names = list(dict.fromkeys([*named, *self.models]))[:2]
        compared = names[0], names[-1]
        kind = views.runs.choose_kind(self.question_set, kind, compared)
        return Compared(self, compared, kind)

    def _model(self, name: str) -> str:
        """Return the stored name for a model's stored or display name. "" selects the first model."""
        return find_model(self.store, name) if name else self.models[0]

    def __repr__(self) -> str:
        run = self.question_set.runs[0]
        return f"<results {self.key}: {run.probe} on {run.dataset}, {', '.join(self.models)}>"

    def _repr_html_(self) -> str:
        store, question_set, run = self.store, self.question_set, self.question_set.runs[0]
        subtitle = (
            f"{dataset_name(run.dataset)}, {run.n_cases:,} cases. Worst failures of "
            f"{model_name(self.models[0])}:"
        )
        headline, _ = tables.headline(
            self.table,
            tables.metrics(question_set.probe),
            "cosine",
            sentence_names(self.models, display_names.read(store)),
            styles(views.runs.models(store)),
            views.papers.chances(question_set),
            folded=True,
        )
        return drawing.frame(
            drawing.heading(presentations()[run.probe].name or run.probe, subtitle),
            published_line(question_set.runs),
            self.failures(limit=WORST).cards_html,
            embed(headline),
            drawing.heading("", "; ".join(filter(None, (row.older for row in question_set.runs)))),
        )


@dataclass(frozen=True, slots=True)
class Failures(Sequence[WallCard]):
    """The cases of one model that pass a filter, and the total number of such cases."""

    store: Store
    case_filter: Filter
    kind: KindPresentation
    cards: tuple[WallCard, ...]
    total: int
    run: RunRow

    def __len__(self) -> int:
        return len(self.cards)

    def __getitem__(self, index):
        return self.cards[index]

    @property
    def table(self) -> pd.DataFrame:
        """The cases as a table, one per row: id, subtype, rule, margin, the true text, the wrong text, pictures."""
        columns = ["id", "subtype", "rule", "margin", "true_text", "wrong_text", "images"]
        rows = [[getattr(card, name) for name in columns] for card in self.cards]
        return pd.DataFrame(rows, columns=pd.Index(columns))

    def wall(self) -> "CaseWall":
        """Return a widget in which cases can be selected and tagged. Raises MissingDependency without `anywidget`."""
        cards = [case_card(card, self.kind) for card in self.cards]
        return CaseWall(self.table, cards, self.store.root)

    @property
    def cards_html(self) -> htpy.Node:
        """The cards as HTML, without the surrounding frame and its style sheet."""
        cards = [case_card(card, self.kind) for card in self.cards]
        return drawing.case_grid(cards, self.store.root)

    def _repr_html_(self) -> str:
        n_pictures = len({card.images for card in self.cards})
        has_pictures = any(card.images for card in self.cards)
        is_all = len(self.cards) == self.total
        title = heading(
            self.kind, self.case_filter.outcome, self.total, n_pictures, is_all and has_pictures
        )
        shown = "" if is_all else f"The first {len(self.cards)} of {self.total:,}."
        subtitle = " ".join(
            filter(None, [f"{model_name(self.case_filter.model)}.", self.kind.question, shown])
        )
        return drawing.frame(
            drawing.heading(title, subtitle), published_line([self.run]), self.cards_html
        )


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison of two models on the same questions: which is fooled less often, by how much, and on which edits."""

    results: Results
    models: tuple[str, str]
    kind: str

    @functools.cached_property  # takes 0.1 to 2 s, and notebooks show it repeatedly
    def table(self) -> pd.DataFrame:
        """Paired differences in every metric (second model minus first), with p-values (Holm) and verdicts."""
        return views.paired_tests.compare_metrics(self.results.question_set, self.models)

    @functools.cached_property  # used by the sentence and the display
    def _verdict(self) -> findings.Verdict:
        believed = views.paired_tests.compare_models(
            self.results.question_set, self.models, self.kind
        )
        return findings.verdict(believed, self._presented)

    @property
    def _presented(self) -> KindPresentation:
        return self.results.question_set.presentation.kind(self.kind)

    @property
    def sentence(self) -> str:
        """The finding in words. It claims only what the paired tests prove."""
        return f"{self._verdict.heading} {self._verdict.detail}"

    @property
    def only(self) -> dict[str, tuple[WallCard, ...]]:
        """The cases that fool only one of the two models, by model, with the largest difference first."""
        first, second = self.models
        paired = Filter(first, self.kind, other=second, sort="difference")
        filters = [bucket(paired, name) for name in ("only_first", "only_second")]
        walls = [
            views.wall.wall(self.results.question_set, each, 1, WORST, False) for each in filters
        ]
        return {each.model: cards for each, (cards, _, _) in zip(filters, walls, strict=True)}

    def __repr__(self) -> str:
        return f"<{self.sentence}>"

    def _repr_html_(self) -> str:
        store, question_set, kind = self.results.store, self.results.question_set, self._presented
        sides = []
        for model, cards in self.only.items():
            if cards and not kind.is_movement:
                described = [case_card(card, kind) for card in cards]
                sides += [
                    drawing.heading(f"Only {model_name(model)} is fooled"),
                    drawing.case_grid(described, store.root, self.models),
                ]
        differences = html_compare.differences(
            self.table,
            tables.metrics(question_set.probe),
            "cosine",
            styles(views.runs.models(store)),
            views.papers.chances(question_set),
            sentence_names(self.models, display_names.read(store)),
        )
        title = drawing.heading(self._verdict.heading, self._verdict.detail)
        published = published_line([question_set.run(model) for model in self.models])
        return drawing.frame(title, published, *sides, embed(differences))


def _picture(item: Item, sources: Mapping[str, str]) -> htpy.Node:
    """Return an item's picture with its credit, or the file name if the picture cannot be read."""
    if not item.image:
        return None
    name = item.image.name
    picture = htpy.div(".vp-missing")[drawing.missing(name)]
    if source := sources.get(name):
        picture = htpy.img(src=source, alt=shorten(item.captions[0], 160))
    return [picture, credit_line(name)]


SELECTED = """
:host { display: block; padding: 6px; color-scheme: light; font-family: system-ui, sans-serif; }
:host-context([data-jp-theme-light="false"]), :host-context(.vscode-dark) { color-scheme: dark; }
.card[aria-pressed="true"] .frames { outline: 3px solid var(--vp-press); outline-offset: 2px; }
"""


class CaseWall:
    """Failures as cards in a notebook. A click selects a case, and Enter in the text field tags all selected cases.

    Args:
        cases: The cases, in the form of `Failures.table`.
        cards: The same cases as cards, in the same order.
        root: Folder of the cache, which has the thumbnails.

    Attributes:
        widget: The widget, which any Jupyter front end can display. It has the traits `selected` and `tags`.
    """

    def __init__(self, cases: pd.DataFrame, cards: Sequence[CaseCard], root: Path) -> None:
        self._cases = cases
        names = [name for card in cards for name in json.picture_names(card)]
        sources = thumbnails.addresses(root, names)
        values = {
            "label": "Failures",
            "bare": True,
            "strip": False,
            "cards": [
                json.wall_card(card, lambda name: sources.get(name, ""), badge=False)
                for card in cards
            ],
        }
        self.widget = _widget_type()(wall=values)

    @property
    def table(self) -> pd.DataFrame:
        """The cases as in `Failures.table`, with additional columns `selected` (bool) and `tags` (tuple of str)."""
        ids, tags = self._cases["id"], self.widget.tags
        return self._cases.assign(
            selected=ids.isin(self.widget.selected),
            tags=[tuple(tags.get(case_id, ())) for case_id in ids],
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)


@functools.cache  # a second class would carry a second copy of the script
def _widget_type() -> Any:
    if find_spec("anywidget") is None:
        raise MissingDependency("Failures.wall()", "anywidget", "'vlprobe[notebook]'")
    anywidget, traitlets = (importlib.import_module(name) for name in ("anywidget", "traitlets"))
    base, wall, rules, common = (
        (COMPONENTS / name).read_text(encoding="utf-8")
        for name in ("base.js", "wall.js", "wall.css", "base.css")
    )
    widget = Path(__file__).with_name("wall.js").read_text(encoding="utf-8")
    colors = SHEET.replace(":root {", ":host {", 1)
    traits = {
        "_esm": f"{base}\nconst wall = (() => {{\n{classic(wall)}\n}})();\n{widget}",
        "wall": traitlets.Dict().tag(sync=True),
        "sheet": traitlets.Unicode(f"{colors}\n{common}\n{rules}{SELECTED}").tag(sync=True),
        "selected": traitlets.List(traitlets.Unicode()).tag(sync=True),
        "tags": traitlets.Dict().tag(sync=True),
    }
    return type("WallWidget", (anywidget.AnyWidget,), traits)
