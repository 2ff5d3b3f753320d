"""The token vectors of one space: read from where the log keeps them, and kept while they fit.

Owns what is kept of them in memory. Leaves out which frames are best (`cerata.projections.maxsim`).
"""

from collections.abc import Iterator
from typing import Final, cast

from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import PutEmbedding, PutFrame
from cerata.engine.log import Log
from cerata.projections.columns import I64
from cerata.projections.maxsim import Tokens
from cerata.projections.vector_columns import SpaceRows, matrix_of
from cerata.projections.vector_table import Space
from cerata.projections.vectors import key_of

from .stored_vectors import StoredSpace

KEPT_SIZE_MAX: Final = 256 << 20
"""Of a space so many bytes are kept; above it those that came in first go."""


class StoredTokens(StoredSpace):
    """The token vectors of one space of a log, by row; any thread may read them."""

    def __init__(self, log: Log, source: SpaceRows) -> None:
        super().__init__(log, source)
        self._kept: dict[int, Tokens] = {}
        self._size = 0

    def rows(self, space: Space, wanted: I64) -> Iterator[Tokens]:
        """Yield the token vectors in rows of the space, (tokens, dimension) int8 each.

        Cost: the first time a read and a hash of each, then nothing while it is kept.

        Raises:
            Corrupt: those of an event are damaged, or no longer there.
        """
        for row in cast("list[int]", wanted.tolist()):
            tokens = self._kept.get(row)
            yield self._read(space, row) if tokens is None else tokens

    def _read(self, space: Space, row: int) -> Tokens:
        event = self._log.event(int(space.seqs[row]))
        body = event.body
        found: Tokens | None = None
        for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
            if key_of(embedding) == self._key:
                try:
                    data = event.attached(embedding.data)
                except NotFound:
                    continue
                found = cast("Tokens", matrix_of(data, self._key))
        if found is None:
            raise Corrupt(
                f"The token vectors of event {event.seq:,} are not there",
                where=self._log.path,
                remedy="Run 'cerata verify' to see what is affected.",
            )
        self._keep(row, found)
        return found

    def _keep(self, row: int, tokens: Tokens) -> None:
        with self._mutex:
            if row in self._kept:
                return
            self._kept[row] = tokens
            self._size += tokens.nbytes
            while self._size > KEPT_SIZE_MAX and len(self._kept) > 1:
                self._size -= self._kept.pop(next(iter(self._kept))).nbytes
