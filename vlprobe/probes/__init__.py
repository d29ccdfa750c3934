"""Probes, the tests that run on a model. Each file contains one probe."""
