"""Metrics for model answers, one file per family."""
