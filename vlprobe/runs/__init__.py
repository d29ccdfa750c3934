"""Execution of runs, from a request to stored results; also jobs, integrity checks and the
playground.
"""
