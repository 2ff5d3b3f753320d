"""The operations of a handle while the sweeps inject faults: a story for every use of the file.

Owns the stories and the files that they start from. A story has two parts: earlier operations of
other processes, without faults, and the operations of the subject. Leaves out the faults, and the
judgement.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cerata.engine.copies.backup import back_up
from cerata.engine.copies.fork import KeptStates, fork_into_file
from cerata.engine.errors import CerataError
from cerata.engine.events import DeleteFrame, Draft, PutTag, SupersedeFrame
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file.file import PAGES_SIZE, choose_page, turned
from cerata.engine.log_file.newest_events import BRANCH
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.fault_injection.stories.engine_workloads import RING_SIZE
from cerata.memory.values.options import OpenOptions

from ..operations import publish
from .handle_under_test import ACKNOWLEDGED, ReportedBatch, Subject, draft

Resting = Callable[[Callable[[], None]], None]
"""Runs operations of another process, without faults."""


@dataclass(frozen=True, slots=True)
class Story:
    """The operations of the subject, and those before; with ``fresh`` no file exists before."""

    act: Callable[[Subject, Resting], None]
    before: Callable[[Subject], None] = lambda _: None
    fresh: bool = False


def prepare(story: Story, subject: Subject) -> None:
    """Write the file that a story starts from."""
    if not story.fresh:
        subject.another_handle().close()
        story.before(subject)


def by_other(subject: Subject, name: str, **options: Any) -> Log:
    """Append a batch in another process, and return its handle."""
    log = subject.another_handle(**options)
    log.append([draft(name)])
    subject.reported.append(ReportedBatch(name, 1, ACKNOWLEDGED))
    return log


# --- earlier operations --------------------------------------------------------------------------


def killed(subject: Subject) -> None:
    """A writer was killed: its tail is in the ring, and no mark proves it."""
    log = by_other(subject, "killed")
    log.abandon()


def torn(subject: Subject) -> None:
    """A writer was killed in the middle of a record."""
    log = by_other(subject, "killed")
    _tear(subject, log)
    log.abandon()


def _tear(subject: Subject, log: Log) -> None:
    offset = log.toc().ring_start
    data = Path(subject.path).read_bytes()
    while any(data[offset : offset + 8]):
        offset += 512
    with Path(subject.path).open("r+b") as file:
        file.seek(offset)
        file.write(b"torn" * 32)


# --- operations of the subject -------------------------------------------------------------------


def _creation(subject: Subject, _: Resting) -> None:
    subject.open()
    subject.append([draft("a")])
    subject.close()
    subject.open()


def _appends(subject: Subject, _: Resting) -> None:
    subject.open()
    subject.append([draft("a")])
    subject.append([draft("b"), draft("b"), draft("b", 2_000)], key="k")
    subject.act("refresh", Log.refresh)
    subject.append([draft("c", 5_000)])
    subject.act("read", lambda log: list(log.read()))


def _batches(subject: Subject, _: Resting) -> None:
    """Deletes, supersedes and tags are ordinary batches."""
    subject.open()
    subject.append([draft("a"), draft("a")])
    subject.append([Draft(DeleteFrame(frame=1))])
    subject.append([draft("c"), Draft(SupersedeFrame(old=2, new=-1))])
    subject.append([Draft(PutTag(tag="t", at=3))])


def _large(subject: Subject, _: Resting) -> None:
    subject.open()
    subject.append([draft("a", 20_000)])
    subject.append([draft("b")])
    subject.append([draft("c", 30_000)])
    subject.act("seal", Log.seal)


def _around(subject: Subject, _: Resting) -> None:
    subject.open()
    for name in "abcdefg":
        subject.append([draft(name, 14_000)])


def _seals(subject: Subject, _: Resting) -> None:
    subject.open()
    subject.append([draft("a")])
    subject.act("seal", Log.seal)
    subject.append([draft("b")])
    subject.act("seal", Log.seal)
    subject.close()
    subject.open()


def _checkpoints(subject: Subject, _: Resting) -> None:
    subject.open()
    for name in "ab":
        subject.append([draft(name)])
        subject.act("checkpoint", publish)
    subject.close()
    subject.open()


def _proofs(subject: Subject, _: Resting) -> None:
    subject.open(sync="always")
    subject.append([draft("a")])
    subject.append([draft("b")])
    subject.close()
    subject.open()


def _groups(subject: Subject, _: Resting) -> None:
    """Unsynced batches may be lost with the machine, but not with the process."""
    subject.open(sync=1 << 20)
    subject.append([draft("a")])
    subject.append([draft("b", 2_000)])
    subject.act("commit", Log.commit)
    subject.append([draft("c")])
    subject.close()
    subject.open()


def _after_another(subject: Subject, resting: Resting) -> None:
    subject.open()
    subject.append([draft("a")])
    resting(lambda: by_other(subject, "b").close())
    subject.act("refresh", Log.refresh)
    resting(lambda: by_other(subject, "c").close())
    subject.append([draft("d")])


def _dead_writer(subject: Subject, resting: Resting) -> None:
    """Another writer dies in a record; the next writer repairs the tail under the lock."""
    subject.open()
    subject.append([draft("a")])

    def die() -> None:
        log = by_other(subject, "b")
        _tear(subject, log)
        log.abandon()

    resting(die)
    subject.append([draft("c")])
    subject.append([draft("d")])


def _keys(subject: Subject, _: Resting) -> None:
    """A key that was used before returns the first result, from segments too."""
    subject.open()
    subject.append([draft("a")], key="one")
    subject.act("seal", Log.seal)
    if subject.reported and subject.reported[-1].fate == ACKNOWLEDGED:
        subject.act("again", lambda log: log.append([draft("a")], key="one"))
    else:
        subject.append([draft("again")], key="one")
    subject.act("find", lambda log: log.find_key("one", "default"))


def _reader(subject: Subject, resting: Resting) -> None:
    """A reader follows a writer that has not synced, and never writes."""
    subject.open(mode="r")
    writer: list[Log] = []
    resting(lambda: writer.append(by_other(subject, "a", sync=1 << 20)))
    subject.act("refresh", Log.refresh)
    subject.act("read", lambda log: list(log.read()))
    resting(writer[0].close)
    subject.close()
    subject.open(mode="rw")


def _backup(subject: Subject, resting: Resting) -> None:
    target = subject.path + "-copy"
    subject.open()
    subject.append([draft("a")])
    subject.append([draft("b", 20_000)])
    subject.act("backup", lambda log: back_up(log, target))

    def look() -> None:
        if not Path(target).exists():
            return
        try:
            with open_log(target, environment=subject.environment, mode="r") as copy:
                subject.judge_copy(list(copy.read()))
        except CerataError as error:
            subject.problems.append(f"the backup does not open: {error!r}")
        Path(target).unlink()

    resting(look)


def _fork(subject: Subject, resting: Resting) -> None:
    """The fork has the parent's events and a branch, or no name."""
    target = subject.path + "-fork"
    subject.open()
    subject.append([draft("a")])
    subject.act("seal", Log.seal)
    subject.append([draft("b", 20_000)])
    subject.append([draft("c")])
    states = KeptStates((), lambda _flip, _toc: {})
    subject.act("fork", lambda log: fork_into_file(log, log.head.seq, target, states))

    def look() -> None:
        if not Path(target).exists():
            return
        try:
            with open_log(target, environment=subject.environment, mode="r") as fork:
                *events, last = fork.read()
                subject.judge_copy(events)
                if last.header.type != BRANCH or fork.branches()[-1].parent != len(events):
                    subject.problems.append("the fork does not end with its branch")
                if verify_log(fork).problems:
                    subject.problems.append(f"verify of the fork: {verify_log(fork).problems}")
        except CerataError as error:
            subject.problems.append(f"the fork does not open: {error!r}")
        Path(target).unlink()

    resting(look)


def _move(subject: Subject, resting: Resting) -> None:
    """A compaction replaces this file by another."""
    subject.open()
    subject.append([draft("a")])
    resting(partial(compact, subject))
    subject.append([draft("b")])
    subject.act("refresh", Log.refresh)


def compact(subject: Subject) -> None:
    """Compact the log: a new file of the same log takes the old file's place."""
    storage = subject.environment.storage
    path = subject.path
    with subject.another_handle(mode="r") as log:
        back_up(log, path + "-new")
    file = storage.open(path, mode="rw")
    page, _ = choose_page(file.read_at(0, PAGES_SIZE), path)
    moved = replace(turned(page), moved=True)
    file.write_at(moved.number * PAGE_SIZE, moved.encode())
    file.close()
    storage.rename(path + "-new", path)


def _store(subject: Subject, _: Resting) -> None:
    """The same through `Store`: frames, a supersede, a delete, a tag, a checkpoint."""
    # Imported here, since a smaller process forks sooner.
    from cerata.memory.store import open_store

    path = subject.path
    environment = subject.environment
    store = subject.attempt(
        "open",
        lambda: open_store(
            path, environment=environment, options=OpenOptions(ring_bytes=RING_SIZE)
        ),
    )
    if store is None:
        return
    subject.log = store._log  # pyright: ignore[reportPrivateUsage]
    ids: list[int] = []

    def put(name: str) -> None:
        ids.append(store.put_frame(f"{name} text").id)

    subject.write("a", 1, lambda _: put("a"))
    subject.write("b", 1, lambda _: put("b"))
    subject.attempt("search", lambda: store.search("text"))
    if len(ids) == 2:
        subject.write("c", 2, lambda _: store.supersede(ids[0], "c text"))
        subject.write(f"delete:{ids[1]}", 1, lambda _: store.delete(ids[1]))
        subject.write("tag:t", 1, lambda _: store.history.tag("t"))
    subject.attempt("checkpoint", store.checkpoint)
    subject.log = None
    subject.attempt("close", store.close)
    subject.open()


STORIES: dict[str, Story] = {
    "creation": Story(_creation, fresh=True),
    "appends": Story(_appends),
    "batches": Story(_batches),
    "large": Story(_large),
    "around the ring": Story(_around),
    "seals": Story(_seals),
    "checkpoints": Story(_checkpoints),
    "proofs": Story(_proofs),
    "unsynced groups": Story(_groups),
    "a killed writer's file": Story(_creation, killed),
    "a torn tail": Story(_creation, torn),
    "after another": Story(_after_another),
    "after a dead writer": Story(_dead_writer),
    "keys": Story(_keys),
    "a reader": Story(_reader),
    "backup": Story(_backup),
    "fork": Story(_fork),
    "move": Story(_move),
    "a store": Story(_store),
}
