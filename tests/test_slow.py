"""The mark ``slow``, and the lanes that share out the tests: on a change, or at night."""

import re
import shlex
import subprocess
import sys

import pytest

from .quick import TESTS
from .slow import SECONDS_FAIL, check_reason, check_time

ROOT = TESTS.parent


def test_a_test_of_a_change_takes_at_most_ten_seconds() -> None:
    """A slow test makes each change wait; at night there is time."""
    check_time(is_slow=False, taken=SECONDS_FAIL)
    check_time(is_slow=True, taken=99)
    with pytest.raises(AssertionError, match=r"took 90\.1 s of processor time"):
        check_time(is_slow=False, taken=SECONDS_FAIL + 0.1)


def test_a_slow_test_has_its_reason() -> None:
    """A mark without a reason is never looked at again."""
    check_reason(pytest.mark.slow("tries 2,000 files").mark, "test_x")
    for mark in (pytest.mark.slow, pytest.mark.slow(""), pytest.mark.slow("slow")):
        with pytest.raises(pytest.UsageError, match="test_x: slow must have its reason"):
            check_reason(mark.mark, "test_x")


def script(name: str) -> str:
    return (ROOT / ".ci" / name).read_text(encoding="utf-8")


def test_the_scripts_name_every_mark_of_an_extra() -> None:
    """A mark that no script names is of tests that nobody runs."""
    ini = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    marks = set(re.findall(r'^    "(\w+): needs the ', ini, re.MULTILINE))
    assert len(marks) >= 10
    extras = re.search(r"^EXTRAS=\(([\w ]+)\)$", script("steps.sh"), re.MULTILINE)
    assert extras is not None
    assert set(extras[1].split()) == marks


def expression(command: str) -> str:
    """Return what selects the tests of a command: the value of ``-m``, or nothing."""
    arguments = shlex.split(command)
    return arguments[arguments.index("-m") + 1] if "-m" in arguments else ""


def selected(*arguments: str) -> set[str]:
    """Return the ids of the tests that pytest selects."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
            *arguments,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line for line in run.stdout.splitlines() if "::" in line}


@pytest.mark.slow("collects all tests three times")
def test_a_change_and_the_night_together_run_every_test() -> None:
    """A test that fell between the two would never fail."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    change = re.search(r"^\.venv/bin/pytest .*--numprocesses.*not slow.*$", readme, re.MULTILINE)
    night = re.search(r"^    \.venv/bin/pytest .*$", script("nightly"), re.MULTILINE)
    assert change is not None
    assert night is not None
    whole = selected()
    on_change, at_night = (selected("-m", expression(found[0])) for found in (change, night))
    assert on_change < whole
    assert at_night | on_change == whole
    # What a change leaves out is slow.
    assert whole - on_change == selected("-m", "slow")
