"""How far the vectors of a question count: the trust in its embedder, and the embedder's weight.

Owns the value that a search computes once, an explanation shows, and a recorded recall keeps.
Leaves out how the trust comes about (`cerata.retrieval.embedders.trust`).
"""

from dataclasses import dataclass

from cerata.engine.plain_value import PlainValue


@dataclass(frozen=True, slots=True)
class VectorTrust(PlainValue):
    """The factors of the vectors of a question.

    - ``trust`` is from 0, if the embedder knows too few words of the question, to 1.
    - ``weight`` is that of the embedder's vectors beside words.
    - ``notice`` says in a line why vectors count less, or None.
    """

    trust: float = 1.0
    weight: float = 1.0
    notice: str | None = None

    def factor_of(self, lane: str) -> float:
        """Return the factor of the lane "vectors" or "late"."""
        return self.trust * self.weight if lane == "vectors" else self.trust

    def __str__(self) -> str:
        return self.notice or f"vectors count {self.trust:g} of their weight"
