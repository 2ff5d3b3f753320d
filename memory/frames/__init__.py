"""Frames: commands, reads, timeline, differences and access records.

Read first: `commands` and `reads`.
"""
