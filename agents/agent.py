"""Agents: the handle that opens sessions and runs, and lists them.

Owns `Agent` and the start of activities. Leaves out the calls of a run (`run`), sessions
(`session`), agent functions (`function`) and re-runs (`rerun`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import msgspec

from cerata.engine.arguments import expect_positive, expect_string, expect_text, expect_type
from cerata.engine.errors import Conflict, InvalidInput, NotFound, ReadOnly, RerunFailed, value_text
from cerata.engine.events import DEFAULT_SCOPE, DeleteFrame, Draft, JsonValue, Scope, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.limits import NAME_SIZE_MAX
from cerata.engine.open import MEMORY_PATH
from cerata.engine.packs import Role
from cerata.memory.batch.attempts import attempted
from cerata.memory.batch.session import WriteSession
from cerata.memory.batch.writer import session_of
from cerata.memory.frames.drafts import frame_draft, frame_fields
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.store import Store, open_store
from cerata.memory.values.frames import FrameId, Receipt
from cerata.memory.view import Basis, View
from cerata.projections.columnar.scopes import check_reach
from cerata.projections.columnar.times import to_microseconds

from .activities.columns import ActivityKind
from .activities.events import EndActivity, StartActivity
from .activities.reader import ActivityRow
from .activities.values import (
    RUN_KIND,
    Activity,
    Call,
    Reference,
    activities_at,
    activities_of,
    activity_of,
    calls_of,
    run_named,
)
from .agent_memory import AgentMemory
from .code import AgentCode, Code
from .contexts.assembly import Assembly, Block
from .contexts.recorded import AssemblyRerun, rerun_assembly
from .contexts.session_contexts import Contexts
from .continuity.candidates import PASS_HOURS
from .continuity.descriptions import PROJECT
from .continuity.models import Model
from .continuity.periods import day_of
from .continuity.readings import Readings
from .continuity.recorder import Recorder
from .continuity.reflecting import (
    Reflecting,
    Reflection,
    checked_hours,
    checked_model,
    write_summary,
)
from .continuity.resumption import check_thread, resumed_at, thread_of, without_thread
from .continuity.summaries import Summaries, Summary
from .continuity.tasks import Writer
from .declarations import Source, checked_memory
from .entities.meta_patterns import MetaPattern, meta_patterns_of
from .entities.pending_names import PendingName, pending_names_of
from .growth import proposals
from .growth.identity import Identity, identity_of
from .growth.proposals import Proposal
from .journal import LiveJournal, input_drafts
from .recording import INPUT_PREFIX, Recording, result_data
from .replayed import ReplayedJournal
from .rerun import Repetition, Rerun, chosen_function, repeat
from .run import Context, Run, check_outside_transaction
from .run_results import RunResults
from .session import PROJECT_SPEC, Session, Talking
from .slot import Slot
from .spec import MemorySpec, working_slots
from .sweep import AgentSweep, close_expired, end_abandoned
from .text.names import check_label, check_name, check_timezone
from .text.summaries import encoded, error_text
from .turns.line import (
    CHAT_MODE,
    MAIN_THREAD,
    MODE_DIMENSION,
    SESSION_DIMENSION,
    THREAD_DIMENSION,
    Line,
    line_of,
)

REFLECT: Final = "reflect"
"""The workflow of the runs of `Agent.reflect`."""


class Agent(Readings, Handle):
    """An agent over a store: it opens sessions and runs, and reads them.

    - An agent reads and writes within the scope of its store; over a store without a scope, within
      the tenant "default".
    - Creating one writes its declarations of slots, if they are new or changed; else nothing.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        version: str = "1",
        memory: Mapping[str, MemorySpec] | None = None,
        timezone: str = "UTC",
        model: Model | None = None,
        pass_hours: Sequence[float] = PASS_HOURS,
    ) -> None:
        """Create an agent over an open store.

        Args:
            store: The store.
            name: 1 to 100 letters, digits, "_", "." and "-".
            version: Recorded with every activity; default "1".
            memory: The agent's slots by name; default a `scratchpad`.
            timezone: The IANA name of the zone in which texts show times; default "UTC".
            model: The writer of summaries and reflections, a `Model`; default `Extractive`, which
                quotes and needs no model.
            pass_hours: The hours after a candidate at which its three passes are due.

        Raises:
            InvalidInput: the name, version or time zone cannot be used, or a slot cannot be
                honoured.
        """
        expect_type("store", store, Store, "an open Store", "Pass cerata.open(path).")
        check_name("name", name)
        expect_text("version", version)
        if not version or len(version.encode()) > NAME_SIZE_MAX:
            raise InvalidInput(
                f"version is {version!r:.60}, expected 1 to {NAME_SIZE_MAX} bytes",
                remedy="Pass a version such as '2'.",
            )
        self._store = store
        self._name = name
        self._version = version
        self._memory = AgentMemory(name, version, checked_memory(memory))
        self._working = working_slots(self._memory.specs)
        self._timezone = check_timezone(timezone)
        self._model = checked_model(model)
        self._pass_hours = checked_hours(pass_hours)
        self._view: View | None = None
        self._memory.declare(store)

    def __repr__(self) -> str:
        at = "" if self._view is None else f" at event {self._view.basis:,}"
        return f"<cerata.Agent {self._name!r}{at}>"

    @property
    def store(self) -> Store:
        """The store of the agent. Its reads and writes are not recorded as calls."""
        return self._store

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._name

    @property
    def version(self) -> str:
        """The version, recorded with every activity."""
        return self._version

    # --- slots -----------------------------------------------------------------------------------

    def slot(self, name: str, **dimensions: ScopeValue) -> Slot:
        """Return an instance of a slot; sessions and runs supply their dimensions.

        Args:
            name: The slot's name.
            dimensions: Values of the names in the slot's scope.

        Raises:
            NotFound: the agent has no such slot.
            InvalidInput: a dimension is missing, empty, not listed by the slot, or changed.
        """
        return self.slot_of(name, dimensions)

    def slot_of(
        self,
        name: str,
        passed: Mapping[str, ScopeValue],
        sources: Sequence[Source] = (),
    ) -> Slot:
        """Return an instance of a slot; see `slot`.

        Args:
            name: The slot's name.
            passed: The dimensions of the call.
            sources: The dimensions of the session and the run, each with its name.
        """
        return self._memory.slot(self._store, self._view, name, passed, sources)

    # --- activities ------------------------------------------------------------------------------

    def session(
        self,
        id: str | None = None,  # noqa: A002 - the reference's word
        *,
        thread: str = MAIN_THREAD,
        mode: str = CHAT_MODE,
        project: str | None = None,
        **dimensions: ScopeValue,
    ) -> Session:
        """Return a session, to be used in a ``with`` block: a conversation, and a group of runs.

        An open session of this id goes on, an ended one starts again. Durable on return.

        Args:
            id: The session's id; default 16 random hexadecimal digits.
            thread: The thread that the conversation goes on with; default "main". That of a session
                never changes. Default that of the store's scope, if the scope has one.
            mode: The mode of its messages from now on, such as "code"; default "chat". Summaries,
                topics and handoffs belong to a mode; "booth" shares those of "chat".
            project: The project that the session works on, kept in its slot `project`; default that
                of its last entry.
            dimensions: Scope names and values, stamped on every event of the session.

        Raises:
            Conflict: the session of this id belongs to another thread.
            InvalidInput: the id, thread, mode or project is unusable, or a dimension would widen
                the store's scope.
            ReadOnly: the store or the agent only reads.
        """
        check_label("thread", thread)
        check_label("mode", mode)
        if project is not None:
            check_label("project", project)
        if thread != MAIN_THREAD:
            dimensions[THREAD_DIMENSION] = thread
        writer = self._writer(dimensions)
        name = self._drawn_id(id, writer)
        scope = _scope_of(writer)
        snapshot = writer.snapshot()
        check_thread(snapshot, self._name, name, scope)
        resumed = resumed_at(snapshot, self._name, scope)
        row = _newest(snapshot, ActivityKind.SESSION, name, self._name, scope)
        body = self._start("session", name, resumes=None if row is None else row.seq)
        receipt = writer.write([Draft(body, scope)])
        seq = receipt.seqs[0] if row is None else row.seq
        ending = partial(end_activity, writer, seq, None)
        # The store's scope may name the mode.
        mode = str(dict(scope).get(MODE_DIMENSION, mode))
        of_messages = {
            **dict(scope),
            SESSION_DIMENSION: name,
            THREAD_DIMENSION: thread_of(scope),
            MODE_DIMENSION: mode,
        }
        check = partial(check_outside_transaction, self._store)
        recorder = Recorder(
            writer.scoped(of_messages), self._name, name, without_thread(scope), check
        )
        line = line_of(self._name, tuple(of_messages.items()))
        # A context has texts of other threads and of none.
        of_line = self._writer(
            {key: value for key, value in dimensions.items() if key != THREAD_DIMENSION}
        )
        talking = Talking(
            thread_of(scope),
            mode,
            resumed,
            recorder,
            writer.snapshot,
            line,
            self._compact,
            self._snapshot,
            Contexts(
                self._name, self._model, seq, of_line, self._snapshot, self._references, check
            ),
            self._timezone,
        )
        session = Session(name, seq, dimensions, (self.run_of, self.slot_of), talking, ending)
        if project is not None and session.project != project:
            self._declare_project()
            session.slot(PROJECT).set(project)
        return session

    def _declare_project(self) -> None:
        """Declare the slot of a session's project, unless the agent or its log has one."""
        if PROJECT not in self._memory.declared(self._store, None):
            specs = {**self._memory.specs, **checked_memory({PROJECT: PROJECT_SPEC})}
            self._memory = self._memory._replace(specs=specs)
            self._memory.declare(self._store)

    def run(
        self,
        id: str | None = None,  # noqa: A002 - the reference's word
        *,
        inputs: Mapping[str, object] | None = None,
        resume: bool | None = None,
        replay: bool = False,
        workflow: str | None = None,
    ) -> Run:
        """Return a run, to be used in a ``with`` block, which records its calls.

        An open run of this id goes on. Durable on return.

        Args:
            id: The run's id; default 16 random hexadecimal digits.
            inputs: JSON values by name, recorded when the run starts; default none.
            resume: True requires an open run of this id, False forbids one; default either.
            replay: Answer the calls of an open run from its recording, in order, before new calls
                are made. Needs the same calls as before, from the start. Default False.
            workflow: The name of the workflow that the run belongs to; default none.

        Raises:
            NotFound: ``resume=True``, and no run of this id is open.
            Conflict: ``resume=False`` and one is open; the id belongs to an ended run; or the
                inputs differ from those of the open run.
            InvalidInput: the id or an input is unusable, or a transaction is open.
            ReadOnly: the store or the agent only reads.
        """
        return self.run_of(
            id, inputs=inputs, resume=resume, replay=replay, workflow=workflow, code=Code()
        )

    def run_of(
        self,
        id: str | None,  # noqa: A002
        *,
        inputs: Mapping[str, object] | None,
        resume: bool | None,
        replay: bool,
        workflow: str | None,
        code: Code,
        session: Session | None = None,
    ) -> Run:
        """Return a run of a function; see `run`."""
        if inputs is not None:
            expect_type("inputs", inputs, Mapping, "a map", "Pass inputs={'name': value}.")
        writer = self._writer({} if session is None else session.dimensions)
        name = self._drawn_id(id, writer)
        for key in inputs or ():
            expect_string("The name of an input", key)
        captured = {
            f"{INPUT_PREFIX}{key}": encoded(value, f"The input {value_text(key)}")
            for key, value in (inputs or {}).items()
        }
        for key in captured:
            check_name("The name of an input", key)
        scope = _scope_of(writer)
        snapshot = writer.snapshot()
        row = _newest(snapshot, ActivityKind.RUN, name, self._name, scope)
        _check_resumption(row, name, resume=resume)
        if row is None:
            body = self._start(
                "run",
                name,
                parent=None if session is None else session.activity_id,
                workflow=workflow,
                code=code,
            )
            row = self._started_run(writer, body, captured, scope)
            replay = False
        else:
            recording = Recording.of(snapshot, row, self._working.prefix)
            if replay:
                recording.check_whole()
            _check_inputs(recording, captured, name)
            body = self._start("run", name, resumes=row.seq, replays=replay, code=code)
            writer.write([Draft(body, scope)])
        sources: list[Source] = [] if session is None else [session.source]
        sources.append(("run", {"workflow": workflow}))
        return self._handle(writer, row, scope, sources, replay=replay)

    def _started_run(
        self, writer: WriteSession, body: StartActivity, inputs: Mapping[str, bytes], scope: Scope
    ) -> ActivityRow:
        """Append the run's frame, its start and its inputs as one batch; return the run."""
        fields = frame_fields(kind=RUN_KIND, title=body.name, track=self._name)
        start = Draft(_with_frame(body, -1), scope)
        captured = input_drafts(
            inputs,
            -2,
            -1,
            scope,
            track=f"{self._name}/{self._working.default.name}",
            expires=self._working.default.expiry(writer.log.environment.now_us()),
            first=3,
        )
        receipt = writer.write([frame_draft("", fields, scope), start, *captured])
        row = activities_at(writer.snapshot()).activity(receipt.seqs[1])
        assert row is not None
        return row

    def _handle(
        self,
        writer: WriteSession,
        row: ActivityRow,
        scope: Scope,
        sources: Sequence[Source],
        *,
        replay: bool,
    ) -> Run:
        live = self.live_journal(writer, row, scope)
        journal: LiveJournal | ReplayedJournal = live
        if replay:
            recording = Recording.of(writer.snapshot(), row, self._working.prefix)
            journal = ReplayedJournal(recording, live, resumes=True)
        store = self._store
        context = Context(
            writer.log,
            lambda: store,
            partial(check_outside_transaction, store),
            partial(self.slot_of, sources=sources),
        )
        return Run(
            context,
            lambda: activity_of(writer.snapshot(), _row_of(writer.snapshot(), row.seq)),
            (row.name, row.seq),
            journal,
            partial(end_activity, writer, row.seq, row.frame or None),
        )

    def live_journal(self, writer: WriteSession, row: ActivityRow, scope: Scope) -> LiveJournal:
        """Return a journal that records the calls of a run."""
        return LiveJournal(writer, row, scope, self._name, self._working)

    def _start(
        self,
        kind: str,
        name: str,
        *,
        resumes: int | None = None,
        replays: bool = False,
        parent: int | None = None,
        workflow: str | None = None,
        code: Code = Code(),  # noqa: B008 - immutable
    ) -> StartActivity:
        if workflow is not None:
            check_name("workflow", workflow)
        return StartActivity(
            kind=kind,
            name=name,
            agent=self._name,
            agent_version=self._version,
            workflow=workflow,
            parent=parent,
            resumes=resumes,
            replays=replays,
            function=code.function,
            code=code.digest,
        )

    def _drawn_id(self, name: str | None, writer: WriteSession) -> str:
        if name is None:
            return writer.log.environment.random_bytes(8).hex()
        check_name("id", name)
        return name

    def sweep(self) -> AgentSweep:
        """Close the expired frames of this agent, and end its abandoned activities as "left".

        A session is abandoned without an event for 24 hours, a run without one for the ttl of its
        working slot, or 24 hours without a ttl (an unvalidated heuristic). Closed frames stay
        readable in the past. Durable on return.

        Raises:
            ReadOnly: the store or the agent only reads.
            InvalidInput: a transaction is open.
            Conflict: other writers were first in each of 1,000 attempts.
        """
        writer = self._writer({})
        activities = end_abandoned(
            writer.snapshot(),
            self._name,
            self._working.default,
            lambda scope: self._writer(dict(scope)),
        )
        return AgentSweep(close_expired(writer, self._name), activities)

    def reflect(self, *, dry_run: bool = False, limit: int | None = None) -> Reflection:
        """Perform the tasks that are due: summaries, passes over candidates, assessments.

        A run with the workflow "reflect" starts with the first task. A task whose model raises is
        reported and stays due; the other tasks go on. A killed call continues with the next call,
        and repeats no recorded answer.

        Args:
            dry_run: List the due tasks, and perform none; default False.
            limit: The most tasks that are tried; default all.

        Raises:
            InvalidInput: the limit is no whole number from 1, or a transaction is open.
            ReadOnly: the store or the agent only reads, and it is no dry run.
        """
        if limit is not None:
            limit = expect_positive("limit", limit)
        with self._reflecting(limit) as reflecting:
            if not dry_run:
                self._writer({})
            return reflecting.run(dry_run=dry_run)

    @contextmanager
    def _reflecting(self, limit: int | None) -> Generator[Reflecting]:
        """Yield a reflection, whose run starts with its first answer and ends with the block."""
        with ExitStack() as runs:
            opened: list[tuple[WriteSession, Writer]] = []

            def writer_of() -> tuple[WriteSession, Writer]:
                if not opened:
                    session = self._writer({})
                    run = runs.enter_context(self.run(workflow=REFLECT))
                    writer = Writer(
                        session, self._name, self._model, run.activity.id, _scope_of(session)
                    )
                    opened.append((session, writer))
                return opened[0]

            yield Reflecting(
                self._name, self._model, self._snapshot, writer_of, self._pass_hours, limit
            )

    def rerun_assembly(
        self, assembly: Assembly | int, *, extra: Sequence[Block] = ()
    ) -> AssemblyRerun:
        """Make a recorded context of a session again, at its basis, and compare the texts.

        Nothing is written, and no embedder or model is asked: the event has the question's vectors.

        Args:
            assembly: A recorded context, or the seq of its event.
            extra: The blocks that the caller added then.

        Raises:
            NotFound: the event is no recorded context of this agent.
            InvalidInput: the context was not recorded.
        """
        return rerun_assembly(self._snapshot(), self._name, assembly, extra, self._references)

    def _references(self, snapshot: Snapshot, run: int) -> list[Reference]:
        row = run_named(snapshot, run, self._name)
        return RunResults(snapshot, row, self._working.prefix).references()

    def _compact(self, line: Line) -> Summary | None:
        """Make or renew the summary of the running day; see `Session.compact`."""
        snapshot = self._snapshot()
        period = day_of(to_microseconds(snapshot.now))
        due = Summaries(snapshot, self._name).running(line, to_microseconds(snapshot.now))
        if due is not None:
            with self._reflecting(None) as reflecting:
                write_summary(snapshot, *reflecting.writer_of(), due, is_compact=True)
        summaries = Summaries(self._snapshot(), self._name)
        frames = summaries.made(line, 0).get(period, ())
        return summaries.value(line, period, frames[-1]) if frames else None

    # --- the state of the agent ------------------------------------------------------------------

    def _writer(self, dimensions: Mapping[str, ScopeValue]) -> WriteSession:
        """Return the session in which an activity with these dimensions writes."""
        if self._view is not None:
            raise ReadOnly(
                "An agent of the past only reads", remedy="Start runs with the agent itself."
            )
        check_outside_transaction(self._store)
        session = session_of(self._store).acting(Role.AGENT)
        session.check_writable()
        check_reach(session.reach)
        pairs = dict(DEFAULT_SCOPE if session.scope is None else session.scope)
        if session.scope is not None and not dimensions:
            return session
        return session.scoped({**pairs, **dimensions})

    def _snapshot(self) -> Snapshot:
        reader = self._store if self._view is None else self._view
        snapshot = snapshot_of(reader)
        return snapshot.within(DEFAULT_SCOPE) if snapshot.scope is None else snapshot

    def over(self, store: Store) -> Agent:
        """Return this agent over another store, such as a fork."""
        return Agent(
            store,
            self._name,
            version=self._version,
            memory=self._memory.specs,
            timezone=self._timezone,
            model=self._model,
            pass_hours=self._pass_hours,
        )

    def refs(self, run: str | int) -> list[Reference]:
        """Return the references of a run, in order; none after its end. Cost: a read of each.

        Args:
            run: The run's id, or the seq of its start.

        Raises:
            NotFound: no such run exists.
        """
        return self._results(run).references()

    def get(self, run: str | int, ref: str) -> JsonValue:
        """Return a fresh copy of the value that a reference of a run names.

        Args:
            run: The run's id, or the seq of its start.
            ref: A reference, as `Run.get` takes it.

        Raises:
            InvalidInput: the text is no reference.
            NotFound: no such run exists, or it has no such result; the results of an ended run are
                read with `at`.
        """
        return self._results(run).get(ref)

    def _results(self, run: str | int) -> RunResults:
        snapshot = self._snapshot()
        return RunResults(snapshot, run_named(snapshot, run, self._name), self._working.prefix)

    def at(self, basis: Basis) -> Agent:
        """Return this agent's reads as of a basis; its runs and sessions raise `ReadOnly`.

        Args:
            basis: The point of the log, as `Store.at` takes it.
        """
        agent = self.over(self._store)
        agent._view = self._store.at(basis)
        return agent

    def runs(self) -> list[Activity]:
        """Return the runs of this agent, oldest first. Cost: two reads a run."""
        snapshot = self._snapshot()
        rows = activities_at(snapshot).all_activities(ActivityKind.RUN, self._name)
        return activities_of(snapshot, rows)

    def sessions(self) -> list[Activity]:
        """Return the sessions of this agent, oldest first. Cost: two reads a session."""
        snapshot = self._snapshot()
        rows = activities_at(snapshot).all_activities(ActivityKind.SESSION, self._name)
        return activities_of(snapshot, rows)

    def calls(self, run: str | int) -> list[Call]:
        """Return the recorded calls of a run, in order, with its inputs. Cost: a read a call.

        Args:
            run: The run's id, or the seq of its start.

        Raises:
            NotFound: no such run exists.
        """
        snapshot = self._snapshot()
        row = run_named(snapshot, run, self._name)
        return calls_of(snapshot, activities_at(snapshot).calls(row.row))

    def rerun(
        self,
        run: str | int,
        function: Callable[..., Any] | AgentCode | None = None,
        *,
        live: str | None = None,
    ) -> Rerun:
        """Execute the function of a run again, with every call answered from its recording.

        Nothing is written, and no tool is called. The execution stops at the first call that
        differs from the recording.

        Args:
            run: The run's id, or the seq of its start.
            function: The function, of ``(run, **inputs)``; default that of the recording, if it is
                loaded and decorated by `cerata.agent`.
            live: Path of a new file: a fork of the memory at the first difference, in which the
                execution goes on and calls its tools; default none.

        Raises:
            NotFound: no such run exists, or the recorded function is not loaded.
            InvalidInput: the function takes other inputs, or belongs to another agent.
            RerunFailed: a call has no recorded answer, was erased, or is of a later version or an
                unknown kind.
            Conflict: a file exists at ``live``.
        """
        snapshot = self._snapshot()
        row = run_named(snapshot, run, self._name)
        activity = activity_of(snapshot, row)
        chosen = chosen_function(function, activity)
        fork = None if live is None else _ForkFile(self, live, activity)
        try:
            return repeat(self._repetition(snapshot, row, activity, fork), chosen)
        finally:
            if fork is not None:
                fork.close()

    def _repetition(
        self, snapshot: Snapshot, row: ActivityRow, activity: Activity, fork: _ForkFile | None
    ) -> Repetition:
        def make_run(journal: ReplayedJournal) -> Run:
            return Run(context, lambda: activity, (row.name, row.seq), journal, _leave_open)

        def store() -> Store:
            if fork is not None and fork.store is not None:
                return fork.store
            raise RerunFailed(
                "A re-run has no store, since it makes no calls",
                where=f"run {row.name!r}",
                remedy="Use run.store inside functions that run.call() calls.",
            )

        def slot(name: str, passed: Mapping[str, ScopeValue]) -> Slot:
            return self.over(store()).slot_of(name, passed)

        context = Context(session_of(self._store).log, store, _check_nothing, slot)
        return Repetition(
            activity, Recording.of(snapshot, row, self._working.prefix), make_run, fork
        )

    def goes_on(self, activity: int) -> tuple[WriteSession, LiveJournal]:
        """Return the writer and the journal of an open run of this agent, by its id."""
        writer = self._writer(dict(_row_scope(self._snapshot(), activity)))
        row = _row_of(writer.snapshot(), activity)
        return writer, self.live_journal(writer, row, _scope_of(writer))

    # --- entities --------------------------------------------------------------------------------

    def pending(self) -> list[PendingName]:
        """Return the names of the last 30 days that fit several entities, the newest first.

        Cost: a read of each message of the last 60 days, and a pass over the entities.
        """
        return pending_names_of(self._talk())

    def meta_patterns(self) -> list[MetaPattern]:
        """Return the best 12 pairs of predicates that follow each other, with evidence, best first.

        They are of all known facts within the agent's scope. Cost: a pass over these facts, and
        over the chains of each two predicates.
        """
        return meta_patterns_of(self._snapshot())

    # --- growth ----------------------------------------------------------------------------------

    def propose(
        self, text: str, *, target: str = "identity", because: Sequence[FrameId] = ()
    ) -> Receipt:
        """Propose a change of the agent, which only a person's verdict makes. Durable.

        A proposal equal to an open one is not written again: the receipt has its id, with ``added``
        False.

        Args:
            text: 1 to 500 characters.
            target: "identity", or "scaffold/tools", "scaffold/rules", "scaffold/workflows" or
                "scaffold/parameters".
            because: The frames that led to the proposal, at most 100; default none.

        Raises:
            InvalidInput: the text, the target or ``because`` is unusable, or a transaction is open.
            NotFound: a frame of ``because`` does not exist within the scope.
            Conflict: five proposals of the agent are open.
            ReadOnly: the store or the agent only reads.
        """
        writer = self._writer({})
        scope = _scope_of(writer)
        return proposals.propose(writer, scope, self._name, text, target=target, because=because)

    def proposals(self) -> list[Proposal]:
        """Return the current proposals of the agent with their gates, oldest first.

        Cost: a read of each.
        """
        return proposals.proposals_of(self._snapshot(), self._name)

    def identity(self) -> Identity:
        """Return the identity files, the traits, and the approved parts of the scaffold."""
        return identity_of(self._snapshot(), self._name)


class _ForkFile:
    """A fork of a memory at the first difference of a re-run, in which the run goes on."""

    def __init__(self, agent: Agent, path: str, activity: Activity) -> None:
        self.path = path
        self.store: Store | None = None
        self._agent = agent
        self._activity = activity
        self._writer: WriteSession | None = None

    def journal(self, seq: int) -> LiveJournal:
        self.store = self._fork(self._agent.store, seq)
        agent = self._agent.over(self.store)
        self._writer, journal = agent.goes_on(self._activity.id)
        return journal

    def _fork(self, source: Store, seq: int) -> Store:
        if source.path != MEMORY_PATH:
            return source.upkeep.fork(seq, self.path)
        # A memory without a file is forked in memory, and the fork is written to disk.
        with source.upkeep.fork(seq) as fork:
            fork.backup(self.path)
        scope = source.scope
        return open_store(
            self.path, scope=None if scope is None else dict(scope), actor=source.actor
        )

    def end(self, error: Exception | None) -> None:
        if self._writer is not None:
            row = _row_of(self._writer.snapshot(), self._activity.id)
            status = "done" if error is None else "failed"
            end_activity(self._writer, row.seq, row.frame or None, status, error)

    def close(self) -> None:
        if self.store is not None:
            self.store.close()


def _check_nothing() -> None:
    """Allow every call: a re-run appends nothing to its store."""


def _leave_open(status: str, error: Exception | None) -> None:
    """End nothing: a re-run records no end."""


def _row_scope(snapshot: Snapshot, activity: int) -> Scope:
    return activities_at(snapshot).scope_of(_row_of(snapshot, activity).row)


def end_activity(
    writer: WriteSession, activity: int, frame: int | None, status: str, error: Exception | None
) -> None:
    """End an activity; with a run's frame its results are deleted, and stay in the past."""
    scope = _scope_of(writer)
    text = None if error is None else error_text(error)

    def attempt(snapshot: Snapshot) -> None:
        drafts = [Draft(EndActivity(activity=activity, status=status, error=text), scope)]
        # A program may have closed the run's frame before.
        if frame is not None and snapshot.is_current(frame):
            drafts.append(Draft(DeleteFrame(frame=frame), scope))
        writer.write(drafts)

    attempted(writer, attempt, where=f"event {activity:,}")


def _with_frame(body: StartActivity, frame: int) -> StartActivity:
    return msgspec.structs.replace(body, frame=frame)


def _scope_of(writer: WriteSession) -> Scope:
    return writer.scope or DEFAULT_SCOPE


def _row_of(snapshot: Snapshot, seq: int) -> ActivityRow:
    row = activities_at(snapshot).activity(seq)
    assert row is not None
    return row


def _newest(
    snapshot: Snapshot, kind: ActivityKind, name: str, agent: str, scope: Scope
) -> ActivityRow | None:
    rows = activities_at(snapshot).named(kind, name, agent, scope)
    return rows[-1] if rows else None


def _check_resumption(row: ActivityRow | None, name: str, *, resume: bool | None) -> None:
    if row is not None and row.end is not None:
        raise Conflict(
            f"The run {name!r} has ended, and its id is used up",
            where=f"event {row.end:,}",
            remedy="Choose another id; Agent.rerun() repeats an ended run.",
        )
    if row is None and resume:
        raise NotFound(
            f"There is no open run {name!r}", remedy="Leave out resume=True to start it."
        )
    if row is not None and resume is not None and not resume:
        raise Conflict(
            f"The run {name!r} is open",
            where=f"event {row.seq:,}",
            remedy="Leave out resume=False to go on with it, or choose another id.",
        )


def _check_inputs(recording: Recording, inputs: Mapping[str, bytes], name: str) -> None:
    """Refuse to resume a run with other inputs; without inputs any run goes on."""
    for key, data in inputs.items():
        frame = recording.inputs.get(key.removeprefix(INPUT_PREFIX))
        if frame is None or result_data(recording.snapshot, frame) != data:
            raise Conflict(
                f"The open run {name!r} has another {key}",
                remedy="Resume it with the same inputs, or with none.",
            )
