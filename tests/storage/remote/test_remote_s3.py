"""Two machines share a bucket of a real S3 server: each reads and resumes the other's results and never overwrites
them.
"""

import threading
from pathlib import Path
from unittest.mock import Mock

import fsspec
import pyarrow as pa
import pytest
from click.testing import CliRunner

from tests.conftest import facts
from tests.storage.remote.conftest import Server, put_after
from vlprobe import views
from vlprobe.cli import main
from vlprobe.errors import InvalidInput
from vlprobe.models.controls import ControlEncoder
from vlprobe.runs import answers as runs_answers
from vlprobe.runs import run
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.storage.mirror import Mirror
from vlprobe.storage.store import Store

TABLE = pa.table({"case": [0, 1, 2], "margin": [0.1, -0.2, 0.3]})
OTHER = pa.table({"case": [0, 1, 2], "margin": [0.1, -0.2, 0.4]})


def request(dataset_name: str, **changes) -> Request:
    return Request(
        **{
            "models": ("control:random",),
            "dataset": dataset_name,
            "probe": "lgip",
            "examine": False,
        }
        | changes
    )


def tables(store: Store, key: str) -> dict[str, bytes]:
    return {
        name: store.run(key).table_path(name).read_bytes()
        for name in ("scores", "estimates", "sums")
    }


def objects(url: str) -> dict[str, bytes]:
    files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return {name[len(root) + 1 :]: files.cat_file(name) for name in files.find(root)}


def put(url: str, name: str, data: bytes | None) -> None:
    files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    files.pipe_file(f"{root}/{name}", data) if data is not None else files.rm_file(f"{root}/{name}")


def call(url: str, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(main.main, ["--cache", url, *words], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout if not code else done.output


class AtHalf(Progress):
    """Call a function once, when half of the answers exist."""

    def __init__(self, what) -> None:
        self.what = what

    def update(self, label, done, total):
        is_answering = label.startswith("control:random") and "similarity spread" not in label
        if self.what and is_answering and total > 1 and done >= total / 2:
            what, self.what = self.what, None
            what()


refuse = Mock(side_effect=AssertionError("asked again"))


def test_results_of_one_machine_are_read_by_another_without_scoring_again(
    bucket, dataset_name, on, monkeypatch, tmp_path
):
    one = on("one", bucket)
    manifest = execute(request(dataset_name, examine=True), one)[0]
    key, sent = manifest["key"], objects(bucket)
    assert {name.partition("/")[0] for name in sent} == {
        "cases",
        "embeddings",
        "index",
        "runs",
        "writable",
    }
    assert not list(one.root.rglob("pending.json"))
    two = on("two", bucket)
    assert views.runs.runs(two)["key"].tolist() == [key]
    assert not list(two.root.rglob("*.parquet"))  # until a table is read
    assert tables(two, key) == tables(on("one", bucket), key)
    on("two", bucket)
    monkeypatch.setattr(run, "answer", refuse)
    monkeypatch.setattr("vlprobe.models.doctor.examine.examine", refuse)
    assert execute(request(dataset_name, examine=True), Store(bucket)) == [manifest]
    assert objects(bucket) == sent
    on("three", bucket)
    assert key in call(bucket, "show", "--format", "csv")
    assert "invariance_error" in call(bucket, "show", key)
    assert "a.png" not in call(bucket, "failures", key, "--outcome", "all", "--format", "csv")
    for name, command in (("out.duckdb", "export"), ("out.html", "report")):
        call(bucket, command, str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 10_000
    assert call(bucket, "verify") == ""


def test_a_stopped_run_is_resumed_on_another_machine(bucket, dataset_name, on, store, monkeypatch):
    monkeypatch.setattr(runs_answers, "PART_CASES", 20)
    with pytest.raises(KeyboardInterrupt):
        execute(
            request(dataset_name), on("one", bucket), AtHalf(Mock(side_effect=KeyboardInterrupt))
        )
    key = execute(request(dataset_name), store)[0]["key"]
    begun = {
        Path(name).name.partition(".")[0]
        for name in objects(bucket)
        if name.startswith(f"runs/{key}/parts/")
    }
    written = []
    two = on("two", bucket)
    entry = two.run(key)
    assert entry.parts() == begun
    assert all(entry.part(name) is not None for name in begun)
    assert entry.part("000000000-999999999") is None
    kept = type(entry).write_part
    monkeypatch.setattr(
        type(entry),
        "write_part",
        lambda own, name, table: (written.append(name), kept(own, name, table)),
    )
    execute(request(dataset_name), two)
    assert begun and written and not begun & set(written)
    assert tables(two, key) == tables(store, key)
    assert not [name for name in objects(bucket) if "/parts/" in name]


def test_if_two_machines_finish_at_once_each_manifest_matches_its_tables(bucket, on, monkeypatch):
    stores = [on(name, bucket) for name in ("one", "two")]
    entries = [store.run("a" * 16) for store in stores]
    gate = threading.Barrier(2)
    # both have checked for a manifest and found none
    monkeypatch.setattr(Mirror, "put", put_after(lambda: gate.wait(300)))
    threads = [
        threading.Thread(target=entry.finish, args=({"scores": table}, facts("a" * 16, note=name)))
        for entry, table, name in zip(entries, (TABLE, OTHER), ("one", "two"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = {"one": TABLE, "two": OTHER}
    for entry in (*entries, on("three", bucket).run("a" * 16)):
        assert entry.table("scores").equals(written[entry.manifest()["note"]])


def test_the_second_machine_to_finish_a_run_uses_the_results_of_the_first(bucket, on):
    one, two = (on(name, bucket).run("a" * 16) for name in ("one", "two"))
    one.finish({"scores": TABLE}, facts("a" * 16, note="one"))
    sent = objects(bucket)
    two.finish({"scores": OTHER}, facts("a" * 16, note="two"))
    assert objects(bucket) == sent
    assert two.manifest() == one.manifest()
    assert two.table("scores").equals(TABLE)


@pytest.mark.parametrize(
    "how", [pytest.param("truncated", marks=pytest.mark.full), "altered", "gone"]
)
def test_a_damaged_object_is_reported_removed_and_recreated(bucket, dataset_name, on, how):
    one = on("one", bucket)
    manifest = execute(request(dataset_name), one)[0]
    key, right = manifest["key"], tables(one, manifest["key"])
    name = next(name for name in objects(bucket) if name.startswith(f"runs/{key}/scores"))
    data = objects(bucket)[name]
    put(
        bucket,
        name,
        {"truncated": data[:99], "altered": data[:99] + b"?" + data[100:], "gone": None}[how],
    )
    two = on("two", bucket)
    with pytest.raises(
        InvalidInput, match=f"'{bucket}/{name}' (is|no longer|has changed) .*verify --repair"
    ):
        two.run(key).table("scores")
    assert not list((two.root / "runs" / key).glob("*scores*"))
    assert call(bucket, "verify", code=1).startswith(f"{bucket}/{name}: ")
    call(bucket, "verify", "--repair")
    assert Store(bucket).runs() == []
    assert on("one", bucket).runs() == []
    execute(request(dataset_name), on("two", bucket))
    assert tables(on("one", bucket), key) == right
    assert call(bucket, "verify") == ""


def test_a_damaged_local_file_is_restored_from_the_bucket(bucket, dataset_name, on):
    one = on("one", bucket)
    key = execute(request(dataset_name), one)[0]["key"]
    right = tables(one, key)
    (one.root / "runs" / key / "scores.parquet").write_bytes(b"rubbish")
    assert tables(one, key) == right
    (one.root / "runs" / key / "sums.parquet").unlink()
    assert tables(one, key) == right


def test_no_finished_work_is_lost_if_the_server_stops_during_a_run(
    server: Server, bucket, dataset_name, on, monkeypatch
):
    monkeypatch.setattr(runs_answers, "PART_CASES", 20)
    one = on("one", bucket)
    with pytest.raises(
        InvalidInput, match=f"Cannot use '{bucket}' .*run the same command again to continue"
    ):
        execute(request(dataset_name), one, AtHalf(server.stop))
    with pytest.raises(InvalidInput, match="Cannot use"):
        one.runs()
    server.start()
    with monkeypatch.context() as patch, pytest.raises(InvalidInput, match="Cannot use"):
        patch.setattr(Mirror, "put", put_after(server.stop))
        execute(request(dataset_name), one)  # all cases are scored but cannot be committed
    server.start()
    assert one.runs() == []
    with monkeypatch.context() as patch:
        patch.setattr(run, "answer", refuse)
        key = execute(request(dataset_name), one)[0]["key"]
    assert tables(on("two", bucket), key)["scores"]
    assert call(bucket, "verify") == ""


def test_a_read_only_machine_uploads_nothing(bucket, dataset_name, on, monkeypatch):
    key = execute(request(dataset_name), on("one", bucket))[0]["key"]
    before = objects(bucket)
    two = on("two", bucket)
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    assert len(views.estimates.estimates(views.runs.question_set(two, two.find(key)["case_key"])))
    with pytest.raises(InvalidInput, match="read-only"):
        two.require_writable()
    with pytest.raises(InvalidInput, match="read-only"):
        two.run("b" * 16).finish({"scores": TABLE}, {"key": "b" * 16, "finished": "1"})
    assert objects(bucket) == before


def test_embeddings_of_one_machine_are_reused_by_another(bucket, on, monkeypatch):
    model, n_texts = ControlEncoder("random"), []
    encode = model.encode_texts
    monkeypatch.setattr(
        model,
        "encode_texts",
        lambda tokens: (n_texts.append(len(set(map(bytes, tokens)))), encode(tokens))[1],
    )
    vectors = []
    for name in ("one", "two", "three"):
        encoder = CachedEncoder(model, on(name, bucket).root / "embeddings")
        vectors.append(
            encoder.texts(
                ["a red dog", "a dog", "two dogs"][: 2 if name == "one" else 3], keep=True
            )
        )
        encoder.close()
    assert n_texts == [2, 1]
    assert vectors[1].tobytes() == vectors[2].tobytes()
    assert vectors[0].tobytes() == vectors[1][:2].tobytes()
    assert len(objects(bucket)) == 2
    name, data = next(iter(objects(bucket).items()))
    put(bucket, name, data[:-1])
    with pytest.raises(InvalidInput, match=f"'{bucket}/{name}' has changed since it was written"):
        CachedEncoder(model, on("four", bucket).root / "embeddings")
    assert call(bucket, "verify", "--repair") == f"{bucket}/{name}: its checksum differs\n"
    # machine two has the file and uploads it again
    CachedEncoder(model, on("two", bucket).root / "embeddings").close()
    assert objects(bucket)[name] == data


def test_a_missing_or_inaccessible_bucket_is_refused_in_one_line(bucket, on, monkeypatch):
    with pytest.raises(
        InvalidInput,
        match=r"'s3://nobody/x' does not exist .*bucket does not exist.*Create the bucket",
    ):
        on("one", "s3://nobody/x").runs()
    with pytest.raises(InvalidInput, match=r"'s3://nobody/x' does not exist"):
        on("one", "s3://nobody/x").require_writable()
    import s3fs

    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", "/nonexistent")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(
        InvalidInput, match=r"Cannot use '.*Unable to locate credentials.*credentials in the env"
    ):
        on("one", f"{bucket}/other").runs()
    s3fs.S3FileSystem.clear_instance_cache()
