"""Malicious tar files: members are read correctly or the file is refused with a one-line error, quickly."""

import io
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.hostile.test_hostile_datasets import refusal
from tests.storage.test_containers import png, write_tar
from vlprobe.datasets import table
from vlprobe.errors import InvalidInput
from vlprobe.storage import containers

END = bytes(1024)


def member(
    name: str, content: bytes, kind: bytes = tarfile.REGTYPE, size: int | None = None
) -> bytes:
    """Return a header with its checksum, followed by the content padded to full blocks."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content) if size is None else size
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def pax(*fields: tuple[str, str], kind: bytes = tarfile.XHDTYPE) -> bytes:
    return member("pax", b"".join(record(*field) for field in fields), kind)


@cache  # a file repeats the same field millions of times
def record(name: str, value: str) -> bytes:
    text = f" {name}={value}\n".encode()
    length = len(text) + len(str(len(text)))
    return f"{length + (len(str(length)) > len(str(len(text))))}".encode() + text


DIGITS = "9" * 5000
SPARSE = (("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"))
PICTURE, CAPTION = member("0.png", png()), member("0.txt", b"A dog.")
LONG, MANY = "a number of more than 100 digits", "headers of more than 262,144 bytes"
BACK, CUT = "a member ends before it begins", "is truncated. Download it again."
MADE: dict[
    str, tuple[Callable[[], bytes], str]
] = {  # a file, and part of its error; "" if it is read
    "a size of 5,000 digits": (lambda: pax(("size", DIGITS)) + PICTURE, LONG),
    "a length of 5,000 digits": (
        lambda: member("pax", f"{DIGITS} path=x\n".encode(), b"x") + PICTURE,
        LONG,
    ),
    "a time of 5,000 digits": (lambda: pax(("mtime", DIGITS)) + PICTURE, LONG),
    "a field of a million digits": (lambda: pax(("comment", "9" * 1_000_000)) + PICTURE, MANY),
    "2 MB of short fields": (lambda: pax(*[("a", "b")] * 300_000) + PICTURE, MANY),
    "as many, a few at a time": (lambda: pax(*[("a", "b")] * 9_000) * 330 + PICTURE, MANY),
    "many, a few with each member": (
        lambda: (pax(*[("a", "b")] * 9_000) + PICTURE) * 60 + CAPTION,
        "",
    ),
    "global fields without an end": (lambda: pax(("a", "b"), kind=b"g") * 20_000 + PICTURE, MANY),
    "global fields that grow with each member": (
        lambda: b"".join(
            pax(*[(f"{number}.{part}", "b") for part in range(30)], kind=b"g") + CAPTION
            for number in range(10)
        ),
        "more than 100 global fields",
    ),
    "long names of long names": (lambda: member("x", b"a" * 600, b"L") * 5_000 + PICTURE, MANY),
    "a size below zero": (lambda: member("0.png", b"", size=-1024) + PICTURE, BACK),
    "a size below zero in a field": (
        lambda: PICTURE + pax(("size", "-2048")) + member("1.png", b""),
        BACK,
    ),
    "a name of a size below zero": (lambda: member("x", b"", b"L", size=-512) + PICTURE, MANY),
    "a size of 8 EiB": (lambda: member("0.png", b"", size=2**63 - 1) + PICTURE, CUT),
    "a name of a terabyte": (lambda: member("x", b"", b"L", size=2**40) + PICTURE, MANY),
    "a sparse file of numbers": (
        lambda: pax(*SPARSE) + member("0.png", b"1000000000\n" + b"1\n" * 5_000_000),
        MANY,
    ),
    "a sparse map that is none": (lambda: pax(*SPARSE) + PICTURE, "is not a valid tar"),
    "numbers of a sparse file alone": (
        lambda: pax(("GNU.sparse.numbytes", "1")) + PICTURE + CAPTION,
        "",
    ),
    "a character set that nobody has": (lambda: pax(("hdrcharset", "no")) + PICTURE + CAPTION, ""),
    "nothing but an end": (bytes, "has no pictures"),
    "a member in the middle of the end": (lambda: PICTURE + CAPTION + bytes(512) + PICTURE, ""),
    "something else after a member": (
        lambda: PICTURE + b"x" * 512 + CAPTION,
        "neither a member nor the end",
    ),
    "no end": (lambda: PICTURE, CUT),
}


@pytest.mark.parametrize("what", MADE)
def test_a_malicious_tar_is_read_correctly_or_refused_in_one_line(what: str, tmp_path: Path):
    make, expected = MADE[what]
    file = tmp_path / "a.tar"
    file.write_bytes(make() + (b"" if what == "no end" else END))
    if expected:
        assert expected in refusal(f"table:{file}", tmp_path / "cache")
    else:
        (item,) = table.load(f"table:{file}", tmp_path / "cache").items
        assert item.captions == ("A dog.",) and containers.read_member(file, "0.png") == png()


NAMES = {
    "an absolute path": "/etc/passwd",
    "up and up": "../../etc/passwd",
    "a name of 4,000 letters": "folder/" * 600 + "a.png",
    "a name of bytes that are no text": "\udcff\udcfe.png",
    "a name of two lines": "a\nb.png",
}


@pytest.mark.parametrize("how", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("what", NAMES)
def test_an_unusual_member_name_is_never_used_as_a_path(what: str, how: int, tmp_path: Path):
    file = write_tar(tmp_path / "a.tar", {NAMES[what]: b"inside"}, how)
    assert list(containers.members(file)) == [NAMES[what]]
    assert containers.read_member(file, NAMES[what]) == b"inside"


def damaged(content: bytes) -> Iterator[bytes]:
    rng = np.random.default_rng(0)
    for number in range(400):
        broken = bytearray(content[: rng.integers(1, len(content))] if number % 3 == 0 else content)
        for place in rng.integers(0, len(broken), number % 4):
            broken[place] = rng.integers(256)
        yield bytes(broken)


@pytest.mark.parametrize("how", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_with_random_bytes_changed_is_read_or_refused_in_one_line(how: int, tmp_path: Path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=how) as tar:
        for name in ("ü" * (9 if how == tarfile.USTAR_FORMAT else 90), "b.png"):
            info = tarfile.TarInfo(name)
            info.size = 700
            tar.addfile(info, io.BytesIO(bytes(700)))
    n_read = 0
    for number, content in enumerate(damaged(buffer.getvalue()[:5120])):
        file = tmp_path / f"{number}.tar"
        file.write_bytes(content)
        try:
            for start, n_bytes in containers.members(file).values():
                assert min(start, n_bytes) >= 0 and start + n_bytes <= len(content)
            n_read += 1
        except InvalidInput as error:
            assert str(error).isprintable()
    assert 0 < n_read < 400


def test_listing_the_members_of_a_tar_reads_only_the_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sizes = []
    read = containers._Headers.read
    monkeypatch.setattr(
        containers._Headers, "read", lambda self, size=-1: sizes.append(size) or read(self, size)
    )
    containers.members(
        write_tar(tmp_path / "a.tar", {f"{n}.png": bytes(1_000_000) for n in range(3)})
    )
    assert set(sizes) <= {1, 512}
