"""The Run page: models, tests and pictures; and the progress of a run."""
