"""The parsers of why, link and unlink."""

from .choices import LINK_KINDS
from .verb_parser import Adding, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add why, link and unlink."""
    why = add_verb(
        adding,
        "why",
        "explain why a fact stands, or does not",
        "links.run_why",
        reads=True,
        examples=("why 14", "why 14 --at before-the-move", "why 14 --depth 2"),
    )
    why.add_argument("fact", type=identifier, metavar="FACT", help="id of the fact")
    why.add_argument("--depth", type=int, default=16, metavar="COUNT", help="most levels (16)")

    link = add_verb(
        adding,
        "link",
        "link a fact to another fact, or to a frame",
        "links.run_link",
        writes=True,
        examples=("link 14 depends_on 9", "link 21 invalidates 14", "link 14 generated_from 3"),
    )
    link.add_argument("fact", type=identifier, metavar="FACT", help="id of the fact")
    link.add_argument("kind", choices=LINK_KINDS, metavar="KIND", help=", ".join(LINK_KINDS))
    link.add_argument("target", type=identifier, metavar="TARGET", help="id of a fact or frame")

    unlink = add_verb(
        adding,
        "unlink",
        "remove a link",
        "links.run_unlink",
        reasons=True,
        examples=("unlink 22", "unlink 22 --json"),
    )
    unlink.add_argument("link", type=identifier, metavar="LINK", help="id of the link")
