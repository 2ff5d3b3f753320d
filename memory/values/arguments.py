"""Drafting: arguments of calls become events, with checked values and times in microseconds.

Owns the arguments that all calls that put a frame share, scopes, and content hashes. Leaves out
the calls (`frames.commands`, `ingest.commands`) and appending (`batch.session`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from cerata.engine.arguments import exact_string, expect_bool, expect_type
from cerata.engine.draft_validation import check_not_pending, check_pairs, check_scope, check_string
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import DEFAULT_SCOPE, Draft, JsonValue, PutFrame, Scope, ScopeValue
from cerata.engine.integrity import hash_bytes
from cerata.engine.json_value import PendingId, exact, exact_or_fail
from cerata.engine.limits import NAME_SIZE_MAX, NESTING_MAX, STRING_SIZE_MAX
from cerata.engine.salted_hashes import CONTENT_HASH_SIZE
from cerata.projections.columnar.scopes import MISSING, TENANT, Reach, admits, tenant_in

ItemType = TypeVar("ItemType")

NO_ITEMS: Final[tuple[()]] = ()
"""The default of arguments that take several items: an array refuses a comparison with it."""

DOCUMENT_KIND: Final = "document"
"""The kind of a frame that was split: its chunks are searched in its place."""

SPAN: Final = "span"
"""A chunk's metadata: the characters [start, end) of the document that it holds."""

TABLE_HEADER: Final = "table_header"
"""A chunk's metadata: the characters of the table header that its text repeats, at its start."""

SOURCE_HASH: Final = "source_hash"
"""A document's metadata: the hash of the file from which its text was extracted."""


def copied(metadata: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a deep copy of exact types, so that the caller cannot change it.

    The log refuses values that are not of JSON.
    """
    return _copied_map(metadata, 1) if metadata else {}


_EXACT: Final = frozenset((str, int, float, bool, type(None)))


def _copied_map(values: Mapping[str, JsonValue], depth: int) -> dict[str, JsonValue]:
    copies: dict[str, JsonValue] = {}
    for name, value in values.items():
        exact_name = name
        if type(name) is not str and isinstance(name, str):
            exact_name = exact_string(name)
        copies[exact_name] = value if type(value) in _EXACT else _copied(value, depth)
    return copies


def _copied(value: JsonValue, depth: int) -> JsonValue:
    if depth > NESTING_MAX:
        return value
    if isinstance(value, list | tuple):
        return [item if type(item) in _EXACT else _copied(item, depth + 1) for item in value]
    if isinstance(value, dict | Mapping):
        return _copied_map(value, depth + 1)
    # A pending id stays what it is, and the log refuses it.
    return value if type(value) is PendingId else exact(value)


def listed(name: str, values: Iterable[ItemType]) -> list[ItemType]:
    """Return the items of an argument that takes several.

    Raises:
        InvalidInput: the argument is a string, or cannot be iterated.
    """
    if isinstance(values, str):
        raise InvalidInput(
            f"{name} must be a list, not a string", remedy=f"Pass {name}=[{values!r}]."
        )
    expect_type(name, values, Iterable, "a list", "Pass a list.")
    return list(values)


def content_hash(content: str | bytes) -> bytes:
    """Return the hash of a content: 16 bytes of BLAKE3, of a text over its UTF-8.

    `View.files.stored` and `View.files.by_content` find stored content by this hash.

    Args:
        content: The text, or the bytes.

    >>> content_hash("wax").hex() == content_hash(b"wax").hex()
    True

    Raises:
        InvalidInput: content is neither text nor bytes, or has a lone surrogate and so no UTF-8.
    """
    if type(content) is not str:
        expect_type("content", content, str | bytes, "str or bytes", "Pass the text or the bytes.")
    data = utf8_of(content) if isinstance(content, str) else content
    return hash_bytes(data)[:CONTENT_HASH_SIZE]


def utf8_of(text: str) -> bytes:
    """Return the UTF-8 of a text. Raises `InvalidInput` for a lone surrogate, which has none."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"The text is not valid Unicode: {error.reason} at character {error.start}",
            remedy="Decode it with errors='replace', or store bytes.",
        ) from error


def check_content_hash(value: object) -> None:
    """Raise `InvalidInput` unless a value is 16 bytes."""
    if not isinstance(value, bytes) or len(value) != CONTENT_HASH_SIZE:
        raise InvalidInput(
            f"A content hash must be {CONTENT_HASH_SIZE} bytes, not {value_text(value):.60}",
            remedy="Compute the hash with cerata.content_hash(text).",
        )


def chunk_span(body: PutFrame, after: int) -> tuple[int, int]:
    """Return the characters [start, end) of the document that a chunk holds.

    A chunk without a span, as earlier versions wrote, starts at ``after``.
    """
    text = body.text or ""
    size = len(text) - header_size(text, body.metadata)
    match body.metadata.get(SPAN):
        case [int() as start, int() as end] if 0 <= start <= after and end - start == size:
            return start, end
        case _:
            return after, after + size


def header_size(text: str, metadata: Mapping[str, JsonValue]) -> int:
    """Return the size of the repeated table header, in characters, at the start of a chunk's text.

    The header is not part of the chunk's span: it repeats an earlier part of the document.
    """
    size = metadata.get(TABLE_HEADER)
    return size if isinstance(size, int) and 0 < size <= len(text) else 0


def joined_text(chunks: Iterable[PutFrame]) -> str:
    """Return the text of a document from its ordered chunks; overlaps appear once."""
    parts: list[str] = []
    size = 0
    for body in chunks:
        start, end = chunk_span(body, size)
        text = body.text or ""
        parts.append(text[header_size(text, body.metadata) + size - start :])
        size = max(size, end)
    return "".join(parts)


def full_scope(narrower: Mapping[str, ScopeValue] | None, within: Scope | None) -> Scope:
    """Return the scope of a write: the store's, narrowed by the call's.

    Raises:
        InvalidInput: the call would widen the store's scope, or a name or value is unusable.
    """
    if narrower is not None:
        remedy = "Pass a dict such as {'tenant': 'name'}."
        expect_type("A scope", narrower, Mapping, "a mapping", remedy)
    if not narrower:
        return within or DEFAULT_SCOPE
    return _joined(dict(within or DEFAULT_SCOPE), narrower, within or ())


def reach_of(scope: Mapping[str, ScopeValue] | None, *, shared: bool) -> Reach | None:
    """Return the reach of a store that is opened with a scope, or None without one.

    Raises:
        InvalidInput: shared without a scope, or a name or value is unusable.
    """
    shared = expect_bool("shared", shared)
    if scope is not None:
        return Reach(full_scope(scope, None), shared)
    if shared:
        raise InvalidInput(
            "shared=True needs a scope, since a store without a scope reads everything",
            remedy="Pass scope= too, such as scope={'tenant': 'name', 'user_id': 'u1'}.",
        )
    return None


def chosen_reach(
    scope: Mapping[str, ScopeValue], within: Reach | None, *, shared: bool
) -> Reach | None:
    """Return the reach of a handle that is made for a scope, by a store of a reach.

    Raises:
        InvalidInput: the scope has no name, would widen the store's reach, or is unusable.
    """
    remedy = "Pass a dict such as {'tenant': 'name'}."
    expect_type("A scope", scope, Mapping, "a mapping", remedy)
    if not scope:
        raise InvalidInput("A scope needs at least one name", remedy=remedy)
    if within is None or within is MISSING:
        return reach_of(scope, shared=shared)
    return narrowed(within, scope, shared=shared)


def narrowed(
    reach: Reach | None, narrower: Scope | Mapping[str, ScopeValue], *, shared: bool | None
) -> Reach | None:
    """Return a reach with the names of the call too; it admits nothing that ``reach`` does not.

    Raises:
        InvalidInput: the call would widen the reach, or a name or value is unusable.
    """
    if shared is not None:
        shared = expect_bool("shared", shared)
    pairs = _mapping(narrower)
    if reach is MISSING:
        return chosen_reach(pairs, None, shared=bool(shared))
    if reach is None and not pairs and not shared:
        return None
    within = () if reach is None else reach.pairs
    joined = _joined(dict(within), pairs, within)
    was_shared = reach is not None and reach.shared
    if shared and not was_shared:
        if not joined or joined[0][0] != TENANT:
            raise InvalidInput(
                "A shared scope must name the tenant",
                remedy="Add the tenant, such as {'tenant': 'default'}.",
            )
        if reach is not None and not reach.is_tenant:
            raise InvalidInput(
                f"shared=True would widen the scope {dict(within)!r}",
                remedy="Open the store with options=cerata.OpenOptions(shared=True), or leave out "
                "shared=.",
            )
    return Reach(joined, was_shared if shared is None else shared)


def _mapping(scope: Scope | Mapping[str, ScopeValue]) -> Mapping[str, ScopeValue]:
    if isinstance(scope, Mapping):
        return scope
    check_pairs(scope)
    return dict(scope)


def scope_under(scope: Scope, within: Scope | None) -> Scope:
    """Return the scope of a thing with the names of the store's scope that it lacks."""
    if within is None or admits(scope, Reach(within)):
        return scope
    return _joined(dict(within), dict(scope), within)


def _joined(
    base: dict[str, ScopeValue], narrower: Mapping[str, ScopeValue], within: Scope
) -> Scope:
    """Return ``base`` with the call's names, tenant first; values of ``within`` may not change."""
    for name, value in narrower.items():
        check_not_pending("A scope", value)
        name, value = exact(name), exact(value)
        if not isinstance(name, str) or not isinstance(value, str | int | bool):
            raise InvalidInput(
                f"The scope {value_text(name)}: {value_text(value)} is not a name and "
                f"a plain value",
                remedy="Pass a string as the name, and a string, int or bool as the value.",
            )
        if name in dict(within) and not admits(within, Reach(((name, value),))):
            raise InvalidInput(
                f"The scope's {name} is {base[name]!r} here and cannot become {value!r}",
                remedy="Open the file with another scope.",
            )
        check_string(name, "a scope name", NAME_SIZE_MAX)
        if isinstance(value, str):
            check_string(value, f"the scope's {name!r}", STRING_SIZE_MAX)
        elif not -(1 << 63) <= value < 1 << 63:
            raise InvalidInput(
                f"The scope's {name!r} must be a number of at most 64 bits",
                remedy="Pass a smaller number, or a string.",
            )
        base[name] = value
    return (
        *(pair for pair in base.items() if pair[0] == "tenant"),
        *(pair for pair in base.items() if pair[0] != "tenant"),
    )


def realm(scope: Scope, reach: Reach | None) -> str | None:
    """Return the realm in which a name used in ``scope`` is unique, for a store of a reach.

    A store with a scope has a single realm, the events that the store can see; other events have
    None. A store without a scope has a realm for each tenant.
    """
    if reach is None:
        return tenant_in(scope)
    return "" if admits(scope, reach) else None


def within_scope(drafts: Sequence[Draft], reach: Reach | None) -> Sequence[Draft]:
    """Return drafts in the scope of a store; a draft with the default scope gets the store's.

    Raises:
        InvalidInput: a draft's scope does not lie within the store's.
    """
    if reach is None:
        return drafts
    return [_within(draft, reach.private) for draft in drafts]


def _within(draft: Draft, reach: Reach) -> Draft:
    scope = reach.pairs
    if draft.scope is scope:
        return draft
    if draft.scope == DEFAULT_SCOPE:
        return msgspec.structs.replace(draft, scope=scope)
    check_scope(draft.scope)
    if not admits(draft.scope, reach):
        raise InvalidInput(
            f"The draft's scope {dict(draft.scope)!r} is outside the store's, {dict(scope)!r}",
            remedy="Narrow the store's scope, or open the file with another scope.",
        )
    return draft


def arguments_hash(*arguments: object) -> bytes:
    """Return the hash by which an idempotency key recognises the same call.

    Raises:
        InvalidInput: an argument cannot be stored.
    """
    try:
        return hash_bytes(
            msgspec.msgpack.encode(arguments, enc_hook=exact_or_fail, order="deterministic")
        )
    except (TypeError, OverflowError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidInput(
            f"A value cannot be stored: {error}",
            remedy="Pass strings, bytes, numbers, bools, None, or lists and dicts of these.",
        ) from error
