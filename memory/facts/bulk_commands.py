"""Bulk fact commands: `interchange.import_facts`, from lines, and `graph.extract`, from frames.

Owns the two calls. Leaves out their work (`importing`, `extraction`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import exact
from cerata.engine.late import loading
from cerata.engine.packs import Role

from ..batch.writer import Writer
from ..values.arguments import listed
from ..values.frames import Frame, FrameId, Hit, Receipt, frame_id

if TYPE_CHECKING:
    from cerata.projections.frames.filters import Filter

    from .extraction import Extraction, Extractor, Report
    from .importing import ImportedFacts, Progress


class FactImport(Writer):
    """The call that imports facts, in several batches."""

    def import_facts(
        self,
        lines: Iterable[str | bytes],
        *,
        progress: Progress | None = None,
        actor: str | None = None,
    ) -> ImportedFacts:
        """Write the facts and entities in lines of `interchange.export_facts` (docs/facts.md).

        A thousand lines are a batch, durable before the next is read. Lines that an earlier import
        wrote add nothing, so a repeated call continues after an interrupt.

        Args:
            lines: An open file, or the lines.
            progress: Called after each batch with the counts of finished lines and bytes.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            InvalidInput, Unsupported, Conflict, NotFound: a line is unusable; ``where`` has its
                number, and nothing of its batch is written.
            InvalidInput: a transaction is open.
        """
        with loading("the part that imports facts"):
            from .importing import import_facts

        if self._session.in_transaction:
            raise InvalidInput(
                "interchange.import_facts writes several batches and cannot run in a transaction",
                remedy="Call interchange.import_facts() after the block.",
            )
        self._session.check_writable()
        return import_facts(self._session.by(actor).acting(Role.IMPORTER), lines, progress)


class FactExtraction(Writer):
    """The call that reads facts in frames, in several batches."""

    def extract(
        self,
        frames: FrameId | Iterable[FrameId] | None = None,
        *,
        where: Filter | None = None,
        extractor: Extractor | None = None,
        dry_run: bool = False,
        report: Report | None = None,
        actor: str | None = None,
    ) -> Extraction:
        """Find facts in the text of frames, and assert them with the bytes in which they were read.

        Each frame is a durable batch in the frame's scope, for a shared frame in the store's. A
        frame that the same version of the extractor has read adds nothing, so a repeated call
        continues after an interrupt (docs/extraction.md).

        Args:
            frames: The frames to read, documents by their chunks; by default all current frames
                of the store's scope, without shared frames.
            where: Which of the current frames to read, instead of ``frames``.
            extractor: Finds the facts; by default `EnglishFacts`.
            dry_run: Write nothing, and return the facts that a run would write.
            report: Called after each frame with its `Extracted`, its number from 1, and the count.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            NotFound: no such frame exists.
            ExtractorFailed: the extractor raised, or returned an unusable fact; nothing of that
                frame is written.
            InvalidInput: a transaction is open, or both ``frames`` and ``where`` are set.
        """
        with loading("the part that extracts facts"):
            from .english import EnglishFacts
            from .extraction import extract, frames_to_read

        if self._session.in_transaction:
            raise InvalidInput(
                "graph.extract writes several batches and cannot run in a transaction",
                remedy="Call graph.extract() after the block.",
            )
        if frames is not None and where is not None:
            raise InvalidInput(
                "graph.extract takes frames or where, not both",
                remedy="Leave out frames= or where=.",
            )
        if not dry_run:
            self._session.check_writable()
        numbers = None
        frames = exact(frames)
        if isinstance(frames, int | Receipt | Frame | Hit):
            numbers = [frame_id(frames)]
        elif frames is not None:
            numbers = [frame_id(frame) for frame in listed("frames", frames)]
        snapshot = self._snapshot()
        # Shared frames are read once, by a store of their scope, or by their ids.
        selected = snapshot.within(shared=False) if numbers is None else snapshot
        ids = frames_to_read(selected, numbers, where)
        chosen = EnglishFacts() if extractor is None else extractor
        session = self._session.by(actor).acting(Role.EXTRACTOR)
        return extract(session, ids, chosen, dry_run=dry_run, report=report)

    # --- lines -----------------------------------------------------------------------------------

    # --- extraction ------------------------------------------------------------------------------
