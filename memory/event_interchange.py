"""Commands of interchange: `interchange.export_events` and `interchange.import_events`.

Owns the two calls. Leaves out their work (`interchange.export`, `interchange.importing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import InvalidInput
from cerata.engine.late import loading
from cerata.engine.packs import Role
from cerata.projections.columnar.scopes import check_reach

from .points_in_time import Points

if TYPE_CHECKING:
    from .interchange.export import ExportedEvents, ExportProgress
    from .interchange.importing import ImportedEvents, ImportProgress
    from .interchange.line_files import Target
    from .view import Basis


class InterchangeCommands(Points):
    """The calls that copy the events of a log to another file, and back."""

    def export_events(
        self,
        to: Target,
        *,
        at: Basis = "HEAD",
        first: int = 1,
        progress: ExportProgress | None = None,
    ) -> ExportedEvents:
        """Write every event, exact, as JSON Lines (docs/interchange.md).

        `interchange.import_events` reads them.

        Other processes may write at the same time; the lines end at the basis.

        Args:
            to: The file to create, compressed if its name ends in ``.zst``; or an open file.
            at: The end of a batch, as the method `at` takes it; default the newest event.
            first: An event of the first batch to write, by its seq; default 1.
            progress: Called with the count of exported events, and how many there are to export.

        Raises:
            InvalidInput: ``at`` lies inside a batch, ``first`` after it, or the store has a scope.
            Conflict: a file exists at the path.
            Corrupt: an event cannot be read, with its batch; the lines end before it.
        """
        with loading("the part that exports events"):
            from .interchange.export import export_events
            from .interchange.line_files import opened_target

        check_reach(self._session.reach)
        if self._session.reach is not None:
            raise InvalidInput(
                "export_events writes every event, and the store has a scope",
                remedy="Open the store without a scope.",
            )
        first = expect_integer("first", first, "a number", "Pass the seq of an event.")
        basis = self._seq_of(at)
        memory = self._log.path if self._log.is_lasting else None
        with opened_target(to, memory) as file:
            return export_events(self._log, file, first, basis, progress)

    def import_events(
        self, source: Target, *, progress: ImportProgress | None = None
    ) -> ImportedEvents:
        """Write the events of `interchange.export_events`: each batch whole or not at all.

        An empty file becomes a copy of the exported log, with its id, seqs, times, salts and
        hashes. A copy gets the batches after its newest event, so a repeated call continues after
        an interrupt. Another log gets the events as new events, with references remapped, each
        batch once.

        Args:
            source: The file to read, decompressed if its name ends in ``.zst``; or an open file.
            progress: Called after each group of batches with the counts of finished lines and of
                bytes read.

        Raises:
            InvalidInput: a line is unusable; ``where`` has its number. The batches before it are
                written, and nothing of its batch. Or the export begins after the file's newest
                event, an event is outside the store's scope, or a transaction is open.
            Diverged: the file is a copy of the log with another history.
            Unsupported: another log gets no events of unknown types.
            Conflict: a rule of the log refuses a batch, or another writer came first.
        """
        with loading("the part that imports events"):
            from .interchange.importing import import_events
            from .interchange.line_files import opened_source

        session = self._session.acting(Role.COPY)
        if session.in_transaction:
            raise InvalidInput(
                "interchange.import_events writes several batches and cannot run in a transaction",
                remedy="Call interchange.import_events() after the block.",
            )
        check_reach(session.reach)
        session.check_writable()
        with opened_source(source) as lines:

            def report(count: int) -> None:
                if progress is not None:
                    progress(count, lines.taken)

            return import_events(session, lines.read, report)
