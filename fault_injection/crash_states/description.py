"""A crash state in words: the kind of crash, its instant, and the data that reached the disk.

Owns the sentence for people about a violation. The exact choices, from which a state can be
rebuilt, are `CrashState.describe`'s.
"""

from .states import CrashState, Models


def tell(state: CrashState) -> str:
    """Return the crash, its instant, and the remaining data, as one sentence.

    The last step that wrote before the crash is named by its place in the story: ``2:sell``.
    """
    epoch = state.epoch
    step = epoch.labels[-1] if epoch.labels else ""
    when = f"in operation {step.replace(':', ' (', 1)})" if step else "while the store was opened"
    if state.models == Models.KILL:
        return f"The process was killed {when}{_done(state)}."
    sentence = f"The power failed {when}{_arrived(state)}"
    if state.tears:
        sentence += f", {len(state.tears)} of them torn"
    if state.size != epoch.sizes[-1]:
        sentence += f"; the file was left with {state.size:,} of {epoch.sizes[-1]:,} bytes"
    if state.lost_names is not None:
        names = ", ".join(state.lost_names.own)
        sentence += f"; its name was {names}" if names else "; its name was lost"
    return f"{sentence}."


def _done(state: CrashState) -> str:
    """Return how many writes were issued, if the versions show it."""
    epoch = state.epoch
    for count in range(epoch.write_count, -1, -1):
        versions = tuple(
            sum(1 for write in history.writes if write < count) for history in epoch.sectors
        )
        if versions == state.versions:
            return f", after {_of(count, epoch.write_count, 'write')} since the last sync"
    return ""


def _arrived(state: CrashState) -> str:
    """Return how many sectors hold their last written content; the rest hold older content."""
    pairs = list(zip(state.versions, state.epoch.sectors, strict=True))
    new = sum(1 for version, history in pairs if version == len(history.versions) - 1)
    if not pairs:
        return ""
    return f": {_of(new, len(pairs), 'sector')} written since the last sync arrived"


def _of(count: int, total: int, noun: str) -> str:
    """Return ``no sector``, ``all 3 sectors``, ``2 of 3 sectors``, or ``the one sector``."""
    if count == 0:
        return f"no {noun}"
    if count == total:
        return f"the one {noun}" if total == 1 else f"all {total} {noun}s"
    return f"{count} of {total} {noun}s"
