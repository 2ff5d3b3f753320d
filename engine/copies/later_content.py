"""Content of later versions, which a copy of a log keeps: names of the TOC, and checkpoints.

Owns the copy of both from one file of a log to another. Leaves out which projections this process
saves itself (`cerata.replay.checkpoint`). A name that this version does not know is carried
unchanged, so its value must hold no offset (docs/format.md, Versions).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ..errors import Corrupt
from ..format.extent import ExtentKind
from ..format.toc import Ref, SavedProjection, Toc
from ..log import Log
from ..log_file.file import Flip, StateDraft

Entries = Mapping[str, Mapping[str, Any]]


class LaterContent:
    """The content of a log's file that its copy gets, as of the last `carry`.

    ``carries`` returns whether another process saves the projection of a key.
    """

    def __init__(self, log: Log, carries: Callable[[str], bool] = lambda _: False) -> None:
        self._log = log
        self._carries = carries
        self._carried: tuple[Mapping[str, Any], Entries] = {}, {}

    def carry(self, toc: Toc, copy: Log, *, checkpoints: bool) -> None:
        """Write the content that a TOC of the log names into the copy, unless it is there.

        Without ``checkpoints`` only the names: after an erasure, a state may hold erased content.
        """
        entries = {
            key: entry
            for key, entry in toc.projections.items()
            if checkpoints and self._carries(key) and toc.saved(key).seq <= copy.head.seq
        }
        if (toc.unknown, entries) == self._carried:
            return

        def build(flip: Flip, _: Toc) -> Entries:
            drafts = {key: self._draft(flip, toc.saved(key)) for key in entries}
            whole = {key: draft for key, draft in drafts.items() if draft is not None}
            return {
                key: {**entries[key], **saved.to_entry()}
                for key, saved in flip.add_states(whole).items()
            }

        copy.carry(toc.unknown, build)
        self._carried = toc.unknown, entries

    def _draft(self, flip: Flip, saved: SavedProjection) -> StateDraft | None:
        """Add the chunks of a checkpoint to a flip, and return its draft; None if it is damaged.

        A projection's code can fold a lost state again.
        """
        file = self._log.file
        with suppress(Corrupt):
            pages = [file.page(page) for page in saved.chunks]
            bodies = {
                ref: file.read_extent(ref, ExtentKind.CHUNK) for page in pages for ref in page
            }
            ledger = () if saved.ledger is None else file.ledger(saved.ledger)

            def added(ref: Ref) -> Ref:
                return flip.add(ExtentKind.CHUNK, bodies[ref], ref.first_seq, ref.last_seq)

            copied = [[*map(added, page)] for page in pages]
            return StateDraft(saved.seq, saved.digest, copied, ledger)
        return None
