"""Hypothesis strategies: events of any kind, and stories of a workload.

Owns the strategy of an event, derived from its class. This module needs Hypothesis, and no other
module of Cerata imports it.

>>> from hypothesis import given, settings
>>> from cerata.fault_injection.stories.workload import Workload, operation
>>> class Notes(Workload):
...     @operation
...     def note(self, store):
...         store.put_frame("tea is at four")
>>> @settings(max_examples=5, database=None)
... @given(story=stories(Notes))
... def test(story):
...     assert set(story) <= {"note", "checkpoint", "reopen", "kill"}
>>> test()
"""

from typing import Any, Final, TypeVar

from msgspec import inspect

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import EventBody
from cerata.engine.late import install_command

from .stories.workload import Workload

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise Unsupported(
        "Strategies need Hypothesis, which is not installed",
        remedy=f"Run {install_command('testing')}.",
    ) from error

__all__ = ["event", "events", "stories"]

BodyType = TypeVar("BodyType", bound=EventBody)

_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 63) - 1
_SIZE_MAX: Final = 4
"""Items of a drawn collection, unless its type requires more."""


def event(
    kind: type[BodyType], **fields: "st.SearchStrategy[Any]"
) -> "st.SearchStrategy[BodyType]":
    """Return a strategy for events of a kind, drawn by the types of its fields.

    A field with a default is drawn, too, if the kind is user-defined; in Cerata's kinds, such as
    `PutFrame`, it keeps its default unless ``fields`` names it.

    Args:
        kind: the class of the events.
        fields: strategies for some of the fields, by name.

    Raises:
        InvalidInput: a field does not exist, or its type has no strategy.
    """
    drawn: dict[str, st.SearchStrategy[Any]] = {}
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    unknown = sorted(set(fields) - {field.name for field in described.fields})
    if unknown:
        raise InvalidInput(
            f"{kind.__name__} has no field {unknown[0]!r}", remedy="Name a field of the event."
        )
    is_own = not kind.__module__.startswith("cerata.")
    for field in described.fields:
        if field.name in fields:
            drawn[field.name] = fields[field.name]
        elif field.required or is_own:
            drawn[field.name] = _of(field.type, f"{kind.__name__}.{field.name}")
    return st.builds(kind, **drawn)


def events(
    *kinds: "type[EventBody] | st.SearchStrategy[Any]", min_size: int = 1, max_size: int = 20
) -> "st.SearchStrategy[list[EventBody]]":
    """Return a strategy for lists of events of these kinds.

    Args:
        kinds: classes of events, or strategies for events.
        min_size: the least number of events.
        max_size: the greatest number of events.

    Raises:
        InvalidInput: no kind is given, or a kind has no strategy.
    """
    if not kinds:
        raise InvalidInput("No kind of event is given", remedy="Pass the classes to draw.")
    each = [event(kind) if isinstance(kind, type) else kind for kind in kinds]
    return st.lists(st.one_of(each), min_size=min_size, max_size=max_size)


def stories(
    workload: type[Workload], *, min_size: int = 1, max_size: int = 8
) -> "st.SearchStrategy[list[str]]":
    """Return a strategy for stories of a workload, for ``assert_crash_safe(story=…)``.

    They shrink to the shortest story that still fails, towards the first operations.

    Args:
        workload: the class of the workload.
        min_size: the least number of operations.
        max_size: the greatest number of operations.
    """
    return st.lists(st.sampled_from(workload().alphabet()), min_size=min_size, max_size=max_size)


# --- from types to strategies --------------------------------------------------------------------


def _of(kind: inspect.Type, where: str) -> "st.SearchStrategy[Any]":
    """Return a strategy for a type as msgspec describes it, within its limits."""
    match kind:
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            low = _INT_MIN if kind.ge is None else kind.ge
            low = low if kind.gt is None else max(low, kind.gt + 1)
            high = _INT_MAX if kind.le is None else kind.le
            high = high if kind.lt is None else min(high, kind.lt - 1)
            return st.integers(low, high)
        case inspect.FloatType():
            return st.floats(kind.ge, kind.le, allow_nan=False, allow_infinity=False)
        case inspect.StrType() if kind.pattern is None:
            return st.text(_CHARACTERS, min_size=kind.min_length or 0, max_size=kind.max_length)
        case inspect.StrType():
            return st.from_regex(kind.pattern or "", alphabet=_CHARACTERS)
        case inspect.BytesType():
            return st.binary(min_size=kind.min_length or 0, max_size=kind.max_length)
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.EnumType():
            return st.sampled_from(kind.cls)
        case inspect.UnionType():
            return st.one_of([_of(option, where) for option in kind.types])
        case inspect.StructType():
            return st.builds(
                kind.cls, **{field.name: _of(field.type, where) for field in kind.fields}
            )
        case inspect.TupleType():
            return st.tuples(*(_of(item, where) for item in kind.item_types))
        case inspect.VarTupleType():
            return _lists(kind, where).map(tuple)
        case inspect.ListType():
            return _lists(kind, where)
        case inspect.DictType():
            keys = _of(kind.key_type, where)
            values = _of(kind.value_type, where)
            return st.dictionaries(keys, values, max_size=_SIZE_MAX)
        case inspect.AnyType():
            return _ANYTHING
        case _:
            raise InvalidInput(
                f"No strategy can draw a {type(kind).__name__}",
                where=where,
                remedy="Pass a strategy for the field: event(Kind, field=…).",
            )


def _lists(
    kind: inspect.ListType | inspect.VarTupleType, where: str
) -> "st.SearchStrategy[list[Any]]":
    low = kind.min_length or 0
    high = max(low, _SIZE_MAX) if kind.max_length is None else kind.max_length
    return st.lists(_of(kind.item_type, where), min_size=low, max_size=high)


_CHARACTERS = st.characters(exclude_categories=["Cs"])
_PLAIN = st.one_of(st.none(), st.booleans(), st.integers(_INT_MIN, _INT_MAX), st.text(_CHARACTERS))
_ANYTHING: "st.SearchStrategy[Any]" = st.recursive(
    _PLAIN,
    lambda inner: (
        st.lists(inner, max_size=_SIZE_MAX)
        | st.dictionaries(st.text(_CHARACTERS), inner, max_size=_SIZE_MAX)
    ),
    max_leaves=6,
)
