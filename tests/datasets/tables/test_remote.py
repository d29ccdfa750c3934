import http.server
import importlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from tests.conftest import serving_http
from tests.storage.test_containers import png, write_tar
from vlprobe import registry
from vlprobe.datasets import table
from vlprobe.datasets.tables import remote
from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import access


class Counting(http.server.SimpleHTTPRequestHandler):
    """Serve a folder and record the requested paths."""

    requested: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requested.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """Yield a folder and its URL. The test server has no TLS, so http is allowed in place of https."""
    pytest.importorskip("aiohttp", reason="needs requirements-ray.txt")
    monkeypatch.setattr(remote, "SCHEMES", (*remote.SCHEMES, "http"))
    Counting.requested.clear()
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(Counting, directory=str(folder))
    with serving_http(handler) as address:
        yield folder, address


def test_a_remote_tar_is_downloaded_once_and_read_from_its_copy(
    served: tuple[Path, str], tmp_path: Path
):
    folder, url = served
    members = {
        "0.png": png("red"),
        "0.txt": b"A red square.",
        "1.png": png("blue"),
        "1.txt": b"Blue.",
    }
    write_tar(folder / "x.tar", members)
    name = f"table:{url}/x.tar"
    table.check_name(name)
    assert not Counting.requested
    first = table.load(name, tmp_path / "cache")
    n_asked = len(Counting.requested)
    again = table.load(name, tmp_path / "cache")
    assert n_asked >= 1 and len(Counting.requested) == n_asked
    assert [item.id for item in first.items] == ["x/0", "x/1"]
    assert first.digest == again.digest
    assert pictures.open_picture(first.items[1].image).getpixel((0, 0)) == (0, 0, 255)
    here = table.load(f"table:{folder / 'x.tar'}", tmp_path / "cache")
    assert here.digest == first.digest


def test_a_google_bucket_is_read_like_other_remotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # fsspec's memory file system replaces gcsfs: names, listing and reading use the same interface
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.get_filesystem_class("memory")

    class Bucket(memory):
        protocol = "gs"
        store: ClassVar[dict] = {}
        pseudo_dirs: ClassVar[list[str]] = [""]

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return super()._strip_protocol(path.removeprefix("gs://"))

    monkeypatch.setitem(importlib.import_module("fsspec.registry")._registry, "gs", Bucket)
    content = b"image,caption,negative\na.jpg,A red bus.,A blue bus.\nb.jpg,Two cats.,Two dogs.\n"
    Bucket().pipe("bucket/folder/x.csv", content)
    name = "table:gs://bucket/folder/x.csv+unpictured"
    table.check_name(name)
    loaded = table.load(name, tmp_path / "cache")
    assert [item.foils for item in loaded.items] == [("A blue bus.",), ("Two dogs.",)]
    copy = remote.local_copy("gs://bucket/folder/x.csv", tmp_path / "cache")
    assert copy.read_bytes() == content
    with pytest.raises(InvalidInput, match=r"'gs://bucket/none\.csv' does not exist"):
        remote.local_copy("gs://bucket/none.csv", tmp_path / "cache")


def test_a_missing_or_too_large_remote_file_is_refused_and_leaves_no_copy(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder, url = served
    (folder / "x.csv").write_text("image,caption\na.png,x\n")
    with pytest.raises(InvalidInput, match=r"'http.*/y\.csv' does not exist"):
        table.load(f"table:{url}/y.csv", tmp_path / "cache")
    monkeypatch.setattr(remote, "MOST_BYTES", 10)
    with pytest.raises(InvalidInput, match="The maximum is 10; split the file"):
        table.load(f"table:{url}/x.csv", tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.csv"))


def test_an_unreachable_host_is_reported_in_one_line(served: tuple[Path, str], tmp_path: Path):
    with pytest.raises(
        InvalidInput, match=r"127\.0\.0\.1:9/x\.csv' does not exist or cannot be reached"
    ) as refusal:
        table.load("table:http://127.0.0.1:9/x.csv", tmp_path / "cache")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("simplecache::s3://bucket/x.csv", "exactly one protocol"),
        ("zip://x.csv::https://x.org/a.zip", "exactly one protocol"),
        ("file:///etc/passwd", "Tables cannot be downloaded from"),
        ("ftp://x.org/x.csv", "Tables cannot be downloaded from"),
        ("memory://x/x.csv", "Tables cannot be downloaded from"),
        ("http://x.org/x.csv", "Tables cannot be downloaded from"),
        ("https://x.org/x.csv?token=secret", "not the plain URL"),
        ("https://x.org", "not the plain URL"),
        ("https:///x.csv", "not the plain URL"),
        ("https://x.org/x.exe", "Expected a table"),
        ("s3://bucket/x.csv+colour=red", "is not a valid option"),
    ],
)
def test_an_unsupported_url_is_refused_before_any_request(url: str, reason: str):
    with pytest.raises(InvalidInput, match=reason):
        registry.check_name("datasets", f"table:{url}")


def test_a_confined_dashboard_downloads_only_from_allowed_remotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limits = access.settings(False, [tmp_path], remotes=["s3://bucket/open", "https://x.org/"])
    for name, value in limits.items():
        monkeypatch.setenv(name, value)
    for url in (
        "s3://bucket/open/x.csv",
        "https://x.org/a/x.parquet",
        f"s3://bucket/open/x.csv@{tmp_path}",
    ):
        registry.check_name("datasets", f"table:{url}")
    for url in (
        *("s3://bucket/opener/x.csv", "s3://bucket/open/../x.csv", "s3://other/x.csv"),
        *("https://x.org.evil.net/x.csv", "https://x.org/%2e%2e/x.csv", "https://y.org/x.csv"),
    ):
        with pytest.raises(InvalidInput, match="may not download"):
            registry.check_name("datasets", f"table:{url}")
        with pytest.raises(InvalidInput, match="may not download"):
            table.load(f"table:{url}", tmp_path)
    with pytest.raises(InvalidInput, match="outside the folders"):
        registry.check_name("datasets", "table:s3://bucket/open/x.csv@/etc")
    monkeypatch.delenv(access.REMOTES)
    with pytest.raises(InvalidInput, match="may not download"):
        registry.check_name("datasets", "table:s3://bucket/open/x.csv")
    monkeypatch.delenv(access.ROOTS)
    monkeypatch.setenv(access.READ_ONLY, "1")
    with pytest.raises(InvalidInput, match="may not download"):
        registry.check_name("datasets", "table:s3://bucket/open/x.csv")


@pytest.mark.parametrize("target", ["elsewhere", "above", "below"])
def test_a_redirect_is_followed_only_within_the_allowed_remote(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
):
    folder, url = served
    (folder / "open").mkdir()
    (folder / "open" / "x.csv").write_text("caption,image\nA red square.,0.png\n")
    (folder / "x.csv").write_text("caption,image\nSecret.,0.png\n")
    locations = {
        "elsewhere": url.replace("127.0.0.1", "localhost") + "/x.csv",
        "above": f"{url}/x.csv",
        "below": f"{url}/open/x.csv",
    }

    class Redirecting(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", locations[target])
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with serving_http(Redirecting) as start:
        limits = access.settings(False, [tmp_path], remotes=[f"{start}/ok", f"{url}/open"])
        for name, value in limits.items():
            monkeypatch.setenv(name, value)
        if target == "below":
            copy = remote.local_copy(f"{start}/ok/x.csv", tmp_path / "cache")
            assert "A red square." in copy.read_text()
        else:
            with pytest.raises(InvalidInput, match="may not download"):
                remote.local_copy(f"{start}/ok/x.csv", tmp_path / "cache")
            assert not Counting.requested and not (tmp_path / "cache").exists()


def test_an_allowed_remote_that_is_not_a_url_is_refused():
    for url in ("bucket/open", "s3://a\ns3://b"):
        with pytest.raises(InvalidInput, match="is not a URL"):
            access.settings(False, [], remotes=[url])
