"""A whole comparison as one web page: the site of one question set in one file, and a page of all numbers, notes and
commands, which needs no script and is what a printer gets.
"""

import re
import shlex
from collections.abc import Sequence

import htpy

from vlprobe import registry, views
from vlprobe.case import html
from vlprobe.case.card import case_card, preferred, wrong_captions
from vlprobe.render import numbers as render_numbers
from vlprobe.render.attribution import published_line
from vlprobe.render.findings import order_sentences, power_of_ties, verdict
from vlprobe.render.html import compare as html_compare
from vlprobe.render.html import papers, tables
from vlprobe.render.html.elements import breakable, column_heads, embed, model_label
from vlprobe.render.html.elements import table as html_table
from vlprobe.render.html.scorecard import how_to_read, scorecard
from vlprobe.render.sentences import counted, sentence_names
from vlprobe.render.showcase import heading
from vlprobe.render.words import AVERAGED, INTERVALS, slice_order, value_label
from vlprobe.storage import annotations, display_names
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.store import Store
from vlprobe.surfaces.site import bundle, pages
from vlprobe.surfaces.site.shelf import Shelf
from vlprobe.surfaces.site.subject import Limits, Subject, subject
from vlprobe.types import POOLED
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import compare_metrics, leaders
from vlprobe.views.papers import chances, remade
from vlprobe.views.published import TABLES
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import DEFAULT_SEED, QuestionSet
from vlprobe.views.wall import WallCard

UNIT = "cosine"
CASES = 8  # of each model, kind and outcome
FAILURES = 6  # cases on the page without scripts, each of another picture
NOTED = 40  # cases with tags or a note


def report(store: Store, question_set: QuestionSet) -> str:
    """The report of one question set. All of it is for the reader: pictures, notes, and names of files, too."""
    limits = Limits(CASES, with_notes=True, may_publish=True, n_baselines=1)
    content = bundle.contents(store, [question_set], limits)
    about = subject(store, question_set, Shelf(store.root, may_publish=True), limits)
    return pages.one_file(question_set.label, content.pages, content.tables, _numbers_page(about))


def _numbers_page(about: Subject) -> list[htpy.Node]:
    store, question_set = about.store, about.question_set
    estimates = views.estimates.estimates(store, question_set)
    return [
        htpy.p[_with_bold(about.presentation.sentence)],
        published_line(question_set.runs),
        map(remark, order_sentences(estimates, {})),
        _verdict(about),
        _all_models(about),
        _failures(about),
        _models(about),
        _numbers(about),
        _by_type(about),
        _differences(about),
        _annotated(about),
        _published(about),
        htpy.h2["About the questions"],
        embed(tables.facts(views.runs.facts(store, question_set))),
        _reproduction(about),
    ]


def remark(text: str) -> htpy.Element:
    """A remark in smaller, greyer letters."""
    return htpy.p(".vp-quiet.vp-small")[text]


def commands(lines: str) -> list[htpy.Node]:
    """Commands for a terminal, on lines of their own in the source of the page, too."""
    return ["\n", htpy.pre[lines], "\n"]


def _table(name: str, headings: Sequence[str], rows: Sequence[htpy.Element]) -> htpy.Node:
    return embed(html_table(name, column_heads(headings), [str(row) for row in rows]))


def _with_bold(markdown: str) -> list[htpy.Node]:
    """Text in which `**words**` are bold."""
    pieces = re.split(r"\*\*(.+?)\*\*", markdown)
    return [htpy.strong[piece] if index % 2 else piece for index, piece in enumerate(pieces)]


def _verdict(about: Subject) -> list[htpy.Node]:
    """The verdict on the kind of question that Home shows first, and the shares behind it. A model without others is
    compared with controls.
    """
    kind = about.presentation.kind(about.kinds[0])
    models = about.rated if len(about.rated) > 1 else about.models
    if len(models) < 2:
        return []
    comparison = views.paired_tests.compare_models(
        about.store, about.question_set, models, about.kinds[0], UNIT
    )
    renamed = display_names.read(about.store)
    names = sentence_names(models, renamed)
    finding = verdict(comparison, kind, renamed)
    rows = [
        htpy.tr[
            htpy.th(scope="row")[
                embed(model_label(about.model_looks[each.model], names[each.model]))
            ],
            htpy.td[render_numbers.with_interval(each.share, each.low, each.high, comparison.unit)],
        ]
        for each in comparison.contestants
    ]
    happened = f"{wrong_captions(kind)} {preferred(kind)}, lower is better"
    share = "moved on average" if kind.is_movement else happened
    return [
        htpy.h2[finding.heading],
        htpy.p[finding.detail],
        remark(power_of_ties(comparison)),
        _table("Verdict", ["Model", share[:1].upper() + share[1:]], rows),
    ]


def _all_models(about: Subject) -> list[htpy.Node]:
    """All models on the kind of question that Home shows first, with brackets around those that are tied."""
    if len(about.rated) < 2:
        return []
    tests = views.paired_tests.rank_models(about.store, about.question_set, about.kinds[0])
    kind = about.presentation.kind(about.kinds[0])
    guess = views.estimates.best_guess(about.store, about.question_set, about.kinds[0])
    names = sentence_names(about.models, display_names.read(about.store))
    return [
        htpy.h3["Which models are tied"],
        embed(scorecard(tests, kind, about.model_looks, names, guess)),
        remark(how_to_read(tests)),
    ]


def _failures(about: Subject) -> list[htpy.Node]:
    """Cases that fool most models, or move the first model most, each of another picture."""
    kind_name, kind = about.kinds[0], about.presentation.kind(about.kinds[0])
    model = views.showcase.headline_models(about.store, about.question_set)[0]
    showcases = views.showcase.showcases(
        about.store, about.question_set, kind_name, model, count=FAILURES
    )
    if not showcases:
        return []
    name = about.names[model]
    words = f"What moves {name} most" if kind.is_movement else "What fools most models"
    articles = [
        htpy.article[
            htpy.p[htpy.strong[" ".join(heading(each, kind, name))]], _case(about, each.card)
        ]
        for each in showcases
    ]
    return [
        htpy.h3[f"{words}: {counted(len(articles), 'case')}"],
        remark("Explore has more of them, for each model and type."),
        htpy.div(".vp-grid")[articles],
    ]


def _case(about: Subject, card: WallCard, annotation: Annotation | None = None) -> list[htpy.Node]:
    """A case as in the drawer, without its details."""
    described, address = case_card(card, about.presentation.kind(card.kind)), about.shelf.address
    return [
        html.shots(described, address),
        html.captions(described.texts),
        html.strips(described.strips(), address),
        html.bars(described, about.model_looks, about.names),
        annotation and html.chips(annotation.tags, annotation.note),
    ]


def _models(about: Subject) -> list[htpy.Node]:
    rows = []
    for model in about.models:
        run = about.question_set.run(model)
        cells = [run.finished.replace("T", " ")[:16], f"{run.seconds:,.0f} s", run.key]
        label = embed(model_label(about.model_looks[model], model))
        note = htpy.td(".vp-metric")[run.note or "-"]
        rows.append(htpy.tr[htpy.th(scope="row")[label], (htpy.td[cell] for cell in cells), note])
    return [
        htpy.h2["Models"],
        htpy.details[
            htpy.summary[f"{counted(len(rows), 'model')}, and the results of their checks"],
            _table("Models", ["Model", "Finished", "Time", "Run", "Note"], rows),
        ],
    ]


def _numbers(about: Subject) -> list[htpy.Node]:
    store, question_set = about.store, about.question_set
    headline, unknown = tables.headline(
        views.estimates.estimates(store, question_set),
        tables.metrics(question_set.probe),
        UNIT,
        about.models,
        about.model_looks,
        chances(store, question_set),
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
        unknown
        and remark(f"Not measured here, or unknown for these models: {', '.join(unknown)}."),
    ]


def _by_type(about: Subject) -> list[htpy.Node]:
    """The main metrics by type of case: one row per type, one column per model."""
    estimates = views.estimates.estimates(about.store, about.question_set, "subtype")
    by_metric: dict[str, dict[str, dict[str, EstimateRow]]] = {}
    for row in records(EstimateRow, estimates):
        if row.slice and row.n_items:
            by_metric.setdefault(row.metric, {}).setdefault(row.slice, {})[row.model] = row
    metrics = tables.metrics(about.question_set.probe)
    nodes: list[htpy.Node] = []
    for name in filter(by_metric.__contains__, about.presentation.main_metrics):
        unit = render_numbers.unit_of(metrics[name], UNIT)
        rows = []
        for subtype in sorted(by_metric[name], key=slice_order):
            cells = [by_metric[name][subtype].get(model) for model in about.models]
            texts = [
                render_numbers.with_interval(row.value, row.low, row.high, unit) if row else "-"
                for row in cells
            ]
            head = htpy.th(scope="row")[value_label(subtype)]
            rows.append(htpy.tr[head, (htpy.td[text] for text in texts)])
        headings = ["Type", *(about.names[model] for model in about.models)]
        nodes += [
            htpy.h3[metrics[name].label],
            _table(f"{metrics[name].label} by type", headings, rows),
        ]
    return [htpy.h2["By type"], *nodes, remark("In brackets: 95 % intervals.")] if nodes else []


def _differences(about: Subject) -> list[htpy.Node]:
    if len(about.models) < 2:
        return []
    compared = compare_metrics(about.store, about.question_set, about.models)
    if not any(compared["verdict"]):
        return []
    main_metrics = about.presentation.main_metrics
    metrics, looks = tables.metrics(about.question_set.probe), about.model_looks
    differences, _ = html_compare.differences(
        compared, metrics, UNIT, looks, chances(about.store, about.question_set)
    )
    return [
        htpy.h2[f"Against {about.models[0]}, picture by picture"],
        embed(html_compare.in_words(compared, metrics, UNIT, looks, main_metrics)),
        embed(differences),
        remark(html_compare.how_to_read(compared)),
    ]


def _annotated(about: Subject) -> list[htpy.Node]:
    """The latest cases with tags or a note."""
    stored = annotations.read(about.store, about.question_set.key)
    if not stored.current and not stored.damaged:
        return []
    latest = {annotation.case: annotation for annotation in stored.current[:NOTED]}
    cards = views.wall.cards(
        about.store, about.question_set, Filter(about.models[0]), tuple(latest)
    )
    limit = f" Here: the latest {NOTED}." if len(stored.current) > NOTED else ""
    return [
        htpy.h2["Tags and notes"],
        remark(f"{counted(len(stored.current), 'case')} with tags or a note.{limit}"),
        stored.damaged and remark(f"Damaged, and left out: {'; '.join(stored.damaged)}."),
        htpy.div(".vp-grid")[
            (htpy.article[_case(about, card, latest[card.case])] for card in cards)
        ],
    ]


def _published(about: Subject) -> list[htpy.Node]:
    """The tables of the probe's paper that have a number of these runs."""
    probe = about.question_set.probe
    metrics = tables.metrics(probe)
    nodes: list[htpy.Node] = []
    for paper_table in TABLES.get(probe, ()):
        cells = remade(about.store, about.question_set, paper_table.number)
        if cells.loc[cells["source"] == "run", "value"].count():
            reproduced = papers.remade(cells, paper_table, metrics, about.model_looks)
            nodes.append(htpy.h3[f"Table {paper_table.number}: {paper_table.title}"])
            nodes += [
                embed(reproduced.table),
                remark(reproduced.remark),
                embed(papers.numbered(reproduced.notes)),
            ]
    return [htpy.h2["Compared with the paper"], *nodes] if nodes else []


def _reproduction(about: Subject) -> list[htpy.Node]:
    """The commands that make these results again, and what the keys stand for."""
    question_set = about.question_set
    runs = [question_set.run(model) for model in about.models]
    run = about.store.run(runs[0].key).manifest()["run"]
    words = [word for model in about.models for word in ("--model", model)]
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
        htpy.h2["Reproduce"],
        commands("\n".join(shlex.join(["vlprobe", *call]) for call in calls)),
        remark(f"Metrics: {', '.join(run['metrics'])}; probe version {run['probe_version']}."),
        _table("Keys", ["What", "Key or digest"], rows),
    ]
