"""Slides about stored results: their content, as typed records."""
