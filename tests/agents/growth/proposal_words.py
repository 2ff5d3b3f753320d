"""A vocabulary for proposals: put one, assess it, judge it, and let days pass."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import cerata
from cerata import Store
from cerata.agents import judge
from cerata.agents.growth.gates import GatedProposal, gated_proposal
from cerata.engine.disk.environment import Environment
from cerata.engine.events import JsonValue
from cerata.memory.snapshot.reader import snapshot_of

from ...clocks import StandingClock

DAY = 24 * 3_600_000_000
START = 1_760_000_000_000_000


@dataclass
class World:
    """A store whose clock a test moves."""

    store: Store
    clock: StandingClock

    def wait(self, days: float) -> None:
        self.clock.time_us += int(days * DAY)

    def propose(self, text: str = "I keep my word.", target: str = "identity", **more: int) -> int:
        metadata: dict[str, JsonValue] = {"target": target, **more}
        return self.store.put_frame(
            text, kind="proposal", metadata=metadata, options=cerata.PutOptions(track="wyatt")
        ).id

    def assess(self, proposal: int, *, aligned: JsonValue = True, line: JsonValue = 1) -> int:
        metadata: dict[str, JsonValue] = {"task": "align", "proposal": proposal}
        metadata |= {"aligned": aligned, "line": line}
        return self.store.put_frame(
            "YES", kind="assessment", metadata=metadata, options=cerata.PutOptions(track="wyatt")
        ).id

    def read(self, proposal: int) -> GatedProposal:
        return gated_proposal(snapshot_of(self.store), proposal)

    def judge(self, proposal: int, verdict: str = "approve", actor: str = "anna") -> cerata.Receipt:
        return judge(self.store, self.read(proposal), verdict, actor=actor)  # type: ignore[arg-type]

    def holds(self, proposal: int) -> bool:
        return self.read(proposal).holds

    def in_force(self, proposal: int) -> str | None:
        verdict = self.read(proposal).in_force
        return None if verdict is None else verdict.verdict


@contextmanager
def world(path: str = ":memory:") -> Generator[World]:
    clock = StandingClock(START)
    with cerata.open(path, environment=replace(Environment(), clock=clock)) as store:
        yield World(store, clock)
