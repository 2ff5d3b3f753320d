"""An agent that passes results by name, and keeps what it learned: references, slots, a kill.

    python examples/portfolio.py --kill-after 2    # the process dies in the middle of the run
    python examples/portfolio.py                   # goes on: no price is fetched twice
    cerata agents slots notes --scope user_id=u1 -f portfolio.cera
    cerata agents refs week-1 -f portfolio.cera           # its results left with its end

A result of a tool stays in the memory: the model sees a line with its name and its summary, and the
next tool gets the value. The notes of a user outlive the run. The prices here are made up, and the
model is a function: replace `fetch` by a request, and `write` by your model.
"""

import argparse
import os
from collections.abc import Mapping
from typing import Final

import msgspec

import cerata

KILL_AFTER: Final = [0]
"""Fetches that are left until the process dies; 0 for no kill."""

HOLDINGS: Final = {"BEES": 12, "COMB": 40, "WAXY": 3}


class Note(msgspec.Struct, frozen=True):
    """What the agent learned about a user's portfolio."""

    value: float
    best: str


MEMORY: Final = {
    "scratchpad": cerata.scratchpad(ttl="2d", max_size_mb=5),
    # A map by run: a run that goes on after a kill writes its note again in place of the first.
    "notes": cerata.semantic_memory("user_id", type="dict", schema=Note),
}


def fetch(ticker: str) -> dict[str, list[float]]:
    """Return the prices of a quarter, in place of a request."""
    print(f"fetching {ticker}")
    start = float(sum(map(ord, ticker)) % 50)
    prices = {"close": [round(start + day * (len(ticker) % 3 + 1) / 10, 2) for day in range(90)]}
    if KILL_AFTER[0]:
        KILL_AFTER[0] -= 1
        if not KILL_AFTER[0]:
            os._exit(9)
    return prices


def measure(prices: Mapping[str, list[float]], holdings: Mapping[str, int]) -> dict[str, float]:
    """Return the value of each position at the last close."""
    return {ticker: round(prices[ticker][-1] * count, 2) for ticker, count in holdings.items()}


def write(prompt: str) -> str:
    """Return a sentence about the prompt, in place of a model."""
    return f"The prompt has {len(prompt.splitlines())} lines and none of the prices."


@cerata.agent("portfolio", memory=MEMORY)
def review(run: cerata.Run, holdings: dict[str, int]) -> str:
    """Fetch the prices of each position, measure all by reference, and keep a note."""
    prices: dict[str, str] = {}
    for ticker in holdings:
        run.next_turn()
        result = run.call("market.fetch", fetch, ticker=ticker)
        prices[ticker] = f"{result.ref}#/close"
    # Each reference is replaced by its value; the recorded call has the references.
    values = run.call("measure", measure, prices=prices, holdings="$ref:input_holdings.1")
    assert isinstance(values.value, dict)
    model = run.tool(kind="model")(write)
    answer = model(str(run.context("What should the user know?", max_tokens=2_000))).value
    worth = {ticker: float(str(value)) for ticker, value in values.value.items()}
    note = Note(round(sum(worth.values()), 2), max(worth, key=lambda name: worth[name]))
    run.slot("notes").set(run.id, note)
    return str(answer)


def main() -> None:
    """Run the agent once, or go on with the run that a kill left open."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kill-after", type=int, default=0, metavar="FETCHES")
    KILL_AFTER[0] = parser.parse_args().kill_after
    scope = {"tenant": "default", "user_id": "u1"}
    with cerata.open("portfolio.cera", scope=scope) as store:
        print(review(store, id="week-1", holdings=HOLDINGS))
        for item in cerata.Agent(store, "portfolio", memory=MEMORY).slot("notes").items():
            print(f"{item.key}: {item.value.value:,.2f}, most of it in {item.value.best}")


if __name__ == "__main__":
    main()
