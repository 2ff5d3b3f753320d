"""The command line: right answers, typed errors, exit codes, never a traceback."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

import cerata
from cerata.cli.output import Steps
from cerata.engine.disk.environment import Environment
from cerata.projections.columnar.times import to_microseconds

from ..clocks import StandingClock

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of two notes."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plan.md").write_text("# Plan\nWe ship the harbour bridge in May.\n")
    (folder / "food.txt").write_text("Lunch is soup.\n")
    (folder / "picture.bin").write_bytes(b"\xff")
    return folder


def test_remember_search_recall_and_log_work_together(run: Run, notes: Path) -> None:
    """The README's first minute."""
    code, out, _ = run("remember", str(notes))
    assert code == 0
    assert out.splitlines() == [
        "2 added, 0 replaced, 0 unchanged, 0 skipped; 2 frames, passages included",
        "left out: 1 .bin",
        "memory.cera is at event 2",
    ]
    assert run("remember", str(notes))[1].startswith("0 added, 0 replaced, 2 unchanged, 0 skipped")
    code, out, _ = run("search", "bridge")
    assert code == 0
    assert re.match(r" 1\. #2  \d\.\d{3}  Plan  notes/plan.md$", out.splitlines()[0])
    assert "harbour bridge" in out
    code, out, _ = run("recall", "bridge")
    assert "We ship the harbour bridge in May." in out
    assert out.rstrip().endswith("tokens, basis 2")
    code, out, _ = run("log", "-n", "1")
    assert out.startswith("event 2  (HEAD)  ")
    assert "put        #2 Plan: # Plan We ship the harbour bridge in May." in out
    assert run("recall", "bridge", "--at", "1")[1].startswith("nothing relevant")


def test_a_text_in_three_places_is_a_hit_that_names_them(run: Run) -> None:
    with cerata.open("memory.cera") as store:
        for place in ("note:1", "note:2", None):
            store.put_frame("The bridge has two lanes.", uri=place)
        store.put_frame("The bridge is closed.", uri="note:3")
    out = run("search", "bridge lanes")[1]
    assert "    also under #2 note:2, #3\n" in out
    assert re.findall(r"^ \d\. #(\d)", out, re.MULTILINE) == ["1", "4"]
    hits = json.loads(run("search", "bridge lanes", "--json")[1])["hits"]
    assert [[each["id"] for each in hit.get("grouped", ())] for hit in hits] == [[2, 3], []]


def test_verify_says_ok_and_what_was_checked(run: Run, notes: Path) -> None:
    """A check that prints nothing could have checked nothing."""
    run("remember", str(notes))
    code, out, _ = run("file", "verify")
    assert code == 0
    assert out == (
        "ok: 2 events, every hash recomputed\n"
        "    access, activities, embedders, facts, facttext, frames, fulltext, langgraph,\n"
        "    links, messages, slots, tags, vectors, verdicts equal their replay\n"
    )


def test_verify_finds_a_flipped_bit(run: Run, notes: Path) -> None:
    """Exit code 1 and the place."""
    run("remember", str(notes))
    path = Path("memory.cera")
    with cerata.open(path) as store:
        store.checkpoint()
    data = bytearray(path.read_bytes())
    data[data.index(b"CERAXTNT") + 200] ^= 4
    path.write_bytes(data)
    code, out, _ = run("file", "verify")
    assert code == 1
    assert "damaged: " in out
    assert "offset" in out


def test_what_is_no_text_is_skipped_and_said(run: Run, notes: Path) -> None:
    """One bad file must not stop the others, nor pass in silence."""
    code, out, err = run("remember", str(notes / "picture.bin"), str(notes / "food.txt"))
    assert code == 1
    assert out.startswith("1 added, 0 replaced, 0 unchanged, 1 skipped; 1 frame, passages")
    assert "byte 0 is 0xff" in err


def test_input_can_be_remembered(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes are how people join programs."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe")))
    assert run("remember", "-")[0] == 0
    assert "from a pipe" in run("recall", "pipe")[1]


def test_a_text_can_be_put_and_the_file_named_before_the_verb(run: Run) -> None:
    """``cerata -f FILE verb`` and ``cerata verb -f FILE`` are the same."""
    assert run("-f", "a.cera", "put", "port", "5433", "--tag", "db") == (
        0,
        "frame 1 in a.cera\n",
        "",
    )
    assert "port 5433" in run("recall", "port", "-f", "a.cera")[1]
    assert json.loads(run("--json", "-f", "a.cera", "info")[1])["head"] == 1


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["search", "soup"], [1]),
        (["list"], [2, 1]),
        (["list", "-n", "1"], [2]),
        (["list", "--at", "1"], [1]),
        (["show", "2", "1"], [2, 1]),
        (["list", "--by", "content", "--oldest-first"], [1, 2]),
        (["search", "--full", "soup AND lun*"], [1]),
        (["search", "soup", "--tag", "none"], []),
        (["log"], [2, 1]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_a_list_can_come_as_one_object_a_line(
    run: Run, notes: Path, arguments: list[str], ids: list[int]
) -> None:
    """What grep and jq take line by line."""
    run("remember", str(notes))
    code, out, err = run(*arguments, "--jsonl")
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row.get("id", row.get("seq")) for row in rows] == ids
    code, out, _ = run(*arguments, "--jsonl", "--at", "99")
    assert code == cerata.NotFound.exit_code
    assert json.loads(out.splitlines()[0])["error"] == "NotFound"
    assert len(out.splitlines()) == 1


def test_frames_are_shown_whole_and_listed_as_they_were(run: Run) -> None:
    """What a person reads of a frame: where it is from, what was said of it, its text."""
    with cerata.open("m.cera") as store:
        store.put_frame(
            "We meet on Tuesday.\nAt ten.",
            role="user",
            tags=["plan"],
            metadata={"room": 7},
            options=cerata.PutOptions(created="2026-03-01"),
        )
        store.supersede(1, "We meet on Thursday.")
        store.put_frame(
            b"\x89PNG",
            title="Map",
            options=cerata.PutOptions(search_text="a map", created="2026-03-02"),
        )
    with cerata.open("m.cera") as store:
        recorded = {frame: store.frame(frame).recorded for frame in (1, 2, 4)}

    def at(frame: int) -> str:
        return f"{recorded[frame]:%Y-%m-%d %H:%M:%S}"

    today = at(2)[:10]
    assert run("show", "1", "4", "--at", "4")[1].splitlines() == [
        "[#1 · 2026-03-01]",
        "closed: superseded by #2",
        f"recorded: {at(1)} UTC",
        "role: user",
        "tags: plan",
        'metadata: {"room": 7}',
        "",
        "We meet on Tuesday.",
        "At ten.",
        "",
        "[#4 · Map · 2026-03-02]",
        f"recorded: {at(4)} UTC",
        "search text: a map",
        "",
        "(4 B)",
    ]
    assert "closed" not in run("show", "1", "--at", "1")[1]
    assert run("list", "--superseded")[1].splitlines() == [
        "     #4  2026-03-02  Map  (4 B)",
        f"     #2  {today}  user: We meet on Thursday.",
        "     #1  2026-03-01  closed  user: We meet on Tuesday. At ten.",
    ]
    assert run("list", "--at", "1")[1] == "     #1  2026-03-01  user: We meet on Tuesday. At ten.\n"
    assert run("list", "--at", "0")[1] == "There are no frames.\n"
    code, _, err = run("show", "3")
    assert code == cerata.NotFound.exit_code
    assert "There is no frame 3" in err


class TestWhichFile:
    """-f FILE, else $CERATA_FILE, else the one file here."""

    def test_the_only_file_here_is_taken(self, run: Run, notes: Path) -> None:
        """No option for the common case."""
        run("remember", "-f", "mine.cera", str(notes))
        assert run("info", "--json")[1].count("mine.cera") == 1

    def test_two_files_need_a_choice(self, run: Run, notes: Path) -> None:
        """A guess would write into the wrong memory."""
        run("remember", "-f", "a.cera", str(notes))
        run("remember", "-f", "b.cera", str(notes))
        code, _, err = run("info")
        assert code == cerata.NotFound.exit_code
        assert "There are 2 *.cera files here" in err
        os.environ["CERATA_FILE"] = "b.cera"
        try:
            assert json.loads(run("info", "--json")[1])["file"] == "b.cera"
        finally:
            del os.environ["CERATA_FILE"]

    def test_a_missing_file_is_not_created_by_reading(self, run: Run, notes: Path) -> None:
        """A typing error in a name must not make an empty memory."""
        run("remember", "-f", "memory.cera", str(notes))
        code, _, err = run("search", "-f", "memroy.cera", "x")
        assert code == cerata.NotFound.exit_code
        assert "Did you mean" in err
        assert "memory.cera" in err
        assert not Path("memroy.cera").exists()

    def test_a_folder_alone_says_what_to_type(self, run: Run) -> None:
        """The first thing that a newcomer runs."""
        code, out, _ = run()
        assert code == 0
        assert len(out.splitlines()) == 5
        assert "cerata admin tour" in out


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", cerata.Unsupported),
        (b"just some text, not a store", cerata.Unsupported),
        (b"\x89CERATA\n\x01\x00", cerata.Corrupt),
        ((b"\x89CERATA\n\x02\x00" + bytes(4086)) * 2, cerata.Unsupported),
        (b"\x89CERATA\n\x02\x00" + bytes(8182), cerata.Corrupt),
        (None, cerata.StorageFailed),
    ],
    ids=["empty", "text", "cut short", "newer", "rotten", "folder"],
)
@pytest.mark.parametrize("verb", ["info", "search x", "file verify", "remember notes"])
def test_what_is_no_store_is_a_typed_error(
    run: Run, notes: Path, content: bytes | None, error: type[cerata.CerataError], verb: str
) -> None:
    """One line that says what and where; the file is left as it was."""
    path = Path("bad.cera")
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    code, out, err = run("-f", "bad.cera", *verb.split())
    assert (code, out) == (error.exit_code, "")
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert content is None or path.read_bytes() == content


def test_bad_arguments_exit_with_2(run: Run) -> None:
    """As every command line does."""
    assert run("serach", "x")[0] == 2
    cerata.open("m.cera").close()
    assert run("search", "x", "-k", "0")[0] == 2
    assert run("recall", "x", "--max-tokens", "0")[0] == 2
    assert run("log", "-n", "0")[0] == 2
    assert run("search", "x", "--at", "2026-13-01")[0] == 2
    assert run("search", "x", "--at", "never")[0] == cerata.NotFound.exit_code
    assert run("search", "x", "--at", "99")[0] == cerata.NotFound.exit_code


def test_the_tour_holds_on_other_peoples_files(run: Run, notes: Path) -> None:
    """The main job, with its own checks: a real child is killed while it writes."""
    code, out, _ = run("admin", "tour", str(notes / "plan.md"), str(notes / "food.txt"), "--json")
    said = json.loads(out)
    assert code == 0
    assert said["holds"] is True
    assert said["kill"]["acknowledged"] >= 200
    assert said["kill"]["missing"] == 0
    assert said["correct"]["now"] != said["correct"]["before"]
    folded = (
        "access activities embedders facts facttext frames fulltext langgraph links messages "
        "slots tags vectors verdicts"
    )
    assert set(said["rebuild"]["digests"]) == set(folded.split())
    assert len(said["next"]) == 3


def test_a_tour_leaves_no_file_and_asks_about_a_subject(run: Run) -> None:
    """It left tour.cera and tour-2.cera, and asked what there was about Synopsis."""
    Path("notes").mkdir()
    Path("notes/a.md").write_text("# Harbour bridge\n\nText.\n\n## Synopsis\n\nIt opens in May.\n")
    before = sorted(path.name for path in Path.cwd().iterdir())
    code, out, _ = run("admin", "tour", "notes")
    assert code == 0
    assert "What do the files say about Harbour bridge?\n" in out
    assert "cerata admin tour -f tour.cera notes\n" in out
    assert sorted(path.name for path in Path.cwd().iterdir()) == before
    assert run("admin", "tour", "notes", "-f", "kept.cera")[0] == 0
    assert Path("kept.cera").exists()


def test_the_tour_notices_what_was_lost(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tour's own check must be able to fail."""
    from cerata.cli import tour

    def claims_a_write(_file: str) -> list[str]:
        return ["Never written."]

    monkeypatch.setattr(tour, "_write_until_killed", claims_a_write)
    code, out, _ = run("admin", "tour", str(notes), "--json")
    assert code == 1
    assert json.loads(out)["kill"] == {
        "holds": False, "acknowledged": 1, "missing": 1, "written_unacknowledged": 0,
    }  # fmt: skip


def test_a_closed_pipe_is_no_error(notes: Path, tmp_path: Path, checkout: Path) -> None:
    """``cerata log | head`` is what people type."""
    with cerata.open(tmp_path / "m.cera") as store:
        store.put_frames([f"text {number}" for number in range(5000)])
    command = [sys.executable, "-m", "cerata", "log", "-n", "5000", "-f", str(tmp_path / "m.cera")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=checkout
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline().startswith("event 1..5000  (HEAD)  ")
        child.stdout.close()
        assert child.stderr.read() == ""
    assert child.returncode == 0


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_is_not_put(run: Run, text: str) -> None:
    """An empty frame was stored, and found by nobody."""
    code, _, said = run("put", text)
    assert code == cerata.InvalidInput.exit_code
    assert "The text is empty" in said
    assert not Path("memory.cera").exists()


def test_info_is_told_as_of_a_basis(run: Run) -> None:
    """Every verb that reads took --at but this one."""
    for text in ("one", "two"):
        run("put", text)
    head, then = (json.loads(run("info", "--json", *more)[1]) for more in ((), ("--at", "1")))
    assert (head["head"], head["frames"]["current"]) == (2, 2)
    assert (then["head"], then["frames"]["current"]) == (1, 1)
    assert then["chain"] != head["chain"]
    assert (then["size_bytes"], then["events_in_ring"]) == (head["size_bytes"], 2)


def test_the_bar_of_a_verification_stays_within_its_end(run: Run, notes: Path) -> None:
    """It passed 100 %: the log is gone through twice, and both passes were added up."""
    run("remember", str(notes))
    with cerata.open("memory.cera", mode="r") as store, Progress(disable=True) as progress:
        task = progress.add_task("verifying", total=store.head.seq)
        steps, seen = Steps(progress, task), list[tuple[str, float, float | None]]()

        def moved(what: str, at: int, total: int) -> None:
            steps.stand(what, at, total)
            [one] = progress.tasks
            seen.append((one.description, one.completed, one.total))

        assert store.verify(moved).ok
        end = store.head.seq
    assert {what for what, _, _ in seen} >= {"projections", "done"}
    assert all(done <= end == total for _, done, total in seen)
    assert seen[-1][1] == end


def test_after_a_tour_the_memory_is_still_the_one_here(run: Run) -> None:
    """What the welcome tells a newcomer to type: the notes went into the tour's own file."""
    Path("notes.md").write_text("The harbour bridge opens in May.")
    for name in ("tour.cera", "tour-2.cera"):
        cerata.open(name).close()
    code, _, err = run("search", "bridge")
    assert code == cerata.NotFound.exit_code
    assert "There is no *.cera file here (a tour's does not count)" in err
    assert run("remember", "notes.md")[0] == 0
    assert "opens in May" in run("recall", "when does the bridge open?")[1]
    with cerata.open("memory.cera", mode="r") as store:
        assert len(store) == 1
    with cerata.open("tour.cera", mode="r") as store:
        assert len(store) == 0


def test_the_log_since_a_time_reads_no_earlier_events(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`log --since` walked back to event 1 in blocks."""
    clock = StandingClock(to_microseconds("2026-03-01"))
    with cerata.open("memory.cera", environment=replace(Environment(), clock=clock)) as store:
        store.put_frames([f"note {number}" for number in range(600)])
        clock.time_us = to_microseconds("2026-03-02")
        store.put_frame("a later note")
    firsts: list[int] = []
    read = cerata.View.log

    def counted(view: cerata.View, first: int = 1, last: int | None = None, **names: Any) -> Any:
        firsts.append(first)
        return read(view, first, last, **names)

    monkeypatch.setattr(cerata.View, "log", counted)
    code, out, _ = run("log", "--since", "2026-03-02", "--oneline")
    assert (code, len(out.splitlines())) == (0, 1)
    assert "a later note" in out
    assert firsts == [1, 601]
    assert run("log", "--since", "2999-01-01")[:2] == (0, "No event matches.\n")
    assert (
        len(run("log", "--since", "2026-03-01", "-n", "1000", "--oneline")[1].splitlines()) == 601
    )
