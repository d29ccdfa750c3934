"""Models that process a picture and a text together, one file per family; shared parts are in `heads`."""
