"""A whole comparison as one web page: the question set, the models, the numbers, the failures, and how to reproduce
them.
"""

import functools
import math
import re
import shlex
from collections.abc import Mapping, Sequence

import htpy
import pandas as pd

from vlprobe import registry, views
from vlprobe.render.attribution import published_line
from vlprobe.render.charts.styles import styles
from vlprobe.render.html import cards, papers, tables
from vlprobe.render.html import compare as html_compare
from vlprobe.render.html.elements import breakable, mark, ordered
from vlprobe.render.html.embed import embed
from vlprobe.render.orders import order_sentences
from vlprobe.render.sentences import counted
from vlprobe.render.words import AVERAGED, INTERVALS, presentations, slice_order, value_label
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import figures
from vlprobe.surfaces.report.front import first_page
from vlprobe.surfaces.report.page import commands, page, remark, table
from vlprobe.surfaces.report.subject import LARGE, SMALL, UNIT, Subject
from vlprobe.types import POOLED
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import compare_metrics, leaders
from vlprobe.views.papers import chances, remade
from vlprobe.views.published import TABLES
from vlprobe.views.records import CaseRow, answer_records, records
from vlprobe.views.runs import DEFAULT_SEED, QuestionSet
from vlprobe.views.tradeoff import trade_off

WORST = 4  # cases a model and kind of question
NOTED = 40  # cases with tags or a note


def report(store: Store, question_set: QuestionSet) -> str:
    """The report of one question set."""
    subject = Subject(
        store,
        question_set,
        models=tuple(ordered(question_set.models)),
        presentation=presentations()[question_set.probe],
        metrics=tables.metrics(question_set.probe),
        chances=chances(store, question_set),
        styles=styles(views.runs.models(store)),
    )
    return page(
        question_set.label,
        [
            htpy.p[_with_bold(subject.presentation.sentence)],
            published_line(question_set.runs),
            map(remark, order_sentences(views.estimates.estimates(store, question_set), {})),
            first_page(subject),
            _models(subject),
            _numbers(subject),
            _figures(subject),
            _differences(subject),
            _worst_failures(subject),
            _annotated(subject),
            _published(subject),
            htpy.h2["About the questions"],
            embed(tables.facts(views.runs.facts(store, question_set))),
            _reproduction(subject),
        ],
    )


def _with_bold(markdown: str) -> list[htpy.Node]:
    """Text in which `**words**` are bold."""
    pieces = re.split(r"\*\*(.+?)\*\*", markdown)
    return [htpy.strong[piece] if index % 2 else piece for index, piece in enumerate(pieces)]


def _name(subject: Subject, model: str) -> list[htpy.Node]:
    """A model's mark and its name, which may be broken."""
    return [embed(mark(subject.styles[model])), " ", embed(breakable(model))]


def _models(subject: Subject) -> list[htpy.Node]:
    rows = []
    for model in subject.models:
        run = subject.question_set.run(model)
        cells = [run.finished.replace("T", " ")[:16], f"{run.seconds:,.0f} s", run.key]
        rows.append(
            htpy.tr[
                htpy.th(scope="row")[_name(subject, model)],
                (htpy.td[cell] for cell in cells),
                htpy.td(".vp-metric")[run.note or "-"],
            ]
        )
    return [
        htpy.h2["Who was asked"],
        htpy.details[
            htpy.summary[f"{counted(len(rows), 'model')}, and what their checks say"],
            table("Models", ["Model", "Answered", "Took", "Run", "What to know"], rows),
        ],
    ]


def _numbers(subject: Subject) -> list[htpy.Node]:
    store, question_set = subject.store, subject.question_set
    numbers = views.estimates.estimates(store, question_set)
    headline, unknown = tables.headline(
        numbers,
        subject.metrics,
        UNIT,
        subject.models,
        subject.styles,
        subject.chances,
        leaders(store, question_set),
    )
    return [
        htpy.h2["The numbers"],
        embed(headline),
        remark(
            f"{tables.BOLD} Below each value its 95 % interval, from resampling pictures, and n, the number of "
            f"pictures it rests on. {INTERVALS} Tied: cases in which right and wrong score the same; "
            f"rates count them as wrong. {AVERAGED[POOLED]}"
        ),
        map(remark, views.runs.version_notes(store, question_set)),
        unknown and remark(f"Not asked here, or unknown for these models: {', '.join(unknown)}."),
    ]


def _figures(subject: Subject) -> list[htpy.Node]:
    store, question_set = subject.store, subject.question_set
    whole = views.estimates.estimates(store, question_set)
    by_subtype = views.estimates.estimates(store, question_set, "subtype")
    sections = []
    for name in subject.presentation.main_metrics:
        metric = subject.metrics[name]
        groups = {"All": whole.loc[whole["metric"] == name]}
        sliced = by_subtype.loc[by_subtype["metric"] == name]
        for subtype in sorted({subtype for subtype in sliced["slice"] if subtype}, key=slice_order):
            groups[value_label(subtype)] = sliced.loc[sliced["slice"] == subtype]
        if groups["All"]["value"].count():
            chance_levels = dict.fromkeys(groups, subject.chances.get(name, math.nan))
            figure = figures.rows(groups, metric, UNIT, subject.styles, chance_levels)
            sections.append(htpy.section[htpy.h3[metric.label], figure])
    return [
        htpy.h2["In pictures"],
        _trade_off(subject),
        htpy.div(".vp-figures")[sections],
        remark("Lines through marks: 95 % intervals. Dotted: what guessing gets."),
    ]


def _trade_off(subject: Subject) -> list[htpy.Node]:
    """The scatter of the probe's trade-off, where it has one."""
    sides = subject.presentation.trade_off
    if sides is None:
        return []
    points = trade_off(subject.store, subject.question_set, sides.ups[0])
    down, up = subject.metrics[sides.down], subject.metrics[sides.ups[0]]
    return [
        figures.scatter(points, down, up, UNIT, subject.styles),
        remark(
            "Left is steadier, up is more alert: the top left corner is ideal. Arms: 95 % intervals."
        ),
    ]


def _differences(subject: Subject) -> list[htpy.Node]:
    if len(subject.models) < 2:
        return []
    compared = compare_metrics(subject.store, subject.question_set, subject.models)
    if not any(compared["verdict"]):
        return []
    main_metrics = subject.presentation.main_metrics
    differences, _ = html_compare.differences(
        compared,
        subject.metrics,
        UNIT,
        subject.styles,
        subject.chances,
    )
    return [
        htpy.h2[f"Against {subject.models[0]}, picture by picture"],
        embed(html_compare.in_words(compared, subject.metrics, UNIT, subject.styles, main_metrics)),
        embed(differences),
        remark(html_compare.how_to_read(compared)),
    ]


def _worst_failures(subject: Subject) -> list[htpy.Node]:
    """The worst cases of each model and kind: what fools it most, or moves it most."""
    stored_kinds = set(views.estimates.choices(subject.store, subject.question_set)["kind"])
    nodes: list[htpy.Node] = [htpy.h2["The worst failures"]]
    for kind, presentation in subject.presentation.kinds.items():
        if kind in stored_kinds:
            nodes += [htpy.h3[presentation.label], remark(presentation.question)]
            nodes.append(presentation.legend and remark(presentation.legend))
            nodes += [
                _worst_of_model(
                    subject,
                    model,
                    kind,
                    presentation,
                )
                for model in subject.models
            ]
    return nodes


def _worst_of_model(
    subject: Subject,
    model: str,
    kind: str,
    presentation: KindPresentation,
) -> list[htpy.Node]:
    store, question_set = subject.store, subject.question_set
    case_filter = Filter(model, kind, outcome="all" if presentation.is_movement else "fooled")
    counts = views.cases.outcomes(store, question_set, case_filter)
    cases, _ = views.cases.failures(store, question_set, case_filter, 1, WORST)
    if presentation.is_movement:
        summary = f"{counts['all']:,} cases; what moved most."
    else:
        share = f" ({100 * counts['fooled'] / counts['all']:.1f} %)" if counts["all"] else ""
        summary = f"fooled {counts['fooled']:,} times of {counts['all']:,}{share}."
    model_first = [model, *(name for name in subject.models if name != model)]
    heading = htpy.p[
        embed(mark(subject.styles[model])),
        " ",
        htpy.strong[embed(breakable(model))],
        f": {summary}",
    ]
    return [heading, _cards(subject, cases, model_first, {})]


def _cards(
    subject: Subject,
    cases: pd.DataFrame,
    models: Sequence[str],
    annotated: Mapping[int, Annotation],
) -> htpy.Element | None:
    """A grid of cases.

    Args:
        subject: Subject of the report.
        cases: The columns of `CaseRow`.
        models: In order; the verdict is the first one's.
        annotated: Tags and notes by the number of the case.
    """
    case_rows = records(CaseRow, cases)
    if not case_rows:
        return None
    numbers = [case.case for case in case_rows]
    answers = answer_records(views.cases.answers(subject.store, subject.question_set, numbers))
    thumbnail = functools.partial(cards.source, side=SMALL)
    articles = []
    for case in case_rows:
        kind = subject.presentation.kind(case.kind)
        case_answers = answers[case.case]
        card = cards.card(
            case, subject.presentation, case_answers, models, subject.styles, thumbnail
        )
        annotation = annotated.get(case.case)
        articles.append(
            htpy.article[
                embed(cards.shots(case, kind, case_answers[models[0]], LARGE)),
                htpy.div(".vp-card")[embed(card)],
                annotation and embed(cards.chips(annotation.tags, annotation.note)),
            ]
        )
    wide = any(subject.presentation.kind(case.kind).wide for case in case_rows)
    return htpy.div(class_={"vp-grid": True, "vp-wide": wide})[articles]


def _annotated(subject: Subject) -> list[htpy.Node]:
    """The latest cases with tags or a note."""
    stored = annotations.read(subject.store, subject.question_set.key)
    if not stored.current and not stored.damaged:
        return []
    latest = {annotation.case: annotation for annotation in stored.current[:NOTED]}
    cases = views.cases.questions(subject.store, subject.question_set, list(latest))
    limit = f" Here: the latest {NOTED}." if len(stored.current) > NOTED else ""
    return [
        htpy.h2["What people noted"],
        remark(f"{len(stored.current):,} cases have tags or a note.{limit}"),
        stored.damaged and remark(f"Damaged, and left out: {'; '.join(stored.damaged)}."),
        _cards(subject, cases, subject.models, latest),
    ]


def _published(subject: Subject) -> list[htpy.Node]:
    """The tables of the probe's paper that have a number of these runs."""
    probe = subject.question_set.probe
    nodes: list[htpy.Node] = []
    for paper_table in TABLES.get(probe, ()):
        cells = remade(subject.store, subject.question_set, paper_table.number)
        if cells.loc[cells["source"] == "run", "value"].count():
            reproduced = papers.remade(cells, paper_table, subject.metrics, subject.styles)
            nodes.append(htpy.h3[f"Table {paper_table.number}: {paper_table.title}"])
            nodes += [
                embed(reproduced.table),
                remark(reproduced.remark),
                embed(papers.numbered(reproduced.notes)),
            ]
    return [htpy.h2["Beside the paper"], *nodes] if nodes else []


def _reproduction(subject: Subject) -> list[htpy.Node]:
    """The commands that make these results again, and what the keys stand for."""
    question_set = subject.question_set
    runs = [question_set.run(model) for model in subject.models]
    run = subject.store.run(runs[0].key).manifest()["run"]
    words = [word for model in subject.models for word in ("--model", model)]
    words += ["--dataset", run["dataset"], "--probe", run["probe"]]
    defaults = registry.load_probe(run["probe"]).defaults
    typed = {name: option for name, option in run["options"].items() if name in defaults}
    for name, option in typed.items():
        words += [
            "--option",
            f"{name}={','.join(map(str, option)) if isinstance(option, list) else option}",
        ]
    words += ["--seed", str(run["seed"])] if run["seed"] != DEFAULT_SEED else []
    words += ["--limit", str(run["limit"])] if run["limit"] else []
    for name, choice in run.get("selection", {}).items():
        for value in choice if isinstance(choice, list) else [choice]:
            words += [f"--{name}", str(value)]
    calls = [
        ["run", *words],
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
        htpy.h2["The same again"],
        commands("\n".join(shlex.join(["vlprobe", *call]) for call in calls)),
        remark(f"Metrics: {', '.join(run['metrics'])}; probe version {run['probe_version']}."),
        table("Keys", ["What", "Key or digest"], rows),
    ]
