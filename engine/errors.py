"""The error tree: every exception that Cerata raises on purpose.

Classes are kinds that a caller acts on; each is also the built-in that it specialises::

    CerataError(Exception)
    ├── Corrupt(ValueError)              damage inside acknowledged data; carries its place
    │   ├── Diverged                     the file contradicts a head stored elsewhere
    │   └── UnreadableItem(UserWarning)  a warning: an item was left out of a list
    ├── Locked(TimeoutError)             another process or thread holds the file
    ├── Conflict(ValueError)             the log moved on, or the target is already closed
    │   └── IdempotencyConflict          the same key came with other arguments
    ├── NotFound(LookupError)            no such file, event, frame or name
    ├── InvalidInput(ValueError)         a value that cannot be stored; nothing was written
    │   └── QuerySyntaxError             a query that cannot be parsed
    ├── ReadOnly(PermissionError)        a write on a handle or view that only reads
    │   └── Refused                      a write of a frame or event that another owner has
    ├── Closed(ValueError)               the handle was closed, poisoned, or inherited by fork
    ├── Unsupported(NotImplementedError) a newer format, or a part that is not installed
    ├── HistoryPruned(LookupError)       the requested state was retired on purpose
    ├── ProjectionFailed(RuntimeError)   the code of a user's projection raised
    ├── ExtractorFailed(RuntimeError)    an extractor raised, or returned an invalid fact
    ├── EmbedderFailed(RuntimeError)     an embedder raised, or returned invalid vectors
    ├── RerankerFailed(RuntimeError)     a reranker raised, or returned invalid scores
    ├── BisectFailed(RuntimeError)       a test of a bisection raised, or its answers hide the event
    ├── RerunFailed(RuntimeError)        a run cannot be repeated from its recording
    ├── ModelFailed(RuntimeError)        a model raised, or returned no text
    ├── StorageFailed(OSError)           the disk refused; nothing of this call was acknowledged
    └── OutcomeUnknown(OSError)          the disk failed late: the batch may or may not survive

A message gives the fault, its place and a remedy. ``exit_code`` is the exit code of the command
line for the class; docs/errors.md lists them.
"""

import errno
import os
from collections.abc import Sequence
from typing import ClassVar, Literal


class CerataError(Exception):
    """Root of every error that Cerata raises on purpose.

    ``what`` is the fault, ``where`` its place, ``remedy`` the caller's next step.
    """

    exit_code: ClassVar[int] = 1
    usual_remedy: ClassVar[str | None] = None
    """The remedy of an error of the class that is raised without a remedy."""

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        remedy = remedy or self.usual_remedy
        self.what = what
        self.where = where
        self.remedy = remedy
        place = f" ({where})" if where else ""
        advice = f" {remedy}" if remedy else ""
        super().__init__(f"{what}{place}.{advice}")

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the error as plain values, as ``--json`` prints it."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "remedy": self.remedy,
            "exit_code": self.exit_code,
        }

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.remedy), self.__dict__


def value_text(value: object) -> str:
    """Return a value's text for an error message, or only its type if it has no text.

    Python writes no number of thousands of digits and no very deep list, and the class of a caller
    may raise anything: an error about a value must not become another error.
    """
    try:
        return repr(value)
    except RecursionError:
        return f"a {type(value).__name__} with too many levels to show"
    except Exception:  # noqa: BLE001 - a class of the caller may raise anything
        return f"a {type(value).__name__} that is too large to show"


def number_text(value: int) -> str:
    """Return a number with its thousands separated for an error message, or its size."""
    try:
        return f"{value:,}"
    except ValueError:
        return f"a number of {value.bit_length():,} bits"


def _rebuild(
    kind: type[CerataError], what: str, where: str | None, remedy: str | None
) -> CerataError:
    """Rebuild a pickled error; worker processes send them to their parents."""
    return kind(what, where=where, remedy=remedy)


class Corrupt(CerataError, ValueError):
    """Acknowledged data is damaged.

    ``offset`` is the file offset of the damaged structure, or None if only a seq is known.
    """

    exit_code = 3
    usual_remedy = "Copy the file, and run 'cerata file doctor' on it."

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        offset: int | None = None,
    ) -> None:
        self.offset = offset
        if where is None and offset is not None:
            where = f"offset {offset:,}"
        super().__init__(what, where=where, remedy=remedy)


class Diverged(Corrupt):
    """The file contradicts a head that was stored elsewhere.

    ``kind`` is "rollback" if the file ends before the head, "fork" if its events up to the head are
    different, "foreign" if it is of another log. ``remembered`` and ``found`` are the texts of both
    heads; ``found`` is the file's head at the same event, or at its end.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        offset: int | None = None,
        kind: Literal["rollback", "fork", "foreign"] = "fork",
        remembered: str | None = None,
        found: str | None = None,
    ) -> None:
        self.kind: Literal["rollback", "fork", "foreign"] = kind
        self.remembered = remembered
        self.found = found
        super().__init__(what, where=where, remedy=remedy, offset=offset)


class UnreadableItem(Corrupt, UserWarning):
    """The category of warnings: an item of a list could not be read, and the list lacks it.

    The text names the item and the fault. If warnings are errors, the list raises it.
    """


class Locked(CerataError, TimeoutError):
    """Another process or thread held the file for longer than ``lock_timeout``."""

    exit_code = 4


class Conflict(CerataError, ValueError):
    """The log is not at the expected head, or the target is already closed."""

    exit_code = 5


class IdempotencyConflict(Conflict):
    """An idempotency key was used again with other arguments."""


class NotFound(CerataError, LookupError):
    """No such file, event, frame, tag or name within the caller's scope."""

    exit_code = 6


class InvalidInput(CerataError, ValueError):
    """A value that cannot be stored; nothing was written."""

    exit_code = 2


class QuerySyntaxError(InvalidInput):
    """A query in the full query language that cannot be parsed."""


class ReadOnly(CerataError, PermissionError):
    """A write was requested of a handle or view that only reads, or of a shared thing."""

    exit_code = 7


class Refused(ReadOnly):
    """A tool, an adapter or an importer tried to write or change a thing that is not its own."""

    exit_code = 22
    usual_remedy = (
        "Propose the change with Agent.propose(), which a person approves; or make it in a "
        "program, with a Store."
    )


class Closed(CerataError, ValueError):
    """The handle was closed, was poisoned by an earlier failure, or was inherited by fork."""

    exit_code = 8


class Unsupported(CerataError, NotImplementedError):
    """A newer format version, or a part that is not installed."""

    exit_code = 9


class HistoryPruned(CerataError, LookupError):
    """The requested state was retired on purpose and cannot be rebuilt."""

    exit_code = 10


class ProjectionFailed(CerataError, RuntimeError):
    """The code of a user's projection raised; the store and its other reads continue to work.

    ``projection`` is its name, ``seq`` the event that it could not fold.
    """

    exit_code = 13

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        projection: str | None = None,
        seq: int | None = None,
    ) -> None:
        self.projection = projection
        self.seq = seq
        super().__init__(what, where=where, remedy=remedy)


class ExtractorFailed(CerataError, RuntimeError):
    """An extractor raised, or returned an invalid fact; nothing of its frame was written.

    ``extractor`` is its name, ``frame`` the id of the frame.
    """

    exit_code = 14

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        extractor: str | None = None,
        frame: int | None = None,
    ) -> None:
        self.extractor = extractor
        self.frame = frame
        super().__init__(what, where=where, remedy=remedy)


class EmbedderFailed(CerataError, RuntimeError):
    """An embedder raised, or returned invalid vectors; the call wrote nothing more.

    ``embedder`` is the name of its space.
    """

    exit_code = 15

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        embedder: str | None = None,
    ) -> None:
        self.embedder = embedder
        super().__init__(what, where=where, remedy=remedy)


class RerankerFailed(CerataError, RuntimeError):
    """A reranker raised, or returned invalid scores; the call wrote nothing.

    ``reranker`` is its identity.
    """

    exit_code = 16

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        reranker: str | None = None,
    ) -> None:
        self.reranker = reranker
        super().__init__(what, where=where, remedy=remedy)


class BisectFailed(CerataError, RuntimeError):
    """A bisection found no single event: its test raised, skipped, or changed more than once.

    ``probes`` are the verdicts so far; a later search may go on from them.
    """

    exit_code = 17

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        probes: Sequence[object] = (),
    ) -> None:
        self.probes = tuple(probes)
        super().__init__(what, where=where, remedy=remedy)


class RerunFailed(CerataError, RuntimeError):
    """A run cannot be repeated from its recording: an answer is missing, or the code differs.

    ``divergence`` is the first call that differs, with both sides; None if an answer is missing.
    """

    exit_code = 18

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        divergence: object = None,
    ) -> None:
        self.divergence = divergence
        super().__init__(what, where=where, remedy=remedy)


class ModelFailed(CerataError, RuntimeError):
    """A model raised, or returned no text; the call wrote nothing of its answer.

    ``model`` is its name.
    """

    exit_code = 19

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        model: str | None = None,
    ) -> None:
        self.model = model
        super().__init__(what, where=where, remedy=remedy)


class StorageFailed(CerataError, OSError):
    """The disk refused a read or write; nothing of this call was acknowledged."""

    exit_code = 11


class OutcomeUnknown(CerataError, OSError):
    """The disk failed after the batch was written: it may or may not survive.

    The handle is poisoned. Reopen the file and look for the batch before writing it again.
    """

    exit_code = 12


# --- Refusals: the errors of the system as `StorageFailed`, with a remedy for the common codes ----


def refused(error: OSError, doing: str, path: str) -> StorageFailed:
    """Convert the system's error to a `StorageFailed` with a remedy for the common codes."""
    remedies = {
        errno.ENOSPC: "Free space on the disk and call again.",
        errno.EDQUOT: "Raise the quota and call again.",
        errno.EFBIG: "Raise the file size limit and call again.",
        errno.EMFILE: "Close files or raise the limit (ulimit -n), and call again.",
        errno.ENFILE: "Close files, or raise the system's limit, and call again.",
        errno.EACCES: "Check the permissions of the file and its folder.",
        errno.EPERM: "Check the permissions of the file and its folder.",
        errno.EROFS: "Open it with mode='r', or mount the file system for writing.",
        errno.EISDIR: "Name a file, not a folder.",
        errno.EINVAL: "Name a regular file.",
        errno.ENXIO: "Name a regular file.",
        errno.EXDEV: "Name the file in its own folder, not a mount of the file alone.",
        errno.EBUSY: "Name the file in its own folder, not a mount of the file alone.",
        errno.ENOTDIR: "Name a path whose parts before the last are folders.",
    }
    code = error.errno or 0
    failure = StorageFailed(
        f"Cannot {doing}: {os.strerror(code) if code else error}",
        where=path,
        remedy=remedies.get(code, "Check the disk."),
    )
    failure.errno = error.errno
    return failure
