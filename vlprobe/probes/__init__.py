"""What is asked of a model: one file a probe."""
