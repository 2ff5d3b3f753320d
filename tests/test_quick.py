"""The quick tests: a part of each room, by a table that cannot rot."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .quick import FILES, TESTS

ROOT = TESTS.parent


def test_each_folder_of_tests_has_quick_tests() -> None:
    """A run that leaves out a room reports nothing about the room."""
    assert [path for path in FILES if not path.is_file()] == []
    folders = {path.parent for path in TESTS.rglob("test_*.py")}
    assert {path.parent for path in FILES} == folders


def test_each_room_has_quick_tests() -> None:
    """The rooms are the links of the front door; the folders of tests have their names."""
    rooms = {path.name for path in (ROOT / "cerata").iterdir() if path.is_symlink()} - {"docs"}
    assert len(rooms) >= 9
    assert rooms <= {path.relative_to(TESTS).parts[0] for path in FILES}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_name_the_command(page: str) -> None:
    assert "pytest -m quick" in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.slow("collects the quick tests in a process of its own")
def test_the_mark_selects_these_files_and_no_slow_test(tmp_path: Path) -> None:
    """The count shows that the mark is on whole files, in each folder."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-m", "quick", "--collect-only", "-q"),
            *("-p", "no:cacheprovider", "--basetemp", str(tmp_path / "base")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in run.stdout.splitlines() if "::" in line]
    assert {ROOT / line.partition("::")[0] for line in lines} == FILES
    assert 1_500 <= len(lines) <= 4_000


def test_the_readme_has_the_times_of_the_tests() -> None:
    """A newcomer typed the second command and did not know whether it hung."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"The tests take about [\w ]+ on 2 cores", text)
    assert re.search(r"`\.ci/nightly`.*?takes about [\w ]+ hours", text, re.DOTALL)
