"""Every prefix of the registry and every name that a link, a form, an option or a job file can carry, on a dashboard
that is confined to a folder and on one that is read-only: nothing outside of the folder is opened.

A family, an option, a field of a request or a page that comes later fails here until its row is written.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from tests.conftest import make_tiny
from tests.dashboard.test_pages import open_page
from tests.hostile.test_hostile_links import ALL_PAGES, PAGES
from vlprobe import registry
from vlprobe.dashboard.state import RESULTS
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.storage.store import Store
from vlprobe.training.request import TrainRequest
from vlprobe.training.trainer import train

# What can follow the colon and names a file at PATH; TABLE and FOLDER may be read. Nothing: the family opens no file.
TABLES = ("PATH", "TABLE@PATH", "PATH@FOLDER")
DATASETS = {
    "coco": ("PATH",),
    "csv": ("PATH",),
    "demo": (),
    "demo-pairs": (),
    "demo-train": (),
    "demo-triplets": (),
    "folder": ("PATH",),
    "frames": (*TABLES, "PATH+ag", "TABLE@PATH+available", "PATH@FOLDER+gebc+available"),
    "pairs": (*TABLES, "PATH+available", "TABLE@PATH+available"),
    "queries": ("PATH", "PATH+p2", "PATH+p3"),
    "rococo": (*TABLES, "TABLE@PATH+available"),
    "triplets": (*TABLES, "TABLE@PATH+available"),
}
MODELS = {
    "control": (),
    "demo": ("weak@PATH",),
    "eqben": (),
    "hf": ("PATH",),
    "hf-gen": ("PATH",),
    "hf-itm": ("PATH",),
    "lgip": (),
    "openclip": ("ViT-B-32@PATH", "ViT-B-32/openai@PATH", "local-dir:PATH", "local-dir:MODEL@PATH"),
    "rococo-clip": (),
    "st": ("PATH",),
    "visla": (),
}
# ROOT/open may be read; ROOT/closed and its sibling by name ROOT/open@closed may not
PATHS = {
    "a folder": "ROOT/closed",
    "a file": "ROOT/closed/captions.csv",
    "weights": "ROOT/closed/weights.safetensors",
    "a file that is not there": "ROOT/closed/nothing.json",
    "up and down": "ROOT/open/../closed",
    "up from the working folder": "../closed",
    "a sibling whose name goes on after an @": "ROOT/open@closed",
    "a file of that sibling": "ROOT/open@closed/captions.csv",
    "a link to a folder": "ROOT/open/link",
    "a file behind a link": "ROOT/open/link/captions.csv",
    "a link to a file": "ROOT/open/link.safetensors",
    "a link in the working folder": "link",
    "a link to a file there": "link.safetensors",
    "a file behind a link there": "link/captions.csv",
    "a home": "~",
}
# What each option of a probe names: a file, a dataset, models; nothing that is opened
OPTIONS = {
    ("lgip", "edits"): "file",
    ("prsm", "gallery"): "dataset",
    ("rococo", "influence"): "models",
    **dict.fromkeys([("lgip", name) for name in ("rules", "kinds", "k_same", "k_diff", "tag")], ""),
    **dict.fromkeys([("prsm", name) for name in ("group", "approximate")], ""),
    **dict.fromkeys(
        [("rococo", name) for name in ("policies", "pictures", "picture_seeds", "normalise", "approximate")], ""
    ),
}
# Likewise of each field of what a form or a job file asks for
REQUEST = {"models": "models", "dataset": "dataset", "probe": "probe", "options": "options"} | dict.fromkeys(
    (
        *("seed", "limit", "device", "precision", "batch_size", "workers", "memory", "keep_embeddings", "examine"),
        *("executor", "ray_address"),
    ),
    "",
)
TRAINING = {"model": "models", "datasets": "dataset", "output": "file"} | dict.fromkeys(
    (
        *("loss", "steps", "batch_size", "piece", "rate", "warm_up", "decay", "freeze", "close", "margin", "scores"),
        *("curriculum", "seed", "validate_every", "device", "precision", "workers", "threads"),
    ),
    "",
)
# No file can be there; whoever looks is told so in one line, and that too without a traceback
NO_PATHS = {
    "a home of nobody": "~nosuchuser/x",
    "NUL": "ROOT/open/a\0b",
    "NUL alone": "a\0b",
    "too long": "x" * 5000,
    "too long in the folder": "ROOT/open/" + "x" * 5000,
    "links in a circle": "ROOT/open/circle",
    "a link in a circle as a folder": "ROOT/open/circle/captions.csv",
    "half a character": "ROOT/open/\ud800",
}
OPENING = ("open", "os.listdir", "os.scandir")  # events of the interpreter
_watched: dict[str, object] = {"folders": (), "opened": []}


def _note(event: str, arguments: tuple) -> None:
    if event in OPENING and _watched["folders"] and isinstance(arguments[0], str | bytes | os.PathLike):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(_watched["folders"]):
            _watched["opened"].append(path)


@pytest.fixture(scope="module")
def auditing() -> None:
    """A hook of the interpreter, which cannot be taken out again; it notes nothing while no folder is watched."""
    sys.addaudithook(_note)


@pytest.fixture
def root(tmp_path: Path, auditing: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Data and weights that load, in a folder that may be read and in two that may not; nothing is limited yet.

    At the end nothing in these two was opened, and nothing of them was listed.
    """
    from vlprobe.models import demo
    from vlprobe.models.demo_weights import FOLDER

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    weights = (FOLDER / "weak.safetensors").read_bytes()
    for name in ("open", "closed", "open@closed"):
        make_tiny(tmp_path / name)
        (tmp_path / name / "weights.safetensors").write_bytes(weights)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    (tmp_path / "open" / "link.safetensors").symlink_to(tmp_path / "closed" / "weights.safetensors")
    (tmp_path / "open" / "circle").symlink_to(tmp_path / "open" / "circle")
    demo.export_local_dir("demo:weak", tmp_path / "open" / "model")
    monkeypatch.chdir(tmp_path / "open")
    _watched.update(folders=(str(tmp_path / "closed"), str(tmp_path / "open@closed")), opened=[])
    yield tmp_path
    opened, _watched["folders"] = _watched["opened"], ()
    assert opened == []


def limit(monkeypatch: pytest.MonkeyPatch, root: Path, read_only: bool) -> None:
    roots = [] if read_only else [root / "open", root / "cache"]
    for name, value in access.settings(read_only, roots).items():
        monkeypatch.setenv(name, value)


def written(template: str, path: str, root: Path) -> str:
    names = {"PATH": path, "TABLE": "ROOT/open/captions.csv", "FOLDER": "ROOT/open", "MODEL": "ROOT/open/model"}
    for word, value in names.items():
        template = template.replace(word, value)
    return template.replace("ROOT", str(root))


def refuse(load, name: str, read_only: bool, names_a_file: bool = True) -> None:
    with pytest.raises(InvalidInput if names_a_file else VlprobeError) as caught:
        load(name)
    said = str(caught.value)
    if names_a_file:
        assert ("read-only" if read_only else "outside of the folders") in said, said
    assert said.isprintable()


def prefixes(folder: str) -> set[str]:
    return set(registry.families(folder))


def test_every_prefix_has_its_row():
    assert prefixes("datasets") == set(DATASETS)
    assert prefixes("models") == set(MODELS)


@pytest.mark.parametrize("read_only", [False, True], ids=["confined", "read-only"])
@pytest.mark.parametrize("folder", ["datasets", "models"])
def test_no_name_of_a_family_opens_a_file_elsewhere(
    folder: str, read_only: bool, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only)
    load = registry.load_model if folder == "models" else lambda name: registry.load_dataset(name, root / "cache")
    for prefix, templates in (MODELS if folder == "models" else DATASETS).items():
        for path in PATHS.values():
            for template in templates or ("PATH", "demo@PATH", "random:PATH"):
                name = written(f"{prefix}:{template}", path, root)
                # With an @ of its own a path may be taken apart elsewhere, and name nothing
                refuse(load, name, read_only, bool(templates) and ("@" not in path or read_only))


@pytest.mark.parametrize("read_only", [False, True], ids=["confined", "read-only"])
@pytest.mark.parametrize("folder", ["datasets", "models"])
def test_a_name_that_no_file_can_have_is_one_line_under_limits_too(
    folder: str, read_only: bool, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only)
    load = registry.load_model if folder == "models" else lambda name: registry.load_dataset(name, root / "cache")
    for prefix, templates in (MODELS if folder == "models" else DATASETS).items():
        for path in NO_PATHS.values():
            for template in templates or ("PATH",):
                refuse(load, written(f"{prefix}:{template}", path, root), read_only, names_a_file=False)


def test_without_limits_the_same_names_are_opened(root: Path):
    """The other tests would pass with files that nobody can read."""
    assert registry.load_dataset(f"csv:{root}/closed/captions.csv", root / "cache").items
    assert registry.load_model(f"demo:weak@{root}/closed/weights.safetensors", "cpu").digest
    opened = {Path(path).name for path in _watched["opened"]}
    assert opened >= {"captions.csv", "0.png"}
    _watched["opened"] = []


def test_what_may_be_read_is_read_and_nothing_is_named_elsewhere(root: Path, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch, root, read_only=False)
    assert registry.load_dataset("csv:captions.csv", root / "cache").items
    assert registry.load_model(f"demo:weak@{root}/open/weights.safetensors", "cpu").digest
    assert registry.load_model("openclip:local-dir:model", "cpu").digest


def test_every_option_of_every_probe_and_every_field_of_a_request_has_its_row():
    probes = {name: registry.load_probe(name).defaults for name in registry.names("probes")}
    assert {(name, option) for name, options in probes.items() for option in options} == set(OPTIONS)
    assert {field.name for field in fields(Request)} == set(REQUEST)
    assert {field.name for field in fields(TrainRequest)} == set(TRAINING)


def named(kind: str, path: str) -> object:
    """A value of an option or a field that names this path."""
    return {"file": path, "dataset": f"csv:{path}", "models": (f"demo:weak@{path}",)}[kind]


def asked(dataset: str, path: str) -> list[Request]:
    """A request for each field and each option that can name a path."""
    plain = {"examine": False, "device": "cpu", "limit": 1}
    found = [
        Request(
            **{"models": ("control:random",), "dataset": dataset, "probe": "lgip", **plain, field: named(kind, path)}
        )
        for field, kind in REQUEST.items()
        if kind in ("models", "dataset")
    ]
    for (probe, option), kind in OPTIONS.items():
        if kind:
            value = named(kind, path)
            options = {option: list(value) if isinstance(value, tuple) else value}
            found.append(Request(("control:random",), dataset, probe, options, **plain))
    return found


@pytest.mark.parametrize("what", ["a file", "a file of that sibling", "a file behind a link", "a link to a file"])
def test_no_field_and_no_option_of_a_request_opens_a_file_elsewhere(
    what: str, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only=False)
    store = Store(root / "cache")
    for request in asked(f"csv:{root}/open/captions.csv", written("PATH", PATHS[what], root)):
        with pytest.raises(InvalidInput, match="outside of the folders"):
            execute(request, store)
    assert not store.runs()


@pytest.mark.parametrize("what", ["weights", "a file of that sibling", "a file behind a link", "a link to a file"])
def test_no_field_of_a_training_opens_or_writes_a_file_elsewhere(
    what: str, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only=False)
    path = str(Path(written("PATH", PATHS[what], root)).with_suffix(".safetensors"))
    before = sorted((root / "closed").iterdir()), sorted((root / "open@closed").iterdir())
    _watched["opened"] = []  # the listing above
    plain = {"model": "demo:weak", "datasets": (f"csv:{root}/open/captions.csv",), "device": "cpu", "steps": 1}
    for field, kind in TRAINING.items():
        if kind:
            value = named(kind, path)
            given = value[0] if field == "model" else (value,) if field == "datasets" else value
            request = TrainRequest(**{"output": str(root / "open" / "tuned.safetensors"), **plain, field: given})
            with pytest.raises(InvalidInput, match="outside of the folders"):
                train(request, root / "cache")
    _watched["folders"], watched = (), _watched["folders"]
    assert (sorted((root / "closed").iterdir()), sorted((root / "open@closed").iterdir())) == before
    _watched["folders"] = watched


def test_no_job_file_opens_a_file_elsewhere(root: Path, monkeypatch: pytest.MonkeyPatch):
    """A request that was put into the cache folder is read by the job's own process, which inherits the limits."""
    limit(monkeypatch, root, read_only=False)
    store = Store(root / "cache")
    path = f"{root}/open@closed/captions.csv"
    requests = [*asked(f"csv:{root}/open/captions.csv", path)]
    requests.append(TrainRequest(f"demo:weak@{path}", ("demo-train",), f"{root}/open/tuned.safetensors", device="cpu"))
    for number, request in enumerate(requests):
        folder = store.root / "jobs" / f"{number:08x}"
        folder.mkdir(parents=True)
        (folder / "request.json").write_text(json.dumps(asdict(request) | {"created": 0}))
        (folder / "status.json").write_text(json.dumps({"state": "queued", "queued": 0}))
        assert jobs.work(str(store.root), folder.name) == 1
        assert "outside of the folders" in json.loads((folder / "status.json").read_text())["error"]


def test_where_it_is_read_only_no_request_is_begun(root: Path, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch, root, read_only=True)
    store = Store(root / "cache")
    requests = asked(f"csv:{root}/open/captions.csv", f"{root}/closed/captions.csv")
    requests.append(TrainRequest("demo:weak", ("demo-train",), f"{root}/closed/tuned.safetensors", device="cpu"))
    for request in requests:
        with pytest.raises(InvalidInput, match="read-only"):
            jobs.start(request, store)
    assert not store.root.exists()


PAGE_NAMES = sorted(file.stem for file in (Path(__file__).parent.parent.parent / "pages").glob("*.py"))
PARAMETERS = sorted({*ALL_PAGES, *RESULTS, "case", *(name for names in PAGES.values() for name in names)})


@pytest.mark.parametrize("read_only", [False, True], ids=["confined", "read-only"])
@pytest.mark.parametrize("page", PAGE_NAMES)
def test_no_parameter_of_a_link_opens_a_file_elsewhere(
    page: str, read_only: bool, root: Path, every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    """Every parameter that any page reads, each naming a file, as a dataset and as a model by turns."""
    limit(monkeypatch, root, read_only)
    if not read_only:
        monkeypatch.setenv(access.ROOTS, os.environ[access.ROOTS] + os.pathsep + str(every_probe.root.parent))
    names = [f"csv:{root}/closed/captions.csv", f"demo:weak@{root}/open@closed/weights.safetensors"]
    query = {parameter: names[number % 2] for number, parameter in enumerate(PARAMETERS)} | {"models": names[1]}
    at = open_page(monkeypatch, every_probe, page, **query | {"from": names[0]})
    for button in at.button:
        if button.key and button.key.startswith("load_"):
            button.click().run()
            assert any("outside of the folders" in error.value.replace("\\", "") for error in at.error)
    assert not at.exception
