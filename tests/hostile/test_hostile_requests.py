"""Every option and field of a request, every job file and every parameter of a link, on a dashboard confined to a
folder and on a read-only dashboard: no file outside of the folder is opened.

A new option, field of a request or page fails here until it has a row.
"""

import itertools
import json
import os
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from tests.conftest import tiers
from tests.dashboard.test_pages import open_page
from tests.hostile.conftest import AUDIT, PATHS, fill_template, limit
from tests.hostile.test_hostile_links import ALL_PAGES, PAGES
from vlprobe import registry
from vlprobe.dashboard.state import RESULTS
from vlprobe.errors import InvalidInput
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access
from vlprobe.storage.store import Store
from vlprobe.training.request import TrainRequest
from vlprobe.training.trainer import train

# What each option of a probe refers to: a file, a dataset or models; empty if it opens nothing
OPTIONS = {
    ("lgip", "edits"): "file",
    ("prsm", "edits"): "file",
    ("visla", "edits"): "file",
    ("eqben", "edits"): "file",
    ("rococo", "edits"): "file",
    ("hardpositives", "edits"): "file",
    ("lgip", "vocabulary"): "file",
    ("prsm", "gallery"): "dataset",
    ("rococo", "influence"): "models",
    ("rococo", "vocabulary"): "file",
    ("rococo", "caption_seeds"): "",
    **dict.fromkeys(
        [("lgip", name) for name in ("rules", "kinds", "flips", "k_same", "k_diff", "tag")], ""
    ),
    **dict.fromkeys([("prsm", name) for name in ("group", "sampled")], ""),
    **dict.fromkeys([("pictures", name) for name in ("changes", "severities", "search")], ""),
    **dict.fromkeys(
        [("rococo", name) for name in ("policies", "pictures", "picture_seeds", "normalise")], ""
    ),
}
# The same for each field of a request, which a form or a job file contains
REQUEST = {
    "models": "models",
    "dataset": "dataset",
    "probe": "probe",
    "options": "options",
} | dict.fromkeys(
    (
        *(
            "seed",
            "limit",
            *("item", "where", "sample", "without", "without_tag", "errata"),
            "device",
            "precision",
            "batch_size",
            "workers",
            "memory",
            "keep_embeddings",
            "examine",
            "verify",
        ),
        *("executor", "price", "max_cost"),
    ),
    "",
)
TRAINING = {"model": "models", "datasets": "dataset", "output": "file"} | dict.fromkeys(
    (
        *(
            "loss",
            "steps",
            "batch_size",
            "piece",
            "rate",
            "warm_up",
            "decay",
            "freeze",
            "close",
            "eqsim",
            "margin",
            "scores",
        ),
        *("curriculum", "seed", "validate_every", "device", "precision", "workers", "threads"),
    ),
    "",
)


def test_every_probe_option_and_every_request_field_has_a_row():
    probes = {name: registry.load_probe(name).defaults for name in registry.names("probes")}
    assert {(name, option) for name, options in probes.items() for option in options} == set(
        OPTIONS
    )
    assert {field.name for field in fields(Request)} == set(REQUEST)
    assert {field.name for field in fields(TrainRequest)} == set(TRAINING)


def named(kind: str, path: str) -> object:
    """Return a value of an option or a field that refers to this path."""
    return {"file": path, "dataset": f"csv:{path}", "models": (f"demo:weak@{path}",)}[kind]


def requests_naming(dataset: str, path: str) -> list[Request]:
    """Return a request for each field and each option that can refer to a path."""
    plain = {"examine": False, "device": "cpu", "limit": 1}
    requests = [
        Request(
            **{
                "models": ("control:random",),
                "dataset": dataset,
                "probe": "lgip",
                **plain,
                field: named(kind, path),
            }
        )
        for field, kind in REQUEST.items()
        if kind in ("models", "dataset")
    ]
    for (probe, option), kind in OPTIONS.items():
        if kind:
            value = named(kind, path)
            options = {option: list(value) if isinstance(value, tuple) else value}
            requests.append(Request(("control:random",), dataset, probe, options, **plain))
    return requests


@pytest.mark.parametrize(
    "what", ["a file", "a file of that sibling", "a file behind a link", "a link to a file"]
)
def test_no_field_or_option_of_a_request_opens_a_file_outside_of_the_folder(
    what: str, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only=False)
    store = Store(root / "cache")
    for request in requests_naming(
        f"csv:{root}/open/captions.csv", fill_template("PATH", PATHS[what], root)
    ):
        with pytest.raises(InvalidInput, match="outside the folders"):
            execute(request, store)
    assert not store.runs()


@pytest.mark.parametrize(
    "what", ["weights", "a file of that sibling", "a file behind a link", "a link to a file"]
)
def test_no_field_of_a_training_request_opens_or_writes_a_file_outside_of_the_folder(
    what: str, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only=False)
    path = str(Path(fill_template("PATH", PATHS[what], root)).with_suffix(".safetensors"))
    before = sorted((root / "closed").iterdir()), sorted((root / "open@closed").iterdir())
    AUDIT["opened"] = []  # without the two folders listed above
    plain = {
        "model": "demo:weak",
        "datasets": (f"csv:{root}/open/captions.csv",),
        "device": "cpu",
        "steps": 1,
    }
    for field, kind in TRAINING.items():
        if kind:
            value = named(kind, path)
            given = value[0] if field == "model" else (value,) if field == "datasets" else value
            request = TrainRequest(
                **{"output": str(root / "open" / "tuned.safetensors"), **plain, field: given}
            )
            with pytest.raises(InvalidInput, match="outside the folders"):
                train(request, root / "cache")
    AUDIT["folders"], watched = (), AUDIT["folders"]
    assert (sorted((root / "closed").iterdir()), sorted((root / "open@closed").iterdir())) == before
    AUDIT["folders"] = watched


def test_no_job_file_opens_a_file_outside_of_the_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    """The process of a job reads the request from the cache folder and inherits the limits."""
    limit(monkeypatch, root, read_only=False)
    store = Store(root / "cache")
    path = f"{root}/open@closed/captions.csv"
    requests = [*requests_naming(f"csv:{root}/open/captions.csv", path)]
    requests.append(
        TrainRequest(
            f"demo:weak@{path}", ("demo-train",), f"{root}/open/tuned.safetensors", device="cpu"
        )
    )
    for number, request in enumerate(requests):
        folder = store.root / "jobs" / f"{number:08x}"
        folder.mkdir(parents=True)
        (folder / "request.json").write_text(json.dumps(asdict(request) | {"created": 0}))
        (folder / "status.json").write_text(json.dumps({"state": "queued", "queued": 0}))
        assert jobs.work(str(store.root), folder.name) == 1
        assert "outside the folders" in json.loads((folder / "status.json").read_text())["error"]


def test_a_read_only_dashboard_starts_no_job(root: Path, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch, root, read_only=True)
    store = Store(root / "cache")
    requests = requests_naming(f"csv:{root}/open/captions.csv", f"{root}/closed/captions.csv")
    requests.append(
        TrainRequest("demo:weak", ("demo-train",), f"{root}/closed/tuned.safetensors", device="cpu")
    )
    for request in requests:
        with pytest.raises(InvalidInput, match="read-only"):
            jobs.start(request, store)
    assert not store.root.exists()


PAGE_NAMES = sorted(
    file.stem for file in (Path(__file__).parent.parent.parent / "pages").glob("*.py")
)
PARAMETERS = sorted(
    {*ALL_PAGES, *RESULTS, "case", *(name for names in PAGES.values() for name in names)}
)


OFTEN = [  # in the default suite: pages with models, with pictures or with several question sets
    *(("explore", "confined"), ("compare", "confined"), ("try", "confined"), ("try", "read-only")),
    *(("run", "confined"), ("retrieval", "confined"), ("repair", "confined")),
]


@pytest.mark.parametrize(
    ("page", "kept"), tiers(itertools.product(PAGE_NAMES, ("confined", "read-only")), OFTEN)
)
def test_no_parameter_of_a_link_opens_a_file_outside_of_the_folder(
    page: str, kept: str, root: Path, every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    """The link has every parameter that any page reads; they name a dataset file and a model file in turn."""
    read_only = kept == "read-only"
    limit(monkeypatch, root, read_only)
    if not read_only:
        monkeypatch.setenv(
            access.ROOTS, os.environ[access.ROOTS] + os.pathsep + str(every_probe.root.parent)
        )
    names = [f"csv:{root}/closed/captions.csv", f"demo:weak@{root}/open@closed/weights.safetensors"]
    query = {parameter: names[number % 2] for number, parameter in enumerate(PARAMETERS)} | {
        "models": names[1]
    }
    at = open_page(monkeypatch, every_probe, page, **query | {"from": names[0]})
    for button in at.button:
        if button.key and button.key.startswith("load_"):
            # a stored model without files, or its name
            is_at_hand = button.label.startswith("Run ")
            assert not is_at_hand or not any(name in button.label for name in names)
            button.click().run()
            assert is_at_hand or any(
                "outside the folders" in error.value.replace("\\", "") for error in at.error
            )
    assert not at.exception
