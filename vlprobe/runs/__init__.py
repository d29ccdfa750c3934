"""From a request to stored results: questions, executors, answers; jobs, checks of the store,
and the playground.
"""
