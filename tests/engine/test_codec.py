"""What cannot be stored is refused before anything is written, and the message says why."""

# One refusal a line reads best.
# ruff: noqa: E501

import math
import os
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.codec import WireBatch, decode_content, encode_content, prepare
from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.events import (
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
    event,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.limits import (
    BATCH_EVENTS_MAX,
    EMBEDDING_DIMENSION_MAX,
    NESTING_MAX,
    STRING_SIZE_MAX,
)

from .words import Disk, erasing, other, put, refusal, texts


def refused(draft: Draft, **options: Any) -> str:
    """Append a draft that must be refused, and return what was said; nothing may be written."""
    disk = Disk()
    with disk.log() as log:
        before = disk.image()
        with pytest.raises(InvalidInput) as caught:
            log.append([draft], **options)
        assert disk.image() == before
        assert log.append([put()]).first_seq == 1
    return refusal(caught.value)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def vector(dtype: str = "f4", dimension: int = 4, size: int | None = None) -> Draft:
    data = bytes(16 if size is None else size)
    held = Attachment(hash_bytes(data), len(data))
    return Draft(
        PutFrame(text="a", embedding=Embedding("s", dtype, dimension, held)), attachments=(data,)
    )


def held(data: bytes) -> Attachment:
    return Attachment(hash_bytes(data), len(data))


def beside(body: EventBody, *attachments: Any) -> Draft:
    return Draft(body, attachments=attachments)


@event("test.album")
class Album(EventBody, frozen=True, kw_only=True):
    pages: tuple[dict[str, Attachment], ...] = ()


class Unnamed(EventBody, frozen=True, kw_only=True):
    number: int = 0


REFUSED: list[tuple[str, Callable[[], Draft], str]] = [
    ("a lone surrogate", lambda: put("\ud800"), "surrogates not allowed"),
    ("a lone surrogate in a tag", lambda: put(tags=("\udfff",)), "surrogates not allowed"),
    ("a lone surrogate in a scope", lambda: Draft(PutFrame(text="a"), (("tenant", "\ud800"),)), "Unicode"),
    ("a string over the limit", lambda: put("x" * (STRING_SIZE_MAX + 1)), "over the limit"),
    ("a string over it in bytes", lambda: put("é" * (STRING_SIZE_MAX // 2 + 1)), "over the limit"),
    ("a string in metadata over it", lambda: put(metadata={"a": ["x" * (STRING_SIZE_MAX + 1)]}), "limit"),
    ("a number that is none", lambda: put(metadata={"a": math.nan}), "nan"),
    ("an infinite number", lambda: put(metadata={"a": [1, {"b": -math.inf}]}), "inf"),
    ("a confidence that is none", lambda: Draft(AssertFact(subject="a", predicate="b", object_kind="s", object="c", confidence=math.nan)), "nan"),
    ("nesting too deep", lambda: put(metadata=nested(NESTING_MAX + 1)), "deeper than 64"),
    ("a number over 64 bits", lambda: put(metadata={"a": 1 << 64}), "cannot be stored"),
    ("a key that is no string", lambda: put(metadata={1: "a"}), "not a string"),
    ("bytes in metadata", lambda: put(metadata={"a": b"b"}), "bytes, which JSON cannot"),
    ("a set in metadata", lambda: put(metadata={"a": {1}}), "set, which JSON cannot"),
    ("a text that is no string", lambda: put(5), "Expected `str | null`, got `int`"),  # type: ignore[arg-type]
    ("a time that is no number", lambda: put(created="now"), "Expected `int | null`"),
    ("an actor that is no string", lambda: Draft(PutFrame(text="a"), actor=5), "actor must be a string"),  # type: ignore[arg-type]
    ("an actor without a name", lambda: Draft(PutFrame(text="a"), actor=""), "the actor is empty"),
    ("an actor over its limit", lambda: Draft(PutFrame(text="a"), actor="é" * 129), "the actor takes 258 bytes; the limit is 256"),
    ("a reason that is no string", lambda: Draft(PutFrame(text="a"), reason=b"x"), "reason must be a string"),  # type: ignore[arg-type]
    ("an empty reason", lambda: Draft(PutFrame(text="a"), reason=""), "the reason is empty"),
    ("a reason over its limit", lambda: Draft(PutFrame(text="a"), reason="x" * 4097), "the reason takes 4,097 bytes"),
    ("a causation too large", lambda: Draft(PutFrame(text="a"), causation=1 << 63), "causation"),
    ("a causation of nothing", lambda: Draft(PutFrame(text="a"), causation=0), "the first event is 1"),
    ("a scope without a tenant", lambda: Draft(PutFrame(text="a"), (("user", "u"),)), "start with 'tenant'"),
    ("an empty scope", lambda: Draft(PutFrame(text="a"), ()), "start with 'tenant'"),
    ("a scope that repeats a name", lambda: Draft(PutFrame(text="a"), (("tenant", "t"), ("a", 1), ("a", 2))), "twice"),
    ("a scope with a list", lambda: Draft(PutFrame(text="a"), (("tenant", "t"), ("a", []))), "must be a string, a number"),  # type: ignore[arg-type]
    ("a scope of 65 names", lambda: Draft(PutFrame(text="a"), (("tenant", "t"), *((f"n{n}", n) for n in range(64)))), "65 names"),
    ("an embedding of another width", lambda: vector(dimension=5), "are not 5 values"),
    ("an embedding of no width", lambda: vector(dimension=0, size=0), "0 dimensions"),
    ("an embedding too wide", lambda: vector(dimension=EMBEDDING_DIMENSION_MAX + 1), "dimensions"),
    ("an embedding of another type", lambda: vector(dtype="f2"), "dtype"),
    ("65 attachments", lambda: Draft(PutFrame(text="a"), attachments=(b"a",) * 65), "65 attachments"),
    ("a blob that did not come", lambda: beside(PutFrame(blob=held(b"abc"))), "1 of the 1 attachments that the body names"),
    ("a blob with another hash", lambda: beside(PutFrame(blob=Attachment(bytes(32), 3)), b"abc"), "The draft lacks"),
    ("a blob with another size", lambda: beside(PutFrame(blob=Attachment(hash_bytes(b"abc"), 4)), b"abc"), "The draft lacks"),
    ("a blob whose hash is a string", lambda: beside(PutFrame(blob=Attachment("abc", 3)), b"abc"), "not a hash in bytes"),  # type: ignore[arg-type]
    ("an attachment that nothing names", lambda: beside(PutFrame(blob=held(b"abc")), b"abc", b"more"), "does not name 1 of the draft's 2 attachments"),
    ("an attachment that is a string", lambda: beside(PutFrame(text="a"), "abc"), "must be bytes"),
    ("a vector that did not come", lambda: beside(PutEmbedding(frame=1, embedding=Embedding("s", "f4", 1, held(bytes(4))))), "The draft lacks"),
    ("one deep in a body that did not come", lambda: beside(Album(pages=({"left": held(b"abc")},))), "The draft lacks"),
    ("an unknown body that is garbage", lambda: other(data=b"\xc1"), "cannot be stored"),
    ("an unknown body of two values", lambda: other(data=b"\x01\x02"), "cannot be stored"),
    ("an unknown body of nothing", lambda: other(data=b""), "cannot be stored"),
    ("an unknown kind without a name", lambda: other(kind=""), "type is empty"),
    ("a kind with a long name", lambda: other(kind="k" * 256), "limit is 255"),
    ("a version below zero", lambda: other(version=-1), "version"),
    ("a body without a wire name", lambda: Draft(Unnamed()), "no wire name"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("draft", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_cannot_be_stored_is_refused(draft: Callable[[], Draft], says: str) -> None:
    """Nothing gets in that could not be read back, and nothing is changed on the way."""
    said = refused(draft())
    assert says in said
    assert "event 1 of the batch" in said or says


def test_an_attachment_is_what_the_body_names() -> None:
    """A blob without its bytes was acknowledged; reading it said Corrupt, a false alarm."""
    with Disk().log() as log:
        album = Album(pages=({"left": held(b"abc"), "right": held(b"abc")}, {"left": held(b"d")}))
        log.append([beside(album, b"abc", b"d"), beside(Album())])
        assert log.attachment(1, held(b"abc")) == b"abc"
        assert log.attachment(1, held(b"d")) == b"d"


def test_a_refusal_names_the_event_and_leaves_the_batch_out() -> None:
    """A batch is all or nothing, so its first two events are refused with the third."""
    with Disk().log() as log:
        with pytest.raises(InvalidInput, match="event 3 of the batch"):
            log.append([put(), put(), put("\ud800")])
        assert log.head.seq == 0


@pytest.mark.parametrize("count", [0, BATCH_EVENTS_MAX + 1])
def test_a_batch_has_a_size(count: int) -> None:
    """None is nothing to append, and 10,001 is one too many."""
    with Disk().log() as log, pytest.raises(InvalidInput, match="batch"):
        log.append([put()] * count)


def test_the_largest_batch_fits() -> None:
    """Limits are inclusive."""
    disk = Disk()
    with disk.log() as log:
        assert log.append([put()] * BATCH_EVENTS_MAX).last_seq == BATCH_EVENTS_MAX
    with disk.log() as log:
        assert len(texts(log)) == BATCH_EVENTS_MAX


def test_the_largest_string_fits() -> None:
    """16 MiB of UTF-8, and not one byte more."""
    text = "é" * (STRING_SIZE_MAX // 2)
    disk = Disk()
    with disk.log() as log:
        log.append([put(text)])
    with disk.log() as log:
        assert texts(log) == [text]


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "\ufeff", "\u202e", "é" * 7, "\U0001f9e0"])
def test_odd_texts_come_back_as_they_were(text: str) -> None:
    """NUL, marks and empty strings are text like any other."""
    disk = Disk()
    with disk.log() as log:
        log.append([put(text, title=text, tags=(text,), metadata={text: text})])
    with disk.log() as log:
        body = log.event(1).body
    assert body == PutFrame(text=text, title=text, tags=(text,), metadata={text: text})


def test_nesting_up_to_the_limit_fits() -> None:
    """64 levels are stored, and read back."""
    with Disk().log() as log:
        log.append([put(metadata=nested(NESTING_MAX))])
        assert log.event(1).body == PutFrame(text="a", metadata=nested(NESTING_MAX))


@pytest.mark.parametrize("key", ["", "k" * 1025, "\ud800"])
def test_a_bad_idempotency_key_is_refused(key: str) -> None:
    """A key is a short, sound, non-empty string."""
    assert "idempotency key" in refused(put(), key=key)


def test_arguments_are_bytes() -> None:
    """They are stored and compared as they are."""
    assert "arguments" in refused(put(), key="k", arguments="hash")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_metadata_round_trips(metadata: dict[str, Any]) -> None:
    """What JSON can say comes back equal."""
    with Disk().log() as log:
        log.append([put(metadata=metadata)])
        body = log.event(1).body
    assert isinstance(body, PutFrame)
    assert body.metadata == metadata


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=6), st.randoms())
def test_equal_values_give_equal_bytes(metadata: dict[str, int], random: Any) -> None:
    """The order in which a map was filled is no part of it."""
    names = list(metadata)
    random.shuffle(names)
    one, two = put(metadata=metadata), put(metadata={name: metadata[name] for name in names})
    salts = bytes
    assert prepare([one], salts).events == prepare([two], salts).events


def test_a_draft_keeps_the_salt_that_it_has() -> None:
    """One draw gives the other drafts of the batch theirs."""
    drafts = [put("a"), msgspec.structs.replace(put("b"), salt=b"s" * 16), put("c")]
    prepared = prepare(drafts, lambda size: bytes(range(size)))
    assert [event.salt for event in prepared.events] == [
        bytes(range(16)),
        b"s" * 16,
        bytes(range(16, 32)),
    ]


@pytest.mark.parametrize("salt", [b"", b"s" * 15, "s" * 16])
def test_a_salt_of_another_size_is_refused(salt: Any) -> None:
    """A shorter one could be guessed, and a longer one could not be read."""
    with pytest.raises(InvalidInput, match="16 bytes"):
        prepare([msgspec.structs.replace(put("a"), salt=salt)], bytes)


@given(
    st.lists(
        st.builds(
            Draft,
            st.builds(
                UnknownBody,
                kind=st.text(min_size=1, max_size=60),
                kind_version=st.integers(0, 2**63 - 1),
                data=st.just(b"\x80"),
            ),
            causation=st.integers(1, 2**63 - 1) | st.none(),
            attachments=st.lists(st.binary(max_size=40), max_size=64).map(tuple),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_the_size_of_a_batch_is_never_guessed_too_small(drafts: list[Draft]) -> None:
    """The size decides whether it goes to the ring: 165 long type names once ran over its end."""
    prepared = prepare(drafts, os.urandom)
    written = encode_content(WireBatch(2**63 - 1, 2**63 - 1, prepared.events))
    assert len(written) <= prepared.size + 64


def test_long_names_and_short_bodies_do_not_overrun_the_ring() -> None:
    """An event whose name is larger than its body was counted as a quarter of what it is."""
    disk = Disk()
    with disk.log() as log:
        for _ in range(4):
            log.append([other(kind="k" * 250)] * 165)
            log.append([put()])
    with disk.log() as log:
        assert len(list(log.read())) == 4 * 166
        assert log.report.is_clean


@pytest.mark.parametrize(
    "content", [b"", b"\xc1", b"\x90", b"\x94\x01\xc0\xc0\xc0", b"\x93\x01\xc0\x90" * 9]
)
def test_garbage_in_a_verified_record_is_corrupt(content: bytes) -> None:
    """A writer with a bug, or a hostile one, can make a record that verifies."""
    with pytest.raises(Corrupt):
        decode_content(1, 1, content, 8192)


def test_a_bomb_of_nested_arrays_is_corrupt() -> None:
    """A decoder that recurses must not take the process with it."""
    with pytest.raises(Corrupt):
        decode_content(1, 1, b"\x91" * 100_000, 8192)


def test_references_in_a_batch_are_lifted() -> None:
    """They are stored as -k, so a payload is hashed before its seq is known."""
    with Disk().log() as log:
        log.append([put()])
        log.append([put(), put(parent=-1), Draft(PutTag(tag="t", at=1), causation=-2)])
        child, tag = log.event(3), log.event(4)
    assert isinstance(child.body, PutFrame)
    assert (child.body.parent, tag.causation) == (2, 3)
    assert msgspec.msgpack.decode(child.payload.body if child.payload else b"")["parent"] == -1


def test_who_and_why_are_read_back_and_erased_with_the_payload() -> None:
    """Both are personal data, so they are in the part that an erasure removes."""
    who, why = "é" * 128, "x" * 4096
    with Disk().log() as log:
        log.append([Draft(PutFrame(text="a"), actor=who, correlation="run", reason=why), put("b")])
        for _ in range(2):
            event, plain = log.event(1), log.event(2)
            assert (event.actor, event.correlation, event.reason) == (who, "run", why)
            assert (plain.actor, plain.correlation, plain.reason) == (None, None, None)
            log.seal()
        with erasing():
            log.append([Draft(PutFrame(text="gone"), actor=who, reason=why)])
        assert (log.event(3).actor, log.event(3).correlation, log.event(3).reason) == (None,) * 3


def test_a_scope_keeps_its_order() -> None:
    """It is an ordered map, stored as pairs."""
    scope: Scope = (("tenant", "t"), ("z", 1), ("a", True))
    with Disk().log() as log:
        log.append([Draft(PutFrame(text="a"), scope)])
        assert log.event(1).scope == scope
