"""Bytes in, bytes out: files, the result store, its mirror of an object store, notes and bookmarks."""
