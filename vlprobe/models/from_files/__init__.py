"""Answers that were computed elsewhere and lie in files: vectors and matrices, found by keys."""
