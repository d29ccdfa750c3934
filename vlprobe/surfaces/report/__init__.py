"""The report on a question set: a single HTML file that opens offline."""
