"""Messages as the fold of Dynamics keeps them: counts without text.

Owns the choice of events, which is that of `cerata.agents.turns.projection`, and the counts
of a message. The stems of topics are the only words.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from cerata.engine.events import PutFrame
from cerata.projections.columnar.scopes import scope_text, tenant_of_rows
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.fulltext.analyzer import words

from ..lexicon import english_lexicon
from ..line import line_of
from ..projection import ASSISTANT, MESSAGE_KIND, session_of, simhashes, span_of
from ..topics import topics_of

StreamKey = tuple[str | int | bytes, str, str]
"""A tenant, an agent, and the text of a scope without session, thread and mode."""


class Message(NamedTuple):
    """A message: a part of rows, so its fields are plain."""

    seq: int
    created: int
    session: str
    thread: str
    group: str
    by_agent: bool
    parent: int
    """The document of a chunk, or 0."""
    end: int
    """One past the last character of a chunk in its document, or 0."""
    words: int
    signs: bytes
    """The count of each sign, a byte each, in the order of `SIGNS`."""
    patterns: int
    topics: tuple[str, ...]
    simhash: int

    def continued(self, chunk: "Message") -> "Message":
        """Return the message with a chunk that goes on with it; the simhash stays that of here."""
        return self._replace(
            end=chunk.end,
            words=self.words + chunk.words,
            signs=bytes(min(a + b, 255) for a, b in zip(self.signs, chunk.signs, strict=True)),
            patterns=self.patterns | chunk.patterns,
            topics=tuple(dict.fromkeys(self.topics + chunk.topics)),
        )


class Heard(NamedTuple):
    """A message before its topics are known: its stream, its thread, and the place of a chunk."""

    stream: StreamKey
    thread: str
    group: str
    parent: int
    start: int
    counted: Callable[[Collection[str]], Message]
    """Returns the message, given the topics of the messages before."""


def heard(event: FoldedEvent) -> Heard | None:
    """Return the message of an event, or None if the event puts none of a session."""
    body, scope = event.body, event.scope
    if not isinstance(body, PutFrame) or body.kind != MESSAGE_KIND or scope is None:
        return None
    text, track = body.text, body.track
    session = session_of(scope, body)
    if not text or track is None or session is None:
        return None
    line = line_of(track, scope)
    start, end = span_of(body)
    parent = body.parent if end and body.parent else 0

    def counted(earlier: Collection[str]) -> Message:
        folded = words(text)
        is_users = body.role != ASSISTANT
        counts = english_lexicon().counts(text, folded, is_users=is_users)
        return Message(
            event.seq,
            event.recorded if body.created is None else body.created,
            session,
            line.thread,
            line.group,
            not is_users,
            parent,
            end,
            len(folded),
            bytes(counts.signs),
            counts.patterns,
            tuple(topics_of(folded, earlier)),
            simhashes([folded])[0],
        )

    stream = tenant_of_rows(scope), track, scope_text(line.base)
    return Heard(stream, line.thread, line.group, parent, start, counted)
