"""`CerataByteStore`: LangChain's store of bytes by key, over frames of a memory.

Owns LangChain's interface of stores, with its async twins. A value is a frame of kind
``langchain.bytes``; a frame has content, so an empty value is a byte with a mark in the metadata.
"""

# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, cast

from langchain_core.stores import BaseStore

from cerata.engine.arguments import expect_text
from cerata.engine.errors import InvalidInput
from cerata.engine.unreadable import readable
from cerata.memory.store import Store
from cerata.memory.values.quoting import quote, unquote
from cerata.memory.view import View

from ..frames_of_scope import FramesOfScope
from ..threads import finished
from .pack import ROLE

BYTES: Final = "langchain.bytes"

_EMPTY: Final = "empty"
"""The metadata of a frame whose value has no bytes."""


class CerataByteStore(BaseStore[str, bytes]):
    """Keeps bytes by key in a memory; any thread or task may use it.

    - Reads and writes exactly the scope of its store.
    - The pairs of a call are one durable batch.
    - Replaced and deleted values stay in the log, and in earlier views.
    """

    def __init__(self, store: Store, prefix: str = "kv:") -> None:
        """Keep the values in a store.

        Args:
            store: An open store; a `scoped` store for the values of a tenant or user.
            prefix: The start of the URIs of the values, which ends with ":" or "/".

        Raises:
            InvalidInput: ``store`` is no store, or ``prefix`` no prefix.
        """
        self._frames = FramesOfScope(store, BYTES, ROLE)
        self._keys = Keys(prefix)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the value of each key, or None.

        Args:
            keys: The keys, which may repeat.
        """
        view = self._frames.store.history.view()
        checked = checked_keys("keys", keys)
        values = dict(
            readable(checked, lambda key: (key, self._value(view, key)), "The value of {!r}".format)
        )
        return [values.get(key) for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set values as one batch. Durable on return.

        Args:
            key_value_pairs: Keys with bytes; the last pair of a key counts.

        Raises:
            InvalidInput: a pair is none of a text and bytes, or cannot be stored; nothing was
                written.
        """
        frames = [
            {
                "content": value or b"\0",
                "uri": self._keys.uri_of(key),
                "metadata": None if value else {_EMPTY: True},
            }
            for key, value in _checked_pairs(key_value_pairs).items()
        ]
        self._frames.put(frames, OTHER_PREFIX)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete values as one batch; a key without a value is no error. Durable on return.

        Args:
            keys: The keys.
        """
        checked = checked_keys("keys", keys)

        def delete(view: View) -> None:
            for key in checked:
                self._frames.delete(view, self._keys.uri_of(key))

        self._frames.write(delete)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys in their order.

        Args:
            prefix: The start of the keys, in which no letter has a meaning; default any.
        """
        yield from self._sorted_keys(prefix)

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        return await finished(self.mget, keys)

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        await finished(self.mset, key_value_pairs)

    async def amdelete(self, keys: Sequence[str]) -> None:
        await finished(self.mdelete, keys)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        for key in await finished(self._sorted_keys, prefix):
            yield key

    def _sorted_keys(self, prefix: str | None) -> list[str]:
        start = self._keys.uri_of("" if prefix is None else expect_text("prefix", prefix))
        frames = self._frames.below(self._frames.store.history.view(), start)
        keys = (self._keys.key_of(frame.uri) for frame in frames)
        return sorted({key for key in keys if key is not None})

    def _value(self, view: View, key: str) -> bytes | None:
        frame = self._frames.current(view, self._keys.uri_of(key))
        if frame is None:
            return None
        return b"" if frame.metadata.get(_EMPTY) else view.files.content(frame)


def _checked_pairs(pairs: object) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Sequence):
        raise InvalidInput(
            f"key_value_pairs must be a list of pairs, not {pairs!r:.60}",
            remedy="Pass a list of (key, bytes).",
        )
    for place, pair in enumerate(pairs):
        where = f"key_value_pairs[{place}]"
        items: Any = pair
        if not isinstance(items, tuple | list) or len(items) != 2:
            raise InvalidInput(
                f"{where} must be a pair, not {pair!r:.60}", remedy="Pass a list of (key, bytes)."
            )
        key, value = items
        if not isinstance(value, bytes | bytearray):
            raise InvalidInput(
                f"The value of {where} must be bytes, not {type(value).__name__}",
                remedy="Encode it, as with text.encode().",
            )
        values[expect_text(f"The key of {where}", key)] = bytes(value)
    return values


# --- Keys of LangChain's stores as URIs below a prefix --------------------------------------------
#
# The key "a/b" below the prefix "kv:" has the URI ``kv:a%2Fb``. A prefix ends with ":" or "/", and
# a quoted key has neither, so no key of a prefix is also a key of a longer prefix.


OTHER_PREFIX: Final = "Pass another prefix."
"""The remedy if a frame of another kind has the URI of a key."""


class Keys:
    """The URIs of keys below a prefix."""

    def __init__(self, prefix: object) -> None:
        """Put the keys below a prefix.

        Raises:
            InvalidInput: the prefix is no text that ends with ":" or "/".
        """
        self.prefix = expect_text("prefix", prefix)
        if not self.prefix.endswith((":", "/")):
            raise InvalidInput(
                f'prefix must end with ":" or "/", not {self.prefix!r:.60}',
                remedy=f"Pass prefix={self.prefix + ':'!r:.60}.",
            )

    def uri_of(self, key: str) -> str:
        """Return the URI of a key."""
        return self.prefix + quote(key)

    def key_of(self, uri: str | None) -> str | None:
        """Return the key of a URI, or None if no key of this prefix has it.

        >>> Keys("kv:").key_of("kv:a%2Fb"), Keys("kv:").key_of("kv:x:a")
        ('a/b', None)
        """
        if uri is None or not uri.startswith(self.prefix):
            return None
        key = unquote(uri[len(self.prefix) :])
        return key if self.uri_of(key) == uri else None


def checked_keys(name: str, keys: object) -> list[str]:
    """Return a list of keys without repetitions, in their order.

    Raises:
        InvalidInput: the keys are no list, or a key is no text; the error names its place.
    """
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
        raise InvalidInput(
            f"{name} must be a list of texts, not {keys!r:.60}", remedy="Pass a list of str."
        )
    listed = cast("Sequence[object]", keys)
    return list(dict.fromkeys(expect_text(f"{name}[{at}]", key) for at, key in enumerate(listed)))
