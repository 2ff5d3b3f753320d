"""Groups of reads that a handle of a store and one of a view have alike, such as ``graph``.

Leaves out the reads themselves, which are classes of their rooms, and the handles (`view`,
`handles`).
"""

from typing import TYPE_CHECKING, NoReturn

from .facts.reads import FactGraphReads
from .frames.history_reads import HistoryReads
from .frames.log_reads import AuditReads
from .frames.reads import FileReads
from .frames.timeline_reads import TimelineReads
from .graph.reads import GraphReads
from .links.reads import LinkReads
from .links.why_reads import WhyReads
from .recall_reads import RecallReads
from .search.reads import SourceReads


class GraphGroup(FactGraphReads, LinkReads, WhyReads, GraphReads):
    """The reads of facts, entities and links."""


class HistoryGroup(HistoryReads, AuditReads, TimelineReads, RecallReads):
    """The reads of the past, and of frames in order of time."""

    if not TYPE_CHECKING:

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Name the new place: `history` was a call, and is the name of a handle now."""
            raise TypeError("history() moved: use history.of() (docs/renamed.md)")


class FileGroup(FileReads, SourceReads):
    """The reads of contents and documents."""
