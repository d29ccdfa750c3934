"""Model checks: a passport with facts, health checks, and a count of the edits that the model cannot see."""
