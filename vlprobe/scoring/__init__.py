"""Scoring of cases, with embeddings for pictures and texts, and gallery search."""
