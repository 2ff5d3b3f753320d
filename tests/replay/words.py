"""What the tests of checkpoints say: a store with a projection of its own, filled and spoilt."""

from pathlib import Path
from random import Random

import cerata
from cerata.engine.events import PutFrame
from cerata.engine.format.toc import Ref
from cerata.memory.batch.writer import session_of
from cerata.memory.store import Store
from cerata.projections.registry import projection_key

from ..inside import fold_of, log_of
from .spending import Spending, Spent

NAMES = ("frames", "fulltext", "spending")


def opened(path: Path, mode: str = "rw") -> Store:
    return cerata.open(path, mode="r" if mode == "r" else "rw", projections=[Spending])


def fill(store: Store, count: int, seed: int = 1, batch: int = 250) -> None:
    """Append events of every kind that a projection here handles, in batches."""
    source = Random(seed)
    first = store.head.seq + 1
    for start in range(0, count, batch):
        drafts = [draft(source, first + start + n) for n in range(min(batch, count - start))]
        session_of(store).write(drafts)


def draft(source: Random, seq: int) -> cerata.Draft:
    if source.random() < 0.4:
        return cerata.Draft(Spent(tag=f"t{source.randrange(50)}", cents=source.randrange(1, 9)))
    words = " ".join(source.choices(("wax", "tablet", "stylus", "honey", f"n{seq % 90}"), k=6))
    return cerata.Draft(PutFrame(text=words))


def chunks(store: Store, name: str) -> list[Ref]:
    """The chunks of a projection's checkpoint, in order."""
    saved = log_of(store).toc().saved(projection_key(fold_of(store).registry.make(name)))
    return [ref for page in saved.chunks for ref in log_of(store).file.page(page)]


def spans(store: Store, name: str) -> list[tuple[int, int]]:
    return [(ref.first_seq, ref.last_seq) for ref in chunks(store, name)]


def spoil(path: Path, offset: int) -> None:
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)


class Killed(BaseException):
    """Stands for the end of the process."""
