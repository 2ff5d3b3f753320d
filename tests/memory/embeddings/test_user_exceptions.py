"""An exit, an interrupt or a lack of memory in a user's code is not that code's failure.

It reaches the caller as it was raised, writes nothing, and leaves a handle that works.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import cerata
from cerata import Store
from cerata.engine.events import Draft, PutFrame
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.store_embedder import StoreEmbedder

from ...embedders import HashingTokens
from ...inside import log_of
from ..facts.extractors import Model


class Stopped(BaseException):
    """As trio and others have their own."""


PASSING = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError("no room"), Stopped()]


RAISED: list[BaseException] = []
"""The error that the code of a projection raises, if any."""


def stop() -> None:
    for error in RAISED:
        raise error


class User:
    """The user's code in every place that takes some; it raises while ``error`` is set."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.embedder = HashingTokens()

    def step(self, *_: object) -> None:
        if self.error is not None:
            raise self.error

    def extract(self, text: str) -> Iterator[cerata.Candidate]:
        yield cerata.Candidate("a", "is", "b", 0, 1)
        self.step()

    def fail(self, error: BaseException | None) -> None:
        self.error = error
        self.embedder.says = error
        RAISED[:] = [] if error is None else [error]

    def fail_tokens(self, error: BaseException | None) -> None:
        self.embedder.says_tokens = error


class Seen(cerata.RowProjection[str, int]):
    """Counts frames, unless it is to raise half-way."""

    name = "seen"
    version = 1
    handles = (PutFrame,)

    def apply(self, events: Sequence[Any]) -> None:
        for _ in events:
            self.rows["seen"] = self.rows.get("seen", 0) + 1
            stop()


class Made(Seen):
    """Raises when it is made."""

    name = "made"

    def __init__(self) -> None:
        super().__init__()
        stop()


def gather(store: Store, user: User) -> None:
    with store.transaction():
        store.put_frame("gathered")
        user.step()


CALLS: dict[str, Callable[[Store, User], object]] = {
    "put": lambda store, _: store.put_frame("tea"),
    "remember": lambda store, _: store.remember("tea"),
    "supersede": lambda store, _: store.supersede(1, "tea"),
    "search": lambda store, _: store.search("tea"),
    "recall": lambda store, _: store.recall("tea", record=True),
    "embed": lambda store, user: store.embeddings.fill(progress=user.step),
    "extract": lambda store, user: store.graph.extract(extractor=Model(user.extract)),
    "projection": lambda store, _: store.stream.projection(Seen),
    "digests": lambda store, _: store.stream.digests(),
    "replay": lambda store, _: store.stream.replay().stream.projection(Seen),
    "rebuild": lambda store, user: store.upkeep.rebuild("frames", user.step),
    "verify": lambda store, user: store.verify(user.step),
    "transaction": gather,
    "import": lambda store, user: store.interchange.import_facts(LINES, progress=user.step),
    "validate": lambda store, user: log_of(store).append(
        [Draft(PutFrame(text="x"))], validate=user.step
    ),
}
LINES: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def lines() -> None:
    with cerata.open(":memory:") as store:
        store.assert_fact("Ann", "likes", "tea")
        LINES[:] = store.interchange.export_facts()


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", CALLS)
def test_what_a_users_code_raises_to_stop_reaches_the_caller(
    name: str, error: BaseException
) -> None:
    """It became EmbedderFailed, ExtractorFailed or ProjectionFailed, and the program went on."""
    user = User()
    user.fail(None)
    with cerata.open(":memory:", projections=[Seen]) as store:
        store.put_frame("Ann likes tea.")
        session_of(store).embedders = StoreEmbedder(user.embedder)
        store.put_frame("black coffee")
        user.fail(error)
        with pytest.raises(type(error)) as caught:
            CALLS[name](store, user)
        assert caught.value is error
        user.fail(None)
        if name != "import":
            assert store.head.seq == 3
        store.put_frame("green tea")
        assert [hit.id for hit in store.search("green")][:1] == [store.head.seq]
        assert store.stream.projection(Seen).rows["seen"] == 3
        assert store.verify().ok


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_token_vectors_and_new_projections_stop_alike(error: BaseException) -> None:
    """They have their own calls of the user's code."""
    user = User()
    user.fail_tokens(error)
    with cerata.open(":memory:", embedder=user.embedder) as store:
        with pytest.raises(type(error)) as caught:
            store.put_frame("tea")
        assert caught.value is error
        assert store.head.seq == 0
    user.fail(error)
    with pytest.raises(type(error)) as caught:
        cerata.open(":memory:", projections=[Made])
    assert caught.value is error
    user.fail(None)
