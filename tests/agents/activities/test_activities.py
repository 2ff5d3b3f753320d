"""The fold of activities: equal to a plain reference at every event, total, and forkable."""

from collections.abc import Sequence
from random import Random

import pytest

from cerata.agents.activities.events import EndActivity, RecordCall, StartActivity
from cerata.agents.activities.projection import ActivitiesProjection
from cerata.agents.activities.reader import ActivitiesAt
from cerata.engine.events import DEFAULT_SCOPE, Erased, EventBody, PutFrame, RecallContext, Scope
from cerata.projections.columnar.scopes import Reach

from ...projections.histories import OTHER_SCOPE, Folded
from .activity_model import activities_of

SEEDS = range(12)


def history(seed: int, count: int = 60) -> list[Folded]:
    """Return random agent events, with unknown words, references and erased payloads."""
    source = Random(seed)
    events: list[Folded] = []
    for seq in range(1, count + 1):
        body = _body(source, seq)
        scope = OTHER_SCOPE if source.random() < 0.25 else DEFAULT_SCOPE
        events.append(Folded(seq, body.wire_name, 1_000 * seq, scope, body))
    return events


def erased(events: Sequence[Folded], seed: int) -> list[Folded]:
    """Return events of which some lost their payloads."""
    source = Random(seed)
    return [
        Folded(event.seq, event.type, event.recorded, event.scope, Erased(b"c"))
        if source.random() < 0.05
        else event
        for event in events
    ]


def _body(source: Random, seq: int) -> EventBody:
    near = source.randint(max(1, seq - 12), seq + 1)
    draw = source.random()
    if draw < 0.3:
        return StartActivity(
            kind=source.choice(("run", "run", "session", "odd")),
            name=source.choice(("a", "b")),
            agent=source.choice(("x", "y")),
            agent_version="1",
            parent=source.choice((None, near)),
            resumes=source.choice((None, near)),
            replays=source.random() < 0.3,
        )
    if draw < 0.45:
        return EndActivity(activity=near, status=source.choice(("done", "failed", "left", "odd")))
    if draw < 0.9:
        return RecordCall(
            activity=near,
            kind=source.choice(("tool", "input", "model", "clock", "odd")),
            name=source.choice(("fetch", "ask")),
            turn=source.choice((0, 1, 2, 2**40, -1)),
            arguments="{}",
            digest=source.choice((b"d" * 32, b"e" * 32, b"")),
            used=tuple(source.choices(range(1, seq + 1), k=source.choice((0, 0, 2)))),
            results=source.choice(((), (near,))),
            error=source.choice((None, None, "ValueError: no")),
        )
    if draw < 0.95:
        return RecallContext(
            query="So?",
            basis=seq - 1,
            tokenizer="words",
            profile="default",
            profile_version=1,
            max_tokens=9,
            entry_tokens=0,
            form="text",
            context=bytes(32),
            activity=source.choice((None, near, near)),
            blocks=source.choice(((), ("identity",), ("continuity", "handoff"))),
        )
    return PutFrame(text="a result")


def folded(events: Sequence[Folded], steps: int = 7) -> ActivitiesProjection:
    fold = ActivitiesProjection()
    for start in range(0, len(events), steps):
        fold.apply(events[start : start + steps])
    return fold


def answers(view: ActivitiesAt) -> list[object]:
    """Return what a view says of each activity that it sees."""
    return [
        (
            row.seq,
            row.kind.name.lower(),
            row.name,
            row.agent,
            row.end,
            None if row.status is None else row.status.name.lower(),
            [tuple(start) for start in view.further_starts(row.row)],
            [
                (call.seq, call.kind.name.lower(), call.name, call.ordinal, call.failed)
                for call in view.calls(row.row)
            ],
            [
                [view.nth(row.row, name, number) is not None for number in range(4)]
                for name in ("fetch", "ask", "odd")
            ],
            [call.seq for call in view.equal_calls(row.row, b"d" * 32)],
            view.last_turn(row.row),
            view.last_seq(row.row),
            view.has_shown_handoff(row.row),
        )
        for row in view.all_activities()
    ]


def model_answers(events: Sequence[Folded], scope: Scope | None) -> list[object]:
    """Return the same from the plain reference."""
    said: list[object] = []
    for activity in activities_of(events):
        if scope is not None and not set(scope) <= set(activity.start.scope):
            continue
        counts: dict[str, int] = {"fetch": 0, "ask": 0, "odd": 0}
        calls: list[object] = []
        for seq, body in activity.calls:
            counts[body.name] += 1
            calls.append((seq, body.kind, body.name, counts[body.name], body.error is not None))
        seqs = [activity.start.seq, *(seq for seq, _ in [*activity.more, *activity.calls])]
        ends = [
            event.seq
            for event in events
            if isinstance(event.body, EndActivity) and event.body.activity == activity.start.seq
        ]
        said.append(
            (
                activity.start.seq,
                activity.body.kind,
                activity.body.name,
                activity.body.agent,
                None if activity.ended is None else activity.ended[0],
                None if activity.ended is None else activity.ended[1],
                activity.more,
                calls,
                [[0 < number <= counts[name] for number in range(4)] for name in counts],
                [seq for seq, body in reversed(activity.calls) if body.digest == b"d" * 32],
                max((min(max(body.turn, 0), 2**32 - 1) for _, body in activity.calls), default=0),
                max(seqs + [seq for seq in ends if _counts(activity.start, events, seq)]),
                activity.has_shown_handoff,
            )
        )
    return said


def _counts(start: Folded, events: Sequence[Folded], end: int) -> bool:
    """Return whether an end took effect, by the state of the activity just before."""
    before = [event for event in events if event.seq < end]
    after = [event for event in events if event.seq <= end]

    def is_ended(some: Sequence[Folded]) -> bool:
        return any(each.start is start and each.ended for each in activities_of(some))

    return is_ended(after) and not is_ended(before)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_answer_as_of_every_event_equals_a_plain_reference(seed: int) -> None:
    """A reader of an earlier event must not see a later end, start or call."""
    events = erased(history(seed), seed)
    activities = folded(events).snapshot()
    for n in range(len(events) + 1):
        for scope in (None, DEFAULT_SCOPE, OTHER_SCOPE):
            view = ActivitiesAt(activities, n, None if scope is None else Reach(scope))
            assert answers(view) == model_answers(events[:n], scope), (n, scope)


@pytest.mark.parametrize("seed", SEEDS)
def test_open_activities_and_lineage_equal_the_reference(seed: int) -> None:
    """Both are look-ups of their own."""
    events = history(seed)
    view = ActivitiesAt(folded(events).snapshot(), len(events))
    model = activities_of(events)
    opened = [each.start.seq for each in model if each.ended is None]
    assert [row.seq for row in view.open_activities()] == opened
    calls = [(seq, body) for each in model for seq, body in each.calls]
    for seq, body in calls:
        assert view.used_by(seq) == sorted({each for each in body.used if each < seq})
    for frame in range(1, len(events) + 1):
        using = sorted(seq for seq, body in calls if frame in body.used and frame < seq)
        assert view.calls_using(frame) == using
        made = sorted(seq for seq, body in calls if body.results == (frame,) and frame < seq)
        assert view.call_that_made(frame) == (made[0] if made else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_state_does_not_depend_on_steps_chunks_or_forks(seed: int) -> None:
    """The digest proves a state however it was reached."""
    events = erased(history(seed, 40), seed)
    whole = folded(events, len(events))
    digest = whole.digest()
    assert folded(events, 1).digest() == digest
    loaded = ActivitiesProjection()
    loaded.load(whole.chunk(0))
    assert loaded.digest() == digest
    for cut in range(0, len(events) + 1, 5):
        fork = whole.fork(cut)
        fork.apply(events[cut:])
        assert fork.digest() == digest
        view = ActivitiesAt(fork.snapshot(), len(events))
        assert answers(view) == answers(ActivitiesAt(whole.snapshot(), len(events)))
