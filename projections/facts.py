"""The fold that knows facts: what was asserted, what ended, and who is who.

Owns the effects: *births* (a row per fact, its columns never change), *repeats* (the same fact
asserted again), their *evidence* and *assumptions*, *closings* (a retraction), and *acts* (what was
said of predicates and entities, and oddities). Reading is `fact_table`'s, which also works out
what follows from all of it, such as where a value of a functional predicate ends.

Rules of the fold, which never fails: an assertion that equals an open fact in scope, triple and
given range repeats it, unless its predicate is functional, its range has no given start, and
another value of that subject has begun since. The first closing of a fact wins. What names nothing
that is there, a merge in a circle or of what is merged already, an object of no known kind, and an
erased payload are oddities, which change nothing else.
"""

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from cerata.engine.events import (
    AssertFact,
    Erased,
    EventBody,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    Scope,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)

from .columns import Columns, decode_columns, encode_columns
from .fact_columns import (
    FLAG_ASSUMPTIONS,
    FLAG_EVIDENCE,
    FLAG_FROM_RECORDED,
    NO_PLACE,
    Act,
    FactBirth,
    FactColumns,
    FactOddity,
    identity_of_birth,
)
from .fact_table import Facts
from .fact_values import TEXT_KINDS, ObjectKind, kind_of_value, number_of, text_of
from .intervals import BEGINNING, ENDLESS
from .projection import (
    BlockDigests,
    FoldedEvent,
    Parameters,
    check_follows,
    check_head,
    check_range,
    chunk_head,
    salt_of,
)
from .scopes import by_name, scope_text, tenant_in
from .text import words

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
"""The wire names of the events that it folds."""

_CONFIDENCE_UNIT: Final = 1_000_000
"""Confidence is kept in millionths."""

_DEPTH_MAX: Final = (1 << 32) - 1


class FactsProjection:
    """Folds assertions, retractions, and what is said of predicates and entities, into columns."""

    name: ClassVar[str] = "facts"
    version: ClassVar[int] = 1

    def __init__(self) -> None:
        self._seq = 0
        self._columns = FactColumns()
        self._entities = EntityFold()
        self._digests = BlockDigests(salt_of(self.name, self.version, self.parameters))
        # The last scope seen and its code: neighbours mostly share one object.
        self._last_scope: tuple[Scope, int] = ((), 0)
        self._facts: Facts | None = None

    @property
    def parameters(self) -> Parameters:
        return {}

    @property
    def seq(self) -> int:
        return self._seq

    def snapshot(self) -> Facts:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        if self._facts is None or self._facts.seq != self._seq:
            self._facts = Facts(self._columns, self._seq)
        return self._facts

    # --- folding ---------------------------------------------------------------------------------

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        if not events:
            return
        check_follows(self._seq, events)
        handled = [
            (event, self._scope_code(event.scope, event.seq))
            for event in events
            if event.type in FACT_EVENTS
        ]
        if handled:
            _Step(self._columns, self._entities).fold(handled)
        self._seq += len(events)
        self._digests.complete(self._seq, self._columns.effects)

    def _scope_code(self, scope: Scope, seq: int) -> int:
        last, code = self._last_scope
        if (scope is not last and scope != last) or not code:
            code = self._columns.scope_code(scope_text(by_name(scope)), tenant_in(scope), seq)
            # True equals 1, and is another scope: only strings are what they are equal to.
            if all(isinstance(value, str) for _, value in scope):
                self._last_scope = (scope, code)
        return code

    # --- digest and chunks -----------------------------------------------------------------------

    def digest(self) -> bytes:
        return self._digests.root(self._seq, self._columns.effects)

    def digest_at(self, seq: int) -> bytes:
        """Return the digest at an earlier seq; O(one block of events)."""
        check_range(0, seq, self._seq)
        return self._digests.root(seq, self._columns.effects)

    def chunk(self, after: int, through: int | None = None) -> bytes:
        end = self._seq if through is None else through
        check_range(after, end, self._seq)
        return encode_columns(
            {
                **chunk_head(self._digests.salt, after, end),
                "blocks": self._digests.leaves(after, end),
                **self._columns.effects(after, end),
                "strings.hashes": self._columns.strings.hashes(after, end),
            }
        )

    def load(self, *chunks: bytes) -> None:
        parts, through = [decode_columns(chunk) for chunk in chunks], self._seq
        for part in parts:
            through = check_head(part, self._digests.salt, through)
        columns = Columns.end_to_end(parts)
        self._digests.check(columns.u8("blocks"), self._seq, through)
        first = len(self._columns.act_seq)
        self._columns.load(columns, self._seq, through)
        self._entities.load(self._columns, first)
        self._digests.load(columns.u8("blocks"))
        self._seq = through

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns."""
        return self._columns.size_bytes


class EntityFold:
    """What the fold must know of acts to judge the next one: the merges and splits that hold.

    Entities go by (tenant, code). Derived from the columns.
    """

    def __init__(self) -> None:
        self.merged: dict[tuple[int, int], int] = {}
        self._merged_here: dict[tuple[int, int], set[int]] = {}
        """What is merged into an entity, directly."""
        self._splits: dict[int, dict[int, tuple[int, int]]] = {}
        """Of each row the splits that hold: what they take for what, by seq in order."""
        self._split_rows: dict[int, list[int]] = {}
        self.ended_by: dict[int, tuple[int, int] | None] = {}
        """The merges (with what they merged) and splits (with None) that hold, by seq."""
        self.functional: dict[tuple[int, int], bool] = {}

    def ends_at(self, tenant: int, entity: int) -> int:
        """Return what an entity is read as."""
        while (following := self.merged.get((tenant, entity))) is not None:
            entity = following
        return entity

    def read(self, tenant: int, row: int, entity: int) -> int:
        """Return what an entity that a fact names is read as, as `EntityRoles.read` does."""
        root = self.ends_at(tenant, entity)
        for one, into in reversed(self._splits.get(row, {}).values()):
            if self.ends_at(tenant, one) == root:
                return self.ends_at(tenant, into)
        return root

    def names_of(self, tenant: int, root: int) -> list[int]:
        """Return the entities that are read as one where no split says otherwise; it first."""
        found = [root]
        for entity in found:
            found += sorted(self._merged_here.get((tenant, entity), ()))
        return found

    @property
    def split_rows(self) -> list[int]:
        """The rows of facts with a split that holds."""
        return list(self._splits)

    def take(self, seq: int, tenant: int, what: Act, one: int, other: int, number: int) -> None:
        """Follow an act that holds."""
        if what is Act.PREDICATE:
            self.functional[tenant, one] = bool(number)
        elif what is Act.MERGE:
            self.merged[tenant, one] = other
            self._merged_here.setdefault((tenant, other), set()).add(one)
            self.ended_by[seq] = (tenant, one)
        elif what is Act.SPLIT:
            self._splits.setdefault(number, {})[seq] = one, other
            self._split_rows.setdefault(seq, []).append(number)
            self.ended_by[seq] = None
        elif what is Act.END:
            entity = self.ended_by.pop(number)
            if entity is not None:
                into = self.merged.pop(entity)
                self._merged_here[entity[0], into].discard(entity[1])
            for row in self._split_rows.pop(number, ()):
                # It may name a row twice, by the ids of two events that assert it.
                held = self._splits.get(row, {})
                held.pop(number, None)
                if not held:
                    self._splits.pop(row, None)

    def load(self, columns: FactColumns, first: int) -> None:
        """Follow the acts from row ``first`` on."""
        for seq, scope, what, one, other, number in columns.acts_from(first):
            self.take(seq, columns.scope_tenant[scope], Act(what), one, other, number)


class _Pending(NamedTuple):
    """An event of the batch, with the codes of its names in the order of its fields.

    Those of strings are −1, −2, … until they settle, where they are new.
    """

    event: FoldedEvent
    scope: int
    names: tuple[int, ...]
    strings: tuple[int, ...]


_Identity = tuple[int, ...]


class _Step:
    """One batch being folded: what it adds, before that is in the columns."""

    def __init__(self, columns: FactColumns, entities: EntityFold) -> None:
        self._columns = columns
        self._entities = entities
        self._births: list[FactBirth] = []
        self._first_row = len(columns.seq)
        self._rows: dict[int, int] = {}
        """The rows of this batch's assertions, by seq."""
        self._alike: dict[_Identity, list[int]] = {}
        """The rows with an identity that this batch asserts, ascending."""
        self._closed: set[int] = set()
        self._ended: dict[int, int] = {}
        """The rows that this batch's retractions closed, by seq."""
        self._repeats: list[tuple[int, ...]] = []
        self._evidence: list[tuple[int, ...]] = []
        self._assumptions: list[tuple[int, ...]] = []
        self._closings: list[tuple[int, int, int]] = []
        self._acts: list[tuple[int, ...]] = []
        self._settled: list[int] = []
        self._earlier: dict[int, list[int]] = {}
        """The rows before this batch by identity key, of the keys that it asserts."""

    def fold(self, events: Sequence[tuple[FoldedEvent, int]]) -> None:
        """Fold events, each with its scope's code."""
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
                    self._note(event.seq, scope, FactOddity.NO_VALUE)
                else:
                    self._assert(event, body, birth, strings)
            elif isinstance(body, RetractFact):
                self._retract(event, body, scope)
            elif isinstance(body, Erased):
                self._note(event.seq, scope, FactOddity.ERASED)
            else:
                self._act(event, scope, names, strings)
        self._keep()

    def _keep(self) -> None:
        columns = self._columns
        columns.bear(self._births)
        columns.append(columns.repeats, self._repeats)
        columns.append(columns.evidence, self._evidence)
        columns.append(columns.assumptions, self._assumptions)
        columns.close(self._closings)
        columns.act(self._acts)

    # --- strings ---------------------------------------------------------------------------------

    def _named(self, event: FoldedEvent, scope: int) -> _Pending:
        """Give the names of an event their codes."""
        body, seq, columns = event.body, event.seq, self._columns
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
        """Return the row of an assertion, as if it were a new fact; None where it has no value."""
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
        return (
            event.seq,
            event.recorded,
            scope,
            self._code(strings[0]),
            predicate,
            kind,
            self._code(strings[-1]) if is_text else number_of(ObjectKind(kind), body.object),
            event.recorded if body.valid_from is None else max(body.valid_from, BEGINNING),
            ENDLESS if body.valid_to is None else body.valid_to,
            _millionths(body.confidence),
            source,
            0,
            flags,
        )

    def _find_earlier(self, births: Sequence[FactBirth]) -> None:
        """Look up the rows before this batch that may equal its assertions, all at once."""
        columns = self._columns
        held = columns.identity.view()
        if not births or not len(held):
            return
        keys = columns.identities_of(births)
        for row in sorted(columns.identities.find_all(held, keys)):
            self._earlier.setdefault(int(held[row]), []).append(row)
        if self._earlier:
            for birth, key in zip(births, keys.tolist(), strict=True):
                identity = identity_of_birth(birth)
                if identity not in self._alike:
                    self._alike[identity] = [
                        row
                        for row in self._earlier.get(key, ())
                        if columns.identity_of(row) == identity
                    ]

    def _assert(
        self, event: FoldedEvent, body: AssertFact, birth: FactBirth, strings: Sequence[int]
    ) -> None:
        seq, identity = event.seq, identity_of_birth(birth)
        alike = self._alike.setdefault(identity, [])
        # Of several that are known the newest: what ended it has ended the older ones too.
        row = next((one for one in reversed(alike) if not self._is_closed(one)), None)
        if row is None or self._has_moved_on(row, birth):
            row = self._first_row + len(self._births)
            depth = self._depth_after(event.causation)
            self._births.append((*birth[:11], depth, birth[12]))
            alike.append(row)
            if birth[8] <= birth[7]:
                self._note(seq, birth[2], FactOddity.EMPTY_RANGE)
        else:
            self._repeats.append((seq, row, birth[9], birth[10]))
        self._rows[seq] = row
        for place in body.evidence:
            start = NO_PLACE if place.start is None else place.start
            end = NO_PLACE if place.end is None else place.end
            self._evidence.append((seq, row, place.frame, start, end))
        texts = strings[1 : 1 + len(body.assumptions)]
        self._assumptions += [(seq, row, self._code(code)) for code in texts]

    def _has_moved_on(self, row: int, birth: FactBirth) -> bool:
        """Tell whether another value of a functional predicate has begun since a row did.

        Of a subject that is read as the same now; a value that is named otherwise is another one,
        since a merge can be taken back.
        """
        columns = self._columns
        if not birth[12] & FLAG_FROM_RECORDED:
            return False
        tenant = columns.scope_tenant[birth[2]]
        if not self._entities.functional.get((tenant, birth[4])):
            return False
        began = self._column(row, 7)
        for other in self._rows_read_as(tenant, row):
            if (
                self._column(other, 4) == birth[4]
                and columns.scope_tenant[self._column(other, 2)] == tenant
                and not self._is_closed(other)
                and began < self._column(other, 7) <= birth[1]
                and self._column(other, 7) < self._column(other, 8)
                and (self._column(other, 5), self._column(other, 6)) != (birth[5], birth[6])
            ):
                return True
        return False

    def _rows_read_as(self, tenant: int, row: int) -> list[int]:
        """Return the rows whose subject is read as that of a row is."""
        entities = self._entities
        root = entities.read(tenant, row, self._column(row, 3))
        names = entities.names_of(tenant, root)
        rows = {one for name in names for one in self._columns.rows_of_subject(name)}
        own = enumerate(self._births, start=self._first_row)
        rows.update(one for one, birth in own if birth[3] in names)
        rows.update(entities.split_rows)
        return [one for one in rows if entities.read(tenant, one, self._column(one, 3)) == root]

    def _column(self, row: int, place: int) -> int:
        """Return an item of a birth, of this batch or an earlier one."""
        if row >= self._first_row:
            return self._births[row - self._first_row][place]
        return int(self._columns.births[place][1].view()[row])

    def _depth_after(self, cause: int | None) -> int:
        """Return one more than the depth of the fact that is the cause, or that of one it ended."""
        if cause is None:
            return 0
        row = self._row_of(cause)
        if row is not None:
            return min(self._column(row, 11) + 1, _DEPTH_MAX)
        row = self._ended.get(cause)
        if row is None:
            row = self._columns.row_closed_by(cause)
        return 0 if row is None else self._column(row, 11)

    def _row_of(self, seq: int) -> int | None:
        row = self._rows.get(seq)
        return self._columns.row_of(seq) if row is None else row

    def _is_closed(self, row: int) -> bool:
        return row in self._closed or (row < self._first_row and self._columns.is_closed(row))

    def _retract(self, event: FoldedEvent, body: RetractFact, scope: int) -> None:
        row = self._row_of(body.fact) if body.fact < event.seq else None
        if row is None:
            self._note(event.seq, scope, FactOddity.UNKNOWN_REFERENCE)
        elif self._is_closed(row):
            self._note(event.seq, scope, FactOddity.ALREADY_CLOSED)
        else:
            self._closed.add(row)
            self._ended[event.seq] = row
            self._closings.append((event.seq, event.recorded, row))

    # --- predicates and entities -----------------------------------------------------------------

    def _act(
        self, event: FoldedEvent, scope: int, names: Sequence[int], strings: Sequence[int]
    ) -> None:
        body, seq = event.body, event.seq
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
            held = self._entities.ended_by
            if target not in held or (held[target] is not None) is not is_merge:
                self._note(seq, scope, FactOddity.UNKNOWN_REFERENCE)
            else:
                self._take(seq, scope, Act.END, 0, 0, target)

    def _merge(self, seq: int, scope: int, entity: int, into: int) -> None:
        tenant = self._columns.scope_tenant[scope]
        if (tenant, entity) in self._entities.merged:
            self._note(seq, scope, FactOddity.ALREADY_CLOSED)
        elif self._entities.ends_at(tenant, into) == entity:
            self._note(seq, scope, FactOddity.CYCLE)
        else:
            self._take(seq, scope, Act.MERGE, entity, into, 0)

    def _split(self, seq: int, scope: int, settled: Sequence[int], facts: Sequence[int]) -> None:
        rows = [self._row_of(fact) if fact < seq else None for fact in facts]
        for row in rows:
            if row is None:
                self._note(seq, scope, FactOddity.UNKNOWN_REFERENCE)
            else:
                self._take(seq, scope, Act.SPLIT, settled[0], settled[1], row)

    def _take(self, seq: int, scope: int, what: Act, one: int, other: int, number: int) -> None:
        self._acts.append((seq, scope, what, one, other, number))
        self._entities.take(seq, self._columns.scope_tenant[scope], what, one, other, number)

    def _note(self, seq: int, scope: int, oddity: FactOddity) -> None:
        self._acts.append((seq, scope, Act.ODDITY, 0, 0, oddity))


def _millionths(confidence: float) -> int:
    """Return a confidence as it is kept; one that is none counts as certain."""
    if not 0.0 <= confidence <= 1.0:
        return _CONFIDENCE_UNIT
    return round(confidence * _CONFIDENCE_UNIT)


def folded_name(name: str) -> str:
    """Return a name as aliases are compared: case, accents, punctuation and spaces do not count."""
    return " ".join(word.decode() for word in words(name))
