"""Datasets whose table is in a bucket."""

from pathlib import Path

import fsspec
import pytest

from vlprobe.datasets import table
from vlprobe.errors import InvalidInput


def test_a_changed_table_in_a_bucket_is_downloaded_again(bucket: str, tmp_path: Path):
    name = f"table:{bucket}/x.csv+unpictured"
    for caption in ("A dog.", "A cat."):
        with fsspec.open(f"{bucket}/x.csv", "w") as handle:
            handle.write(f"image,caption\na.png,{caption}\n")
        (item,) = table.load(name, tmp_path / "cache").items
        assert item.captions == (caption,)
    assert len(list((tmp_path / "cache" / "fetched").rglob("x.csv"))) == 2


def test_a_table_missing_from_the_bucket_is_refused_in_one_line(bucket: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"'s3://.*/y.csv' does not exist") as refusal:
        table.load(f"table:{bucket}/y.csv", tmp_path / "cache")
    assert "\n" not in str(refusal.value)
