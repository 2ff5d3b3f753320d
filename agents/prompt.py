"""Prompts: the references and the last turns of a run, within a budget of tokens.

Owns `RunContext` and its layout. Leaves out the results (`run_results`). No line of a result or an
answer begins as a line of this module does: data is quoted or indented.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Final, NamedTuple

from cerata.engine.arguments import expect_integer, expect_string
from cerata.engine.errors import InvalidInput, number_text
from cerata.engine.plain_value import PlainValue
from cerata.retrieval.tokenizer import Tokenizer, tokenizer

from .activities.columns import CallKind
from .activities.events import RecordCall
from .activities.reader import CallRow
from .activities.values import Reference
from .run_results import RunResults
from .text.summaries import decoded, encoded, on_one_line, quoted, size_text

REFERENCES_SHARE: Final = 1_500
"""Tokens of the list of references, at most; an unvalidated heuristic."""

_ARGUMENTS_MAX: Final = 200
"""Characters of the arguments in the line of a call."""

_TITLE: Final = "Available scratchpad refs:"


@dataclass(frozen=True, slots=True)
class RunContext(PlainValue):
    """The prompt of a run: its references, its last turns, and the question.

    - ``text`` has the references and the turns; with ``question`` it takes ``tokens`` of at most
      ``max_tokens``.
    - ``turns`` are the turns of which at least a call is shown.
    - ``basis`` is the event as of which the run was read.
    """

    _plain: ClassVar[tuple[str, ...]] = (
        *("text", "question", "tokens", "max_tokens", "tokenizer", "turns", "basis"),
    )

    text: str
    question: str
    tokens: int
    max_tokens: int
    tokenizer: str
    turns: tuple[int, ...]
    basis: int

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.question}" if self.text else self.question

    def to_messages(self) -> list[dict[str, str]]:
        """Return the text and the question as two messages of the user, as chat models take them.

        A run without calls has the question alone.
        """
        texts = (self.text, self.question) if self.text else (self.question,)
        return [{"role": "user", "content": text} for text in texts]


def context_of(results: RunResults, question: str, max_tokens: int, reserved: int) -> RunContext:
    """Return the prompt of a run.

    Args:
        results: The results of the run.
        question: The last message.
        max_tokens: Tokens of the prompt and of the text that the program adds itself.
        reserved: Tokens of the text that the program adds itself.

    Raises:
        InvalidInput: the question and the shortest list of references need more tokens.
    """
    expect_string("question", question)
    max_tokens = expect_integer(
        "max_tokens", max_tokens, "a number of tokens", "Pass max_tokens=7000."
    )
    reserved = expect_integer("reserved", reserved, "a number of tokens", "Pass reserved=4000.")
    counter = tokenizer()
    budget = max_tokens - reserved
    question_tokens = counter.count(question)
    listing = _Listing(results.references(), counter)
    # A small budget leaves half for turns.
    lines, used = listing.within(min(REFERENCES_SHARE, (budget - question_tokens) // 2))
    needed = question_tokens + used
    if needed > budget:
        raise InvalidInput(
            f"The question and the references need {number_text(needed)} tokens, of "
            f"{number_text(budget)}",
            where=f"max_tokens {number_text(max_tokens)}, reserved {number_text(reserved)}",
            remedy=f"Pass max_tokens of at least {number_text(needed + reserved)}.",
        )
    entries = _entries(results, counter, budget - needed)
    while True:
        text = "\n\n".join(part for part in ("\n".join(lines), _turns_text(entries)) if part)
        tokens = counter.count(text) + question_tokens
        if tokens <= budget or not entries:
            break
        # The sum of the lines' tokens can be below those of the text by a line end.
        entries = entries[1:]
    return RunContext(
        text,
        question,
        tokens,
        budget,
        counter.name,
        tuple(sorted({entry.turn for entry in entries})),
        results.basis,
    )


# --- references ----------------------------------------------------------------------------------


def _by_name(references: Sequence[Reference]) -> list[list[Reference]]:
    """Return the references of each name, the names in order of their last."""
    groups: dict[str, list[Reference]] = {}
    for item in references:
        name = item.ref.rpartition(".")[0]
        group = groups.pop(name, [])
        group.append(item)
        groups[name] = group
    return list(groups.values())


def _line(references: Sequence[Reference]) -> str:
    """Return the line of references with a name."""
    first, last = references[0], references[-1]
    if first is last:
        return f"- {first.ref} — {first.summary}"
    return f"- {first.ref}…{last.ref.rpartition('.')[2]} — {_amount(references)}"


def _amount(references: Sequence[Reference]) -> str:
    return f"{len(references):,} results, {size_text(sum(item.size for item in references))}"


class _Listing:
    """The list of references, shortened from its oldest."""

    def __init__(self, references: Sequence[Reference], counter: Tokenizer) -> None:
        self._references = references
        self._counter = counter
        self._lengths = dict[str, int]()

    def within(self, share: int) -> tuple[list[str], int]:
        """Return the longest list within a share of tokens, or the shortest; and its tokens."""
        if not self._references:
            return [], 0
        lines = self._longest(share)
        return lines, self._counter.count("\n".join(lines))

    def _longest(self, share: int) -> list[str]:
        lines: list[str] = []
        for folds in (self._folded, self._counted):
            low, high = 0, len(self._references)
            while low < high:
                middle = (low + high) // 2
                if self._tokens(folds(middle)) <= share:
                    high = middle
                else:
                    low = middle + 1
            lines = folds(low)
            if self._tokens(lines) <= share:
                break
        return lines

    def _folded(self, count: int) -> list[str]:
        """Return the lines with the oldest references folded by name."""
        lines = [_line(group) for group in _by_name(self._references[:count])]
        return [_TITLE, *lines, *(_line([item]) for item in self._references[count:])]

    def _counted(self, count: int) -> list[str]:
        """Return the lines of names, with the oldest names in one last line."""
        groups = _by_name(self._references)
        counted, rest = groups[:count], groups[count:]
        lines = [_TITLE, *map(_line, rest)]
        if counted:
            amount = _amount([item for group in counted for item in group])
            lines.append(f"- {len(counted):,} older names — {amount}")
        return lines

    def _tokens(self, lines: Sequence[str]) -> int:
        new = [line for line in lines if line not in self._lengths]
        counts = self._counter.count_many(f"{line}\n" for line in new)
        self._lengths.update(zip(new, counts, strict=True))
        return sum(self._lengths[line] for line in lines)


# --- turns ---------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """The lines of a call."""

    turn: int
    text: str


def _entries(results: RunResults, counter: Tokenizer, budget: int) -> list[_Entry]:
    """Return the newest calls within a budget of tokens, in order."""
    entries: list[_Entry] = []
    turn = 0
    for row in reversed(results.calls()):
        if row.kind in (CallKind.INPUT, CallKind.CLOCK, CallKind.RANDOM):
            continue
        entry = _Entry(row.turn, _text_of(row, results))
        heading = "" if row.turn == turn else f"{_heading(row.turn)}\n\n"
        budget -= counter.count(f"{heading}{entry.text}\n")
        if budget < 0:
            break
        turn = row.turn
        entries.append(entry)
    return entries[::-1]


def _heading(turn: int) -> str:
    return f"Turn {turn}:"


def _turns_text(entries: Sequence[_Entry]) -> str:
    turns = groupby(entries, key=lambda entry: entry.turn)
    return "\n\n".join(
        "\n".join([_heading(turn), *(entry.text for entry in group)]) for turn, group in turns
    )


def _text_of(row: CallRow, results: RunResults) -> str:
    body = results.body(row)
    if body is None:
        return f"- {row.name} (erased)"
    if row.kind is CallKind.MODEL and body.error is None:
        return _indented(_answer(row, results))
    arguments = on_one_line(body.arguments)
    if len(arguments) > _ARGUMENTS_MAX:
        arguments = f"{arguments[:_ARGUMENTS_MAX]}…"
    return f"- {row.name} {arguments} → {_outcome(row, body, results)}"


def _outcome(row: CallRow, body: RecordCall, results: RunResults) -> str:
    if body.error is not None:
        return f"raised {quoted(body.error)}"
    for item in results.references_of([row]):
        return f"{item.ref} {item.summary}"
    return "no result" if not row.result else "the result is gone"


def _answer(row: CallRow, results: RunResults) -> str:
    data = results.data(row)
    if data is None:
        return "(the answer is gone)"
    value = decoded(data)
    return value if isinstance(value, str) else encoded(value, "An answer").decode()


def _indented(text: str) -> str:
    # `splitlines` splits at each Unicode line end.
    return "\n".join(f"  {line}" for line in text.splitlines() or [""])
