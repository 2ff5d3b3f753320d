"""Contexts: the entries that fit a budget of tokens, each with its source.

Owns the choice of entries. Pure: the same entries, policy, budget and tokenizer give the same
bytes. The written text is counted, so the budget is exact. Leaves out the form of an entry
(`entries`), its length (`policies`) and the order of the chosen (`blocks`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from cerata.engine.arguments import is_integer
from cerata.engine.errors import CerataError, InvalidInput, value_text
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import UNREADABLE, leave_out

from ..tokenizer import Tokenizer, tokenizer
from .blocks import GAP, Blocks, ContextItem, PlacedEntry, age_of, text_of
from .budget import ENTRY_TOKENS_MAX
from .duplicates import Duplicates, folded
from .entries import FORMS, Entry, Form, MarksOf, Writing
from .policies import WHOLE, ContextPolicy, Tier

MISSES_MAX: Final = 20
"""Misses in a row after which the remaining entries are over budget, unread.

Only reading an entry shows its size. Of 100 hits of 140 tokens, 30 are read for a context of 1,500.
"""

CUT_LEAST: Final = 100
"""The least room for which an entry is cut: a gist of some sentences, with its source."""

Order: TypeAlias = Literal["score", "time"]
"""The order of entries in a context: the best first, or the earliest."""


@dataclass(frozen=True, slots=True)
class Omission(PlainValue):
    """A match that is not in the context, and the reason.

    - ``duplicate_of`` is the id of the entry with the same text.
    - ``error`` is the fault of an entry that cannot be read.
    - With neither, the budget had no room.
    """

    _plain = ("id", "duplicate_of", "reason")

    id: int
    duplicate_of: int | None = None
    error: str | None = None

    @property
    def reason(self) -> str:
        """The reason in words."""
        if self.error is not None:
            return f"unreadable: {self.error}"
        return "over budget" if self.duplicate_of is None else f"duplicate of #{self.duplicate_of}"


class PackedContext(msgspec.Struct, frozen=True):
    """A filled context: the items, their text, its tokens; and the omissions.

    ``has_lead`` is whether the text begins with the requested lead.
    """

    items: tuple[ContextItem, ...]
    omissions: tuple[Omission, ...]
    text: str
    tokens: int
    tokenizer: str
    has_lead: bool


def check_budget(tokens: object) -> None:
    """Raise `InvalidInput` unless a budget is a positive whole number."""
    if not is_integer(tokens) or tokens <= 0:
        raise InvalidInput(
            f"A budget must be a whole number of tokens from 1, not {value_text(tokens)}",
            remedy="Pass 1 or more.",
        )


class ContextOptions(msgspec.Struct, frozen=True):
    """How a context is written: its budget, the budget of an entry, form, order and policy.

    Raises:
        InvalidInput: a budget is not positive, or the form or order is unknown.
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
            raise InvalidInput(
                f"form must be 'text' or 'markdown', not {value_text(self.form)}",
                remedy="Pass cerata.Layout(form='text'), or 'markdown'.",
            )
        if self.order not in get_args(Order):
            raise InvalidInput(
                f"order must be 'score' or 'time', not {value_text(self.order)}",
                remedy="Pass cerata.Layout(order='score'), or 'time'.",
            )


Candidate: TypeAlias = tuple[int, Callable[[], Entry]]
"""The id of an entry, and the function that reads it."""


def pack(
    candidates: Sequence[Candidate],
    options: ContextOptions,
    marks_of: MarksOf,
    *,
    close: int | None = None,
    lead: str = "",
    counter: Tokenizer | None = None,
) -> PackedContext:
    """Choose the candidates that fit, best first, and write them.

    1. The best, if necessary cut around the match; only a budget below its id leaves it out.
    2. Then each further candidate in order, as its tier allows, if it fits; a neighbour in the
       document of an earlier entry joins that entry while both fit.
    3. Then the rest in order: if the policy shortens, by the gist, then in one line; else an entry
       is cut to its budget, or to the room that is left if that is `CUT_LEAST` tokens or more.

    4. If the policy fills, shortened entries in order get the longest form that the free budget
       has room for.

    Steps 2 and 3 are for the first ``close`` candidates, by default all; then step 2 for the rest.
    So lack of room cuts an entry only after all whole entries that are as close. Duplicates of
    entries in the context are left out, and so is an entry that cannot be read, which is named.
    After 20 misses in a row the rest is over budget, unread. ``lead`` comes first and counts; a
    lead over half of the budget is left out. ``marks_of`` is called only for an entry that is cut.
    Cost: reading the entries, and a count of their text.
    """
    packer = _ContextPacker(options, marks_of, lead, counter or tokenizer())
    steps = _SHORTER if options.policy.shorten else _CUT
    left = _placed_whole(packer, candidates, 0, close)
    for step in steps:
        left = [(rank, entry) for rank, entry in left if not packer.try_add(rank, entry, step)]
    if close is not None:
        _placed_whole(packer, candidates, close, None)
    if options.policy.fill:
        packer.lengthen()
    return packer.packed([number for number, _ in candidates])


def _placed_whole(
    packer: "_ContextPacker", candidates: Sequence[Candidate], start: int, end: int | None
) -> list[tuple[int, Entry]]:
    """Place the candidates that fit; return the rest, with their ranks."""
    left: list[tuple[int, Entry]] = []
    packer.forget_misses()
    for rank, (number, read) in enumerate(candidates[start:end], start):
        if packer.misses == MISSES_MAX:
            break
        try:
            entry = read()
        except UNREADABLE as error:
            packer.leave_out(number, error)
            continue
        if not packer.try_add(rank, entry, entry.tier):
            left.append((rank, entry))
    return left


_Step: TypeAlias = Literal["full", "gist", "line", "cut"]
"""How an entry is tried: by a tier, or cut to its budget."""

_LENGTHS: Final[dict[_Step, int]] = {"line": 0, "gist": 1, "cut": 2, "full": 2}

_SHORTER: Final[tuple[_Step, ...]] = ("gist", "line")
_LONGER: Final[tuple[_Step, ...]] = ("full", "cut", "gist")
_CUT: Final[tuple[_Step, ...]] = ("cut",)


class _ContextPacker:
    """A context that is being filled.

    - ``_blocks`` are in the order of the context, and take at most ``_room`` tokens.
    - ``_repeated`` maps the id of a duplicate to that of its entry; ``_long`` has the ranks of
      entries over their budget.
    - ``misses`` counts entries in a row within their budget that the remaining room did not hold.
    """

    def __init__(
        self, options: ContextOptions, marks_of: MarksOf, lead: str, counter: Tokenizer
    ) -> None:
        policy = options.policy
        budget = options.max_tokens
        size = counter.count(lead + GAP) if lead else 0
        self._options = options
        self._marks_of = marks_of
        self._counter = counter
        self._lead = lead if 2 * size <= budget else ""
        self._room = budget - (size if self._lead else 0)
        self._most: dict[_Step, int] = {
            "full": options.entry_tokens,
            "gist": min(policy.gist_tokens, options.entry_tokens),
            "line": min(policy.line_tokens, options.entry_tokens),
            "cut": options.entry_tokens,
        }
        self._writing = partial(
            Writing,
            form=options.form,
            counter=counter,
            headings=dict[str, int](),
            has_rows=policy.whole_rows,
            has_turns=policy.by_session,
        )
        share = policy.duplicate_share
        self._duplicates = None if share is None else Duplicates(share)
        self._blocks: Blocks = Blocks()
        self._repeated: dict[int, int] = {}
        self._unreadable: dict[int, str] = {}
        self._long = set[int]()
        self.misses = 0

    def forget_misses(self) -> None:
        """Count misses from 0 again."""
        self.misses = 0

    def leave_out(self, number: int, error: CerataError) -> None:
        """Name an entry that cannot be read."""
        self._unreadable[number] = error.what
        leave_out(f"Entry {number:,}", error)

    def try_add(self, rank: int, entry: Entry, step: _Step) -> bool:
        """Place an entry by a step, if it fits; return whether the entry is dealt with."""
        duplicates = None if entry.stands_for else self._duplicates
        same: int | None = None
        key = b""
        if duplicates is not None:
            key = folded(entry.text)
            same = duplicates.equal.get(key)
        blocks = self._with(rank, entry, step) if same is None else self._blocks
        if blocks is None:
            return False
        # Near-duplicate detection is expensive; run it only on entries that fit.
        if duplicates is not None and same is None:
            same = duplicates.add(entry.id, entry.text, key)
        if same is not None:
            self._repeated[entry.id] = same
            return self._lengthens(same, rank, step)
        self._blocks = blocks
        self.misses = 0
        return True

    def _lengthens(self, same: int, rank: int, step: _Step) -> bool:
        """Make a placed entry as long as its copy may be; return False if that does not fit yet."""
        for shorter in self._blocks.entries():
            is_other = shorter.entry.id != same or not shorter.clipped
            if is_other or _LENGTHS[shorter.tier] >= _LENGTHS[step]:
                continue
            longer = self._alone(rank, shorter.entry, step)
            if longer is None:
                return False
            longer = msgspec.structs.replace(longer, place=shorter.place)
            blocks = self._fitting(self._blocks.without(shorter).added(longer))
            if blocks is None:
                return False
            self._blocks = blocks
            self.misses = 0
        return True

    def lengthen(self) -> None:
        """Replace each shortened entry, best first, by the longest form that fits."""
        for short in sorted(self._blocks.entries(), key=attrgetter("rank")):
            if short.tier == "full":
                continue
            blocks = self._blocks
            self._blocks = blocks.without(short)
            for step in _LONGER:
                longer = None
                if _LENGTHS[step] > _LENGTHS[short.tier]:
                    longer = self._with(short.rank, short.entry, step)
                if longer is not None:
                    blocks = longer
                    break
            self._blocks = blocks

    def _with(self, rank: int, entry: Entry, step: _Step) -> Blocks | None:
        """Return the blocks with this entry joined or added; None if that does not fit."""
        if step == "cut" and rank not in self._long and self._free < CUT_LEAST:
            return None
        if step == "full" and entry.document is not None:
            for neighbour in self._blocks.entries():
                if not neighbour.clipped and _are_neighbours(neighbour.entry, entry):
                    joined = self._joined(neighbour, entry)
                    if joined is not None:
                        return self._fitting(self._blocks.without(neighbour).added(joined))
        placed = self._alone(rank, entry, step)
        return None if placed is None else self._fitting(self._blocks.added(placed))

    def _fitting(self, blocks: Blocks) -> Blocks | None:
        if blocks.tokens <= self._room:
            return blocks
        self.misses += 1
        return None

    @property
    def _free(self) -> int:
        return self._room - self._blocks.followed()

    def _alone(self, rank: int, entry: Entry, step: _Step) -> PlacedEntry | None:
        """Return an entry as a step writes it; None if a full one would have to be cut."""
        most = min(self._most[step], self._room)
        if step == "cut" and self._free >= CUT_LEAST:
            most = min(most, self._free)
        writing = self._writing(entry, most)
        has_others = bool(self._blocks.blocks)
        text = entry.text.strip()
        tier: Tier = "full"
        written = writing.fitting(text)
        is_whole = written is not None
        if not is_whole and step in ("gist", "line"):
            # Skip the pass over the text if its result could only be cut again.
            if has_others and self._free < writing.most:
                self.misses += 1
                return None
            marks = self._marks_of(text)
            tier = step
            text = writing.gist(marks) if step == "gist" else writing.line(marks)
        elif not is_whole and (step == "cut" or not has_others):
            text = writing.clipped(self._marks_of(text))
        elif not is_whole:
            self._long.add(rank)
            return None
        if not text and has_others:
            # A source alone has no content.
            return None
        place = (rank,) if self._options.order == "score" else (entry.time, age_of(entry.id))
        return PlacedEntry(
            rank,
            place,
            entry,
            text,
            writing.written(text) if written is None else written,
            self._counter,
            clipped=not is_whole,
            tier=tier,
        )

    def _joined(self, placed: PlacedEntry, entry: Entry) -> PlacedEntry | None:
        """Return two neighbours as one, their overlap once, with the source of the better.

        None if that is over the budget of an entry.
        """
        best = placed.entry
        first, second = (best, entry) if best.start <= entry.start else (entry, best)
        overlap = max(0, first.end - second.start)
        shared = first.body[second.start - first.start :][: len(second.body)]
        if shared != second.body[:overlap]:
            # Their places are adjacent, but their texts differ.
            return None
        text = first.text + second.body[overlap:]
        merged = msgspec.structs.replace(best, text=text, start=first.start, header=first.header)
        text = text.strip()
        written = self._writing(merged, min(self._most["full"], self._room)).fitting(text)
        if written is None:
            return None
        joined = (*placed.joined, entry.id)
        return PlacedEntry(
            placed.rank, placed.place, merged, text, written, self._counter, joined=joined
        )

    def packed(self, ids: Sequence[int]) -> PackedContext:
        """Return the placed entries as a text, and the omissions among all ids."""
        counter = self._counter
        text, items = text_of(self._lead, self._blocks.blocks)
        shown_ids = {number for item in items for number in (item.id, *item.joined)}
        omissions = [
            Omission(number, self._repeated.get(number), self._unreadable.get(number))
            for number in ids
            if number not in shown_ids
        ]
        return PackedContext(
            items=items,
            omissions=tuple(omissions),
            text=text,
            tokens=counter.count(text),
            tokenizer=counter.name,
            has_lead=bool(self._lead),
        )


def _are_neighbours(first: Entry, second: Entry) -> bool:
    is_same = first.document == second.document
    return is_same and first.start <= second.end and second.start <= first.end
