"""A store behind a URL: what is looked for and when, what is refused, and what stays on this machine."""

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
    """Writes the questions of a made-up run."""
    store.cases(key).finish({"cases": TABLE}, {"key": key})


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        (
            "nonsense://a/b",
            InvalidInput,
            r"'nonsense://a/b' is not a valid cache \(Protocol not known: nonsense",
        ),
        (
            "s3:/bucket/x",
            InvalidInput,
            r"'s3:/bucket/x' is neither a folder nor a URL.*two slashes",
        ),
        ("s3://", InvalidInput, r"'s3://' has no bucket"),
        (
            "file:///mnt/x",
            InvalidInput,
            r"is a local folder\. Pass its path instead: --cache /mnt/x",
        ),
        (
            "http://127.0.0.1:9000/bucket",
            InvalidInput,
            r"Set the server's address in AWS_ENDPOINT_URL",
        ),
        ("gs://a/b", InvalidInput, r"'gs://a/b' needs a package .*gcsfs.*Install it with pip"),
        (
            "s3://user:secret@a/b",
            InvalidInput,
            r"contains a user or password\. Set them in the environment instead\.$",
        ),
    ],
)
def test_a_url_that_leads_nowhere_is_one_line(url, error, said, on):
    with pytest.raises(error, match=said):
        on("one", url).runs()


def test_without_s3fs_it_is_said_what_to_install(on, monkeypatch):
    pytest.importorskip("fsspec")
    missing = Mock(side_effect=ImportError("Install s3fs to access S3"))
    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(
        MissingDependency, match=r"'s3://nothing/x' needs .*pip install 'vlprobe\[s3\]'"
    ):
        on("one", "s3://nothing/x").runs()


def test_a_store_is_the_same_by_its_url_by_its_folder_and_sent_to_another_process(memory, on):
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


def test_a_folder_that_somebody_made_sends_nothing_to_an_address_that_it_names(
    memory, on, tmp_path
):
    finish(on("one", memory))
    shutil.copytree(Store(memory).root, tmp_path / "cache")
    with pytest.raises(InvalidInput, match="is the local mirror of a remote cache"):
        Store(tmp_path / "cache")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / mirror.MARK)  # is not waited for
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


def test_a_page_asks_for_a_listing_every_few_seconds_and_not_each_time(memory, on, monkeypatch):
    finish(on("one", memory))
    store, asked = on("two", memory), []
    names = Mirror.names
    monkeypatch.setattr(mirror, "LISTED_SECONDS", 300.0)
    monkeypatch.setattr(
        Mirror, "names", lambda self, folder: (asked.append(folder), names(self, folder))[1]
    )
    version = store.version()
    for _ in range(20):
        assert len(Store(memory).runs()) == 1
        assert store.version() == version
    assert asked == ["index"]
    store.require_writable()  # before work it is asked anew
    assert asked == ["index"] * 2


def test_what_is_removed_or_made_anew_elsewhere_is_so_here(memory, on):
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


def test_a_table_made_anew_since_its_manifest_was_fetched_is_the_new_one(memory, on):
    one, two = on("one", memory), on("two", memory)
    finish(one)
    assert two.run(KEY).complete
    there = one.mirror
    there.remove([f"index/runs/{KEY}.2.json", *there.names(f"runs/{KEY}")])
    finish(one, table=OTHER)
    assert two.run(KEY).table("scores").equals(OTHER)


def test_a_damaged_manifest_is_named_once_and_not_kept(memory, on, caplog):
    one, two = on("one", memory), on("two", memory)
    finish(one)
    name = f"index/runs/{KEY}.2.json"
    data = one.mirror.read(name)
    one.mirror.put(name, data.replace(b"2026", b"2027"))
    for key in (KEY, ANOTHER):
        ask(one, key)
    finish(one, ANOTHER)
    for _ in range(2):
        assert [run["key"] for run in two.runs()] == [ANOTHER]  # one that is damaged hides no other
    assert [record.message.partition(" is ")[0] for record in caplog.records] == [
        f"'{memory}/{name}'"
    ]
    with pytest.raises(InvalidInput, match=f"'{memory}/{name}' is damaged"):
        two.run(KEY).manifest()
    assert not two.run(KEY).folder.exists()
    assert [(str(one.path), one.why) for one in verify.damages(two)] == [
        (f"{memory}/{name}", "it differs from what was written")
    ]


def test_a_part_that_is_damaged_there_is_made_again(memory, on, caplog):
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


def test_each_machine_finds_the_pictures_where_it_has_them(memory, on, tmp_path):
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


def test_a_failure_is_told_without_the_signature_of_a_url(memory, on, monkeypatch):
    there = on("one", memory).mirror
    error = ConnectionError('Cannot connect to "http://host/x?list-type=2&Signature=secret"\nnow')
    monkeypatch.setattr(type(there._opened[0]), "find", Mock(side_effect=error))
    with pytest.raises(InvalidInput, match=r'\(Cannot connect to "http://host/x" now\)') as told:
        there.names("")
    assert "secret" not in str(told.value)


def test_the_dashboard_is_served_with_the_mirror_and_its_place(memory, on, monkeypatch, tmp_path):
    seen = {}
    monkeypatch.chdir(os.getcwd())  # the dashboard goes where its settings are
    monkeypatch.setattr("os.execve", lambda program, command, env: seen.update(env))
    monkeypatch.setenv(MIRROR, os.path.relpath(tmp_path / "mirrors"))
    with pytest.raises(SystemExit):
        main(["--cache", memory, "dashboard", "--root", str(tmp_path)])
    monkeypatch.setenv(MIRROR, seen[MIRROR])
    monkeypatch.chdir("/")
    assert Store(seen["VLPROBE_CACHE"]).address == memory
    assert str(Store(memory).root) in seen["VLPROBE_ROOTS"]


def test_a_folder_has_nothing_to_do_with_any_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirrors"))
    store = Store(tmp_path / "cache")
    finish(store)
    assert (store.mirror, store.address) == (None, str(tmp_path / "cache"))
    assert mirror.mirror_of(store.root / "embeddings") is None
    assert not (tmp_path / "mirrors").exists()
    assert json.loads((store.root / "runs" / KEY / "manifest.json").read_bytes())["key"] == KEY
