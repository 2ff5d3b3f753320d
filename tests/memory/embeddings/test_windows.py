"""Vectors of turns within their conversations: made by a pass, listed with what they depend on."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import EmbedderFailed, Filter, InvalidInput, NotFound, Store, TurnWindow, View
from cerata.engine.events import Attachment, Draft, Embedding, PutEmbedding
from cerata.engine.integrity import hash_bytes

from ...embedders import DIMENSION, Hashing, words_hashed

TURNS = 4


class Reading(Hashing):
    """Also reads a turn in its conversation: a quarter of the words beside it count."""

    reads_context = True

    def __init__(self) -> None:
        super().__init__("1-context")
        self.windows: list[TurnWindow] = []
        self.says_windows: Any = None

    def embed_in_context(self, windows: Sequence[TurnWindow]) -> npt.NDArray[np.float32]:
        self.windows += windows
        if isinstance(self.says_windows, BaseException):
            raise self.says_windows
        if self.says_windows is not None:
            answer: npt.NDArray[np.float32] = self.says_windows
            return answer
        return np.array([in_window(window) for window in windows], np.float32)


def in_window(window: TurnWindow) -> list[float]:
    beside = words_hashed(" ".join((*window.before, *window.after)))
    own = words_hashed(f"{window.speaker} {window.text}")
    return [mine + near / 4 for mine, near in zip(own, beside, strict=True)]


def as_stored(vector: list[float]) -> list[float]:
    numbers: list[float] = np.array(vector, np.float32).tolist()
    return numbers


def vectors_of(view: Store | View) -> dict[int, list[float]]:
    return {
        frame.id: [] if (vector := view.embeddings.of(frame.id)) is None else vector.tolist()
        for frame in view.frames()
    }


def contexts_of(view: Store | View) -> dict[int, tuple[int, ...]]:
    """The context of the newest vector of each frame that an event of its own gave."""
    bodies = [event.body for event in view.log()]
    return {body.frame: body.context for body in bodies if isinstance(body, PutEmbedding)}


def windows_of(view: Store | View) -> Mapping[int, tuple[TurnWindow, tuple[int, ...]]]:
    """The windows of the current turns by their definition, for turns whose session is a track."""
    sessions: dict[str | None, list[cerata.Frame]] = {}
    # A new version has the place of the first.
    for frame in sorted(view.frames(), key=lambda frame: (view.history.of(frame)[0].id, frame.id)):
        if frame.role is not None and frame.track is not None:
            sessions.setdefault(frame.track, []).append(frame)

    def beside(frames: Sequence[cerata.Frame]) -> dict[int, str]:
        return {
            frame.id: f"{frame.role}: {frame.text}" for frame in frames if frame.expires is None
        }

    def each() -> Iterator[tuple[int, tuple[TurnWindow, tuple[int, ...]]]]:
        for turns in sessions.values():
            for place, turn in enumerate(turns):
                before = beside(turns[max(0, place - TURNS) : place])
                after = beside(turns[place + 1 : place + 1 + TURNS])
                window = TurnWindow(
                    (*before.values(),), turn.role or "", turn.text, (*after.values(),)
                )
                yield turn.id, (window, (*before, *after))

    return dict(each())


def expected(view: Store | View) -> dict[int, list[float]]:
    windows = windows_of(view)
    return {
        frame.id: as_stored(
            in_window(windows[frame.id][0])
            if frame.id in windows and windows[frame.id][1]
            else words_hashed(frame.text)
        )
        for frame in view.frames()
    }


def chat(store: Store, *texts: str, track: str = "monday") -> list[int]:
    roles = ("Mina", "Olaf")
    return [
        store.put_frame(text, role=roles[place % 2], options=cerata.PutOptions(track=track)).id
        for place, text in enumerate(texts)
    ]


@pytest.fixture
def embedder() -> Reading:
    return Reading()


@pytest.fixture
def store(embedder: Reading) -> Store:
    return cerata.open(":memory:", embedder=embedder)


def test_a_pass_gives_each_turn_the_vector_of_its_window(store: Store, embedder: Reading) -> None:
    """Until then a turn has the vector of its text alone, so each search finds new turns."""
    frames = chat(store, *(f"word{place}" for place in range(12)))
    note = store.put_frame("a note").id
    assert vectors_of(store)[frames[0]] == as_stored(words_hashed("word0"))
    embedded = store.embeddings.fill()
    assert (embedded.frames, embedded.asked, embedded.passed) == (12, 12, 0)
    assert vectors_of(store) == expected(store)
    assert contexts_of(store) == {
        frame: context for frame, (_, context) in windows_of(store).items()
    }
    assert note not in contexts_of(store)
    assert contexts_of(store)[frames[5]] == (*frames[1:5], *frames[6:10])
    assert embedder.windows[0].after[0] == "Olaf: word1"
    assert store.embeddings.fill().frames == 0
    assert store.verify().ok


def test_an_embedder_of_single_texts_writes_no_context(embedder: Reading) -> None:
    """The default: such vectors depend on their text alone."""
    with cerata.open(":memory:", embedder=Hashing()) as store:
        chat(store, "tea", "coffee")
        assert store.embeddings.fill().frames == 0
        assert contexts_of(store) == {}
    embedder.reads_context = False
    with cerata.open(":memory:", embedder=embedder) as store:
        chat(store, "tea", "coffee")
        assert store.embeddings.fill().frames == 0


def test_new_turns_change_the_windows_of_the_last_four(store: Store) -> None:
    chat(store, *(f"word{place}" for place in range(12)))
    store.embeddings.fill()
    chat(store, "new")
    assert store.embeddings.fill().frames == TURNS + 1
    assert vectors_of(store) == expected(store)


@pytest.mark.parametrize("act", ["delete", "supersede"])
def test_a_closed_turn_leaves_the_vectors_of_its_neighbours(store: Store, act: str) -> None:
    """The words of the closed turn must not stay in vectors that later questions meet."""
    frames = chat(store, *(f"word{place}" for place in range(12)))
    store.embeddings.fill()
    then = store.history.view()
    before = vectors_of(then)
    if act == "delete":
        store.delete(frames[5])
    else:
        store.supersede(frames[5], "another")
    assert store.embeddings.fill().frames >= 2 * TURNS
    assert vectors_of(store) == expected(store)
    newest = contexts_of(store)
    assert not any(frames[5] in newest.get(frame.id, ()) for frame in store.frames())
    assert vectors_of(then) == before == vectors_of(store.at(then.basis))
    assert store.embeddings.fill().frames == 0


def test_the_vector_of_a_window_is_no_vector_of_its_text(store: Store, embedder: Reading) -> None:
    """The log is the cache of texts; a vector of other turns, too, must not be found there."""
    with cerata.open(":memory:", embedder=embedder) as late:
        with late.transaction():
            chat(late, "tea", "coffee")
        late.embeddings.fill()
        late.put_frame("tea")
        assert vectors_of(late)[late.head.seq] == as_stored(words_hashed("tea"))
    assert embedder.asked.count("tea") == 1


def test_a_text_that_was_embedded_only_in_a_window_is_embedded_alone(embedder: Reading) -> None:
    with cerata.open(":memory:") as store:
        chat(store, "tea", "coffee")
        path = store
        assert vectors_of(path)[1] == []
    with cerata.open(":memory:", embedder=embedder) as store:
        chat(store, "tea", "coffee")
        store.embeddings.fill()
        assert store.files.stored(cerata.content_hash("tea"), space=embedder.identity.space)


def test_a_file_without_vectors_gets_each_once(tmp_path: Path, embedder: Reading) -> None:
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        chat(store, "tea", "coffee")
        store.put_frame("tea")
    with cerata.open(path, embedder=embedder) as store:
        embedded = store.embeddings.fill()
        assert (embedded.frames, embedded.asked) == (3, 3)
        assert embedder.asked == ["tea"]
        assert vectors_of(store) == expected(store)
        used = store.embeddings.used()
        assert used is not None
        assert used.space == embedder.identity.space


def test_another_conversation_or_scope_and_an_expiring_text_stay_out(
    store: Store, embedder: Reading
) -> None:
    mina, olaf = chat(store, "tea", "coffee")
    chat(store, "trains", track="tuesday")
    expiring = store.put_frame(
        "secret", role="Mina", options=cerata.PutOptions(track="monday", expires="2999-01-01")
    ).id
    store.put_frame(
        "hidden", role="Mina", options=cerata.PutOptions(track="monday", scope={"user": "olaf"})
    )
    store.embeddings.fill()
    read = " ".join(text for window in embedder.windows for text in (*window.before, *window.after))
    assert "secret" not in read
    assert "hidden" not in read
    assert "trains" not in read
    assert contexts_of(store)[mina] == (olaf,)
    assert contexts_of(store)[expiring] == (mina, olaf)


@pytest.mark.parametrize("seed", range(4))
def test_a_pass_equals_the_windows_by_definition_after_any_writes(
    seed: int, tmp_path: Path
) -> None:
    random = Random(seed)
    path = tmp_path / "memory.cera"
    earlier: dict[int, dict[int, list[float]]] = {}
    for _ in range(3):
        with cerata.open(path, embedder=Reading()) as store:
            for _ in range(30):
                alive = [frame.id for frame in store.frames()]
                draw = random.random()
                if draw < 0.7 or not alive:
                    text = random.choice(("tea", "coffee", "trains")) + str(random.randrange(9))
                    track = random.choice(("monday", "tuesday"))
                    role = random.choice(("Mina", "Olaf", None))
                    store.put_frame(text, role=role, options=cerata.PutOptions(track=track))
                elif draw < 0.85:
                    store.delete(random.choice(alive))
                else:
                    store.supersede(random.choice(alive), "instead")
            store.embeddings.fill(batch=random.choice((3, 256)))
            assert vectors_of(store) == expected(store)
            assert store.embeddings.fill().frames == 0
            earlier[store.head.seq] = vectors_of(store)
            assert store.verify().ok
    with cerata.open(path, mode="r") as store:
        for seq, vectors in earlier.items():
            assert vectors_of(store.at(seq)) == vectors


def test_a_filter_narrows_the_turns_and_not_their_windows(store: Store) -> None:
    mina, olaf, again = chat(store, "tea", "coffee", "trains")
    assert store.embeddings.fill(where=Filter(role="Olaf")).frames == 1
    assert contexts_of(store) == {olaf: (mina, again)}


FAULTS: list[Any] = [
    RuntimeError("no model"),
    np.zeros((1, DIMENSION), np.float32),
    np.full((2, DIMENSION), np.nan, np.float32),
]


@pytest.mark.parametrize("answer", FAULTS, ids=["raises", "count", "not finite"])
def test_an_embedder_that_fails_writes_nothing(
    store: Store, embedder: Reading, answer: Any
) -> None:
    chat(store, "tea", "coffee")
    head = store.head
    embedder.says_windows = answer
    with pytest.raises(EmbedderFailed):
        store.embeddings.fill()
    assert store.head == head
    embedder.says_windows = None
    assert store.embeddings.fill().frames == 2


def test_what_reads_no_context_is_refused_at_open() -> None:
    class Lacking(Hashing):
        reads_context = True

    class Wrong(Reading):
        reads_context: Any = "yes"

    for embedder in (Lacking(), Wrong()):
        with pytest.raises(InvalidInput, match="reads_context"):
            cerata.open(":memory:", embedder=embedder)


def test_a_context_names_other_frames_that_exist_each_once(store: Store) -> None:
    mina, olaf = chat(store, "tea", "coffee")
    data = np.zeros(2, "<f4").tobytes()
    embedding = Embedding("toy", "f4", 2, Attachment(hash_bytes(data), len(data)))
    head = store.head
    cases: list[tuple[tuple[int, ...], type[Exception]]] = [
        ((mina,), InvalidInput),
        ((olaf, olaf), InvalidInput),
        ((99,), NotFound),
    ]
    for context, error in cases:
        body = PutEmbedding(frame=mina, embedding=embedding, context=context)
        with pytest.raises(error, match=r"context|99"):
            store.append(Draft(body, attachments=(data,)))
    assert store.head == head
    body = PutEmbedding(frame=mina, embedding=embedding, context=(olaf,))
    store.append(Draft(body, attachments=(data,)))
    assert contexts_of(store)[mina] == (olaf,)
