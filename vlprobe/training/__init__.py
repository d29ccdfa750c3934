"""Fine-tuning of models with the losses that the papers propose."""
