"""The 24 features of an exchange, and their running moments, in integers. The choice is ours.

Owns the values, their limits, and the z-scores. A feature that an exchange lacks has no value: it
counts as 0 and leaves the moments alone.
"""

from collections.abc import Callable, Collection, Sequence
from math import isqrt
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.events import PutFrame
from cerata.projections.columnar.columns import I64
from cerata.projections.columnar.scopes import scope_text, tenant_of_rows
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.fulltext.analyzer import words

from ..lexicon import SIGN, SIGNS, english_lexicon, topics_of
from ..line import line_of
from ..measures import CALM, CALM_US, CALMED, META_EXCHANGES, change_of, entropy_parts
from ..projection import ASSISTANT, MESSAGE_KIND, session_of, simhashes, span_of

# --- Messages as the fold of Dynamics keeps them: counts without text -----------------------------
#
# The stems of topics are the only words.


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


# --- The 24 features of an exchange, and their running moments, in integers. The choice is ours


ONE: Final = 1 << 16
"""The number 1 in Q16: 16 bits of fraction."""

Z_MAX: Final = 3 * ONE
"""A z-score is clipped to ±3."""

VALUE_MAX: Final = (1 << 16) - 1
"""A greater value of a feature counts as this, so that a sum of squares fits 64 bits."""

FEATURES: Final = (
    *("correction", "new topics", "emotion", "paradox", "meta", "plan as if done", "intimacy"),
    *("own thinking", "calm", "entropy", "sustained", "words of the user", "words of the agent"),
    *("ratio of words", "share of new topics", "distance of answers", "self", "question", "hedge"),
    *("commitment", "standing", "index", "minutes since the last", "minutes of the session"),
)
"""The features, in the order of the encoder's inputs. On disk: the order belongs to the version."""

WORDS_OF_USER: Final = FEATURES.index("words of the user")
RATIO: Final = FEATURES.index("ratio of words")

_MINUTE_US: Final = 60_000_000
_ACTIVE: Final = 40
_NONE: Final = Message(0, 0, "", "", "", False, 0, 0, 0, bytes(len(SIGNS)), 0, (), 0)


class Before(NamedTuple):
    """The state of a session and its thread before an exchange; a part of rows."""

    exchanges: int = 0
    """Exchanges of the session."""
    started: int = 0
    last: int = 0
    """Times of the session's first and last exchange."""
    simhash: int | None = None
    """That of the session's last answer."""


class LineBefore(NamedTuple):
    """The state of a thread in a mode group before an exchange; a part of rows."""

    metas: tuple[int, ...] = ()
    """Counts of own thinking in the last 5 exchanges."""
    calmed: int | None = None
    """Time of the last exchange with an entropy over .60."""
    sustained: int = 0
    """Last exchanges in a row with an entropy over .40."""


class Exchange(NamedTuple):
    """A message and its reply; either may be missing."""

    question: Message | None
    reply: Message | None
    new_topics: int
    topics: int

    @property
    def first(self) -> Message:
        """The first message."""
        first = self.reply if self.question is None else self.question
        assert first is not None
        return first


Values = Sequence[int | None]
"""The values of the features; None for a missing one."""


def features_of(
    exchange: Exchange, session: Before, line: LineBefore
) -> tuple[Values, Before, LineBefore]:
    """Return the features of an exchange, and the states after it."""
    question = exchange.question or _NONE
    reply = exchange.reply or _NONE
    created = exchange.first.created
    asked, answered = _signs(question), _signs(reply)
    metas = (*line.metas, int(answered[SIGN["meta"]]))
    parts = entropy_parts(
        lambda sign: asked[SIGN[sign], None],
        lambda sign: answered[SIGN[sign], None],
        np.array([question.words]),
        np.array([exchange.question is not None]),
        np.array([sum(metas)]),
        np.array([exchange.new_topics]),
    )
    numbers = [int(part[0]) for part in parts.values()]
    bare = sum(numbers)
    is_calm = line.calmed is not None and 0 <= created - line.calmed <= CALM_US
    numbers.append(CALM if is_calm and answered[SIGN["calm"]] else 0)
    entropy = sum(numbers)
    sustained = line.sustained + 1 if entropy > _ACTIVE else 0
    has_both = exchange.question is not None and exchange.reply is not None
    both = asked + answered
    distance = None
    if exchange.reply is not None and session.simhash is not None:
        distance = (reply.simhash ^ session.simhash).bit_count()
    values: Values = (
        *numbers,
        entropy,
        sustained,
        question.words if exchange.question else None,
        reply.words if exchange.reply else None,
        100 * reply.words // max(question.words, 1) if has_both else None,
        100 * exchange.new_topics // exchange.topics if exchange.topics else None,
        distance,
        *(int(both[SIGN[sign]]) for sign in ("self", "question", "hedge", "commitment")),
        change_of(question.patterns),
        session.exchanges,
        max(0, created - session.last) // _MINUTE_US if session.exchanges else None,
        max(0, created - session.started) // _MINUTE_US if session.exchanges else 0,
    )
    after = Before(
        session.exchanges + 1,
        session.started if session.exchanges else created,
        created,
        session.simhash if exchange.reply is None else reply.simhash,
    )
    line_after = LineBefore(
        metas[-(META_EXCHANGES - 1) :], created if bare > CALMED else line.calmed, sustained
    )
    return values, after, line_after


def question_density(exchange: Exchange) -> int:
    """Return the questions of the user for each word, at most 1, in Q16."""
    question = exchange.question
    if question is None:
        return 0
    return min(ONE, question.signs[SIGN["question"]] * ONE // max(question.words, 1))


def available(values: Values) -> int:
    """Return a bit for each feature that has a value, the first in the lowest bit."""
    return sum((value is not None) << bit for bit, value in enumerate(values))


def _signs(message: Message) -> I64:
    return np.frombuffer(message.signs, np.uint8).astype(np.int64)


class Moments:
    """Counts, sums and sums of squares of the features."""

    def __init__(self, data: bytes = b"") -> None:
        """Read the moments from `encoded`; without data, those of no value."""
        size = len(FEATURES)
        numbers = np.frombuffer(data, "<i8").tolist() if data else [0] * (3 * size)
        self._counts, self._sums, self._squares = (
            numbers[first : first + size] for first in range(0, 3 * size, size)
        )

    def encoded(self) -> bytes:
        """Return the moments as bytes."""
        return np.array([self._counts, self._sums, self._squares], "<i8").tobytes()

    def scores(self, values: Values) -> I64:
        """Return the z-scores of values before they are added, in Q16; (24,).

        z = (x − s/n) / √(q/n − (s/n)²) = (x·n − s) / √(n·q − s²) for n values, their sum s and the
        sum of their squares q: exact until the root, in integers of any size.
        """
        scores: list[int] = []
        for value, n, s, q in zip(values, self._counts, self._sums, self._squares, strict=True):
            spread = 0 if value is None else n * q - s * s
            if value is None or spread <= 0:
                scores.append(0)
                continue
            score = ((_limited(value) * n - s) << 32) // isqrt(spread << 32)
            scores.append(min(max(score, -Z_MAX), Z_MAX))
        return np.array(scores, np.int64)

    def add(self, values: Values) -> None:
        """Add values."""
        for place, value in enumerate(values):
            if value is not None:
                limited = _limited(value)
                self._counts[place] += 1
                self._sums[place] += limited
                self._squares[place] += limited * limited


def _limited(value: int) -> int:
    return min(max(value, -VALUE_MAX), VALUE_MAX)
