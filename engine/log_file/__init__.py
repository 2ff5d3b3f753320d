"""The file of a log while it is open: created, locked, recovered, followed and written.

Leaves out the calls of a log (`log`) and the byte layout (`cerata.engine.format`). Read `file`
first, then `writer`.
"""
