"""Crash states: the contents that a crash may leave on a disk, and which of them recovery reads."""
