"""One bad part costs only itself: what is whole stays, the rest is counted and named."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Flaw, InvalidInput, Store
from cerata.memory.ingest.formats import transcripts
from cerata.memory.ingest.formats import turns as shapes
from cerata.memory.ingest.formats.document import OTHER_BRANCH, PLACES_MAX, Flaws
from cerata.memory.ingest.formats.foreign_json import salvage_json
from cerata.memory.ingest.formats.registry import KNOWN_SUFFIXES, extract

from .mutated_exports import KINDS, check, read
from .test_formats import line_of, of, pdf

COUNT = int(os.environ.get("CERATA_MUTATIONS", "300"))
"""Mutations of each kind; the whole test of an issue takes 10,000."""

GOOD = {"role": "user", "content": "The boat is yellow.", "timestamp": "2024-05-01T10:00:00Z"}
LINE = json.dumps(GOOD)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_export_has_no_flaws(kind: str) -> None:
    """A flaw of a whole file would teach people to skip the notices."""
    export = KINDS[kind]()
    trial = read(export.name, export.encode().encode())
    assert (trial.turns, trial.lost, trial.document.flaws) == (9, set(), ())


@pytest.mark.parametrize("kind", KINDS)
def test_no_item_of_a_mutated_export_is_lost_without_being_counted(kind: str, seed: int) -> None:
    """Odd members at every level, lines and bytes damaged, files cut off."""
    faults = [fault for at in range(COUNT) if (fault := check(kind, seed * COUNT + at))]
    assert faults == []


ODD_MEMBERS: list[Any] = [
    *(None, True, 5, 1.5, "", "text", [], {}, [None], {"role": "user"}, {"role": None}),
    *({"text": "note"}, {"role": "user", "content": None}, {"role": "user", "content": []}),
    *({"role": ["user"], "content": "x"}, {"type": "event"}, {"message": {"role": "user"}}),
]


@pytest.mark.parametrize("odd", ODD_MEMBERS, ids=repr)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_odd_member_of_a_chat_is_skipped_and_named(odd: object, at: int) -> None:
    """In a list, a conversation and a log: at the start, between turns and at the end."""
    members: list[object] = [GOOD, GOOD]
    members.insert(at, odd)
    lines = "\n".join(map(json.dumps, members))
    for name, text, place in (
        ("a.json", json.dumps(members), "turn"),
        ("a.json", json.dumps({"messages": members}), "turn"),
        ("a.json", json.dumps([{"uuid": "1", "chat_messages": members}]), "conversation 1, turn"),
        ("a.jsonl", lines, "line"),
    ):
        document = of(name, text)
        assert [section.role for section in document.sections] == ["user", "user"]
        assert [(flaw.outcome, flaw.count, flaw.places) for flaw in document.flaws] == [
            ("skipped", 1, (f"{place} {at + 1}",))
        ]


NO_CHATS: list[Any] = [
    [{"author": "Ann", "content": "A review."}, {"title": "Another", "content": "b"}],
    [{"from": "a@b.example", "text": "x"}, {"id": 3}],
    [{"role": "admin", "name": "Ann"}, {"role": "user", "name": "Bob"}],
    [{"role": "user", "content": "x"}, *({"id": at, "price": at} for at in range(3))],
    [{"messages": [GOOD]}, *({"status": at, "path": "/"} for at in range(3))],
    [{"filePath": "a.js", "messages": [{"ruleId": "x", "message": "y", "line": 1}]}],
    {"messages": {"hello": "Hello"}},
    {"messages": [{"text": "x"}, {"text": "y"}]},
    {"name": "cerata", "author": {"name": "Ann"}, "content": "x", "messages": [None, 5]},
    {"mapping": {"a": 1, "b": None}, "current_node": "a"},
    {"mapping": {"a": {"message": None}}},
    *(None, 5, "text", [], {}, [None], [None, {}], ["user", "x"], [[GOOD]]),
]


@pytest.mark.parametrize("value", NO_CHATS, ids=lambda value: json.dumps(value)[:40])
def test_a_file_that_is_no_chat_becomes_none_by_leniency(value: object) -> None:
    """Whole, with a NaN, and cut off: it stays its text, so nothing of it is lost."""
    whole = json.dumps(value)
    for text in (whole, f"[NaN, {whole}", whole[:-1] or " x", whole + "]"):
        document = of("a.json", text)
        assert (document.text, document.is_extracted, document.flaws) == (text, False, ())


SALVAGED: list[tuple[str, Any, list[str]]] = [
    ('[1, 2, "a', [1, 2], ["character 8"]),
    ('[{"a": 1}, {"b": ', [{"a": 1}, {}], ["character 18"]),
    ('{"a": [1, {"b": 2', {"a": [1, {"b": 2}]}, ["character 18"]),
    ('[{"a": 1 {"b": 2}]', [{"a": 1}, {"b": 2}], ["character 10"]),
    ('[{"a": 1, {"b": 2}]', [{"a": 1}, {"b": 2}], ["character 11"]),
    ('[{"a": "he said "hi" to me", "b": 2}]', [{"a": "he said ", "b": 2}], ["character 18"]),
    ('[{"a": "C:\\dir"}, 2]', [{"a": "C:\\dir"}, 2], ["character 8"]),
    ("{a: 1, 'b': 2, c: 3}", {"a": 1, "'b'": 2, "c": 3}, []),
    ("[1, oops, 2]]", [1, 2], ["character 5", "character 13"]),
    ('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}], []),
    ('{"a" "b", "c"}', {"a": "b"}, ["character 14"]),
    ("[" * 101 + "5" + "]" * 101 + " 6", None, ["character 101"]),
    ("", [], []),
    ("}{][", {}, ["character 1", "character 5"]),
]


@pytest.mark.parametrize(("text", "value", "places"), SALVAGED)
def test_the_whole_values_of_broken_json_stay(text: str, value: Any, places: list[str]) -> None:
    flaws = Flaws()
    salvaged = salvage_json(text, flaws)
    found = [place.removeprefix("line 1, ") for flaw in flaws.found() for place in flaw.places]
    if value is not None:
        assert salvaged == value
    if places:
        assert found == places


def test_a_broken_place_has_its_line() -> None:
    """The place is one that an editor can go to."""
    flaws = Flaws()
    salvage_json('[\n 1,\n 2 3,\n 4,\n "x\n, 5', flaws)
    places = ("line 3, character 4", "line 5, character 2", "line 6, character 4")
    assert flaws.found() == (Flaw("skipped", "not JSON", 3, places),)


def test_salvage_takes_steps_in_proportion() -> None:
    """A quote without an end was searched from each quote again: count the signs that are seen."""
    import re

    from cerata.memory.ingest.formats import foreign_json

    text = '["' + '\\"' * 20_000
    ends = [match.end() - match.start() for match in re.finditer(foreign_json._TOKEN, text)]
    assert sum(ends) <= len(text)
    assert len(ends) <= 3


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [], "text": "1830"}, "1830"),
        ({"content": "", "text": "1830"}, "1830"),
        ({"content": " \n", "text": "1830"}, "1830"),
        ({"content": None, "text": None, "value": "1830"}, "1830"),
        ({"content": [{"type": "text", "text": ""}], "text": "1830"}, "1830"),
        ({"content": {"parts": [""]}, "message": "1830"}, "1830"),
        ({"content": [{"type": "image"}], "text": "1830"}, "1830"),
        ({"content": [{"type": "image"}], "text": ""}, "[image]"),
        ({"content": 5, "text": "1830"}, "1830"),
        ({"text": "a", "attachments": [{"extracted_content": "b"}, None, {}, 5]}, "a\n\nb"),
        ({"attachments": [{"file_name": "n", "extracted_content": "b"}]}, "b"),
    ],
)
def test_an_empty_name_hides_no_text(message: dict[str, Any], text: str) -> None:
    """The first name was taken even if it was empty, and its turn was dropped."""
    document = of("a.json", json.dumps([{"role": "user", **message}]))
    assert document.text == text + "\n\n"


TOLD = {"content_type": "user_editable_context", "user_profile": "1830", "user_instructions": "b"}
WORDS: list[tuple[dict[str, Any], str]] = [
    # ChatGPT
    ({"content": TOLD}, "1830\n\nb"),
    ({"content": {"content_type": "tether_browsing_display", "result": "1830"}}, "1830"),
    ({"content": {"content_type": "thoughts", "thoughts": [{"content": "1830"}]}}, "1830"),
    ({"content": {"content_type": "reasoning_recap", "content": "1830"}}, "1830"),
    ({"content": {"parts": [{"content_type": "image_asset_pointer"}]}}, "[image]"),
    ({"content": {"text": "", "parts": ["1830"]}}, "1830"),
    ({"content": {"text": "", "content": "1830", "summary": ""}}, "1830"),
    ({"content": {"text": 5, "content": [{"type": "image"}], "summary": []}}, "[image]"),
    # Claude
    ({"content": [], "files": [{"file_name": "a.png"}]}, "[a.png]"),
    ({"content": [], "attachments": [{"fileName": "a.png"}]}, "[a.png]"),
    (
        {"content": [{"type": "document", "source": {"type": "text", "data": "1830"}}]},
        "1830",
    ),
    (
        {"content": [{"type": "document", "source": {"type": "base64", "data": "JVBE"}}]},
        "[document]",
    ),
    ({"content": [{"type": "server_tool_use", "name": "f", "input": {"q": 1}}]}, 'f {"q":1}'),
    # OpenAI, Ollama, Mistral, LangChain
    ({"content": "a", "thinking": "1830"}, "a\n\n1830"),
    ({"content": "", "reasoning_content": "1830"}, "1830"),
    ({"content": None, "refusal": "1830"}, "1830"),
    ({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "f {}"),
    ({"content": "", "tool_calls": [{"name": "f", "args": {"q": 1}}]}, 'f {"q":1}'),
    ({"content": "", "contentChunks": [{"type": "text", "text": "1830"}]}, "1830"),
]


@pytest.mark.parametrize(("message", "text"), WORDS)
def test_the_words_of_a_turn_are_read_wherever_its_program_has_them(
    message: dict[str, Any], text: str
) -> None:
    """Their turns counted as turns without text, or lost a piece without a word."""
    document = of("a.json", json.dumps([{"role": "assistant", **message}]))
    assert document.text == text + "\n\n"
    assert all(flaw.outcome == "doubtful" for flaw in document.flaws)


def test_the_calls_and_results_of_responses_are_turns() -> None:
    """A list with more calls than messages was no chat, and a log of Codex lost its calls."""
    items: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "b"}]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "c"},
    ]
    lines = "\n".join(json.dumps({"type": "response_item", "payload": item}) for item in items)
    for name, text in (("a.json", json.dumps(items)), ("a.jsonl", lines)):
        document = of(name, text)
        assert document.text.split("\n\n")[:-1] == ["a", "b", "f {}", "c"]
        kinds = [(section.role, section.kind) for section in document.sections]
        assert kinds[2:] == [("assistant", "tool_call"), ("tool", "tool_result")]
        assert document.flaws == ()


@pytest.mark.parametrize("content", [5, [7], {"x": 1}])
def test_a_turn_with_unreadable_content_is_no_usual_turn_without_text(content: object) -> None:
    document = of("a.json", json.dumps([GOOD, {"role": "user", "content": content}, GOOD]))
    assert document.flaws == (Flaw("skipped", shapes.BAD_TEXT, 1, ("turn 2",)),)
    assert not document.flaws[0].is_usual


@pytest.mark.parametrize(
    ("record", "is_usual"),
    [
        ({"type": "summary", "summary": "x"}, True),
        ({"type": "system", "content": "x"}, True),
        ({"type": "event_msg", "payload": {"type": "token_count"}}, True),
        ({"type": "user", "uuid": "1"}, False),
        ({"type": "response_item", "payload": None}, False),
        ({"type": "response_item", "payload": {"content": "x"}}, False),
        ({"summary": "x"}, False),
    ],
)
def test_other_records_of_a_log_are_no_faults(record: object, is_usual: bool) -> None:
    document = of("a.jsonl", f"{LINE}\n{json.dumps(record)}")
    (flaw,) = document.flaws
    assert (flaw.outcome, flaw.places, flaw.is_usual) == ("skipped", ("line 2",), is_usual)


def test_records_with_few_texts_are_no_chat() -> None:
    """One record in many had an author and a text, and all others were skipped."""
    rows = [{"author": "Ann", "text": "x"}, *({"price": at} for at in range(2))]
    text = "\n".join(map(json.dumps, rows))
    assert (of("a.jsonl", text).text, of("a.jsonl", text).flaws) == (text, ())
    assert of("a.jsonl", text.replace("author", "speaker")).text == "x\n\n"
    rows[1] = rows[0]
    assert of("a.jsonl", "\n".join(map(json.dumps, rows))).text == "x\n\nx\n\n"


@pytest.mark.parametrize(
    ("time", "day"),
    [
        ("", None),
        ("  ", None),
        (None, None),
        (1714557600, 19844),
        (1714557600.25, 19844),
        ("1714557600", 19844),
        ("1714557600.000100", 19844),
        (1714557600123, 19844),
        ("1714557600123", 19844),
        (1714557600123456, 19844),
        (1714557600123456789, 19844),
        ("20240501", 19844),
        ("2024-05-01", 19844),
        ("9" * 21, None),
        (10**20, None),
        (-(10**10) * 9, None),
    ],
)
def test_a_time_in_any_form_costs_no_turn(time: object, day: int | None) -> None:
    document = of("a.json", json.dumps([{"role": "user", "content": "x", "ts": time}]))
    created = document.sections[0].created
    assert (None if created is None else created // 86_400_000_000) == day


def test_the_first_readable_time_counts() -> None:
    """A field with n/a must not hide the time beside it."""
    turn = {"role": "user", "content": "x", "created": "n/a", "timestamp": "1970-01-02"}
    document = of("a.json", json.dumps([turn]))
    assert (document.sections[0].created, document.flaws) == (86_400_000_000, ())


class TestLines:
    """JSON Lines: each line for itself, whatever bytes it has."""

    @pytest.mark.parametrize(
        "bad",
        [
            *(b"\xff\xfe", b"\0\0\0", LINE.encode()[:20], LINE.encode()[20:], b"[1", b"null"),
            b'{"role":"user","content":"cut \xe2\x82',
        ],
    )
    @pytest.mark.parametrize("joint", [b"\n", b"\r\n", b"\r", b"\n\n"])
    def test_a_bad_line_costs_itself(self, bad: bytes, joint: bytes) -> None:
        good = LINE.encode()
        for lines in ([bad, good, good], [good, bad, good], [good, good, bad]):
            document = extract(joint.join(lines), "a.jsonl")
            assert [section.role for section in document.sections] == ["user", "user"]
            (flaw,) = document.flaws
            line = 1 + lines.index(bad) * (2 if joint == b"\n\n" else 1)
            assert (flaw.outcome, flaw.places) == ("skipped", (f"line {line}",))

    def test_bytes_that_are_no_text_are_marked_in_their_turn(self) -> None:
        data = LINE.replace("yellow", "y\ufffe").encode().replace("\ufffe".encode(), b"\xff")
        document = extract(data, "a.jsonl")
        assert document.text == "The boat is y\N{REPLACEMENT CHARACTER}.\n\n"
        assert document.flaws == (Flaw("doubtful", shapes.BAD_CHARACTER, 1, ("line 1",)),)

    def test_a_record_behind_the_start_of_another_is_read(self) -> None:
        """A program was killed, and the next one wrote on in the same line."""
        other = LINE.replace("yellow", "red")
        document = of("a.jsonl", f"{LINE}\n{LINE[:30]}{other}\n{LINE}{other}")
        assert document.text.count("yellow") == 2
        assert document.text.count("red") == 2
        assert document.flaws == (Flaw("skipped", "a line that is not JSON", 1, ("line 2",)),)

    def test_many_bad_lines_are_counted_and_the_first_are_named(self) -> None:
        document = of("a.jsonl", LINE + "\n" + "{\n" * 500)
        (flaw,) = document.flaws
        assert (flaw.count, len(flaw.places), flaw.places[0]) == (500, PLACES_MAX, "line 2")
        assert str(flaw).endswith("(line 2, line 3, line 4, line 5, line 6, and 495 more)")

    def test_whole_records_are_searched_for_in_few_lines(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The search took 35 s in 16 MiB of broken lines: count the texts that are searched."""
        searched: list[str] = []

        def search(line: str, flaws: Flaws, where: str = "") -> None:
            searched.append(line)

        monkeypatch.setattr(transcripts, "salvage_json", search)
        document = of("a.jsonl", f"{LINE}\n" + '{"a":{"b":{"c":}\n' * 3_000 + "{\n" * 9)
        assert document.flaws[0].count == 3_009
        assert len(searched) <= 4 * 1_000

    def test_a_line_without_the_start_of_an_object_is_not_decoded(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """16 MiB of such lines took 23 s."""
        decoded: list[str] = []

        def decode(line: str) -> Any:
            decoded.append(line)
            return json.loads(line)

        monkeypatch.setattr(transcripts, "decode_json", decode)
        document = of("a.jsonl", f"{LINE}\n" + "{x}\n" * 3_000 + "{ }\n")
        assert document.flaws[0].count == 3_000
        assert set(decoded) == {LINE, "{ }"}


class TestBranches:
    """An export of ChatGPT is a tree of turns, of which one branch was kept."""

    @staticmethod
    def export(**changes: Any) -> str:
        def node(parent: str | None, child: str, text: str) -> dict[str, Any]:
            content = {"content_type": "text", "parts": [text]}
            message = {"author": {"role": "user"}, "content": content}
            return {"parent": parent, "children": [child], "message": message}

        tree = {"a": node(None, "b", "A"), "b": node("a", "c", "B"), "c": node("b", "", "C")}
        tree["x"] = node("a", "", "X")
        return json.dumps([{"title": "T", "mapping": tree | changes, "current_node": "c"}])

    def turns(self, text: str) -> tuple[list[str], list[tuple[str, int]]]:
        document = of("conversations.json", text)
        flaws = [(flaw.why, flaw.count) for flaw in document.flaws]
        return document.text.split(), flaws

    def test_the_turns_of_other_branches_are_counted(self) -> None:
        assert self.turns(self.export()) == (["A", "B", "C"], [(OTHER_BRANCH, 1)])

    def test_the_nodes_before_the_first_turn_are_no_parts(self) -> None:
        """Each conversation of an export begins with them: 200 notes about nothing."""
        empty = {"content_type": "text", "parts": [""]}
        message: dict[str, Any] = {"author": {"role": "system"}, "content": empty}
        root = {"parent": None, "children": ["s"], "message": None}
        nodes: dict[str, Any] = {"root": root}
        nodes["s"] = {"parent": "root", "children": ["a"], "message": message}
        nodes["a"] = json.loads(self.export())[0]["mapping"]["a"] | {"parent": "s"}
        assert self.turns(self.export(**nodes)) == (["A", "B", "C"], [(OTHER_BRANCH, 1)])
        message["content"] = {"content_type": "text", "parts": ["S"]}
        assert self.turns(self.export(**nodes))[0] == ["S", "A", "B", "C"]

    @pytest.mark.parametrize("node", [None, 5, {}, {"message": None, "parent": "a"}])
    def test_a_broken_node_on_the_way_costs_itself(self, node: object) -> None:
        """Every turn before it was lost: the way to the root ended there."""
        words, flaws = self.turns(self.export(b=node))
        assert [word for word in words if word != "X"] == ["A", "C"]
        assert (shapes.NOT_A_TURN, 1) in flaws

    def test_a_way_that_is_broken_keeps_all_branches(self) -> None:
        text = self.export().replace('"parent": "a", "children": ["c"]', '"parent": "?"')
        words, flaws = self.turns(text.replace('"children": ["b"]', '"children": []'))
        assert sorted(words) == ["A", "B", "C", "X"]
        assert flaws == [(shapes.BROKEN_TREE, 1)]

    @pytest.mark.parametrize("shell", [{"mapping": None}, {"mapping": {}}, {"title": "x"}, None])
    def test_a_shell_is_skipped_and_named(self, shell: object) -> None:
        text = json.dumps([*json.loads(self.export()), shell])
        document = of("a.json", text)
        places = [place for flaw in document.flaws for place in flaw.places]
        assert places.count("conversation 2") == 1


def test_an_unreadable_page_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """One page of a PDF failed, and a hundred pages were not remembered."""
    from pypdf import PageObject

    from cerata.memory.ingest.formats.pdf import parse

    whole = PageObject.extract_text

    def extract_text(page: PageObject) -> str:
        text = whole(page)
        if "second" in text:
            raise KeyError("/Font")
        return text

    monkeypatch.setattr(PageObject, "extract_text", extract_text)
    parsed = parse(pdf(line_of("first"), line_of("second"), b"", line_of("fourth")))
    assert [headings for headings, _ in parsed.sections] == [("page 1",), ("page 4",)]
    assert parsed.skipped == [
        ("a page that is not readable", "page 2"),
        ("a page without text, perhaps scanned", "page 3"),
    ]


def test_a_page_without_text_is_counted(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(line_of("first"), b""))
    (file,) = store.files.remember([path]).files
    assert (file.parts, file.parts_skipped, file.flaws[0].places) == (1, 1, ("page 2",))


@pytest.mark.parametrize("bad", [b"\xff", b"cut \xe2\x82", b"\0" * 4_096, b"a\0b", b"caf\xe9"])
@pytest.mark.parametrize("suffix", [".log", ".txt", ".csv", ".md", ".rs", ".py", ".json", ".jsonl"])
def test_a_broken_line_of_a_text_costs_itself(suffix: str, bad: bytes) -> None:
    """One bad byte cost a log of any length."""
    good = b"a = 1"
    document = extract(b"\n".join([good, good, bad, good]), f"a{suffix}")
    lines = document.text.split("\n")
    assert [lines[0], lines[1], lines[3]] == ["a = 1"] * 3
    assert "\N{REPLACEMENT CHARACTER}" in lines[2]
    why = "bytes that are not text became U+FFFD"
    assert document.flaws == (Flaw("doubtful", why, 1, ("line 3",)),)
    assert document.is_extracted
    with pytest.raises(InvalidInput, match="Not"):
        extract(b"\n".join([good, bad]), f"a{suffix}")


def test_a_file_with_a_broken_line_is_stored_once(tmp_path: Path, store: Store) -> None:
    """It is recognised by the hash of its source, since its text differs."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\nc\n\xff")
    outcomes = [store.files.remember([path]).files[0].outcome for _ in range(2)]
    assert outcomes == ["added", "unchanged"]


BLANK = [
    *(b"", b"\n", b" \t\r\n\x0c", b"\r", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf\r\n"),
    *(b"\xff\xfe", b"\xfe\xff", "\n \n".encode("utf-16"), "\u00a0\u3000\u2028".encode()),
]
SUFFIXES = [*["", *sorted(KNOWN_SUFFIXES)][::5], ".json", ".jsonl", ".pdf", ".html"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("data", BLANK, ids=repr)
def test_a_blank_file_is_empty(tmp_path: Path, store: Store, suffix: str, data: bytes) -> None:
    """A file of 0 bytes was left out, one with a line end was an error."""
    path = tmp_path / f"a{suffix}"
    path.write_bytes(data)
    for _ in range(2):
        (file,) = store.files.remember([path]).files
        assert (file.outcome, file.why, file.frames) == ("empty", None, 0)
    assert store.head.seq == 0


class TestReports:
    """Each surface reports the parts of a file."""

    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        path = tmp_path / "log.jsonl"
        bad_time = json.dumps(GOOD | {"timestamp": "n/a"})
        path.write_text(f"{LINE}\n{bad_time}\n{LINE[:20]}\n{{\n")
        return path

    def test_the_result_of_files(self, log: Path, store: Store) -> None:
        planned = store.files.remember([log], dry_run=True)
        done = store.files.remember([log])
        assert planned.files[0].flaws == done.files[0].flaws
        entry = done.to_dict()
        assert (entry["parts_skipped"], entry["parts_doubtful"], entry["empty"]) == (2, 1, 0)
        files: Any = entry["files"]
        assert (files[0]["parts"], files[0]["parts_skipped"]) == (2, 2)
        assert files[0]["flaws"] == [
            {"outcome": "doubtful", "why": shapes.BAD_TIME, "count": 1, "places": ["line 2"]},
            {
                "outcome": "skipped",
                "why": "a line that is not JSON",
                "count": 2,
                "places": ["line 3", "line 4"],
            },
        ]

    def test_the_receipt_of_a_file(self, log: Path, store: Store) -> None:
        assert store.remember(log).notices == (
            f"{log}: 1 part doubtful: {shapes.BAD_TIME} (line 2)",
            f"{log}: 2 parts skipped: a line that is not JSON (line 3, line 4)",
        )

    def test_the_command(self, log: Path, tmp_path: Path) -> None:
        (log.parent / "blank.md").write_text("\n")
        command = str(Path(sys.executable).with_name("cerata"))
        arguments = [command, "remember", "-f", str(tmp_path / "m.cera"), str(log.parent)]
        run = subprocess.run(arguments, capture_output=True, text=True, check=True)
        assert "frames, passages included; 2 parts skipped, 1 doubtful\n" in run.stdout
        assert "left out: 1 empty" in run.stdout
        notice = f"{log}: 2 parts skipped: a line that is not JSON (line 3, line 4)"
        assert notice in " ".join(run.stderr.split())

    def test_the_usual_parts_of_many_files_are_one_line(self, tmp_path: Path) -> None:
        """A note for each file hid the note about a fault."""
        empty = json.dumps({"role": "user", "content": ""})
        for name in "ab":
            (tmp_path / f"{name}.jsonl").write_text(f"{LINE}\n{empty}\n" + '{"type": "summary"}\n')
        command = str(Path(sys.executable).with_name("cerata"))
        arguments = [command, "remember", "-f", str(tmp_path / "m.cera"), str(tmp_path)]
        for flag, notes in ((["--dry-run", "--verbose"], 4), ([], 0)):
            run = subprocess.run([*arguments, *flag], capture_output=True, text=True, check=True)
            assert run.stderr.count("note: ") == notes
            assert "; 4 parts skipped, 0 doubtful" in run.stdout
            reasons = "2 parts (a turn without text), 2 parts (a record of another type, no turn)"
            assert f"left out: {reasons}" in " ".join(run.stdout.split())

    def test_the_input_is_reported_as_a_file(self, tmp_path: Path) -> None:
        command = str(Path(sys.executable).with_name("cerata"))
        arguments = [command, "remember", "-f", str(tmp_path / "m.cera"), "-", "--json"]
        for data, counts in ((b"\n", (1, 0)), (b"a\nb\n\xff", (0, 1))):
            run = subprocess.run(arguments, input=data, capture_output=True, check=True)
            answer = json.loads(run.stdout)
            assert (answer["empty"], answer["parts_doubtful"]) == counts


def test_a_turn_that_no_frame_can_hold_skips_its_file_only(tmp_path: Path) -> None:
    """Every name of a turn is bounded before it is written."""
    turn = {"role": "r" * 300, "content": "x\0y", "session": "s" * 300}
    (tmp_path / "a.json").write_text(json.dumps([turn, GOOD]))
    (tmp_path / "b.md").write_text("b")
    with cerata.open(":memory:") as store:
        done = store.files.remember([tmp_path])
        assert [file.outcome for file in done.files] == ["added", "added"]
        roles = {frame.role for frame in store.frames(include_chunks=True)}
        assert {"unknown", "user"} <= roles
