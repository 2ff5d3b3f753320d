"""Packs of the user: each is checked once, then it is a pack of this process.

Owns the checks of names, events and targets. Leaves out states, which a store takes
(`cerata.projections.registry`), and the table of packs (`packs`).
"""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Final, TypeGuard

from .errors import CerataError, InvalidInput, value_text
from .events import kind_named
from .late import loading
from .packs import Pack, State, add_pack, packs, target
from .verbs import Addition, Verb

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_MUTEX: Final = threading.Lock()


def checked_packs(chosen: object) -> tuple[Pack, ...]:
    """Return the packs of an argument.

    Raises:
        InvalidInput: it is no list of packs; a pack has no usable name, or the name, a wire name, a
            state, an importer, a verb or a group of another pack; or a part cannot be loaded.
    """
    if not _is_list(chosen):
        raise InvalidInput(
            f"packs must be a list of packs, not {value_text(chosen)}", remedy="Pass packs=[PACK]."
        )
    checked: list[Pack] = []
    for pack in chosen:
        if not isinstance(pack, Pack):
            raise InvalidInput(
                f"{value_text(pack)} is no pack",
                remedy="Pass values of cerata.Pack, such as the PACK of a module.",
            )
        if pack in checked:
            continue
        if pack not in packs():
            _check(pack, checked)
        checked.append(pack)
    return tuple(checked)


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Pack)


def add_packs(chosen: Iterable[Pack]) -> None:
    """Make checked packs those of this process; a pack that it has already is left alone.

    Raises:
        InvalidInput: as `checked_packs`, if another thread has just taken a name.
    """
    with _MUTEX:
        for pack in chosen:
            if pack not in packs():
                # Another thread may have added a pack since the check of this one.
                _check(pack, ())
                add_pack(pack)


def _check(pack: Pack, beside: Iterable[Pack]) -> None:
    where = f"pack {pack.name!r:.80}"
    if not isinstance(pack.name, str) or not _NAME.fullmatch(pack.name):
        raise InvalidInput(
            f"A pack cannot be named {pack.name!r:.80}",
            remedy="Use lower-case letters, digits, '-' and '_', such as 'garden'.",
        )
    for field, values in (("states", State), ("verbs", Verb), ("additions", Addition)):
        for value in getattr(pack, field):
            if not isinstance(value, values):
                raise InvalidInput(
                    f"A value of {field} must be {values.__name__}, not {value_text(value)}",
                    where=where,
                    remedy=f"Pass a tuple of {values.__name__} values.",
                )
    for holder in (*packs(), *beside):
        for kind, names, taken in _named(pack, holder):
            if reused := sorted(names & taken):
                raise InvalidInput(
                    f"The {kind} {reused[0]!r} is taken by the pack {holder.name!r}",
                    where=where,
                    remedy=f"Choose another {kind}.",
                )
    if early := [state.name for state in pack.states if state.before is not None]:
        raise InvalidInput(
            f"The state {early[0]!r} is to be saved before a state of Cerata",
            where=where,
            remedy="Leave before=None; states of a user's pack are saved last.",
        )
    for wire_name, module in pack.events.items():
        _check_event(wire_name, module, where)
    for name in (
        *pack.rules,
        *filter(None, [pack.moved]),
        *(state.target for state in pack.states),
        *(verb.run for verb in pack.verbs),
        *(addition.run for addition in pack.additions),
    ):
        _loaded(name, where)


def _named(pack: Pack, holder: Pack) -> Iterator[tuple[str, set[str], set[str]]]:
    """Yield each sort of names that two packs must not share, with the names of both."""
    yield "name", {pack.name}, {holder.name}
    yield "wire name", {*pack.events}, {*holder.events}
    yield "state", {each.name for each in pack.states}, {each.name for each in holder.states}
    yield "importer", {*pack.importers}, {*holder.importers}
    yield "verb", {each.words for each in pack.verbs}, {each.words for each in holder.verbs}
    yield "group", {*pack.groups}, {*holder.groups}


def _check_event(wire_name: str, module: str, where: str) -> None:
    kind = kind_named(wire_name)
    if kind is not None and kind.__module__ != module:
        raise InvalidInput(
            f"The wire name {wire_name!r} is taken by {kind.__module__}.{kind.__qualname__}",
            where=where,
            remedy="Choose another wire name.",
        )
    _loaded(module, where)
    kind = kind_named(wire_name)
    if kind is None or kind.__module__ != module:
        raise InvalidInput(
            f"The module {module!r} registers no event {wire_name!r}",
            where=where,
            remedy=f"Decorate its class with @cerata.event({wire_name!r}).",
        )


def _loaded(name: str, where: str) -> None:
    try:
        if ":" in name:
            target(name)
        else:
            with loading(name):
                import_module(name)
    except (MemoryError, CerataError):
        raise
    except Exception as error:
        raise InvalidInput(
            f"{name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=where,
            remedy="Name modules that can be imported, and names in them as 'module:name'.",
        ) from error
