"""Identities of embedders: the name of a space, so only comparable vectors are compared.

A space's name is the identity of its embedder::

    all-MiniLM-L6-v2@1.0.0/384/cosine        name@revision/dimension/metric
    all-MiniLM-L6-v2@1.0.0/384/cosine/i1     the same vectors, quantised to int8
    colbertv2@1/128/maxsim/i1                a vector for each token, compared by MaxSim

So another revision, dimension, metric or type of number is another space, and spaces are never
mixed. A caller may also give a space any other name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from cerata.engine.arguments import expect_text, is_integer
from cerata.engine.errors import InvalidInput
from cerata.engine.integrity import hash_bytes
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX, NAME_SIZE_MAX, TOKEN_DIMENSION_MAX

if TYPE_CHECKING:
    from cerata.projections.vectors import nearest


Metric: TypeAlias = Literal["cosine", "dot", "maxsim"]
"""How two texts in a space are compared: by their vectors, or by those of their tokens."""

VectorType: TypeAlias = Literal["f4", "i1"]
"""The numbers of a stored vector: float32, or int8, quantised before storage."""

_SPACE: Final = re.compile(
    r"(?P<name>[^@]+)@(?P<revision>[^@/]+)/(?P<dimension>[1-9][0-9]{0,4})/"
    r"(?P<metric>cosine|dot|maxsim)(?:/(?P<dtype>i1))?"
)
_METRICS: Final[Mapping[str, Metric]] = {metric: metric for metric in get_args(Metric)}
_REMEDY: Final = "Use a form such as EmbedderIdentity('all-MiniLM-L6-v2', '1.0.0', 384)."


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The embedder of a space, and the form of its vectors.

    - No two identities have the same `space`.
    - ``name`` and ``revision`` are printable, without spaces at their ends and without ``@``;
      ``revision`` also without ``/``.
    - int8 vectors have the metric "cosine", since their lengths are not stored.
    - Token vectors are int8 and have at most 1,024 dimensions, so that MaxSim is exact.

    Args:
        name: the model's name
        revision: the model's version; anything that changes the vectors changes the revision
        dimension: numbers in a vector
        metric: "cosine" (default), "dot", or "maxsim" for token vectors
        dtype: "f4" (default) or "i1", stored as float32 or int8

    >>> EmbedderIdentity("all-MiniLM-L6-v2", "1.0.0", 384).space
    'all-MiniLM-L6-v2@1.0.0/384/cosine'

    Raises:
        InvalidInput: a field breaks a rule above, or the space's name is over 255 bytes.
    """

    name: str
    revision: str
    dimension: int
    metric: Metric = "cosine"
    dtype: VectorType = "f4"

    def __post_init__(self) -> None:
        _check_part("name", self.name, "@")
        _check_part("revision", self.revision, "@/")
        if not is_integer(self.dimension) or not 0 < self.dimension <= EMBEDDING_DIMENSION_MAX:
            raise InvalidInput(
                f"An embedder's dimension must be a whole number from 1 to "
                f"{EMBEDDING_DIMENSION_MAX:,}, not {self.dimension!r:.60}",
                remedy="Pass the dimension of its vectors.",
            )
        for field, value, allowed in (
            ("metric", self.metric, get_args(Metric)),
            ("dtype", self.dtype, get_args(VectorType)),
        ):
            if value not in allowed:
                raise InvalidInput(
                    f"An embedder's {field} must be one of {allowed}, not {value!r:.60}",
                    remedy=f"Pass {field}={allowed[0]!r}.",
                )
        if self.metric == "maxsim":
            if self.dtype != "i1" or self.dimension > TOKEN_DIMENSION_MAX:
                raise InvalidInput(
                    f"Token vectors must be 'i1' of at most {TOKEN_DIMENSION_MAX:,} dimensions, "
                    f"not {self.dtype!r} of {self.dimension:,}",
                    remedy=f"Use dtype='i1' and at most {TOKEN_DIMENSION_MAX:,} dimensions.",
                )
        elif self.dtype == "i1" and self.metric != "cosine":
            raise InvalidInput(
                "An embedder's int8 vectors need metric='cosine': their lengths are not stored",
                remedy="Use dtype='f4' with metric='dot'.",
            )
        if len(self.space.encode()) > NAME_SIZE_MAX:
            raise InvalidInput(
                f"The space {self.space!r:.60} is over {NAME_SIZE_MAX} bytes",
                remedy="Shorten the embedder's name or revision.",
            )

    @property
    def space(self) -> str:
        """The name of the space of these vectors."""
        plain = f"{self.name}@{self.revision}/{self.dimension}/{self.metric}"
        return plain if self.dtype == "f4" else f"{plain}/{self.dtype}"


def _check_part(field: str, value: object, forbidden: str) -> None:
    if not isinstance(value, str) or not value or value != value.strip():
        raise InvalidInput(
            f"An embedder's {field} must be a string without spaces at its ends, not {value!r:.60}",
            remedy=_REMEDY,
        )
    # Printable text has UTF-8: lone surrogates are not printable.
    if not value.isprintable() or any(character in value for character in forbidden):
        raise InvalidInput(
            f"An embedder's {field} must be printable and without {forbidden!r}, not {value!r:.60}",
            remedy=_REMEDY,
        )


def parse_space(space: str) -> EmbedderIdentity | None:
    """Return the identity that a space is named after, or None for any other name.

    >>> parse_space("all-MiniLM-L6-v2@1.0.0/384/cosine/i1").dtype
    'i1'
    >>> parse_space("mine") is None
    True
    """
    match = _SPACE.fullmatch(space)
    if match is None:
        return None
    try:
        return EmbedderIdentity(
            match["name"],
            match["revision"],
            int(match["dimension"]),
            _METRICS[match["metric"]],
            "f4" if match["dtype"] is None else "i1",
        )
    except InvalidInput:
        return None


def metric_of(space: str) -> nearest.Metric:
    """Return how two vectors of a space are compared: by cosine unless its name has another metric.

    >>> metric_of("clip@2/512/dot"), metric_of("mine")
    ('dot', 'cosine')
    """
    identity = parse_space(space)
    return "dot" if identity is not None and identity.metric == "dot" else "cosine"


# --- Prefixes: words that some models read before each text, or before each question --------------
#
# Example: E5 reads "passage: The bridge opens in May." and "query: When does the bridge open?".


_DIGITS = 8


class Prefixes:
    """The prefixes of a model, each the empty string for none.

    Args:
        of_texts: before each stored text; part of the space's name, since it changes the vectors
        of_questions: before each question, whose vectors are in no space

    Raises:
        InvalidInput: a prefix is no string that UTF-8 can encode.
    """

    def __init__(self, of_texts: str, of_questions: str) -> None:
        self.of_texts = expect_text("text_prefix", of_texts)
        self.of_questions = expect_text("question_prefix", of_questions)

    def revision(self, revision: str) -> str:
        """Return the revision of the vectors of texts: other for each prefix of texts.

        >>> Prefixes("", "query: ").revision("1"), Prefixes("passage: ", "").revision("1")
        ('1', '1-prefix-b87d0bdc')
        """
        if not self.of_texts:
            return revision
        return f"{revision}-prefix-{hash_bytes(self.of_texts.encode()).hex()[:_DIGITS]}"
