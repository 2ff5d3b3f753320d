"""Reading recorded recalls: explained beside today's answer, and repeated at their bases.

Owns the forms in which a caller names a recall or a hit. Leaves out the work
(`recall_explanation`, `search.recall_rerun`, `search.reads`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, overload

from cerata.engine.arguments import expect_integer, expect_type
from cerata.engine.errors import InvalidInput
from cerata.engine.events import Event
from cerata.engine.json_value import exact
from cerata.engine.late import late, loading

from .snapshot.reader import Reader
from .values.frames import Context, Hit

if TYPE_CHECKING:
    from cerata.projections.columnar import scopes

    from .recall_explanation import RecallExplanation
    from .search.recall_rerun import RecallRerun
    from .snapshot.snapshot import Snapshot
    from .values.explanation import Explanation
else:
    scopes = late("cerata.projections.columnar.scopes")

RecallId: TypeAlias = int | Event | Context
"""A recorded recall: the seq of its event, the event, or the context that it recorded."""


class RecallReads(Reader):
    """The reads of hits and of recorded recalls."""

    @overload
    def explain(self, hit: Hit) -> Explanation: ...

    @overload
    def explain(self, hit: RecallId) -> RecallExplanation: ...

    def explain(self, hit: Hit | RecallId) -> Explanation | RecallExplanation:
        """Return why a recorded recall showed each line, or how a hit's score came about.

        - A recall: the lines that the agent saw, the reason for each, and the same question asked
          at this basis; each line is kept, gone or new, with the event that changed it.
        - A hit: its score as of the view that found it, in parts.

        Both are made to be printed.

        Args:
            hit: A hit that `search` of this store or view returned; or a recorded recall: its
                seq, its event, or its `Context`.

        Raises:
            InvalidInput: the value is neither, or a context was not recorded; or a hit comes from
                another log or scope, or is a copy without its search.
            NotFound: no event of this seq within the scope is a recall.
        """
        hit = exact(hit)
        if not isinstance(hit, int | Event | Context):
            return _explained_hit(self._snapshot(), hit)
        with loading("the part that explains recalls"):
            from .recall_explanation import explain_recall

        return explain_recall(self, _seq_of(hit))

    def rerun(self, recall: RecallId) -> RecallRerun:
        """Ask a recorded recall again at its own basis, and compare it with the recording.

        The outcome is "same", "different" or, with a reason, "unknown"; ``differences`` has each
        place at which the shown frames or facts differ.

        Args:
            recall: The recall's seq, its event, or its `Context`.

        Raises:
            InvalidInput: a context was not recorded.
            NotFound: no event of this seq within the scope is a recall.
        """
        with loading("the part that repeats recalls"):
            from .search.recall_rerun import rerun_recall

        return rerun_recall(self, _seq_of(recall))


def _seq_of(recall: RecallId) -> int:
    if isinstance(recall, Event):
        return recall.seq
    if isinstance(recall, Context):
        if recall.recorded is None:
            raise InvalidInput(
                "The context was not recorded", remedy="Pass record=True to recall()."
            )
        return recall.recorded
    return expect_integer("recall", recall)


def _explained_hit(snapshot: Snapshot, hit: Hit) -> Explanation:
    """Return how a hit's score came about, as of the view that found it.

    Raises:
        InvalidInput: hit is no `Hit`, comes from another log or scope, or is a copy without its
            search.
    """
    expect_type("hit", hit, Hit, "a Hit", "Pass a hit of search().")
    if hit.made_by.identity != snapshot.identity:
        raise InvalidInput(
            "hit comes from another log",
            remedy="Call history.explain() of the store that found it.",
        )
    if not scopes.sees_same(hit.made_by.reach, snapshot.reach):
        raise InvalidInput(
            "hit comes from another scope",
            remedy="Call history.explain() of the store or view that found it.",
        )
    return hit.made_by.explain(hit)
