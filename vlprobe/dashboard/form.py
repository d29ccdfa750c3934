"""The form of a run: a field for each option of each probe and each setting of a run, checked before anything starts.

What there is to set, and what is allowed, is data of the probes and of the runner (`options`); this draws it.
"""

import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from vlprobe import registry, views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.jobs import begin, span
from vlprobe.dashboard.state import attempt, plain, quiet, view
from vlprobe.dashboard.verify import said
from vlprobe.datasets.file_formats import read_head
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models.frozen import pick_device
from vlprobe.runs.request import Request
from vlprobe.runs.settings import SETTINGS
from vlprobe.storage import files
from vlprobe.types.options import Option, parse_options

COLUMNS = 3
WIDE = 2  # columns of lists, which hold several values in a row
IN_FRONT = ("choice", "list")  # types of options of a probe that are not folded away
CLUSTER = ("executor", "ray_address")  # settings that mean something only where Ray is installed
EVERYWHERE = ("auto", "cpu")  # devices that need no look


def form() -> None:
    """What to run; where earlier runs cannot be read, that is said, and the rest of the page is there to mend them."""
    try:
        _form()
    except VlprobeError as error:
        st.error(plain(said(error)), icon=":material/error:")


def _form() -> None:
    """Models, dataset, probe and all that can be set; then what is wrong with it, or one button."""
    if not changes(
        "What was run before is on the other pages. Install vlprobe to run your own models and pictures."
    ):
        return
    models = st.multiselect(
        "Models",
        _names("models"),
        key="run_models",
        accept_new_options=True,
        placeholder="Choose, or type a name and press Enter",
        help="Any OpenCLIP model can be typed: `openclip:NAME/TAG`, or `openclip:NAME@CHECKPOINT` for a file.",
    )
    models = tuple(dict.fromkeys(name.strip() for name in models))
    columns = st.columns(COLUMNS)
    probe = columns[0].selectbox(
        "Probe", sorted(registry.names("probes"), key=_lgip_first), key="run_probe"
    )
    dataset = _dataset(probe, columns[1:])
    described = registry.load_probe(probe).options
    front = [option for option in described if option.type in IN_FRONT]
    fields = _fields(front, f"run_{probe}", WIDE)
    with st.expander("Size, machine and details"):
        fields |= _fields([option for option in described if option not in front], f"run_{probe}")
        has_ray = importlib.util.find_spec("ray") is not None
        settings = _fields(
            [option for option in SETTINGS if has_ray or option.name not in CLUSTER], "run"
        )
    problem: VlprobeError | None = None
    try:
        request = checked(models, dataset, probe, fields, settings)
    except VlprobeError as error:
        problem = error
    if problem is None:
        quiet(_work(request))
    elif models:
        st.error(plain(said(problem)), icon=":material/error:")
    else:
        quiet(str(problem))
    st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        key="start",
        disabled=bool(problem),
        help=plain(str(problem)) if problem else None,
        on_click=attempt,
        args=(_start, models, dataset, probe, fields, settings),
    )


def _dataset(probe: str, columns: Sequence) -> str:
    """A dataset to pick, the probe's own first, or the name of any other."""
    natural = registry.load_probe(probe).dataset
    listed = sorted(_names("datasets"), key=lambda name: name != natural)
    picked = columns[0].selectbox("Dataset", listed, key=f"run_dataset_{probe}")
    forms = ", ".join(f"`{name}`" for name in registry.names("datasets") if name not in listed)
    typed = columns[1].text_input(
        "Or pictures of your own",
        key="run_own",
        placeholder="coco:/path/to/folder",
        help=f"Takes the place of the dataset. With the path of your file or folder: {forms}.",
    )
    return typed.strip() or picked


def _lgip_first(name: str) -> tuple[bool, str]:
    return name != "lgip", name


def _fields(options: Sequence[Option], prefix: str, width: int = COLUMNS) -> dict[str, object]:
    """A field for each of these options, so many in a row; what is in them by name."""
    return {
        option.name: _field(column, option, f"{prefix}_{option.name}")
        for start in range(0, len(options), width)
        for option, column in zip(
            options[start : start + width],
            st.columns(width, vertical_alignment="bottom"),
            strict=False,
        )
    }


def _field(column: "st.delta_generator.DeltaGenerator", option: Option, key: str) -> object:
    """A field of the option's type; what is in it, as it was typed."""
    choices = [str(choice) for choice in option.choices] or (
        _names(f"{option.refers_to}s") if option.refers_to else []
    )
    told = {"key": key, "help": option.help}
    if option.type == "flag":
        return column.toggle(option.label, option.default, **told)
    if option.type == "number":
        least = (
            option.minimum if option.off_value is None else min(option.minimum, option.off_value)
        )
        return int(
            column.number_input(option.label, least, option.maximum, option.default, 1, **told)
        )
    if option.type == "list":
        default = [str(value) for value in option.default]
        hint = "None; type a value and press Enter" if option.open else "None"
        field = {"accept_new_options": option.open, "placeholder": hint}
        typed = [
            entry.strip()
            for entry in column.multiselect(option.label, choices, default, **field, **told)
        ]
        order = {choice: place for place, choice in enumerate(choices)}
        return sorted(
            typed, key=lambda entry: order.get(entry, len(order))
        )  # one selection, one name of its run
    if choices:
        index = choices.index(option.default) if option.default else None
        field = {"accept_new_options": option.open, "placeholder": "None; or type a name"}
        return (column.selectbox(option.label, choices, index, **field, **told) or "").strip()
    return column.text_input(option.label, option.default, **told).strip()


def checked(
    models: Sequence[str],
    dataset: str,
    probe: str,
    fields: Mapping[str, object],
    settings: Mapping[str, object],
) -> Request:
    """The request that the fields ask for; nothing is loaded.

    Args:
        models: Names, as they were typed.
        dataset: The name of one.
        probe: The name of one.
        fields: Its options, as they were typed.
        settings: Those of a run; what is left out has its default.

    Raises:
        VlprobeError: the first thing that is wrong: a value that is not allowed, a name that is not known, a path where
            nothing is.
    """
    if not models:
        raise InvalidInput("Choose at least one model.")
    loaded = registry.load_probe(probe)
    options = parse_options(loaded.options, fields, f"Probe '{probe}'")
    loaded.check_options(options)
    request = Request(
        tuple(models), dataset, probe, options, **parse_options(SETTINGS, settings, "A run")
    )
    registry.check_name("datasets", dataset)
    for name in models:
        registry.check_name("models", name)
    for option in loaded.options:
        _look(option, options[option.name])
    return request


def _look(option: Option, value: object) -> None:
    """Raises a VlprobeError where the value names a file, a dataset or a model that cannot be there."""
    for name in filter(None, value if isinstance(value, list) else [value]):
        if option.refers_to == "file":
            read_head(files.parse_path(name))
        elif option.refers_to:
            registry.check_name(f"{option.refers_to}s", name)


def _start(
    models: Sequence[str], dataset: str, probe: str, fields: Mapping, settings: Mapping
) -> None:
    """Begins the job, if all is still there."""
    request = checked(models, dataset, probe, fields, settings)
    if request.executor == "local" and request.device not in EVERYWHERE:
        pick_device(request.device)
    begin(request)


def _work(request: Request) -> str:
    """How much work it is, judging by earlier runs on the same dataset."""
    stored = view(views.runs.runs)
    same = stored[(stored["dataset"] == request.dataset) & (stored["probe"] == request.probe)]
    if same.empty:
        return "Work: unknown until the dataset has been read; the first seconds of the run tell."
    last = same.iloc[0]
    share = min(request.limit / last["n_items"], 1.0) if request.limit else 1.0
    work = f"Work: about {last['n_items'] * share:,.0f} pictures and {last['n_cases'] * share:,.0f} cases a model"
    seconds = same.drop_duplicates("model").set_index("model")["seconds"]
    timed = [f"{model} took {span(seconds[model])}" for model in request.models if model in seconds]
    return f"{work}, judging by the last run on this dataset. {'; '.join(timed) + '.' if timed else ''}"


def _names(folder: str) -> list[str]:
    """Names that can be chosen as they are, the demo's and those of earlier runs first; none of files."""
    if folder == "files":
        return []
    earlier: Iterable[str] = view(views.runs.runs)[folder.removesuffix("s")].tolist()
    complete = [name for name in registry.names(folder) if not re.search("[A-Z]{3}", name)]
    return sorted(
        dict.fromkeys([*earlier, *complete]), key=lambda name: not name.startswith("demo")
    )
