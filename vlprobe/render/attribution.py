"""Credits for pictures, and sources of published answers. No other module writes credits.

If a picture of a bundled question set is not bundled itself, the credit line says so and links to its public page.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import htpy

from vlprobe import __version__
from vlprobe.datasets import bundled, photographs
from vlprobe.datasets.credits import Credit, picture_credits
from vlprobe.models.published import NOTE
from vlprobe.render.sentences import joined, listed, sentence_names, shorten
from vlprobe.render.text_tables import formatted, latex_text
from vlprobe.render.words import NOT_RENAMED, dataset_name, model_name, probe_name
from vlprobe.types import Picture
from vlprobe.views.records import RunRow

if TYPE_CHECKING:
    import pandas as pd

LONGEST_AUTHOR = 80  # characters
NOT_BUNDLED, NOT_RECORDED = "Picture not bundled", "license not recorded"
WORDS = 3  # of a dataset, in labels and names of files
MOST_IN_CAPTION = 2  # question sets with their sizes
SECURE = "https://"  # other addresses are shown as plain text


def photo_values(credit: Credit) -> dict[str, str]:
    """Return the label and web page of a photograph, and the name and URL of its license."""
    return _values("Photo", credit.page, credit.license, credit.license_url)


def credit_values(name: str, author: str = "") -> dict[str, str] | None:
    """Return the credit to show below a picture: a label with a web page, and a license with a URL.

    Return None if nothing is known about the picture.

    Args:
        name: The stored name of the picture.
        author: The photographer, if the dataset names one.
    """
    if credit := _credits(name)[0]:
        return photo_values(credit)
    if author:
        return _values(f"Photo: {shorten(author, LONGEST_AUTHOR)}", "")
    return _values(NOT_BUNDLED, photographs.page(Path(name))) if bundled.is_absent(name) else None


def _values(label: str, page: str, license_: str = "", license_url: str = "") -> dict[str, str]:
    return {"label": label, "page": page, "license": license_, "licenseUrl": license_url}


def credit_line(name: str) -> htpy.Element | None:
    """Return the credit for a picture as one line of HTML, or None if nothing is known about the picture."""
    values = credit_values(name)
    if values is None:
        return None
    return htpy.p(".vp-quiet.vp-small.vp-credit")[
        _link(values["page"], values["label"]),
        values["license"] and " · ",
        _link(values["licenseUrl"], values["license"]),
    ]


def distinct_credits(names: Iterable[str]) -> list[Credit]:
    """Return the credits for the given pictures and for pictures mixed into them, without repeats, in order."""
    credits = chain.from_iterable(map(_credits, names))
    return list(dict.fromkeys(credit for credit in credits if credit))


def _credits(name: str) -> tuple[Credit | None, ...]:
    """Return the credit for a picture and for the picture mixed into it. Photographs of COCO that `vlprobe pictures`
    downloaded come without a license, so that their credit has only their page.
    """
    credits = []
    for credit, path in zip(picture_credits(name), Picture.from_name(name).paths, strict=True):
        is_downloaded = path.parts[-4:-2] == bundled.COCO.parts[:2] and photographs.url(path)
        if not credit and is_downloaded and not bundled.is_absent(str(path)):
            credit = Credit(photographs.page(path), NOT_RECORDED)
        credits.append(credit)
    return tuple(credits)


def credits_line(names: Iterable[str]) -> htpy.Element | None:
    """Return the credits for several pictures as one line of HTML, or None if there are none. Consecutive photographs
    with the same license share its name.

    Args:
        names: Stored names of the pictures, in display order.
    """
    if not (credits := distinct_credits(names)):
        return None
    parts: list[htpy.Node] = []
    following = [*(credit.license for credit in credits[1:]), None]
    for number, (credit, license_) in enumerate(zip(credits, following, strict=True), 1):
        parts += [", " if parts else "Photos: ", _link(credit.page, str(number))]
        if license_ != credit.license:
            parts += [" ", _link(credit.license_url, credit.license)]
    return htpy.p(".vp-quiet.vp-small.vp-credit")[parts]


def published_line(
    runs: Sequence[RunRow], renamed: Mapping[str, str] = NOT_RENAMED
) -> htpy.Element | None:
    """Return the sources of answers published by others as HTML, or None if vlprobe computed all answers."""
    sources = _sources(runs)
    if not sources:
        return None
    every = len(sources) == 1 and all(run.publication for run in runs)
    parts: list[htpy.Node] = []
    for publication, models in sources.items():
        names = "" if every else f"{', '.join(model_name(model, renamed) for model in models)}: "
        parts += ["; " if parts else "", names, _link(publication[1], publication[0])]
    return htpy.p(".vp-quiet.vp-published")[f"{NOTE} · ", parts]


def published_text(runs: Sequence[RunRow], renamed: Mapping[str, str] = NOT_RENAMED) -> str:
    """Return the sources of answers published by others as plain text, or "" if vlprobe computed all answers."""
    parts = [
        f"{', '.join(model_name(model, renamed) for model in models)}: {authors}, {source} ({license_} license)"
        for (authors, source, license_), models in _sources(runs).items()
    ]
    return f"{NOTE}. {'; '.join(parts)}." if parts else ""


def source_line(
    runs: Sequence[RunRow], renamed: Mapping[str, str] = NOT_RENAMED, is_full: bool = False
) -> str:
    """Return the source of a figure or table, for its caption: question sets with their size, the authors of published
    answers, and the date of the results; "" without runs.

    Args:
        is_full: Whether to add what `bibliography` has: the licenses and addresses of published answers, and their
            models.
    """
    if not runs:
        return ""
    return joined(_sizes(runs, renamed), _origin(runs, renamed, is_full))


def short_name(runs: Sequence[RunRow], renamed: Mapping[str, str] = NOT_RENAMED) -> str:
    """Return a short name of the question sets of runs for labels and files, as "sugarcrepe-593a"; "" without runs.
    The key makes names of different question sets different.
    """
    keys = list(dict.fromkeys(run.case_key for run in runs))
    if not keys:
        return ""
    name = f"{len(keys)} sets" if keys[1:] else dataset_name(runs[0].dataset, renamed)
    key = sha256(" ".join(keys).encode()).hexdigest() if keys[1:] else keys[0]
    return "-".join([*re.findall("[a-z0-9]+", name.lower())[:WORDS], key[:4]])


def _sizes(runs: Sequence[RunRow], renamed: Mapping[str, str]) -> str:
    sets = {run.case_key: run for run in runs}.values()
    counts = [
        f"{dataset_name(run.dataset, renamed)}, {probe_name(run.probe, run.dataset)}: "
        f"n = {run.n_cases:,} cases, "
        + (f"{run.n_units:,} pictures" if run.n_units < run.n_items else f"{run.n_items:,} items")
        for run in sets
    ]
    return f"{'; '.join(counts)}."


def _origin(runs: Sequence[RunRow], renamed: Mapping[str, str], is_full: bool) -> str:
    computed = dict.fromkeys(run.model for run in runs if not run.publication)
    authors = [authors for authors, _, _ in _sources(runs)]
    models = listed(list(sentence_names(list(computed), renamed).values())) if authors else ""
    published = f"{NOTE}: {'; '.join(authors)}." if authors else ""
    return joined(
        f"Run with vlprobe{models and f': {models}'}." if computed else "",
        published_text(runs, renamed) if is_full else published,
        f"vlprobe {__version__}, results of {max(run.finished for run in runs)[:10]}.",
    )


def with_source(
    table: "pd.DataFrame",
    how: str,
    runs: Sequence[RunRow],
    renamed: Mapping[str, str] = NOT_RENAMED,
    tie_letters: Mapping[str, Sequence[str]] | None = None,
    caption: str = "",
    details: str = "",
    label: str = "table",
    papers: Sequence[str] = (),
) -> str:
    """Format a table for a paper as "csv", "latex" or "markdown", with the source of its runs (see `formatted`) and of
    values that `papers` print (see `bibliography`).

    The label names their question sets (`short_name`).
    """
    sources = source_line(runs, renamed, is_full=how != "latex")
    if len({run.case_key for run in runs}) > MOST_IN_CAPTION:
        sources = _origin(runs, renamed, is_full=how != "latex")
        details = joined(details, _sizes(runs, renamed))
    note = joined(caption, sources)
    label = "-".join(filter(None, (label, short_name(runs, renamed))))
    entries = bibliography(runs, renamed, papers)
    return formatted(table, how, tie_letters, note, label, details, entries)


def bibliography(
    runs: Sequence[RunRow], renamed: Mapping[str, str] = NOT_RENAMED, papers: Sequence[str] = ()
) -> list[str]:
    """Return the lines of BibTeX entries for the sources of published answers: authors, paper or name, address, license
    and models; and for `papers` whose values are shown, by their keys in papers.bib.
    """
    known, seen = _papers(), Counter[str]()
    lines = [line for key in papers for line in (f"@misc{{{key},", *known[key], "}")]
    for (authors, address, license_), models in _sources(runs).items():
        names = ", ".join(model_name(model, renamed) for model in models)
        author, _, name = authors.partition(", ")
        key = "-".join(re.findall(r"\w+", authors.replace("et al.", "").lower(), re.ASCII))
        seen[key] += 1  # one publication may have several addresses
        author = latex_text(author).replace("et al.", "and others")
        plain = f"  author = {{{author}}},", f"  title = {{{{{latex_text(name or authors)}}}}},"
        url = re.sub(r"[^\w:/.?=&~+%#@,;()!*'-]", "", address)
        note = latex_text(f"{license_} license. Published answers: {names}")
        lines += [f"@misc{{{key}{f'-{seen[key]}' * (seen[key] > 1)},", *known.get(key, plain)]
        lines += [rf"  howpublished = {{\url{{{url}}}}},", f"  note = {{{note}}},", "}"]
    return lines


@functools.cache
def _papers() -> dict[str, list[str]]:
    """Return the lines of each entry in papers.bib, without the first and the last one, by its key."""
    text = (Path(__file__).parent / "papers.bib").read_text(encoding="utf-8")
    entries = (entry.splitlines() for entry in text.strip().split("\n\n"))
    return {first[len("@misc{") : -1]: lines for first, *lines, _ in entries}


def published_by(runs: Sequence[RunRow]) -> str:
    """Name the authors of answers published by others in one line, or return "" if vlprobe computed all answers."""
    licenses: dict[str, list[str]] = {}
    for authors, _, license_ in _sources(runs):
        licenses.setdefault(license_, []).append(authors)
    parts = [f"{'; '.join(authors)} ({license_})" for license_, authors in licenses.items()]
    return f"{NOTE}: {'; '.join(parts)}." if parts else ""


def _sources(runs: Sequence[RunRow]) -> dict[tuple[str, str, str], list[str]]:
    """Group the models whose answers were published by others, by the authors, the URL and the license."""
    sources: dict[tuple[str, str, str], list[str]] = {}
    for run in runs:
        if run.publication:
            key = run.publication.authors, run.publication.source, run.publication.license
            models = sources.setdefault(key, [])
            models += [run.model] * (run.model not in models)
    return sources


def _link(address: str, text: str) -> htpy.Node:
    if not address.startswith(SECURE):
        return text
    return htpy.a(href=address, target="_blank", rel="noopener noreferrer")[text]
