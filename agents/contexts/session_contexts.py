"""The contexts of a session: made, recorded, and once preceded by the question for a warm start.

Leaves out the content of a context (`blocks`) and the event (`recorded`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cerata.engine.errors import ModelFailed
from cerata.engine.events import Draft
from cerata.memory.batch.session import WriteSession
from cerata.memory.snapshot.snapshot import Snapshot

from ..continuity.models import Extractive, Model
from ..continuity.tasks import Writer
from .assembly import CONTINUITY, Assembly
from .recorded import Assembling, AssemblyRequest, References
from .warm_starts import write_warm_start


class Contexts:
    """Makes and records the contexts of a session. One thread at a time may call it."""

    def __init__(
        self,
        agent: str,
        model: Model,
        activity: int,
        writer: WriteSession,
        whole: Callable[[], Snapshot],
        references: References,
        check: Callable[[], None],
    ) -> None:
        """Prepare the contexts of a session.

        Args:
            agent: The agent's name.
            model: The model that writes warm starts.
            activity: The seq of the session's first start.
            writer: Writes in the scope of the session.
            whole: Returns the state that the agent reads.
            references: Returns the references of a run.
            check: Refuses a write inside a transaction.
        """
        self._agent = agent
        self._model = model
        self._activity = activity
        self._writer = writer
        self._whole = whole
        self._references = references
        self._check = check

    def assemble(self, request: AssemblyRequest, *, is_recorded: bool) -> Assembly:
        """Return the context of a question, recorded or not."""
        if is_recorded:
            self._check()
            self._writer.check_writable()
        assembling = self._assembling(request)
        if is_recorded and self._ask_for_warm_start(assembling, request):
            assembling = self._assembling(request)
        assembly = assembling.assembly()
        if not is_recorded:
            return assembly
        receipt = self._writer.write([Draft(assembling.event(assembly), assembling.scope)])
        return replace(assembly, recorded=receipt.seqs[0])

    def _assembling(self, request: AssemblyRequest) -> Assembling:
        return Assembling(self._whole(), self._agent, self._activity, request, self._references)

    def _ask_for_warm_start(self, assembling: Assembling, request: AssemblyRequest) -> bool:
        """Ask for a warm start if one is due; return whether the log may have a new one."""
        arguments = request.arguments
        is_due = arguments.resumed == "returned" and CONTINUITY in arguments.blocks
        if not is_due or isinstance(self._model, Extractive):
            return False
        handoff = assembling.turn.handoff()
        if handoff is None:
            return False
        writer = Writer(self._writer, self._agent, self._model, self._activity, assembling.scope)
        try:
            write_warm_start(writer, self._agent, assembling.turn.line, handoff)
        except ModelFailed:
            # The context then shows the handoff itself.
            return False
        return True
