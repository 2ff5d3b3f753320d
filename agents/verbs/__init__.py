"""The verbs of agents on the command line: runs, slots, proposals and conversations.

Limits: the functions that run; the data of each verb is in its pack. They print through the doors
of the command line (`cerata.cli.options`, `cerata.cli.output`). Read first: `runs`.
"""
