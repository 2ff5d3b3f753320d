"""Projections: pure folds of the log, which answer questions.

Start with `projection` (what every fold promises), then `frames` (what there is, and when it was
current) and `fulltext` (words to frames). A user's own are `rows`, folded by `row_fold`; `registry`
names them all, and `ranges` says what a chunk covers. `columns` holds what they are made of.
Nothing here reads a file or a clock: events come in, chunks of columns go out and come back, and
the same events give the same state on any machine.
"""
