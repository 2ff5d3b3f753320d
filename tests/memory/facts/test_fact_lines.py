"""Lines of facts one by one: what is none is named and refused, and what little one needs."""

from io import BytesIO, StringIO
from typing import Any

import pytest

import cerata
from cerata import Conflict, Entity, InvalidInput, Store, Unsupported
from cerata.memory.facts import importing as fact_import
from cerata.memory.facts import jsonl as fact_lines
from cerata.memory.facts.jsonl import LINE_SIZE_MAX

from .json_lines import TEXT, line

DEEP = "[" * 100_000
BAD: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("{}", "missing required field `type`"),
    "no object": ("[1]", "Expected `object`"),
    "half": (line()[:-5], "cannot be read"),
    "two": (line() + line(), "malformed"),
    "deep": ('{"type": "fact", "version": 1, "x": ' + DEEP, "cannot be read"),
    "NaN": (line(object_kind="float").replace('"tea"', "NaN"), "cannot be read"),
    "infinity": (line(object_kind="float").replace('"tea"', "1e999"), "out of range"),
    "Unicode": (b'{"type": "fact\xff"}', "cannot be read"),
    "surrogate": (line().replace("ann", "\\ud800"), "cannot be read"),
    "type": (line(type="facts"), "not 'facts'"),
    "field": (line(colour="red"), "unknown field `colour`"),
    "wrong": (line(subject=1), r"Expected `str`, got `int` - at `\$.subject`"),
    "null": (line(subject=None), "Expected `str`, got `null`"),
    "empty": (line(subject=" "), "The subject is empty"),
    "kind": (line(object_kind="thing"), "not 'thing'"),
    "value": (line(object=1), "of kind string must be a str, not int"),
    "bool": (line(object=True, object_kind="integer"), "of kind integer must be a int, not bool"),
    "large": (line(object=1 << 63, object_kind="integer"), "does not fit in 64 bits"),
    "larger": (line(object=10**400, object_kind="integer"), "does not fit in 64 bits"),
    "reach": (line(object=10**400, object_kind="float"), "beyond the range of a float"),
    "digits": (line(object_kind="float").replace('"tea"', "1" * 5_000), "cannot be read"),
    "start": (line(valid={"start": ""}), "not an ISO time"),
    "open": (line(valid={"start": "open"}), "not an ISO time"),
    "end": (line(valid={"start": None, "end": ""}), "not an ISO time"),
    "base": (line(object="é", object_kind="bytes"), "not Base64"),
    "time": (line(object="today", object_kind="timestamp"), "not an ISO time"),
    "zone": (line(object="2026-01-01T00:00:00", object_kind="timestamp"), "has no zone"),
    "period": (line(valid={"start": "2020-01-01", "end": "2019-01-01"}), "would end at 2019"),
    "confidence": (line(confidence=1.5), "confidence must be from 0 to 1, not 1.5"),
    "source": (line(source="rumour"), "not 'rumour'"),
    "cause": (line(because=7), "No earlier line has the id 7"),
    "hash": (line(evidence=[{"content": "xy"}]), "not 'xy'"),
    "span": (
        line(evidence=[{"content": cerata.content_hash(TEXT).hex(), "start": 3, "end": 3}]),
        "is not a range of bytes",
    ),
    "scope": (line(scope={"tenant": [1]}), r"at `\$.scope\[...\]`"),
    "scope's name": (line(scope={"": "x" * 3, "n" * 300: 1}), "the limit is 255"),
    "retraction": ('{"type":"retraction","version":1,"id":2,"fact":1}', "No earlier line"),
    "split": ('{"type":"split","version":1,"entity":"a","into":"b","facts":[]}', "facts must name"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_and_the_lines_before_it_stay(copy: Store, name: str) -> None:
    """The lines before it stay, and nothing of it or after it is written."""
    copy.put_frame(TEXT)
    before = copy.head.seq
    bad, said = BAD[name]
    with pytest.raises(InvalidInput, match=said) as caught:
        copy.interchange.import_facts(
            [line(id=100, subject="good"), "", bad, line(id=101, subject="late")]
        )
    assert caught.value.where is not None
    assert caught.value.where.startswith("line 3")
    # An event of the batch, and the line before.
    assert copy.head.seq == before + 2
    assert [fact.subject for fact in copy.facts()] == ["good"]
    assert copy.interchange.import_facts([line(subject="good")]).added == 1


def test_a_newer_version_is_told_from_a_bad_line(copy: Store) -> None:
    with pytest.raises(Unsupported, match=r"of version 2, and this Cerata reads 1 \(line 1\)"):
        copy.interchange.import_facts([line(version=2, object={"new": "form"})])


def test_an_id_stands_for_one_line(copy: Store) -> None:
    with pytest.raises(InvalidInput, match=r"The id 1 belongs to an earlier line \(line 2\)"):
        copy.interchange.import_facts([line(), line(subject="bob")])


def test_what_the_memory_refuses_is_told_with_its_line(copy: Store) -> None:
    """Entities that are merged here already cannot be merged into others by a file."""
    copy.graph.assert_many([("ann", "is", Entity("bob")), ("carl", "is", "here")])
    copy.graph.merge("ann", "bob")
    merge = '{"type":"merge","version":1,"entity":"ann","into":"carl"}'
    before = copy.head.seq
    with pytest.raises(Conflict, match=r"merged into 'bob' already \(line 2\)"):
        copy.interchange.import_facts([line(), merge])
    # An event of the batch, and the line before.
    assert copy.head.seq == before + 2


@pytest.mark.parametrize("size", [2, 3, 4, 100])
@pytest.mark.parametrize("bad", range(1, 10))
def test_a_refused_line_costs_no_line_before_it(
    bad: int, size: int, copy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is in its batch, as if the lines ended before it; the rest comes later."""
    monkeypatch.setattr(fact_import, "BATCH_LINES", size)
    lines = [line(id=1)]
    for number in range(2, 10):
        before = number - 1
        lines.append(line(id=number, subject=f"s{number}", because=before))
    wrong = [*lines]
    wrong[bad - 1] = line(id=bad, subject="wrong", confidence=7)
    with pytest.raises(InvalidInput, match=rf"\(line {bad}") as caught:
        copy.interchange.import_facts(wrong)
    assert str(caught.value).count("(line") == 1
    assert len(copy.facts()) == bad - 1
    with cerata.open(":memory:") as other:
        other.interchange.import_facts(lines[: bad - 1])
        assert other.head.seq == copy.head.seq
    again = copy.interchange.import_facts(lines)
    assert (again.known, again.added) == (bad - 1, 10 - bad)
    facts = {fact.subject: fact.id for fact in copy.facts()}
    assert len(facts) == 9
    with cerata.open(":memory:") as other:
        assert other.interchange.import_facts(copy.interchange.export_facts()).added == 9


def test_a_huge_line_is_refused_before_it_is_read_whole(
    copy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class File(BytesIO):
        """A file that tells how much of it was asked for at once."""

        most = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            File.most = max(File.most, size)
            return super().readline(size)

    file = File(line().encode() + b"\n" + b" " * (LINE_SIZE_MAX + 10) + line(id=2).encode())
    with pytest.raises(InvalidInput, match=r"over the limit of 67,108,864 bytes \(line 2\)"):
        copy.interchange.import_facts(file)
    assert File.most <= LINE_SIZE_MAX + 2
    monkeypatch.setattr(fact_lines, "LINE_SIZE_MAX", 100)
    copy.assert_fact("ann", "likes", "x" * 100)
    with pytest.raises(InvalidInput, match="limit of 100 bytes"):
        list(copy.interchange.export_facts())


@pytest.mark.parametrize("given", ["one string", b"bytes", 7, None])
def test_lines_are_many(copy: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match="lines must be an open file"):
        copy.interchange.import_facts(given)


def test_an_item_that_is_no_line_is_refused(copy: Store) -> None:
    lines: Any = [line(), {"type": "fact"}]
    with pytest.raises(InvalidInput, match=r"The line must be str or bytes, not dict \(line 2\)"):
        copy.interchange.import_facts(lines)
    with pytest.raises(InvalidInput, match="not valid Unicode"):
        copy.interchange.import_facts(["\ud800"])


def test_a_file_is_read_as_text_or_bytes_with_any_line_end(store: Store) -> None:
    text = f"{line()}\r\n\r\n{line(id=2, subject='bob')}"
    assert store.interchange.import_facts(StringIO(text, newline="")).added == 2
    assert store.interchange.import_facts(BytesIO(text.encode())).known == 2
    assert store.interchange.import_facts(BytesIO(b"")).added == 0


def test_lines_by_hand_need_little(copy: Store) -> None:
    """Without a period it is true from when it is recorded, as `assert_fact` has it."""
    copy.interchange.import_facts([line()])
    [fact] = copy.facts()
    assert fact.valid.start == fact.known.start
    assert (fact.confidence, fact.source, fact.valid.end) == (1.0, "observed", None)
