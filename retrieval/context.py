"""Contexts: the entries that fit a budget of tokens, each naming its source.

Owns the choice of entries. Pure: the same entries, policy, budget and tokenizer give the same
bytes. What is counted is the text as written, so the budget is exact. Leaves out how one entry is
written (`entries`), and how long each may be told (`policies`).
"""

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

from .duplicates import Duplicates
from .entries import FORMS, Entry, Form, MarksOf, Writing
from .policies import WHOLE, ContextPolicy, Tier
from .tokens import Tokenizer, tokenizer

ENTRY_TOKENS_MAX: Final = 600
"""Most tokens of one entry, its source among them, unless the caller says otherwise."""

MISSES_MAX: Final = 20
"""Entries in a row that did not fit what was left, after which the rest is taken not to.

Each has to be read to know. Of 100 hits of 140 tokens 30 are read for a context of 1,500.
"""

_GAP: Final = "\n\n"
_GATHERED: Final = 1 << 62
"""Above every id of the log: from here on those of an open transaction are ordered."""

Order: TypeAlias = Literal["score", "time"]
"""How entries stand in a context: the best first, or the earliest."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """Something shown: the frame, its source, the text of it, ``clipped`` if not whole.

    ``joined`` are the ids of neighbouring chunks whose text it also has. ``tier`` says how it is
    told: its text ("full"), some of its sentences ("gist"), or the best of them ("line").
    """

    id: int
    source: str
    text: str
    clipped: bool
    joined: tuple[int, ...] = ()
    tier: Tier = "full"

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "source": self.source,
            "text": self.text,
            "clipped": self.clipped,
            "joined": list(self.joined),
            "tier": self.tier,
        }


@dataclass(frozen=True, slots=True)
class Omission:
    """Something that was found and is not shown, and why.

    ``duplicate_of`` is what is shown and says the same; None where the budget had no room.
    """

    id: int
    duplicate_of: int | None = None

    @property
    def reason(self) -> str:
        """Why it is not shown, in words."""
        return "over budget" if self.duplicate_of is None else f"duplicate of #{self.duplicate_of}"

    def to_dict(self) -> dict[str, JsonValue]:
        return {"id": self.id, "duplicate_of": self.duplicate_of, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Filled:
    """What fits: the items, the text that they are written as, its tokens; and what does not.

    ``has_lead`` says whether the text begins with the lead that was asked for.
    """

    items: tuple[ContextItem, ...]
    omissions: tuple[Omission, ...]
    text: str
    tokens: int
    tokenizer: str
    has_lead: bool


def check_budget(tokens: object) -> None:
    """Raise `InvalidInput` unless a budget is a positive number."""
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens <= 0:
        raise InvalidInput(f"A budget of {tokens!r} tokens", remedy="Give 1 or more.")


@dataclass(frozen=True, slots=True)
class Telling:
    """How a context is told: its budget, how much of it an entry takes, form, order and policy.

    Raises:
        InvalidInput: a budget is not positive, or there is no such form or order.
    """

    max_tokens: int
    entry_tokens: int = ENTRY_TOKENS_MAX
    form: Form = "text"
    order: Order = "score"
    policy: ContextPolicy = WHOLE

    def __post_init__(self) -> None:
        check_budget(self.max_tokens)
        check_budget(self.entry_tokens)
        if self.form not in FORMS:
            raise InvalidInput(f"form is {self.form!r}", remedy="Write 'text' or 'markdown'.")
        if self.order not in get_args(Order):
            raise InvalidInput(f"order is {self.order!r}", remedy="Write 'score' or 'time'.")


Candidate: TypeAlias = tuple[int, Callable[[], Entry]]
"""The id of something to show, and what reads it."""


def fill(
    candidates: Sequence[Candidate],
    telling: Telling,
    marks_of: MarksOf,
    *,
    lead: str = "",
    counter: Tokenizer | None = None,
) -> Filled:
    """Choose of candidates, the best first, those that fit, and write them.

    1. The best is told, whatever the budget: cut around what is asked for if it must be.
    2. Then each other, in order, as its tier lets it, if that fits; a neighbour of one that is
       told, in the same document, joins it while both fit.
    3. Then, in order, what was not told: if the policy shortens, by its gist, and what is still
       not, in one line; else what is longer than an entry may be, cut.

    So nothing is cut for want of room before what fits whole was told. What says again what is told
    is left out. Once 20 in a row did not fit, the rest is not read: it is over budget. ``lead``
    stands first and is counted; where it would take more than half of the budget it is left out.
    ``marks_of`` is asked only where an entry is cut. Cost: what is read, and a count of its text.
    """
    filling = _Filling(telling, marks_of, lead, counter or tokenizer())
    left: list[tuple[int, Entry]] = []
    for rank, (_, read) in enumerate(candidates):
        if filling.misses == MISSES_MAX:
            break
        entry = read()
        if not filling.tells(rank, entry, entry.tier):
            left.append((rank, entry))
    for step in _SHORTER if telling.policy.shorten else _CUT:
        left = [(rank, entry) for rank, entry in left if not filling.tells(rank, entry, step)]
    return filling.filled([number for number, _ in candidates])


_Step: TypeAlias = Literal["full", "gist", "line", "cut"]
"""How an entry is tried: by a tier, or cut to what an entry may take."""

_LENGTHS: Final[dict[_Step, int]] = {"line": 0, "gist": 1, "cut": 2, "full": 2}

_SHORTER: Final[tuple[_Step, ...]] = ("gist", "line")
_CUT: Final[tuple[_Step, ...]] = ("cut",)


@dataclass(frozen=True)
class _Told:
    """An entry with what joined it, and how it is written; ``place`` orders it in the context."""

    place: tuple[int, ...]
    entry: Entry
    item: ContextItem
    written: str
    counter: Tokenizer

    @cached_property
    def followed(self) -> int:
        """The tokens that it takes with others after it.

        What follows begins with a mark, after a gap of line ends: no token reaches over both, so
        a context takes the sum over its entries.
        """
        return self.counter.count(self.written + _GAP)

    @cached_property
    def alone(self) -> int:
        """The tokens that it takes at the end."""
        return self.counter.count(self.written)


class _Filling:
    """What is told so far.

    - ``_told`` is in the order in which it is written, and takes at most ``_room`` tokens, but
      where the best entry's source alone takes more.
    - ``_repeated`` is what says again what is told, and what that is; ``_long`` are the ranks of
      what an entry has no room for.
    - ``misses`` is how many in a row had room in an entry, and not in what is left.
    """

    def __init__(self, telling: Telling, marks_of: MarksOf, lead: str, counter: Tokenizer) -> None:
        policy, most = telling.policy, telling.max_tokens
        size = counter.count(lead + _GAP) if lead else 0
        self._telling, self._marks_of, self._counter = telling, marks_of, counter
        self._lead = lead if 2 * size <= most else ""
        self._room = most - (size if self._lead else 0)
        self._most: dict[_Step, int] = {
            "full": telling.entry_tokens,
            "gist": min(policy.gist_tokens, telling.entry_tokens),
            "line": min(policy.line_tokens, telling.entry_tokens),
            "cut": telling.entry_tokens,
        }
        share = policy.duplicate_share
        self._duplicates = None if share is None else Duplicates(share)
        self._told: list[_Told] = []
        self._repeated: dict[int, int] = {}
        self._long = set[int]()
        self.misses = 0

    def tells(self, rank: int, entry: Entry, step: _Step) -> bool:
        """Tell an entry so, if that fits; False where it is still to be told."""
        known = None if entry.stands_for else self._duplicates
        same = None if known is None else known.equal_to(entry.text)
        told = self._with(rank, entry, step) if same is None else self._told
        if told is None:
            return False
        # What is close is dear to find, so it is looked for only among what would fit.
        if known is not None and same is None:
            same = known.close_to(entry.text)
        if same is not None:
            self._repeated[entry.id] = same
            return self._retells(same, rank, step)
        self._told, self.misses = told, 0
        if known is not None:
            known.add(entry.id, entry.text)
        return True

    def _retells(self, same: int, rank: int, step: _Step) -> bool:
        """Tell what is told as long as a copy of it may be; False where that does not fit yet."""
        for at, told in enumerate(self._told):
            item = told.item
            if item.id != same or not item.clipped or _LENGTHS[item.tier] >= _LENGTHS[step]:
                continue
            longer = self._alone(rank, told.entry, step)
            if longer is None:
                return False
            longer = replace(longer, place=told.place)
            every = self._fitting([*self._told[:at], longer, *self._told[at + 1 :]])
            if every is None:
                return False
            self._told, self.misses = every, 0
        return True

    def _with(self, rank: int, entry: Entry, step: _Step) -> list[_Told] | None:
        """Return what is told with one entry more: joined to a neighbour, or added; None if not."""
        if step == "cut" and rank not in self._long:
            return None
        if step == "full" and entry.document is not None:
            for at, other in enumerate(self._told):
                if not other.item.clipped and _are_neighbours(other.entry, entry):
                    joined = self._joined(other, entry)
                    if joined is not None:
                        return self._fitting([*self._told[:at], joined, *self._told[at + 1 :]])
        told = self._alone(rank, entry, step)
        if told is None:
            return None
        if not self._told:
            # The best is told whatever the budget.
            return [told]
        every = [*self._told]
        insort(every, told, key=_place_of)
        return self._fitting(every)

    def _fitting(self, told: list[_Told]) -> list[_Told] | None:
        tokens = sum(one.followed for one in told[:-1]) + told[-1].alone
        if tokens <= self._room:
            return told
        self.misses += 1
        return None

    @property
    def _free(self) -> int:
        """The tokens that are left for one entry more."""
        return self._room - sum(one.followed for one in self._told)

    def _alone(self, rank: int, entry: Entry, step: _Step) -> _Told | None:
        """Return how an entry is told by a step; None where it would have to be cut in full."""
        writing, text = self._writing(entry, step), entry.text.strip()
        tier: Tier = "full"
        is_whole = writing.fits(text)
        if not is_whole and step in ("gist", "line"):
            # A pass over the text is not made for what could only be cut again.
            if self._told and self._free < writing.most:
                self.misses += 1
                return None
            marks = self._marks_of(text)
            tier, text = step, writing.gist(marks) if step == "gist" else writing.line(marks)
        elif not is_whole and (step == "cut" or not self._told):
            text = writing.clipped(self._marks_of(text))
        elif not is_whole:
            self._long.add(rank)
            return None
        if not text and self._told:
            # A source alone says nothing.
            return None
        item = ContextItem(entry.id, entry.source, text, clipped=not is_whole, tier=tier)
        place = (rank,) if self._telling.order == "score" else (entry.time, _age(entry.id))
        return _Told(place, entry, item, writing.written(text), self._counter)

    def _joined(self, told: _Told, entry: Entry) -> _Told | None:
        """Return two neighbours as one, what overlaps once; its source is that of the better one.

        None where that is more than an entry may take.
        """
        best = told.entry
        first, second = (best, entry) if best.start <= entry.start else (entry, best)
        overlap = max(0, first.end - second.start)
        shared = first.text[second.start - first.start :][: len(second.text)]
        if shared != second.text[:overlap]:
            # They are not of one text, whatever is said of their places.
            return None
        text = first.text + second.text[overlap:]
        both = replace(best, text=text, start=first.start)
        writing, text = self._writing(both, "full"), text.strip()
        if not writing.fits(text):
            return None
        item = replace(told.item, text=text, joined=(*told.item.joined, entry.id))
        return _Told(told.place, both, item, writing.written(text), self._counter)

    def _writing(self, entry: Entry, step: _Step) -> Writing:
        most = min(self._most[step], self._room)
        return Writing(entry, self._telling.form, most, self._counter)

    def filled(self, ids: Sequence[int]) -> Filled:
        """Return what is told as a text, and of all ids those that are not."""
        counter, told = self._counter, self._told
        text = _GAP.join(filter(None, (self._lead, *(one.written for one in told))))
        tokens = counter.count(text)
        if tokens > self._telling.max_tokens:
            text = text[: counter.cut(text, self._telling.max_tokens)]
            tokens = counter.count(text)
        shown = {number for one in told for number in (one.item.id, *one.item.joined)}
        return Filled(
            items=tuple(one.item for one in told),
            omissions=tuple(
                Omission(one, self._repeated.get(one)) for one in ids if one not in shown
            ),
            text=text,
            tokens=tokens,
            tokenizer=counter.name,
            has_lead=bool(self._lead),
        )


def _place_of(told: _Told) -> tuple[int, ...]:
    return told.place


def _age(number: int) -> int:
    """Return what orders ids, the oldest first: those of an open transaction are −1, −2, …."""
    return number if number > 0 else _GATHERED - number


def _are_neighbours(one: Entry, other: Entry) -> bool:
    is_same = one.document == other.document
    return is_same and one.start <= other.end and other.start <= one.end
