"""Crash states: the contents that a crash may leave on a disk, and the parts that recovery reads."""
