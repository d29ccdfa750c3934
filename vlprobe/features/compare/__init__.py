"""The Compare page: a scorecard of all models, and the paired differences of a few."""
