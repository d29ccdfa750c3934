"""The shared state of pages: the cache folder, cached tables, and pickers whose choice is stored in the URL.

The URL is the only truth of a picker: a parameter that it omits has its default. So a link reopens
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
_snapshots = SingleFlightCache(4)  # 1.3 ms each, for every answer of a version
RESULTS = (  # parameters of the URL that name results; the others only change how these are shown
    *("set", "model", "kind", "base", "with", "other", "metric", "by", "type", "rule", "tag"),
    *("reader", "looker", "subset", "before", "control", "after"),
)
CARRIED = ("set", "model", "kind", "with")  # choices that are kept from page to page
NAMED = 80  # characters of an unknown name that are repeated
# Signs with a meaning in Markdown; some of them have none after a letter or digit, and "_" has none between two
MARKDOWN = re.compile(r"[\\`*\[\]!|<>$~:&]|(?<![^\W_])[-+#_]|_(?![^\W_])")
LISTED = re.compile(r"^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)
DOCS_PAGE = re.compile(r"(?<![\w/])docs/([\w/]+)\.md")
Arguments = ParamSpec("Arguments")  # of a view, after the store
Result = TypeVar("Result")
_unknown: contextvars.ContextVar["Callable[[str, str], None] | None"] = contextvars.ContextVar(
    "unknown", default=None
)


class PageStore(NamedTuple):
    """The store of a page, looked up once: each access to a file lets all other threads go first."""

    store: Store
    version: str  # of the store
    renamed: Mapping[str, str]  # what models and datasets are called here, by their stored names
    slices: tuple[int, int]  # version of the named slices


_page_store: contextvars.ContextVar[PageStore | None] = contextvars.ContextVar(
    "page_store", default=None
)


def store() -> Store:
    """The cache folder that this dashboard shows and writes to, the shipped results below it."""
    if page_store := _page_store.get():
        return page_store.store
    return _opened(store_module.DEFAULT, os.getcwd(), shipped.folders())


@functools.lru_cache(maxsize=8)  # 1 ms, and a new connection of DuckDB
def _opened(root: Path | str, folder: str, shipped_roots: tuple[Path, ...]) -> Store:
    """Opened once. A relative root is in `folder`."""
    return shipped.opened(root)


@contextlib.contextmanager
def fix_store_version() -> Iterator[None]:
    """Use one version of the store, looked up once, for everything that a page draws."""
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

    A choice that a changed picker leaves behind, such as the model of another question set, is not an error of a link.
    """
    linked = "picked" not in st.session_state and any(name in st.query_params for name in RESULTS)
    slot = st.empty()  # always: without it what follows would be mounted again one place further up
    token = _unknown.set(_warning(slot) if linked else None)
    try:
        yield
    finally:
        _unknown.reset(token)
        st.session_state.pop("picked", None)


def _warning(slot: DeltaGenerator) -> Callable[[str, str], None]:
    """A function that adds one more label and value to the warning in this slot."""
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
    """Add a result to the warning that the URL names and that is not stored."""
    if (add := _unknown.get()) and name in RESULTS:
        add(label, value)


def mark_picked() -> None:
    """Record that a picker changed the URL, so that its other values count as left over and not as a link's."""
    st.session_state["picked"] = True


def write_choice(changes: Mapping[str, str | Sequence[str] | None]) -> None:
    """Write a visitor's choice into the URL; None, or a list without values, removes a parameter.

    The open case and the page of cards belong to the previous choice: they are removed unless they are named.
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
    """Return the result of a function of `vlprobe.views`; cached until the store, tags or slices change."""
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

    # A run that is completed meanwhile is in the answer, and not in the version that this page began with.
    return _unshared(_answers.get(key, answer, lambda: moment in _snapshots))


def _unshared(answer: Result) -> Result:
    """Return a copy that a page can change without affecting others; numbers are copied when they change."""
    if isinstance(answer, pd.DataFrame):
        return cast(Result, answer.copy(deep=False))
    if type(answer) is tuple:
        return cast(Result, tuple(map(_unshared, answer)))
    return copy.copy(answer)


def model_name(name: str) -> str:
    """Return the name of a model on a page: its new name if it was renamed here, else its plain name."""
    return words.model_name(name, renamed())


def renamed() -> Mapping[str, str]:
    """Return the new names of models and datasets that were renamed here, by their stored names."""
    if page_store := _page_store.get():
        return page_store.renamed
    return display_names.read(store())


def dataset_name(name: str) -> str:
    """Return the name of a dataset on a page; its stored name belongs into a tooltip."""
    return words.dataset_name(name, renamed())


def model_labels(names: Iterable[str]) -> Callable[[str], str]:
    """Return the names of these models in a picker; no two are the same."""
    labels = words.distinct({name: model_name(name) for name in names})
    return lambda name: labels.get(name) or model_name(name)  # one that somebody typed


def counts(stored: "PageSubject", case_filter: Filter) -> dict[str, int]:
    """Count the cases that pass a filter by outcome, whichever outcome and order it names."""
    return view(
        views.cases.outcomes, stored.question_set, replace(case_filter, outcome="all", sort="worst")
    )


def n_passing(stored: "PageSubject", case_filter: Filter) -> int:
    """Count how many cases pass a filter with its outcome."""
    return counts(stored, case_filter)[case_filter.outcome]


def plain(text: str) -> str:
    """Text that Markdown shows unchanged: names, captions and messages are data.

    Screen readers read labels with their backslashes, so a sign that Markdown ignores gets none.

    >>> plain("GPT-4V (pair_tuned)"), plain("1) -1 *a*")
    ('GPT-4V (pair_tuned)', '1\\\\) \\\\-1 \\\\*a\\\\*')
    """
    return LISTED.sub(r"\1\\\2", MARKDOWN.sub(r"\\\g<0>", text))


def link_docs(text: str) -> str:
    """Return a message as Markdown that shows it unchanged, and links the pages of the documentation that it names.

    >>> link_docs("See docs/edits.md, not my_docs/edits.md.")
    'See [docs/edits.md](docs?page=edits), not my_docs/edits.md.'
    """
    return DOCS_PAGE.sub(r"[docs/\1.md](docs?page=\1)", plain(text))


def quiet(text: str) -> None:
    """A remark in smaller, grayer letters that still meet the contrast that eyes need."""
    st.html(tag("p", text, class_="vp-quiet vp-small"))


@dataclass(frozen=True)
class PageSubject:
    """The subject of a page: a question set, the models and kind of question that the page shows.

    Attributes:
        question_set: The question set.
        models: The models that the page shows, by name, controls last.
        looks: The look of every stored model: a model looks the same on all pages.
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
        """The probe's metrics by name; where two share a label, it names the kind of question."""
        return tables.metrics(self.probe)

    @property
    def presentation(self) -> Presentation:
        """The texts of the probe on pages."""
        return words.presentations()[self.probe]

    @property
    def kind_presentation(self) -> KindPresentation:
        """The texts of the selected kind on pages."""
        return self.presentation.kind(self.kind)

    @property
    def compared(self) -> tuple[str, ...]:
        """The models of a comparison, the baseline first."""
        return (self.model, *self.rivals)

    @property
    def names(self) -> dict[str, str]:
        """The names in sentences of the compared models; on pages without a selected model, of all models."""
        return sentence_names(self.compared if self.model else self.models, renamed())


def pick_question_set(probe: str = "") -> PageSubject:
    """Draw a picker of question sets, of one probe or of all; without any, say so and stop the page."""
    table = view(views.runs.question_sets)
    table = table.loc[table["probe"] == probe] if probe else table
    if table.empty:
        st.info("No results yet. Run a test first.", icon=":material/info:")
        st.page_link("pages/home.py", label="Start with the demo", icon=":material/play_arrow:")
        st.stop()
    labels = set_labels(table)
    return page_subject(choose("Question set", "set", labels, next(iter(labels)), always=True))


def set_labels(table: pd.DataFrame) -> dict[str, str]:
    """Return the names of question sets in pickers, by their keys: with plain names, no two alike."""
    return words.set_labels(table, renamed())


def page_subject(key: str) -> PageSubject:
    """Return the question set with this key and all its models as the subject of a page."""
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
    """Draw a picker that the URL names, and return its value.

    Args:
        label: Label of the picker.
        name: The URL's parameter.
        options: Values, as the URL has them, and what people read.
        default: Value if the URL lacks the parameter.
        segments: Side by side instead of a list; for few and short options.
        always: The URL names the default too, because the default changes with time.
        help_: A tooltip.
        disabled: Shown, but not to be changed.
        bare: The label is only for screen readers, as in a sentence.
        width: In pixels.
        suffix: Suffix of the widget's key, for a second picker of the same on a page.
        on_change: Called when the choice has changed, before the URL names it.
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
    """Draw a picker that shows the page's value, and return it; `on_change` gets the arguments.

    The options are values with what people read; `bare` and `segments` are those of `choose`.
    """
    st.session_state[key] = value
    settings |= {"label_visibility": "collapsed" if bare else "visible", "args": arguments}
    settings |= {"key": key, "format_func": options.__getitem__, "on_change": on_change}
    if segments:
        return st.segmented_control(label, list(options), required=True, **settings)
    return st.selectbox(label, list(options), **settings)


def carried(name: str, options: Container[str], default: str) -> str:
    """Return the choice of the previous page, if it is also available here."""
    value = st.session_state.get(f"carried_{name}", "")
    return value if value in options else default


def carry(name: str, value: str) -> None:
    """Take a choice along to the next page, for as long as the browser's tab is open."""
    st.session_state[f"carried_{name}"] = value


def address() -> str:
    """The address of what is seen, every choice of every picker in it."""
    return f"{st.context.url or ''}?{query()}"


def query(*without: str) -> str:
    """The choices in the address, as a URL has them, without those named."""
    every = {name: st.query_params.get_all(name) for name in st.query_params if name not in without}
    return urlencode(every, doseq=True)


def search(label: str, name: str, placeholder: str) -> str:
    """A line of text that the URL names."""
    st.session_state[name] = st.query_params.get(name, "")
    return st.text_input(
        label, key=name, placeholder=placeholder, on_change=_write, args=(name, ""), max_chars=200
    ).strip()


def paginate(total: int, size: int, name: str = "page") -> int:
    """Draw page numbers, and return the page that the URL names, 1 or more."""
    page = page_number(total, size, name)
    if st.session_state.get(name, page) != page:  # the address changed, or there are fewer now
        st.session_state[name] = page
    n_pages = max(1, -(-total // size))
    return st.pagination(n_pages, default=page, key=name, on_change=_write, args=(name, 1))


def page_number(total: int, size: int, name: str = "page") -> int:
    """Return the page that the URL names, limited to existing ones."""
    linked = st.query_params.get(name, "1")
    number = int(linked) if linked.isdecimal() and len(linked) < 9 else 1
    return min(max(number, 1), max(1, -(-total // size)))


def _write(
    name: str, default: object, suffix: str = "", on_change: Callable[[], None] | None = None
) -> None:
    """Write a changed picker into the URL; paging begins again after any change."""
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
    """Run the action of a button, and show its error on the page instead of breaking it."""
    try:
        action(*arguments)
    except VlprobeError as error:
        st.session_state["problem"] = str(error)
