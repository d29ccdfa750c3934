"""Training: fine-tuning with the losses that the papers propose."""
