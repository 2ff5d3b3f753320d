"""The operations that a simulated disk records: one frozen value for each.

Owns the vocabulary of a trace. Leaves out the effect of the operations on a crash: `epochs`. The
values are msgspec Structs because case files hold them.
"""

from typing import TypeAlias

import msgspec

SECTOR = 512
"""Bytes that a disk is trusted to write together, unless a state tears them."""


class Operation(msgspec.Struct, frozen=True, tag=True, gc=False, kw_only=True):
    """Base of all operations. ``node`` is the file's inode number, 0 for the namespace.

    ``process`` is the simulated process's name; ``step`` the label of the workload's step.
    """

    process: str
    step: str = ""
    node: int = 0


class Write(Operation, frozen=True, tag="write", gc=False):
    """All of ``data`` was written to the disk at ``offset``."""

    offset: int
    data: bytes


class SetSize(Operation, frozen=True, tag="size", gc=False):
    """The file was grown with zeros, or cut."""

    size: int


class Sync(Operation, frozen=True, tag="sync", gc=False):
    """A sync returned, and covers every earlier byte of the file, from any writer.

    A ``failed`` sync persisted any part of them, and no later sync persists the rest: the system
    marks those bytes as clean.
    """

    failed: bool = False


class Name(Operation, frozen=True, tag="name", gc=False):
    """The namespace changed: ``verb`` is create, link, rename or unlink.

    ``node`` is the file concerned; ``source`` is set for link and rename.
    """

    verb: str
    path: str
    source: str | None = None


class SyncNames(Operation, frozen=True, tag="sync_names", gc=False):
    """The names of the folder that holds ``path`` were made durable."""

    path: str


class Lock(Operation, frozen=True, tag="lock", gc=False):
    """A lock was tried (``got`` is the result), or released if ``mode`` is free."""

    lock: int
    mode: str
    got: bool


class Mark(Operation, frozen=True, tag="mark", gc=False):
    """A mark of the workload; the label ``ack`` means that ``seq`` was acknowledged."""

    label: str
    seq: int


class Kill(Operation, frozen=True, tag="kill", gc=False):
    """The process died; its locks are free, its writes remain, no file was closed."""


AnyOperation: TypeAlias = Write | SetSize | Sync | Name | SyncNames | Lock | Mark | Kill

ACK = "ack"
"""Label of a mark that acknowledges its seq as durable."""
