"""Projections: pure folds of the log, which answer queries.

Start with `core.projection` (the contract of each fold), then `frames` (which frames exist, and
when each was current) and `fulltext` (words to frames). Projections that a user defines are
`rows.row_projection`, folded by `rows.row_fold`; `registry` lists all projections, `core.seal`
defines the events that a chunk covers, and `columnar.columns` is the storage under the built-in
folds.
No module here reads a file or a clock: events come in, chunks of columns go out and come back, and
the same events give the same state on any machine.
"""
