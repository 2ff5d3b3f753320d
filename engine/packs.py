"""Packs: features that add events, states, rules and importers to the kernel by name.

Example: a pack says that the module ``garden.events`` registers the event "garden.water". The
kernel loads that module when it reads the first such event.

Owns `Pack` and the packs of this process, and passes on the names that a pack's module needs. A
pack names modules and loads none of them, so that reading it is cheap. Leaves out the content of
those modules: each room reads its part of a pack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Final, NamedTuple, ParamSpec, TypeVar, cast

from .late import loading
from .verbs import ACTOR, AT, EMBEDDER, LISTS, Addition, Arg, Option, Verb, identifier, seconds

__all__ = [
    "ACTOR",
    "AT",
    "EMBEDDER",
    "LISTS",
    "Addition",
    "Arg",
    "Option",
    "Owned",
    "Pack",
    "Role",
    "State",
    "Verb",
    "add_pack",
    "identifier",
    "load_kind",
    "of_packs",
    "pack_of",
    "packs",
    "saved_names",
    "seconds",
    "shipped_packs",
    "target",
]

_EMPTY: Final[Mapping[str, str]] = {}


class Role:
    """The writer behind a handle; ``subject`` begins a refusal. A pack may add a role."""

    __slots__ = ("subject",)

    PROGRAM: ClassVar[Role]
    AGENT: ClassVar[Role]
    TOOL: ClassVar[Role]
    EXTRACTOR: ClassVar[Role]
    IMPORTER: ClassVar[Role]
    COPY: ClassVar[Role]
    """An import of events of another log, with their history."""

    def __init__(self, subject: str) -> None:
        self.subject = subject

    def __repr__(self) -> str:
        return f"Role({self.subject!r})"


Role.PROGRAM = Role("A program")
Role.AGENT = Role("An agent")
Role.TOOL = Role("A tool of a model")
Role.EXTRACTOR = Role("An extractor")
Role.IMPORTER = Role("An importer")
Role.COPY = Role("An import of events")


class Owned(NamedTuple):
    """Frames and events that only their owners write, change or hide.

    - ``kinds`` are kinds of frames, with all frames below, such as the results below a run.
      ``uris`` are starts of URIs, which make a frame of any kind the owner's. ``events`` are wire
      names.
    - ``owner`` is the role that may write them beside a program; None for programs alone.
    - If ``is_copied`` is False, an import of events into another log leaves them out.
    - If ``is_memory`` is False, a search returns the frames only if its filter or query names
      their kind: they are about a change that a person decides, or thoughts that lead to one.
    """

    name: str
    owner: Role | None
    kinds: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    is_copied: bool = True
    is_memory: bool = True

    def admits(self, role: Role) -> bool:
        """Return whether a role may write, change and hide these frames and events."""
        if role is Role.COPY:
            return self.is_copied
        return role in (Role.PROGRAM, self.owner)


class State(NamedTuple):
    """A projection that a pack adds.

    - ``name`` is the name of the projection.
    - ``key`` names its checkpoint in a file: name, version, and 8 bytes of the hash of its
      parameters in hexadecimal digits. So a checkpoint is found without the class.
    - ``target`` is the class, a `RowProjection`, as ``module:name``. A shipped pack may have a
      projection of columns, too.
    - ``before`` is the state of the kernel before which a shipped pack's state is saved; default
      after all of these. On disk: never change the order.
    """

    name: str
    key: str
    target: str
    before: str | None = None


class Pack(NamedTuple):
    """The parts of a feature, by name; a part is a module, or ``module:name``.

    - ``name`` is the name of the pack.
    - ``events`` maps each wire name to the module that registers its body with `@event`.
    - ``acts`` maps a wire name to the word for it in the log that people read.
    - ``states`` are the projections, in the order in which they are saved.
    - ``rules`` are classes of rules; they check a batch that holds one of ``events``.
    - ``owns`` are the frames and events that only some roles may write; an event without a row
      is for programs alone.
    - ``role`` is the writer behind the handles of the pack's adapter and importers, if any.
    - ``moved`` is a function ``(body, moved)`` that returns a body with the ids inside it moved,
      when a fork or an import moves the frames that they name.
    - ``importers`` maps a kind of source to the function that opens it.
    - ``functions`` maps the name of a function that takes the store first to its public place, for
      the error of a store that is asked for it.
    - ``verbs`` are the verbs of the command line, ``groups`` its new groups with a few words on
      each, ``additions`` its options for other verbs, and ``renamed`` maps a verb of an earlier
      build to the words that do its work.
    - ``docs`` are its pages in docs/, for the index of a pack that Cerata ships.
    - ``resident`` are modules that `cerata.open` loads: a later read may find no descriptor.
    """

    name: str
    events: Mapping[str, str] = _EMPTY
    acts: Mapping[str, str] = _EMPTY
    states: tuple[State, ...] = ()
    rules: tuple[str, ...] = ()
    owns: tuple[Owned, ...] = ()
    role: Role | None = None
    moved: str | None = None
    importers: Mapping[str, str] = _EMPTY
    functions: Mapping[str, str] = _EMPTY
    verbs: tuple[Verb, ...] = ()
    groups: Mapping[str, str] = _EMPTY
    additions: tuple[Addition, ...] = ()
    renamed: Mapping[str, str] = _EMPTY
    docs: tuple[str, ...] = ()
    resident: tuple[str, ...] = ()


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_ADDED: Final[list[Pack]] = []
_OF_PACKS: Final[list[Callable[[], None]]] = []


def of_packs(make: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return a function whose results follow from `packs`; they are kept until a pack is added."""
    cached = cache(make)
    _OF_PACKS.append(cached.cache_clear)
    return cast("Callable[_Arguments, _Result]", cached)


@cache
def shipped_packs() -> tuple[Pack, ...]:
    """Return the packs that Cerata ships, in the order in which their states are saved."""
    found: list[Pack] = []
    # The front door names them; an import of it here would close a circle with every room.
    for name in sys.modules["cerata"].PACKS:
        place = f"cerata.{name}.pack"
        with loading(place):
            found.append(import_module(place).PACK)
    return tuple(found)


def saved_names(kernel: Iterable[str]) -> list[str]:
    """Return the states of the kernel and of the shipped packs, in the order of their saving."""
    names = [*kernel]
    for state in (state for pack in shipped_packs() for state in pack.states):
        place = len(names) if state.before is None else names.index(state.before)
        names.insert(place, state.name)
    return names


def packs() -> tuple[Pack, ...]:
    """Return the packs of this process: the shipped ones, then the user's."""
    return (*shipped_packs(), *_ADDED)


@of_packs
def _by_kind() -> dict[str, Pack]:
    return {kind: pack for pack in packs() for kind in pack.events}


def pack_of(kind: str) -> Pack | None:
    """Return the pack of a kind of event, by its wire name; None if no pack has it."""
    # No answer is kept by name: a hostile file has as many unknown names as it has events.
    return _by_kind().get(kind)


def load_kind(kind: str) -> bool:
    """Import the module that registers a kind of event; return whether a pack has the kind.

    Raises:
        StorageFailed: the system refused to read the module's file.
    """
    pack = pack_of(kind)
    if pack is None:
        return False
    place = pack.events[kind]
    with loading(place):
        import_module(place)
    return True


@cache
def target(name: str) -> Any:
    """Return the value that a ``module:name`` stands for; its module is imported once.

    Raises:
        StorageFailed: the system refused to read the module's file.
    """
    place, _, attribute = name.partition(":")
    with loading(place):
        return getattr(import_module(place), attribute)


def add_pack(pack: Pack) -> None:
    """Add a pack of the user to this process; `cerata.engine.own_packs` checks it before."""
    _ADDED.append(pack)
    for clear in _OF_PACKS:
        clear()
