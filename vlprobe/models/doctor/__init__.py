"""Model checks: passport, health checks, and edits that the model cannot see."""
