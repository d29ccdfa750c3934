"""Metrics computed from the answers of models. Each file contains one family of metrics."""
