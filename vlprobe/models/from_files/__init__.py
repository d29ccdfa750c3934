"""Models that look up imported answers in files, as vectors or score matrices."""
