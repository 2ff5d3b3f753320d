"""Gaining facts: from lines that another memory wrote, and from the text of frames.

Owns the two calls. Leaves out what they do: `fact_import` and `extraction`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.loading import loading
from cerata.projections.filters import Filter

from .asserting import FactWrites
from .drafting import listed
from .values import Frame, FrameId, Hit, Receipt, frame_id

if TYPE_CHECKING:
    from .extraction import Extraction, Extractor, Report
    from .fact_import import ImportedFacts, Progress


class FactGains(FactWrites):
    """The calls that write many facts in batches of their own, which no transaction can hold."""

    # --- lines -----------------------------------------------------------------------------------

    def import_facts(
        self,
        lines: Iterable[str | bytes],
        *,
        progress: "Progress | None" = None,
    ) -> "ImportedFacts":
        """Say what lines of `export_facts` say: an open file, or the lines (docs/facts.md).

        A thousand of them are a batch, durable before the next is read; lines that an earlier
        import has written add nothing, so whoever was stopped calls again. ``progress`` is told how
        many lines and bytes are done.

        Raises:
            InvalidInput, Unsupported, Conflict, NotFound: a line that cannot be taken, with its
            number; nothing of its batch is written. InvalidInput: inside a transaction.
        """
        with loading("the part that imports facts"):
            from .fact_import import import_facts

        if self.in_transaction:
            raise InvalidInput(
                "Facts are imported in batches, not in a transaction",
                remedy="Call import_facts outside it.",
            )
        self._check_writable()
        return import_facts(self, lines, self._scope, progress)

    # --- extraction ------------------------------------------------------------------------------

    def extract(
        self,
        frames: FrameId | Iterable[FrameId] | None = None,
        *,
        where: Filter | None = None,
        extractor: "Extractor | None" = None,
        dry_run: bool = False,
        report: "Report | None" = None,
    ) -> "Extraction":
        """Find facts in the text of frames, and assert them with the bytes that say them.

        Of the frames named, of those that ``where`` lets in, or of all that are current; of
        documents their parts are read. ``extractor`` is by default a small one of plain English.
        Each frame is a durable batch, in its own scope; one that the same extractor of the same
        version has read adds nothing, so whoever was stopped calls again. With ``dry_run`` nothing
        is written, and what would be is said; ``report`` is told of each frame
        (docs/extraction.md).

        Raises:
            NotFound: no such frame. ExtractorFailed: the extractor raised, or gave what is no
            fact; nothing of that frame is written. InvalidInput: inside a transaction.
        """
        with loading("the part that extracts facts"):
            from .english_facts import EnglishFacts
            from .extraction import extract, frames_to_read

        if self.in_transaction:
            raise InvalidInput(
                "Frames are read one by one, not in a transaction",
                remedy="Call extract outside it.",
            )
        if frames is not None and where is not None:
            raise InvalidInput("Give frames or where, not both", remedy="Leave out one of the two.")
        if not dry_run:
            self._check_writable()
        numbers = None
        if isinstance(frames, int | Receipt | Frame | Hit):
            numbers = [frame_id(frames)]
        elif frames is not None:
            numbers = [frame_id(one) for one in listed("frames", frames)]
        found = frames_to_read(self.view(), numbers, where)
        chosen = EnglishFacts() if extractor is None else extractor
        return extract(self, found, chosen, dry_run=dry_run, report=report)
