"""The verbs of growth: proposals and judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cerata.cli.options import changing, reading, view_of
from cerata.engine.errors import InvalidInput

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.agents.growth.proposal_values import VerdictName
    from cerata.agents.growth.proposals import Proposal
    from cerata.cli.output import Output
    from cerata.engine.events import JsonValue
    from cerata.memory.store import Store


_PAST: Final = {"approve": "approved", "reject": "rejected", "revoke": "revoked"}


def run_proposals(options: Namespace, output: Output) -> int:
    """List the current proposals with their gates."""
    from cerata.agents.growth.proposals import proposals_of
    from cerata.memory.snapshot.reader import snapshot_of

    with reading(options) as store:
        view = view_of(store, options)
        proposals = proposals_of(snapshot_of(view), options.agent)
        for proposal in proposals:
            _print_proposal(proposal, output)
        if not proposals:
            output.line("There is no proposal.")
        items: list[JsonValue] = [proposal.to_dict() for proposal in proposals]
        output.result({"basis": view.basis, "proposals": items})
    return 0


def run_judge(options: Namespace, output: Output) -> int:
    """Print a proposal, and record the verdict on what was printed."""
    from cerata.agents.growth.commands import judge

    verdict: VerdictName = options.verdict
    with changing(options, output) as store:
        proposal = _proposal(store, options.proposal)
        if options.content is not None:
            proposal = replace(proposal, content=_content(options.content))
        _print_proposal(proposal, output)
        receipt = judge(store, proposal, verdict, actor=options.actor)
        words = _PAST[verdict] if receipt.added else f"is {_PAST[verdict]} already,"
        output.line(f"#{proposal.id} {words} by event {receipt.id:,}")
        after = _proposal(store, proposal.id).to_dict()
        output.result({"file": store.path, "proposal": after, **receipt.to_dict()})
    return 0


def _proposal(store: Store, number: int) -> Proposal:
    from cerata.agents.growth.gates import gated_proposal
    from cerata.agents.growth.proposals import proposal_of
    from cerata.memory.snapshot.reader import snapshot_of

    snapshot = snapshot_of(store)
    return proposal_of(snapshot, gated_proposal(snapshot, number))


def _content(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidInput(
            f"--content {text!r:.40} is no hash in hexadecimal",
            remedy="Copy the content from 'cerata agents proposals --json'.",
        ) from None


def _print_proposal(proposal: Proposal, output: Output) -> None:
    # The text of a proposal is shown whole: a person judges all of it.
    first, *gates = str(proposal).split("\n")
    agent = "" if proposal.agent is None else f"{proposal.agent}  "
    number, _, rest = first.partition(" ")
    output.row((f"{number:>7}  ", "dim"), agent, rest)
    for gate in gates:
        output.row((f"       {gate}", "dim"))
