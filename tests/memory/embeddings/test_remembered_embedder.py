"""The embedder that a memory remembers: recorded with the first vectors, used by later openers."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import Conflict, InvalidInput, Unsupported, agents
from cerata.engine.events import DEFAULT_SCOPE, Draft, PutFrame, UseEmbedder
from cerata.retrieval.embedders import built_in
from cerata.retrieval.embedders.embedder import Embedder

from ...embedders import Hashing, HashingTokens
from ...embedding_server import Server
from ...inside import log_of

SPACE = "hashing@1/8/cosine"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.cera"


@pytest.fixture(autouse=True)
def hashing(monkeypatch: pytest.MonkeyPatch) -> list[Hashing]:
    """The hashing embedder as a built-in; each one that is made."""
    made = list[Hashing]()

    def make() -> Embedder:
        made.append(Hashing())
        return made[-1]

    monkeypatch.setitem(built_in.BUILT_IN, "hashing", make)
    monkeypatch.setitem(built_in.BUILT_IN, "hashing-tokens", lambda: HashingTokens("2"))
    return made


def uses(store: cerata.Store) -> list[UseEmbedder]:
    return [event.body for event in store.log() if isinstance(event.body, UseEmbedder)]


@contextmanager
def filled(store: cerata.Store, text: str) -> Generator[None]:
    """A transaction with a frame."""
    with store.transaction():
        store.put_frame(text)
        yield


# --- the event -----------------------------------------------------------------------------------


def test_the_first_batch_with_vectors_names_the_embedder_at_its_end(path: Path) -> None:
    """Last, so that the ids of a block are those that its calls returned."""
    with cerata.open(path, embedder="hashing") as store:
        assert store.head.seq == 0, "opening writes nothing"
        with store.transaction() as block:
            assert [store.put_frame("wax").id, store.put_frame("tablet").id] == [-1, -2]
        assert block.receipt is not None
        assert block.receipt.ids == (1, 2)
        store.put_frame("stylus")
        types = [event.type for event in store.log()]
        assert types == ["putFrame", "putFrame", "useEmbedder", "putFrame"]
        [use] = uses(store)
        assert use == UseEmbedder(identity="hashing@1", space=SPACE, name="hashing")
        assert store.verify().ok


def test_an_embedder_object_is_remembered_without_a_name(path: Path) -> None:
    """A class cannot be found by its identity, so later openers must pass it."""
    with cerata.open(path, embedder=HashingTokens()) as store:
        store.put_frame("wax")
        [use] = uses(store)
        assert (use.name, use.tokens_space) == (None, "hashing@1/8/maxsim/i1")
    with cerata.open(path) as store:
        assert store.embeddings.embedder is None


def test_a_text_without_a_vector_records_no_embedder(path: Path) -> None:
    with cerata.open(path, embedder="hashing") as store:
        store.put_frame(" ")
        store.put_frame(b"\x00")
        store.put_frame("wax", vectors=cerata.Vectors(dense=[1.0, 2.0], space="mine"))
        assert uses(store) == []


def test_a_full_batch_of_first_vectors_is_refused(path: Path) -> None:
    """Its vectors would be there without their embedder, and another could be recorded first."""
    embedder = Hashing()
    with cerata.open(path, embedder=embedder) as store:
        with pytest.raises(InvalidInput, match="no place for the event that records"):
            store.put_frames(["ok"] * 10_000)
        assert (store.head.seq, embedder.asked) == (0, [])
        with pytest.raises(InvalidInput, match="no place"), filled(store, "wax"):
            store.put_frames([" "] * 9_999)
        assert store.head.seq == 0
        assert store.put_frames(["ok"] * 9_999).ids[-1] == 9_999
        assert [type(log_of(store).event(seq).body) for seq in (9_999, 10_000)] == [
            PutFrame,
            UseEmbedder,
        ]
        store.put_frames(["ok"] * 10_000)
        assert len(uses(store)) == 1


def test_a_full_batch_of_vectors_for_stored_frames_has_the_event(path: Path) -> None:
    with cerata.open(path) as store:
        store.put_frames(["ok"] * 10_000)
    with cerata.open(path, embedder="hashing") as store:
        assert store.embeddings.fill(batch=10_000).frames == 10_000
        assert [use.space for use in uses(store)] == [SPACE]


def test_a_repeated_call_returns_the_first_receipt(path: Path) -> None:
    with cerata.open(path, embedder="hashing") as store:
        first = store.put_frame("wax", options=cerata.PutOptions(key="k"))
    with cerata.open(path) as store:
        again = store.put_frame("wax", options=cerata.PutOptions(key="k"))
        assert (again.id, again.seqs, again.added) == (first.id, first.seqs, False)


# --- later openers -------------------------------------------------------------------------------


def test_a_later_opener_embeds_and_searches_with_it(path: Path, hashing: list[Hashing]) -> None:
    with cerata.open(path, embedder="hashing") as store:
        store.put_frame("wax tablet")
    with cerata.open(path) as store:
        made = len(hashing)
        assert store.history.timeline(limit=1).entries
        assert len(hashing) == made, "no embedder is made before a text needs one"
        store.put_frame("stylus")
        assert store.embeddings.of(3, SPACE) is not None
        assert store.search("tablet")[0].lanes == ("text", "vectors")
        assert store.history.view().recall("tablet").lanes == ("text", "facts", "vectors")
        assert len(hashing) == made + 1, "one embedder serves the whole store"
    with cerata.open(path, mode="r") as store:
        assert store.search("tablet")[0].lanes == ("text", "vectors")


def test_a_view_uses_the_embedder_of_its_basis(path: Path) -> None:
    """As of each event the answer is that of then."""
    with cerata.open(path) as store:
        store.put_frame("wax tablet")
    with cerata.open(path, embedder="hashing") as store:
        store.put_frame("tablet")
    with cerata.open(path) as store:
        lanes = [store.at(n).search("tablet")[0].lanes for n in (1, 2, 3)]
        assert lanes == [("text",), ("text",), ("text", "vectors")]


def test_each_tenant_has_its_embedder(path: Path, hashing: list[Hashing]) -> None:
    other = {"tenant": "b"}
    with cerata.open(path, embedder="hashing", scope={"tenant": "a", "user": "ann"}) as store:
        store.put_frame("wax")
    with cerata.open(path, embedder=Hashing("2"), scope=other) as store:
        store.put_frame("wax")
    with cerata.open(path, scope={"tenant": "a", "user": "ben"}) as store:
        store.put_frame("tablet")
        assert store.search("tablet")[0].lanes == ("text", "vectors")
    with cerata.open(path, scope=other) as store:
        assert store.embeddings.embedder is None
    with cerata.open(path, embedder="hashing") as store:
        store.put_frame("wax")
    with cerata.open(path) as store:
        # A text of a tenant with another embedder gets no vector of this one.
        note = store.put_frame("stylus", options=cerata.PutOptions(scope=other))
        assert store.embeddings.embedder is not None
        assert store.embeddings.of(note) is None


def test_an_endpoint_is_never_contacted_because_it_is_remembered(path: Path) -> None:
    """It must be passed: a file from elsewhere would send texts to any address."""
    with closing(Server()) as server:
        endpoint = cerata.EndpointEmbedder(server.url, model="m", revision="1", dimension=2)
        with cerata.open(path, embedder=endpoint) as store:
            store.put_frame("wax")
            [use] = uses(store)
        asked = len(server.asked)
        assert asked == 1
        assert use.name is None
        assert server.url not in str(use)
        with cerata.open(path) as store:
            # Not even if the event has a name, which no writer of ours gives it.
            store.append(Draft(UseEmbedder(**{**dict_of(use), "name": "endpoint"}), DEFAULT_SCOPE))
            assert store.embeddings.embedder is None
            store.put_frame("tablet")
            assert store.search("wax")[0].lanes == ("text",)
            store.recall("wax")
        assert len(server.asked) == asked


def dict_of(use: UseEmbedder) -> dict[str, Any]:
    return {name: getattr(use, name) for name in use.__struct_fields__}


def test_a_search_without_a_vector_in_view_is_noted(path: Path) -> None:
    """The lane did not run although the tenant has vectors, and nothing showed it."""
    with cerata.open(path, scope={"user": "ben"}) as store:
        store.put_frame("wax")
    with cerata.open(path, embedder="hashing", scope={"user": "ann"}) as store:
        assert store.search("wax").notices == ()
        store.put_frame("wax")
        assert store.search("wax").notices == ()
    with cerata.open(path, scope={"user": "cay"}) as store:
        assert store.search("wax").notices == (), "there is nothing to find"
    with cerata.open(path, scope={"user": "ben"}) as store:
        notice = f"searched by words only: no frame here has a vector of {SPACE!r}"
        [line] = store.search("wax").notices
        assert line == f"{notice}; embeddings.fill() adds vectors"
        assert store.recall("wax").notices == (line,)
        store.embeddings.fill()
        assert store.search("wax").notices == ()


def test_a_text_without_a_vector_is_noted(path: Path, tmp_path: Path) -> None:
    """The texts could not be found by meaning, and nothing showed it."""
    with cerata.open(path) as store:
        assert store.put_frame("wax").notices == (), "the memory has no vectors"
    with cerata.open(path, embedder=Hashing("0")) as store:
        assert store.put_frame("tablet", options=cerata.PutOptions(key="k")).notices == ()
    file = tmp_path / "a.md"
    file.write_text("harbour")
    with cerata.open(path) as store:
        receipts = [
            store.put_frame("stylus"),
            store.put_frames(["wax", "ink"]),
            store.put_frame("a", uri="u", options=cerata.PutOptions(replace=True)),
            store.supersede(1, "beeswax"),
            store.remember("a note"),
            agents.remember_messages(store, [{"role": "user", "content": "hello"}]),
        ]
        line = (
            "stored without vectors: the vectors are of 'hashing@0/8/cosine', which is no built-in "
            "embedder; pass it to open(embedder=…)"
        )
        assert {receipt.notices for receipt in receipts} == {(line,)}
        assert receipts[0].to_dict()["notices"] == [line]
        assert store.files.remember([file]).notices == (line,)
        assert store.files.remember([file]).notices == (), "the file is unchanged"
        with store.transaction() as block:
            assert store.put_frame("one").notices == (line,)
            store.put_frame("two")
        assert block.receipt is not None
        assert block.receipt.notices == (line,)
        assert store.put_frame(b"\x00").notices == store.delete(receipts[0]).notices == ()
        assert store.put_frame("tablet", options=cerata.PutOptions(key="k")).notices == (), (
            "nothing was written"
        )
        own = store.put_frame("b", vectors=cerata.Vectors(dense=[1.0, 2.0], space="mine"))
        assert (own.notices, "notices" in own.to_dict()) == ((), False)


def test_a_text_of_a_tenant_with_another_embedder_is_noted(path: Path) -> None:
    with cerata.open(path, embedder="hashing") as store:
        store.put_frame("wax")
    with cerata.open(path, embedder="hashing-tokens", scope={"tenant": "b"}) as store:
        store.put_frame("wax")
    with cerata.open(path) as store:
        assert store.put_frame("ink").notices == ()
        [line] = store.put_frame("ink", options=cerata.PutOptions(scope={"tenant": "b"})).notices
        assert line.endswith("not of the store's 'hashing@1/8/cosine'; open it by tenant")


# --- another embedder ----------------------------------------------------------------------------


@pytest.mark.parametrize("second", [Hashing("2"), HashingTokens()])
def test_a_text_is_not_embedded_by_another_embedder(path: Path, second: Hashing) -> None:
    """Its vector would be of no use to those who search with the embedder of the memory."""
    with cerata.open(path, embedder="hashing") as store:
        store.put_frame("wax")
    with cerata.open(path, embedder=second) as store:
        for call in (store.put_frame, store.remember):
            with pytest.raises(InvalidInput, match="uses the embedder of 'hashing@1"):
                call("tablet")
            with pytest.raises(InvalidInput, match=r"embeddings\.fill"), store.transaction():
                call("tablet")
        assert store.head.seq == 2
        assert second.asked == []


def test_embed_missing_changes_the_embedder(path: Path) -> None:
    with cerata.open(path, embedder=Hashing("0")) as store:
        store.put_frame("wax")
    with cerata.open(path, embedder="hashing") as store:
        assert store.embeddings.fill().frames == 1
        end = store.head.seq
        store.embeddings.fill()
        assert store.head.seq == end, "a second call writes nothing"
        store.put_frame("tablet")
        assert [use.space for use in uses(store)] == ["hashing@0/8/cosine", SPACE]
    with cerata.open(path) as store:
        assert {hit.lanes for hit in store.search("wax tablet")} == {("text", "vectors")}
        remembered = [store.at(n).embeddings.used() for n in (1, 2, 4)]
        assert [each and each.identity for each in remembered] == [None, "hashing@0", "hashing@1"]


def test_a_narrow_embed_missing_leaves_the_embedder_of_the_tenant(path: Path) -> None:
    """The questions of the tenant's other users would miss all vectors that their frames have."""
    with cerata.open(path, embedder=Hashing("0")) as store:
        ann, ben = (
            store.put_frame("wax", options=cerata.PutOptions(scope={"user": name})).id
            for name in ("ann", "ben")
        )
    second = Hashing()
    with cerata.open(path, embedder=second, scope={"user": "ann"}) as store:
        embedded = store.embeddings.fill()
        assert embedded.frames == 1
        [notice] = embedded.notices
        assert notice.startswith("The memory still uses the embedder of 'hashing@0/8/cosine'")
        assert store.embeddings.of(ann, SPACE) is not None
    with cerata.open(path, embedder=Hashing("0"), scope={"user": "ben"}) as store:
        assert store.search("wax")[0].lanes == ("text", "vectors")
    with cerata.open(path, embedder=second) as store:
        embedded = store.embeddings.fill(where=cerata.Filter(scope={"user": "ann"}))
        assert (embedded.frames, len(embedded.notices)) == (0, 1)
        assert [use.space for use in uses(store)] == ["hashing@0/8/cosine"]
        embedded = store.embeddings.fill()
        assert (embedded.frames, embedded.notices) == (1, ())
        assert store.embeddings.of(ben, SPACE) is not None
        assert [use.space for use in uses(store)] == ["hashing@0/8/cosine", SPACE]


def test_a_text_put_during_embed_missing_is_embedded_before_the_change(path: Path) -> None:
    """Its writer still uses the old embedder; no frame may be left without the new vector."""

    class Slow(Hashing):
        def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            if len(self.asked) < 3:
                other.put_frame(f"note {len(self.asked)}")
            return super().embed(texts)

    with cerata.open(path, embedder=Hashing("0")) as other:
        other.put_frame("wax")
        with cerata.open(path, embedder=Slow()) as store:
            embedded = store.embeddings.fill()
            assert (embedded.frames, embedded.asked, embedded.passed) == (4, 4, 0)
            assert all(store.embeddings.of(frame, SPACE) is not None for frame in store.frames())
            assert [use.space for use in uses(store)] == ["hashing@0/8/cosine", SPACE]


class Racing(Hashing):
    """An embedder during whose work another writer acts once."""

    def __init__(self, act: Callable[[], object], revision: str = "1") -> None:
        super().__init__(revision)
        self.act: Callable[[], object] | None = act

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        act, self.act = self.act, None
        if act is not None:
            act()
        return super().embed(texts)


@pytest.mark.parametrize("block", [nullcontext, cerata.Store.transaction])
def test_of_two_first_embedders_the_second_is_refused(
    path: Path, block: Callable[[cerata.Store], AbstractContextManager[object]]
) -> None:
    """The first was recorded while the second worked, and was replaced without a word."""
    with cerata.open(path, embedder=Hashing("0")) as other:
        racing = Racing(lambda: other.put_frame("wax"))
        with cerata.open(path, embedder=racing) as store:
            with (
                pytest.raises(Conflict, match="'hashing@0/8/cosine' the memory's") as caught,
                block(store),
            ):
                store.put_frame("tablet")
            assert caught.value.where == "event 2"
            with pytest.raises(InvalidInput, match="uses the embedder of 'hashing@0"):
                store.put_frame("tablet")
            assert [event.type for event in store.log()] == ["putFrame", "useEmbedder"]


def test_two_first_embedders_race_after_the_last_look(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event of the other writer comes between the check and the lock."""
    with (
        cerata.open(path, embedder=Hashing("0")) as other,
        cerata.open(path, embedder=Hashing()) as store,
    ):
        append = log_of(store).append

        def late(*drafts: Any, **options: Any) -> Any:
            other.put_frame("wax")
            return append(*drafts, **options)

        monkeypatch.setattr(log_of(store), "append", late)
        with pytest.raises(Conflict, match="just before"):
            store.put_frame("tablet")
        assert [event.type for event in store.log()] == ["putFrame", "useEmbedder"]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_text_gets_no_vector_of_an_embedder_that_was_changed_meanwhile(
    path: Path, *, replaced: bool
) -> None:
    """It would lack a vector of the new embedder, although embeddings.fill found none missing."""
    with cerata.open(path, embedder=Hashing("0")) as store:
        store.put_frame("wax")

    def change() -> None:
        with cerata.open(path, embedder="hashing") as other:
            other.embeddings.fill()

    with cerata.open(path, embedder=Racing(change, "0")) as store:
        with pytest.raises(Conflict, match="'hashing@1/8/cosine' the memory's"):
            store.put_frame("tablet", uri="a", options=cerata.PutOptions(replace=replaced))
        assert [use.identity for use in uses(store)] == ["hashing@0", "hashing@1"]
        assert store.head.seq == 4


# --- names ---------------------------------------------------------------------------------------


def test_an_unknown_name_is_refused_before_a_file_is_made(path: Path) -> None:
    with pytest.raises(InvalidInput, match="no built-in embedder 'minilmm'") as caught:
        cerata.open(path, embedder="minilmm")
    assert "Did you mean 'minilm'?" in (caught.value.remedy or "")
    assert not path.exists()


def test_a_missing_extra_is_named_with_its_command(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_found(_: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", not_found)
    with pytest.raises(Unsupported) as caught:
        cerata.open(path, embedder="minilm")
    assert caught.value.remedy == "Run pip install '.[minilm]' in a checkout of Cerata."
    assert not path.exists()


@pytest.mark.minilm
def test_each_name_of_minilm_is_known_by_its_object() -> None:
    made = cerata.MiniLMEmbedder(dtype="i1", token_dimension=128)
    assert built_in.name_of(made) == "minilm-int8-tokens"
    assert built_in.name_of(cerata.MiniLMEmbedder(token_dimension=384)) is None
    for name in ("minilm", "minilm-int8", "minilm-tokens"):
        assert built_in.name_of(built_in.built_in(name)) == name


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"identity": "", "space": "/1"}, "is not that of"),
        ({"identity": "a@1", "space": "b@1/8/cosine"}, "is not that of"),
        ({"identity": "a@1", "space": "a@1/8/maxsim/i1"}, "space of token vectors"),
        ({"identity": "a@1", "space": "a@1/8/cosine", "tokens_space": "t"}, "not a space of token"),
        ({"identity": "a@1", "space": f"a@1/{'8' * 300}"}, "255"),
    ],
)
def test_an_event_that_names_no_embedder_is_refused(
    path: Path, fields: dict[str, str], match: str
) -> None:
    with cerata.open(path) as store:
        with pytest.raises(InvalidInput, match=match):
            store.append(UseEmbedder(**fields))
        assert store.head.seq == 0
