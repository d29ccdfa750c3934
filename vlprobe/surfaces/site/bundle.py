"""Create all files of a site in memory, and write them to a folder.

The size of the site is therefore known before anything is written. Files are written to a temporary folder next to the
target, which is renamed once it is complete.
"""

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlprobe import __version__
from vlprobe.errors import InvalidInput
from vlprobe.render.attribution import published_text
from vlprobe.render.sentences import counted
from vlprobe.render.words import dataset_name, distinct, probe_name
from vlprobe.storage import display_names, files
from vlprobe.surfaces.site import pages
from vlprobe.surfaces.site.compare import compare_values
from vlprobe.surfaces.site.explore import explore_values
from vlprobe.surfaces.site.home import home_values, present_values
from vlprobe.surfaces.site.subject import (
    Limits,
    Shelf,
    Subject,
    Values,
    bare,
    private_folders,
    read_subject,
    without_folders,
)
from vlprobe.surfaces.site.tradeoff import kind_of_lie, tradeoff_values
from vlprobe.views.runs import QuestionSet, extent

TITLE = "vlprobe"
SPACE_FILE = 10_000_000  # bytes, the largest file that a Space accepts without Git LFS
# Settings of a static Hugging Face Space. GitHub Pages serves files unchanged if .nojekyll exists.
SPACE = """---
title: {title}
emoji: 🔍
colorFrom: blue
colorTo: green
sdk: static
app_file: index.html
---

{about}

Made with vlprobe {version}. Open `index.html`; the pages load no external content.
"""
ALLOWANCE = 4096  # maximum bytes per file that a disk uses in addition to the content


@dataclass(frozen=True)
class Contents:
    """The data for a site's pages and pictures, by script name, and the list of pages."""

    tables: Mapping[str, Any]
    pages: Sequence[pages.Page]
    subjects: Sequence[Subject]
    shelf: Shelf

    @property
    def n_cases(self) -> int:
        """Total number of cases, over all kinds and question sets."""
        return sum(
            len(values["cases"]) for name, values in self.tables.items() if "-explore-" in name
        )


@dataclass(frozen=True)
class Site:
    """All files of a site, by path, with the numbers of cases and pictures."""

    files: Mapping[str, bytes]
    n_cases: int
    n_pictures: int
    n_held_back: int  # pictures left out because no one allowed their publication

    @property
    def n_bytes(self) -> int:
        """Total size of all files in bytes."""
        return sum(map(len, self.files.values()))


def contents(question_sets: Sequence[QuestionSet], limits: Limits) -> Contents:
    """Return the content of a site for the given question sets.

    Args:
        question_sets: The question sets, in the order of the site. The site opens with the first
            one. Their store is a snapshot. It checks once per kind, not once per list of cases, which photographs are
            present. That took 91 % of the time for a report on the bundled SugarCrepe.
    """
    store = question_sets[0].store
    shelf = Shelf(store.root, limits.may_publish)
    subjects = [read_subject(question_set, shelf, limits) for question_set in question_sets]
    tables: dict[str, Values] = {}
    for subject in subjects:
        for kind in subject.kinds:
            tables |= _tables(subject, kind)
    labels = _labels(subjects)
    tables["index"] = {
        "sets": [_index_entry(subject, labels[subject.question_set.key]) for subject in subjects]
    }
    runs = [run for question_set in question_sets for run in question_set.runs]
    names_of_runs = {name for run in runs for name in (run.model, run.dataset)}
    if not limits.with_notes:
        tables = without_folders(tables, private_folders(store.roots, names_of_runs, shelf.folders))
    names = {
        name for subject in subjects for kind in subject.kinds for name in _pages(subject, kind)
    }
    return Contents(
        tables | {f"pictures-{number}": chunk for number, chunk in enumerate(shelf.chunks)},
        [page for page in pages.PAGES if page.name in names],
        subjects,
        shelf,
    )


def site(question_sets: Sequence[QuestionSet], limits: Limits, is_space: bool = False) -> Site:
    """Create all files of a site for the given question sets. The arguments are the same as in `contents`.

    If `is_space` is true, the site includes settings for Hugging Face Spaces and GitHub Pages.
    """
    content = contents(question_sets, limits)
    texts = {
        f"data/{name}.js": pages.table(name, values) for name, values in content.tables.items()
    }
    texts |= pages.files(TITLE, content.pages)
    if is_space:
        sets = content.tables["index"]["sets"]
        description = "\n\n".join(entry["about"] for entry in sets)
        title = json.dumps(f"{TITLE}: {sets[0]['label']}", ensure_ascii=False)
        texts["README.md"] = SPACE.format(title=title, about=description, version=__version__)
        texts[".nojekyll"] = ""
    files = {path: text.encode() for path, text in sorted(texts.items())}
    return Site(files, content.n_cases, content.shelf.n_pictures, content.shelf.n_held_back)


def _pages(subject: Subject, kind: str) -> dict[str, str]:
    """Return the titles of the pages that exist for a kind of case, by page name."""
    is_there = {"compare": len(subject.models) > 1, "tradeoff": kind == kind_of_lie(subject)}
    return {page.name: page.title for page in pages.PAGES if is_there.get(page.name, True)}


def _tables(subject: Subject, kind: str) -> dict[str, Values]:
    """Return the data for every page about a kind of case, by script name.

    The Explore page includes every case that another page links to.
    """
    names = _pages(subject, kind)
    values, cases = home_values(subject, kind, names)
    tables = {"index": values, "present": present_values(subject, kind)}
    if "tradeoff" in names:
        tables["tradeoff"], worst_cases = tradeoff_values(subject)
        cases += worst_cases
    if "compare" in names:
        tables["compare"], facing_cases = compare_values(subject, kind)
        cases += facing_cases
    tables["explore"] = explore_values(subject, kind, cases)
    return {subject.name(kind, page): values for page, values in tables.items()}


def _labels(subjects: Sequence[Subject]) -> dict[str, str]:
    """Return unique labels for the question sets in the site's picker, by key."""
    labels = {}
    for subject in subjects:
        run = subject.question_set.runs[0]
        renamed = display_names.read(subject.question_set.store)
        label = f"{dataset_name(run.dataset, renamed)} · {probe_name(run.probe, run.dataset)}{run.options}"
        labels[subject.question_set.key] = label if subject.limits.with_notes else bare(label)
    return distinct(labels)


def _index_entry(subject: Subject, label: str) -> Values:
    """Return a question set's entry in the site's index."""
    run = subject.question_set.runs[0]
    models = counted(len(subject.rated), "model")
    kinds = {kind: subject.presentation.kind(kind) for kind in subject.kinds}
    notes = []
    if subject.shelf.n_held_back:
        notes.append("Pictures that others may hold rights to are left out.")
    if published := published_text(subject.question_set.runs):
        notes.append(published)
    if subject.credits:
        notes.append("On Explore, each case lists the licenses and sources of its pictures.")
    return {
        "key": subject.key,
        "label": label,
        "about": " · ".join([label, extent(run.n_items, run.n_units), models, *notes]),
        "models": subject.marks(),
        "kinds": [
            {"key": name, "label": kind.lie or kind.label, "pages": list(_pages(subject, name))}
            for name, kind in kinds.items()
        ],
    }


def check_output(output: Path) -> None:
    """Raise InvalidInput if the output path already exists or its parent is not a folder."""
    if os.path.lexists(output):
        raise InvalidInput(
            f"'{output}' already exists and will not be overwritten. Delete it or choose another "
            "path."
        )
    if not output.absolute().parent.is_dir():
        raise InvalidInput(
            f"'{output.absolute().parent}' is not a folder. Create it or choose another path."
        )


def check_size(contents: Site, output: Path, max_bytes: int) -> None:
    """Raise InvalidInput if the site is larger than allowed or does not fit on the disk."""
    if contents.n_bytes > max_bytes:
        raise InvalidInput(
            f"The site is {contents.n_bytes / 1e6:,.1f} MB, but at most {max_bytes / 1e6:,.1f} "
            "MB are allowed. Use fewer cases (--cases) or question sets (--set), or raise the "
            "limit (--max-size)."
        )
    largest = max(contents.files, key=lambda path: len(contents.files[path]))
    if "README.md" in contents.files and len(contents.files[largest]) > SPACE_FILE:
        raise InvalidInput(
            f"'{largest}' is {len(contents.files[largest]) / 1e6:,.1f} MB, but a Space only "
            f"accepts files of up to {SPACE_FILE / 1e6:.0f} MB without Git LFS. Use fewer cases "
            "(--cases)."
        )
    files.require_space(output, contents.n_bytes + ALLOWANCE * len(contents.files))


def write(contents: Site, output: Path) -> None:
    """Write the complete site to a folder. If this fails, nothing is left behind. Raises InvalidInput."""
    check_output(output)
    growing = output.absolute().parent / f".{output.name}.{uuid.uuid4().hex}.tmp"
    try:
        for path, content in contents.files.items():
            file = growing / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        check_output(output)
        growing.rename(output)
    except OSError as error:
        raise InvalidInput(
            f"Cannot write '{output}' ({error.strerror}). Choose another path or free some space."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(growing)
