"""The verbs that change stored frames and count their values: update, restore, sweep, values."""

from argparse import Namespace
from datetime import datetime
from typing import TypedDict

from msgspec import UNSET, UnsetType

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.store import Store
from cerata.memory.values.frames import Receipt
from cerata.memory.values.words import clipped, counted

from .expiry import expiry_of
from .filter_options import hint, where_of
from .output import Output
from .pair_options import pairs_of
from .store_options import changing, reading, view_of


class _Fields(TypedDict):
    """The fields of a new version; UNSET leaves one unchanged."""

    title: str | None | UnsetType
    tags: list[str] | UnsetType
    metadata: dict[str, JsonValue] | UnsetType
    expires: datetime | None | UnsetType


def run_update(options: Namespace, output: Output) -> int:
    """Put a new version of a frame with other fields."""
    fields = _fields(options)
    if all(value is UNSET for value in fields.values()):
        raise InvalidInput(
            "update needs at least one field",
            remedy="Pass --title, --tag, --metadata or --expires.",
        )
    with changing(options, output) as store:
        receipt = store.update(options.id, **fields, reason=options.reason)
        if receipt.added:
            _print_version(store, options.id, receipt, output)
        else:
            output.line(f"#{options.id} has these fields already; nothing was written")
        output.result({"file": store.path, "old": options.id, **receipt.to_dict()})
    return 0


def _fields(options: Namespace) -> _Fields:
    tags: list[str] | None = options.tag
    metadata: list[str] | None = options.metadata
    return {
        "title": UNSET if options.title is None else options.title or None,
        "tags": UNSET if tags is None else [tag for tag in tags if tag],
        "metadata": UNSET
        if metadata is None
        else pairs_of("--metadata", [pair for pair in metadata if pair]),
        "expires": _expires(options),
    }


def _expires(options: Namespace) -> datetime | None | UnsetType:
    text: str | None = options.expires
    return UNSET if text is None else expiry_of(text)


def run_restore(options: Namespace, output: Output) -> int:
    """Put the content of a closed frame again."""
    with changing(options, output) as store:
        receipt = store.restore(options.id, expires=_expires(options), reason=options.reason)
        _print_version(store, options.id, receipt, output)
        output.result({"file": store.path, "old": options.id, **receipt.to_dict()})
    return 0


def _print_version(store: Store, old: int, receipt: Receipt, output: Output) -> None:
    frame = store.frame(receipt.id)
    name = f"{frame.title}: " if frame.title else ""
    output.row(("+ ", "green"), f"#{frame.id} (was #{old}) ", clipped(name + frame.text, 200))


def run_sweep(options: Namespace, output: Output) -> int:
    """Close the expired frames."""
    with changing(options, output) as store:
        receipt = store.sweep()
        output.line(f"closed {counted(len(receipt.deleted), 'expired frame')}")
        for notice in receipt.notices:
            output.warn(notice)
        deleted: list[JsonValue] = [*receipt.deleted]
        output.result({"file": store.path, **receipt.to_dict(), "deleted": deleted})
    return 0


def run_values(options: Namespace, output: Output) -> int:
    """Print each value of a field with its count of frames."""
    with reading(options) as store:
        view = view_of(store, options)
        counts = view.values(options.field, prefix=options.prefix, where=where_of(options))
        with output.pages():
            for count in counts:
                value = count.value if isinstance(count.value, str) else repr(count.value)
                output.parts((f"{count.count:>7,}  ", "yellow"), value)
        if not counts:
            output.line("There are no values.")
            hint(view, options, output)
        rows: list[JsonValue] = [count.to_dict() for count in counts]
        output.result({"basis": view.basis, "field": options.field, "values": rows}, items="values")
    return 0
