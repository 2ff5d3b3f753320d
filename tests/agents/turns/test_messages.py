"""The fold of messages: equal to a plain reference, however the events were cut."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest

from cerata.agents.turns.lexicon import SIGNS, english_lexicon
from cerata.agents.turns.line import Line, group_of
from cerata.agents.turns.projection import MessagesProjection, simhashes
from cerata.agents.turns.reader import MessagesAt
from cerata.engine.events import DEFAULT_SCOPE, DeleteFrame, Erased, EventBody, PutFrame, Scope
from cerata.projections.columnar.scopes import Reach
from cerata.projections.fulltext.analyzer import terms, words

from ...projections.histories import Folded

_TEXT = (
    "deadline deadlines accountant scared afraid taxes letter the of and i remember do you "
    "called decided maybe calling thanks urgent budgets budget planning 2026 straße naïve "
)
VOCABULARY = _TEXT.split()


def scope_of(**values: str | int) -> Scope:
    return (*DEFAULT_SCOPE, *values.items())


def folded(bodies: Sequence[tuple[EventBody | Erased, Scope]], first: int = 1) -> list[Folded]:
    """Return events with bodies and scopes; a message answers the event before it."""
    return [
        Folded(seq, getattr(body, "wire_name", "putFrame"), 1_000 * seq, scope, body, seq - 1)
        for seq, (body, scope) in enumerate(bodies, start=first)
    ]


def random_history(seed: int, count: int = 160) -> list[Folded]:
    draw = random.Random(seed)
    bodies: list[tuple[EventBody | Erased, Scope]] = []
    for _ in range(count):
        text = " ".join(draw.choices(VOCABULARY, k=draw.randint(1, 14)))
        mode = draw.choice(["chat", "booth", "code"])
        scope = scope_of(session_id=draw.choice("xy"), thread=draw.choice("pq"), mode=mode)
        if draw.random() < 0.2:
            scope = scope_of(user=draw.choice("ab"), session_id=7)
        if draw.random() < 0.1:
            scope = DEFAULT_SCOPE
        kind = draw.choice(["message"] * 9 + ["text"])
        role = draw.choice(["user", "assistant", "system", None])
        track = draw.choice(["w", "w", "v", None])
        body: EventBody | Erased = PutFrame(text=text, kind=kind, role=role, track=track)
        if draw.random() < 0.1:
            body = Erased(commitment=bytes(32)) if draw.random() < 0.5 else DeleteFrame(frame=1)
        bodies.append((body, scope))
    return folded(bodies)


def expected_rows(events: Sequence[Folded]) -> list[tuple[object, ...]]:
    """Return seq, line, role, topics, signs and answered event of each message, in plain Python."""
    rows: list[tuple[object, ...]] = []
    windows: dict[tuple[object, ...], list[list[str]]] = {}
    for event in events:
        body = event.body
        values = dict(event.scope)
        if not isinstance(body, PutFrame) or body.kind != "message" or body.track is None:
            continue
        if "session_id" not in values:
            continue
        thread, mode = str(values.get("thread", "main")), str(values.get("mode", "chat"))
        named = ("tenant", "session_id", "thread", "mode")
        more = sorted((k, v) for k, v in values.items() if k not in named)
        base = (("tenant", "default"), *more)
        line = (body.track, thread, "chat" if mode in ("chat", "booth") else mode, base)
        window = windows.setdefault(line, [])
        text = body.text or ""
        counts = Counter(term for term in terms(text) if len(term) >= 5 and term.isalpha())
        known = set(chain.from_iterable(window[-12:]))
        topics = [term for term in counts if counts[term] > 1 or term in known]
        topics = sorted(topics, key=lambda term: -counts[term])[:8]
        window.append(topics)
        is_users = body.role != "assistant"
        signs = english_lexicon().counts(text, words(text), is_users=is_users).signs
        rows.append((event.seq, line, not is_users, topics, signs, event.seq - 1))
    return rows


def rows_of(view: MessagesAt) -> list[tuple[object, ...]]:
    rows = np.arange(len(view))
    columns = view.columns
    return [
        (
            columns.seq.item(row),
            (line.agent, line.thread, line.group, line.base),
            bool(columns.by_agent.item(row)),
            topics,
            signs,
            columns.answers.item(row),
        )
        for row, line, topics, signs in zip(
            rows.tolist(),
            [view.line(row) for row in rows.tolist()],
            view.topics(rows),
            view.signs(rows).tolist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_fold_equals_the_reference_at_every_event(seed: int) -> None:
    events = random_history(seed)
    projection = MessagesProjection()
    projection.apply(events)
    rows = expected_rows(events)
    assert len(rows) > 60
    assert any(topics for _, _, _, topics, _, _ in rows)
    for n in range(0, len(events) + 1, 7):
        view = MessagesAt(projection.snapshot(), n)
        assert rows_of(view) == [row for row in rows if isinstance(row[0], int) and row[0] <= n]


@pytest.mark.parametrize("seed", range(4))
def test_cuts_and_chunks_change_nothing(seed: int) -> None:
    """The topics before a cut come from the columns, after a load too."""
    events = random_history(seed)
    whole = MessagesProjection()
    whole.apply(events)
    for cut in range(1, len(events), 11):
        loaded = MessagesProjection()
        first = MessagesProjection()
        first.apply(events[:cut])
        loaded.load(first.chunk(0))
        for projection in (first, loaded):
            projection.apply(events[cut:])
            assert projection.digest() == whole.digest()


def test_a_scope_narrows_the_rows() -> None:
    events = random_history(1)
    projection = MessagesProjection()
    projection.apply(events)
    for scope in ((("tenant", "other"),), scope_of(user="a"), scope_of(thread="p")):
        view = MessagesAt(projection.snapshot(), len(events), Reach(scope))
        expected = [
            event.seq
            for event in events
            if isinstance(event.body, PutFrame)
            and event.body.kind == "message"
            and event.body.track == "w"
            and "session_id" in dict(event.scope)
            and set(scope) <= set(event.scope)
        ]
        assert view.columns.seq.view()[view.rows_of("w")].tolist() == expected
    view = MessagesAt(projection.snapshot(), len(events))
    of_thread = view.rows_of("w", thread="p", group="chat")
    lines = {view.line(row) for row in of_thread.tolist()}
    assert lines == {Line("w", "p", "chat", DEFAULT_SCOPE)}
    assert len(view.of_session("w", "x"))
    assert not len(view.of_session("w", "unknown"))


def test_other_frames_leave_no_trace() -> None:
    bodies: list[tuple[EventBody | Erased, Scope]] = [
        (PutFrame(text="a deadline", kind="message", track="w"), DEFAULT_SCOPE),
        (PutFrame(text="a deadline", kind="message"), scope_of(session_id="s")),
        (PutFrame(text="a deadline", kind="note", track="w"), scope_of(session_id="s")),
        (PutFrame(text="", kind="message", track="w"), scope_of(session_id="s")),
        (Erased(commitment=bytes(32)), scope_of(session_id="s")),
    ]
    projection, empty = MessagesProjection(), MessagesProjection()
    projection.apply(folded(bodies))
    empty.apply(folded([(DeleteFrame(frame=1), DEFAULT_SCOPE)] * len(bodies)))
    assert projection.digest() == empty.digest()


def test_a_chunk_that_overlaps_the_one_before_continues_its_message() -> None:
    def chunk(start: int, end: int, parent: int) -> tuple[EventBody, Scope]:
        body = PutFrame(
            text="some words",
            kind="message",
            track="w",
            parent=parent,
            chunk_index=start,
            metadata={"span": [start, end], "session": "s"},
        )
        return body, DEFAULT_SCOPE

    bodies = [chunk(0, 10, 1), chunk(8, 20, 1), chunk(20, 30, 1), chunk(25, 40, 2)]
    note: tuple[EventBody, Scope] = (PutFrame(text="document"), DEFAULT_SCOPE)
    for cut in range(2, 7):
        events = folded([note, note, *bodies])
        projection = MessagesProjection()
        projection.apply(events[:cut])
        projection.apply(events[cut:])
        assert projection.snapshot().columns.continues.view().tolist() == [0, 1, 0, 0]


def test_signs_of_a_message_are_those_of_its_speaker() -> None:
    text = "I have sent it. No, I meant the other."
    bodies: list[tuple[EventBody | Erased, Scope]] = [
        (PutFrame(text=text, kind="message", role=role, track="w"), scope_of(session_id="s"))
        for role in ("user", "assistant")
    ]
    projection = MessagesProjection()
    projection.apply(folded(bodies))
    view = MessagesAt(projection.snapshot(), 2)
    users, agents = (
        {name for name, count in zip(SIGNS, row, strict=True) if count}
        for row in view.signs(view.rows_of("w")).tolist()
    )
    assert ("correction" in users, "claim" in users) == (True, False)
    assert ("correction" in agents, "claim" in agents) == (False, True)


def test_alike_texts_have_alike_simhashes() -> None:
    base = [f"word{number}".encode() for number in range(40)]
    other = [f"term{number}".encode() for number in range(40)]
    same, near, far, empty = simhashes([base, [*base[1:], b"x"], other, []])
    assert (same ^ near).bit_count() < 16 < (same ^ far).bit_count()
    assert empty == 0
    assert simhashes([base]) == [same]
    assert simhashes([list(reversed(base))]) == [same]


def test_mode_groups() -> None:
    assert [group_of(mode) for mode in ("chat", "booth", "code")] == ["chat", "chat", "code"]
