"""Pictures as large as a slide has room for."""

import base64
import io

import streamlit as st

from vlprobe.datasets import drawn
from vlprobe.errors import VlprobeError
from vlprobe.scoring import pictures
from vlprobe.types import Picture

SIDE = 1000  # pixels at most
MAX_BYTES = 120_000  # of one: six of them, as data addresses, stay below 1 MB
QUALITIES = (88, 75, 60, 40)


def large_address(name: str) -> str:
    """A picture as a data address, a drawn scene larger than models saw it; ""
    where it cannot be read.
    """
    picture = Picture.from_name(name)
    try:
        changed = picture.path.stat().st_mtime_ns
    except (OSError, ValueError):
        changed = 0
    return _address(name, changed)


@st.cache_data(max_entries=100, show_spinner=False)
def _address(name: str, changed: int) -> str:
    """`changed`, the time of the file, makes a new one of a changed file."""
    picture = Picture.from_name(name)
    try:
        image = drawn.draw(picture, SIDE) or pictures.open_picture(picture)
    except VlprobeError:
        return ""
    image = image.convert("RGB")
    side = SIDE
    while True:
        image.thumbnail((side, side))
        for quality in QUALITIES:
            buffer = io.BytesIO()
            image.save(buffer, "WEBP", quality=quality, method=2)
            if buffer.tell() <= MAX_BYTES:
                return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        side = side * 3 // 4
