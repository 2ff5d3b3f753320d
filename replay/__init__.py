"""Replay: time. Views at a basis, history, and rebuilding state from the log.

Start with `fold` (which state serves), then `checkpoint` (what is saved of it), `rebuild` and
`verify`. Leaves out what a projection does with an event; this room decides which events it is
given, and compares digests. It saves checkpoints, and never appends to the log.
"""
