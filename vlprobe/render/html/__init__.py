"""Render tables and cases as HTML. Names, captions and notes come from users and are always escaped."""
