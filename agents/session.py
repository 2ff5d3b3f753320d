"""Sessions: a block that groups runs, with scope names stamped on each of their events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from cerata.engine.arguments import expect_bool, expect_positive, expect_text, expect_type
from cerata.engine.errors import Closed, NotFound
from cerata.engine.events import ScopeValue
from cerata.engine.handle import Handle
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import Receipt

from .code import Code
from .contexts.assembly import Assembly, Block, Titles, check_request
from .contexts.blocks import checked_blocks
from .contexts.recorded import Arguments, AssemblyRequest
from .contexts.session_contexts import Contexts
from .continuity.descriptions import PROJECT, title_of
from .continuity.entropy import Entropy, newest_entropy
from .continuity.exchanges import ASSISTANT, USER, Exchange, Talk
from .continuity.recorder import Part, Recorder
from .continuity.resumption import Resumed
from .continuity.retrieval import Recalled, recalled_for
from .continuity.summaries import Summaries, Summary
from .declarations import Source
from .run import Ending, Run
from .slot import Slot
from .spec import SESSION_DIMENSION, MemorySpec
from .turns.line import MODE_DIMENSION, THREAD_DIMENSION, Line


class Starting(Protocol):
    """Starts a run of a session."""

    def __call__(
        self,
        id: str | None,  # noqa: A002
        *,
        inputs: Mapping[str, object] | None,
        resume: bool | None,
        replay: bool,
        workflow: str | None,
        code: Code,
        session: Session,
    ) -> Run: ...


class Slotting(Protocol):
    """Returns an instance of a slot."""

    def __call__(
        self, name: str, passed: Mapping[str, ScopeValue], sources: Sequence[Source]
    ) -> Slot: ...


RESTART_AFTER: Final = 5

PROJECT_SPEC: Final = MemorySpec(tier="session", type="value", ttl=None)


class Talking(NamedTuple):
    """The conversation of a session: its thread and mode, its messages, and their reader."""

    thread: str
    mode: str
    resumed: Resumed
    recorder: Recorder
    snapshot: Callable[[], Snapshot]
    line: Line
    compact: Callable[[Line], Summary | None]
    whole: Callable[[], Snapshot]
    """Returns the state that the agent reads."""
    assembling: Contexts
    timezone: str


class Session(Handle):
    """A session of an agent, from `Agent.session`; a context manager.

    Its end is as that of a `Run`. An ended session may be entered again by its id.
    """

    _instead = "Pass the session's id, and call agent.session(id) there."

    def __init__(
        self,
        name: str,
        activity_id: int,
        dimensions: Mapping[str, ScopeValue],
        calls: tuple[Starting, Slotting],
        talking: Talking,
        ending: Ending,
    ) -> None:
        self._starting, self._slotting = calls
        self._name = name
        self.activity_id = activity_id
        """The seq of the session's first start."""
        self.dimensions = dict(dimensions)
        """The scope names and values that the session adds."""
        self._talking = talking
        self._ending = ending
        self._ended = False

    def __repr__(self) -> str:
        return f"<cerata session {self._name!r}>"

    @property
    def id(self) -> str:
        """The session's id."""
        return self._name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        is_ended, self._ended = self._ended, True
        if is_ended or (error is not None and not isinstance(error, Exception)):
            return
        self._ending("done" if error is None else "failed", error)

    @property
    def source(self) -> Source:
        """The dimensions that the session gives to slots."""
        return "session", {
            SESSION_DIMENSION: self._name,
            THREAD_DIMENSION: self.thread,
            MODE_DIMENSION: self.mode,
            **self.dimensions,
        }

    # --- the conversation ------------------------------------------------------------------------

    @property
    def thread(self) -> str:
        """The thread of the session, which never changes."""
        return self._talking.thread

    @property
    def mode(self) -> str:
        """The mode of the session; enter it again with another mode to change it."""
        return self._talking.mode

    @property
    def project(self) -> str | None:
        """The project of the session, from its slot `project`; None without one."""
        try:
            project: object = self._slotting(PROJECT, {}, [self.source]).get()
        except NotFound:
            return None
        return None if project is None else str(project)

    @property
    def resumed(self) -> Resumed:
        """The return of the agent to the thread: "new", "returned" or "crashed".

        That of the agent's newest earlier session in the thread, or of this session's earlier
        entry: "returned" if it ended, "crashed" if it is open, "new" if there is none. A session
        that is open in another process looks crashed.
        """
        return self._talking.resumed

    def message(
        self,
        role: str,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - the reference's word
        created: date | str | None = None,
    ) -> Receipt:
        """Put one message of the conversation. Durable on return.

        Args:
            role: "user" or "assistant".
            text: The text.
            id: The chat's id of the message: sent again, it writes nothing. Default none; then an
                equal newest message of at most 60 seconds ago is the same.
            created: Its time, with a time zone; default now.

        Raises:
            Closed: the session has ended.
            InvalidInput: the role is unknown, the text empty, or the time without a zone.
            IdempotencyConflict: the id was used for another message of the session.
        """
        self._check_open()
        return self._talking.recorder.put([Part(role, text)], id, created)

    def exchange(
        self,
        user_text: str,
        agent_text: str,
        *,
        id: str | None = None,  # noqa: A002 - the reference's word
        created: date | str | None = None,
    ) -> Receipt:
        """Put a user's message and the agent's reply: both or neither. Durable on return.

        Args:
            user_text: The user's message.
            agent_text: The reply, whose causation is the message.
            id: The chat's id of the exchange: sent again, it writes nothing. Default none; then the
                equal newest messages of at most 60 seconds ago are the same.
            created: Its time, with a time zone; default now.

        Raises:
            Closed: the session has ended.
            InvalidInput: a text is empty, or the time without a zone.
            IdempotencyConflict: the id was used for other messages of the session.
        """
        self._check_open()
        parts = [Part(USER, user_text), Part(ASSISTANT, agent_text)]
        return self._talking.recorder.put(parts, id, created)

    def exchanges(self, limit: int | None = None) -> list[Exchange]:
        """Return the session's newest exchanges, oldest first.

        Args:
            limit: The number of exchanges; default all.
        """
        if limit is not None:
            limit = expect_positive("limit", limit)
        talk = self._talk()
        pairs = talk.pairs()
        return talk.exchanges(pairs if limit is None else pairs[max(0, len(pairs) - limit) :])

    @property
    def title(self) -> str | None:
        """The title of the newest day summary with the session, else its first 8 words."""
        talk = self._talk()
        if not len(talk):
            return None
        return title_of(talk, self._talking.line)[0]

    def entropy(self) -> Entropy | None:
        """Return the entropy of the thread's newest exchange; None without one."""
        return newest_entropy(
            Talk(self._talking.snapshot(), self._talking.line.agent, line=self._talking.line)
        )

    def compact(self) -> Summary | None:
        """Make or renew the summary of the running day; None without messages. Durable on return.

        Raises:
            Closed: the session has ended.
            ModelFailed: the model raised, or returned no text.
        """
        self._check_open()
        return self._talking.compact(self._talking.line)

    def assemble(
        self,
        query: str,
        *,
        max_tokens: int,
        blocks: str | Sequence[str] = "default",
        titles: Titles = "own",
        extra: Sequence[Block] = (),
        run: Run | None = None,
        record: bool = True,
    ) -> Assembly:
        """Return the context of a turn: identity, this conversation, and what the question recalls.

        A pure function of the log, the arguments and now. The first context of a session that comes
        back after an end has the handoff; if the agent has a model, it is first asked for a warm
        start, which replaces the handoff. `Agent.rerun_assembly` makes a recorded context again.

        Args:
            query: The question, which stands last.
            max_tokens: Tokens of the whole context, the question included; never exceeded.
            blocks: "default", "all", or names of blocks; "default" leaves out the blocks of
                unvalidated heuristics: stability, contemplation and standing.
            titles: "own" for titles in the second person, "plain" for neutral ones.
            extra: Further blocks of the caller.
            run: The run whose references are listed; default none.
            record: Append an event with the context's sources; default True, durable on return.
                A handoff that a recorded context shows is not shown again. False writes nothing,
                and asks no model.

        Raises:
            Closed: the session has ended.
            InvalidInput: a block is unknown, the question alone needs more tokens, ``run`` is no
                run, or ``record`` is set in a transaction.
            NotFound: the run is another agent's.
            EmbedderFailed: the embedder could not embed the question.
            ReadOnly: ``record`` is set, and the store only reads.
        """
        self._check_open()
        record = expect_bool("record", record)
        if run is not None:
            expect_type("run", run, Run, "a Run", "Pass the run that agent.run() returned.")
        question, used = check_request(query, max_tokens, titles)
        arguments = Arguments(
            titles=titles,
            blocks=checked_blocks(blocks, self.mode),
            extra=len(extra),
            mode=self.mode,
            resumed=self.resumed,
            timezone=self._talking.timezone,
            run=None if run is None else run.activity.id,
        )
        request = AssemblyRequest(question, used, max_tokens, arguments, extra)
        assembly = self._talking.assembling.assemble(request, is_recorded=record)
        if assembly.recorded is not None:
            self._talking.recorder.pass_over(assembly.recorded)
        return assembly

    def recall(self, query: str) -> Recalled:
        """Return the exchanges of the mode group, and the knowledge, that a question recalls.

        Args:
            query: The question, in plain language.

        Raises:
            EmbedderFailed: the embedder could not embed the question.
        """
        talk = self._talk()
        line = self._talking.line
        text = expect_text("query", query)
        return recalled_for(
            self._talking.whole().within(line.base), line, text, of_user=not len(talk)
        )

    @property
    def should_restart(self) -> bool:
        """True after 5 compactions in the thread since its newest session started."""
        snapshot, line = self._talking.snapshot(), self._talking.line
        return Summaries(snapshot, line.agent).compactions(line) >= RESTART_AFTER

    def _talk(self) -> Talk:
        recorder = self._talking.recorder
        return Talk(self._talking.snapshot(), recorder.agent, session=self._name)

    # --- slots and runs --------------------------------------------------------------------------

    def slot(self, name: str, **dimensions: ScopeValue) -> Slot:
        """Return an instance of a slot, with the dimensions of the session; see `Agent.slot`.

        Args:
            name: The slot's name.
            dimensions: Further values of the names in the slot's scope.

        Raises:
            Closed: the session has ended.
            NotFound, InvalidInput: as `Agent.slot`.
        """
        self._check_open()
        return self._slotting(name, dimensions, [self.source])

    def run(
        self,
        id: str | None = None,  # noqa: A002 - the reference's word
        *,
        inputs: Mapping[str, object] | None = None,
        resume: bool | None = None,
        replay: bool = False,
        workflow: str | None = None,
    ) -> Run:
        """Return a run of this session, as `Agent.run`.

        Args:
            id: The run's id; default 16 random hexadecimal digits.
            inputs: JSON values by name, recorded when the run starts; default none.
            resume: True requires an open run of this id, False forbids one; default either.
            replay: Answer the calls of an open run from its recording first; default False.
            workflow: The name of the workflow that the run belongs to; default none.

        Raises:
            Closed: the session has ended.
            NotFound, Conflict, InvalidInput, ReadOnly: as `Agent.run`.
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
    ) -> Run:
        """Return a run of a function; see `run`."""
        self._check_open()
        return self._starting(
            id,
            inputs=inputs,
            resume=resume,
            replay=replay,
            workflow=workflow,
            code=code,
            session=self,
        )

    def _check_open(self) -> None:
        if self._ended:
            raise Closed(
                f"The session {self._name!r} has ended",
                remedy="Enter it again with agent.session(id).",
            )
