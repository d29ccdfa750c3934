"""Present: slides made from stored results, full screen, and as one file."""
