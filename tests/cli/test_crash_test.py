"""crash-test: what it finds, how it ends, and what it says while it runs."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cerata.cli import main
from cerata.fault_injection import crash_test as crash_test_module
from cerata.fault_injection.crash_states.readings import Outcome
from cerata.fault_injection.judging.oracle import Oracle

from ..test_docs import blocks, shell_environment
from .story import WORKLOAD
from .test_terminal import on_a_terminal

Run = Callable[..., tuple[int, str, str]]
BOTH = 'store.put_frames(["the left shoe", "the right shoe"])'
LEFT, RIGHT = 'store.put_frame("the left shoe")', 'store.put_frame("the right shoe")'


@pytest.fixture
def broken(run: Run) -> Run:
    """Run a command beside a workload whose shoes may be parted."""
    Path("shoes.py").write_text(WORKLOAD)
    return run


@pytest.fixture
def sound(run: Run) -> Run:
    """Run a command beside a workload whose shoes stay together."""
    text = WORKLOAD.replace(LEFT, BOTH).replace(RIGHT, "pass")
    assert text != WORKLOAD
    Path("shoes.py").write_text(text)
    return run


def test_a_program_that_survives_exits_with_0(sound: Run) -> None:
    """It says how much was tried, and leaves nothing behind."""
    code, out, err = sound(
        "admin", "crash-test", "shoes.py", "--stories", "6", "--jobs", "1", "--json"
    )
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["violations"] == 0
    assert said["states"] > 100
    assert said["states_per_second"] > 0
    assert said["stories"] == 6
    assert said["operations"] == ["put", "checkpoint", "reopen", "kill"]
    assert said["canary"].startswith("O5: ")
    assert not Path("crash-cases").exists()


def test_one_that_does_not_exits_with_1_and_its_command_shows_it_again(broken: Run) -> None:
    """The command is printed whole, so that it can be copied."""
    code, out, _ = broken("admin", "crash-test", "shoes.py", "--stories", "6", "--jobs", "1")
    assert code == 1
    found = re.search(
        r"replay  cerata (admin crash-test shoes.py --replay (\S+))$", out, re.MULTILINE
    )
    assert found is not None
    assert "in operation 1 (put), after the one write" in " ".join(out.split())
    again = broken(*found[1].split())
    assert again[0] == 1
    assert "The saved crash fails as before: check: 1 shoes." in again[1]
    Path("shoes.py").write_text(WORKLOAD.replace(LEFT, BOTH).replace(RIGHT, "pass"))
    code, out, _ = broken(*found[1].split(), "--json")
    said = json.loads(out)
    assert (code, said["broken"], said["what"]) == (0, False, "1 shoes")
    assert said["states"] > 20
    assert said["seconds"] < 10


def test_counts_are_the_same_each_time(sound: Run) -> None:
    """With a number of stories instead of a time, on as many cores."""
    arguments = (
        "admin",
        "crash-test",
        "shoes.py",
        "--stories",
        "5",
        "--jobs",
        "1",
        "--seed",
        "7",
        "--json",
    )
    first, second = (json.loads(sound(*arguments)[1]) for _ in range(2))
    times = ("seconds", "states_per_second", "states_per_second_per_core")
    assert {**first, **dict.fromkeys(times)} == {**second, **dict.fromkeys(times)}
    assert first["stories"] == 5


def test_a_budget_ends_it(sound: Run) -> None:
    """In about that time: the story at hand is finished."""
    said = json.loads(
        sound("admin", "crash-test", "shoes.py", "--budget", "0.3", "--jobs", "1", "--json")[1]
    )
    assert 0.3 <= said["seconds"] < 5
    assert said["states"] > 0


def test_without_a_workload_it_is_an_agents_memory(run: Run) -> None:
    """Something to see before a line is written."""
    code, out, _ = run("admin", "crash-test", "--stories", "2", "--jobs", "1", "--json")
    said = json.loads(out)
    assert (code, said["workload"], said["violations"]) == (0, "Agent", 0)
    assert "correct" in said["operations"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "The file defines 0 workloads, not one"),
        ("1 / 0\n", "cannot be loaded: ZeroDivisionError"),
        ("def f(:\n", "cannot be loaded: SyntaxError"),
        (WORKLOAD.replace("    @operation\n", ""), "The workload Pairs has no operations"),
    ],
)
def test_what_is_no_workload_is_a_typed_error(run: Run, text: str, said: str) -> None:
    """With what to do; nothing is run."""
    Path("shoes.py").write_text(text)
    code, _, err = run("admin", "crash-test", "shoes.py")
    assert code == 2
    assert said in " ".join(err.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("none.py",),
        ("shoes.py", "--budget", "0"),
        ("shoes.py", "--jobs", "0"),
        ("shoes.py", "--stories", "x"),
        ("shoes.py", "--replay", "none.case"),
        ("shoes.py", "--replay", "shoes.py"),
    ],
)
def test_wrong_usage_exits_with_2(sound: Run, arguments: tuple[str, ...]) -> None:
    """No traceback, and no test that tests nothing."""
    code, out, err = sound("admin", "crash-test", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_a_harness_that_is_blind_is_no_success(sound: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary is planted before each run; if nobody notices it, nothing was tested."""

    def nods(self: Oracle, opener: object, *, acked: int) -> Outcome:
        return Outcome(acked, self.model.chains[acked])

    monkeypatch.setattr(Oracle, "check_legal", nods)
    code, _, err = sound("admin", "crash-test", "shoes.py", "--stories", "1", "--jobs", "1")
    assert code == 70
    assert "the canary lives" in err


def test_an_interrupt_tells_what_was_found(
    sound: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who has waited for ten minutes wants the counts of these."""
    stories = 0
    real = crash_test_module._crash

    def crash(*arguments: object) -> object:
        nonlocal stories
        stories += 1
        if stories == 3:
            raise KeyboardInterrupt
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(crash_test_module, "_crash", crash)
    assert main(["admin", "crash-test", "shoes.py", "--jobs", "1"]) == 130
    said = capsys.readouterr()
    assert re.search(r"^ +2  stories", said.out, re.MULTILINE)
    assert "interrupted; the counts are incomplete" in said.err


def test_a_terminal_sees_it_go_on(sound: Run, checkout: Path) -> None:
    """A bar that moves; gone when the counts come."""
    said = on_a_terminal(checkout, Path.cwd(), "admin", "crash-test", "shoes.py", "--stories", "4")
    assert "crash states, no violation; stories" in said
    assert "4/4" in said
    after = said[said.rindex("; stories") :]
    assert re.search(r"ok: .*crash states", after)


@pytest.mark.unwatched("runs in processes of its own")
def test_the_page_shows_what_is_printed(tmp_path: Path, checkout: Path) -> None:
    """Line by line; how many states there are is the simulator's to change."""
    page = blocks(checkout / "docs" / "fault-injection.md")
    writes, crashes, shown = page[:3]
    assert [block.language for block in (writes, crashes, shown)] == ["sh", "sh", "text"]
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", writes.text + crashes.text],
        cwd=tmp_path,
        env=shell_environment(tmp_path) | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert run.stderr == ""
    masked = [re.sub(r"\d[\d,.]*", "N", " ".join(line.split())) for line in run.stdout.splitlines()]
    assert masked == [
        re.sub(r"\d[\d,.]*", "N", " ".join(line.split())) for line in shown.text.splitlines()
    ]
