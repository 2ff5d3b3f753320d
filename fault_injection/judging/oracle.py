"""Judges a recovered log against the model, through the public reading API alone.

Owns the rules O1 to O6, and the names of all rules that the harness checks. Leaves out building
the log and the model. A finding names its rule:

- O1 durability: every acknowledged event is there;
- O2 prefix: the recovered events are a prefix of the history: no hole, change, reorder or
  invention;
- O3 atomic batch: a batch is whole or absent;
- O4 no silent corruption: damaged data is equal to the model or refused with its place;
- O5 no false alarm: a legal crash opens without an error;
- O6 digests: chain and root are those computed from the bytes read back;
- O7 function: the bytes that recovery reads of an image decide the outcome
  (`crash_states.readings`), a second recovery equals the first, and a crash in recovery loses
  nothing (`campaign`);
- O8 events that a reader saw stay: a read counts as an acknowledgement
  (`stories.engine_workloads`, and processes that meet);
- O9 time travel: past states equal those of an independent fold (`past_states`);
- O10 a restored projection equals a replayed projection (`stories.store_stories`);
- O14 bounds: opening takes few operations, a poisoned handle none (`campaign`);
- O15 a recovered store accepts writes, and may crash again (tests/crash);
- O16 determinism: the same seed gives the same traces;
- O17 accounting: an error has an injected fault behind it (tests/crash).

O6 needs no hashing per state: if the bytes read equal the model's, the digests that the model
computed from them are the recomputation.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final, Protocol

import msgspec

from cerata.engine.errors import Corrupt, StorageFailed, Unsupported

from ..crash_states.readings import Outcome
from .model import EventLike, Model


class HeadLike(Protocol):
    """The end of the log, with its digests."""

    @property
    def seq(self) -> int: ...
    @property
    def chain(self) -> bytes: ...
    @property
    def root(self) -> bytes: ...


class ReportLike(Protocol):
    """The fields of a recovery report that the oracle reads."""

    @property
    def ambiguous_tail(self) -> bool: ...
    @property
    def cut_bytes(self) -> int: ...


class LogLike(Protocol):
    """The part of a log's public reading interface that the oracle needs."""

    @property
    def head(self) -> HeadLike: ...
    def read(self, first: int = 1, last: int | None = None) -> Iterator[EventLike]: ...


class Finding(AssertionError):
    """A rule was broken. ``rule`` is O1 to O17 or a caller's name; ``what`` is the breach."""

    def __init__(self, rule: str, what: str) -> None:
        self.rule = rule
        self.what = what
        super().__init__(f"{rule}: {what}")


class Judgement(msgspec.Struct, frozen=True):
    """The demand on an image, as values that a case file can hold.

    ``kind`` is ``legal``: the image opens without an error, with all acknowledged events;
    ``lying``: a prefix, or a refusal that names its place; ``damaged``: the same, and no silent
    loss below ``proven``, nor any silent loss at all unless ``erased``; ``unreadable``: all events
    are there, or the error reports an unreadable sector; ``uncut``: legal, and no byte was cut.
    """

    kind: str = "legal"
    proven: int = 0
    erased: bool = False

    def check(self, oracle: "Oracle", opener: Callable[[], "LogLike"], acked: int) -> bool:
        """Open an image and check it; returns whether it was refused. Raises `Finding`."""
        match self.kind:
            case "lying":
                return oracle.check_refusable(opener).seq < 0
            case "damaged":
                outcome = oracle.check_damaged(
                    opener, acked=acked, proven=self.proven, erased=self.erased
                )
                return outcome.seq < 0
            case "uncut":
                oracle.check_uncut(opener, acked=acked)
                return False
            case "unreadable":
                return oracle.check_unreadable(opener, acked=acked)
            case _:
                oracle.check_legal(opener, acked=acked)
                return False


LEGAL: Final = Judgement()

_FIELDS = attrgetter("seq", "recorded", "clock", "type", "version", "index", "count", "causation")


class Oracle:
    """Knows the whole history of a run, and so every log that recovery may return."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._expected = [(_FIELDS(event), event.salt, event.payload) for event in model.events]
        self._ends = frozenset(model.ends)

    def check(self, log: LogLike, *, acked: int) -> int:
        """Check O1 to O3 and O6, and return the seq that was recovered.

        Raises:
            Finding: a rule is broken.
        """
        head = log.head
        count = self.compare(log, head.seq)
        if count != head.seq:
            raise Finding("O2", f"the head is {head.seq}, but {count} events can be read")
        if count not in self._ends:
            raise Finding("O3", f"the log ends at seq {count}, inside a batch")
        if count < acked:
            raise Finding("O1", f"seq {acked} was acknowledged; {count} events were recovered")
        if head.chain != self.model.chains[count]:
            raise Finding("O6", f"the chain hash at seq {count} is not that of the events read")
        if head.root != self.model.root(count):
            raise Finding("O6", f"the Merkle root at seq {count} is not that of the events read")
        return count

    def compare(self, log: LogLike, head: int) -> int:
        """Compare the events read with the model's and return their number."""
        expected = self._expected
        count = 0
        for event in log.read():
            if count >= len(expected):
                raise Finding("O2", f"seq {count + 1} was recovered, but never appended")
            fields, salt, payload = expected[count]
            if (
                event.payload_bytes != payload
                or event.salt != salt
                or _FIELDS(event.header) != fields
            ):
                raise Finding("O2", self._difference(count, event))
            count += 1
        return count

    def _difference(self, place: int, event: EventLike) -> str:
        header = _FIELDS(event.header)
        fields, salt, payload = self._expected[place]
        if header != fields:
            return f"event {place + 1} has the header {header}, not {fields}"
        if event.salt != salt:
            return f"event {place + 1} has another salt than when it was appended"
        return f"event {place + 1} has the payload {event.payload_bytes!r}, not {payload!r}"

    def check_legal(self, opener: Callable[[], LogLike], *, acked: int) -> Outcome:
        """Open a legal crash state and check it; any error is a false alarm (O5)."""
        try:
            seq = self.check(opener(), acked=acked)
            return Outcome(seq, self.model.chains[seq])
        except Finding:
            raise
        except Exception as error:
            raise Finding("O5", f"a legal crash does not open: {error!r}") from error

    def check_uncut(self, opener: Callable[[], LogLike], *, acked: int) -> None:
        """Open a legal crash state in which recovery may cut no byte, and check it (O5)."""
        opening = _Opening(opener)
        self.check_legal(opening, acked=acked)
        report = opening.report
        if report is not None and report.cut_bytes:
            raise Finding("O5", f"{report.cut_bytes} bytes were cut")

    def check_refusable(self, opener: Callable[[], LogLike]) -> Outcome:
        """Open an image that no honest disk leaves: a prefix, or a refusal with a place."""
        try:
            seq = self.check(opener(), acked=0)
            return Outcome(seq, self.model.chains[seq])
        except (Corrupt, Unsupported) as error:
            if error.where is None:
                raise Finding("O4", f"the refusal of damage names no place: {error}") from error
            return Outcome(-1, type(error).__name__.encode())
        except Finding:
            raise
        except Exception as error:
            raise Finding("O4", f"damage raised an unexpected error: {error!r}") from error

    def check_unreadable(self, opener: Callable[[], LogLike], *, acked: int) -> bool:
        """Open an image with an unreadable sector; returns whether the error reports that."""
        try:
            self.check(opener(), acked=acked)
        except StorageFailed:
            return True
        except Finding:
            raise
        except Exception as error:
            raise Finding("O4", f"an unreadable sector raised {error!r}") from error
        return False

    def check_known(self, outcome: Outcome, *, acked: int) -> None:
        """Check the outcome of an earlier recovery, possibly against another model."""
        seq, chain = outcome
        if seq not in self._ends or self.model.chains[seq] != chain:
            raise Finding("O2", f"{seq} events were recovered that are no prefix of the history")
        if seq < acked:
            raise Finding("O1", f"seq {acked} was acknowledged; {seq} events were recovered")

    def allows(self, outcome: Outcome, acked: int) -> bool:
        """Return whether `check_known` accepts an outcome."""
        try:
            self.check_known(outcome, acked=acked)
        except Finding:
            return False
        return True

    def check_damaged(
        self, opener: Callable[[], LogLike], *, acked: int, proven: int, erased: bool = False
    ) -> Outcome:
        """Open a damaged image (O4): all events, or a refusal with a place.

        The exception: the last group above ``proven`` may be cut if that is reported as an
        ambiguous tail; if its place reads as zeros (``erased``) no report is possible.
        """
        opening = _Opening(opener)
        # If both header pages are damaged, the file may look like another format or none.
        outcome = self.check_refusable(opening)
        count = outcome.seq
        if count < 0 or count >= acked:
            return outcome
        if count < proven:
            raise Finding(
                "O4", f"seq {proven} was proven; {count} events were recovered in silence"
            )
        report = opening.report
        if not erased and (report is None or not report.ambiguous_tail):
            raise Finding(
                "O4", f"seq {acked} was lost to damage; the report does not mention the loss"
            )
        return outcome


class _Opening:
    """An opener that keeps the recovery report of its log."""

    def __init__(self, opener: Callable[[], LogLike]) -> None:
        self._opener = opener
        self.report: ReportLike | None = None

    def __call__(self) -> LogLike:
        log = self._opener()
        self.report = getattr(log, "report", None)
        return log
