"""An audit: what the memory knew on a day, who changed it since, why, and the answer then."""

from datetime import UTC, datetime

import cerata
from cerata.engine.disk.environment import SystemClock

QUESTION = "how long can a customer return a purchase?"


class Calendar(SystemClock):
    """A clock whose days the story sets; a real program leaves it out."""

    day = "2026-01-10"

    def now_us(self) -> int:
        return int(datetime.fromisoformat(self.day).replace(tzinfo=UTC).timestamp()) * 1_000_000


def main() -> None:
    """Let two people write, and audit the memory afterwards."""
    clock = Calendar()
    with cerata.open(":memory:", environment=cerata.Environment(clock=clock)) as store:
        with store.transaction(actor="anna") as first:
            store.put_frame("A customer can return a purchase for 30 days.")
            store.assert_fact("returns", "paid by", "the shop")
        clock.day = "2026-03-05"
        with store.transaction(actor="ben", reason="the new terms of March"):
            store.supersede(first.receipt.ids[0], "A customer can return a purchase for 14 days.")
            store.retract_fact(first.receipt.ids[1])
        then = store.at("2026-02-01")
        print("in February:", then.recall(QUESTION).items[0].text, *then.facts("returns"))
        print("now:", store.recall(QUESTION).items[0].text, *store.facts("returns"))
        for event in store.log(first=then.basis + 1):
            print(f"#{event.seq} {event.actor}: {type(event.body).__name__}, {event.reason}")


if __name__ == "__main__":
    main()
