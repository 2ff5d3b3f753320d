"""The embedder that a memory remembers, as a value."""

from dataclasses import dataclass

from cerata.engine.plain_value import PlainValue


@dataclass(frozen=True, slots=True)
class RememberedEmbedder(PlainValue):
    """The embedder of a memory's vectors, as the first write with vectors recorded it.

    - ``name`` is that of a built-in embedder, which openers use by default; None for any other.
    - ``identity`` is the model's name and revision, ``space`` the space of the vectors.
    - ``since`` is the seq of the event that records it.
    """

    name: str | None
    identity: str
    space: str
    tokens_space: str | None
    since: int
