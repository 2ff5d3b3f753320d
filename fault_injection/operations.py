"""What a simulated disk records: one frozen value for each thing that reached it.

Owns the vocabulary of a trace. Leaves out what the operations mean for a crash: `epochs`. The
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
    """All of ``data`` was handed to the disk at ``offset``."""

    offset: int
    data: bytes


class SetSize(Operation, frozen=True, tag="size", gc=False):
    """The file was grown with zeros, or cut."""

    size: int


class Sync(Operation, frozen=True, tag="sync", gc=False):
    """A sync returned. It covers every earlier byte of the file, whoever wrote it.

    One that ``failed`` kept any part of that, and what it did not keep no later sync will: the
    system holds it for clean.
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
    """A lock was tried (``got`` says with what success), or released where ``mode`` is free."""

    lock: int
    mode: str
    got: bool


class Mark(Operation, frozen=True, tag="mark", gc=False):
    """The workload noted something: with label ``ack``, that ``seq`` was acknowledged."""

    label: str
    seq: int


class Kill(Operation, frozen=True, tag="kill", gc=False):
    """The process died; its locks are free, its writes stand, nothing was closed."""


AnyOperation: TypeAlias = Write | SetSize | Sync | Name | SyncNames | Lock | Mark | Kill

ACK = "ack"
"""Label of the mark that says: this seq is acknowledged as durable."""
