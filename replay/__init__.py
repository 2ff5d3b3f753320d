"""Replay: time. Views at a basis, history, and rebuilding state from the log.

Leaves out what a projection does with an event; this room decides which events it is given, and
compares digests. It never writes to the log.
"""
