"""Training: fine-tuning with what the papers propose as a repair, and how the demo models came
to be.
"""
