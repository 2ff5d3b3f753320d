"""An agent over three days and a crash: handoffs, summaries, and a trait that Anna approves.

    python examples/three_days.py

All times are given, so each run prints the same lines. `Diarist` replaces a language model: it
quotes, and has three thoughts about a promise, the last with a proposal.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import cerata
from cerata import Environment
from cerata.agents import judge

MONDAY, TUESDAY = "2026-01-05T18:00:00Z", "2026-01-06T09:00:00Z"
AFTER_THE_CRASH, WEDNESDAY = "2026-01-06T09:04:00Z", "2026-01-07T08:00:00Z"
THURSDAY, A_MONTH_LATER = "2026-01-08", "2026-02-09T08:00:00Z"
SOUL = "I keep my word, and name a date with each promise.\nI ask before I act."
THOUGHTS = {
    "Think": "When will I remind them of the deadline?",
    "Connect": "I promised a reminder and named no date. SOUL asks for one.",
    "Conclude": "I was vague.\nPROPOSE: I name a date with each promise, even a small one.",
}
"""Thoughts by the first word of an instruction."""


class StoppedClock:
    """A clock that shows one time."""

    def __init__(self, time: str) -> None:
        self.time_us = int(datetime.fromisoformat(time).timestamp()) * 1_000_000

    def now_us(self) -> int:
        return self.time_us

    def monotonic(self) -> float:
        return self.time_us / 1e6

    def sleep(self, seconds: float) -> None:
        self.time_us += int(seconds * 1e6)


class Diarist(cerata.Extractive):
    """A model that quotes, and thinks about promises."""

    name = "diarist"

    def write(self, task: cerata.Task) -> str:
        """Answer a task."""
        if task.kind == "reflect":
            return THOUGHTS[task.instructions.split()[0]]
        return super().write(task)


def opened(path: Path, time: str) -> cerata.Store:
    """Open the memory at a given time."""
    return cerata.open(path, environment=Environment(clock=StoppedClock(time)))


def agent_of(store: cerata.Store) -> cerata.Agent:
    """Return the agent."""
    return cerata.Agent(store, "wyatt", model=Diarist(), timezone="Europe/Rome")


def monday(path: Path) -> None:
    """Talk about taxes, and about code in a mode of its own."""
    with opened(path, MONDAY) as store:
        store.remember(SOUL, kind="identity", uri="identity:SOUL")
        agent = agent_of(store)
        with agent.session("s-1", thread="taxes") as session:
            print(f"Monday, thread taxes: {session.resumed}")
            session.exchange(
                "No, I meant the tax deadline. I am scared of the deadline!",
                "The tax deadline is Friday. I will remind you.",
            )
        with agent.session("s-2", mode="code") as session:
            session.exchange("Rename the script.", "It is now called invoices.py.")


def tuesday(path: Path) -> None:
    """Get a question, and die before the answer."""
    with opened(path, TUESDAY) as store:
        session = agent_of(store).session("s-3", thread="taxes")
        context = session.assemble("When do I call the accountant?", max_tokens=2_000)
        print(f"\nTuesday, thread taxes: {session.resumed}\n{context.text}", flush=True)
        session.message("user", context.question)
        os.kill(os.getpid(), signal.SIGKILL)


def after_the_crash(path: Path) -> None:
    """Go on where the killed process stopped: its last message was durable."""
    with (
        opened(path, AFTER_THE_CRASH) as store,
        agent_of(store).session("s-4", thread="taxes") as session,
    ):
        context = session.assemble("Are you there?", max_tokens=2_000, blocks=["continuity"])
        print(f"\nAfter the crash, thread taxes: {session.resumed}\n{context.text}")
        session.exchange("Are you there?", "Yes. Call the accountant on Thursday at ten.")


def wednesday(path: Path) -> None:
    """Summarise the days, think about the open question, and propose a change."""
    with opened(path, WEDNESDAY) as store:
        agent = agent_of(store)
        print("\nWednesday")
        for report in agent.reflect().done:
            print(f"  {report.kind} {report.subject}")
        for summary in agent.summaries("taxes"):
            print(f"\nSummary of {summary.period}\n{summary.text}")
        [proposal] = agent.proposals()
        print(f"\n{proposal}")
        try:
            judge(store, proposal, "approve", actor="anna")
        except cerata.Conflict as error:
            print(f"Refused: {error.what}.")


def a_month_later(path: Path) -> None:
    """Approve the proposal, and see the trait in the next context."""
    with opened(path, A_MONTH_LATER) as store:
        agent = agent_of(store)
        [proposal] = agent.proposals()
        judge(store, proposal, "approve", actor="anna")
        with agent.session("s-5", thread="taxes") as session:
            context = session.assemble(
                "Good morning!", max_tokens=2_000, blocks=["identity", "contemplation"]
            )
        print(f"\nA month later, Anna approves\n{context.text}")
        [past], [present] = agent.at(THURSDAY).proposals(), agent.proposals()
        print(f"\nOn Thursday the proposal was {past.status}, and now it is {present.status}.")


def main() -> int:
    """Live three days and the morning of the approval."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wyatt.cera"
        monday(path)
        child = multiprocessing.get_context("spawn").Process(target=tuesday, args=(path,))
        child.start()
        child.join()
        print(f"\nThe process died of signal {-(child.exitcode or 0)}, before it answered.")
        after_the_crash(path)
        wednesday(path)
        a_month_later(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
