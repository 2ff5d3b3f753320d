"""Random filters, each with the plain Python predicate that it stands for."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from hypothesis import strategies as st

from cerata.engine.events import PutFrame, ScopeValue
from cerata.projections.columnar.times import to_datetime
from cerata.projections.frames.filters import Filter

from ..histories import Folded, metadata_values

Predicate: TypeAlias = Callable[[Folded], bool]
Pair: TypeAlias = tuple[Filter, Predicate]

KEYS = ("n", "year", "tag", "n.a", "n.n", "tag.a", "n.a.n")
_SCOPE_VALUES: tuple[ScopeValue, ...] = ("default", "s1", 1, True)
TIMES = st.integers(-3, 45).map(lambda seq: 1_000 * seq)

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def family(value: object) -> type | None:
    """The values that compare with each other; lists and maps with none."""
    if value is None or isinstance(value, bool | str):
        return type(value)
    return float if isinstance(value, int | float) else None


def at_path(name: str, value: object, path: str) -> Iterator[tuple[object, bool]]:
    """Yield the values at a path of a value called ``name``, and whether each lies in a list."""
    if name == path:
        yield value, False
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from at_path(f"{name}.{key}", inner, path)
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from ((found, True) for found, _ in at_path(name, item, path))


def values_at(path: str, body: PutFrame, *, in_list: bool) -> list[object]:
    return [
        value
        for name, top in body.metadata.items()
        for value, is_item in at_path(name, top, path)
        if is_item is in_list
    ]


def compares(name: str, test: str, bound: object, body: PutFrame, *, in_list: bool = False) -> bool:
    found = values_at(name, body, in_list=in_list)
    if test == "!=":
        # The exact complement of "=" among the frames that have the key.
        return bool(found) and not compares(name, "=", bound, body)
    return any(
        family(value) is not None
        and family(value) is family(bound)
        and _COMPARISONS[test](value, bound)
        for value in found
    )


def body_test(test: Callable[[PutFrame], bool]) -> Predicate:
    """A test of the payload, which an erased event has not."""
    return lambda event: isinstance(event.body, PutFrame) and test(event.body)


def made(event: Folded) -> int:
    body = event.body
    given = body.created if isinstance(body, PutFrame) else None
    return event.recorded if given is None else given


def content_times(event: Folded) -> list[int]:
    dates = event.body.content_dates if isinstance(event.body, PutFrame) else ()
    return sorted(set(dates)) or [made(event)]


@st.composite
def _metadata(draw: st.DrawFn) -> Pair:
    name = draw(st.sampled_from(KEYS))
    test = draw(
        st.sampled_from(("=", "!=", "<", "<=", ">", ">=", "in", "exists", "plain", "contains"))
    )
    if test == "exists":
        there = draw(st.booleans())
        return Filter(metadata={name: (test, there)}), (
            lambda event: (
                bool(
                    isinstance(event.body, PutFrame) and values_at(name, event.body, in_list=False)
                )
                is there
            )
        )
    if test == "in":
        bounds = draw(st.lists(metadata_values, max_size=3))
        return Filter(metadata={name: (test, bounds)}), body_test(
            lambda body: any(compares(name, "=", bound, body) for bound in bounds)
        )
    values = metadata_values
    if test == "contains":
        item = draw(values)
        return Filter(metadata={name: (test, item)}), body_test(
            lambda body: compares(name, "=", item, body, in_list=True)
        )
    if test not in ("=", "!=", "plain"):
        values = values.filter(lambda value: value is not None and not isinstance(value, bool))
    bound = draw(values)
    given = bound if test == "plain" else (test, bound)
    sign = "=" if test == "plain" else test
    return Filter(metadata={name: given}), body_test(lambda body: compares(name, sign, bound, body))


@st.composite
def _during(draw: st.DrawFn) -> Pair:
    first, second = draw(st.none() | TIMES), draw(st.none() | TIMES)
    if first is not None and second is not None and second < first:
        first, second = second, first
    span = tuple(None if one is None else to_datetime(one) for one in (first, second))
    start, end = span
    name = draw(st.sampled_from(("created", "recorded", "content")))

    def inside(time: int) -> bool:
        return (first is None or first <= time) and (second is None or time < second)

    match name:
        case "created":
            return Filter(created=(start, end)), lambda event: inside(made(event))
        case "recorded":
            return Filter(recorded=(start, end)), lambda event: inside(event.recorded)
        case _:
            return Filter(content=(start, end)), lambda event: any(
                map(inside, content_times(event))
            )


def _tags(tags: Sequence[str]) -> Pair:
    return Filter(tags=tags), (
        lambda event: (
            not tags or (isinstance(event.body, PutFrame) and set(tags) <= set(event.body.tags))
        )
    )


def _label(label: str) -> Pair:
    return Filter(labels=[label]), body_test(lambda body: label in body.labels)


def _kind(kinds: Sequence[str]) -> Pair:
    return Filter(kind=kinds), body_test(lambda body: body.kind in kinds)


def _role(role: str) -> Pair:
    return Filter(role=role), body_test(lambda body: body.role == role)


def _track(tracks: Sequence[str]) -> Pair:
    return Filter(track=tracks), body_test(lambda body: body.track in tracks)


def _uri(prefix: str) -> Pair:
    return Filter(uri_prefix=prefix), body_test(
        lambda body: body.uri is not None and body.uri.startswith(prefix)
    )


def _scope(pairs: Sequence[tuple[str, ScopeValue]]) -> Pair:
    scope = dict(pairs)

    def holds(event: Folded) -> bool:
        have = dict(event.scope)
        return all(
            name in have and type(have[name]) is type(value) and have[name] == value
            for name, value in scope.items()
        )

    return Filter(scope=scope), holds


def _absent(name: str) -> Pair:
    field, _, last = name.rpartition(".")

    def holds(event: Folded) -> bool:
        metadata = event.body.metadata if isinstance(event.body, PutFrame) else {}
        parts = {"scope": dict(event.scope), "metadata": metadata}
        return not any(last in part for name, part in parts.items() if field in ("", name))

    return Filter(absent=[name]), holds


_leaves: st.SearchStrategy[Pair] = st.one_of(
    st.sampled_from(("session_id", "scope.run", "n", "metadata.n", "scope.n", "none")).map(_absent),
    _metadata(),
    _metadata(),
    _during(),
    st.lists(st.sampled_from(("decision", "memory", "none")), max_size=2).map(_tags),
    st.sampled_from(("red", "decision")).map(_label),
    st.lists(st.sampled_from(("text", "note", "none")), min_size=1, max_size=2).map(_kind),
    st.sampled_from(("user", "tool")).map(_role),
    st.lists(st.sampled_from(("main", "side")), min_size=1, max_size=2).map(_track),
    st.sampled_from(("", "f", "file:", "file:a", "file:///home/ab", "file:///home/abcd")).map(_uri),
    st.lists(
        st.tuples(
            st.sampled_from(("tenant", "session_id", "run")),
            st.sampled_from(_SCOPE_VALUES),
        ),
        max_size=2,
    ).map(_scope),
)


def _both(pairs: tuple[Pair, Pair]) -> Pair:
    (left, is_left), (right, is_right) = pairs
    return left & right, lambda event: is_left(event) and is_right(event)


def _any(pairs: tuple[Pair, Pair]) -> Pair:
    (left, is_left), (right, is_right) = pairs
    return left | right, lambda event: is_left(event) or is_right(event)


def _not(pair: Pair) -> Pair:
    inner, holds = pair
    return ~inner, lambda event: not holds(event)


filters: st.SearchStrategy[Pair] = st.recursive(
    _leaves,
    lambda inner: (
        st.tuples(inner, inner).map(_both) | st.tuples(inner, inner).map(_any) | inner.map(_not)
    ),
    max_leaves=5,
)
