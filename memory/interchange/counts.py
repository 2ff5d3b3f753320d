"""The counts of an import of events, which its parts add to."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """The counts of an import so far; see `importing.ImportedEvents`."""

    added: int = 0
    known: int = 0
    erased: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
