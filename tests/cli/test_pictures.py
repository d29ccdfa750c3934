"""Photographs on demand: announced before the download, verified, resumable, and never downloaded unasked."""

import io
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from tests.conftest import serving_http
from vlprobe.cli.main import main
from vlprobe.storage import access, downloads

NAMES = [f"{number:012}.jpg" for number in range(6)]


def jpeg(number: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (32, 24), (40 * number % 256, 0, 0)).save(content, "JPEG")
    return content.getvalue()


class Coco(BaseHTTPRequestHandler):
    """A server of /val2017/NAME.jpg; names in `broken` are damaged, those in `gone` are 404."""

    requested: list[str]
    broken: set[str]
    gone: set[str]

    def do_HEAD(self) -> None:
        self._answer(send=False)

    def do_GET(self) -> None:
        self.requested.append(self.path)
        self._answer(send=True)

    def _answer(self, send: bool) -> None:
        name = Path(self.path).name
        if name in self.gone or not self.path.startswith("/val2017/"):
            self.send_error(404)
            return
        content = jpeg(int(Path(name).stem))
        content = content[: len(content) // 2] if name in self.broken else content
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if send:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def coco() -> Iterator[str]:
    Coco.requested, Coco.broken, Coco.gone = [], set(), set()
    with serving_http(Coco) as address:
        yield address


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    rows = {
        str(k): {"filename": name, "caption": f"{k} dogs", "negative_caption": f"{k} cats"}
        for k, name in enumerate(NAMES)
    }
    folder = tmp_path / "val2017"
    folder.mkdir()
    (folder / NAMES[0]).write_bytes(jpeg(0))
    (tmp_path / "pairs.json").write_text(json.dumps(rows))
    return f"triplets:{tmp_path}/pairs.json@{folder}+unpictured"


def run(tmp_path: Path, dataset: str, *options: str, answer: str = "y") -> Result:
    command = ["--cache", str(tmp_path / "cache"), "pictures", dataset, *options]
    return CliRunner().invoke(main, command, input=answer)


def picture_names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "val2017").iterdir())


def test_missing_photographs_are_downloaded_after_a_yes(tmp_path: Path, dataset: str, coco: str):
    result = run(tmp_path, dataset, "--from", coco)
    assert result.exit_code == 0, result.output
    total = sum(len(jpeg(number)) for number in range(1, 6)) / 1e6
    assert f"5 photographs are missing: {total:,.1f} MB." in result.output
    assert picture_names(tmp_path) == NAMES
    assert (
        run(tmp_path, dataset, "--from", coco)
        .output.strip()
        .endswith("No COCO photographs are missing.")
    )


def test_no_photograph_is_downloaded_after_a_no(tmp_path: Path, dataset: str, coco: str):
    assert run(tmp_path, dataset, "--from", coco, answer="n").exit_code == 1
    assert Coco.requested == [] and picture_names(tmp_path) == NAMES[:1]


def test_a_damaged_photograph_is_named_and_only_missing_ones_are_requested_again(
    tmp_path: Path, dataset: str, coco: str
):
    Coco.broken, Coco.gone = {NAMES[2]}, {NAMES[4]}
    result = run(tmp_path, dataset, "--from", coco, "--yes")
    assert result.exit_code == 1
    assert f"Not downloaded: {NAMES[4]} (the server answered 404)" in result.output
    assert f"Not downloaded: {NAMES[2]} (" in result.output
    assert "2 of 5 photographs are still missing" in result.output
    assert picture_names(tmp_path) == [name for name in NAMES if name not in (NAMES[2], NAMES[4])]
    Coco.broken, Coco.gone, Coco.requested = set(), set(), []
    assert run(tmp_path, dataset, "--from", coco, "--yes").exit_code == 0
    assert sorted(Coco.requested) == [f"/val2017/{NAMES[2]}", f"/val2017/{NAMES[4]}"]


def test_a_server_without_photographs_gives_one_line(tmp_path: Path, dataset: str, coco: str):
    Coco.gone = set(NAMES)
    result = run(tmp_path, dataset, "--from", coco)
    assert (
        result.exit_code == 1
        and "The sizes of the 5 photographs could not be read" in result.output
    )
    assert "`" not in result.output


def test_a_read_only_server_downloads_nothing(
    tmp_path: Path, dataset: str, coco: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.READ_ONLY, "1")
    assert run(tmp_path, dataset, "--from", coco, "--yes").exit_code == 1
    assert Coco.requested == []


def test_missing_pictures_that_are_not_from_coco_are_counted(tmp_path: Path, coco: str):
    (tmp_path / "mine").mkdir()
    row = {"filename": "cat.jpg", "caption": "a dog", "negative_caption": "a cat"}
    (tmp_path / "pairs.json").write_text(json.dumps({"0": row}))
    result = run(
        tmp_path, f"triplets:{tmp_path}/pairs.json@{tmp_path}/mine+unpictured", "--from", coco
    )
    assert "1 missing pictures are not from COCO" in result.output and Coco.requested == []


def test_if_the_first_size_requests_fail_no_further_ones_are_sent(
    coco: str, monkeypatch: pytest.MonkeyPatch
):
    names = [f"{number:012}.jpg" for number in range(100)]
    Coco.gone, asked = set(names), []
    monkeypatch.setattr(
        Coco, "do_HEAD", lambda self: (asked.append(self.path), self.send_error(404))
    )
    urls = [f"{coco}/val2017/{name}" for name in names]
    assert downloads.total_bytes(urls) == (0, 100, "the server answered 404")
    assert len(asked) == downloads.PARALLEL


def test_the_number_of_parallel_downloads_is_limited(tmp_path: Path, coco: str):
    urls = {tmp_path / f"{n:012}.jpg": f"{coco}/val2017/{n:012}.jpg" for n in range(40)}

    def stop(n_handled: int, n_total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        downloads.download(urls, lambda content: None, stop)
    assert 1 <= len(Coco.requested) <= downloads.PARALLEL + 1
    report = downloads.download(urls, lambda content: None, lambda n_handled, n_total: None)
    assert report.n_written >= 30 and sorted(tmp_path.iterdir()) == sorted(urls)
