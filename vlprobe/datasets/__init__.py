"""Dataset readers, one file per family."""
