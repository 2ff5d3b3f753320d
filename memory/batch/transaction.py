"""Transactions: the object that a ``with store.transaction()`` block gives to its caller.

Leaves out the drafts of the block (`block`) and their append (`session`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerata.engine.errors import Conflict
from cerata.engine.handle import Handle

if TYPE_CHECKING:
    from ..values.frames import Receipt
    from .block import Block


class Transaction(Handle):
    """A ``with store.transaction()`` block; ``receipt`` has the ids of its batch, after the block.

    The calls of the store in the block belong to it (`Store.transaction`).
    """

    _instead = "Pass its receipt, after the block."

    def __init__(self, block: Block) -> None:
        self._block = block

    @property
    def receipt(self) -> Receipt:
        """The receipt of the block's batch; without any event (`seqs`) if the block wrote nothing.

        Raises:
            Conflict: the block is open, or an exception ended it, so nothing is written.
        """
        receipt = self._block.receipt
        if receipt is None:
            raise Conflict(
                "The transaction is open"
                if self._block.is_open
                else "The transaction was left by an exception, and has written nothing",
                remedy="Read tx.receipt after the block has ended without an error.",
            )
        return receipt


def block_of(transaction: Transaction) -> Block:
    """Return the block behind the object that a caller has."""
    return transaction._block  # pyright: ignore[reportPrivateUsage]
