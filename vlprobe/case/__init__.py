"""A case as every surface shows it: `card` describes it, `html` and `json` write it."""
