"""Recorded recalls as judgements: a shown frame that was used later answers the question.

A use (``record_access``) counts for the newest earlier recall that showed the frame. Each recall is
asked again at its basis, so frames that were written later do not compete. Only shown frames can be
used, so such judgements favour the profile that showed them, and the gain of another is at least as
good as measured. Owns the choice of recalls. Leaves out recalls with a filter,
which the log has in a form that is only printed, those by vectors alone, and contexts of sessions.
"""

from collections.abc import Iterator

from cerata.engine.events import AccessFrames, Event, RecallContext
from cerata.memory.search.recall_rerun import asked, request_of
from cerata.memory.snapshot.readable_events import readable_bodies
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.retrieval.ranking.profile import Profile

from .candidates import DEPTH, JudgedQuestion
from .groups import group_of


class UsedRecalls:
    """The recorded recalls of a snapshot with a used frame.

    - ``skipped`` counts the recalls that cannot be repeated: with a filter, by vectors
      alone, of a session, or of a state whose contents retention gave up.
    """

    def __init__(self, snapshot: Snapshot, profile: Profile) -> None:
        self.skipped = 0
        self._snapshot = snapshot
        self._profile = profile

    def questions(self) -> Iterator[JudgedQuestion]:
        """Yield a judged question for each recall, in order of the log.

        Cost: a read of each event of the snapshot, and a snapshot for each recall.
        """
        for event, used in self._used():
            recall = event.body
            assert isinstance(recall, RecallContext)
            if (
                recall.where is not None
                or recall.assembly is not None
                or recall.mode == "vector"
                or not recall.query.strip()
                or not self._snapshot.layers.log.horizon().has(recall.basis)
            ):
                self.skipped += 1
                continue
            snapshot = asked(self._snapshot, event, recall)
            frames = [frame for frame in used if snapshot.layers.has(frame)]
            if frames:
                yield JudgedQuestion(
                    snapshot=snapshot,
                    request=request_of(snapshot, recall, self._profile, DEPTH),
                    group=group_of(snapshot, min(frames)),
                    items={frame: place for place, frame in enumerate(frames)},
                    grades=[1.0] * len(frames),
                )

    def _used(self) -> list[tuple[Event, list[int]]]:
        """Return the recalls with the used frames of each, in order of the log."""
        recalls: dict[int, Event] = {}
        used: dict[int, dict[int, None]] = {}
        newest: dict[int, int] = {}
        for event, body in readable_bodies(self._snapshot, 1, self._snapshot.basis):
            if isinstance(body, RecallContext):
                recalls[event.seq] = event
                newest.update(dict.fromkeys(body.frames, event.seq))
            elif isinstance(body, AccessFrames):
                for frame in body.frames:
                    if frame in newest:
                        used.setdefault(newest[frame], {})[frame] = None
        return [(recalls[seq], sorted(used[seq])) for seq in sorted(used)]
