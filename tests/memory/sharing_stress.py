"""A file shared by writers, readers, followers and a compactor, whose processes are killed.

``python -m tests.memory.sharing_stress --seconds 180 --seed 1`` runs 4 writers of two threads each,
4 readers, 2 followers and a compactor; and one writer each that forks children, whose clock jumps,
whose syncs are slow or fail, that lacks the optional packages, and that has a projection and events
of its own. It kills one of those that have begun every half second (``--kill-seconds``); a new one
takes its place. It checks that each acknowledged event is present once, that each follower was
given each event once and in order, that no view goes back, that recorded times rise, and that only
documented errors came.
"""

import argparse
import errno
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any, Final

import cerata
from cerata.engine.disk import storage as storage_module
from cerata.engine.disk.environment import Environment, SystemClock
from cerata.engine.events import Draft, PutFrame, UnknownBody
from cerata.projections.core.projection import FoldedEvent

from ..inside import log_of

ROLES: Final = {
    "writer": 4,
    "reader": 4,
    "follower": 2,
    "compactor": 1,
    "parent": 1,
    "jumper": 1,
    "faulty": 1,
    "bare": 1,
    "later": 1,
}
THREADS: Final = 2
JUMP_SECONDS: Final = 86_400
SLOW_SECONDS: Final = 0.05
OPTIONAL: Final = (
    "hnswlib",
    "jsonschema",
    "matplotlib",
    "onnxruntime",
    "pypdf",
    "selectolax",
    "mcp",
)
KILL_SECONDS: Final = 0.5
DOCUMENTED: Final = ("Locked", "HistoryPruned")
COUNTED: Final = ("compacted", "refused", "failed_syncs")


def say(**fields: object) -> None:
    # One write: threads and children share the file.
    os.write(1, (json.dumps(fields) + "\n").encode())


def put(store: cerata.Store, source: random.Random, name: str, number: int) -> None:
    """Put a few frames, and report them once they are acknowledged; delete one now and then."""
    texts = [f"{name} {number} {part}" for part in range(source.randint(1, 4))]
    receipt = store.put_frames(texts)
    say(acknowledged=dict(zip(receipt.seqs, texts, strict=True)))
    if number % 7 == 0:
        store.delete(receipt.ids[0])


def writing(store: cerata.Store, name: str) -> None:
    source = random.Random(name)
    for number in count(1):
        put(store, source, name, number)


def writer(path: str, name: str) -> None:
    with cerata.open(path) as store, ThreadPoolExecutor(THREADS) as threads:
        for ending in as_completed(
            [threads.submit(writing, store, f"{name}-{thread}") for thread in range(THREADS)]
        ):
            ending.result()
            os._exit(1)


def parent(path: str, name: str) -> None:
    """Fork a child now and then, whose inherited handle refuses and which writes by another."""
    source = random.Random(name)
    with cerata.open(path) as store:
        for number in count(1):
            put(store, source, name, number)
            if number % 10 == 0:
                child = os.fork()
                if not child:
                    _be_a_child(store, path, f"{name}-child-{number}")
                put(store, source, f"{name}-beside", number)
                if os.waitpid(child, 0)[1]:
                    say(error=f"{name}: the child of {number} failed")


def _be_a_child(store: cerata.Store, path: str, name: str) -> None:
    status = 1
    try:
        try:
            store.put_frame("stolen")
            say(error=f"{name} wrote by the handle of its parent")
        except cerata.Closed:
            store.close()
        with cerata.open(path) as own:
            put(own, random.Random(name), name, 1)
        status = 0
    except (cerata.Locked, cerata.HistoryPruned):
        status = 0
    finally:
        os._exit(status)


class JumpingClock(SystemClock):
    """A wall clock that is set ahead and back by up to a day."""

    def __init__(self, seed: str) -> None:
        self._source = random.Random(seed)

    def now_us(self) -> int:
        return super().now_us() + self._source.randint(-JUMP_SECONDS, JUMP_SECONDS) * 1_000_000


def jumper(path: str, name: str) -> None:
    with cerata.open(path, environment=Environment(clock=JumpingClock(name))) as store:
        writing(store, name)


def faulty(path: str, name: str) -> None:
    """Write while syncs take long, and one in a hundred fails; the failed handle is left."""
    source = random.Random(name)
    flush = storage_module._flush

    def slow(descriptor: int) -> None:
        time.sleep(source.random() * SLOW_SECONDS)
        if source.random() < 0.01:
            raise OSError(errno.EIO, "injected")
        flush(descriptor)

    storage_module._flush = slow
    for run in count(1):
        try:
            with cerata.open(path) as store:
                writing(store, f"{name}-{run}")
        except (cerata.OutcomeUnknown, cerata.StorageFailed):
            say(failed_syncs=1)


def bare(path: str, name: str) -> None:
    """Write without the optional packages, and with as little cache as possible."""
    for package in OPTIONAL:
        sys.modules[package] = None  # type: ignore[assignment]  # an import raises
    with cerata.open(path, options=cerata.OpenOptions(cache_bytes=1 << 20)) as store:
        writing(store, name)


class Lengths(cerata.RowProjection[str, int]):
    """Texts by length: only one process runs it."""

    name = "stress-lengths"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            key = str(len(getattr(event.body, "text", None) or ""))
            self.rows[key] = self.rows.get(key, 0) + 1


def later(path: str, name: str) -> None:
    """Write events of a type that the other processes do not know, and save a projection."""
    body = UnknownBody(kind="ofLater", kind_version=1, data=b"\x80")
    source = random.Random(name)
    with cerata.open(path, projections=[Lengths]) as store:
        for number in count(1):
            put(store, source, name, number)
            if number % 5 == 0:
                log_of(store).append([Draft(body)])
            if number % 50 == 0:
                store.checkpoint()


def reader(path: str, name: str) -> None:
    seen = 0
    with cerata.open(path, mode="r") as store:
        say(begun=1)
        while True:
            view = store.history.view()
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
        say(begun=1)
        for event in store.stream.follow(position):
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
                store.upkeep.compact(horizon="HEAD" if source.random() < 0.3 else None)
                say(compacted=1)
            except cerata.Locked:
                say(refused=1)
            time.sleep(0.2)


@dataclass
class Member:
    """A forked process in a role; ``code`` is its exit code, negative for a signal."""

    role: str
    name: str
    pid: int
    output: Path
    code: int | None = None

    @property
    def has_begun(self) -> bool:
        return self.output.stat().st_size > 0

    def has_ended(self, *, wait: bool = False) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


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
            self.counts.update({key: row[key] for key in COUNTED if key in row})
        if member.code not in (-signal.SIGKILL, 0):
            said = member.output.with_suffix(".err").read_text().strip().splitlines()
            last = said[-1] if said else str(member.code)
            if not any(f"errors.{name}:" in last for name in DOCUMENTED):
                self.errors.append(f"{member.name} ended with {last}")
            self.counts[last.split(":")[0]] += 1


def started(role: str, number: int, run: int, path: Path) -> Member:
    """Fork a process in a role: it begins at once, where a new interpreter would take a second."""
    name = f"follower-{number}" if role == "follower" else f"{role}-{number}-{run}"
    output = path.parent / f"{role}-{number}-{run}.out"
    with output.open("w") as out, output.with_suffix(".err").open("w") as err:
        pid = os.fork()
        if not pid:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            try:
                globals()[role](str(path), name)
            except BaseException:  # noqa: BLE001 - the parent reads it
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(1)
    return Member(role, name, pid, output)


def stressed(path: Path, seconds: float, seed: int, kill_seconds: float = KILL_SECONDS) -> Totals:
    """Run the processes, kill some, and check the file in the end."""
    source, totals = random.Random(seed), Totals()
    until, held = os.pipe()
    cerata.open(path).close()
    members = {
        (role, number): started(role, number, 0, path)
        for role, count in ROLES.items()
        for number in range(count)
    }
    runs = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(kill_seconds)
        runs += 1
        begun = [place for place, member in members.items() if member.has_begun]
        if begun:
            members[source.choice(begun)].kill()
            totals.counts["killed"] += 1
        time.sleep(0.02)
        for (role, number), member in list(members.items()):
            if member.has_ended():
                totals.take(member)
                members[role, number] = started(role, number, runs, path)
    for member in members.values():
        member.kill()
        member.has_ended(wait=True)
        totals.take(member)
    # A child outlives its killed parent, and must not write during the check. All descendants have
    # the pipe open until they end.
    os.close(held)
    os.read(until, 1)
    os.close(until)
    _check(path, totals)
    return totals


def _check(path: Path, totals: Totals) -> None:
    with cerata.open(path) as store:
        head = store.head.seq
        texts: dict[int, str | None] = {}
        times: dict[int, int] = {}
        for event in store.log(1):
            texts[event.seq] = getattr(event.body, "text", None)
            times[event.header.last_seq] = event.header.recorded
            if event.type == "ofLater":
                totals.counts["events of a later version"] += 1
        if any(one >= two for one, two in pairwise(times.values())):
            totals.errors.append("the recorded times of two batches do not rise")
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
            rest = [event.seq for event in store.stream.follow(position, timeout=0)]
            if rest != list(range(position + 1, head + 1)):
                totals.errors.append(
                    f"{place.name} cannot continue at {position} of {head}: it gets {len(rest)}"
                    f" events, {rest[:3]} to {rest[-3:]}"
                )
    totals.counts["acknowledged"] = len(totals.acknowledged)
    totals.counts["events"] = head


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--kill-seconds", type=float, default=KILL_SECONDS)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shared.cera"
        totals = stressed(path, chosen.seconds, chosen.seed, chosen.kill_seconds)
    lines = [str(dict(totals.counts)), *totals.errors[:20], f"{len(totals.errors)} violations"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if totals.errors else 0


if __name__ == "__main__":
    sys.exit(main())
