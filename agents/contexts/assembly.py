"""Assembly: the context of a turn, from blocks with caps, within an exact budget of tokens.

Owns the shares of the blocks, the cut of each, and `Assembly`. Leaves out the content of the blocks
(`blocks`). Caps are shares of the budget without the question; the block "continuity" gets the rest
of the other shares, too. Text from memory is indented by two spaces, so that it cannot form a
heading or a tag of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from cerata.engine.arguments import expect_integer, expect_one_of, expect_text
from cerata.engine.errors import InvalidInput, number_text
from cerata.engine.plain_value import PlainValue
from cerata.memory.view import View
from cerata.retrieval.tokenizer import Tokenizer, tokenizer

Titles: TypeAlias = Literal["own", "plain"]

ASSEMBLY_VERSION: Final = 1
"""Version of blocks, caps and texts: a change of these needs another."""

CONTINUITY: Final = "continuity"


class Piece(NamedTuple):
    """Lines of a block that are shown or left out together."""

    text: str
    source: int | None = None
    """The frame or fact that the lines come from."""
    rule: str = ""
    """The reason for which the lines are shown."""
    rank: int = 0
    """Pieces of a lower rank are chosen first; the text keeps the order of the section."""
    further: tuple[int, ...] = ()
    """Further frames or facts that have a part of the text."""


class Section(NamedTuple):
    """A heading of a block with its pieces, in the order in which they are chosen."""

    title: str
    pieces: Sequence[Piece]
    is_tag: bool = False
    """True if the title is a tag around the text, and no line in brackets."""
    name: str | None = None
    """The name by which `Assembly.blocks` lists the section, besides its block."""


class Content(NamedTuple):
    """A block: its name, its place, its share of the budget, and its sections."""

    name: str
    priority: int
    share: float
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class Block:
    """A caller's block of an assembly.

    ``render(view, budget)`` returns its text for a view and a number of tokens. It must be pure:
    the same view gives the same text. Blocks stand in order of ``priority``.
    """

    priority: int
    title: str
    render: Callable[[View, int], str]


@dataclass(frozen=True, slots=True)
class AssemblyItem(PlainValue):
    """Lines of a context: their block, their source, and the rule that chose them.

    ``source`` is a frame or fact, or None; ``further`` frames and facts have parts of the text.
    """

    block: str
    source: int | None
    rule: str
    text: str
    further: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """The frames and facts that have the text."""
        return self.further if self.source is None else (self.source, *self.further)


@dataclass(frozen=True, slots=True)
class Assembly(PlainValue):
    """The context of a turn.

    - ``text`` and ``question`` take ``tokens`` of at most ``max_tokens``.
    - ``blocks`` are the names of the blocks that are shown, in order; "handoff" follows
      "continuity" if the handoff, the warm start or the last messages are shown.
    - ``items`` has the lines of the blocks with their sources and rules.
    - ``basis`` and ``now`` are those of the view.
    - ``recorded`` is the seq of the event that records the context, or None.
    """

    _plain: ClassVar[tuple[str, ...]] = (
        *("text", "question", "tokens", "max_tokens", "tokenizer", "blocks", "items", "basis"),
        *("now", "recorded"),
    )

    text: str
    question: str
    tokens: int
    max_tokens: int
    tokenizer: str
    blocks: tuple[str, ...]
    items: tuple[AssemblyItem, ...]
    basis: int
    now: datetime
    recorded: int | None = None

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.question}" if self.text else self.question

    def to_messages(self) -> list[dict[str, str]]:
        """Return the context and the question as two messages of the user; the question is last."""
        texts = (self.text, self.question) if self.text else (self.question,)
        return [{"role": "user", "content": text} for text in texts]


def check_request(question: object, max_tokens: object, titles: object) -> tuple[str, int]:
    """Return the question and its tokens, after the checks of both arguments.

    Raises:
        InvalidInput: the question is no text, the titles are unknown, or the question alone needs
            more tokens.
    """
    text = expect_text("query", question)
    budget = expect_integer("max_tokens", max_tokens, "a number of tokens", "Pass 6000.")
    expect_one_of("titles", titles, ("own", "plain"), "Pass titles='own' or titles='plain'.")
    used = tokenizer().count(text)
    if used >= budget:
        raise InvalidInput(
            f"The question needs {number_text(used)} tokens, and max_tokens is "
            f"{number_text(budget)}",
            remedy=f"Pass max_tokens of at least {number_text(used + 1)}.",
        )
    return text, used


def assembled(
    contents: Iterable[Content],
    extra: Sequence[Block],
    question: str,
    used: int,
    max_tokens: int,
    view: View,
    now: datetime,
) -> Assembly:
    """Return the context of blocks within a budget.

    Args:
        contents: The blocks, in any order.
        extra: The caller's blocks, each with what is left when it is rendered.
        question: The question.
        used: Its tokens.
        max_tokens: The budget, the question included.
        view: The view that the caller's blocks get.
        now: The view's now.
    """
    counter = tokenizer()
    budget = min(max_tokens - used, sys.maxsize)
    chosen_blocks: list[_Shown] = []
    ordered = sorted(contents, key=lambda content: content.priority)
    late = [content for content in ordered if content.name == CONTINUITY]
    left = budget
    for content in [each for each in ordered if each.name != CONTINUITY]:
        block = _chosen(content, counter, min(left, int(content.share * budget)))
        left -= block.tokens
        chosen_blocks.append(block)
    for number, each in enumerate(sorted(extra, key=lambda each: each.priority)):
        content = _of_caller(each, number, view, left)
        chosen = _chosen(content, counter, left)
        left -= chosen.tokens
        chosen_blocks.append(chosen)
    for content in late:
        chosen_blocks.append(_chosen(content, counter, left))
    chosen_blocks.sort(key=lambda block: (block.priority, block.name))
    while True:
        blocks = [block for block in chosen_blocks if block.pieces]
        text = "\n".join(line for block in blocks for line in block.lines())
        tokens = counter.count(text) + used
        if tokens <= max_tokens or not blocks:
            break
        # The tokens of parts can be fewer than those of the whole text: leave out the last piece.
        blocks[-1].pieces.pop()
    items = tuple(
        AssemblyItem(block.name, piece.source, piece.rule, piece.text, piece.further)
        for block in blocks
        for _, piece in block.pieces
    )
    names = tuple(name for block in blocks for name in block.names())
    return Assembly(text, question, tokens, max_tokens, counter.name, names, items, view.basis, now)


class _Shown:
    """The chosen pieces of a block."""

    def __init__(self, content: Content) -> None:
        self.name = content.name
        self.priority = content.priority
        self.sections = content.sections
        self.pieces: list[tuple[int, Piece]] = []
        self.tokens = 0

    def names(self) -> list[str]:
        """Return the name of the block, and those of its shown sections that have one."""
        shown = {place for place, _ in self.pieces}
        sections = (self.sections[place].name for place in sorted(shown))
        return [self.name, *(name for name in sections if name is not None)]

    def lines(self) -> list[str]:
        """Return the lines of the block."""
        lines: list[str] = []
        for number, section in enumerate(self.sections):
            texts = [piece.text for place, piece in self.pieces if place == number]
            if not texts:
                continue
            if section.is_tag:
                if len(texts) < len(section.pieces):
                    texts.append(f"  ({len(texts)} of {len(section.pieces)} lines)")
                lines += [f"<{section.title}>", *texts, f"</{section.title}>"]
            else:
                lines += [f"[{section.title}]", *texts]
        return lines


def _chosen(content: Content, counter: Tokenizer, cap: int) -> _Shown:
    """Return a block with the pieces that fit, in the order of their sections."""
    block = _Shown(content)
    for number, section in enumerate(content.sections):
        heading = counter.count(f"<{section.title}>\n</{section.title}>\n") if section.is_tag else 0
        heading = heading or counter.count(f"[{section.title}]\n")
        places: list[int] = []
        for place in sorted(range(len(section.pieces)), key=lambda at: section.pieces[at].rank):
            cost = counter.count(f"{section.pieces[place].text}\n") + (0 if places else heading)
            if block.tokens + cost <= cap:
                places.append(place)
                block.tokens += cost
        block.pieces += [(number, section.pieces[place]) for place in sorted(places)]
    return block


def _of_caller(block: Block, number: int, view: View, budget: int) -> Content:
    text: object = block.render(view, max(0, budget))
    if not isinstance(text, str):
        raise InvalidInput(
            f"The block {block.title!r:.60} rendered {type(text).__name__}, expected a text",
            remedy="Return a str from render(view, budget).",
        )
    pieces = [Piece(f"  {line}", None, "block of the caller") for line in text.splitlines()]
    return Content(f"extra-{number + 1}", block.priority, 1.0, [Section(block.title, pieces)])


def indented(text: str) -> str:
    """Return a text with each line indented by two spaces."""
    return "\n".join(f"  {line}" for line in text.splitlines() or [""])
