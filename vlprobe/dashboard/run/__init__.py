"""The Run page: choose models, tests and pictures, and follow the progress of a run."""
