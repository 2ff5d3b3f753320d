"""A parser in a child process: its limits hold, and it never outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cerata.engine.errors import InvalidInput
from cerata.memory.ingest.formats import sandbox

STUCK = "__import__('re').match('(a+)+$', 'a' * 40 + 'b')"
"""It never ends, and no other thread of its process runs meanwhile."""

ASLEEP = "__import__('time').sleep(300)"

ENDS = """
import os, sys
from cerata.memory.ingest.formats import sandbox
sandbox._START = {start!r}
sandbox.parse_isolated(b"x", "a", module="html", package="msgspec", media_type="")
"""


def start(work: str, before: str = "") -> str:
    """The child's program, its parser replaced by a Python expression."""
    return (
        "import os, sys; sys.path[:] = {path!r}; "
        "from cerata.memory.ingest.formats import sandbox_child; "
        "from cerata.memory.ingest.formats.sandbox import Parsed; "
        "from cerata.memory.ingest.formats.sandbox_child import Limits, run_child; "
        f"{before}run_child(lambda data: {work}, {{limits!r}})"
    )


def parse(monkeypatch: pytest.MonkeyPatch, work: str, data: bytes = b"x") -> str:
    """What the child gives back for some work: the text of its parts."""
    monkeypatch.setattr(sandbox, "_START", start(work))
    found = sandbox.parse_isolated(data, "a", module="html", package="msgspec", media_type="")
    return found.text


def test_a_parser_has_a_deadline_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processor time alone does not pass in a parser that waits."""
    monkeypatch.setattr(sandbox, "WALL_SECONDS_MAX", 1)
    with pytest.raises(InvalidInput, match="too much time on the clock"):
        parse(monkeypatch, ASLEEP)


def test_the_deadline_holds_where_no_other_thread_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS_MAX", 1)
    with pytest.raises(InvalidInput, match="too much time on the clock"):
        parse(monkeypatch, STUCK)


def test_a_parser_has_a_limit_of_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS_MAX", 1)
    with pytest.raises(InvalidInput, match="too much time"):
        parse(monkeypatch, STUCK)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits address space so")
def test_a_parser_has_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    grows = "Parsed(sections=[((), str(len(bytearray({} << 20))))])"
    assert parse(monkeypatch, grows.format(100)) == str(100 << 20)
    with pytest.raises(InvalidInput, match="too much memory"):
        parse(monkeypatch, grows.format(400))


def test_control_c_ends_the_parser_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The child sends the signal itself, when it is busy."""
    note = tmp_path / "child"
    work = (
        f"(open({str(note)!r}, 'w').write(str(os.getpid())), "
        f"os.kill(os.getppid(), {int(signal.SIGINT)}), {ASLEEP})"
    )
    with pytest.raises(KeyboardInterrupt):
        parse(monkeypatch, work)
    assert not _runs(int(note.read_text()))


def test_an_answer_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page repeats, such as a long heading above many parts, must not fill the parent."""
    with pytest.raises(InvalidInput, match="too much text, or too many headings"):
        parse(monkeypatch, "Parsed(sections=[((), 'x' * (33 << 20))])")


def test_a_child_that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="exit code 7"):
        parse(monkeypatch, "os._exit(7)", b"x" * 1_000_000)
    with pytest.raises(InvalidInput, match="KeyError: 'lost'"):
        parse(monkeypatch, "dict()['lost']")


def parts(monkeypatch: pytest.MonkeyPatch, work: str, *, seconds: int = 5) -> sandbox.ParserProcess:
    monkeypatch.setattr(sandbox, "_START", start(work))
    return sandbox.ParserProcess("a", module="", seconds=seconds)


def title_of(parser: sandbox.ParserProcess, part: bytes) -> str | None:
    return parser.parse(part, sandbox.Parsed).title


def test_a_process_parses_parts_until_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start costs more than a part; a failed parser may be in any state."""
    work = "os._exit(7) if data == b'end' else Parsed(title='%d %d' % (os.getpid(), len(data)))"
    with parts(monkeypatch, work) as parser:
        first = title_of(parser, b"x" * 1_000_000)
        assert first is not None
        process = first.split()[0]
        assert first == f"{process} 1000000"
        assert title_of(parser, b"") == f"{process} 0"
        with pytest.raises(sandbox.Unparsed, match="exit code 7"):
            title_of(parser, b"end")
        last = title_of(parser, b"x")
        assert last is not None
        assert last.split()[0] != process
    assert not _runs(int(last.split()[0]))


def test_the_parts_share_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part alone would take less."""
    work = "[time.sleep(0.7), Parsed(title='x')][1]"
    monkeypatch.setattr(sandbox, "WALL_SECONDS_MAX", 2)
    with parts(monkeypatch, f"(time := __import__('time')) and {work}") as parser:
        assert title_of(parser, b"") == "x"
        # The parent's time is not the parser's.
        time.sleep(0.7)
        assert title_of(parser, b"") == "x"
        with pytest.raises(sandbox.Unparsed, match="too much time on the clock"):
            title_of(parser, b"")


def test_a_parser_has_no_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that a package prints must not become an answer, and no part may be taken."""
    work = "(os.write(1, b'x' * 99), Parsed(title=repr(os.read(0, 9))))[1]"
    with parts(monkeypatch, work) as parser:
        assert [title_of(parser, b"ab") for _ in range(2)] == ["b''", "b''"]


@pytest.mark.parametrize("how", ["system", "input"])
def test_a_child_ends_with_a_parent_that_is_killed(tmp_path: Path, how: str) -> None:
    """By the system where it can, and otherwise when its input ends."""
    if how == "system" and sys.platform != "linux":
        pytest.skip("only Linux ends a child with its parent")
    note = tmp_path / "child"
    before = "sandbox_child._end_with_parent = lambda parent: None; " if how == "input" else ""
    work = f"(open({str(note)!r}, 'w').write(f'{{{{os.getpid()}}}} '), {ASLEEP})"
    parent = subprocess.Popen([sys.executable, "-c", ENDS.format(start=start(work, before))])
    try:
        child = int(_waited_for(note))
    finally:
        parent.kill()
        parent.wait()
    try:
        for _ in range(400):
            if not _runs(child):
                break
            time.sleep(0.025)
        assert not _runs(child)
    finally:
        if _runs(child):
            os.kill(child, signal.SIGKILL)


def _waited_for(note: Path) -> str:
    for _ in range(1_200):
        if note.exists() and note.read_text().endswith(" "):
            return note.read_text()
        time.sleep(0.025)
    raise AssertionError("the child did not start")


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    # Where nobody collects it, an ended process stays as a name.
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
