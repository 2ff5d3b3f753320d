"""Draw the facts of a life on both clocks, and the graph around a person.

    python examples/two_clocks.py [FOLDER]

Writes ``facts.svg`` and ``graph.svg``, and both as PNG, into the folder; docs/facts.md shows them.
A clock of the example records the facts of a year at once, and makes the pictures reproducible.
Needs the extra ``plot``.
"""

import argparse
from datetime import UTC, datetime
from pathlib import Path

import cerata
from cerata import Entity, Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.packs.plots import draw_facts, draw_graph
from cerata.packs.plots.canvas import FORMS


class Calendar:
    """A clock that shows a day until the next call of ``turn_to``."""

    def __init__(self) -> None:
        self.time_us = 0

    def turn_to(self, day: str) -> None:
        when = datetime.fromisoformat(day).replace(tzinfo=UTC)
        self.time_us = int(when.timestamp()) * 1_000_000

    def now_us(self) -> int:
        return self.time_us

    def monotonic(self) -> float:
        return self.time_us / 1e6

    def sleep(self, seconds: float) -> None:
        self.time_us += int(seconds * 1e6)


def live(store: cerata.Store, calendar: Calendar) -> None:
    """Assert Alice's homes in the order of her messages, with one error."""
    calendar.turn_to("2024-01-10")
    store.graph.declare("lives in", functional=True)
    store.assert_fact("alice", "lives in", Entity("Paris"), valid_from="2020-01-01")
    calendar.turn_to("2024-03-02")
    store.assert_fact("alice", "lives in", Entity("Rome"), valid_from="2023-05-01")
    calendar.turn_to("2024-05-20")
    heard = store.assert_fact(
        "alice", "lives in", Entity("Oslo"), valid_from="2024-04-01", confidence=0.6
    )
    calendar.turn_to("2024-06-11")
    store.correct_fact(heard, object=Entity("Bergen"), confidence=1.0)
    calendar.turn_to("2024-08-01")
    store.assert_fact(
        *("alice", "works at", Entity("Acme")), valid_from="2021-03-01", valid_to="2024-07-01"
    )
    store.assert_fact("alice", "likes", Entity("chess"), valid_from="open")
    calendar.turn_to("2024-10-01")


def befriend(store: cerata.Store) -> None:
    """Assert facts about other people and places."""
    store.graph.assert_many(
        [
            ("alice", "is married to", Entity("bob")),
            ("bob", "is married to", Entity("alice")),
            ("bob", "works at", Entity("Acme")),
            ("carl", "plays chess with", Entity("alice")),
            ("carl", "reports to", Entity("bob")),
            ("Acme", "is located in", Entity("Bergen")),
            ("Bergen", "is part of", Entity("Norway")),
        ]
    )
    kinds = {"person": ("alice", "bob", "carl"), "city": ("Bergen", "Rome", "Paris")}
    for kind, names in kinds.items():
        for name in names:
            store.graph.name(name, kind=kind)


def main() -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    folder: Path = parser.parse_args().folder
    calendar = Calendar()
    environment = Environment(storage=MemoryStorage(), clock=calendar)
    with cerata.open("life.cera", environment=environment) as store:
        live(store, calendar)
        history = store.graph.versions("alice")
        for form in FORMS:
            drawn = draw_facts(store, history, title="alice", form=form)
            (folder / f"facts.{form}").write_bytes(drawn)
        befriend(store)
        for form in FORMS:
            drawn = draw_graph(store, "alice", hops=2, valid_at="now", form=form)
            (folder / f"graph.{form}").write_bytes(drawn)
    print("facts.svg, facts.png, graph.svg and graph.png")


if __name__ == "__main__":
    main()
