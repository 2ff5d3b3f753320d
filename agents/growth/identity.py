"""Identity: the files that a person wrote for an agent, and the traits that a person approved.

Nothing rewrites the files. Owns the reading; leaves out how a context shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import readable
from cerata.memory.values.arguments import DOCUMENT_KIND

from .proposal_values import IDENTITY
from .proposals import Proposal, proposals_of

if TYPE_CHECKING:
    from cerata.memory.snapshot.snapshot import Snapshot

FILES: Final = ("SOUL", "AGENTS", "TOOLS", "ANCHOR", "MEMORY")
"""The names of identity files, in the order of a context; the URI is "identity:" and a name."""


@dataclass(frozen=True, slots=True)
class IdentityFile(PlainValue):
    """A file of an agent's identity; ``id`` is the frame that has the text."""

    name: str
    id: int
    text: str


@dataclass(frozen=True, slots=True)
class Identity(PlainValue):
    """An agent's identity as of a basis.

    - ``files`` are in the order SOUL, AGENTS, TOOLS, ANCHOR, MEMORY.
    - ``traits`` are the approved proposals of the target "identity", oldest first, and
      ``scaffold`` those of a part of the scaffold, which only contexts of the mode "code" show.
    """

    files: tuple[IdentityFile, ...]
    traits: tuple[Proposal, ...]
    scaffold: tuple[Proposal, ...]

    def file(self, name: str) -> IdentityFile | None:
        """Return the file of a name such as "SOUL", or None."""
        return next((file for file in self.files if file.name == name), None)


def identity_of(snapshot: Snapshot, agent: str) -> Identity:
    """Return the identity of an agent. Cost: a read of each file and proposal."""
    held = [each for each in proposals_of(snapshot, agent) if each.holds]
    read = partial(_file, snapshot)
    return Identity(
        tuple(file for file in readable(FILES, read, "identity:{}".format) if file is not None),
        tuple(each for each in held if each.target == IDENTITY),
        tuple(each for each in held if each.target != IDENTITY),
    )


def _file(snapshot: Snapshot, name: str) -> IdentityFile | None:
    layers = snapshot.layers
    uri = f"identity:{name}"
    files: list[int] = []
    for frame in layers.find_uri(uri):
        if layers.chunk_of(frame) is None and _is_identity(snapshot, frame):
            files.append(frame)
    if not files:
        return None
    newest = layers.newest_of_uri(uri)
    frame = newest if newest in files else max(files, key=layers.moment)
    assert frame is not None
    return IdentityFile(name, frame, snapshot.frame_at(frame).text)


def _is_identity(snapshot: Snapshot, frame: int) -> bool:
    """Return whether a frame is an identity file; a long file is a document of such chunks."""
    row = snapshot.layers.row(frame)
    if row is not None and row.kind == DOCUMENT_KIND:
        chunks = snapshot.layers.children(frame)
        row = snapshot.layers.row(chunks[0]) if chunks else None
    return row is not None and row.kind == IDENTITY
