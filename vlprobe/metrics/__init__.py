"""Metrics of model answers, one file per family."""
