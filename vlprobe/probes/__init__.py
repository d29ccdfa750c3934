"""Probes: the tests that are run on models, one file per probe."""
