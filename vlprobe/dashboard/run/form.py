"""The form on the Run page: tests, and a card each for models, perturbations and pictures.

All input is checked before a run starts.

The options of probes and of the runner are declared as data, and the form draws a field for each. The fields are in
expanders and are drawn only while their expander is open. Their values, and the choices in the three steps, are kept
when an expander is closed and when the user leaves the page.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import registry, views
from vlprobe.dashboard import widgets
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.jobs import begin, span, under_way
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.run import dropped, gallery, progress
from vlprobe.dashboard.state import dataset_name, link_docs, model_name, plain, quiet, store, view
from vlprobe.dashboard.widgets import draw_row, error_text, fold, open_folds, press
from vlprobe.datasets import bundled, demo
from vlprobe.datasets.file_formats import read_head
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models import scores
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.frozen import pick_device
from vlprobe.models.score_file import SUFFIXES
from vlprobe.probes.fit import check_name_fits
from vlprobe.registry import endpoints
from vlprobe.render.charts.styles import SHIPPED
from vlprobe.render.html.elements import mark, tag
from vlprobe.render.sentences import count_word, drawn_only, joined, listed
from vlprobe.render.words import (
    SHIPPED_MODELS,
    distinct,
    presentations,
    probe_name,
    value_label,
)
from vlprobe.runs import ray_cluster, verify
from vlprobe.runs.answers import answered_probes
from vlprobe.runs.request import Request
from vlprobe.runs.settings import SETTINGS
from vlprobe.storage import files
from vlprobe.storage.access import RAY
from vlprobe.types import Item, Picture
from vlprobe.types.options import Option, parse_options
from vlprobe.views.progress import NOTHING, UNKNOWN, expected, in_words
from vlprobe.views.records import RunRow

CARDS = tuple(name for name in SHIPPED_MODELS if name.startswith("demo:"))
DRAWN = "Generated on this computer"
MOST_DATASETS = 10  # maximum number of datasets shown side by side
UNSPOKEN = re.compile(r"[\\`*_{}\[\]<>!|#~$:]+")  # Markdown characters, which could load a picture
OWN_MODEL = "hf:google/siglip-base-patch16-224"
MODEL_NOUNS = {
    "control": "control with known correct values",
    "demo": "demo model for drawn scenes",
    "embeddings": "imported embeddings",
    "hf": "dual encoder from Hugging Face",
    "hf-gen": "generative model from Hugging Face",
    "hf-itm": "matching head from Hugging Face",
    "http": "model on a server",
    "openclip": "OpenCLIP model",
    "published": "published answers",
    "py": "plug-in",
    "scores": "imported scores",
    "st": "sentence-transformers model",
}
KIND_LABELS = {  # of LGIP's kinds, whose types are not chosen one by one
    "paraphrase": "Rewording",
    "flip": "Wrong color, number or object",
    "combined": "Both at once",
}
OWN_DATA = "/path/to/folder"
MODELS_HELP = (
    "Type a model name: `openclip:NAME/TAG` for any OpenCLIP model, or "
    "`openclip:NAME@CHECKPOINT` to load its weights from a file; `hf:FOLDER` for a Hugging Face "
    "model; `scores:FILE` or `embeddings:FILE` for imported scores or embeddings (`vlprobe ask` "
    "writes the questions); `http:URL#MODEL` for a model on a server that the owner of this "
    "dashboard allowed with `--api URL`."
)
COLUMNS = 3
PAUSE = "400ms"  # pause in typing after which a path is read
DROP_NOTE = "run_drop_note"  # session key
PREVIEWED, PREVIEW_SIDE = 4, 112  # pictures of a dataset, and pixels of each
THUMBNAIL = 56  # pixels on the page of each picture of a listed dataset: four in a row
CARD_COLUMNS = 2  # fields in a row of the card with the options of tests
WIDE = ("choice", "list")  # types of options drawn first
EVERYWHERE = ("auto", "cpu")  # devices that need no check
NO_CHANGES = "Results of earlier runs are on the other pages. Install vlprobe to run your own models and pictures."


def draw() -> None:
    """Draw the form. Errors are drawn on the page, so that the list of jobs below the form stays usable."""
    st.title("Run a test", anchor=False)
    stays = "All data stays on this computer"
    if servers := ", ".join(endpoints.named()):
        stays += f", except requests to models on {servers}"
    quiet(
        f"{stays}. You can close this page: the run continues, and finished work is never repeated."
    )
    if changes(NO_CHANGES):
        _draw()


@widgets.show_errors()
def _draw() -> None:
    """Draw the tests, three cards, the settings and, at the bottom, a Start button with an error or the estimated
    duration.
    """
    probes = _pick_probes()
    is_wide = "gallery" in open_folds() or any(name.startswith("how_") for name in open_folds())
    left, middle, right = st.columns([6, 11 if is_wide else 6, 6], gap="small")
    with left, _step("Models", "who") as below:
        models = _pick_models()
        with below:
            quiet(f"{len(models)} model{'' if len(models) == 1 else 's'}")
    limit = [option for option in SETTINGS if option.name == "limit"]
    with right, _step("Pictures", "which") as below:
        _draw_fields(limit, "run", 1)
        dataset = _pick_dataset(below, probes, models)
    with middle, _step("Perturbations", "what"):
        shown = partial(gallery.draw, dataset, "pictures" in probes)
        fold("gallery", "Edits, before and after", "compare", shown)
        typed = _draw_options(probes)
    # Visitors can choose Ray only if the owner named a cluster
    hidden = ("limit",) if os.environ.get(RAY) else ("limit", "executor")
    described = [option for option in SETTINGS if option.name not in hidden]
    settings = _fold_of_fields("machine", "Advanced", [described], "run", COLUMNS)
    settings |= _kept(limit, "run")
    with st.bottom:
        progress.draw_state(under_way())  # the panel at the top of the page may be out of view
        with draw_row("run_bar"):
            _bar(models, dataset, typed, settings)


@contextmanager
def _step(title: str, key: str) -> Iterator[DeltaGenerator]:
    """Draw one card of the form with its title. Yields an empty slot below the title."""
    with st.container(border=True, key=f"step_{key}", height="stretch"):
        st.subheader(title, anchor=False)
        yield st.empty()


def _card(column: DeltaGenerator, key: str, title: str, text: str) -> bool:
    """Draw a card with a check box, and return whether it is checked. `text` is HTML.

    The card draws the title itself, and the check box has a hidden label without Markdown characters, which screen
    readers would read aloud.
    """
    with column.container(border=True, key=f"card_{key}", height="stretch"):
        name = UNSPOKEN.sub(" ", title)
        is_chosen = st.checkbox(
            name, key=key, label_visibility="collapsed", persist_state="session"
        )
        st.html(tag("strong", title, class_="vp-card-title") + text)
    return is_chosen


def _pick_models() -> tuple[str, ...]:
    """Draw cards for the bundled models, and a field for other models. Returns the chosen names."""
    names = []
    grid = st.grid(min_column_width=180, gap="small", key="who_cards")
    for name in CARDS:
        words = f"{mark(SHIPPED[name])} {tag('span', SHIPPED_MODELS[name][1])}"
        text = f'<p class="vp-quiet vp-small">{words}</p>'
        if _card(grid, f"run_model_{name}", model_name(name), text):
            names.append(name)
    others = st.multiselect(
        "More models",
        _known_names("models"),
        key="run_models",
        accept_new_options=True,
        select_all=False,
        placeholder="Choose, or type a name",
        persist_state="session",
    )
    typed = st.text_input(
        "Your model (name, folder or file of scores)",
        key="run_own_model",
        placeholder=OWN_MODEL,
        help=MODELS_HELP,
        persist_state="session",
        live=PAUSE,
    ).strip()
    is_file = typed.partition("+")[0].lower().endswith(SUFFIXES)
    if is_file and typed.partition(":")[0] not in MODEL_NOUNS:
        typed = f"scores:{typed}"
    if typed:
        quiet(_recognized(typed))
    others = [*others, typed] if typed else others
    return tuple(dict.fromkeys([*names, *(name.strip() for name in others)]))


def _recognized(name: str) -> str:
    """Describe what kind of model a name or path stands for. The bar explains why one cannot be used."""
    try:
        parsed = registry.parse_name("models", name)
        parsed.check()
        where = files.parse_path(name.partition(":")[2].partition("+")[0])
        place = ", a folder on this computer" if where.is_dir() else ""
        place = ", a file on this computer" if where.is_file() else place
    except (VlprobeError, OSError):
        return "Not recognized yet."
    noun = MODEL_NOUNS.get(parsed.family.PREFIX, "model from a paper")
    return f"Recognized: {noun}{place}."


def _pick_probes() -> tuple[str, ...]:
    """Draw a check box for each probe in a row above the cards. Returns the chosen probes."""
    every = presentations()
    names = []
    with st.container(horizontal=True, key="tests", vertical_alignment="center", gap="small"):
        for name, probe in every.items():
            is_first = name == next(iter(every))
            settings: dict[str, Any] = {"key": f"run_probe_{name}", "persist_state": "session"}
            label = UNSPOKEN.sub(" ", probe.name)
            if st.checkbox(label, is_first, help=plain(probe.asks), **settings):
                names.append(name)
        chosen = {f"run_probe_{name}": True for name in every}
        label, change = f"All {count_word(len(every))}", (st.session_state.update, chosen)
        press(label, *change, icon="done_all", key="all_probes", type="tertiary")
        quiet(f"{len(names)} of {len(every)} tests")
    if len(names) == 1:
        quiet(f"{every[names[0]].name}: {every[names[0]].asks}")
    return tuple(names)


def _pick_dataset(
    below: DeltaGenerator, chosen_probes: Sequence[str], models: Sequence[str]
) -> str:
    """Draw the pictures to choose, with a note if `models` were trained on drawings and the pictures are photographs.
    Returns the name of a dataset, or "" for the scenes drawn for each probe.
    """
    drawn = {registry.load_probe(name).dataset for name in chosen_probes}
    drawn_for_others = {registry.load_probe(name).dataset for name in registry.names("probes")}
    made_for = min(drawn) if len(drawn) == 1 else "demo"
    hidden = drawn if len(chosen_probes) == 1 else drawn_for_others
    options = ["", *(name for name in _known_names("datasets") if name not in hidden)]
    labels = distinct({name: dataset_name(name or made_for) for name in options})
    picked = _pick_pictures(options, labels)
    forms = ", ".join(f"`{name}`" for name in registry.names("datasets") if registry.is_form(name))
    typed = st.text_input(
        "Your pictures (folder or file)",
        key="run_own",
        placeholder=OWN_DATA,
        help=f"The path to your file or folder. It replaces the dataset. Forms: {forms}.",
        persist_state="session",
        live=PAUSE,
    ).strip()
    st.file_uploader(
        "Or drop a folder of pictures with their captions, or a CSV with its pictures",
        accept_multiple_files=True,
        key="run_files",
        on_change=_drop,
        help="The files are copied to the cache. `vlprobe remove` deletes them together with the "
        "last run that uses them.",
    )
    if note := st.session_state.get(DROP_NOTE):
        quiet(note)
    if prefix := registry.prefix_of_path(typed):
        typed = f"{prefix}:{typed}"
    if typed:
        _preview(typed)
    name = typed or picked or ""
    shown = name or made_for
    is_drawn = shown.startswith("demo")
    toys = [model_name(model) for model in models if model in CARDS and not is_drawn]
    with below.container():
        quiet(joined(f"{dataset_name(shown)}.", drawn_only(toys, len(models))))
        # Drawing the scenes of other demo datasets takes time; the bar shows why a dataset cannot be read
        if not typed and (shown == "demo" or not is_drawn):
            with suppress(VlprobeError, OSError):
                _draw_first(gallery.first_items(shown), THUMBNAIL)
    return name


def _draw_first(items: Sequence[Item], width: int) -> None:
    """Draw the first few pictures, those of PREVIEW_SIDE pixels with their captions."""
    names = {cast(Picture, item.image).name: "".join(item.captions[:1])[:80] for item in items}
    shown = {large_picture(name, PREVIEW_SIDE): names[name] for name in list(names)[:PREVIEWED]}
    shown.pop("", None)  # pictures that cannot be read
    captions = list(map(plain, shown.values())) if width == PREVIEW_SIDE else None
    if shown:
        st.image(list(shown), captions, width=width, alt=list(shown.values()))


def _drop() -> None:
    """Keep the dropped files, and make them the typed dataset. If they cannot be used, the choice stays."""
    st.session_state[DROP_NOTE] = ""
    if not (uploads := st.session_state["run_files"]):
        return
    try:
        store().require_local_writable()
        name, left_out = dropped.keep(uploads, store().root)
    except VlprobeError as error:
        st.session_state[DROP_NOTE] = error_text(error)
        return
    st.session_state["run_own"] = name
    if left_out:
        more = f" and {len(left_out) - 1:,} more" if len(left_out) > 1 else ""
        st.session_state[DROP_NOTE] = f"Skipped files that are not pictures: {left_out[0]}{more}."
    try:
        verify.remove_unused_drops(store())
    except VlprobeError as error:
        st.session_state[DROP_NOTE] = f"{st.session_state[DROP_NOTE]} {error_text(error)}".strip()


def _preview(name: str) -> None:
    """Draw the number of pictures in a dataset and the first few. The bar shows why one cannot be read."""
    try:
        n_items, n_pictures, pictured = gallery.pictured_items(name, str(store().root))
    except (VlprobeError, OSError):
        return
    quiet(f"{views.runs.extent(n_items, n_pictures)} with captions.")
    _draw_first(pictured, PREVIEW_SIDE)


def _pick_pictures(options: Sequence[str], labels: Mapping[str, str]) -> str | None:
    """Draw the dataset picker: options side by side or, if there are many, a searchable list. Returns the choice.

    Nothing is chosen while the user's own path is in use, and a choice removes the path.
    """
    label, key = "Pictures and captions", "run_dataset"
    if st.session_state.get("run_own", "").strip():
        st.session_state[key] = None  # the path below replaces the dataset
    elif st.session_state.get(key) not in options:
        st.session_state[key] = ""
    settings: dict[str, Any] = {"key": key, "persist_state": "session", "index": None}
    settings["on_change"] = lambda: st.session_state.update(run_own="")
    if len(options) > MOST_DATASETS:
        names = {name: f"{labels[name]} · {name}" if name else labels[name] for name in options}
        return st.selectbox(label, options, format_func=names.__getitem__, **settings)
    names = {name: plain(labels[name]) for name in options}
    captions = [plain(name) or DRAWN for name in options]
    return st.radio(label, options, format_func=names.__getitem__, captions=captions, **settings)


def _draw_options(chosen_probes: Sequence[str]) -> dict[str, dict[str, object]]:
    """Draw the types of perturbation of each chosen probe, and an expander with its other options. Returns the typed
    values by probe and option name.
    """
    typed: dict[str, dict[str, object]] = {name: {} for name in chosen_probes}
    for name in chosen_probes:
        if described := registry.load_probe(name).options:
            label = f"Options for {plain(presentations()[name].name)}"
            prefix = f"run_{name}"
            lists = [option for option in described if option.type in WIDE]
            others = [option for option in described if option not in lists]
            types = [one for one in lists if one.type == "list" and str in map(type, one.choices)]
            _draw_fields(types, prefix, 1)
            groups = [*([option] for option in lists if option not in types), others]
            more = _fold_of_fields(f"how_{name}", label, groups, prefix, CARD_COLUMNS)
            typed[name] = _kept(types, prefix) | more
    return typed


def _fold_of_fields(
    name: str, label: str, groups: Sequence[Sequence[Option]], prefix: str, width: int
) -> dict[str, object]:
    """Draw an expander with a field for each option, and return the typed values.

    Args:
        name: Name of the expander in the URL.
        label: Title of the expander. The number of values that differ from the defaults is added to it.
        groups: Groups of options. Each group begins a new row.
        prefix: Prefix for the keys of the fields.
        width: Number of fields in a row.

    Returns:
        The typed values by option name. Fields that were never drawn are left out, because they have default values.
    """
    options = [option for group in groups for option in group]
    defaults = {option.name: _typed(option, _default(option)) for option in options}
    values = _kept(options, prefix)
    n_changed = sum(values[each] != defaults[each] for each in values)
    changes = f" · {n_changed} changed" if n_changed else ""

    def draw_groups() -> dict[str, object]:
        for group in groups:
            _draw_fields(group, prefix, width)
        return _kept(options, prefix)

    return fold(name, label + changes, "tune", draw_groups) or values


def _kept(options: Sequence[Option], prefix: str) -> dict[str, object]:
    """Return the typed values of all fields that were drawn in this session, by option name."""
    state, keys = st.session_state, {option.name: f"{prefix}_{option.name}" for option in options}
    drawn = [option for option in options if keys[option.name] in state]
    return {option.name: _typed(option, state[keys[option.name]]) for option in drawn}


def _draw_fields(options: Sequence[Option], prefix: str, width: int) -> None:
    """Draw a field for each option, with `width` fields per row."""
    for start in range(0, len(options), width):
        columns = st.columns(min(width, len(options)), vertical_alignment="bottom")
        for option, column in zip(options[start : start + width], columns, strict=False):
            key = f"{prefix}_{option.name}"
            if key not in st.session_state:
                st.session_state[key] = _default(option)
            _field(column, option, key)


def _field(column: DeltaGenerator, option: Option, key: str) -> None:
    """Draw a field that fits the option's type. Its initial value is the one in the session."""
    common: dict[str, Any] = {"key": key, "help": option.help, "persist_state": "session"}
    choices = _choices(option)
    if option.type == "flag":
        column.toggle(option.label, **common)
    elif option.type == "number":
        limits = [limit for limit in (option.minimum, option.off_value) if limit is not None]
        least = min(limits, default=None)
        column.number_input(option.label, least, option.maximum, step=1, **common)
    elif option.type == "list" or choices:
        labels = {choice: KIND_LABELS.get(choice) or value_label(choice) for choice in choices}
        # Others may be typed, as they are written
        common["format_func"] = str if option.open else labels.__getitem__
        if option.type == "list" and not option.open:
            column.pills(option.label, choices, selection_mode="multi", wrap=True, **common)
        elif option.type == "list":
            common |= {"accept_new_options": True, "select_all": False, "wrap": True}
            empty = "None (type a value and press Enter)"
            column.multiselect(option.label, choices, placeholder=empty, **common)
        else:
            common |= {"accept_new_options": option.open, "placeholder": "None (or type a name)"}
            column.selectbox(option.label, choices, **common)
    else:
        column.text_input(option.label, **common)


def _choices(option: Option) -> list[str]:
    """Return the choices for an option's field: the option's own choices or, if it has none, known names."""
    if option.refers_to and not option.choices:
        return _known_names(f"{option.refers_to}s")
    return [str(choice) for choice in option.choices]


def _default(option: Option) -> object:
    """Return an option's default value in the form that its field needs."""
    if isinstance(option.default, tuple):
        return [str(entry) for entry in option.default]
    if option.type in ("flag", "number"):
        return option.default
    return str(option.default) or (None if _choices(option) else "")


def _typed(option: Option, value: Any) -> object:
    """Convert a field's value to a form that `parse_options` reads. List entries are sorted like the choices."""
    if option.type in ("flag", "number"):
        return value
    if option.type != "list":
        return (value or "").strip()
    order = {choice: rank for rank, choice in enumerate(_choices(option))}
    entries = [entry.strip() for entry in value]
    return sorted(entries, key=lambda entry: order.get(entry, len(order)))


def _known_names(folder: str) -> list[str]:
    """Return all complete names of models or datasets: demo names first, then names in stored runs, then others."""
    if folder == "files":
        return []
    earlier = view(views.runs.runs)[folder.removesuffix("s")].tolist()
    complete = [name for name in registry.names(folder) if not registry.is_form(name)]
    return sorted(
        dict.fromkeys([*earlier, *complete]), key=lambda name: not name.startswith("demo")
    )


def _bar(
    models: Sequence[str],
    dataset: str,
    probes: Mapping[str, Mapping],
    settings: Mapping[str, object],
) -> None:
    """Draw the Start button, next to the estimated duration or the first error in the form."""

    def start() -> None:
        requests = checked(models, dataset, probes, settings)
        if requests[0].executor == "local" and requests[0].device not in EVERYWHERE:
            pick_device(requests[0].device)
        begin(*requests)

    problem: VlprobeError | None = None
    fix: tuple[str, Mapping[str, object]] | None = None
    try:
        requests = checked(models, dataset, probes, settings)
        message, fix = _other_choice(requests)
        if message:
            raise InvalidInput(message)
        _expectation(requests)
    except VlprobeError as error:
        problem = error
        if models and probes:
            widgets.draw_error(error)
        else:
            quiet(str(error))
    st.space("stretch")
    if fix:
        press(f"Choose {fix[0]}", st.session_state.update, fix[1], key="choose_fitting")
    press(
        "Start",
        start,
        icon="play_arrow",
        type="primary",
        key="start",
        disabled=problem is not None,
        help=link_docs(str(problem)) if problem else None,
    )


def checked(
    models: Sequence[str],
    dataset: str,
    probes: Mapping[str, Mapping],
    settings: Mapping[str, object],
) -> list[Request]:
    """Check the form and build one request per probe. No model or dataset is loaded.

    Args:
        models: Model names as typed.
        dataset: Name of a dataset, or "" for the scenes that are drawn for each probe.
        probes: Names of probes, each with its options as typed.
        settings: Settings for a run. Omitted ones have their default values.

    Raises:
        VlprobeError: The first error found: an invalid value, an unknown name, or a path that does
            not exist.
    """
    if not models:
        raise InvalidInput("Choose at least one model.")
    if not probes:
        raise InvalidInput("Choose at least one test.")
    run_settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parse_options(SETTINGS, settings, "A run").items()
    }
    if run_settings["executor"] == "ray":
        ray_cluster.allowed()
    Budget(run_settings["price"], run_settings["max_cost"])
    requests = []
    for probe, typed in probes.items():
        loaded = registry.load_probe(probe)
        options = parse_options(loaded.options, typed, f"Probe '{probe}'")
        loaded.check_options(options)
        for option in loaded.options:
            _check_named(option, options[option.name])
        requests.append(
            Request(tuple(models), dataset or loaded.dataset, probe, options, **run_settings)
        )
    for request in requests:
        registry.check_name("datasets", request.dataset)
    for name in models:
        model_name = registry.parse_name("models", name)
        model_name.check()
        for probe in probes:
            check_name_fits(model_name, registry.load_probe(probe))
    return requests


def _other_choice(
    requests: Sequence[Request],
) -> tuple[str, tuple[str, Mapping[str, object]] | None]:
    """Return an error message if a score file among the models has scores for other tests or pictures than the chosen
    ones, with the name of a choice that it fits and that choice's values by session key; else "" and None.

    Drawn scenes take half a minute to draw, so the file is compared with the bundled question sets instead.
    """
    chosen, options = requests[0].dataset, {each.probe: each.options for each in requests}
    is_drawn = chosen.startswith(demo.PREFIX)
    datasets = set(bundled.NAMES).intersection(_known_names("datasets")) if is_drawn else {chosen}
    for name in requests[0].models:
        if not name.startswith(f"{scores.PREFIX}:"):
            continue
        path = files.parse_path(files.split_options(name, scores.OPTION, scores.EXPECTED)[0])
        if not path.is_file():
            continue
        key = name, path.stat().st_mtime, str(store().root), json.dumps(options), requests[0].seed
        for dataset in sorted(datasets):
            answered = _answered(*key, dataset, is_drawn)
            missing = [probe_name(probe, dataset) for probe in options if probe not in answered]
            if not answered or not (missing or is_drawn):
                continue
            names = [probe_name(probe, dataset) for probe in answered]
            message = f"'{path.name}' has scores for {listed(names)} on {dataset_name(dataset)}"
            state = {f"run_probe_{probe}": probe == answered[0] for probe in presentations()}
            if not is_drawn:
                return f"{message}, but not for {listed(missing)}.", (names[0], state)
            choice = f"{dataset_name(dataset)}, {names[0]}"
            return f"{message}, not on drawn scenes.", (choice, state | {"run_dataset": dataset})
    return "", None


@st.cache_data(
    ttl=60, max_entries=9, show_spinner="Reading the scores"
)  # 4 s for VALSE, at each press
def _answered(
    model: str, changed: float, root: str, options: str, seed: int, dataset: str, needs_ids: bool
) -> list[str]:
    """Return the tests for which a score file has scores.

    Args:
        changed: Time of the file's last change, so that a changed file is read again.
        options: Options of the chosen tests as JSON. Other tests have their default options.
        needs_ids: Whether scores without ids, which fit any dataset of their size, do not count.
    """
    every = {name: registry.load_probe(name).defaults for name in presentations()}
    loaded = registry.load_model(model)
    if not isinstance(loaded, scores.ScoreFile) or (needs_ids and not loaded.has_ids):
        return []
    items = registry.load_dataset(dataset, Path(root)).items
    return answered_probes(loaded, items, every | json.loads(options), seed, Path(root))


def _check_named(option: Option, value: object) -> None:
    """Raise a VlprobeError if an option's value names a file, a dataset or a model that does not exist."""
    for name in filter(None, map(str, value if isinstance(value, list) else [value])):
        if option.refers_to == "file":
            read_head(files.parse_path(name))
        elif option.refers_to:
            registry.check_name(f"{option.refers_to}s", name)


def _expectation(requests: Sequence[Request]) -> None:
    """Draw the amount of work and an estimate of its duration, which is based on earlier runs."""
    runs, total = view(views.runs.run_rows), NOTHING
    for request in requests:
        names = request.models, request.dataset, request.probe
        total += UNKNOWN if request.where else expected(runs, *names, _at_most(request))
    models, tests = len(requests[0].models), len(requests)
    work = f"{models} model{'s' * (models > 1)} × {tests} test{'s' * (tests > 1)}"
    pictures = _pictures(runs, requests)
    work += f" × {pictures:,} picture{'s' * (pictures > 1)}." if pictures else "."
    basis = "Estimated from other models on the same pictures."
    if not total.is_known:
        basis = "Nothing similar has been run here yet."
    elif total.low == total.high:
        basis = f"The last run of these models and tests took {span(total.low)}."
        if total.is_scaled:
            basis = (
                f"About {span(total.low)}, estimated from the last run of these models and tests."
            )
    evidence = " ".join(filter(None, [work, basis, _servers(requests)]))
    st.html(
        f'<div role="status">{tag("strong", "Next run: " * bool(under_way()) + in_words(total))}'
        f"{tag('p', evidence, class_='vp-quiet vp-small')}</div>"
    )


def _servers(requests: Sequence[Request]) -> str:
    """Describe which data is sent to servers. Returns "" if no model is on a server."""
    origins = {
        endpoints.of_name(name).origin
        for name in requests[0].models
        if name.startswith(endpoints.PREFIX)
    }
    if not origins:
        return ""
    limit = requests[0].max_cost
    return (
        f"Texts and pictures are sent to {', '.join(sorted(origins))}. The owner of this "
        f"dashboard pays for the requests{f' (at most {limit})' if limit else ''}. The first line "
        "of the job's log gives the number of requests."
    )


def _pictures(runs: Sequence[RunRow], requests: Sequence[Request]) -> int:
    """Count the pictures in a run, or return 0 if the number is unknown or differs between probes.

    Raises NotFound or InvalidInput if the user's own pictures cannot be read.
    """
    sizes = set()
    for request in requests:
        size = next((run.n_items for run in runs if run.dataset == request.dataset), 0)
        if st.session_state.get("run_own", "").strip():  # earlier runs may have a limit
            with suppress(OSError):
                size = gallery.pictured_items(request.dataset, str(store().root))[0]
        n_pictures = _at_most(request)
        sizes.add(0 if request.where else min(size or n_pictures, n_pictures or size))
    return sizes.pop() if len(sizes) == 1 else 0


def _at_most(request: Request) -> int:
    """Return the maximum number of pictures that a request selects, or 0 if it has no maximum."""
    return min(filter(None, (request.limit, request.sample, len(request.item))), default=0)
