"""Projections: pure folds of the log, which answer queries.

Start with `projection` (the contract of each fold), then `frames` (which frames exist, and when
each was current) and `fulltext` (words to frames). Projections that a user defines are `rows`,
folded by `row_fold`; `registry` lists all projections, `ranges` defines the events that a chunk
covers, and `columns` is the storage under the built-in folds.
No module here reads a file or a clock: events come in, chunks of columns go out and come back, and
the same events give the same state on any machine.
"""
