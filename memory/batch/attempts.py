"""Attempts: a write that is tried again from the newest state while other writers come first.

Owns the count of attempts, and the line in which the writers of a process wait. Leaves out the
conditions under which a batch is refused (`validation`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, TypeVar

from cerata.engine.errors import Conflict, IdempotencyConflict

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot
    from .session import WriteSession

Result = TypeVar("Result")

ATTEMPTS: Final = 1_000
"""Attempts before `Conflict`. Each failure is the success of another writer."""


def attempted(
    session: WriteSession,
    attempt: Callable[[Snapshot], Result],
    *,
    where: str | None = None,
    in_line: bool = False,
) -> Result:
    """Return the result of an attempt to write; after another writer's event, try again.

    Args:
        session: The session that writes.
        attempt: A function from the newest state to the result, which writes one batch.
        where: The place of the error, after the last attempt.
        in_line: A failed writer waits for the failed writers of its process, so that each success
            costs every process one attempt at most. The attempt must run no code of users.

    Raises:
        Conflict: the attempt is refused without another writer's event; in a transaction; or other
            writers were first in every attempt.
    """
    for number in range(ATTEMPTS):
        with session.waiting_line if in_line and number else nullcontext():
            snapshot = session.snapshot()
            try:
                return attempt(snapshot)
            except IdempotencyConflict:
                raise
            except Conflict:
                if session.in_transaction or session.log.refresh().seq == snapshot.basis:
                    raise
    raise Conflict(
        f"Other writers appended first in each of {ATTEMPTS:,} attempts",
        where=where,
        remedy="Call again when fewer processes write.",
    )
