"""Context policies: how long each entry is told, and what is left out because it is told already.

Owns `ContextPolicy` and those that come with Cerata. A policy is named and has a version, as a
profile has, so that what was shown can be shown again. Leaves out how a context is filled by it
(`context`), and how sentences are chosen (`extracts`).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeGuard

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.projections.query import Query
from cerata.projections.text import terms

from .classifier import classify
from .profiles import unknown

Tier: TypeAlias = Literal["full", "gist", "line"]
"""How an entry is told: its text, some of its sentences, or the best of them."""

_SPECIFIC_TERMS: Final = 8
"""Words that name a thing as exactly as quotes do; set by hand."""


def _is_number(value: object) -> TypeGuard[float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    # Not math.isfinite: of an int that no float holds it raises.
    return abs(value) <= sys.float_info.max


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """How long each entry of a context is told, and which are left out as duplicates.

    With ``tier_days`` (f, g) an entry whose `effective age <cerata.retrieval.strength>` is at most
    f days is told in full, up to g days by its gist, else in one line; None tells all in full. For
    a question of `specificity` s both are multiplied by 1 + s (``specific_factor`` − 1): who asks
    for one thing wants its details. ``shorten`` tells what does not fit whole by its gist, or in
    one line, where it would be left out. A gist takes at most ``gist_tokens`` with its source, a
    line ``line_tokens``. Entries that share ``duplicate_share`` of their passages of four words,
    or more, are duplicates; 1 is for equal ones alone, None for none.

    Raises:
        InvalidInput: a name or number is none that there is.

    >>> ContextPolicy("mine", 1, tier_days=(2, 14), shorten=True).label
    'mine 1'
    """

    name: str
    version: int
    tier_days: tuple[float, float] | None = None
    specific_factor: float = 4.0
    shorten: bool = False
    gist_tokens: int = 100
    line_tokens: int = 40
    duplicate_share: float | None = 0.9

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("A context policy has no name", remedy="Give it one, as 'mine'.")
        for field, least in (("version", 1), ("gist_tokens", 1), ("line_tokens", 1)):
            value: object = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise self._wrong(f"{field} is {value!r}", f"Give a whole number from {least}.")
        if not _is_number(self.specific_factor) or self.specific_factor < 1:
            raise self._wrong(f"specific_factor is {self.specific_factor!r}", "Give 1 or more.")
        if not isinstance(self.shorten, bool):
            raise self._wrong(f"shorten is {self.shorten!r}", "Give True or False.")
        self._check_days(self.tier_days)
        share = self.duplicate_share
        if share is not None and not (_is_number(share) and 0 < share <= 1):
            what = f"duplicate_share is {share!r}"
            raise self._wrong(what, "Give more than 0 and at most 1, or None.")

    def _check_days(self, days: tuple[float, float] | None) -> None:
        if days is None:
            return
        is_pair = isinstance(days, tuple) and len(days) == 2 and all(map(_is_number, days))
        if not (is_pair and 0 <= days[0] <= days[1]):
            remedy = "Give two numbers of days, the smaller first."
            raise self._wrong(f"tier_days is {days!r}", remedy)

    def _wrong(self, what: str, remedy: str) -> InvalidInput:
        return InvalidInput(what, where=f"context policy {self.name!r}", remedy=remedy)

    @property
    def label(self) -> str:
        """The name and the version in one: ``whole 1``."""
        return f"{self.name} {self.version}"

    def tier(self, effective_age: float, specificity: float) -> Tier:
        """Return how long an entry is told, by its effective age in days and the question's."""
        if self.tier_days is None:
            return "full"
        full, gist = self.tier_days
        days = effective_age / (1.0 + specificity * (self.specific_factor - 1.0))
        return "full" if days <= full else "gist" if days <= gist else "line"

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "name": self.name,
            "version": self.version,
            "tier_days": None if self.tier_days is None else list(self.tier_days),
            "specific_factor": self.specific_factor,
            "shorten": self.shorten,
            "gist_tokens": self.gist_tokens,
            "line_tokens": self.line_tokens,
            "duplicate_share": self.duplicate_share,
        }


WHOLE: Final = ContextPolicy("whole", 1)
"""The default: whole entries, each once."""

POLICIES: Final[Mapping[str, ContextPolicy]] = {
    one.name: one
    for one in (
        WHOLE,
        # A week, then a month: what is older is mostly asked for as something that there was.
        ContextPolicy("tiered", 1, tier_days=(7.0, 30.0), shorten=True),
    )
}
"""The policies that come with Cerata, by name. Their numbers were set by hand."""


def policy_of(value: str | ContextPolicy | None) -> ContextPolicy:
    """Return a policy by its name, or itself; the default for None.

    Raises:
        InvalidInput: there is none of this name.
    """
    if value is None:
        return WHOLE
    if isinstance(value, ContextPolicy):
        own = POLICIES.get(value.name)
        if own is not None and own.version == value.version and own != value:
            # What was shown by it would be shown again by the one of that name.
            what = f"The context policy {value.label!r} is another"
            raise InvalidInput(what, remedy="Give yours another name, or version.")
        return value
    if not isinstance(value, str) or value not in POLICIES:
        what, remedy = unknown("context policy", value, POLICIES)
        raise InvalidInput(what, remedy=f"{remedy} Or give a cerata.ContextPolicy.")
    return POLICIES[value]


def specificity(question: str | Query) -> float:
    """Return how exactly a question names what it asks for, from 0 to 1.

    1 for the full language and for what is `factual <cerata.retrieval.classifier>`, else an eighth
    for each distinct word that is searched for, up to 1.

    >>> specificity("which index did we choose?"), specificity("tell me about the harbour")
    (1.0, 0.25)
    """
    if isinstance(question, Query) or classify(question).kind == "factual":
        return 1.0
    return min(1.0, len(set(terms(question))) / _SPECIFIC_TERMS)
