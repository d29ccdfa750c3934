"""Probes: the tests that models run, one file per probe."""
