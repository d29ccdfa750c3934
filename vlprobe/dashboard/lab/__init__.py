"""The pages that Lab links to."""
