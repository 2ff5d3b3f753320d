"""Code runs only if the command names it, and the current folder hides no installed module."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.memory.ingest.formats import sandbox

from .conftest import Run

AGENT = "import cerata\n@cerata.agent('bot')\ndef f(run): return 1\n"
EVIL = f"open('IMPORTED', 'w').close()\n{AGENT}"


def record(folder: Path, module: str) -> Path:
    """Record a run of a function of a module, which is not loaded afterwards."""
    path = folder / "x.cera"
    names: dict[str, Any] = {"__name__": module}
    exec(AGENT, names)  # noqa: S102 - the text above
    with cerata.open(path) as store:
        names["f"](store, id="r1")
    return path


def test_a_recorded_name_imports_nothing(run: Run, tmp_path: Path) -> None:
    """A memory from elsewhere, opened in its folder, would run the code that lies beside it."""
    path = record(tmp_path, "evil_a")
    (tmp_path / "evil_a.py").write_text(EVIL)
    code, _, error = run("agents", "runs", "r1", "--again", "-f", str(path))
    assert (code, "not loaded" in error, "MODULE:FUNCTION" in error) == (6, True, True)
    assert not (tmp_path / "IMPORTED").exists()
    assert "evil_a" not in sys.modules


def test_a_name_of_the_command_line_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy of the refusal works, and the folder comes after every other place."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = record(tmp_path, "evil_b")
    (tmp_path / "evil_b.py").write_text(EVIL)
    assert run("agents", "runs", "r1", "evil_b:f", "--again", "-f", str(path))[0] == 0
    assert (tmp_path / "IMPORTED").exists()
    assert sys.path.index(str(tmp_path)) == len(sys.path) - 1
    del sys.modules["evil_b"]


@pytest.mark.parametrize(
    "words",
    [["agents", "reflect", "--model", "json:x"], ["agents", "runs", "r1", "x:y", "--again"]],
)
def test_the_folder_hides_no_installed_module(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """A module that is imported later must not come from a folder of strangers."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = record(tmp_path, "evil_c")
    run(*words, "-f", str(path))
    assert sys.path[-1] == str(tmp_path)
    assert str(tmp_path) not in sys.path[:-1]


def test_children_import_nothing_from_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m` and `python -c` put the current folder before the installed modules."""
    for name in ("msgspec", "signal", "importlib", "subprocess", "cerata"):
        (tmp_path / f"{name}.py").write_text("open('IMPORTED', 'w').close()\nraise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    started: list[list[str]] = []
    popen: Any = subprocess.Popen

    def watched(command: list[str], **options: Any) -> object:
        started.append(command)
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", watched)
    page = b"<html><body><p>A page.</p></body></html>"
    document = sandbox.parse_isolated(
        page, "a.html", module="html", package="selectolax", media_type="text/html"
    )
    assert "A page." in document.text
    assert not (tmp_path / "IMPORTED").exists()
    assert all("-P" in command for command in started)


def test_every_start_of_python_is_without_the_folder() -> None:
    """A new child process must not be forgotten."""
    root = Path(cerata.__file__).resolve().parent.parent
    rooms = ("engine", "projections", "replay", "retrieval", "memory", "agents", "aio", "cli")
    lines = [
        line
        for room in (*rooms, "integrations", "packs")
        for path in (root / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if "[sys.executable" in line
    ]
    assert len(lines) >= 4
    assert [line for line in lines if '"-P"' not in line] == []
