"""Ways in for pictures and captions: one file a family."""
