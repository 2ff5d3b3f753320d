"""Context policies: the length of each entry, and the omission of duplicates.

Owns `ContextPolicy` and the built-in policies. Like a profile, a policy has a name and a version,
so that a context can be reproduced. Leaves out filling a context (`packing`) and the choice of
sentences (`extracts`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cerata.engine.arguments import expect_bool, expect_positive, is_number
from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import exact_fields
from cerata.engine.plain_value import PlainValue
from cerata.projections.fulltext.analyzer import terms
from cerata.projections.fulltext.query import Query

from ..query_classifier import classify
from ..ranking.profile import unknown

Tier: TypeAlias = Literal["full", "gist", "line"]
"""The length of an entry: its text, some of its sentences, or the best of them."""

_SPECIFIC_TERMS: Final = 8
"""Words that are as specific as a quote; set by hand."""


@dataclass(frozen=True, slots=True)
class ContextPolicy(PlainValue):
    """The length of each entry of a context, and which entries are left out as duplicates.

    The tier of an entry follows from its `effective age <cerata.retrieval.base_level_activation>`
    and from the `specificity` s of the question: a precise question needs details, so ``tier_days``
    are multiplied by 1 + s (``specific_factor`` − 1).

    Args:
        name: the policy's name
        version: whole number from 1; other numbers need another version
        tier_days: days (f, g): full text up to f, gist up to g, else one line; None: full text
        specific_factor: factor of both days at specificity 1; 1 or more, default 4
        shorten: if True, an entry that does not fit becomes a gist or a line; default False
        fill: if True, the free budget lengthens shortened entries, best first; default False
        gist_tokens: most tokens of a gist with its source, default 100
        line_tokens: most tokens of a line with its source, default 40
        duplicate_share: least share of equal four-word runs, default 0.9; 1: equal texts; None: off
        whole_rows: if True, an excerpt of a table has whole rows and the header; default True
        by_session: if True, turns are grouped by session, and name their speaker; default True

    Raises:
        InvalidInput: the name is empty, or a value is out of range.

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
    fill: bool = False
    whole_rows: bool = True
    by_session: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput(
                "A context policy needs a name", remedy="Pass a name, such as 'mine'."
            )
        where = f"context policy {self.name!r}"
        switches = ("shorten", "fill", "whole_rows", "by_session")
        exact_fields(
            self, "version", "gist_tokens", "line_tokens", "specific_factor", "duplicate_share"
        )
        exact_fields(self, *switches)
        for field in ("version", "gist_tokens", "line_tokens"):
            expect_positive(field, getattr(self, field), where)
        if not is_number(self.specific_factor) or self.specific_factor < 1:
            raise self._wrong(
                f"specific_factor must be a number from 1, not {self.specific_factor!r}",
                "Pass 1 or more.",
            )
        for field in switches:
            expect_bool(field, getattr(self, field), where)
        self._check_days(self.tier_days)
        share = self.duplicate_share
        if share is not None and not (is_number(share) and 0 < share <= 1):
            fault = f"duplicate_share must be above 0 and at most 1, or None, not {share!r}"
            raise self._wrong(fault, "Pass a number above 0 and at most 1, or None.")

    def _check_days(self, days: tuple[float, float] | None) -> None:
        if days is None:
            return
        is_pair = isinstance(days, tuple) and len(days) == 2 and all(map(is_number, days))
        if not (is_pair and 0 <= days[0] <= days[1]):
            remedy = "Pass two numbers of days, the smaller first."
            raise self._wrong(
                f"tier_days must be two ascending numbers of days, or None, not {days!r}", remedy
            )

    def _wrong(self, fault: str, remedy: str) -> InvalidInput:
        return InvalidInput(fault, where=f"context policy {self.name!r}", remedy=remedy)

    @property
    def label(self) -> str:
        """The name and the version as one text: ``whole 1``."""
        return f"{self.name} {self.version}"

    def tier(self, effective_age: float, specificity: float) -> Tier:
        """Return the length of an entry.

        Args:
            effective_age: the entry's, in days
            specificity: the question's, from 0 to 1
        """
        if self.tier_days is None:
            return "full"
        full, gist = self.tier_days
        days = effective_age / (1.0 + specificity * (self.specific_factor - 1.0))
        return "full" if days <= full else "gist" if days <= gist else "line"


WHOLE: Final = ContextPolicy("whole", 3)
"""The default: whole entries, each once."""

_MONTH: Final = (7.0, 30.0)
"""A week, then a month: questions about older entries mostly ask whether they exist."""

POLICIES: Final[Mapping[str, ContextPolicy]] = {
    policy.name: policy
    for policy in (
        WHOLE,
        ContextPolicy("tiered", 3, _MONTH, shorten=True, fill=True),
    )
}
"""The built-in policies by name. Their numbers were set by hand."""

_BY_LABEL: Final[Mapping[str, ContextPolicy]] = {
    policy.label: policy
    for policy in (
        *POLICIES.values(),
        ContextPolicy("whole", 1, whole_rows=False, by_session=False),
        ContextPolicy("tiered", 1, _MONTH, shorten=True, whole_rows=False, by_session=False),
        ContextPolicy("whole", 2, by_session=False),
        ContextPolicy("tiered", 2, _MONTH, shorten=True, fill=True, by_session=False),
    )
}
"""The built-in policies of all versions, so that every recorded context can be reproduced."""


def policy_of(value: str | ContextPolicy | None) -> ContextPolicy:
    """Return a policy by its name or label, or itself; the default for None.

    A name is the newest version; ``tiered 1`` is that version.

    Raises:
        InvalidInput: the name is unknown, or belongs to a different built-in policy.
    """
    if value is None:
        return WHOLE
    if isinstance(value, ContextPolicy):
        if _BY_LABEL.get(value.label, value) != value:
            # A recorded context of this policy would be reproduced by the built-in policy.
            fault = f"The context policy {value.label!r} differs from the built-in policy"
            raise InvalidInput(fault, remedy="Pass another name or version.")
        return value
    policy = POLICIES.get(value, _BY_LABEL.get(value)) if isinstance(value, str) else None
    if policy is None:
        raise unknown("context policy", value, POLICIES, remedy="Or pass a cerata.ContextPolicy.")
    return policy


def specificity(question: str | Query) -> float:
    """Return how precise a question is, from 0 to 1.

    1 for the full language and for a `factual <cerata.retrieval.query_classifier>` question, else
    an eighth for each distinct search word, up to 1.

    >>> specificity("which index did we choose?"), specificity("tell me about the harbour")
    (1.0, 0.25)
    """
    if isinstance(question, Query) or classify(question).kind == "factual":
        return 1.0
    return min(1.0, len(set(terms(question))) / _SPECIFIC_TERMS)
