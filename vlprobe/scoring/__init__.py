"""Cases to scores: pictures and texts to embeddings, and galleries that are searched."""
