"""Remembered heads: points of a log that were stored elsewhere, and their comparison with a file.

Owns their text and the comparison, which trusts no stored hash: it uses the leaves of events.
Leaves out reading the events (`verify`), and signatures.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .arguments import wrong_type
from .errors import Diverged, InvalidInput
from .events import JsonValue
from .head import Head
from .integrity import Tree
from .plain_value import PlainValue

_TEXT: Final = re.compile(r"(0|[1-9][0-9]{0,18}):([0-9a-f]{64})(?::([0-9a-f]{32}))?")
_REMEDY: Final = (
    "Write nothing to the file. Compare your backups with 'cerata file verify --head', and "
    "continue with a backup that agrees."
)


@dataclass(frozen=True, slots=True)
class RememberedHead:
    """A stored head: the root over events 1 to ``seq``, and the log's id if known.

    >>> RememberedHead.parse("0:" + 32 * "0a").seq
    0
    """

    seq: int
    root: bytes
    log_id: bytes | None = None

    @classmethod
    def of(cls, head: "Head | str") -> "RememberedHead":
        """Return the point of a head, or of its text.

        Raises:
            InvalidInput: neither a head nor its text.
        """
        if isinstance(head, Head):
            return cls(head.seq, head.root, head.log_id)
        if isinstance(head, str):
            return cls.parse(head)
        remedy = "Pass store.head, or the text that 'cerata info --head' prints."
        raise wrong_type("A head", "a Head or its text", head, remedy)

    @staticmethod
    def is_text(text: str) -> bool:
        """Return whether a text has the form of a head."""
        return _TEXT.fullmatch(text.strip().lower()) is not None

    @classmethod
    def parse(cls, text: str) -> "RememberedHead":
        """Return the head of a text ``SEQ:ROOT`` or ``SEQ:ROOT:LOG``, hashes in hexadecimal.

        Raises:
            InvalidInput: the text has another form.
        """
        match = _TEXT.fullmatch(text.strip().lower())
        if match is None:
            raise InvalidInput(
                f"The head {text!r} is not of the form SEQ:ROOT or SEQ:ROOT:LOG",
                remedy="Pass the whole text that 'cerata info --head' prints.",
            )
        seq, root, log_id = match.groups()
        return cls(int(seq), bytes.fromhex(root), None if log_id is None else bytes.fromhex(log_id))

    def __str__(self) -> str:
        log_id = "" if self.log_id is None else f":{self.log_id.hex()}"
        return f"{self.seq}:{self.root.hex()}{log_id}"


@dataclass(frozen=True, slots=True)
class HeadCheck(PlainValue):
    """The comparison of a file with a remembered head.

    ``outcome`` is "agrees", "unreadable" if an event up to the head cannot be read, or the kind of
    ``diverged``: "rollback" if the file ends before the head, "fork" if the events up to the head
    are different, "foreign" if the file is of another log.
    """

    head: RememberedHead
    outcome: Literal["agrees", "unreadable", "rollback", "fork", "foreign"]
    diverged: Diverged | None = None
    """The finding, which a caller can raise."""

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the comparison as plain values."""
        texts = {name: getattr(self.diverged, name, None) for name in ("what", "where", "remedy")}
        return {"head": str(self.head), "outcome": self.outcome, **texts}


class HeadComparison:
    """A head, and the tree over the events read so far, from the first on."""

    def __init__(self, head: RememberedHead) -> None:
        self._head = head
        self._tree = Tree()

    def take_in(self, first_seq: int, leaves: Sequence[bytes]) -> None:
        """Add the leaves of events; after a gap no more leaves are added."""
        tree = self._tree
        if first_seq == tree.size + 1:
            self._tree = tree.extend(leaves[: max(0, self._head.seq - tree.size)])

    def result(self, head_seq: int, log_id: bytes, path: str) -> HeadCheck:
        """Return the comparison for a file whose log ends at ``head_seq``."""
        head = self._head
        if head.log_id is not None and head.log_id != log_id:
            fault = f"The file belongs to log {log_id.hex()}, the head to log {head.log_id.hex()}"
            return self._diverged("foreign", fault, path, head_seq, log_id)
        if head_seq < head.seq:
            fault = f"The file ends at event {head_seq:,}, before the head at event {head.seq:,}"
            return self._diverged("rollback", fault, path, head_seq, log_id)
        if self._tree.size < head.seq:
            return HeadCheck(head, "unreadable")
        if self._tree.root() != head.root:
            fault = f"Events 1 to {head.seq:,} of the file do not give the root of the head"
            return self._diverged("fork", fault, path, head_seq, log_id)
        return HeadCheck(head, "agrees")

    def _diverged(
        self,
        kind: Literal["rollback", "fork", "foreign"],
        fault: str,
        path: str,
        head_seq: int,
        log_id: bytes,
    ) -> HeadCheck:
        present = RememberedHead(self._tree.size, self._tree.root(), log_id)
        error = Diverged(
            fault,
            where=f"{path}, event {min(head_seq, self._head.seq):,}",
            remedy=_REMEDY,
            kind=kind,
            remembered=str(self._head),
            found=str(present),
        )
        return HeadCheck(self._head, kind, error)
