"""The store: what is put is found, what is closed is not, and the past stays as it was."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

import cerata
from cerata.engine.events import DeleteFrame, PutFrame, RetractFact, SupersedeFrame
from cerata.memory.batch.writer import session_of
from cerata.memory.ingest import document as ingest
from cerata.retrieval.chunking import split_passages

from ..inside import log_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[cerata.Store]:
    """A store in a file, verified when the test is over."""
    with cerata.open(tmp_path / "memory.cera") as opened:
        yield opened
        assert opened.verify().ok


def texts(found: list[cerata.Hit]) -> list[str]:
    """The texts of hits, best first."""
    return [hit.text for hit in found]


class TestFrames:
    """Putting, closing and reading frames."""

    def test_every_field_comes_back(self, store: cerata.Store) -> None:
        """A field that is accepted and lost would be a lie."""
        parent = store.put_frame("parent")
        receipt = store.put_frame(
            "text",
            kind="note",
            role="user",
            uri="file:a",
            title="Title",
            tags=["x", "y"],
            metadata={"b": 1, "a": [True, None, 1.5, {"c": "d"}]},
            options=cerata.PutOptions(
                labels=["l"],
                track="t",
                parent=parent,
                content_dates=["2026-01-02"],
                created="2026-03-01",
                scope={"user_id": "u1"},
            ),
        )
        frame = store.frame(receipt)
        assert (frame.id, frame.text, frame.kind, frame.role) == (2, "text", "note", "user")
        assert (frame.uri, frame.title, frame.tags) == ("file:a", "Title", ("x", "y"))
        assert frame.metadata == {"b": 1, "a": [True, None, 1.5, {"c": "d"}]}
        assert frame.created == datetime(2026, 3, 1, tzinfo=UTC)
        assert frame.parent == parent.id
        assert frame.scope == {"tenant": "default", "user_id": "u1"}
        assert frame.active

    def test_bytes_come_back_and_are_found_by_their_search_text(self, store: cerata.Store) -> None:
        """A picture is remembered by what somebody said of it."""
        receipt = store.put_frame(
            b"\x00\xff", options=cerata.PutOptions(search_text="a red bicycle")
        )
        assert store.files.content(receipt) == b"\x00\xff"
        assert [hit.id for hit in store.search("bicycle")] == [receipt.id]

    def test_superseded_and_deleted_frames_are_not_found_but_stay_in_the_past(
        self, store: cerata.Store
    ) -> None:
        """Correcting a memory must not rewrite what was known."""
        old = store.put_frame("the index is Annoy", uri="u", tags=["decision"])
        new = store.supersede(old, "the index is HNSW")
        assert texts(store.search("index")) == ["the index is HNSW"]
        assert texts(store.at(old).search("index")) == ["the index is Annoy"]
        assert store.frame(old).superseded_by == new.id
        assert store.frame(new).supersedes == (old.id,)
        assert (store.frame(new).uri, store.frame(new).tags) == ("u", ("decision",))
        store.delete(new)
        assert store.search("index") == []
        assert texts(store.at(new).search("index")) == ["the index is HNSW"]
        assert len(store) == 0

    @pytest.mark.parametrize(
        "closing",
        [
            DeleteFrame(frame=1),
            SupersedeFrame(old=1, new=2),
            SupersedeFrame(old=2, new=2),
            SupersedeFrame(old=2, new=1),
        ],
        ids=["delete", "supersede", "by itself", "by a closed one"],
    )
    def test_closing_what_is_closed_is_a_conflict(
        self, store: cerata.Store, closing: cerata.EventBody
    ) -> None:
        """Two agents that close one frame must not both believe that they did."""
        store.put_frames(["a", "b"])
        store.delete(1)
        head = store.head.seq
        with pytest.raises(cerata.Conflict):
            store.append(closing)
        assert store.head.seq == head

    def test_unknown_frames_are_refused_before_anything_is_written(
        self, store: cerata.Store
    ) -> None:
        """An event that names nothing would be carried for ever."""
        for call in (
            lambda: store.delete(7),
            lambda: store.supersede(7, "x"),
            lambda: store.put_frame("x", options=cerata.PutOptions(parent=7)),
            lambda: store.frame(7),
            lambda: store.supersede(store.put_frame("a"), 99),
        ):
            with pytest.raises(cerata.NotFound, match="no frame"):
                call()
        assert store.head.seq == 1

    def test_many_frames_are_one_batch(self, store: cerata.Store) -> None:
        """Bulk loads are atomic."""
        receipt = store.put_frames(
            [f"text {n}" for n in range(100)], metadata=[{"n": n} for n in range(100)]
        )
        assert len(receipt.ids) == 100
        assert store.frame(receipt.ids[42]).metadata == {"n": 42}
        with pytest.raises(cerata.InvalidInput, match="item for each of 100 texts, not 1"):
            store.put_frames(["x"] * 100, metadata=[{}])

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"content": 5}, "str or bytes"),
            ({"content": "\ud800"}, "not valid Unicode"),
            ({"content": "x", "tags": "one"}, "tags must be a list, not a string"),
            ({"content": "x", "metadata": {"a": float("nan")}}, "nan"),
            ({"content": "x", "metadata": {"a": {1, 2}}}, "cannot be stored|set"),
            ({"content": "x", "options": cerata.PutOptions(created="soon")}, "not an ISO time"),
            (
                {"content": "x", "options": cerata.PutOptions(created="2026-01-01T00:00:00")},
                "no zone",
            ),
            (
                {"content": "x", "options": cerata.PutOptions(scope=cast("Any", {"a": 1.5}))},
                "plain value",
            ),
            ({"content": "x", "options": cerata.PutOptions(key="")}, "empty"),
        ],
    )
    def test_values_that_cannot_be_stored_are_refused(
        self, store: cerata.Store, bad: dict[str, object], message: str
    ) -> None:
        """A typed error that says what is wrong; nothing half-written."""
        with pytest.raises(cerata.InvalidInput, match=message):
            store.put_frame(**bad)  # type: ignore[arg-type]
        assert store.head.seq == 0

    def test_nul_and_blanks_are_text(self, store: cerata.Store) -> None:
        """They are odd, not wrong."""
        for text in ("a\0b", "  "):
            assert store.frame(store.put_frame(text)).text == text


class TestRemember:
    """Documents: split, stored once, replaced when they change."""

    def test_a_document_reads_back_whole_and_is_found_by_its_passages(
        self, store: cerata.Store
    ) -> None:
        """Splitting is an index's business; the text is the user's."""
        text = "# Guide\n" + "\n\n".join(
            f"## Part {n}\nabout topic{n} " + "w " * 200 for n in range(9)
        )
        receipt = store.remember(text, title="Guide", uri="g")
        assert store.frame(receipt).text == text
        assert len(store) == 1
        hit = store.search("topic7")[0]
        assert hit.frame.parent == receipt.id
        assert hit.frame.title == "Guide > Part 7"

    def test_the_same_again_adds_nothing(self, store: cerata.Store) -> None:
        """Agents repeat themselves."""
        first = store.remember("the same thing")
        again = store.remember("the same thing")
        assert (again.id, again.added, again.seqs) == (first.id, False, ())

    def test_a_changed_file_takes_the_place_of_the_old_one(
        self, store: cerata.Store, tmp_path: Path
    ) -> None:
        """Two versions of one note would contradict each other."""
        path = tmp_path / "note.md"
        path.write_text("# Note\nthe old plan")
        old = store.remember(path)
        path.write_text("# Note\nthe new plan " + "\n\nmore " * 900)
        new = store.remember(path)
        assert store.frame(old).superseded_by == new.id
        assert all("old" not in hit.text for hit in store.search("plan"))
        assert store.frame(new).title == "Note"

    def test_a_document_that_was_cut_short_is_completed(
        self, store: cerata.Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A crash between batches leaves a document to be finished, not a second one."""
        monkeypatch.setattr(ingest, "_BATCH_EVENTS", 4)
        text = "\n\n".join(f"## Part {n}\n" + "w " * 400 for n in range(10))
        whole = split_passages(text)
        session = session_of(store)
        write = session.write
        calls = 0

        def failing(drafts: object, **options: object) -> cerata.Receipt:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise KeyboardInterrupt
            return write(drafts, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(session, "write", failing)
        with pytest.raises(KeyboardInterrupt):
            store.remember(text, uri="u")
        monkeypatch.setattr(session, "write", write)
        before = store.head.seq
        receipt = store.remember(text, uri="u")
        assert store.frame(receipt).text == text
        assert before == 1 + 4
        assert store.head.seq == 1 + len(whole)
        assert len(store) == 1

    @pytest.mark.parametrize(
        ("content", "error", "message"),
        [
            (b"\xff\xfe", cerata.InvalidInput, "byte 0 is 0xff"),
            (b"a\0b", cerata.InvalidInput, "NUL at character 1"),
            (b"   \n", cerata.InvalidInput, "no text"),
            (None, cerata.NotFound, "no such file"),
        ],
    )
    def test_files_that_are_not_text_are_refused(
        self,
        store: cerata.Store,
        tmp_path: Path,
        content: bytes | None,
        error: type[Exception],
        message: str,
    ) -> None:
        """The message names the file and the byte."""
        path = tmp_path / "file.txt"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(error, match=message):
            store.remember(path)
        with pytest.raises(cerata.InvalidInput, match="folder"):
            store.remember(tmp_path)
        assert store.head.seq == 0


class TestTransactions:
    """Several calls, one batch."""

    def test_calls_inside_become_one_batch_and_may_name_each_other(
        self, store: cerata.Store
    ) -> None:
        """A correction and what it corrects appear together or not at all."""
        with store.transaction() as transaction:
            first = store.put_frame("first")
            second = store.supersede(first, "second")
            assert (first.id, second.id, first.head, first.durable) == (-1, -2, None, False)
            assert store.head.seq == 0
        receipt = transaction.receipt
        assert receipt.ids == (1, 2)
        assert store.frame(1).superseded_by == 2

    def test_an_exception_inside_writes_nothing(self, store: cerata.Store) -> None:
        """Half a thought is no memory."""

        def fail_half_way() -> None:
            with store.transaction():
                store.put_frame("lost")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail_half_way()
        assert store.head.seq == 0

    def test_expect_refuses_when_the_log_moved_on(self, store: cerata.Store) -> None:
        """An agent that decided on an old state must decide again."""
        seen = store.head.seq
        store.put_frame("somebody else's")
        with (
            pytest.raises(cerata.Conflict, match="at event 1, not at 0"),
            store.transaction(expect=seen),
        ):
            store.put_frame("mine")
        assert store.head.seq == 1

    def test_a_key_makes_a_call_happen_once(self, store: cerata.Store) -> None:
        """A retried tool call must not remember twice."""
        first = store.put_frame("x", options=cerata.PutOptions(key="call-1"))
        again = store.put_frame("x", options=cerata.PutOptions(key="call-1"))
        assert (again.ids, again.added) == (first.ids, False)
        with pytest.raises(cerata.IdempotencyConflict, match="call-1"):
            store.put_frame("y", options=cerata.PutOptions(key="call-1"))

    def test_a_retried_correction_happens_once(self, store: cerata.Store) -> None:
        """On the retry its target is closed, by its own first try: that is no conflict."""
        old = store.put_frame("old")
        receipts: list[cerata.Receipt | None] = []
        for _ in range(2):
            with store.transaction(key="correct-1") as transaction:
                store.supersede(old, "new")
            receipts.append(transaction.receipt)
        first, again = receipts
        assert first is not None
        assert again is not None
        assert (again.ids, again.added) == (first.ids, False)
        assert store.head.seq == 3

    def test_references_inside_a_batch_must_stand_before_and_be_of_the_kind(
        self, store: cerata.Store
    ) -> None:
        """A batch is read in order."""
        for events in (
            [DeleteFrame(frame=-1)],
            [DeleteFrame(frame=-2), PutFrame(text="late")],
            [RetractFact(fact=-1)],
            [PutFrame(text="x"), RetractFact(fact=-1)],
        ):
            with pytest.raises(cerata.NotFound):
                store.append(*events)
        with pytest.raises(cerata.Conflict, match="twice in one batch"):
            store.append(PutFrame(text="x"), DeleteFrame(frame=-1), DeleteFrame(frame=-1))
        assert store.head.seq == 0


class TestScopes:
    """Who and where: stamped on writes, filtering every read."""

    def test_tenants_do_not_see_each_other(self, tmp_path: Path) -> None:
        """One file, two customers."""
        path = tmp_path / "shared.cera"
        with (
            cerata.open(path, scope={"tenant": "a"}) as a,
            cerata.open(path, scope={"tenant": "b"}) as b,
        ):
            secret = a.put_frame("the secret of a")
            b.put_frame("the secret of b")
            assert texts(a.search("secret")) == ["the secret of a"]
            assert texts(b.search("secret")) == ["the secret of b"]
            for call in (
                lambda: b.frame(secret),
                lambda: b.delete(secret),
                lambda: b.supersede(secret, "x"),
            ):
                with pytest.raises(cerata.NotFound):
                    call()
            assert [event.seq for event in b.log()] == [2]
            with pytest.raises(cerata.InvalidInput, match="cannot become"):
                a.put_frame("x", options=cerata.PutOptions(scope={"tenant": "b"}))


class TestViews:
    """The past, as it was."""

    def test_a_view_stands_still_while_others_write(self, store: cerata.Store) -> None:
        """What an agent looked at must not change under it."""
        store.put_frame("alpha one")
        view = store.at("HEAD")
        before = [hit.to_dict() for hit in view.search("alpha")]
        store.put_frame("alpha two")
        store.delete(1)
        assert [hit.to_dict() for hit in view.search("alpha")] == before
        assert len(view) == 1
        assert [frame.id for frame in view.frames()] == [1]

    def test_every_form_of_basis_names_its_event(self, store: cerata.Store) -> None:
        """A point in time, however it was written down."""
        first = store.put_frames(["a", "b", "c"])
        second = store.put_frame("d")
        when = store.at(3).now
        assert store.at(first).basis == 3
        assert store.at(2).basis == 2
        assert store.at("HEAD").basis == store.at(second).basis == 4
        assert store.at("HEAD~1").basis == 3
        assert store.at("HEAD~2").basis == 0
        assert store.at(when).basis == store.at(when.isoformat()).basis == 3
        assert store.at("2020-01-01").basis == 0
        assert store.at(second.head).basis == store.at(store.head).basis == 4  # type: ignore[arg-type]
        for basis in (5, -1, "HEAD~3"):
            with pytest.raises(cerata.NotFound):
                store.at(basis)
        with pytest.raises(cerata.NotFound, match="no tag 'earlier'"):
            store.at("earlier")
        with pytest.raises(cerata.InvalidInput, match="no seq, tag, HEAD"):
            store.at("2026-13-01")

    def test_now_is_the_clock_at_the_head_and_what_was_recorded_in_the_past(
        self, store: cerata.Store
    ) -> None:
        """A context, asked for again, means by "now" what it meant then."""
        store.put_frame("a")
        store.put_frame("b")
        before = datetime.now(UTC)
        context = store.recall("a")
        assert before <= context.now <= store.at("HEAD").now <= datetime.now(UTC)
        again = store.at(context)
        assert (again.basis, again.now) == (2, context.now)
        assert store.at(again).now == context.now
        assert again.recall("a") == context
        assert store.at(1).now == store.frame(1).recorded

    def test_a_basis_of_another_memory_is_refused(self, store: cerata.Store) -> None:
        """It has the same numbers, and they mean something else."""
        store.put_frame("a")
        with cerata.open(":memory:") as other:
            receipt = other.put_frame("b")
            for basis in (receipt, other.head, other.at("HEAD")):
                with pytest.raises(cerata.InvalidInput, match="another memory"):
                    store.at(basis)
            assert other.at(receipt).basis == 1

    def test_recall_names_sources_and_says_when_nothing_matched(self, store: cerata.Store) -> None:
        """A model must be able to say where it knows something from."""
        store.put_frame("The budget is 40,000 euro.", title="Budget", uri="b.md")
        context = store.recall("budget")
        assert context.text.startswith("[#1 · Budget · b.md · ")
        assert str(context).endswith(f"1 of 1 shown, {context.tokens} of 1,500 tokens, basis 1")
        assert not context.fallback
        unrelated = store.recall("zebra")
        assert (unrelated.text, unrelated.items, unrelated.confidence) == ("", (), "none")
        assert str(unrelated) == "nothing relevant, basis 1"
        assert store.recall("zebra", floor=False).items == ()
        newest = store.recall("?")
        assert newest.fallback
        assert "nothing matched, newest first" in str(newest)

    def test_searching_needs_a_question(self, store: cerata.Store) -> None:
        """Bad arguments are errors, an unknown word is an empty answer."""
        assert store.search("anything") == []
        for query, k in ((5, 1), ("x", 0), ("\ud800", 1)):
            with pytest.raises(cerata.InvalidInput):
                store.search(query, k=k)  # type: ignore[arg-type]


class TestCheckpoints:
    """Saved state and replay agree, whatever happened to the file between."""

    def test_checkpoint_plus_tail_equals_full_replay(self, tmp_path: Path) -> None:
        """An index never drifts from its data."""
        path = tmp_path / "memory.cera"
        for round_ in range(5):
            with cerata.open(path, options=cerata.OpenOptions(ring_bytes=1 << 16)) as store:
                ids = store.put_frames(
                    [f"round {round_} text {n} word{n % 7}" for n in range(60)]
                ).ids
                store.delete(ids[round_])
                store.supersede(ids[10], "instead")
                store.checkpoint()
                store.put_frame(f"tail {round_}")
        with cerata.open(path, mode="r") as store:
            assert store.stream.digests() == store.stream.digests(replay=True)
            assert store.verify().ok
            # Nine texts a round have the word; row 10 was superseded, and 3 was deleted once.
            assert len(store.search("word3", k=100)) == 5 * 9 - 5 - 1

    def test_a_damaged_chunk_is_folded_again(self, tmp_path: Path) -> None:
        """A checkpoint is a convenience: losing it costs time, never answers."""
        path = tmp_path / "memory.cera"
        with cerata.open(path) as store:
            store.put_frames([f"text {n}" for n in range(50)])
            store.checkpoint()
            expected = [hit.to_dict() for hit in store.search("text", k=50)]
            (entry,) = [
                entry
                for key, entry in log_of(store).toc().projections.items()
                if key.startswith("fulltext/")
            ]
            offset = entry["chunks"][0][0]
        data = bytearray(path.read_bytes())
        data[offset + 100] ^= 1
        path.write_bytes(data)
        with cerata.open(path, mode="r") as store:
            assert [hit.to_dict() for hit in store.search("text", k=50)] == expected
            verification = store.verify()
            assert not verification.ok
            assert any("extent" in note for note in verification.notes)

    def test_close_saves_only_what_is_worth_it(self, tmp_path: Path) -> None:
        """A note from the command line must not cost a checkpoint."""
        path = tmp_path / "memory.cera"
        with cerata.open(path) as store:
            store.put_frame("one")
        with cerata.open(path) as store:
            assert log_of(store).toc().projections == {}
            store.put_frames([f"text {n}" for n in range(2000)])
        with cerata.open(path, mode="r") as store:
            assert len(log_of(store).toc().projections) == 14
