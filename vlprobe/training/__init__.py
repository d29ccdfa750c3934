"""Repair: what a model is taught with when it is fine-tuned, and the fine-tuning itself."""
