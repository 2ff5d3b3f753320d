"""Stories of faults that a review found before the first release; each was real once."""

import os
import threading
import time
from pathlib import Path

import pytest

import cerata
from cerata import Filter
from cerata.cli import main
from cerata.engine.disk.storage import OsStorage
from cerata.engine.events import PutFrame
from cerata.memory.ingest.formats.plain import markdown_title
from cerata.retrieval.chunking import split_passages

from ..inside import log_of

LONG = "\n\n".join(f"## Part {number}\n" + "w " * 400 for number in range(6))


def test_two_users_may_remember_the_same_thing() -> None:
    """The second one's was taken for a repetition and never stored."""
    with cerata.open(":memory:") as store:
        assert store.remember(
            "code 1234", options=cerata.PutOptions(scope={"user_id": "alice"})
        ).added
        assert store.remember(
            "code 1234", options=cerata.PutOptions(scope={"user_id": "bob"})
        ).added
        assert not store.remember(
            "code 1234", options=cerata.PutOptions(scope={"user_id": "bob"})
        ).added


def test_a_uri_of_another_tenant_is_not_replaced() -> None:
    """Bob's note superseded Alice's, since both were called n.md."""
    with cerata.open(":memory:") as store:
        alice = store.remember(
            "A", uri="n.md", options=cerata.PutOptions(scope={"tenant": "alice"})
        )
        store.remember("B", uri="n.md", options=cerata.PutOptions(scope={"tenant": "bob"}))
        store.remember("C", uri="n.md")
        assert store.frame(alice).active
        assert len(store) == 3


def test_a_new_version_stays_in_the_scope_of_the_old_one() -> None:
    """It went to the default tenant, and its owner had neither version."""
    with cerata.open(":memory:") as store:
        old = store.put_frame(
            "x",
            metadata={"a": 1},
            options=cerata.PutOptions(scope={"tenant": "alice", "user_id": 7}),
        )
        new = store.frame(store.supersede(old, "y"))
        assert new.scope == {"tenant": "alice", "user_id": 7}
        assert new.metadata == {"a": 1}
        with store.transaction() as transaction:
            first = store.put_frame("in", options=cerata.PutOptions(scope={"user_id": 8}))
            store.supersede(first, "out")
        last = store.frame(transaction.receipt.ids[1])
        assert last.scope == {"tenant": "default", "user_id": 8}


def test_a_comment_below_a_document_is_no_passage_of_it() -> None:
    """It was counted as one: resuming left a passage out, or broke an assertion."""
    with cerata.open(":memory:") as store:
        document = store.remember(LONG, uri="u")
        store.put_frame("a comment", options=cerata.PutOptions(parent=document))
        assert not store.remember(LONG, uri="u").added
        assert store.frame(document).text == LONG


def test_a_deleted_passage_is_put_again() -> None:
    """The document still showed it, and remembering it again did nothing."""
    with cerata.open(":memory:") as store:
        document = store.remember(LONG, uri="u")
        store.delete(document.ids[3])
        assert store.frame(document).text != LONG
        assert store.at(document).frame(document).text == LONG
        assert store.remember(LONG, uri="u").added
        assert store.frame(document).text == LONG
        store.delete(document)
        assert store.frame(document).text == LONG


def test_threads_that_remember_one_uri_leave_one_version(tmp_path: Path) -> None:
    """Two stayed current, or one got a conflict that was not its caller's."""
    failures: list[BaseException] = []

    def remember(store: cerata.Store, number: int) -> None:
        try:
            for version in range(5):
                store.remember(f"version {number} {version}", uri="doc")
        except BaseException as error:
            failures.append(error)
            raise

    with cerata.open(tmp_path / "memory.cera") as store:
        threads = [threading.Thread(target=remember, args=(store, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store) == 1
        assert store.verify().ok


@pytest.mark.parametrize("when", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_time_that_no_datetime_can_hold_is_refused(when: str) -> None:
    """It was stored, and every read that met it failed from then on."""
    with cerata.open(":memory:") as store:
        with pytest.raises(cerata.InvalidInput, match="years 1 to 9999"):
            store.put_frame("x", options=cerata.PutOptions(created=when))
        store.append(PutFrame(text="far", created=10**18))
        assert store.search("far")[0].frame.created.year == 9999


def test_a_file_that_was_replaced_while_open_is_noticed(tmp_path: Path) -> None:
    """Writes went on into a file without a name, and were called durable."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frame("x")
        path.unlink()
        with pytest.raises(cerata.Corrupt, match="removed while it was open"):
            store.stream.refresh()
        cerata.open(path).close()
        with pytest.raises(cerata.Corrupt, match="replaced by another"):
            store.search("x")


def test_a_store_in_memory_is_backed_up_to_the_disk(tmp_path: Path) -> None:
    """The copy was made in memory too, and said to be durable."""
    with cerata.open(":memory:") as store:
        store.put_frame("kept")
        store.backup(tmp_path / "copy.cera")
    with cerata.open(tmp_path / "copy.cera", mode="r") as copy:
        assert copy.search("kept")[0].text == "kept"


def test_a_link_to_nowhere_does_not_hang(tmp_path: Path) -> None:
    """Opening found nothing, creating found the name taken, for ever."""
    path = tmp_path / "memory.cera"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(cerata.StorageFailed, match="neither be opened nor created"):
        cerata.open(path)


def test_a_line_of_heading_marks_takes_no_time() -> None:
    """A pattern took quadratic time: a file of 200 KB never ended."""
    started = time.process_time()
    passages = split_passages("# " + " #" * 100_000 + "x\n")
    assert time.process_time() - started < 5
    assert passages


def test_a_pipe_is_no_file_to_remember(tmp_path: Path) -> None:
    """Reading it waited for a writer that never came."""
    os.mkfifo(tmp_path / "pipe.md")
    with cerata.open(":memory:") as store, pytest.raises(cerata.InvalidInput, match="pipe"):
        store.remember(tmp_path / "pipe.md")


@pytest.mark.parametrize("odd", ["1", 1.5, None, True, b"1"])
def test_what_names_no_frame_is_a_typed_error(odd: object) -> None:
    """They were AttributeErrors from inside; True was frame 1."""
    with cerata.open(":memory:") as store:
        store.put_frame("x")
        for call in (store.frame, store.delete):
            message = "A frame must be an id"
            if odd is None and call == store.delete:  # None is the default beside `where`.
                message = "delete needs either a frame or where="
            with pytest.raises(cerata.InvalidInput, match=message):
                call(odd)  # type: ignore[arg-type]
        assert len(store) == 1


def test_odd_arguments_are_typed_errors() -> None:
    """Nobody should meet a TypeError from inside for a wrong argument."""
    with cerata.open(":memory:") as store:
        for call in (
            lambda: store.at(1.5),  # type: ignore[arg-type]
            lambda: store.at("9" * 5000),
            lambda: store.at("HEAD~" + "9" * 5000),
            lambda: store.search("x", k="1"),  # type: ignore[arg-type]
            lambda: store.recall("x", max_tokens=1.5),  # type: ignore[arg-type]
            lambda: store.append("x"),  # type: ignore[arg-type]
            lambda: store.put_frame("x", options=cerata.PutOptions(created=5)),  # type: ignore[arg-type]
            lambda: store.put_frames(["a"], tags="decision"),
            lambda: store.put_frames(["a"], kind=""),
            lambda: store.put_frames(["a"], metadata=[5]),  # type: ignore[list-item]
            lambda: store.remember("x", uri="\ud800"),
        ):
            with pytest.raises(cerata.InvalidInput):
                call()
        assert store.head.seq == 0


def test_stored_text_does_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An escape sequence in a memory reached the terminal that showed it."""
    file = str(tmp_path / "m.cera")
    assert main(["put", "-f", file, "\x1b[31mred\x07"]) == 0
    for verb in (["log"], ["search", "31mred"], ["recall", "31mred"]):
        assert main([*verb, "-f", file]) == 0
        shown = capsys.readouterr().out
        assert "red" in shown
        assert "\x1b" not in shown
        assert "\x07" not in shown


def test_a_read_during_a_close_says_closed(tmp_path: Path) -> None:
    """It was a failed disk, or would have been another file's bytes under the same number."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frames([f"text {number} " + "w" * 400 for number in range(2_000)])
    seen: list[cerata.CerataError] = []
    reading = threading.Event()

    def read(store: cerata.Store) -> None:
        try:
            while True:
                for number in range(1, 2_000, 37):
                    store.frame(number)
                    reading.set()
        except cerata.CerataError as error:
            seen.append(error)

    for _ in range(20):
        reading.clear()
        store = cerata.open(path, mode="r")
        thread = threading.Thread(target=read, args=(store,))
        thread.start()
        assert reading.wait(30)
        store.close()
        thread.join(30)
    assert [type(error) for error in seen] == [cerata.Closed] * 20


def test_a_file_that_is_closed_reads_no_other_files_bytes(tmp_path: Path) -> None:
    """Its number is free while a thread is between looking it up and reading."""
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode())
    file = OsStorage().open(str(tmp_path / "one"), mode="r")
    file.close()
    other = OsStorage().open(str(tmp_path / "two"), mode="r")
    for call in (lambda: file.read_at(0, 3), file.size, file.identity, file.sync):
        with pytest.raises(cerata.Closed, match="The file is closed"):
            call()
    other.close()


def test_errors_name_the_file_and_not_the_name_it_was_made_under(tmp_path: Path) -> None:
    """A new file's later errors named a temporary path that nobody had seen, and was gone."""
    path = tmp_path / "memory.cera"
    storage = OsStorage()
    file = storage.create(str(tmp_path / "temporary"), known_as=str(path))
    file.close()
    with pytest.raises(cerata.Closed) as caught:
        file.size()
    assert caught.value.where == str(path)
    store = cerata.open(path)
    handle = log_of(store).file.file
    store.close()
    with pytest.raises(cerata.Closed) as caught:
        handle.size()
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("#hashtag first\n# Real\n", "Real"),
        ("```sh\n# a comment\n```\n## Real ##\n", "Real"),
        ("~~~~\n~~~\n# in code\n~~~~\n# Real\n", "Real"),
        ("```x```\n# Real\n", "Real"),
        ("# \n# Real\n", "Real"),
        ("#!/bin/sh\necho\n", None),
        ("####### seven\n", None),
    ],
)
def test_a_title_is_a_heading_and_no_tag_or_comment(text: str, title: str | None) -> None:
    """Notes were called by their hashtags, and scripts by their comments."""
    assert markdown_title(text) == title


def test_everything_that_matched_is_shown_or_listed() -> None:
    """Bytes, found by their search text or title, were left out and not a word said."""
    with cerata.open(":memory:") as store:
        picture = store.put_frame(
            b"\x89PNG", uri="dawn.png", options=cerata.PutOptions(search_text="harbour at dawn")
        )
        named = store.put_frame(bytes(2_000), title="harbour chart")
        blank = store.put_frame(" ", tags=["harbour"])
        context = store.recall("harbour")
        shown = {item.id: item.text for item in context.items}
        assert shown == {
            picture.id: "harbour at dawn",
            named.id: "(2,000 bytes)",
            blank.id: "(1 byte)",
        }
        assert "dawn.png" in context.text
        assert store.frame(picture).search_text == "harbour at dawn"
        small = store.recall("harbour", max_tokens=30)
        found = {hit.id for hit in store.search("harbour")}
        assert {item.id for item in small.items} | set(small.omitted) == found
        assert small.omitted


def test_a_document_below_another_frame_has_versions_too() -> None:
    """Whatever had a parent was taken for a passage, and a new version closed nothing."""
    with cerata.open(":memory:") as store:
        thread = store.put_frame("thread")
        old = store.remember(
            LONG, uri="u", options=cerata.PutOptions(parent=thread, content_dates=["2026-03-01"])
        )
        new = store.remember(LONG + "more", uri="u", options=cerata.PutOptions(parent=thread))
        assert store.frame(old).superseded_by == new.id
        assert store.frame(new).parent == thread.id
        assert store.frame(new).text == LONG + "more"


def test_a_context_of_another_memory_is_no_basis() -> None:
    """Its number was taken for one of this log's."""
    with cerata.open(":memory:") as store, cerata.open(":memory:") as other:
        for own in (store, other):
            own.put_frame("z")
        assert store.at(store.recall("z")).basis == 1
        with pytest.raises(cerata.InvalidInput, match="another memory"):
            store.at(other.recall("z"))


@pytest.mark.parametrize(
    "text",
    [
        "tag:none",
        "absent tag:none",
        "absent tag:a",
        "absent OR tag:none",
        "absent NOT tag:a",
        "NOT (one OR two OR three)",
        "absent NOT (two NOT tag:a)",
        "absent",
    ],
)
def test_nothing_stands_in_for_what_a_query_asks(text: str) -> None:
    """Where nothing matched, a query for one tag was told the newest frames of all."""
    with cerata.open(":memory:") as store:
        store.put_frame("one", tags=["a"])
        store.put_frame("two")
        store.put_frame("three")
        context = store.recall(cerata.query(text), floor=False)
        assert (context.confidence, context.fallback, context.items) == ("none", False, ())


def test_what_stands_in_is_what_the_filter_lets_in() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("one", tags=["a"])
        store.put_frame("two")
        store.put_frame("three")
        tagged = Filter(tags=["a"])
        shown: list[tuple[Filter | None, list[int]]] = [
            (None, [3, 2, 1]),
            (tagged, [1]),
            (~tagged, [3, 2]),
        ]
        for where, frames in shown:
            context = store.recall("?", where=where)
            assert context.fallback
            assert [item.id for item in context.items] == frames
        with store.transaction():
            store.put_frame("one, two, three and four", tags=["a"])
            assert [item.id for item in store.recall("?", where=tagged).items] == [-1, 1]


@pytest.mark.parametrize("after", [("a", 1), (1 << 70, 1), (1, 1 << 70), "x", 5, (1,), (True, 1)])
def test_a_page_after_nothing_is_refused(after: object) -> None:
    """They went into numpy and came back as its errors, or as another page."""
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        with pytest.raises(cerata.InvalidInput, match="after is"):
            store.history.timeline(after=after)  # type: ignore[arg-type]
        with pytest.raises(cerata.InvalidInput, match="limit must be"):
            store.history.timeline(limit="x")  # type: ignore[arg-type]
