"""The verbs that close and name things: supersede, delete and tag."""

from argparse import Namespace

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.values.words import clipped, counted

from .filter_options import hint, where_of
from .output import Output
from .store_options import changing, reading, view_of


def run_supersede(options: Namespace, output: Output) -> int:
    """Replace a frame by a text, or by an existing frame."""
    text = " ".join(options.text)
    if bool(text.strip()) == (options.by is not None):
        raise InvalidInput(
            "supersede takes either a text or --by ID",
            remedy="Pass a text, or --by ID.",
        )
    with changing(options, output) as store:
        old = store.frame(options.old)
        new_frame = text if options.by is None else options.by
        receipt = store.supersede(options.old, new_frame, reason=options.reason)
        new = receipt.id if options.by is None else options.by
        for notice in receipt.notices:
            output.warn(notice)
        output.row(("- ", "red"), f"#{old.id} ", clipped(old.text, 200))
        output.row(("+ ", "green"), f"#{new} ", clipped(store.frame(new).text, 200))
        output.result({"file": store.path, "old": old.id, "new": new, **receipt.to_dict()})
    return 0


def run_delete(options: Namespace, output: Output) -> int:
    """Close frames by id, all or none, or the frames of a filter."""
    where = where_of(options)
    if bool(options.ids) == (where is not None):
        raise InvalidInput(
            "delete takes either ids or a filter", remedy="Pass ids, or --tag, --kind or --role."
        )
    with changing(options, output) as store:
        if where is not None:
            before = store.head.seq
            receipt = store.delete(where=where, reason=options.reason)
            output.line(f"closed {counted(len(receipt.deleted), 'frame')}")
            if receipt.deleted:
                output.line(f"Still readable with --at {before}.", style="dim")
            else:
                hint(store.view(), options, output)
            deleted: list[JsonValue] = [*receipt.deleted]
            output.result({"file": store.path, **receipt.to_dict(), "deleted": deleted})
            return 0
        frames = [store.frame(number) for number in dict.fromkeys(options.ids)]
        with store.transaction(reason=options.reason) as transaction:
            for frame in frames:
                store.delete(frame)
        receipt = transaction.receipt
        for frame in frames:
            output.row(("- ", "red"), f"#{frame.id} ", clipped(frame.text, 200))
        before = receipt.seqs[0] - 1
        output.line(f"Still readable with --at {before}.", style="dim")
        output.result(
            {"file": store.path, "deleted": [frame.id for frame in frames], **receipt.to_dict()}
        )
    return 0


def run_tag(options: Namespace, output: Output) -> int:
    """Name a point in time, or list the names."""
    if options.name is None:
        with reading(options) as store:
            view = view_of(store, options)
            tags = view.tags()
            with output.pages():
                for name, seq in tags.items():
                    output.parts((f"{seq:>7}  ", "yellow"), name)
            if not tags:
                output.line("There are no tags.")
            rows: list[JsonValue] = [{"tag": name, "at": seq} for name, seq in tags.items()]
            output.result({"basis": view.basis, "tags": rows}, items="tags")
        return 0
    # A missing file is an error here: a new file has no point to name.
    with changing(options, output) as store:
        view = view_of(store, options)
        receipt = store.tag(options.name, at=view)
        output.line(f"{options.name} names event {view.basis:,} of {store.path}")
        answer = {"file": store.path, "tag": options.name, "at": view.basis}
        output.result({**answer, **receipt.to_dict()})
    return 0
