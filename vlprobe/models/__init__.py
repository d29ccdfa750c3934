"""Adapters for models, one file per family."""
