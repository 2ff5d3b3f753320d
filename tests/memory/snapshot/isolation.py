"""Isolation: no public name of a scoped store shows what another tenant wrote.

Seven owners (two tenants, two users of the first, and the tenants 1, "1" and True) write into one
file. Each then opens it with its scope and calls every public name of Store, View and Transaction
with its own arguments and with those of the others. A leak is an answer, exception, pickle or text
with a word of an owner outside the scope, or an answer that differs from that of a file in which
empty events stand in for what the reader may not see. ``python -m tests.memory.snapshot.isolation``
prints the figures.
"""

import pickle
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, cast

import msgspec
import numpy as np

import cerata
from cerata import agents
from cerata.engine.events import RecallContext
from cerata.engine.log import Log
from cerata.memory.batch.block import Block
from cerata.memory.batch.transaction import Transaction, block_of
from cerata.memory.handles import public_names as names_of
from cerata.memory.snapshot.layers import Layers

from .isolation_calls import BLOCK, STORE, TRANSACTION, UNCOMPARED, VIEW, WRITES, Calls, Case
from .tenants import (
    READERS,
    SCOPES,
    SHARED,
    World,
    alone,
    is_seen,
    owner_of,
    secrets,
    whole,
)

TABLES: Final[Mapping[str, Mapping[str, Calls | str]]] = {
    "Store": {**STORE, **WRITES},
    "View": VIEW,
    "Transaction": TRANSACTION,
    "Block": BLOCK,
}

_OPAQUE: Final = (cerata.Store, cerata.View, Transaction, Block, Log, Layers, type)
_DEPTH_MAX: Final = 7


def public_names(value: object) -> set[str]:
    """Return the names without an underscore of an object and its class."""
    kind = type(value)
    # A handle that was used is in the object too; its calls are those of the class.
    own = {one for one in vars(value) if not one.startswith("_") and not hasattr(kind, one)}
    return {*names_of(kind), *own}


def shown_by(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every text that a value shows: printed, as attributes, as a mapping, or pickled."""
    if depth > _DEPTH_MAX or value is None or isinstance(value, bool | int | float | datetime):
        return
    if isinstance(value, str | bytes):
        yield value if isinstance(value, str) else value.decode("utf-8", "replace")
        return
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from shown_by(key, depth + 1)
            yield from shown_by(item, depth + 1)
        return
    if isinstance(value, list | tuple | set):
        for item in cast("Iterable[object]", value):
            yield from shown_by(item, depth + 1)
        return
    yield repr(value)
    yield str(value)
    if isinstance(value, BaseException):
        yield from shown_by((value.args, value.__cause__, value.__context__), depth + 1)
    if not isinstance(value, _OPAQUE) and type(value).__module__.startswith(("cerata", "tests")):
        for name in _fields(cast("Any", type)(value)):
            yield from shown_by(getattr(value, name, None), depth + 1)
        if callable(to_dict := getattr(value, "to_dict", None)):
            yield from shown_by(to_dict(), depth + 1)
        yield _pickled(value)


_FIELDS: Final[dict[object, list[str]]] = {}


def _fields(kind: Any) -> list[str]:
    """Return the public attributes of a class that are no methods."""
    if kind not in _FIELDS:
        _FIELDS[kind] = _found_fields(kind)
    return _FIELDS[kind]


def _found_fields(kind: Any) -> list[str]:
    names = [*dir(kind), *getattr(kind, "__annotations__", ())]
    return [
        name
        for name in dict.fromkeys(names)
        if not name.startswith("_") and not callable(getattr(kind, name, None)) and name != "search"
    ]


def _pickled(value: Any) -> str:
    try:
        return pickle.dumps(value).decode("utf-8", "replace")
    except Exception:  # noqa: BLE001 - what cannot be pickled shows nothing
        return ""


def plain(value: Any) -> object:
    """Return an answer as a value that two files can be compared by."""
    if isinstance(value, BaseException):
        return type(value).__name__, str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, cerata.Event):
        body = value.body
        if isinstance(body, RecallContext):
            # Its hash is bound to random salts, so it differs between any two files.
            body = msgspec.structs.replace(body, context=b"")
        return repr(value), repr(value.scope), repr(body)
    if callable(to_dict := getattr(value, "to_dict", None)):
        return to_dict()
    if isinstance(value, Mapping):
        return {
            repr(key): plain(item) for key, item in cast("Mapping[object, object]", value).items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in cast("Sequence[object]", value)]
    return repr(value)


@dataclass
class Sweep:
    """What was called, and what leaked; with ``only``, of these names."""

    only: Collection[str] = ()
    calls: int = 0
    leaks: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        counts = ", ".join(f"{kind} {len(table)}" for kind, table in TABLES.items())
        total = sum(map(len, TABLES.values()))
        return (
            f"The isolation test over all public names: {len(self.leaks):,} leaks\n"
            f"{total:,} public names ({counts}), {self.calls:,} calls, {len(READERS)} readers"
        )

    def read(self, case: Case, table: Mapping[str, Calls | str]) -> list[object]:
        """Call all that a table has, note what leaks, and return the answers."""
        answers: list[object] = []
        for name, calls in table.items():
            if isinstance(calls, str) or (self.only and name not in self.only):
                continue
            for call, texts in calls(case):
                self.calls += 1
                answers.append((name, self._answer(case.reader, name, call, texts)))
        return answers

    def _answer(
        self, reader: str, name: str, call: Callable[[], object], texts: Sequence[str]
    ) -> object:
        try:
            answer = call()
            if isinstance(answer, Iterator):
                answer = list(cast("Iterator[object]", answer))
        except cerata.CerataError as error:
            answer = error
        text = "\n".join(shown_by(answer))
        for given in texts:
            # An error may repeat what the caller gave, in lower case too.
            text = re.sub(re.escape(given), "", text, flags=re.IGNORECASE) if given else text
        for secret in secrets(reader):
            if secret in text:
                self.leaks.append(f"{reader}: {name} shows {secret}")
        return None if name in UNCOMPARED else plain(answer)

    def compare(self, reader: str, several: Sequence[Sequence[object]]) -> None:
        """Note which answers over the whole file differ from those over the reader's part."""
        for one, other in zip(*several, strict=True):
            if one != other:
                self.leaks.append(f"{reader}: {one!r:.400} is without the others {other!r:.400}")

    def answers(self, reader: str, world: World, ids: Sequence[int]) -> list[object]:
        """Return what a reader is answered, first by reads and then by writes."""
        with world.open_as(reader) as store, world.open(None) as whole_file:
            case = Case(reader, store, store, world.own[owner_of(reader)], ids)
            answers = self.read(case, STORE)
            case.asked = store.history.view()
            answers += self.read(case, VIEW)
            before = _unchanged_by(whole_file, reader)
            case.asked = store
            answers += self.read(case, WRITES)
            with store.transaction(key="shared-key") as transaction:
                case.asked = transaction
                answers += self.read(case, TRANSACTION)
                case.asked = block = block_of(transaction)
                answers += self.read(case, BLOCK)
                block.drafts.clear()
                block.payloads.clear()
            case.asked = transaction
            answers += self.read(case, TRANSACTION)
            if _unchanged_by(whole_file, reader) != before:
                self.leaks.append(f"{reader}: a write changed what others have")
        return answers


def sweep(
    readers: Iterable[str] = READERS,
    only: Collection[str] = (),
    during: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Sweep:
    """Call public names as each reader, over the whole file and over the reader's part of it."""
    found = Sweep(only)
    everything = whole()
    for reader in readers:
        ids = _ids(everything, reader)
        worlds = everything.copy(), alone(reader).copy()
        with during():
            found.compare(reader, [found.answers(reader, one, ids) for one in worlds])
    return found


def _ids(world: World, reader: str) -> list[int]:
    """Return the ids of all that a reader has, and of each kind of thing one of another owner."""
    with world.open(None) as store:
        end = store.head.seq
    hidden = [one for one in SCOPES if not is_seen(one, reader)]
    found = {-1, 0, end, end + 1}
    for place, name in enumerate(world.own[owner_of(reader)]):
        for owner in (owner_of(reader), hidden[place % len(hidden)]):
            made = world.own[owner][name]
            found.update(made.seqs if isinstance(made, cerata.Receipt) else ())
    return sorted(found)


def _unchanged_by(store: cerata.Store, reader: str) -> list[object]:
    """Return all that owners have whose scope has nothing in common with the reader's.

    For a shared reader also what is shared, as a user sees it who wrote nothing.
    """
    own = owner_of(reader)
    apart = [one for one in SCOPES if not (is_seen(one, reader) or is_seen(own, one))]
    views = [store.history.view().within(tuple(SCOPES[one].items())) for one in apart]
    if reader == SHARED:
        views.append(store.history.view().within({**SCOPES[own], "user": "us-z"}, shared=True))
    return [
        [
            plain(
                [*view.frames(where=cerata.Filter(include_deleted=True, include_superseded=True))]
            ),
            plain(view.facts(include_retracted=True)),
            plain(view.graph.links(include_unlinked=True)),
            plain([*view.graph.entities()]),
            plain([*agents.accesses(view)]),
            view.history.tags(),
        ]
        for view in views
    ]


def read_shared() -> Sweep:
    """Compare a shared reader with a reader of the tenant over the events that it may see.

    The second reader's scope admits every event of its file, so a missing event shows as well.
    """
    found = Sweep()
    tables = [
        {name: calls for name, calls in table.items() if name not in OWN_SCOPE}
        for table in (STORE, VIEW)
    ]
    ids = _ids(whole(), SHARED)
    answers: list[Sequence[object]] = []
    worlds = whole().copy(), alone(SHARED).copy()
    for world, reader in zip(worlds, (SHARED, "alpha"), strict=True):
        with world.open_as(reader) as store:
            case = Case(SHARED, store, store, world.own[owner_of(SHARED)], ids)
            several = found.read(case, tables[0])
            case.asked = store.history.view()
            answers.append([*several, *found.read(case, tables[1])])
    found.compare(SHARED, answers)
    return found


OWN_SCOPE: Final = (
    *("scope", "scoped", "shared", "within", "verify", "upkeep.info", "upkeep.rebuild"),
)
"""Names whose answers show the reader's scope, or change or describe the whole file."""


def main() -> int:
    found, shared = sweep(), read_shared()
    found.leaks += shared.leaks
    found.calls += shared.calls
    sys.stdout.write("\n".join([*found.leaks, str(found), ""]))
    return bool(found.leaks)


if __name__ == "__main__":
    raise SystemExit(main())
