"""Crash states: what a disk may hold after a crash, and what recovery reads of it."""
