"""Models behind an HTTP server: requests, costs, and the log of answers."""
