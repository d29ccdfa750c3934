import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import columnar_files, containers
from vlprobe.types import Picture


def png(color: str = "red", side: int = 8) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), color).save(buffer, format="PNG")
    return buffer.getvalue()


def write_tar(path: Path, members: dict[str, bytes], how: int = tarfile.GNU_FORMAT) -> Path:
    with tarfile.open(path, "w", format=how) as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize("how", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_the_members_of_a_tar_are_those_that_tarfile_finds(how: int, tmp_path: Path):
    folder = "/".join(["folder"] * 12)
    members = {"a.txt": b"", "./b.jpg": b"x" * 513, f"{folder}/c.txt": b"y" * 512}
    if how != tarfile.USTAR_FORMAT:
        members |= {"ü" * 90 + ".txt": b"z", f"{'long/' * 60}d.txt": b"d" * 1000}
    file = write_tar(tmp_path / "x.tar", members, how)
    with tarfile.open(file, "a", format=how) as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("after.txt"))
    with tarfile.open(file) as tar:
        expected = {
            entry.name.removeprefix("./"): (entry.offset_data, entry.size)
            for entry in tar
            if entry.isfile()
        }
    assert containers.members(file) == expected
    for name, content in members.items():
        assert containers.read_member(file, name.removeprefix("./")) == content
    assert not containers.is_file(file / "link")


def test_a_truncated_tar_is_refused_in_one_line(tmp_path: Path):
    whole = write_tar(tmp_path / "x.tar", {"a.jpg": png(side=40) * 9, "b.txt": b"x"}).read_bytes()
    cut = tmp_path / "cut.tar"
    for n_bytes in (0, 100, 511, 512, 700, 1500, 1536, 2048):
        cut.write_bytes(whole[:n_bytes])
        with pytest.raises(InvalidInput, match=r"is truncated|is not a valid tar") as refusal:
            containers.members(cut)
        assert "\n" not in str(refusal.value)
    cut.write_bytes(b"\x1f\x8b" + bytes(2000))
    with pytest.raises(InvalidInput, match="Expected a complete, uncompressed tar"):
        containers.members(cut)


def test_a_tar_with_too_many_members_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = write_tar(tmp_path / "x.tar", {f"{n}.txt": b"x" for n in range(4)})
    monkeypatch.setattr(containers, "MOST_MEMBERS", 3)
    with pytest.raises(InvalidInput, match="more than 3 members"):
        containers.members(file)
    monkeypatch.setattr(containers, "MOST_MEMBERS", 4)
    assert len(containers.members(file)) == 4
    monkeypatch.setattr(containers, "MOST_BYTES", 0)
    with pytest.raises(InvalidInput, match="has 1 bytes"):
        containers.read_member(file, "0.txt")


def test_a_changed_tar_is_listed_again(tmp_path: Path):
    file = write_tar(tmp_path / "x.tar", {"a.txt": b"a"})
    assert list(containers.members(file)) == ["a.txt"]
    assert containers.members(file) is containers.members(file)
    write_tar(file, {"a.txt": b"a", "b.txt": b"bb" * 9000})
    assert list(containers.members(file)) == ["a.txt", "b.txt"]


def write_cells(path: Path, contents: list[bytes | None]) -> Path:
    table = pa.table({"Photo": pa.array([{"bytes": c, "path": "x"} for c in contents])})
    pq.write_table(table, path, row_group_size=2)
    return path


def test_a_picture_in_a_parquet_cell_is_read_by_its_path(tmp_path: Path):
    contents = [png(color) for color in ("red", "green", "blue", "black", "white")]
    file = write_cells(tmp_path / "x.parquet", [*contents, None])
    for row, content in enumerate(contents):
        path = file / "Photo" / str(row)
        assert containers.is_file(path)
        assert pictures.read_bytes(path) == content
        assert containers.status(path).st_size == file.stat().st_size
    for absent in ("Photo/6", "Photo/-1", "photo/0", "Photo"):
        assert not containers.is_file(file / absent)
    with pytest.raises(InvalidInput, match="row 5, column 'Photo': the cell is empty"):
        pictures.read_bytes(file / "Photo" / "5")
    with pytest.raises(InvalidInput, match="has no row 77"):
        pictures.read_bytes(file / "Photo" / "77")


def test_a_row_group_that_decompresses_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = write_cells(tmp_path / "x.parquet", [png()])
    monkeypatch.setattr(columnar_files, "MOST_BYTES", 10)
    with pytest.raises(InvalidInput, match="write the file with smaller row groups"):
        pictures.read_bytes(file / "Photo" / "0")


def test_the_error_for_a_cell_that_is_not_a_picture_has_its_row(tmp_path: Path):
    file = write_cells(tmp_path / "x.parquet", [b"<svg/>"])
    with pytest.raises(InvalidInput, match="Photo/0' is not an image that vlprobe can read"):
        pictures.open_picture(Picture(file / "Photo" / "0"))


def test_a_crop_of_a_picture_has_its_pixels_and_a_separate_digest(tmp_path: Path):
    image = Image.new("RGB", (10, 10), "white")
    image.paste("red", (3, 4, 5, 8))
    image.save(tmp_path / "a.png")
    tar = write_tar(tmp_path / "x.tar", {"a.png": (tmp_path / "a.png").read_bytes()})
    for whole in (tmp_path / "a.png", tar / "a.png"):
        part = whole / "crop=3,4,2,4"
        assert containers.is_file(part)
        opened = pictures.open_picture(Picture(part))
        assert opened.size == (2, 4)
        assert opened.getcolors() == [(8, (255, 0, 0))]
        digests = pictures.file_digests([whole, part, whole / "crop=3,4,2,3"], tmp_path / "cache")
        assert len(set(digests)) == 3
        assert pictures.open_picture(Picture(whole / "crop=-3,8,50,50")).size == (10, 2)
        with pytest.raises(InvalidInput, match="outside the picture, which has 10 x 10"):
            pictures.read_bytes(whole / "crop=10,0,2,2")
    assert not containers.is_file(tmp_path / "b.png" / "crop=3,4,2,4")
    assert not containers.is_file(tmp_path / "crop=3,4,2,4")


def test_a_picture_inside_of_a_file_is_confined_like_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "open").mkdir()
    outside = write_tar(tmp_path / "x.tar", {"a.png": png(), "../open/b.png": png("blue")})
    (tmp_path / "open" / "link.tar").symlink_to(outside)
    inside = write_tar(tmp_path / "open" / "y.tar", {"a.png": png(), "../../x.tar": png()})
    monkeypatch.setenv("VLPROBE_ROOTS", str(tmp_path / "open"))
    assert pictures.read_bytes(inside / "a.png") == png()
    for path in (outside / "a.png", tmp_path / "open" / "link.tar" / "a.png", outside / "../x.tar"):
        with pytest.raises(InvalidInput, match="outside the folders"):
            pictures.read_bytes(path)
    with pytest.raises(InvalidInput, match="outside the folders"):
        pictures.read_bytes(inside / "../../x.tar")
