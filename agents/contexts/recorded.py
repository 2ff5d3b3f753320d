"""Recorded contexts: the event of an assembly, and the same assembly made again from it.

Owns the arguments as an event keeps them, and the comparison by the hash of the text. Leaves out
the blocks (`blocks`) and the budget (`assembly`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from cerata.engine.errors import CerataError, InvalidInput, NotFound
from cerata.engine.events import ImportBatch, RecallContext
from cerata.engine.plain_value import PlainValue
from cerata.engine.salted_hashes import NOT_COMPARABLE, context_hash
from cerata.engine.unreadable import exactly
from cerata.memory.search.question_vectors import Stored
from cerata.memory.search.recall_rerun import recorded_recall
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.view import View
from cerata.projections.columnar.times import to_microseconds
from cerata.retrieval.ranking.profile import profile_of
from cerata.retrieval.tokenizer import tokenizer

from ..activities.values import activities_at
from ..continuity.resumption import Resumed
from ..continuity.retrieval import PROFILE, vectors_for
from ..text.names import check_timezone
from ..turns.line import MODE_DIMENSION, line_of
from .assembly import ASSEMBLY_VERSION, Assembly, Block, Titles, assembled
from .blocks import BlockName, Referred, Turn

ASSEMBLY: Final = "continuity"
"""The name of the assembly, in recorded contexts."""

Outcome: TypeAlias = Literal["same", "different", "unknown"]
References: TypeAlias = Callable[[Snapshot, int], Sequence[Referred]]
"""Returns the references of a run of the agent, by the seq of its first start."""


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of an assembly besides the question, the budget and the log."""

    name: str = ASSEMBLY
    version: int = ASSEMBLY_VERSION
    titles: Titles
    blocks: tuple[BlockName, ...]
    """The names of the requested blocks."""
    extra: int
    """The number of the caller's blocks."""
    mode: str
    resumed: Resumed
    timezone: str
    run: int | None
    """The seq of the first start of the run whose references are listed."""

    def to_json(self) -> str:
        """Return the arguments as JSON, with names in order and no white space."""
        return msgspec.json.encode(self, order="sorted").decode()


class AssemblyRequest(NamedTuple):
    """A question, its budget and its arguments."""

    question: str
    tokens: int
    """Tokens of the question."""
    max_tokens: int
    arguments: Arguments
    extra: Sequence[Block]


class Assembling:
    """An assembly of a session in a state: its turn, its context, and its event."""

    def __init__(
        self,
        whole: Snapshot,
        agent: str,
        activity: int,
        request: AssemblyRequest,
        references: References,
        vectors: Stored | None = None,
    ) -> None:
        """Prepare an assembly.

        Args:
            whole: The state that the agent reads.
            agent: The agent's name.
            activity: The seq of the session's first start.
            request: The question with its arguments.
            references: Returns the references of a run.
            vectors: The vectors of the question; default those of the store's embedder.
        """
        arguments = request.arguments
        activities = activities_at(whole)
        row = activities.activity(activity)
        assert row is not None
        self.scope = activities.scope_of(row.row)
        line = line_of(agent, (*self.scope, (MODE_DIMENSION, arguments.mode)))
        snapshot = whole.within(line.base)
        self._activity = activity
        self._request = request
        self._snapshot = snapshot
        self._vectors = vectors_for(snapshot, request.question) if vectors is None else vectors
        run = arguments.run
        self.turn = Turn(
            snapshot,
            line,
            row.name,
            row,
            arguments.mode,
            arguments.resumed,
            arguments.timezone,
            request.question,
            arguments.titles,
            () if run is None else references(whole, run),
            self._vectors,
        )

    def assembly(self) -> Assembly:
        """Return the context."""
        request = self._request
        return assembled(
            self.turn.contents(request.arguments.blocks),
            request.extra,
            request.question,
            request.tokens,
            request.max_tokens,
            View(self._snapshot),
            self._snapshot.now,
        )

    def event(self, assembly: Assembly) -> RecallContext:
        """Return the event that records the context."""
        snapshot, vectors, profile = self._snapshot, self._vectors, profile_of(PROFILE)
        sources: dict[int, None] = {}
        for item in assembly.items:
            sources.update(dict.fromkeys(item.sources))
        frames: list[int] = []
        facts: list[int] = []
        for source in sources:
            (frames if snapshot.layers.has(source) else facts).append(source)
        context = context_of_text(snapshot, frames, facts, assembly.text)
        if self._request.extra:
            # The sources of the caller's blocks are unknown, so no salt would protect their text.
            context = NOT_COMPARABLE
        return RecallContext(
            query=assembly.question,
            basis=assembly.basis,
            tokenizer=assembly.tokenizer,
            profile=profile.name,
            profile_version=profile.version,
            max_tokens=assembly.max_tokens,
            entry_tokens=0,
            form="text",
            context=context,
            space=vectors.space,
            vector=vectors.vector,
            tokens_space=vectors.tokens_space,
            tokens=vectors.tokens,
            token_weights=vectors.token_weights,
            trust=vectors.trust,
            vector_weight=vectors.vector_weight,
            frames=tuple(frames),
            facts=tuple(facts),
            now=to_microseconds(assembly.now),
            shared=snapshot.reach is not None and snapshot.reach.has_shared,
            assembly=self._request.arguments.to_json(),
            activity=self._activity,
            blocks=assembly.blocks,
        )


@dataclass(frozen=True, slots=True)
class AssemblyRerun(PlainValue):
    """A recorded context of a session, made again.

    - ``outcome`` is "same" if the text is the recorded text, by its hash.
    - ``assembly`` is the context that the recorded arguments give now, or None.
    - ``reason`` is the cause of an unknown outcome; else None.
    """

    seq: int
    outcome: Outcome
    assembly: Assembly | None = None
    reason: str | None = None


def rerun_assembly(
    newest: Snapshot,
    agent: str,
    recorded: Assembly | int,
    extra: Sequence[Block],
    references: References,
) -> AssemblyRerun:
    """Make a recorded context again at its basis, and compare it with the recording.

    Raises:
        NotFound: the event is no recorded context of a session of the agent.
        InvalidInput: the context was not recorded.
    """
    seq = recorded.recorded if isinstance(recorded, Assembly) else recorded
    if seq is None:
        raise InvalidInput("The context was not recorded", remedy="Leave out record=False.")
    event, recall = recorded_recall(View(newest), seq)
    row = None if recall.activity is None else activities_at(newest).activity(recall.activity)
    if recall.assembly is None or row is None or row.agent != agent:
        raise NotFound(
            f"#{seq} is no context of a session of {agent!r}",
            remedy="Pass Assembly.recorded, or call store.history.rerun() for other recalls.",
        )
    rerun = AssemblyRerun(event.seq, "unknown")
    log = newest.layers.log
    if not log.horizon().has(recall.basis):
        return replace(rerun, reason="retention gave up contents of the state that it read")
    try:
        arguments = msgspec.json.decode(recall.assembly, type=Arguments)
        check_timezone(arguments.timezone)
        request = AssemblyRequest(
            recall.query,
            tokenizer().count(recall.query),
            recall.max_tokens,
            arguments,
            extra,
        )
        whole = newest.earlier(recall.basis).as_of(recall.now or 0)
        with exactly():
            assembly = Assembling(whole, agent, row.seq, request, references, recall).assembly()
    except msgspec.MsgspecError as error:
        return replace(rerun, reason=f"its arguments are of another version ({error})")
    except CerataError as error:
        return replace(rerun, reason=error.what)
    rerun = replace(rerun, assembly=assembly)
    if arguments.version != ASSEMBLY_VERSION:
        return replace(rerun, reason=f"it is of version {arguments.version} of the blocks")
    if arguments.extra:
        return replace(rerun, reason="it has blocks of the caller, so its text was not hashed")
    if recall.context == NOT_COMPARABLE:
        return replace(rerun, reason="an entry was erased before, and the text was not hashed")
    batch = log.event(event.header.first_seq).body
    if isinstance(batch, ImportBatch) and batch.log is not None:
        return replace(rerun, reason="it was imported from another log, whose salts its hash needs")
    salts = newest.layers.salts((*recall.frames, *recall.facts))
    if None in salts:
        return replace(rerun, reason="an entry was erased, and the hash of the text with it")
    is_same = context_hash(salts, assembly.text) == recall.context
    return replace(rerun, outcome="same" if is_same else "different")


def context_of_text(
    snapshot: Snapshot, frames: Sequence[int], facts: Sequence[int], text: str
) -> bytes:
    """Return the hash of a context's text, with the salts of its sources."""
    return context_hash(snapshot.layers.salts((*frames, *facts)), text)
