"""The content of slides about stored results, as typed records."""
