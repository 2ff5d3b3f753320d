"""Settings of a repeated recall: a file's values in place of the recorded values.

Owns `RecallSettings`, and the question and options of a recorded recall under settings. Leaves out
asking (`recall_comparison`, `recall_rerun`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, cast, get_args

import numpy as np

from cerata.engine.arguments import expect_bool, expect_type
from cerata.engine.errors import InvalidInput
from cerata.engine.events import RecallContext
from cerata.engine.json_value import JsonValue, exact_fields
from cerata.engine.plain_value import PlainValue
from cerata.retrieval.chunking import Chunking
from cerata.retrieval.context.packing import ContextOptions
from cerata.retrieval.context.policies import ContextPolicy, policy_of
from cerata.retrieval.ranking.profile import Profile, unknown
from cerata.retrieval.ranking.profiles import profile_of
from cerata.retrieval.ranking.relevance import Floor

from ..search.recall import RecallOptions
from ..search.request import SearchRequest
from ..snapshot.snapshot import Snapshot
from ..values.frames import CONTEXT_HITS
from ..values.options import Mode
from .recalls import request_of


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
        if isinstance(sizes := settings.get("chunking"), Mapping):
            settings["chunking"] = _chunking(cast("Mapping[str, Any]", sizes))
        policy = settings.get("policy")
        if isinstance(policy, Mapping):
            settings["policy"] = _policy(cast("Mapping[str, Any]", policy))
        return cls(**settings)


def _chunking(values: Mapping[str, Any]) -> Chunking:
    names = [part.name for part in fields(Chunking)]
    for name in values:
        if name not in names:
            raise unknown("size of a chunking", name, names, where="a chunking")
    return Chunking(**values)


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
