"""Execution of runs, from a request to stored results, as well as jobs, integrity checks and the playground."""
