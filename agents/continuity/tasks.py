"""Tasks of a model: each answer enters the log once, in one batch with its call.

Owns the key of a task, the call that records it, and failures. Leaves out which tasks are due
(`reflecting`) and the meaning of their answers.

The key is the digest of agent, model, kind, instructions, max_tokens, and the sources with their
content. A task with an existing key is not asked again: of two processes that ask at once, the
first answer stays.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import CerataError, ModelFailed
from cerata.engine.events import Draft, PutFrame, Scope
from cerata.engine.integrity import hash_bytes
from cerata.engine.plain_value import PlainValue
from cerata.memory.batch.session import WriteSession
from cerata.memory.embeddings.drafts import put_embedded
from cerata.memory.frames.drafts import frame_draft
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import Receipt

from ..activities.events import RecordCall
from ..activities.values import activities_at
from ..text.summaries import error_text
from .models import MAX_TOKENS, Model, Source, Task, TaskKind, fitting

MODEL_CALL: Final = "model."
"""Before the kind of a task in the name of its call."""


@dataclass(frozen=True, slots=True)
class TaskReport(PlainValue):
    """A task of `Agent.reflect`: its kind, subject and outcome.

    ``frame`` holds the answer; ``reason`` is that of a failure or a skip.
    """

    kind: str
    subject: str
    frame: int | None = None
    reason: str | None = None

    def __str__(self) -> str:
        end = "" if self.reason is None else f": {self.reason}"
        frame = "" if self.frame is None else f" #{self.frame}"
        return f"{self.kind} {self.subject}{frame}{end}"


class Writer:
    """Asks a model and records its answers in a run of an agent."""

    def __init__(
        self, session: WriteSession, agent: str, model: Model, activity: int, scope: Scope
    ) -> None:
        """Record the answers of a model.

        Args:
            session: Writes in the scope of the agent.
            agent: The agent's name.
            model: The model.
            activity: The seq of the run's first start.
            scope: The scope of the run.
        """
        self._session = session
        self._agent = agent
        self._model = model
        self._activity = activity
        self._scope = scope

    def is_known(self, task: Task) -> bool:
        """Return whether a task has an answer, or an answer that could not be used."""
        session = self._session
        # A scope begins with its tenant.
        tenant = self._scope[0][1]
        return session.log.find_key(self._key(task), tenant, sees=session.sees) is not None

    def ask(self, task: Task) -> str:
        """Return the answer of the model, cut at the last sentence that fits.

        Raises:
            ModelFailed: the model raised, or returned no text.
        """
        try:
            answer: object = self._model.write(task)
        except MemoryError:
            raise
        except Exception as error:
            raise self._failed(task, f"raised {error_text(error)}") from error
        if not isinstance(answer, str) or not answer.strip():
            raise self._failed(task, f"returned {answer!r:.60}, expected a text")
        return fitting(answer.strip(), task.max_tokens)

    def _failed(self, task: Task, fault: str) -> ModelFailed:
        return ModelFailed(
            f"The model {self._model.name!r} {fault}",
            where=f"task {task.kind!r}",
            remedy="Call reflect() again: the task stays due.",
            model=self._model.name,
        )

    def record(
        self,
        task: Task,
        text: str,
        fields: PutFrame,
        scope: Scope,
        further: Sequence[Draft] = (),
        replaces: Sequence[int] = (),
    ) -> Receipt:
        """Put an answer as a frame, with its call. Durable on return.

        Args:
            task: The task.
            text: The answer.
            fields: The fields of its frame.
            scope: The scope of the frame.
            further: Events of the same batch, which name the frame as −1.
            replaces: The frames that the answer replaces: sources may return to an earlier state,
                and the answer to them is then written again.
        """
        drafts = [frame_draft(text, fields, scope), *further, self._call(task, results=(-1,))]
        return self._put(task, drafts, replaces)

    def record_failure(self, task: Task, fault: str) -> Receipt:
        """Record that an answer could not be used, so that it is not asked again."""
        return self._put(task, [self._call(task, error=fault)])

    def _put(self, task: Task, drafts: Sequence[Draft], replaces: Sequence[int] = ()) -> Receipt:
        key = self._key(task, replaces)
        # The key decides alone: of two answers to one task the first stays.
        return put_embedded(self._session, drafts, key, arguments=hash_bytes(key.encode()))

    def recorded(self, task: Task) -> str | None:
        """Return the recorded answer to a task whose sources are whole frames, or None.

        Sources may return to an earlier state, such as after a deletion; the answer is then known.
        """
        snapshot = self._session.snapshot()
        digest = self._digest(task, self._arguments(task))
        for seq in reversed(activities_at(snapshot).calls_using(task.sources[-1].id)):
            event = snapshot.event_of(seq)
            body = None if event is None else event.body
            if (
                isinstance(body, RecordCall)
                and (body.digest, body.version) == (digest, self._model.version)
                and body.results
                and self._is_of_agent(snapshot, body.activity)
            ):
                answer = snapshot.event_of(body.results[0])
                # Retention may have given up the text.
                if answer is not None and isinstance(answer.body, PutFrame):
                    return answer.body.text
        return None

    def _is_of_agent(self, snapshot: Snapshot, activity: int) -> bool:
        row = activities_at(snapshot).activity(activity)
        return row is not None and row.agent == self._agent

    def _arguments(self, task: Task) -> str:
        return json.dumps(
            {
                "instructions": task.instructions,
                "max_tokens": task.max_tokens,
                "model": self._model.name,
                "sources": [source.id for source in task.sources],
            },
            ensure_ascii=False,
            separators=(",", ":"),
            sort_keys=True,
        )

    def _digest(self, task: Task, arguments: str) -> bytes:
        return hash_bytes(f"{MODEL_CALL}{task.kind}\0{arguments}".encode())

    def _call(
        self, task: Task, *, results: tuple[int, ...] = (), error: str | None = None
    ) -> Draft:
        arguments = self._arguments(task)
        body = RecordCall(
            activity=self._activity,
            kind="model",
            name=f"{MODEL_CALL}{task.kind}",
            version=self._model.version,
            arguments=arguments,
            digest=self._digest(task, arguments),
            used=tuple(dict.fromkeys(source.id for source in task.sources)),
            results=results,
            error=error,
        )
        return Draft(body, self._scope)

    def _key(self, task: Task, replaces: Sequence[int] = ()) -> str:
        identity = [
            *(self._agent, self._model.name, self._model.version),
            *(task.kind, task.instructions, task.max_tokens, list(replaces)),
            [[source.id, hash_bytes(source.text.encode()).hex()] for source in task.sources],
        ]
        return f"model:{hash_bytes(json.dumps(identity, ensure_ascii=False).encode()).hex()}"


def task_of(kind: TaskKind, instructions: str, sources: Sequence[Source]) -> Task:
    """Return a task with the most tokens of its kind."""
    return Task(kind, instructions, tuple(sources), MAX_TOKENS[kind])


def source_of(snapshot: Snapshot, frame: int) -> Source:
    """Return the frame as a source of a task."""
    read = snapshot.frame_at(frame)
    return Source(read.id, read.role or read.kind, read.text)


def reason_of(error: CerataError) -> str:
    """Return an error on one line, for a report."""
    return f"{type(error).__name__}: {error}"
