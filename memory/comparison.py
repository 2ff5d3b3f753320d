"""Comparison: two views of one log, and the results of a question in both.

Owns the checks of the two views. Leaves out frames and facts (`frames.diff`, `facts.changes`) and
the comparison of results (`search.result_changes`).
"""

from dataclasses import replace

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.scopes import sees_same
from cerata.projections.fulltext.query import Query

from .frames.diff import Diff, diff
from .search.reads import SearchReads
from .search.result_changes import result_changes
from .snapshot.reader import snapshot_of
from .values.options import Page


def compared(a: SearchReads, b: SearchReads, query: str | Query | None, k: int) -> Diff:
    """Return the differences from a view to another; see `Store.diff`.

    Raises:
        InvalidInput: the views are of different logs or scopes, or an argument is unusable.
        Diverged: the views are of different forks; see `Store.history.compare`.
    """
    first, second = snapshot_of(a), snapshot_of(b)
    log, _, _ = first.source
    log.check_point(second.basis, second.identity)
    if not sees_same(first.reach, second.reach):
        raise InvalidInput(
            "a and b are views of different scopes",
            remedy="Pass two views of one scope, or points of the log.",
        )
    k = expect_integer("k", k)
    difference = diff(first, second)
    if query is None:
        return difference
    hits = [view.search(query, k=k, page=Page(group_by="frame")) for view in (a, b)]
    return replace(difference, results=result_changes(first, second, *hits))
