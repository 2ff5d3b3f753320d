"""The verbs of links between facts: why, link and unlink."""

from argparse import Namespace

from cerata.memory.store import Store
from cerata.memory.values.links import Link

from .output import Output
from .store_options import changing, reading, view_of

_STYLES = {"stands": "", "disputed": "yellow", "invalid": "red"}


def run_why(options: Namespace, output: Output) -> int:
    """Print a fact's links, those for it and those against it, as a tree."""
    with reading(options) as store:
        view = view_of(store, options)
        why = view.why(options.fact, depth=options.depth)
        for line in str(why).splitlines():
            output.line(line)
        output.result({"basis": view.basis, "why": why.to_dict()})
    return 0


def run_link(options: Namespace, output: Output) -> int:
    """Link a fact, and print the standing of both ends."""
    with changing(options, output) as store:
        receipt = store.link(options.fact, options.kind, options.target)
        link = next(link for link in store.links(options.fact) if link.id == receipt.id)
        output.line(f"link #{link.id}: {link}" + ("" if receipt.added else ", unchanged"))
        _print_ends(store, link, output)
        output.result({"file": store.path, "link": link.to_dict(), **receipt.to_dict()})
    return 0


def run_unlink(options: Namespace, output: Output) -> int:
    """Remove a link, and print the standing of both ends."""
    with changing(options, output) as store:
        receipt = store.unlink(options.link, reason=options.reason)
        links = store.links(include_unlinked=True)
        link = next(link for link in links if link.id == options.link)
        output.line(f"unlinked: {link}" + ("" if receipt.added else ", unchanged"))
        _print_ends(store, link, output)
        output.result({"file": store.path, "link": link.to_dict(), **receipt.to_dict()})
    return 0


def _print_ends(store: Store, link: Link, output: Output) -> None:
    for number in (link.fact,) if link.is_frame else (link.fact, link.target):
        fact = store.fact(number)
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"), f"{fact}: ", (fact.standing, _STYLES[fact.standing])
        )
