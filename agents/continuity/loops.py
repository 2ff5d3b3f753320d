"""Loops and unsupported claims: the recorded calls of a session beside its conversation.

Owns both rules; the constants are those of the source. Unvalidated heuristics. A loop is, among the
last 20 calls of a session's runs, 5 calls of one tool in a row, 3 calls that are equal, or 3 equal
results. A claim is unsupported if the agent says that it acted, in a session that has calls, and no
call succeeded since the exchange before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np

from cerata.engine.unreadable import frame_place, readable
from cerata.memory.snapshot.snapshot import Snapshot

from ..activities.columns import ActivityKind, CallKind
from ..activities.reader import CallRow
from ..activities.values import activities_at
from ..turns.lexicon import SIGN
from .exchanges import Pair, Talk

CALLS: Final = 20
OF_ONE_TOOL: Final = 5
EQUAL: Final = 3

_MADE: Final = (CallKind.TOOL, CallKind.FUNCTION, CallKind.MODEL)


def calls_of(snapshot: Snapshot, agent: str, session: str) -> list[CallRow]:
    """Return the calls of the runs of a session, in order, without inputs."""
    activities = activities_at(snapshot)
    rows: list[CallRow] = []
    for activity in activities.named(ActivityKind.SESSION, session, agent):
        for run in activities.parts_of(activity):
            rows += [call for call in activities.calls(run) if call.kind in _MADE]
    return sorted(rows, key=lambda call: call.seq)


def loops_in(snapshot: Snapshot, calls: Sequence[CallRow]) -> list[str]:
    """Return a line for each loop in the last 20 calls."""
    last = calls[-CALLS:]
    loops: list[str] = []
    for name, group in groupby(last, key=lambda call: call.name):
        count = len(list(group))
        if count >= OF_ONE_TOOL:
            loops.append(f"{count} calls of {name} in a row")
    # A call that raised has no result; equal calls may still repeat.
    equal = Counter((call.name, call.digest) for call in last)
    loops += [
        f"{count} equal calls of {name}" for (name, _), count in equal.items() if count >= EQUAL
    ]
    results = {call.result: call.name for call in last if call.result}
    contents = Counter(
        (results[frame.id], frame.content_hash)
        for frame in readable(results, snapshot.frame_at, frame_place)
    )
    loops += [
        f"{count} equal results of {name}"
        for (name, _), count in contents.items()
        if count >= EQUAL
    ]
    return loops


def unsupported_claims(talk: Talk, pairs: Sequence[Pair], calls: Sequence[CallRow]) -> list[int]:
    """Return the messages of a session in which the agent claims an act that no call supports.

    Args:
        talk: The messages of the session.
        pairs: Its exchanges.
        calls: Its calls; without any, no claim is judged.
    """
    if not calls:
        return []
    succeeded = [call.seq for call in calls if not call.failed]
    seqs = talk.messages.columns.seq
    claims: list[int] = []
    before = 0
    for pair in pairs:
        last = seqs.item(pair.rows[-1])
        if pair.reply:
            signs = talk.messages.signs(np.array(pair.reply, np.int64))
            is_claim = bool(signs[:, SIGN["claim"]].any())
            if is_claim and not any(before < seq < last for seq in succeeded):
                claims.append(seqs.item(pair.reply[0]))
        before = last
    return claims
