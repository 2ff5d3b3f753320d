"""A persistent sorted map: snapshots are free, and a change copies only a path of nodes.

Owns the order of keys as bytes, and a B-tree over it. Leaves out the checks of keys and values, and
the record of changes (`row_projection`).

A node has an owner. A map changes a node of its owner in place and copies any other node first, so
`share` makes two maps of the same nodes by giving each a new owner. Bulk loads therefore copy
nothing, and an append after a snapshot copies one node for each level.

Source: B-trees with path copying, as in Driscoll, Sarnak, Sleator and Tarjan, "Making Data
Structures Persistent" (1989).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, Generic, TypeAlias, TypeVar, cast

NODE_SIZE_MAX: Final = 64
"""Items of a node: a copy of a node takes about 1 us, and a million rows have four levels."""

NODE_SIZE_MIN: Final = NODE_SIZE_MAX // 4
"""A node with fewer items joins its neighbour, if both fit into one node."""

ValueType = TypeVar("ValueType")

_INTEGER: Final = b"\x01"
_TEXT: Final = b"\x02"
_BYTES: Final = b"\x03"
_TUPLE: Final = b"\x04"
_END: Final = b"\x00"
"""Ends a tuple, below the first byte of every key."""

AFTER: Final = b"\xff"
"""Above the first byte of every key: after all tuples with the same first items."""

_LOWEST_INTEGER: Final = 1 << 63
_INTEGERS: Final = 3 << 63
_INTEGER_SIZE: Final = 9
"""Bytes of an integer from -2**63 to 2**64 - 1, the range of a row's integers."""


def order_of(key: object) -> bytes:
    """Return bytes that sort as keys do: integers, strings, bytes, then tuples item by item.

    Raises:
        TypeError: the key is of another type, or a bool.
        ValueError, OverflowError: the key is text or an integer that no row can hold.
    """
    kind = type(key)
    if kind is tuple:
        return b"".join((_TUPLE, *map(order_of, cast("tuple[object, ...]", key)), _END))
    if kind is str:
        data = cast("str", key).encode()
        tag = _TEXT
    elif kind is int:
        number = cast("int", key) + _LOWEST_INTEGER
        if not 0 <= number < _INTEGERS:
            raise OverflowError(f"{key!r} has more than 64 bits")
        return _INTEGER + number.to_bytes(_INTEGER_SIZE, "big")
    elif kind is bytes:
        data = cast("bytes", key)
        tag = _BYTES
    elif isinstance(key, tuple):
        return order_of(tuple(cast("tuple[object, ...]", key)))
    else:
        raise TypeError(f"{key!r} is no key of a row")
    # A zero byte inside sorts above the end of the text, as it does in Python.
    return b"".join((tag, data.replace(b"\x00", b"\x00\xff"), b"\x00\x00"))


def order_of_prefix(prefix: tuple[object, ...]) -> bytes:
    """Return the bytes with which the order of each tuple that begins with ``prefix`` begins."""
    return order_of(prefix)[: -len(_END)]


class _Owner:
    """The identity of a map that may change a node in place."""

    __slots__ = ()


class _Leaf(Generic[ValueType]):
    """Entries in order; ``orders``, ``keys`` and ``values`` are parallel."""

    __slots__ = ("keys", "orders", "owner", "values")

    def __init__(
        self, owner: _Owner, orders: list[bytes], keys: list[object], values: list[ValueType]
    ) -> None:
        self.owner = owner
        self.orders = orders
        self.keys = keys
        self.values = values

    def __len__(self) -> int:
        return len(self.orders)

    def part(self, owner: _Owner, start: int, end: int | None = None) -> "_Leaf[ValueType]":
        """Return a leaf of these entries."""
        return _Leaf(owner, self.orders[start:end], self.keys[start:end], self.values[start:end])

    def cut(self, start: int) -> None:
        del self.orders[start:], self.keys[start:], self.values[start:]

    def extend(self, leaf: "_Leaf[ValueType]") -> None:
        self.orders += leaf.orders
        self.keys += leaf.keys
        self.values += leaf.values


class _Branch(Generic[ValueType]):
    """Children in order; ``orders[i]`` is a lower bound of child i, and an upper bound of i - 1."""

    __slots__ = ("children", "orders", "owner")

    def __init__(
        self, owner: _Owner, orders: list[bytes], children: "list[_Node[ValueType]]"
    ) -> None:
        self.owner = owner
        self.orders = orders
        self.children = children

    def __len__(self) -> int:
        return len(self.orders)

    def part(self, owner: _Owner, start: int, end: int | None = None) -> "_Branch[ValueType]":
        """Return a branch of these children."""
        return _Branch(owner, self.orders[start:end], self.children[start:end])

    def cut(self, start: int) -> None:
        del self.orders[start:], self.children[start:]

    def extend(self, branch: "_Branch[ValueType]") -> None:
        self.orders += branch.orders
        self.children += branch.children

    def place(self, order: bytes) -> int:
        """Return the place of the child whose range has an order."""
        return max(bisect_right(self.orders, order) - 1, 0)


_Node: TypeAlias = "_Leaf[ValueType] | _Branch[ValueType]"
Span: TypeAlias = "tuple[_Leaf[ValueType], int, int]"
"""A leaf, and the range of its entries."""


class SortedMap(Generic[ValueType]):
    """A map from orders (`order_of`) to keys and values; one thread at a time may change it.

    - ``_count`` is the number of entries.
    - Every node but the root has an entry, and at most `NODE_SIZE_MAX` items.
    """

    def __init__(self) -> None:
        self._owner = _Owner()
        self._root: _Node[ValueType] = _Leaf(self._owner, [], [], [])
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def share(self) -> "SortedMap[ValueType]":
        """Return an equal map; a later change of either leaves the other as it is. Cost: O(1)."""
        shared: SortedMap[ValueType] = SortedMap()
        shared._root = self._root
        shared._count = self._count
        self._owner = _Owner()
        return shared

    def get(self, order: bytes, default: ValueType) -> ValueType:
        """Return the value of an order, or the default. Cost: O(log n)."""
        node = self._root
        while isinstance(node, _Branch):
            node = node.children[node.place(order)]
        place = bisect_left(node.orders, order)
        if place < len(node.orders) and node.orders[place] == order:
            return node.values[place]
        return default

    def spans(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> "Iterator[Span[ValueType]]":
        """Yield the parts of leaves with ``low`` <= order < ``high``, in order or backwards.

        The map must not change until the last; iterate over a shared map. Cost: O(log n) and
        the leaves in the range.
        """
        return _spans(self._root, low, high, reverse=reverse)

    # --- changes ---------------------------------------------------------------------------------

    def set(self, order: bytes, key: object, value: ValueType) -> None:
        """Set an entry. Cost: O(log n)."""
        root = self._mine(self._root)
        right = self._set(root, order, key, value, is_last=True)
        if right is not None:
            root = _Branch(self._owner, [b"", right[0]], [root, right[1]])
        self._root = root

    def remove(self, order: bytes) -> None:
        """Remove an entry, if one has this order. Cost: O(log n)."""
        root = self._mine(self._root)
        if self._remove(root, order):
            self._count -= 1
        while isinstance(root, _Branch) and len(root) == 1:
            root = root.children[0]
        self._root = root

    def _mine(self, node: "_Node[ValueType]") -> "_Node[ValueType]":
        return node if node.owner is self._owner else node.part(self._owner, 0)

    def _set(
        self,
        node: "_Node[ValueType]",
        order: bytes,
        key: object,
        value: ValueType,
        *,
        is_last: bool,
    ) -> "tuple[bytes, _Node[ValueType]] | None":
        """Set an entry below a node of this map; return the right half if the node was split.

        ``is_last`` is true for the last node of its level.
        """
        if isinstance(node, _Leaf):
            place = bisect_left(node.orders, order)
            if place < len(node.orders) and node.orders[place] == order:
                node.values[place] = value
                return None
            node.orders.insert(place, order)
            node.keys.insert(place, key)
            node.values.insert(place, value)
            self._count += 1
            is_last = is_last and place == len(node.orders) - 1
        else:
            place = node.place(order)
            child = node.children[place] = self._mine(node.children[place])
            is_last = is_last and place == len(node) - 1
            right = self._set(child, order, key, value, is_last=is_last)
            if right is None:
                return None
            node.orders.insert(place + 1, right[0])
            node.children.insert(place + 1, right[1])
        if len(node) <= NODE_SIZE_MAX:
            return None
        # Keys that arrive in order leave full nodes. Elsewhere a descending order would leave nodes
        # of one entry.
        middle = len(node) - 1 if is_last else len(node) // 2
        half = node.part(self._owner, middle)
        node.cut(middle)
        return half.orders[0], half

    def _remove(self, node: "_Node[ValueType]", order: bytes) -> bool:
        """Remove an entry below a node of this map; return whether an entry had the order."""
        if isinstance(node, _Leaf):
            place = bisect_left(node.orders, order)
            if place == len(node.orders) or node.orders[place] != order:
                return False
            del node.orders[place], node.keys[place], node.values[place]
            return True
        place = node.place(order)
        child = node.children[place] = self._mine(node.children[place])
        is_removed = self._remove(child, order)
        if len(child) < NODE_SIZE_MIN:
            self._join(node, place)
        return is_removed

    def _join(self, branch: "_Branch[ValueType]", place: int) -> None:
        """Remove an empty child, or join a small child with a neighbour if both fit into a node."""
        if not len(branch.children[place]):
            del branch.orders[place], branch.children[place]
            return
        left = place - 1 if place else place
        if left + 1 == len(branch):
            return
        first, second = branch.children[left : left + 2]
        if len(first) + len(second) > NODE_SIZE_MAX // 2:
            return
        first = branch.children[left] = self._mine(first)
        if isinstance(first, _Leaf) and isinstance(second, _Leaf):
            first.extend(second)
        elif isinstance(first, _Branch) and isinstance(second, _Branch):
            first.extend(second.part(self._owner, 0))
            # The first bound of a branch may be lower than that of its first child.
            first.orders[len(first) - len(second)] = branch.orders[left + 1]
        del branch.orders[left + 1], branch.children[left + 1]


def _spans(
    node: "_Node[ValueType]", low: bytes | None, high: bytes | None, *, reverse: bool
) -> "Iterator[Span[ValueType]]":
    if isinstance(node, _Leaf):
        start = 0 if low is None else bisect_left(node.orders, low)
        end = len(node.orders) if high is None else bisect_left(node.orders, high)
        if start < end:
            yield node, start, end
        return
    first = 0 if low is None else node.place(low)
    last = len(node) - 1 if high is None else node.place(high)
    places = range(first, last + 1)
    for place in reversed(places) if reverse else places:
        yield from _spans(
            node.children[place],
            low if place == first else None,
            high if place == last else None,
            reverse=reverse,
        )
