"""Embedders: from texts to vectors, and the name of the space of an embedder's vectors.

The protocol and the adapters. Leaves out the storage of vectors (`cerata.memory.values.vectors`)
and the search among them. Start at `identity`.
"""
