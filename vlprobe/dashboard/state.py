"""State that pages share: the store, cached results of queries, and pickers whose choices are stored in the URL.

Only the URL determines a picker's value, and a missing parameter means the default. A link therefore
opens exactly what its sender saw.
"""

import contextlib
import contextvars
import copy
import functools
import os
import re
import shlex
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, cast, overload
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
from vlprobe.render.sentences import counted, sentence_names, shorten
from vlprobe.storage import annotations, display_names, shipped
from vlprobe.storage import store as store_module
from vlprobe.storage.bookmarks import SLICES
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.types import Metric
from vlprobe.types.presentation import KindPresentation, Presentation
from vlprobe.views.filter import Filter
from vlprobe.views.leaderboard import LeaderboardColumn
from vlprobe.views.records import QuestionSetRow
from vlprobe.views.runs import QuestionSet

# A page run again saves 10 to 130 ms of CPU, and 1.3 s on Rankings. Streamlit's own cache would pickle each answer
# for each visitor.
_answers = SingleFlightCache(1000)
_snapshots = SingleFlightCache(4)  # 1.3 ms each, shared by all answers for one version
RESULTS = (  # URL parameters that name results; all others only change how results are shown
    *("set", "model", "kind", "base", "with", "other", "metric", "by", "type", "rule", "tag"),
    *("region", "not", "reader", "looker", "subset", "before", "control", "after"),
)
CARRIED = ("set", "model", "kind", "with")  # choices that carry over from page to page
NAMED = 80  # maximum characters of an unknown name in a message
# Signs with a meaning in Markdown; some of them have none after a letter or digit, and "_" has none between two
MARKDOWN = re.compile(r"[\\`*\[\]!|<>$~:&]|(?<![^\W_])[-+#_]|_(?![^\W_])")
LISTED = re.compile(r"^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)
DOCS_PAGE = re.compile(r"(?<![\w/])docs/([\w/]+)\.md")
Arguments = ParamSpec("Arguments")  # arguments of a view, after the store or question set
Result = TypeVar("Result")
# Slot of the page's warning about unknown names, and the names
_unknown: contextvars.ContextVar[tuple[DeltaGenerator, list[str]] | None] = contextvars.ContextVar(
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
    """Return the store that this dashboard shows and writes to, combined with the bundled results."""
    if page_store := _page_store.get():
        return page_store.store
    return _opened(store_module.DEFAULT, os.getcwd(), shipped.folders())


def command(*words: str) -> str:
    """Return the command for a terminal with the given words, on this dashboard's results and pictures."""
    location = store().address
    # Not compared with DEFAULT: another terminal does not have this server's VLPROBE_CACHE
    is_default = Path(location).absolute() == Path("cache").absolute()
    return shlex.join(["vlprobe", *(() if is_default else ("--cache", location)), *words])


@functools.lru_cache(maxsize=8)  # opening takes 1 ms and a new DuckDB connection
def _opened(root: Path | str, folder: str, shipped_roots: tuple[Path, ...]) -> Store:
    """Open a store once and cache it. A relative root is relative to `folder`."""
    return shipped.opened(root)


@contextlib.contextmanager
def fix_store_version() -> Iterator[None]:
    """Look up the store's version once, and use it for everything that is drawn inside the block."""
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
    """Draw a warning above a page if its link names results that are not stored here.

    Values that are left over after the user changed a picker, such as a model from another question set, are ignored.
    """
    linked = "picked" not in st.session_state and any(name in st.query_params for name in RESULTS)
    # Always drawn; otherwise, all elements below would move up and be mounted again
    slot = st.empty()
    token = _unknown.set((slot, []) if linked else None)
    try:
        yield
    finally:
        _unknown.reset(token)
        st.session_state.pop("picked", None)


def report_missing(label: str, name: str, value: str) -> None:
    """Add a name in the URL to the page's warning about results that are not stored here."""
    if (unknown := _unknown.get()) and name in RESULTS:
        slot, unknown_names = unknown
        short = plain(printable(shorten(value, NAMED)))
        unknown_names.append(f"{label.lower()} “{short}”")
        slot.warning(
            f"This link refers to results that were not found: {', '.join(unknown_names)}. The "
            "page shows the available results instead.",
            icon=":material/link_off:",
        )


def mark_picked() -> None:
    """Record that the user changed a picker, so that unknown values in the URL are not reported as a broken link."""
    st.session_state["picked"] = True


def write_choice(changes: Mapping[str, str | Sequence[str] | None]) -> None:
    """Write a user's choice to the URL. None or an empty list removes a parameter.

    The open case and the page number belong to the previous choice. They are removed unless `changes` sets them, and
    last: if the case closed first, Back would not lead to it (`history.js`).
    """
    mark_picked()
    for name, value in {
        **changes,
        **{name: changes.get(name) for name in ("page", "case")},
    }.items():
        st.query_params.pop(name, None)
        if value or value == "":
            st.query_params[name] = value if isinstance(value, str) else list(value)


@overload
def view(
    query: Callable[Concatenate[Store, Arguments], Result],
    *arguments: Arguments.args,
    **options: Arguments.kwargs,
) -> Result: ...


@overload
def view(
    query: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
) -> Result: ...


def view(query: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function in `vlprobe.views`, on a question set if one is given, else on the store. The result is cached
    until the store, tags or named slices change.
    """
    current = store()
    page_store = _page_store.get()
    version = page_store.version if page_store else current.version()
    is_tagged = query is views.facets.facets or any(
        isinstance(value, Filter) and value.reads_tags for value in arguments
    )
    question_sets = [value for value in arguments if isinstance(value, QuestionSet) and is_tagged]
    annotated = tuple(annotations.version(current, each.key) for each in question_sets)
    moment = (current, version)
    slices = page_store.slices if page_store else SLICES.version(current)
    key = (current.address, version, annotated, slices, query, arguments, tuple(options.items()))

    @plugin_errors()
    def answer() -> Any:
        snapshot = _snapshots.get(moment, current.snapshot, lambda: current.version() == version)
        subject, others = snapshot, arguments
        if arguments and isinstance(arguments[0], QuestionSet):
            subject, others = replace(arguments[0], store=snapshot), arguments[1:]
        return _without_snapshot(query(subject, *others, **options), current)

    # If a run completes meanwhile, the answer includes it, but the version with which this page began does not.
    return _unshared(_answers.get(key, answer, lambda: moment in _snapshots))


def _without_snapshot(answer: Any, current: Store) -> Any:
    """Bind the question sets in an answer to the store. With a snapshot, cached ones would keep all manifests of its
    version in memory.
    """
    if isinstance(answer, QuestionSet):
        return replace(answer, store=current)
    if isinstance(answer, LeaderboardColumn):
        return replace(answer, question_set=replace(answer.question_set, store=current))
    if type(answer) in (list, tuple):
        return type(answer)(_without_snapshot(each, current) for each in answer)
    return answer


def _unshared(answer: Result) -> Result:
    """Return a copy of a cached result that a page can modify. A DataFrame's data is copied only on modification."""
    if isinstance(answer, pd.DataFrame):
        return cast(Result, answer.copy(deep=False))
    if type(answer) is tuple:
        return cast(Result, tuple(map(_unshared, answer)))
    return copy.copy(answer)


def model_name(name: str) -> str:
    """Return a model's display name: the one that users gave it, or else a plain form of its stored name."""
    return words.model_name(name, renamed())


def renamed() -> Mapping[str, str]:
    """Return the display names that users gave to models and datasets, by stored name."""
    if page_store := _page_store.get():
        return page_store.renamed
    return display_names.read(store())


def dataset_name(name: str) -> str:
    """Return a dataset's display name. Pages that use it should show the stored name in a tooltip."""
    return words.dataset_name(name, renamed())


def model_labels(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that maps model names to labels for a picker, all of them different."""
    labels = words.distinct({name: model_name(name) for name in names})
    # The fallback is for names that the user typed
    return lambda name: labels.get(name) or model_name(name)


def counts(subject: "PageSubject", case_filter: Filter) -> dict[str, int]:
    """Count the cases that pass a filter, for each outcome. The filter's own outcome and order are ignored."""
    return view(
        views.cases.outcomes,
        subject.question_set,
        replace(case_filter, outcome="all", sort="worst"),
    )


def n_passing(subject: "PageSubject", case_filter: Filter) -> int:
    """Count the cases that pass a filter, including its outcome."""
    return counts(subject, case_filter)[case_filter.outcome]


def plain(text: str) -> str:
    """Escape text, such as names, captions and messages, so that Markdown shows it unchanged.

    Screen readers read the backslashes in labels aloud, so characters that Markdown ignores are not escaped.

    >>> plain("GPT-4V (pair_tuned)"), plain("1) -1 *a*")
    ('GPT-4V (pair_tuned)', '1\\\\) \\\\-1 \\\\*a\\\\*')
    """
    return LISTED.sub(r"\1\\\2", MARKDOWN.sub(r"\\\g<0>", text))


def link_docs(text: str) -> str:
    """Escape a message for Markdown, and add links to the documentation pages that it names.

    >>> link_docs("See docs/edits.md, not my_docs/edits.md.")
    'See [docs/edits.md](docs?page=edits), not my_docs/edits.md.'
    """
    return DOCS_PAGE.sub(r"[docs/\1.md](docs?page=\1)", plain(text))


def quiet(text: str) -> None:
    """Draw a remark in smaller, gray text that still has enough contrast."""
    st.html(tag("p", text, class_="vp-quiet vp-small"))


@dataclass(frozen=True)
class PageSubject:
    """The question set, models and kind of question that a page is about.

    Attributes:
        question_set: The question set.
        models: Names of the models that the page shows, controls last.
        looks: The color and symbol of every stored model, which are the same on all pages.
        model: The selected model, such as the baseline in a comparison; "" on pages without one.
        kind: The selected kind of question; "" on pages without one.
        rivals: The models that `model` is compared with, in the order of choice.
        types: The types of edit that are compared; empty means all.
    """

    question_set: QuestionSet
    models: tuple[str, ...]
    looks: Looks
    model: str = ""
    kind: str = ""
    rivals: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

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
        """The probe's metrics by name. If two have the same label, the kind of question is added to it."""
        return tables.metrics(self.probe)

    @property
    def presentation(self) -> Presentation:
        """The probe's titles, descriptions and other text for pages."""
        return words.presentations()[self.probe]

    @property
    def kind_presentation(self) -> KindPresentation:
        """The labels and other text for the selected kind of question."""
        kind = self.presentation.kind(self.kind)
        scope = f" of {counted(len(self.types), 'type')}" * bool(self.types)
        return replace(kind, lie=f"{kind.wrong_side}{scope}") if scope else kind

    @property
    def compared(self) -> tuple[str, ...]:
        """The models in a comparison, the baseline first."""
        return (self.model, *self.rivals)

    @property
    def names(self) -> dict[str, str]:
        """Display names for use in sentences: of the compared models or, if no model is selected, of all models."""
        return sentence_names(self.compared if self.model else self.models, renamed())


def ranked_models(subject: PageSubject) -> list[str]:
    """Sort the models by share or movement, lowest first. Controls and models that failed a check come last."""
    shares = view(views.paired_tests.model_shares, subject.question_set, subject.kind)
    ranked = sorted(shares, key=lambda each: (not each.is_fit, isnan(each.share), each.share))
    return [each.model for each in ranked]


def pick_question_set(probe: str = "", default: str = "") -> PageSubject:
    """Draw a picker for the question sets of one probe or of all. There must be one."""
    table = view(views.runs.question_sets)
    labels = set_labels(table.loc[table["probe"] == probe] if probe else table)
    default = default or next(iter(labels))
    return page_subject(choose("Question set", "set", labels, default, always=True))


def set_labels(table: pd.DataFrame) -> dict[str, str]:
    """Return a unique label for each question set, by key."""
    return words.set_labels(table, renamed())


def short_set_labels(rows: Sequence[QuestionSetRow]) -> dict[str, str]:
    """Return a short unique label for each question set, by key: its dataset and probe."""
    labels = {
        row.case_key: f"{dataset_name(row.dataset)} · {words.probe_name(row.probe, row.dataset)}"
        for row in rows
    }
    return words.with_keys(labels)


def page_subject(key: str) -> PageSubject:
    """Load a question set, and return it with all its models as the subject of a page."""
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
    bare: bool = False,
    width: int | Literal["stretch"] = "stretch",
    suffix: str = "",
    on_change: Callable[[], object] | None = None,
) -> str:
    """Draw a picker whose value is stored in the URL, and return the value.

    Args:
        label: Label of the picker.
        name: Name of the URL parameter.
        options: Labels that the user sees, by the values used in the URL.
        default: Value if the URL lacks the parameter.
        segments: Whether to show the options side by side instead of in a list. Suits a few short options.
        always: Whether to write the default to the URL too, because the default may change over time.
        help_: A tooltip.
        bare: Whether to hide the label except from screen readers, for pickers in a sentence.
        width: Width in pixels.
        suffix: Suffix of the widget's key, for a second picker with the same name on a page.
        on_change: Function that is called after the choice has changed, before it is written to the URL.
    """
    value = linked_choice(label, name, options, default, always=always)
    settings: dict[str, Any] = {"help": help_, "segments": segments}
    if not segments:
        settings["width"] = width
    is_written = always or name in CARRIED
    arguments = name, "" if is_written else default, suffix, on_change
    labels = words.distinct(options)
    return pick(label, name + suffix, labels, value, _write, *arguments, bare=bare, **settings)


def linked_choice(
    label: str, name: str, options: Mapping[str, str], default: str, *, always: bool = False
) -> str:
    """Return the value of a picker in the URL, else the one on the previous page, else the default; see `choose`."""
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
    return value


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
    """Draw a picker that shows `value`, and return its value. After a change, `on_change` is called with `arguments`.

    `options` has the label for each value; `bare` and `segments` have the same meaning as in `choose`.
    """
    st.session_state[key] = value
    settings |= {"label_visibility": "collapsed" if bare else "visible", "args": arguments}
    settings |= {"key": key, "format_func": options.__getitem__, "on_change": on_change}
    if segments:
        return st.segmented_control(label, list(options), required=True, **settings)
    return st.selectbox(label, list(options), **settings)


def carried(name: str, options: Container[str], default: str) -> str:
    """Return the user's choice on the previous page if it is among the options, or else the default."""
    value = st.session_state.get(f"carried_{name}", "")
    return value if value in options else default


def carry(name: str, value: str) -> None:
    """Remember a choice for other pages, as long as the browser tab is open. A page's default model is no choice."""
    is_choice = name != "model" or value != st.session_state.get("default_model")
    st.session_state[f"carried_{name}"] = value if is_choice else ""


def address() -> str:
    """Return the URL of the current view, with every picker's choice."""
    return f"{st.context.url or ''}?{query()}"


def query(*without: str) -> str:
    """Return the URL's query string without the given parameters."""
    every = {name: st.query_params.get_all(name) for name in st.query_params if name not in without}
    return urlencode(every, doseq=True)


def search(label: str, name: str, placeholder: str, help_: str | None = None) -> str:
    """Draw a text field whose value is stored in the URL, and return its text. `help_` is its tooltip."""
    st.session_state[name] = st.query_params.get(name, "")
    return st.text_input(
        label,
        key=name,
        placeholder=placeholder,
        on_change=_write,
        args=(name, ""),
        max_chars=200,
        help=help_,
    ).strip()


def paginate(total: int, size: int, name: str = "page") -> int:
    """Draw page numbers, and return the number of the current page, which is stored in the URL and counted from 1."""
    page = page_number(total, size, name)
    if st.session_state.get(name, page) != page:  # the URL changed, or there are fewer pages now
        st.session_state[name] = page
    n_pages = max(1, -(-total // size))
    return st.pagination(n_pages, default=page, key=name, on_change=_write, args=(name, 1))


def page_number(total: int, size: int, name: str = "page") -> int:
    """Return the page number in the URL, limited to existing pages."""
    linked = st.query_params.get(name, "1")
    number = int(linked) if linked.isdecimal() and len(linked) < 9 else 1
    return min(max(number, 1), max(1, -(-total // size)))


def _write(
    name: str, default: object, suffix: str = "", on_change: Callable[[], object] | None = None
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
    """Run a button's action. If it fails with a VlprobeError, the page shows the error when it is drawn again."""
    try:
        action(*arguments)
    except VlprobeError as error:
        st.session_state["problem"] = str(error)
