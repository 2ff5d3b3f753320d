"""Recorded recalls under two settings: which answers and contexts differ, and by how much.

Each recorded recall is repeated at its basis, with the vectors and scores that the log has of
it, so events that were written later change nothing. Owns the settings, the report of each recall
and the totals. Leaves out recalls with a filter, which the log has in a form that is only printed,
and the chunking of documents, which is an input of the log. Writes nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias, cast, get_args

import numpy as np

from cerata.engine.arguments import expect_bool
from cerata.engine.errors import InvalidInput
from cerata.engine.events import Event, RecallContext
from cerata.engine.json_value import JsonValue
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.retrieval.context.packing import ContextOptions
from cerata.retrieval.context.policies import ContextPolicy, policy_of
from cerata.retrieval.ranking.profiles import Profile, profile_of, unknown
from cerata.retrieval.ranking.relevance import Floor

from ..search.recall import RecallOptions, context_of
from ..search.request import Mode, SearchRequest
from ..search.search import run_search
from ..snapshot.reader import Reader, snapshot_of
from ..snapshot.snapshot import Snapshot
from ..values.frames import CONTEXT_HITS, Context
from .recalls import asked, request_of

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a pass, its finished steps, and all of them."""


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

    def __post_init__(self) -> None:
        for name in ("framing", "include_superseded"):
            value: object = getattr(self, name)
            if value is not None:
                expect_bool(name, value)
        profile_of(self.profile)
        policy_of(self.policy)
        if self.mode not in (None, *get_args(Mode)):
            raise unknown("search mode", self.mode, get_args(Mode))
        _options(_USUAL, self)

    @classmethod
    def from_dict(cls, values: Mapping[str, JsonValue]) -> "RecallSettings":
        """Return settings by name; a profile and a policy may be objects with their fields.

        Raises:
            InvalidInput: a field is unknown, or a value is out of range.
        """
        names = [part.name for part in fields(cls)]
        for name in values:
            if name not in names:
                raise unknown("setting of a recall", name, names, where="the settings")
        settings: dict[str, Any] = dict(values)
        profile = settings.get("profile")
        if isinstance(profile, Mapping):
            settings["profile"] = Profile.from_dict(cast("Mapping[str, Any]", profile))
        policy = settings.get("policy")
        if isinstance(policy, Mapping):
            settings["policy"] = _policy(cast("Mapping[str, Any]", policy))
        return cls(**settings)


def _policy(values: Mapping[str, Any]) -> ContextPolicy:
    names = [part.name for part in fields(ContextPolicy)]
    for name in values:
        if name not in names:
            raise unknown("field of a context policy", name, names, where="a context policy")
    for name in ("name", "version"):
        if name not in values:
            raise InvalidInput(
                f"The context policy has no {name}", remedy=f"Add its {name} to the file."
            )
    settings: dict[str, Any] = dict(values)
    days = settings.get("tier_days")
    if isinstance(days, list):
        # A file has lists.
        settings["tier_days"] = tuple(cast("list[object]", days))
    return ContextPolicy(**settings)


@dataclass(frozen=True, slots=True)
class RecallChange(PlainValue):
    """A recorded recall, asked again under two settings.

    - ``added`` and ``dropped`` are the frames and facts that only the second or the first context
      shows; ``moved`` has (id, rank before, rank after) of entries in both at other ranks.
    - ``repeated`` is whether the first context shows the recorded frames and facts.
    """

    seq: int
    basis: int
    query: str
    same: bool
    repeated: bool
    added: tuple[int, ...]
    dropped: tuple[int, ...]
    moved: tuple[tuple[int, int, int], ...]
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class RecallComparison(PlainValue):
    """The recorded recalls of a memory under two settings, in order of the log.

    - ``skipped`` counts the recalls that cannot be asked again: with a filter, or with a profile or
      policy that is not built in and not replaced.
    """

    recalls: tuple[RecallChange, ...]
    skipped: int

    @property
    def differing(self) -> tuple[RecallChange, ...]:
        """The recalls whose contexts differ."""
        return tuple(change for change in self.recalls if not change.same)

    @property
    def totals(self) -> dict[str, JsonValue]:
        """Counts over all recalls."""
        changes = self.recalls
        return {
            "recalls": len(changes),
            "same": len(changes) - len(self.differing),
            "different": len(self.differing),
            "skipped": self.skipped,
            "repeated": sum(change.repeated for change in changes),
            "added": sum(len(change.added) for change in changes),
            "dropped": sum(len(change.dropped) for change in changes),
            "moved": sum(len(change.moved) for change in changes),
            "tokens_before": sum(change.tokens_before for change in changes),
            "tokens_after": sum(change.tokens_after for change in changes),
        }

    def to_dict(self) -> dict[str, JsonValue]:
        return plain_fields(self, ("recalls", "totals"))


def compare_recalls(
    reader: Reader,
    after: RecallSettings,
    before: RecallSettings | None = None,
    progress: Progress | None = None,
) -> RecallComparison:
    """Ask every recorded recall again under two settings, and compare the contexts.

    Cost: a read of each event, and two recalls for each recorded recall.

    Args:
        reader: A store or view; recalls after its basis or out of its scope are left out.
        after: The settings to try.
        before: The settings to compare with; default those of each recorded recall.
        progress: Called with the name of the pass, and how many of how many recalls were repeated.
    """
    snapshot = snapshot_of(reader)
    recorded = [
        (event, body)
        for event in snapshot.events(1, snapshot.basis)
        if isinstance(body := event.body, RecallContext)
    ]
    changes: list[RecallChange] = []
    for number, (event, body) in enumerate(recorded, start=1):
        if body.where is None and body.query.strip():
            changes += _compared(reader, event, body, before or RecallSettings(), after)
        if progress is not None:
            progress("asking", number, len(recorded))
    return RecallComparison(tuple(changes), len(recorded) - len(changes))


def _compared(
    reader: Reader,
    event: Event,
    recall: RecallContext,
    before: RecallSettings,
    after: RecallSettings,
) -> Iterator[RecallChange]:
    """Yield the change of a recall; nothing if its profile or policy is unknown."""
    snapshot = asked(snapshot_of(reader), event, recall)
    try:
        calls = [repeated_call(snapshot, recall, settings) for settings in (before, after)]
    except InvalidInput:
        return
    first, second = (
        context_of(run_search(snapshot, request), options) for request, options in calls
    )
    shown, shown_after = _shown(first), _shown(second)
    ranks = {number: rank for rank, number in enumerate(shown, start=1)}
    yield RecallChange(
        seq=event.seq,
        basis=recall.basis,
        query=recall.query,
        same=first.text == second.text,
        repeated={*shown} == {*recall.frames, *recall.facts},
        added=tuple(number for number in shown_after if number not in ranks),
        dropped=tuple(number for number in shown if number not in {*shown_after}),
        moved=tuple(
            (number, ranks[number], rank)
            for rank, number in enumerate(shown_after, start=1)
            if ranks.get(number, rank) != rank
        ),
        tokens_before=first.tokens,
        tokens_after=second.tokens,
    )


def repeated_call(
    snapshot: Snapshot, recall: RecallContext, settings: RecallSettings
) -> tuple[SearchRequest, RecallOptions]:
    """Return the question and the options of a recorded recall under settings.

    Raises:
        InvalidInput: the profile or policy is unknown.
    """
    return _request(snapshot, recall, settings), _options(recall, settings)


def _shown(context: Context) -> list[int]:
    """Return the ids of a context in their order, joined chunks included."""
    return [number for item in context.items for number in (item.id, *item.joined)]


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
        request_of(snapshot, recall, profile_of(profile)),
        k=CONTEXT_HITS,
        mode=mode,
        approximate=recall.approximate,
        include_superseded=_either(settings.include_superseded, recall.include_superseded),
        rerank=rerank,
    )


def _options(recall: RecallContext, settings: RecallSettings) -> RecallOptions:
    """Return the options of a recall under settings. Raises `InvalidInput`."""
    recorded = recall.policy and f"{recall.policy} {recall.policy_version}"
    floor: Floor | bool = recall.floor
    if recall.floor and recall.floor_cosine is not None and recall.floor_words is not None:
        floor = Floor(recall.floor_cosine, recall.floor_words)
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
