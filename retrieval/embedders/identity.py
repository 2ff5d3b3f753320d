"""Who makes vectors, and so which of them may be compared: the identity that names a space.

A space's name is the identity of its embedder::

    all-MiniLM-L6-v2@1.0.0/384/cosine        name@revision/dimension/metric
    all-MiniLM-L6-v2@1.0.0/384/cosine/i1     the same vectors, quantised to int8
    colbertv2@1/128/maxsim/i1                a vector for each token, compared by MaxSim

So another revision, dimension, metric or kind of number is another space, and none are mixed.
A space may also have any other name that a caller gave it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from cerata.engine.errors import InvalidInput
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX, NAME_SIZE_MAX, TOKEN_DIMENSION_MAX
from cerata.projections import nearest

Metric: TypeAlias = Literal["cosine", "dot", "maxsim"]
"""How what a space has of two texts is compared: two vectors, or those of their tokens."""

VectorType: TypeAlias = Literal["f4", "i1"]
"""What the numbers of a stored vector are: float32, or int8 quantised before they are stored."""

_SPACE: Final = re.compile(
    r"(?P<name>[^@]+)@(?P<revision>[^@/]+)/(?P<dimension>[1-9][0-9]{0,4})/"
    r"(?P<metric>cosine|dot|maxsim)(?:/(?P<dtype>i1))?"
)
_METRICS: Final[Mapping[str, Metric]] = {one: one for one in get_args(Metric)}
_REMEDY: Final = "Such as EmbedderIdentity('all-MiniLM-L6-v2', '1.0.0', 384)."


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What makes the vectors of a space, and what they are.

    - ``name`` is printable, without ``@``, and has no space at its ends; so is ``revision``, whose
      characters are not ``/`` either: whatever would make other vectors changes it.
    - No two identities have the same `space`.
    - What is quantised to int8 is compared by cosine, since how long it was is not kept.
    - Token vectors are int8 and have at most 1,024 dimensions, so that MaxSim is exact.

    >>> EmbedderIdentity("all-MiniLM-L6-v2", "1.0.0", 384).space
    'all-MiniLM-L6-v2@1.0.0/384/cosine'

    Raises:
        InvalidInput: a field that is none of these, or a space of over 255 bytes.
    """

    name: str
    revision: str
    dimension: int
    metric: Metric = "cosine"
    dtype: VectorType = "f4"

    def __post_init__(self) -> None:
        _check_part("name", self.name, "@")
        _check_part("revision", self.revision, "@/")
        if (
            isinstance(self.dimension, bool)
            or not isinstance(self.dimension, int)
            or not 0 < self.dimension <= EMBEDDING_DIMENSION_MAX
        ):
            raise InvalidInput(
                f"An embedder's dimension is {self.dimension!r:.60}; "
                f"1 to {EMBEDDING_DIMENSION_MAX:,} can be stored",
                remedy="Pass the dimension of its vectors.",
            )
        for what, value, allowed in (
            ("metric", self.metric, get_args(Metric)),
            ("dtype", self.dtype, get_args(VectorType)),
        ):
            if value not in allowed:
                raise InvalidInput(
                    f"An embedder's {what} is {value!r:.60}", remedy=f"It is one of {allowed}."
                )
        if self.metric == "maxsim":
            if self.dtype != "i1" or self.dimension > TOKEN_DIMENSION_MAX:
                raise InvalidInput(
                    f"Token vectors of {self.dimension:,} dimensions ({self.dtype})",
                    remedy=f"Use dtype='i1' and at most {TOKEN_DIMENSION_MAX:,} dimensions.",
                )
        elif self.dtype == "i1" and self.metric != "cosine":
            raise InvalidInput(
                "An embedder's int8 vectors are compared by cosine: their lengths are not kept",
                remedy="Use dtype='f4' with metric='dot'.",
            )
        if len(self.space.encode()) > NAME_SIZE_MAX:
            raise InvalidInput(
                f"The space {self.space!r:.60} is over {NAME_SIZE_MAX} bytes",
                remedy="Shorten the embedder's name or revision.",
            )

    @property
    def space(self) -> str:
        """The name of the space of its vectors."""
        plain = f"{self.name}@{self.revision}/{self.dimension}/{self.metric}"
        return plain if self.dtype == "f4" else f"{plain}/{self.dtype}"


def _check_part(what: str, value: object, forbidden: str) -> None:
    if not isinstance(value, str) or not value or value != value.strip():
        raise InvalidInput(f"An embedder's {what} is {value!r:.60}", remedy=_REMEDY)
    # What is printable has UTF-8: lone surrogates are not.
    if not value.isprintable() or any(character in value for character in forbidden):
        raise InvalidInput(
            f"An embedder's {what} is {value!r:.60}, with a character that none may have",
            remedy=_REMEDY,
        )


def parse_space(space: str) -> EmbedderIdentity | None:
    """Return the identity that a space is named after, or None where a caller named it freely.

    >>> parse_space("all-MiniLM-L6-v2@1.0.0/384/cosine/i1").dtype
    'i1'
    >>> parse_space("mine") is None
    True
    """
    found = _SPACE.fullmatch(space)
    if found is None:
        return None
    try:
        return EmbedderIdentity(
            found["name"],
            found["revision"],
            int(found["dimension"]),
            _METRICS[found["metric"]],
            "f4" if found["dtype"] is None else "i1",
        )
    except InvalidInput:
        return None


def metric_of(space: str) -> nearest.Metric:
    """Return how two vectors of a space are compared: by cosine where its name does not say.

    >>> metric_of("clip@2/512/dot"), metric_of("mine")
    ('dot', 'cosine')
    """
    identity = parse_space(space)
    return "dot" if identity is not None and identity.metric == "dot" else "cosine"
