"""A whole comparison as one web page: what was asked, of whom, the numbers, the failures, and how to get them again."""

import functools
import html
import math
import re
import shlex

import pandas as pd

from vlprobe import views
from vlprobe.render import charts
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import cards, papers, tables
from vlprobe.render.html import compare as html_compare
from vlprobe.render.html.elements import breakable, mark, ordered, table, tag
from vlprobe.render.report import figures
from vlprobe.render.report.page import page
from vlprobe.render.words import AGREED, named, order, presentations
from vlprobe.storage import annotations
from vlprobe.storage.store import Store
from vlprobe.types import Metric
from vlprobe.types.presentation import Presentation
from vlprobe.views.compare import compare
from vlprobe.views.filter import Filter
from vlprobe.views.leaders import leaders
from vlprobe.views.paper_tables import paper_tables
from vlprobe.views.papers import chances, remade
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tradeoff import trade_off

WORST = 4  # cases a model and kind of question
NOTED = 40  # cases that people said something of
LARGE, SMALL = 320, 112  # pixels a side, of a picture of its own and of one in a row of five


def report(store: Store, question_set: QuestionSet) -> str:
    """The report of one question set."""
    runs = pd.DataFrame(question_set.runs).set_index("model")
    runs = runs.loc[ordered(runs.index)]
    probe = question_set.probe
    metrics = tables.metrics(probe)
    looks = charts.styles.styles(views.runs.models(store))
    told = question_set.label
    body = [
        f"<p>{_strong(presentations()[probe].sentence)}</p>",
        *_models(runs, looks),
        *_numbers(store, question_set, list(runs.index), metrics, looks),
        *_figures(store, question_set, probe, metrics, looks),
        *_compared(store, question_set, tuple(runs.index), metrics, looks),
        *_worst(store, question_set, probe, list(runs.index), looks),
        *_noted(store, question_set, probe, list(runs.index), looks),
        *_published(store, question_set, probe, metrics, looks),
        tag("h2", "About the questions"),
        tables.facts(views.runs.facts(store, question_set)),
        *_again(store, question_set, runs),
    ]
    return page(told, body)


def _strong(text: str) -> str:
    """Our own sentences have words in bold."""
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text))


def _quiet(text: str) -> str:
    return tag("p", text, class_="vp-quiet vp-small")


def _models(runs: pd.DataFrame, looks: Looks) -> list[str]:
    head = "".join(tag("th", name, scope="col") for name in ("Model", "Answered", "Took", "Run", "What to know"))
    rows = []
    for run in runs.itertuples():
        cells = [run.finished.replace("T", " ")[:16], f"{run.seconds:,.0f} s", run.key]
        note = tag("td", run.note or "-", class_="vp-metric")
        rows.append(
            f'<tr><th scope="row">{mark(looks[run.Index])} {breakable(run.Index)}</th>'
            f"{''.join(tag('td', cell) for cell in cells)}{note}</tr>"
        )
    return [tag("h2", "Who was asked"), table("Models", head, rows)]


def _numbers(
    store: Store, question_set: QuestionSet, models: list[str], metrics: dict[str, Metric], looks: Looks
) -> list[str]:
    shown, unasked = tables.headline(
        views.estimates.estimates(store, question_set),
        metrics,
        "cosine",
        models,
        looks,
        chances(store, question_set),
        leaders(store, question_set),
    )
    parts = [
        tag("h2", "The numbers"),
        shown,
        _quiet(
            f"{tables.BOLD} Below each value its 95 % interval, from resampling pictures, and n, the number of "
            f"pictures it rests on. {AGREED} Tied: cases in which right and wrong score the same; rates count them as "
            "wrong. Where a metric has two means, this is the one in which every caption counts once (macro)."
        ),
    ]
    parts += map(_quiet, views.runs.version_notes(store, question_set))
    if unasked:
        parts.append(_quiet(f"Not asked here, or unknown for these models: {', '.join(unasked)}."))
    return parts


def _figures(
    store: Store, question_set: QuestionSet, probe: str, metrics: dict[str, Metric], looks: Looks
) -> list[str]:
    parts = [tag("h2", "In pictures")]
    if sides := presentations()[probe].trade_off:
        points = trade_off(store, question_set, sides.ups[0])
        parts.append(figures.scatter(points, metrics[sides.down], metrics[sides.ups[0]], "cosine", looks))
        parts.append(_quiet("Left is steadier, up is more alert: the top left corner is ideal. Arms: 95 % intervals."))
    whole, split = (
        views.estimates.estimates(store, question_set),
        views.estimates.estimates(store, question_set, "subtype"),
    )
    guessed = chances(store, question_set)
    parts.append('<div class="vp-figures">')
    for name in html_compare.main(probe):
        own = split[split["metric"] == name]
        found = {"All": whole[whole["metric"] == name]}
        found |= {
            named(part): own[own["slice"] == part] for part in sorted(filter(None, own["slice"].unique()), key=order)
        }
        if found["All"]["value"].notna().any():
            known = dict.fromkeys(found, guessed.get(name, math.nan))
            figure = figures.rows(found, metrics[name], "cosine", looks, known)
            parts.append(f"<section>{tag('h3', metrics[name].label)}{figure}</section>")
    parts.append("</div>")
    parts.append(_quiet("Lines through marks: 95 % intervals. Dotted: what guessing gets."))
    return parts


def _compared(
    store: Store, question_set: QuestionSet, models: tuple[str, ...], metrics: dict[str, Metric], looks: Looks
) -> list[str]:
    if len(models) < 2:
        return []
    probe = question_set.probe
    found = compare(store, question_set, models)
    if found["verdict"].eq("").all():
        return []
    body, _ = html_compare.differences(found, metrics, "cosine", looks, chances(store, question_set))
    return [
        tag("h2", f"Against {models[0]}, picture by picture"),
        html_compare.in_words(found, metrics, "cosine", looks, html_compare.main(probe)),
        body,
        _quiet(html_compare.how_to_read(found)),
    ]


def _worst(store: Store, question_set: QuestionSet, probe: str, models: list[str], looks: Looks) -> list[str]:
    """The first cases of each model and kind: what fools it most, or moves it most."""
    there = set(views.estimates.choices(store, question_set)["kind"])
    parts = [tag("h2", "The worst failures")]
    for kind, presentation in presentations()[probe].kinds.items():
        if kind not in there:
            continue
        parts += [tag("h3", presentation.label), _quiet(presentation.question)]
        if presentation.legend:
            parts.append(_quiet(presentation.legend))
        for model in models:
            chosen = Filter(model, kind, outcome="all" if presentation.is_movement else "fooled")
            counts = views.cases.outcomes(store, question_set, chosen)
            found, _ = views.cases.failures(store, question_set, chosen, 1, WORST)
            if presentation.is_movement:
                told = f"{counts['all']:,} cases; what moved most."
            else:
                share = f" ({100 * counts['fooled'] / counts['all']:.1f} %)" if counts["all"] else ""
                told = f"fooled {counts['fooled']:,} times of {counts['all']:,}{share}."
            parts.append(f"<p>{mark(looks[model])} <strong>{breakable(model)}</strong>: {told}</p>")
            names = [model, *(name for name in models if name != model)]
            parts.append(_cards(store, question_set, presentations()[probe], found, names, looks, {}))
    return parts


def _cards(
    store: Store,
    question_set: QuestionSet,
    presentation: Presentation,
    found: pd.DataFrame,
    names: list[str],
    looks: Looks,
    said: dict[int, annotations.Annotation],
) -> str:
    """A grid of cases; the verdict is the first model's."""
    if found.empty:
        return ""
    answers = cards.by_case(views.cases.answers(store, question_set, found["case"].tolist()))
    small = functools.partial(cards.source, side=SMALL)
    shown = []
    for row in found.itertuples():
        own = answers[row.case]
        card = cards.card(row, presentation, own, names, looks, small)
        noted = cards.chips(said[row.case].tags, said[row.case].note) if row.case in said else ""
        pictures = cards.shots(row, presentation.kind(row.kind), own[names[0]], LARGE)
        shown.append(f'<article>{pictures}<div class="vp-card">{card}</div>{noted}</article>')
    wide = " vp-wide" if any(presentation.kind(kind).wide for kind in found["kind"].unique()) else ""
    return f'<div class="vp-grid{wide}">{"".join(shown)}</div>'


def _noted(store: Store, question_set: QuestionSet, probe: str, models: list[str], looks: Looks) -> list[str]:
    known = annotations.read(store, question_set.key)
    if not known.current and not known.damaged:
        return []
    first = {one.case: one for one in known.current[:NOTED]}
    found = views.cases.questions(store, question_set, list(first))
    more = f" Here: the latest {NOTED}." if len(known.current) > NOTED else ""
    parts = [tag("h2", "What people noted"), _quiet(f"{len(known.current):,} cases have tags or a note.{more}")]
    if known.damaged:
        parts.append(_quiet(f"Damaged, and left out: {'; '.join(known.damaged)}."))
    return [*parts, _cards(store, question_set, presentations()[probe], found, models, looks, first)]


def _published(
    store: Store, question_set: QuestionSet, probe: str, metrics: dict[str, Metric], looks: Looks
) -> list[str]:
    parts = []
    for paper in paper_tables(probe):
        cells = remade(store, question_set, paper.number)
        if cells.loc[cells["source"] == "run", "value"].notna().any():
            made = papers.remade(cells, paper, probe, metrics, looks)
            parts += [tag("h3", f"Table {paper.number}: {paper.title}"), made.table, _quiet(made.remark), made.notes]
    return [tag("h2", "Beside the paper"), *parts] if parts else []


def _again(store: Store, question_set: QuestionSet, runs: pd.DataFrame) -> list[str]:
    """What makes these results again, and what the keys stand for."""
    asked = store.find(runs["key"].iloc[0])["run"]
    words = [word for model in runs.index for word in ("--model", model)]
    words += ["--dataset", asked["dataset"], "--probe", asked["probe"]]
    for name, value in asked["options"].items():
        words += ["--option", f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"]
    words += ["--seed", str(asked["seed"])] if asked["seed"] != 42 else []
    words += ["--limit", str(asked["limit"])] if asked["limit"] else []
    lines = [shlex.join(["vlprobe", "run", *words])]
    lines += [shlex.join(["vlprobe", "failures", run_key]) for run_key in runs["key"]]
    lines.append(shlex.join(["vlprobe", "report", "--set", question_set.key, "report.html"]))
    digests = {model: store.find(run_key)["run"]["model_digest"] for model, run_key in runs["key"].items()}
    head = tag("th", "What", scope="col") + tag("th", "Key or digest", scope="col")
    keys = {"Question set": question_set.key, "Dataset": asked["dataset_digest"]} | digests
    rows = [f'<tr><th scope="row">{breakable(name)}</th>{tag("td", value)}</tr>' for name, value in keys.items()]
    return [
        tag("h2", "The same again"),
        tag("pre", "\n".join(lines)),
        _quiet(f"Metrics: {', '.join(asked['metrics'])}; probe version {asked['probe_version']}."),
        table("Keys", head, rows),
    ]
