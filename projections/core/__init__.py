"""The base of every projection: the protocol, ranges of events, folds of columns, seals.

Read first: `projection`.
"""
