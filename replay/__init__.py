"""Replay: views at a basis, history, and state rebuilt from the log.

Start with `fold` (the state that serves reads), then `checkpoint` (its saved form), `rebuild` and
`verify`. Leaves out the effect of an event on a projection; this room chooses the events to fold,
and compares digests. It saves checkpoints, and never appends to the log.
"""
