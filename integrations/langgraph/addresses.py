"""Addresses of LangGraph's items: URIs of namespaces and keys, and the matches of namespaces.

Free of the framework, since an import of items needs none.

An item of namespace ("users", "u1") and key "k" has the URI ``lg:users/u1//k``. Labels and keys are
percent-quoted, so a prefix of a URI that ends with "/" ends at a label (CVE-2026-71433).
"""

from collections.abc import Sequence
from typing import Final

from cerata.memory.values.quoting import quote, unquote

Namespace = tuple[str, ...]

ITEM: Final = "langgraph.item"
"""The kind of an item's frame."""

SCHEME: Final = "lg:"
PATH_MARK: Final = "#"
"""Before the number of a further vector of an item; quoting leaves none in a key."""


def prefix_of(namespace: Namespace) -> str:
    """Return the start of the URIs of a namespace and of those below it."""
    return SCHEME + "".join(f"{quote(label)}/" for label in namespace)


def uri_of(namespace: Namespace, key: str) -> str:
    """Return the URI of an item.

    >>> uri_of(("users", "u1"), "a/b")
    'lg:users/u1//a%2Fb'
    """
    return f"{prefix_of(namespace)}/{quote(key)}"


def address_of(uri: str) -> tuple[Namespace, str]:
    """Return the namespace and the key of an item's URI, also of a further vector's.

    >>> address_of("lg:users/u1//a%2Fb")
    (('users', 'u1'), 'a/b')
    """
    labels, _, key = uri.removeprefix(SCHEME).partition("//")
    namespace = tuple(unquote(label) for label in labels.split("/"))
    return namespace, unquote(key.partition(PATH_MARK)[0])


def matches(namespace: Namespace, pattern: Sequence[str], *, is_suffix: bool) -> bool:
    """Return whether a namespace begins or ends with a pattern; "*" is exactly one label."""
    if len(pattern) > len(namespace):
        return False
    labels = namespace[len(namespace) - len(pattern) :] if is_suffix else namespace
    return all(part in ("*", label) for part, label in zip(pattern, labels, strict=False))
