"""The parsers of proposals, approve, reject and revoke."""

from .verb_parser import Adding, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add proposals, approve, reject and revoke."""
    proposals = add_verb(
        adding,
        "proposals",
        "list the changes that agents propose, with their gates",
        "growth.run_proposals",
        reads=True,
        examples=("proposals", "proposals --agent wyatt --at yesterday"),
    )
    proposals.add_argument("--agent", metavar="NAME", help="only the proposals of this agent")
    _add_verdict(adding, "approve", "approve a proposal of an agent, after its gates")
    _add_verdict(adding, "reject", "reject a proposal of an agent")
    _add_verdict(adding, "revoke", "revoke the approval of a proposal")


def _add_verdict(adding: Adding, name: str, text: str) -> None:
    verb = add_verb(
        adding,
        name,
        text,
        f"growth.run_{name}",
        examples=(f"{name} 12 --actor anna", f"{name} '#12' --actor anna --json"),
    )
    verb.add_argument("proposal", type=identifier, metavar="ID", help="id of the proposal")
    verb.add_argument(
        "--actor", required=True, metavar="NAME", help="the person who judges, recorded in the log"
    )
    verb.add_argument(
        "--content", metavar="HASH", help="refuse a proposal with another content than this"
    )
