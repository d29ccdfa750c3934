"""Builders for malicious files, and a check that a model of such a file is refused."""

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vlprobe import registry
from vlprobe.errors import InvalidInput


class Trap:
    def __reduce__(self):
        return (Path("/tmp/vlprobe-was-run").touch, ())


def header(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def archive(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def parquet(**columns: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def lines(*rows: object) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def refused(name: str) -> str:
    """Return the one-line error with which this model is refused, and check that no code in its file ran."""
    with pytest.raises(InvalidInput) as caught:
        registry.check_name("models", name)
        registry.load_model(name)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 1500
    assert not Path("/tmp/vlprobe-was-run").exists()
    return message
