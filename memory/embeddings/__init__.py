"""Embeddings: the commands that embed frames, and the vectors that a store has for texts."""
