"""Surfaces besides the dashboard: the static site, the report, and notebooks."""
