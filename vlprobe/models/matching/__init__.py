"""Models that look at a picture and a text together, a file a family; `heads` has what they share."""
