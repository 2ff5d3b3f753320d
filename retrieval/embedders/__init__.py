"""Embedders: from texts to vectors, and the name of the space that vectors of one maker share.

The protocol and the adapters. Leaves out where vectors are stored (`cerata.memory.spaces`) and
how they are searched. Start at `identity`.
"""
