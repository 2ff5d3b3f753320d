"""Keys of LangChain's stores as URIs below a prefix.

The key "a/b" below the prefix "kv:" has the URI ``kv:a%2Fb``. A prefix ends with ":" or "/", and a
quoted key has neither, so no key of a prefix is also a key of a longer prefix.
"""

from collections.abc import Sequence
from typing import Final, cast

from cerata.engine.arguments import expect_text
from cerata.engine.errors import InvalidInput
from cerata.memory.values.quoting import quote, unquote

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
