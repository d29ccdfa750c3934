"""State that pages share: the cache folder, cached tables, and pickers whose choice is stored in the URL.

The URL alone determines a picker's value: a missing parameter means the default. So a link reopens
exactly what was seen.
"""

import contextlib
import contextvars
import copy
import functools
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, cast
from urllib.parse import urlencode

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.errors import VlprobeError, plugin_errors, printable
from vlprobe.render import charts, words
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import tables
from vlprobe.render.html.elements import ordered, tag
from vlprobe.render.sentences import sentence_names
from vlprobe.storage import annotations, display_names, shipped
from vlprobe.storage import store as store_module
from vlprobe.storage.bookmarks import SLICES
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.types import Metric
from vlprobe.types.presentation import KindPresentation, Presentation
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

# A page run again saves 10 to 130 ms of CPU, and 1.3 s on Rankings. Streamlit's own cache would pickle each answer
# for each visitor.
_answers = SingleFlightCache(1000)
_snapshots = SingleFlightCache(4)  # 1.3 ms each, shared by all answers for one version
RESULTS = (  # URL parameters that name results; all others only change how results are shown
    *("set", "model", "kind", "base", "with", "other", "metric", "by", "type", "rule", "tag"),
    *("reader", "looker", "subset", "before", "control", "after"),
)
CARRIED = ("set", "model", "kind", "with")  # choices that carry over from page to page
NAMED = 80  # maximum characters of an unknown name in a message
# Signs with a meaning in Markdown; some of them have none after a letter or digit, and "_" has none between two
MARKDOWN = re.compile(r"[\\`*\[\]!|<>$~:&]|(?<![^\W_])[-+#_]|_(?![^\W_])")
LISTED = re.compile(r"^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)
DOCS_PAGE = re.compile(r"(?<![\w/])docs/([\w/]+)\.md")
Arguments = ParamSpec("Arguments")  # arguments of a view, after the store
Result = TypeVar("Result")
_unknown: contextvars.ContextVar["Callable[[str, str], None] | None"] = contextvars.ContextVar(
    "unknown", default=None
)


class PageStore(NamedTuple):
    """A page's store, looked up once, because each file access lets all other threads run first."""

    store: Store
    version: str  # version of the store
    renamed: Mapping[str, str]  # display names of models and datasets, by stored name
    slices: tuple[int, int]  # version of the named slices


_page_store: contextvars.ContextVar[PageStore | None] = contextvars.ContextVar(
    "page_store", default=None
)


def store() -> Store:
    """Return the store that this dashboard shows and writes to, with the bundled results below it."""
    if page_store := _page_store.get():
        return page_store.store
    return _opened(store_module.DEFAULT, os.getcwd(), shipped.folders())


@functools.lru_cache(maxsize=8)  # opening takes 1 ms and a new DuckDB connection
def _opened(root: Path | str, folder: str, shipped_roots: tuple[Path, ...]) -> Store:
    """Open a store once and cache it. A relative root is relative to `folder`."""
    return shipped.opened(root)


@contextlib.contextmanager
def fix_store_version() -> Iterator[None]:
    """Look up the store's version once, and use it for everything that a page draws."""
    current = store()
    token = _page_store.set(
        PageStore(current, current.version(), renamed(), SLICES.version(current))
    )
    try:
        yield
    finally:
        _page_store.reset(token)


@contextlib.contextmanager
def warn_of_missing() -> Iterator[None]:
    """Warn above a page if its link names results that are not stored here.

    A value left over after a picker changed, such as a model from another question set, is not an error in a link.
    """
    linked = "picked" not in st.session_state and any(name in st.query_params for name in RESULTS)
    # Always drawn; otherwise, all elements below would move up and be mounted again
    slot = st.empty()
    token = _unknown.set(_warning(slot) if linked else None)
    try:
        yield
    finally:
        _unknown.reset(token)
        st.session_state.pop("picked", None)


def _warning(slot: DeltaGenerator) -> Callable[[str, str], None]:
    """Return a function that adds a label and a value to the warning in a slot."""
    unknown_names: list[str] = []

    def add(label: str, value: str) -> None:
        short = value if len(value) <= NAMED else f"{value[:NAMED]}…"
        unknown_names.append(f"{label.lower()} “{plain(printable(short))}”")
        slot.warning(
            f"This link refers to results that were not found: {', '.join(unknown_names)}. The "
            "page shows the available results instead.",
            icon=":material/link_off:",
        )

    return add


def report_missing(label: str, name: str, value: str) -> None:
    """Add a result to the warning about results that the URL names but that are not stored."""
    if (add := _unknown.get()) and name in RESULTS:
        add(label, value)


def mark_picked() -> None:
    """Record that a picker changed the URL, so that other values in the URL count as left over, not as a link's."""
    st.session_state["picked"] = True


def write_choice(changes: Mapping[str, str | Sequence[str] | None]) -> None:
    """Write a user's choice to the URL; None or an empty list removes a parameter.

    The open case and the page number belong to the previous choice, so both are removed unless `changes` has them.
    """
    mark_picked()
    for name, value in {"page": None, "case": None, **changes}.items():
        st.query_params.pop(name, None)
        if value or value == "":
            st.query_params[name] = value if isinstance(value, str) else list(value)


def view(
    query: Callable[Concatenate[Store, Arguments], Result],
    *arguments: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Return the result of a function in `vlprobe.views`, cached until the store, tags or slices change."""
    current = store()
    page_store = _page_store.get()
    version = page_store.version if page_store else current.version()
    is_tagged = any(isinstance(value, Filter) and value.tagged for value in arguments)
    question_sets = [value for value in arguments if isinstance(value, QuestionSet) and is_tagged]
    annotated = tuple(annotations.version(current, each.key) for each in question_sets)
    moment = (current, version)
    slices = page_store.slices if page_store else SLICES.version(current)
    key = (current.address, version, annotated, slices, query, arguments, tuple(options.items()))

    @plugin_errors()
    def answer() -> Result:
        snapshot = _snapshots.get(moment, current.snapshot, lambda: current.version() == version)
        return query(snapshot, *arguments, **options)

    # If a run completes meanwhile, the answer includes it, but the version with which this page began does not.
    return _unshared(_answers.get(key, answer, lambda: moment in _snapshots))


def _unshared(answer: Result) -> Result:
    """Return a copy that a page can change without affecting others; the numbers are copied only when they change."""
    if isinstance(answer, pd.DataFrame):
        return cast(Result, answer.copy(deep=False))
    if type(answer) is tuple:
        return cast(Result, tuple(map(_unshared, answer)))
    return copy.copy(answer)


def model_name(name: str) -> str:
    """Return a model's name for display: its new name if it was renamed here, else its plain name."""
    return words.model_name(name, renamed())


def renamed() -> Mapping[str, str]:
    """Return the new names of models and datasets that were renamed here, by stored name."""
    if page_store := _page_store.get():
        return page_store.renamed
    return display_names.read(store())


def dataset_name(name: str) -> str:
    """Return a dataset's name for display. Show its stored name in a tooltip."""
    return words.dataset_name(name, renamed())


def model_labels(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that gives each model a unique label for a picker."""
    labels = words.distinct({name: model_name(name) for name in names})
    # The fallback is for names that the user typed
    return lambda name: labels.get(name) or model_name(name)


def counts(stored: "PageSubject", case_filter: Filter) -> dict[str, int]:
    """Count the cases that pass a filter by outcome, ignoring the filter's own outcome and order."""
    return view(
        views.cases.outcomes, stored.question_set, replace(case_filter, outcome="all", sort="worst")
    )


def n_passing(stored: "PageSubject", case_filter: Filter) -> int:
    """Return the number of cases that pass a filter, including its outcome."""
    return counts(stored, case_filter)[case_filter.outcome]


def plain(text: str) -> str:
    """Escape text so that Markdown shows it unchanged. Use it for names, captions and messages.

    Screen readers read the backslashes in labels aloud, so characters that Markdown ignores are not escaped.

    >>> plain("GPT-4V (pair_tuned)"), plain("1) -1 *a*")
    ('GPT-4V (pair_tuned)', '1\\\\) \\\\-1 \\\\*a\\\\*')
    """
    return LISTED.sub(r"\1\\\2", MARKDOWN.sub(r"\\\g<0>", text))


def link_docs(text: str) -> str:
    """Escape a message for Markdown, and turn the documentation pages that it names into links.

    >>> link_docs("See docs/edits.md, not my_docs/edits.md.")
    'See [docs/edits.md](docs?page=edits), not my_docs/edits.md.'
    """
    return DOCS_PAGE.sub(r"[docs/\1.md](docs?page=\1)", plain(text))


def quiet(text: str) -> None:
    """Draw a remark in smaller, gray text that still has enough contrast."""
    st.html(tag("p", text, class_="vp-quiet vp-small"))


@dataclass(frozen=True)
class PageSubject:
    """The subject of a page: a question set, with the models and the kind of question that the page shows.

    Attributes:
        question_set: The question set.
        models: Names of the models that the page shows, controls last.
        looks: The look of every stored model; a model looks the same on all pages.
        model: The selected model, such as the baseline of a comparison; "" on pages without one.
        kind: The selected kind of question; "" on pages without one.
        rivals: The models that `model` is compared with, in the order of choice.
    """

    question_set: QuestionSet
    models: tuple[str, ...]
    looks: Looks
    model: str = ""
    kind: str = ""
    rivals: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the question set."""
        return self.question_set.key

    @property
    def probe(self) -> str:
        """The name of the probe."""
        return self.question_set.probe

    @property
    def metrics(self) -> dict[str, Metric]:
        """The probe's metrics by name; if two share a label, their labels include the kind of question."""
        return tables.metrics(self.probe)

    @property
    def presentation(self) -> Presentation:
        """The probe's texts for pages."""
        return words.presentations()[self.probe]

    @property
    def kind_presentation(self) -> KindPresentation:
        """The texts for the selected kind of question."""
        return self.presentation.kind(self.kind)

    @property
    def compared(self) -> tuple[str, ...]:
        """The models in a comparison, the baseline first."""
        return (self.model, *self.rivals)

    @property
    def names(self) -> dict[str, str]:
        """Names for use in sentences, for the compared models or, on pages without a selected model, for all models."""
        return sentence_names(self.compared if self.model else self.models, renamed())


def pick_question_set(probe: str = "") -> PageSubject:
    """Draw a picker for the question sets of one probe or of all; if there are none, say so and stop the page."""
    table = view(views.runs.question_sets)
    table = table.loc[table["probe"] == probe] if probe else table
    if table.empty:
        st.info("No results yet. Run a test first.", icon=":material/info:")
        st.page_link("pages/home.py", label="Start with the demo", icon=":material/play_arrow:")
        st.stop()
    labels = set_labels(table)
    return page_subject(choose("Question set", "set", labels, next(iter(labels)), always=True))


def set_labels(table: pd.DataFrame) -> dict[str, str]:
    """Return a unique display name for each question set, by its key."""
    return words.set_labels(table, renamed())


def page_subject(key: str) -> PageSubject:
    """Return the question set with the given key and all its models as the subject of a page."""
    question_set = view(views.runs.question_set, key)
    looks = charts.styles.styles(view(views.runs.models))
    return PageSubject(question_set, tuple(ordered(question_set.models)), looks)


def choose(
    label: str,
    name: str,
    options: Mapping[str, str],
    default: str = "",
    *,
    segments: bool = False,
    always: bool = False,
    help_: str | None = None,
    disabled: bool = False,
    bare: bool = False,
    width: int | Literal["stretch"] = "stretch",
    suffix: str = "",
    on_change: Callable[[], None] | None = None,
) -> str:
    """Draw a picker whose value is stored in the URL, and return its value.

    Args:
        label: Label of the picker.
        name: Name of the URL parameter.
        options: Labels that the user sees, by the values used in the URL.
        default: Value if the URL lacks the parameter.
        segments: Whether to show the options side by side instead of in a list; for few and short options.
        always: Whether the URL names the default too, because the default may change over time.
        help_: A tooltip.
        disabled: Whether the picker is shown but cannot be changed.
        bare: Whether the label is only for screen readers, as in a sentence.
        width: Width in pixels.
        suffix: Suffix of the widget's key, for a second picker with the same name on a page.
        on_change: Function that is called after the choice has changed, before it is written to the URL.
    """
    linked = st.query_params.get(name, "")
    if name in CARRIED:
        always, default = True, carried(name, options, default)
    value = linked if linked in options else default
    if linked and linked not in options:
        report_missing(label, name, linked)
        del st.query_params[name]
    if name in CARRIED:
        carry(name, value)
    if always and linked != value:
        st.query_params[name] = value
    settings: dict[str, Any] = {"help": help_, "disabled": disabled, "segments": segments}
    if not segments:
        settings["width"] = width
    arguments = name, "" if always else default, suffix, on_change
    labels = words.distinct(options)
    return pick(label, name + suffix, labels, value, _write, *arguments, bare=bare, **settings)


def pick(
    label: str,
    key: str,
    options: Mapping[str, str],
    value: str,
    on_change: Callable[..., None],
    *arguments: object,
    bare: bool = False,
    segments: bool = False,
    **settings: Any,
) -> str:
    """Draw a picker that shows `value`, and return its value; `on_change` is called with the arguments.

    `options` has the label for each value; `bare` and `segments` have the same meaning as in `choose`.
    """
    st.session_state[key] = value
    settings |= {"label_visibility": "collapsed" if bare else "visible", "args": arguments}
    settings |= {"key": key, "format_func": options.__getitem__, "on_change": on_change}
    if segments:
        return st.segmented_control(label, list(options), required=True, **settings)
    return st.selectbox(label, list(options), **settings)


def carried(name: str, options: Container[str], default: str) -> str:
    """Return the previous page's choice if it is also available here, else the default."""
    value = st.session_state.get(f"carried_{name}", "")
    return value if value in options else default


def carry(name: str, value: str) -> None:
    """Remember a choice for the next pages, for as long as the browser tab is open."""
    st.session_state[f"carried_{name}"] = value


def address() -> str:
    """Return the URL of the current view, with every picker's choice."""
    return f"{st.context.url or ''}?{query()}"


def query(*without: str) -> str:
    """Return the URL's query string without the given parameters."""
    every = {name: st.query_params.get_all(name) for name in st.query_params if name not in without}
    return urlencode(every, doseq=True)


def search(label: str, name: str, placeholder: str) -> str:
    """Draw a text field whose value is stored in the URL, and return its text."""
    st.session_state[name] = st.query_params.get(name, "")
    return st.text_input(
        label, key=name, placeholder=placeholder, on_change=_write, args=(name, ""), max_chars=200
    ).strip()


def paginate(total: int, size: int, name: str = "page") -> int:
    """Draw page numbers, and return the page named in the URL, from 1."""
    page = page_number(total, size, name)
    if st.session_state.get(name, page) != page:  # the URL changed, or there are fewer pages now
        st.session_state[name] = page
    n_pages = max(1, -(-total // size))
    return st.pagination(n_pages, default=page, key=name, on_change=_write, args=(name, 1))


def page_number(total: int, size: int, name: str = "page") -> int:
    """Return the page named in the URL, limited to existing pages."""
    linked = st.query_params.get(name, "1")
    number = int(linked) if linked.isdecimal() and len(linked) < 9 else 1
    return min(max(number, 1), max(1, -(-total // size)))


def _write(
    name: str, default: object, suffix: str = "", on_change: Callable[[], None] | None = None
) -> None:
    """Write a picker's new value to the URL and return to the first page of results."""
    if on_change is not None:
        on_change()
    value = st.session_state[name + suffix]
    mark_picked()
    if name != "page":
        st.query_params.pop("page", None)
    if value == default:
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = str(value)


def attempt(action: Callable[..., object], *arguments: object) -> None:
    """Run a button's action; if it fails, show its error on the page."""
    try:
        action(*arguments)
    except VlprobeError as error:
        st.session_state["problem"] = str(error)
