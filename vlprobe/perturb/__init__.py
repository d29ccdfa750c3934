"""Edits of captions and pictures that need no model."""
