"""A file shared by writers, readers, followers and a compactor, whose processes are killed.

``python -m tests.memory.sharing_stress --seconds 180 --seed 1`` runs 4 writers, 4 readers, 2
followers and a compactor, and kills one of them at random every half second; a new one takes its
place. It checks that each acknowledged event is present once, that each follower was given each
event once and in order, that no view goes back, and that only documented errors came.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import cerata

ROLES: Final = {"writer": 4, "reader": 4, "follower": 2, "compactor": 1}
KILL_SECONDS: Final = 0.5
DOCUMENTED: Final = ("Locked", "HistoryPruned")


def say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def writer(path: str, name: str) -> None:
    source = random.Random(name)
    with cerata.open(path) as store:
        number = 0
        while True:
            number += 1
            texts = [f"{name} {number} {part}" for part in range(source.randint(1, 4))]
            receipt = store.put_frames(texts)
            say(acknowledged=dict(zip(receipt.seqs, texts, strict=True)))
            if number % 7 == 0:
                store.delete(receipt.ids[0])


def reader(path: str, name: str) -> None:
    seen = 0
    with cerata.open(path, mode="r") as store:
        while True:
            view = store.view()
            if view.basis < seen:
                say(error=f"{name}: a view went back from {seen} to {view.basis}")
            seen = view.basis
            try:
                first = [frame.id for frame in islice(view.frames(), 20)]
                again = [frame.id for frame in islice(view.frames(), 20)]
            except cerata.HistoryPruned:
                continue
            if first != again:
                say(error=f"{name}: a view changed")


def follower(path: str, name: str) -> None:
    place = Path(f"{path}.{name}")
    position = int(place.read_text()) if place.exists() else 0
    with cerata.open(path, mode="r") as store:
        for event in store.follow(position):
            if event.seq != position + 1:
                say(error=f"{name}: event {event.seq} after {position}")
            position = event.seq
            scratch = Path(f"{place}.new")
            scratch.write_text(str(position))
            scratch.replace(place)


def compactor(path: str, name: str) -> None:
    source = random.Random(name)
    with cerata.open(path) as store:
        while True:
            try:
                store.compact(horizon="HEAD" if source.random() < 0.3 else None)
                say(compacted=1)
            except cerata.Locked:
                say(refused=1)
            time.sleep(0.2)


@dataclass
class Member:
    role: str
    name: str
    process: subprocess.Popen[str]
    output: Path


@dataclass
class Totals:
    acknowledged: dict[int, str] = field(default_factory=dict[int, str])
    errors: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])

    def take(self, member: Member) -> None:
        """Take a dead process's lines; the kill may have cut the last one off."""
        for line in member.output.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            row: dict[str, Any] = json.loads(line)
            for seq, text in row.get("acknowledged", {}).items():
                if self.acknowledged.setdefault(int(seq), text) != text:
                    self.errors.append(f"event {seq} was acknowledged twice")
            if "error" in row:
                self.errors.append(row["error"])
            self.counts.update({key: row[key] for key in ("compacted", "refused") if key in row})
        if member.process.returncode not in (-signal.SIGKILL, 0):
            said = member.output.with_suffix(".err").read_text().strip().splitlines()
            last = said[-1] if said else str(member.process.returncode)
            if not any(f"errors.{name}:" in last for name in DOCUMENTED):
                self.errors.append(f"{member.name} ended with {last}")
            self.counts[last.split(":")[0]] += 1


def started(role: str, number: int, run: int, path: Path) -> Member:
    name = f"follower-{number}" if role == "follower" else f"{role}-{number}-{run}"
    output = path.parent / f"{role}-{number}-{run}.out"
    command = [sys.executable, "-m", "tests.memory.sharing_stress", "--role", role, name, str(path)]
    with output.open("w") as out, output.with_suffix(".err").open("w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True)
    return Member(role, name, process, output)


def stressed(path: Path, seconds: float, seed: int) -> Totals:
    """Run the processes, kill some, and check the file in the end."""
    source, totals = random.Random(seed), Totals()
    cerata.open(path).close()
    members = {
        (role, number): started(role, number, 0, path)
        for role, count in ROLES.items()
        for number in range(count)
    }
    runs = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(KILL_SECONDS)
        runs += 1
        members[source.choice([*members])].process.send_signal(signal.SIGKILL)
        totals.counts["killed"] += 1
        time.sleep(0.02)
        for (role, number), member in list(members.items()):
            if member.process.poll() is not None:
                totals.take(member)
                members[role, number] = started(role, number, runs, path)
    for member in members.values():
        member.process.kill()
        member.process.wait()
        totals.take(member)
    _check(path, totals)
    return totals


def _check(path: Path, totals: Totals) -> None:
    with cerata.open(path) as store:
        head = store.head.seq
        texts: dict[int, str | None] = {}
        for event in store.log(1):
            texts[event.seq] = getattr(event.body, "text", None)
        present = Counter(text for text in texts.values() if text is not None)
        for seq, text in totals.acknowledged.items():
            # An erased event keeps its place, and no other has its text.
            if seq > head or texts[seq] not in (None, text):
                totals.errors.append(f"acknowledged event {seq} is not there")
        totals.errors += [f"{text!r} is there {n} times" for text, n in present.items() if n > 1]
        if not store.verify().ok:
            totals.errors.append("verify found damage")
        for place in path.parent.glob(f"{path.name}.follower-?"):
            position = int(place.read_text())
            rest = [event.seq for event in store.follow(position, timeout=0)]
            if rest != list(range(position + 1, head + 1)):
                totals.errors.append(f"{place.name} cannot continue at {position}")
    totals.counts["acknowledged"] = len(totals.acknowledged)
    totals.counts["events"] = head


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--role", nargs=3)
    chosen = options.parse_args()
    if chosen.role:
        role, name, path = chosen.role
        globals()[role](path, name)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        totals = stressed(Path(folder) / "shared.cera", chosen.seconds, chosen.seed)
    lines = [str(dict(totals.counts)), *totals.errors[:20], f"{len(totals.errors)} violations"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if totals.errors else 0


if __name__ == "__main__":
    sys.exit(main())
