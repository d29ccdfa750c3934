"""Slides about stored results: what each of them says, as typed records."""
