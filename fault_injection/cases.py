"""A failing crash state as one small file: what it held, why it is legal, what was expected.

Owns the case file (MessagePack) and its replay. A case holds the image itself and the model's
history, so it replays without the workload that made it, and on a later engine.
"""

import zlib
from collections.abc import Callable
from dataclasses import astuple

import msgspec

from .model import Model, ModelBatch, ModelEvent
from .oracle import Finding, LogLike, Oracle
from .states import CrashState

CASE_VERSION = 1


class EventRow(msgspec.Struct, frozen=True, array_like=True):
    """A `ModelEvent` as an array: plain values that a case file can hold."""

    seq: int
    recorded: int
    clock: int | None
    type: str
    version: int
    index: int
    count: int
    causation: int | None
    salt: bytes | None
    payload: bytes | None
    commitment: bytes | None

    @classmethod
    def of(cls, event: ModelEvent) -> "EventRow":
        return cls(*astuple(event))

    def event(self) -> ModelEvent:
        return ModelEvent(*msgspec.structs.astuple(self))


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One crash state that broke a rule.

    ``image`` is compressed; ``acked`` must survive; ``choices`` describes the state for people.
    ``history`` has one list of events a batch.
    """

    version: int = CASE_VERSION
    rule: str
    what: str
    workload: str
    choices: str
    path: str
    image: bytes
    acked: int
    log_id: bytes
    history: list[list[EventRow]]

    def model(self) -> Model:
        """Rebuild the history that the image is judged against."""
        batches = [ModelBatch(tuple(row.event() for row in batch)) for batch in self.history]
        return Model(self.log_id, batches)

    def open_image(self) -> bytearray:
        return bytearray(zlib.decompress(self.image))


def case_of(
    state: CrashState, finding: Finding, model: Model, *, path: str, workload: str = ""
) -> Case:
    """Gather everything that a replay of this state needs."""
    return Case(
        rule=finding.rule,
        what=finding.what,
        workload=workload,
        choices=state.describe(),
        path=path,
        image=zlib.compress(bytes(state.image()), 9),
        acked=state.acked,
        log_id=model.log_id,
        history=[[EventRow.of(event) for event in batch.events] for batch in model.batches],
    )


def encode_case(case: Case) -> bytes:
    """Return the case file's bytes."""
    return msgspec.msgpack.encode(case)


def decode_case(data: bytes) -> Case:
    """Read a case file. Raises `ValueError` where it is of another version."""
    case = msgspec.msgpack.decode(data, type=Case)
    if case.version != CASE_VERSION:
        raise ValueError(f"case version {case.version}; this reads {CASE_VERSION}")
    return case


def replay_case(case: Case, opener: Callable[[str, bytearray], LogLike]) -> Finding | None:
    """Open the case's image with ``opener(path, image)`` and return what is still wrong."""
    try:
        Oracle(case.model()).check_legal(
            lambda: opener(case.path, case.open_image()), acked=case.acked
        )
    except Finding as finding:
        return finding
    return None
