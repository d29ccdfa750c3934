"""vlprobe from Python: its functions, what they return, and how that looks in a notebook."""
