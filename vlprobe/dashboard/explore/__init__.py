"""Explore: every failure of a model as a wall of pictures, and each of them in a drawer."""
