"""Edits that a language model writes for a dataset's captions, and people's verdicts on them."""
