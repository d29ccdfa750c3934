"""The wheel, as installed by a user without the sources."""

import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from tests.cli.test_served import load_first_page
from tests.conftest import free_port, make_tiny
from vlprobe import registry
from vlprobe.storage import application

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "app.py",
    "pages",
    ".streamlit",
    "docs",
    "vlprobe",
    "setup.py",
    "pyproject.toml",
    "LICENSE",
    "README.md",
)
LOOSE = """
[global]
e2eTest = true
[server]
allowedHosts = ["*"]
address = "0.0.0.0"
maxUploadSize = 5000
maxMessageSize = 5000
enableXsrfProtection = false
enableCORS = false
corsAllowedOrigins = ["https://example.org"]
enableStaticServing = true
enableAgentApi = true
[client]
showErrorDetails = "full"
allowedOrigins = ["https://evil.example"]
[browser]
gatherUsageStats = true
serverAddress = "evil.example"
"""
EFFECTIVE = """
import json, sys
import streamlit
from vlprobe.dashboard import server
from streamlit.web.server.starlette import starlette_server
server._prepare = lambda: None
names = json.loads(sys.stdin.read())
shown = lambda runner: print(json.dumps({name: streamlit.get_option(name) for name in names}))
starlette_server.UvicornRunner.run = shown
server.main(sys.argv[1], json.loads(sys.argv[2]))
"""


def build(folder: Path) -> Path:
    """Build a wheel from a copy of the files that git would commit, offline."""
    sources = folder / "sources"
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                sources / name,
                ignore=shutil.ignore_patterns("__pycache__", "secrets.toml"),
            )
        else:
            sources.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, sources / name)
    # takes half the time: most files are compressed already
    stored = {"--build-option": "--compression=stored"}
    command = f"from setuptools import build_meta; build_meta.build_wheel('..', {stored})"
    subprocess.run([sys.executable, "-c", command], cwd=sources, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def stranger(folder: Path) -> int | None:
    """Return the id of a non-root user who can run this Python in the folder, or None to use the current user."""
    if os.getuid() != 0:
        return None
    with contextlib.suppress(KeyError, OSError):
        number = pwd.getpwnam("nobody").pw_uid
        looks = [sys.executable, "-c", "import streamlit.version, os; os.listdir('.')"]
        if subprocess.run(looks, user=number, cwd=folder, capture_output=True).returncode == 0:
            return number
    return None


def powerless(folder: Path) -> list[str]:
    """Return a command prefix that drops root's privileges if no other user can run this Python."""
    if os.getuid() != 0 or stranger(folder) is not None or not shutil.which("setpriv"):
        return []
    return ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    """Build the wheel in a folder that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="vlprobe-wheel-"))
    folder.chmod(0o755)
    try:
        with pytest.MonkeyPatch.context() as patch:
            # otherwise pip finds the sources and installs nothing
            patch.delenv("PYTHONPATH", raising=False)
            yield build(folder)
    finally:
        for path in folder.rglob("*/"):
            if not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """Create an environment with only the wheel in its site-packages; the packages of the test environment come after
    it.
    """
    environment = wheel.parent / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install"]
    offline = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, *offline, str(wheel)], check=True, capture_output=True)
    names = {path.name for path in packages.iterdir()}
    assert {re.sub(r"-.*", "", name) for name in names} == {"vlprobe"}, names
    (packages / "suite.pth").write_text(sysconfig.get_path("purelib"))
    for path in (packages, *packages.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)  # the installed files are read-only
    return environment


def test_the_wheel_contains_the_application_inside_the_package_and_no_other_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {re.sub(r"-.*", "", name.split("/")[0]) for name in names} == {"vlprobe"}
    app = "vlprobe/dashboard/app/"
    pages = {path.name for path in (ROOT / "pages").glob("*.py")}
    below = {name.removeprefix(app) for name in names if name.startswith(app)}
    documentation = (*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/pictures").iterdir())
    docs = {path.relative_to(ROOT).as_posix() for path in documentation}
    assert below == {
        "app.py",
        ".streamlit/config.toml",
        *(f"pages/{name}" for name in pages),
        *docs,
    }
    assert any(name.startswith("vlprobe/storage/shipped_results/") for name in names)
    assert "vlprobe/render/html/style.css" in names


def test_the_metadata_of_the_wheel_lists_every_extra(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("METADATA"))
        lines = archive.read(name).decode().splitlines()
    extras = {line.partition(": ")[2] for line in lines if line.startswith("Provides-Extra")}
    expected = {
        "models",
        "scale",
        "s3",
        "api",
        "data",
        "dev",
        "docs",
        "edits",
        "figures",
        "agents",
        "notebook",
        "slides",
    }
    assert extras == expected
    needed = [line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line]
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert len(needed) == len(listed) > 10
    assert "Description-Content-Type: text/markdown" in lines
    assert "Author: vlprobe contributors" in lines and "License-Expression: MIT" in lines
    assert "Project-URL: LGIP, https://arxiv.org/abs/2511.13494" in lines
    assert (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[2] in lines


@pytest.mark.full  # 6 s, to install the wheel; test_readme.py follows the links of the sources
def test_help_and_errors_link_to_installed_pages(installed, home):
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def output(*words: str) -> str:
        command = [installed / "bin" / "vlprobe", *words]
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    (folder,) = (Path(word) for word in output("--help").split() if word.endswith("docs"))
    assert installed in folder.parents and str(folder) in output("run", "--help")
    named = set()
    for path in (ROOT / "vlprobe").rglob("*.py"):
        named |= set(re.findall(r"docs/([\w/-]+\.md)", path.read_text(encoding="utf-8")))
    assert {"edits.md", "security.md"} <= named
    assert all((folder / name).is_file() for name in named), folder
    (home / "answers.json").write_text("{}")
    dataset = make_tiny(home / "tiny")  # small data, because drawing the demo dataset takes 20 s
    error = output("run", "--dataset", dataset, "--model", f"scores:{home}/answers.json")
    assert f" {folder}/import.md." in error
    links = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in folder.rglob("*.md")
        for link in re.findall(r"\]\(([^)\s#:]+)\)", page.read_text(encoding="utf-8"))
    }
    assert len(links) > 40 and all(link.is_file() for link in links)


def test_the_requirements_files_name_every_extra_once():
    files = [ROOT / f"requirements{end}.txt" for end in ("", "-models", "-ray")]
    extras_per_file = re.findall(
        r"^-e \.\[(.*)\]$", "".join(file.read_text() for file in files), re.MULTILINE
    )
    assert sorted(",".join(extras_per_file).split(",")) == [
        "agents",
        "api",
        "data",
        "dev",
        "docs",
        "edits",
        "figures",
        "models",
        "notebook",
        "scale",
        "slides",
    ]


@pytest.fixture(scope="module")
def home(installed: Path) -> Path:
    """Return a home folder with a space in its name and an insecure Streamlit settings file."""
    home = installed.parent / "a home"
    (home / ".streamlit").mkdir(parents=True)
    (home / ".streamlit" / "config.toml").write_text(LOOSE)
    if (user := stranger(installed)) is not None:
        for path in (home, *home.rglob("*")):
            os.chown(path, user, -1)
    return home


@contextlib.contextmanager
def serving(installed: Path, home: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Start the installed dashboard in the home folder as its owner. Yield its process id and port."""
    port, log = free_port(), installed.parent / "log.txt"
    of_the_suite = ("PYTHONPATH", "VLPROBE_SHIPPED", "VLPROBE_CACHE")
    variables = {name: value for name, value in os.environ.items() if name not in of_the_suite}
    variables |= {
        "HOME": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STREAMLIT_SERVER_HEADLESS": "true",
        "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
        "STREAMLIT_SERVER_MAX_UPLOAD_SIZE": "5000",
        "STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "false",
        "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "true",
        "STREAMLIT_GLOBAL_E2E_TEST": "true",
        "STREAMLIT_SERVER_ALLOWED_HOSTS": "*",
        "STREAMLIT_CLIENT_ALLOWED_ORIGINS": "https://evil.example",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *powerless(installed),
                installed / "bin" / "vlprobe",
                "dashboard",
                "--port",
                str(port),
                *options,
            ],
            cwd=home,
            env=variables,
            user=stranger(installed),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 300  # a busy machine
        while True:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).close()
                break
            time.sleep(0.05)
        yield process.pid, port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def listening(port: int) -> set[str]:
    """Return the addresses, in the kernel's notation, on which a process listens at a port."""
    lines = [
        line.split()
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        if Path(table).exists()
        for line in Path(table).read_text().splitlines()[1:]
    ]
    return {
        fields[1].split(":")[0]
        for fields in lines
        if fields[3] == "0A" and int(fields[1].split(":")[1], 16) == port
    }


def status(url: str, **request: Any) -> int:
    """Request a URL and return the HTTP status."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **request), timeout=300) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.full
def test_the_installed_dashboard_ignores_insecure_settings_in_the_home_folder(installed, home):
    with serving(installed, home) as (pid, port):
        assert listening(port) == {"0100007F"}  # 127.0.0.1
        url = f"http://127.0.0.1:{port}"
        with connect(
            f"ws://127.0.0.1:{port}/_stcore/stream",
            origin=Origin(url),
            subprotocols=[Subprotocol("streamlit")],
            max_size=None,
        ) as visitor:
            assert load_first_page(visitor)
        body = {
            "data": b"x",
            "method": "PUT",
            "headers": {"Content-Type": "multipart/form-data; boundary=b"},
        }
        assert status(f"{url}/_stcore/upload_file/a/b", **body) == 403  # without a token
        command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
        variables = dict(
            entry.split("=", 1)
            for entry in Path(f"/proc/{pid}/environ").read_text().split("\0")
            if entry
        )
        folder = os.readlink(f"/proc/{pid}/cwd")
    assert Path(folder).parts[-3:] == ("vlprobe", "dashboard", "app")
    assert variables["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert variables["RAY_USAGE_STATS_ENABLED"] == "0"
    expected = application.settings()
    looked = subprocess.run(
        [command[0], "-c", EFFECTIVE, *command[-2:]],
        cwd=folder,
        env=variables,
        user=stranger(installed),
        input=json.dumps([*expected]),
        capture_output=True,
        text=True,
        check=True,
    )
    effective = json.loads(looked.stdout.splitlines()[-1])
    own: dict[str, object] = {"server.allowedHosts": ["localhost", "127.0.0.1", "::1"]}
    own |= {"server.address": "127.0.0.1", "browser.serverAddress": "127.0.0.1"}
    assert effective == expected | own
    assert not effective["global.e2eTest"] and effective["client.allowedOrigins"] == []
    assert "Traceback" not in (installed.parent / "log.txt").read_text()
    assert (home / "cache").is_dir()  # the default cache, in the working folder


def test_the_container_installs_only_packages_with_a_version_and_a_hash():
    demo = ROOT / "docs" / "demo"
    container = (demo / "Dockerfile").read_text()
    installs = container.count("pip install")
    assert installs == container.count("pip install --no-cache-dir --no-deps") == 2
    assert "--require-hashes" in container and "-r /tmp/requirements.lock" in container
    lines = (demo / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    locked = [line.split() for line in lines if line and line.lstrip()[0] != "#"]
    assert all(
        re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", word) for _, *rest in locked for word in rest
    )
    assert all(hashes for _, *hashes in locked)
    versions = dict(pin.split("==") for pin, *_ in locked)
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in map(Requirement, dependencies):
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(versions[name]), name
    assert versions["torch"].endswith("+cpu") and versions["torchvision"].endswith("+cpu")
    assert not [name for name in versions if name.startswith("nvidia")]


@pytest.fixture
def new_home(installed: Path) -> Path:
    """Return an empty home folder of the user who runs the dashboard."""
    home = installed.parent / "visitor"
    home.mkdir()
    if (user := stranger(installed)) is not None:
        os.chown(home, user, -1)
    return home


@pytest.mark.full  # 8 s; tests/cli/test_served.py starts such a server
def test_the_command_of_the_public_demo_serves_all_addresses_and_writes_no_installed_file(
    installed, new_home
):
    demo = ROOT / "docs" / "demo"
    container = (demo / "Dockerfile").read_text()
    program, command, *options = json.loads(re.findall(r"^CMD (.*)$", container, re.MULTILINE)[-1])
    port = options.pop(options.index("--port") + 1)
    options.remove("--port")
    assert (program, command) == ("vlprobe", "dashboard")
    assert f"\nEXPOSE {port}\n" in container
    assert f"\napp_port: {port}\n" in (demo / "README.md").read_text().split("---")[1]
    before = set(installed.rglob("*"))
    with serving(installed, new_home, *options) as (pid, port):
        assert listening(port) == {"00000000"}  # every address
        assert "VLPROBE_READ_ONLY=1" in Path(f"/proc/{pid}/environ").read_text().split("\0")
        with connect(
            f"ws://127.0.0.1:{port}/_stcore/stream",
            origin=Origin(f"http://127.0.0.1:{port}"),
            subprotocols=[Subprotocol("streamlit")],
            max_size=None,
        ) as visitor:
            assert load_first_page(visitor)
    assert "Traceback" not in (installed.parent / "log.txt").read_text()
    assert set(installed.rglob("*")) == before


def interpreter(minor: int) -> Path | None:
    """Return a Python of this version from the path or from pyenv's versions, or None."""
    on_path = shutil.which(f"python3.{minor}")
    others = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(on_path)] if on_path else []
    candidates += sorted(others.glob(f"3.{minor}.*/bin/python3.{minor}"))
    for python in candidates:  # pyenv has shims for versions that are not enabled
        if subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0:
            return python
    return None


@pytest.mark.full
@pytest.mark.parametrize("minor", range(11, 15))
def test_the_wheel_installs_and_runs_on_every_python_that_torch_supports(minor, wheel, tmp_path):
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"there is no python3.{minor} on this machine")
    environment = tmp_path / "an environment"
    subprocess.run([python, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q", "--retries", "1"]
    made = subprocess.run([*pip, f"{wheel}[api]"], capture_output=True, text=True)
    if "No matching distribution found for" in made.stderr:
        pytest.skip(f"the index of this network lacks a package: {made.stderr.splitlines()[-1]}")
    assert made.returncode == 0, made.stderr
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    run = ["run", "--model", "demo:weak", "--limit", "4", "--format", "json"]
    completed = subprocess.run(
        [environment / "bin" / "vlprobe", *run],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stderr
    assert {row["model"] for row in json.loads(completed.stdout)} == {"demo:weak"}


@pytest.mark.full
def test_the_installed_command_finds_every_model_dataset_and_probe(installed, home):
    script = "from vlprobe import registry; print([registry.names(n) for n in ('models', 'datasets', 'probes')])"
    listed = subprocess.run(
        [installed / "bin" / "python", "-P", "-c", script],
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.strip() == str(
        [registry.names(name) for name in ("models", "datasets", "probes")]
    )
