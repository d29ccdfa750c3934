"""Scoring of cases: embeddings of pictures and texts, and search in galleries."""
