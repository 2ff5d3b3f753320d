"""Frames: which are current as of any event, their attributes, filters and times.

Read first: `projection`, then `reader`.
"""
