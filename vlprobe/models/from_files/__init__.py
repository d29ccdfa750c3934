"""Imported answers in files: vectors and matrices, looked up by key."""
