"""Pictures as pages show them."""

from vlprobe.types import Picture


def changed_at(picture: Picture) -> int:
    """When the picture's file was last written, in nanoseconds, so that what is remembered of it can be told from what
    it is now; 0 where there is no file.
    """
    return picture.path.stat().st_mtime_ns if picture.path.exists() else 0
