"""A remote store: listings and their caching, refused URLs, and files that remain local."""

import json
import os
import pickle
import shutil
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from tests.conftest import MADE_UP, facts, make_tiny
from tests.storage.remote.test_remote_s3 import OTHER, TABLE, request
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.models.doctor import examine
from vlprobe.runs import verify
from vlprobe.runs.run import execute
from vlprobe.scoring.vectors import VectorStore
from vlprobe.storage import mirror
from vlprobe.storage.mirror import MIRROR, Mirror
from vlprobe.storage.store import Store
from vlprobe.types import Picture

KEY, ANOTHER = MADE_UP


def finish(store: Store, key: str = KEY, table: pa.Table = TABLE, when: str = "2026-01-01") -> None:
    store.run(key).finish({"scores": table}, facts(key, when))


def ask(store: Store, key: str = KEY) -> None:
    """Write the questions of a made-up run."""
    store.cases(key).finish({"cases": TABLE}, {"key": key})


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense://a/b", r"'nonsense://a/b' is not a valid cache \(Protocol not known: nonsense"),
        ("s3:/bucket/x", r"'s3:/bucket/x' is neither a folder nor a URL.*two slashes"),
        ("s3://", r"'s3://' has no bucket"),
        ("file:///mnt/x", r"is a local folder\. Pass its path instead: --cache /mnt/x"),
        ("http://127.0.0.1:9000/bucket", r"Set the server's address in AWS_ENDPOINT_URL"),
        ("gs://a/b", r"'gs://a/b' needs a package .*gcsfs.*Install it with pip"),
        (
            "s3://user:secret@a/b",
            r"contains a user or password\. Set them in the environment instead\.$",
        ),
    ],
)
def test_an_invalid_cache_url_is_refused_in_one_line(url, message, on):
    with pytest.raises(InvalidInput, match=message):
        on("one", url).runs()


def test_the_error_for_missing_s3fs_shows_the_install_command(on, monkeypatch):
    pytest.importorskip("fsspec")
    missing = Mock(side_effect=ImportError("Install s3fs to access S3"))
    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(
        MissingDependency, match=r"'s3://nothing/x' needs .*pip install 'vlprobe\[s3\]'"
    ):
        on("one", "s3://nothing/x").runs()


def test_a_remote_store_can_be_opened_by_url_by_folder_and_after_pickling(memory, on):
    store = on("one", memory)
    finish(store)
    for other in (
        Store(store.root),
        Store(str(store.root)),
        Store(memory + "/"),
        pickle.loads(pickle.dumps(store)),
    ):
        assert (other.address, other.root) == (memory, store.root)
        assert [run["key"] for run in other.runs()] == [KEY]
    assert pickle.loads(pickle.dumps(Store(store.root.parent / "folder"))).mirror is None


def test_a_copied_mirror_folder_sends_nothing_to_the_url_in_its_mark(memory, on, tmp_path):
    finish(on("one", memory))
    shutil.copytree(Store(memory).root, tmp_path / "cache")
    with pytest.raises(InvalidInput, match="is the local mirror of a remote cache"):
        Store(tmp_path / "cache")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / mirror.MARK)  # must not block
    assert Store(tmp_path / "pipe").mirror is None


def test_names_in_a_bucket_cannot_leave_the_mirror(memory, on, tmp_path):
    store = on("one", memory)
    there = store.mirror
    for name in (
        "index/models/../../../evil.json",
        "index/runs/../../evil.2.json",
        "index/models/.hidden.json",
    ):
        there.put(name, b"{}")
    there.put("embeddings/m/texts/../../../../evil.npy", b"")
    assert store.runs() == []
    VectorStore(64, store.root / "embeddings" / "m" / "texts").close()
    assert not list(tmp_path.rglob("*evil*")) and not list(tmp_path.rglob(".hidden*"))


def test_a_page_requests_a_listing_only_every_few_seconds(memory, on, monkeypatch):
    finish(on("one", memory))
    store, listings = on("two", memory), []
    names = Mirror.names
    monkeypatch.setattr(mirror, "LISTED_SECONDS", 300.0)
    monkeypatch.setattr(
        Mirror, "names", lambda self, folder: (listings.append(folder), names(self, folder))[1]
    )
    version = store.version()
    for _ in range(20):
        assert len(Store(memory).runs()) == 1
        assert store.version() == version
    assert listings == ["index"]
    store.require_writable()  # requests a new listing before work
    assert listings == ["index"] * 2


def test_removals_and_new_results_of_other_machines_are_seen(memory, on):
    one, two = on("one", memory), on("two", memory)
    finish(one)
    assert len(two.runs()) == 1
    version = two.version()
    one.mirror.remove([f"index/runs/{KEY}.2.json"])
    assert two.runs() == one.runs() == []
    assert two.version() != version
    finish(one, table=OTHER, when="2026-01-02")
    assert two.run(KEY).table("scores").equals(OTHER)
    assert two.runs()[0]["finished"] == "2026-01-02"


def test_a_table_replaced_after_its_manifest_was_fetched_is_read_as_the_new_one(memory, on):
    one, two = on("one", memory), on("two", memory)
    finish(one)
    assert two.run(KEY).complete
    there = one.mirror
    there.remove([f"index/runs/{KEY}.2.json", *there.names(f"runs/{KEY}")])
    finish(one, table=OTHER)
    assert two.run(KEY).table("scores").equals(OTHER)


def test_a_damaged_manifest_is_reported_once_and_not_cached(memory, on, caplog):
    one, two = on("one", memory), on("two", memory)
    finish(one)
    name = f"index/runs/{KEY}.2.json"
    data = one.mirror.read(name)
    one.mirror.put(name, data.replace(b"2026", b"2027"))
    for key in (KEY, ANOTHER):
        ask(one, key)
    finish(one, ANOTHER)
    for _ in range(2):
        assert [run["key"] for run in two.runs()] == [ANOTHER]  # the damaged one hides no other
    assert [record.message.partition(" is ")[0] for record in caplog.records] == [
        f"'{memory}/{name}'"
    ]
    with pytest.raises(InvalidInput, match=f"'{memory}/{name}' is damaged"):
        two.run(KEY).manifest()
    assert not two.run(KEY).folder.exists()
    assert [(str(one.path), one.why) for one in verify.damages(two)] == [
        (f"{memory}/{name}", "it differs from what was written")
    ]


def test_a_part_that_is_damaged_in_the_bucket_is_recomputed(memory, on, caplog):
    one, two = on("one", memory), on("two", memory)
    entry = one.run(KEY)
    entry.write_part("0", TABLE)
    entry.write_part("1", OTHER)
    there = one.mirror
    damaged = next(
        name for name in there.names("runs") if "/0." in name and name.endswith(".parquet")
    )
    there.put(damaged, b"rubbish")
    assert two.run(KEY).part("0") is None
    assert f"{memory}/{damaged}" in caplog.text
    assert two.run(KEY).part("1").equals(OTHER)
    assert two.run(KEY).part("2") is None
    assert [str(one.path) for one in verify.damages(two)] == [f"{memory}/{damaged}"]
    verify.repair(verify.damages(two))
    assert two.run(KEY).parts() == {"1"}


def test_each_machine_finds_the_pictures_in_its_own_folder(memory, on, tmp_path):
    here, there = make_tiny(tmp_path / "here"), make_tiny(tmp_path / "there")
    (there_csv := Path(there.partition(":")[2])).write_bytes(
        Path(here.partition(":")[2]).read_bytes()
    )
    one = on("one", memory)
    manifest = execute(request(here, examine=True), one)[0]
    shutil.move(tmp_path / "here", tmp_path / "gone")
    two = on("two", memory)
    again = execute(request(f"csv:{there_csv}", examine=True), two)[0]
    assert again["case_key"] == manifest["case_key"]
    for store, folder in ((one, "here"), (two, "there")):
        shown = (
            store.cases(manifest["case_key"])
            .table("cases")["images"]
            .combine_chunks()
            .flatten()
            .to_pylist()
        )
        assert {Picture.from_name(name).path.parent for name in shown} == {tmp_path / folder}
    two.mirror.refresh(now=True)
    assert verify.damages(two) == []
    assert len(examine.load(two)) == 1
    assert len(two.mirror.names("cases")) == 1


def test_duckdb_reads_the_tables_of_a_bucket_from_their_local_copies(memory, on):
    finish(on("one", memory))
    two = on("two", memory)
    assert two.files([KEY], "scores") == [str(two.root / "runs" / KEY / "scores.parquet")]
    with two.cursor() as cursor:
        assert cursor.execute(
            "SELECT count(*) FROM read_parquet(?)", [two.files([KEY], "scores")]
        ).fetchone() == (3,)


def test_an_error_does_not_show_the_signature_of_a_url(memory, on, monkeypatch):
    there = on("one", memory).mirror
    error = ConnectionError('Cannot connect to "http://host/x?list-type=2&Signature=secret"\nnow')
    monkeypatch.setattr(type(there._opened[0]), "find", Mock(side_effect=error))
    with pytest.raises(InvalidInput, match=r'\(Cannot connect to "http://host/x" now\)') as error:
        there.names("")
    assert "secret" not in str(error.value)


def test_the_dashboard_gets_the_remote_cache_and_the_path_of_its_mirror(
    memory, on, monkeypatch, tmp_path
):
    seen = {}
    monkeypatch.chdir(os.getcwd())  # the dashboard changes to the folder of its settings
    monkeypatch.setattr("os.execve", lambda program, command, env: seen.update(env))
    monkeypatch.setenv(MIRROR, os.path.relpath(tmp_path / "mirrors"))
    with pytest.raises(SystemExit):
        main(["--cache", memory, "dashboard", "--root", str(tmp_path)])
    monkeypatch.setenv(MIRROR, seen[MIRROR])
    monkeypatch.chdir("/")
    assert Store(seen["VLPROBE_CACHE"]).address == memory
    assert str(Store(memory).root) in seen["VLPROBE_ROOTS"]


def test_a_local_store_has_no_mirror(tmp_path, monkeypatch):
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirrors"))
    store = Store(tmp_path / "cache")
    finish(store)
    assert (store.mirror, store.address) == (None, str(tmp_path / "cache"))
    assert mirror.mirror_of(store.root / "embeddings") is None
    assert not (tmp_path / "mirrors").exists()
    assert json.loads((store.root / "runs" / KEY / "manifest.json").read_bytes())["key"] == KEY
