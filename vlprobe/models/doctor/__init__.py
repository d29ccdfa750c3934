"""Whether a model is fit to be believed: its passport, health checks, and edits that never reach
it.
"""
