"""The verbs of links between facts: why, link and unlink."""

from argparse import Namespace

from cerata.memory.store import Store
from cerata.memory.values.links import KINDS, Link

from .output import Output
from .store_options import changing, reading, view_of
from .verb_parser import Adding, add_verb

_STYLES = {"stands": "", "disputed": "yellow", "invalid": "red"}


def add_verbs(adding: Adding) -> None:
    """Add why, link and unlink."""
    why = add_verb(
        adding,
        "why",
        "explain why a fact stands, or does not",
        run_why,
        reads=True,
        examples=("why 14", "why 14 --at before-the-move", "why 14 --depth 2"),
    )
    why.add_argument("fact", type=int, metavar="FACT", help="id of the fact")
    why.add_argument("--depth", type=int, default=16, metavar="COUNT", help="most levels (16)")

    link = add_verb(
        adding,
        "link",
        "link a fact to another fact, or to a frame",
        run_link,
        examples=("link 14 depends_on 9", "link 21 invalidates 14", "link 14 generated_from 3"),
    )
    link.add_argument("fact", type=int, metavar="FACT", help="id of the fact")
    link.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    link.add_argument("target", type=int, metavar="TARGET", help="id of a fact or frame")

    unlink = add_verb(
        adding, "unlink", "remove a link", run_unlink, examples=("unlink 22", "unlink 22 --json")
    )
    unlink.add_argument("link", type=int, metavar="LINK", help="id of the link")


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
        receipt = store.unlink(options.link)
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
