"""Contexts: entries packed into a token budget, and how each is written.

Read first: `packing`.
"""
