"""Judgements: queries with the frames that answer them, as a user writes them down.

Owns `Judgement`, its lines, and the frames that its names mean. Leaves out the members of a line
(`judged_lines`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from cerata.engine.arguments import expect_type
from cerata.engine.errors import CerataError, InvalidInput, NotFound
from cerata.engine.events import AccessFrames, Event, RecallContext, ScopeValue
from cerata.memory.search.recall_rerun import asked, plain_request, request_of
from cerata.memory.snapshot.layers import Layers
from cerata.memory.snapshot.readable_events import readable_bodies
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import FrameId, frame_id
from cerata.retrieval.ranking.profile import Profile

from .candidates import DEPTH, JudgedQuestion, group_of
from .judged_lines import LINE_SIZE_MAX, QUERY, entry_of, grade_of, judged_query

_DIGITS_MAX: Final = 18
_MEMBERS: Final = {"query": QUERY, "document": None}
_REMEDY: Final = 'Write lines such as {"query": {"text": "Who?", "relevant": ["#12"]}}.'


@dataclass(frozen=True, slots=True)
class Judgement:
    """A query and the frames that answer it.

    Args:
        query: the question, in plain language
        relevant: frames, by id (12, "12" or "#12"), URI or value, with grades from 0, or without
            for 1; a document means its chunks, too
        group: queries with one name are left out together; default the conversation, else the
            day, of the first relevant frame
        scope: names and values in which the query is asked; default the reader's
        where: the place of the judgement, for errors

    Raises:
        InvalidInput: the query is empty, relevant is no map or list of frames, or a grade is no
            number from 0.
    """

    query: str
    relevant: Mapping[int | str, float] | Iterable[FrameId | str] = field(hash=False)
    group: str | None = None
    scope: Mapping[str, ScopeValue] | None = field(default=None, hash=False)
    where: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        expect_type("query", self.query, str, "a string", "Pass the question as text.")
        where = self.where or "a judgement"
        if not self.query.strip():
            raise InvalidInput("The query is empty", where=where, remedy="Leave it out.")
        object.__setattr__(self, "relevant", _above_0(self.relevant, where))

    @property
    def grades(self) -> Mapping[str | int, float]:
        """The grade of each relevant name, above 0."""
        return cast("Mapping[str | int, float]", self.relevant)


def _above_0(relevant: object, where: str) -> dict[str | int, float]:
    """Return the grade of each name, without those of 0.

    Raises:
        InvalidInput: a name is neither a text nor a frame, or a grade is no number from 0.
    """
    if isinstance(relevant, str | bytes) or not isinstance(relevant, Iterable):
        raise InvalidInput(
            f"relevant must be a map of frames to grades, or a list, not {relevant!r:.60}",
            where=where,
            remedy="Pass a list, such as ['#12'].",
        )
    pairs: Iterable[tuple[FrameId | str, object]]
    if isinstance(relevant, Mapping):
        pairs = cast("Mapping[FrameId | str, object]", relevant).items()
    else:
        pairs = ((name, 1) for name in cast("Iterable[FrameId | str]", relevant))
    graded = {
        name if isinstance(name, str) else frame_id(name): grade_of(grade, where)
        for name, grade in pairs
    }
    return {name: grade for name, grade in graded.items() if grade}


def judgements_in(
    judgements: Iterable[Judgement | str | bytes], source: str
) -> Iterator[Judgement]:
    """Yield judgements from judgements or their lines; blank lines and documents are passed over.

    Args:
        judgements: judgements, lines, or an open file
        source: the name of the lines, for errors

    Raises:
        InvalidInput: a line is no judgement; ``where`` has its number.
    """
    for number, item in enumerate(judgements, start=1):
        if isinstance(item, Judgement):
            yield item
            continue
        where = f"{source}, line {number:,}"
        judgement = _from_line(_text(item, where), where)
        if judgement is not None:
            yield judgement


def _text(line: object, where: str) -> str:
    if isinstance(line, str | bytes) and len(line) > LINE_SIZE_MAX:
        raise InvalidInput(
            f"A line has more than {LINE_SIZE_MAX:,} bytes",
            where=where,
            remedy="Write a JSON object on each line.",
        )
    if isinstance(line, bytes):
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                "The line is not UTF-8", where=where, remedy="Convert the file."
            ) from error
    if isinstance(line, str):
        return line
    raise InvalidInput(
        f"judgements must be Judgement values or lines, not {line!r:.60}",
        where=where,
        remedy=_REMEDY,
    )


def _from_line(line: str, where: str) -> Judgement | None:
    if not line.strip():
        return None
    kind, members = entry_of(line, where, _MEMBERS, _REMEDY)
    if kind == "document":
        return None
    query = judged_query(members, where)
    return Judgement(query.text, query.relevant, query.group or query.corpus, query.scope, where)


class JudgementResolver:
    """Finds the frames of judgements in a snapshot.

    - ``closed`` counts relevant frames that are no longer current, and are left out.
    - ``unjudged`` counts judgements without a relevant frame, which are left out.
    """

    def __init__(self, snapshot: Snapshot, profile: Profile) -> None:
        self.closed = 0
        self.unjudged = 0
        self._snapshot = snapshot
        self._profile = profile
        self._narrowed: dict[tuple[tuple[str, ScopeValue], ...], Snapshot] = {}

    def question(self, judgement: Judgement, place: int) -> JudgedQuestion | None:
        """Return a judged question; None if none of its relevant frames is current.

        Raises:
            NotFound: a relevant frame does not exist within the scope.
            InvalidInput: the scope is wider than the reader's.
        """
        where = judgement.where or f"judgement {place:,}"
        try:
            snapshot = self._within(judgement.scope)
            request = plain_request(judgement.query, self._profile, DEPTH)
        except CerataError as error:
            raise InvalidInput(error.what, where=where, remedy=error.remedy) from error
        items: dict[int, int] = {}
        grades: list[float] = []
        for name, grade in judgement.grades.items():
            frames = self._frames(snapshot.layers, name, where)
            new = [frame for frame in frames if frame not in items]
            if new:
                items.update(dict.fromkeys(new, len(grades)))
                grades.append(grade)
        if not grades:
            self.unjudged += 1
            return None
        return JudgedQuestion(
            snapshot=snapshot,
            request=request,
            group=judgement.group or group_of(snapshot, min(items)),
            items=items,
            grades=grades,
        )

    def _within(self, scope: Mapping[str, ScopeValue] | None) -> Snapshot:
        if scope is None:
            return self._snapshot
        key = tuple(scope.items())
        if key not in self._narrowed:
            self._narrowed[key] = self._snapshot.within(scope)
        return self._narrowed[key]

    def _frames(self, layers: Layers, name: str | int, where: str) -> list[int]:
        """Return the current frames that a name means, the document before its chunks."""
        number = name if isinstance(name, int) else _number(name)
        if number is None:
            frames = layers.find_uri(str(name))
            if frames:
                return frames
            raise NotFound(
                f"No current frame has the URI {name!r:.80}, which a judgement names",
                where=where,
                remedy="Correct the name, or remove the judgement; an id is written '#12'.",
            )
        if not layers.has(number):
            raise NotFound(
                f"There is no frame {number:,}, which a judgement names",
                where=where,
                remedy="Correct the id, or remove the judgement; 'cerata list' lists ids.",
            )
        frames = layers.unexpired([number]) if layers.closing_of(number) is None else []
        self.closed += not frames
        return [*frames, *layers.chunks(number).values()] if frames else []


def _number(name: str) -> int | None:
    digits = name.removeprefix("#")
    if not (digits.isascii() and digits.isdecimal()):
        return None
    # A larger number is no id; int() refuses one of thousands of digits.
    return int(digits[:_DIGITS_MAX])


# --- Recorded recalls as judgements: a shown frame that was used later answers the question -------
#
# A use (``record_access``) counts for the newest earlier recall that showed the frame. Each recall
# is asked again at its basis, so frames that were written later do not compete. Only shown frames
# can be used, so such judgements favour the profile that showed them, and the gain of another is at
# least as good as measured.


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
