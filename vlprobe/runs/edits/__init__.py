"""Caption edits written by language models, and human verdicts on them."""
