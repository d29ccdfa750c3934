"""The Run page: who is asked, what, on which pictures; and how far a run is."""
