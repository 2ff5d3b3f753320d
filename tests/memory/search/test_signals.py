"""Signals of a search: equal to a plain reference as of every event, and explained."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import InvalidInput, Profile, Store, View
from cerata.engine.events import Event, PutFrame, RecallContext
from cerata.engine.log import Log
from cerata.projections.fulltext.analyzer import terms
from cerata.retrieval.ranking.profile import DEFAULT, OPTIONAL_SIGNALS
from cerata.retrieval.ranking.signals import SIGNALS

WEIGHTS = {
    "speaker": 0.6,
    "period": 2.5,
    "when": 1.2,
    "count": 0.7,
    "name": 0.8,
    "why": 0.9,
    "question": -0.5,
    "follows": 0.3,
    "short": -0.6,
    "recency": 0.17,
    "thread": 0.4,
    "test": -0.8,
    "noun": 0.35,
    "replies": 0.55,
}
ALL = Profile("all", 1, {"text": 1}, signals=WEIGHTS)
PLAIN = Profile("plain", 1, {"text": 1})
QUESTIONS = (
    "When did Mina see the harbour in May 2023?",
    "Why, and how many dogs on 8 May 2023?",
    "Where is the harbour of Olaf?",
    "Is Rome the harbour that Mina and Olaf saw?",
    "harbour",
)
TEXTS = (
    *("Is the harbour here?", "the harbour, because of two dogs", "We saw Rome and a harbour"),
    *("dog in 2023", "harbour", "a dog and a harbour and a mill and a ferry and some salt, today"),
)
DAYS = ("2023-05-08", "2023-05-12", "2023-06-07", "2024-01-01")

Turn = tuple[str, str | None, str | None, str | None, str | None, str]
turns_of = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.sampled_from(("Mina", "Olaf", None)),
        st.sampled_from(("chat", "walk", None)),
        st.sampled_from((*DAYS, None)),
        st.sampled_from((*DAYS, None)),
        st.sampled_from(("put", "put", "put", "delete")),
    ),
    max_size=8,
)


def write(store: Store, turns: Sequence[Turn]) -> None:
    """Put turns, some with times; delete some."""
    for place, (text, role, track, created, content, act) in enumerate(turns):
        frames = [frame.id for frame in store.frames()]
        if act == "delete" and frames:
            store.delete(frames[place % len(frames)])
            continue
        store.put_frame(
            text,
            role=role,
            uri=None if track is None else f"file:lib/{track}_test.py",
            options=cerata.PutOptions(
                track=track, created=created, content_dates=() if content is None else (content,)
            ),
        )


def micros(time: datetime | None) -> list[int]:
    return [] if time is None else [int(time.timestamp() * 1_000_000)]


def share_of_words(question: str, text: str, frames: Sequence[cerata.Frame]) -> float:
    """Return the share of a question's words in a text, weighted by their idf among frames."""
    having = [{*terms(f"{each.text} {each.role or ''}")} for each in frames]
    weights: dict[str, float] = {}
    for word in terms(question):
        count = sum(word in words for words in having)
        weights[word] = math.log(1 + (len(frames) - count + 0.5) / (count + 0.5))
    shared = weights.keys() & {*terms(text)}
    return sum(weights[word] for word in shared) / sum(weights.values())


def values(view: View, question: str, frame: cerata.Frame, last: datetime) -> dict[str, float]:
    """Return the signals of a frame by the rules, without arrays."""
    frames = sorted(view.frames(), key=lambda each: (each.id < 0, abs(each.id)))
    text = frame.text or ""
    has_role = frame.role is not None
    talk = [each for each in frames if each.role and each.track and each.track == frame.track]
    turns = [each for each in frames if each.role and each.track]
    follows = False
    asked = ""
    if frame in talk and talk.index(frame):
        before = talk[talk.index(frame) - 1]
        follows = bool(before.text and before.text.endswith("?")) and before.role != frame.role
        asked = f"{before.text} {before.role}" if follows else ""
    nearness = 0.0
    times = [
        frame.recorded,
        frame.created,
        *frame.content_dates,
    ]
    for found in re.finditer(r"8 May 2023|in May 2023", question):
        is_day = found[0].startswith("8")
        start = datetime(2023, 5, 8 if is_day else 1, tzinfo=UTC)
        end = datetime(2023, 5, 9, tzinfo=UTC) if is_day else datetime(2023, 6, 1, tzinfo=UTC)
        for time in times:
            days = (time - start).total_seconds() / 86_400
            after = (time - end).total_seconds() / 86_400
            if days >= -1 and after < 1:
                nearness = max(nearness, 1.0)
            elif 0 < after < (8 if is_day else 14):
                nearness = max(nearness, 0.5 if is_day else 0.4)
    nouns = [noun for noun in ("Rome", "Mina", "Olaf") if noun in question]
    age = max(0.0, (last - frame.created).total_seconds() / 86_400)
    is_word = " " not in question
    signals = {
        "speaker": has_role and str(frame.role) in question,
        "period": nearness,
        "when": "When" in question and has_role and bool(re.search("2023|today", text)),
        "count": "many" in question and has_role and bool(re.search("2023|two", text)),
        "name": "Where" in question and has_role and "Rome" in text,
        "why": "Why" in question and has_role and "because" in text,
        "question": has_role and text.endswith("?") and not is_word,
        "follows": follows and not is_word,
        "short": max(0, 8 - len(terms(text))) / 8 if has_role and not is_word else 0,
        "recency": round(math.exp(-age / 14), 9),
        "thread": frame in talk and turns[-1].track == frame.track,
        "test": frame.track is not None,
        "replies": share_of_words(question, asked, frames),
        "noun": sum(noun in f"{text} {frame.role}" for noun in nouns) / max(1, len(nouns)),
    }
    return {name: float(value) for name, value in signals.items()}


STEP = 0.05
"""The worth of a signal of weight 1 without vectors."""


def check(view: View, last: datetime) -> None:
    """Compare a view with the reference: the share of the words, and a step for each signal."""
    for question in QUESTIONS:
        hits = view.search(question, k=100, profile=ALL, page=cerata.Page(group_by="frame"))
        plain = {
            hit.id: hit.score
            for hit in view.search(
                question, k=100, profile=PLAIN, page=cerata.Page(group_by="frame")
            )
        }
        assert {hit.id for hit in hits} == set(plain)
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id < 0, abs(hit.id)))
        for hit in hits:
            explanation = view.history.explain(hit)
            signals = values(view, question, hit.frame, last)
            sum_ = math.fsum(WEIGHTS[name] * value for name, value in signals.items())
            assert hit.score == pytest.approx(plain[hit.id] + STEP * sum_, abs=1e-6)
            assert {share.signal: share.value for share in explanation.signals} == pytest.approx(
                {name: value for name, value in signals.items() if value}, abs=1e-6
            )
            parts = [share.added for share in explanation.lanes]
            parts += [share.added for share in explanation.signals]
            assert round(sum(parts), 9) == hit.score


@settings(max_examples=25)
@given(turns=turns_of)
def test_scores_equal_the_reference_as_of_every_event(turns: Sequence[Turn]) -> None:
    """Also inside the transaction that writes them, and after a replay."""
    with cerata.open(":memory:") as store:
        with store.transaction():
            write(store, turns)
            # Recency counts to the time at which the drafts were recorded: a moment ago.
            check(store.history.view(), datetime.now(UTC))
        for basis in range(1, store.head.seq + 1):
            view = store.at(basis)
            check(view, view.now)


def test_a_later_role_of_the_log_changes_no_answer_over_drafts() -> None:
    """The codes of the roles of drafts follow those of the log, which has more roles by now."""
    with cerata.open(":memory:") as store:
        store.put_frame("the harbour", role="Olaf")
        drafts = [PutFrame(text="a harbour", role=role) for role in ("Nils", "Mina", "Eva")]
        read, kept = store.upkeep.speculate(*drafts), store.upkeep.speculate(*drafts)
        question = "What did Mina say about the harbour?"
        of_roles = Profile("roles", 1, {"text": 1}, signals={"speaker": 0.6, "follows": 0.3})
        before = [(hit.id, hit.score) for hit in read.search(question, profile=of_roles)]
        # A search without signals reads no role.
        kept.search(question, profile=PLAIN)
        for role in ("Mina", "Per"):
            store.put_frame("a ferry", role=role)
        store.search("ferry")
        after = [(hit.id, hit.score) for hit in kept.search(question, profile=of_roles)]
        assert after == before


def test_a_search_is_equal_in_another_process_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.cera"
    with cerata.open(path) as store:
        for text in TEXTS:
            store.put_frame(
                text, role="Mina", options=cerata.PutOptions(track="chat", created="2023-05-08")
            )
        hits = [(hit.id, hit.score) for hit in store.search(QUESTIONS[0])]
        basis = store.head.seq
    with cerata.open(path) as store:
        store.put_frame("the harbour", role="Mina", options=cerata.PutOptions(track="chat"))
        assert [(hit.id, hit.score) for hit in store.at(basis).search(QUESTIONS[0])] == hits


# Each case: a question, the turn that the signal moves up, and the turn that leads without it.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "speaker": (
        "What does Mina paint?",
        {"text": "I paint a long list of other subjects that nobody asked about", "role": "Mina"},
        {"text": "Mina! Mina! Paint, paint.", "role": "Olaf"},
    ),
    "period": (
        "What was painted in May 2023?",
        {
            "text": "the harbour was painted in oil on wood",
            "options": cerata.PutOptions(created="2023-05-10"),
        },
        {"text": "painted", "options": cerata.PutOptions(created="2022-05-10")},
    ),
    "when": (
        "When was it painted?",
        {"text": "painted it the evening before, on some old wood", "role": "Mina"},
        {"text": "painted", "role": "Mina"},
    ),
    "count": (
        "How many were painted?",
        {"text": "painted about 12 of the old boats", "role": "Mina"},
        {"text": "painted", "role": "Mina"},
    ),
    "name": (
        "Where was it painted?",
        {"text": "painted it near Rome, among old boats", "role": "Mina"},
        {"text": "painted", "role": "Mina"},
    ),
    "why": (
        "Why was it painted?",
        {"text": "painted it because boats need some colour", "role": "Mina"},
        {"text": "painted", "role": "Mina"},
    ),
    "question": (
        "the painted harbour",
        {"text": "painted the harbour with Olaf and the boats", "role": "Mina"},
        {"text": "painted the harbour?", "role": "Mina"},
    ),
    "short": (
        "the painted harbour",
        {"text": "painted harbour boats wood oil colour brush evening", "role": "Mina"},
        {"text": "painted harbour", "role": "Mina"},
    ),
    "test": (
        "the painted harbour",
        {"text": "def paint(harbour, colour, brush, wood, oil)", "uri": "file:lib/harbour.py"},
        {"text": "painted harbour", "uri": "file:lib/test/test_harbour.py"},
    ),
    "noun": (
        "the painted harbour of Porto",
        {"text": "in Porto he saw a long list of other old things and a boat"},
        {"text": "painted harbour, painted harbour"},
    ),
}


@pytest.mark.parametrize("signal", CASES)
def test_a_signal_changes_an_order_that_is_wrong_without_it(signal: str) -> None:
    question, answer, rival = CASES[signal]
    weights = {"question": -20.0, "short": -20.0, "test": -20.0}
    on = {signal: weights.get(signal, 20.0)}
    with cerata.open(":memory:") as store:
        best = store.put_frame(answer.pop("text"), **answer).id
        store.put_frame(rival.pop("text"), **rival)
        store.put_frame("Something else, which had the colour of boats, was painted by him")
        without = store.search(question, profile=PLAIN)
        assert without[0].id != best
        hits = store.search(question, profile=Profile("one", 1, {"text": 1}, signals=on))
        assert hits[0].id == best
        with_signal = [told for hit in hits if (told := store.history.explain(hit)).signals]
        assert [told.id == best for told in with_signal] == [on[signal] > 0]
        (share,) = with_signal[0].signals
        assert (share.signal, share.added) == (signal, STEP * share.weight * share.value)
        assert f"signal {signal} " in str(with_signal[0])


def test_an_answer_follows_the_question_of_another_speaker() -> None:
    follows = Profile("one", 1, {"text": 1}, signals={"follows": 20})
    with cerata.open(":memory:") as store:
        for role, text in (("mina", "A boat?"), ("mina", "a boat"), ("olaf", "Boats?")):
            store.put_frame(text, role=role, options=cerata.PutOptions(track="chat"))
        last = store.put_frame(
            "the boat by the mill", role="mina", options=cerata.PutOptions(track="chat")
        ).id
        store.put_frame("a boat", role="olaf", options=cerata.PutOptions(track="other"))
        hits = store.search("the boat", profile=follows)
        assert hits[0].id == last
        assert [hit.id for hit in hits if store.history.explain(hit).signals] == [last]


def test_a_reply_to_a_question_with_rarer_words_comes_first() -> None:
    """Both turns follow a question; the words that it shares decide."""
    replies = Profile("one", 1, {"text": 1}, signals={"replies": 20})
    with cerata.open(":memory:") as store:
        for track, asked in (("near", "Where did you buy the boat?"), ("far", "A boat? Really?")):
            store.put_frame(asked, role="olaf", options=cerata.PutOptions(track=track))
            store.put_frame(
                "In Porto, the boat too", role="mina", options=cerata.PutOptions(track=track)
            )
        store.put_frame("a boat", role="mina", options=cerata.PutOptions(track="near"))
        hits = store.search(
            "Where did Mina buy her boat?", profile=replies, page=cerata.Page(group_by="frame")
        )
        found = {hit.id: store.history.explain(hit).signals for hit in hits}
        assert hits[0].id == 2
        assert [frame for frame, signals in found.items() if signals] == [2, 4]
        (near,), (far,) = found[2], found[4]
        assert 1 > near.value > far.value > 0


def test_the_newest_conversation_is_the_thread() -> None:
    thread = Profile("one", 1, {"text": 1}, signals={"thread": 20})
    with cerata.open(":memory:") as store:
        store.put_frame("boat", role="mina", options=cerata.PutOptions(track="old"))
        new = store.put_frame(
            "a boat among other things", role="mina", options=cerata.PutOptions(track="new")
        ).id
        assert store.search("boat", profile=PLAIN)[0].id != new
        assert store.search("boat", profile=thread)[0].id == new
        assert store.at(1).search("boat", profile=thread)[0].id == 1


def test_a_question_for_tests_finds_tests() -> None:
    lowered = Profile("one", 1, {"text": 1}, signals={"test": -20})
    with cerata.open(":memory:") as store:
        store.put_frame("def paint(harbour, colour)", uri="file:lib/harbour.py")
        test = store.put_frame("paint the harbour", uri="file:lib/test_harbour.py").id
        for question in ("the test of paint harbour", "paint harbour with pytest"):
            hits = store.search(question, profile=lowered)
            assert (hits[0].id, store.history.explain(hits[0]).signals) == (test, ())
        assert store.search("paint harbour", profile=lowered)[0].id != test


def test_a_speaker_is_no_filter() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("I paint the harbour.", role="Olaf")
        assert [hit.id for hit in store.search("What does Mina paint?")] == [1]


def test_without_a_signal_that_counts_scores_are_those_of_the_words() -> None:
    """A store of notes keeps its scores."""
    with cerata.open(":memory:") as store:
        for text in ("a boat", "a boat and a mill"):
            store.put_frame(text)
        hits = store.search("When did the boat sail?")
        words = store.search("When did the boat sail?", profile="words")
        assert [(hit.id, hit.score) for hit in hits] == [(hit.id, hit.score) for hit in words]
        assert store.history.explain(hits[0]).signals == ()


def test_a_query_and_a_vector_have_no_signals() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a boat?", role="mina", vectors=cerata.Vectors(dense=[1, 0], space="toy"))
        assert not store.history.explain(store.search(cerata.query("boat"))[0]).signals
        hits = store.search("boat", mode="vector", vectors=cerata.Vectors(dense=[1, 0]))
        assert (hits[0].score, store.history.explain(hits[0]).signals) == (1.0, ())
        assert store.history.explain(store.search("a boat")[0]).signals


def test_a_question_reads_the_time_of_the_last_event_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end of each period read that event from the log again; a month needs no now."""
    read: list[int] = []
    whole = Log.event

    def count(log: Log, seq: int) -> Event:
        read.append(seq)
        return whole(log, seq)

    with cerata.open(":memory:") as store:
        store.put_frame("It rained", role="Mina", options=cerata.PutOptions(track="a"))
        view = store.at("HEAD")
        monkeypatch.setattr(Log, "event", count)
        view.search("Has it rained yesterday, or last week?")
        assert read == [store.head.seq]
        read.clear()
        view.search("Has it rained in May 2023?")
        assert read == []


def test_an_ambiguous_date_is_explained() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("It rained", options=cerata.PutOptions(created="2026-04-03"))
        explanation = store.history.explain(store.search("Has it rained on 03/04/2026?")[0])
        assert (explanation.ignored, explanation.signals) == (("03/04/2026",), ())
        assert "ignored 03/04/2026: the order of day and month differs" in str(explanation)


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ({"peroid": 1}, "There is no signal 'peroid'"),
        ({"period": math.nan}, "weight of signal 'period'"),
        ({"period": math.inf}, "weight of signal 'period'"),
        ({"period": True}, "weight of signal 'period'"),
        ({"period": "1"}, "weight of signal 'period'"),
        ({"period": -1001}, "weight of signal 'period'"),
        ({"period": 10**400}, "weight of signal 'period'"),
        (["period"], "signals must map names to weights"),
    ],
)
def test_signals_that_cannot_be_summed_are_bad_input(signals: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Profile("mine", 1, {"text": 1}, signals=signals)


def test_the_shape_of_a_memory_changes_no_profile() -> None:
    """A memory had a ranking of notes, of talk or of documents, by its majority."""
    with cerata.open(":memory:") as store:
        assert store.recall("boat").profile == "default 1"
        store.put_frame("a boat", role="mina", options=cerata.PutOptions(track="chat"))
        assert store.recall("boat").profile == "default 1"
        text = "\n\n".join(f"Boat {place} lies in the harbour." * 40 for place in range(9))
        store.remember(text, title="Boats")
        assert store.recall("boat").profile == "default 1"
        assert store.recall("boat", profile="words").profile == "words 1"


def test_a_page_continues_although_frames_were_added() -> None:
    with cerata.open(":memory:") as store:
        for _ in range(4):
            store.put_frame("a boat")
        first = store.search("boat", k=2, page=cerata.Page(group_by="frame"))
        for _ in range(9):
            store.put_frame("a boat", role="mina", options=cerata.PutOptions(track="chat"))
        assert [
            hit.id
            for hit in store.search(
                "boat", k=2, page=cerata.Page(after=first[-1], group_by="frame")
            )
        ] == [
            3,
            4,
        ]


def test_a_recorded_recall_names_the_profile_that_ran() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a boat", role="mina", options=cerata.PutOptions(track="chat"))
        context = store.recall("boat", record=True)
        assert context.recorded is not None
        event = next(iter(store.log(context.recorded, context.recorded))).body
        assert isinstance(event, RecallContext)
        assert f"{event.profile} {event.profile_version}" == context.profile
        assert context.profile == DEFAULT.label


def test_the_default_has_every_signal_but_the_optional_ones() -> None:
    assert DEFAULT.signals.keys() == set(SIGNALS) - OPTIONAL_SIGNALS.keys()


def test_talk_counts_less_the_longer_turns_are() -> None:
    """An answer of a model with a question in it says more than that: 20 of 40 terms, a half."""
    long = "The boat has a new sail. " * 8
    for text, part in (("A new boat?", 1.0), (f"{long}. Is it new?", None)):
        with cerata.open(":memory:") as store:
            for number in range(3):
                store.put_frame(
                    f"{text} Boat {number}?", role="mina", options=cerata.PutOptions(track="chat")
                )
            lengths = [len(terms(frame.text or "")) for frame in store.frames()]
            mean = sum(lengths) / len(lengths)
            assert (mean > 20) == (part is None)
            [share, *_] = store.history.explain(store.search("new boats")[0]).signals
            assert share.signal == "question"
            assert share.weight == pytest.approx(-0.6 * min(1.0, 20 / mean))


def test_a_lane_that_finds_nothing_changes_no_order() -> None:
    """An embedder must not change the worth of a signal before the first vector."""
    with cerata.open(":memory:") as store:
        for text in TEXTS:
            store.put_frame(text, role="Mina", options=cerata.PutOptions(track="chat"))
        alone = store.search(QUESTIONS[0])
        store.put_frame(
            "salt",
            role="Mina",
            vectors=cerata.Vectors(dense=[1, 0], space="toy"),
            options=cerata.PutOptions(track="chat"),
        )
        store.delete(store.search("salt")[0])
        hits = store.search(QUESTIONS[0], vectors=cerata.Vectors(dense=[1, 0], space="toy"))
        assert [(hit.id, hit.score) for hit in hits] == [(hit.id, hit.score) for hit in alone]
