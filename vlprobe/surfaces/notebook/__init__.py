"""vlprobe from Python: its functions, their results, and the display of these in a notebook."""
