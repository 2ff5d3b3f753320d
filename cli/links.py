"""The verbs of links between facts: link and unlink, and what says why a fact is believed: why."""

from argparse import Namespace

from cerata.memory.link_values import KINDS, Link
from cerata.memory.store import Store

from .opening import changing, reading, view_of
from .output import Output
from .parser import Adding, add_verb

_STYLES = {"stands": "", "disputed": "yellow", "invalid": "red"}


def add_verbs(adding: Adding) -> None:
    """Add why, link and unlink."""
    why = add_verb(
        adding,
        "why",
        "why a fact is believed, or not",
        run_why,
        reads=True,
        examples=("why 14", "why 14 --at before-the-move", "why 14 --depth 2"),
    )
    why.add_argument("fact", type=int, metavar="FACT", help="its id")
    why.add_argument("--depth", type=int, default=16, metavar="COUNT", help="how deep (16)")

    link = add_verb(
        adding,
        "link",
        "say how a fact stands to another, or to a frame",
        run_link,
        examples=("link 14 depends_on 9", "link 21 invalidates 14", "link 14 generated_from 3"),
    )
    link.add_argument("fact", type=int, metavar="FACT", help="its id")
    link.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    link.add_argument("target", type=int, metavar="TARGET", help="the id of a fact or frame")

    unlink = add_verb(
        adding, "unlink", "take a link back", run_unlink, examples=("unlink 22", "unlink 22 --json")
    )
    unlink.add_argument("link", type=int, metavar="LINK", help="its id")


def run_why(options: Namespace, output: Output) -> int:
    """Print what a fact rests on, and what speaks for and against it, as a tree."""
    with reading(options) as store:
        view = view_of(store, options)
        why = view.why(options.fact, depth=options.depth)
        for line in str(why).splitlines():
            output.line(line)
        output.result({"basis": view.basis, "why": why.to_dict()})
    return 0


def run_link(options: Namespace, output: Output) -> int:
    """Link a fact, and say what either end is by it."""
    with changing(options, output) as store:
        receipt = store.link(options.fact, options.kind, options.target)
        link = next(one for one in store.links(options.fact) if one.id == receipt.id)
        output.line(f"link #{link.id}: {link}" + ("" if receipt.added else ", as before"))
        _print_ends(store, link, output)
        output.result({"file": store.path, "link": link.to_dict(), **receipt.to_dict()})
    return 0


def run_unlink(options: Namespace, output: Output) -> int:
    """Take a link back, and say what either end is without it."""
    with changing(options, output) as store:
        receipt = store.unlink(options.link)
        every = store.links(include_unlinked=True)
        link = next(one for one in every if one.id == options.link)
        output.line(f"unlinked: {link}" + ("" if receipt.added else ", as before"))
        _print_ends(store, link, output)
        output.result({"file": store.path, "link": link.to_dict(), **receipt.to_dict()})
    return 0


def _print_ends(store: Store, link: Link, output: Output) -> None:
    for number in (link.fact,) if link.is_frame else (link.fact, link.target):
        fact = store.fact(number)
        output.row(
            (f"{f'#{fact.id}':>7}  ", "dim"), f"{fact}: ", (fact.standing, _STYLES[fact.standing])
        )
