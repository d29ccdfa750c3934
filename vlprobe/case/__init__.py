"""A single case as every page and report shows it: `card` describes it, `html` and `json` write it."""
