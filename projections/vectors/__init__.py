"""Vectors of frames by space, and the exact search among them.

Read first: `projection`, then `reader`.
"""
