"""Models behind an HTTP server, with their requests, costs, and answer logs."""
