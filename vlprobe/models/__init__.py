"""Ways in for models: one file a family."""
