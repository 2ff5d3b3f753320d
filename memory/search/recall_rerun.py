"""A recorded recall asked again at its basis: the same context, or the first difference.

Owns the comparison with the recorded entries and the recorded hash of the text, the question of a
recorded recall, and settings in place of the recorded ones. Writes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from cerata.engine.arguments import expect_bool, expect_integer, expect_type
from cerata.engine.errors import CerataError, NotFound, value_text
from cerata.engine.events import DEFAULT_SCOPE, Event, ImportBatch, RecallContext
from cerata.engine.json_value import exact_fields
from cerata.engine.plain_value import PlainValue
from cerata.engine.salted_hashes import NOT_COMPARABLE, context_hash
from cerata.engine.unreadable import exactly
from cerata.retrieval.chunking import Chunking
from cerata.retrieval.context.packing import ContextOptions
from cerata.retrieval.context.policies import ContextPolicy, policy_of
from cerata.retrieval.ranking.profile import Profile, profile_of, unknown
from cerata.retrieval.ranking.relevance import Floor

from ..snapshot.reader import Reader, snapshot_of
from ..snapshot.snapshot import Snapshot
from ..values.frames import CONTEXT_HITS
from ..values.options import Mode
from .question_vectors import with_vectors
from .recall import RecallOptions, context_of, recall_of
from .request import SearchRequest
from .search import run_search

Outcome: TypeAlias = Literal["same", "different", "unknown"]


@dataclass(frozen=True, slots=True)
class EntryDifference(PlainValue):
    """The first place, from 1, at which frames or facts differ; None after the end of a list."""

    kind: Literal["frame", "fact"]
    place: int
    recorded: int | None
    new: int | None

    def __str__(self) -> str:
        recorded, new = (
            "nothing" if number is None else f"#{number}" for number in (self.recorded, self.new)
        )
        return f"{self.kind} {self.place}: recorded {recorded}, now {new}"


@dataclass(frozen=True, slots=True)
class RecallRerun(PlainValue):
    """A recorded recall, asked again.

    - ``outcome`` is "same" if the text is the recorded text, by its hash.
    - ``difference`` is None if the entries are the same, even if the text differs; ``differences``
      has every place at which the shown frames or facts differ.
    - ``reason`` is the cause of an unknown outcome; else None.
    """

    seq: int
    basis: int
    query: str
    outcome: Outcome
    difference: EntryDifference | None = None
    reason: str | None = None
    differences: tuple[EntryDifference, ...] = ()


def rerun_recall(reader: Reader, seq: int) -> RecallRerun:
    """Ask a recorded recall again at its basis, and compare it with the recording.

    Cost: a recall.

    Args:
        reader: A store or view.
        seq: The seq of the recall's event.

    Raises:
        NotFound: the event is no recall, or is hidden by the scope or after the basis.
    """
    event, recall = recorded_recall(reader, seq)
    rerun = RecallRerun(seq, recall.basis, recall.query, "unknown")
    if recall.where is not None:
        return replace(rerun, reason="it has a filter, which the log has only in printed form")
    if recall.assembly is not None:
        return replace(rerun, reason="it is a session's context: call Agent.rerun_assembly()")
    if not recall.query.strip():
        return replace(rerun, reason="it has no question")
    try:
        with exactly():
            return _compared(reader, event, recall, rerun)
    except CerataError as error:
        return replace(rerun, reason=error.what)


def recorded_recall(reader: Reader, seq: int) -> tuple[Event, RecallContext]:
    """Return the event of a recorded recall, and its body. Raises `NotFound`."""
    seq = expect_integer("seq", seq)
    snapshot = snapshot_of(reader)
    event = next(snapshot.events(seq, seq), None) if 0 < seq <= snapshot.basis else None
    if event is None or not isinstance(event.body, RecallContext):
        raise NotFound(
            f"No recorded recall is #{value_text(seq)}",
            remedy="cerata log --type recall lists the recorded recalls.",
        )
    return event, event.body


def _compared(
    reader: Reader, event: Event, recall: RecallContext, rerun: RecallRerun
) -> RecallRerun:
    newest = snapshot_of(reader)
    salts = newest.layers.salts((*recall.frames, *recall.facts))
    if None in salts or recall.context == NOT_COMPARABLE:
        return replace(rerun, reason="an entry was erased, and the hash of the text with it")
    log = newest.layers.log
    if not log.horizon().has(recall.basis):
        return replace(rerun, reason="retention gave up contents of the state that it asked")
    batch = log.event(event.header.first_seq).body
    if isinstance(batch, ImportBatch) and batch.log is not None:
        return replace(rerun, reason="it was imported from another log, whose salts its hash needs")
    snapshot = asked(newest, event, recall)
    request, options = repeated_call(snapshot, recall, RecallSettings())
    result = run_search(snapshot, request)
    context = context_of(result, options)
    new = recall_of(result, options, context)
    differences = tuple(_differences(recall, new))
    if differences:
        return replace(
            rerun, outcome="different", difference=differences[0], differences=differences
        )
    is_same = context_hash(salts, context.text) == recall.context
    return replace(rerun, outcome="same" if is_same else "different")


def _differences(recorded: RecallContext, new: RecallContext) -> Iterator[EntryDifference]:
    """Yield the differences of the shown frames, then of the shown facts, by their places."""
    yield from _between("frame", recorded.frames, new.frames)
    yield from _between("fact", recorded.facts, new.facts)


def _between(
    kind: Literal["frame", "fact"], recorded: tuple[int, ...], new: tuple[int, ...]
) -> Iterator[EntryDifference]:
    """Yield each place at which two lists differ."""
    for place, (before, after) in enumerate(zip_longest(recorded, new), start=1):
        if before != after:
            yield EntryDifference(kind, place, before, after)


# --- the question and the settings of a recorded recall ---


def asked(snapshot: Snapshot, event: Event, recall: RecallContext) -> Snapshot:
    """Return the snapshot of which a recall asked, from a later snapshot."""
    earlier = snapshot.earlier(recall.basis)
    if recall.now is not None:
        earlier = earlier.as_of(recall.now)
    if event.scope in (None, DEFAULT_SCOPE):
        return earlier
    return earlier.within(event.scope)


def request_of(
    snapshot: Snapshot, recall: RecallContext, profile: Profile, k: int
) -> SearchRequest:
    """Return the question of a recall, with its vectors if the log has them."""
    request = replace(
        plain_request(recall.query, profile, k),
        mode="text" if recall.mode == "text" else "hybrid",
        include_superseded=recall.include_superseded,
    )
    if recall.vector is None and recall.tokens is None:
        return request
    return with_vectors(snapshot, request, recall)


def plain_request(query: str, profile: Profile, k: int) -> SearchRequest:
    """Return the request of a question in plain language."""
    return SearchRequest(
        query=query,
        k=k,
        mode="hybrid",
        profile=profile,
        where=None,
        embedding=None,
        space=None,
        approximate=False,
        token_embedding=None,
        tokens_space=None,
        rerank=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings(PlainValue):
    """Settings of `recall` that replace those of a recorded recall; None keeps the recorded one.

    Args:
        profile: the profile, or its name
        policy: the context policy, or its name
        max_tokens: budget of the context
        entry_tokens: most tokens of an entry
        form: "text" or "markdown"
        order: "score" or "time"
        mode: "hybrid", "text" or "vector"
        framing: if True, the context begins with words to the model
        neighbours: chunks or turns on each side of a result
        include_superseded: if True, replaced frames may be shown
        chunking: sizes of the passages into which documents are split

    Raises:
        InvalidInput: a name is unknown, or a value is out of range.
    """

    profile: Profile | str | None = None
    policy: ContextPolicy | str | None = None
    max_tokens: int | None = None
    entry_tokens: int | None = None
    form: Any = None
    order: Any = None
    mode: Any = None
    framing: bool | None = None
    neighbours: int | None = None
    include_superseded: bool | None = None
    chunking: Chunking | None = None

    def __post_init__(self) -> None:
        exact_fields(self, "framing", "include_superseded")
        for name in ("framing", "include_superseded"):
            value: object = getattr(self, name)
            if value is not None:
                expect_bool(name, value)
        profile_of(self.profile)
        policy_of(self.policy)
        if self.chunking is not None:
            remedy = "Pass a table with passage_tokens and overlap_tokens."
            expect_type("chunking", self.chunking, Chunking, "a Chunking", remedy)
        if self.mode not in (None, *get_args(Mode)):
            raise unknown("search mode", self.mode, get_args(Mode))
        _options(_USUAL, self)


def repeated_call(
    snapshot: Snapshot, recall: RecallContext, settings: RecallSettings
) -> tuple[SearchRequest, RecallOptions]:
    """Return the question and the options of a recorded recall under settings.

    Raises:
        InvalidInput: the profile or policy is unknown.
    """
    return _request(snapshot, recall, settings), _options(recall, settings)


def _request(snapshot: Snapshot, recall: RecallContext, settings: RecallSettings) -> SearchRequest:
    """Return the question of a recall under settings. Raises `InvalidInput` for its profile."""
    profile = settings.profile or f"{recall.profile} {recall.profile_version}"
    mode = _either(settings.mode, recall.mode)
    if mode == "hybrid" and recall.vector is None and recall.tokens is None:
        # The embedder of today did not take part.
        mode = "text"
    rerank: bool | dict[int, float] | None = recall.rerank or None
    if recall.reranked_scores is not None:
        scores = np.frombuffer(recall.reranked_scores, "<f8").tolist()
        rerank = dict(zip(recall.reranked, scores, strict=True))
    return replace(
        request_of(snapshot, recall, profile_of(profile), CONTEXT_HITS),
        mode=mode,
        approximate=recall.approximate,
        include_superseded=_either(settings.include_superseded, recall.include_superseded),
        rerank=rerank,
    )


def _options(recall: RecallContext, settings: RecallSettings) -> RecallOptions:
    """Return the options of a recall under settings. Raises `InvalidInput`."""
    recorded = recall.policy and f"{recall.policy} {recall.policy_version}"
    floor: Floor | bool = recall.floor
    if recall.floor and recall.floor_clear is not None and recall.floor_least is not None:
        floor = Floor(recall.floor_clear, recall.floor_least)
    return RecallOptions(
        ContextOptions(
            _either(settings.max_tokens, recall.max_tokens),
            _either(settings.entry_tokens, recall.entry_tokens),
            _either(settings.form, recall.form),
            _either(settings.order, recall.order),
            policy_of(_either(settings.policy, recorded)),
        ),
        floor=floor,
        is_framed=_either(settings.framing, recall.framing),
        neighbours=_either(settings.neighbours, recall.neighbours),
    )


def _either(setting: Any, recorded: Any) -> Any:
    return recorded if setting is None else setting


_USUAL: Final = RecallContext(
    query="",
    basis=0,
    tokenizer="",
    profile="",
    profile_version=0,
    max_tokens=1,
    entry_tokens=1,
    form="text",
    context=b"",
)
"""A recall by which settings are checked before any question."""
