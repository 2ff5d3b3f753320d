"""A crash state in words: what happened to whom, and what of it reached the disk.

Owns the sentence that people are shown for a violation. The exact choices, by which a state can
be made again, are `CrashState.describe`'s.
"""

from .states import CrashState, Models


def tell(state: CrashState) -> str:
    """Return what crashed, when, and what was left, as one sentence.

    The last step that wrote before the crash is named by its place in the story: ``2:sell``.
    """
    epoch = state.epoch
    step = epoch.labels[-1] if epoch.labels else ""
    when = f"in operation {step.replace(':', ' (', 1)})" if step else "while the store was opened"
    if state.models == Models.KILL:
        return f"The process was killed {when}{_done(state)}."
    said = f"The power failed {when}{_arrived(state)}"
    if state.tears:
        said += f", {len(state.tears)} of them torn"
    if state.size != epoch.sizes[-1]:
        said += f"; the file was left with {state.size:,} of {epoch.sizes[-1]:,} bytes"
    if state.lost_names is not None:
        kept = ", ".join(state.lost_names.own)
        said += f"; its name was {kept}" if kept else "; its name was lost"
    return f"{said}."


def _done(state: CrashState) -> str:
    """Say how many writes were issued, where the versions tell."""
    epoch = state.epoch
    for count in range(epoch.write_count, -1, -1):
        versions = tuple(
            sum(1 for write in history.writes if write < count) for history in epoch.sectors
        )
        if versions == state.versions:
            return f", after {_of(count, epoch.write_count, 'write')} since the last sync"
    return ""


def _arrived(state: CrashState) -> str:
    """Say how many sectors hold what was written to them last; the others hold something older."""
    pairs = list(zip(state.versions, state.epoch.sectors, strict=True))
    new = sum(1 for version, history in pairs if version == len(history.versions) - 1)
    if not pairs:
        return ""
    return f": {_of(new, len(pairs), 'sector')} written since the last sync arrived"


def _of(count: int, total: int, thing: str) -> str:
    """Return ``no sector``, ``all 3 sectors``, ``2 of 3 sectors``, or ``the one sector``."""
    if count == 0:
        return f"no {thing}"
    if count == total:
        return f"the one {thing}" if total == 1 else f"all {total} {thing}s"
    return f"{count} of {total} {thing}s"
