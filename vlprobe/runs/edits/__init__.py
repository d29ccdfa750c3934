"""Edits that a language model writes for a dataset's captions, and what people think of them."""
