"""One case as pages and reports show it. `card` describes the case; `html` and `json` convert the description."""
