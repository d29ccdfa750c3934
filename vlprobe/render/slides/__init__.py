"""Content for slides about stored results, as typed records."""
