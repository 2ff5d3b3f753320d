"""Lineage: the branches of a log, and whether a point of a log is a point of another.

A fork begins with its parent's events and then a `branch` event with a random id. So a log's
identity is its log id and the id of its newest branch: two forks share the log id, and the events
before their branches only.

Owns the walk over the `branch` events of a log and the comparison of identities. Leaves out writing
them (`copies.fork`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import Corrupt, Diverged, InvalidInput
from ..events import Branch as BranchBody
from ..events import Event
from ..plain_value import PlainValue


@dataclass(frozen=True, slots=True)
class Branch(PlainValue):
    """A point at which a log was forked from its parent.

    - ``id`` are the 16 random bytes of the branch.
    - ``seq`` is its event, the first that the parent lacks; ``parent`` is the last common event.
    - ``chain`` and ``root`` are the parent's hashes there.
    """

    id: bytes
    seq: int
    parent: int
    chain: bytes
    root: bytes


class Identity(NamedTuple):
    """The identity of a log: its id, and the id of its newest branch; None if it is no fork."""

    log_id: bytes
    branch_id: bytes | None = None


def branches_of(newest: int, event: Callable[[int], Event]) -> tuple[Branch, ...]:
    """Return the branches of a log, oldest first.

    Args:
        newest: The seq of the newest `branch` event; 0 for no branch.
        event: Returns an event by its seq.

    Raises:
        Corrupt: an event on the way is no branch, or cannot be read.
    """
    lineage: list[Branch] = []
    while newest:
        body = event(newest).body
        if not isinstance(body, BranchBody) or not 0 <= body.before < newest:
            raise Corrupt(
                f"Event {newest:,} is not the branch that the file names",
                remedy="Run 'cerata file verify' to list the damage.",
            )
        lineage.append(Branch(body.id, newest, body.seq, body.chain, body.root))
        newest = body.before
    return tuple(reversed(lineage))


def check_point(
    seq: int, of: Identity, identity: Identity, branches: tuple[Branch, ...], path: str
) -> None:
    """Check that event ``seq`` of a log is an event of another log too.

    A point of a parent, at or before the branch, is a point of its forks.

    Args:
        seq: The last event of the point.
        of: The identity of the log that the point was taken from.
        identity: The identity of the other log.
        branches: The branches of that log, oldest first.
        path: Its file, for the error.

    Raises:
        InvalidInput: the logs have different ids.
        Diverged: the point lies on another branch.
    """
    if of == identity:
        return
    if of.log_id != identity.log_id:
        raise InvalidInput(
            "The basis is a point of another memory",
            where=path,
            remedy="Pass a seq, or a value that this store has returned.",
        )
    ids = (None, *(branch.id for branch in branches))
    if of.branch_id in ids[:-1]:
        common = branches[ids.index(of.branch_id)].parent
        if seq <= common:
            return
        what = f"Event {seq:,} of its parent is not in this fork, which left it at event {common:,}"
    else:
        what = f"Event {seq:,} is a point of another fork of this memory"
    raise Diverged(
        what,
        where=path,
        remedy="Read it in the memory that returned it, or pass a seq.",
        kind="fork",
        remembered=f"{seq}:{_text(of)}",
        found=_text(identity),
    )


def common_point(
    first: tuple[Branch, ...], head: int, second: tuple[Branch, ...], second_head: int
) -> int:
    """Return the last event that two logs with one log id have in common.

    Args:
        first: The branches of a log, oldest first.
        head: The seq of its newest event.
        second: The branches of the other log.
        second_head: The seq of its newest event.
    """
    shared = 0
    while shared < min(len(first), len(second)) and first[shared].id == second[shared].id:
        shared += 1
    ends = [line[shared].parent for line in (first, second) if len(line) > shared]
    return min([head, second_head, *ends])


def _text(identity: Identity) -> str:
    branch = identity.branch_id
    return identity.log_id.hex() if branch is None else f"{identity.log_id.hex()}/{branch.hex()}"
