"""What judges the answers: one file a family of metrics."""
