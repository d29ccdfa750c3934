"""Scoring of cases: embeddings of pictures and texts, and gallery search."""
