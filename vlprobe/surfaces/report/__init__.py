"""A question set as one HTML file that opens offline."""
