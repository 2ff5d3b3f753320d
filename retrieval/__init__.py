"""Retrieval: from a question to a context with named sources.

Lanes, fusion, and an exact budget of tokens. Leaves out the indexes themselves, which are
projections; it reads them through a view and never writes.
"""
