"""The prompts of an analyst over many turns: results by reference beside the full history.

``python -m benchmarks.turns_bench`` (``--tiny`` in CI, ``--turns 160`` for a long run). A scripted
analyst works in 6 phases. Each turn fetches one JSON result of 1 to 16 KB, 60 KB in the first ten
turns, measures it, and answers; its prompt is counted before the answer. The instructions and tool
schemas take 4,000 tokens. Both ways run the same tools. The full history sends every result again
in each prompt; by reference a prompt has summaries, and a tool gets the values that its arguments
name. Every prompt is counted whole in cl100k.

It checks that both ways give the same figures, and that by reference no result is sent, and none
fetched twice.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import cerata
from cerata.retrieval.tokenizer import tokenizer

from .append_bench import machine

INSTRUCTIONS = 4_000
"""Tokens of the instructions and tool schemas."""

WINDOW = 32_768
BUDGET = 7_000
PHASES = ("survey", "prices", "risk", "costs", "scenarios", "report")
SIZES = (1, 3, 4, 5, 6, 6, 7, 8, 9, 11, 12, 16, 10, 5, 3, 2)
"""KB of the results, turn after turn; the first ten have 60."""

Rows = list[dict[str, float | int | str]]


class Tools:
    """The tools of the analyst, which count their calls."""

    def __init__(self) -> None:
        self.fetched: list[int] = []

    def fetch(self, turn: int) -> Rows:
        """Return rows of a turn's size."""
        self.fetched.append(turn)
        random = Random(turn)
        rows: Rows = []
        size = 2
        while size < 1000 * SIZES[(turn - 1) % len(SIZES)]:
            price, count = round(random.uniform(10, 500), 4), random.randrange(10_000)
            rows.append({"id": f"p{random.getrandbits(32):08x}", "price": price, "count": count})
            size += len(json.dumps(rows[-1], separators=(",", ":"))) + 1
        return rows

    def measure(self, rows: Rows) -> dict[str, float]:
        values = [float(row["price"]) * int(row["count"]) for row in rows]
        return {"total": round(sum(values), 2), "largest": max(values)}

    def report(self, parts: list[dict[str, float]]) -> dict[str, float]:
        total = round(sum(part["total"] for part in parts), 2)
        return {"total": total, "largest": max(part["largest"] for part in parts)}


def question(turn: int, turns: int) -> str:
    phase = PHASES[(turn - 1) * len(PHASES) // turns]
    return f"Phase {phase}, turn {turn}: fetch the next positions, measure them, and go on."


def answer(turn: int) -> str:
    return f"I fetched the positions of turn {turn} and measured them; the phase goes on."


@dataclass
class Course:
    """The tokens of each prompt, and the final figures."""

    tokens: list[int]
    figures: object
    fetched: Sequence[int]


def by_history(turns: int) -> Course:
    """Run the analyst with every result in each later prompt."""
    tools, count = Tools(), tokenizer().count
    history: list[str] = []
    parts: list[dict[str, float]] = []
    tokens: list[int] = []
    for turn in range(1, turns + 1):
        asked = question(turn, turns)
        rows = tools.fetch(turn)
        parts.append(tools.measure(rows))
        history += [asked, _json(rows), _json(parts[-1])]
        tokens.append(INSTRUCTIONS + count("\n".join(history)))
        history.append(answer(turn))
    return Course(tokens, tools.report(parts), tools.fetched)


def by_reference(turns: int) -> Course:
    """Run the analyst with results by reference; check each prompt."""
    tools, count = Tools(), tokenizer().count
    tokens: list[int] = []
    with cerata.open(":memory:") as store, cerata.Agent(store, "analyst").run("r1") as run:
        ask = run.tool("ask", kind="model")(answer)
        for turn in range(1, turns + 1):
            rows = run.call("fetch", tools.fetch, turn=turn)
            run.call("measure", tools.measure, rows=rows.ref)
            asked = question(turn, turns)
            context = run.context(asked, max_tokens=BUDGET, reserved=INSTRUCTIONS)
            texts = [message["content"] for message in context.to_messages()]
            tokens.append(INSTRUCTIONS + sum(map(count, texts)))
            assert tokens[-1] == INSTRUCTIONS + context.tokens
            _check_unsent(rows.value, texts)
            ask(turn=turn)
            run.next_turn()
        parts = [f"$ref:measure.{turn}" for turn in range(1, turns + 1)]
        figures = run.call("report", tools.report, parts=parts).value
    return Course(tokens, figures, tools.fetched)


def _check_unsent(rows: Any, texts: Sequence[str]) -> None:
    """Check that no prompt has a row of a result."""
    assert not any(row["id"] in text for text in texts for row in rows)
    assert not any('"price":' in text for text in texts)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def table(history: Course, reference: Course) -> str:
    lines = ["turn     history   references"]
    shown = {*range(1, 17), *range(20, len(history.tokens), 20), len(history.tokens)}
    for turn, (old, new) in enumerate(zip(history.tokens, reference.tokens, strict=True), 1):
        if turn in shown:
            beyond = "  beyond the window" if old > WINDOW else ""
            lines.append(f"{turn:>4}  {old:>10,}   {new:>10,}{beyond}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=16)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    turns: int = 12 if options.tiny else options.turns
    ways: tuple[Callable[[int], Course], ...] = (by_history, by_reference)
    history, reference = (way(turns) for way in ways)
    print(machine())
    print(table(history, reference))
    assert history.figures == reference.figures
    assert reference.fetched == list(range(1, turns + 1))
    last = reference.tokens[-100:]
    if turns > len(last):
        print(f"the last {len(last)} turns by reference: {min(last):,} to {max(last):,} tokens")
    print(f"by reference at most {max(reference.tokens):,} tokens; the same final figures")


if __name__ == "__main__":
    main()
