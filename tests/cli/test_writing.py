"""What the command line writes: put with every field, and facts."""

import io
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import cerata
from cerata import Entity, InvalidInput
from cerata.engine.events import PutFrame

from .conftest import Run


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> "Pipe":
    """Bytes on standard input."""
    return Pipe(monkeypatch)


class Pipe:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, data: bytes) -> None:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


class TestPut:
    """A person can store what a program can."""

    def test_every_option_reaches_the_frame(self, run: Run) -> None:
        """Once put had a title and tags, and everything else needed a program."""
        code, _, err = run(
            *("put", "Hello there", "--title", "Greeting", "--kind", "message", "--role", "user"),
            *("--track", "chat", "--tag", "a", "--tag", "b", "--label", "c"),
            *("--metadata", "city=Oslo", "--metadata", "pages:=[3, 4]", "--metadata", "a=b=c"),
            *("--date", "2026-05-01", "--scope", "user=anna", "--scope", "project:=7"),
        )
        assert (code, err) == (0, "")
        with cerata.open("memory.cera", mode="r") as store:
            frame = store.frame(1)
            body = next(iter(store.log())).body
        assert (frame.text, frame.title, frame.kind) == ("Hello there", "Greeting", "message")
        assert (frame.role, frame.tags, frame.labels) == ("user", ("a", "b"), ("c",))
        assert dict(frame.metadata) == {"city": "Oslo", "pages": [3, 4], "a": "b=c"}
        assert dict(frame.scope) == {"tenant": "default", "user": "anna", "project": 7}
        assert isinstance(body, PutFrame)
        assert body.track == "chat"
        assert body.content_dates == (1_777_593_600_000_000,)

    def test_an_expiry_may_be_in_words(self, run: Run) -> None:
        """Every other time could be; an ISO time was required here."""
        now = datetime.now(UTC)
        assert run("put", "tea", "--expires", "in 2 hours")[0] == 0
        assert run("update", "1", "--expires", "in 2 weeks")[0] == 0
        assert run("delete", "2")[0] == 0
        assert run("time", "restore", "2", "--expires", "tomorrow")[0] == 0
        assert run("put", "tea", "--expires", "yesterday")[0] == 2
        code, _, error = run("put", "tea", "--expires", "soon")
        assert code == 2
        assert "'tomorrow 5pm' or 'in 2 hours'" in " ".join(error.split())
        with cerata.open("memory.cera", mode="r") as store:
            frames = {frame.id: frame for frame in store.history.of(1)} | {
                frame.id: frame for frame in store.frames()
            }
            times = [frames[number].expires for number in sorted(frames)]
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        slack = timedelta(minutes=10)
        for time, expected in zip(
            times,
            (now + timedelta(hours=2), midnight + timedelta(14), midnight + timedelta(1)),
            strict=True,
        ):
            assert time is not None
            assert abs(time - expected) < slack

    def test_a_new_frame_may_never_expire(self, run: Run) -> None:
        """Only update and restore took the word."""
        assert run("put", "tea", "--expires", "never")[0] == 0
        with cerata.open("memory.cera", mode="r") as store:
            assert store.frame(1).expires is None

    @pytest.mark.parametrize(
        ("data", "text"),
        [(b"hi\n", "hi"), (b"a\n\nb\n\n", "a\n\nb\n"), ("µ – ü".encode(), "µ – ü"), (b"-", "-")],
    )
    def test_a_dash_is_standard_input(self, run: Run, piped: Pipe, data: bytes, text: str) -> None:
        """It stored a dash; remember already read standard input."""
        piped(data)
        assert run("put", "-")[0] == 0
        with cerata.open("memory.cera", mode="r") as store:
            assert store.frame(1).text == text

    def test_a_dash_among_words_is_a_word(self, run: Run) -> None:
        """As in a list: only a dash alone is standard input."""
        assert run("put", "-", "milk")[0] == 0
        with cerata.open("memory.cera", mode="r") as store:
            assert store.frame(1).text == "- milk"

    @pytest.mark.parametrize(
        ("words", "fault"),
        [
            (("--metadata", "city"), "--metadata must be NAME=VALUE, not 'city'"),
            (("--metadata", "=x"), "--metadata must be NAME=VALUE, not '=x'"),
            (("--metadata", "a:=x"), "--metadata 'a:=x' is not valid JSON after ':='"),
            (("--metadata", "a=1", "--metadata", "a:=1"), "--metadata names 'a' twice"),
            (("--metadata", "a:=NaN"), "metadata holds nan"),
            (("--scope", "user"), "--scope must be NAME=VALUE, not 'user'"),
            (("--scope", "user:=[1]"), "is not a name and a plain value"),
            (("--date", "someday"), "someday"),
        ],
    )
    def test_a_wrong_value_writes_nothing(
        self, run: Run, words: tuple[str, ...], fault: str
    ) -> None:
        """Each error names the option or its value."""
        run("put", "first")
        code, _, err = run("put", "x", *words)
        assert (code, fault in err) == (InvalidInput.exit_code, True), err
        with cerata.open("memory.cera", mode="r") as store:
            assert store.head.seq == 1

    @pytest.mark.parametrize("data", [b"", b" \n", b"\xff\xfe"])
    def test_input_without_text_is_refused(self, run: Run, piped: Pipe, data: bytes) -> None:
        """An empty pipe is a mistake of the program before it."""
        piped(data)
        assert run("put", "-")[0] == InvalidInput.exit_code


class TestScope:
    """One scope for writes and reads, as open(scope=…) has."""

    def test_reads_see_their_scope_alone(self, run: Run) -> None:
        """Two users in one file do not see each other's notes."""
        for user in ("anna", "ben"):
            run("put", f"{user} likes tea", "--scope", f"user={user}")
        for user in ("anna", "ben"):
            out = run("search", "tea", "--scope", f"user={user}", "--json")[1]
            assert [hit["frame"]["text"] for hit in json.loads(out)["hits"]] == [
                f"{user} likes tea"
            ]
        assert len(json.loads(run("list", "--json")[1])["frames"]) == 2
        run("put", "all drink tea")
        shared = ("--scope", "user=ben", "--shared")
        frames = json.loads(run("list", *shared, "--json")[1])["frames"]
        assert [frame["text"] for frame in frames] == ["all drink tea", "ben likes tea"]
        frames = json.loads(run("list", *shared, "--absent", "user", "--json")[1])["frames"]
        assert [frame["text"] for frame in frames] == ["all drink tea"]
        assert run("delete", str(frames[0]["id"]), *shared)[0] == cerata.ReadOnly.exit_code
        assert run("list", "--shared")[0] == cerata.InvalidInput.exit_code
        assert run("show", "1", "--scope", "user=ben")[0] == cerata.NotFound.exit_code
        assert run("delete", "1", "--scope", "user=ben")[0] == cerata.NotFound.exit_code

    @pytest.mark.parametrize("tenant", ["default", "acme"])
    def test_a_file_is_remembered_once_in_each_scope(
        self, run: Run, piped: Pipe, tenant: str
    ) -> None:
        """A second run added the file again, and another tenant's was refused."""
        Path("note.md").write_text("Tea at five.\n")
        for user in ("anna", "ben"):
            scope = ("--scope", f"tenant={tenant}", "--scope", f"user={user}")
            for added in (1, 0):
                out = run("remember", "note.md", *scope, "--json")[1]
                assert [file["outcome"] == "added" for file in json.loads(out)["files"]] == [added]
                piped(b"Tea at six.\n")
                out = run("remember", "-", *scope, "--json")[1]
                assert [file["outcome"] == "added" for file in json.loads(out)["files"]] == [added]
        assert len(json.loads(run("list", "--json")[1])["frames"]) == 4


class TestFacts:
    """The facts of a memory can be written without a program."""

    @pytest.mark.parametrize(
        ("word", "kind", "value"),
        [
            ("paris", None, "paris"),
            ("paris", "string", "paris"),
            ("paris", "entity", Entity("paris")),
            ("5432", None, "5432"),
            ("5432", "number", 5432),
            ("-0.5", "number", -0.5),
            ("true", "boolean", True),
            ("2026-05-01", "time", datetime(2026, 5, 1, tzinfo=UTC)),
        ],
    )
    def test_an_object_has_the_named_kind(
        self, run: Run, word: str, kind: str | None, value: object
    ) -> None:
        """A word alone is a string: a guess would store 5432 as another thing each time."""
        kinds = () if kind is None else ("--as", kind)
        assert run("facts", "assert", "a", "b", word, *kinds)[0] == 0
        with cerata.open("memory.cera", mode="r") as store:
            [fact] = store.facts("a")
        assert (fact.object, type(fact.object)) == (value, type(value))

    def test_every_option_reaches_the_fact(self, run: Run) -> None:
        """Both clocks, and where the fact is from."""
        run("put", "Alice moved to Paris.")
        code, out, _ = run(
            *(
                "facts",
                "assert",
                "alice",
                "lives in",
                "paris",
                "--as",
                "entity",
                "--evidence",
                "#1",
            ),
            *("--valid-from", "2024-01-01", "--valid-to", "2025-01-01", "--confidence", "0.9"),
            *("--source", "inferred", "--assumption", "the letter is hers", "--json"),
        )
        fact = json.loads(out)["fact"]
        assert code == 0
        assert fact["valid"]["start"] == "2024-01-01T00:00:00+00:00"
        assert fact["valid"]["end"] == "2025-01-01T00:00:00+00:00"
        assert (fact["confidence"], fact["source"]) == (0.9, "inferred")
        assert [place["frame"] for place in fact["evidence"]] == [1]
        assert fact["assumptions"] == ["the letter is hers"]
        run("facts", "assert", "alice", "speaks", "french", "--because", str(fact["id"]))
        with cerata.open("memory.cera", mode="r") as store:
            assert store.facts("alice", "speaks")[0].depth == 1

    def test_a_fact_is_corrected_and_retracted(self, run: Run) -> None:
        """The past keeps both."""
        run("facts", "assert", "alice", "lives in", "paris", "--as", "entity")
        code, out, _ = run(
            "facts", "assert", "--instead", "#1", "--object", "rome", "--as", "entity", "--json"
        )
        answer = json.loads(out)
        assert (code, answer["old"]["object"], answer["fact"]["object"]) == (0, "paris", "rome")
        assert run("facts", "retract", str(answer["fact"]["id"]))[0] == 0
        with cerata.open("memory.cera", mode="r") as store:
            assert store.facts("alice") == []
            assert [str(fact.object) for fact in store.at(3).facts("alice")] == ["rome"]
            assert [str(fact.object) for fact in store.at(1).facts("alice")] == ["paris"]

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (("facts", "assert", "--instead", "1"), 2),
            (("facts", "assert", "--instead", "1", "--as", "number"), 2),
            (("facts", "assert", "--instead", "9", "--object", "x"), cerata.NotFound.exit_code),
            (("facts", "retract", "9"), cerata.NotFound.exit_code),
            (("facts", "assert", "a", "b", "x", "--as", "number"), 2),
            (("facts", "assert", "a", "b", "yes", "--as", "boolean"), 2),
            (("facts", "assert", "a", "b", "someday", "--as", "time"), 2),
            (("facts", "assert", "a", "b", "nan", "--as", "number"), 2),
            (("facts", "assert", "", "b", "c"), 2),
            (("facts", "assert", "a", "b", "c", "--confidence", "2"), 2),
            (("facts", "assert", "a", "b", "c", "--evidence", "99"), cerata.NotFound.exit_code),
            (
                (
                    "facts",
                    "assert",
                    "a",
                    "b",
                    "c",
                    "--valid-from",
                    "2026-01-01",
                    "--valid-to",
                    "2025-01-01",
                ),
                2,
            ),
        ],
    )
    def test_a_wrong_call_writes_nothing(self, run: Run, words: tuple[str, ...], code: int) -> None:
        """Each is a typed error."""
        run("facts", "assert", "a", "b", "c")
        assert run(*words)[0] == code
        with cerata.open("memory.cera", mode="r") as store:
            assert store.head.seq == 1


def test_the_log_has_whole_events(run: Run) -> None:
    """A summary of 200 characters cannot be processed; --jsonl has every field of the body."""
    text = "word " * 100
    run("put", text, "--tag", "a", "--metadata", "pages:=[3]")
    run("facts", "assert", "alice", "age", "7", "--as", "number", "--evidence", "1")
    run("delete", "1")
    events = [json.loads(line) for line in run("log", "--jsonl", "--reverse")[1].splitlines()]
    assert [event["type"] for event in events] == ["putFrame", "assertFact", "deleteFrame"]
    assert events[0]["body"]["text"] == text
    assert events[0]["body"]["metadata"] == {"pages": [3]}
    # A hash that follows from the text is no field of the event.
    assert events[0]["body"]["content_hash"] is None
    with cerata.open("memory.cera", mode="r") as store:
        assert store.frame(1).content_hash == cerata.content_hash(text)
    assert events[1]["body"]["object"] == 7
    assert events[1]["body"]["evidence"][0]["frame"] == 1
    assert events[2]["body"] == {"frame": 1}
    assert [event["correlation"] for event in events] == [None, None, None]
