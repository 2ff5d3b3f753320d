"""An agent with a loop of its own: a session, a run for each ticket, and calls at the same time.

    python examples/triage.py --kill-after 3    # the process dies
    python examples/triage.py                   # goes on: memos spare the calls that are recorded

It differs from researcher.py: coroutines, no decorator, and memos in place of a replay.
"""

import argparse
import asyncio
import os

import cerata

TICKETS = {"t-1": "The login fails.", "t-2": "Thanks, all is well.", "t-3": "The disk fails."}
TEAMS = ("network", "storage", "desk")
KILL_AFTER = [0]
"""Answers that are left until the process dies; 0 for no kill."""


async def rate(text: str, team: str) -> int:
    """Return how much a ticket concerns a team, in place of a model."""
    print(f"rating {text!r} for {team}")
    await asyncio.sleep(0)
    if KILL_AFTER[0]:
        KILL_AFTER[0] -= 1
        if not KILL_AFTER[0]:
            os._exit(9)
    return len(text) % (3 + len(team))


def assign(team: str, key: str) -> str:
    """Assign the ticket; a service would ignore a key that it has seen."""
    print(f"assigning to {team}")
    return f"{team} {key[:0]}".strip()


async def triage(run: cerata.Run, text: str) -> str:
    """Let all teams rate a ticket at the same time, and assign it to the best."""
    calls = (run.acall("rate", rate, memo=True, text=text, team=team) for team in TEAMS)
    ratings = [int(str(result.value)) for result in await asyncio.gather(*calls)]
    team = TEAMS[ratings.index(max(ratings))]
    return str(run.call("assign", assign, memo=True, team=team, key=run.key("assign")).value)


def main() -> None:
    """Triage every ticket whose run has not ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kill-after", type=int, default=0, metavar="ANSWERS")
    KILL_AFTER[0] = parser.parse_args().kill_after
    with cerata.open("tickets.cera") as store:
        agent = cerata.Agent(store, "triage", version="2")
        done = {each.name for each in agent.runs() if each.status == "done"}
        with agent.session("monday") as session:
            for ticket, text in TICKETS.items():
                if ticket in done:
                    continue
                with session.run(ticket, inputs={"text": text}) as run:
                    print(ticket, asyncio.run(triage(run, text)))
        for ended in agent.runs():
            print(agent.rerun(ended.name, triage))


if __name__ == "__main__":
    main()
