"""The token vectors of a space: read from the log, and cached up to a limit.

Owns the cache. Leaves out the ranking of frames (`cerata.projections.vectors.maxsim`).
"""

from collections.abc import Iterator
from typing import cast

import numpy as np

from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import PutEmbedding, PutFrame
from cerata.engine.log import Log
from cerata.projections.columnar.columns import I64
from cerata.projections.vectors.columns import SpaceRows, matrix_of
from cerata.projections.vectors.maxsim import Tokens
from cerata.projections.vectors.projection import key_of
from cerata.projections.vectors.reader import Space

from .vector_store import StoredSpace


class StoredTokens(StoredSpace):
    """The token vectors of a space in a log, by row; any thread may read them."""

    def __init__(self, log: Log, source: SpaceRows) -> None:
        super().__init__(log, source)
        self.size_max = log.caches.tokens
        """Most cached bytes of the space: above it the oldest entries are dropped."""
        self._kept: dict[int, Tokens] = {}
        self._size = 0

    def rows(self, space: Space, wanted: I64) -> Iterator[Tokens]:
        """Yield the token vectors in rows of the space, (tokens, dimension) int8 each.

        Cost: on first use a read and a hash of each, then nothing while they are cached.

        Raises:
            UnreadableVectors: the vectors of an event are damaged or missing.
        """
        for row in cast("list[int]", wanted.tolist()):
            tokens = self._kept.get(row)
            yield self._readable(space, row) if tokens is None else tokens

    def _readable(self, space: Space, row: int) -> Tokens:
        try:
            return self._read(space, row)
        except Corrupt as error:
            raise self._unreadable(space, np.array([row])) from error

    def _read(self, space: Space, row: int) -> Tokens:
        event = self._log.event(int(space.seqs[row]))
        body = event.body
        tokens: Tokens | None = None
        for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
            if key_of(embedding) == self._key:
                try:
                    data = event.attached(embedding.data)
                except NotFound:
                    continue
                tokens = cast("Tokens", matrix_of(data, self._key))
        if tokens is None:
            raise Corrupt(
                f"The token vectors of event {event.seq:,} are missing",
                where=self._log.path,
                remedy="Run 'cerata file verify' to see the damage.",
            )
        self._keep(row, tokens)
        return tokens

    def _keep(self, row: int, tokens: Tokens) -> None:
        with self._mutex:
            if row in self._kept:
                return
            self._kept[row] = tokens
            self._size += tokens.nbytes
            while self._size > self.size_max and len(self._kept) > 1:
                self._size -= self._kept.pop(next(iter(self._kept))).nbytes
