"""Words of neighbouring turns: equal to a plain reference as of every event, and of use."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Store, View
from cerata.projections.fulltext.analyzer import terms
from cerata.retrieval.ranking.profile import PROFILES

WORDS = ("harbour", "mill", "ferry", "dog", "salt")
QUESTIONS = ("harbour mill", "the ferry and the dog", "salt")
BEFORE = [0.5 * 0.7**step for step in range(6)]
AFTER = [0.3 * 0.7**step for step in range(6)]

Turn = tuple[str, str | None, str, str | int | None, str | None, bool]
turns_of = st.lists(
    st.tuples(
        # A turn of a model has a hundred words, so that its conversation has a smaller part.
        st.tuples(
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.sampled_from((1, 1, 9, 50))
        ).map(lambda words: " ".join(words[0] * words[1])),
        st.sampled_from(("mina", "olaf", None)),
        st.sampled_from(("put", "put", "put", "delete", "update")),
        st.sampled_from(("monday", 7, None)),
        st.sampled_from(("chat", None)),
        st.booleans(),
    ),
    max_size=9,
)


def write(store: Store, turns: Sequence[Turn]) -> None:
    """Put turns of several conversations in any order; delete and replace some."""
    root = store.put_frame("salt")
    for place, (text, role, act, session, track, is_child) in enumerate(turns):
        frames = [frame.id for frame in store.frames() if frame.id != root.id]
        if act == "delete" and frames:
            store.delete(frames[place % len(frames)])
        elif act == "update" and frames:
            store.update(frames[place % len(frames)], title=text)
        else:
            store.put_frame(
                text,
                role=role,
                metadata={} if session is None else {"session": session},
                options=cerata.PutOptions(
                    track=track,
                    parent=root.id if is_child else None,
                    scope={"user_id": "anna"} if place % 3 else None,
                ),
            )


def expected(view: View, question: str) -> dict[int, float]:
    """Return the score of every frame with a word in or near it, by the formula."""
    firsts = {frame.id: view.history.of(frame)[0].id for frame in view.frames()}
    frames = sorted(view.frames(), key=lambda frame: (firsts[frame.id] < 0, abs(firsts[frame.id])))
    words = {
        frame.id: terms(frame.text or "") + 2 * (terms(frame.title or "") + terms(frame.role or ""))
        for frame in frames
    }
    talks: dict[object, list[int]] = {}
    for frame in frames:
        if frame.role is None:
            continue
        name: object = None
        if frame.parent:
            name = ("parent", frame.parent)
        elif "session" in frame.metadata:
            name = ("session", frame.metadata["session"])
        elif frame.track is not None:
            name = ("track", frame.track)
        if name is not None:
            talks.setdefault((name, str(frame.scope)), []).append(frame.id)
    shares: dict[int, dict[int, float]] = {frame.id: {frame.id: 1.0} for frame in frames}
    sizes = {frame.id: len(terms(frame.text or "")) for frame in frames}
    for talk in talks.values():
        total = sum(sizes[turn] for turn in talk)
        part = min(1.0, math.floor(64 * 30 * len(talk) / total) / 64)
        for place, turn in enumerate(talk):
            for step in range(6):
                if place - step - 1 >= 0:
                    shares[turn][talk[place - step - 1]] = BEFORE[step] * part * part
                if place + step + 1 < len(talk):
                    shares[turn][talk[place + step + 1]] = AFTER[step] * part * part

    def summed(turn: int, term: str | None) -> float:
        return sum(
            share * (len(words[near]) if term is None else words[near].count(term))
            for near, share in shares[turn].items()
        )

    turns = {turn for talk in talks.values() for turn in talk}
    mean = sum(sizes[turn] for turn in turns) / max(len(turns), 1)
    level = min(max((mean - 30) / 50, 0.0), 1.0)
    count = sum(bool(own) for own in words.values())
    average = sum(summed(frame.id, None) for frame in frames) / count if count else 1.0
    sums: dict[int, float] = {}
    most = 0.0
    for term in set(terms(question)):
        frequency = sum(term in own for own in words.values())
        idf = math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
        most += 2 * idf
        for frame in frames:
            occurrences = summed(frame.id, term)
            if occurrences:
                k1, b = (0.9 + 0.3 * level, 0.5 + 0.4 * level) if frame.id in turns else (1.2, 0.75)
                norm = k1 * (1 - b + b * summed(frame.id, None) / average)
                added = idf * occurrences * (k1 + 1) / (occurrences + norm)
                sums[frame.id] = sums.get(frame.id, 0.0) + added
    return {frame: total / most for frame, total in sums.items()}


def scores(view: View, question: str) -> dict[int, float]:
    """Return the score of every frame that a search finds; close scores may change places."""
    return {
        hit.id: hit.score
        for hit in view.search(question, k=100, profile="words", page=cerata.Page(group_by="frame"))
    }


@given(turns=turns_of)
def test_scores_equal_the_reference_as_of_every_event(turns: Sequence[Turn]) -> None:
    """Also inside the transaction that writes them, and after a replay."""
    with cerata.open(":memory:") as store:
        with store.transaction():
            write(store, turns)
            for question in QUESTIONS:
                wanted = pytest.approx(expected(store.history.view(), question), abs=1e-5)
                assert scores(store.history.view(), question) == wanted
        for basis in range(store.head.seq + 1):
            for question in QUESTIONS:
                view = store.at(basis)
                assert scores(view, question) == pytest.approx(expected(view, question), abs=1e-5)


def test_short_turns_count_in_full_and_long_ones_hardly() -> None:
    """The words of a long answer are not those of the turns beside it."""
    for size, near in ((10, 0.5), (30, 0.5), (60, 0.125), (3_000, 0.0)):
        with cerata.open(":memory:") as store:
            filler = " ".join(f"word{number}" for number in range(size - 1))
            for text in (f"ferry {filler}", f"mill {filler}"):
                store.put_frame(text, role="mina", options=cerata.PutOptions(track="chat"))
            found = {hit.id: hit for hit in store.search("ferry", profile="words")}
            assert len(found) == (2 if near else 1)
            if near:
                [word] = store.history.explain(found[2]).words
                assert (word.count, word.near) == (0, near)


def talk(store: Store, session: str, *texts: str) -> list[int]:
    """Store turns of two speakers; return their ids."""
    return [
        store.put_frame(text, role=("mina", "olaf")[place % 2], metadata={"session": session}).id
        for place, text in enumerate(texts)
    ]


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    """The answer has none of the words; turns by themselves do not find it."""
    with cerata.open(":memory:") as store:
        turns = talk(store, "a", "Where is the old ferry?", "Behind the mill.", "Thanks!")
        talk(store, "b", "I like soup.", "Me too.")
        assert turns[1] in [hit.id for hit in store.search("where does the ferry lie?")]
        hit = next(hit for hit in store.search("ferry", profile="words") if hit.id == turns[1])
        (word,) = store.history.explain(hit).words
        assert (word.count, word.near) == (0, 0.5)
        assert "(count 0, 0.5 near)" in str(store.history.explain(hit))


def test_turns_without_a_conversation_have_no_neighbours() -> None:
    """The neighbours in the log may be of another conversation."""
    with cerata.open(":memory:") as store:
        store.put_frame("Where is the old ferry?", role="mina")
        store.put_frame("Behind the mill.", role="olaf")
        assert [hit.id for hit in store.search("ferry")] == [1]


def test_turns_of_another_scope_are_no_neighbours(tmp_path: object) -> None:
    """A private turn must not raise the rank of another person's."""
    with cerata.open(":memory:") as store:
        for person, text in (("anna", "Where is the old ferry?"), ("ben", "Behind the mill.")):
            store.put_frame(
                text,
                role="mina",
                options=cerata.PutOptions(track="chat", scope={"user_id": person}),
            )
        assert [hit.id for hit in store.search("ferry")] == [1]


def test_a_session_of_the_scope_is_a_conversation() -> None:
    with cerata.open(":memory:", scope={"session_id": "s1"}) as store:
        store.put_frame("Where is the old ferry?", role="mina")
        store.put_frame("Behind the mill.", role="olaf")
        assert [hit.id for hit in store.search("ferry")] == [1, 2]


def test_who_spoke_is_searched() -> None:
    """A question names the speaker, whose turns rarely have the name."""
    with cerata.open(":memory:") as store:
        store.put_frame("I paint the harbour.", role="Mina Berg")
        store.put_frame("Mina, I paint the harbour.", role="Olaf")
        store.put_frame("I paint the harbour, too.", role="Olaf")
        hits = store.search("What does Mina paint?", profile="words")
        assert next(iter(hits)).id == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_the_built_in_profiles_use_the_context(profile: str) -> None:
    with cerata.open(":memory:") as store:
        turns = talk(store, "a", "Where is the old ferry?", "Behind the mill.")
        assert {hit.id for hit in store.search("ferry", profile=profile)} == {*turns}


def test_a_transaction_continues_a_conversation_of_the_log() -> None:
    """Before any read has looked at the conversations."""
    with cerata.open(":memory:") as store:
        store.put_frame(
            "Where is the old ferry?", role="mina", options=cerata.PutOptions(track="chat")
        )
        with store.transaction():
            answer = store.put_frame(
                "Behind the mill.", role="olaf", options=cerata.PutOptions(track="chat")
            ).id
            assert [hit.id for hit in store.search("ferry")] == [1, answer]
