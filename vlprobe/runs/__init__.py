"""Stages of a run, from a request to stored results: questions, executors, answers; jobs, integrity checks of the
store, and the playground.
"""
