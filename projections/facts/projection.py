"""The facts projection: assertions, retractions, predicates and entities.

Owns the list of handled events and their effects: *births* (a row per fact, whose columns never
change), *repeats* (the same fact asserted again), their *evidence* and *assumptions*, *closings* (a
retraction), and *acts* (declarations of predicates and entities, and anomalies). Leaves out reading
and inference, such as the end of a value of a functional predicate (`reader`).
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, NamedTuple

from cerata.engine.events import (
    AssertFact,
    Erased,
    EventBody,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)

from ..columnar.times import BEGINNING, ENDLESS
from ..core.column_fold import ForkableFold
from ..core.event_batch import EventBatch
from ..core.projection import FoldedEvent
from ..fulltext.analyzer import folded_name
from .columns import (
    CONFIDENCE_UNIT,
    FLAG_ASSUMPTIONS,
    FLAG_EVIDENCE,
    FLAG_FROM_RECORDED,
    NO_PLACE,
    QUOTE_SIZE,
    FactAnomaly,
    FactBirth,
    FactColumns,
)
from .entity_resolution import Act, ActRow
from .history import Facts
from .objects import TEXT_KINDS, ObjectKind, kind_of_value, number_of, text_of

_KINDS: Final[tuple[type[EventBody], ...]] = (
    AssertFact,
    RetractFact,
    PutPredicate,
    PutEntity,
    MergeEntities,
    UnmergeEntities,
    SplitEntity,
    UnsplitEntity,
)
FACT_EVENTS: Final = frozenset(kind.wire_name for kind in _KINDS)
"""The wire names of the handled events."""


class FactsProjection(ForkableFold[FactColumns]):
    """Folds assertions, retractions, and acts on predicates and entities into columns."""

    name: ClassVar[str] = "facts"
    version: ClassVar[int] = 4

    def __init__(self) -> None:
        super().__init__(FactColumns())
        self._facts: Facts | None = None

    def snapshot(self) -> Facts:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        if self._facts is None or self._facts.seq != self.seq:
            self._facts = Facts(self._columns, self.seq)
        return self._facts

    def _fold(self, events: EventBatch) -> None:
        handled = events.of_types(FACT_EVENTS)
        if handled:
            scopes = [event.scope for event in handled]
            codes = self._scope_codes(scopes, [event.seq for event in handled])
            FactFold(self._columns).fold([*zip(handled, codes, strict=True)])


# --- The fold of a batch into the columns of facts: from strings to rows --------------------------
#
# Rules of the fold, which never fails:
#
# - An assertion with the scope, triple and stated range of an open fact repeats that fact, unless
#   the predicate is functional, the assertion states no start, and another value of the subject has
#   begun since.
# - The first closing of a fact wins.
# - An unknown reference, a merge in a cycle or of a merged entity, an object of an unknown kind,
#   and an erased payload are anomalies, which change nothing else.
# - A number beyond the range of its column is clamped to the nearest number within.


_DEPTH_MAX: Final = (1 << 32) - 1


class _Pending(NamedTuple):
    """An event of the batch, with the codes of its names in the order of its fields.

    Codes of new strings are −1, −2, … until the strings settle.
    """

    event: FoldedEvent
    scope: int
    names: tuple[int, ...]
    strings: tuple[int, ...]


_Identity = tuple[int, ...]


class FactFold:
    """The fold of a batch; collects rows, then appends all of them to the columns."""

    def __init__(self, columns: FactColumns) -> None:
        self._columns = columns
        self._roles = columns.roles
        self._births: list[FactBirth] = []
        self._first_row = len(columns.seq)
        self._rows: dict[int, int] = {}
        """The row of each assertion of this batch, by seq."""
        self._born_of: dict[int, list[int]] = {}
        """The rows of this batch by subject."""
        self._alike: dict[_Identity, list[int]] = {}
        """The rows of each identity that this batch asserts, ascending."""
        self._closed: set[int] = set()
        self._ended: dict[int, int] = {}
        """The row that each retraction of this batch closed, by seq."""
        self._repeats: list[tuple[int, ...]] = []
        self._evidence: list[tuple[int, ...]] = []
        self._assumptions: list[tuple[int, ...]] = []
        self._closings: list[tuple[int, int, int]] = []
        self._acts: list[tuple[int, ...]] = []
        self._settled: list[int] = []
        self._earlier: dict[int, list[int]] = {}
        """The rows before this batch by identity key, for the keys that the batch asserts."""

    def fold(self, events: Sequence[tuple[FoldedEvent, int]]) -> None:
        """Fold events, each with the code of its scope."""
        pending = [self._named(event, scope) for event, scope in events]
        self._settled = self._columns.strings.settle()
        facts = [item for item in pending if isinstance(item.event.body, AssertFact)]
        asserted = [self._birth(*item) for item in facts]
        self._find_earlier([birth for birth in asserted if birth is not None])
        births = iter(asserted)
        for event, scope, names, strings in pending:
            body = event.body
            if isinstance(body, AssertFact):
                birth = next(births)
                if birth is None:
                    self._note(event.seq, scope, FactAnomaly.NO_VALUE)
                else:
                    self._assert(event, body, birth, strings)
            elif isinstance(body, RetractFact):
                self._retract(event, body, scope)
            elif isinstance(body, Erased):
                self._note(event.seq, scope, FactAnomaly.ERASED)
            else:
                self._act(event, scope, names, strings)
        self._keep()

    def _keep(self) -> None:
        columns = self._columns
        columns.append_births(self._births)
        columns.repeats.append(self._repeats)
        columns.evidence.append(self._evidence)
        columns.assumptions.append(self._assumptions)
        columns.append_closings(self._closings)
        columns.acts.append(self._acts)

    # --- strings ---------------------------------------------------------------------------------

    def _named(self, event: FoldedEvent, scope: int) -> _Pending:
        body = event.body
        seq = event.seq
        columns = self._columns
        names: list[int] = []
        texts: list[str] = []
        if isinstance(body, AssertFact):
            kind = kind_of_value(body.object_kind, body.object)
            if kind is not None:
                names = [
                    columns.predicates.code(body.predicate, seq),
                    columns.sources.code(body.source, seq),
                    kind,
                ]
                texts = [body.subject, *body.assumptions]
                if kind in TEXT_KINDS:
                    texts.append(text_of(body.object))
        elif isinstance(body, PutPredicate):
            names = [columns.predicates.code(body.predicate, seq)]
        elif isinstance(body, PutEntity):
            names = [] if body.kind is None else [columns.kinds.code(body.kind, seq)]
            texts = [body.entity]
            for alias in body.aliases:
                texts += [alias, folded_name(alias)]
        elif isinstance(body, MergeEntities | SplitEntity):
            texts = [body.entity, body.into]
        code = columns.strings.code
        return _Pending(event, scope, tuple(names), tuple([code(text, seq) for text in texts]))

    def _code(self, code: int) -> int:
        return code if code > 0 else self._settled[-code - 1]

    # --- facts -----------------------------------------------------------------------------------

    def _birth(
        self, event: FoldedEvent, scope: int, names: Sequence[int], strings: Sequence[int]
    ) -> FactBirth | None:
        body = event.body
        assert isinstance(body, AssertFact)
        if not names:
            return None
        predicate, source, kind = names
        flags = FLAG_FROM_RECORDED if body.valid_from is None else 0
        if body.evidence:
            flags |= FLAG_EVIDENCE
        if body.assumptions:
            flags |= FLAG_ASSUMPTIONS
        is_text = kind in TEXT_KINDS
        return FactBirth(
            event.seq,
            event.recorded,
            scope,
            self._code(strings[0]),
            predicate,
            kind,
            self._code(strings[-1]) if is_text else number_of(ObjectKind(kind), body.object),
            event.recorded if body.valid_from is None else _clamped(body.valid_from),
            ENDLESS if body.valid_to is None else _clamped(body.valid_to),
            _millionths(body.confidence),
            source,
            0,
            flags,
        )

    def _find_earlier(self, births: Sequence[FactBirth]) -> None:
        """Look up the rows before this batch that may equal its assertions, in a single pass."""
        columns = self._columns
        identities = columns.all_identities()
        if not births or not len(identities):
            return
        keys = columns.identities_of(births)
        for row in sorted(columns.identities.find_all(identities, keys)):
            self._earlier.setdefault(int(identities[row]), []).append(row)
        if self._earlier:
            for birth, key in zip(births, keys.tolist(), strict=True):
                identity = birth.identity
                if identity not in self._alike:
                    self._alike[identity] = [
                        row
                        for row in self._earlier.get(key, ())
                        if columns.birth(row).identity == identity
                    ]

    def _assert(
        self, event: FoldedEvent, body: AssertFact, birth: FactBirth, strings: Sequence[int]
    ) -> None:
        seq = event.seq
        identity = birth.identity
        alike = self._alike.setdefault(identity, [])
        row = self._newest_known(alike) if alike else None
        if row is None or self._has_moved_on(row, birth):
            row = self._first_row + len(self._births)
            depth = self._depth_after(event)
            self._births.append(birth._replace(depth=depth) if depth else birth)
            self._born_of.setdefault(birth.subject, []).append(row)
            alike.append(row)
            if birth.valid_to <= birth.valid_from:
                self._note(seq, birth.scope, FactAnomaly.EMPTY_RANGE)
        else:
            self._repeats.append((seq, row, birth.confidence, birth.source))
        self._rows[seq] = row
        for place in body.evidence:
            start = NO_PLACE if place.start is None else _clamped(place.start)
            end = NO_PLACE if place.end is None else _clamped(place.end)
            quote = (place.quote or b"")[:QUOTE_SIZE].ljust(QUOTE_SIZE, b"\0")
            halves = int.from_bytes(quote[:8]), int.from_bytes(quote[8:])
            self._evidence.append((seq, row, _clamped(place.frame), start, end, *halves))
        if body.assumptions:
            texts = strings[1 : 1 + len(body.assumptions)]
            self._assumptions += [(seq, row, self._code(code)) for code in texts]

    def _newest_known(self, alike: Sequence[int]) -> int | None:
        """Return the newest open row: a later value that ends this row ends older rows too."""
        return next((row for row in reversed(alike) if not self._is_closed(row)), None)

    def _has_moved_on(self, row: int, birth: FactBirth) -> bool:
        """Return whether another value of a functional predicate began after a row's value.

        Subjects are compared as read now. Values are compared as named, since a merge can be
        undone.
        """
        if not birth.flags & FLAG_FROM_RECORDED:
            return False
        tenants = self._columns.scopes.tenants
        tenant = tenants[birth.scope]
        if not self._roles.is_functional(tenant, birth.predicate):
            return False
        began = self._born(row).valid_from
        return any(
            tenants[rival.scope] == tenant
            and began < rival.valid_from <= birth.recorded
            and rival.valid_from < rival.valid_to
            and (rival.kind, rival.object) != (birth.kind, birth.object)
            and not self._is_closed(rival_row)
            for rival_row, rival in self._read_as(tenant, row, birth.predicate)
        )

    def _read_as(self, tenant: int, row: int, predicate: int) -> Iterator[tuple[int, FactBirth]]:
        """Yield (row, birth) for a predicate and the subject of ``row``, as read now."""
        roles = self._roles
        root = roles.read(tenant, row, self._born(row).subject)
        rows = set(roles.split_rows)
        for name in roles.names_of(tenant, root):
            rows.update(self._columns.rows_of_subject(name), self._born_of.get(name, ()))
        predicates = self._columns.predicate
        for match in rows:
            if match < self._first_row and predicates.item(match) != predicate:
                continue
            birth = self._born(match)
            if birth.predicate == predicate and roles.read(tenant, match, birth.subject) == root:
                yield match, birth

    def _born(self, row: int) -> FactBirth:
        if row >= self._first_row:
            return self._births[row - self._first_row]
        return self._columns.birth(row)

    def _depth_after(self, event: FoldedEvent) -> int:
        """Return the causing fact's depth plus 1; for a retraction, the closed fact's depth."""
        cause = event.causation
        if cause is None or cause >= event.seq:
            return 0
        row = self._row_of(cause)
        if row is not None:
            return min(self._born(row).depth + 1, _DEPTH_MAX)
        row = self._ended.get(cause)
        if row is None:
            row = self._columns.row_closed_by(cause)
        return 0 if row is None else self._born(row).depth

    def _row_of(self, seq: int) -> int | None:
        row = self._rows.get(seq)
        return self._columns.row_of(seq) if row is None else row

    def _is_closed(self, row: int) -> bool:
        return row in self._closed or (
            row < self._first_row and self._columns.closed_at.is_closed(row)
        )

    def _retract(self, event: FoldedEvent, body: RetractFact, scope: int) -> None:
        row = self._row_of(body.fact) if body.fact < event.seq else None
        if row is None:
            self._note(event.seq, scope, FactAnomaly.UNKNOWN_REFERENCE)
        elif self._is_closed(row):
            self._note(event.seq, scope, FactAnomaly.ALREADY_CLOSED)
        else:
            self._closed.add(row)
            self._ended[event.seq] = row
            self._closings.append((event.seq, event.recorded, row))

    # --- predicates and entities -----------------------------------------------------------------

    def _act(
        self, event: FoldedEvent, scope: int, names: Sequence[int], strings: Sequence[int]
    ) -> None:
        body = event.body
        seq = event.seq
        settled = [self._code(code) for code in strings]
        if isinstance(body, PutPredicate):
            self._take(seq, scope, Act.PREDICATE, names[0], 0, int(body.functional))
        elif isinstance(body, PutEntity):
            self._take(seq, scope, Act.ENTITY, settled[0], names[0] if names else 0, 0)
            for alias, fold in zip(settled[1::2], settled[2::2], strict=True):
                self._take(seq, scope, Act.ALIAS, settled[0], alias, fold)
        elif isinstance(body, MergeEntities):
            self._merge(seq, scope, *settled)
        elif isinstance(body, SplitEntity):
            self._split(seq, scope, settled, body.facts)
        elif isinstance(body, UnmergeEntities | UnsplitEntity):
            target = body.merge if isinstance(body, UnmergeEntities) else body.split
            is_merge = isinstance(body, UnmergeEntities)
            if not self._roles.holds(target) or self._roles.is_merge(target) is not is_merge:
                self._note(seq, scope, FactAnomaly.UNKNOWN_REFERENCE)
            else:
                self._take(seq, scope, Act.END, 0, 0, target)

    def _merge(self, seq: int, scope: int, entity: int, into: int) -> None:
        tenant = self._columns.scopes.tenants[scope]
        if self._roles.is_valid(ActRow(seq, tenant, Act.MERGE, entity, into, 0)):
            self._take(seq, scope, Act.MERGE, entity, into, 0)
        elif (tenant, entity) in self._roles.merged:
            self._note(seq, scope, FactAnomaly.ALREADY_CLOSED)
        else:
            self._note(seq, scope, FactAnomaly.CYCLE)

    def _split(self, seq: int, scope: int, settled: Sequence[int], facts: Sequence[int]) -> None:
        rows = [self._row_of(fact) if fact < seq else None for fact in facts]
        for row in rows:
            if row is None:
                self._note(seq, scope, FactAnomaly.UNKNOWN_REFERENCE)
            else:
                self._take(seq, scope, Act.SPLIT, settled[0], settled[1], row)

    def _take(self, seq: int, scope: int, kind: Act, source: int, target: int, number: int) -> None:
        self._acts.append((seq, scope, kind, source, target, number))
        tenant = self._columns.scopes.tenants[scope]
        self._roles.take(ActRow(seq, tenant, kind, source, target, number))

    def _note(self, seq: int, scope: int, anomaly: FactAnomaly) -> None:
        self._acts.append((seq, scope, Act.ANOMALY, 0, 0, anomaly))


def _clamped(number: int) -> int:
    return min(max(number, BEGINNING), ENDLESS)


def _millionths(confidence: float) -> int:
    """Return a confidence in millionths; an invalid confidence counts as 1."""
    if not 0.0 <= confidence <= 1.0:
        return CONFIDENCE_UNIT
    return round(confidence * CONFIDENCE_UNIT)
