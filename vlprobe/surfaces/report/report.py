"""A report on question sets, or on one of their cases, as a single web page.

A report contains the site for the question sets, and a page with all metrics, notes and commands. The latter page needs
no script and is used for printing.
"""

import functools
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

import htpy

from vlprobe import __version__, views
from vlprobe.case import html
from vlprobe.case.card import case_card
from vlprobe.features.compare.data import Scorecard
from vlprobe.metrics.blind import METHODS
from vlprobe.render import numbers as render_numbers
from vlprobe.render.attribution import published_line
from vlprobe.render.charts.styles import styles
from vlprobe.render.findings import order_sentences, verdict
from vlprobe.render.home import heading
from vlprobe.render.html import compare as html_compare
from vlprobe.render.html import papers, tables
from vlprobe.render.html.elements import breakable, column_heads, embed, model_label
from vlprobe.render.html.elements import table as html_table
from vlprobe.render.sentences import counted, listed, sentence_names
from vlprobe.render.words import (
    AVERAGED,
    edit_title,
    slice_order,
    value_label,
)
from vlprobe.storage import annotations, display_names
from vlprobe.storage.annotations import Annotation
from vlprobe.surfaces.page import self_contained
from vlprobe.surfaces.site import bundle, pages
from vlprobe.surfaces.site.pages import style
from vlprobe.surfaces.site.subject import Limits, Subject
from vlprobe.types import POOLED
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import compare_metrics, leaders
from vlprobe.views.papers import chances, remade
from vlprobe.views.published import TABLES
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionSet
from vlprobe.views.wall import WallCard

UNIT = "cosine"
CASES = 8  # cases for each model, kind and outcome
FAILURES = 6  # cases on the page without scripts, one per picture
NOTED = 40  # cases with tags or a note


def report(
    *question_sets: QuestionSet,
    start: str = "",
    kind: str = "",
    compared: Sequence[str] = (),
    row: tuple[str, str] = ("", ""),
) -> str:
    """Return the report on question sets as HTML. It includes all pictures, notes and file names.

    Args:
        question_sets: The question sets of one store. The report opens with the first one.
        start: Name of the page that opens first, such as "compare"; Home if the report has no such page.
        kind: The kind of case that opens first.
        compared: Models that Compare shows first, the baseline before the others.
        row: Subtype and model of the row of Compare that opens first.
    """
    store = question_sets[0].store.snapshot()
    question_sets = tuple(replace(each, store=store) for each in question_sets)
    limits = Limits(
        CASES,
        with_notes=True,
        may_publish=True,
        n_baselines=1,
        compared=tuple(compared),
        row=row,
    )
    content = bundle.contents(question_sets, limits)
    subjects = content.subjects
    opened = {"page": start, "kind": kind}
    opened["model"] = subjects[0].keys[compared[0]] if compared else ""
    address = urlencode({name: value for name, value in opened.items() if value})
    titles = [entry["label"] for entry in content.tables["index"]["sets"]]
    numbers: list[htpy.Node] = [
        (htpy.h1[title], _numbers_page(each)) for title, each in zip(titles, subjects, strict=True)
    ]
    if titles[1:]:
        numbers.insert(0, _scorecard(subjects))
    return pages.one_file(listed(titles), content.pages, content.tables, numbers, address)


def _scorecard(subjects: Sequence[Subject]) -> list[htpy.Node]:
    sets = [subject.question_set for subject in subjects]
    columns = [c for each in sets for c in views.leaderboard.leaderboard(each, by="kind")]
    models = dict.fromkeys(model for subject in subjects for model in subject.models)
    renamed = display_names.read(sets[0].store)
    names = sentence_names(list(models), renamed)
    scorecard = Scorecard(columns, names, subjects[0].model_looks, renamed=renamed)
    return [embed(scorecard.html()), *map(remark, scorecard.reading())]


def _numbers_page(subject: Subject) -> list[htpy.Node]:
    question_set = subject.question_set
    estimates = views.estimates.estimates(question_set)
    presentation = subject.presentation
    task = presentation.kind(subject.kinds[0]).sentence or presentation.sentence
    # The page has metrics of both directions, and its tables name them
    task = re.split(r" \*\*\w+ is better\*\*", task)[0]
    sentence = re.split(r"\*\*(.+?)\*\*", task)  # every second one is bold
    return [
        htpy.p[
            [htpy.strong[piece] if index % 2 else piece for index, piece in enumerate(sentence)]
        ],
        published_line(question_set.runs),
        map(remark, order_sentences(estimates, {})),
        _verdict(subject),
        _failures(subject),
        _models(subject),
        _numbers(subject),
        _by_type(subject),
        _by_type(subject, "slice"),
        _differences(subject),
        _annotated(subject),
        _published(subject),
        htpy.h2["About the questions"],
        embed(tables.facts(views.runs.facts(question_set))),
        _reproduction(subject),
    ]


def remark(text: str) -> htpy.Element:
    """Return a remark as small gray text."""
    return htpy.p(".vp-quiet.vp-small")[text]


def commands(lines: str) -> list[htpy.Node]:
    """Return terminal commands as a block of code, which also has separate lines in the page's source."""
    return ["\n", htpy.pre[lines], "\n"]


def _table(name: str, headings: Sequence[str], rows: Sequence[htpy.Element]) -> htpy.Node:
    return embed(html_table(name, column_heads(headings), [str(row) for row in rows]))


def _verdict(subject: Subject) -> list[htpy.Node]:
    """Return the finding on the kind of question that Home shows first, and the scorecard of all models.

    If there is only one model besides controls, it is compared with the controls.
    """
    question_set, kind_name = subject.question_set, subject.kinds[0]
    kind = subject.presentation.kind(kind_name)
    models = subject.rated if len(subject.rated) > 1 else subject.models
    if len(models) < 2:
        return []
    compared = views.paired_tests.compare_models(question_set, models, kind_name, UNIT)
    finding = verdict(compared, kind, subject.names)
    guess = views.estimates.best_guess(question_set, kind_name)
    return [
        htpy.h2[finding.heading],
        htpy.p[finding.detail],
        *_scorecard([subject]),
        guess
        and remark(
            f"Without the picture, {render_numbers.number(1 - guess.accuracy.value, 'rate')} are wrong. "
            f"{METHODS[guess.method]}"
        ),
    ]


def _failures(subject: Subject) -> list[htpy.Node]:
    """Return the cases that fool the most models, or that move the first model most, one per picture."""
    kind_name, kind = subject.kinds[0], subject.presentation.kind(subject.kinds[0])
    model = views.showcase.headline_models(subject.question_set)[0]
    showcases = views.showcase.showcases(subject.question_set, kind_name, model, count=FAILURES)
    if not showcases:
        return []
    name = subject.names[model]
    words = f"What moves {name} most" if kind.is_movement else "What fools most models"
    articles = [
        htpy.article[
            htpy.p[htpy.strong[" ".join(heading(each, kind, name))]], _case(subject, each.card)
        ]
        for each in showcases
    ]
    return [
        htpy.h3[f"{words}: {counted(len(articles), 'case')}"],
        remark("Explore has more of these cases, for each model and type."),
        htpy.div(".vp-grid")[articles],
    ]


def _case(
    subject: Subject, card: WallCard, annotation: Annotation | None = None
) -> list[htpy.Node]:
    """Return a case in the same form as in the drawer, without the details."""
    described = case_card(card, subject.presentation.kind(card.kind))
    return [
        html.shots(described, subject.shelf.address),
        html.captions(described.texts),
        html.strips(described.strips(), subject.shelf.address),
        html.bars(described, subject.model_looks, subject.names),
        annotation and html.chips(annotation.tags, annotation.note),
    ]


def _models(subject: Subject) -> list[htpy.Node]:
    rows = []
    for model in subject.models:
        run = subject.question_set.run(model)
        cells = [run.finished.replace("T", " ")[:16], f"{run.seconds:,.0f} s", run.key]
        label = embed(model_label(subject.model_looks[model], model))
        note = htpy.td(".vp-metric")[run.note or "-"]
        rows.append(htpy.tr[htpy.th(scope="row")[label], (htpy.td[cell] for cell in cells), note])
    return [
        htpy.h2["Models"],
        htpy.details[
            htpy.summary[f"{counted(len(rows), 'model')}, and the results of their checks"],
            _table("Models", ["Model", "Finished", "Time", "Run", "Note"], rows),
        ],
    ]


def _numbers(subject: Subject) -> list[htpy.Node]:
    question_set = subject.question_set
    headline, unknown = tables.headline(
        views.estimates.estimates(question_set),
        tables.metrics(question_set.probe),
        UNIT,
        {model: model for model in subject.models},
        subject.model_looks,
        chances(question_set),
        leaders(question_set),
    )
    return [
        htpy.h2["The numbers"],
        embed(headline),
        remark(f"{tables.READING} {AVERAGED[POOLED]}"),
        map(remark, views.runs.version_notes(question_set)),
        unknown
        and remark(f"Not measured here, or unknown for these models: {', '.join(unknown)}."),
    ]


def _by_type(subject: Subject, breakdown: str = "subtype") -> list[htpy.Node]:
    """Return a table of the main metrics by type of case or by named slice: one row per type, one column per model."""
    if breakdown not in views.estimates.slices(subject.question_set):
        return []
    title, name_of = ("Type", edit_title) if breakdown == "subtype" else ("Slice", value_label)
    estimates = views.estimates.estimates(subject.question_set, breakdown)
    known = [row for row in records(EstimateRow, estimates) if row.slice and row.n_items]
    row_of = {(row.metric, row.slice, row.model): row for row in known}
    metrics = tables.metrics(subject.question_set.probe)
    headings = [title, *(subject.names[model] for model in subject.models)]
    nodes: list[htpy.Node] = []
    for name in subject.presentation.main_metrics:
        rows = []
        for subtype in sorted({row.slice for row in known if row.metric == name}, key=slice_order):
            unit = render_numbers.unit_of(metrics[name], UNIT)
            cells = [row_of.get((name, subtype, model)) for model in subject.models]
            texts = [
                render_numbers.with_interval(row.value, row.low, row.high, unit) if row else "-"
                for row in cells
            ]
            head = htpy.th(scope="row")[name_of(subtype)]
            rows.append(htpy.tr[head, (htpy.td[text] for text in texts)])
        if rows:
            label = metrics[name].label
            table = _table(f"{label} by {title.lower()}", headings, rows)
            nodes += [htpy.h3[label], table]
    if not nodes:
        return []
    return [htpy.h2[f"By {title.lower()}"], *nodes, remark("In brackets: 95 % intervals.")]


def _differences(subject: Subject) -> list[htpy.Node]:
    if len(subject.models) < 2:
        return []
    compared = compare_metrics(subject.question_set, subject.models)
    if not any(compared["verdict"]):
        return []
    metrics, looks = tables.metrics(subject.question_set.probe), subject.model_looks
    differences = html_compare.differences(
        compared, metrics, UNIT, looks, chances(subject.question_set), subject.names
    )
    return [
        htpy.h2[f"Compared with {subject.names[subject.models[0]]}, picture by picture"],
        embed(differences),
        remark(html_compare.how_to_read(compared)),
    ]


def _annotated(subject: Subject) -> list[htpy.Node]:
    """Return the most recent cases that have tags or a note."""
    annotated = annotations.read(subject.question_set.store, subject.question_set.key)
    if not annotated.current and not annotated.damaged:
        return []
    latest = {annotation.case: annotation for annotation in annotated.current[:NOTED]}
    cards = views.wall.cards(subject.question_set, Filter(subject.models[0]), tuple(latest))
    limit = f" Here: the latest {NOTED}." if len(annotated.current) > NOTED else ""
    return [
        htpy.h2["Tags and notes"],
        remark(f"{counted(len(annotated.current), 'case')} with tags or a note.{limit}"),
        annotated.damaged
        and remark(f"These lines are damaged and were skipped: {'; '.join(annotated.damaged)}."),
        htpy.div(".vp-grid")[
            (htpy.article[_case(subject, card, latest[card.case])] for card in cards)
        ],
    ]


def _published(subject: Subject) -> list[htpy.Node]:
    """Return the tables from the probe's paper for which the runs have at least one value."""
    probe = subject.question_set.probe
    metrics = tables.metrics(probe)
    nodes: list[htpy.Node] = []
    for paper_table in TABLES.get(probe, ()):
        cells = remade(subject.question_set, paper_table.number)
        if cells.loc[cells["source"] == "run", "value"].count():
            reproduced = papers.remade(cells, paper_table, metrics, subject.model_looks)
            nodes.append(htpy.h3[f"Table {paper_table.number}: {paper_table.title}"])
            nodes += [
                embed(reproduced.table),
                remark(reproduced.remark),
                embed(papers.numbered(reproduced.notes)),
            ]
    return [htpy.h2["Compared with the paper"], *nodes] if nodes else []


def _reproduction(subject: Subject) -> list[htpy.Node]:
    """Return the commands that reproduce the results, and the keys of runs with descriptions."""
    question_set = subject.question_set
    runs = [question_set.run(model) for model in subject.models]
    run = subject.question_set.store.run(runs[0].key).manifest()["run"]
    calls = [
        views.runs.command(question_set, subject.models),
        *(["failures", run.key] for run in runs),
        ["report", "--set", question_set.key, "report.html"],
    ]
    digests = {"Question set": question_set.key, "Dataset": run["dataset_digest"]}
    digests |= {run.model: run.model_digest for run in runs}
    rows = [
        htpy.tr[htpy.th(scope="row")[embed(breakable(name))], htpy.td[digest]]
        for name, digest in digests.items()
    ]
    return [
        htpy.h2["Reproduce"],
        commands("\n".join(shlex.join(["vlprobe", *call]) for call in calls)),
        remark(f"Metrics: {', '.join(run['metrics'])}; probe version {run['probe_version']}."),
        _table("Keys", ["What", "Key or digest"], rows),
    ]


LARGE, SMALL = 1000, 280  # pixels, the longest side of a picture


def case_page(question_set: QuestionSet, model: str, number: int, second_model: str = "") -> str:
    """Return a page about one case: pictures, texts, every model's scores, tags, notes, and how to find the case again.

    Args:
        model: The model whose verdict comes first.
        second_model: A model to compare with, if any.
    """
    probe, presentation = question_set.probe, question_set.presentation
    (case,) = views.wall.cards(question_set, Filter(model), (number,))
    kind = presentation.kind(case.kind)
    answers = views.rows.answer_rows(question_set, [number])[number]
    models = list(
        dict.fromkeys([model, *filter(None, [second_model]), *question_set.ordered_models])
    )
    annotated = annotations.read(question_set.store, question_set.key).current
    annotation = next((annotation for annotation in annotated if annotation.case == number), None)
    large, small = (functools.partial(html.data_address, side=side) for side in (LARGE, SMALL))
    looks = styles(views.runs.models(question_set.store))
    card, answer = case_card(case, kind, answers), answers[model]
    origin = {"Dataset": question_set.runs[0].dataset, "Question set": question_set.key}
    title = f"One case of {probe}"
    nodes = [
        htpy.h1[title],
        htpy.p[kind.question],
        remark(f"The verdict is for {model}."),
        published_line(question_set.runs),
        html.shots(card, large),
        htpy.div(".vp-card")[
            html.verdict(kind, answer.margin, answer.is_scored),
            html.captions([*card.texts, *card.more_texts]),
            html.strips(card.strips(everything=True), small),
            html.numbers(card, models, looks, beside=bool(second_model)),
        ],
        annotation and html.chips(annotation.tags, annotation.note),
        htpy.h2["Details"],
        embed(html.properties(card, origin)),
        htpy.h2["How to reproduce this"],
        commands(html.command(question_set.run(model).key, card)),
        remark(
            f"Made by vlprobe {__version__}. This page loads no external content and runs no code."
        ),
    ]
    return self_contained(title, style(), htpy.main[nodes])
