"""The checks that every draft passes before it is encoded.

Owns the limits of values, of envelopes, and of attachments; msgspec checks the types of fields.
Reading accepts any value: a fold skips values that another writer let through.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from unicodedata import category

import msgspec
import msgspec.inspect

from .arguments import expect_integer, expect_string, expect_type
from .errors import InvalidInput, value_text
from .events import (
    TOKENS_SUFFIX,
    AssertFact,
    Attachment,
    Draft,
    Embedding,
    EventBody,
    PutEmbedding,
    PutFrame,
    PutTag,
    Scope,
    UnknownBody,
    UseEmbedder,
    is_token_space,
    named_by,
)
from .integrity import hash_bytes
from .json_value import PendingId, type_name
from .late import late
from .limits import (
    ACTOR_SIZE_MAX,
    BATCH_EVENTS_MAX,
    BLOB_SIZE_MAX,
    EMBEDDING_DIMENSION_MAX,
    EVENT_ATTACHMENTS_MAX,
    IDEMPOTENCY_KEY_SIZE_MAX,
    NAME_SIZE_MAX,
    NESTING_MAX,
    REASON_SIZE_MAX,
    SCOPE_NAMES_MAX,
    STRING_SIZE_MAX,
    TOKEN_DIMENSION_MAX,
    TOKEN_VECTORS_MAX,
)

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

DTYPE_SIZES = {"f4": 4, "i1": 1}


class _Scalars(NamedTuple):
    """The scalar types that a field of any type may hold besides floats, lists and maps."""

    types: tuple[type, ...]
    name: str
    remedy: str


_JSON = _Scalars((str, int, NoneType), "JSON", "strings")
_PLAIN = _Scalars((str, bytes, int, NoneType), "a fact", "strings, bytes")

_INTEGER_MAX = 2**63 - 1
_TIME_MIN = -_INTEGER_MAX
"""Of times and references; the least 64-bit value means None in a column."""

_BLANK = "\u115f\u1160\u2800\u3164\uffa0\ufffc\U0001d159"
"""Characters that Unicode counts as letters or symbols, and that show nothing."""

_CHUNKS_MAX = 2**31 - 1


def check_key(key: str) -> None:
    """Refuse an idempotency key that cannot be stored: `InvalidInput`."""
    check_string(key, "the idempotency key", IDEMPOTENCY_KEY_SIZE_MAX)
    if not key:
        raise InvalidInput("The idempotency key is empty", remedy="Pass None for no key.")


def check_metadata(body: EventBody) -> None:
    """Check the nesting and the values of a frame's metadata."""
    if isinstance(body, PutFrame) and body.metadata:
        _check_nested(body.metadata, "metadata", 1, _JSON)


def check_body(body: EventBody) -> None:
    """Check the rules that msgspec does not: nesting, finite numbers, dimensions."""
    if isinstance(body, PutFrame):
        check_metadata(body)
        if body.embedding is not None:
            _check_embedding(body.embedding)
            if is_token_space(body.embedding.space):
                raise InvalidInput(
                    f"{body.embedding.space!r} is a space of token vectors",
                    remedy="Pass them as the token_embedding.",
                )
        if body.token_embedding is not None:
            _check_embedding(body.token_embedding)
            if not is_token_space(body.token_embedding.space):
                raise InvalidInput(
                    f"{body.token_embedding.space!r} is not a space of token vectors",
                    remedy=f"Pass a space whose name ends with {TOKENS_SUFFIX}.",
                )
        return
    if isinstance(body, AssertFact):
        # The other fields are flat, and decoding checks their types.
        if type(body.object) is not str:
            _check_nested(body.object, "object", 1, _PLAIN)
        if not (type(body.confidence) is float and math.isfinite(body.confidence)):
            _check_nested(body.confidence, "confidence", 1, None)
        return
    if isinstance(body, UseEmbedder):
        _check_use(body)
        return
    if isinstance(body, PutEmbedding):
        _check_context(body)
    body.check()
    if isinstance(body, UnknownBody) or _is_flat(type(body)):
        return
    for name in body.__struct_fields__:
        value: object = getattr(body, name)
        if isinstance(value, Embedding):
            _check_embedding(value)
        elif type(value) not in _UNCHECKED:
            _check_nested(value, name, 1, None)


_UNCHECKED: Final = frozenset((str, bytes, int, bool, NoneType))
"""Types of values of a field that decoding checks, and no other rule."""


def _check_context(body: PutEmbedding) -> None:
    frames = body.context
    if isinstance(frames, tuple) and (body.frame in frames or len({*frames}) < len(frames)):
        raise InvalidInput(
            f"context of frame {body.frame!r:.20} names it, or another frame twice: {frames!r:.60}",
            remedy="Pass each further frame that the embedder read once.",
        )


@cache
def _is_flat(kind: type[EventBody]) -> bool:
    """Return whether a kind's fields are integers, bools, strings, bytes, and tuples of them.

    Decoding checks the types of such a body, and no other check applies.
    """
    fields = msgspec.inspect.type_info(kind)
    assert isinstance(fields, msgspec.inspect.StructType)
    return all(_is_plain_type(field.type) for field in fields.fields)


@cache
def _may_name_attachments(kind: type[EventBody]) -> bool:
    """Return whether a field of a kind, at any depth, may hold an `Attachment`."""
    left: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(kind)]
    classes: set[type] = set()
    while left:
        part = left.pop()
        match part:
            case msgspec.inspect.StructType():
                if part.cls is Attachment:
                    return True
                if part.cls not in classes:
                    classes.add(part.cls)
                    left += [field.type for field in part.fields]
            case msgspec.inspect.UnionType():
                left += part.types
            case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
                left.append(part.item_type)
            case msgspec.inspect.TupleType():
                left += part.item_types
            case msgspec.inspect.LiteralType() | msgspec.inspect.FloatType():
                continue
            case _ if isinstance(part, _PLAIN_TYPES):
                continue
            case _:
                # A value of any type, as in metadata.
                return True
    return False


def _is_plain_type(kind: msgspec.inspect.Type) -> bool:
    match kind:
        case msgspec.inspect.UnionType():
            return all(map(_is_plain_type, kind.types))
        case msgspec.inspect.VarTupleType():
            return _is_plain_type(kind.item_type)
        case _:
            return isinstance(kind, _PLAIN_TYPES)


_PLAIN_TYPES: Final = (
    *(msgspec.inspect.IntType, msgspec.inspect.BoolType, msgspec.inspect.StrType),
    *(msgspec.inspect.BytesType, msgspec.inspect.NoneType),
)


def _check_use(body: UseEmbedder) -> None:
    for field in ("identity", "space", "name", "tokens_space"):
        value: str | None = getattr(body, field)
        if value is not None:
            check_string(value, f"the embedder's {field}", NAME_SIZE_MAX)
    if not body.identity or not body.space.startswith(f"{body.identity}/"):
        raise InvalidInput(
            f"The space {body.space!r:.60} is not that of the embedder {body.identity!r:.60}",
            remedy="Pass identity='name@revision' and a space that begins with it.",
        )
    if is_token_space(body.space):
        raise InvalidInput(
            f"{body.space!r} is a space of token vectors", remedy="Pass it as tokens_space."
        )
    if body.tokens_space is not None and not is_token_space(body.tokens_space):
        raise InvalidInput(
            f"{body.tokens_space!r} is not a space of token vectors",
            remedy=f"Pass a space whose name ends with {TOKENS_SUFFIX}.",
        )


def check_widths(body: EventBody) -> None:
    """Check that the numbers of a body with valid types fit the columns of the folds.

    Reading accepts any number: a fold skips values that another writer let through.
    """
    if isinstance(body, PutFrame):
        check_frame_widths(body)
        return
    for name, _, value in named_by(body):
        _check_within(value, name, _TIME_MIN)
    if isinstance(body, PutTag):
        _check_within(body.at, "at", 0)
    elif isinstance(body, AssertFact):
        if body.valid_from is not None:
            _check_within(body.valid_from, "valid_from", _TIME_MIN)
        if body.valid_to is not None:
            _check_within(body.valid_to, "valid_to", _TIME_MIN)
        for place in body.evidence:
            _check_within(place.start, "evidence", _TIME_MIN)
            _check_within(place.end, "evidence", _TIME_MIN)


def check_frame_widths(body: PutFrame) -> None:
    """Check the numbers of a frame, as `check_widths`."""
    # Most frames have none of these numbers, and a call for each would cost more than the rest.
    if body.parent is not None:
        _check_within(body.parent, "parent", _TIME_MIN)
    if body.created is not None:
        _check_within(body.created, "created", _TIME_MIN)
    if body.expires is not None:
        _check_within(body.expires, "expires", _TIME_MIN)
    for date in body.content_dates:
        _check_within(date, "content_dates", _TIME_MIN)
    if body.chunk_index is not None:
        _check_within(body.chunk_index, "chunk_index", 0, _CHUNKS_MAX)
    if body.chunk_count is not None:
        _check_within(body.chunk_count, "chunk_count", 0, _CHUNKS_MAX)


def _check_nested(value: object, name: str, depth: int, scalars: _Scalars | None) -> None:
    """Check depth, finite numbers, string keys, and with ``scalars`` the other types."""
    if type(value) is str:
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{name} holds {value}, which JSON cannot hold", remedy="Use None.")
        return
    if not isinstance(value, dict | list | tuple):
        if scalars is None:
            return
        check_not_pending(name, value)
        if not isinstance(value, scalars.types):
            raise InvalidInput(
                f"{name} holds a {type_name(value)}, which {scalars.name} cannot hold",
                remedy=f"Use {scalars.remedy}, numbers, bools, None, lists and maps of them.",
            )
        return
    if depth > NESTING_MAX:
        raise InvalidInput(
            f"{name} is nested deeper than {NESTING_MAX} levels",
            remedy=f"Flatten it to {NESTING_MAX} levels, or store it as text.",
        )
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise InvalidInput(
                    f"{name} has the key {value_text(key)}, which is not a string",
                    remedy="Use strings as the keys of maps.",
                )
            if type(item) is not str:
                _check_nested(item, name, depth + 1, scalars)
        return
    for item in cast("Sequence[object]", value):
        if type(item) is not str:
            _check_nested(item, name, depth + 1, scalars)


def check_not_pending(name: str, value: object) -> None:
    """Refuse a value that is an id −k of a transaction: `InvalidInput`."""
    if type(value) is PendingId:
        raise InvalidInput(
            f"{name} holds {value}, an id inside a transaction, which is another number after it",
            remedy="Pass the id that a read after the block returns, or name the thing by a uri.",
        )


def _check_embedding(embedding: object) -> None:
    if (
        not isinstance(embedding, Embedding)
        or not isinstance(embedding.data, Attachment)
        or not (isinstance(embedding.space, str) and isinstance(embedding.dtype, str))
        or not (isinstance(embedding.dimension, int) and isinstance(embedding.data.size, int))
    ):
        raise InvalidInput(
            f"An embedding must be an Embedding with an Attachment, not {embedding!r:.60}",
            remedy="Pass an Embedding(space, dtype, dimension, Attachment(hash, size)).",
        )
    if not embedding.space:
        raise InvalidInput(
            "An embedding names no space", remedy="Name the space after its embedder."
        )
    item_size = DTYPE_SIZES.get(embedding.dtype)
    if item_size is None:
        raise InvalidInput(
            f"The embedding's dtype {embedding.dtype!r} is not known", remedy="Use 'f4' or 'i1'."
        )
    if not 0 < embedding.dimension <= EMBEDDING_DIMENSION_MAX:
        raise InvalidInput(
            f"An embedding has {embedding.dimension:,} dimensions; "
            f"1 to {EMBEDDING_DIMENSION_MAX:,} can be stored",
            remedy="Reduce the dimension of the vector.",
        )
    if is_token_space(embedding.space):
        _check_tokens(embedding)
    elif embedding.data.size != item_size * embedding.dimension:
        raise InvalidInput(
            f"The embedding's {embedding.data.size:,} bytes are not "
            f"{embedding.dimension:,} values of {item_size} bytes",
            remedy="Pass the bytes of one vector, little-endian, with its dtype and dimension.",
        )


def _check_tokens(embedding: Embedding) -> None:
    if embedding.dtype != "i1" or embedding.dimension > TOKEN_DIMENSION_MAX:
        raise InvalidInput(
            f"Token vectors have {embedding.dimension:,} dimensions ({embedding.dtype}); "
            f"1 to {TOKEN_DIMENSION_MAX:,} (i1) can be stored",
            remedy="Store them as i1, and reduce their dimension.",
        )
    if not vector_count(embedding):
        raise InvalidInput(
            f"The {embedding.data.size:,} bytes of an embedding are not 1 to "
            f"{TOKEN_VECTORS_MAX:,} token vectors of {embedding.dimension:,} dimensions",
            remedy="Pass a whole number of vectors, one for each token.",
        )


def vector_count(embedding: Embedding) -> int:
    """Return the number of vectors in an embedding; 0 for an invalid size, type or dimension.

    Outside spaces of token vectors the number is 1.
    """
    dimension = embedding.dimension
    size = embedding.data.size
    if is_token_space(embedding.space):
        if embedding.dtype != "i1" or not 0 < dimension <= TOKEN_DIMENSION_MAX:
            return 0
        count, rest = divmod(size, dimension)
        return count if not rest and 0 < count <= TOKEN_VECTORS_MAX else 0
    row_size = DTYPE_SIZES.get(embedding.dtype, 0) * dimension
    return int(0 < row_size == size and dimension <= EMBEDDING_DIMENSION_MAX)


def check_attachments(draft: Draft) -> None:
    """Check that the attachments equal the set that the body names by hash."""
    attachments = draft.attachments
    body = draft.body
    if not attachments and (
        isinstance(body, AssertFact)
        or (isinstance(body, PutFrame) and body.blob is None and not body.embeddings)
        or not _may_name_attachments(type(body))
    ):
        return
    if len(attachments) > EVENT_ATTACHMENTS_MAX:
        raise InvalidInput(
            f"An event has {len(attachments)} attachments; the limit is {EVENT_ATTACHMENTS_MAX}",
            remedy="Split it into several events.",
        )
    for data in attachments:
        expect_type("An attachment", data, bytes, "bytes", "Pass bytes.")
        if len(data) > BLOB_SIZE_MAX:
            raise InvalidInput(
                f"An attachment of {len(data):,} bytes is over the limit of {BLOB_SIZE_MAX:,}",
                remedy="Split it into several frames.",
            )
    if isinstance(body, UnknownBody):
        return
    by_hash = {(hash_bytes(data), len(data)): data for data in attachments}
    embeddings = _embeddings_of(body)
    named = {(item.hash, item.size) for item in _attachments_in(_naming(body, embeddings))}
    if missing := len(named - by_hash.keys()):
        raise InvalidInput(
            f"The draft lacks {missing} of the {len(named)} attachments that the body names by "
            f"hash and size",
            remedy="Pass their bytes in Draft(attachments=…).",
        )
    if unnamed := len(by_hash.keys() - named):
        raise InvalidInput(
            f"The body does not name {unnamed} of the draft's {len(by_hash)} attachments",
            remedy="Put Attachment(BLAKE3-256 of the bytes, their size) into the body.",
        )
    for value in embeddings:
        if value.dtype == "f4":
            numbers = np.frombuffer(by_hash[value.data.hash, value.data.size], "<f4")
            if not np.isfinite(numbers).all():
                raise InvalidInput(
                    "An embedding has a number that is not finite",
                    remedy="Pass the embedder's vectors without NaN and infinity.",
                )


def _embeddings_of(body: EventBody) -> Sequence[Embedding]:
    if isinstance(body, PutFrame | PutEmbedding):
        # The encoder rejects values of another type.
        return [value for value in body.embeddings if isinstance(value, Embedding)]
    values = (getattr(body, name) for name in body.__struct_fields__)
    return [value for value in values if isinstance(value, Embedding)]


def _naming(body: EventBody, embeddings: Sequence[Embedding]) -> list[object]:
    if isinstance(body, PutFrame | PutEmbedding):
        blob = body.blob if isinstance(body, PutFrame) else None
        return [blob, *(embedding.data for embedding in embeddings)]
    return [getattr(body, name) for name in body.__struct_fields__]


def _attachments_in(value: object) -> Iterator[Attachment]:
    if isinstance(value, Attachment):
        if not isinstance(value.hash, bytes) or not isinstance(value.size, int):
            raise InvalidInput(
                f"{value!r} is not a hash in bytes and a size",
                remedy="Put Attachment(BLAKE3-256 of the bytes, their size) into the body.",
            )
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _attachments_in(getattr(value, name))
    elif isinstance(value, dict):
        for item in cast("dict[object, object]", value).values():
            yield from _attachments_in(item)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            yield from _attachments_in(item)


def check_envelope(draft: Draft) -> None:
    """Check the fields around the body except the scope, which many drafts share."""
    if draft.actor is not None:
        check_note(draft.actor, "the actor", ACTOR_SIZE_MAX)
    if draft.body.needs_actor is not None:
        check_person(draft.actor, draft.body)
    if draft.correlation is not None:
        check_string(draft.correlation, "the correlation id", STRING_SIZE_MAX)
    if draft.reason is not None:
        check_note(draft.reason, "the reason", REASON_SIZE_MAX)
    if draft.causation is not None:
        check_integer(draft.causation, "the causation", -BATCH_EVENTS_MAX)
        if draft.causation == 0:
            raise InvalidInput(
                "The causation is 0; the first event is 1, or -1 in the same batch",
                remedy="Pass the seq of an event, −k for the k-th of the batch, or None.",
            )


def check_person(actor: str | None, body: type[EventBody] | EventBody) -> None:
    """Refuse an actor in whom a reader sees no name, for an event that needs a person.

    Raises:
        InvalidInput: with the remedy of the event's kind.
    """
    if actor is None:
        problem = "has no actor"
    elif any(category(each)[0] in "LNPS" and each not in _BLANK for each in actor):
        return
    else:
        problem = f"has an actor with no visible character: {ascii(actor)[:60]}"
    raise InvalidInput(
        f"An event of the type {body.wire_name!r} {problem}; only a person writes it",
        remedy=body.needs_actor,
    )


def check_note(value: object, name: str, limit: int) -> None:
    """Refuse a value unless it is a text of 1 to ``limit`` bytes: `InvalidInput`."""
    check_string(value, name, limit)
    if not value:
        raise InvalidInput(f"{name} is empty", remedy="Pass a text, or None.")


def check_integer(value: object, name: str, lowest: int) -> None:
    """Refuse a value unless it is an integer from ``lowest`` on: `InvalidInput`."""
    _check_within(expect_integer(name, value), name, lowest)


def _check_within(value: int | None, name: str, lowest: int, highest: int = _INTEGER_MAX) -> None:
    if value is not None and not lowest <= value <= highest:
        raise InvalidInput(
            f"{name} is {value:,}; {lowest:,} to {highest:,} can be stored",
            remedy=f"Pass a number from {lowest:,} to {highest:,}.",
        )


def check_pairs(pairs: object) -> None:
    """Refuse a value that is not a tuple of pairs: `InvalidInput`."""
    untyped = pairs
    if not isinstance(pairs, tuple) or not all(
        isinstance(pair, tuple) and len(cast("tuple[object, ...]", pair)) == 2
        for pair in cast("tuple[object, ...]", pairs)
    ):
        raise InvalidInput(
            f"The scope must be a tuple of pairs, not {value_text(untyped)}",
            remedy="Write (('tenant', 'name'), …).",
        )


def check_scope(scope: Scope) -> None:
    """Refuse a scope that cannot be stored: `InvalidInput` with the fault."""
    check_pairs(scope)
    if not scope or scope[0][0] != "tenant":
        raise InvalidInput("A scope must start with 'tenant'", remedy="Put ('tenant', name) first.")
    if len(scope) > SCOPE_NAMES_MAX:
        raise InvalidInput(
            f"A scope has {len(scope)} names; the limit is {SCOPE_NAMES_MAX}",
            remedy="Leave names out, or store them as metadata.",
        )
    names = [name for name, _ in scope]
    if len(set(names)) != len(names):
        raise InvalidInput("A scope has the same name twice", remedy="Give each name once.")
    for name, value in scope:
        check_string(name, "a scope name", NAME_SIZE_MAX)
        if isinstance(value, str):
            check_string(value, f"the scope's {name!r}", STRING_SIZE_MAX)
        elif not isinstance(value, int):
            raise InvalidInput(
                f"The scope's {name!r} must be a string, a number or a bool",
                remedy="Pass a str, int or bool.",
            )


def check_string(value: object, name: str, limit: int) -> None:
    """Refuse a value unless it is a string of at most ``limit`` bytes: `InvalidInput`."""
    try:
        size = len(expect_string(name, value).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} is not valid Unicode: {error.reason}",
            remedy="Decode it with errors='replace'.",
        ) from error
    if size > limit:
        raise InvalidInput(
            f"{name} takes {size:,} bytes; the limit is {limit:,}", remedy="Shorten it."
        )


def check_long_strings(value: object) -> None:
    """Refuse a string over the limit, at any depth of a value."""
    if isinstance(value, str):
        if len(value) > STRING_SIZE_MAX or len(value.encode()) > STRING_SIZE_MAX:
            raise InvalidInput(
                f"A string of {len(value):,} characters is over the limit of "
                f"{STRING_SIZE_MAX:,} bytes",
                remedy="Split it, or store it as bytes.",
            )
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            check_long_strings(key)
            check_long_strings(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            check_long_strings(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            check_long_strings(item)
