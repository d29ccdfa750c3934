"""Readers for datasets. Each module reads one family of datasets."""
