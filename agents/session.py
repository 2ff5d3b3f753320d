"""Sessions: a block that groups runs, with scope names stamped on each of their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from cerata.engine.errors import Closed
from cerata.engine.events import ScopeValue
from cerata.engine.handle import Handle

from .code import Code
from .declarations import Source
from .run import Ending, Run
from .slot import Slot
from .spec import SESSION_DIMENSION


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
        ending: Ending,
    ) -> None:
        self._starting, self._slotting = calls
        self._name = name
        self.activity_id = activity_id
        """The seq of the session's first start."""
        self.dimensions = dict(dimensions)
        """The scope names and values that the session adds."""
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
        return "session", {SESSION_DIMENSION: self._name, **self.dimensions}

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
