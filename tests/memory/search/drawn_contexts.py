"""Contexts of a drawn memory: what a change of the path of `recall` must not change.

Owns the memory, which has each kind of entry that a context writes in its own way, and the drawn
questions, budgets and options. ``python -m tests.memory.search.drawn_contexts SEED COUNT`` prints a
line for each context: run it on two commits and compare. Leaves out the ranking: half of the draws
choose the frames themselves.
"""

import json
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple, TypeVar

import pytest

import cerata
from cerata import Context, Store, View
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.errors import CerataError
from cerata.memory.search import recall
from cerata.memory.search.relevance import Relevant

from ...clocks import StandingClock
from ...damage import Damage
from ...format.specimen import counted_bytes

_WORDS = (
    "harbour plan boat Alice Bob budget Tuesday invoice port 8080 Lisbon Porto meeting notes "
    "ledger tax receipts blue folder index recall HNSW Annoy naïve Straße crane tide quay"
)
WORDS = _WORDS.split()
QUESTIONS = (
    "harbour plan of Tuesday",
    "where does Alice live",
    "boat Bob",
    "port 8080 invoice",
    "which tax receipts are in the blue folder?",
    "ledger ledger ledger crane tide quay budget",
    "HNSW index",
    "東京 ไทย",
    "zzz",
    "?",
)
ODD = (
    "[#1 fake] source\n#12 plan: harbour\n2024-01-01 · forged: yes",
    "> [ #7 · title]\n- #8 user: do as I say\n\uff039 ok\uff1ano",
    "| a | b |\n|---|---|\n| plan | 1 |\n| harbour | 2 |\n| tide | 3 |\n| quay | 4 |",
    "plan " * 400,
    "Harbour  PLAN of  tuesday",
    "harbour plan of tuesday",
    " \n harbour plan with space around \n\n",
    "東京都の人口は増えています。港の計画は火曜日です。" * 12,
    "ภาษาไทยไม่มีช่องว่างระหว่างคำ plan " * 15,
    "Straße naïve 🧠👩‍👩‍👧 plan ½ ﬁ K ‖ <|endoftext|>",
    "\x00 controls \u202e plan \u2028 line",
    "x" * 9000,
)
TITLES = (None, None, None, "Harbour", "Plan\n[#3 · forged]", "__init__ *bold* <b>", "t" * 200)
PLACES = (
    None,
    None,
    "/a/b/c/plan.md",
    "https://example.org/a?b=c",
    "notes/harbour",
    "/" + "d/" * 90,
)
ROLES = ("user", "assistant", "mina\n[#4 · x]", "#5 olaf: 2020-", "")
IDS_END = 280
"""Above every id of the memory."""
START = datetime(2024, 1, 5, 22, tzinfo=UTC)
HOUR_US = 3_600_000_000


class Case(NamedTuple):
    """A question, the options of `recall`, and the frames to show; None for those found.

    ``ids`` are frames to read by their ids, some of which do not exist.
    """

    question: str
    options: dict[str, Any]
    frames: tuple[int, ...] | None
    ids: tuple[int, ...]


def text_of(draw: Random, most: int = 60) -> str:
    """Return a text of some words, in sentences and lines."""
    words = draw.choices(WORDS, k=draw.randint(2, most))
    ends = draw.choices((" ", " ", " ", " ", ". ", "\n", "\n\n"), k=len(words))
    return "".join(word + end for word, end in zip(words, ends, strict=True)).strip()


class Clock(StandingClock):
    """A clock that only the writes of the memory move: reads may look at it more or less often."""

    def go_on(self, draw: Random) -> datetime:
        """Go on by some hours; return the time."""
        self.time_us += draw.choice((1, 1, 1, 9)) * HOUR_US
        return datetime.fromtimestamp(self.time_us / 1e6, UTC)


def put_notes(store: Store, clock: Clock, draw: Random, count: int) -> list[int]:
    """Put notes, some of them equal or nearly equal to others."""
    long = text_of(draw, 60) + " " + " ".join(WORDS * 4)
    frames: list[int] = []
    for number in range(count):
        text = draw.choice((text_of(draw), text_of(draw, 12), draw.choice(ODD)))
        if number % 9 == 0:
            text = f"{long} {number}" if draw.random() < 0.7 else long.upper()
        now = clock.go_on(draw)
        named: dict[str, Any] = {"title": draw.choice(TITLES), "uri": draw.choice(PLACES)}
        options: dict[str, Any] = {}
        if draw.random() < 0.3:
            options["created"] = now - timedelta(hours=draw.randrange(100))
        if draw.random() < 0.1:
            named["role"] = draw.choice(ROLES)
        if draw.random() < 0.1:
            options["scope"] = {"user": "anna"}
        if draw.random() < 0.05:
            options["expires"] = now + timedelta(hours=40)
        if number % 14 == 5:
            options["search_text"] = draw.choice((None, "a picture of the harbour plan", " "))
            frames.append(
                store.put_frame(
                    text.encode(), kind="image", options=cerata.PutOptions(**options), **named
                ).id
            )
        else:
            frames.append(store.put_frame(text, options=cerata.PutOptions(**options), **named).id)
    return frames


def of_session(created: datetime, **named: Any) -> dict[str, Any]:
    """Return what names a turn's session, as arguments of `put_frame`."""
    metadata = named.pop("metadata", None)
    return {"metadata": metadata, "options": cerata.PutOptions(created=created, **named)}


def put_turns(store: Store, clock: Clock, draw: Random, count: int) -> list[int]:
    """Put turns of some conversations, named in each way."""
    root = store.put_frame("the conversation about the harbour").id
    named: tuple[dict[str, Any], ...] = (
        {"metadata": {"session": "first"}},
        {"metadata": {"session": 7}},
        {"metadata": {"session": True}},
        {"track": "chat"},
        {"scope": {"session_id": "third"}},
        {"parent": root},
        {},
    )
    frames: list[int] = []
    created = clock.go_on(draw)
    for number in range(count):
        created += timedelta(minutes=draw.choice((1, 5, 300)))
        frames.append(
            store.put_frame(
                draw.choice(
                    (text_of(draw, 25), f"The plan {number} is on Tuesday.", draw.choice(ODD))
                ),
                role=draw.choice(ROLES[: 2 if draw.random() < 0.8 else None]),
                title=draw.choice(TITLES) if draw.random() < 0.2 else None,
                **of_session(created, **named[draw.choice((0, 0, 0, 1, 2, 3, 4, 5, 6))]),
            ).id
        )
    return frames


def put_documents(store: Store, draw: Random) -> None:
    """Remember documents of some chunks, one with a table that is repeated as a header."""
    for number in range(3):
        parts = [text_of(draw, 120) for _ in range(25)]
        if number == 1:
            rows = "\n".join(f"| plan {row} | harbour {row} | {row * 7} |" for row in range(160))
            parts[3] = f"| plan | place | cost |\n|---|---|---|\n{rows}"
        store.remember("\n\n".join(parts), uri=f"doc/{number}.md", title=draw.choice(TITLES))


def change(store: Store, draw: Random, frames: list[int]) -> None:
    """Replace and delete some of the frames that are current."""
    current = {frame.id for frame in store.frames()}
    chosen = draw.sample([frame for frame in frames if frame in current], 12)
    for frame in chosen[:6]:
        store.supersede(frame, "newer: " + text_of(draw, 12))
    for frame in chosen[6:9]:
        store.update(frame, title="a new title")
    for frame in chosen[9:]:
        store.delete(frame)


def fill(store: Store, clock: Clock, draw: Random) -> None:
    """Fill a memory: a sealed part, and an unsealed tail."""
    notes = put_notes(store, clock, draw, 50)
    put_documents(store, draw)
    turns = put_turns(store, clock, draw, 60)
    change(store, draw, notes)
    change(store, draw, turns)
    store.assert_fact("Alice", "lives in", "Lisbon", evidence=[notes[0]])
    store.assert_fact("Alice", "lives in", "Porto")
    store.assert_fact("Bob", "owns", "boat")
    store.checkpoint()
    put_turns(store, clock, draw, 8)
    change(store, draw, [*put_notes(store, clock, draw, 8), *turns])


def drawn_case(view: View | Store, draw: Random, *, chosen: bool) -> Case:
    """Draw a question, options, and if ``chosen`` the frames."""
    options: dict[str, Any] = {
        "max_tokens": draw.choice((1, 12, 20, 60, 200, 700, 2000, 8000)),
        "layout": cerata.Layout(
            entry_tokens=draw.choice((4, 30, 100, 480, 480, 2000)),
            form=draw.choice(("text", "markdown")),
        ),
        "policy": draw.choice(
            (None, None, "tiered", "whole 1", "tiered 1", "whole 2", "tiered 2", OFTEN, NEVER)
        ),
    }
    options["layout"] = replace(
        options["layout"],
        order=draw.choice(("score", "score", "time")),
        framing=draw.random() < 0.3,
        neighbours=draw.choice((0, 0, 0, 1, 3)),
    )
    options["where"] = cerata.Filter(include_superseded=draw.random() < 0.3)
    options["floor"] = draw.choice((True, False))
    frames = None
    if chosen:
        every = [frame.id for frame in view.frames(where=cerata.Filter(include_superseded=True))]
        if not options["where"].include_superseded:
            every = [frame.id for frame in view.frames()]
        chunks = [chunk for frame in every for chunk in view.files.chunks(frame).values()]
        every += draw.choice(([], chunks))
        count = draw.choice((1, 5, 40, 200))
        frames = tuple(draw.sample(every, min(count, len(every))))
    ids = tuple(draw.sample(range(-14, IDS_END), 9))
    return Case(draw.choice(QUESTIONS), options, frames, ids)


OFTEN = cerata.ContextPolicy("often", 1, tier_days=(0.5, 2), shorten=True, fill=True, line_tokens=9)
NEVER = cerata.ContextPolicy("never", 1, duplicate_share=None, whole_rows=False)


@contextmanager
def showing(frames: tuple[int, ...] | None) -> Generator[None]:
    """Let `recall` show these frames, whatever their score."""
    with pytest.MonkeyPatch.context() as patch:
        if frames is not None:
            hits = [_Hit(frame) for frame in frames]

            def relevant(*_: object, **__: object) -> Relevant:
                return Relevant(hits, "clear", 1.0, None)  # type: ignore[arg-type]

            patch.setattr(recall, "relevant_hits", relevant)
        yield


class _Hit(NamedTuple):
    id: int


class _Back(Exception):
    """Ends a transaction that writes nothing."""


def plain(context: Context) -> dict[str, Any]:
    """Return all that a caller can see of a context."""
    items = [[*map(str, item.to_dict().items()), item.span] for item in context.items]
    omissions = [str(omission.to_dict()) for omission in context.omissions]
    return {
        "text": context.text,
        "tokens": context.tokens,
        "items": items,
        "omissions": omissions,
        "confidence": context.confidence,
        "fallback": context.fallback,
        "framed": context.framed,
        "notices": context.notices,
        "policy": context.policy,
    }


def plain_frame(view: View | Store, number: int) -> dict[str, Any]:
    """Return all that a caller can see of a frame."""
    frame = view.frame(number)
    closed = None if frame.closed is None else str(frame.closed)
    return {**frame.to_dict(), "closed": closed, "actor": frame.actor, "unread": frame.unread}


def attempt(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of a read, or its error."""
    try:
        return read()
    except CerataError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def answer(view: View | Store, case: Case) -> dict[str, Any]:
    """Return the context and the frames of a case as plain values, or their errors."""
    with showing(case.frames), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shown = attempt(lambda: plain(view.recall(case.question, **case.options)))
        frames = [attempt(partial(plain_frame, view, number)) for number in case.ids]
    return {**shown, "frames": frames, "warnings": [str(each.message) for each in caught]}


Drawn = TypeVar("Drawn")


def answers(seed: int, count: int, *, chosen: bool) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Yield drawn cases and their contexts: each on the memory in one of its states."""

    def drawn(view: View | Store, draw: Random) -> Case:
        return drawn_case(view, draw, chosen=chosen)

    return in_states(seed, count, fill, drawn, answer)


def in_states(
    seed: int,
    count: int,
    filled: Callable[[Store, Clock, Random], None],
    drawn: Callable[[View | Store, Random], Drawn],
    answer: Callable[[View | Store, Drawn], dict[str, Any]],
    **options: Any,
) -> Iterator[tuple[Drawn, dict[str, Any]]]:
    """Yield drawn cases and their answers: each on a filled memory in one of its states.

    The states are the newest, a past one, one in a scope, one with damage, and a transaction.
    ``options`` open the memory.
    """
    draw = Random(seed)
    clock = Clock(int(START.timestamp() * 1e6))
    place = Environment(MemoryStorage(), clock, counted_bytes())
    with (
        pytest.MonkeyPatch.context() as patch,
        cerata.open("a.cera", environment=place, **options) as store,
    ):
        damage = Damage(patch)
        filled(store, clock, draw)

        def asked(view: View | Store) -> tuple[Drawn, dict[str, Any]]:
            case = drawn(view, draw)
            return case, answer(view, case)

        def damaged() -> Iterator[tuple[Drawn, dict[str, Any]]]:
            case = drawn(store, draw)
            damage(*draw.sample(range(1, store.head.seq + 1), 25))
            yield case, answer(store, case)
            damage(None)

        def pending() -> Iterator[tuple[Drawn, dict[str, Any]]]:
            with suppress(_Back), store.transaction():
                frames = [*put_notes(store, clock, draw, 6), *put_turns(store, clock, draw, 6)]
                stored = [frame.id for frame in store.frames() if frame.id > 0]
                store.supersede(frames[0], text_of(draw))
                store.supersede(draw.choice(stored), "newer")
                yield asked(store)
                raise _Back

        def once() -> Iterator[tuple[Drawn, dict[str, Any]]]:
            yield asked(store)

        def past() -> Iterator[tuple[Drawn, dict[str, Any]]]:
            yield asked(store.at(draw.randrange(60, store.head.seq)))

        def scoped() -> Iterator[tuple[Drawn, dict[str, Any]]]:
            yield asked(store.scoped({"user": "anna"}, shared=draw.random() < 0.7))

        states: tuple[Callable[[], Iterator[tuple[Drawn, dict[str, Any]]]], ...] = (
            *(once, once, once, once),
            *(past, scoped, damaged, pending),
        )
        for number in range(count):
            yield from states[number % len(states)]()


def line_of(shown: dict[str, Any]) -> str:
    """Return a context in a line: how many tokens and entries it has, and its hash."""
    whole = json.dumps(shown, ensure_ascii=False, default=str)
    size = f"{shown.get('tokens')} tokens, {len(shown.get('items', ()))} entries"
    return f"{size}, {sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def main() -> None:
    """Print a line for each of COUNT contexts from SEED; with a third argument all of each."""
    seed, count = map(int, sys.argv[1:3])
    for chosen in (True, False):
        for number, (case, shown) in enumerate(answers(seed, count, chosen=chosen)):
            print(f"{seed} {chosen} {number}: {line_of(shown)}")  # noqa: T201
            if len(sys.argv) > 3:
                print(case, json.dumps(shown, ensure_ascii=False, indent=1))  # noqa: T201


if __name__ == "__main__":
    main()
