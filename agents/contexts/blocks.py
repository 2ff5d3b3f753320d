"""Blocks: the content of an assembled context, each with its priority, its share and its titles.

Owns the lines of each block. Leaves out the budget (`assembly`) and the readings themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, cast
from zoneinfo import ZoneInfo

from cerata.engine.arguments import wrong_type
from cerata.engine.errors import InvalidInput
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.facts.corrections import contradicted
from cerata.memory.facts.search import fact_text, functional_facts, search_facts
from cerata.memory.search.question_vectors import Stored
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.view import View
from cerata.retrieval.context.imitation import on_one_line

from ..activities.projection import HANDOFF_BLOCK
from ..activities.reader import ActivityRow
from ..activities.values import activities_at
from ..continuity.candidates import REFLECTION_KIND, candidates_of
from ..continuity.descriptions import anchors_of
from ..continuity.entropy import newest_entropy
from ..continuity.exchanges import Exchange, Talk, frames_of_exchange
from ..continuity.handoff import Handoff, handoff_of
from ..continuity.loops import calls_of, loops_in, unsupported_claims
from ..continuity.reflecting import newest_assessment
from ..continuity.resumption import Resumed, last_entry
from ..continuity.retrieval import RecalledKnowledge, recalled_for
from ..continuity.standing import standing_of, wellbeing_of
from ..continuity.summaries import Summaries
from ..growth.identity import identity_of
from ..text.summaries import quoted
from ..turns.line import MAIN_THREAD, Line
from .assembly import Content, Piece, Section, Titles, indented
from .warm_starts import warm_start_of

BlockName: TypeAlias = Literal[
    "identity",
    "stability",
    "contemplation",
    "truth",
    "graph",
    "continuity",
    "standing",
    "references",
    "code",
]
NAMES: Final[tuple[BlockName, ...]] = (
    *("identity", "stability", "contemplation", "truth", "graph", "continuity", "standing"),
    *("references", "code"),
)
UNVALIDATED: Final = ("stability", "contemplation", "standing")
"""The blocks that rest on unvalidated heuristics; "default" leaves them out."""

CODE_MODE: Final = "code"
EXCHANGES: Final = 10
"""Exchanges of the session that a context shows, at most."""

SIDE_MAX: Final = 800
"""Characters of each side of an exchange."""

HASH_SHOWN: Final = 16
"""Characters of the hash of a source: enough to tell versions apart."""

INQUIRIES: Final = 3
FACTS: Final = 10
NEIGHBOURS: Final = 5


_WHAT_YOU: Final = "WHAT YOU"
"""The start of three titles, as the source has them."""


class Place(NamedTuple):
    """The place of a block: its priority, its share of the budget, and its titles."""

    priority: int
    share: float
    personal: tuple[str, ...]
    plain: tuple[str, ...]

    def titles(self, titles: Titles) -> tuple[str, ...]:
        """Return the titles of the sections."""
        return self.personal if titles == "own" else self.plain


PLACES: Final[dict[BlockName, Place]] = {
    "identity": Place(0, 0.25, (), ()),
    "stability": Place(5, 0.04, ("YOUR COHERENCE",), ("STABILITY",)),
    "contemplation": Place(
        7,
        0.06,
        (
            f"{_WHAT_YOU}'VE BEEN THINKING ABOUT",
            f"{_WHAT_YOU} THOUGHT ABOUT OVERNIGHT",
            "PATTERNS YOU'RE DEVELOPING",
        ),
        ("OPEN INQUIRIES", "REFLECTIONS", "TRAITS"),
    ),
    "truth": Place(8, 0.08, ("TRUE NOW",), ("FACTS",)),
    "graph": Place(9, 0.04, ("CONNECTIONS",), ("GRAPH",)),
    "continuity": Place(
        10,
        0.33,
        ("YOUR WORKING MEMORY", f"{_WHAT_YOU} REMEMBER FROM LAST SESSION"),
        ("CONTINUITY CONTEXT", "SESSION HANDOFF"),
    ),
    "standing": Place(12, 0.04, ("WHERE THEY STAND — YOUR ASSESSMENT",), ("STANDING",)),
    "references": Place(15, 0.10, ("REFERENCES",), ("REFERENCES",)),
    "code": Place(20, 0.06, ("CODE EVOLUTION",), ("CODE EVOLUTION",)),
}
RESUME_TITLE: Final = "SESSION_RESUME"

_TAGS: Final = (
    ("SOUL", "soul"),
    ("AGENTS", "operating_instructions"),
    ("TOOLS", "environment_knowledge"),
    ("ANCHOR", "anchor"),
    ("MEMORY", "memory"),
)


def checked_blocks(blocks: object, mode: str) -> tuple[BlockName, ...]:
    """Return the names of blocks. Raises `InvalidInput`."""
    if blocks == "all":
        chosen: Iterable[object] = NAMES
    elif blocks == "default":
        chosen = [name for name in NAMES if name not in UNVALIDATED]
    elif isinstance(blocks, Iterable) and not isinstance(blocks, str | bytes):
        chosen = list(cast("Iterable[object]", blocks))
    else:
        raise wrong_type("blocks", "'default', 'all' or names", blocks, "Pass blocks='all'.")
    for name in chosen:
        if name not in NAMES:
            raise InvalidInput(
                f"There is no block {name!r:.60}", remedy=f"Pass names of {', '.join(NAMES)}."
            )
    return tuple(name for name in NAMES if name in chosen and (name != "code" or mode == CODE_MODE))


class Referred(Protocol):
    """A result of a run that a reference names."""

    @property
    def ref(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def id(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of a session for which a context is assembled."""

    snapshot: Snapshot
    """The state, within the base scope of the line."""
    line: Line
    session: str
    row: ActivityRow | None
    """The session, or None for one that starts next."""
    mode: str
    resumed: Resumed
    timezone: str
    question: str
    titles: Titles
    references: Sequence[Referred] = ()
    """The references of the run whose results are listed."""
    vectors: Stored | None = None
    """The vectors of the question; None to embed it."""

    def contents(self, names: Collection[BlockName]) -> list[Content]:
        """Return the blocks with these names."""
        makers = {
            "identity": self._identity,
            "stability": self._stability,
            "contemplation": self._contemplation,
            "truth": self._truth,
            "graph": self._graph,
            "continuity": self._continuity,
            "standing": self._standing,
            "references": self._references,
            "code": self._code,
        }
        return [
            Content(name, PLACES[name].priority, PLACES[name].share, makers[name]())
            for name in NAMES
            if name in names
        ]

    def _title(self, name: BlockName, number: int = 0) -> str:
        return PLACES[name].titles(self.titles)[number]

    def _identity(self) -> Sequence[Section]:
        identity = identity_of(self.snapshot, self.line.agent)
        sections: list[Section] = []
        for name, tag in _TAGS:
            file = identity.file(name)
            if file is None or (name == "MEMORY" and self.line.thread != MAIN_THREAD):
                continue
            pieces = [
                Piece(f"  {line}", file.id, f"identity:{name}") for line in file.text.splitlines()
            ]
            sections.append(Section(tag, pieces, is_tag=True))
        return sections

    def _stability(self) -> Sequence[Section]:
        entropy = newest_entropy(self._talk())
        if entropy is None:
            return []
        sustained = ", sustained" if entropy.is_sustained else ""
        parts = ", ".join(f"{name} {value:.2f}" for name, value in entropy.parts.items())
        text = f"  Entropy {entropy.value:.2f} ({entropy.level}{sustained}). {parts}".rstrip()
        pieces = [Piece(text, entropy.exchange, "newest exchange")]
        session = self._session()
        calls = calls_of(self.snapshot, self.line.agent, self.session)
        pieces += [
            Piece(f"  Loop: {loop}.", None, "loop") for loop in loops_in(self.snapshot, calls)
        ]
        pieces += [
            Piece(f"  You said that you acted in #{message}; no call did.", message, "claim")
            for message in unsupported_claims(session, session.pairs(), calls)
        ]
        if entropy.level != "calm":
            pieces += [
                Piece(f"  {each.kind}: {quoted(each.text)}", each.message, f"anchor {each.kind}")
                for each in anchors_of(session)
            ]
        return [Section(self._title("stability"), pieces)]

    def _contemplation(self) -> Sequence[Section]:
        agent, line = self.line.agent, self.line
        lines = [each for each in Summaries(self.snapshot, agent).lines if each.group == line.group]
        candidates = candidates_of(self.snapshot, agent, lines)
        opened = [each for each in candidates if each.is_open][-INQUIRIES:]
        inquiries = [
            Piece(
                f"  {quoted(each.inquiry)}",
                each.id,
                "open inquiry",
                further=frames_of_exchange(self.snapshot, agent, each.id),
            )
            for each in opened
        ]
        talk = self._talk()
        last = talk.messages.columns.seq.item(int(talk.rows[-1])) if len(talk) else 0
        done = [frame for each in candidates for frame in each.done if frame > last]
        reflections = [
            Piece(indented(frame.text), frame.id, REFLECTION_KIND)
            for frame in readable(done, self.snapshot.frame_at, frame_place)
        ]
        traits = [
            Piece(indented(each.text), each.id, "trait")
            for each in identity_of(self.snapshot, agent).traits
        ]
        groups = (inquiries, reflections, traits)
        return [
            Section(self._title("contemplation", number), pieces)
            for number, pieces in enumerate(groups)
        ]

    def _truth(self) -> Sequence[Section]:
        present = self.snapshot.true_at(self.snapshot.now)
        facts = [hit.fact for hit in functional_facts(present, self.question, FACTS)]
        against = contradicted(present, facts)
        pieces = [
            Piece(
                f"  {on_one_line(fact_text(fact, against.get(fact.id, ())))}",
                fact.id,
                "fact of a named entity",
            )
            for fact in facts
        ]
        return [Section(self._title("truth"), pieces)]

    def _graph(self) -> Sequence[Section]:
        entropy = newest_entropy(self._talk())
        if entropy is None or entropy.level == "calm":
            return []
        view = View(self.snapshot)
        named = {
            name: None
            for hit in search_facts(self.snapshot, self.question, FACTS)
            for name in hit.named
        }
        pieces = [
            Piece(
                f"  {on_one_line(f'{name} — {each.entity}')}",
                None,
                "neighbour",
                further=each.fact_ids,
            )
            for name in named
            for each in view.graph.neighbours(name, valid_at="now")
        ][:NEIGHBOURS]
        return [Section(self._title("graph"), pieces)]

    def _continuity(self) -> Sequence[Section]:
        session = self._session()
        pairs = session.pairs()
        exchanges = session.exchanges(pairs[-EXCHANGES:])
        shown = {message.id for each in exchanges for message in each.messages}
        now = self.snapshot.now.astimezone(ZoneInfo(self.timezone))
        header = (
            f"  Session {self.session}, thread {self.line.thread}, mode {self.mode}, "
            f"exchange {len(pairs) + 1:,}. Now {now:%Y-%m-%d %H:%M} ({self.timezone})."
        )
        pieces = [Piece(header, None, "session")]
        wellbeing = wellbeing_of(Talk(self.snapshot, self.line.agent))
        if wellbeing is not None and wellbeing.note is not None:
            pieces.append(Piece(f"  {wellbeing.note}", None, "wellbeing"))
        pieces += [
            _exchange(each, "exchange of the session")._replace(rank=EXCHANGES - number)
            for number, each in enumerate(exchanges)
        ]
        recalled = recalled_for(
            self.snapshot,
            self.line,
            self.question,
            shown=shown,
            of_user=not pairs,
            vectors=self.vectors,
        )
        pieces += [
            _exchange(
                each.exchange, f"recalled: {recalled.reason}", of_user=not pairs, is_dated=True
            )._replace(rank=EXCHANGES + 1)
            for each in recalled.exchanges
        ]
        pieces += [_entry(each)._replace(rank=EXCHANGES + 1) for each in recalled.knowledge]
        pieces += [each._replace(rank=EXCHANGES + 2) for each in self._summaries()]
        return [Section(self._title("continuity"), pieces), *self._shown_handoff()]

    def handoff(self) -> Handoff | None:
        """Return the handoff that the session has not shown yet, or None.

        It is that of the thread before the newest entry of the session.
        """
        talk = self._talk()
        if self.row is not None:
            activities = activities_at(self.snapshot)
            if activities.has_shown_handoff(self.row.row):
                return None
            talk = talk.before(last_entry(activities, self.row))
        handoff = handoff_of(
            talk,
            self.line.thread,
            self.line.group,
            self.timezone,
            Summaries(self.snapshot, self.line.agent).compactions(self.line),
        )
        return None if handoff.is_empty else handoff

    def _shown_handoff(self) -> list[Section]:
        """Return the handoff, its warm start, or after a crash the newest messages if fresh."""
        handoff = self.handoff()
        if handoff is None:
            return []
        title = self._title("continuity", 1)
        warm = warm_start_of(self.snapshot, handoff)
        if self.resumed == "crashed" and handoff.age == "fresh":
            title = RESUME_TITLE
            pieces = [
                Piece(f"  {each.role}: {quoted(each.text)}", each.id, "last messages")
                for each in handoff.messages
            ]
        elif self.resumed == "returned" and warm is not None:
            pieces = [Piece(indented(warm.text), warm.id, "warm start")]
        else:
            pieces = [
                Piece(f"  {line}", None, "handoff", further=handoff.sources)
                for line in handoff.lines()
            ]
        return [Section(title, pieces, name=HANDOFF_BLOCK)]

    def _summaries(self) -> list[Piece]:
        """Return the newest summary of each level, none beside one of its direct sources."""
        summaries = Summaries(self.snapshot, self.line.agent).newest(self.line)
        if not summaries:
            return []
        activities = activities_at(self.snapshot)
        pieces: list[Piece] = []
        for number, summary in enumerate(summaries):
            call = activities.call_that_made(summary.id)
            used: set[int] = set() if call is None else set(activities.used_by(call))
            if all(each.id not in used for each in summaries[number + 1 :]):
                text = f"  Summary of {summary.period}:\n{indented(summary.text)}"
                pieces.append(Piece(text, summary.id, f"newest {summary.level}"))
        return pieces

    def _standing(self) -> Sequence[Section]:
        talk = Talk(self.snapshot, self.line.agent)
        pieces: list[Piece] = []
        for score in standing_of(talk, newest_assessment(self.snapshot, self.line.agent)):
            evidence = ", ".join(f"{each.pattern} {each.day}" for each in score.evidence)
            text = f"  {score.dimension} {score.score:.1f}" + (f" ({evidence})" if evidence else "")
            pieces.append(Piece(text, None, "standing"))
        return [Section(self._title("standing"), pieces)]

    def _references(self) -> Sequence[Section]:
        pieces = [
            Piece(f"  {each.ref} — {each.summary}", each.id, "reference of the run")
            for each in self.references
        ]
        return [Section(self._title("references"), pieces)]

    def _code(self) -> Sequence[Section]:
        pieces = [
            Piece(f"  {each.target}: {quoted(each.text)}", each.id, "accepted scaffold")
            for each in identity_of(self.snapshot, self.line.agent).scaffold
        ]
        return [Section(self._title("code"), pieces)]

    def _talk(self) -> Talk:
        return Talk(self.snapshot, self.line.agent, thread=self.line.thread, group=self.line.group)

    def _session(self) -> Talk:
        talk = self._talk()
        code = talk.messages.columns.names.find(self.session) or 0
        return talk.at((talk.messages.columns.session.view()[talk.rows] == code).nonzero()[0])


def _exchange(
    exchange: Exchange, rule: str, *, of_user: bool = False, is_dated: bool = False
) -> Piece:
    """Return an exchange with both sides on a line each, quoted and cut."""
    messages = exchange.messages
    if of_user:
        messages = tuple(each for each in messages if each.role == "user") or messages
    lines = [f"  {each.role}: {quoted(each.text[:SIDE_MAX])}" for each in messages]
    if is_dated:
        lines.insert(0, f"  On {exchange.created:%Y-%m-%d}:")
    further = tuple(each.id for each in messages if each.id != exchange.id)
    return Piece("\n".join(lines), exchange.id, rule, further=further)


def _entry(entry: RecalledKnowledge) -> Piece:
    """Return an entry of knowledge: a line with its source and hash, and its text, quoted."""
    name = entry.uri or entry.title
    source = f"#{entry.id}" if name is None else f"#{entry.id} {on_one_line(name)}"
    hashed = on_one_line(entry.source_hash[:HASH_SHOWN])
    text = f"  Knowledge {source}, hash {hashed}:\n  {quoted(entry.text)}"
    return Piece(text, entry.id, f"knowledge: {entry.reason}")
