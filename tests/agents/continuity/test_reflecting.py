"""Reflection: which tasks are due, what each writes, and how a killed one goes on."""

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from cerata import Agent, Filter, InvalidInput, ModelFailed, ReadOnly, Store
from cerata.agents.activities.values import activities_at
from cerata.agents.continuity.models import Extractive, Source, Task, extract_of, fitting
from cerata.agents.continuity.reflecting import aligned_line, assessed_scores, proposed_in
from cerata.agents.continuity.summaries import Summaries
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ...clocks import StandingClock

SCORES = "courage-self: 6\ncourage-ground: 5\nword: 7.5\nbrand: 4\nSo it is."
HOUR = 3_600_000_000
DAY = 24 * HOUR


class Writer:
    """A model whose answers a function gives; it counts the tasks."""

    name = "scripted"
    version = "1"

    def __init__(self, answer: Callable[[Task], str]) -> None:
        self.answer = answer
        self.tasks: list[Task] = []

    def write(self, task: Task) -> str:
        self.tasks.append(task)
        return self.answer(task)


def lead_a_life(agent: Agent, clock: StandingClock, days: int = 10) -> None:
    """Talk once a day: an exchange that is a candidate, and a calm one."""
    for day in range(days):
        with agent.session(f"s{day}", thread=("main", "taxes")[day % 2]) as session:
            session.exchange(
                f"No, I meant the deadline of day {day}; I am scared of the deadline.",
                "The deadline is on Friday.",
            )
            clock.time_us += HOUR
            session.exchange(f"Fine {day}.", "Good.")
        clock.time_us += DAY - HOUR


def leaves_of(snapshot: Snapshot, agent: str) -> dict[int, list[int]]:
    """Return the day summaries that used each message."""
    leaves: dict[int, list[int]] = {}
    summaries = Summaries(snapshot, agent)
    for line in summaries.lines:
        for frames in summaries.made(line, 0).values():
            for frame in frames:
                call = activities_at(snapshot).call_that_made(frame)
                assert call is not None
                for message in activities_at(snapshot).used_by(call):
                    leaves.setdefault(message, []).append(frame)
    return leaves


def stale_of(snapshot: Snapshot, agent: str) -> list[str]:
    """Return the summaries that are due."""
    now_us = to_microseconds(snapshot.now)
    summaries = Summaries(snapshot, agent)
    return [
        due.uri
        for line in summaries.lines
        for level in range(4)
        for due in summaries.due(line, level, now_us)
    ]


def test_a_reflection_summarizes_ended_periods_and_writes_nothing_again(
    store: Store, clock: StandingClock
) -> None:
    agent = Agent(store, "wyatt")
    lead_a_life(agent, clock)
    listed = agent.reflect(dry_run=True)
    head = store.head.seq
    assert {report.reason for report in listed.skipped} == {"due"}
    assert store.head.seq == head
    done = agent.reflect()
    assert not done.failed
    subjects = [report.subject for report in done.done if report.kind == "summarize"]
    assert [each.subject for each in listed.skipped if each.kind == "summarize"] == subjects
    days = [summary.period for summary in agent.summaries("taxes") if summary.level == "day"]
    assert len(days) == 5
    assert "deadline" in (agent.summaries("taxes")[0].title or "")
    head = store.head.seq
    assert agent.reflect() == type(done)()
    assert store.head.seq == head


def test_what_is_written_for_a_candidate_is_no_memory(store: Store, clock: StandingClock) -> None:
    """A thought that only may lead to a proposal was recalled beside what was said."""

    def answer(task: Task) -> str:
        if task.kind == "assess":
            return SCORES
        thought = f"A whisper about the deadline of {len(task.sources)}."
        return f"{thought}\nPROPOSE: I whisper." if "PROPOSE" in task.instructions else thought

    agent = Agent(store, "wyatt", model=Writer(answer))
    lead_a_life(agent, clock, 2)
    agent.reflect()
    thoughts = Filter(kind="reflection", metadata={"candidate": ("exists", True)})
    written = [frame.id for frame in store.frames(thoughts)]
    assert len(written) >= 3
    assert agent.proposals()
    # Summaries are memories: their words are what was said.
    said = ~Filter(kind="summary")
    for question in ("a whisper about the deadline", "I whisper", "deadline"):
        hits = store.search(question, k=50, where=said & Filter(include_superseded=True))
        contexts = [store.recall(question, where=said, floor=floor) for floor in (True, False)]
        texts = [*(hit.text for hit in hits), *(context.text for context in contexts)]
        with agent.session("s0", thread="main") as session:
            texts.append(str(session.recall(question)))
        assert not any("whisper" in text.replace(question, "") for text in texts)
    assert len(store.search("whisper", where=thoughts, k=50)) == len(written)


def test_an_answer_is_one_batch_with_its_call(store: Store, clock: StandingClock) -> None:
    def answer(task: Task) -> str:
        return SCORES if task.kind == "assess" else f"In short: {len(task.sources)}."

    model = Writer(answer)
    agent = Agent(store, "wyatt", model=model)
    lead_a_life(agent, clock, 1)
    agent.reflect()
    [run] = [run for run in agent.runs() if run.status == "done"]
    calls = agent.calls(run.id)
    assert [(call.kind, call.name) for call in calls] == [
        ("model", "model.summarize"),
        ("model", "model.reflect"),
        ("model", "model.reflect"),
        ("model", "model.reflect"),
        ("model", "model.assess"),
    ]
    [summary] = agent.summaries()
    assert summary.text == "In short: 4."
    snapshot = snapshot_of(store)
    assert len(activities_at(snapshot).used_by(calls[0].event or 0)) == 4


def test_a_limit_leaves_the_rest_due(store: Store, clock: StandingClock) -> None:
    agent = Agent(store, "wyatt")
    lead_a_life(agent, clock)
    due = len(agent.reflect(dry_run=True).skipped)
    done = agent.reflect(limit=2)
    assert (len(done.done), {each.reason for each in done.skipped}) == (2, {"limit"})
    while agent.reflect(limit=2).done:
        pass
    assert due > 4
    assert not stale_of(snapshot_of(store), "wyatt")


@pytest.mark.parametrize("seed", range(8))
def test_edits_leave_no_stale_summary_and_redo_only_those_above(
    store: Store, clock: StandingClock, seed: int
) -> None:
    """Random edits, deletions and late imports; then exactly the stale ones and their ancestors."""
    draw = random.Random(seed)
    agent = Agent(store, "wyatt")
    lead_a_life(agent, clock, 12)
    agent.reflect()
    for _ in range(4):
        messages = list(store.frames(Filter(kind="message")))
        for frame in draw.sample(messages, 2):
            if draw.random() < 0.5:
                store.supersede(frame, f"{frame.text} edited {draw.random()}")
            else:
                store.delete(frame)
        late = to_datetime(clock.time_us) - timedelta(days=draw.randrange(1, 11))
        thread = draw.choice(("main", "taxes"))
        agent.session(f"late-{draw.random()}", thread=thread).message(
            "user", f"late {draw.random()}", created=late
        )
        before = {each.id: each for each in (*agent.summaries(), *agent.summaries("taxes"))}
        expected = {
            each.subject for each in agent.reflect(dry_run=True).skipped if each.kind == "summarize"
        }
        done = agent.reflect()
        assert {each.subject for each in done.done if each.kind == "summarize"} == expected
        assert not done.failed
        snapshot = snapshot_of(store)
        assert stale_of(snapshot, "wyatt") == []
        leaves = leaves_of(snapshot, "wyatt")
        assert all(len(frames) == 1 for frames in leaves.values())
        current = {frame.id for frame in store.frames(Filter(kind="message"))}
        today = to_datetime(clock.time_us).date()
        assert set(leaves) == {
            frame for frame in current if store.frame(frame).created.date() < today
        }
        after = {each.id for each in (*agent.summaries(), *agent.summaries("taxes"))}
        kept = {f"{each.thread}/chat {each.period}" for each in before.values() if each.id in after}
        assert kept.isdisjoint(expected)


def test_a_summary_without_sources_is_deleted(store: Store, clock: StandingClock) -> None:
    agent = Agent(store, "wyatt")
    lead_a_life(agent, clock, 1)
    agent.reflect()
    for frame in list(store.frames(Filter(kind="message"))):
        store.delete(frame)
    assert len(agent.summaries()) == 1
    agent.reflect()
    assert agent.summaries() == []


@pytest.mark.parametrize("failing", range(6))
def test_a_reflection_killed_at_any_task_continues_and_repeats_none(
    store: Store, clock: StandingClock, failing: int
) -> None:
    asked: list[Task] = []

    def answer(task: Task) -> str:
        if len(asked) == failing:
            raise KeyboardInterrupt
        asked.append(task)
        return SCORES if task.kind == "assess" else extract_of(task.sources)

    model = Writer(answer)
    agent = Agent(store, "wyatt", model=model)
    lead_a_life(agent, clock, 3)
    with pytest.raises(KeyboardInterrupt):
        agent.reflect()
    failing = -1
    done = agent.reflect()
    assert not done.failed
    keys = [(task.kind, task.instructions, task.sources) for task in asked]
    assert len(keys) == len(set(keys)) > 6
    assert not agent.reflect().done


def test_a_model_that_raises_is_reported_and_asked_again(
    store: Store, clock: StandingClock
) -> None:
    broken = [True]

    def answer(task: Task) -> str:
        if broken[0] and task.kind == "summarize":
            raise OSError("no route")
        return SCORES if task.kind == "assess" else "Fine."

    agent = Agent(store, "wyatt", model=Writer(answer))
    lead_a_life(agent, clock, 2)
    first = agent.reflect()
    assert {each.kind for each in first.failed} == {"summarize"}
    assert all("ModelFailed" in (each.reason or "") for each in first.failed)
    assert {each.kind for each in first.done} == {"reflect", "assess"}
    broken[0] = False
    again = agent.reflect()
    assert {each.kind for each in again.done} == {"summarize"}
    session = Agent(store, "wyatt", model=Writer(lambda _: "")).session("x")
    session.exchange("a", "b")
    with pytest.raises(ModelFailed, match="returned ''"):
        session.compact()


def test_a_long_answer_ends_with_the_last_sentence_that_fits() -> None:
    text = "One short sentence. " * 200
    cut = fitting(text, 50)
    assert cut.endswith("sentence.")
    assert 30 < len(cut.split()) <= 50
    assert fitting("Short.", 50) == "Short."
    assert 0 < len(fitting("word " * 500, 10)) < 60


# --- proposals and assessments -------------------------------------------------------------------


def test_the_third_pass_may_propose_and_the_proposal_is_aligned(
    store: Store, clock: StandingClock
) -> None:
    answers = {
        "summarize": "Short.",
        "align": "YES 2\nIt fits.",
        "assess": SCORES,
    }

    def answer(task: Task) -> str:
        return answers.get(task.kind) or "I thought.\nPROPOSE: I name my sources."

    agent = Agent(store, "wyatt", model=Writer(answer))
    store.remember("I keep my word.\n\nI am honest.", kind="identity", uri="identity:SOUL")
    lead_a_life(agent, clock, 1)
    agent.session("x").message("user", "I feel lonely.")
    first = agent.candidates()[0]
    agent.reflect()
    [proposal] = agent.proposals()
    assert (proposal.text, proposal.candidate) == ("I name my sources.", first.id)
    assert proposal.gates.aligned.is_met
    assert "line 2 of SOUL" in proposal.gates.aligned.reason
    scores = {score.dimension: score.score for score in agent.standing()}
    assert scores == {"courage-self": 6.0, "courage-ground": 5.0, "word": 7.5, "brand": 4.0}
    [kept] = [each for each in agent.candidates() if each.id == first.id]
    assert len(kept.done) == 3


def test_an_answer_that_cannot_be_read_is_recorded_and_not_asked_again(
    store: Store, clock: StandingClock
) -> None:
    model = Writer(lambda _: "Well, perhaps.")
    agent = Agent(store, "wyatt", model=model)
    store.remember("I keep my word.", kind="identity", uri="identity:SOUL")
    agent.propose("I name my sources.")
    first = agent.reflect()
    assert [each.kind for each in first.failed] == ["align"]
    asked = len(model.tasks)
    assert not agent.reflect().failed
    assert len(model.tasks) == asked
    assert not agent.proposals()[0].gates.aligned.is_met
    failed = [call for run in agent.runs() for call in agent.calls(run.id) if call.error]
    assert [call.name for call in failed] == ["model.align"]


def test_a_changed_soul_is_compared_again(store: Store) -> None:
    """The answer about the earlier SOUL met the gate for good, or never."""
    answers = {"I keep my word.": "YES 1\nIt fits.", "I am free.": "NO\nIt does not."}
    model = Writer(lambda task: answers[task.sources[0].text])
    agent = Agent(store, "wyatt", model=model)
    soul = store.remember("I keep my word.", kind="identity", uri="identity:SOUL")
    agent.propose("I name my sources.")
    agent.reflect()
    assert agent.proposals()[0].gates.aligned.is_met
    assert not agent.reflect().done
    store.remember("I am free.", kind="identity", uri="identity:SOUL")
    assert [each.kind for each in agent.reflect().done] == ["align"]
    assert not agent.proposals()[0].gates.aligned.is_met
    assert agent.at(soul).proposals() == []
    assert not agent.reflect().done
    assert len(model.tasks) == 2


def test_without_soul_a_proposal_is_reported(store: Store) -> None:
    agent = Agent(store, "wyatt")
    agent.propose("I name my sources.")
    [report] = agent.reflect().skipped
    assert (report.kind, report.reason) == ("align", "there is no identity:SOUL")


def test_passes_wait_for_their_hours(store: Store, clock: StandingClock) -> None:
    agent = Agent(store, "wyatt", pass_hours=(0, 4, 20))
    agent.session("s").exchange("No, I meant the deadline; I am scared.", "I see.")

    def passes() -> list[str]:
        return [each.subject.split()[0] for each in agent.reflect().done if each.kind == "reflect"]

    assert passes() == ["clarify"]
    assert passes() == []
    clock.time_us += 4 * HOUR + HOUR // 60
    assert passes() == ["connect"]
    clock.time_us += 17 * HOUR
    assert passes() == ["synthesise"]
    assert passes() == []


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("YES 1\nbecause", 1),
        ("yes 2.", 2),
        ("NO", None),
        ("No. It does not.", None),
        ("YES 3", -1),
        ("YES 0", -1),
        ("YES", -1),
        ("YES one", -1),
        ("Maybe", -1),
    ],
)
def test_the_first_line_of_an_answer_names_a_line_of_soul(answer: str, line: int | None) -> None:
    assert aligned_line(answer, "I keep my word.\n\nI am honest.\n") == line


def test_scores_and_proposals_are_read_strictly() -> None:
    good = "courage-self: 1\ncourage-ground: 2\nword: 3\nbrand: 10\nreasons"
    assert assessed_scores(good) == {
        "courage-self": 1.0,
        "courage-ground": 2.0,
        "word": 3.0,
        "brand": 10.0,
    }
    for bad in ("", good.replace("10", "11"), good.replace("brand", "fame"), "word: 3\n" * 4):
        assert assessed_scores(bad) is None
    assert assessed_scores(good.replace("3", "nan")) is None
    assert proposed_in("Thought.\nPROPOSE: Be kind.") == ("Thought.", "Be kind.")
    for none in ("Thought.", "PROPOSE: ", "A\nI would PROPOSE: x", "A\nPROPOSE: " + "x" * 501):
        assert proposed_in(none) == (none, None)


def test_the_extract_quotes_and_names_topics_and_anchors() -> None:
    sources = (
        Source(1, "user", "I am a carpenter. The deadline frightens me. Ok."),
        Source(2, "assistant", "We decided to move the deadline to Friday, as you wished it then."),
    )
    extract = extract_of(sources)
    assert extract.splitlines()[:2] == ["I am a carpenter.", "The deadline frightens me."]
    assert "Topics: deadline." in extract
    assert "Anchors: I am a carpenter." in extract
    assert Extractive().write(Task("summarize", "", sources, 500)) == extract
    soul = Source(3, "identity", "I keep my word.\nI name my sources in answers.")
    aligned = Extractive().write(
        Task("align", "", (soul, Source(4, "proposal", "Name sources in all answers.")), 100)
    )
    assert aligned.splitlines()[0] == "YES 2"
    other = Extractive().write(Task("align", "", (soul, Source(5, "proposal", "Sing.")), 100))
    assert other.splitlines()[0] == "NO"


# --- compaction ----------------------------------------------------------------------------------


def test_compact_summarizes_the_running_day_once(store: Store, clock: StandingClock) -> None:
    agent = Agent(store, "wyatt")
    session = agent.session("s")
    assert session.compact() is None
    session.exchange("The deadline is the deadline.", "Yes.")
    first = session.compact()
    assert first is not None
    assert session.compact() == first
    assert session.title == "deadline"
    for number in range(4):
        assert not session.should_restart
        clock.time_us += HOUR // 60
        session.exchange(f"More {number}", "Yes.")
        session.compact()
    assert session.should_restart
    assert agent.handoff().compactions == 5
    assert len(agent.summaries()) == 1
    assert not agent.session("t").should_restart


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"model": 7},
        {"model": object()},
        {"pass_hours": (0, 4)},
        {"pass_hours": (4, 0, 20)},
        {"pass_hours": (0, -1, 20)},
        {"timezone": "Mars/Base"},
        {"timezone": "x" * 5_000},
        {"timezone": "a/" * 100},
        {"timezone": "\0"},
        {"timezone": "../etc/passwd"},
        {"timezone": 3},
    ],
)
def test_bad_agents_write_nothing(store: Store, more: dict[str, object]) -> None:
    head = store.head.seq
    with pytest.raises(InvalidInput):
        Agent(store, "wyatt", **more)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert store.head.seq == head


def test_a_reflection_needs_a_writable_store_and_a_limit_from_1(
    store: Store, clock: StandingClock
) -> None:
    agent = Agent(store, "wyatt")
    lead_a_life(agent, clock, 1)
    for limit in (0, -1, "2"):
        with pytest.raises(InvalidInput):
            agent.reflect(limit=limit)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="transaction"), store.transaction():
        agent.reflect()
    past = agent.at(store.head)
    with pytest.raises(ReadOnly):
        past.reflect()
    assert past.reflect(dry_run=True).skipped


def test_a_task_whose_sources_return_is_not_asked_again(store: Store, clock: StandingClock) -> None:
    """A deletion brought a day back to the state of its first summary, whose answer is recorded."""
    model = Writer(lambda task: f"Summary of {len(task.sources)}.")
    agent = Agent(store, "wyatt", model=model)
    session = agent.session("s")
    day = to_datetime(clock.time_us)
    session.exchange("Is the boat red?", "It is red.", created=day)
    clock.time_us += 2 * DAY
    agent.reflect()
    late = session.message("user", "And the harbour?", created=day + timedelta(hours=1))
    agent.reflect()
    asked = [len(task.sources) for task in model.tasks if task.kind == "summarize"]
    assert asked == [2, 3]
    store.delete(late.id)
    agent.reflect()
    [summary] = [each for each in agent.summaries() if each.level == "day"]
    assert summary.text == "Summary of 2."
    asked = [len(task.sources) for task in model.tasks if task.kind == "summarize"]
    assert asked == [2, 3]
