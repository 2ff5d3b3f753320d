"""The state of a memory at a basis: layers of the log and of an open transaction.

Read first: `snapshot`.
"""
